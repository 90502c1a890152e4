/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/arrival.h: telling others that data has arrived: flags in the
 * shared memory of a block, raised by a warp that waits for all, and the fence
 * for bulk copies (TMA) of arrived data.
 *
 * Warps that compute then look at a word beside them and never touch a queue
 * pair.  Part NVMEPEER_PLATFORM_FLAG of the platform:
 *
 *	void     nvmepeer_flag_store(uint32_t *flag, uint32_t value);
 *	uint32_t nvmepeer_flag_load(const uint32_t *flag);
 *
 * release and acquire at the scope of the block, on memory that it shares.
 */
#ifndef NVMEPEER_DEVICE_ARRIVAL_H
#define NVMEPEER_DEVICE_ARRIVAL_H

#ifndef NVMEPEER_PLATFORM_FLAG
#define NVMEPEER_PLATFORM_FLAG
#if defined(__CUDACC__)
NVMEPEER_FN void nvmepeer_flag_store(uint32_t *flag, uint32_t value)
{
	asm volatile("st.release.cta.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

NVMEPEER_FN uint32_t nvmepeer_flag_load(const uint32_t *flag)
{
	uint32_t value;

	asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
	return value;
}
#elif defined(__HIP__)
NVMEPEER_FN void nvmepeer_flag_store(uint32_t *flag, uint32_t value)
{
	__hip_atomic_store(flag, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
}

NVMEPEER_FN uint32_t nvmepeer_flag_load(const uint32_t *flag)
{
	return __hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP);
}
#else
NVMEPEER_FN void nvmepeer_flag_store(uint32_t *flag, uint32_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

NVMEPEER_FN uint32_t nvmepeer_flag_load(const uint32_t *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
#endif
#endif /* NVMEPEER_PLATFORM_FLAG */

/*
 * A word in memory that a block shares.  Bit 16: raised; bits 15..0: the status,
 * whose values fit them with their sign.
 */
struct nvmepeer_flag {
	uint32_t word;
};

#define NVMEPEER_FLAG_RAISED (1u << 16)

/* One thread, before others look or raise: a barrier of the block lies between. */
NVMEPEER_FN void nvmepeer_flag_clear(struct nvmepeer_flag *flag)
{
	nvmepeer_flag_store(&flag->word, 0);
}

/* Raises the flag: what this thread has seen to arrive has arrived for who sees it. */
NVMEPEER_FN void nvmepeer_flag_raise(struct nvmepeer_flag *flag, int status)
{
	nvmepeer_flag_store(&flag->word, NVMEPEER_FLAG_RAISED | ((uint32_t)status & 0xffff));
}

/* NVMEPEER_AGAIN, or the status that the flag was raised with.  Any thread. */
NVMEPEER_FN int nvmepeer_flag_test(const struct nvmepeer_flag *flag)
{
	uint32_t word = nvmepeer_flag_load(&flag->word);

	if (!(word & NVMEPEER_FLAG_RAISED))
		return NVMEPEER_AGAIN;
	return (int16_t)(word & 0xffff);
}

/* nvmepeer_flag_wait - the status, or NVMEPEER_E_TIMEOUT after @timeout_ns.  Any thread. */
NVMEPEER_FN int nvmepeer_flag_wait(const struct nvmepeer_flag *flag, uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	int status = nvmepeer_flag_test(flag);

	for (uint32_t looks = 1; status == NVMEPEER_AGAIN; looks++) {
		if (looks % 64 == 0 && !nvmepeer_time_left(start, timeout_ns))
			return NVMEPEER_E_TIMEOUT;
		nvmepeer_pause(32);
		status = nvmepeer_flag_test(flag);
	}
	return status;
}

/**
 * struct nvmepeer_delivery - a batch and the flag that tells of it
 * @batch: sent
 * @flag: cleared; raised with what nvmepeer_warp_wait() would have returned
 */
struct nvmepeer_delivery {
	struct nvmepeer_batch *batch;
	struct nvmepeer_flag *flag;
};

/* Looks once at a delivery; raises its flag if it is complete.  Collective.  True if it is up. */
NVMEPEER_FN bool nvmepeer_deliver(const struct nvmepeer_queue *queue, struct nvmepeer_group group,
				  const struct nvmepeer_delivery *delivery, bool last)
{
	int status = nvmepeer_flag_test(delivery->flag);

	/* One lane's look: only this group raises, but not all lanes need see it yet. */
	status = (int)nvmepeer_group_copy32(group, (uint32_t)status, group.leader);
	if (status != NVMEPEER_AGAIN)
		return true;
	status = last ? nvmepeer_warp_wait(queue, group, delivery->batch, 0) :
			nvmepeer_warp_poll(queue, group, delivery->batch);
	if (status != NVMEPEER_AGAIN && group.lane == group.leader)
		nvmepeer_flag_raise(delivery->flag, status);
	return status != NVMEPEER_AGAIN;
}

/* Is the time over, or the queue pair lost?  One lane looks for all.  Collective. */
NVMEPEER_FN int nvmepeer_deliver_limit(const struct nvmepeer_queue *queue,
				       struct nvmepeer_group group, uint64_t start,
				       uint64_t timeout_ns)
{
	int error = NVMEPEER_OK;

	if (group.lane == group.leader) {
		error = nvmepeer_check(queue);
		if (!error && !nvmepeer_time_left(start, timeout_ns))
			error = NVMEPEER_E_TIMEOUT;
	}
	return (int)nvmepeer_group_copy32(group, (uint32_t)error, group.leader);
}

/**
 * nvmepeer_warp_deliver - take completions and raise flags by a warp
 * @queue: the queue pair that the batches were sent to
 * @group: the lanes that call together
 * @deliveries: the same for every lane
 * @count: how many
 * @timeout_ns: how long to wait for all of them
 *
 * For a warp that does nothing else, while the others of its block wait at
 * flags.  Batches may complete in any order; the flag of each is raised at once.
 * Returns 0 when all are raised, or NVMEPEER_E_TIMEOUT or _E_LOST when those of
 * which something was missing were raised with that.
 */
NVMEPEER_FN int nvmepeer_warp_deliver(const struct nvmepeer_queue *queue,
				      struct nvmepeer_group group,
				      const struct nvmepeer_delivery *deliveries, uint32_t count,
				      uint64_t timeout_ns)
{
	uint64_t start = nvmepeer_now_ns();
	uint32_t done = 0;
	int error = NVMEPEER_OK;

	nvmepeer_group_sync(group);
	for (uint32_t rounds = 1; done < count && !error; rounds++) {
		done = 0;
		for (uint32_t i = 0; i < count; i++)
			done += nvmepeer_deliver(queue, group, &deliveries[i], false);
		if (done < count)
			nvmepeer_pause(0);
		if (done < count && rounds % 64 == 0)
			error = nvmepeer_deliver_limit(queue, group, start, timeout_ns);
	}
	for (uint32_t i = 0; error && i < count; i++)
		nvmepeer_deliver(queue, group, &deliveries[i], true);
	return error;
}

/**
 * nvmepeer_fence_bulk - order arrived data before bulk copies, or the reverse
 *
 * Bulk copies (TMA, cp.async.bulk) go another way than loads and stores.  Read
 * what has arrived: a thread that waited, or saw a flag, calls this; then it, or
 * threads behind a barrier with it, start the copy.  Write what a bulk copy has
 * stored: the thread that started it waits until it is done
 * (cp.async.bulk.wait_group, not .read), calls this, and then sends the write.
 */
NVMEPEER_FN void nvmepeer_fence_bulk(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("fence.proxy.async.global;" : : : "memory");
#endif
}

#endif /* NVMEPEER_DEVICE_ARRIVAL_H */
