/* SPDX-License-Identifier: GPL-2.0-only */
/* GPU addresses: HBM, page table, DMA, faults. */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "gpu.h"

/* @length bytes of HBM before the window at GPU address @address, otherwise NULL. */
void *gpu_hbm(const struct gpu *gpu, uint64_t address, uint64_t length);

/* Whether @length bytes at @address are all in the window. */
bool gpu_in_window(const struct gpu *gpu, uint64_t address, uint64_t length);

/*
 * Access any GPU address. A failed access is a fault, and does not return. Aligned accesses of 4
 * and 8 bytes are not torn. @flags: VFU_DMA_MESSAGE.
 */
void lane_read(struct lane *lane, uint64_t address, void *data, size_t length,
	       unsigned int flags);
void lane_write(struct lane *lane, uint64_t address, const void *data,
		size_t length, unsigned int flags);

/*
 * The page table entry of @address if it allows the access, otherwise 0. The memory behind the
 * entry may be used between memory_view_enter() and memory_view_leave() only.
 */
uint64_t memory_entry(const struct gpu *gpu, uint64_t address, bool write);
/* Does the page table map each page of this range to the memory behind @entry, one after the other? */
bool memory_holds(const struct gpu *gpu, uint64_t address, uint64_t length, bool write,
		  uint64_t entry);
/* Does the controller's page at this bus address have @token at BADCTRL_TOKEN? Sends a request. */
bool memory_has_token(struct gpu *gpu, uint64_t bus, uint64_t token);
void memory_view_enter(struct lane *lane);
void memory_view_leave(struct lane *lane);

/* A posted store of 4 bytes, for doorbells. */
void lane_post(struct lane *lane, uint64_t address, uint32_t value);

/* Wait until all posted stores have arrived: a read of SOFTGPU_REG_FLUSH pushes them. */
void memory_flush(struct gpu *gpu);

/* Count a fault at @address and leave the program. */
_Noreturn void lane_fault(struct lane *lane, uint64_t address);

/* Start and end the invalidator; 0 or a negative errno. */
int memory_start(struct gpu *gpu);
void memory_exit(struct gpu *gpu);

/*
 * Later accesses use the current page table. memory_invalidating() returns true until all
 * accesses that used an older one have ended.
 */
void memory_invalidate(struct gpu *gpu);
bool memory_invalidating(struct gpu *gpu);

#endif /* SOFTGPU_MEMORY_H */
