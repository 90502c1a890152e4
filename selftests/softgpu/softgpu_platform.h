/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stand-in GPU as a platform of the device library: rings, doorbells,
 * status page and PRP lists are GPU addresses, which become loads and stores of
 * HBM or bus-master DMA (platform.c).  Book-keeping lies in HBM, which is plain
 * memory of the process, so the C11 platform does for the rest.
 */
#ifndef SOFTGPU_PLATFORM_H
#define SOFTGPU_PLATFORM_H

#include <stdint.h>

void softgpu_sq_store(uint64_t address, const uint32_t value[4]);
void softgpu_cq_load(uint64_t address, uint32_t value[4]);
void softgpu_doorbell_store(uint64_t address, uint32_t value);
uint32_t softgpu_status_load(uint64_t address);
void softgpu_list_store(uint64_t address, uint64_t value);

#ifdef NVMEPEER_PLATFORM_HEADER
#define NVMEPEER_PLATFORM_BUS

NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	softgpu_sq_store(address, value);
}

NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
{
	softgpu_cq_load(address, value);
}

NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	softgpu_doorbell_store(address, value);
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	return softgpu_status_load(address);
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	softgpu_list_store(address, value);
}

/* Stores to HBM are visible to the bus in order; posted ones go out in order. */
NVMEPEER_FN void nvmepeer_fence_publish(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

NVMEPEER_FN void nvmepeer_fence_consume(void)
{
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
}
#endif /* NVMEPEER_PLATFORM_HEADER */

#endif /* SOFTGPU_PLATFORM_H */
