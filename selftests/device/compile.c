// SPDX-License-Identifier: GPL-2.0-only
/*
 * compile.c: uses every call of the device library once, so that compiling it
 * checks the header.  C11, CUDA or HIP.
 */
#if defined(__HIP__) && !defined(__device__)
#include "hip_shim.h"
#endif
#include <nvmepeer_device.h>

#if defined(__CUDACC__) || defined(__HIP__)
#define ENTRY __global__
#else
#define ENTRY
ENTRY void use_calls(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *buffer,
		     int *status);
ENTRY void use_init(struct nvmepeer_queue *queue, const struct nvmepeer_geometry *geometry,
		    int *status, const uint32_t *stop);
ENTRY void use_block(const struct nvmepeer_set *set, struct nvmepeer_gather_table *table,
		     const struct nvmepeer_staging *staging,
		     const struct nvmepeer_gather_range *ranges,
		     const struct nvmepeer_transfer *transfer,
		     struct nvmepeer_set_batch *in_common, int *status);
ENTRY void use_halves(const struct nvmepeer_queue *queue, const struct nvmepeer_transfer *transfer,
		      struct nvmepeer_batch *batch, struct nvmepeer_flag *flag,
		      struct nvmepeer_counter *counter, int *status);
ENTRY void use_pages(const struct nvmepeer_queue *queue, const struct nvmepeer_page_list *list,
		     struct nvmepeer_prefetch *ahead, uint64_t *table, int *status);
ENTRY void use_lists(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
		     struct nvmepeer_batch *batch, uint32_t *shared, int *status);
ENTRY void use_table(const struct nvmepeer_queue *queue, struct nvmepeer_pages *pages,
		     struct nvmepeer_page_request *request, int *status);
ENTRY void use_noinline(const struct nvmepeer_queue *queue, const struct nvmepeer_command *command,
			struct nvmepeer_token *token, int *status);
#endif

ENTRY void use_calls(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *buffer,
		     int *status)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 8, 0, buffer, 0, 0 };
	struct nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(queue);
	struct nvmepeer_sqe entry = { { 0 } };
	struct nvmepeer_token token[2];
	uint32_t which = 0, result = 0;

	*status = nvmepeer_read(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_write(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_compare(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_flush(queue);
	*status |= nvmepeer_write_zeroes(queue, 0, 8, NVMEPEER_CONTROL_DEALLOCATE);
	*status |= nvmepeer_zone_append(queue, buffer, 0, 0, 8, &result);
	*status |= nvmepeer_deallocate(queue, buffer, 0, 8);
	*status |= nvmepeer_submit(queue, &command, &token[0], 1000);
	*status |= nvmepeer_submit_raw(queue, &entry, &token[1], 1000);
	*status |= nvmepeer_wait_any(queue, token, 2, &which, &result, 1000);
	*status |= nvmepeer_poll(queue, token[0], &result);
	*status |= nvmepeer_wait(queue, token[0], &result, 1000);
	*status |= nvmepeer_exclusive_read(&exclusive, buffer, 0, 0, 8);
	*status |= nvmepeer_exclusive_write(&exclusive, buffer, 0, 0, 8);
	nvmepeer_exclusive_close(&exclusive);
}

ENTRY void use_init(struct nvmepeer_queue *queue, const struct nvmepeer_geometry *geometry,
		    int *status, const uint32_t *stop)
{
	*status = nvmepeer_queue_init(queue, geometry);
	*status |= nvmepeer_check(queue);
	*status |= (int)nvmepeer_abandoned(queue);
	nvmepeer_queue_rearm(queue, 2);
	nvmepeer_serve(queue, stop);
}

ENTRY void use_block(const struct nvmepeer_set *set, struct nvmepeer_gather_table *table,
		     const struct nvmepeer_staging *staging,
		     const struct nvmepeer_gather_range *ranges,
		     const struct nvmepeer_transfer *transfer,
		     struct nvmepeer_set_batch *in_common, int *status)
{
	struct nvmepeer_set_staging set_staging = { 0, staging->address, staging->unit_shift,
						    staging->blocks };

	struct nvmepeer_command command = { NVMEPEER_OP_READ, 8, 0, NULL, 0, 0 };
	struct nvmepeer_group group = nvmepeer_group_join(set->queues);
	struct nvmepeer_token tokens[4];
	uint32_t queues[4];
	struct nvmepeer_set_batch batch = { { tokens, 4, 0, 0 }, queues, NULL };
	struct nvmepeer_set_token token;

	*status = nvmepeer_set_submit(set, &command, &token, 1000);
	*status |= nvmepeer_set_poll(set, token, NULL);
	*status |= nvmepeer_set_wait(set, token, NULL, 1000);
	*status |= nvmepeer_warp_set_submit(set, group, transfer, &batch);
	*status |= nvmepeer_warp_set_poll(set, group, &batch);
	*status |= nvmepeer_warp_set_wait(set, group, &batch, 1000);
	*status |= nvmepeer_block_set_submit(set, transfer, in_common);
	*status |= nvmepeer_block_set_wait(set, in_common, 1000);
	*status |= nvmepeer_set_read(set, 0, 0, 8);
	*status |= nvmepeer_set_write(set, 0, 0, 8);
	*status |= nvmepeer_warp_transfer(set->queues, transfer);
	*status |= nvmepeer_block_transfer(set->queues, transfer, &table->left);
	*status |= nvmepeer_block_set_gather(set, table, &set_staging, ranges, 10);
	*status |= nvmepeer_block_gather(set->queues, table, staging, ranges, 10);
}

ENTRY void use_halves(const struct nvmepeer_queue *queue, const struct nvmepeer_transfer *transfer,
		      struct nvmepeer_batch *batch, struct nvmepeer_flag *flag,
		      struct nvmepeer_counter *counter, int *status)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);
	struct nvmepeer_delivery delivery = { batch, flag };

	*status = nvmepeer_warp_submit(queue, group, transfer, batch);
	*status |= nvmepeer_warp_poll(queue, group, batch);
	*status |= nvmepeer_warp_wait(queue, group, batch, 1000);
	*status |= nvmepeer_block_submit(queue, transfer, batch);
	*status |= nvmepeer_block_wait(queue, batch, 1000);
	nvmepeer_flag_clear(flag);
	*status |= nvmepeer_warp_deliver(queue, group, &delivery, 1, 1000);
	*status |= nvmepeer_flag_wait(flag, 1000);
	nvmepeer_counter_clear(counter);
	nvmepeer_counter_add(counter, *status);
	*status |= nvmepeer_counter_wait(counter, 1, 1000);
	nvmepeer_fence_bulk();
}

ENTRY void use_pages(const struct nvmepeer_queue *queue, const struct nvmepeer_page_list *list,
		     struct nvmepeer_prefetch *ahead, uint64_t *table, int *status)
{
	struct nvmepeer_prefetch mine = *ahead;
	struct nvmepeer_buffer scattered;
	uint64_t offset;

	*status = nvmepeer_scatter(queue, list, table, &scattered);
	*status |= nvmepeer_warp_scatter(queue, mine.group, list, table, &scattered);
	*status |= nvmepeer_read(queue, &scattered, 0, 0, 8);
	nvmepeer_prefetch_start(&mine);
	*status |= nvmepeer_prefetch_next(&mine, &offset, 1000);
	nvmepeer_prefetch_release(&mine);
	*status |= nvmepeer_prefetch_stop(&mine, 1000);
}

ENTRY void use_lists(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list,
		     struct nvmepeer_batch *batch, uint32_t *shared, int *status)
{
	struct nvmepeer_group group = nvmepeer_group_join(queue);

	*status = nvmepeer_list_transfer(queue, list);
	*status |= nvmepeer_warp_list_transfer(queue, group, list);
	*status |= nvmepeer_block_list_transfer(queue, 1, list, shared);
	*status |= nvmepeer_warp_list_submit(queue, group, list, batch);
	*status |= nvmepeer_warp_list_poll(queue, group, list, batch);
	*status |= nvmepeer_warp_list_wait(queue, group, list, batch, 1000);
	*status |= nvmepeer_block_list_submit(queue, list, batch);
	*status |= nvmepeer_block_list_wait(queue, list, batch, 1000);
}

ENTRY void use_table(const struct nvmepeer_queue *queue, struct nvmepeer_pages *pages,
		     struct nvmepeer_page_request *request, int *status)
{
	nvmepeer_block_pages_reset(pages);
	*status = nvmepeer_block_pages_resolve(pages, request);
	nvmepeer_block_pages_submit(queue, pages, request);
	*status |= nvmepeer_page_poll(queue, request->misses);
	nvmepeer_page_failed(request->misses, NVMEPEER_E_LOST);
	*status |= nvmepeer_block_pages_wait(queue, pages, request, 1000);
	*status |= nvmepeer_block_pages_read(queue, pages, request);
	nvmepeer_block_pages_reclaim(pages);
}

ENTRY void use_noinline(const struct nvmepeer_queue *queue, const struct nvmepeer_command *command,
			struct nvmepeer_token *token, int *status)
{
	*status = nvmepeer_call_read(queue, command->buffer, 0, 0, 8);
	*status |= nvmepeer_call_write(queue, command->buffer, 0, 0, 8);
	*status |= nvmepeer_call_submit(queue, command, token, 1000);
	*status |= nvmepeer_call_wait(queue, *token, 1000);
}
