// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engines: each slot has a thread that waits for jobs and runs them, with further threads if the
 * job has several.
 *
 * A program returns, or escapes at any point after a fault, an abort or a reset, like a kernel of
 * a GPU whose context is lost. So programs must not hold locks or own memory.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "lane.h"
#include "memory.h"
#include "program.h"

/* --- Lanes --------------------------------------------------------------- */

/* The first failure is the status of the job; all lanes end after a fault. */
static void lane_report(struct lane *lane, enum softgpu_status status)
{
	uint32_t running = SOFTGPU_RUNNING;

	if (status == SOFTGPU_OK)
		return;
	atomic_compare_exchange_strong(&lane->slot->status, &running, status);
	if (status == SOFTGPU_FAULT)
		atomic_store(&lane->slot->abort, true);
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;

	current_lane = lane;
	memset(&lane->polling, 0, sizeof(lane->polling));
	if (sigsetjmp(lane->escape, 0))
		lane_report(lane, (enum softgpu_status)lane->escape_status);
	else
		lane_report(lane, lane->slot->gpu->find_program(lane->slot->program)->run(lane));
	atomic_store(&lane->view, 0);
	current_lane = NULL;
	return NULL;
}

/*
 * A program that dereferences an invalid pointer of its parameters accesses unmapped memory,
 * which is a fault.
 */
static void on_bad_access(int signal_number, siginfo_t *info, void *context)
{
	struct lane *lane = current_lane;

	(void)context;
	if (!lane) {
		signal(signal_number, SIG_DFL);
		return;
	}
	lane_fault(lane, (uint64_t)(uintptr_t)info->si_addr);
}

/* --- Jobs ---------------------------------------------------------------- */

/* Copy the job, as the guest may change it in HBM meanwhile. */
static enum softgpu_status job_load(struct slot *slot)
{
	struct gpu *gpu = slot->gpu;
	uint64_t address = GPU_HBM_VA + atomic_load(&slot->job_offset);
	struct softgpu_job *job = gpu_hbm(gpu, address, sizeof(*job));
	const struct program *program;

	slot->job = job;
	if (!job || address % 64) {
		slot->job = NULL;
		return SOFTGPU_INVALID;
	}
	memset(&job->result, 0, sizeof(job->result));
	job->result.where = ~0ULL;
	slot->program = job->program;
	slot->threads = job->threads;
	memcpy(&slot->parameters, job->parameters, sizeof(slot->parameters));
	program = gpu->find_program(slot->program);
	if (!program || !slot->threads || slot->threads > gpu->most_threads)
		return SOFTGPU_INVALID;
	return program->prepare ? program->prepare(slot) : SOFTGPU_RUNNING;
}

/* Run all lanes, the first one in this thread. */
static void job_run_lanes(struct slot *slot)
{
	pthread_t threads[SOFTGPU_MAX_THREADS];
	unsigned int i, started;

	for (started = 1; started < slot->threads; started++)
		if (pthread_create(&threads[started], NULL, lane_main,
				   &slot->lanes[started]))
			break;
	if (started < slot->threads)
		lane_report(&slot->lanes[0], SOFTGPU_FAILED);
	else
		lane_main(&slot->lanes[0]);
	for (i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
}

static enum softgpu_status job_run_program(struct slot *slot)
{
	enum softgpu_status status;

	if (slot->gpu->offload && slot->gpu->offload_run(slot, &status))
		return status;
	if (slot->threads > SOFTGPU_MAX_THREADS)
		return SOFTGPU_INVALID;
	job_run_lanes(slot);
	return atomic_load(&slot->status);
}

static void job_run(struct slot *slot)
{
	enum softgpu_status status;

	atomic_store(&slot->status, SOFTGPU_RUNNING);
	atomic_store(&slot->issued, 0);
	slot->start_ns = now_ns();
	status = job_load(slot);
	if (status == SOFTGPU_RUNNING)
		status = job_run_program(slot);
	memory_flush(slot->gpu);
	if (!slot->job)
		return;
	slot->job->result.elapsed_ns = now_ns() - slot->start_ns;
	__atomic_store_n(&slot->job->result.status,
			 status == SOFTGPU_RUNNING ? SOFTGPU_OK : status,
			 __ATOMIC_RELEASE);
}

/* --- Slots --------------------------------------------------------------- */

/* Free the slot before the guest gets the result, so that a start does not fail. */
static void slot_finish(struct slot *slot)
{
	struct gpu *gpu = slot->gpu;
	uint32_t bit = 1U << slot->number;

	if (slot->state == SLOT_RUNNING)
		slot->state = SLOT_IDLE;
	pthread_cond_broadcast(&slot->changed);
	atomic_fetch_or(&gpu->int_status, bit);
	if (atomic_load(&gpu->int_enable) & bit)
		vfu_interrupt(gpu->vfu, 0);
}

static void *engine_main(void *argument)
{
	struct slot *slot = argument;

	pthread_mutex_lock(&slot->lock);
	while (slot->state != SLOT_EXIT) {
		if (slot->state != SLOT_QUEUED) {
			pthread_cond_wait(&slot->changed, &slot->lock);
			continue;
		}
		slot->state = SLOT_RUNNING;
		pthread_mutex_unlock(&slot->lock);
		job_run(slot);
		pthread_mutex_lock(&slot->lock);
		slot_finish(slot);
	}
	pthread_mutex_unlock(&slot->lock);
	return NULL;
}

static void slot_start(struct slot *slot)
{
	pthread_mutex_lock(&slot->lock);
	if (slot->state == SLOT_IDLE) {
		atomic_store(&slot->stop, false);
		atomic_store(&slot->abort, false);
		slot->state = SLOT_QUEUED;
		atomic_fetch_add(&slot->gpu->jobs, 1);
		pthread_cond_broadcast(&slot->changed);
	}
	pthread_mutex_unlock(&slot->lock);
}

void slot_control(struct slot *slot, uint32_t control)
{
	switch (control) {
	case SOFTGPU_CONTROL_START:
		slot_start(slot);
		break;
	case SOFTGPU_CONTROL_ABORT:
		atomic_store(&slot->abort, true);
		break;
	case SOFTGPU_CONTROL_STOP:
		atomic_store(&slot->stop, true);
		break;
	}
}

bool slot_busy(struct slot *slot)
{
	bool busy;

	pthread_mutex_lock(&slot->lock);
	busy = slot->state == SLOT_QUEUED || slot->state == SLOT_RUNNING;
	pthread_mutex_unlock(&slot->lock);
	return busy;
}

void engines_abort(struct gpu *gpu)
{
	struct timespec until;
	unsigned int i;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		atomic_store(&gpu->slots[i].abort, true);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++) {
		struct slot *slot = &gpu->slots[i];
		int timeout = 0;

		pthread_mutex_lock(&slot->lock);
		while (!timeout && (slot->state == SLOT_QUEUED ||
				    slot->state == SLOT_RUNNING))
			timeout = pthread_cond_timedwait(&slot->changed,
							 &slot->lock, &until);
		pthread_mutex_unlock(&slot->lock);
	}
}

static void slot_init(struct gpu *gpu, unsigned int number)
{
	struct slot *slot = &gpu->slots[number];
	unsigned int i;

	slot->gpu = gpu;
	slot->number = number;
	pthread_mutex_init(&slot->lock, NULL);
	pthread_cond_init(&slot->changed, NULL);
	for (i = 0; i < SOFTGPU_MAX_THREADS; i++) {
		slot->lanes[i].slot = slot;
		slot->lanes[i].index = i;
	}
}

int engines_start(struct gpu *gpu,
		  const struct program *(*find_program)(uint32_t number))
{
	struct sigaction action = {
		.sa_sigaction = on_bad_access,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};
	unsigned int i;
	int ret;

	if (sigaction(SIGSEGV, &action, NULL))
		return -errno;
	gpu->find_program = find_program;
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++) {
		slot_init(gpu, i);
		ret = pthread_create(&gpu->slots[i].engine, NULL, engine_main,
				     &gpu->slots[i]);
		if (ret)
			return -ret;
	}
	return 0;
}

void engines_exit(struct gpu *gpu)
{
	unsigned int i;

	engines_abort(gpu);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++) {
		struct slot *slot = &gpu->slots[i];

		pthread_mutex_lock(&slot->lock);
		slot->state = SLOT_EXIT;
		pthread_cond_broadcast(&slot->changed);
		pthread_mutex_unlock(&slot->lock);
		pthread_join(slot->engine, NULL);
	}
}
