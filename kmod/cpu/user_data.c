// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data and metadata of passthrough commands.
 *
 * User memory is accessed only while no request is allocated: a page fault may
 * take for ever (userfaultfd, FUSE), and a request keeps its queue from being
 * frozen, for which Format, a reset and removal wait.  So pages are pinned, or
 * data is copied, before the request is allocated, and copied back after it has
 * been freed.
 *
 * For a small command, allocating, splitting and freeing a bio costs as much as
 * all else.  So data that PRP entries can describe is attached to the request
 * without a bio: buffers registered with an io_uring, which the ring keeps
 * pinned, and user pages, which are pinned here: up to NVMEP_MAX_PINNED_PAGES of
 * a command without metadata by nvmep_user_pin(), others by nvmep_user_hold().
 * All other data of user memory is copied.  So is all of it while the block
 * layer counts passthrough, which it does by the bio.
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

/* Number of pages to pin, or 0 for nvmep_user_hold(). */
static unsigned int nvmep_pages_needed(const struct nvmep_passthru *from,
				       const struct nvmep_user_command *command)
{
	unsigned int offset = offset_in_page(command->address);

	if (!command->address || !command->length || command->vector ||
	    command->metadata ||
	    (command->address | command->length) & NVMEP_DATA_ALIGNMENT ||
	    command->length > NVMEP_MAX_PINNED_PAGES * PAGE_SIZE - offset ||
	    command->length > from->ctrl->max_transfer ||
	    nvmep_passthrough_counted(nvmep_user_queue(from, command)))
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
	struct bio_vec *next = vec;
	phys_addr_t end = 0, start;

	for (; count; count--, pages++) {
		start = page_to_phys(*pages);
		/* False for the first page: @end is such a multiple. */
		if (start == end && lower_32_bits(start))
			next[-1].bv_len += PAGE_SIZE;
		else
			*next++ = (struct bio_vec){
				.bv_page = *pages,
				.bv_len = PAGE_SIZE,
			};
		end = start + PAGE_SIZE;
	}
	return next - vec;
}

/* Pins all pages or none. */
static bool nvmep_pages_pin(u64 address, unsigned int count, bool written,
			    struct page **pages)
{
	int held = pin_user_pages_fast(address & PAGE_MASK, count,
				       written ? FOLL_WRITE : 0, pages);

	if (held == (int)count)
		return true;
	unpin_user_pages(pages, max(held, 0));
	return false;
}

/* An array of segments, then an array of the pages that they consist of. */
static noinline struct bio_vec *nvmep_segments_alloc(unsigned int count)
{
	size_t bytes = count * (sizeof(struct bio_vec) + sizeof(struct page *));
	gfp_t flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;

	/* Never from vmalloc() anyway: kmalloc() is cheaper. */
	if (bytes <= PAGE_SIZE)
		return kmalloc(bytes, flags);
	return kvmalloc(bytes, flags);
}

/**
 * nvmep_user_pin() - pin the user pages of a command
 * @from: device node
 * @command: command; no request is allocated for it yet
 * @pages: filled, for nvmep_user_attach()
 *
 * Return: number of pages pinned; 0 if the caller has to use nvmep_user_hold().
 */
unsigned int nvmep_user_pin(const struct nvmep_passthru *from,
			    const struct nvmep_user_command *command,
			    union nvmep_user_pages *pages)
{
	unsigned int count = nvmep_pages_needed(from, command);
	bool many = count > NVMEP_INLINE_BVECS;
	struct page **array = pages->few;
	struct bio_vec *vec = NULL;

	if (many) {
		vec = nvmep_segments_alloc(count);
		array = (struct page **)(vec + count);
	}
	if (!count || (many && !vec))
		return 0;
	if (!nvmep_pages_pin(command->address, count,
			     nvmep_command_reads(command), array)) {
		kvfree(vec);
		return 0;
	}
	if (many) {
		pages->many = vec;
		pages->segments = nvmep_pages_join(vec, array, count);
	}
	return count;
}

/**
 * nvmep_user_attach() - attach pinned pages to a request
 * @command: command
 * @rq: its request, without data
 * @pages: pages that nvmep_user_pin() pinned
 * @count: number of pages, as returned
 */
void nvmep_user_attach(const struct nvmep_user_command *command,
		       struct request *rq, union nvmep_user_pages *pages,
		       unsigned int count)
{
	struct nvmep_request *req = nvmep_request(rq);
	struct nvmep_bvecs *bvecs = &req->data.bvecs;

	bvecs->skip = offset_in_page(command->address);
	bvecs->length = command->length;
	if (count > NVMEP_INLINE_BVECS) {
		bvecs->vec = pages->many;
		bvecs->count = pages->segments;
	} else {
		bvecs->vec = bvecs->own;
		bvecs->count = nvmep_pages_join(bvecs->own, pages->few, count);
	}
	req->flags |= NVMEP_REQUEST_BVECS;
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
	kvfree(bvecs);
}

/**
 * nvmep_user_unpin_sleeps() - may nvmep_user_unpin() of written pages wait for
 *	I/O?
 * @pages: pages that nvmep_user_pin() pinned
 * @count: number of pages, as returned
 *
 * It locks a page that is not dirty.  Writeback of a file cleans a page at any
 * time, and holds its lock while it submits I/O to this disk.  An anonymous page
 * that is pinned is not written back, unless that began before.
 *
 * Return: true unless they are few, anonymous and not being written back.
 */
bool nvmep_user_unpin_sleeps(const union nvmep_user_pages *pages,
			     unsigned int count)
{
	if (count > NVMEP_INLINE_BVECS)
		return true;
	while (count--) {
		struct folio *folio = page_folio(pages->few[count]);

		if (!folio_test_anon(folio) || folio_test_writeback(folio))
			return true;
	}
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

/* --- data and metadata of other commands -------------------------------- */

#define NVMEP_MAX_METADATA	SZ_1M

/* Reads an array of struct iovec. */
static int nvmep_held_import(struct nvmep_user_held *held,
			     const struct nvmep_user_command *command)
{
	int direction = nvmep_command_reads(command) ? READ : WRITE, ret;
	struct iovec *vector = held->few;

	held->count = command->vector ? command->length : 1;
	if (!command->vector) {
		held->few[0].iov_base = u64_to_user_ptr(command->address);
		held->few[0].iov_len = command->length;
		iov_iter_init(&held->user, direction, held->few, 1,
			      command->length);
		return 0;
	}
	ret = import_iovec(direction, u64_to_user_ptr(command->address),
			   command->length, ARRAY_SIZE(held->few), &vector,
			   &held->user);
	/* Some kernels before 6.12.17 leave @vector as it was. */
	if (ret < 0)
		return ret;
	held->many = vector;
	return 0;
}

static const struct iovec *nvmep_held_vector(const struct nvmep_user_held *held)
{
	return held->many ?: held->few;
}

static unsigned int nvmep_iovec_pages(const struct iovec *vec)
{
	return DIV_ROUND_UP(offset_in_page(vec->iov_base) + vec->iov_len,
			    PAGE_SIZE);
}

/* Number of pages, or 0 if PRP entries cannot describe them: copy the data. */
static unsigned int nvmep_held_pages(const struct nvmep_user_held *held)
{
	const struct iovec *first = nvmep_held_vector(held), *vec;
	const struct iovec *last = first + held->count - 1;
	unsigned int pages = 0;

	for (vec = first; vec != last + 1; vec++) {
		unsigned long start = (unsigned long)vec->iov_base;
		unsigned long end = start + vec->iov_len;

		if ((start | end) & NVMEP_DATA_ALIGNMENT || start == end ||
		    (vec != first && offset_in_page(start)) ||
		    (vec != last && offset_in_page(end)))
			return 0;
		pages += nvmep_iovec_pages(vec);
	}
	return pages;
}

/* All pages or none, of which @array has room. */
static bool nvmep_held_pin_pages(const struct nvmep_user_held *held,
				 bool written, struct page **array)
{
	const struct iovec *vec = nvmep_held_vector(held);
	unsigned int left, pages, done = 0;

	for (left = held->count; left; left--, vec++) {
		pages = nvmep_iovec_pages(vec);
		if (!nvmep_pages_pin((unsigned long)vec->iov_base, pages,
				     written, array + done)) {
			unpin_user_pages(array, done);
			return false;
		}
		done += pages;
	}
	return true;
}

static int nvmep_held_pin(struct nvmep_user_held *held, unsigned int pages,
			  bool written)
{
	struct bio_vec *vec = nvmep_segments_alloc(pages);
	struct page **array = (struct page **)(vec + pages);

	if (!vec)
		return -ENOMEM;
	if (!nvmep_held_pin_pages(held, written, array)) {
		kvfree(vec);
		return -EFAULT;
	}
	held->segment_count = nvmep_pages_join(vec, array, pages);
	held->segments = vec;
	held->pages = pages;
	return 0;
}

static struct page *nvmep_copy_page(const void *address)
{
	return is_vmalloc_addr(address) ? vmalloc_to_page(address) :
					  virt_to_page(address);
}

/* Describes the copy by segments: a bio has at most BIO_MAX_VECS pages. */
static int nvmep_copy_segments(struct nvmep_user_held *held)
{
	unsigned int i, pages =
		DIV_ROUND_UP(offset_in_page(held->copy) + held->length, PAGE_SIZE);
	struct bio_vec *vec = nvmep_segments_alloc(pages);
	struct page **array = (struct page **)(vec + pages);

	if (!vec)
		return -ENOMEM;
	for (i = 0; i < pages; i++)
		array[i] = nvmep_copy_page(held->copy + i * PAGE_SIZE);
	held->segment_count = nvmep_pages_join(vec, array, pages);
	held->segments = vec;
	return 0;
}

/* @counted: the block layer counts passthrough, by the bio. */
static int nvmep_held_copy(struct nvmep_user_held *held, bool reads,
			   bool counted)
{
	/* PRP entries and SGLs describe dwords. */
	held->copy = kvzalloc(ALIGN(held->length, 4), GFP_KERNEL_ACCOUNT);
	if (!held->copy)
		return -ENOMEM;
	if (!reads &&
	    !copy_from_iter_full(held->copy, held->length, &held->user))
		return -EFAULT;
	return counted ? 0 : nvmep_copy_segments(held);
}

static int nvmep_hold_data(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command,
			   struct nvmep_user_held *held)
{
	struct request_queue *queue = nvmep_user_queue(from, command);
	bool reads = nvmep_command_reads(command);
	bool counted = nvmep_passthrough_counted(queue);
	unsigned int pages = 0;
	int ret;

	ret = nvmep_held_import(held, command);
	if (ret)
		return ret;
	held->length = iov_iter_count(&held->user);
	if (!held->length ||
	    held->length > (u64)queue_max_hw_sectors(queue) << SECTOR_SHIFT)
		return -EINVAL;
	if (!counted)
		pages = nvmep_held_pages(held);
	return pages ? nvmep_held_pin(held, pages, reads) :
		       nvmep_held_copy(held, reads, counted);
}

/*
 * Metadata must be contiguous for the controller, which user memory rarely is.
 * Mapping user pages as integrity data of a bio would need a disk with an
 * integrity profile, with which the block layer handles metadata of all block
 * I/O too.
 */
static int nvmep_hold_metadata(const struct nvmep_user_command *command,
			       struct nvmep_user_held *held)
{
	u32 length = nvmep_command_metadata(command);

	if (!length)
		return 0;
	if (length > NVMEP_MAX_METADATA)
		return -EINVAL;
	held->metadata = kzalloc(length, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!held->metadata)
		return -ENOMEM;
	held->user_metadata = u64_to_user_ptr(command->metadata);
	held->metadata_length = length;
	if (!nvmep_command_reads(command) &&
	    copy_from_user(held->metadata, held->user_metadata, length))
		return -EFAULT;
	return 0;
}

/**
 * nvmep_user_hold() - pin or copy the data of a command, copy its metadata
 * @from: device node
 * @command: command; no request is allocated for it yet
 * @registered: its data is a registered buffer: hold the metadata only
 *
 * Return: for nvmep_user_release(), or NULL if there is nothing to hold; an
 * error pointer.
 */
struct nvmep_user_held *
nvmep_user_hold(const struct nvmep_passthru *from,
		const struct nvmep_user_command *command, bool registered)
{
	bool data = command->address && command->length && !registered;
	struct nvmep_user_held *held;
	int ret = 0;

	if (!data && !nvmep_command_metadata(command))
		return NULL;
	held = kzalloc(sizeof(*held), GFP_KERNEL_ACCOUNT);
	if (!held)
		return ERR_PTR(-ENOMEM);
	held->mm = current->mm;
	mmgrab(held->mm);
	if (data)
		ret = nvmep_hold_data(from, command, held);
	if (!ret)
		ret = nvmep_hold_metadata(command, held);
	if (!ret)
		return held;
	nvmep_user_release(held, false, false);
	return ERR_PTR(ret);
}

/**
 * nvmep_user_attach_metadata() - attach the copy of the metadata to a request
 * @rq: request of a command that passed nvmep_command_check_length()
 * @held: from nvmep_user_hold()
 */
void nvmep_user_attach_metadata(struct request *rq,
				const struct nvmep_user_held *held)
{
	struct nvmep_data *data = &nvmep_request(rq)->data;

	data->metadata = held->metadata;
	data->metadata_length = held->metadata_length;
}

/**
 * nvmep_user_attach_held() - attach data and metadata to a request
 * @from: device node
 * @command: command
 * @rq: its request, without data
 * @held: from nvmep_user_hold() for the command, or NULL
 *
 * Return: 0, and the request has to be executed, which frees the bio that it
 * may have; or a negative error code.
 */
int nvmep_user_attach_held(const struct nvmep_passthru *from,
			   const struct nvmep_user_command *command,
			   struct request *rq,
			   const struct nvmep_user_held *held)
{
	struct nvmep_request *req = nvmep_request(rq);
	unsigned long start;
	int ret;

	ret = nvmep_command_check_length(from, command,
					 held ? held->length : 0);
	if (ret || !held)
		return ret;
	nvmep_user_attach_metadata(rq, held);
	if (held->copy && !held->segments)
		return nvmep_request_map_buffer(rq, held->copy,
						ALIGN(held->length, 4));
	if (!held->segments)
		return 0;
	start = held->copy ? (unsigned long)held->copy :
		(unsigned long)nvmep_held_vector(held)->iov_base;
	req->data.bvecs.vec = held->segments;
	req->data.bvecs.skip = offset_in_page(start);
	req->data.bvecs.length = ALIGN(held->length, 4);
	req->data.bvecs.count = held->segment_count;
	req->flags |= NVMEP_REQUEST_BVECS;
	return 0;
}

/*
 * If the submitter has exited, this runs in a kernel worker, whose page tables
 * are those of any other process: the addresses must not be used.
 */
static int nvmep_held_copy_back(struct nvmep_user_held *held, bool metadata)
{
	if (!held->copy && !metadata)
		return 0;
	if (current->mm != held->mm)
		return -EINTR;
	if (held->copy && copy_to_iter(held->copy, held->length,
				       &held->user) != held->length)
		return -EFAULT;
	return metadata && copy_to_user(held->user_metadata, held->metadata,
					held->metadata_length) ? -EFAULT : 0;
}

/**
 * nvmep_user_release() - return data to the user, undo nvmep_user_hold()
 * @held: from nvmep_user_hold(), or NULL; the request of the command is freed
 * @reads: the command was sent, and its data goes to user space
 * @success: the command succeeded, so its metadata does too
 *
 * May sleep.
 *
 * Return: 0; -EFAULT; or -EINTR if the submitter has exited.
 */
int nvmep_user_release(struct nvmep_user_held *held, bool reads, bool success)
{
	int ret = 0;

	if (!held)
		return 0;
	if (reads)
		ret = nvmep_held_copy_back(held, held->metadata && success);
	if (held->pages)
		nvmep_unpin_segments(held->segments, held->pages, reads);
	else
		kvfree(held->segments);
	kvfree(held->copy);
	kfree(held->metadata);
	kfree(held->many);
	mmdrop(held->mm);
	kfree(held);
	return ret;
}
