/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/command.h: a command, its limits, and its submission entry
 * with PRP entries, a PRP list or an SGL descriptor.
 */
#ifndef NVMEPEER_DEVICE_COMMAND_H
#define NVMEPEER_DEVICE_COMMAND_H

/**
 * struct nvmepeer_command - one command on logical blocks
 * @opcode: NVMEPEER_OP_*; with NVMEPEER_OP_ZONE_APPEND @lba is the first block
 *	of the zone
 * @blocks: logical blocks, 1 to 65536; 0 for flush
 * @lba: first logical block
 * @buffer: memory of the data; not used by flush and write zeroes
 * @offset: byte offset of the data in @buffer
 * @control: NVMEPEER_CONTROL_*
 */
struct nvmepeer_command {
	uint32_t opcode;
	uint32_t blocks;
	uint64_t lba;
	const struct nvmepeer_buffer *buffer;
	uint64_t offset;
	uint32_t control;
};

#define NVMEPEER_NO_CID 0xffffffffu

/* Names a command in flight until its result is taken. */
struct nvmepeer_token {
	uint32_t cid;
	uint32_t ticket;
};

/*
 * A controller page in bytes: 2^27 at most.  What fits 32 bits has 32 bits here, since a GPU
 * takes each step with 64 twice, in twice the registers.
 */
NVMEPEER_FN uint32_t nvmepeer_page(const struct nvmepeer_queue *queue)
{
	return (uint32_t)1 << queue->page_shift;
}

/* DMA address of byte @offset. */
NVMEPEER_FN uint64_t nvmepeer_dma(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_buffer *buffer, uint64_t offset)
{
	const uint64_t *pages = (const uint64_t *)(uintptr_t)buffer->pages;
	uint32_t in_page = (uint32_t)offset & (nvmepeer_page(queue) - 1);

	return pages ? pages[offset >> queue->page_shift] + in_page : buffer->dma + offset;
}

/* How many pages the list of a cid can name. */
NVMEPEER_FN uint32_t nvmepeer_list_entries(const struct nvmepeer_queue *queue)
{
	uint32_t per_page = nvmepeer_page(queue) / 8;

	if (!queue->list_area)
		return 1;	/* in the place of the list's address */
	if (queue->list_bytes <= per_page * 8)
		return queue->list_bytes / 8;
	/* All list pages but the last give one entry to the next list page. */
	return (queue->list_bytes >> queue->page_shift) * (per_page - 1) + 1;
}

/* One SGL descriptor says it all where memory is one range of DMA addresses. */
NVMEPEER_FN bool nvmepeer_takes_sgl(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_buffer *buffer)
{
	return (queue->flags & NVMEPEER_SGL) && !buffer->pages;
}

/* Is there a PRP list for the command, if it needs one, and is it long enough? */
NVMEPEER_FN int nvmepeer_list_check(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_command *command, uint32_t bytes)
{
	uint64_t page = nvmepeer_page(queue);
	uint64_t first = nvmepeer_dma(queue, command->buffer, command->offset) & (page - 1);
	uint64_t pages = (first + bytes + page - 1) >> queue->page_shift;

	if (pages <= 2 || nvmepeer_takes_sgl(queue, command->buffer))
		return NVMEPEER_OK;
	if (!queue->list_area)
		return NVMEPEER_E_NO_LIST;
	return pages - 1 <= nvmepeer_list_entries(queue) ? NVMEPEER_OK : NVMEPEER_E_TOO_LARGE;
}

/* Checks a command against limits.  Bytes of data in @bytes. */
NVMEPEER_FN int nvmepeer_command_check(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_command *command, uint32_t *bytes)
{
	*bytes = 0;
	if (command->opcode == NVMEPEER_OP_FLUSH)
		return NVMEPEER_OK;
	if (!command->blocks || command->blocks > 65536)
		return NVMEPEER_E_TOO_LARGE;
	if (command->opcode == NVMEPEER_OP_WRITE_ZEROES)
		return NVMEPEER_OK;
	if (command->blocks > queue->max_transfer >> queue->lba_shift)
		return NVMEPEER_E_TOO_LARGE;
	*bytes = command->blocks << queue->lba_shift;
	if (*bytes > command->buffer->length || command->offset > command->buffer->length - *bytes)
		return NVMEPEER_E_RANGE;
	if (((uint32_t)command->offset | (uint32_t)command->buffer->dma) & 3)
		return NVMEPEER_E_ALIGN;
	if (*bytes <= nvmepeer_page(queue))
		return NVMEPEER_OK;
	return nvmepeer_list_check(queue, command, *bytes);
}

/*
 * Writes the PRP list of @cid; returns its DMA address.  Inlined, though few commands have
 * one: around a call what lies in registers goes to memory, also where it is not made.
 */
NVMEPEER_FN uint64_t nvmepeer_build_list(const struct nvmepeer_queue *queue, uint32_t cid,
					 const struct nvmepeer_buffer *buffer,
					 uint64_t offset, uint64_t end)
{
	uint64_t page = nvmepeer_page(queue);
	uint64_t start = (uint64_t)cid * queue->list_bytes, at = start;

	for (; offset < end; offset += page, at += 8) {
		if ((at & (page - 1)) == page - 8 && end - offset > page) {
			nvmepeer_list_store(queue->list_area + at,
					    nvmepeer_dma(queue, &queue->list_memory, at + 8));
			at += 8;
		}
		nvmepeer_list_store(queue->list_area + at, nvmepeer_dma(queue, buffer, offset));
	}
	return nvmepeer_dma(queue, &queue->list_memory, start);
}

/*
 * Data pointer of a command (base specification 4.1.1: PRP entries).  Returns true if
 * it needs a list in the place of the second entry: nvmepeer_name() makes that.
 */
NVMEPEER_FN bool nvmepeer_set_prps(const struct nvmepeer_queue *queue,
				   const struct nvmepeer_command *command, uint32_t bytes,
				   struct nvmepeer_sqe *entry)
{
	uint64_t first = nvmepeer_dma(queue, command->buffer, command->offset), second;
	uint32_t page = nvmepeer_page(queue), in_first = page - ((uint32_t)first & (page - 1));

	entry->dword[6] = (uint32_t)first;
	entry->dword[7] = (uint32_t)(first >> 32);
	if (bytes <= in_first)
		return false;
	if (bytes > in_first + page)
		return true;
	second = nvmepeer_dma(queue, command->buffer, command->offset + in_first);
	entry->dword[8] = (uint32_t)second;
	entry->dword[9] = (uint32_t)(second >> 32);
	return false;
}

/* Data pointer as one SGL data block descriptor (base specification 4.1.2). */
NVMEPEER_FN void nvmepeer_set_sgl(const struct nvmepeer_command *command, uint32_t bytes,
				  struct nvmepeer_sqe *entry)
{
	uint64_t first = command->buffer->dma + command->offset;

	entry->dword[0] |= 1u << 14;
	entry->dword[6] = (uint32_t)first;
	entry->dword[7] = (uint32_t)(first >> 32);
	entry->dword[8] = bytes;
}

/* True if it needs a PRP list. */
NVMEPEER_FN bool nvmepeer_set_data(const struct nvmepeer_queue *queue,
				   const struct nvmepeer_command *command, uint32_t bytes,
				   struct nvmepeer_sqe *entry)
{
	if (bytes <= 2 * nvmepeer_page(queue) ||
	    !nvmepeer_takes_sgl(queue, command->buffer))
		return nvmepeer_set_prps(queue, command, bytes, entry);
	nvmepeer_set_sgl(command, bytes, entry);
	return false;
}

/*
 * All of an entry that does not depend on its cid; nvmepeer_name() adds that.  True if
 * it needs a PRP list.
 */
NVMEPEER_FN bool nvmepeer_encode(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_command *command, uint32_t bytes,
				 struct nvmepeer_sqe *entry)
{
	bool list = false;

	for (int i = 0; i < 16; i++)
		entry->dword[i] = 0;
	entry->dword[0] = command->opcode;
	entry->dword[1] = queue->nsid;
	if (bytes)
		list = nvmepeer_set_data(queue, command, bytes, entry);
	if (!command->blocks)
		return list;
	entry->dword[10] = (uint32_t)command->lba;
	entry->dword[11] = (uint32_t)(command->lba >> 32);
	entry->dword[12] = (command->blocks - 1) | command->control;
	return list;
}

/* Gives an encoded entry its cid and, if it needs a @list, the PRP list of that cid. */
NVMEPEER_FN void nvmepeer_name(const struct nvmepeer_queue *queue, uint32_t cid,
			       const struct nvmepeer_command *command, uint32_t bytes,
			       bool list, struct nvmepeer_sqe *entry)
{
	uint32_t page = nvmepeer_page(queue), in_first;
	uint64_t second;

	entry->dword[0] |= cid << 16;
	if (!list)
		return;
	in_first = page - (entry->dword[6] & (page - 1));
	second = nvmepeer_build_list(queue, cid, command->buffer, command->offset + in_first,
				     command->offset + bytes);
	entry->dword[8] = (uint32_t)second;
	entry->dword[9] = (uint32_t)(second >> 32);
}

#endif /* NVMEPEER_DEVICE_COMMAND_H */
