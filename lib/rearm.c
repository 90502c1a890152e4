// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Calls of the CPU peer that recover from a loss.  Reads are repeated, writes are not.
 *
 * Any number of threads use the queue pair, and nvmepeer_cpu_peer_recover() requires
 * that none of them is inside a call.  Calls hold @in_use for reading, a recovery holds
 * it for writing.
 */
#include "cpu_peer.h"

/* If the loss that a call met after @losses is handled, returns true and the result. */
static bool handled(struct nvmepeer_cpu_peer *peer, unsigned int losses, bool *live)
{
	bool done;

	pthread_rwlock_rdlock(&peer->in_use);
	done = peer->losses != losses;
	*live = !peer->recover_result;
	pthread_rwlock_unlock(&peer->in_use);
	return done;
}

/*
 * Recovers the queue pair after a call that began when there had been @losses.
 * All threads whose calls ended with the same loss get here; the first one recovers
 * and the others take its result.  A thread that comes after the recovery does not
 * take the write lock: it would wait for the calls of threads that continue.
 */
static bool recover(struct nvmepeer_cpu_peer *peer, unsigned int losses, int timeout_ms)
{
	bool live;

	if (handled(peer, losses, &live))
		return live;
	pthread_rwlock_wrlock(&peer->in_use);
	if (peer->losses == losses) {
		peer->recover_result = nvmepeer_cpu_peer_recover(peer, timeout_ms);
		peer->losses++;
	}
	live = !peer->recover_result;
	pthread_rwlock_unlock(&peer->in_use);
	return live;
}

int nvmepeer_cpu_peer_read(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			   uint32_t blocks, int timeout_ms)
{
	unsigned int losses;
	int status;

	do {
		pthread_rwlock_rdlock(&peer->in_use);
		losses = peer->losses;
		status = nvmepeer_read(&peer->queue, &peer->data, offset, lba, blocks);
		pthread_rwlock_unlock(&peer->in_use);
	} while (status == NVMEPEER_E_LOST && recover(peer, losses, timeout_ms));
	return status;
}

int nvmepeer_cpu_peer_write(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			    uint32_t blocks, int timeout_ms)
{
	unsigned int losses;
	int status;

	pthread_rwlock_rdlock(&peer->in_use);
	losses = peer->losses;
	status = nvmepeer_write(&peer->queue, &peer->data, offset, lba, blocks);
	pthread_rwlock_unlock(&peer->in_use);
	if (status == NVMEPEER_E_LOST)
		recover(peer, losses, timeout_ms);
	return status;
}
