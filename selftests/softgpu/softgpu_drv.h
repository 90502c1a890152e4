/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * User interface of softgpu_drv.ko, the driver of the software GPU: /dev/softgpuN. It does what
 * a GPU driver does for nvme-peer: it exports GPU memory as dma-bufs, imports dma-bufs into GPU
 * address space, and runs programs.
 *
 * Handles and jobs belong to the open file: closing it aborts jobs and releases imports. Memory
 * belongs to its dma-buf. Every call fails with ENODEV after the device was removed. Unknown
 * flags fail with EINVAL.
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
 * @buffers: existing dma-bufs of this device
 * @imports: imports of all files
 * @jobs: running jobs of all files
 * @invalidations: invalidations of imports by their exporters
 * @interrupts: handled interrupts
 * @cpu_maps: CPU mappings of dma-bufs of this device, or of their pages
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
#define SOFTGPU_ALLOC_SYSTEM	(1U << 0)	/* host memory instead of HBM, not visible to importers */
#define SOFTGPU_ALLOC_SCATTERED	(1U << 1)	/* HBM in several separate pieces */
#define SOFTGPU_ALLOC_WINDOW	(1U << 2)	/* HBM in the window, for data of programs on blocks */

/**
 * struct softgpu_alloc - ioctl(SOFTGPU_ALLOC): memory as a dma-buf
 * @size: in: bytes; out: rounded up to pages
 * @flags: in: SOFTGPU_ALLOC_*
 * @fd: out: the dma-buf, close-on-exec; may be mapped, shared
 * @address: out: GPU address
 *
 * The memory is zeroed, except in the window, which cannot be mapped either (ENXIO). ENOSPC: not
 * enough memory, or no window.
 */
struct softgpu_alloc {
	__u64 size;
	__u32 flags;
	__s32 fd;
	__u64 address;
};

#define SOFTGPU_ALLOC		_IOWR('g', 1, struct softgpu_alloc)

/* softgpu_move.flags */
#define SOFTGPU_MOVE_FORCE	(1U << 0)	/* even if it is pinned, like a failing GPU */

/**
 * struct softgpu_move - ioctl(SOFTGPU_MOVE): move memory inside HBM
 * @fd: in: dma-buf from SOFTGPU_ALLOC
 * @flags: in: SOFTGPU_MOVE_*
 * @address: out: new GPU address
 *
 * Importers are invalidated and waited for. EBUSY: pinned. ETIMEDOUT: an importer did not unmap
 * it within 10 s, and it was not moved. EINVAL: not contiguous HBM of this device.
 */
struct softgpu_move {
	__s32 fd;
	__u32 flags;
	__u64 address;
};

#define SOFTGPU_MOVE		_IOWR('g', 2, struct softgpu_move)

/* softgpu_import.flags */
#define SOFTGPU_IMPORT_STATIC	(1U << 0)	/* dma_buf_attach(): without invalidation */
#define SOFTGPU_IMPORT_READ_ONLY (1U << 1)	/* for reading only */

/**
 * struct softgpu_import - ioctl(SOFTGPU_IMPORT): a dma-buf into GPU address space
 * @fd: in: the dma-buf
 * @flags: in: SOFTGPU_IMPORT_*
 * @handle: out: handle on this file; never 0
 * @segments: out: number of contiguous DMA address ranges
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
 * @mapped: out: 0 after an invalidation, when accesses to the address fault
 * @invalidations: out: number of invalidations by the exporter
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
 * @job: out: handle of the job until SOFTGPU_WAIT returns its result; never 0
 *
 * Invalidated imports of this file are first mapped again at the same address, as drivers do
 * when they validate a submission. An import that its exporter refuses stays unmapped. EBUSY:
 * SOFTGPU_MAX_SLOTS jobs run or wait for SOFTGPU_WAIT.
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
 * @timeout_ms: in: SOFTGPU_WAIT: timeout; 0 does not wait
 * @result: out: the current result
 *
 * WAIT releases the job if it has ended, otherwise it fails with ETIMEDOUT. PROGRESS returns the
 * current result only. ENOENT: no such job. EIO: the device was reset or removed.
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

/** struct softgpu_stop - ioctl(SOFTGPU_STOP): end a job; SOFTGPU_WAIT waits for its end */
struct softgpu_stop {
	__u32 job;
	__u32 flags;
};

#define SOFTGPU_STOP		_IOW('g', 9, struct softgpu_stop)

/* Bus transactions so far, read from the device. */
#define SOFTGPU_COUNTERS	_IOR('g', 10, struct softgpu_counters)

#endif /* SOFTGPU_DRV_H */
