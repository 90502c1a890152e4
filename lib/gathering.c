// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The threads that use one queue pair, and leave it to this library when it is lost:
 * one of them recovers it when all have come back from their calls.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "internal.h"

/**
 * struct nvmepeer_gathering - the threads that use one queue pair
 * @lock: guards the rest
 * @changed: any of it did
 * @inside: threads in a call of the device library
 * @recovering: one thread waits for the others to come out, and recovers: none goes in
 * @losses: dealt with so far, whether it is back or not
 * @result: of the last one, as its recovery returned it
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

unsigned int gathering_go_in(struct nvmepeer_gathering *gathering)
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

void gathering_come_out(struct nvmepeer_gathering *gathering)
{
	pthread_mutex_lock(&gathering->lock);
	gathering->inside--;
	if (gathering->recovering)
		pthread_cond_broadcast(&gathering->changed);
	pthread_mutex_unlock(&gathering->lock);
}

/* By the first thread that learns of a loss; the lock is held, but not meanwhile. */
static void recover_alone(struct nvmepeer_gathering *gathering,
			  int (*recover)(struct nvmepeer_cpu_peer *peer, int timeout_ms),
			  struct nvmepeer_cpu_peer *peer, int timeout_ms)
{
	int result;

	gathering->recovering = true;
	while (gathering->inside)
		pthread_cond_wait(&gathering->changed, &gathering->lock);
	pthread_mutex_unlock(&gathering->lock);
	result = recover(peer, timeout_ms);
	pthread_mutex_lock(&gathering->lock);
	gathering->result = result;
	gathering->losses++;
	gathering->recovering = false;
	pthread_cond_broadcast(&gathering->changed);
}

bool gathering_recover(struct nvmepeer_gathering *gathering, unsigned int losses,
		       int (*recover)(struct nvmepeer_cpu_peer *peer, int timeout_ms),
		       struct nvmepeer_cpu_peer *peer, int timeout_ms)
{
	bool back;

	pthread_mutex_lock(&gathering->lock);
	while (gathering->recovering)
		pthread_cond_wait(&gathering->changed, &gathering->lock);
	if (gathering->losses == losses)
		recover_alone(gathering, recover, peer, timeout_ms);
	back = !gathering->result;
	pthread_mutex_unlock(&gathering->lock);
	return back;
}
