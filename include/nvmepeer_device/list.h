/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/list.h: a list of transfers in any order, each between blocks
 * of the disk and a place in memory: for instance the pages of a cache that a
 * kernel has missed.  By a thread, the lanes of a warp or the threads of a block,
 * in one step or two.  Each item has a status.  Items that continue the one
 * before, on the disk and in memory, share a command.
 *
 * Lengths and places are multiples of 4 bytes.  On the disk each item begins with
 * a logical block; the rest of its last block, the padding, belongs to no item.
 * No memory beside an item is written: of a read, the padding goes to an SGL bit
 * bucket if the controller has it and the data memory is contiguous, else to a
 * scratch page, as the whole last block does with NVMEPEER_ONE_RANGE.  Of a write,
 * the padding is zeros.
 */
#ifndef NVMEPEER_DEVICE_LIST_H
#define NVMEPEER_DEVICE_LIST_H

#include "batch.h"
#include "block.h"
#include "calls.h"
#include "command.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
#include "send.h"
#include "wait.h"

/**
 * struct nvmepeer_memory - data memory of a list
 * @buffer: as the controller accesses it
 * @address: the same in the peer's own address space; 0: not accessible, which
 *	suffices for items of whole blocks and for those that an SGL describes
 */
struct nvmepeer_memory {
	struct nvmepeer_buffer buffer;
	uint64_t address;
};

/**
 * struct nvmepeer_scratch - memory for the padding of items
 * @memory: memory that is accessible to controller and peer
 * @offset: byte offset in @memory of nvmepeer_scratch_bytes() bytes, which begin
 *	on a controller page; the second page is zeroed by the caller
 * @first: number of the first page that this list may use
 * @slots: number of pages from @first on.  A call in two steps needs one for each
 *	item, a call in one step one for each thread that makes it together: a
 *	thread uses page @first, a warp as many as it has lanes, a block as many as
 *	it has threads.  Threads or warps of separate calls at the same time need
 *	different @first
 *
 * Lists whose pages are different may share the memory.  It belongs to the
 * controller as long as the data memory does, and for
 * NVMEPEER_CQ_APART_FROM_DATA it is data memory.  While a queue pair has abandoned
 * commands, see nvmepeer_abandoned(), its items with padding are refused with
 * NVMEPEER_E_BUSY, since those commands may still access the pages: quiesce the
 * queue pair and re-arm it.  Until then use the pages with no other queue pair.
 */
struct nvmepeer_scratch {
	const struct nvmepeer_memory *memory;
	uint64_t offset;
	uint32_t first;
	uint32_t slots;
};

/**
 * struct nvmepeer_list_item - one transfer of a list
 * @lba: first logical block
 * @offset: byte offset in the data memory, a multiple of 4
 * @memory: number of the data memory in nvmepeer_list.memories
 * @bytes: length, a multiple of 4
 * @status: out: the worst status of its commands.  Items that share a command share
 *	its status: one that cannot be transferred fails the others of the command,
 *	which may be repeated by themselves
 * @reserved: not used
 */
struct nvmepeer_list_item {
	uint64_t lba;
	uint64_t offset;
	uint32_t memory;
	uint32_t bytes;
	int status;
	uint32_t reserved;
};

/**
 * struct nvmepeer_list_tensor - an array of pages, for instance the keys of a layer
 * @offset: byte offset of page 0 in the data memory
 * @stride: bytes from a page to the next
 * @memory: number of the data memory in nvmepeer_list.memories
 * @bytes: length of a page, a multiple of 4
 * @block: where this tensor's piece of a page begins on the disk, in logical
 *	blocks from nvmepeer_list_page.lba on; nvmepeer_list_lay_out() sets it
 * @reserved: not used
 */
struct nvmepeer_list_tensor {
	uint64_t offset;
	uint64_t stride;
	uint32_t memory;
	uint32_t bytes;
	uint32_t block;
	uint32_t reserved;
};

/**
 * struct nvmepeer_list_page - one page of all tensors of a list
 * @lba: logical block of the page's pieces
 * @page: number of the page in each tensor
 * @reserved: not used
 */
struct nvmepeer_list_page {
	uint64_t lba;
	uint32_t page;
	uint32_t reserved;
};

/**
 * struct nvmepeer_list - transfers in any order
 * @memories: the data memories
 * @items: the items, in the first form of a list; else NULL
 * @tensors: the tensors, in the second form: each of the @pages has one item for
 *	each tensor, so that item p * @tensor_count + t is page p of tensor t
 * @pages: the pages
 * @statuses: out, in the second form: a status for each item, as
 *	nvmepeer_list_item.status; or NULL
 * @scratch: for items with padding; or NULL
 * @memory_count: number of data memories
 * @tensor_count: number of tensors
 * @count: number of items or pages
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE, for all
 * @control: NVMEPEER_CONTROL_*, for all
 *
 * Overlapping items are undefined if one of them is written.  All that is pointed
 * to lies in memory of the peer, and is read during the call.
 */
struct nvmepeer_list {
	const struct nvmepeer_memory *memories;
	struct nvmepeer_list_item *items;
	const struct nvmepeer_list_tensor *tensors;
	const struct nvmepeer_list_page *pages;
	int *statuses;
	const struct nvmepeer_scratch *scratch;
	uint32_t memory_count;
	uint32_t tensor_count;
	uint32_t count;
	uint32_t opcode;
	uint64_t control;
};

/**
 * struct nvmepeer_list_done - how a list on a stream reports its end
 * @count: incremented when a list has ended
 * @status: the worst status of that list, written before
 */
struct nvmepeer_list_done {
	uint32_t count;
	int status;
};

/* Scratch pages before the first slot: padding of reads, and of writes. */
enum nvp_scratch_page {
	NVP_SCRATCH_DISCARD,
	NVP_SCRATCH_ZEROS,
	NVP_SCRATCH_SLOTS,
};

/*
 * A command with padding by PRPs has at most this many controller pages, since
 * its thread keeps their addresses.  Longer items have a command before it.
 */
#define NVP_LIST_PAGES 32

/* Bytes of memory for struct nvmepeer_scratch with @slots pages. */
NVP_HOST_FN uint64_t nvmepeer_scratch_bytes(const struct nvmepeer_queue *queue, uint32_t slots)
{
	return ((uint64_t)NVP_SCRATCH_SLOTS + slots) << queue->page_shift;
}

/**
 * nvmepeer_list_lay_out - place the pieces of a page one after the other on the
 * disk, each in whole logical blocks
 * @lba_shift: log2 of the bytes of a logical block
 * @tensors: their @block is set
 * @count: number of tensors
 *
 * Returns the logical blocks of a page.
 */
NVP_HOST_FN uint32_t nvmepeer_list_lay_out(uint32_t lba_shift,
					   struct nvmepeer_list_tensor *tensors, uint32_t count)
{
	uint32_t block = 0;

	for (uint32_t i = 0; i < count; i++) {
		tensors[i].block = block;
		block += (uint32_t)(((uint64_t)tensors[i].bytes + ((uint64_t)1 << lba_shift) - 1) >>
				    lba_shift);
	}
	return block;
}

/* Number of items of a list of either form. */
NVP_HOST_FN uint64_t nvmepeer_list_items(const struct nvmepeer_list *list)
{
	return list->items ? list->count : (uint64_t)list->count * list->tensor_count;
}

/*
 * Items @first to @end - 1 of a list, which one command transfers unless the first
 * is longer than that; of none, @end is 0.
 */
struct nvp_list_run {
	uint32_t first;
	uint32_t end;
	uint32_t memory;
	uint64_t lba;
	uint64_t offset;
	uint64_t bytes;
};

NVP_FN struct nvp_list_run nvp_list_item_at(const struct nvmepeer_list *list, uint32_t index)
{
	struct nvp_list_run run = { index, index + 1, 0, 0, 0, 0 };

	if (list->items) {
		const struct nvmepeer_list_item *item = &list->items[index];

		run.memory = item->memory;
		run.lba = item->lba;
		run.offset = item->offset;
		run.bytes = item->bytes;
	} else {
		const struct nvmepeer_list_page *page = &list->pages[index / list->tensor_count];
		const struct nvmepeer_list_tensor *tensor =
			&list->tensors[index % list->tensor_count];

		run.memory = tensor->memory;
		run.lba = page->lba + tensor->block;
		run.offset = tensor->offset + page->page * tensor->stride;
		run.bytes = tensor->bytes;
	}
	return run;
}

NVP_FN uint32_t nvp_block_mask(const struct nvmepeer_queue *queue)
{
	return ((uint32_t)1 << queue->lba_shift) - 1;
}

/* Logical blocks of @bytes bytes, the last of which may be padded. */
NVP_FN uint64_t nvp_padded_blocks(const struct nvmepeer_queue *queue, uint64_t bytes)
{
	return (bytes + nvp_block_mask(queue)) >> queue->lba_shift;
}

/* Does an SGL describe a command with padding?  Else PRPs do, or one range. */
NVP_FN bool nvp_list_by_sgl(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_buffer *buffer)
{
	return nvp_use_sgl(queue, buffer) && !(queue->flags & NVMEPEER_ONE_RANGE);
}

/* Maximum blocks of a command with padding by PRPs: of one range, those of a scratch page. */
NVP_FN uint64_t nvp_list_prp_blocks(const struct nvmepeer_queue *queue)
{
	if (queue->flags & NVMEPEER_ONE_RANGE)
		return 1;
	return (uint64_t)NVP_LIST_PAGES << queue->page_shift >> queue->lba_shift;
}

/*
 * Is the data of two items that continue each other not one range, although that of
 * each may be?  Scattered memory is one range within a controller page.
 */
NVP_FN bool nvp_list_leaves_page(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_buffer *buffer,
				 const struct nvp_list_run *before,
				 const struct nvp_list_run *item)
{
	return (queue->flags & NVMEPEER_ONE_RANGE) && buffer->pages &&
	       ((item->offset + item->bytes - 1) ^ before->offset) >> queue->page_shift;
}

/* Does @item continue @before, the item before it, on the disk and in memory? */
NVP_FN bool nvp_list_continues(const struct nvmepeer_queue *queue,
			       const struct nvp_list_run *before,
			       const struct nvp_list_run *item)
{
	return item->memory == before->memory && item->bytes && before->bytes &&
	       !(before->bytes & nvp_block_mask(queue)) &&
	       item->offset == before->offset + before->bytes &&
	       item->lba == before->lba + (before->bytes >> queue->lba_shift);
}

/*
 * May one command have the data of @before and of @item, which continues it?  A command
 * stays inside a range of blocks that is aligned to its length, a power of two.  An item
 * with padding by PRPs shares none if commands may be longer than those with padding,
 * since two steps refuse a second command.
 */
NVP_FN bool nvp_list_one_command(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_buffer *buffer,
				 const struct nvp_list_run *before,
				 const struct nvp_list_run *item)
{
	uint32_t most = nvp_max_blocks(queue, buffer), shift = 0;

	if (nvp_list_leaves_page(queue, buffer, before, item))
		return false;
	if ((item->bytes & nvp_block_mask(queue)) && !nvp_list_by_sgl(queue, buffer) &&
	    most > nvp_list_prp_blocks(queue))
		return false;
	while (most >> shift > 1)
		shift++;
	return !(((item->lba + nvp_padded_blocks(queue, item->bytes) - 1) ^ before->lba) >> shift);
}

/*
 * Does @item share a command with @before, the item before it?  Two neighbours decide
 * for themselves, so threads that begin anywhere in a list find the same commands.
 */
NVP_FN bool nvp_list_shares(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			    const struct nvp_list_run *before, const struct nvp_list_run *item)
{
	return nvp_list_continues(queue, before, item) && item->memory < list->memory_count &&
	       nvp_list_one_command(queue, &list->memories[item->memory].buffer, before, item);
}

/* The items from @index on that share a command. */
NVP_FN struct nvp_list_run nvp_list_run_at(const struct nvmepeer_queue *queue,
					   const struct nvmepeer_list *list, uint32_t index)
{
	struct nvp_list_run run = nvp_list_item_at(list, index), before = run;
	uint64_t items = nvmepeer_list_items(list);

	while (run.end < items) {
		struct nvp_list_run item = nvp_list_item_at(list, run.end);

		if (!nvp_list_shares(queue, list, &before, &item))
			break;
		run.bytes += item.bytes;
		run.end++;
		before = item;
	}
	return run;
}

/* Items of a thread: it transfers the runs that begin there. */
struct nvp_list_range {
	uint32_t at;
	uint32_t end;
};

/* Part @index of @parts of a list. */
NVP_FN struct nvp_list_range nvp_list_part(const struct nvmepeer_list *list, uint32_t index,
					   uint32_t parts)
{
	uint64_t items = nvmepeer_list_items(list), each = (items + parts - 1) / parts;
	uint64_t at = index * each, end = at + each;
	struct nvp_list_range range;

	range.at = (uint32_t)(at < items ? at : items);
	range.end = (uint32_t)(end < items ? end : items);
	return range;
}

/* The next run of a range. */
NVP_FN struct nvp_list_run nvp_list_next(const struct nvmepeer_queue *queue,
					 const struct nvmepeer_list *list,
					 struct nvp_list_range *range)
{
	struct nvp_list_run none = { 0, 0, 0, 0, 0, 0 }, run, before;

	for (; range->at < range->end; range->at++) {
		run = nvp_list_item_at(list, range->at);
		if (!range->at)
			break;
		before = nvp_list_item_at(list, range->at - 1);
		if (!nvp_list_shares(queue, list, &before, &run))
			break;
	}
	if (range->at >= range->end)
		return none;
	run = nvp_list_run_at(queue, list, range->at);
	range->at = run.end;
	return run;
}

NVP_FN void nvp_list_set_status(const struct nvmepeer_list *list, const struct nvp_list_run *run,
				int status)
{
	for (uint32_t i = run->first; i < run->end; i++) {
		if (list->items)
			list->items[i].status = status;
		else if (list->statuses)
			list->statuses[i] = status;
	}
}

/* Set the status of the items in part @index of @parts of a list that is refused. */
NVP_FN void nvp_list_refuse_part(const struct nvmepeer_list *list, uint32_t index, uint32_t parts,
				 int status)
{
	struct nvp_list_range range = nvp_list_part(list, index, parts);
	struct nvp_list_run run = { range.at, range.end, 0, 0, 0, 0 };

	nvp_list_set_status(list, &run, status);
}

/* Why a run cannot be transferred, or 0.  Its command is refused if it is empty. */
NVP_FN int nvp_list_run_check(const struct nvmepeer_list *list, const struct nvp_list_run *run)
{
	const struct nvmepeer_buffer *buffer;

	if (run->memory >= list->memory_count)
		return NVMEPEER_E_RANGE;
	buffer = &list->memories[run->memory].buffer;
	if (run->bytes > buffer->length || run->offset > buffer->length - run->bytes)
		return NVMEPEER_E_RANGE;
	if (((uint32_t)run->bytes | (uint32_t)run->offset | (uint32_t)buffer->dma) & 3)
		return NVMEPEER_E_ALIGN;
	return NVMEPEER_OK;
}

/* One command of a run: @blocks blocks, of which the items have @bytes bytes. */
struct nvp_list_piece {
	const struct nvmepeer_memory *memory;
	uint64_t lba;
	uint64_t offset;
	uint32_t bytes;
	uint32_t blocks;
};

/* The command of a run that begins @done blocks behind its begin. */
NVP_FN struct nvp_list_piece nvp_list_piece_at(const struct nvmepeer_queue *queue,
					       const struct nvmepeer_list *list,
					       const struct nvp_list_run *run, uint64_t done)
{
	struct nvp_list_piece piece = { &list->memories[run->memory], run->lba + done,
					run->offset + (done << queue->lba_shift), 0, 0 };
	uint64_t bytes = run->bytes - (done << queue->lba_shift), left;
	uint64_t most = nvp_max_blocks(queue, &piece.memory->buffer), limit = most;
	bool padded = bytes & nvp_block_mask(queue);

	left = nvp_padded_blocks(queue, bytes);
	if (padded && !nvp_list_by_sgl(queue, &piece.memory->buffer))
		limit = nvp_list_prp_blocks(queue);
	if (limit > most)
		limit = most;
	/* The last block stays for a command that may have padding. */
	if (left > limit) {
		left -= padded;
		left = left < most ? left : most;
		bytes = left << queue->lba_shift;
	}
	piece.blocks = (uint32_t)left;
	piece.bytes = (uint32_t)bytes;
	return piece;
}

NVP_FN bool nvp_list_is_padded(const struct nvmepeer_queue *queue,
			       const struct nvp_list_piece *piece)
{
	return piece->bytes & nvp_block_mask(queue);
}

/* Byte offset of scratch page @number in its memory. */
NVP_FN uint64_t nvp_scratch_offset(const struct nvmepeer_queue *queue,
				   const struct nvmepeer_scratch *scratch, uint32_t number)
{
	return scratch->offset + ((uint64_t)number << queue->page_shift);
}

NVP_FN uint64_t nvp_scratch_dma(const struct nvmepeer_queue *queue,
				const struct nvmepeer_scratch *scratch, uint32_t number)
{
	return nvp_dma(queue, &scratch->memory->buffer,
		       nvp_scratch_offset(queue, scratch, number));
}

NVP_FN uint32_t nvp_scratch_slot(const struct nvmepeer_scratch *scratch, uint32_t slot)
{
	return NVP_SCRATCH_SLOTS + scratch->first + slot;
}

/* The scratch page of padding that no slot has. */
NVP_FN uint32_t nvp_scratch_padding(const struct nvmepeer_list *list)
{
	return list->opcode == NVMEPEER_OP_READ ? NVP_SCRATCH_DISCARD : NVP_SCRATCH_ZEROS;
}

/*
 * Can a command with padding be built?  It needs a scratch page, which the peer
 * accesses; with PRPs it needs to access the data memory, too.
 */
NVP_FN int nvp_scratch_check(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			     const struct nvp_list_piece *piece, uint32_t slot)
{
	const struct nvmepeer_scratch *scratch = list->scratch;
	uint32_t page = nvp_page_bytes(queue);

	if (!scratch || slot >= scratch->slots || !scratch->memory->address ||
	    (!piece->memory->address && !nvp_list_by_sgl(queue, &piece->memory->buffer)) ||
	    ((queue->flags & NVMEPEER_ONE_RANGE) && queue->lba_shift > queue->page_shift))
		return NVMEPEER_E_ADDRESS;
	if (nvp_scratch_offset(queue, scratch, nvp_scratch_slot(scratch, slot)) + page >
	    scratch->memory->buffer.length)
		return NVMEPEER_E_RANGE;
	return nvp_scratch_dma(queue, scratch, 0) & (page - 1) ? NVMEPEER_E_ALIGN : NVMEPEER_OK;
}

/*
 * The part of a command's data that lies in a scratch page because padding follows
 * it in the same controller page: @bytes bytes, @in_page bytes from the begin of
 * that page.
 */
struct nvp_list_tail {
	uint32_t in_page;
	uint32_t bytes;
};

NVP_FN struct nvp_list_tail nvp_list_tail_of(const struct nvmepeer_queue *queue,
					     const struct nvp_list_piece *piece)
{
	uint32_t page = nvp_page_bytes(queue), first, end;
	struct nvp_list_tail tail = { 0, 0 };

	if (!nvp_list_is_padded(queue, piece) || nvp_list_by_sgl(queue, &piece->memory->buffer))
		return tail;
	tail.bytes = piece->bytes;
	if (queue->flags & NVMEPEER_ONE_RANGE)
		return tail;
	first = (uint32_t)nvp_dma(queue, &piece->memory->buffer, piece->offset) & (page - 1);
	end = (first + piece->bytes) & (page - 1);
	tail.bytes = end < piece->bytes ? end : piece->bytes;
	tail.in_page = end - tail.bytes;
	return tail;
}

/* Words of a copy whose loads are in flight together. */
#define NVP_COPY_WORDS 8

/* Copy words by one thread. */
NVP_FN void nvp_copy_words(uint64_t to, uint64_t from, uint32_t bytes)
{
	uint32_t *target = (uint32_t *)(uintptr_t)to, words = bytes / 4, i = 0;
	const uint32_t *source = (const uint32_t *)(uintptr_t)from;
	uint32_t word[NVP_COPY_WORDS];

	for (; words - i >= NVP_COPY_WORDS; i += NVP_COPY_WORDS) {
		for (uint32_t k = 0; k < NVP_COPY_WORDS; k++)
			word[k] = source[i + k];
		for (uint32_t k = 0; k < NVP_COPY_WORDS; k++)
			target[i + k] = word[k];
	}
	for (; i < words; i++)
		target[i] = source[i];
}

/*
 * Copy the tail of a command between its scratch page and the data memory.  Before
 * a write the rest of the scratch page is zeroed, as far as the command reads it.
 */
NVP_FN void nvp_list_copy_tail(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			       const struct nvp_list_piece *piece, uint32_t slot)
{
	const struct nvmepeer_scratch *scratch = list->scratch;
	struct nvp_list_tail tail = nvp_list_tail_of(queue, piece);
	uint64_t page, data;

	if (!tail.bytes)
		return;
	page = scratch->memory->address +
	       nvp_scratch_offset(queue, scratch, nvp_scratch_slot(scratch, slot));
	data = piece->memory->address + piece->offset + piece->bytes - tail.bytes;
	if (list->opcode == NVMEPEER_OP_READ) {
		nvp_copy_words(data, page + tail.in_page, tail.bytes);
		return;
	}
	nvp_copy_words(page + tail.in_page, data, tail.bytes);
	for (uint32_t at = tail.in_page + tail.bytes; at < nvp_page_bytes(queue); at += 4)
		*(uint32_t *)(uintptr_t)(page + at) = 0;
}

/* What a thread keeps for the submission of a command with padding. */
struct nvp_list_work {
	struct nvmepeer_buffer buffer;
	struct nvmepeer_sqe entry;
	uint64_t pages[NVP_LIST_PAGES + 1];
};

/*
 * Of one range, a scratch page takes the block.  By PRPs: the controller page where
 * the data ends is a scratch page if padding follows in it, and those behind it are
 * another one.  Returns the byte offset of the data in the buffer that the work now
 * has.
 */
NVP_FN uint64_t nvp_list_redirect(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_list *list,
				  const struct nvp_list_piece *piece, uint32_t slot,
				  struct nvp_list_work *work)
{
	const struct nvmepeer_buffer *buffer = &piece->memory->buffer;
	const struct nvmepeer_scratch *scratch = list->scratch;
	uint32_t page = nvp_page_bytes(queue);
	uint64_t first = nvp_dma(queue, buffer, piece->offset) & (page - 1);
	uint64_t end = first + piece->bytes, at, index = 0;
	uint64_t padded = first + ((uint64_t)piece->blocks << queue->lba_shift);

	if (queue->flags & NVMEPEER_ONE_RANGE) {
		work->buffer.length = page;
		work->buffer.dma = nvp_scratch_dma(queue, scratch, nvp_scratch_slot(scratch, slot));
		work->buffer.pages = 0;
		return 0;
	}
	for (at = 0; at < padded; at += page, index++) {
		if (at + page <= end)
			work->pages[index] = nvp_dma(queue, buffer, piece->offset + at - first);
		else if (at < end)
			work->pages[index] =
				nvp_scratch_dma(queue, scratch, nvp_scratch_slot(scratch, slot));
		else
			work->pages[index] =
				nvp_scratch_dma(queue, scratch, nvp_scratch_padding(list));
	}
	work->buffer.length = at;
	work->buffer.dma = 0;
	work->buffer.pages = (uint64_t)(uintptr_t)work->pages;
	return first;
}

/* Types of SGL descriptors, in the upper half (base specification 4.1.2). */
#define NVP_SGL_BIT_BUCKET ((uint64_t)1 << 60)
#define NVP_SGL_LAST_SEGMENT 3u

/* Store one SGL descriptor; returns the address of the next. */
NVP_FN uint64_t nvp_sgl_store(uint64_t at, uint64_t address, uint64_t length_and_type)
{
	nvp_list_store(at, address);
	nvp_list_store(at + 8, length_and_type);
	return at + 16;
}

/*
 * By an SGL: a segment in the scratch page has a descriptor of the data and one or
 * more of the padding.
 */
NVP_FN void nvp_list_segment(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			     const struct nvp_list_piece *piece, uint32_t slot,
			     struct nvmepeer_sqe *entry)
{
	const struct nvmepeer_scratch *scratch = list->scratch;
	uint32_t number = nvp_scratch_slot(scratch, slot), page = nvp_page_bytes(queue);
	uint64_t start = scratch->memory->address + nvp_scratch_offset(queue, scratch, number);
	uint64_t dma = nvp_scratch_dma(queue, scratch, number);
	uint32_t padding = (piece->blocks << queue->lba_shift) - piece->bytes;
	uint64_t at = nvp_sgl_store(start, piece->memory->buffer.dma + piece->offset, piece->bytes);

	if (list->opcode == NVMEPEER_OP_READ && (queue->flags & NVMEPEER_SGL_BIT_BUCKET)) {
		at = nvp_sgl_store(at, 0, NVP_SGL_BIT_BUCKET | padding);
		padding = 0;
	}
	while (padding) {
		uint32_t bytes = padding < page ? padding : page;

		at = nvp_sgl_store(at, nvp_scratch_dma(queue, scratch, nvp_scratch_padding(list)),
				   bytes);
		padding -= bytes;
	}
	entry->dword[0] |= 1u << 14;
	entry->dword[6] = (uint32_t)dma;
	entry->dword[7] = (uint32_t)(dma >> 32);
	entry->dword[8] = (uint32_t)(at - start);
	entry->dword[9] = NVP_SGL_LAST_SEGMENT << 28;
}

/*
 * Prepare a command with padding.  Not inlined, since few have any and it would
 * take registers of the others.
 */
NVP_NOINLINE_FN struct nvp_submission nvp_list_pad(const struct nvmepeer_queue *queue,
						   const struct nvmepeer_list *list,
						   const struct nvp_list_piece *piece,
						   uint32_t slot, struct nvp_list_work *work)
{
	struct nvmepeer_command command = { list->opcode, piece->blocks, piece->lba,
					    &piece->memory->buffer, piece->offset, list->control };
	struct nvp_submission submission = { command, NULL, 0, 0 };

	submission.bad = nvp_scratch_check(queue, list, piece, slot);
	/* An abandoned command may still access the slot. */
	if (!submission.bad && nvp_load32(&queue->state->abandoned) && nvmepeer_abandoned(queue))
		submission.bad = NVMEPEER_E_BUSY;
	if (submission.bad)
		return submission;
	if (nvp_list_by_sgl(queue, &piece->memory->buffer)) {
		nvp_encode(queue, &command, 0, &work->entry);
		nvp_list_segment(queue, list, piece, slot, &work->entry);
		submission.entry = &work->entry;
		return submission;
	}
	if (list->opcode != NVMEPEER_OP_READ)
		nvp_list_copy_tail(queue, list, piece, slot);
	command.offset = nvp_list_redirect(queue, list, piece, slot, work);
	command.buffer = &work->buffer;
	return nvp_submission_of(queue, &command);
}

/*
 * Prepare the submission of one command.  @work must stay until it is submitted.
 */
NVP_FN struct nvp_submission nvp_list_prepare(const struct nvmepeer_queue *queue,
					      const struct nvmepeer_list *list,
					      const struct nvp_list_piece *piece, uint32_t slot,
					      struct nvp_list_work *work)
{
	struct nvmepeer_command command = { list->opcode, piece->blocks, piece->lba,
					    &piece->memory->buffer, piece->offset, list->control };

	if (nvp_list_is_padded(queue, piece))
		return nvp_list_pad(queue, list, piece, slot, work);
	return nvp_submission_of(queue, &command);
}

/*
 * After @last, an earlier status of this thread, nothing is submitted: the status
 * of an item that was not tried.
 */
NVP_FN int nvp_list_untried(int last)
{
	return last == NVMEPEER_E_LOST ? last : (int)NVMEPEER_E_FULL;
}

/*
 * Where a lane is in its part of a list.  @run: of the last command, of which @left
 * blocks are left behind @at.  @status: of the run whose command ended last.
 * @worst: of all that has ended.  @end: the first status after which nothing is
 * submitted, or 0.
 */
struct nvp_list_walk {
	struct nvp_list_range range;
	struct nvp_list_run run;
	uint64_t at;
	uint64_t left;
	int status;
	int worst;
	int end;
};

/*
 * A command of a lane: of @run, from @at blocks behind its begin on.  @sent.status is
 * not 0 if it is not in flight.
 */
struct nvp_list_flight {
	struct nvp_list_run run;
	uint64_t at;
	struct nvp_sent sent;
	bool used;
	bool padded;
	bool last;		/* of the run */
};

NVP_FN struct nvp_list_flight nvp_list_no_flight(void)
{
	struct nvp_list_flight none = { { 0, 0, 0, 0, 0, 0 }, 0,
					{ NVMEPEER_E_FULL, 0, { NVMEPEER_NO_CID, 0 }, 0 },
					false, false, false };

	return none;
}

/*
 * The next command of a lane; one that is not used if there is none.  All lanes must
 * find the same runs, so the limits of @first decide them.
 */
NVP_FN struct nvp_list_flight nvp_list_take(const struct nvmepeer_queue *queue,
					    const struct nvmepeer_list *list,
					    const struct nvmepeer_queue *first,
					    struct nvp_list_walk *walk)
{
	struct nvp_list_flight flight = nvp_list_no_flight();
	struct nvp_list_piece piece;
	int bad;

	if (!walk->left) {
		walk->run = nvp_list_next(first, list, &walk->range);
		walk->at = 0;
		if (!walk->run.end)
			return flight;
	}
	flight.run = walk->run;
	flight.at = walk->at;
	flight.used = flight.last = true;
	bad = walk->end ? nvp_list_untried(walk->end) : nvp_list_run_check(list, &walk->run);
	if (bad) {
		walk->left = 0;
		flight.sent.status = bad;
		return flight;
	}
	piece = nvp_list_piece_at(queue, list, &walk->run, walk->at);
	walk->at += piece.blocks;
	walk->left = nvp_padded_blocks(queue, walk->run.bytes) - walk->at;
	flight.padded = nvp_list_is_padded(queue, &piece);
	flight.last = !walk->left;
	flight.sent.status = NVMEPEER_OK;
	return flight;
}

/* Prepare the submission of a lane's command, which is bad if it is not to be sent. */
NVP_FN struct nvp_submission nvp_list_submission(const struct nvmepeer_queue *queue,
						 const struct nvmepeer_list *list,
						 const struct nvp_list_flight *flight,
						 uint32_t slot, struct nvp_list_work *work)
{
	struct nvp_submission none = { { 0, 0, 0, NULL, 0, list->control }, NULL, 0,
				       flight->sent.status };
	struct nvp_list_piece piece;

	if (none.bad)
		return none;
	piece = nvp_list_piece_at(queue, list, &flight->run, flight->at);
	return nvp_list_prepare(queue, list, &piece, slot, work);
}

/*
 * Submit the commands of the lanes without waiting.  Collective.  Returns false, with
 * nothing submitted, if there is no room for all of them, or if the list is in the
 * background.
 */
NVP_FN bool nvp_list_send(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
			  const struct nvmepeer_list *list, struct nvp_list_flight *flight,
			  uint32_t slot, struct nvp_list_work *work)
{
	struct nvp_submission submission = nvp_list_submission(queue, list, flight, slot, work);

	if (!nvp_send_all(queue, group, !submission.bad, &submission, &flight->sent)) {
		flight->sent.status = submission.bad;
		return false;
	}
	if (submission.bad)
		flight->sent.status = submission.bad;
	return true;
}

/*
 * The same where nothing was submitted: wait for room, which nothing of the group's own may
 * prevent, and for the commands.  Collective.  Returns the status of the lane's command.
 */
NVP_NOINLINE_FN int nvp_list_execute(const struct nvmepeer_queue *queue,
				     struct nvmepeer_group group,
				     const struct nvmepeer_list *list,
				     const struct nvp_list_flight *flight, uint32_t slot,
				     struct nvp_list_work *work)
{
	return nvp_execute_partial(group, queue,
				   nvp_list_submission(queue, list, flight, slot, work),
				   queue->timeout_ns).status;
}

/* A lane's command has ended with @status, as the controller wrote it. */
NVP_FN void nvp_list_end(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			 struct nvp_list_flight *flight, uint32_t slot, int status,
			 struct nvp_list_walk *walk)
{
	status = nvp_return_status(status);
	if (!status && flight->padded && list->opcode == NVMEPEER_OP_READ) {
		struct nvp_list_piece piece = nvp_list_piece_at(queue, list, &flight->run,
								flight->at);

		nvp_list_copy_tail(queue, list, &piece, slot);
	}
	walk->status = flight->at ? nvp_worse(walk->status, status) : status;
	walk->worst = nvp_worse(walk->worst, status);
	if (!walk->end && nvp_ends(status))
		walk->end = status;
	if (flight->last)
		nvp_list_set_status(list, &flight->run, walk->status);
	*flight = nvp_list_no_flight();
}

/*
 * Wait for the commands in flight.  Collective.  One that is in flight when the lane's
 * list ends by a timeout was so during all of that.
 */
NVP_FN void nvp_list_land(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
			  const struct nvmepeer_list *list, struct nvp_list_flight *flight,
			  uint32_t slot, struct nvp_list_walk *walk)
{
	nvmepeer_mask waiting = nvp_group_ballot(group, flight->used);
	struct nvp_outcome outcome;
	uint32_t ticket;

	if (!waiting)
		return;
	/* The leader's decides how often the group polls. */
	ticket = nvp_group_copy32(group, flight->sent.token.ticket, nvp_mask_first(waiting));
	if (!flight->used)
		flight->sent.token.ticket = ticket;
	outcome = nvp_wait_sent(group, queue, flight->sent, walk->end ? 0 : queue->timeout_ns);
	if (flight->used)
		nvp_list_end(queue, list, flight, slot, outcome.status, walk);
}

/*
 * Transfer part @index of @parts of a list.  Collective: the lanes of a group share
 * submissions.  Each has two commands in flight, so that the controller has one of
 * them while the group waits for the slowest of the others; but one with padding, as
 * the thread has one scratch page, and one in the background.  Returns the worst status of the lane.
 */
NVP_FN int nvp_list_transfer_part(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				  const struct nvmepeer_list *list, uint32_t index, uint32_t parts,
				  const struct nvmepeer_queue *first)
{
	struct nvp_list_walk walk = { nvp_list_part(list, index, parts), { 0, 0, 0, 0, 0, 0 },
				      0, 0, NVMEPEER_OK, NVMEPEER_OK, NVMEPEER_OK };
	struct nvp_list_flight before = nvp_list_no_flight(), now;
	struct nvp_list_work work;

	if (nvmepeer_list_items(list) > 0xffffffffu)
		return NVMEPEER_E_TOO_LARGE;
	while (nvp_group_ballot(group, before.used || walk.left || walk.range.at < walk.range.end)) {
		bool sent;

		now = nvp_list_take(queue, list, first, &walk);
		if (nvp_group_ballot(group, now.padded && before.padded))
			nvp_list_land(queue, group, list, &before, index, &walk);
		sent = nvp_list_send(queue, group, list, &now, index, &work);
		nvp_list_land(queue, group, list, &before, index, &walk);
		if (!sent && walk.end && !now.sent.status)
			now.sent.status = nvp_list_untried(walk.end);
		if (!sent)
			now.sent.status = nvp_list_execute(queue, group, list, &now, index, &work);
		if (now.used && (!sent || now.sent.status))
			nvp_list_end(queue, list, &now, index, now.sent.status, &walk);
		before = now;
	}
	return walk.worst;
}

/**
 * nvmepeer_list_transfer - execute a list of transfers by one thread
 * @queue: the queue pair
 * @list: the list
 *
 * Any thread.  Waits for all of them, nvmepeer_geometry.timeout_ns at most for
 * each command, of which up to two are in flight.  Sets the status of each item and
 * returns the worst.  After an item with NVMEPEER_E_TIMEOUT or _E_FULL the thread
 * submits no more than the command that it has prepared: the others get NVMEPEER_E_FULL, after a loss NVMEPEER_E_LOST.
 * NVMEPEER_E_ALIGN: an item or the scratch memory is misaligned; _E_RANGE: it is
 * outside its memory; _E_TOO_LARGE: it is neither, and empty; _E_ADDRESS: it has
 * padding, and there is no scratch page, or its memory has no address; _E_BUSY: it has
 * padding, and an earlier command has timed out, see struct nvmepeer_scratch.  With
 * NVMEPEER_ONE_RANGE: _E_NO_LIST: a command leaves a page of scattered memory;
 * _E_ADDRESS: an item has padding, and blocks are longer than a page.  A list of more
 * than 2^32 - 1 items is refused with _E_TOO_LARGE and no statuses.
 */
NVP_FN int nvmepeer_list_transfer(const struct nvmepeer_queue *queue,
				  const struct nvmepeer_list *list)
{
	return nvp_list_transfer_part(queue, nvmepeer_group_self(), list, 0, 1, queue);
}

/**
 * nvmepeer_warp_list_transfer - nvmepeer_list_transfer() by a warp
 * @queue: the queue pair
 * @group: the lanes that call together
 * @list: the same for every lane
 *
 * The lanes share the items: those of one command are transferred by one lane.
 * After the return each lane may use all statuses, and the data of each item whose
 * status is 0.
 */
NVP_FN int nvmepeer_warp_list_transfer(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group,
				       const struct nvmepeer_list *list)
{
	int status;

	nvp_group_sync(group);
	status = nvp_list_transfer_part(queue, group, list, nvp_rank(group.mask, group.lane),
					nvp_mask_count(group.mask), queue);
	return nvp_group_status(group, status);
}

/**
 * nvmepeer_block_list_transfer - nvmepeer_list_transfer() by a block
 * @queues: queue pairs of one controller; the warps are distributed over them
 * @count: number of queue pairs
 * @list: the same for every thread
 * @shared: a word in shared memory of the block
 *
 * All threads of the block call together; the lanes of a warp must be together.
 * After the return each thread may use all statuses and data.
 */
NVP_FN int nvmepeer_block_list_transfer(const struct nvmepeer_queue *queues, uint32_t count,
					const struct nvmepeer_list *list, uint32_t *shared)
{
	const struct nvmepeer_queue *queue = &queues[nvp_block_thread() / NVMEPEER_LANES % count];
	int status;

	if (!nvp_block_thread())
		*shared = 0;
	nvp_block_sync();
	status = nvp_list_transfer_part(queue, nvmepeer_group_join(queue), list,
					nvp_block_thread(), nvp_block_threads(), queues);
	return nvp_block_worst(shared, status);
}

/*
 * Submit a run: one command, whose token is that of its first item.  In two steps
 * an item longer than a command is refused.
 */
NVP_FN int nvp_list_submit_run(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			       const struct nvp_list_run *run, struct nvmepeer_token *token)
{
	int bad = nvp_list_run_check(list, run);
	struct nvp_list_piece piece;
	struct nvp_list_work work;

	if (bad)
		return bad;
	piece = nvp_list_piece_at(queue, list, run, 0);
	if (piece.blocks < nvp_padded_blocks(queue, run->bytes))
		return NVMEPEER_E_TOO_LARGE;
	return nvp_submit_one(queue, nvp_list_prepare(queue, list, &piece, run->first, &work), token,
			      queue->timeout_ns);
}

/* Submit part @index of @parts of a list.  Collective. */
NVP_FN int nvp_list_submit_part(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				const struct nvmepeer_list *list,
				const struct nvmepeer_batch *batch, uint32_t index, uint32_t parts)
{
	struct nvp_list_range range = nvp_list_part(list, index, parts);
	int worst = NVMEPEER_OK, last = NVMEPEER_OK;

	while (nvp_group_ballot(group, range.at < range.end)) {
		struct nvp_list_run run = nvp_list_next(queue, list, &range);
		struct nvmepeer_token token = { NVMEPEER_NO_CID, 0 };

		nvp_group_sync(group);
		if (!run.end)
			continue;
		last = nvp_ends(last) ? nvp_list_untried(last) :
		       nvp_list_submit_run(queue, list, &run, &token);
		nvp_list_set_status(list, &run, last ? last : (int)NVMEPEER_AGAIN);
		worst = nvp_worse(worst, last);
		for (uint32_t i = run.first; i < run.end; i++) {
			batch->tokens[i] = token;
			token.cid = NVMEPEER_NO_CID;
		}
	}
	return worst;
}

/* Can the batch hold a token for each item? */
NVP_FN bool nvp_list_fits(const struct nvmepeer_list *list, const struct nvmepeer_batch *batch)
{
	return nvmepeer_list_items(list) <= batch->most;
}

/**
 * nvmepeer_warp_list_submit - submit the commands of a list by a warp
 * @queue: the queue pair
 * @group: the lanes that call together; nvmepeer_group_self() for one thread
 * @list: the same for every lane.  It and all that it points to stay unchanged
 *	until the batch has been waited for
 * @batch: the same for every lane, with nothing in flight; a token for each item
 *
 * Like nvmepeer_warp_submit(), which says what may be in flight after a failure.
 * Items in flight have status NVMEPEER_AGAIN, the others why they are not.
 * NVMEPEER_E_TOO_LARGE: the batch has too few tokens, of which all items have the
 * status; or an item is empty or needs more than one command.  An item with padding
 * that PRPs describe needs a second one beyond 32 controller pages, and with
 * NVMEPEER_ONE_RANGE beyond a block.
 *
 * Wait for the batch by nvmepeer_warp_list_wait(), _list_poll() or
 * nvmepeer_block_list_wait() only: plain calls for batches and
 * nvmepeer_warp_deliver() set no statuses and leave the tails of items with
 * padding in the scratch memory.
 */
NVP_FN int nvmepeer_warp_list_submit(const struct nvmepeer_queue *queue,
				     struct nvmepeer_group group, const struct nvmepeer_list *list,
				     struct nvmepeer_batch *batch)
{
	bool fits = nvp_list_fits(list, batch);
	int status = NVMEPEER_E_TOO_LARGE;

	nvp_group_sync(group);
	if (fits)
		status = nvp_list_submit_part(queue, group, list, batch,
					      nvp_rank(group.mask, group.lane),
					      nvp_mask_count(group.mask));
	else
		nvp_list_refuse_part(list, nvp_rank(group.mask, group.lane),
				     nvp_mask_count(group.mask), status);
	return nvp_batch_submitted(group, batch, fits ? (uint32_t)nvmepeer_list_items(list) : 0,
				   status);
}

/* The command of item @index has ended with @status: finish its items. */
NVP_FN void nvp_list_finish(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			    uint32_t index, int status)
{
	struct nvp_list_run run = nvp_list_run_at(queue, list, index);
	struct nvp_list_piece piece = nvp_list_piece_at(queue, list, &run, 0);

	if (!status && list->opcode == NVMEPEER_OP_READ)
		nvp_list_copy_tail(queue, list, &piece, index);
	nvp_list_set_status(list, &run, status);
}

/* Wait for every @step-th item of a list, from @index on. */
NVP_FN int nvp_list_wait_part(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
			      const struct nvmepeer_batch *batch, uint32_t index, uint32_t step,
			      uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int worst = NVMEPEER_OK;

	for (uint32_t i = index; i < batch->count; i += step) {
		int status;

		if (batch->tokens[i].cid == NVMEPEER_NO_CID)
			continue;
		status = nvmepeer_wait(queue, batch->tokens[i], NULL,
				       nvp_time_left(start, timeout_ns));
		batch->tokens[i].cid = NVMEPEER_NO_CID;
		nvp_list_finish(queue, list, i, status);
		worst = nvp_worse(worst, status);
	}
	return worst;
}

/**
 * nvmepeer_warp_list_wait - wait for a list by a warp
 * @queue: the queue pair that it was submitted to
 * @group: the lanes that call together
 * @list: the list
 * @batch: from nvmepeer_warp_list_submit() or nvmepeer_block_list_submit()
 * @timeout_ns: how long to wait for all of it
 *
 * Like nvmepeer_warp_wait(); sets the status of each item.
 */
NVP_FN int nvmepeer_warp_list_wait(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				   const struct nvmepeer_list *list, struct nvmepeer_batch *batch,
				   uint64_t timeout_ns)
{
	int status;

	nvp_group_sync(group);
	status = nvp_list_wait_part(queue, list, batch, nvp_rank(group.mask, group.lane),
				    nvp_mask_count(group.mask), timeout_ns);
	return nvp_batch_finish(group, batch, nvp_group_status(group, status));
}

/* Poll this lane's commands of a list once, as nvp_batch_poll(). */
NVP_FN int nvp_list_poll_part(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
			      const struct nvmepeer_list *list, const struct nvmepeer_batch *batch,
			      int *worst)
{
	uint32_t step = nvp_mask_count(group.mask);
	int again = NVMEPEER_OK;

	for (uint32_t i = nvp_rank(group.mask, group.lane); i < batch->count; i += step) {
		int status;

		if (!nvp_batch_poll_one(queue, batch, i, &again, &status))
			continue;
		nvp_list_finish(queue, list, i, status);
		*worst = nvp_worse(*worst, status);
	}
	return again;
}

/**
 * nvmepeer_warp_list_poll - check once whether a list has completed
 *
 * Like nvmepeer_warp_poll().  Items that have completed have their status, and
 * after a barrier or __syncwarp() each lane may use their data.
 */
NVP_FN int nvmepeer_warp_list_poll(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				   const struct nvmepeer_list *list, struct nvmepeer_batch *batch)
{
	int again, worst = NVMEPEER_OK;

	nvp_group_sync(group);
	again = nvp_list_poll_part(queue, group, list, batch, &worst);
	return nvp_batch_polled(group, batch, again, worst);
}

/**
 * nvmepeer_block_list_submit - nvmepeer_warp_list_submit() by a block
 *
 * All threads of the block call together; the lanes of a warp must be together.
 * Has no barrier before it submits: before a write, the threads that stored the
 * data must pass a barrier.
 */
NVP_FN int nvmepeer_block_list_submit(const struct nvmepeer_queue *queue,
				      const struct nvmepeer_list *list,
				      struct nvmepeer_batch *batch)
{
	bool fits = nvp_list_fits(list, batch);
	int status = NVMEPEER_E_TOO_LARGE;

	nvp_block_begin(batch, fits ? (uint32_t)nvmepeer_list_items(list) : 0);
	if (fits)
		status = nvp_list_submit_part(queue, nvmepeer_group_join(queue), list, batch,
					      nvp_block_thread(), nvp_block_threads());
	else
		nvp_list_refuse_part(list, nvp_block_thread(), nvp_block_threads(), status);
	return nvp_block_status(batch, status);
}

/**
 * nvmepeer_block_list_wait - nvmepeer_warp_list_wait() by a block
 *
 * All threads of the block call together; on return each may use all statuses and
 * data.
 */
NVP_FN int nvmepeer_block_list_wait(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_list *list, struct nvmepeer_batch *batch,
				    uint64_t timeout_ns)
{
	int status = nvp_list_wait_part(queue, list, batch, nvp_block_thread(),
					nvp_block_threads(), timeout_ns);

	return nvp_block_finish(batch, status);
}

#endif /* NVMEPEER_DEVICE_LIST_H */
