// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data and metadata of passthrough commands.
 *
 * For a small command, allocating, splitting and freeing a bio costs as much as
 * all else.  So data that PRP entries can describe is attached to the request
 * without a bio: buffers registered with an io_uring, which the ring keeps
 * pinned, and up to NVMEP_MAX_PINNED_PAGES user pages, which are pinned here.
 * For all other data, and if pinning fails, the caller maps a bio, for which
 * the block layer copies misaligned data and returns the errors.  It does so too
 * while the block layer counts passthrough, which it does by the bio.
 */
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/request.h"
#include "passthru.h"
#include "user_command.h"
#include "user_data.h"

/* --- data --------------------------------------------------------------- */

/* Segments, or 0 if they do not meet at pages, as PRP entries require. */
static unsigned int nvmep_segments_count(const struct nvmep_bvecs *bvecs)
{
	const struct bio_vec *vec = bvecs->vec;
	u64 reached = vec->bv_len - bvecs->skip;
	unsigned int count = 1;

	while (reached < bvecs->length) {
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
 * nvmep_user_map_registered() - attach a registered buffer to a request
 * @from: device node
 * @rq: request, without data
 * @iter: range of the buffer, pinned by io_uring until the command has ended
 *
 * Return: false if the caller has to map a bio.
 */
bool nvmep_user_map_registered(const struct nvmep_passthru *from,
			       struct request *rq, const struct iov_iter *iter)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_bvecs *bvecs = &req->data.bvecs;

	if (!iov_iter_is_bvec(iter) || !iter->count ||
	    iter->count > from->ctrl->max_transfer ||
	    nvmep_passthrough_counted(rq->q) ||
	    iter->iov_offset >= iter->bvec->bv_len)
		return false;
	bvecs->vec = iter->bvec;
	bvecs->skip = iter->iov_offset;
	bvecs->length = iter->count;
	if ((bvecs->vec->bv_offset + bvecs->skip) & NVMEP_DATA_ALIGNMENT ||
	    bvecs->length & NVMEP_DATA_ALIGNMENT)
		return false;
	bvecs->count = nvmep_segments_count(bvecs);
	if (!bvecs->count)
		return false;
	req->flags |= NVMEP_REQUEST_BVECS;
	return true;
}

/* Number of pages to pin, or 0 if the caller has to map a bio. */
static unsigned int nvmep_pages_needed(const struct nvmep_passthru *from,
				       const struct nvmep_user_command *command,
				       const struct request *rq)
{
	unsigned int offset = offset_in_page(command->address);

	if (command->vector || command->metadata ||
	    (command->address | command->length) & NVMEP_DATA_ALIGNMENT ||
	    command->length > NVMEP_MAX_PINNED_PAGES * PAGE_SIZE - offset ||
	    command->length > from->ctrl->max_transfer ||
	    nvmep_passthrough_counted(rq->q))
		return 0;
	return DIV_ROUND_UP(offset + command->length, PAGE_SIZE);
}

/*
 * Merges physically contiguous pages into segments: a single segment needs no
 * scatter list.  A segment does not cross a multiple of 4 GiB, the default
 * segment boundary of DMA.
 */
static unsigned int nvmep_pages_join(struct bio_vec *vec,
				     struct page *const *pages,
				     unsigned int count)
{
	unsigned int i, bvecs = 0;
	phys_addr_t end = 0, start;

	for (i = 0; i < count; i++) {
		start = page_to_phys(pages[i]);
		if (bvecs && start == end && lower_32_bits(start))
			vec[bvecs - 1].bv_len += PAGE_SIZE;
		else
			vec[bvecs++] = (struct bio_vec){
				.bv_page = pages[i],
				.bv_len = PAGE_SIZE,
			};
		end = start + PAGE_SIZE;
	}
	return bvecs;
}

/* Pins all pages or none. */
static bool nvmep_pages_pin(u64 address, unsigned int count, bool written,
			    struct page **pages)
{
	int held = pin_user_pages_fast(address & PAGE_MASK, count,
				       written ? FOLL_WRITE : 0, pages);

	if (held > 0 && held < (int)count)
		unpin_user_pages(pages, held);
	return held == (int)count;
}

/* An array of segments, then an array of the pages that they consist of. */
static noinline struct bio_vec *nvmep_segments_alloc(unsigned int count)
{
	return kmalloc(count * (sizeof(struct bio_vec) + sizeof(struct page *)),
		       GFP_KERNEL | __GFP_NOWARN);
}

/**
 * nvmep_user_pin() - pin user pages and attach them to a request
 * @from: device node
 * @command: command with data
 * @rq: its request, without data
 * @pages: filled, for nvmep_user_unpin()
 *
 * Return: number of pages pinned; 0 if the caller has to map a bio.
 */
unsigned int nvmep_user_pin(const struct nvmep_passthru *from,
			    const struct nvmep_user_command *command,
			    struct request *rq, union nvmep_user_pages *pages)
{
	unsigned int count = nvmep_pages_needed(from, command, rq);
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_bvecs *bvecs = &req->data.bvecs;
	struct bio_vec *vec = bvecs->own;
	struct page **array = pages->few;
	bool many = count > NVMEP_INLINE_BVECS;

	if (many) {
		vec = nvmep_segments_alloc(count);
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
	bvecs->vec = vec;
	bvecs->skip = offset_in_page(command->address);
	bvecs->length = command->length;
	bvecs->count = nvmep_pages_join(vec, array, count);
	if (many)
		pages->many = vec;
	req->flags |= NVMEP_REQUEST_BVECS;
	return count;
}

static noinline void nvmep_unpin_segments(struct bio_vec *bvecs,
					  unsigned int count, bool written)
{
	const struct bio_vec *piece = bvecs;
	unsigned int pages;

	for (; count; count -= pages, piece++) {
		pages = piece->bv_len >> PAGE_SHIFT;
		unpin_user_page_range_dirty_lock(piece->bv_page, pages,
						 written);
	}
	kfree(bvecs);
}

/**
 * nvmep_user_unpin_sleeps() - may nvmep_user_unpin() of written pages sleep?
 * @pages: pages that nvmep_user_pin() pinned
 * @count: number of pages, as returned
 *
 * Return: true unless they are few and marked dirty already.
 */
bool nvmep_user_unpin_sleeps(const union nvmep_user_pages *pages,
			     unsigned int count)
{
	if (count > NVMEP_INLINE_BVECS)
		return true;
	while (count--)
		if (!folio_test_dirty(page_folio(pages->few[count])))
			return true;
	return false;
}

/**
 * nvmep_user_unpin() - undo nvmep_user_pin()
 * @pages: pages that it pinned
 * @count: number of pages, as returned
 * @written: the command may have written to them, so they are marked dirty
 *
 * May sleep if @written.
 */
void nvmep_user_unpin(union nvmep_user_pages *pages, unsigned int count,
		      bool written)
{
	if (count > NVMEP_INLINE_BVECS)
		nvmep_unpin_segments(pages->many, count, written);
	else
		unpin_user_pages_dirty_lock(pages->few, count, written);
}

/* --- metadata ----------------------------------------------------------- */

#define NVMEP_MAX_METADATA	SZ_1M

static void nvmep_user_metadata_free(struct nvmep_user_metadata *metadata)
{
	mmdrop(metadata->mm);
	kfree(metadata->buffer);
	kfree(metadata);
}

static struct nvmep_user_metadata *
nvmep_user_metadata_alloc(const struct nvmep_user_command *command, u32 length)
{
	struct nvmep_user_metadata *metadata;

	metadata = kzalloc(sizeof(*metadata), GFP_KERNEL_ACCOUNT);
	if (!metadata)
		return NULL;
	metadata->buffer = kzalloc(length, GFP_KERNEL_ACCOUNT);
	if (!metadata->buffer) {
		kfree(metadata);
		return NULL;
	}
	metadata->mm = current->mm;
	mmgrab(metadata->mm);
	metadata->user = u64_to_user_ptr(command->metadata);
	metadata->length = length;
	return metadata;
}

/**
 * nvmep_user_metadata_add() - attach a kernel copy of the metadata to a request
 * @rq: request of the command
 * @command: command that passed nvmep_command_check_length()
 *
 * Metadata must be contiguous for the controller, which user memory rarely is.
 * Mapping user pages as integrity data of a bio would need a disk with an
 * integrity profile, with which the block layer handles metadata of all block
 * I/O too.
 *
 * Return: the copy; NULL if the command has no metadata; an error pointer.
 */
struct nvmep_user_metadata *
nvmep_user_metadata_add(struct request *rq,
			const struct nvmep_user_command *command)
{
	u32 length = nvmep_command_metadata(command);
	struct nvmep_user_metadata *metadata;

	if (!length)
		return NULL;
	if (length > NVMEP_MAX_METADATA)
		return ERR_PTR(-EINVAL);
	metadata = nvmep_user_metadata_alloc(command, length);
	if (!metadata)
		return ERR_PTR(-ENOMEM);
	if (rq_data_dir(rq) == WRITE &&
	    copy_from_user(metadata->buffer, metadata->user,
			   metadata->length)) {
		nvmep_user_metadata_free(metadata);
		return ERR_PTR(-EFAULT);
	}
	nvmep_request(rq)->data.metadata = metadata->buffer;
	nvmep_request(rq)->data.metadata_length = metadata->length;
	return metadata;
}

/*
 * If the submitter has exited, this runs in a kernel worker, whose page tables
 * are those of any other process: the address must not be used.
 */
static int
nvmep_user_metadata_copy_back(const struct nvmep_user_metadata *metadata)
{
	if (current->mm != metadata->mm)
		return -EINTR;
	return copy_to_user(metadata->user, metadata->buffer,
			    metadata->length) ? -EFAULT : 0;
}

/**
 * nvmep_user_metadata_finish() - copy metadata back and free the kernel copy
 * @metadata: from nvmep_user_metadata_add(), or NULL
 * @to_user: copy it to user memory: the command succeeded and read
 *
 * Return: 0; -EFAULT; or -EINTR if the submitter has exited.
 */
int nvmep_user_metadata_finish(struct nvmep_user_metadata *metadata,
			       bool to_user)
{
	int ret = 0;

	if (!metadata)
		return 0;
	if (to_user)
		ret = nvmep_user_metadata_copy_back(metadata);
	nvmep_user_metadata_free(metadata);
	return ret;
}
