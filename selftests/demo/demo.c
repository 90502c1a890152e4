// SPDX-License-Identifier: GPL-2.0-only
/*
 * The demonstration: fio, ext4 and the software GPU use one controller at once, with live
 * progress; then two rates, the proof that the CPU took no part in the GPU's I/O, a table
 * and a verdict. See demo.h; demo.sh prepares the disk.
 *
 * usage: demo CONTROLLER NAMESPACE FIO-PART EXT4-PART GPU-PART TREE STOP-FILE SECONDS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nvmepeer.h>

#include "report.h"
#include "cpu.h"
#include "filesystem.h"
#include "fio.h"
#include "gpu.h"

enum {
	FIO,
	EXT4,
	GPU,
	CPU,		/* the GPU's counterpart, in its thread */
	INITIATORS,
	THREADS = CPU,
	RATE_DEPTH = 32,
	RATE_SECONDS = 1,
	RATE_TURNS = 5,
	BEGIN_SECONDS = 60,	/* limit for the first I/O of all initiators */
	LINGER_SECONDS = 120,	/* limit for the end of all initiators */
	PARTS = 3,		/* of the time; all initiators must do I/O in each part */
};

static const char *const names[INITIATORS] = {
	[FIO] = "fio, io_uring passthrough",
	[EXT4] = "ext4, block device",
	[GPU] = "software GPU, own queue pair",
	[CPU] = "CPU, the GPU's counterpart",
};

/**
 * struct show - the whole run
 * @together: seconds in which all three initiators were active
 * @busy: seconds with I/O of an initiator, for each part of that time
 * @ext4_before: the block layer's counters at the start
 */
struct show {
	struct demo demo;
	struct tally tallies[INITIATORS];
	struct gpu *gpu;
	unsigned int together;
	unsigned int busy[THREADS][PARTS];
	struct block_count ext4_before;
};

/* ---- The disk ----------------------------------------------------------- */

static bool read_number(const char *device, const char *attribute, uint64_t *value)
{
	char path[160];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), "/sys/class/block/%s/%s", device, attribute);
	file = fopen(path, "re");
	if (!file) {
		report_error(false, "no partition %s", device);
		return false;
	}
	found = fscanf(file, "%" SCNu64, value);
	fclose(file);
	return found == 1;
}

static bool find_region(const struct demo *demo, const char *partition, struct region *region)
{
	uint64_t start, size;

	if (!read_number(partition, "start", &start) ||
	    !read_number(partition, "size", &size))
		return false;
	region->first = start * SECTOR / demo->block_size;
	region->blocks = size * SECTOR / demo->block_size;
	return true;
}

static bool find_regions(struct demo *demo)
{
	struct nvmepeer_ns *ns;

	if (nvmepeer_ns_open(demo->namespace_node, &ns)) {
		report_error(true, "namespace");
		return false;
	}
	demo->block_size = nvmepeer_ns_info(ns)->block_size;
	nvmepeer_ns_close(ns);
	return find_region(demo, demo->fio_partition, &demo->fio_region) &&
	       find_region(demo, demo->gpu_partition, &demo->gpu_region);
}

/* ---- All at once -------------------------------------------------------- */

/*
 * fio runs for a fixed time, so it starts last. The others take a while to start: a file
 * system is mounted and synced, a queue pair created.
 */
static void *run_fio(void *argument)
{
	struct show *show = argument;

	while (!show->demo.stop && !(show->tallies[EXT4].ios && show->tallies[GPU].ios))
		usleep(100000);
	fio_run(&show->demo, &show->tallies[FIO]);
	show->tallies[FIO].ended = true;
	return NULL;
}

static void *run_filesystem(void *argument)
{
	struct show *show = argument;

	filesystem_run(&show->demo, &show->tallies[EXT4]);
	show->tallies[EXT4].ended = true;
	return NULL;
}

static void *run_gpu(void *argument)
{
	struct show *show = argument;

	gpu_run(show->gpu, &show->demo, &show->tallies[GPU], &show->tallies[CPU]);
	show->tallies[GPU].ended = true;
	return NULL;
}

/* The file system's I/Os are those of the block layer's counters. */
static void sample_filesystem(struct show *show)
{
	struct block_count now;

	if (!block_count(show->demo.ext4_partition, &now))
		return;
	show->tallies[EXT4].ios = now.reads + now.writes -
		show->ext4_before.reads - show->ext4_before.writes;
	show->tallies[EXT4].bytes = now.bytes - show->ext4_before.bytes;
}

static double megabytes(uint64_t bytes)
{
	return (double)bytes / 1e6;
}

static void print_progress(const struct show *show)
{
	const struct tally *tallies = show->tallies;

	if (show->together)
		printf("[%3u s]", show->together);
	else
		printf("[ start]");
	printf(" fio %7" PRIu64 " I/Os %6.1f MB", tallies[FIO].ios, megabytes(tallies[FIO].bytes));
	printf(" | ext4 %6" PRIu64 " I/Os %6.1f MB, %5.1f MB verified", tallies[EXT4].ios,
	       megabytes(tallies[EXT4].bytes), megabytes(tallies[EXT4].verified));
	printf(" | GPU %6" PRIu64 " I/Os %6.1f MB, %6.1f MB verified\n", tallies[GPU].ios,
	       megabytes(tallies[GPU].bytes),
	       megabytes(tallies[GPU].verified + tallies[CPU].verified));
	fflush(stdout);
}

static bool any_ended(const struct show *show)
{
	return show->tallies[FIO].ended || show->tallies[EXT4].ended ||
	       show->tallies[GPU].ended;
}

static bool all_ended(const struct show *show)
{
	return show->tallies[FIO].ended && show->tallies[EXT4].ended &&
	       show->tallies[GPU].ended;
}

static bool all_began(const struct show *show)
{
	return show->tallies[FIO].ios && show->tallies[EXT4].ios &&
	       show->tallies[GPU].ios;
}

/* Account for the time since the last call, up to @seconds after all three started. */
static void note_time(struct show *show, unsigned int seconds, uint64_t before[THREADS])
{
	unsigned int part = show->together * PARTS / show->demo.seconds;
	int i;

	for (i = 0; i < THREADS; i++) {
		show->busy[i][part] += show->tallies[i].ios > before[i];
		before[i] = show->tallies[i].ios;
	}
	show->together = seconds;
}

static void stop_all(struct show *show)
{
	FILE *file = fopen(show->demo.stop_file, "we");

	show->demo.stop = true;
	if (file)
		fclose(file);
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void watch(struct show *show)
{
	uint64_t before[THREADS] = { 0 };
	time_t start = seconds_now(), began = 0;
	unsigned int waited;

	while (!any_ended(show) && show->together < show->demo.seconds) {
		if (!began && seconds_now() > start + BEGIN_SECONDS)
			break;
		sleep(1);
		sample_filesystem(show);
		if (began && !any_ended(show))
			note_time(show, (unsigned int)(seconds_now() - began), before);
		if (!began && all_began(show))
			began = seconds_now();
		print_progress(show);
	}
	stop_all(show);
	for (waited = 0; !all_ended(show) && waited < LINGER_SECONDS; waited++)
		sleep(1);
	sample_filesystem(show);
}

static bool run_all(struct show *show)
{
	static void *(*const run[THREADS])(void *) = { run_fio, run_filesystem, run_gpu };
	pthread_t threads[THREADS];
	int i;

	block_count(show->demo.ext4_partition, &show->ext4_before);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run[i], show)) {
			report_error(false, "cannot start a thread");
			return false;
		}
	watch(show);
	if (!all_ended(show)) {
		report_error(false, "an initiator hangs");
		return false;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return true;
}

/* ---- Rates, alone on the controller ------------------------------------- */

/**
 * struct rates - GPU and CPU in turns, at the same queue depth
 *
 * In turns, so that other load on the machine affects both; the median of the turns is
 * shown.
 *
 * @controller_reads: read commands that the controller counted in the GPU's turns
 */
struct rates {
	struct rate gpu[RATE_TURNS];
	struct rate cpu[RATE_TURNS];
	uint64_t controller_reads;
};

static bool measure_turn(struct show *show, struct cpu *cpu, struct rates *rates, int turn)
{
	const struct demo *demo = &show->demo;
	uint64_t before, after;

	if (!cpu_smart_reads(cpu, &before) ||
	    !gpu_rate(show->gpu, demo, RATE_DEPTH, RATE_SECONDS, &rates->gpu[turn]) ||
	    !cpu_smart_reads(cpu, &after) ||
	    !cpu_rate(cpu, &demo->gpu_region, RATE_DEPTH, RATE_SECONDS, &rates->cpu[turn]))
		return false;
	rates->controller_reads += after - before;
	return true;
}

static bool measure(struct show *show, struct rates *rates)
{
	struct cpu *cpu = cpu_open(&show->demo);
	bool good = cpu;
	int turn;

	for (turn = 0; turn < RATE_TURNS && good; turn++)
		good = measure_turn(show, cpu, rates, turn);
	if (cpu)
		cpu_close(cpu);
	return good;
}

static double per_second(const struct rate *rate)
{
	return rate->nanoseconds ? (double)rate->commands * 1e9 / (double)rate->nanoseconds : 0;
}

static int compare_rates(const void *left, const void *right)
{
	double a = per_second(left), b = per_second(right);

	return (a > b) - (a < b);
}

/* Prints one side's line; returns the median. */
static double show_rate(const char *name, const struct rate turns[RATE_TURNS])
{
	struct rate sorted[RATE_TURNS];

	memcpy(sorted, turns, sizeof(sorted));
	qsort(sorted, RATE_TURNS, sizeof(sorted[0]), compare_rates);
	printf("  %-16s %8.0f I/O/s (%.0f to %.0f)\n", name, per_second(&sorted[RATE_TURNS / 2]),
	       per_second(&sorted[0]), per_second(&sorted[RATE_TURNS - 1]));
	return per_second(&sorted[RATE_TURNS / 2]);
}

static bool show_rates(const struct rates *rates)
{
	double gpu, cpu;

	printf("\nRandom 4 KiB reads, %d in flight, alone on the controller, median of %d turns:\n",
	       RATE_DEPTH, RATE_TURNS);
	gpu = show_rate("software GPU", rates->gpu);
	cpu = show_rate("CPU, io_uring", rates->cpu);
	if (gpu <= 0 || cpu <= 0)
		return false;
	printf("  %-16s %8.2f\n", "GPU to CPU", gpu / cpu);
	return true;
}

/* ---- Proof -------------------------------------------------------------- */

static bool claim(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool claim(bool holds, const char *format, ...)
{
	va_list arguments;

	printf("  %-4s ", holds ? "yes" : "NO");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	return holds;
}

static bool show_proof(const struct gpu_proof *proof, const struct rates *rates)
{
	uint64_t gpu_reads = 0;
	bool good = true;
	int turn;

	for (turn = 0; turn < RATE_TURNS; turn++)
		gpu_reads += rates->gpu[turn].commands;

	printf("\nThe CPU took no part in the GPU's I/O:\n");
	good &= claim(proof->rings_in_gpu, "both rings lie in GPU memory");
	good &= claim(proof->data_in_gpu, "all data lies in GPU memory");
	good &= claim(proof->gpu_doorbells && !proof->lost_doorbells &&
		      proof->bus_doorbells == (proof->shared ? 0 : proof->gpu_doorbells),
		      "doorbell writes by the GPU: %" PRIu64 ", on the bus: %" PRIu64
		      ", lost: %" PRIu64,
		      proof->gpu_doorbells, proof->bus_doorbells, proof->lost_doorbells);
	good &= claim(!proof->cpu_doorbells, "doorbell writes by the CPU on that queue: %" PRIu64,
		      proof->cpu_doorbells);
	good &= claim(!proof->cpu_doorbell_maps,
		      "mappings of its doorbell page for the CPU: %" PRIu64,
		      proof->cpu_doorbell_maps);
	good &= claim(!proof->cpu_memory_maps,
		      "bytes copied by the CPU: %s, for GPU memory was mapped for it %" PRIu64
		      " times",
		      proof->cpu_memory_maps ? "unknown" : "0", proof->cpu_memory_maps);
	good &= claim(gpu_reads == rates->controller_reads,
		      "read commands while only the GPU ran: %" PRIu64
		      " by the GPU, %" PRIu64 " counted by the controller",
		      gpu_reads, rates->controller_reads);
	return good;
}

/* ---- The table ---------------------------------------------------------- */

static void show_table(const struct show *show)
{
	const struct tally *tally;
	int i;

	printf("\n%-30s %10s %10s %8s %12s\n", "initiator", "I/Os", "MB", "errors", "verified MB");
	for (i = 0; i < INITIATORS; i++) {
		tally = &show->tallies[i];
		printf("%-30s %10" PRIu64 " %10.1f %8" PRIu64 " %12.1f\n", names[i],
		       tally->ios, megabytes(tally->bytes), tally->errors,
		       megabytes(tally->verified));
	}
}

/* An initiator did I/O in every part of the time, verified it, and had no error. */
static bool judge_initiator(const struct show *show, int i)
{
	const struct tally *tally = &show->tallies[i];
	bool good = tally->ios && tally->verified && !tally->errors;
	int part;

	if (!good)
		report_error(false, "%s: errors, or nothing done", names[i]);
	for (part = 0; part < PARTS && i < THREADS; part++) {
		if (show->busy[i][part])
			continue;
		report_error(false, "%s: no I/O in part %d of the time", names[i], part + 1);
		good = false;
	}
	return good;
}

static bool judge(const struct show *show)
{
	bool good = true;
	int i;

	if (show->together < show->demo.seconds) {
		report_error(false, "all three ran together for %u of %u seconds only",
			     show->together, show->demo.seconds);
		return false;
	}
	for (i = 0; i < INITIATORS; i++)
		good &= judge_initiator(show, i);
	return good;
}

static bool perform(struct show *show)
{
	struct gpu_proof proof = { 0 };
	struct rates rates = { 0 };
	bool good;

	if (!find_regions(&show->demo))
		return false;
	show->gpu = gpu_open(&show->demo);
	if (!show->gpu)
		return false;
	if (!run_all(show))
		return false;	/* other threads may still use these objects */
	good = measure(show, &rates);
	good &= gpu_proof(show->gpu, &proof);
	gpu_close(show->gpu);
	good &= show_rates(&rates);
	good &= show_proof(&proof, &rates);
	show_table(show);
	return judge(show) && good;
}

int main(int argc, char **argv)
{
	static struct show show;
	bool good;

	if (argc == 9)
		show.demo.seconds = (unsigned int)strtoul(argv[8], NULL, 10);
	if (!show.demo.seconds) {
		fprintf(stderr, "usage: demo CONTROLLER NAMESPACE FIO-PART EXT4-PART GPU-PART TREE STOP-FILE SECONDS\n");
		return 2;
	}
	show.demo.controller = argv[1];
	show.demo.namespace_node = argv[2];
	show.demo.fio_partition = argv[3];
	show.demo.ext4_partition = argv[4];
	show.demo.gpu_partition = argv[5];
	show.demo.tree = argv[6];
	show.demo.stop_file = argv[7];
	good = perform(&show);
	printf("\ndemo: %s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
