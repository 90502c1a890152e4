/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/scatter.h: a buffer made of parts of another in any order, so
 * that one command reads or writes blocks in a row from or to pages that are
 * not: the pages of a cache, by their list.
 */
#ifndef NVMEPEER_DEVICE_SCATTER_H
#define NVMEPEER_DEVICE_SCATTER_H

/**
 * struct nvmepeer_parts - parts of a buffer
 * @buffer: where they lie
 * @numbers: which: part n begins at byte n << @part_shift
 * @count: how many
 * @part_shift: log2 of the bytes of a part: a controller page or more
 */
struct nvmepeer_parts {
	const struct nvmepeer_buffer *buffer;
	const uint32_t *numbers;
	uint32_t count;
	uint32_t part_shift;
};

/* Words of the table that nvmepeer_scatter() fills. */
NVMEPEER_FN uint64_t nvmepeer_scatter_words(const struct nvmepeer_queue *queue,
					    const struct nvmepeer_parts *parts)
{
	return (uint64_t)parts->count << (parts->part_shift - queue->page_shift);
}

/* Fills every @step-th word of the table, from the @index-th on. */
NVMEPEER_FN int nvmepeer_scatter_share(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_parts *parts, uint64_t *table,
				       uint32_t index, uint32_t step)
{
	uint32_t shift = parts->part_shift - queue->page_shift;
	uint64_t words = nvmepeer_scatter_words(queue, parts);

	for (uint64_t i = index; i < words; i += step) {
		uint64_t page = (uint64_t)parts->numbers[i >> shift] << shift |
				(i & (((uint64_t)1 << shift) - 1));
		uint64_t offset = page << queue->page_shift;

		if (offset >= parts->buffer->length ||
		    parts->buffer->length - offset < nvmepeer_page(queue))
			return NVMEPEER_E_RANGE;
		table[i] = nvmepeer_dma(queue, parts->buffer, offset);
	}
	return NVMEPEER_OK;
}

/* Are the parts whole controller pages that begin where such pages do? */
NVMEPEER_FN int nvmepeer_scatter_check(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_parts *parts)
{
	uint64_t in_page = parts->buffer->dma & (nvmepeer_page(queue) - 1);

	if (parts->part_shift < queue->page_shift || (!parts->buffer->pages && in_page))
		return NVMEPEER_E_ALIGN;
	return NVMEPEER_OK;
}

NVMEPEER_FN void nvmepeer_scatter_buffer(const struct nvmepeer_parts *parts,
					 const uint64_t *table, struct nvmepeer_buffer *scattered)
{
	scattered->length = (uint64_t)parts->count << parts->part_shift;
	scattered->dma = 0;
	scattered->pages = (uint64_t)(uintptr_t)table;
}

/**
 * nvmepeer_scatter - make a buffer of parts of another
 * @queue: a queue pair of the controller that knows the buffer
 * @parts: which
 * @table: memory for nvmepeer_scatter_words() words; any memory of the caller's,
 *	shared memory of a block too
 * @scattered: out: the parts in a row, for every call that takes a buffer
 *
 * Any thread.  Sends nothing.  The table must stay until the commands on
 * @scattered have been sent, not until they complete.  Returns 0,
 * NVMEPEER_E_RANGE if a part lies outside the buffer, or NVMEPEER_E_ALIGN if
 * parts are not whole controller pages.
 */
NVMEPEER_FN int nvmepeer_scatter(const struct nvmepeer_queue *queue,
				 const struct nvmepeer_parts *parts, uint64_t *table,
				 struct nvmepeer_buffer *scattered)
{
	int status = nvmepeer_scatter_check(queue, parts);

	if (!status)
		status = nvmepeer_scatter_share(queue, parts, table, 0, 1);
	if (!status)
		nvmepeer_scatter_buffer(parts, table, scattered);
	return status;
}

/**
 * nvmepeer_warp_scatter - nvmepeer_scatter() by a warp
 * @group: the lanes that call together, with the same arguments but @scattered,
 *	which is each lane's own
 */
NVMEPEER_FN int nvmepeer_warp_scatter(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group,
				      const struct nvmepeer_parts *parts, uint64_t *table,
				      struct nvmepeer_buffer *scattered)
{
	int status = nvmepeer_scatter_check(queue, parts);

	if (!status)
		status = nvmepeer_scatter_share(queue, parts, table,
						nvmepeer_rank(group.mask, group.lane),
						nvmepeer_mask_count(group.mask));
	status = nvmepeer_group_status(group, status);
	if (!status)
		nvmepeer_scatter_buffer(parts, table, scattered);
	return status;
}

#endif /* NVMEPEER_DEVICE_SCATTER_H */
