// SPDX-License-Identifier: GPL-2.0-only
/*
 * The modes of queue pairs, with a GPU that shares memory with the controller: direct, relay,
 * mediated, and served by threads of this process on the block device of the namespace. The same
 * programs of the GPU read random parts of a prepared range and compare every word: one command
 * at a time by one thread on the only queue pair, then many.
 *
 * gpu_card_modes [READS [SECONDS]]: in each mode, until either is reached. Prints for
 * selftests/cuda/card.sh "# modes: {...}" and "# modes latency: {...}", with the CPU time and the
 * wake-ups of the guest's threads between GPU and controller: the pollers of the kernel, or those
 * that serve. "share" is the part of the latency that direct mode does not have.
 *
 * gpu: shared
 * timeout: 120
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "../lib/ktap.h"
#include "gpu_qp.h"
#include "tenant.h"

#define ENTRIES		64U	/* a submission ring of one page: pages of a memfd are scattered */
#define QUEUES		40U
#define MOST_PAIRS	16U
#define RANGE		(8U << 20)
#define SEED		0x40deULL
#define MOST_SAMPLES	10000U
/* Limit from the end of the time of a job to its end. */
#define END_MS		30000U
#define SERVER		"modes-serve"
#define POLLER		"nvmep-poller/"

/**
 * struct mode - a mode
 * @name: its name
 * @mode: of its queue pairs, unless @served
 * @folder: has a folder of /proc for each thread between GPU and controller, or NULL
 * @thread: how their names begin
 * @served: by this process
 */
struct mode {
	const char *name;
	enum nvme_peer_mode mode;
	const char *folder;
	const char *thread;
	bool served;
};

static const struct mode modes[] = {
	{ .name = "direct", .mode = NVME_PEER_MODE_DIRECT },
	{ "relay", NVME_PEER_MODE_RELAY, "/proc", POLLER, false },
	{ "mediated", NVME_PEER_MODE_MEDIATED, "/proc", POLLER, false },
	{ "served", NVME_PEER_MODE_DIRECT, "/proc/self/task", SERVER, true },
};

/**
 * struct server - a thread that serves a queue pair
 * @serve: the queue pair
 * @staging: memory for its data
 * @thread: the thread, if @runs
 * @runs: it was started
 */
struct server {
	struct nvmepeer_serve *serve;
	struct np_memory staging;
	pthread_t thread;
	bool runs;
};

/** struct effort - CPU time and wake-ups of threads */
struct effort {
	unsigned long long cpu_ns;
	unsigned long long wakeups;
};

static struct np_bad bad;
static struct np_gpu_qp qps[MOST_PAIRS];
static struct server servers[MOST_PAIRS];
static int jobs[MOST_PAIRS];
static uint64_t direct_ns;

/* --- Queue pairs ----------------------------------------------------------- */

static void *run_server(void *context)
{
	struct server *server = context;

	nvmepeer_serve_run(server->serve);
	return NULL;
}

static int open_served(unsigned int pair)
{
	const struct nvmepeer_serve_options options = { .size = sizeof(options), .entries = ENTRIES };
	struct server *server = &servers[pair];
	struct nvmepeer_buffer data = { 0 };
	struct nvmepeer_ns_info ns;
	int ret;

	ret = np_memory_alloc(&server->staging, bad.ctrl.fd) ?:
	      nvmepeer_serve_create(&options, &server->serve) ?:
	      nvmepeer_serve_add_fd(server->serve, bad.disk, 0, &ns, sizeof(ns)) ?:
	      nvmepeer_serve_add_buffer(server->serve, server->staging.bytes, NP_MEMORY_BYTES, &data) ?:
	      np_gpu_qp_open_served(&qps[pair], &bad.ctrl, ENTRIES, server->serve, &ns,
				    server->staging.fd, &data) ?:
	      -pthread_create(&server->thread, NULL, run_server, server);
	if (ret)
		return ret;
	server->runs = true;
	return -pthread_setname_np(server->thread, SERVER);
}

static int open_pair(const struct mode *mode, unsigned int pair)
{
	int ret;

	np_qp_set_mode(mode->mode);
	ret = mode->served ? open_served(pair) :
	      np_gpu_qp_open(&qps[pair], &bad.ctrl, ENTRIES, NP_GPU_HOST_RINGS);
	np_gpu_range(&qps[pair], 0, RANGE, NP_PAGE, SEED);
	return ret;
}

static void close_pair(unsigned int pair)
{
	struct server *server = &servers[pair];

	if (server->runs) {
		nvmepeer_serve_stop(server->serve);
		pthread_join(server->thread, NULL);
	}
	np_gpu_qp_close(&qps[pair]);
	nvmepeer_serve_destroy(server->serve);
	if (server->staging.bytes)
		np_memory_free(&server->staging);
	*server = (struct server){ 0 };
}

/* A thread that serves needs a CPU. */
static unsigned int pairs_of(const struct mode *mode)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!np_gpu_is_real())
		return 2;
	return mode->served && cpus < (long)MOST_PAIRS ? (unsigned int)cpus : MOST_PAIRS;
}

static uint32_t threads(void)
{
	return np_gpu_is_real() ? NP_MEMORY_PAGES : 8;
}

/* --- CPU time --------------------------------------------------------------- */

static void add_effort(const char *folder, const char *thread, struct effort *effort)
{
	unsigned long long cpu_ns = 0, wakeups = 0;
	char path[300], text[4096], *line;

	snprintf(path, sizeof(path), "%s/%s/schedstat", folder, thread);
	if (!np_read_file(path, text, sizeof(text)))
		sscanf(text, "%llu", &cpu_ns);
	snprintf(path, sizeof(path), "%s/%s/status", folder, thread);
	line = np_read_file(path, text, sizeof(text)) ? NULL : strstr(text, "\nvoluntary_ctxt_switches:");
	if (line)
		sscanf(line, "\nvoluntary_ctxt_switches: %llu", &wakeups);
	effort->cpu_ns += cpu_ns;
	effort->wakeups += wakeups;
}

/* Of all threads between GPU and controller. */
static struct effort effort_of(const struct mode *mode)
{
	DIR *folder = mode->folder ? opendir(mode->folder) : NULL;
	struct effort effort = { 0 };
	char path[300], name[32];
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s/comm", mode->folder, entry->d_name);
		if (atoi(entry->d_name) > 0 && !np_read_file(path, name, sizeof(name)) &&
		    !strncmp(name, mode->thread, strlen(mode->thread)))
			add_effort(mode->folder, entry->d_name, &effort);
	}
	if (folder)
		closedir(folder);
	return effort;
}

/* For each of @commands, as members of a JSON object. */
static void print_effort(const struct mode *mode, const struct effort *before, uint64_t commands)
{
	struct effort now = effort_of(mode);

	printf("\"cpu_ns\": %.0f, \"wakeups\": %.3f",
	       (double)(now.cpu_ns - before->cpu_ns) / (double)commands,
	       (double)(now.wakeups - before->wakeups) / (double)commands);
}

/* --- One command at a time -------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void report_latency(const struct mode *mode, uint64_t *samples, uint64_t count,
			   const struct effort *before)
{
	uint64_t median;

	qsort(samples, count, sizeof(*samples), compare);
	median = samples[count / 2];
	if (!mode->folder)
		direct_ns = median;
	printf("# modes latency: {\"mode\": \"%s\", \"median_ns\": %llu, \"p99_ns\": %llu, \"min_ns\": %llu, \"share\": %.3f, ",
	       mode->name, (unsigned long long)median, (unsigned long long)samples[count * 99 / 100],
	       (unsigned long long)samples[0],
	       median > direct_ns ? 1 - (double)direct_ns / (double)median : 0);
	print_effort(mode, before, count);
	printf("}\n");
}

static int measure_latency(const struct mode *mode)
{
	struct np_gpu_memory samples = { .fd = -1 };
	struct effort before = effort_of(mode);
	struct softgpu_result result;
	struct softgpu_io io = qps[0].io;
	int ret = np_gpu_memory_open(&samples, qps[0].gpu, MOST_SAMPLES * sizeof(uint64_t));

	io.commands = np_gpu_is_real() ? MOST_SAMPLES : 500;
	io.samples = samples.address;
	io.sample_count = io.commands;
	ret = ret ?: np_gpu_run(qps[0].gpu, SOFTGPU_LATENCY, 1, &io, sizeof(io), &result);
	if (!ret && (result.status != SOFTGPU_OK || result.reads != io.commands))
		ret = -EIO;
	if (!ret)
		report_latency(mode, (uint64_t *)samples.bytes, io.commands, &before);
	np_gpu_memory_close(&samples);
	return ret;
}

/* --- Verified reads ---------------------------------------------------------- */

static int start_all(unsigned int pairs, uint64_t reads, uint64_t seconds)
{
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		qps[i].io.commands = (reads + pairs - 1) / pairs;
		qps[i].io.duration_ns = seconds * 1000000000;
		jobs[i] = np_gpu_start(qps[i].gpu, SOFTGPU_RANDOM, threads(), &qps[i].io,
				       sizeof(qps[i].io));
		if (jobs[i] < 0)
			return jobs[i];
	}
	return 0;
}

static int end_all(unsigned int pairs, uint64_t seconds, struct softgpu_result *sum)
{
	struct softgpu_result result;
	unsigned int i;
	int ret;

	for (i = 0; i < pairs; i++) {
		ret = np_gpu_wait(qps[i].gpu, jobs[i], (uint32_t)seconds * 1000 + END_MS, &result);
		if (ret)
			return ret;
		sum->commands += result.commands;
		sum->reads += result.reads;
		sum->errors += result.errors;
		sum->mismatches += result.mismatches;
		if (result.status != SOFTGPU_OK)
			printf("# pair %u: status %u, error %d at %llx\n", i, result.status,
			       result.error, (unsigned long long)result.where);
	}
	return 0;
}

static int measure_reads(const struct mode *mode, uint64_t reads, uint64_t seconds)
{
	struct effort before = effort_of(mode);
	struct softgpu_result sum = { 0 };
	unsigned int pairs = pairs_of(mode);
	int64_t began = np_now_ms(), took;
	int ret = start_all(pairs, reads, seconds) ?: end_all(pairs, seconds, &sum);

	if (ret)
		return ret;
	took = np_now_ms() - began;
	printf("# modes: {\"mode\": \"%s\", \"pairs\": %u, \"threads\": %u, \"wanted\": %llu, \"verified\": %llu, \"wrong\": %llu, \"failed\": %llu, \"ms\": %lld, \"per_second\": %llu, ",
	       mode->name, pairs, pairs * threads(), (unsigned long long)reads,
	       (unsigned long long)sum.reads, (unsigned long long)sum.mismatches,
	       (unsigned long long)sum.errors, (long long)took,
	       (unsigned long long)sum.reads * 1000 / (uint64_t)(took ? took : 1));
	print_effort(mode, &before, sum.reads ? sum.reads : 1);
	printf("}\n");
	if (sum.commands != sum.reads)
		return -EIO;
	return sum.reads && !sum.errors && !sum.mismatches ? 0 : -EBADMSG;
}

/* --- A mode -------------------------------------------------------------------- */

static int measure(const struct mode *mode, uint64_t reads, uint64_t seconds)
{
	unsigned int i;
	int ret = open_pair(mode, 0) ?: measure_latency(mode);

	for (i = 1; i < pairs_of(mode) && !ret; i++)
		ret = open_pair(mode, i);
	return ret ?: measure_reads(mode, reads, seconds);
}

static void run(const struct mode *mode, uint64_t reads, uint64_t seconds)
{
	unsigned int i;
	int ret = measure(mode, reads, seconds);

	if (ret)
		printf("# %s: %d\n", mode->name, ret);
	for (i = 0; i < MOST_PAIRS; i++)
		close_pair(i);
	ktap_check(!ret, mode->name);
}

int main(int argc, char **argv)
{
	uint64_t reads = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 10;
	unsigned int i;
	int ret;

	ktap_start();
	for (i = 0; i < MOST_PAIRS; i++)
		np_gpu_qp_clear(&qps[i]);
	ret = np_bad_open(&bad) ?: np_bad_set(&bad, BADCTRL_GRANT, QUEUES) ?: np_bad_bind(&bad, 1) ?:
	      np_gpu_pattern_write(bad.disk, 0, RANGE, SEED);
	if (ret)
		printf("# open: %d\n", ret);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]) && !ret; i++)
		run(&modes[i], reads, seconds);
	ktap_check(!ret && !np_bad_close(&bad), "all objects are gone");
	return ktap_end();
}
