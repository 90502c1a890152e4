/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * list_kernel.h: the kernel of nvmepeer_cuda_read_list() and _write_list(), as a
 * function that also a CPU can execute, and its parameters.
 */
#ifndef NVMEPEER_CUDA_LIST_KERNEL_H
#define NVMEPEER_CUDA_LIST_KERNEL_H

#include <nvmepeer_device.h>

/* Threads of the one block of the kernel: twice as many commands in flight at most. */
enum { LIST_THREADS = 512 };

/**
 * struct list_parameters - parameters of the kernel
 * @queues: device queues
 * @queue_count: number of them
 * @layout: NVMEPEER_LAYOUT of the host library
 * @count: the number of items or pages, if it is less than @list.count; read when
 *	the kernel runs; or NULL
 * @done: written when the list has ended; or NULL
 * @list: the list; its scratch is not used
 * @scratch: scratch memory of the list
 *
 * A kernel of another version refuses the list and reports it: the fields before
 * @scratch keep their places, also those inside @list and the status of an item.
 */
struct list_parameters {
	const struct nvmepeer_queue *queues;
	uint32_t queue_count;
	uint32_t layout;
	const uint32_t *count;
	struct nvmepeer_list_done *done;
	struct nvmepeer_list list;
	struct nvmepeer_scratch scratch;
};

/* A word of the host or another kernel. */
NVP_FN uint32_t list_load(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

/*
 * Publish the end of the list: all that the block has stored, and the status, before
 * the count.
 */
NVP_FN void list_publish(struct nvmepeer_list_done *done, int status)
{
	uint32_t count = list_load(&done->count);

	*(volatile int *)&done->status = status;
	nvp_fence_publish();
	*(volatile uint32_t *)&done->count = count + 1;
}

/* Why no queue pair can be used, or 0. */
NVP_FN int list_check(const struct list_parameters *parameters)
{
	if (parameters->layout != NVMEPEER_LAYOUT)
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_queue_check_layout(&parameters->queues[0]);
}

/* Set all statuses of a list that is refused.  Collective; a barrier. */
NVP_FN void list_refuse(const struct nvmepeer_list *list, int status)
{
	nvp_list_refuse_part(list, nvp_block_thread(), nvp_block_threads(), status);
	nvp_block_sync();
}

/* Execute a list by a block.  @worst: a word of the block's shared memory. */
NVP_FN void list_run(const struct list_parameters *parameters, uint32_t *worst)
{
	struct nvmepeer_scratch scratch = parameters->scratch;
	struct nvmepeer_list list = parameters->list;
	uint32_t count = parameters->count ? list_load(parameters->count) : list.count;
	int status = list_check(parameters);

	if (count < list.count)
		list.count = count;
	list.scratch = &scratch;
	if (status)
		list_refuse(&list, status);
	else
		status = nvmepeer_block_list_transfer(parameters->queues, parameters->queue_count,
						      &list, worst);
	if (parameters->done && !nvp_block_thread())
		list_publish(parameters->done, status);
}

#endif /* NVMEPEER_CUDA_LIST_KERNEL_H */
