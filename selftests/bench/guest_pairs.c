// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs for a process of the host (selftests/cuda/manifest.py): create them through the
 * module, import memories of the window, have the software GPU describe both in a manifest, and
 * hold their descriptors until that process has given them up.
 *
 * usage: guest_pairs PAIRS ENTRIES MEMORIES MIB
 *
 * Both have a page in which each has words of its own, struct processes. On a loss the process's
 * kernels end; it closes its queue pairs and acknowledges; only then they are re-armed, and a
 * manifest with the next generation is written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_qp.h"
#include "npbad.h"

#define MOST_PAIRS	64U
#define MOST_MEMORIES	SOFTGPU_MOST_DATA
#define GRANT		40U
#define CTRL_SGLS	(BADCTRL_IDENTIFY(1) + 536)
/* The process computes meanwhile. */
#define ASKED_MS	540000U
#define GIVEN_UP_MS	60000U
/* An emulated guest shares processors with the process. */
#define LOOK_MS		10U

/* The process's requests. */
enum { ASK_NOTHING, ASK_RESET, ASK_END, ASK_RATE };

/**
 * struct processes - the page that both have mapped
 * @stop: the generation that the process gives up; 0: none
 * @ready: the generation of the manifest
 * @done: by the process: the generation that it has given up
 * @ask: by the process: a request
 * @argument: by the process: of ASK_RATE, MB/s; 0: no limit
 * @asked: by the process: number of its requests
 * @answered: the requests that were executed
 */
struct processes {
	uint32_t stop;
	uint32_t ready;
	uint32_t done;
	uint32_t ask;
	uint32_t argument;
	uint32_t asked;
	uint32_t answered;
};

static struct held {
	struct np_bad bad;
	struct np_gpu_qp qps[MOST_PAIRS];
	struct np_gpu_memory memories[MOST_MEMORIES];
	struct np_gpu_memory page;
	struct np_gpu_memory geometries;
	unsigned int pairs;
	unsigned int count;
	uint32_t generation;
} held;

static int explain(const char *what, int ret)
{
	fprintf(stderr, "guest_pairs: %s: %s\n", what, strerror(ret < 0 ? -ret : ret));
	return ret ?: -EIO;
}

static volatile struct processes *processes(void)
{
	return (volatile struct processes *)held.page.bytes;
}

static int wait_for(const volatile uint32_t *word, uint32_t value, unsigned int ms, const char *what)
{
	unsigned int waited;

	for (waited = 0; *word != value; waited += LOOK_MS) {
		if (waited >= ms)
			return explain(what, -ETIMEDOUT);
		np_sleep_ms(LOOK_MS);
	}
	return 0;
}

/* With SGLs commands need no PRP lists. */
static int open_pairs(uint32_t entries)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < held.pairs && !ret; i++) {
		struct nvmepeer_geometry *geometry = &held.qps[i].io.queue;

		ret = np_gpu_qp_open(&held.qps[i], &held.bad.ctrl, entries, NP_GPU_SGL);
		geometry->list_area = 0;
		geometry->list_bytes = 0;
		geometry->list_memory = (struct nvmepeer_buffer){ 0 };
	}
	return ret ? explain("no queue pair", ret) : 0;
}

static int open_memories(uint64_t bytes)
{
	int gpu = held.qps[0].gpu, ret;
	unsigned int i;

	ret = np_gpu_memory_open(&held.page, gpu, NP_PAGE) ?:
	      np_gpu_memory_open(&held.geometries, gpu,
				 MOST_PAIRS * sizeof(struct nvmepeer_geometry));
	for (i = 0; i < held.count && !ret; i++) {
		ret = np_gpu_window_open(&held.memories[i], gpu, held.bad.ctrl.fd, bytes);
		if (!ret && held.memories[i].segments != 1)
			ret = -EFAULT;
	}
	return ret ? explain("no memory", ret) : 0;
}

static int open_all(uint32_t entries, uint64_t bytes)
{
	struct np_bad *bad = &held.bad;
	int ret = np_bad_open(bad) ?: np_bad_set(bad, BADCTRL_GRANT, GRANT) ?:
		  np_bad_set(bad, CTRL_SGLS, 1) ?: np_bad_bind(bad, 1);

	if (ret)
		return explain("badctrl", ret);
	return open_pairs(entries) ?: open_memories(bytes);
}

static int publish(void)
{
	struct nvmepeer_geometry *geometries = (struct nvmepeer_geometry *)held.geometries.bytes;
	struct softgpu_manifest manifest = {
		.pairs = held.geometries.address,
		.control = held.page.address,
		.pair_count = held.pairs,
		.data_count = held.count,
		.generation = ++held.generation,
	};
	struct softgpu_result result;
	unsigned int i;
	int ret;

	for (i = 0; i < held.pairs; i++)
		geometries[i] = held.qps[i].io.queue;
	for (i = 0; i < held.count; i++)
		manifest.data[i] = (struct softgpu_data){
			.address = held.memories[i].address,
			.dma = held.memories[i].table[0],
			.bytes = held.memories[i].size,
		};
	ret = np_gpu_run(held.qps[0].gpu, SOFTGPU_MANIFEST, 1, &manifest, sizeof(manifest), &result);
	if (ret || result.status != SOFTGPU_OK)
		return explain("no manifest", ret);
	processes()->stop = 0;
	processes()->ready = held.generation;
	return 0;
}

/* The process ends its kernels, closes its queue pairs and acknowledges. */
static int take_back(void)
{
	processes()->stop = held.generation;
	return wait_for(&processes()->done, held.generation, GIVEN_UP_MS,
			"the process did not give its queue pairs up");
}

static int rearm(struct np_gpu_qp *qp)
{
	memset(qp->memory.bytes + (qp->io.queue.sq - qp->memory.address), 0,
	       64UL * qp->io.queue.sq_entries);
	return np_gpu_qp_rearm(qp, NP_TIMEOUT_MS);
}

/* All queue pairs are lost; the controller has ended what it did for them when this call returns. */
static int reset(void)
{
	int ret = (int)(intptr_t)np_bad_reset_thread(&held.bad);
	unsigned int i;

	if (ret)
		return explain("reset", ret);
	ret = take_back();
	for (i = 0; i < held.pairs && !ret; i++) {
		ret = rearm(&held.qps[i]);
		if (ret)
			explain("re-arm", ret);
	}
	return ret ?: publish();
}

/* Until the process asks for the end. */
static int serve(void)
{
	volatile struct processes *both = processes();
	uint32_t asked = 0, ask;
	int ret = 0;

	do {
		ret = wait_for(&both->asked, ++asked, ASKED_MS, "the process asks for nothing");
		ask = both->ask;
		if (!ret && ask == ASK_RESET)
			ret = reset();
		else if (!ret && ask == ASK_RATE)
			ret = np_bad_set(&held.bad, BADCTRL_MOVER(BADCTRL_MOVER_RATE),
					 both->argument);
		both->answered = asked;
	} while (!ret && ask != ASK_END);
	return ret ?: take_back();
}

static int close_all(void)
{
	unsigned int i;

	for (i = 0; i < held.pairs; i++)
		np_gpu_qp_close(&held.qps[i]);
	for (i = 0; i < held.count; i++)
		np_gpu_memory_close(&held.memories[i]);
	np_gpu_memory_close(&held.page);
	np_gpu_memory_close(&held.geometries);
	return np_bad_close(&held.bad);
}

int main(int argc, char **argv)
{
	unsigned long numbers[4] = { 0 };
	unsigned int i;
	int ret;

	for (i = 0; i < 4 && argc == 5; i++)
		numbers[i] = strtoul(argv[1 + i], NULL, 10);
	held.pairs = (unsigned int)numbers[0];
	held.count = (unsigned int)numbers[2];
	if (!held.pairs || held.pairs > MOST_PAIRS || held.count > MOST_MEMORIES || !numbers[3]) {
		fprintf(stderr, "usage: guest_pairs PAIRS ENTRIES MEMORIES MIB\n");
		return 2;
	}
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&held.qps[i]);
	for (i = 0; i < MOST_MEMORIES; i++)
		held.memories[i].fd = -1;
	held.page.fd = held.geometries.fd = -1;
	ret = open_all((uint32_t)numbers[1], (uint64_t)numbers[3] << 20) ?: publish();
	if (!ret) {
		printf("# guest_pairs: %u queue pairs of %lu entries, %u memories of %lu MiB\n",
		       held.pairs, numbers[1], held.count, numbers[3]);
		fflush(stdout);
		ret = serve();
	}
	return close_all() || ret;
}
