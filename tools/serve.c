// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer serve: a program of the device library on a served queue pair, over any block
 * device or file: verify its data, or measure what serving costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <nvmepeer_serve.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "nvme-peer.h"

enum {
	DEFAULT_DEPTH = 32,
	MOST_DEPTH = 1024,
	DEFAULT_SIZE = 4096,
	DEFAULT_SECONDS = 5,
	TIMEOUT_SECONDS = 60,
	TURNS = 5,
	PATH = 4096,
};

#define SECOND 1000000000ull

/* With --write this many bytes at most, from the start. */
#define MOST_WRITTEN (16ull << 20)

/**
 * struct job - a measurement or a check
 * @serve: queue pair
 * @ns: its namespace
 * @queue: as the device library uses it
 * @buffer: data memory, a slot of @size bytes for each command
 * @data: the same in this process
 * @expected: memory for one slot
 * @state: state of @queue
 * @thread: serves
 * @serving: @thread runs
 * @fd: the descriptor
 * @size: bytes of a command
 * @depth: commands in flight
 * @places: places of @size bytes that commands use
 * @writes: write, too
 * @random: state of the generator of places
 * @done: commands so far
 * @bad: of these, with wrong data
 */
struct job {
	struct nvmepeer_serve *serve;
	struct nvmepeer_ns_info ns;
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer buffer;
	uint8_t *data;
	uint8_t *expected;
	void *state;
	pthread_t thread;
	bool serving;
	int fd;
	uint32_t size;
	uint32_t depth;
	uint64_t places;
	bool writes;
	uint64_t random;
	uint64_t done;
	uint64_t bad;
};

/** struct slot - a command in flight */
struct slot {
	struct nvmepeer_token token;
	uint64_t place;
	uint32_t opcode;
};

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

static int failed(const char *what, int error)
{
	fprintf(stderr, "nvme-peer: %s: %s\n", what, strerror(error < 0 ? -error : error));
	return EXIT_REFUSED;
}

/* ---- The job --------------------------------------------------------------- */

static void *serve(void *argument)
{
	struct job *job = argument;

	nvmepeer_serve_run(job->serve);
	return NULL;
}

/* "nvmep0n1" is a node; a file has a slash.  Not cached, where that is possible. */
static int open_path(const char *name, bool writes)
{
	int flags = (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC, fd;
	char path[PATH];

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/dev/", name);
	fd = open(path, flags | O_DIRECT);
	return fd < 0 && errno == EINVAL ? open(path, flags) : fd;
}

static uint32_t ring_entries(uint32_t depth)
{
	uint32_t entries = 2;

	while (entries <= depth)
		entries *= 2;
	return entries;
}

static int start_queue(struct report *report, struct job *job)
{
	struct nvmepeer_geometry geometry = { .timeout_ns = TIMEOUT_SECONDS * SECOND };

	geometry.sq_entries = ring_entries(job->depth);
	job->state = aligned_alloc(128, (nvmepeer_state_bytes(&geometry) + 127) / 128 * 128);
	if (!job->state)
		return failed("queue pair", ENOMEM);
	geometry.state = (uintptr_t)job->state;
	if (nvmepeer_serve_geometry(job->serve, &job->ns, NVMEPEER_VIEW_CPU, &geometry,
				    sizeof(geometry)))
		return refused(report);
	nvmepeer_queue_init(&job->queue, &geometry);
	if (pthread_create(&job->thread, NULL, serve, job))
		return failed("thread", EAGAIN);
	job->serving = true;
	return 0;
}

/* Places are whole commands; those that are written, near the start. */
static int set_places(struct job *job)
{
	uint64_t bytes = job->ns.blocks * job->ns.block_size;

	if (job->writes && bytes > MOST_WRITTEN)
		bytes = MOST_WRITTEN;
	job->places = bytes / job->size;
	if (job->places && job->size % job->ns.block_size == 0)
		return 0;
	fprintf(stderr, "nvme-peer: %u bytes of a command; blocks have %u bytes, and there are %llu\n",
		job->size, job->ns.block_size, (unsigned long long)job->ns.blocks);
	return EXIT_REFUSED;
}

static int open_job(struct report *report, const char *path, struct job *job)
{
	struct nvmepeer_serve_options options = {
		.size = sizeof(options),
		.entries = ring_entries(job->depth),
		.depth = job->depth,
	};
	int status;

	job->fd = open_path(path, job->writes);
	if (job->fd < 0)
		return failed(path, errno);
	job->data = mmap(NULL, (size_t)(job->depth + 1) * job->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (job->data == MAP_FAILED) {
		job->data = NULL;
		return failed("data memory", errno);
	}
	job->expected = job->data + (size_t)job->depth * job->size;
	if (nvmepeer_serve_create(&options, &job->serve) ||
	    nvmepeer_serve_add_fd(job->serve, job->fd, 0, &job->ns, sizeof(job->ns)) ||
	    nvmepeer_serve_add_buffer(job->serve, job->data, (uint64_t)job->depth * job->size,
				      &job->buffer))
		return refused(report);
	status = set_places(job);
	return status ? status : start_queue(report, job);
}

static void close_job(struct job *job)
{
	if (job->serving) {
		nvmepeer_serve_stop(job->serve);
		pthread_join(job->thread, NULL);
	}
	nvmepeer_serve_destroy(job->serve);
	if (job->data)
		munmap(job->data, (size_t)(job->depth + 1) * job->size);
	if (job->fd >= 0)
		close(job->fd);
	free(job->state);
}

/* ---- Commands --------------------------------------------------------------- */

static uint64_t next_place(struct job *job)
{
	job->random = job->random * 6364136223846793005u + 1442695040888963407u;
	return (job->random >> 16) % job->places;
}

/* What a place holds that this program has written: words with their place. */
static void describe(const struct job *job, uint64_t place, uint8_t *data)
{
	for (uint32_t i = 0; i < job->size; i += sizeof(place)) {
		uint64_t word = (place * job->size + i) * 0x9e3779b97f4a7c15u;

		memcpy(data + i, &word, sizeof(word));
	}
}

static int submit(struct job *job, struct slot *slot, uint32_t number)
{
	uint32_t blocks = job->size / job->ns.block_size;
	struct nvmepeer_command command = {
		.opcode = slot->opcode,
		.blocks = blocks,
		.lba = slot->place * blocks,
		.buffer = &job->buffer,
		.offset = (uint64_t)number * job->size,
	};

	if (slot->opcode == NVMEPEER_OP_WRITE)
		describe(job, slot->place, job->data + command.offset);
	return nvmepeer_submit(&job->queue, &command, &slot->token, job->queue.timeout_ns);
}

/* Compare data with what was written, or with what the descriptor itself reads. */
static int verify(struct job *job, const struct slot *slot, const uint8_t *data)
{
	off_t offset = (off_t)(slot->place * job->size);

	if (slot->opcode != NVMEPEER_OP_READ)
		return 0;
	if (job->writes)
		describe(job, slot->place, job->expected);
	else if (pread(job->fd, job->expected, job->size, offset) != (ssize_t)job->size)
		return failed("pread", errno);
	job->bad += memcmp(data, job->expected, job->size) != 0;
	return 0;
}

static int command_failed(int status)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain_result(NVMEPEER_RESULT_DEVICE, status, &why, sizeof(why));
	fprintf(stderr, "nvme-peer: a command failed: %s\n", why.limit);
	return EXIT_REFUSED;
}

/** struct pass - commands at random places, or once at each place in order */
struct pass {
	uint64_t until;		/* time, or 0: each place once */
	uint32_t depth;
	bool fills;
	bool verifies;
};

static bool is_over(const struct job *job, const struct pass *pass, uint64_t begun)
{
	return pass->fills ? begun == job->places : now_ns() >= pass->until;
}

/* The device program: keeps commands in flight, waits for them in order. */
static int run_pass(struct job *job, const struct pass *pass)
{
	struct slot slots[MOST_DEPTH];
	uint64_t begun = 0, ended = 0;
	int status = 0;

	while (!status && (ended < begun || !is_over(job, pass, begun))) {
		while (!status && begun - ended < pass->depth && !is_over(job, pass, begun)) {
			struct slot *slot = &slots[begun % pass->depth];

			slot->place = pass->fills ? begun : next_place(job);
			slot->opcode = pass->fills || (job->writes && job->random >> 63) ?
				       NVMEPEER_OP_WRITE : NVMEPEER_OP_READ;
			status = submit(job, slot, (uint32_t)(begun % pass->depth));
			begun += !status;
		}
		if (!status && ended < begun) {
			struct slot *slot = &slots[ended % pass->depth];

			status = nvmepeer_wait(&job->queue, slot->token, NULL, job->queue.timeout_ns);
			if (!status && pass->verifies &&
			    verify(job, slot, job->data + (ended % pass->depth) * job->size))
				return EXIT_REFUSED;
			ended++;
		}
	}
	job->done += ended;
	return status ? command_failed(status) : 0;
}

/* ---- Subcommands --------------------------------------------------------------- */

static int check(struct report *report, const struct options *options, struct job *job)
{
	struct pass fill = { .depth = job->depth, .fills = true };
	struct pass pass = { .depth = job->depth, .verifies = true };
	int status = job->writes ? run_pass(job, &fill) : 0;

	pass.until = now_ns() + (options->seconds ? options->seconds : DEFAULT_SECONDS) * SECOND;
	if (!status)
		status = run_pass(job, &pass);
	if (!status && job->writes) {
		status = nvmepeer_flush(&job->queue);
		status = status ? command_failed(status) : 0;
	}
	report_number(report, "block_size", job->ns.block_size, NULL);
	report_number(report, "blocks", job->ns.blocks, NULL);
	report_count(report, "commands", job->done);
	report_count(report, "wrong", job->bad);
	return job->bad ? EXIT_REFUSED : status;
}

/* The same reads by io_uring, without a queue pair; nanoseconds of each. */
static int measure_plain(struct job *job, uint32_t depth, uint64_t duration, double *cost)
{
	uint64_t begun = 0, ended = 0, start = now_ns(), until = start + duration;
	struct iovec pieces[MOST_DEPTH];
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int error = io_uring_queue_init(depth, &ring, 0);

	if (error)
		return failed("io_uring", error);
	while (!error && (now_ns() < until || ended < begun)) {
		if (begun - ended < depth && now_ns() < until) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
			struct iovec *piece = &pieces[begun % depth];

			*piece = (struct iovec){ job->data + begun % depth * job->size, job->size };
			io_uring_prep_readv(sqe, job->fd, piece, 1, next_place(job) * job->size);
			begun++;
			continue;
		}
		error = io_uring_submit_and_wait(&ring, 1);
		error = error < 0 ? error : 0;
		while (!error && !io_uring_peek_cqe(&ring, &cqe)) {
			error = cqe->res < 0 ? cqe->res : 0;
			io_uring_cqe_seen(&ring, cqe);
			ended++;
		}
	}
	*cost = (double)(now_ns() - start) / (double)(ended ? ended : 1);
	io_uring_queue_exit(&ring);
	return error ? failed("io_uring", error) : 0;
}

static int measure_served(struct job *job, uint32_t depth, uint64_t duration, double *cost)
{
	uint64_t start = now_ns();
	struct pass pass = { .until = start + duration, .depth = depth };
	int status;

	job->done = 0;
	status = run_pass(job, &pass);
	*cost = (double)(now_ns() - start) / (double)(job->done ? job->done : 1);
	return status;
}

/* In turns, the best of each: other load of the machine disturbs both alike. */
static int measure(struct job *job, uint32_t depth, uint64_t duration, double *plain,
		   double *served)
{
	double turn;

	*plain = *served = 1e18;
	for (int i = 0; i < TURNS; i++) {
		if (measure_plain(job, depth, duration, &turn))
			return EXIT_REFUSED;
		*plain = turn < *plain ? turn : *plain;
		if (measure_served(job, depth, duration, &turn))
			return EXIT_REFUSED;
		*served = turn < *served ? turn : *served;
	}
	return 0;
}

static int bench(struct report *report, const struct options *options, struct job *job)
{
	uint64_t seconds = options->seconds ? options->seconds : DEFAULT_SECONDS;
	const uint32_t depths[] = { 1, job->depth };

	report_list(report, "depths");
	for (int i = 0; i < 2; i++) {
		double served, plain;

		if (measure(job, depths[i], seconds * SECOND / (4 * TURNS), &plain, &served))
			return EXIT_REFUSED;
		report_object(report, NULL);
		report_number(report, "depth", depths[i], NULL);
		report_duration(report, "served_ns", "served", (uint64_t)served);
		report_duration(report, "io_uring_ns", "io_uring", (uint64_t)plain);
		report_real(report, "ratio", served / plain);
		report_object_end(report);
	}
	report_list_end(report);
	return 0;
}

int command_serve(struct report *report, const struct options *options, int argc, char **argv)
{
	bool checks = argc && !strcmp(argv[0], "check");
	struct job job = {
		.fd = -1,
		.size = options->given & OPTION_SIZE ? options->size : DEFAULT_SIZE,
		.depth = options->given & OPTION_ENTRIES ? options->entries : DEFAULT_DEPTH,
		.writes = options->given & OPTION_WRITE,
		.random = 1,
	};
	int status;

	if (!checks && (!argc || strcmp(argv[0], "bench") != 0))
		return usage_error("serve takes check or bench", argc ? argv[0] : NULL);
	if (argc != 2)
		return usage_error("serve takes a block device or a file", NULL);
	if (!job.size || job.size > 1 << 20 || !job.depth || job.depth > MOST_DEPTH)
		return usage_error("serve takes --size up to 1048576 and --entries up to 1024", NULL);
	if (job.writes && (!checks || !(options->given & OPTION_FORCE)))
		return usage_error("serve check --write overwrites the path and needs --force", NULL);
	status = open_job(report, argv[1], &job);
	if (!status)
		status = checks ? check(report, options, &job) : bench(report, options, &job);
	close_job(&job);
	return status;
}
