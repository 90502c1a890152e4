/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hardware interface of softgpu, the software GPU, between its process (selftests/softgpu)
 * and its driver (selftests/softgpu/drv).
 *
 * BAR0, 64 KiB: registers below.  BAR2: the memory, "HBM".  One MSI: a job
 * ended.  All numbers are little endian.
 *
 * Programs use GPU virtual addresses. Those from SOFTGPU_REG_HBM_VA on are linear in HBM. Those
 * from SOFTGPU_REG_MMU_VA on are translated by a page table, an array of 64-bit entries in HBM,
 * one for each 4 KiB. An access to an unmapped address is a fault and ends the job.
 */
#ifndef SOFTGPU_REGS_H
#define SOFTGPU_REGS_H

#include <linux/types.h>

#define SOFTGPU_VENDOR_ID	0x1234
#define SOFTGPU_DEVICE_ID	0x6770
#define SOFTGPU_CLASS		0x120000	/* processing accelerator */

#define SOFTGPU_REGISTER_BYTES	(64U << 10)
#define SOFTGPU_PAGE		4096U

/* Registers. 64-bit registers need a single access of 8 bytes. */
#define SOFTGPU_REG_ID		0x000	/* 32 R: SOFTGPU_ID */
#define SOFTGPU_REG_VERSION	0x004	/* 32 R: SOFTGPU_VERSION */
#define SOFTGPU_REG_HBM_BYTES	0x008	/* 64 R */
#define SOFTGPU_REG_HBM_VA	0x010	/* 64 R: GPU address of HBM */
#define SOFTGPU_REG_MMU_VA	0x018	/* 64 R: GPU address of the first page */
#define SOFTGPU_REG_SLOTS	0x020	/* 32 R: concurrent jobs */
#define SOFTGPU_REG_THREADS	0x024	/* 32 R: maximum threads of a job */
#define SOFTGPU_REG_TABLE	0x028	/* 64 RW: page table, offset in HBM */
#define SOFTGPU_REG_TABLE_PAGES	0x030	/* 64 RW: entries of the table; 0: no MMU */
/*
 * Write: later accesses use the current page table. Read: not 0 while earlier accesses, or their
 * posted writes, are in progress.
 */
#define SOFTGPU_REG_INVALIDATE	0x038	/* 32 RW */
/*
 * DMA address of 4 readable bytes. A read of them flushes posted writes before a job reports its
 * end; 0: no flush.
 */
#define SOFTGPU_REG_FLUSH	0x040	/* 64 RW */
#define SOFTGPU_REG_INT_STATUS	0x048	/* 32 R, 1 clears: bit per slot, its job ended */
#define SOFTGPU_REG_INT_ENABLE	0x04c	/* 32 RW */
#define SOFTGPU_REG_RESET	0x050	/* 32 W: abort all jobs; R: bit per running job */
/*
 * The part of HBM from this offset on is a window: for the data of programs on blocks, and for DMA
 * of the controller to data, an offset is that of memory which no CPU can access. The size of HBM
 * if there is none.
 */
#define SOFTGPU_REG_WINDOW	0x058	/* 64 R */
#define SOFTGPU_REG_COUNTERS	0x100	/* 64 R each: struct softgpu_counters */
#define SOFTGPU_REG_SLOT(n)	(0x1000 + 0x40 * (n))
#define SOFTGPU_SLOT_JOB	0x00	/* 64 RW: struct softgpu_job, offset in HBM */
#define SOFTGPU_SLOT_CONTROL	0x08	/* 32 W: SOFTGPU_CONTROL_* */
#define SOFTGPU_SLOT_STATUS	0x0c	/* 32 R: 1 while a job runs */

#define SOFTGPU_ID		0x55504753U	/* "SGPU" */
#define SOFTGPU_VERSION		1U

#define SOFTGPU_MAX_SLOTS	16U
#define SOFTGPU_MAX_THREADS	64U	/* on CPUs; see SOFTGPU_REG_THREADS */

#define SOFTGPU_CONTROL_START	1U	/* run the job at SOFTGPU_SLOT_JOB */
#define SOFTGPU_CONTROL_STOP	2U	/* end normally */
#define SOFTGPU_CONTROL_ABORT	3U	/* end at once, like after a fault */

/* Page table entries: an address of 4 KiB units and these bits. */
#define SOFTGPU_PTE_VALID	(1ULL << 0)
#define SOFTGPU_PTE_WRITE	(1ULL << 1)
#define SOFTGPU_PTE_HBM		(1ULL << 2)	/* offset in HBM, else DMA address */
#define SOFTGPU_PTE_ADDRESS	(~0xfffULL)

/**
 * struct softgpu_counters - since the process started
 * @jobs: started jobs
 * @faults: accesses to unmapped addresses
 * @fault_address: GPU address of the last fault
 * @doorbells: posted 4-byte writes
 * @posted_failed: posted writes that failed at their destination
 * @mapped_reads: DMA reads of guest memory through its mapping
 * @mapped_writes: DMA writes of guest memory through its mapping
 * @message_reads: DMA reads by message
 * @message_writes: DMA writes by message with a reply
 * @dma_bytes_written: bytes of all DMA writes, including posted ones
 * @resets: resets of any kind
 * @invalidations: writes of SOFTGPU_REG_INVALIDATE
 */
struct softgpu_counters {
	__u64 jobs;
	__u64 faults;
	__u64 fault_address;
	__u64 doorbells;
	__u64 posted_failed;
	__u64 mapped_reads;
	__u64 mapped_writes;
	__u64 message_reads;
	__u64 message_writes;
	__u64 dma_bytes_written;
	__u64 resets;
	__u64 invalidations;
};

/**
 * enum softgpu_status - status of a job
 * @SOFTGPU_RUNNING: it has not ended
 * @SOFTGPU_OK: success
 * @SOFTGPU_FAILED: an I/O failed, data was wrong, or a poll timed out; see the other fields of
 *	struct softgpu_result
 * @SOFTGPU_FAULT: an access to an unmapped address
 * @SOFTGPU_ABORTED: aborted, or the device was reset
 * @SOFTGPU_INVALID: no such program, or invalid parameters
 */
enum softgpu_status {
	SOFTGPU_RUNNING = 0,
	SOFTGPU_OK = 1,
	SOFTGPU_FAILED = 2,
	SOFTGPU_FAULT = 3,
	SOFTGPU_ABORTED = 4,
	SOFTGPU_INVALID = 5,
};

/**
 * struct softgpu_result - result of a job, updated while it runs
 * @status: enum softgpu_status
 * @error: the first error: a positive NVMe status or a negative
 *	enum nvmepeer_error
 * @elapsed_ns: from start to end
 * @commands: submitted commands; each is then counted in @reads, @writes or @errors
 * @reads: successful read commands
 * @writes: successful write commands
 * @bytes_read: bytes of @reads; for programs on memory, loaded bytes
 * @bytes_written: bytes of @writes; for programs on memory, stored bytes
 * @errors: failed commands
 * @mismatches: wrong 8-byte words
 * @where: block or GPU address of the first mismatch, error or fault; all ones
 *	if there was none
 * @value: the value of a load or a poll; the wrong word after a mismatch
 * @latency_ns: sum over completed commands, for programs that wait for each
 * @latency_min_ns: minimum latency of a command
 * @latency_max_ns: maximum latency of a command
 * @doorbells: posted 4-byte writes of this job
 * @remote_reads: loads and reads outside HBM
 * @remote_writes: stores and writes outside HBM, including posted ones
 */
struct softgpu_result {
	__u32 status;
	__s32 error;
	__u64 elapsed_ns;
	__u64 commands;
	__u64 reads;
	__u64 writes;
	__u64 bytes_read;
	__u64 bytes_written;
	__u64 errors;
	__u64 mismatches;
	__u64 where;
	__u64 value;
	__u64 latency_ns;
	__u64 latency_min_ns;
	__u64 latency_max_ns;
	__u64 doorbells;
	__u64 remote_reads;
	__u64 remote_writes;
};

#define SOFTGPU_PARAMETER_BYTES	512

/**
 * struct softgpu_job - a job, in HBM, aligned to 64 bytes
 * @program: enum softgpu_program
 * @threads: number of threads, 1 to SOFTGPU_MAX_THREADS
 * @reserved: 0
 * @parameters: structure of the program, see softgpu_programs.h
 * @result: written by the device
 */
struct softgpu_job {
	__u32 program;
	__u32 threads;
	__u64 reserved[7];
	__u8 parameters[SOFTGPU_PARAMETER_BYTES];
	struct softgpu_result result;
};

#endif /* SOFTGPU_REGS_H */
