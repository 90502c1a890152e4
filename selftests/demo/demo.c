// SPDX-License-Identifier: GPL-2.0-only
/*
 * The demonstration: fio, ext4 and the stand-in GPU on one controller at once,
 * with live progress, then two rates, the proof that the CPU had no hand in
 * the GPU's I/O, a table and a verdict.  See demo.h; demo.sh prepares the disk.
 *
 * usage: demo CONTROLLER NAMESPACE FIO-PART EXT4-PART GPU-PART TREE SECONDS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

enum {
	FIO,
	EXT4,
	GPU,
	CPU,		/* the GPU's counterpart, in its thread */
	INITIATORS,
	THREADS = CPU,
	RATE_DEPTH = 32,
	RATE_SECONDS = 3,
	LINGER_SECONDS = 120,	/* for an initiator to end after the time */
};

static const char *const names[INITIATORS] = {
	[FIO] = "fio, io_uring passthrough",
	[EXT4] = "ext4, block device",
	[GPU] = "stand-in GPU, own queue pair",
	[CPU] = "CPU, the GPU's counterpart",
};

/**
 * struct show - the whole run
 * @busy: seconds in which an initiator completed something
 * @ran: seconds in which all three ran
 * @ext4_before: the block layer's count when the run began
 */
struct show {
	struct demo demo;
	struct tally tallies[INITIATORS];
	struct gpu *gpu;
	unsigned int busy[INITIATORS];
	unsigned int ran;
	struct block_count ext4_before;
};

void complain(bool explain, const char *format, ...)
{
	struct nvmepeer_explanation explanation;
	va_list arguments;

	flockfile(stdout);
	fputs("demo: ", stdout);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	if (explain && nvmepeer_explain(&explanation))
		printf(": %s; %s; %s", explanation.what, explanation.limit,
		       explanation.help);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
}

/* ---- The disk ----------------------------------------------------------- */

static bool read_number(const char *device, const char *attribute, uint64_t *value)
{
	char path[160];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), "/sys/class/block/%s/%s", device, attribute);
	file = fopen(path, "re");
	if (!file) {
		complain(false, "no partition %s", device);
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
		complain(true, "namespace");
		return false;
	}
	demo->block_size = nvmepeer_ns_info(ns)->block_size;
	nvmepeer_ns_close(ns);
	return find_region(demo, demo->fio_partition, &demo->fio_region) &&
	       find_region(demo, demo->gpu_partition, &demo->gpu_region);
}

/* ---- All at once -------------------------------------------------------- */

static void *run_fio(void *argument)
{
	struct show *show = argument;

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

/* The file system's I/Os are the block layer's, so they are read, not counted. */
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

static void print_progress(struct show *show, unsigned int second)
{
	const struct tally *tallies = show->tallies;

	printf("[%3u s] fio %7" PRIu64 " I/Os %6.1f MB | ext4 %6" PRIu64 " I/Os %6.1f MB, %6.1f MB verified | GPU %6" PRIu64 " I/Os %6.1f MB, %6.1f MB verified\n",
	       second, tallies[FIO].ios, megabytes(tallies[FIO].bytes),
	       tallies[EXT4].ios, megabytes(tallies[EXT4].bytes),
	       megabytes(tallies[EXT4].verified), tallies[GPU].ios,
	       megabytes(tallies[GPU].bytes),
	       megabytes(tallies[GPU].verified + tallies[CPU].verified));
	fflush(stdout);
}

static void note_progress(struct show *show, uint64_t before[THREADS])
{
	int i;

	for (i = 0; i < THREADS; i++) {
		show->busy[i] += show->tallies[i].ios > before[i];
		before[i] = show->tallies[i].ios;
	}
}

static bool all_run(const struct show *show)
{
	return !show->tallies[FIO].ended && !show->tallies[EXT4].ended &&
	       !show->tallies[GPU].ended;
}

static bool all_ended(const struct show *show)
{
	return show->tallies[FIO].ended && show->tallies[EXT4].ended &&
	       show->tallies[GPU].ended;
}

static void watch(struct show *show)
{
	uint64_t before[THREADS] = { 0 };
	unsigned int second;

	for (second = 1; second <= show->demo.seconds; second++) {
		sleep(1);
		sample_filesystem(show);
		note_progress(show, before);
		print_progress(show, second);
		show->ran += all_run(show);
	}
	show->demo.stop = true;
	for (second = 0; !all_ended(show) && second < LINGER_SECONDS; second++)
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
			complain(false, "cannot start a thread");
			return false;
		}
	watch(show);
	if (!all_ended(show)) {
		complain(false, "an initiator hangs");
		return false;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return true;
}

/* ---- Rates, alone on the controller ------------------------------------- */

/**
 * struct rates - GPU and CPU, one after the other, at the same depth
 * @controller_reads: read commands that the controller counted in the GPU's turn
 */
struct rates {
	struct rate gpu;
	struct rate cpu;
	uint64_t controller_reads;
};

static bool measure(struct show *show, struct rates *rates)
{
	const struct demo *demo = &show->demo;
	struct cpu *cpu = cpu_open(demo);
	uint64_t before, after;
	bool good;

	if (!cpu)
		return false;
	good = cpu_smart_reads(cpu, &before) &&
	       gpu_rate(show->gpu, demo, RATE_DEPTH, RATE_SECONDS, &rates->gpu) &&
	       cpu_smart_reads(cpu, &after) &&
	       cpu_rate(cpu, &demo->gpu_region, RATE_DEPTH, RATE_SECONDS, &rates->cpu);
	rates->controller_reads = after - before;
	cpu_close(cpu);
	return good;
}

static double per_second(const struct rate *rate)
{
	return rate->nanoseconds ? (double)rate->commands * 1e9 / (double)rate->nanoseconds : 0;
}

static bool show_rates(const struct rates *rates)
{
	printf("\nRandom 4 KiB reads, %d in flight, alone on the controller:\n", RATE_DEPTH);
	printf("  stand-in GPU      %8.0f I/O/s\n", per_second(&rates->gpu));
	printf("  CPU, io_uring     %8.0f I/O/s\n", per_second(&rates->cpu));
	if (!rates->gpu.commands || !rates->cpu.commands)
		return false;
	printf("  GPU to CPU        %8.2f\n", per_second(&rates->gpu) / per_second(&rates->cpu));
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
	bool good = true;

	printf("\nNo CPU touched the GPU's I/O:\n");
	good &= claim(proof->rings_in_gpu, "both rings lie in GPU memory");
	good &= claim(proof->data_in_gpu, "all data lies in GPU memory");
	good &= claim(proof->gpu_doorbells && proof->gpu_doorbells == proof->bus_doorbells &&
		      !proof->lost_doorbells,
		      "doorbell writes by the GPU: %" PRIu64 ", seen on the bus: %" PRIu64 ", lost: %" PRIu64,
		      proof->gpu_doorbells, proof->bus_doorbells, proof->lost_doorbells);
	good &= claim(!proof->cpu_doorbells, "doorbell writes by the CPU on that queue: %" PRIu64,
		      proof->cpu_doorbells);
	good &= claim(!proof->cpu_doorbell_maps, "mappings of its doorbell page for the CPU: %" PRIu64,
		      proof->cpu_doorbell_maps);
	good &= claim(!proof->cpu_memory_maps,
		      "bytes copied by the CPU: 0, as GPU memory was mapped for the CPU %" PRIu64 " times",
		      proof->cpu_memory_maps);
	good &= claim(rates->controller_reads == rates->gpu.commands,
		      "read commands while only the GPU ran: %" PRIu64 " by the GPU, %" PRIu64 " counted by the controller",
		      rates->gpu.commands, rates->controller_reads);
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

/* Everybody did I/O, checked it, without an error, during most of the time. */
static bool judge(const struct show *show)
{
	bool good = show->ran + 1 >= show->demo.seconds;
	const struct tally *tally;
	int i;

	if (!good)
		complain(false, "all three ran together in %u of %u seconds only",
			 show->ran, show->demo.seconds);
	for (i = 0; i < INITIATORS; i++) {
		tally = &show->tallies[i];
		if (!tally->ios || !tally->verified || tally->errors) {
			complain(false, "%s: errors, or nothing done", names[i]);
			good = false;
		}
		if (i < THREADS && show->busy[i] * 2 < show->demo.seconds) {
			complain(false, "%s: made progress in %u of %u seconds only",
				 names[i], show->busy[i], show->demo.seconds);
			good = false;
		}
	}
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
		return false;	/* threads may be left that use everything */
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

	if (argc == 8)
		show.demo.seconds = (unsigned int)strtoul(argv[7], NULL, 10);
	if (!show.demo.seconds) {
		fprintf(stderr, "usage: demo CONTROLLER NAMESPACE FIO-PART EXT4-PART GPU-PART TREE SECONDS\n");
		return 2;
	}
	show.demo.controller = argv[1];
	show.demo.namespace_node = argv[2];
	show.demo.fio_partition = argv[3];
	show.demo.ext4_partition = argv[4];
	show.demo.gpu_partition = argv[5];
	show.demo.tree = argv[6];
	good = perform(&show);
	printf("\ndemo: %s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
