/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/scatter.h: a buffer made of pages of another buffer in any
 * order, so that one command reads or writes consecutive blocks from or to
 * pages that are not: for instance the pages of a cache.
 */
#ifndef NVMEPEER_DEVICE_SCATTER_H
#define NVMEPEER_DEVICE_SCATTER_H

#include "batch.h"
#include "command.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

/**
 * struct nvmepeer_page_list - pages of a buffer
 * @buffer: the buffer
 * @numbers: page numbers: page n begins at byte n << @page_shift
 * @count: number of pages
 * @page_shift: log2 of the bytes of a page: a controller page or more
 */
struct nvmepeer_page_list {
	const struct nvmepeer_buffer *buffer;
	const uint32_t *numbers;
	uint32_t count;
	uint32_t page_shift;
};

/* Number of words of the table that nvmepeer_scatter() fills. */
NVP_FN uint64_t nvmepeer_scatter_words(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_page_list *list)
{
	return (uint64_t)list->count << (list->page_shift - queue->page_shift);
}

/* Fill every @step-th word of the table, starting with word @index. */
NVP_FN int nvp_scatter_strided(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_page_list *list, uint64_t *table,
			       uint32_t index, uint32_t step)
{
	uint32_t shift = list->page_shift - queue->page_shift;
	uint64_t words = nvmepeer_scatter_words(queue, list);

	for (uint64_t i = index; i < words; i += step) {
		uint64_t page = (uint64_t)list->numbers[i >> shift] << shift |
				(i & (((uint64_t)1 << shift) - 1));
		uint64_t offset = page << queue->page_shift;

		if (offset >= list->buffer->length ||
		    list->buffer->length - offset < nvp_page_bytes(queue))
			return NVMEPEER_E_RANGE;
		table[i] = nvp_dma(queue, list->buffer, offset);
	}
	return NVMEPEER_OK;
}

/*
 * Are the pages of the list whole controller pages, aligned to controller
 * pages?
 */
NVP_FN int nvp_scatter_check(const struct nvmepeer_queue *queue,
			     const struct nvmepeer_page_list *list)
{
	uint64_t in_page = list->buffer->dma & (nvp_page_bytes(queue) - 1);

	if (list->page_shift < queue->page_shift || (!list->buffer->pages && in_page))
		return NVMEPEER_E_ALIGN;
	return NVMEPEER_OK;
}

NVP_FN void nvp_scatter_buffer(const struct nvmepeer_page_list *list,
			       const uint64_t *table, struct nvmepeer_buffer *scattered)
{
	scattered->length = (uint64_t)list->count << list->page_shift;
	scattered->dma = 0;
	scattered->pages = (uint64_t)(uintptr_t)table;
}

/**
 * nvmepeer_scatter - make a buffer from a list of pages
 * @queue: a queue pair of the controller that @list->buffer belongs to
 * @list: the pages
 * @table: memory for nvmepeer_scatter_words() words; any memory, shared memory
 *	of a block too
 * @scattered: out: the pages as consecutive memory, for every call that takes a
 *	buffer
 *
 * Any thread.  Submits nothing.  The table must stay until the commands on
 * @scattered have been submitted, not until they complete.  Returns 0,
 * NVMEPEER_E_RANGE if a page lies outside the buffer, or NVMEPEER_E_ALIGN if
 * the pages are not whole controller pages.
 */
NVP_FN int nvmepeer_scatter(const struct nvmepeer_queue *queue,
			    const struct nvmepeer_page_list *list, uint64_t *table,
			    struct nvmepeer_buffer *scattered)
{
	int status = nvp_scatter_check(queue, list);

	if (!status)
		status = nvp_scatter_strided(queue, list, table, 0, 1);
	if (!status)
		nvp_scatter_buffer(list, table, scattered);
	return status;
}

/**
 * nvmepeer_warp_scatter - nvmepeer_scatter() by a warp
 * @group: the lanes that call together, with the same arguments but @scattered,
 *	which is each lane's own
 */
NVP_FN int nvmepeer_warp_scatter(const struct nvmepeer_queue *queue,
				 struct nvmepeer_group group,
				 const struct nvmepeer_page_list *list, uint64_t *table,
				 struct nvmepeer_buffer *scattered)
{
	int status = nvp_scatter_check(queue, list);

	if (!status)
		status = nvp_scatter_strided(queue, list, table,
					     nvp_rank(group.mask, group.lane),
					     nvp_mask_count(group.mask));
	status = nvp_group_status(group, status);
	if (!status)
		nvp_scatter_buffer(list, table, scattered);
	return status;
}

#endif /* NVMEPEER_DEVICE_SCATTER_H */
