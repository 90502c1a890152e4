/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of softgpu.  Its rooms, each with a header of its own and using
 * only those below it:
 *
 *	main.c		the command line, HBM, the socket
 *	registers.c	BAR0, resets
 *	engine.c	jobs and the threads that run them
 *	offload.c	jobs that a GPU of NVIDIA's runs, and cuda.c, its driver
 *	programs_io.c	programs on blocks, over the device library
 *	programs_memory.c	programs on memory
 *	platform.c	what the device library asks of the machine
 *	memory.c	GPU addresses: HBM, page table, DMA, faults
 *	lane.c		what a thread of a job may do to itself
 *
 * The engine knows no program: main.c tells it how to find one.
 */
#ifndef SOFTGPU_GPU_H
#define SOFTGPU_GPU_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu_programs.h"
#include "vfio_user.h"

struct gpu;
struct offload;
struct program;
struct slot;

/* What programs call when a wait goes on: 0 to go on, then less and less often. */
struct backoff {
	unsigned int rounds;
};

/**
 * struct lane - a thread of a job
 * @slot: constant
 * @index: constant: number of this thread in the job
 * @escape: where a fault or an abort leaves the program
 * @escape_status: enum softgpu_status, why
 * @view: the gpu->view that the access under way began in, 0 for none
 * @polling: slows down loops that load the same completion entry
 * @polled: address and last dword of that entry
 *
 * Only the thread itself, @view excepted.
 */
struct lane {
	struct slot *slot;
	unsigned int index;
	sigjmp_buf escape;
	int escape_status;
	_Atomic uint32_t view;
	struct backoff polling;
	uint64_t polled[2];
};

enum slot_state {
	SLOT_IDLE,
	SLOT_QUEUED,	/* started by the guest, not yet seen by the engine */
	SLOT_RUNNING,
	SLOT_EXIT,	/* the process ends */
};

/**
 * struct slot - a place for a job and the engine thread that runs it
 * @gpu: constant
 * @number: constant
 * @engine: constant
 * @lock: guards @state
 * @changed: @state changed
 * @state: enum slot_state
 * @job_offset: register, offset of the job in HBM
 * @stop: the program should come to its end
 * @abort: the program must not go on
 * @job: the job in HBM; its result is written by all lanes, atomically
 * @program: copy of what the guest asked for, as are @threads and @parameters
 * @threads: lanes in use
 * @parameters: structure of the program
 * @queue: opened by programs on blocks before the lanes start
 * @status: enum softgpu_status; the first lane that ends badly sets it
 * @issued: commands that the lanes have begun, where their number is limited
 * @start_ns: when the job began
 * @lanes: one per thread
 */
struct slot {
	struct gpu *gpu;
	unsigned int number;
	pthread_t engine;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum slot_state state;
	_Atomic uint64_t job_offset;
	atomic_bool stop;
	atomic_bool abort;
	struct softgpu_job *job;
	uint32_t program;
	uint32_t threads;
	union {
		uint8_t bytes[SOFTGPU_PARAMETER_BYTES];
		struct softgpu_io io;
		struct softgpu_memory memory;
	} parameters;
	struct nvmepeer_queue queue;
	_Atomic uint32_t status;
	_Atomic uint64_t issued;
	uint64_t start_ns;
	struct lane lanes[SOFTGPU_MAX_THREADS];
};

/**
 * struct gpu - the device
 * @vfu: constant
 * @hbm: constant: HBM; a GPU address in HBM is also the address here
 * @hbm_bytes: constant
 * @hbm_fd: constant
 * @table: register
 * @table_pages: register
 * @flush: register
 * @int_status: register; changed by engines and the guest
 * @int_enable: register
 * @view: counts invalidations, never 0; see memory.c
 * @invalidator: constant: thread that waits for the end of older views
 * @invalidate_lock: guards @settled, @exiting and changes of @view
 * @invalidate_changed: @view or @exiting changed
 * @settled: nothing of older views than this is under way any more
 * @exiting: the invalidator should end
 * @jobs: counter, as are @faults, @fault_address, @resets, @invalidations
 * @most_threads: constant: of a job
 * @offload: constant: CUDA runs jobs on blocks; NULL: CPUs run all
 * @offload_run: constant, with @offload: see offload.h
 * @find_program: constant: NULL if there is no program of that number
 * @slots: jobs
 */
struct gpu {
	struct vfu *vfu;
	char *hbm;
	uint64_t hbm_bytes;
	int hbm_fd;
	_Atomic uint64_t table;
	_Atomic uint64_t table_pages;
	_Atomic uint64_t flush;
	_Atomic uint32_t int_status;
	_Atomic uint32_t int_enable;
	_Atomic uint32_t view;
	pthread_t invalidator;
	pthread_mutex_t invalidate_lock;
	pthread_cond_t invalidate_changed;
	uint32_t settled;
	bool exiting;
	_Atomic uint64_t jobs;
	_Atomic uint64_t faults;
	_Atomic uint64_t fault_address;
	_Atomic uint64_t resets;
	_Atomic uint64_t invalidations;
	uint32_t most_threads;
	struct offload *offload;
	bool (*offload_run)(struct slot *slot, enum softgpu_status *status);
	const struct program *(*find_program)(uint32_t number);
	struct slot slots[SOFTGPU_MAX_SLOTS];
};

/* GPU addresses are addresses of this process, far from everything else. */
#define GPU_HBM_VA	0x200000000000ULL
#define GPU_MMU_VA	0x210000000000ULL

#endif /* SOFTGPU_GPU_H */
