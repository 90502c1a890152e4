/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/pages.h: page table of a cache in memory of the GPU, for kernels
 * that choose the pages which they need, as sparse attention does.  A table has the
 * pages of one sequence and layer: each is in a slot of the cache, or on the disk
 * only.  A block resolves the wanted pages, replaces pages that were not used for
 * long by those that it misses, reads these, and gets the block of each page in the
 * cache.  Nothing is allocated and no host call is made, so that the kernel may be
 * part of a CUDA graph.
 *
 * Pages are read only: their bytes are on the disk before they are in a table.
 */
#ifndef NVMEPEER_DEVICE_PAGES_H
#define NVMEPEER_DEVICE_PAGES_H

#include "batch.h"
#include "calls.h"
#include "command.h"
#include "compiler.h"
#include "nvme.h"
#include "opcodes.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/* An entry of a page in a slot has this bit, and the number of the slot. */
#define NVMEPEER_PAGE_RESIDENT (1u << 31)

/* Places on the disk are below this. */
#define NVMEPEER_PAGE_PLACES 0x7fffffffu

/* No page; no block of the cache. */
#define NVMEPEER_PAGE_NONE 0xffffffffu

/* The entry of a page while a thread takes its miss. */
#define NVP_PAGE_CLAIMED 0x7fffffffu

/* nvmepeer_page_slot.page of a slot that a command may still write. */
#define NVP_PAGE_LENT 0xfffffffeu

/**
 * struct nvmepeer_page_slot - a slot of the cache; internal
 * @page: the page in it, NVMEPEER_PAGE_NONE or NVP_PAGE_LENT
 * @place: place of that page on the disk
 * @used: the step in which the page was wanted last, and in bit 0 whether it was
 *	since the clock's hand has passed
 * @reserved: not used
 */
struct nvmepeer_page_slot {
	uint32_t page;
	uint32_t place;
	uint32_t used;
	uint32_t reserved;
};

/**
 * struct nvmepeer_pages - page table of a sequence and layer
 * @entries: for each page its place on the disk or NVMEPEER_PAGE_RESIDENT and a slot
 * @slots: the slots, zeroed; nvmepeer_block_pages_reset() sets them
 * @buffer: the cache; its blocks follow each other from byte 0 on
 * @lba: logical block of place 0
 * @count: number of pages
 * @slot_count: number of slots, below NVMEPEER_PAGE_RESIDENT
 * @first: block of slot 0 in the cache
 * @blocks: logical blocks of a page, no more than one command transfers
 * @hand: internal
 * @step: internal
 * @missing: internal
 * @reserved: not used
 *
 * Lies in memory of the device, as entries and slots do.  The caller sets all but
 * the internal fields, and each entry to the place of its page; it may set entries
 * that are not resident, and @count, between two steps.  A table is used by one
 * block at a time; tables of one cache may be used at the same time.
 */
struct nvmepeer_pages {
	uint32_t *entries;
	struct nvmepeer_page_slot *slots;
	const struct nvmepeer_buffer *buffer;
	uint64_t lba;
	uint32_t count;
	uint32_t slot_count;
	uint32_t first;
	uint32_t blocks;
	uint32_t hand;
	uint32_t step;
	uint32_t missing;
	uint32_t reserved;
};

/**
 * struct nvmepeer_page_miss - a page that is being read
 * @index: which of the wanted pages
 * @slot: the slot of the table that it is read into
 * @status: NVMEPEER_AGAIN while its command is in flight, or how it ended; see
 *	nvmepeer_page_poll() and nvmepeer_page_failed()
 * @replaced: internal: the page that was in the slot, or NVMEPEER_PAGE_NONE
 * @token: internal
 */
struct nvmepeer_page_miss {
	uint32_t index;
	uint32_t slot;
	int status;
	uint32_t replaced;
	struct nvmepeer_token token;
};

/**
 * struct nvmepeer_page_request - pages that are wanted in a step
 * @wanted: numbers of pages
 * @blocks: out: for each the block of the cache that has it, or NVMEPEER_PAGE_NONE
 * @statuses: out: for each its status; or NULL
 * @misses: array of @count; out: the pages that are read
 * @count: number of wanted pages
 * @missing: out: number of @misses
 * @status: out: the worst status
 *
 * Lies in memory that the block shares, as its arrays do: of the block, or of the
 * device.
 */
struct nvmepeer_page_request {
	const uint32_t *wanted;
	uint32_t *blocks;
	int *statuses;
	struct nvmepeer_page_miss *misses;
	uint32_t count;
	uint32_t missing;
	uint32_t status;
};

/* Set the results for wanted page @index, and the worst status. */
NVP_FN void nvp_page_result(struct nvmepeer_page_request *request, uint32_t index,
			    uint32_t block, int status)
{
	request->blocks[index] = block;
	if (request->statuses)
		request->statuses[index] = status;
	if (status)
		nvp_block_max(&request->status, (uint32_t)status);
}

/**
 * nvmepeer_block_pages_reset - initialise the slots of a table, by a block
 * @pages: the table; no entry is resident
 *
 * The caller zeroes the memory of new slots before.  To empty a table, it sets the
 * entries to the places again and calls this: slots that a command may still write
 * stay out of use until nvmepeer_block_pages_reclaim().
 */
NVP_FN void nvmepeer_block_pages_reset(struct nvmepeer_pages *pages)
{
	for (uint32_t i = nvp_block_thread(); i < pages->slot_count; i += nvp_block_threads()) {
		if (nvp_load32(&pages->slots[i].page) != NVP_PAGE_LENT)
			nvp_store32(&pages->slots[i].page, NVMEPEER_PAGE_NONE);
		nvp_store32(&pages->slots[i].used, 0);
	}
	if (!nvp_block_thread()) {
		nvp_store32(&pages->hand, 0);
		nvp_store32(&pages->step, 0);
		nvp_store32(&pages->missing, 0);
	}
	nvp_block_sync();
}

/**
 * nvmepeer_block_pages_reclaim - use slots again whose reads did not complete
 * @pages: the table
 *
 * After NVMEPEER_E_TIMEOUT, _E_LOST or _E_TOKEN (another thread used the token of a
 * miss) the controller may still write to a slot, which is out of use then.  Call this
 * when nvmepeer_abandoned() is 0 and no token is in use any more, or after a re-arm, for
 * each queue pair that was used.
 */
NVP_FN void nvmepeer_block_pages_reclaim(struct nvmepeer_pages *pages)
{
	nvp_block_sync();
	for (uint32_t i = nvp_block_thread(); i < pages->slot_count; i += nvp_block_threads())
		if (nvp_load32(&pages->slots[i].page) == NVP_PAGE_LENT)
			nvp_store32(&pages->slots[i].page, NVMEPEER_PAGE_NONE);
	nvp_block_sync();
}

/*
 * Look a wanted page up.  Of several threads that want the same page one takes the
 * miss: its @blocks has the place on the disk until it has a slot.
 */
NVP_FN void nvp_page_look_up(struct nvmepeer_pages *pages, struct nvmepeer_page_request *request,
			     uint32_t index, uint32_t step)
{
	uint32_t page = request->wanted[index], entry, slot;

	if (page >= pages->count) {
		nvp_page_result(request, index, NVMEPEER_PAGE_NONE, NVMEPEER_E_RANGE);
		return;
	}
	entry = nvp_load32(&pages->entries[page]);
	if (entry & NVMEPEER_PAGE_RESIDENT) {
		slot = entry & ~NVMEPEER_PAGE_RESIDENT;
		nvp_store32(&pages->slots[slot].used, step << 1 | 1);
		nvp_page_result(request, index, pages->first + slot, NVMEPEER_OK);
		return;
	}
	if (entry != NVP_PAGE_CLAIMED &&
	    nvp_compare_exchange32(&pages->entries[page], entry, NVP_PAGE_CLAIMED) == entry)
		request->misses[nvp_add32(&pages->missing, 1)].index = index;
	else
		entry = NVP_PAGE_CLAIMED;
	nvp_page_result(request, index, entry, NVMEPEER_OK);
}

/* Put the page of a miss into a slot, in place of the page there. */
NVP_FN void nvp_page_replace(struct nvmepeer_pages *pages, struct nvmepeer_page_request *request,
			     struct nvmepeer_page_miss *miss, uint32_t slot, uint32_t step)
{
	struct nvmepeer_page_slot *here = &pages->slots[slot];
	uint32_t page = request->wanted[miss->index], old = nvp_load32(&here->page);

	if (old != NVMEPEER_PAGE_NONE)
		nvp_store32(&pages->entries[old], nvp_load32(&here->place));
	nvp_store32(&here->page, page);
	nvp_store32(&here->place, request->blocks[miss->index]);
	nvp_store32(&here->used, step << 1 | 1);
	nvp_store32(&pages->entries[page], NVMEPEER_PAGE_RESIDENT | slot);
	miss->slot = slot;
	miss->replaced = old;
	miss->status = NVMEPEER_OK;
	miss->token.cid = NVMEPEER_NO_CID;
	request->blocks[miss->index] = pages->first + slot;
}

/* The lanes of the block's first warp. */
NVP_FN struct nvmepeer_group nvp_page_group(void)
{
	struct nvmepeer_group group = nvmepeer_group_full();
	uint32_t threads = nvp_block_threads();

	if (threads < NVMEPEER_LANES) {
		group.mask = ((nvmepeer_mask)1 << threads) - 1;
		group.single = threads == 1;
	}
	return group;
}

/*
 * One turn of the clock: the lanes look at a slot each, from @hand on.  In the order
 * of slots, each of the misses from number @taken on gets a slot that is empty or
 * whose page was not used since the hand has passed; used ones lose that mark.  Pages
 * wanted in this step stay.  Collective.  Returns by how many slots the hand moves.
 */
NVP_FN uint32_t nvp_page_turn(struct nvmepeer_pages *pages, struct nvmepeer_page_request *request,
			      struct nvmepeer_group group, uint32_t hand, uint32_t step,
			      uint32_t missing, uint32_t *taken)
{
	uint32_t lanes = nvp_mask_count(group.mask), rank, moves;
	uint32_t width = lanes < pages->slot_count ? lanes : pages->slot_count;
	uint32_t slot = (hand + group.lane) % pages->slot_count;
	uint32_t page = nvp_load32(&pages->slots[slot].page);
	uint32_t used = nvp_load32(&pages->slots[slot].used);
	bool empty = page == NVMEPEER_PAGE_NONE;
	bool stays = page == NVP_PAGE_LENT || (!empty && used >> 1 == (step & 0x7fffffff));
	bool free = group.lane < width && !stays && (empty || !(used & 1));
	nvmepeer_mask all = nvp_group_ballot(group, free), last;

	rank = *taken + nvp_rank(all, group.lane);
	last = nvp_group_ballot(group, free && rank == missing - 1);
	moves = last ? nvp_mask_first(last) + 1 : width;
	if (group.lane < moves && free)
		nvp_page_replace(pages, request, &request->misses[rank], slot, step);
	else if (group.lane < moves && !stays)
		nvp_store32(&pages->slots[slot].used, used & ~1u);
	*taken = last ? missing : *taken + nvp_mask_count(all);
	nvp_group_sync(group);
	return moves;
}

/*
 * Find a slot for each miss, by the first warp.  Two rounds of the clock find all
 * slots that do not stay.  Misses without a slot are given up.
 */
NVP_FN void nvp_page_find_slots(struct nvmepeer_pages *pages,
				struct nvmepeer_page_request *request, uint32_t step)
{
	uint32_t hand = nvp_load32(&pages->hand), missing = nvp_load32(&pages->missing);
	struct nvmepeer_group group = nvp_page_group();
	uint32_t taken = 0, seen = 0;

	while (taken < missing && seen < 2 * pages->slot_count) {
		uint32_t moves = nvp_page_turn(pages, request, group, hand, step, missing, &taken);

		hand = (hand + moves) % pages->slot_count;
		seen += moves;
	}
	for (uint32_t i = taken + group.lane; i < missing; i += nvp_mask_count(group.mask)) {
		uint32_t index = request->misses[i].index;

		nvp_store32(&pages->entries[request->wanted[index]], request->blocks[index]);
		nvp_page_result(request, index, NVMEPEER_PAGE_NONE, NVMEPEER_E_FULL);
	}
	nvp_group_sync(group);
	if (group.lane)
		return;
	nvp_store32(&pages->hand, hand);
	nvp_store32(&pages->step, step);
	nvp_store32(&pages->missing, 0);
	request->missing = taken;
}

/* A page that was wanted more than once is where the first one is. */
NVP_FN void nvp_page_repeat(struct nvmepeer_pages *pages, struct nvmepeer_page_request *request,
			    uint32_t index)
{
	uint32_t entry = nvp_load32(&pages->entries[request->wanted[index]]);

	if (entry & NVMEPEER_PAGE_RESIDENT)
		nvp_page_result(request, index, pages->first + (entry & ~NVMEPEER_PAGE_RESIDENT),
				NVMEPEER_OK);
	else
		nvp_page_result(request, index, NVMEPEER_PAGE_NONE, NVMEPEER_E_FULL);
}

/**
 * nvmepeer_block_pages_resolve - find the blocks of wanted pages, by a block
 * @pages: the table
 * @request: the wanted pages
 *
 * All threads of the block call together; the lanes of a warp must be together.
 * Begins a step.  Pages of this step are not replaced in it, the others by the clock.
 * Sets the block of each page.  The bytes of those in @misses are not there yet: the
 * caller reads them by nvmepeer_block_pages_submit() and _wait(), or brings them from
 * elsewhere.  A page that is wanted more than once is one miss; its other indices have
 * the status 0 and the same block, nvmepeer_pages.first + nvmepeer_page_miss.slot, and
 * their bytes are there when those of the miss are.  Until _wait() has returned, use
 * no block of a miss, unless nvmepeer_page_poll() has returned 0 for it.
 *
 * Returns to all threads 0 or the worst status: NVMEPEER_E_RANGE: no page of the
 * table; _E_FULL: more pages are wanted than there are slots that are not lent.  Pages
 * with these statuses have no block.  From _wait() they may also be those of a read:
 * outside of the buffer or the disk, or the queue pair stayed full.  A page that was
 * replaced is put back if nvmepeer_block_pages_submit() did not submit the read, as on a
 * queue pair that is lost or full.  nvmepeer_block_pages_read() puts it back only if the
 * queue pair was lost before, or if an earlier read of the same thread has ended with
 * NVMEPEER_E_TIMEOUT, _E_LOST or _E_FULL.
 */
NVP_FN int nvmepeer_block_pages_resolve(struct nvmepeer_pages *pages,
					struct nvmepeer_page_request *request)
{
	uint32_t thread = nvp_block_thread(), threads = nvp_block_threads();
	uint32_t step = nvp_load32(&pages->step) + 1;
	int status;

	if (!thread)
		request->status = 0;
	nvp_block_sync();
	for (uint32_t i = thread; i < request->count; i += threads)
		nvp_page_look_up(pages, request, i, step);
	nvp_block_sync();
	if (thread < NVMEPEER_LANES)
		nvp_page_find_slots(pages, request, step);
	nvp_block_sync();
	for (uint32_t i = thread; i < request->count; i += threads)
		if (request->blocks[i] == NVP_PAGE_CLAIMED)
			nvp_page_repeat(pages, request, i);
	status = (int)request->status;
	nvp_block_sync();
	return status;
}

/* The read of a miss. */
NVP_FN struct nvmepeer_command nvp_page_command(const struct nvmepeer_queue *queue,
						const struct nvmepeer_pages *pages,
						const struct nvmepeer_page_miss *miss)
{
	uint64_t place = nvp_load32(&pages->slots[miss->slot].place);
	uint64_t block = (uint64_t)pages->first + miss->slot;
	struct nvmepeer_command command = {
		NVMEPEER_OP_READ, pages->blocks, pages->lba + place * pages->blocks,
		pages->buffer, block * pages->blocks << queue->lba_shift, 0,
	};

	return command;
}

/* Submit the read of a miss.  @last: an earlier status of this thread. */
NVP_FN int nvp_page_submit(const struct nvmepeer_queue *queue, const struct nvmepeer_pages *pages,
			   struct nvmepeer_page_miss *miss, int last)
{
	struct nvmepeer_command command = nvp_page_command(queue, pages, miss);

	if (!nvp_ends(last))
		last = nvmepeer_submit(queue, &command, &miss->token, queue->timeout_ns);
	miss->status = last ? last : (int)NVMEPEER_AGAIN;
	return last;
}

/**
 * nvmepeer_block_pages_submit - submit the reads of the misses, by a block
 * @queue: the queue pair; blocks that run at the same time should use different ones
 * @pages: the table
 * @request: as nvmepeer_block_pages_resolve() returned it
 *
 * All threads of the block call together.  Waits for room in the queue but for no
 * completion.  The caller may use the other pages meanwhile, and has to call
 * nvmepeer_block_pages_wait() then, which reports all errors.
 *
 * Each miss keeps a CID until it has been waited for.  The misses of all blocks that
 * are between _submit() and _wait() on a queue pair, and its other commands, must not
 * be more than nvmepeer_cids(): the others wait for nvmepeer_geometry.timeout_ns and
 * end with NVMEPEER_E_FULL.  nvmepeer_block_pages_read() has no such limit.
 */
NVP_FN void nvmepeer_block_pages_submit(const struct nvmepeer_queue *queue,
					const struct nvmepeer_pages *pages,
					struct nvmepeer_page_request *request)
{
	int last = NVMEPEER_OK;

	for (uint32_t i = nvp_block_thread(); i < request->missing; i += nvp_block_threads())
		last = nvp_page_submit(queue, pages, &request->misses[i], last);
}

/* A page was not read: it is on the disk only. */
NVP_FN void nvp_page_fail(struct nvmepeer_pages *pages, struct nvmepeer_page_request *request,
			  const struct nvmepeer_page_miss *miss, int status)
{
	struct nvmepeer_page_slot *here = &pages->slots[miss->slot];
	bool submitted = miss->token.cid != NVMEPEER_NO_CID;
	bool lent = submitted && (status == NVMEPEER_E_TIMEOUT || status == NVMEPEER_E_LOST ||
				  status == NVMEPEER_E_TOKEN);

	nvp_store32(&pages->entries[request->wanted[miss->index]], nvp_load32(&here->place));
	if (!submitted && miss->replaced != NVMEPEER_PAGE_NONE) {
		/* The block still has the bytes of the page before. */
		nvp_store32(&here->place, nvp_load32(&pages->entries[miss->replaced]));
		nvp_store32(&pages->entries[miss->replaced], NVMEPEER_PAGE_RESIDENT | miss->slot);
		nvp_store32(&here->page, miss->replaced);
		nvp_store32(&here->used, nvp_load32(&here->used) & ~1u);
	} else {
		nvp_store32(&here->page, lent ? NVP_PAGE_LENT : NVMEPEER_PAGE_NONE);
	}
	nvp_page_result(request, miss->index, NVMEPEER_PAGE_NONE, status);
}

/**
 * nvmepeer_page_poll - check once whether the page of a miss has been read
 * @queue: the queue pair that the misses were submitted to
 * @miss: one of them; by one thread at a time
 *
 * For callers that do other work meanwhile, after _submit().  Returns NVMEPEER_AGAIN,
 * or 0 or the status of the read.  nvmepeer_block_pages_wait() has to follow in any
 * case; it does not wait for misses that have ended.  Any thread of the block may poll
 * any miss until it calls _wait(), behind a barrier after _submit().  After a return of
 * 0 the polling thread may use the page, the others behind a barrier.
 */
NVP_FN int nvmepeer_page_poll(const struct nvmepeer_queue *queue, struct nvmepeer_page_miss *miss)
{
	if (miss->status == NVMEPEER_AGAIN)
		miss->status = nvmepeer_poll(queue, miss->token, NULL);
	return miss->status;
}

/**
 * nvmepeer_page_failed - a miss that the caller brings from elsewhere did not come
 * @miss: one of those that nvmepeer_block_pages_resolve() returned; not submitted, and
 *	nothing writes its slot any more
 * @status: why: an NVMe status or enum nvmepeer_error, but NVMEPEER_AGAIN
 *
 * By one thread for each such miss.  nvmepeer_block_pages_wait() then takes the page
 * out of the table, and returns the status.
 */
NVP_FN void nvmepeer_page_failed(struct nvmepeer_page_miss *miss, int status)
{
	/* The slot may have been written. */
	miss->replaced = NVMEPEER_PAGE_NONE;
	miss->status = status;
}

/**
 * nvmepeer_block_pages_wait - wait for the reads of the misses, by a block
 * @queue: the queue pair that they were submitted to; may be NULL if none were
 * @pages: the table
 * @request: the same as of nvmepeer_block_pages_resolve()
 * @timeout_ns: how long to wait for all of them
 *
 * All threads of the block call together; after the return each may use all pages
 * that have a block.  A page whose read failed has none, and its entry is that of
 * its place again, so that a later step reads it again.  Returns to all threads 0 or
 * the worst status of the step, that of nvmepeer_block_pages_resolve() included.
 * After NVMEPEER_E_TIMEOUT, _E_LOST or _E_TOKEN see nvmepeer_block_pages_reclaim().  A
 * failed page that was wanted more than once has the worst status for the others.
 */
NVP_FN int nvmepeer_block_pages_wait(const struct nvmepeer_queue *queue,
				     struct nvmepeer_pages *pages,
				     struct nvmepeer_page_request *request, uint64_t timeout_ns)
{
	uint32_t thread = nvp_block_thread(), threads = nvp_block_threads();
	uint64_t start = nvmepeer_now_ns();
	int status;

	/* Other threads may still poll these misses, or say that they failed. */
	nvp_block_sync();
	for (uint32_t i = thread; i < request->missing; i += threads) {
		struct nvmepeer_page_miss *miss = &request->misses[i];

		status = miss->status;
		if (status == NVMEPEER_AGAIN)
			status = nvmepeer_wait(queue, miss->token, NULL,
					       nvp_time_left(start, timeout_ns));
		if (status)
			nvp_page_fail(pages, request, miss, status);
	}
	nvp_block_sync();
	status = (int)request->status;
	for (uint32_t i = thread; status && i < request->count; i += threads) {
		uint32_t block = request->blocks[i];

		if (block != NVMEPEER_PAGE_NONE &&
		    nvp_load32(&pages->slots[block - pages->first].page) != request->wanted[i])
			nvp_page_result(request, i, NVMEPEER_PAGE_NONE, status);
	}
	nvp_block_sync();
	return status;
}

/* Read a miss and wait for it.  @last: an earlier status of this thread. */
NVP_FN int nvp_page_read(const struct nvmepeer_queue *queue, const struct nvmepeer_pages *pages,
			 struct nvmepeer_page_miss *miss, int last)
{
	struct nvmepeer_command command = nvp_page_command(queue, pages, miss);
	/* NVP_LOST alone does not keep the read from being submitted. */
	bool lost = nvp_load64(&queue->state->tail) & NVP_TAIL_LOST;

	if (nvp_ends(last)) {
		miss->status = last == NVMEPEER_E_LOST ? last : (int)NVMEPEER_E_FULL;
		return last;
	}
	miss->status = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
	/* The command may have been submitted: any CID says so. */
	if (!lost)
		miss->token.cid = 0;
	return miss->status;
}

/**
 * nvmepeer_block_pages_read - resolve wanted pages and read those that are missing
 * @queue: the queue pair
 * @pages: the table
 * @request: the wanted pages
 *
 * Like nvmepeer_block_pages_resolve(), _submit() and _wait(), but each thread has one
 * read in flight: any number of misses, and blocks, may share a queue pair, whatever
 * its CIDs.  Each read waits for room and then for its completion, each for
 * nvmepeer_geometry.timeout_ns at most.
 */
NVP_FN int nvmepeer_block_pages_read(const struct nvmepeer_queue *queue,
				     struct nvmepeer_pages *pages,
				     struct nvmepeer_page_request *request)
{
	int last = NVMEPEER_OK;

	nvmepeer_block_pages_resolve(pages, request);
	for (uint32_t i = nvp_block_thread(); i < request->missing; i += nvp_block_threads())
		last = nvp_page_read(queue, pages, &request->misses[i], last);
	return nvmepeer_block_pages_wait(queue, pages, request, 0);
}

#endif /* NVMEPEER_DEVICE_PAGES_H */
