// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of users that passthrough moves without a bio.
 *
 * A bio costs as much as all else that we do for a small command: it is allocated, split
 * at limits that the command keeps to anyhow, ended and freed.  So where PRP entries can
 * say where the memory is, the request itself names it: buffers that are registered with
 * a ring, which the ring holds in place, and not too many pages, which we hold.  Everything
 * else, and what fails here, goes the block layer's way, which copies what does not fit
 * and knows each error.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "command.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/request.h"
#include "usermem.h"

/* How many pieces the memory has, 0 if they do not all meet at pages. */
static unsigned int nvmep_pieces_count(const struct nvmep_pieces *pieces)
{
	const struct bio_vec *vec = pieces->vec;
	u64 reached = vec->bv_len - pieces->skip;
	unsigned int count = 1;

	while (reached < pieces->length) {
		if ((vec->bv_offset + vec->bv_len) & NVMEP_DATA_BOUNDARY)
			return 0;
		vec++;
		if (vec->bv_offset & NVMEP_DATA_BOUNDARY)
			return 0;
		reached += vec->bv_len;
		count++;
	}
	return count;
}

/**
 * nvmep_user_registered() - have a command move a ring's registered memory
 * @from: where the command came in
 * @rq: its request, without data
 * @iter: the memory, which stays where it is until the command has ended
 *
 * Return: false if it is not for us; nothing was done.
 */
bool nvmep_user_registered(const struct nvmep_passthru *from,
			   struct request *rq, const struct iov_iter *iter)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_pieces *pieces = &req->data.pieces;

	if (!iov_iter_is_bvec(iter) || !iter->count ||
	    iter->count > from->ctrl->max_transfer ||
	    iter->iov_offset >= iter->bvec->bv_len)
		return false;
	pieces->vec = iter->bvec;
	pieces->skip = iter->iov_offset;
	pieces->length = iter->count;
	if ((pieces->vec->bv_offset + pieces->skip) & NVMEP_DATA_ALIGNMENT ||
	    pieces->length & NVMEP_DATA_ALIGNMENT)
		return false;
	pieces->count = nvmep_pieces_count(pieces);
	if (!pieces->count)
		return false;
	req->flags |= NVMEP_REQUEST_PIECES;
	return true;
}

/* How many pages a command's memory lies in, 0 if it is not for us. */
static unsigned int nvmep_pages_needed(const struct nvmep_passthru *from,
				       const struct nvmep_user_command *command)
{
	unsigned int offset = offset_in_page(command->address);

	if (command->vector || command->metadata ||
	    (command->address | command->length) & NVMEP_DATA_ALIGNMENT ||
	    command->length > NVMEP_MOST_HELD * PAGE_SIZE - offset ||
	    command->length > from->ctrl->max_transfer)
		return 0;
	return DIV_ROUND_UP(offset + command->length, PAGE_SIZE);
}

/*
 * Pages that follow each other in memory are one piece: alone, it needs no scatter list. But
 * not over a multiple of 4 GiB, a device's segment boundary.
 */
static unsigned int nvmep_pages_join(struct bio_vec *vec,
				     struct page *const *pages,
				     unsigned int count)
{
	unsigned int i, pieces = 0;
	phys_addr_t end = 0, start;

	for (i = 0; i < count; i++) {
		start = page_to_phys(pages[i]);
		if (pieces && start == end && lower_32_bits(start))
			vec[pieces - 1].bv_len += PAGE_SIZE;
		else
			vec[pieces++] = (struct bio_vec){
				.bv_page = pages[i],
				.bv_len = PAGE_SIZE,
			};
		end = start + PAGE_SIZE;
	}
	return pieces;
}

/* True if all of them are held. */
static bool nvmep_pages_pin(u64 address, unsigned int count, bool written,
			    struct page **pages)
{
	int held = pin_user_pages_fast(address & PAGE_MASK, count,
				       written ? FOLL_WRITE : 0, pages);

	if (held > 0 && held < (int)count)
		unpin_user_pages(pages, held);
	return held == (int)count;
}

/* Room for so many pieces, and behind them for the pages, until they are pieces. */
static noinline struct bio_vec *nvmep_pieces_alloc(unsigned int count)
{
	return kmalloc(count * (sizeof(struct bio_vec) + sizeof(struct page *)),
		       GFP_KERNEL | __GFP_NOWARN);
}

/**
 * nvmep_user_hold() - have a command move pages of the caller's
 * @from: where the command came in
 * @command: the command, with data
 * @rq: its request, without data
 * @pages: filled, for nvmep_user_unhold()
 *
 * Return: how many pages are held; 0 if this is not for us, and nothing was done.
 */
unsigned int nvmep_user_hold(const struct nvmep_passthru *from,
			     const struct nvmep_user_command *command,
			     struct request *rq, union nvmep_user_pages *pages)
{
	unsigned int count = nvmep_pages_needed(from, command);
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_pieces *pieces = &req->data.pieces;
	struct bio_vec *vec = pieces->own;
	struct page **array = pages->few;
	bool many = count > NVMEP_OWN_PIECES;

	if (many) {
		vec = nvmep_pieces_alloc(count);
		array = (struct page **)(vec + count);
	}
	if (!count || !vec)
		return 0;
	if (!nvmep_pages_pin(command->address, count, rq_data_dir(rq) == READ,
			     array)) {
		if (many)
			kfree(vec);
		return 0;
	}
	pieces->vec = vec;
	pieces->skip = offset_in_page(command->address);
	pieces->length = command->length;
	pieces->count = nvmep_pages_join(vec, array, count);
	if (many)
		pages->many = vec;
	req->flags |= NVMEP_REQUEST_PIECES;
	return count;
}

static noinline void nvmep_unhold_many(struct bio_vec *pieces,
				       unsigned int count, bool written)
{
	const struct bio_vec *piece = pieces;
	unsigned int pages;

	for (; count; count -= pages, piece++) {
		pages = piece->bv_len >> PAGE_SHIFT;
		unpin_user_page_range_dirty_lock(piece->bv_page, pages,
						 written);
	}
	kfree(pieces);
}

/**
 * nvmep_user_unhold() - undo nvmep_user_hold()
 * @pages: that it filled
 * @count: what it returned
 * @written: the command may have changed them
 *
 * Sleeps where @written.
 */
void nvmep_user_unhold(union nvmep_user_pages *pages, unsigned int count,
		       bool written)
{
	if (count > NVMEP_OWN_PIECES)
		nvmep_unhold_many(pages->many, count, written);
	else
		unpin_user_pages_dirty_lock(pages->few, count, written);
}
