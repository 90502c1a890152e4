/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of softgpu_drv, the driver of the software GPU. Its source files, each with a header
 * and using only those below it:
 *
 *	main.c		probe, remove, resets, interrupt
 *	node.c		/dev/softgpuN, ioctl dispatch
 *	import.c	import of dma-bufs into GPU address space
 *	buffer.c	export of GPU memory as dma-bufs
 *	job.c		jobs
 *	device.c	lifetime of a device, and access to its hardware
 *	mmu.c		HBM and address space allocation, page table
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

/* Time limit for importers to unmap a buffer. */
#define SOFTGPU_RELEASE_TIMEOUT	(10 * HZ)

/**
 * struct softgpu_slot - a job in a slot of the device
 * @owner: file that started it, NULL for a free slot; under softgpu.lock
 * @id: handle of the job; under softgpu.lock
 * @done: the job has ended; set by the interrupt handler
 * @lost: the device was reset during the job; under softgpu.lock
 */
struct softgpu_slot {
	struct softgpu_file *owner;
	u32 id;
	bool done;
	bool lost;
};

/**
 * struct softgpu - a device
 * @ref: held by the bound driver, every open file and every dma-buf
 * @pdev: const, referenced
 * @misc: const: the node
 * @name: const: of the node
 * @number: const: in the name
 * @regs: const while not @gone: BAR0
 * @hbm: const while not @gone: BAR2
 * @hbm_phys: const: CPU address of BAR2
 * @hbm_bytes: const, like the following fields
 * @window: offset of the window in HBM, @hbm_bytes for none
 * @hbm_va: GPU address of HBM
 * @mmu_va: GPU address of the first page behind the page table
 * @table: offset of the page table in HBM
 * @jobs: offset of the jobs in HBM
 * @flush_page: memory that the device reads to flush posted writes
 * @flush_dma: DMA address of it
 * @workqueue: for the work of imports
 * @hw_lock: held for reading to access the hardware, after a check of @gone; for writing to reset
 *	or remove it
 * @gone: under @hw_lock
 * @lock: protects the following fields
 * @hbm_map: a bit for each page of HBM, set while allocated
 * @va_map: a bit for each entry of the page table, set while allocated
 * @buffers: struct softgpu_buffer
 * @buffers_wait: woken when one leaves @buffers
 * @imports: struct softgpu_importer
 * @slots: jobs
 * @next_job: id of the next job
 * @job_wait: woken when a job ends
 * @invalidations: invalidations of imports by exporters
 * @interrupts: handled interrupts
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
	u64 window;
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

#endif /* _SOFTGPU_H */
