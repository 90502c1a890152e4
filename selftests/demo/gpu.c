// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software GPU as a part of the demonstration: a queue pair of its own with rings, data and
 * bookkeeping in GPU memory.  None of that is mapped into this process while the GPU does I/O.
 *
 * usage: gpu CONTROLLER
 *
 * Reads commands from standard input and answers each with a line; "failed: WHY" after an error.
 *
 *	write OFFSET BYTES SEED		I/OS BYTES; the pattern of SEED onto this part of the disk
 *	verify OFFSET BYTES SEED	I/OS BYTES; reads it, and each word is right
 *	rate OFFSET BYTES DEPTH SECONDS	READS NANOSECONDS; random reads of 4 KiB
 *	proof				what has been accessed since the beginning, NAME=VALUE...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../tests/gpu_qp.h"

enum {
	ENTRIES = 64,
	COMMAND_BYTES = 32768,
	THREADS = 4,
};

/**
 * struct gpu - the software GPU
 * @doorbells: of all programs so far
 * @maps: CPU mappings of GPU memory before the first program
 * @before: the device's counters when the queue pair was created
 */
struct gpu {
	struct np_ctrl ctrl;
	struct np_gpu_qp qp;
	uint64_t doorbells;
	uint64_t maps;
	struct softgpu_counters before;
};

static void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void answer(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

static bool run(struct gpu *gpu, uint32_t program, uint32_t threads, struct softgpu_result *result)
{
	int ret = np_gpu_run(gpu->qp.gpu, program, threads, &gpu->qp.io, sizeof(gpu->qp.io), result);

	if (ret) {
		answer("failed: GPU program %u: %s", program, strerror(-ret));
		return false;
	}
	gpu->doorbells += result->doorbells;
	if (result->status == SOFTGPU_OK && !result->errors && !result->mismatches)
		return true;
	answer("failed: GPU program %u: status %u, error %d, %llu failed, %llu wrong words, first at %llu",
	       program, result->status, result->error, (unsigned long long)result->errors,
	       (unsigned long long)result->mismatches, (unsigned long long)result->where);
	return false;
}

static void transfer(struct gpu *gpu, uint32_t program, const uint64_t *number)
{
	struct softgpu_result result;

	np_gpu_range(&gpu->qp, number[0], number[1], COMMAND_BYTES, number[2]);
	if (run(gpu, program, THREADS, &result))
		answer("%llu %llu", (unsigned long long)(result.reads + result.writes),
		       (unsigned long long)(result.bytes_read + result.bytes_written));
}

static void rate(struct gpu *gpu, const uint64_t *number)
{
	struct softgpu_result result;

	np_gpu_range(&gpu->qp, number[0], number[1], NP_PAGE, 0);
	gpu->qp.io.depth = (uint32_t)number[2];
	gpu->qp.io.duration_ns = number[3] * 1000000000ull;
	if (run(gpu, SOFTGPU_RATE, 1, &result))
		answer("%llu %llu", (unsigned long long)result.reads,
		       (unsigned long long)result.elapsed_ns);
	gpu->qp.io.duration_ns = 0;
}

static bool counts(struct gpu *gpu, struct softgpu_counters *counters, struct softgpu_info *info)
{
	int ret = np_ioctl(gpu->qp.gpu, SOFTGPU_COUNTERS, counters) ?:
		  np_ioctl(gpu->qp.gpu, SOFTGPU_INFO, info);

	if (ret)
		answer("failed: counters of the GPU: %s", strerror(-ret));
	return !ret;
}

static bool is_gpu(const struct softgpu_info *info, const struct nvme_peer_pci_address *address)
{
	return address->valid && address->domain == info->pci_address >> 16 &&
	       address->function == (info->pci_address & 0xffff);
}

/* The data lies in the same buffer as the rings. */
static void proof(struct gpu *gpu)
{
	struct softgpu_counters after;
	struct nvme_peer_qp_info qp;
	struct softgpu_info info;
	int ret = np_qp_info(gpu->qp.qp_fd, &qp);

	if (ret) {
		answer("failed: queue pair: %s", strerror(-ret));
		return;
	}
	if (!counts(gpu, &after, &info))
		return;
	answer("in_gpu=%d doorbells=%" PRIu64 " on_bus=%llu lost=%llu cpu_doorbells=%llu doorbell_maps=%u memory_maps=%llu",
	       is_gpu(&info, &qp.sq_pci_address) && is_gpu(&info, &qp.cq_pci_address),
	       gpu->doorbells, (unsigned long long)(after.doorbells - gpu->before.doorbells),
	       (unsigned long long)(after.posted_failed - gpu->before.posted_failed),
	       (unsigned long long)qp.cpu_doorbell_writes, qp.mmaps,
	       (unsigned long long)(info.cpu_maps - gpu->maps));
}

static bool open_gpu(struct gpu *gpu, const char *controller)
{
	struct softgpu_info info;
	int ret = np_ctrl_open(&gpu->ctrl, controller) ?:
		  np_gpu_qp_open(&gpu->qp, &gpu->ctrl, ENTRIES, 0);

	if (ret) {
		answer("failed: queue pair of the GPU: %s", strerror(-ret));
		return false;
	}
	munmap(gpu->qp.memory.bytes, gpu->qp.memory.size);
	gpu->qp.memory.bytes = NULL;
	np_export_close(&gpu->qp.status);
	np_export_close(&gpu->qp.request);
	if (!counts(gpu, &gpu->before, &info))
		return false;
	gpu->maps = info.cpu_maps;
	return true;
}

static void obey(struct gpu *gpu, const char *word, const uint64_t *number, int numbers)
{
	if (!strcmp(word, "write") && numbers == 3)
		transfer(gpu, SOFTGPU_WRITE, number);
	else if (!strcmp(word, "verify") && numbers == 3)
		transfer(gpu, SOFTGPU_VERIFY, number);
	else if (!strcmp(word, "rate") && numbers == 4)
		rate(gpu, number);
	else if (!strcmp(word, "proof") && !numbers)
		proof(gpu);
	else
		answer("failed: no such command");
}

int main(int argc, char **argv)
{
	char line[256], word[16];
	uint64_t number[4];
	struct gpu gpu = {};
	int found;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CONTROLLER\n", argv[0]);
		return 2;
	}
	if (!open_gpu(&gpu, argv[1]))
		return 1;
	answer("ready");
	while (fgets(line, sizeof(line), stdin)) {
		found = sscanf(line, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, word,
			       &number[0], &number[1], &number[2], &number[3]);
		if (found > 0)
			obey(&gpu, word, number, found - 1);
	}
	np_gpu_qp_close(&gpu.qp);
	np_ctrl_close(&gpu.ctrl);
	return 0;
}
