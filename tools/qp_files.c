// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The queue pairs of all processes; see qp_files.h.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qp_files.h"

#define QP_FILE "anon_inode:[nvme-peer-qp]"

/* A copy of descriptor @fd of process @pid, or a negative errno. */
static int copy_descriptor(int pid, int fd)
{
	int process, copy;

	process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -errno;
	copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	if (copy < 0)
		copy = -errno;
	close(process);
	return copy;
}

/* The rest of the first line that begins with @key, without white space around it. */
static void read_line(const char *path, const char *key, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	char line[128];

	text[0] = 0;
	while (file && !text[0] && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(text, size, "%s", line + strlen(key) + strspn(line + strlen(key), " \t"));
	}
	if (file)
		fclose(file);
}

static int read_all(struct nvmepeer_qp *qp, struct qp_file *file)
{
	int result = nvmepeer_qp_info(qp, &file->info, sizeof(file->info));

	memset(&file->limits, 0, sizeof(file->limits));
	memset(&file->stats, 0, sizeof(file->stats));
	if (result || file->info.mode != NVME_PEER_MODE_MEDIATED)
		return result;
	result = nvmepeer_qp_limits(qp, &file->limits, sizeof(file->limits));
	return result ? result : nvmepeer_qp_stats(qp, &file->stats, sizeof(file->stats));
}

int qp_file_read(int pid, int fd, struct qp_file *file)
{
	int copy = copy_descriptor(pid, fd), result;
	struct nvmepeer_qp *qp;
	char path[40];

	if (copy < 0)
		return copy;
	if (nvmepeer_qp_from_fd(copy, &qp)) {
		close(copy);
		return 1;
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	read_line(path, "", file->command, sizeof(file->command));
	/* fdinfo names the controller of the queue pair. */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", copy);
	read_line(path, "controller:", file->controller, sizeof(file->controller));
	result = read_all(qp, file);
	nvmepeer_qp_destroy(qp);
	return result ? 1 : 0;
}

static bool is_queue_pair(const char *directory, const char *name)
{
	char path[300], target[64];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = 0;
	return !strcmp(target, QP_FILE);
}

static void each_of_process(int pid, void (*visit)(int pid, int fd, void *context), void *context)
{
	char directory[32];
	struct dirent *entry;
	DIR *files;

	snprintf(directory, sizeof(directory), "/proc/%d/fd", pid);
	files = opendir(directory);
	if (!files)
		return;	/* it has ended, or access is denied */
	while ((entry = readdir(files)))
		if (is_queue_pair(directory, entry->d_name))
			visit(pid, atoi(entry->d_name), context);
	closedir(files);
}

int qp_files_each(void (*visit)(int pid, int fd, void *context), void *context)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	if (!processes)
		return -errno;
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]))
			each_of_process(atoi(entry->d_name), visit, context);
	closedir(processes);
	return 0;
}
