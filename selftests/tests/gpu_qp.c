// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair whose peer is the software GPU: memory, exports, imports, and the start of
 * programs; see gpu_qp.h.
 */
#include "gpu_qp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#include "tenant.h"

#define DATA_BYTES	(4U << 20)
#define JOB_TIMEOUT_MS	25000
#define COMMAND_NS	20000000000ULL

/* Byte offsets in the memory of a queue pair. */
struct layout {
	uint64_t sq, cq, state, lists, pages, data, size;
	uint32_t list_bytes;
};

static uint64_t take(uint64_t *end, uint64_t bytes)
{
	uint64_t start = *end;

	*end += (bytes + NP_PAGE - 1) / NP_PAGE * NP_PAGE;
	return start;
}

static void plan(struct layout *at, const struct np_ctrl *ctrl, uint32_t entries)
{
	struct nvmepeer_geometry geometry = { .sq_entries = entries };
	uint32_t list = 8;

	while (list * (NP_PAGE / 8) < ctrl->info.max_transfer + NP_PAGE)
		list *= 2;
	*at = (struct layout){ .list_bytes = list };
	at->sq = take(&at->size, entries * 64);
	at->cq = take(&at->size, entries * 16);
	at->state = take(&at->size, nvmepeer_state_bytes(&geometry));
	at->lists = take(&at->size, (uint64_t)nvmepeer_cids(&geometry) * list);
	at->pages = take(&at->size, DATA_BYTES / NP_PAGE * 8);
	at->data = take(&at->size, DATA_BYTES);
}

const char *np_gpu_unusable(const struct np_ctrl *ctrl)
{
	struct nvme_peer_route route = {
		.size = sizeof(route),
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
	};
	char address[16];

	if (np_function_address("softgpu", address) || access("/dev/softgpu0", F_OK))
		return "no software GPU in this guest";
	route.pci_address = np_parse_address(address);
	if (np_ioctl(ctrl->fd, NVME_PEER_ROUTE, &route))
		return NULL;
	/* QEMU does not route inside a switch: it sends bus addresses to the IOMMU. */
	if (route.data.verdict == NVME_PEER_ROUTE_BUS_ADDR &&
	    ctrl->info.domain != NVME_PEER_DOMAIN_PHYSICAL)
		return "QEMU sends bus addresses to the IOMMU";
	return NULL;
}

int np_gpu_open(void)
{
	int fd = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int np_gpu_alloc(int gpu, uint64_t size, uint32_t flags, struct softgpu_alloc *alloc)
{
	*alloc = (struct softgpu_alloc){ .size = size, .flags = flags, .fd = -1 };
	return np_ioctl(gpu, SOFTGPU_ALLOC, alloc);
}

int np_gpu_import(int gpu, int dmabuf, uint32_t flags, struct softgpu_import *import)
{
	*import = (struct softgpu_import){ .fd = dmabuf, .flags = flags };
	return np_ioctl(gpu, SOFTGPU_IMPORT, import);
}

int np_gpu_start(int gpu, uint32_t program, uint32_t threads, const void *parameters, size_t length)
{
	struct softgpu_start start = {
		.program = program,
		.threads = threads,
		.parameters = (uintptr_t)parameters,
		.length = (uint32_t)length,
	};

	return np_ioctl(gpu, SOFTGPU_START, &start) ?: (int)start.job;
}

int np_gpu_wait(int gpu, int job, uint32_t timeout_ms, struct softgpu_result *result)
{
	struct softgpu_wait wait = { .job = (uint32_t)job, .timeout_ms = timeout_ms };
	int ret = np_ioctl(gpu, SOFTGPU_WAIT, &wait);

	*result = wait.result;
	return ret;
}

int np_gpu_progress(int gpu, int job, struct softgpu_result *result)
{
	struct softgpu_wait wait = { .job = (uint32_t)job };
	int ret = np_ioctl(gpu, SOFTGPU_PROGRESS, &wait);

	*result = wait.result;
	return ret;
}

int np_gpu_stop(int gpu, int job, uint32_t flags)
{
	struct softgpu_stop stop = { .job = (uint32_t)job, .flags = flags };

	return np_ioctl(gpu, SOFTGPU_STOP, &stop);
}

int np_gpu_run(int gpu, uint32_t program, uint32_t threads, const void *parameters, size_t length,
	       struct softgpu_result *result)
{
	int job = np_gpu_start(gpu, program, threads, parameters, length);

	return job < 0 ? job : np_gpu_wait(gpu, job, JOB_TIMEOUT_MS, result);
}

static bool is_mediated(void)
{
	return np_qp_mode() == NVME_PEER_MODE_MEDIATED;
}

static int memory_import(struct np_gpu_memory *memory, int ctrl_fd)
{
	uint32_t count = (uint32_t)(memory->size / NP_PAGE);
	struct nvme_peer_buf_import import;
	uint32_t got;
	int ret;

	ret = np_import(ctrl_fd, memory->fd, NVME_PEER_BUF_REQUIRE_DEVICE, &import);
	if (ret)
		return ret;
	memory->handle = import.handle;
	memory->segments = import.segments;
	memory->table = calloc(count, sizeof(*memory->table));
	if (!memory->table)
		return -ENOMEM;
	ret = np_buf_table(ctrl_fd, import.handle, 0, memory->table, count, &got);
	return ret ?: got == count ? 0 : -EIO;
}

bool np_gpu_is_real(void)
{
	char name[8] = "";
	FILE *file = fopen("/host/engine", "re");
	bool real = file && fscanf(file, "%7s", name) == 1 && !strcmp(name, "cuda");

	if (file)
		fclose(file);
	return real;
}

uint64_t np_gpu_more_bytes(unsigned int pairs)
{
	return pairs * sizeof(struct softgpu_io);
}

int np_gpu_start_many(struct np_gpu_qp *qps, unsigned int pairs, uint32_t program,
		      uint32_t threads, const struct np_gpu_memory *more)
{
	struct softgpu_io *ios = (struct softgpu_io *)more->bytes, io = qps[0].io;
	unsigned int i;

	for (i = 1; i < pairs; i++)
		ios[i - 1] = qps[i].io;
	io.pairs = pairs;
	io.more = more->address;
	return np_gpu_start(qps[0].gpu, program, threads, &io, sizeof(io));
}

static int memory_alloc(struct np_gpu_memory *memory, int gpu, uint64_t size, uint32_t flags)
{
	struct softgpu_alloc alloc;
	int ret = np_gpu_alloc(gpu, size, flags, &alloc);

	if (ret)
		return ret;
	*memory = (struct np_gpu_memory){
		.fd = alloc.fd,
		.address = alloc.address,
		.size = alloc.size,
	};
	return 0;
}

int np_gpu_memory_open(struct np_gpu_memory *memory, int gpu, uint64_t size)
{
	int ret = memory_alloc(memory, gpu, size, 0);

	if (ret)
		return ret;
	memory->bytes = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (memory->bytes == MAP_FAILED) {
		memory->bytes = NULL;
		return -errno;
	}
	return 0;
}

static int memory_open(struct np_gpu_memory *memory, int gpu, int ctrl_fd, uint64_t size)
{
	int ret = np_gpu_memory_open(memory, gpu, size);

	return ret ?: is_mediated() ? 0 : memory_import(memory, ctrl_fd);
}

#define READ_MS		"/sys/module/nvme_peer/parameters/mediated_read_ms"
#define READ_MS_USUAL	"100"

/*
 * In mediated mode: the window, and the memory as a buffer, whose handle addresses are contiguous. Reads of
 * an emulated BAR by the kernel are slow.
 */
static int become_tenant(struct np_gpu_qp *qp, int ctrl_fd)
{
	const struct np_qp same = { .fd = qp->qp_fd };
	struct np_gpu_memory *memory = &qp->memory;
	uint32_t slot, i;
	int ret;

	ret = np_write_file(READ_MS, "1000000") ?: np_tenant_open(&qp->tenant, qp->qp_fd, ctrl_fd) ?:
	      np_buf_add(&same, memory->fd, 0, &slot);
	if (ret)
		return ret;
	memory->segments = 1;
	memory->table = calloc(memory->size / NP_PAGE, sizeof(*memory->table));
	for (i = 0; memory->table && i < memory->size / NP_PAGE; i++)
		memory->table[i] = NVME_PEER_HANDLE_ADDRESS(slot, (uint64_t)i * NP_PAGE);
	return memory->table ? 0 : -ENOMEM;
}

int np_gpu_window_open(struct np_gpu_memory *memory, int gpu, int ctrl_fd, uint64_t size)
{
	return memory_alloc(memory, gpu, size, SOFTGPU_ALLOC_WINDOW) ?:
	       memory_import(memory, ctrl_fd);
}

void np_gpu_memory_close(struct np_gpu_memory *memory)
{
	if (memory->bytes)
		munmap(memory->bytes, memory->size);
	free(memory->table);
	if (memory->fd >= 0)
		close(memory->fd);
	*memory = (struct np_gpu_memory){ .fd = -1 };
}

static int create(struct np_gpu_qp *qp, int ctrl_fd, const struct layout *at, uint32_t entries,
		  uint32_t flags)
{
	qp->create = (struct nvme_peer_qp_create){
		.size = sizeof(qp->create),
		.mode = np_qp_mode(),
		.sq_entries = entries,
		.cq_entries = entries,
		.qp_fd = -1,
	};
	if (!(flags & NP_GPU_HOST_SQ)) {
		qp->create.sq_handle = qp->memory.handle;
		qp->create.sq_offset = at->sq;
	}
	if (!(flags & NP_GPU_HOST_CQ)) {
		qp->create.cq_handle = qp->memory.handle;
		qp->create.cq_offset = at->cq;
	}
	return np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &qp->create);
}

/* GPU address of an export, which the GPU's driver imports. */
static int into_gpu(struct np_gpu_qp *qp, const struct nvme_peer_qp_export *out, uint32_t flags,
		    uint64_t *address, uint32_t *handle)
{
	struct softgpu_import import;
	int ret = np_gpu_import(qp->gpu, out->fd, flags, &import);

	if (ret)
		return ret;
	*address = import.address + out->offset;
	if (handle)
		*handle = import.handle;
	return 0;
}

static int give_doorbell(struct np_gpu_qp *qp, uint32_t flags)
{
	bool fixed = flags & NP_GPU_STATIC_DOORBELL;
	struct nvme_peer_qp_export out;
	int ret;

	ret = np_export_fd(qp->qp_fd, NVME_PEER_EXPORT_DOORBELL,
			   fixed ? NVME_PEER_EXPORT_ALLOW_STATIC : 0, &out);
	if (ret)
		return ret;
	qp->doorbell_fd = out.fd;
	return into_gpu(qp, &out, fixed ? SOFTGPU_IMPORT_STATIC : 0, &qp->doorbell_address,
			&qp->doorbell_handle);
}

static int give_part(struct np_gpu_qp *qp, uint32_t what, struct np_export *map, uint64_t *address)
{
	uint32_t flags = what == NVME_PEER_EXPORT_STATUS ? SOFTGPU_IMPORT_READ_ONLY : 0;
	struct nvme_peer_qp_export out = {};
	int ret = np_export_open(map, qp->qp_fd, what, 0);

	if (ret)
		return ret;
	out.fd = map->fd;
	out.offset = (uint64_t)((uint8_t *)map->at - (uint8_t *)map->map);
	return into_gpu(qp, &out, flags, address, NULL);
}

static int give_rings(struct np_gpu_qp *qp, const struct layout *at, uint32_t flags)
{
	struct nvmepeer_geometry *geometry = &qp->io.queue;
	int ret = 0;

	qp->cq_bytes = qp->create.cq_entries * 16;
	geometry->sq = qp->memory.address + at->sq;
	geometry->cq = qp->memory.address + at->cq;
	qp->cq = qp->memory.bytes + at->cq;
	if (flags & NP_GPU_HOST_SQ)
		ret = give_part(qp, NVME_PEER_EXPORT_SQ, &qp->ring_maps[0], &geometry->sq);
	if (flags & NP_GPU_HOST_CQ && !ret) {
		ret = give_part(qp, NVME_PEER_EXPORT_CQ, &qp->ring_maps[1], &geometry->cq);
		qp->cq = qp->ring_maps[1].at;
	}
	return ret;
}

/* Through the buffer's page table, because its memory may be scattered. */
static void describe_data(struct np_gpu_qp *qp, const struct layout *at)
{
	const struct np_gpu_memory *memory = qp->window.table ? &qp->window : &qp->memory;
	uint64_t start = memory == &qp->window ? 0 : at->data;
	struct nvmepeer_buffer whole = { .length = DATA_BYTES };

	memcpy(qp->memory.bytes + at->pages, memory->table + start / NP_PAGE,
	       DATA_BYTES / NP_PAGE * 8);
	if (memory->segments == 1)
		whole.dma = memory->table[start / NP_PAGE];
	else
		whole.pages = qp->memory.address + at->pages;
	qp->io.data = whole;
	qp->io.data_address = memory->address + start;
}

/*
 * An emulated controller writes data before it posts the completion, wherever the ring
 * lies, so data and completions are declared to be together.
 */
static int describe(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, const struct layout *at,
		    uint32_t flags)
{
	uint32_t view = flags & NP_GPU_HOST_CQ ? NVMEPEER_VIEW_DATA_IN_HOST : 0;
	const struct nvmepeer_ns_info ns = {
		.size = sizeof(ns),
		.nsid = qp->tenant.window ?: 1,
		.block_size = NP_BLOCK,
	};
	struct nvmepeer_geometry *geometry = &qp->io.queue;
	struct nvme_peer_info limits = ctrl->info;
	struct nvme_peer_qp_info info;
	int ret = np_qp_info(qp->qp_fd, &info);

	if (!ret && qp->tenant.window) {
		view = NVMEPEER_VIEW_DATA_IN_DEVICE;
		geometry->flags = NVMEPEER_ONE_RANGE;
		limits.sgls = 1;
		ret = np_tenant_most(qp->qp_fd, &limits.max_transfer);
	}
	if (ret)
		return ret;
	geometry->state = qp->memory.address + at->state;
	geometry->list_area = qp->memory.address + at->lists;
	geometry->list_bytes = at->list_bytes;
	geometry->list_memory = (struct nvmepeer_buffer){
		.length = at->pages - at->lists,
		.dma = qp->memory.table[at->lists / NP_PAGE],
	};
	geometry->timeout_ns = COMMAND_NS;
	ret = nvmepeer_geometry_build(&limits, &info, &ns, view,
				      qp->doorbell_address - info.doorbell_offset, geometry,
				      sizeof(*geometry));
	/* PRPs and their lists, also if the controller supports SGLs. */
	if (qp->tenant.window)
		flags |= NP_GPU_SGL;
	geometry->flags &= ~(flags & NP_GPU_SGL ? NVMEPEER_DATA_REMOTE :
						  NVMEPEER_SGL | NVMEPEER_DATA_REMOTE);
	describe_data(qp, at);
	return ret;
}

/* The first program after the creation of the queue pair or after a loss. */
static int start_queue(struct np_gpu_qp *qp, uint32_t program)
{
	struct softgpu_result result;
	int ret = np_gpu_run(qp->gpu, program, 1, &qp->io, sizeof(qp->io), &result);

	return ret ?: result.status == SOFTGPU_OK ? 0 : -EIO;
}

void np_gpu_qp_clear(struct np_gpu_qp *qp)
{
	*qp = (struct np_gpu_qp){
		.gpu = -1,
		.qp_fd = -1,
		.doorbell_fd = -1,
		.memory.fd = -1,
		.window.fd = -1,
		.status.fd = -1,
		.request.fd = -1,
		.ring_maps = { { .fd = -1 }, { .fd = -1 } },
	};
}

int np_gpu_qp_open(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t entries,
		   uint32_t flags)
{
	struct layout at;
	int ret;

	np_gpu_qp_clear(qp);
	if (is_mediated())
		flags |= NP_GPU_HOST_RINGS;
	plan(&at, ctrl, entries);
	qp->gpu = np_gpu_open();
	if (qp->gpu < 0)
		return qp->gpu;
	ret = memory_open(&qp->memory, qp->gpu, ctrl->fd, at.size) ?:
	      create(qp, ctrl->fd, &at, entries, flags);
	if (!ret && flags & NP_GPU_WINDOW)
		ret = np_gpu_window_open(&qp->window, qp->gpu, ctrl->fd, DATA_BYTES);
	if (ret)
		goto fail;
	qp->qp_fd = qp->create.qp_fd;
	if (is_mediated())
		ret = become_tenant(qp, ctrl->fd);
	ret = ret ?: give_doorbell(qp, flags) ?:
	      give_rings(qp, &at, flags) ?:
	      give_part(qp, NVME_PEER_EXPORT_STATUS, &qp->status, &qp->io.queue.status) ?:
	      give_part(qp, NVME_PEER_EXPORT_CONTROL, &qp->request, &qp->io.queue.control) ?:
	      describe(qp, ctrl, &at, flags) ?:
	      start_queue(qp, SOFTGPU_QUEUE_INIT);
	if (!ret)
		return 0;
fail:
	np_gpu_qp_close(qp);
	return ret;
}

/* GPU address of all of a memfd. */
static int memfd_into_gpu(struct np_gpu_qp *qp, int memfd, uint64_t *address)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), dmabuf, ret;
	struct softgpu_import import;
	struct stat status;

	if (device < 0 || fstat(memfd, &status))
		return -errno;
	dmabuf = ioctl(device, UDMABUF_CREATE, &(struct udmabuf_create){
		.memfd = (uint32_t)memfd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = (uint64_t)status.st_size,
	});
	ret = dmabuf < 0 ? -errno : np_gpu_import(qp->gpu, dmabuf, 0, &import);
	close(device);
	if (dmabuf >= 0)
		close(dmabuf);
	*address = import.address;
	return ret;
}

static int give_served_parts(struct np_gpu_qp *qp, struct nvmepeer_serve *serve)
{
	struct nvmepeer_geometry *geometry = &qp->io.queue;
	uint64_t *const addresses[] = {
		[NVME_PEER_EXPORT_SQ] = &geometry->sq,
		[NVME_PEER_EXPORT_CQ] = &geometry->cq,
		[NVME_PEER_EXPORT_DOORBELL] = &qp->doorbell_address,
		[NVME_PEER_EXPORT_STATUS] = &geometry->status,
		[NVME_PEER_EXPORT_CONTROL] = &geometry->control,
	};
	struct nvmepeer_export part;
	uint64_t start = 0;
	uint32_t what;
	int ret = 0;

	for (what = 0; what <= NVME_PEER_EXPORT_CONTROL && !ret; what++) {
		ret = nvmepeer_serve_export(serve, what, &part, sizeof(part));
		if (ret)
			break;
		if (!start)
			ret = memfd_into_gpu(qp, part.fd, &start);
		close(part.fd);
		*addresses[what] = start + part.offset;
	}
	return ret;
}

static int describe_served(struct np_gpu_qp *qp, const struct layout *at,
			   struct nvmepeer_serve *serve, const struct nvmepeer_ns_info *ns)
{
	struct nvmepeer_geometry *geometry = &qp->io.queue;
	int ret;

	geometry->state = qp->memory.address + at->state;
	geometry->timeout_ns = COMMAND_NS;
	ret = nvmepeer_serve_geometry(serve, ns, NVMEPEER_VIEW_DESCRIPTORS, geometry,
				      sizeof(*geometry));
	geometry->sq_doorbell += qp->doorbell_address;
	geometry->cq_doorbell += qp->doorbell_address;
	return ret;
}

int np_gpu_qp_open_served(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t entries,
			  struct nvmepeer_serve *serve, const struct nvmepeer_ns_info *ns,
			  int staging, const struct nvmepeer_buffer *data)
{
	struct softgpu_import import;
	struct layout at;
	int ret;

	np_gpu_qp_clear(qp);
	plan(&at, ctrl, entries);
	qp->gpu = np_gpu_open();
	if (qp->gpu < 0)
		return qp->gpu;
	ret = np_gpu_memory_open(&qp->memory, qp->gpu, at.size) ?:
	      np_gpu_import(qp->gpu, staging, 0, &import);
	if (ret)
		goto fail;
	qp->io.data = *data;
	qp->io.data_address = import.address;
	ret = give_served_parts(qp, serve) ?:
	      describe_served(qp, &at, serve, ns) ?:
	      start_queue(qp, SOFTGPU_QUEUE_INIT);
	if (!ret)
		return 0;
fail:
	np_gpu_qp_close(qp);
	return ret;
}

int np_gpu_qp_rearm(struct np_gpu_qp *qp, int timeout_ms)
{
	struct np_qp same = { .fd = qp->qp_fd };
	struct nvme_peer_qp_info info;
	int ret;

	/* The driver clears rings in host memory. */
	if (qp->create.cq_handle)
		memset(qp->cq, 0, qp->cq_bytes);
	ret = np_qp_rearm(&same, timeout_ms) ?: np_qp_info(qp->qp_fd, &info);
	if (ret)
		return ret;
	qp->io.queue.generation = info.losses;
	return start_queue(qp, SOFTGPU_QUEUE_REARM);
}

int np_gpu_qp_import_doorbell(struct np_gpu_qp *qp)
{
	struct softgpu_release release = { .handle = qp->doorbell_handle };
	uint64_t before = qp->doorbell_address;
	int ret = np_ioctl(qp->gpu, SOFTGPU_RELEASE, &release);

	if (ret)
		return ret;
	close(qp->doorbell_fd);
	qp->doorbell_fd = -1;
	ret = give_doorbell(qp, 0);
	qp->io.queue.sq_doorbell += qp->doorbell_address - before;
	qp->io.queue.cq_doorbell += qp->doorbell_address - before;
	return ret;
}

void np_gpu_qp_close(struct np_gpu_qp *qp)
{
	if (qp->qp_fd >= 0)
		close(qp->qp_fd);
	if (qp->tenant.window)
		np_write_file(READ_MS, READ_MS_USUAL);
	np_export_close(&qp->status);
	np_export_close(&qp->request);
	np_export_close(&qp->ring_maps[0]);
	np_export_close(&qp->ring_maps[1]);
	if (qp->gpu >= 0)
		close(qp->gpu);
	if (qp->doorbell_fd >= 0)
		close(qp->doorbell_fd);
	np_gpu_memory_close(&qp->memory);
	np_gpu_memory_close(&qp->window);
	np_gpu_qp_clear(qp);
}

void np_gpu_range(struct np_gpu_qp *qp, uint64_t disk, uint64_t count, uint32_t bytes,
		  uint64_t seed)
{
	qp->io.first_lba = disk / NP_BLOCK;
	qp->io.lba_count = count / NP_BLOCK;
	qp->io.blocks = bytes / NP_BLOCK;
	qp->io.seed = seed;
	qp->io.depth = 8;
	qp->io.read_percent = 50;
}

static void gpu_pattern(uint64_t *words, uint64_t disk, uint64_t length, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < length / 8; i++)
		words[i] = softgpu_pattern(seed, (disk + i * 8) / NP_BLOCK, i % (NP_BLOCK / 8));
}

int np_gpu_pattern_write(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed)
{
	uint64_t *words = aligned_alloc(NP_PAGE, length);
	int ret;

	if (!words)
		return -ENOMEM;
	gpu_pattern(words, disk, length, seed);
	ret = np_disk_write(disk_fd, words, length, disk);
	free(words);
	return ret;
}

int np_gpu_pattern_check(int disk_fd, uint64_t disk, uint64_t length, uint64_t seed)
{
	uint64_t *words = aligned_alloc(NP_PAGE, length);
	uint64_t *expected = malloc(length);
	int ret = -ENOMEM;

	if (words && expected) {
		gpu_pattern(expected, disk, length, seed);
		ret = np_disk_read(disk_fd, words, length, disk);
		if (!ret && memcmp(words, expected, length))
			ret = -EBADMSG;
	}
	free(words);
	free(expected);
	return ret;
}
