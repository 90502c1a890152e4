/* SPDX-License-Identifier: GPL-2.0-only */
/* HBM, GPU address space and the page table. */
#ifndef _SOFTGPU_MMU_H
#define _SOFTGPU_MMU_H

#include "softgpu.h"

/**
 * struct softgpu_piece - contiguous HBM
 * @offset: in HBM, bytes
 * @length: bytes
 */
struct softgpu_piece {
	u64 offset;
	u64 length;
};

/**
 * softgpu_mmu_init() - divide HBM and allocate the maps
 * @gpu: device being probed; undone by softgpu_mmu_exit()
 *
 * Return: 0 or -ENOMEM, -EINVAL if HBM is too small.
 */
int softgpu_mmu_init(struct softgpu *gpu);
void softgpu_mmu_exit(struct softgpu *gpu);

/* Set the page table registers; called with hw_lock held. */
void softgpu_mmu_start(struct softgpu *gpu);

/**
 * softgpu_hbm_alloc() - allocate HBM
 * @gpu: device
 * @length: bytes, whole pages
 * @window: in the window
 * @piece: receives it
 *
 * Return: 0 or -ENOSPC.  The memory is not cleared.
 */
int softgpu_hbm_alloc(struct softgpu *gpu, u64 length, bool window,
		      struct softgpu_piece *piece);
void softgpu_hbm_free(struct softgpu *gpu, const struct softgpu_piece *piece);
u64 softgpu_hbm_available(struct softgpu *gpu);

/**
 * softgpu_va_alloc() - allocate GPU address space of the page table
 * @gpu: device
 * @length: bytes, whole pages
 * @address: receives the GPU address, which is unmapped
 *
 * Return: 0 or -ENOSPC.
 */
int softgpu_va_alloc(struct softgpu *gpu, u64 length, u64 *address);
void softgpu_va_free(struct softgpu *gpu, u64 address, u64 length);

/**
 * softgpu_mmu_map() - map GPU addresses
 * @gpu: device; hw_lock is held
 * @address: GPU address of the first page
 * @target: DMA address or HBM offset
 * @length: bytes, whole pages
 * @flags: SOFTGPU_PTE_WRITE, SOFTGPU_PTE_HBM
 */
void softgpu_mmu_map(struct softgpu *gpu, u64 address, u64 target, u64 length,
		     u64 flags);

/**
 * softgpu_mmu_unmap() - unmap GPU addresses
 * @gpu: device; hw_lock is held
 * @address: GPU address of the first page
 * @length: bytes, whole pages
 *
 * On return the device does not access the former target any more.
 */
void softgpu_mmu_unmap(struct softgpu *gpu, u64 address, u64 length);

#endif /* _SOFTGPU_MMU_H */
