// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initiator 3: the software GPU, through a queue pair of its own.
 *
 * Rings, bookkeeping, PRP lists and data lie in GPU memory. The GPU writes the
 * controller's doorbells through the dma-buf of the doorbell page. None of that is mapped
 * into this process, which only starts programs and reads their results.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#include "../softgpu/softgpu_drv.h"
#include "../softgpu/softgpu_programs.h"
#include "report.h"
#include "cpu.h"
#include "gpu.h"

enum {
	ENTRIES = 64,
	LIST_BYTES = 256,		/* PRP list of a command: 32 pages */
	DATA_BYTES = 4 << 20,
	COMMAND_BYTES = 32768,		/* of each command of pattern rounds */
	ROUND_BYTES = 2 << 20,		/* of each direction */
	RATE_BYTES = 4096,
	JOB_SECONDS = 60,		/* limit of a job */
	PAGE = 4096,
};

/**
 * struct memory - GPU memory that is imported to the controller
 * @fd: its dma-buf
 * @address: GPU address
 * @imported: the controller's import
 */
struct memory {
	int fd;
	uint64_t address;
	struct nvme_peer_buf_import imported;
};

/**
 * struct gpu - the software GPU and its queue pair; used by one thread at a time
 * @fd: its driver
 * @pci_address: of the GPU
 * @control: rings, bookkeeping, PRP lists
 * @data: data of commands
 * @io: parameters of the next program
 * @doorbells: of all programs so far
 * @before: the device's counters when the queue pair was created
 */
struct gpu {
	int fd;
	uint32_t pci_address;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct nvmepeer_qp *qp;
	struct memory control;
	struct memory data;
	struct softgpu_io io;
	uint64_t doorbells;
	uint64_t cpu_maps_before;
	struct softgpu_counters before;
};

static bool gpu_call(struct gpu *gpu, unsigned long command, void *argument, const char *what)
{
	if (!ioctl(gpu->fd, command, argument))
		return true;
	report_error(false, "GPU: %s: %s", what, strerror(errno));
	return false;
}

/* ---- Memory ------------------------------------------------------------- */

static bool get_memory(struct gpu *gpu, uint64_t bytes, struct memory *memory)
{
	struct softgpu_alloc alloc = { .size = bytes };

	if (!gpu_call(gpu, SOFTGPU_ALLOC, &alloc, "no memory"))
		return false;
	memory->fd = alloc.fd;
	memory->address = alloc.address;
	if (!nvmepeer_buf_import(gpu->ctrl, alloc.fd, NVME_PEER_BUF_REQUIRE_DEVICE,
				 &memory->imported, sizeof(memory->imported)))
		return true;
	report_error(true, "the controller cannot import GPU memory");
	return false;
}

static bool address_of(struct gpu *gpu, const struct memory *memory, uint64_t offset,
		       uint64_t length, uint64_t *dma)
{
	if (!nvmepeer_buf_contiguous(gpu->ctrl, memory->imported.handle, offset, length, dma))
		return true;
	report_error(true, "DMA addresses of GPU memory");
	return false;
}

/**
 * struct layout - offsets in the control memory
 *
 * Each starts at a page, as rings must.
 */
struct layout {
	uint64_t sq;
	uint64_t cq;
	uint64_t state;
	uint64_t lists;
	uint64_t list_bytes;
	uint64_t end;
};

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void plan(struct layout *layout, struct nvmepeer_geometry *geometry)
{
	geometry->sq_entries = ENTRIES;
	geometry->list_bytes = LIST_BYTES;
	layout->sq = 0;
	layout->cq = pages(layout->sq + ENTRIES * 64);
	layout->state = pages(layout->cq + ENTRIES * 16);
	layout->lists = pages(layout->state + nvmepeer_state_bytes(geometry));
	layout->list_bytes = (uint64_t)nvmepeer_cids(geometry) * LIST_BYTES;
	layout->end = pages(layout->lists + layout->list_bytes);
}

/* ---- The queue pair ----------------------------------------------------- */

/* Export a part of the queue pair and map it for the GPU. */
static bool give_to_gpu(struct gpu *gpu, enum nvme_peer_export what, uint32_t flags,
			struct nvmepeer_export *exported, uint64_t *address)
{
	struct softgpu_import import = { .flags = flags };
	bool given;

	if (nvmepeer_qp_export(gpu->qp, what, 0, exported, sizeof(*exported))) {
		report_error(true, "export");
		return false;
	}
	import.fd = exported->fd;
	given = gpu_call(gpu, SOFTGPU_IMPORT, &import, nvmepeer_export_name(what));
	close(exported->fd);
	*address = import.address;
	return given;
}

static bool create_queue_pair(struct gpu *gpu, const struct layout *layout)
{
	struct nvme_peer_qp_create request = {
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = ENTRIES,
		.sq_handle = gpu->control.imported.handle,
		.cq_handle = gpu->control.imported.handle,
		.sq_offset = layout->sq,
		.cq_offset = layout->cq,
	};

	if (!nvmepeer_qp_create(gpu->ctrl, &request, sizeof(request), &gpu->qp))
		return true;
	report_error(true, "queue pair");
	return false;
}

/* All addresses as the GPU sees them, data addresses as the controller sees them. */
static bool describe(struct gpu *gpu, const struct layout *layout)
{
	struct nvmepeer_geometry *geometry = &gpu->io.queue;
	struct nvmepeer_export exported;
	uint64_t doorbells, status;

	if (!give_to_gpu(gpu, NVME_PEER_EXPORT_STATUS, SOFTGPU_IMPORT_READ_ONLY,
			 &exported, &status))
		return false;
	geometry->status = status + exported.offset;
	if (!give_to_gpu(gpu, NVME_PEER_EXPORT_DOORBELL, 0, &exported, &doorbells))
		return false;
	geometry->sq = gpu->control.address + layout->sq;
	geometry->cq = gpu->control.address + layout->cq;
	geometry->state = gpu->control.address + layout->state;
	geometry->list_area = gpu->control.address + layout->lists;
	geometry->list_memory.length = layout->list_bytes;
	gpu->io.data_address = gpu->data.address;
	gpu->io.data.length = DATA_BYTES;
	if (!address_of(gpu, &gpu->control, layout->lists, layout->list_bytes,
			&geometry->list_memory.dma) ||
	    !address_of(gpu, &gpu->data, 0, DATA_BYTES, &gpu->io.data.dma))
		return false;
	if (!nvmepeer_qp_geometry(gpu->ctrl, gpu->qp, nvmepeer_ns_info(gpu->ns), 0,
				  doorbells, geometry, sizeof(*geometry)))
		return true;
	report_error(true, "geometry");
	return false;
}

/* ---- Programs ----------------------------------------------------------- */

static bool went_well(const struct softgpu_result *result, uint32_t program)
{
	if (result->status == SOFTGPU_OK && !result->errors && !result->mismatches)
		return true;
	report_error(false, "GPU program %u: status %u, error %d, %llu failed, %llu wrong words, first at %llu",
		     program, result->status, result->error,
		     (unsigned long long)result->errors,
		     (unsigned long long)result->mismatches,
		     (unsigned long long)result->where);
	return false;
}

static bool run_program(struct gpu *gpu, uint32_t program, uint32_t threads,
			struct softgpu_result *result)
{
	struct softgpu_start start = {
		.program = program,
		.threads = threads,
		.parameters = (uintptr_t)&gpu->io,
		.length = sizeof(gpu->io),
	};
	struct softgpu_wait wait = { .timeout_ms = JOB_SECONDS * 1000 };

	if (!gpu_call(gpu, SOFTGPU_START, &start, "start"))
		return false;
	wait.job = start.job;
	if (!gpu_call(gpu, SOFTGPU_WAIT, &wait, "wait"))
		return false;
	*result = wait.result;
	gpu->doorbells += result->doorbells;
	return went_well(result, program);
}

/* ---- Open and close ----------------------------------------------------- */

static bool open_driver(struct gpu *gpu)
{
	struct softgpu_info info;

	gpu->fd = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);
	if (gpu->fd < 0) {
		report_error(false, "/dev/softgpu0: %s", strerror(errno));
		return false;
	}
	if (!gpu_call(gpu, SOFTGPU_INFO, &info, "info") ||
	    !gpu_call(gpu, SOFTGPU_COUNTERS, &gpu->before, "counters"))
		return false;
	gpu->pci_address = info.pci_address;
	gpu->cpu_maps_before = info.cpu_maps;
	return true;
}

static bool open_parts(struct gpu *gpu, const struct demo *demo)
{
	struct softgpu_result result;
	struct layout layout;

	if (!open_driver(gpu))
		return false;
	if (nvmepeer_open(demo->controller, &gpu->ctrl) ||
	    nvmepeer_ns_open(demo->namespace_node, &gpu->ns)) {
		report_error(true, "the GPU's controller");
		return false;
	}
	plan(&layout, &gpu->io.queue);
	return get_memory(gpu, layout.end, &gpu->control) &&
	       get_memory(gpu, DATA_BYTES, &gpu->data) &&
	       create_queue_pair(gpu, &layout) && describe(gpu, &layout) &&
	       run_program(gpu, SOFTGPU_QUEUE_INIT, 1, &result);
}

struct gpu *gpu_open(const struct demo *demo)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return NULL;
	gpu->fd = -1;
	gpu->control.fd = -1;
	gpu->data.fd = -1;
	if (open_parts(gpu, demo))
		return gpu;
	gpu_close(gpu);
	return NULL;
}

static void close_file(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Close the queue pair first: it holds the controller's imports. */
void gpu_close(struct gpu *gpu)
{
	nvmepeer_qp_destroy(gpu->qp);
	nvmepeer_ns_close(gpu->ns);
	nvmepeer_close(gpu->ctrl);
	close_file(gpu->control.fd);
	close_file(gpu->data.fd);
	close_file(gpu->fd);
	free(gpu);
}

/* ---- Rounds ------------------------------------------------------------- */

static bool pattern_job(struct gpu *gpu, uint32_t program, const struct region *region,
			uint64_t seed, struct tally *tally)
{
	struct softgpu_result result;
	bool good;

	gpu->io.first_lba = region->first;
	gpu->io.lba_count = region->blocks;
	gpu->io.blocks = COMMAND_BYTES >> gpu->io.queue.lba_shift;
	gpu->io.seed = seed;
	good = run_program(gpu, program, 4, &result);
	if (!good) {
		tally->errors++;
		return false;
	}
	tally->ios += result.reads + result.writes;
	tally->bytes += result.bytes_read + result.bytes_written;
	if (program == SOFTGPU_VERIFY)
		tally->verified += result.bytes_read;
	return true;
}

/*
 * The first half of the region is written by the GPU and read by the CPU, the second half
 * in the opposite direction. Every round has its own seed and place, so that stale data
 * is detected.
 */
static bool round_trip(struct gpu *gpu, struct cpu *cpu_side, const struct demo *demo,
		       uint64_t number, struct tally *tally, struct tally *cpu)
{
	uint64_t blocks = ROUND_BYTES / demo->block_size;
	uint64_t rounds = demo->gpu_region.blocks / 2 / blocks;
	struct region to_cpu = {
		demo->gpu_region.first + number % rounds * blocks, blocks,
	};
	struct region to_gpu = { to_cpu.first + rounds * blocks, blocks };

	return pattern_job(gpu, SOFTGPU_WRITE, &to_cpu, number * 2, tally) &&
	       cpu_verify(cpu_side, &to_cpu, number * 2, cpu) &&
	       cpu_write(cpu_side, &to_gpu, number * 2 + 1, cpu) &&
	       pattern_job(gpu, SOFTGPU_VERIFY, &to_gpu, number * 2 + 1, tally);
}

void gpu_run(struct gpu *gpu, const struct demo *demo, struct tally *tally,
	     struct tally *cpu)
{
	struct cpu *cpu_side = cpu_open(demo);
	uint64_t number = 1;

	if (!cpu_side) {
		tally->errors++;
		return;
	}
	while (!demo->stop && round_trip(gpu, cpu_side, demo, number, tally, cpu))
		number++;
	cpu_close(cpu_side);
}

bool gpu_rate(struct gpu *gpu, const struct demo *demo, unsigned int depth,
	      unsigned int seconds, struct rate *rate)
{
	struct softgpu_result result;

	gpu->io.first_lba = demo->gpu_region.first;
	gpu->io.lba_count = demo->gpu_region.blocks;
	gpu->io.blocks = RATE_BYTES / demo->block_size;
	gpu->io.depth = depth;
	gpu->io.duration_ns = seconds * 1000000000ull;
	if (!run_program(gpu, SOFTGPU_RATE, 1, &result))
		return false;
	gpu->io.duration_ns = 0;
	rate->commands = result.reads;
	rate->nanoseconds = result.elapsed_ns;
	return true;
}

/* ---- Proof -------------------------------------------------------------- */

static bool is_gpu(const struct gpu *gpu, const struct nvme_peer_pci_address *address)
{
	return address->valid && address->domain == gpu->pci_address >> 16 &&
	       address->function == (gpu->pci_address & 0xffff);
}

static bool in_gpu(const struct gpu *gpu, const struct memory *memory)
{
	return is_gpu(gpu, &memory->imported.pci_address) &&
	       memory->imported.verdict != NVME_PEER_ROUTE_SYSTEM &&
	       memory->imported.verdict != NVME_PEER_ROUTE_NONE;
}

bool gpu_proof(struct gpu *gpu, struct gpu_proof *proof)
{
	struct softgpu_counters after;
	struct nvme_peer_qp_info qp;
	struct softgpu_info info;

	if (nvmepeer_qp_info(gpu->qp, &qp, sizeof(qp))) {
		report_error(true, "queue pair");
		return false;
	}
	if (!gpu_call(gpu, SOFTGPU_COUNTERS, &after, "counters") ||
	    !gpu_call(gpu, SOFTGPU_INFO, &info, "info"))
		return false;
	proof->shared = getenv("DEMO_SHARED");
	proof->gpu_doorbells = gpu->doorbells;
	proof->bus_doorbells = after.doorbells - gpu->before.doorbells;
	proof->lost_doorbells = after.posted_failed - gpu->before.posted_failed;
	proof->cpu_doorbells = qp.cpu_doorbell_writes;
	proof->cpu_doorbell_maps = qp.mmaps;
	proof->cpu_memory_maps = info.cpu_maps - gpu->cpu_maps_before;
	proof->rings_in_gpu = is_gpu(gpu, &qp.sq_pci_address) && is_gpu(gpu, &qp.cq_pci_address) &&
			      in_gpu(gpu, &gpu->control);
	proof->data_in_gpu = in_gpu(gpu, &gpu->data);
	return true;
}
