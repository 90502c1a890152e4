/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inside of softgpu_drv, the driver of the stand-in GPU:
 *
 *	main.c		probe, remove, resets, interrupt
 *	node.c		/dev/softgpuN, ioctl dispatch
 *	mmu.c		HBM and address space allocation, page table
 *	buffer.c	memory that we export as dma-bufs
 *	import.c	dma-bufs of others in GPU address space
 *	job.c		jobs
 *
 * Lock order: hw_lock, lock, a dma-buf's reservation lock.
 */
#ifndef _SOFTGPU_H
#define _SOFTGPU_H

#include <linux/dma-buf.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "../softgpu_drv.h"
#include "compat.h"

/* GPU address space behind the page table: 512 MiB, 1 MiB of page table. */
#define SOFTGPU_TABLE_PAGES	(SZ_512M / SOFTGPU_PAGE)
#define SOFTGPU_JOB_STRIDE	1024

/* How long importers may take to let go. */
#define SOFTGPU_RELEASE_TIMEOUT	(10 * HZ)

/**
 * struct softgpu_slot - a job of ours in one of the device's slots
 * @owner: file that started it, NULL for a free slot; under softgpu.lock
 * @id: what the file calls it; under softgpu.lock
 * @done: the device has ended it; set by the interrupt handler
 * @lost: the device was reset under it; under softgpu.lock
 */
struct softgpu_slot {
	struct softgpu_file *owner;
	u32 id;
	bool done;
	bool lost;
};

/**
 * struct softgpu - a device
 * @ref: one each of the bound driver, every open file, every dma-buf
 * @pdev: const, referenced
 * @misc: const: the node
 * @name: const: of the node
 * @number: const: in the name
 * @regs: const while not @gone: BAR0
 * @hbm: const while not @gone: BAR2
 * @hbm_phys: const: CPU address of BAR2
 * @hbm_bytes: const: as are the following
 * @hbm_va: GPU address of HBM
 * @mmu_va: GPU address of the first page behind the page table
 * @table: offset of the page table in HBM
 * @jobs: offset of the jobs in HBM
 * @flush_page: memory that the device reads to push posted writes out
 * @flush_dma: DMA address of it
 * @workqueue: where imports are let go
 * @hw_lock: read: use the hardware, after a look at @gone; write: reset it or
 *	take it away
 * @gone: under @hw_lock
 * @lock: guards the fields that follow
 * @hbm_map: a bit per page of HBM in use
 * @va_map: a bit per entry of the page table in use
 * @buffers: struct softgpu_buffer
 * @buffers_wait: woken when one leaves @buffers
 * @imports: struct softgpu_importer
 * @slots: jobs
 * @next_job: id of the next job
 * @job_wait: woken when a job ends
 * @invalidations: times that exporters told imports to let go
 * @interrupts: taken
 * @cpu_maps: mappings of buffers by the CPU, and faults of them
 */
struct softgpu {
	struct kref ref;
	struct pci_dev *pdev;
	struct miscdevice misc;
	char name[24];
	int number;
	void __iomem *regs;
	void __iomem *hbm;
	phys_addr_t hbm_phys;
	u64 hbm_bytes;
	u64 hbm_va;
	u64 mmu_va;
	u64 table;
	u64 jobs;
	void *flush_page;
	dma_addr_t flush_dma;
	struct workqueue_struct *workqueue;
	struct rw_semaphore hw_lock;
	bool gone;
	struct mutex lock;	/* see above */
	unsigned long *hbm_map;
	unsigned long *va_map;
	struct list_head buffers;
	wait_queue_head_t buffers_wait;
	struct list_head imports;
	struct softgpu_slot slots[SOFTGPU_MAX_SLOTS];
	u32 next_job;
	wait_queue_head_t job_wait;
	atomic64_t invalidations;
	atomic64_t interrupts;
	atomic64_t cpu_maps;
};

/**
 * struct softgpu_file - an open file
 * @gpu: const, referenced
 * @imports: struct softgpu_importer by handle
 */
struct softgpu_file {
	struct softgpu *gpu;
	struct xarray imports;
};

/**
 * struct softgpu_piece - contiguous HBM
 * @offset: in HBM, bytes
 * @length: bytes
 */
struct softgpu_piece {
	u64 offset;
	u64 length;
};

/* main.c */
void softgpu_put(struct softgpu *gpu);

/**
 * softgpu_hw_enter() - begin to use the hardware
 * @gpu: device
 *
 * Return: true, to be ended by softgpu_hw_leave(); false if it is gone.
 */
bool softgpu_hw_enter(struct softgpu *gpu);
void softgpu_hw_leave(struct softgpu *gpu);

/* node.c */
extern const struct file_operations softgpu_fops;

/* mmu.c */

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

/* buffer.c */
int softgpu_alloc(struct softgpu_file *file, struct softgpu_alloc *alloc);
int softgpu_move(struct softgpu_file *file, struct softgpu_move *move);

/* Is it one of @gpu's own? */
bool softgpu_owns(const struct softgpu *gpu, const struct dma_buf *dmabuf);

/**
 * softgpu_buffers_revoke() - take the memory away from all dma-bufs
 * @gpu: device that is gone
 *
 * On return nobody has it mapped but importers that did not let go in time,
 * which is logged.
 */
void softgpu_buffers_revoke(struct softgpu *gpu);

/* import.c */
int softgpu_import(struct softgpu_file *file, struct softgpu_import *import);
int softgpu_import_info(struct softgpu_file *file,
			struct softgpu_import_info *info);
int softgpu_release(struct softgpu_file *file,
		    const struct softgpu_release *release);
void softgpu_imports_close(struct softgpu_file *file);

/* Let go of everything imported by any file; the device is gone. */
void softgpu_imports_shutdown(struct softgpu *gpu);

/* job.c */
int softgpu_start(struct softgpu_file *file, struct softgpu_start *start);
int softgpu_wait(struct softgpu_file *file, struct softgpu_wait *wait);
int softgpu_progress(struct softgpu_file *file, struct softgpu_wait *wait);
int softgpu_stop(struct softgpu_file *file, const struct softgpu_stop *stop);
void softgpu_jobs_close(struct softgpu_file *file);

/* The device was reset: no job will end any more; hw_lock is held for writing. */
void softgpu_jobs_lost(struct softgpu *gpu);

/* From the interrupt handler: jobs in these slots have ended. */
void softgpu_jobs_done(struct softgpu *gpu, u32 slots);

#endif /* _SOFTGPU_H */
