// SPDX-License-Identifier: GPL-2.0-only
/*
 * Platform functions of the device library, see softgpu_platform.h: accesses by the lane of the
 * current thread.
 */
#include "lane.h"
#include "memory.h"
#include "softgpu_platform.h"

void softgpu_sq_store(uint64_t address, const uint32_t value[4])
{
	struct lane *lane = current_lane;

	lane_write(lane, address, value, 8, 0);
	lane_write(lane, address + 8, value + 2, 8, 0);
}

/* Load the half with the phase tag first, so that a torn entry is not accepted. */
void softgpu_cq_load(uint64_t address, uint32_t value[4])
{
	struct lane *lane = current_lane;

	lane_read(lane, address + 8, value + 2, 8, 0);
	lane_read(lane, address, value, 8, 0);
	if (lane->polled[0] == address && lane->polled[1] == value[3]) {
		backoff_wait(&lane->polling);
		return;
	}
	lane->polled[0] = address;
	lane->polled[1] = value[3];
	lane->polling.rounds = 0;
}

void softgpu_doorbell_store(uint64_t address, uint32_t value)
{
	lane_post(current_lane, address, value);
}

uint32_t softgpu_status_load(uint64_t address)
{
	uint32_t value;

	lane_read(current_lane, address, &value, sizeof(value), 0);
	return value;
}

void softgpu_list_store(uint64_t address, uint64_t value)
{
	lane_write(current_lane, address, &value, sizeof(value), 0);
}
