// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of users that passthrough moves without a bio.
 *
 * A bio costs as much as all else that we do for a small command: it is allocated, split
 * at limits that the command keeps to anyhow, ended and freed.  So where PRP entries can
 * say where the memory is, the request itself names it: buffers that are registered with
 * a ring, which the ring holds in place, and one or two pages, which we hold.  Everything
 * else, and what fails here, goes the block layer's way, which copies what does not fit
 * and knows each error.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
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
static unsigned int nvmep_pages_needed(const struct nvmep_user_command *command)
{
	unsigned int offset = offset_in_page(command->address);

	if (command->vector || command->metadata ||
	    (command->address | command->length) & NVMEP_DATA_ALIGNMENT ||
	    command->length > NVMEP_OWN_PIECES * PAGE_SIZE - offset)
		return 0;
	return DIV_ROUND_UP(offset + command->length, PAGE_SIZE);
}

static void nvmep_pages_to_pieces(struct nvmep_pieces *pieces,
				  struct page *const *pages, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		pieces->own[i] = (struct bio_vec){
			.bv_page = pages[i],
			.bv_len = PAGE_SIZE,
		};
	pieces->vec = pieces->own;
	pieces->count = count;
}

/**
 * nvmep_user_hold() - have a command move one or two pages of the caller's
 * @command: the command, with data
 * @rq: its request, without data
 * @pages: of %NVMEP_OWN_PIECES: filled, for nvmep_user_unhold()
 *
 * Return: how many pages are held; 0 if this is not for us, and nothing was done.
 */
unsigned int nvmep_user_hold(const struct nvmep_user_command *command,
			     struct request *rq, struct page **pages)
{
	unsigned int count = nvmep_pages_needed(command);
	struct nvmep_request *req = nvmep_request(rq);
	int held;

	if (!count)
		return 0;
	held = pin_user_pages_fast(command->address & PAGE_MASK, count,
				   rq_data_dir(rq) == READ ? FOLL_WRITE : 0,
				   pages);
	if (held != (int)count) {
		if (held > 0)
			unpin_user_pages(pages, held);
		return 0;
	}
	nvmep_pages_to_pieces(&req->data.pieces, pages, count);
	req->data.pieces.skip = offset_in_page(command->address);
	req->data.pieces.length = command->length;
	req->flags |= NVMEP_REQUEST_PIECES;
	return count;
}

/**
 * nvmep_user_unhold() - undo nvmep_user_hold()
 * @pages: that it filled
 * @count: what it returned
 * @written: the command may have changed them
 *
 * Sleeps where @written.
 */
void nvmep_user_unhold(struct page **pages, unsigned int count,
		       bool written)
{
	unpin_user_pages_dirty_lock(pages, count, written);
}
