// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer qp: the queue pairs of all processes, and a test with the CPU as the peer.
 *
 * list searches the open files of the processes, which requires access to them (root).
 */
#include <nvmepeer_peer.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "nvme-peer.h"
#include "qp_files.h"

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

/* ---- Queue pairs of other processes ------------------------------------- */

/* The placement of a ring: a PCI function, or host memory. */
static void report_memory(struct report *report, const char *name,
			  struct nvme_peer_pci_address owner)
{
	char text[NVMEPEER_PCI_TEXT];

	report_text(report, name, owner.valid ? nvmepeer_pci_format(owner, text) : "host");
}

static const char *reason_name(uint32_t reason)
{
	static const char *const names[] = {
		[NVME_PEER_QP_REASON_NONE] = "none",
		[NVME_PEER_QP_REASON_RESET] = "reset",
		[NVME_PEER_QP_REASON_REQUEST] = "peer-request",
		[NVME_PEER_QP_REASON_NO_QUEUE] = "no-queue",
		[NVME_PEER_QP_REASON_BUFFER] = "buffer-invalidated",
		[NVME_PEER_QP_REASON_NAMESPACE] = "namespace-changed",
		[NVME_PEER_QP_REASON_CTRL] = "controller-failed",
		[NVME_PEER_QP_REASON_UNBOUND] = "unbound",
		[NVME_PEER_QP_REASON_CLOSED] = "closed",
		[NVME_PEER_QP_REASON_DOORBELL] = "bad-doorbell",
	};

	return reason < sizeof(names) / sizeof(names[0]) && names[reason] ? names[reason] : "unknown";
}

static void report_info(struct report *report, const struct nvme_peer_qp_info *info)
{
	report_number(report, "qid", info->qid, NULL);
	report_text(report, "state", nvmepeer_qp_state_name(info->state));
	report_text(report, "reason", reason_name(info->reason));
	report_number(report, "generation", info->generation, NULL);
	report_number(report, "losses", info->losses, "losses of its entries so far");
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

/* What the tenant has, and what the kernel has counted of its commands. */
static void report_mediated(struct report *report, const struct qp_file *file)
{
	report_number(report, "windows", file->limits.windows, NULL);
	report_number(report, "buffers", file->limits.buffers, NULL);
	report_bool(report, "sealed", file->limits.sealed);
	report_number(report, "depth", file->limits.depth, "commands in flight at most");
	report_number(report, "weight", file->limits.weight, NULL);
	report_number(report, "in_flight", file->stats.in_flight, NULL);
	report_number(report, "reads", file->stats.reads, NULL);
	report_bytes(report, "bytes_read", file->stats.read_bytes);
	report_number(report, "writes", file->stats.writes, NULL);
	report_bytes(report, "bytes_written", file->stats.written_bytes);
	report_number(report, "write_zeroes", file->stats.zeroes, NULL);
	report_number(report, "flushes", file->stats.flushes, NULL);
	report_number(report, "refused", file->stats.refused, "commands that were not allowed");
	report_number(report, "failed", file->stats.failed, "commands with an error of the controller");
	report_duration(report, "busy_nanoseconds", "busy", file->stats.busy_ns);
}

/* Add the members of one queue pair to the current object. */
static int report_qp(struct report *report, int pid, int fd)
{
	struct qp_file file;
	int result = qp_file_read(pid, fd, &file);

	if (result < 0) {
		fprintf(stderr, "nvme-peer: descriptor %d of process %d: %s\n", fd, pid,
			strerror(-result));
		return EXIT_REFUSED;
	}
	if (result)
		return refused(report);
	report_number(report, "pid", (uint64_t)pid, NULL);
	report_number(report, "fd", (uint64_t)fd, NULL);
	report_text(report, "command", file.command);
	report_text(report, "controller", file.controller);
	report_info(report, &file.info);
	if (file.info.mode == NVME_PEER_MODE_MEDIATED)
		report_mediated(report, &file);
	return 0;
}

/**
 * struct listing - output of qp list
 * @report: output
 * @status: EXIT_REFUSED if one of them could not be read
 */
struct listing {
	struct report *report;
	int status;
};

static void list_qp(int pid, int fd, void *context)
{
	struct listing *listing = context;

	report_object(listing->report, NULL);
	listing->status |= report_qp(listing->report, pid, fd);
	report_object_end(listing->report);
}

static int qp_list(struct report *report, int argc, char **argv)
{
	struct listing listing = { .report = report };
	int result;

	if (argc)
		return usage_error("qp list takes no argument", argv[0]);
	report_list(report, "queue_pairs");
	result = qp_files_each(list_qp, &listing);
	report_list_end(report);
	if (!result)
		return listing.status;
	fprintf(stderr, "nvme-peer: /proc: %s\n", strerror(-result));
	return EXIT_REFUSED;
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

/* Read the first blocks; the disk is not written. */
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
		report_number(report, "reads", CHECK_COMMANDS, "(one block each)");
		report_microseconds(report, "nanoseconds_per_read", "time_per_read",
				    nanoseconds / CHECK_COMMANDS);
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
