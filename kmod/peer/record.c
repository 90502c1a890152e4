// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records: what happened to a queue pair, kept until its owner reads it.
 *
 * There is room for a few; who does not read loses the oldest and is told how
 * many.  The state itself is not in here: the status page and QP_INFO have it.
 */
#include <linux/uaccess.h>

#include "record.h"

/**
 * nvmep_records_init() - nothing has happened yet
 * @records: of a queue pair, zeroed
 */
void nvmep_records_init(struct nvmep_records *records)
{
	mutex_init(&records->reader);
	spin_lock_init(&records->lock);
}

/**
 * nvmep_records_add() - something happened
 * @records: of the queue pair.  Whoever adds wakes those who wait
 * @event: what; its @lost is not looked at.  One that says GONE is the last
 */
void nvmep_records_add(struct nvmep_records *records,
		       const struct nvme_peer_event *event)
{
	spin_lock(&records->lock);
	if (records->next - records->first == NVMEP_RECORDS) {
		records->first++;
		records->lost++;
	}
	records->ring[records->next++ % NVMEP_RECORDS] = *event;
	records->ended = event->state == NVME_PEER_QP_GONE;
	spin_unlock(&records->lock);
}

/**
 * nvmep_records_wait() - does a record wait to be read?
 * @records: of the queue pair
 *
 * Return: true if one does.
 */
bool nvmep_records_wait(struct nvmep_records *records)
{
	bool wait;

	spin_lock(&records->lock);
	wait = records->first != records->next;
	spin_unlock(&records->lock);
	return wait;
}

/**
 * nvmep_records_ended() - was the last record added?
 * @records: of the queue pair
 *
 * Return: true once it waits to be read or was.
 */
bool nvmep_records_ended(struct nvmep_records *records)
{
	bool ended;

	spin_lock(&records->lock);
	ended = records->ended;
	spin_unlock(&records->lock);
	return ended;
}

/* The oldest one and its number, without taking it. */
static int nvmep_records_peek(struct nvmep_records *records,
			      struct nvme_peer_event *event, u32 *number)
{
	int ret = 1;

	spin_lock(&records->lock);
	if (records->first != records->next) {
		*number = records->first;
		*event = records->ring[*number % NVMEP_RECORDS];
		event->lost = records->lost;
	} else {
		ret = records->ended ? 0 : -EAGAIN;
	}
	spin_unlock(&records->lock);
	return ret;
}

/* It was delivered; if it was overwritten meanwhile, it counted as lost. */
static void nvmep_records_pop(struct nvmep_records *records,
			      const struct nvme_peer_event *event, u32 number)
{
	spin_lock(&records->lock);
	if (records->first == number)
		records->first++;
	else
		records->lost--;
	records->lost -= event->lost;
	spin_unlock(&records->lock);
}

/**
 * nvmep_records_read() - give records to user space
 * @records: of the queue pair
 * @user: where to
 * @size: room there
 *
 * Return: bytes of the whole records that were copied and taken off; 0 if none is
 * left and none will come; EAGAIN if none is there; EINVAL if @size is too small for
 * one; EFAULT; ERESTARTSYS for a signal while another one reads.
 */
ssize_t nvmep_records_read(struct nvmep_records *records, char __user *user,
			   size_t size)
{
	struct nvme_peer_event event;
	ssize_t done = 0;
	u32 number;
	int ret;

	if (size < sizeof(event))
		return -EINVAL;

	if (mutex_lock_interruptible(&records->reader))
		return -ERESTARTSYS;
	do {
		ret = nvmep_records_peek(records, &event, &number);
		if (ret <= 0)
			break;
		if (copy_to_user(user + done, &event, sizeof(event))) {
			ret = -EFAULT;
			break;
		}
		nvmep_records_pop(records, &event, number);
		done += sizeof(event);
	} while (size - done >= sizeof(event));
	mutex_unlock(&records->reader);
	return done ? done : ret;
}
