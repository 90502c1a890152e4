/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of softgpu. Its source files, each with a header and using only those below it:
 *
 *	main.c		the command line, HBM, the socket
 *	registers.c	BAR0, resets
 *	engine.c	jobs and the threads that run them
 *	offload.c	jobs on an NVIDIA GPU; cuda.c calls its driver
 *	programs_io.c	programs on blocks, over the device library
 *	programs_memory.c	programs on memory
 *	manifest.c	the program that describes queue pairs to another process
 *	platform.c	platform functions of the device library
 *	memory.c	GPU addresses: HBM, page table, DMA, faults
 *	lane.c		escape, wait and counters of a thread of a job
 *
 * The engine does not depend on programs: main.c passes the function that finds one.
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

/* State of a waiting loop with growing delays; initially 0. */
struct backoff {
	unsigned int rounds;
};

/**
 * struct lane - a thread of a job
 * @slot: constant
 * @index: constant: number of this thread in the job
 * @escape: target of longjmp() after a fault or an abort
 * @escape_status: enum softgpu_status, the reason
 * @view: the gpu->view in which the current access began, 0 without an access
 * @polling: slows down loops that load the same completion entry
 * @polled: address and last dword of that entry
 *
 * Only the thread itself accesses it, except for @view.
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
	SLOT_QUEUED,	/* started by the guest, not yet taken by the engine */
	SLOT_RUNNING,
	SLOT_EXIT,	/* the process ends */
};

/**
 * struct slot - a job slot and its engine thread
 * @gpu: constant
 * @number: constant
 * @engine: constant
 * @lock: protects @state
 * @changed: signals a change of @state
 * @state: enum slot_state
 * @job_offset: register, offset of the job in HBM
 * @stop: the program should end normally
 * @abort: the program must end at once
 * @job: the job in HBM; all lanes update its result atomically
 * @program: copied from the job, like @threads and @parameters
 * @threads: lanes in use
 * @parameters: structure of the program
 * @queue: opened by programs on blocks before the lanes start
 * @status: enum softgpu_status, set by the first lane that fails
 * @issued: commands of all lanes, if their number is limited
 * @start_ns: start time of the job
 * @lanes: one for each thread
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
		struct softgpu_manifest manifest;
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
 * @hbm: constant: HBM; a GPU address in HBM is also the address in this process
 * @hbm_bytes: constant
 * @hbm_fd: constant
 * @window: constant: SOFTGPU_REG_WINDOW
 * @share: constant: directory that the controller shares, see badctrl.h; -1 for none
 * @table: register
 * @table_pages: register
 * @flush: register
 * @int_status: register; changed by engines and the guest
 * @int_enable: register
 * @view: counts invalidations, never 0; see memory.c
 * @invalidator: constant: thread that waits for the end of older views
 * @invalidate_lock: protects @settled, @exiting and changes of @view
 * @invalidate_changed: signals a change of @view or @exiting
 * @settled: all accesses in views older than this have ended
 * @exiting: the invalidator should end
 * @jobs: counter, like @faults, @fault_address, @resets, @invalidations
 * @most_threads: constant: maximum threads of a job
 * @offload: constant: CUDA runs jobs on blocks; NULL: the CPU runs all jobs
 * @offload_run: constant, with @offload: see offload.h
 * @find_program: constant: returns NULL for an unknown program
 * @slots: jobs
 */
struct gpu {
	struct vfu *vfu;
	char *hbm;
	uint64_t hbm_bytes;
	int hbm_fd;
	uint64_t window;
	int share;
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

/* GPU addresses are addresses of this process, far from its other mappings. */
#define GPU_HBM_VA	0x200000000000ULL
#define GPU_MMU_VA	0x210000000000ULL

#endif /* SOFTGPU_GPU_H */
