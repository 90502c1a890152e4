/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * recovery.h: shared by the CPU peer and the CUDA glue, which re-arm queue pairs: the
 * clock, requests to quiesce, and whether the shared state can be used.
 */
#ifndef NVMEPEER_LIB_RECOVERY_H
#define NVMEPEER_LIB_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <nvmepeer_peer.h>

/** now_ms() - monotonic time. */
static inline int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/** request_quiesce() - what nvmepeer_queue_quiesce() does, from the host. */
static inline void request_quiesce(struct nvme_peer_control *control, uint32_t losses)
{
	__atomic_store_n(&control->seq, nvp_request_number(losses), __ATOMIC_RELAXED);
	__atomic_store_n(&control->quiesce, 1, __ATOMIC_RELEASE);
}

/**
 * is_quiescing() - will the kernel delete the queues of a queue pair that is LIVE?
 * @control: its control page
 * @losses: its losses so far
 *
 * The kernel clears the request before it deletes the queues, and the queue pair is LIVE
 * until they are off the controller.  The number of the request remains.
 */
static inline bool is_quiescing(const struct nvme_peer_control *control, uint32_t losses)
{
	return __atomic_load_n(&control->quiesce, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&control->seq, __ATOMIC_ACQUIRE) == nvp_request_number(losses);
}

/**
 * is_usable() - can the queue pair with this shared state be used, if it is LIVE?
 * @losses: of the queue pair
 *
 * No thread is in a call.  Not if a thread has found it lost, or has timed out on it in
 * exclusive mode: its commands may be in flight.  Nor if an exclusive owner has not closed
 * it: all others would find it full for ever.  Nor if another process has re-armed it: the
 * state has the tickets of before.
 */
static inline bool is_usable(const struct nvmepeer_state *state, uint32_t losses)
{
	return !(state->lost & NVP_LOST) && !(state->head & NVP_HEAD_EXCLUSIVE) &&
	       state->generation == losses;
}

#endif /* NVMEPEER_LIB_RECOVERY_H */
