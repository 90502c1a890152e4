/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/command.h: a command, its limits, and its submission queue
 * entry with PRP entries, a PRP list or an SGL descriptor.
 */
#ifndef NVMEPEER_DEVICE_COMMAND_H
#define NVMEPEER_DEVICE_COMMAND_H

#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"

/**
 * struct nvmepeer_command - one command on logical blocks
 * @opcode: NVMEPEER_OP_* except NVMEPEER_OP_DATASET_MANAGEMENT, whose dwords
 *	differ: nvmepeer_deallocate() submits that; NVMEPEER_E_OPCODE is
 *	returned for it here.  With NVMEPEER_OP_ZONE_APPEND @lba is the first block of the zone
 * @blocks: logical blocks, 1 to 65536; 0 for flush
 * @lba: first logical block
 * @buffer: data memory; not used by flush and write zeroes
 * @offset: byte offset of the data in @buffer
 * @control: NVMEPEER_CONTROL_*, combined by OR
 */
struct nvmepeer_command {
	uint32_t opcode;
	uint32_t blocks;
	uint64_t lba;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
	uint64_t control;
};

#define NVMEPEER_NO_CID 0xffffffffu

/* Identifies a command in flight until a caller has taken its result. */
struct nvmepeer_token {
	uint32_t cid;
	uint32_t ticket;
};

/*
 * Bytes of a controller page: 2^27 at most.  Values that fit 32 bits have 32
 * bits here: a GPU needs two instructions and two registers for 64.
 */
NVP_FN uint32_t nvp_page_bytes(const struct nvmepeer_queue *queue)
{
	return (uint32_t)1 << queue->page_shift;
}

/* Log2 of the bytes that an entry of the buffer's table covers. */
NVP_FN uint32_t nvp_table_shift(const struct nvmepeer_queue *queue,
				const struct nvmepeer_buffer *buffer)
{
	return queue->page_shift + ((uint32_t)buffer->dma >> 2 & 31);
}

/* Byte @offset of a buffer with a table, counted from the first byte of the table. */
NVP_FN uint64_t nvp_table_offset(const struct nvmepeer_buffer *buffer, uint64_t offset)
{
	return offset + (buffer->dma & ~(uint64_t)0xfff);
}

/*
 * DMA address of byte @offset.  The path without a table is the one that compilers must
 * keep short; with a table each path has one load.
 */
NVP_FN uint64_t nvp_dma(const struct nvmepeer_queue *queue,
			const struct nvmepeer_buffer *buffer, uint64_t offset)
{
	const uint64_t *pages = (const uint64_t *)(uintptr_t)buffer->pages;
	uint32_t in_page = (uint32_t)offset & (nvp_page_bytes(queue) - 1);
	uint32_t shift;

	if (!pages)
		return buffer->dma + offset;
	if (!buffer->dma)
		return pages[offset >> queue->page_shift] + in_page;
	shift = nvp_table_shift(queue, buffer);
	offset = nvp_table_offset(buffer, offset);
	return pages[offset >> shift] + ((uint32_t)offset & (((uint32_t)1 << shift) - 1));
}

/* Number of pages that the PRP list of a CID can describe. */
NVP_FN uint32_t nvp_list_entries(const struct nvmepeer_queue *queue)
{
	uint32_t per_page = nvp_page_bytes(queue) / 8;

	if (!queue->list_area)
		return 1;	/* in the place of the list's address */
	if (queue->list_bytes <= per_page * 8)
		return queue->list_bytes / 8;
	/*
	 * Each list page but the last spends one entry on the next list page.
	 */
	return (queue->list_bytes >> queue->page_shift) * (per_page - 1) + 1;
}

/* One SGL descriptor suffices for any data if the memory is one segment. */
NVP_FN bool nvp_use_sgl(const struct nvmepeer_queue *queue,
			const struct nvmepeer_buffer *buffer)
{
	return (queue->flags & NVMEPEER_SGL) && !buffer->pages;
}

/* Does one SGL descriptor suffice for this data, which is not empty? */
NVP_FN bool nvp_one_segment(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_buffer *buffer, uint64_t offset, uint32_t bytes)
{
	if (!(queue->flags & NVMEPEER_SGL))
		return false;
	if (!buffer->pages)
		return true;
	offset = nvp_table_offset(buffer, offset);
	return !((offset ^ (offset + bytes - 1)) >> nvp_table_shift(queue, buffer));
}

/*
 * Does data of @bytes bytes at DMA address @first touch more than two pages?
 * Two PRP entries do not describe it then.  The same @first decides whether a
 * command needs a list, whether it may have one, and whether an SGL takes its
 * place.
 */
NVP_FN bool nvp_beyond_two_pages(const struct nvmepeer_queue *queue, uint32_t first,
				 uint32_t bytes)
{
	uint32_t page = nvp_page_bytes(queue);

	return bytes > 2 * page - (first & (page - 1));
}

/*
 * Check that a command which needs a PRP list has one that is long enough, or that its
 * data is one range.
 */
NVP_FN int nvp_list_check(const struct nvmepeer_queue *queue,
			  const struct nvmepeer_command *command, uint32_t bytes)
{
	uint64_t page = nvp_page_bytes(queue);
	uint64_t first = nvp_dma(queue, command->buffer, command->offset) & (page - 1);
	uint64_t pages = (first + bytes + page - 1) >> queue->page_shift;

	if (nvp_one_segment(queue, command->buffer, command->offset, bytes))
		return NVMEPEER_OK;
	if (!nvp_beyond_two_pages(queue, (uint32_t)first, bytes))
		return queue->flags & NVMEPEER_ONE_RANGE ? (int)NVMEPEER_E_NO_LIST :
							   (int)NVMEPEER_OK;
	if (!queue->list_area)
		return NVMEPEER_E_NO_LIST;
	return pages - 1 <= nvp_list_entries(queue) ? NVMEPEER_OK : NVMEPEER_E_TOO_LARGE;
}

/* Check the place of @bytes bytes of data of a command. */
NVP_FN int nvp_data_check(const struct nvmepeer_queue *queue,
			  const struct nvmepeer_command *command, uint32_t bytes)
{
	if (bytes > command->buffer->length || command->offset > command->buffer->length - bytes)
		return NVMEPEER_E_RANGE;
	if (((uint32_t)command->offset | (uint32_t)command->buffer->dma) & 3)
		return NVMEPEER_E_ALIGN;
	if (bytes <= nvp_page_bytes(queue) && !(queue->flags & NVMEPEER_ONE_RANGE))
		return NVMEPEER_OK;
	return nvp_list_check(queue, command, bytes);
}

/* Check a command against the limits.  Sets @bytes to the bytes of its data. */
NVP_FN int nvp_command_check(const struct nvmepeer_queue *queue,
			     const struct nvmepeer_command *command, uint32_t *bytes)
{
	*bytes = 0;
	if (command->opcode == NVMEPEER_OP_FLUSH)
		return NVMEPEER_OK;
	if (!command->blocks || command->blocks > 65536)
		return NVMEPEER_E_TOO_LARGE;
	/* The two differ in the last bit: a read pays for one comparison. */
	if ((command->opcode | 1) == NVMEPEER_OP_DATASET_MANAGEMENT)
		return command->opcode == NVMEPEER_OP_WRITE_ZEROES ?
		       NVMEPEER_OK : NVMEPEER_E_OPCODE;
	if (command->blocks > queue->max_transfer >> queue->lba_shift)
		return NVMEPEER_E_TOO_LARGE;
	*bytes = command->blocks << queue->lba_shift;
	return nvp_data_check(queue, command, *bytes);
}

/*
 * Write the PRP list of @cid and return its DMA address.  Inlined although few
 * commands have one: around a call the compiler would spill registers, also on
 * the path without the call.
 */
NVP_FN uint64_t nvp_build_list(const struct nvmepeer_queue *queue, uint32_t cid,
			       const struct nvmepeer_buffer *buffer,
			       uint64_t offset, uint64_t end)
{
	uint64_t page = nvp_page_bytes(queue);
	uint64_t start = (uint64_t)cid * queue->list_bytes, at = start;

	for (; offset < end; offset += page, at += 8) {
		if ((at & (page - 1)) == page - 8 && end - offset > page) {
			nvp_list_store(queue->list_area + at,
				       nvp_dma(queue, &queue->list_memory, at + 8));
			at += 8;
		}
		nvp_list_store(queue->list_area + at, nvp_dma(queue, buffer, offset));
	}
	return nvp_dma(queue, &queue->list_memory, start);
}

/* Data pointer as one SGL data block descriptor (base specification 4.1.2). */
NVP_FN void nvp_set_sgl(uint64_t first, uint32_t bytes, struct nvmepeer_sqe *entry)
{
	entry->dword[0] |= 1u << 14;
	entry->dword[6] = (uint32_t)first;
	entry->dword[7] = (uint32_t)(first >> 32);
	entry->dword[8] = bytes;
}

/*
 * Data pointer of a command (base specification 4.1.1: PRP entries).  An SGL takes the
 * place of a PRP list where it can.  Returns true if the second entry must be a list,
 * which nvp_assign_cid() writes.
 */
NVP_FN bool nvp_set_data(const struct nvmepeer_queue *queue,
			 const struct nvmepeer_command *command, uint32_t bytes,
			 struct nvmepeer_sqe *entry)
{
	uint64_t first = nvp_dma(queue, command->buffer, command->offset), second;
	uint32_t page = nvp_page_bytes(queue), in_first = page - ((uint32_t)first & (page - 1));

	entry->dword[6] = (uint32_t)first;
	entry->dword[7] = (uint32_t)(first >> 32);
	if (bytes <= in_first)
		return false;
	if (bytes > in_first + page) {
		if (!nvp_one_segment(queue, command->buffer, command->offset, bytes))
			return true;
		nvp_set_sgl(first, bytes, entry);
		return false;
	}
	second = nvp_dma(queue, command->buffer, command->offset + in_first);
	entry->dword[8] = (uint32_t)second;
	entry->dword[9] = (uint32_t)(second >> 32);
	return false;
}

/*
 * Encode everything that does not depend on the CID; nvp_assign_cid() adds the
 * rest.  Returns true if the command needs a PRP list.
 */
NVP_FN bool nvp_encode(const struct nvmepeer_queue *queue,
		       const struct nvmepeer_command *command, uint32_t bytes,
		       struct nvmepeer_sqe *entry)
{
	bool list = false;

	for (int i = 0; i < 16; i++)
		entry->dword[i] = 0;
	entry->dword[0] = command->opcode;
	entry->dword[1] = queue->nsid;
	if (bytes)
		list = nvp_set_data(queue, command, bytes, entry);
	if (!command->blocks)
		return list;
	entry->dword[10] = (uint32_t)command->lba;
	entry->dword[11] = (uint32_t)(command->lba >> 32);
	entry->dword[12] = (command->blocks - 1) | ((uint32_t)command->control & 0xffff0000u);
	entry->dword[13] = (uint32_t)(command->control >> 32);
	return list;
}

/*
 * Set the CID of an encoded entry and, if it needs a @list, write the PRP list
 * of that CID.
 */
NVP_FN void nvp_assign_cid(const struct nvmepeer_queue *queue, uint32_t cid,
			   const struct nvmepeer_command *command, uint32_t bytes,
			   bool list, struct nvmepeer_sqe *entry)
{
	uint32_t page = nvp_page_bytes(queue), in_first;
	uint64_t second;

	entry->dword[0] |= cid << 16;
	if (!list)
		return;
	in_first = page - (entry->dword[6] & (page - 1));
	second = nvp_build_list(queue, cid, command->buffer, command->offset + in_first,
				command->offset + bytes);
	entry->dword[8] = (uint32_t)second;
	entry->dword[9] = (uint32_t)(second >> 32);
}

#endif /* NVMEPEER_DEVICE_COMMAND_H */
