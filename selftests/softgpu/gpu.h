/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inside of softgpu, shared by its rooms:
 *
 *	main.c		the command line, memory, the socket
 *	registers.c	BAR0, resets
 *	engine.c	jobs and the threads that run them
 *	memory.c	GPU addresses: HBM, page table, DMA, faults
 *	programs_io.c	programs on blocks, over the device library
 *	programs_memory.c	programs on memory
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
	struct slot slots[SOFTGPU_MAX_SLOTS];
};

/* GPU addresses are addresses of this process, far from everything else. */
#define GPU_HBM_VA	0x200000000000ULL
#define GPU_MMU_VA	0x210000000000ULL

/* --- registers.c --- */

/* What the device is, for vfu_create(). */
void gpu_describe(const struct gpu *gpu, struct vfu_device *device);

/* --- engine.c --- */

/* Start and end the engine threads; 0 or a negative errno. */
int engines_start(struct gpu *gpu);
void engines_exit(struct gpu *gpu);

/* SOFTGPU_CONTROL_*; unknown values do nothing. */
void slot_control(struct slot *slot, uint32_t control);
bool slot_busy(struct slot *slot);

/* Abort all jobs and wait until they have ended, at most a second. */
void engines_abort(struct gpu *gpu);

/* The lane that runs in this thread. */
extern _Thread_local struct lane *current_lane;

/* Leave the program, now, with @status. */
_Noreturn void lane_escape(struct lane *lane, enum softgpu_status status);

/* Leaves the program if it was aborted. */
void lane_check(struct lane *lane);

/* Let others run; the longer the waiting, the longer the pause. */
void backoff_wait(struct backoff *backoff);

uint64_t now_ns(void);

/* Count into a field of the job's result. */
#define lane_add(lane, field, by)					\
	__atomic_fetch_add(&(lane)->slot->job->result.field,		\
			   (uint64_t)(by), __ATOMIC_RELAXED)

/* Note the first error, mismatch or fault. */
void lane_note(struct lane *lane, int error, uint64_t where, uint64_t value);

/**
 * struct program - one entry of the table of programs
 * @prepare: check parameters, once, before the lanes; enum softgpu_status,
 *	SOFTGPU_RUNNING to go on
 * @run: in each lane
 */
struct program {
	enum softgpu_status (*prepare)(struct slot *slot);
	enum softgpu_status (*run)(struct lane *lane);
};

/* Both tables; NULL if there is no such program. */
const struct program *io_program(uint32_t number);
const struct program *memory_program(uint32_t number);

/* --- memory.c --- */

/* @length bytes of HBM at GPU address @address, NULL if it is not all HBM. */
void *gpu_hbm(const struct gpu *gpu, uint64_t address, uint64_t length);

/*
 * Access any GPU address.  What cannot be done is a fault: these return only
 * when it was done.  Aligned accesses of 4 and 8 bytes are whole.  @flags:
 * VFU_DMA_MESSAGE.
 */
void lane_read(struct lane *lane, uint64_t address, void *data, size_t length,
	       unsigned int flags);
void lane_write(struct lane *lane, uint64_t address, const void *data,
		size_t length, unsigned int flags);

/* A posted store of 4 bytes, as doorbells want it. */
void lane_post(struct lane *lane, uint64_t address, uint32_t value);

/* Count a fault at @address and leave the program. */
_Noreturn void lane_fault(struct lane *lane, uint64_t address);

/* Start and end the invalidator; 0 or a negative errno. */
int memory_start(struct gpu *gpu);
void memory_exit(struct gpu *gpu);

/*
 * From now on the page table is used as it is.  memory_invalidating() as long
 * as anything that used it as it was is under way.
 */
void memory_invalidate(struct gpu *gpu);
bool memory_invalidating(struct gpu *gpu);

#endif /* SOFTGPU_GPU_H */
