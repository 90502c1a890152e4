// SPDX-License-Identifier: GPL-2.0-only
/*
 * compile.c: uses every call of the device library once, so that a compiler
 * that takes this file takes the header.  C11, CUDA or HIP.
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
		     const struct nvmepeer_staging *staging, const struct nvmepeer_piece *pieces,
		     const struct nvmepeer_transfer *transfer, int *status);
#endif

ENTRY void use_calls(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *buffer,
		     int *status)
{
	struct nvmepeer_command command = { NVMEPEER_OP_READ, 8, 0, buffer, 0, 0 };
	struct nvmepeer_solo solo = nvmepeer_solo_open(queue);
	struct nvmepeer_sqe entry = { { 0 } };
	struct nvmepeer_token token[2];
	uint32_t which = 0, result = 0;

	*status = nvmepeer_read(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_write(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_compare(queue, buffer, 0, 0, 8);
	*status |= nvmepeer_flush(queue);
	*status |= nvmepeer_write_zeroes(queue, 0, 8, NVMEPEER_CONTROL_DEALLOCATE);
	*status |= nvmepeer_zone_append(queue, buffer, 0, 0, 8, &result);
	*status |= nvmepeer_submit(queue, &command, &token[0], 1000);
	*status |= nvmepeer_submit_raw(queue, &entry, &token[1], 1000);
	*status |= nvmepeer_wait_any(queue, token, 2, &which, &result, 1000);
	*status |= nvmepeer_poll(queue, token[0], &result);
	*status |= nvmepeer_wait(queue, token[0], &result, 1000);
	*status |= nvmepeer_solo_read(&solo, buffer, 0, 0, 8);
	*status |= nvmepeer_solo_write(&solo, buffer, 0, 0, 8);
	nvmepeer_solo_close(&solo);
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
		     const struct nvmepeer_staging *staging, const struct nvmepeer_piece *pieces,
		     const struct nvmepeer_transfer *transfer, int *status)
{
	*status = nvmepeer_set_read(set, 0, 0, 8);
	*status |= nvmepeer_set_write(set, 0, 0, 8);
	*status |= nvmepeer_warp_transfer(set->queues, transfer);
	*status |= nvmepeer_block_transfer(set->queues, transfer, &table->left);
	*status |= nvmepeer_block_gather(set->queues, table, staging, pieces, 10);
}
