// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: a descriptor in HBM for each slot of the device, a doorbell, an
 * interrupt at the end.
 */
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/slab.h>

#include "device.h"
#include "job.h"

/* Time limit for the end of an aborted job. */
#define ABORT_TIMEOUT	(5 * HZ)

static unsigned int slot_number(const struct softgpu *gpu,
				const struct softgpu_slot *slot)
{
	return slot - gpu->slots;
}

static void __iomem *slot_register(struct softgpu *gpu,
				   const struct softgpu_slot *slot, u32 offset)
{
	return gpu->regs + SOFTGPU_REG_SLOT(slot_number(gpu, slot)) + offset;
}

static u64 slot_job(const struct softgpu *gpu, const struct softgpu_slot *slot)
{
	return gpu->jobs + slot_number(gpu, slot) * SOFTGPU_JOB_STRIDE;
}

static void slot_control(struct softgpu *gpu, const struct softgpu_slot *slot,
			 u32 control)
{
	lockdep_assert_held(&gpu->hw_lock);
	writel(control, slot_register(gpu, slot, SOFTGPU_SLOT_CONTROL));
}

static struct softgpu_slot *find_free_slot(struct softgpu *gpu)
{
	unsigned int i;

	lockdep_assert_held(&gpu->lock);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (!gpu->slots[i].owner)
			return &gpu->slots[i];
	return NULL;
}

static struct softgpu_slot *find_slot(struct softgpu_file *file, u32 id)
{
	struct softgpu *gpu = file->gpu;
	unsigned int i;

	lockdep_assert_held(&gpu->lock);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (gpu->slots[i].owner == file && gpu->slots[i].id == id)
			return &gpu->slots[i];
	return NULL;
}

static void slot_start(struct softgpu *gpu, struct softgpu_slot *slot,
		       const struct softgpu_job *job)
{
	memcpy_toio(gpu->hbm + slot_job(gpu, slot), job, sizeof(*job));
	WRITE_ONCE(slot->done, false);
	slot->lost = false;
	/* Store the job to HBM before the device is started. */
	wmb();
	writeq(slot_job(gpu, slot), slot_register(gpu, slot, SOFTGPU_SLOT_JOB));
	slot_control(gpu, slot, SOFTGPU_CONTROL_START);
}

int softgpu_start(struct softgpu_file *file, struct softgpu_start *start)
{
	struct softgpu *gpu = file->gpu;
	struct softgpu_slot *slot;
	struct softgpu_job *job;
	int ret = 0;

	lockdep_assert_held(&gpu->hw_lock);
	if (start->length > SOFTGPU_PARAMETER_BYTES)
		return -EINVAL;
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return -ENOMEM;
	job->program = start->program;
	job->threads = start->threads;
	if (copy_from_user(job->parameters, u64_to_user_ptr(start->parameters),
			   start->length)) {
		ret = -EFAULT;
		goto out;
	}
	mutex_lock(&gpu->lock);
	slot = find_free_slot(gpu);
	if (slot) {
		slot->owner = file;
		slot->id = ++gpu->next_job ? gpu->next_job : ++gpu->next_job;
		slot_start(gpu, slot, job);
		start->job = slot->id;
	} else {
		ret = -EBUSY;
	}
	mutex_unlock(&gpu->lock);
out:
	kfree(job);
	return ret;
}

void softgpu_jobs_done(struct softgpu *gpu, u32 slots)
{
	unsigned int i;

	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (slots & BIT(i))
			WRITE_ONCE(gpu->slots[i].done, true);
	wake_up_all(&gpu->job_wait);
}

void softgpu_jobs_lost(struct softgpu *gpu)
{
	unsigned int i;

	lockdep_assert_held_write(&gpu->hw_lock);
	mutex_lock(&gpu->lock);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (gpu->slots[i].owner && !READ_ONCE(gpu->slots[i].done))
			gpu->slots[i].lost = true;
	mutex_unlock(&gpu->lock);
}

static bool slot_ended(const struct softgpu_slot *slot)
{
	return READ_ONCE(slot->done) || READ_ONCE(slot->lost);
}

/* The current result of a job; called with hw_lock and lock held. */
static void slot_result(struct softgpu *gpu, const struct softgpu_slot *slot,
			struct softgpu_result *result)
{
	memcpy_fromio(result, gpu->hbm + slot_job(gpu, slot) +
		      offsetof(struct softgpu_job, result), sizeof(*result));
	if (slot->lost)
		result->status = SOFTGPU_ABORTED;
}

/* Read the result of a job, and release the job if it has ended and @take is set. */
static int job_look(struct softgpu_file *file, struct softgpu_wait *wait,
		    bool take)
{
	struct softgpu *gpu = file->gpu;
	struct softgpu_slot *slot;
	int ret = 0;

	if (!softgpu_hw_enter(gpu))
		return -ENODEV;
	mutex_lock(&gpu->lock);
	slot = find_slot(file, wait->job);
	if (!slot) {
		ret = -ENOENT;
	} else if (take && !slot_ended(slot)) {
		ret = -ETIMEDOUT;
	} else {
		slot_result(gpu, slot, &wait->result);
		if (take)
			slot->owner = NULL;
	}
	mutex_unlock(&gpu->lock);
	softgpu_hw_leave(gpu);
	return ret;
}

int softgpu_progress(struct softgpu_file *file, struct softgpu_wait *wait)
{
	return job_look(file, wait, false);
}

int softgpu_wait(struct softgpu_file *file, struct softgpu_wait *wait)
{
	struct softgpu *gpu = file->gpu;
	struct softgpu_slot *slot;
	long ret;

	mutex_lock(&gpu->lock);
	slot = find_slot(file, wait->job);
	mutex_unlock(&gpu->lock);
	if (!slot)
		return -ENOENT;
	/* Slots are part of the device: a stale one only ends the wait early. */
	ret = wait_event_interruptible_timeout(gpu->job_wait,
					       slot_ended(slot) ||
					       READ_ONCE(gpu->gone),
					       msecs_to_jiffies(wait->timeout_ms));
	if (ret < 0)
		return ret;
	return job_look(file, wait, true);
}

int softgpu_stop(struct softgpu_file *file, const struct softgpu_stop *stop)
{
	struct softgpu *gpu = file->gpu;
	struct softgpu_slot *slot;

	lockdep_assert_held(&gpu->hw_lock);
	if (stop->flags & ~SOFTGPU_STOP_ABORT)
		return -EINVAL;
	mutex_lock(&gpu->lock);
	slot = find_slot(file, stop->job);
	if (slot)
		slot_control(gpu, slot, stop->flags & SOFTGPU_STOP_ABORT ?
			     SOFTGPU_CONTROL_ABORT : SOFTGPU_CONTROL_STOP);
	mutex_unlock(&gpu->lock);
	return slot ? 0 : -ENOENT;
}

/* Abort the jobs of @file; true if there were any. */
static bool jobs_abort(struct softgpu_file *file)
{
	struct softgpu *gpu = file->gpu;
	bool any = false;
	unsigned int i;

	if (!softgpu_hw_enter(gpu))
		return false;
	mutex_lock(&gpu->lock);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++) {
		if (gpu->slots[i].owner != file)
			continue;
		slot_control(gpu, &gpu->slots[i], SOFTGPU_CONTROL_ABORT);
		any = true;
	}
	mutex_unlock(&gpu->lock);
	softgpu_hw_leave(gpu);
	return any;
}

static bool jobs_ended(struct softgpu_file *file)
{
	struct softgpu *gpu = file->gpu;
	unsigned int i;

	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (READ_ONCE(gpu->slots[i].owner) == file &&
		    !slot_ended(&gpu->slots[i]))
			return false;
	return true;
}

/* A slot whose job does not end stays in use, as the device may still write to it. */
void softgpu_jobs_close(struct softgpu_file *file)
{
	struct softgpu *gpu = file->gpu;
	unsigned int i;

	if (jobs_abort(file) &&
	    !wait_event_timeout(gpu->job_wait,
				jobs_ended(file) || READ_ONCE(gpu->gone),
				ABORT_TIMEOUT))
		pci_err(gpu->pdev, "a job does not end\n");
	mutex_lock(&gpu->lock);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (gpu->slots[i].owner == file && slot_ended(&gpu->slots[i]))
			gpu->slots[i].owner = NULL;
	mutex_unlock(&gpu->lock);
}
