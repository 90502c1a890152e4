/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * pages_kernel.h: the kernel of nvmepeer_cuda_read_pages(), as a function that also a
 * CPU can execute, and its parameters.
 */
#ifndef NVMEPEER_CUDA_PAGES_KERNEL_H
#define NVMEPEER_CUDA_PAGES_KERNEL_H

#include <nvmepeer_device.h>

/* Threads of each block of the kernel, and reads of a table in flight at most. */
enum { PAGES_THREADS = 256 };

/**
 * struct pages_parameters - parameters of the kernel
 * @queues: device queues, which the tables use by turns
 * @queue_count: number of them
 * @layout: NVMEPEER_LAYOUT of the host library
 * @tables: page tables, one for each block of the kernel
 * @misses: @most for each table
 * @most: wanted pages of a table, at most
 * @count: wanted pages of each table; 0: reclaim slots instead
 * @wanted: @count for each table
 * @blocks: @count for each table
 * @statuses: @count for each table; or NULL
 * @worst: one for each table; or NULL
 *
 * A kernel of another version refuses the step: the fields keep their places.
 */
struct pages_parameters {
	const struct nvmepeer_queue *queues;
	uint32_t queue_count;
	uint32_t layout;
	struct nvmepeer_pages *tables;
	struct nvmepeer_page_miss *misses;
	uint32_t most;
	uint32_t count;
	const uint32_t *wanted;
	uint32_t *blocks;
	int *statuses;
	int *worst;
};

/* No page of the step has a block.  Collective. */
NVP_FN void pages_refuse(const struct nvmepeer_page_request *request, int status)
{
	for (uint32_t i = nvp_block_thread(); i < request->count; i += nvp_block_threads()) {
		request->blocks[i] = NVMEPEER_PAGE_NONE;
		if (request->statuses)
			request->statuses[i] = status;
	}
}

/*
 * NVMEPEER_E_BUSY while a command that timed out may still access its data.  Completions
 * stay in the ring until a thread reaps them.
 */
NVP_FN int pages_check_queue(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	int status = nvmepeer_check(queue);
	uint32_t head;
	uint64_t none = 0;

	if (status)
		return status;
	head = nvp_load_head(queue, self);
	while (nvmepeer_abandoned(queue))
		if (!nvp_reap(queue, self, false, NVMEPEER_NO_CID, &none, &head))
			return NVMEPEER_E_BUSY;
	return NVMEPEER_OK;
}

/*
 * Not while a read may still write its slot: a kernel of the caller may have used any of
 * the queue pairs for the table.  Collective.
 */
NVP_FN int pages_reclaim(const struct pages_parameters *parameters, struct nvmepeer_pages *table,
			 struct nvmepeer_page_request *request)
{
	int status = NVMEPEER_OK;

	for (uint32_t i = nvp_block_thread(); i < parameters->queue_count; i += nvp_block_threads())
		status = nvp_worse(status, pages_check_queue(&parameters->queues[i]));
	status = nvp_block_worst(&request->status, status);
	if (!status)
		nvmepeer_block_pages_reclaim(table);
	return status;
}

/* A step of table @number, by a block.  @request: memory that the block shares. */
NVP_FN void pages_run(const struct pages_parameters *parameters, uint32_t number,
		      struct nvmepeer_page_request *request)
{
	const struct nvmepeer_queue *queue = &parameters->queues[number % parameters->queue_count];
	struct nvmepeer_pages *table = &parameters->tables[number];
	uint64_t first = (uint64_t)number * parameters->count;
	int status = parameters->layout == NVMEPEER_LAYOUT ? nvmepeer_queue_check_layout(queue) :
							     (int)NVMEPEER_E_LAYOUT;

	if (!nvp_block_thread()) {
		request->wanted = parameters->wanted + first;
		request->blocks = parameters->blocks + first;
		request->statuses = parameters->statuses ? parameters->statuses + first : NULL;
		request->misses = parameters->misses + (uint64_t)number * parameters->most;
		request->count = parameters->count;
		request->missing = 0;
		request->status = 0;
	}
	nvp_block_sync();
	if (status)
		pages_refuse(request, status);
	else if (parameters->count)
		status = nvmepeer_block_pages_read(queue, table, request);
	else
		status = pages_reclaim(parameters, table, request);
	if (parameters->worst && !nvp_block_thread())
		parameters->worst[number] = status;
}

#endif /* NVMEPEER_CUDA_PAGES_KERNEL_H */
