/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/counter.h: counters of arrivals in memory of the device.  Threads
 * that have waited for commands count; threads of any block or kernel of the device
 * wait for a number of arrivals, poll one word and never access a queue pair.
 */
#ifndef NVMEPEER_DEVICE_COUNTER_H
#define NVMEPEER_DEVICE_COUNTER_H

#include "batch.h"
#include "nvme.h"
#include "platform.h"

/**
 * struct nvmepeer_counter - arrivals, in memory of the device
 * @count: number of arrivals so far; it may wrap around
 * @status: their worst status
 *
 * Zero at first.  The threads of a block may use a flag in shared memory instead, see
 * completion_flag.h.  The host and streams see both words when the kernel has ended.
 *
 * Arrivals of several threads have no order, and the status is that of all so far, until
 * it is cleared: use a counter for each part whose order or status matters.  Kernels that
 * wait must leave room on the GPU for those that add.
 */
struct nvmepeer_counter {
	uint32_t count;
	uint32_t status;
};

/*
 * nvmepeer_counter_clear - called by one thread, before or after all others use it.  The
 * caller orders it before the first use; a kernel boundary does.
 */
NVP_FN void nvmepeer_counter_clear(struct nvmepeer_counter *counter)
{
	nvp_store32(&counter->status, NVMEPEER_OK);
	nvp_store32(&counter->count, 0);
}

/* The worst status of the arrivals is at least @status. */
NVP_FN void nvp_counter_worst(struct nvmepeer_counter *counter, int status)
{
	uint32_t old = nvp_load32(&counter->status), worst, seen;

	while ((worst = (uint32_t)nvp_worse((int)old, status)) != old) {
		seen = nvp_compare_exchange32(&counter->status, old, worst);
		if (seen == old)
			break;
		old = seen;
	}
}

/**
 * nvmepeer_counter_add - report an arrival
 * @counter: the counter
 * @status: what the wait or the poll of the commands has returned, but NVMEPEER_AGAIN
 *
 * Called by one thread for a command, a batch or a list.  Data whose completion it has
 * acquired, or lanes that it has passed a barrier with, is visible to the threads that
 * see the arrival.  Costs one fence of the device.
 */
NVP_FN void nvmepeer_counter_add(struct nvmepeer_counter *counter, int status)
{
	if (status)
		nvp_counter_worst(counter, status);
	nvp_fence_device();		/* R */
	nvp_post_add32(&counter->count, 1);
}

/*
 * nvmepeer_counter_test - NVMEPEER_AGAIN, or the worst status once @arrivals have been
 * counted since the counter was zero.  Any thread; costs a load until then.
 */
NVP_FN int nvmepeer_counter_test(const struct nvmepeer_counter *counter, uint32_t arrivals)
{
	if ((int32_t)(nvp_load32(&counter->count) - arrivals) < 0)
		return NVMEPEER_AGAIN;
	nvp_fence_device_acquire();	/* S */
	return (int)nvp_load32(&counter->status);
}

/*
 * nvmepeer_counter_wait - the worst status once @arrivals have been counted, or
 * NVMEPEER_E_TIMEOUT after @timeout_ns: the commands may still be in flight then, as
 * after an arrival with that status.  Any thread.
 */
NVP_FN int nvmepeer_counter_wait(const struct nvmepeer_counter *counter, uint32_t arrivals,
				 uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int status = nvmepeer_counter_test(counter, arrivals);

	for (uint32_t polls = 1; status == NVMEPEER_AGAIN; polls++) {
		bool expired = nvp_word_expired(start, timeout_ns, polls, 100);

		status = nvmepeer_counter_test(counter, arrivals);
		if (expired && status == NVMEPEER_AGAIN)
			return NVMEPEER_E_TIMEOUT;
	}
	return status;
}

#endif /* NVMEPEER_DEVICE_COUNTER_H */
