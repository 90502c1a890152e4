/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/completion_flag.h: completion flags in the shared memory of a
 * block, and the fence for bulk copies (TMA) of data that commands have read.
 *
 * One warp waits for all commands and raises a flag for each batch; the warps
 * that compute poll a word in shared memory and never access a queue pair.
 * Part NVP_PLATFORM_FLAG of the platform:
 *
 *	void     nvp_flag_store(uint32_t *flag, uint32_t value);
 *	uint32_t nvp_flag_load(const uint32_t *flag);
 *
 * are release and acquire at the scope of the block, on its shared memory.
 */
#ifndef NVMEPEER_DEVICE_COMPLETION_FLAG_H
#define NVMEPEER_DEVICE_COMPLETION_FLAG_H

#include "batch.h"
#include "calls.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"
#include "wait.h"

#ifndef NVP_PLATFORM_FLAG
#define NVP_PLATFORM_FLAG
#if defined(__CUDACC__)
NVP_FN void nvp_flag_store(uint32_t *flag, uint32_t value)
{
	asm volatile("st.release.cta.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

NVP_FN uint32_t nvp_flag_load(const uint32_t *flag)
{
	uint32_t value;

	asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
	return value;
}
#elif defined(__HIP__)
NVP_FN void nvp_flag_store(uint32_t *flag, uint32_t value)
{
	__hip_atomic_store(flag, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
}

NVP_FN uint32_t nvp_flag_load(const uint32_t *flag)
{
	return __hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP);
}
#else
NVP_FN void nvp_flag_store(uint32_t *flag, uint32_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

NVP_FN uint32_t nvp_flag_load(const uint32_t *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
#endif
#endif /* NVP_PLATFORM_FLAG */

/*
 * A word in shared memory of a block.  Bit 16: raised; bits 15..0: the status,
 * which fits them with its sign.
 */
struct nvmepeer_flag {
	uint32_t word;
};

#define NVP_FLAG_RAISED (1u << 16)

/*
 * Called by one thread.  A barrier of the block must follow before others test
 * or raise the flag.
 */
NVP_FN void nvmepeer_flag_clear(struct nvmepeer_flag *flag)
{
	nvp_flag_store(&flag->word, 0);
}

/*
 * Raise the flag: data whose completion this thread has acquired is visible to
 * a thread that sees it.
 */
NVP_FN void nvmepeer_flag_raise(struct nvmepeer_flag *flag, int status)
{
	nvp_flag_store(&flag->word, NVP_FLAG_RAISED | ((uint32_t)status & 0xffff));
}

/* NVMEPEER_AGAIN, or the status that the flag was raised with.  Any thread. */
NVP_FN int nvmepeer_flag_test(const struct nvmepeer_flag *flag)
{
	uint32_t word = nvp_flag_load(&flag->word);

	if (!(word & NVP_FLAG_RAISED))
		return NVMEPEER_AGAIN;
	return (int16_t)(word & 0xffff);
}

/*
 * nvmepeer_flag_wait - the status, or NVMEPEER_E_TIMEOUT after @timeout_ns.
 * Any thread.
 */
NVP_FN int nvmepeer_flag_wait(const struct nvmepeer_flag *flag, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int status = nvmepeer_flag_test(flag);

	for (uint32_t polls = 1; status == NVMEPEER_AGAIN; polls++) {
		bool expired = nvp_word_expired(start, timeout_ns, polls, 32);

		status = nvmepeer_flag_test(flag);
		if (expired && status == NVMEPEER_AGAIN)
			return NVMEPEER_E_TIMEOUT;
	}
	return status;
}

/**
 * struct nvmepeer_delivery - a batch and its completion flag
 * @batch: a submitted batch
 * @flag: cleared; raised with the value that nvmepeer_warp_wait() would have
 *	returned
 */
struct nvmepeer_delivery {
	struct nvmepeer_batch *batch;
	struct nvmepeer_flag *flag;
};

/*
 * Poll a delivery once and raise its flag if it is complete.  Collective.
 * Returns true if the flag is raised.
 */
NVP_FN bool nvp_deliver_one(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
			    const struct nvmepeer_delivery *delivery, bool last)
{
	int status = nvmepeer_flag_test(delivery->flag);

	/*
	 * Use the leader's value: only this group raises the flag, but not all
	 * lanes may see that yet.
	 */
	status = (int)nvp_group_copy32(group, (uint32_t)status, group.leader);
	if (status != NVMEPEER_AGAIN)
		return true;
	status = last ? nvmepeer_warp_wait(queue, group, delivery->batch, 0) :
			nvmepeer_warp_poll(queue, group, delivery->batch);
	if (status != NVMEPEER_AGAIN && group.lane == group.leader)
		nvmepeer_flag_raise(delivery->flag, status);
	return status != NVMEPEER_AGAIN;
}

/*
 * Has the timeout expired, or is the queue pair lost?  One lane checks for all.
 * Collective.
 */
NVP_FN int nvp_deliver_limit(const struct nvmepeer_queue *queue,
			     struct nvmepeer_group group, uint64_t start,
			     uint64_t timeout_ns)
{
	int error = NVMEPEER_OK;

	if (group.lane == group.leader) {
		error = nvmepeer_check(queue);
		if (!error && !nvp_time_left(start, timeout_ns))
			error = NVMEPEER_E_TIMEOUT;
	}
	return (int)nvp_group_copy32(group, (uint32_t)error, group.leader);
}

/**
 * nvmepeer_warp_deliver - reap completions and raise flags by a warp
 * @queue: the queue pair that the batches were submitted to
 * @group: the lanes that call together
 * @deliveries: the same for every lane
 * @count: number of deliveries
 * @timeout_ns: how long to wait for all of them
 *
 * For a warp that does nothing else, while the other warps of its block wait
 * for flags.  Batches may complete in any order; the flag of each is raised at
 * once.  Returns 0 when all batches have completed, with any status.  On
 * NVMEPEER_E_TIMEOUT or _E_LOST the other flags are raised too, each with the
 * value that nvmepeer_warp_wait() returns for its batch with a timeout of 0.
 */
NVP_FN int nvmepeer_warp_deliver(const struct nvmepeer_queue *queue,
				 struct nvmepeer_group group,
				 const struct nvmepeer_delivery *deliveries, uint32_t count,
				 uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	uint32_t done = 0;
	int error = NVMEPEER_OK;

	nvp_group_sync(group);
	for (uint32_t rounds = 1; done < count && !error; rounds++) {
		done = 0;
		for (uint32_t i = 0; i < count; i++)
			done += nvp_deliver_one(queue, group, &deliveries[i], false);
		if (done < count)
			nvp_pause(0);
		if (done < count && rounds % 64 == 0)
			error = nvp_deliver_limit(queue, group, start, timeout_ns);
	}
	for (uint32_t i = 0; error && i < count; i++)
		nvp_deliver_one(queue, group, &deliveries[i], true);
	return error;
}

/**
 * nvmepeer_fence_bulk - order commands and bulk copies
 *
 * Bulk copies (TMA, cp.async.bulk) use another memory proxy than loads and
 * stores.  To copy data that a command has read: a thread that waited for the
 * command, or has seen its flag or its counter, calls this; then it, or threads behind a
 * barrier with it, start the copy.  To write data that a bulk copy has stored:
 * the thread that started the copy waits for its completion
 * (cp.async.bulk.wait_group, not .read), calls this, and then submits the
 * write.
 */
NVP_FN void nvmepeer_fence_bulk(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("fence.proxy.async.global;" : : : "memory");
#endif
}

#endif /* NVMEPEER_DEVICE_COMPLETION_FLAG_H */
