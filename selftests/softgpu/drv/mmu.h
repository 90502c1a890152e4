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
 * softgpu_mmu_init() - divide HBM and get the maps
 * @gpu: device being probed; undone by softgpu_mmu_exit()
 *
 * Return: 0 or -ENOMEM, -EINVAL if HBM is too small.
 */
int softgpu_mmu_init(struct softgpu *gpu);
void softgpu_mmu_exit(struct softgpu *gpu);

/* Tell the device where the page table is; hw_lock is held. */
void softgpu_mmu_start(struct softgpu *gpu);

/**
 * softgpu_hbm_alloc() - get HBM
 * @gpu: device
 * @length: bytes, whole pages
 * @piece: receives it
 *
 * Return: 0 or -ENOSPC.  The memory is not cleared.
 */
int softgpu_hbm_alloc(struct softgpu *gpu, u64 length,
		      struct softgpu_piece *piece);
void softgpu_hbm_free(struct softgpu *gpu, const struct softgpu_piece *piece);
u64 softgpu_hbm_available(struct softgpu *gpu);

/**
 * softgpu_va_alloc() - get GPU address space behind the page table
 * @gpu: device
 * @length: bytes, whole pages
 * @address: receives the GPU address; nothing is there yet
 *
 * Return: 0 or -ENOSPC.
 */
int softgpu_va_alloc(struct softgpu *gpu, u64 length, u64 *address);
void softgpu_va_free(struct softgpu *gpu, u64 address, u64 length);

/**
 * softgpu_mmu_map() - let GPU addresses name something
 * @gpu: device; hw_lock is held
 * @address: GPU address of the first page
 * @target: DMA address or HBM offset
 * @length: bytes, whole pages
 * @flags: SOFTGPU_PTE_WRITE, SOFTGPU_PTE_HBM
 */
void softgpu_mmu_map(struct softgpu *gpu, u64 address, u64 target, u64 length,
		     u64 flags);

/**
 * softgpu_mmu_unmap() - let GPU addresses name nothing any more
 * @gpu: device; hw_lock is held
 * @address: GPU address of the first page
 * @length: bytes, whole pages
 *
 * On return the device does not access any more what they named.
 */
void softgpu_mmu_unmap(struct softgpu *gpu, u64 address, u64 length);

#endif /* _SOFTGPU_MMU_H */
