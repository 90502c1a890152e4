// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Commands of a served queue pair: from an untrusted entry to a descriptor, an offset and
 * memory, or to an NVMe status.
 *
 * An address is the handle of a buffer in bits 63..48 and an offset in it.  Every piece
 * of memory, those that hold PRP lists and SGL segments included, must lie in one buffer.
 */
#include "serve.h"

#define ADDRESS_BITS	48
#define FUSED		(3u << 8)		/* dword 0: fused operation */
#define PSDT(entry)	((entry)[0] >> 14 & 3)	/* dword 0: PRP or SGL */
/* Dword 12: protection information, storage tag check, directive type. */
#define UNSUPPORTED	(15u << 26 | 1u << 24 | 15u << 20)

enum { PRP = 0, SGL = 1 };
enum { SGL_BYTES = 16, SGL_DATA_BLOCK = 0x00, SGL_LAST_SEGMENT = 0x30 };

#define REFUSED(status)	((status) | NVME_STATUS_DNR)

static uint64_t word64(const uint32_t *dwords)
{
	return dwords[0] | (uint64_t)dwords[1] << 32;
}

/* The memory at an address, or NULL if not all of it is in one buffer. */
static void *resolve(const struct nvmepeer_serve *serve, uint64_t address, uint64_t bytes)
{
	uint64_t handle = address >> ADDRESS_BITS;
	uint64_t offset = address & (((uint64_t)1 << ADDRESS_BITS) - 1);
	const struct serve_buffer *buffer;

	if (!handle || handle > serve->buffer_count)
		return NULL;
	buffer = &serve->buffers[handle - 1];
	if (bytes > buffer->length || offset > buffer->length - bytes)
		return NULL;
	return buffer->address + offset;
}

/* Peers may write the word: one load. */
static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static uint32_t add_piece(const struct nvmepeer_serve *serve, struct serve_command *command,
			  uint64_t address, uint64_t bytes)
{
	void *memory = resolve(serve, address, bytes);
	struct iovec *last = command->pieces + command->count;

	if (!memory)
		return REFUSED(NVME_SC_DATA_TRANSFER);
	if (((uintptr_t)memory | bytes) & (command->namespace->alignment - 1))
		return REFUSED(NVME_SC_PRP_OFFSET);
	if (command->count && (char *)last[-1].iov_base + last[-1].iov_len == memory) {
		last[-1].iov_len += bytes;
		return 0;
	}
	if (command->count == serve->most_pieces)
		return REFUSED(NVME_SC_INVALID_FIELD);
	*last = (struct iovec){ memory, bytes };
	command->count++;
	return 0;
}

/*
 * A PRP list.  The last entry of a page leads to the next page of the list, which starts
 * at offset 0: so each page of the list describes data, and a loop of pages ends.
 */
static uint32_t add_list(const struct nvmepeer_serve *serve, struct serve_command *command,
			 uint64_t at, uint64_t bytes)
{
	while (bytes) {
		const uint64_t *word = resolve(serve, at, sizeof(*word));
		uint64_t step = bytes < SERVE_PAGE ? bytes : SERVE_PAGE, page;
		uint32_t status;

		if (at % sizeof(*word))
			return REFUSED(NVME_SC_PRP_OFFSET);
		if (!word)
			return REFUSED(NVME_SC_DATA_TRANSFER);
		page = load(word);
		if (page % SERVE_PAGE)
			return REFUSED(NVME_SC_PRP_OFFSET);
		if (at % SERVE_PAGE == SERVE_PAGE - sizeof(*word) && bytes > SERVE_PAGE) {
			at = page;
			continue;
		}
		status = add_piece(serve, command, page, step);
		if (status)
			return status;
		at += sizeof(*word);
		bytes -= step;
	}
	return 0;
}

static uint32_t add_prps(const struct nvmepeer_serve *serve, struct serve_command *command,
			 const uint32_t entry[16])
{
	uint64_t first = word64(&entry[6]), second = word64(&entry[8]), bytes = command->bytes;
	uint64_t in_page = SERVE_PAGE - first % SERVE_PAGE;
	uint64_t step = bytes < in_page ? bytes : in_page;
	uint32_t status = add_piece(serve, command, first, step);

	bytes -= step;
	if (status || !bytes)
		return status;
	if (bytes > SERVE_PAGE)
		return add_list(serve, command, second, bytes);
	if (second % SERVE_PAGE)
		return REFUSED(NVME_SC_PRP_OFFSET);
	return add_piece(serve, command, second, bytes);
}

/*
 * A segment of data blocks, which is the last one.  Few lengths of 32 bits are summed: what
 * is left does not wrap back to 0.
 */
static uint32_t add_segment(const struct nvmepeer_serve *serve, struct serve_command *command,
			    uint64_t at, uint32_t length)
{
	const uint64_t *words = resolve(serve, at, length);
	uint64_t left = command->bytes;
	uint32_t count = length / SGL_BYTES, status;

	if (!words)
		return REFUSED(NVME_SC_DATA_TRANSFER);
	if (at % sizeof(*words) || length % SGL_BYTES || count > serve->most_pieces)
		return REFUSED(NVME_SC_INVALID_FIELD);
	for (; count; count--, words += 2) {
		uint64_t address = load(&words[0]), descriptor = load(&words[1]);
		uint32_t bytes = (uint32_t)descriptor;

		if (descriptor >> 56 != SGL_DATA_BLOCK)
			return REFUSED(NVME_SC_SGL_TYPE);
		status = bytes ? add_piece(serve, command, address, bytes) : 0;
		if (status)
			return status;
		left -= bytes;
	}
	return left ? REFUSED(NVME_SC_SGL_LENGTH) : 0;
}

static uint32_t add_sgl(const struct nvmepeer_serve *serve, struct serve_command *command,
			const uint32_t entry[16])
{
	uint64_t address = word64(&entry[6]);

	if (entry[9] >> 24 == SGL_LAST_SEGMENT)
		return add_segment(serve, command, address, entry[8]);
	if (entry[9] >> 24 != SGL_DATA_BLOCK)
		return REFUSED(NVME_SC_SGL_TYPE);
	if (entry[8] != command->bytes)
		return REFUSED(NVME_SC_SGL_LENGTH);
	return add_piece(serve, command, address, command->bytes);
}

static uint32_t check_data(const struct nvmepeer_serve *serve, struct serve_command *command,
			   const uint32_t entry[16])
{
	if (command->bytes > serve->max_transfer)
		return REFUSED(NVME_SC_INVALID_FIELD);
	switch (PSDT(entry)) {
	case PRP:
		return add_prps(serve, command, entry);
	case SGL:
		return add_sgl(serve, command, entry);
	default:
		return REFUSED(NVME_SC_INVALID_FIELD);
	}
}

/* The range of blocks, by subtraction: sums could wrap. */
static uint32_t check_range(struct serve_command *command, const uint32_t entry[16])
{
	const struct serve_namespace *namespace = command->namespace;
	uint64_t lba = word64(&entry[10]), blocks = (entry[12] & 0xffff) + 1;

	if (blocks > namespace->blocks || lba > namespace->blocks - blocks)
		return REFUSED(NVME_SC_LBA_RANGE);
	if (entry[12] & UNSUPPORTED)
		return REFUSED(NVME_SC_INVALID_FIELD);
	command->offset = lba << namespace->shift;
	command->bytes = blocks << namespace->shift;
	command->durable = entry[12] & NVMEPEER_CONTROL_FORCE_UNIT_ACCESS;
	return 0;
}

uint32_t serve_check(struct nvmepeer_serve *serve, const uint32_t entry[16],
		     struct serve_command *command)
{
	uint32_t nsid = entry[1], status;

	command->offset = command->bytes = 0;
	command->piece = command->count = command->retries = 0;
	command->cid = (uint16_t)(entry[0] >> 16);
	command->opcode = (uint8_t)entry[0];
	command->durable = false;
	if (entry[0] & FUSED)
		return REFUSED(NVME_SC_INVALID_FIELD);
	if (!nsid || nsid > serve->namespace_count)
		return REFUSED(NVME_SC_INVALID_NAMESPACE);
	command->namespace = &serve->namespaces[nsid - 1];
	switch (command->opcode) {
	case NVMEPEER_OP_FLUSH:
		return 0;
	case NVMEPEER_OP_READ:
	case NVMEPEER_OP_WRITE:
		status = check_range(command, entry);
		return status ? status : check_data(serve, command, entry);
	case NVMEPEER_OP_WRITE_ZEROES:
		status = check_range(command, entry);
		/* fallocate() has no such flag: the peer flushes. */
		return !status && command->durable ? REFUSED(NVME_SC_INVALID_FIELD) : status;
	default:
		return REFUSED(NVME_SC_INVALID_OPCODE);
	}
}

uint32_t serve_status(uint8_t opcode, int error)
{
	static const struct {
		int error;
		uint32_t status;
	} statuses[] = {
		{ ENOSPC, REFUSED(NVME_SC_CAPACITY) },
		{ EDQUOT, REFUSED(NVME_SC_CAPACITY) },
		{ EFBIG, REFUSED(NVME_SC_CAPACITY) },
		{ EROFS, REFUSED(NVME_SC_READ_ONLY) },
		{ EPERM, REFUSED(NVME_SC_READ_ONLY) },
		{ EBADF, REFUSED(NVME_SC_READ_ONLY) },	/* not open for writing */
		{ EACCES, REFUSED(NVME_SC_ACCESS_DENIED) },
		{ EFAULT, REFUSED(NVME_SC_DATA_TRANSFER) },
		{ EINVAL, REFUSED(NVME_SC_INVALID_FIELD) },
		{ EOPNOTSUPP, REFUSED(NVME_SC_INVALID_OPCODE) },
		{ EILSEQ, NVME_SC_GUARD_CHECK },
		{ EBADE, REFUSED(NVME_SC_RESERVATION) },
		{ EAGAIN, NVME_SC_INTERRUPTED },
		{ EINTR, NVME_SC_INTERRUPTED },
		{ ENOMEM, NVME_SC_INTERRUPTED },
		{ ECANCELED, NVME_SC_ABORTED },
		{ ENODEV, NVME_SC_HOST_PATH },
		{ ENXIO, NVME_SC_HOST_PATH },
		{ ENOLINK, NVME_SC_HOST_PATH },
		{ ESTALE, NVME_SC_HOST_PATH },
		{ ETIMEDOUT, NVME_SC_HOST_PATH },
		{ ENOTCONN, NVME_SC_HOST_PATH },
	};

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].error == -error)
			return statuses[i].status;
	return opcode == NVMEPEER_OP_READ ? NVME_SC_READ_ERROR : NVME_SC_WRITE_FAULT;
}
