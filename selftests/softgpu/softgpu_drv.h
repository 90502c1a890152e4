/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * User interface of softgpu_drv.ko, the driver of the stand-in GPU:
 * /dev/softgpuN.  It plays what a GPU driver does towards nvme-peer: gives out
 * GPU memory as dma-bufs, takes others' dma-bufs into GPU address space, runs
 * programs.
 *
 * Handles and jobs belong to the open file and go with it: jobs are aborted,
 * imports let go.  Memory belongs to its dma-buf.  Every call fails with ENODEV
 * once the device is gone.  Unknown flags fail with EINVAL.
 */
#ifndef SOFTGPU_DRV_H
#define SOFTGPU_DRV_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "softgpu_regs.h"

/**
 * struct softgpu_info - ioctl(SOFTGPU_INFO)
 * @hbm_bytes: size of HBM
 * @hbm_free: bytes not allocated
 * @hbm_va: GPU address of HBM
 * @mmu_va: GPU address of the first page that goes through the page table
 * @pci_address: domain << 16 | bus << 8 | device << 3 | function
 * @buffers: dma-bufs of this device that live
 * @imports: imports of all files
 * @jobs: running jobs of all files
 * @invalidations: times that an exporter told an import to let go
 * @interrupts: interrupts taken
 * @cpu_maps: times that the CPU mapped a dma-buf of this device, or a page of one
 */
struct softgpu_info {
	__u64 hbm_bytes;
	__u64 hbm_free;
	__u64 hbm_va;
	__u64 mmu_va;
	__u32 pci_address;
	__u32 buffers;
	__u32 imports;
	__u32 jobs;
	__u64 invalidations;
	__u64 interrupts;
	__u64 cpu_maps;
};

#define SOFTGPU_INFO		_IOR('g', 0, struct softgpu_info)

/* softgpu_alloc.flags */
#define SOFTGPU_ALLOC_SYSTEM	(1U << 0)	/* host memory instead of HBM, and nobody says so */
#define SOFTGPU_ALLOC_SCATTERED	(1U << 1)	/* HBM in several separate pieces */

/**
 * struct softgpu_alloc - ioctl(SOFTGPU_ALLOC): memory as a dma-buf
 * @size: in: bytes; out: rounded up to pages
 * @flags: in: SOFTGPU_ALLOC_*
 * @fd: out: the dma-buf, close-on-exec; may be mapped, shared
 * @address: out: GPU address of it
 *
 * Zeroed.  ENOSPC: no room.
 */
struct softgpu_alloc {
	__u64 size;
	__u32 flags;
	__s32 fd;
	__u64 address;
};

#define SOFTGPU_ALLOC		_IOWR('g', 1, struct softgpu_alloc)

/* softgpu_move.flags */
#define SOFTGPU_MOVE_FORCE	(1U << 0)	/* although it is pinned, as a dying GPU would */

/**
 * struct softgpu_move - ioctl(SOFTGPU_MOVE): put HBM memory somewhere else in HBM
 * @fd: in: dma-buf from SOFTGPU_ALLOC
 * @flags: in: SOFTGPU_MOVE_*
 * @address: out: new GPU address
 *
 * Importers are told to let go and waited for.  EBUSY: pinned.  ETIMEDOUT: an
 * importer did not let go in 10 s; nothing moved.  EINVAL: not HBM of this
 * device in one piece.
 */
struct softgpu_move {
	__s32 fd;
	__u32 flags;
	__u64 address;
};

#define SOFTGPU_MOVE		_IOWR('g', 2, struct softgpu_move)

/* softgpu_import.flags */
#define SOFTGPU_IMPORT_STATIC	(1U << 0)	/* dma_buf_attach(): cannot be told to let go */
#define SOFTGPU_IMPORT_READ_ONLY (1U << 1)	/* programs must not write it */

/**
 * struct softgpu_import - ioctl(SOFTGPU_IMPORT): a dma-buf into GPU address space
 * @fd: in: the dma-buf
 * @flags: in: SOFTGPU_IMPORT_*
 * @handle: out: names it on this file; never 0
 * @segments: out: contiguous ranges of DMA addresses
 * @address: out: GPU address
 * @length: out: bytes
 */
struct softgpu_import {
	__s32 fd;
	__u32 flags;
	__u32 handle;
	__u32 segments;
	__u64 address;
	__u64 length;
};

#define SOFTGPU_IMPORT		_IOWR('g', 3, struct softgpu_import)

/**
 * struct softgpu_import_info - ioctl(SOFTGPU_IMPORT_INFO)
 * @handle: in
 * @mapped: out: 0 while it is let go; the address faults then
 * @invalidations: out: times that the exporter told it to let go
 */
struct softgpu_import_info {
	__u32 handle;
	__u32 mapped;
	__u64 invalidations;
};

#define SOFTGPU_IMPORT_INFO	_IOWR('g', 4, struct softgpu_import_info)

/** struct softgpu_release - ioctl(SOFTGPU_RELEASE): undo an import */
struct softgpu_release {
	__u32 handle;
	__u32 reserved;
};

#define SOFTGPU_RELEASE		_IOW('g', 5, struct softgpu_release)

/**
 * struct softgpu_start - ioctl(SOFTGPU_START): start a job
 * @program: in: enum softgpu_program
 * @threads: in: 1 to SOFTGPU_MAX_THREADS
 * @parameters: in: user pointer to the program's parameters
 * @length: in: bytes of them, up to SOFTGPU_PARAMETER_BYTES
 * @job: out: names the job until it is waited for; never 0
 *
 * Imports of this file that were let go are mapped again first, at the same
 * address, as drivers do when they validate a submission; one that its exporter
 * refuses stays away.  EBUSY: SOFTGPU_MAX_SLOTS jobs run or wait to be waited for.
 */
struct softgpu_start {
	__u32 program;
	__u32 threads;
	__u64 parameters;
	__u32 length;
	__u32 job;
};

#define SOFTGPU_START		_IOWR('g', 6, struct softgpu_start)

/**
 * struct softgpu_wait - ioctl(SOFTGPU_WAIT), ioctl(SOFTGPU_PROGRESS)
 * @job: in
 * @timeout_ms: in: SOFTGPU_WAIT: how long; 0 looks once
 * @result: out: as of now
 *
 * WAIT takes the job away once it has ended: ETIMEDOUT if it has not.  PROGRESS
 * only looks.  ENOENT: no such job.  EIO: the device died under it.
 */
struct softgpu_wait {
	__u32 job;
	__u32 timeout_ms;
	struct softgpu_result result;
};

#define SOFTGPU_WAIT		_IOWR('g', 7, struct softgpu_wait)
#define SOFTGPU_PROGRESS	_IOWR('g', 8, struct softgpu_wait)

/* softgpu_stop.flags */
#define SOFTGPU_STOP_ABORT	(1U << 0)	/* at once, as after a fault */

/** struct softgpu_stop - ioctl(SOFTGPU_STOP): end a job; wait for it afterwards */
struct softgpu_stop {
	__u32 job;
	__u32 flags;
};

#define SOFTGPU_STOP		_IOW('g', 9, struct softgpu_stop)

/* What went over the bus so far, read from the device. */
#define SOFTGPU_COUNTERS	_IOR('g', 10, struct softgpu_counters)

#endif /* SOFTGPU_DRV_H */
