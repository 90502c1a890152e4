/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The software GPU as a platform of the device library: rings, doorbells, status page and PRP
 * lists have GPU addresses, and accesses are loads and stores of HBM or bus-master DMA
 * (platform.c). The state of queue pairs is in HBM, which is memory of the process, so all other
 * functions are those of the C11 platform.
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
#define NVP_PLATFORM_BUS

NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	softgpu_sq_store(address, value);
}

NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	softgpu_cq_load(address, value);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	softgpu_doorbell_store(address, value);
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	return softgpu_status_load(address);
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	softgpu_list_store(address, value);
}

/* Stores to HBM are visible on the bus in order; posted writes are sent in order. */
NVP_FN void nvp_fence_publish(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

NVP_FN void nvp_fence_consume(void)
{
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
}
#endif /* NVMEPEER_PLATFORM_HEADER */

#endif /* SOFTGPU_PLATFORM_H */
