// SPDX-License-Identifier: MIT OR GPL-2.0
/* A served queue pair: its memory, namespaces and buffers, and its geometry. */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

enum {
	DEPTH = 64,
	MOST_DEPTH = 4096,
	TRANSFER = 1 << 20,
	MOST_TRANSFER = 16 << 20,
	SECTOR = 512,
	MOST_BLOCK = 65536,
};

/* No hardware queue has this ID. */
#define NO_QID 0xffff

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + SERVE_PAGE - 1) / SERVE_PAGE * SERVE_PAGE;
}

static bool is_power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

/* ---- Creation ------------------------------------------------------------ */

static bool options_are_valid(const struct nvmepeer_serve *serve,
			      const struct nvmepeer_serve_options *options)
{
	return !options->flags && !options->reserved && is_power_of_two(serve->entries) &&
	       serve->entries >= 2 && serve->entries <= 32768 && serve->depth <= MOST_DEPTH &&
	       serve->max_transfer <= MOST_TRANSFER && !(serve->max_transfer % SERVE_PAGE);
}

static int take_options(struct nvmepeer_serve *serve,
			const struct nvmepeer_serve_options *options)
{
	struct nvmepeer_serve_options taken;
	char text[NODE_NAME_MAX];
	int error = struct_size_check(CALL_SERVE, "options", options->size,
				      SIZE_THROUGH(struct nvmepeer_serve_options, reserved));

	if (error)
		return error;
	if (!struct_tail_is_zero(options, options->size, sizeof(taken)))
		return failure_set(CALL_SERVE, -E2BIG, "options");
	struct_copy(&taken, sizeof(taken), options, options->size);
	serve->entries = taken.entries;
	serve->depth = taken.depth ? taken.depth : DEPTH;
	serve->max_transfer = taken.max_transfer ? taken.max_transfer : TRANSFER;
	serve->most_pieces = serve->max_transfer / SERVE_PAGE + 1;
	if (serve->most_pieces > IOV_MAX)
		serve->most_pieces = IOV_MAX;
	if (options_are_valid(serve, &taken))
		return 0;
	snprintf(text, sizeof(text), "%u entries, depth %u, %u bytes", taken.entries, taken.depth,
		 taken.max_transfer);
	return failure_set(CALL_SERVE, -EINVAL, text);
}

static void lay_out(struct nvmepeer_serve *serve)
{
	const uint64_t lengths[SERVE_PARTS] = {
		[NVME_PEER_EXPORT_SQ] = (uint64_t)serve->entries * SERVE_ENTRY,
		[NVME_PEER_EXPORT_CQ] = (uint64_t)serve->entries * SERVE_COMPLETION,
		[NVME_PEER_EXPORT_DOORBELL] = SERVE_PAGE,
		[NVME_PEER_EXPORT_STATUS] = SERVE_PAGE,
		[NVME_PEER_EXPORT_CONTROL] = SERVE_PAGE,
	};

	for (int part = 0; part < SERVE_PARTS; part++) {
		serve->parts[part].offset = serve->memory_bytes;
		serve->parts[part].length = lengths[part];
		serve->memory_bytes += round_up(lengths[part]);
	}
}

/* A peer that shortened the file would end this process by SIGBUS: its size is sealed. */
static int make_memory(struct nvmepeer_serve *serve)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	void *memory;

	lay_out(serve);
	serve->memory_fd = memfd_create("nvmepeer-serve", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (serve->memory_fd < 0 || ftruncate(serve->memory_fd, (off_t)serve->memory_bytes) ||
	    fcntl(serve->memory_fd, F_ADD_SEALS, seals))
		return -errno;
	memory = mmap(NULL, serve->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      serve->memory_fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	serve->memory = memory;
	return 0;
}

static int make_commands(struct nvmepeer_serve *serve)
{
	serve->commands = calloc(serve->depth, sizeof(*serve->commands));
	serve->idle = calloc(serve->depth, sizeof(*serve->idle));
	serve->pieces = calloc((size_t)serve->depth * serve->most_pieces, sizeof(*serve->pieces));
	if (!serve->commands || !serve->idle || !serve->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < serve->depth; i++) {
		serve->commands[i].pieces = serve->pieces + (size_t)i * serve->most_pieces;
		serve->idle[serve->idle_count++] = &serve->commands[i];
	}
	return 0;
}

/* The ring has room for all commands. */
static int make_ring(struct nvmepeer_serve *serve)
{
	int error;

	serve->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (serve->kick_fd < 0)
		return -errno;
	error = io_uring_queue_init(serve->depth, &serve->ring, 0);
	if (error)
		serve->ring.ring_fd = -1;
	return error;
}

static void store(__le32 *word, uint32_t value)
{
	__atomic_store_n(word, htole32(value), __ATOMIC_RELEASE);
}

void serve_set_state(struct nvmepeer_serve *serve, uint32_t state, uint32_t reason)
{
	struct nvme_peer_status *status = serve_memory(serve, NVME_PEER_EXPORT_STATUS);

	serve->state = state;
	store(&status->reason, reason);
	store(&status->losses, serve->losses);
	store(&status->state, state);
}

static void begin(struct nvmepeer_serve *serve)
{
	struct nvme_peer_control *control = serve_memory(serve, NVME_PEER_EXPORT_CONTROL);
	struct nvme_peer_status *status = serve_memory(serve, NVME_PEER_EXPORT_STATUS);

	store(&status->magic, NVME_PEER_STATUS_MAGIC);
	store(&status->version, 1);
	store(&status->qid, NO_QID);
	store(&status->size, SERVE_PAGE);
	store(&control->version, 1);
	serve_set_state(serve, NVME_PEER_QP_LIVE, NVME_PEER_QP_REASON_NONE);
}

int nvmepeer_serve_create(const struct nvmepeer_serve_options *options,
			  struct nvmepeer_serve **serve)
{
	struct nvmepeer_serve *created = calloc(1, sizeof(*created));
	int error;

	if (!created)
		return failure_set(CALL_SERVE, -ENOMEM, "");
	created->memory_fd = created->kick_fd = created->ring.ring_fd = -1;
	error = take_options(created, options);
	if (!error) {
		error = make_memory(created);
		if (!error)
			error = make_commands(created);
		if (!error)
			error = make_ring(created);
		if (error)
			failure_set(CALL_SERVE, error, "");
	}
	if (error) {
		nvmepeer_serve_destroy(created);
		return error;
	}
	begin(created);
	*serve = created;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void nvmepeer_serve_destroy(struct nvmepeer_serve *serve)
{
	if (!serve)
		return;
	if (serve->ring.ring_fd >= 0)
		io_uring_queue_exit(&serve->ring);
	if (serve->memory) {
		serve_set_state(serve, NVME_PEER_QP_GONE, NVME_PEER_QP_REASON_CLOSED);
		munmap(serve->memory, serve->memory_bytes);
	}
	for (uint32_t i = 0; i < serve->namespace_count; i++)
		close(serve->namespaces[i].fd);
	close_fd(serve->memory_fd);
	close_fd(serve->kick_fd);
	free(serve->commands);
	free(serve->pieces);
	free(serve->idle);
	free(serve);
}

/* ---- Namespaces and buffers ---------------------------------------------- */

/* What direct I/O requires of memory and of offsets; 0: unknown. */
static void direct_limits(int fd, uint32_t *memory, uint32_t *offset)
{
	*memory = *offset = 0;
#ifdef STATX_DIOALIGN
	struct statx limits;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &limits) &&
	    limits.stx_mask & STATX_DIOALIGN) {
		*memory = limits.stx_dio_mem_align;
		*offset = limits.stx_dio_offset_align;
	}
#endif
}

/* Bytes of the descriptor; @block: of a sector of a block device. */
static int measure(int fd, uint64_t *bytes, uint32_t *block)
{
	struct stat status;
	int sector = 0;

	if (fstat(fd, &status))
		return -errno;
	*bytes = (uint64_t)status.st_size;
	if (S_ISREG(status.st_mode))
		return 0;
	if (!S_ISBLK(status.st_mode))
		return -ENOTBLK;
	if (ioctl(fd, BLKGETSIZE64, bytes) || ioctl(fd, BLKSSZGET, &sector))
		return -errno;
	*block = (uint32_t)sector;
	return 0;
}

static int describe(struct serve_namespace *namespace, uint32_t block_size)
{
	int flags = fcntl(namespace->fd, F_GETFL), error;
	uint32_t block = SECTOR, memory, offset;
	uint64_t bytes = 0;

	error = flags < 0 ? -errno : measure(namespace->fd, &bytes, &block);
	if (error)
		return error;
	namespace->alignment = 1;
	if (flags & O_DIRECT) {
		direct_limits(namespace->fd, &memory, &offset);
		if (offset > block)
			block = offset;
		namespace->alignment = memory ? memory : block;
	}
	if (!block_size)
		block_size = block;
	if (!is_power_of_two(block_size) || block_size < block || block_size > MOST_BLOCK ||
	    !is_power_of_two(namespace->alignment))
		return -EINVAL;
	namespace->shift = (uint32_t)__builtin_ctz(block_size);
	namespace->blocks = bytes >> namespace->shift;
	return namespace->blocks ? 0 : -ENODATA;
}

int nvmepeer_serve_add_fd(struct nvmepeer_serve *serve, int fd, uint32_t block_size,
			  struct nvmepeer_ns_info *ns, size_t size)
{
	struct serve_namespace *namespace = &serve->namespaces[serve->namespace_count];
	struct nvmepeer_ns_info info = { .size = (uint32_t)size };
	char text[NODE_NAME_MAX];
	int error = struct_size_check(CALL_SERVE_FD, "namespace", size,
				      SIZE_THROUGH(struct nvmepeer_ns_info, blocks));

	if (error)
		return error;
	snprintf(text, sizeof(text), "descriptor %d", fd);
	if (serve->running)
		return failure_set(CALL_SERVE_FD, -EBUSY, text);
	if (serve->namespace_count == NVMEPEER_SERVE_NAMESPACES)
		return failure_set(CALL_SERVE_FD, -ENOSPC, text);
	memset(namespace, 0, sizeof(*namespace));
	namespace->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (namespace->fd < 0)
		return failure_set(CALL_SERVE_FD, -errno, text);
	error = describe(namespace, block_size);
	if (error) {
		close(namespace->fd);
		return failure_set(CALL_SERVE_FD, error, text);
	}
	info.nsid = ++serve->namespace_count;
	info.block_size = 1u << namespace->shift;
	info.blocks = namespace->blocks;
	struct_copy(ns, size, &info, sizeof(info));
	return 0;
}

int nvmepeer_serve_add_buffer(struct nvmepeer_serve *serve, void *address, uint64_t length,
			      struct nvmepeer_buffer *buffer)
{
	char text[NODE_NAME_MAX];
	int error = 0;

	snprintf(text, sizeof(text), "%llu bytes at %p", (unsigned long long)length, address);
	if (serve->running)
		error = -EBUSY;
	else if (!address || (uintptr_t)address % SERVE_PAGE || !length ||
		 length > UINTPTR_MAX - (uintptr_t)address || length > (uint64_t)1 << 48)
		error = -EINVAL;
	else if (serve->buffer_count == NVMEPEER_SERVE_BUFFERS)
		error = -ENOSPC;
	if (error)
		return failure_set(CALL_SERVE_BUFFER, error, text);
	serve->buffers[serve->buffer_count++] = (struct serve_buffer){ address, length };
	*buffer = (struct nvmepeer_buffer){
		.length = length,
		.dma = (uint64_t)serve->buffer_count << 48,
	};
	return 0;
}

/* ---- Peers ---------------------------------------------------------------- */

/* As a controller that takes SGLs of one segment, with rings and data in host memory. */
int nvmepeer_serve_geometry(struct nvmepeer_serve *serve, const struct nvmepeer_ns_info *ns,
			    uint32_t view, struct nvmepeer_geometry *geometry, size_t size)
{
	const struct nvme_peer_info info = {
		.size = sizeof(info),
		.page_size = SERVE_PAGE,
		.max_transfer = serve->max_transfer,
		.sgls = 1,
	};
	const struct nvme_peer_qp_info qp_info = {
		.size = sizeof(qp_info),
		.qid = NO_QID,
		.state = serve->state,
		.sq_entries = serve->entries,
		.cq_entries = serve->entries,
		.doorbell_stride = SERVE_STRIDE,
		.doorbell_length = SERVE_PAGE,
		.losses = serve->losses,
	};
	uint64_t doorbells = 0;

	if (!(view & NVMEPEER_VIEW_DESCRIPTORS) && size >= sizeof(*geometry)) {
		doorbells = (uintptr_t)serve_memory(serve, NVME_PEER_EXPORT_DOORBELL);
		geometry->sq = (uintptr_t)serve_memory(serve, NVME_PEER_EXPORT_SQ);
		geometry->cq = (uintptr_t)serve_memory(serve, NVME_PEER_EXPORT_CQ);
		geometry->status = (uintptr_t)serve_memory(serve, NVME_PEER_EXPORT_STATUS);
		geometry->control = (uintptr_t)serve_memory(serve, NVME_PEER_EXPORT_CONTROL);
	}
	return nvmepeer_geometry_build(&info, &qp_info, ns, view | NVMEPEER_VIEW_DATA_IN_HOST,
				       doorbells, geometry, size);
}

int nvmepeer_serve_export(struct nvmepeer_serve *serve, enum nvme_peer_export what,
			  struct nvmepeer_export *exported, size_t size)
{
	struct nvmepeer_export part;
	int error = struct_size_check(CALL_SERVE_EXPORT, nvmepeer_export_name(what), size,
				      SIZE_THROUGH(struct nvmepeer_export, length));

	if (error)
		return error;
	if ((uint32_t)what >= SERVE_PARTS)
		return failure_set(CALL_SERVE_EXPORT, -EINVAL, nvmepeer_export_name(what));
	part.offset = serve->parts[what].offset;
	part.length = serve->parts[what].length;
	part.fd = fcntl(serve->memory_fd, F_DUPFD_CLOEXEC, 0);
	if (part.fd < 0)
		return failure_set(CALL_SERVE_EXPORT, -errno, nvmepeer_export_name(what));
	struct_copy(exported, size, &part, sizeof(part));
	return 0;
}

/* The parts are as after the creation, but for the number of losses. */
int nvmepeer_serve_rearm(struct nvmepeer_serve *serve, uint32_t *losses)
{
	if (serve->running)
		return failure_set(CALL_SERVE_RUN, -EBUSY, "re-arm");
	if (serve->state == NVME_PEER_QP_LIVE)
		return failure_set(CALL_SERVE_RUN, -EALREADY, "re-arm");
	if (serve->state != NVME_PEER_QP_QUIESCED)
		return failure_set(CALL_SERVE_RUN, -ESHUTDOWN, "re-arm");
	for (int part = 0; part < SERVE_PARTS; part++)
		memset(serve_memory(serve, part), 0, serve->parts[part].length);
	serve->fetched = serve->posted = serve->consumed = 0;
	/* It was for the run that ended with the loss. */
	serve->stop = false;
	begin(serve);
	*losses = serve->losses;
	return 0;
}
