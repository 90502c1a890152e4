// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Users of disks, from sysfs, mountinfo and /proc/swaps; see disk_users.h.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs.h"
#include "disk_users.h"

static void add(struct disk_users *users, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Abort without memory: a missing user could let the caller take a disk in use. */
static void add(struct disk_users *users, const char *format, ...)
{
	char **texts = reallocarray(users->texts, users->count + 1, sizeof(*texts));
	va_list arguments;

	va_start(arguments, format);
	if (!texts || vasprintf(&texts[users->count], format, arguments) < 0) {
		perror("nvme-peer");
		abort();
	}
	va_end(arguments);
	users->texts = texts;
	users->count++;
}

void disk_users_free(struct disk_users *users)
{
	while (users->count)
		free(users->texts[--users->count]);
	free(users->texts);
	users->texts = NULL;
}

/* ---- Users of one disk --------------------------------------------------- */

/* "/dev/NAME" */
static bool is_node_of(const char *source, const char *disk)
{
	return !strncmp(source, "/dev/", 5) && !strcmp(source + 5, disk);
}

/* proc_pid_mountinfo(5).  File systems on several disks have an anonymous device number. */
static void find_mounts(struct disk_users *users, const char *disk)
{
	char *line = NULL, number[SYSFS_TEXT], path[256], device[32], source[256];
	FILE *file = sysfs_open("/proc/self/mountinfo");
	const char *rest;
	size_t size = 0;

	sysfs_read(number, "/sys/class/block/%s/dev", disk);
	while (file && getline(&line, &size, file) > 0) {
		rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*s %*s %31s %*s %255s", device, path) != 2 ||
		    sscanf(rest, " - %*s %255s", source) != 1)
			continue;
		if (!strcmp(device, number) || is_node_of(source, disk))
			add(users, "%s is mounted on %s", disk, path);
	}
	free(line);
	if (file)
		fclose(file);
}

static void find_swap(struct disk_users *users, const char *disk)
{
	FILE *file = sysfs_open("/proc/swaps");
	char line[512], source[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%255s", source) == 1 && is_node_of(source, disk))
			add(users, "%s is swap", disk);
	if (file)
		fclose(file);
}

/* The prefix of a device-mapper UUID names its owner. */
static const char *mapper_kind(const char *uuid)
{
	static const struct {
		const char *prefix;
		const char *name;
	} kinds[] = {
		{ "LVM-", "LVM" }, { "mpath-", "multipath" }, { "CRYPT-", "encryption" },
		{ "part", "partition" }, { "DMRAID-", "RAID" },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(uuid, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].name;
	return "device-mapper";
}

static void add_holder(struct disk_users *users, const char *disk, const char *holder)
{
	char name[SYSFS_TEXT], text[SYSFS_TEXT];

	if (sysfs_read(name, "/sys/class/block/%s/dm/name", holder)) {
		sysfs_read(text, "/sys/class/block/%s/dm/uuid", holder);
		add(users, "%s is held by %s (%s %s)", disk, holder, mapper_kind(text), name);
	} else if (sysfs_read(text, "/sys/class/block/%s/md/level", holder)) {
		add(users, "%s is held by %s (RAID, %s)", disk, holder, text);
	} else {
		add(users, "%s is held by %s", disk, holder);
	}
}

static void find_holders(struct disk_users *users, const char *disk)
{
	struct dirent **names;
	int count, i;

	count = sysfs_list(&names, "/sys/class/block/%s/holders", disk);
	for (i = 0; i < count; i++)
		add_holder(users, disk, names[i]->d_name);
	sysfs_list_free(names, count);
}

/* Users in no list: a mount in another mount namespace, a program such as mkfs. */
static void find_exclusive(struct disk_users *users, const char *disk)
{
	if (sysfs_busy("/dev/%s", disk))
		add(users, "%s is opened exclusively by a program or by a mount in another namespace",
		    disk);
}

static void find_named(struct disk_users *users, const char *disk)
{
	find_mounts(users, disk);
	find_swap(users, disk);
	find_holders(users, disk);
}

/* ---- Disks of one controller --------------------------------------------- */

static bool is_below(const char *disk, const char *directory)
{
	char path[SYSFS_PATH];
	size_t length = strlen(directory);

	return sysfs_real(path, "/sys/class/block/%s", disk) && length &&
	       !strncmp(path, directory, length) && path[length] == '/';
}

/*
 * With the multipath of the kernel's nvme driver a disk is a child of its subsystem, and
 * so are links to its controllers.
 */
static void find_subsystem(const struct pci_function *controller, char directory[SYSFS_PATH])
{
	struct dirent **names;
	int count, i;

	directory[0] = 0;
	count = sysfs_list(&names, "/sys/class/nvme-subsystem");
	for (i = 0; i < count && controller->node[0] && !directory[0]; i++)
		if (sysfs_exists("/sys/class/nvme-subsystem/%s/%s", names[i]->d_name, controller->node))
			sysfs_real(directory, "/sys/class/nvme-subsystem/%s", names[i]->d_name);
	sysfs_list_free(names, count);
}

static void find_below(struct disk_users *users, const char *directory,
		       void (*find)(struct disk_users *users, const char *disk))
{
	struct dirent **disks;
	int count, i;

	count = sysfs_list(&disks, "/sys/class/block");
	for (i = 0; i < count; i++)
		if (is_below(disks[i]->d_name, directory))
			find(users, disks[i]->d_name);
	sysfs_list_free(disks, count);
}

void disk_users_find(const struct pci_function *controller, struct disk_users *users)
{
	char directory[SYSFS_PATH], subsystem[SYSFS_PATH];

	*users = (struct disk_users){ 0 };
	sysfs_real(directory, "/sys/bus/pci/devices/%s", controller->address);
	find_subsystem(controller, subsystem);
	find_below(users, directory, find_named);
	find_below(users, subsystem, find_named);
	/* Users found so far have also opened the disk exclusively. */
	if (users->count)
		return;
	find_below(users, directory, find_exclusive);
	find_below(users, subsystem, find_exclusive);
}
