// SPDX-License-Identifier: GPL-2.0-only
/*
 * registers.cu: a kernel for each call of the device library that does nothing
 * else, so that ptxas reports the registers of the call.  registers.sh prints
 * the table.
 */
#include <nvmepeer_device.h>

#ifndef REGISTERS_THREADS
#define REGISTERS_THREADS 128
#endif
#define KERNEL extern "C" __global__ void __launch_bounds__(REGISTERS_THREADS)

KERNEL k_read(const nvmepeer_queue *queue, const nvmepeer_buffer *buffer, int *status)
{
	status[threadIdx.x] = nvmepeer_read(queue, buffer, threadIdx.x * 4096ull, threadIdx.x, 8);
}

KERNEL k_call_read(const nvmepeer_queue *queue, const nvmepeer_buffer *buffer, int *status)
{
	status[threadIdx.x] = nvmepeer_call_read(queue, buffer, threadIdx.x * 4096ull, threadIdx.x, 8);
}

KERNEL k_submit(const nvmepeer_queue *queue, const nvmepeer_command *command, nvmepeer_token *token,
		int *status)
{
	status[threadIdx.x] = nvmepeer_submit(queue, command, &token[threadIdx.x], 1000000);
}

KERNEL k_wait(const nvmepeer_queue *queue, const nvmepeer_token *token, int *status)
{
	status[threadIdx.x] = nvmepeer_wait(queue, token[threadIdx.x], NULL, 1000000);
}

KERNEL k_poll(const nvmepeer_queue *queue, const nvmepeer_token *token, int *status)
{
	status[threadIdx.x] = nvmepeer_poll(queue, token[threadIdx.x], NULL);
}

KERNEL k_exclusive_read(const nvmepeer_queue *queue, const nvmepeer_buffer *buffer, int *status)
{
	nvmepeer_exclusive exclusive = nvmepeer_exclusive_open(queue);

	status[threadIdx.x] = nvmepeer_exclusive_read(&exclusive, buffer, threadIdx.x * 4096ull, threadIdx.x, 8);
	nvmepeer_exclusive_close(&exclusive);
}

KERNEL k_warp_submit(const nvmepeer_queue *queue, const nvmepeer_transfer *transfer,
		     nvmepeer_batch *batch, int *status)
{
	status[threadIdx.x] = nvmepeer_warp_submit(queue, nvmepeer_group_full(), transfer, batch);
}

KERNEL k_warp_wait(const nvmepeer_queue *queue, nvmepeer_batch *batch, int *status)
{
	status[threadIdx.x] = nvmepeer_warp_wait(queue, nvmepeer_group_full(), batch, 1000000);
}

KERNEL k_warp_deliver(const nvmepeer_queue *queue, const nvmepeer_delivery *deliveries, int *status)
{
	status[threadIdx.x] = nvmepeer_warp_deliver(queue, nvmepeer_group_full(), deliveries, 4, 1000000);
}

KERNEL k_flag_wait(const nvmepeer_flag *flag, int *status)
{
	status[threadIdx.x] = nvmepeer_flag_wait(flag, 1000000);
}

KERNEL k_block_gather(const nvmepeer_queue *queue, const nvmepeer_staging *staging,
		      const nvmepeer_gather_range *pieces, int *status)
{
	__shared__ nvmepeer_gather_table table;

	status[threadIdx.x] = nvmepeer_block_gather(queue, &table, staging, pieces, 100);
}
