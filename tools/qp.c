// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer qp: the queue pairs of all processes, and a try with the CPU as
 * the peer.
 *
 * A queue pair is a file.  There is no other list of them than the files that
 * processes hold, so list looks there, which needs the right to look into those
 * processes (root).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <nvmepeer_peer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "nvme-peer.h"

#define QP_FILE "anon_inode:[nvme-peer-qp]"

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

/* ---- Looking at the queue pairs of other processes ---------------------- */

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

static void report_command_name(struct report *report, int pid)
{
	char path[32], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = 0;
	fclose(file);
	report_text(report, "command", name);
}

/* The kernel says in fdinfo which controller the queue pair belongs to. */
static void report_fdinfo(struct report *report, int fd)
{
	static const char key[] = "controller:";
	char path[40], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		report_text(report, "controller",
			    line + strlen(key) + strspn(line + strlen(key), " \t"));
	}
	fclose(file);
}

/* Where a ring lies: in a function, or in host memory. */
static void report_memory(struct report *report, const char *name,
			  struct nvme_peer_pci_address owner)
{
	char text[NVMEPEER_PCI_TEXT];

	report_text(report, name, owner.valid ? nvmepeer_pci_format(owner, text) : "host");
}

static void report_info(struct report *report, const struct nvme_peer_qp_info *info)
{
	report_number(report, "qid", info->qid, NULL);
	report_text(report, "state", nvmepeer_qp_state_name(info->state));
	report_number(report, "reason", info->reason, "errno, 0 while live");
	report_number(report, "generation", info->generation, NULL);
	report_number(report, "losses", info->losses, "times it lost its entries");
	report_text(report, "mode", nvmepeer_mode_name(info->mode));
	report_number(report, "sq_entries", info->sq_entries, NULL);
	report_number(report, "cq_entries", info->cq_entries, NULL);
	report_memory(report, "sq_memory", info->sq_pci_address);
	report_memory(report, "cq_memory", info->cq_pci_address);
	report_number(report, "cpu_doorbell_writes", info->cpu_doorbell_writes, NULL);
	report_number(report, "exports", info->exports, "dma-bufs open");
	report_number(report, "importers", info->importers, "devices attached");
	report_number(report, "mmaps", info->mmaps, "user mappings");
}

/* Members of one queue pair, into the object or list that is open. */
static int report_qp(struct report *report, int pid, int fd)
{
	struct nvme_peer_qp_info info;
	struct nvmepeer_qp *qp;
	int copy, result;

	copy = copy_descriptor(pid, fd);
	if (copy < 0) {
		fprintf(stderr, "nvme-peer: descriptor %d of process %d: %s\n", fd, pid,
			strerror(-copy));
		return EXIT_REFUSED;
	}
	if (nvmepeer_qp_from_fd(copy, &qp)) {
		close(copy);
		return refused(report);
	}
	report_number(report, "pid", (uint64_t)pid, NULL);
	report_number(report, "fd", (uint64_t)fd, NULL);
	report_command_name(report, pid);
	report_fdinfo(report, copy);
	result = nvmepeer_qp_info(qp, &info, sizeof(info));
	if (!result)
		report_info(report, &info);
	nvmepeer_qp_destroy(qp);
	return result ? refused(report) : 0;
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

static int report_process(struct report *report, int pid)
{
	char directory[32];
	struct dirent *entry;
	int status = 0;
	DIR *files;

	snprintf(directory, sizeof(directory), "/proc/%d/fd", pid);
	files = opendir(directory);
	if (!files)
		return 0;	/* it has ended, or is not ours to look into */
	while ((entry = readdir(files))) {
		if (!is_queue_pair(directory, entry->d_name))
			continue;
		report_object(report, NULL);
		status |= report_qp(report, pid, atoi(entry->d_name));
		report_object_end(report);
	}
	closedir(files);
	return status;
}

static int qp_list(struct report *report, int argc, char **argv)
{
	struct dirent *entry;
	int status = 0;
	DIR *processes;

	if (argc)
		return usage_error("qp list takes no argument", argv[0]);
	processes = opendir("/proc");
	if (!processes) {
		perror("nvme-peer: /proc");
		return EXIT_REFUSED;
	}
	report_list(report, "queue_pairs");
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]))
			status |= report_process(report, atoi(entry->d_name));
	report_list_end(report);
	closedir(processes);
	return status;
}

static int qp_status(struct report *report, int argc, char **argv)
{
	uint64_t pid, fd;

	if (argc != 2 || !parse_number(argv[0], INT32_MAX, &pid) ||
	    !parse_number(argv[1], INT32_MAX, &fd))
		return usage_error("qp status takes a process and its descriptor", NULL);
	return report_qp(report, (int)pid, (int)fd);
}

/* ---- The CPU as the peer ------------------------------------------------ */

enum { CHECK_ENTRIES = 64, CHECK_COMMANDS = 64 };

/* Read the first block again and again; the disk is not written. */
static int read_blocks(struct report *report, const struct nvmepeer_cpu_peer *peer,
		       const struct nvmepeer_ns_info *ns)
{
	struct timespec from, to;
	uint64_t nanoseconds;
	int i, status = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < CHECK_COMMANDS && !status; i++)
		status = nvmepeer_read(nvmepeer_cpu_peer_queue(peer),
				       nvmepeer_cpu_peer_data(peer), 0,
				       (uint64_t)i % ns->blocks, 1);
	clock_gettime(CLOCK_MONOTONIC, &to);
	nanoseconds = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u +
		      (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
	if (!status) {
		report_number(report, "reads", CHECK_COMMANDS, "of one block");
		report_number(report, "nanoseconds_per_read", nanoseconds / CHECK_COMMANDS, NULL);
		return 0;
	}
	if (status > 0)
		fprintf(stderr, "nvme-peer: read of block %d: %s\n", i - 1,
			nvmepeer_status_text(status));
	else
		fprintf(stderr, "nvme-peer: read of block %d: %s\n", i - 1,
			status == NVMEPEER_E_TIMEOUT ? "no completion in time" :
			status == NVMEPEER_E_LOST ? "the queue pair was lost" : "not sent");
	return EXIT_REFUSED;
}

static int check_peer(struct report *report, struct nvmepeer *ctrl,
		      const struct nvmepeer_ns_info *ns, uint32_t entries)
{
	struct nvmepeer_cpu_peer *peer;
	struct nvme_peer_qp_info info;
	int status;

	if (nvmepeer_cpu_peer_open(ctrl, ns, entries, ns->block_size, &peer))
		return refused(report);
	status = read_blocks(report, peer, ns);
	if (nvmepeer_qp_info(nvmepeer_cpu_peer_qp(peer), &info, sizeof(info)))
		status |= refused(report);
	else
		report_info(report, &info);
	nvmepeer_cpu_peer_close(peer);
	return status;
}

static int qp_check(struct report *report, const struct options *options, int argc, char **argv)
{
	uint32_t entries = options->given & OPTION_ENTRIES ? options->entries : CHECK_ENTRIES;
	struct nvmepeer_ns *ns;
	struct nvmepeer *ctrl;
	int status;

	if (argc != 2)
		return usage_error("qp check takes a controller and a namespace node", NULL);
	if (nvmepeer_open(argv[0], &ctrl))
		return refused(report);
	if (nvmepeer_ns_open(argv[1], &ns)) {
		nvmepeer_close(ctrl);
		return refused(report);
	}
	status = check_peer(report, ctrl, nvmepeer_ns_info(ns), entries);
	nvmepeer_ns_close(ns);
	nvmepeer_close(ctrl);
	return status;
}

int command_qp(struct report *report, const struct options *options, int argc, char **argv)
{
	if (argc && !strcmp(argv[0], "list"))
		return qp_list(report, argc - 1, argv + 1);
	if (argc && !strcmp(argv[0], "status"))
		return qp_status(report, argc - 1, argv + 1);
	if (argc && !strcmp(argv[0], "check"))
		return qp_check(report, options, argc - 1, argv + 1);
	return usage_error("qp takes list, status or check", argc ? argv[0] : NULL);
}
