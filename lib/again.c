// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU peer's calls that outlast a loss: of the threads that make them, one
 * recovers the queue pair when all have come back, then reads are made again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <nvmepeer_peer.h>

#include "internal.h"

/**
 * struct nvmepeer_gathering - the threads that use one queue pair
 * @lock: guards the rest
 * @changed: any of it did
 * @inside: threads in a call of the device library
 * @recovering: one thread waits for the others to come out, and recovers: none goes in
 * @losses: dealt with so far, whether it is back or not
 * @result: of the last one, as nvmepeer_cpu_peer_recover() returned it
 */
struct nvmepeer_gathering {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int inside;
	bool recovering;
	unsigned int losses;
	int result;
};

int gathering_new(struct nvmepeer_gathering **gathering)
{
	struct nvmepeer_gathering *new = calloc(1, sizeof(*new));

	*gathering = new;
	if (!new)
		return -ENOMEM;
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->changed, NULL);
	return 0;
}

void gathering_free(struct nvmepeer_gathering *gathering)
{
	if (!gathering)
		return;
	pthread_cond_destroy(&gathering->changed);
	pthread_mutex_destroy(&gathering->lock);
	free(gathering);
}

/* Returns how many losses there were before the call that follows. */
static unsigned int go_in(struct nvmepeer_gathering *gathering)
{
	unsigned int losses;

	pthread_mutex_lock(&gathering->lock);
	while (gathering->recovering)
		pthread_cond_wait(&gathering->changed, &gathering->lock);
	gathering->inside++;
	losses = gathering->losses;
	pthread_mutex_unlock(&gathering->lock);
	return losses;
}

static void come_out(struct nvmepeer_gathering *gathering)
{
	pthread_mutex_lock(&gathering->lock);
	gathering->inside--;
	if (gathering->recovering)
		pthread_cond_broadcast(&gathering->changed);
	pthread_mutex_unlock(&gathering->lock);
}

/* By the first thread that learns of a loss; the lock is held, but not meanwhile. */
static void recover(struct nvmepeer_cpu_peer *peer, int timeout_ms)
{
	struct nvmepeer_gathering *gathering = peer->gathering;
	int result;

	gathering->recovering = true;
	while (gathering->inside)
		pthread_cond_wait(&gathering->changed, &gathering->lock);
	pthread_mutex_unlock(&gathering->lock);
	result = nvmepeer_cpu_peer_recover(peer, timeout_ms);
	pthread_mutex_lock(&gathering->lock);
	gathering->result = result;
	gathering->losses++;
	gathering->recovering = false;
	pthread_cond_broadcast(&gathering->changed);
}

/* After a call that was lost, begun when there had been @losses.  Is it back? */
static bool back_after(struct nvmepeer_cpu_peer *peer, unsigned int losses, int timeout_ms)
{
	struct nvmepeer_gathering *gathering = peer->gathering;
	bool back;

	pthread_mutex_lock(&gathering->lock);
	while (gathering->recovering)
		pthread_cond_wait(&gathering->changed, &gathering->lock);
	if (gathering->losses == losses)
		recover(peer, timeout_ms);
	back = !gathering->result;
	pthread_mutex_unlock(&gathering->lock);
	return back;
}

int nvmepeer_cpu_peer_read(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			   uint32_t blocks, int timeout_ms)
{
	unsigned int losses;
	int status;

	do {
		losses = go_in(peer->gathering);
		status = nvmepeer_read(&peer->queue, &peer->data, offset, lba, blocks);
		come_out(peer->gathering);
	} while (status == NVMEPEER_E_LOST && back_after(peer, losses, timeout_ms));
	return status;
}

int nvmepeer_cpu_peer_write(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			    uint32_t blocks, int timeout_ms)
{
	unsigned int losses = go_in(peer->gathering);
	int status = nvmepeer_write(&peer->queue, &peer->data, offset, lba, blocks);

	come_out(peer->gathering);
	if (status == NVMEPEER_E_LOST)
		back_after(peer, losses, timeout_ms);
	return status;
}
