// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * queues.c: create queue pairs whose rings, PRP lists and shared state are in
 * GPU memory, take those of another process, and re-arm them after a loss.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../recovery.h"
#include "internal.h"

#undef nvmepeer_cuda_queues_open

enum { GPU_PAGE = 64 << 10 };

static const char opening[] = "nvmepeer_cuda_queues_open";
static const char receiving[] = "nvmepeer_cuda_queues_from_fds";
static const char rearming[] = "nvmepeer_cuda_queues_rearm";

/*
 * Layout of the GPU memory; offsets in bytes.  @sq to @table are repeated for
 * each queue pair, @each bytes apart; the device queues follow after all of
 * them.
 */
struct layout {
	uint64_t sq, cq, lists, state, table, each, queues, end;
};

/*
 * Resources of one queue pair.  @qp: NULL if its file was not among the
 * descriptors.  @stale: the shared state does not match the rings, because a
 * re-arm failed halfway.  @result: of the last re-arm.  The lock of the queue
 * pairs guards @stale and @result; the rest is constant after open.
 */
struct nvmepeer_cuda_part {
	struct nvmepeer_qp *qp;
	struct cuda_mapping mappings[CUDA_ROLES];
	struct nvmepeer_geometry geometry;
	bool stale;
	int result;
};

/* A PRP list describes every page that a command may touch except the first. */
static uint32_t list_bytes(const struct nvme_peer_info *info)
{
	uint32_t bytes = 8;

	while (bytes < info->max_transfer / info->page_size * 8 + 8)
		bytes *= 2;
	return bytes;
}

/* The part of the geometry that is the same for all queue pairs. */
static struct nvmepeer_geometry geometry_of(const struct nvmepeer_cuda_queues_options *options)
{
	struct nvmepeer_geometry geometry = {
		.sq_entries = options->entries,
		.cq_entries = options->cq_entries ? options->cq_entries : options->entries,
		.cids = options->cids,
		.list_bytes = options->list_bytes,
		.timeout_ns = options->timeout_ns,
		.reserve = options->reserve,
	};

	return geometry;
}

static struct layout layout_of(const struct nvmepeer_geometry *geometry, uint32_t page_size,
			       uint32_t count)
{
	uint64_t lists = (uint64_t)nvmepeer_cids(geometry) * geometry->list_bytes;
	struct layout layout;

	layout.sq = 0;
	layout.cq = cuda_round_up(64 * (uint64_t)geometry->sq_entries, GPU_PAGE);
	layout.lists = layout.cq + cuda_round_up(16 * (uint64_t)geometry->cq_entries, GPU_PAGE);
	layout.state = layout.lists + cuda_round_up(lists, GPU_PAGE);
	layout.table = layout.state + cuda_round_up(nvmepeer_state_bytes(geometry), 128);
	layout.each = cuda_round_up(layout.table + cuda_table_bytes(lists, page_size), GPU_PAGE);
	layout.queues = count * layout.each;
	layout.end = cuda_round_up(layout.queues + count * sizeof(struct nvmepeer_queue),
				   CUDA_ALLOCATION_UNIT);
	return layout;
}

static int create_qp(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_part *part,
		     const struct nvmepeer_geometry *geometry, uint64_t sq, uint64_t cq)
{
	struct nvme_peer_qp_create request = {
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = geometry->sq_entries,
		.cq_entries = geometry->cq_entries,
		.sq_handle = queues->handle,
		.cq_handle = queues->handle,
		.sq_offset = sq,
		.cq_offset = cq,
	};

	return nvmepeer_qp_create(queues->ctrl, &request, sizeof(request), &part->qp);
}

/*
 * Build the shared state in host memory, since it has no addresses in it, and
 * copy it.  After a loss start from the state in GPU memory, so that no stale
 * token matches a new command.
 */
static int make_state(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry,
		      struct nvmepeer_state *state, const uint32_t *losses)
{
	struct nvmepeer_geometry here = *geometry;
	struct nvmepeer_queue queue = { 0 };
	int error;

	here.state = (uintptr_t)state;
	/* Cannot fail: the geometry has been checked. */
	nvmepeer_queue_open(&queue, &here);
	if (!losses) {
		nvmepeer_queue_reset(&queue);
		return 0;
	}
	error = cuda_download(cuda, state, geometry->state, sizeof(*state));
	if (!error)
		nvmepeer_queue_rearm(&queue, *losses);
	return error;
}

static int upload_state(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry,
			const uint32_t *losses)
{
	uint64_t bytes = cuda_round_up(nvmepeer_state_bytes(geometry), 128);
	void *state = aligned_alloc(128, bytes);
	int error;

	if (!state)
		return cuda_fail(losses ? rearming : opening, -ENOMEM, "out of memory", "",
				 "the host has no free memory");
	memset(state, 0, bytes);
	error = make_state(cuda, geometry, state, losses);
	if (!error)
		error = cuda_upload(cuda, geometry->state, state, bytes);
	free(state);
	return error;
}

/* Make a queue pair of its parts, whose shared state is at @geometry->state. */
static int attach(struct nvmepeer_cuda_queues *queues, uint32_t index,
		  const struct nvmepeer_cuda_file *files, uint32_t count,
		  const struct nvmepeer_geometry *geometry)
{
	struct nvmepeer_cuda_part *part = &queues->parts[index];
	int error;

	part->geometry = *geometry;
	error = cuda_map_files(queues->cuda, files, count, part->mappings, &part->geometry);
	if (error)
		return error;
	/* Cannot fail: the geometry has been checked. */
	nvmepeer_queue_open(&queues->queues[index], &part->geometry);
	return upload_state(queues->cuda, &part->geometry, NULL);
}

/* Pages of a queue pair that the kernel exports. */
enum { EXPORTS = 3 };

static const struct {
	enum nvme_peer_export what;
	enum nvmepeer_cuda_role role;
} exports[EXPORTS] = {
	{ NVME_PEER_EXPORT_DOORBELL, NVMEPEER_CUDA_DOORBELL },
	{ NVME_PEER_EXPORT_STATUS, NVMEPEER_CUDA_STATUS },
	{ NVME_PEER_EXPORT_CONTROL, NVMEPEER_CUDA_CONTROL },
};

/*
 * The geometry has the offset of the doorbells in their file, so that file is passed
 * from its start.
 */
static int export_pages(struct nvmepeer_qp *qp, struct nvmepeer_cuda_file files[EXPORTS])
{
	for (int i = 0; i < EXPORTS; i++) {
		struct nvmepeer_export exported;
		int error = nvmepeer_qp_export(qp, exports[i].what, 0, &exported, sizeof(exported));

		if (error)
			return error;
		files[i].fd = exported.fd;
		files[i].role = exports[i].role;
		files[i].offset = exported.offset;
		files[i].bytes = exported.length;
		if (exports[i].role != NVMEPEER_CUDA_DOORBELL)
			continue;
		files[i].offset = 0;
		files[i].bytes += exported.offset;
	}
	return 0;
}

static struct nvmepeer_cuda_file gpu_memory(enum nvmepeer_cuda_role role, uint64_t address,
					    uint64_t bytes)
{
	struct nvmepeer_cuda_file file = { NVMEPEER_CUDA_GPU_MEMORY, role, address, bytes };

	return file;
}

/* Attach a queue pair whose rings and lists are at @base.  The mappings keep the pages. */
static int attach_own(struct nvmepeer_cuda_queues *queues, uint32_t index,
		      const struct layout *layout, uint64_t base,
		      const struct nvmepeer_geometry *geometry)
{
	struct nvmepeer_cuda_file files[EXPORTS + 3] = {
		{ .fd = -1 }, { .fd = -1 }, { .fd = -1 },
		gpu_memory(NVMEPEER_CUDA_SQ, base + layout->sq, layout->cq - layout->sq),
		gpu_memory(NVMEPEER_CUDA_CQ, base + layout->cq, layout->lists - layout->cq),
		gpu_memory(NVMEPEER_CUDA_LISTS, base + layout->lists, layout->state - layout->lists),
	};
	uint32_t count = EXPORTS + (geometry->list_bytes ? 3 : 2);
	int error = export_pages(queues->parts[index].qp, files);

	if (!error)
		error = cuda_check_files(queues->cuda, files, count, geometry);
	if (!error)
		error = attach(queues, index, files, count, geometry);
	for (int i = 0; i < EXPORTS; i++)
		if (files[i].fd >= 0)
			close(files[i].fd);
	return error;
}

static int open_queue(struct nvmepeer_cuda_queues *queues, uint32_t index,
		      const struct nvmepeer_ns_info *ns, const struct layout *layout,
		      const struct nvmepeer_geometry *wanted)
{
	struct nvmepeer_cuda_part *part = &queues->parts[index];
	uint64_t offset = index * layout->each, base = queues->memory + offset;
	struct nvmepeer_geometry geometry = *wanted;
	int error = create_qp(queues, part, &geometry, offset + layout->sq, offset + layout->cq);

	if (!error && geometry.list_bytes)
		error = cuda_describe(queues->cuda, queues->ctrl, queues->handle,
				      offset + layout->lists,
				      (uint64_t)nvmepeer_cids(&geometry) * geometry.list_bytes,
				      base + layout->table, &geometry.list_memory);
	/* Refuses rings that are in another memory than the data will be. */
	if (!error)
		error = nvmepeer_qp_geometry(queues->ctrl, part->qp, ns, NVMEPEER_VIEW_DESCRIPTORS,
					     0, &geometry, sizeof(geometry));
	geometry.state = base + layout->state;
	return error ? error : attach_own(queues, index, layout, base, &geometry);
}

static int upload_queues(struct nvmepeer_cuda_queues *queues, uint64_t address)
{
	queues->device = (const struct nvmepeer_queue *)(uintptr_t)address;
	return cuda_upload(queues->cuda, address, queues->queues,
			   queues->count * sizeof(struct nvmepeer_queue));
}

static int open_parts(struct nvmepeer_cuda_queues *queues, const struct nvmepeer_ns_info *ns,
		      const struct nvmepeer_cuda_queues_options *options)
{
	struct nvmepeer_geometry wanted = geometry_of(options);
	struct layout layout;
	struct nvme_peer_info info;
	uint32_t segments;
	int error = nvmepeer_info(queues->ctrl, &info, sizeof(info));

	if (error)
		return error;
	if (!wanted.list_bytes)
		wanted.list_bytes = list_bytes(&info);
	else if (wanted.list_bytes == NVMEPEER_CUDA_NO_LISTS)
		wanted.list_bytes = 0;
	layout = layout_of(&wanted, info.page_size, queues->count);
	queues->bytes = layout.end;
	error = cuda_alloc(queues->cuda, layout.end, &queues->memory);
	if (!error)
		error = cuda_import(queues->cuda, queues->ctrl, queues->memory, layout.end,
				    &queues->handle, &segments);
	for (uint32_t i = 0; !error && i < queues->count; i++)
		error = open_queue(queues, i, ns, &layout, &wanted);
	return error ? error : upload_queues(queues, queues->memory + layout.queues);
}

/* Checks that need no resources. */
static int check_first(struct nvmepeer_cuda *cuda,
		       const struct nvmepeer_cuda_queues_options *options)
{
	uint32_t entries = options->entries, count = options->count;
	struct nvmepeer_geometry geometry = geometry_of(options);
	int error;

	if (!count || entries < 2 || entries > 32768 || entries & (entries - 1))
		return cuda_fail(opening, -EINVAL, "invalid number of queue pairs or entries",
				 "pass one queue pair or more, and a number of entries that is a power of two",
				 "%u queue pairs of %u entries; a ring has 2 to 32768, a power of two",
				 count, entries);
	if (nvp_check_rings(&geometry))
		return cuda_fail(opening, -EINVAL, "invalid completion ring or number of CIDs",
				 "pass 0, or powers of two: cq_entries from entries to 65536, cids from 32 and entries to 65536",
				 "%u entries of the completion ring and %u CIDs for %u entries",
				 geometry.cq_entries, options->cids, entries);
	error = cuda_may_register();
	return error ? error : cuda_keeps_order(cuda);
}

static void close_part(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part)
{
	cuda_unmap_files(cuda, part->mappings);
	nvmepeer_qp_destroy(part->qp);
	memset(part, 0, sizeof(*part));
}

/*
 * Destroy the queue pairs before their memory is freed.  The GPU keeps its
 * mapping of the doorbells until they are unregistered; no kernel may run by
 * now.
 */
static void close_parts(struct nvmepeer_cuda_queues *queues)
{
	for (uint32_t i = 0; queues->parts && i < queues->count; i++)
		close_part(queues->cuda, &queues->parts[i]);
	queues->closed = true;
}

static void free_queues(struct nvmepeer_cuda_queues *queues)
{
	pthread_mutex_destroy(&queues->lock);
	free(queues->parts);
	free(queues->queues);
	free(queues);
}

/*
 * Undo a failed open and keep its explanation.  If other queue pairs of the
 * controller's node keep the import from being released, the controller may still
 * access the GPU memory, which stays allocated.  Otherwise it is kept: other kernels
 * may run, and cuda_free() would wait for them.
 */
static void undo(struct nvmepeer_cuda_queues *queues, const char *call)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	/* Both calls execute the same code. */
	if (!strcmp(why.call, opening) || !strcmp(why.call, receiving))
		why.call = call;
	close_parts(queues);
	cuda_release(queues->ctrl, &queues->handle);
	if (queues->memory && !queues->handle)
		cuda_keep(queues->cuda, queues->memory, queues->bytes);
	free_queues(queues);
	nvmepeer_fail(&why, sizeof(why));
}

static struct nvmepeer_cuda_queues *new_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda,
					       uint32_t count)
{
	struct nvmepeer_cuda_queues *queues = calloc(1, sizeof(*queues));

	if (!queues)
		return NULL;
	queues->ctrl = ctrl;
	queues->cuda = cuda;
	queues->count = count;
	pthread_mutex_init(&queues->lock, NULL);
	queues->parts = calloc(count, sizeof(*queues->parts));
	queues->queues = calloc(count, sizeof(*queues->queues));
	if (queues->parts && queues->queues)
		return queues;
	free_queues(queues);
	return NULL;
}

/*
 * Copy the options of a program that was compiled with another version of the
 * header.  Check the layout first: all else depends on it.
 */
static int take_options(const struct nvmepeer_cuda_queues_options *options,
			struct nvmepeer_cuda_queues_options *taken)
{
	const unsigned char *bytes = (const unsigned char *)options;
	size_t least = offsetof(struct nvmepeer_cuda_queues_options, entries) + sizeof(uint32_t);

	if (options->size < least)
		return cuda_fail(opening, -EINVAL, "invalid size of the options",
				 "set size to the size of the structure", "%u bytes; the minimum is %zu",
				 options->size, least);
	if (options->layout != NVMEPEER_LAYOUT)
		return cuda_fail(opening, -EPROTO, "the kernels have another layout of the device queue",
				 "compile the program with the header of the installed library",
				 "layout %#x of the program, %#x of the library",
				 options->layout, NVMEPEER_LAYOUT);
	for (size_t i = sizeof(*taken); i < options->size; i++)
		if (bytes[i])
			return cuda_fail(opening, -E2BIG, "unknown option",
					 "update the library, or leave newer options 0",
					 "byte %zu of the options is not 0", i);
	memset(taken, 0, sizeof(*taken));
	memcpy(taken, options, options->size < sizeof(*taken) ? options->size : sizeof(*taken));
	return 0;
}

int nvmepeer_cuda_queues_open_with(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
				   struct nvmepeer_cuda *cuda,
				   const struct nvmepeer_cuda_queues_options *options,
				   struct nvmepeer_cuda_queues **queues)
{
	struct nvmepeer_cuda_queues_options taken;
	struct nvmepeer_cuda_queues *opened;
	int error = take_options(options, &taken);

	if (!error)
		error = check_first(cuda, &taken);
	if (error)
		return error;
	opened = new_queues(ctrl, cuda, taken.count);
	if (!opened)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	error = open_parts(opened, ns, &taken);
	if (error)
		undo(opened, opening);
	else
		*queues = opened;
	return error;
}

uint32_t nvmepeer_cuda_layout(void)
{
	return NVMEPEER_LAYOUT;
}

int nvmepeer_cuda_queues_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			      struct nvmepeer_cuda *cuda, uint32_t entries, uint32_t count,
			      struct nvmepeer_cuda_queues **queues)
{
	return nvmepeer_cuda_queues_open_checked(ctrl, ns, cuda, entries, count, queues);
}

int queues_check_open(const struct nvmepeer_cuda_queues *queues, const char *call)
{
	if (!queues->closed)
		return 0;
	return cuda_fail(call, -ESHUTDOWN, "the queue pairs are closed",
			 "call nvmepeer_cuda_queues_close() again",
			 "only their memory is left, which the controller may still access");
}

/* A re-arm of another queue pair would clear the rings of this one. */
static int check_qp(struct nvmepeer_qp *qp, const struct nvmepeer_geometry *geometry)
{
	struct nvme_peer_qp_info info;
	int error = nvmepeer_qp_info(qp, &info, sizeof(info));

	if (error || (info.qid == geometry->qid && info.sq_entries == geometry->sq_entries &&
		      info.cq_entries == geometry->cq_entries))
		return error;
	return cuda_fail(receiving, -EINVAL, "the file is that of another queue pair",
			 "pass the file that belongs to the geometry",
			 "queue pair %u of %u and %u entries; the geometry has %u of %u and %u",
			 info.qid, info.sq_entries, info.cq_entries, geometry->qid,
			 geometry->sq_entries, geometry->cq_entries);
}

/* The queue pair file of the caller stays the caller's. */
static int take_qp(struct nvmepeer_cuda_part *part, const struct nvmepeer_cuda_file *files,
		   uint32_t count, const struct nvmepeer_geometry *geometry)
{
	int fd, error;

	while (count && files[count - 1].role != NVMEPEER_CUDA_QUEUE_PAIR)
		count--;
	if (!count)
		return 0;
	fd = fcntl(files[count - 1].fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return cuda_fail(receiving, -errno, "cannot duplicate the queue pair file",
				 "pass the descriptor received", "descriptor %d: %s",
				 files[count - 1].fd, strerror(errno));
	error = nvmepeer_qp_from_fd(fd, &part->qp);
	if (error)
		close(fd);
	return error ? error : check_qp(part->qp, geometry);
}

/* The shared state and the device queue are in GPU memory of this process. */
static int receive(struct nvmepeer_cuda_queues *queues, const struct nvmepeer_cuda_file *files,
		   uint32_t count, struct nvmepeer_geometry *geometry)
{
	int error = cuda_check_files(queues->cuda, files, count, geometry);
	uint64_t state;

	if (!error)
		error = take_qp(&queues->parts[0], files, count, geometry);
	if (error)
		return error;
	state = cuda_round_up(nvmepeer_state_bytes(geometry), 128);
	queues->bytes = state + sizeof(struct nvmepeer_queue);
	error = cuda_alloc(queues->cuda, queues->bytes, &queues->memory);
	if (error)
		return error;
	geometry->state = queues->memory;
	error = attach(queues, 0, files, count, geometry);
	return error ? error : upload_queues(queues, queues->memory + state);
}

int nvmepeer_cuda_queues_from_fds(struct nvmepeer_cuda *cuda, uint32_t layout,
				  const struct nvmepeer_cuda_file *files, uint32_t count,
				  const struct nvmepeer_geometry *geometry, size_t size,
				  struct nvmepeer_cuda_queues **queues)
{
	struct nvmepeer_cuda_queues *opened;
	struct nvmepeer_geometry taken;
	int error = cuda_take_geometry(layout, geometry, size, &taken);

	if (error)
		return error;
	opened = new_queues(NULL, cuda, 1);
	if (!opened)
		return cuda_fail(receiving, -ENOMEM, "out of memory", "", "the host has no free memory");
	error = receive(opened, files, count, &taken);
	if (error)
		undo(opened, receiving);
	else
		*queues = opened;
	return error;
}

static int no_such_queue(const char *call, const struct nvmepeer_cuda_queues *queues,
			 uint32_t index)
{
	return cuda_fail(call, -EINVAL, "no such queue pair",
			 "pass an index below nvmepeer_cuda_queues_count()",
			 "index %u of %u queue pairs", index, queues->count);
}

static int no_file(const char *call)
{
	return cuda_fail(call, -EOPNOTSUPP, "the queue pair has no file in this process",
			 "let the process that created it re-arm it, or pass NVMEPEER_CUDA_QUEUE_PAIR",
			 "it came as descriptors without that of its file");
}

static struct nvme_peer_control *control_of(const struct nvmepeer_cuda_part *part)
{
	return part->mappings[NVMEPEER_CUDA_CONTROL].address;
}

/*
 * Can kernels use a queue pair that is LIVE?  If not, the queues must leave the
 * controller before a re-arm, since commands may be in flight.
 */
static int check_live(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
		      const struct nvme_peer_qp_info *info, bool *usable)
{
	struct nvmepeer_state state;
	int error;

	*usable = false;
	if (is_quiescing(control_of(part), info->losses))
		return 0;
	*usable = part->stale;
	if (part->stale)
		return 0;
	error = cuda_download(cuda, &state, part->geometry.state, sizeof(state));
	if (error)
		return error;
	*usable = is_usable(&state, info->losses);
	if (!*usable)
		request_quiesce(control_of(part), info->losses);
	return 0;
}

/*
 * The driver does not clear GPU memory.  Zero the completion ring before the
 * re-arm, and the submission ring, so that a doorbell write with an old tail
 * finds no old command.  The queues must be off the controller by now: a
 * completion that arrived after the clearing would count as a new one.
 */
static int rearm_qp(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
		    uint32_t losses)
{
	const struct nvmepeer_geometry *geometry = &part->geometry;
	uint32_t generation;
	int error = cuda_clear(cuda, geometry->cq, 16 * (uint64_t)geometry->cq_entries);

	if (!error)
		error = cuda_clear(cuda, geometry->sq, 64 * (uint64_t)geometry->sq_entries);
	part->stale = true;
	return error ? error : nvmepeer_qp_rearm(part->qp, losses, &generation);
}

static int too_late(const struct nvmepeer_cuda_part *part)
{
	return cuda_fail(rearming, -ETIMEDOUT, "the queue pair was not re-armed in time",
			 "call again, or read the state of the controller by \"nvme-peer doctor\"",
			 "queue pair %u did not become ready within the timeout", part->geometry.qid);
}

static int rearm_when_ready(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
			    int64_t end, uint32_t *losses)
{
	struct nvme_peer_qp_info info;
	int error;

	for (;;) {
		bool usable = false;

		error = nvmepeer_qp_info(part->qp, &info, sizeof(info));
		if (error)
			return error;
		*losses = info.losses;
		if (info.state == NVME_PEER_QP_LIVE) {
			error = check_live(cuda, part, &info, &usable);
			if (error || usable)
				return error;
		} else {
			error = rearm_qp(cuda, part, info.losses);
			if (error != -EAGAIN && error != -ESTALE)
				return error;
		}
		if (now_ms() >= end)
			return too_late(part);
		poll(NULL, 0, 2);
	}
}

static int rearm_part(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part, int64_t end)
{
	uint32_t losses;
	int error;

	if (!part->qp)
		return no_file(rearming);
	error = rearm_when_ready(cuda, part, end, &losses);
	if (!error && part->stale)
		error = upload_state(cuda, &part->geometry, &losses);
	if (!error)
		part->stale = false;
	return error;
}

/*
 * Those that are LIVE but unusable are deleted at the same time: request it of all
 * before the first is waited for.  Errors come again then.
 */
static void request_all(struct nvmepeer_cuda_queues *queues)
{
	struct nvme_peer_qp_info info;
	bool usable;

	for (uint32_t i = 0; i < queues->count; i++) {
		struct nvmepeer_cuda_part *part = &queues->parts[i];

		if (part->qp && !nvmepeer_qp_info(part->qp, &info, sizeof(info)) &&
		    info.state == NVME_PEER_QP_LIVE)
			check_live(queues->cuda, part, &info, &usable);
	}
}

/* A queue pair that cannot come back does not keep the others from it. */
int nvmepeer_cuda_queues_rearm(struct nvmepeer_cuda_queues *queues, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	int error = queues_check_open(queues, rearming);

	if (error)
		return error;
	pthread_mutex_lock(&queues->lock);
	if (queues->count > 1)
		request_all(queues);
	for (uint32_t i = 0; i < queues->count; i++) {
		struct nvmepeer_cuda_part *part = &queues->parts[i];

		part->result = rearm_part(queues->cuda, part, end);
		/* The last error is the one that nvmepeer_explain() returns. */
		error = part->result ? part->result : error;
	}
	pthread_mutex_unlock(&queues->lock);
	return error;
}

int nvmepeer_cuda_queues_quiesce(struct nvmepeer_cuda_queues *queues, uint32_t index)
{
	static const char call[] = "nvmepeer_cuda_queues_quiesce";
	struct nvme_peer_qp_info info;
	int error;

	if (index >= queues->count)
		return no_such_queue(call, queues, index);
	error = queues_check_open(queues, call);
	if (error)
		return error;
	if (!queues->parts[index].qp)
		return no_file(call);
	pthread_mutex_lock(&queues->lock);
	error = nvmepeer_qp_info(queues->parts[index].qp, &info, sizeof(info));
	if (!error && info.state == NVME_PEER_QP_LIVE)
		request_quiesce(control_of(&queues->parts[index]), info.losses);
	pthread_mutex_unlock(&queues->lock);
	return error;
}

struct nvmepeer_qp *nvmepeer_cuda_queues_qp(const struct nvmepeer_cuda_queues *queues, uint32_t index)
{
	return index < queues->count ? queues->parts[index].qp : NULL;
}

int nvmepeer_cuda_queues_result(struct nvmepeer_cuda_queues *queues, uint32_t index)
{
	int result;

	if (index >= queues->count)
		return no_such_queue("nvmepeer_cuda_queues_result", queues, index);
	pthread_mutex_lock(&queues->lock);
	result = queues->parts[index].result;
	pthread_mutex_unlock(&queues->lock);
	return result;
}

int nvmepeer_cuda_queues_close(struct nvmepeer_cuda_queues *queues)
{
	int error;

	if (!queues)
		return 0;
	close_parts(queues);
	error = cuda_release(queues->ctrl, &queues->handle);
	if (error)
		return error;
	cuda_free(queues->cuda, queues->memory);
	free_queues(queues);
	return 0;
}

const struct nvmepeer_queue *nvmepeer_cuda_queues_host(const struct nvmepeer_cuda_queues *queues)
{
	return queues->queues;
}

const struct nvmepeer_queue *nvmepeer_cuda_queues_device(const struct nvmepeer_cuda_queues *queues)
{
	return queues->device;
}

uint32_t nvmepeer_cuda_queues_count(const struct nvmepeer_cuda_queues *queues)
{
	return queues->count;
}
