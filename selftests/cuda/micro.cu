// SPDX-License-Identifier: GPL-2.0-only
/*
 * micro.cu: the lower bounds of the hardware: the cost of loads, stores,
 * atomics, fences and round trips on this GPU, by one thread, in nanoseconds.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#include "check.cuh"
#include "controller.cuh"

enum { ROUNDS = 2000 };

static __device__ __forceinline__ unsigned long long now(void)
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) : : "memory");
	return t;
}

static __device__ __forceinline__ void put32(uint32_t *p, uint32_t v)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

static __device__ __forceinline__ uint32_t get32(uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

#define LOOP(name, what)							\
__global__ void name(uint32_t *hbm, uint32_t *host, unsigned long long *ns)	\
{										\
	uint32_t sink = 0;							\
	unsigned long long start;						\
	for (int i = 0; i < 50; i++) { what; }					\
	start = now();								\
	for (int i = 0; i < ROUNDS; i++) { what; }				\
	*ns = now() - start;							\
	hbm[64] = sink;								\
}

#define FENCE(x) asm volatile(x ";" : : : "memory")

LOOP(load_hbm, sink += get32(hbm + (sink & 1)))
LOOP(load16_hbm, sink += load16((uint64_t)(hbm + (sink & 4))).x)
LOOP(load_host, sink += get32(host + (sink & 1)))
LOOP(load16_host, sink += load16((uint64_t)(host + (sink & 4))).x)
LOOP(atomic_add, sink += atomicAdd(hbm + 32 + (sink & 1), 0))
LOOP(atomic_add64, sink += atomicAdd((unsigned long long *)hbm + 32 + (sink & 1), 0ull))
LOOP(atomic_cas, sink += atomicCAS(hbm + 32 + (sink & 1), 1, 0))
LOOP(atomic_exch, sink += atomicExch(hbm + 32 + (sink & 1), 0))
LOOP(red_or, atomicOr(hbm + 32, 0))
LOOP(store_fence_gpu_hbm, put32(hbm, i); FENCE("fence.acq_rel.gpu"))
LOOP(store_fence_sys_hbm, put32(hbm, i); FENCE("fence.acq_rel.sys"))
LOOP(store_fence_release_sys_hbm, put32(hbm, i); FENCE("fence.release.sys"))
LOOP(store_fence_sc_sys_hbm, put32(hbm, i); FENCE("fence.sc.sys"))
LOOP(store_release_sys_hbm, asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(hbm), "r"(i) : "memory"))
LOOP(fence_acquire_sys, FENCE("fence.acquire.sys"))
LOOP(fence_acq_rel_sys, FENCE("fence.acq_rel.sys"))
LOOP(fence_acq_rel_gpu, FENCE("fence.acq_rel.gpu"))
LOOP(load_fence_acquire_sys, sink += get32(hbm + (sink & 1)); FENCE("fence.acquire.sys"))
LOOP(load_fence_acq_rel_sys, sink += get32(hbm + (sink & 1)); FENCE("fence.acq_rel.sys"))
LOOP(store_fence_gpu_host, put32(host, i); FENCE("fence.acq_rel.gpu"))
LOOP(store_fence_sys_host, put32(host, i); FENCE("fence.acq_rel.sys"))
LOOP(store_fence_release_sys_host, put32(host, i); FENCE("fence.release.sys"))
LOOP(store_fence_sc_sys_host, put32(host, i); FENCE("fence.sc.sys"))
LOOP(store4_fence_sys_host, for (int j = 0; j < 4; j++) store16((uint64_t)(host + 4 * j), make_uint4(i, i, i, i)); FENCE("fence.acq_rel.sys"))
LOOP(mmio_store_fence_sys_host, asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" : : "l"(host), "r"(i) : "memory"); FENCE("fence.acq_rel.sys"))
LOOP(globaltimer, sink += (uint32_t)now())
LOOP(sleep0, __nanosleep(0))
LOOP(sleep20, __nanosleep(20))
LOOP(sleep100, __nanosleep(100))

/* Store a number to host memory, poll for its echo; plain. */
__global__ void ping(uint32_t *hbm, uint32_t *host, unsigned long long *ns)
{
	unsigned long long start = 0;

	for (uint32_t i = 1; i <= ROUNDS + 50; i++) {
		if (i == 51)
			start = now();
		put32(host, i);
		while (get32(host + 64) != i)
			;
	}
	*ns = now() - start;
	put32(host, 0xffffffff);
}

/* The same, with four loads in flight, evenly spaced. */
template <int LOADS, int GAP>
__global__ void ping_many(uint32_t *hbm, uint32_t *host, unsigned long long *ns)
{
	unsigned long long start = 0;

	for (uint32_t i = 1; i <= ROUNDS + 50; i++) {
		uint32_t seen[LOADS];
		bool found = false;

		if (i == 51)
			start = now();
		put32(host, i);
#pragma unroll
		for (int j = 0; j < LOADS; j++) {
			long long at = clock64();

			seen[j] = get32(host + 64);
			while (j < LOADS - 1 && clock64() - at < GAP)
				;
		}
		while (!found) {
#pragma unroll
			for (int j = 0; j < LOADS; j++) {
				if (seen[j] == i) {
					found = true;
					break;
				}
				seen[j] = get32(host + 64);
			}
		}
	}
	*ns = now() - start;
	put32(host, 0xffffffff);
}

/* An entry, a fence, a doorbell; the echo is polled. */
__global__ void ping_entry(uint32_t *hbm, uint32_t *host, unsigned long long *ns)
{
	unsigned long long start = 0;

	for (uint32_t i = 1; i <= ROUNDS + 50; i++) {
		if (i == 51)
			start = now();
		for (int j = 0; j < 4; j++)
			store16((uint64_t)(host + 128 + 4 * j), make_uint4(i, i, i, i));
		FENCE("fence.acq_rel.sys");
		put32(host, i);
		while (get32(host + 64) != i)
			;
	}
	*ns = now() - start;
	put32(host, 0xffffffff);
}

static void echo(volatile uint32_t *host)
{
	uint32_t last = 0;

	for (;;) {
		uint32_t seen = host[0];

		if (seen == 0xffffffff)
			return;
		if (seen != last)
			host[64] = last = seen;
	}
}

/* Two SMs: one thread stores, another echoes; both in HBM. */
__global__ void ping_sm(uint32_t *hbm, uint32_t *host, unsigned long long *ns)
{
	unsigned long long start = 0;

	if (threadIdx.x)
		return;
	for (uint32_t i = 1; i <= ROUNDS + 50; i++) {
		if (i == 51)
			start = now();
		if (blockIdx.x) {
			while (get32(hbm + 128) != i)
				;
			put32(hbm + 256, i);
		} else {
			put32(hbm + 128, i);
			while (get32(hbm + 256) != i)
				;
		}
	}
	if (!blockIdx.x)
		*ns = now() - start;
}

/* Entries into host memory: each lane its own (stride 64), or a warp's side by side. */
template <int TURNED>
__global__ void store_host_rate(uint32_t *hbm, uint32_t *host, unsigned long long *ns)
{
	uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
	uint64_t base = (uint64_t)host + 4096 + (warp % 1024) * 8192ull;
	unsigned long long start = now();

	for (uint32_t i = 0; i < 256; i++) {
		uint64_t at = base + (i & 3) * 2048;

		for (int j = 0; j < 4; j++) {
			uint64_t a = TURNED == 2 ? at + j * 512 + lane * 16 :
				TURNED ? at + (lane / 4) * 256 + j * 64 + lane % 4 * 16 :
				at + lane * 64 + j * 16;
			store16(a, make_uint4(i, i, i, i));
		}
		FENCE("fence.acq_rel.sys");
	}
	atomicMax(ns, now() - start);
}

static void report(const char *name, std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	printf("{\"micro\":\"%s\",\"ns\":%.1f,\"min\":%.1f,\"max\":%.1f}\n", name,
	       v[v.size() / 2], v.front(), v.back());
}

int main(void)
{
	uint32_t *hbm, *host;
	unsigned long long *ns, value;

	CHECK(cudaMalloc(&hbm, 1 << 20));
	CHECK(cudaMemset(hbm, 0, 1 << 20));
	CHECK(cudaHostAlloc(&host, 16 << 20, cudaHostAllocMapped));
	CHECK(cudaMalloc(&ns, 8));

#define RUN(kernel, blocks, threads, divide, echoed)				\
	do {									\
		std::vector<double> v;						\
		for (int r = 0; r < 5; r++) {					\
			memset(host, 0, 4096);					\
			CHECK(cudaMemset(ns, 0, 8));				\
			CHECK(cudaMemset(hbm, 0, 1 << 20));			\
			std::thread thread;					\
			if (echoed)						\
				thread = std::thread(echo, host);		\
			kernel<<<blocks, threads>>>(hbm, host, ns);		\
			CHECK(cudaDeviceSynchronize());				\
			if (echoed)						\
				thread.join();					\
			CHECK(cudaMemcpy(&value, ns, 8, cudaMemcpyDeviceToHost));\
			v.push_back((double)value / (divide));			\
		}								\
		report(#kernel, v);						\
	} while (0)
#define RUN1(kernel) RUN(kernel, 1, 1, ROUNDS, false)
	RUN1(load_hbm); RUN1(load16_hbm); RUN1(load_host); RUN1(load16_host);
	RUN1(atomic_add); RUN1(atomic_add64); RUN1(atomic_cas); RUN1(atomic_exch); RUN1(red_or);
	RUN1(store_fence_gpu_hbm); RUN1(store_fence_sys_hbm); RUN1(store_fence_release_sys_hbm);
	RUN1(store_fence_sc_sys_hbm); RUN1(store_release_sys_hbm); RUN1(fence_acquire_sys);
	RUN1(fence_acq_rel_sys); RUN1(fence_acq_rel_gpu); RUN1(load_fence_acquire_sys);
	RUN1(load_fence_acq_rel_sys); RUN1(store_fence_gpu_host); RUN1(store_fence_sys_host);
	RUN1(store_fence_release_sys_host); RUN1(store_fence_sc_sys_host);
	RUN1(store4_fence_sys_host); RUN1(mmio_store_fence_sys_host); RUN1(globaltimer);
	RUN1(sleep0); RUN1(sleep20); RUN1(sleep100);
	RUN(ping_sm, 2, 1, ROUNDS, false);
	RUN(ping, 1, 1, ROUNDS, true);
	RUN((ping_many<2, 900>), 1, 1, ROUNDS, true);
	RUN((ping_many<4, 450>), 1, 1, ROUNDS, true);
	RUN((ping_many<8, 220>), 1, 1, ROUNDS, true);
	RUN(ping_entry, 1, 1, ROUNDS, true);
	/* ns per entry */
	RUN((store_host_rate<0>), 16, 1024, 16 * 1024 * 256.0, false);
	RUN((store_host_rate<1>), 16, 1024, 16 * 1024 * 256.0, false);
	RUN((store_host_rate<2>), 16, 1024, 16 * 1024 * 256.0, false);
	return 0;
}
