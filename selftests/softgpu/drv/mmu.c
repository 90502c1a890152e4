// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation of HBM and GPU address space, and the page table.
 *
 * The page table and the jobs are at the end of HBM, or before its window, behind the memory for
 * buffers.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/io-64-nonatomic-lo-hi.h>

#include "mmu.h"

#define TABLE_BYTES	(SOFTGPU_TABLE_PAGES * sizeof(u64))
#define JOBS_BYTES	PAGE_ALIGN(SOFTGPU_MAX_SLOTS * SOFTGPU_JOB_STRIDE)

static_assert(sizeof(struct softgpu_job) <= SOFTGPU_JOB_STRIDE);
static_assert(SOFTGPU_PAGE == PAGE_SIZE);

static unsigned long hbm_pages(const struct softgpu *gpu)
{
	return gpu->jobs >> PAGE_SHIFT;
}

static unsigned long all_pages(const struct softgpu *gpu)
{
	return gpu->hbm_bytes >> PAGE_SHIFT;
}

int softgpu_mmu_init(struct softgpu *gpu)
{
	if (gpu->window < 2 * (TABLE_BYTES + JOBS_BYTES) || gpu->window > gpu->hbm_bytes)
		return -EINVAL;
	gpu->table = gpu->window - TABLE_BYTES;
	gpu->jobs = gpu->table - JOBS_BYTES;
	gpu->hbm_map = bitmap_zalloc(all_pages(gpu), GFP_KERNEL);
	gpu->va_map = bitmap_zalloc(SOFTGPU_TABLE_PAGES, GFP_KERNEL);
	if (!gpu->hbm_map || !gpu->va_map)
		return -ENOMEM;
	memset_io(gpu->hbm + gpu->table, 0, TABLE_BYTES);
	return 0;
}

/* May be called after a failed softgpu_mmu_init(), or without one. */
void softgpu_mmu_exit(struct softgpu *gpu)
{
	bitmap_free(gpu->va_map);
	bitmap_free(gpu->hbm_map);
}

void softgpu_mmu_start(struct softgpu *gpu)
{
	writeq(gpu->table, gpu->regs + SOFTGPU_REG_TABLE);
	writeq(SOFTGPU_TABLE_PAGES, gpu->regs + SOFTGPU_REG_TABLE_PAGES);
}

/* Allocate @count contiguous bits from @start on. Returns the first one or -ENOSPC. */
static long softgpu_take(unsigned long *map, unsigned long start,
			 unsigned long size, unsigned long count)
{
	unsigned long first;

	if (!count || count > size)
		return -ENOSPC;
	first = bitmap_find_next_zero_area(map, size, start, count, 0);
	if (first >= size)
		return -ENOSPC;
	bitmap_set(map, first, count);
	return first;
}

int softgpu_hbm_alloc(struct softgpu *gpu, u64 length, bool window,
		      struct softgpu_piece *piece)
{
	unsigned long start = window ? gpu->window >> PAGE_SHIFT : 0;
	long first;

	mutex_lock(&gpu->lock);
	first = softgpu_take(gpu->hbm_map, start,
			     window ? all_pages(gpu) : hbm_pages(gpu),
			     length >> PAGE_SHIFT);
	mutex_unlock(&gpu->lock);
	if (first < 0)
		return first;
	piece->offset = (u64)first << PAGE_SHIFT;
	piece->length = length;
	return 0;
}

void softgpu_hbm_free(struct softgpu *gpu, const struct softgpu_piece *piece)
{
	mutex_lock(&gpu->lock);
	bitmap_clear(gpu->hbm_map, piece->offset >> PAGE_SHIFT,
		     piece->length >> PAGE_SHIFT);
	mutex_unlock(&gpu->lock);
}

u64 softgpu_hbm_available(struct softgpu *gpu)
{
	lockdep_assert_held(&gpu->lock);
	return (u64)(hbm_pages(gpu) -
		     bitmap_weight(gpu->hbm_map, hbm_pages(gpu))) << PAGE_SHIFT;
}

int softgpu_va_alloc(struct softgpu *gpu, u64 length, u64 *address)
{
	long first;

	mutex_lock(&gpu->lock);
	first = softgpu_take(gpu->va_map, 0, SOFTGPU_TABLE_PAGES,
			     length >> PAGE_SHIFT);
	mutex_unlock(&gpu->lock);
	if (first < 0)
		return first;
	*address = gpu->mmu_va + ((u64)first << PAGE_SHIFT);
	return 0;
}

void softgpu_va_free(struct softgpu *gpu, u64 address, u64 length)
{
	mutex_lock(&gpu->lock);
	bitmap_clear(gpu->va_map, (address - gpu->mmu_va) >> PAGE_SHIFT,
		     length >> PAGE_SHIFT);
	mutex_unlock(&gpu->lock);
}

static void __iomem *softgpu_entry(struct softgpu *gpu, u64 address)
{
	return gpu->hbm + gpu->table +
	       ((address - gpu->mmu_va) >> PAGE_SHIFT) * sizeof(u64);
}

void softgpu_mmu_map(struct softgpu *gpu, u64 address, u64 target, u64 length,
		     u64 flags)
{
	u64 offset;

	lockdep_assert_held(&gpu->hw_lock);
	for (offset = 0; offset < length; offset += PAGE_SIZE)
		writeq((target + offset) | flags | SOFTGPU_PTE_VALID,
		       softgpu_entry(gpu, address + offset));
	/* Order the entries before the uncached store that starts a job. */
	wmb();
}

void softgpu_mmu_unmap(struct softgpu *gpu, u64 address, u64 length)
{
	void __iomem *invalidate = gpu->regs + SOFTGPU_REG_INVALIDATE;
	u64 offset;
	int tries;

	lockdep_assert_held(&gpu->hw_lock);
	for (offset = 0; offset < length; offset += PAGE_SIZE)
		writeq(0, softgpu_entry(gpu, address + offset));
	/* Flush the entries from the write-combining buffers. */
	wmb();
	writel(1, invalidate);
	for (tries = 0; tries < 50000; tries++) {
		u32 busy = readl(invalidate);

		if (!busy || busy == U32_MAX)
			return;
		usleep_range(50, 200);
	}
	pci_err(gpu->pdev, "page table invalidation hangs, bus mastering off\n");
	pci_clear_master(gpu->pdev);
}
