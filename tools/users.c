// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Users of disks, from sysfs, mountinfo and /proc/swaps; see users.h.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs.h"
#include "users.h"

static void add(struct users *users, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A user that there is no memory to name ends the program: it must not be lost. */
static void add(struct users *users, const char *format, ...)
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

void users_free(struct users *users)
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

/* proc_pid_mountinfo(5); file systems of several disks have numbers of their own. */
static void find_mounts(struct users *users, const char *disk)
{
	char *line = NULL, number[SYSFS_TEXT], place[256], device[32], source[256];
	FILE *file = sysfs_open("/proc/self/mountinfo");
	const char *rest;
	size_t size = 0;

	sysfs_read(number, "/sys/class/block/%s/dev", disk);
	while (file && getline(&line, &size, file) > 0) {
		rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*s %*s %31s %*s %255s", device, place) != 2 ||
		    sscanf(rest, " - %*s %255s", source) != 1)
			continue;
		if (!strcmp(device, number) || is_node_of(source, disk))
			add(users, "%s is mounted on %s", disk, place);
	}
	free(line);
	if (file)
		fclose(file);
}

static void find_swap(struct users *users, const char *disk)
{
	FILE *file = sysfs_open("/proc/swaps");
	char line[512], source[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%255s", source) == 1 && is_node_of(source, disk))
			add(users, "%s is swap", disk);
	if (file)
		fclose(file);
}

/* The first part of a device-mapper identifier says whose it is. */
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

static void add_holder(struct users *users, const char *disk, const char *holder)
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

static void find_holders(struct users *users, const char *disk)
{
	struct dirent **names;
	int count, i;

	count = sysfs_list(&names, "/sys/class/block/%s/holders", disk);
	for (i = 0; i < count; i++)
		add_holder(users, disk, names[i]->d_name);
	sysfs_list_free(names, count);
}

/* What is seen in no list: a mount of another container, a program such as mkfs. */
static void find_exclusive(struct users *users, const char *disk)
{
	if (sysfs_busy("/dev/%s", disk))
		add(users, "%s is opened exclusively by a program or a mount that is not seen from here",
		    disk);
}

static void find_named(struct users *users, const char *disk)
{
	find_mounts(users, disk);
	find_swap(users, disk);
	find_holders(users, disk);
}

/* ---- Disks of one controller --------------------------------------------- */

static bool lies_below(const char *disk, const char *folder)
{
	char place[SYSFS_PATH];
	size_t length = strlen(folder);

	return sysfs_real(place, "/sys/class/block/%s", disk) && length &&
	       !strncmp(place, folder, length) && place[length] == '/';
}

/*
 * With the multipath of the kernel's own driver a disk is a child of its
 * subsystem, which lists its controllers beside it.
 */
static void find_subsystem(const struct pci_function *controller, char folder[SYSFS_PATH])
{
	struct dirent **names;
	int count, i;

	folder[0] = 0;
	count = sysfs_list(&names, "/sys/class/nvme-subsystem");
	for (i = 0; i < count && controller->node[0] && !folder[0]; i++)
		if (sysfs_exists("/sys/class/nvme-subsystem/%s/%s", names[i]->d_name, controller->node))
			sysfs_real(folder, "/sys/class/nvme-subsystem/%s", names[i]->d_name);
	sysfs_list_free(names, count);
}

static void find_below(struct users *users, const char *folder,
		       void (*find)(struct users *users, const char *disk))
{
	struct dirent **disks;
	int count, i;

	count = sysfs_list(&disks, "/sys/class/block");
	for (i = 0; i < count; i++)
		if (lies_below(disks[i]->d_name, folder))
			find(users, disks[i]->d_name);
	sysfs_list_free(disks, count);
}

void users_find(const struct pci_function *controller, struct users *users)
{
	char folder[SYSFS_PATH], subsystem[SYSFS_PATH];

	*users = (struct users){ 0 };
	sysfs_real(folder, "/sys/bus/pci/devices/%s", controller->address);
	find_subsystem(controller, subsystem);
	find_below(users, folder, find_named);
	find_below(users, subsystem, find_named);
	/* Whoever has a name has opened it, too. */
	if (users->count)
		return;
	find_below(users, folder, find_exclusive);
	find_below(users, subsystem, find_exclusive);
}
