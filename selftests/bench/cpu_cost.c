// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an I/O costs the processor, in a guest with one of them whose clock counts
 * instructions (selftests/run --icount).
 *
 * usage: cpu_cost [--least TURNS] [--into gpu|host CONTROLLER] GENERIC-NODE BLOCK-NODE CASE...
 *
 * Prints "CASE NANOSECONDS INTERRUPTS", both for one I/O.  A batch is submitted with one
 * system call and taken with another.  In between the processor is kept busy, turn by
 * turn of a loop, until the device is done; what that took is known to the instruction
 * and taken off.  So nothing is left of how fast the machine below is: it decides neither
 * how many I/Os one interrupt announces nor who waits for whom.  Where something else
 * came in between, as the timer's interrupt, a batch costs more and never less: the
 * lower quartile of many leaves it out.  Where others keep the controller busy, a batch takes
 * longer, and more falls into that time: --least has all wait as long.
 *
 * With --into the data of passthrough cases lies in a buffer that was imported with that
 * controller, of the stand-in GPU or of the host, and goes by NVME_PEER_URING_CMD_IO.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <nvmepeer_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softgpu_drv.h"

#define BLOCK		512U
#define MOST_BATCH	32U
#define MOST_BYTES	(MOST_BATCH * 4096U)	/* of a batch */

#define PAGE		4096U
#define HUGE_PAGE	(1U << 21)
#define SPAN		(1ULL << 30)	/* of the disk that is used */
#define WARM_BATCHES	16U
#define BATCHES		200U

/* Of the loop that waits for the device: one turn, and how many at least and at most. */
#define TURN_STEPS	500U		/* a microsecond */
#define LEAST_TURNS	200U
#define MOST_TURNS	100000U
#define LATE_TURNS	50U		/* the last of a batch is done when the first is, or soon */

/**
 * struct kind - a way to do I/O
 * @name: as the command line says it
 * @block: on the block device; else by passthrough
 * @fixed: from a registered buffer
 * @write: a write rather than a read
 * @poll: completions are polled for
 * @whole: the buffer is one piece of memory; else each page lies elsewhere
 * @bytes: of one I/O
 * @batch: I/Os that are submitted together
 */
struct kind {
	const char *name;
	bool block;
	bool fixed;
	bool write;
	bool poll;
	bool whole;
	unsigned int bytes;
	unsigned int batch;
};

static const struct kind kinds[] = {
	{ .name = "pass-1", .bytes = 4096, .batch = 1 },
	{ .name = "pass-32", .bytes = 4096, .batch = 32 },
	{ .name = "pass-fixed-1", .fixed = true, .bytes = 4096, .batch = 1 },
	{ .name = "pass-fixed-32", .fixed = true, .bytes = 4096, .batch = 32 },
	{ .name = "pass-fixed-128k", .fixed = true, .bytes = 131072, .batch = 1 },
	{ .name = "pass-fixed-128k-whole", .fixed = true, .whole = true, .bytes = 131072, .batch = 1 },
	{ .name = "pass-128k", .bytes = 131072, .batch = 1 },
	{ .name = "pass-128k-whole", .whole = true, .bytes = 131072, .batch = 1 },
	{ .name = "read-1", .block = true, .bytes = 4096, .batch = 1 },
	{ .name = "read-32", .block = true, .bytes = 4096, .batch = 32 },
	{ .name = "write-32", .block = true, .write = true, .bytes = 4096, .batch = 32 },
	{ .name = "read-128k", .block = true, .bytes = 131072, .batch = 1 },
	{ .name = "poll-pass-32", .poll = true, .fixed = true, .bytes = 4096, .batch = 32 },
	{ .name = "poll-read-32", .block = true, .poll = true, .bytes = 4096, .batch = 32 },
};

/**
 * struct place - where I/O goes, by the command line
 * @generic: node of the namespace
 * @block: the same as a disk
 * @memory: "gpu", "host", or NULL: data lies in memory of this process
 * @controller: node that the first two are imported with
 * @least: turns to wait for a batch, as @LEAST_TURNS
 */
struct place {
	const char *generic;
	const char *block;
	const char *memory;
	const char *controller;
	unsigned int least;
};

/**
 * struct job - a kind of I/O under way
 * @kind: const
 * @fd: const: the node
 * @lent: controller that the data's buffer was imported with, or NULL
 * @host: its memory, where it is the host's
 * @handle: of it
 * @ring: of this job alone
 * @memory: const: mapping of two huge pages
 * @buffer: in it: @kind->batch times @kind->bytes
 * @random: state of the generator of addresses
 * @least: const: as the command line says
 */
struct job {
	const struct kind *kind;
	int fd;
	struct nvmepeer *lent;
	struct nvmepeer_hostmem *host;
	uint32_t handle;
	struct io_uring ring;
	char *memory;
	char *buffer;
	uint64_t random;
	unsigned int least;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "cpu_cost: %s: %s\n", what, strerror(error));
	exit(1);
}

/* --- what it cost -------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Interrupts of all NVMe controllers so far, on the only processor. */
static uint64_t interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	uint64_t sum = 0;
	char line[512];

	if (!file)
		die("/proc/interrupts", errno);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "nvme"))
			sum += strtoull(strchr(line, ':') + 1, NULL, 10);
	fclose(file);
	return sum;
}

/* --- I/O ----------------------------------------------------------------- */

static uint64_t next_address(struct job *job)
{
	job->random = job->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (job->random >> 20) % (SPAN / job->kind->bytes) * job->kind->bytes;
}

static void prepare_block(const struct job *job, struct io_uring_sqe *sqe, char *buffer,
			  uint64_t address)
{
	if (job->kind->write)
		io_uring_prep_write(sqe, job->fd, buffer, job->kind->bytes, address);
	else
		io_uring_prep_read(sqe, job->fd, buffer, job->kind->bytes, address);
}

static void prepare_pass(const struct job *job, struct io_uring_sqe *sqe, char *buffer,
			 uint64_t address)
{
	struct nvme_uring_cmd cmd = {
		.opcode = job->kind->write ? 1 : 2,
		.nsid = 1,
		.addr = (uintptr_t)buffer,
		.data_len = job->kind->bytes,
		.cdw10 = address / BLOCK,
		.cdw12 = job->kind->bytes / BLOCK - 1,
	};

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = job->fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->uring_cmd_flags = job->kind->fixed ? IORING_URING_CMD_FIXED : 0;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
}

/* Filled in like the other, so that what is compared is the kernel's part. */
static void prepare_into(const struct job *job, struct io_uring_sqe *sqe, char *buffer,
			 uint64_t address)
{
	struct nvme_peer_uring_io io = {
		.opcode = job->kind->write ? NVME_PEER_IO_WRITE : NVME_PEER_IO_READ,
		.nsid = 1,
		.handle = job->handle,
		.offset = buffer - job->buffer,
		.lba = address / BLOCK,
		.blocks = job->kind->bytes / BLOCK,
	};

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = job->fd;
	sqe->cmd_op = NVME_PEER_URING_CMD_IO;
	memcpy(sqe->cmd, &io, sizeof(io));
}

static void submit_batch(struct job *job)
{
	unsigned int i;
	int ret;

	for (i = 0; i < job->kind->batch; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&job->ring);
		char *buffer = job->buffer + (size_t)i * job->kind->bytes;

		if (job->kind->block)
			prepare_block(job, sqe, buffer, next_address(job));
		else if (job->lent)
			prepare_into(job, sqe, buffer, next_address(job));
		else
			prepare_pass(job, sqe, buffer, next_address(job));
	}
	ret = io_uring_submit(&job->ring);
	if (ret != (int)job->kind->batch)
		die("io_uring_submit", ret < 0 ? -ret : EAGAIN);
}

static void take_batch(struct job *job)
{
	int expected = job->kind->block ? (int)job->kind->bytes : 0;
	struct io_uring_cqe *cqe;
	unsigned int i;
	int ret;

	ret = io_uring_submit_and_wait(&job->ring, job->kind->batch);
	if (ret < 0)
		die("io_uring_submit_and_wait", -ret);
	for (i = 0; i < job->kind->batch; i++) {
		ret = io_uring_wait_cqe(&job->ring, &cqe);
		if (ret)
			die("io_uring_wait_cqe", -ret);
		if (cqe->res != expected)
			die("an I/O failed", cqe->res < 0 ? -cqe->res : EIO);
		io_uring_cqe_seen(&job->ring, cqe);
	}
}

/* One turn of waiting; whatever happens meanwhile, it is as many instructions. */
static void __attribute__((noinline)) turn(void)
{
	unsigned int i;

	for (i = 0; i < TURN_STEPS; i++)
		__asm__ volatile("");
}

/* Has a completion arrived that the kernel keeps for the next system call? */
static bool arrived(const struct job *job)
{
	return IO_URING_READ_ONCE(*job->ring.sq.kflags) & IORING_SQ_TASKRUN;
}

/*
 * Turns until the batch is done, or @most if nothing tells.  One code for all callers: a turn
 * must be as long where its length is measured.
 */
static unsigned int __attribute__((noinline)) wait_turns(const struct job *job, unsigned int most)
{
	unsigned int turns = 0;

	/* No caller has a loop of its own, with what it says put in. */
	__asm__ volatile("" : "+r"(most));

	do
		turn();
	while (++turns < job->least || (turns < most && !arrived(job)));
	for (most = turns + LATE_TURNS; turns < most; turns++)
		turn();
	return turns;
}

/* Nanoseconds of a turn: the least of many, as nothing makes it less. */
static double turn_ns(const struct job *job)
{
	double least = 0;
	unsigned int i;

	for (i = 0; i < BATCHES; i++) {
		uint64_t before = now_ns();
		unsigned int turns = wait_turns(job, job->least);
		double figure = (double)(now_ns() - before) / turns;

		if (!i || figure < least)
			least = figure;
	}
	return least;
}

/* Nanoseconds of a batch, without the wait. */
static double run_batch(struct job *job, double turn_length)
{
	/* A poll is told of nothing before it looks. */
	unsigned int turns, most = job->kind->poll ? 2 * job->least : MOST_TURNS;
	uint64_t before = now_ns();

	submit_batch(job);
	turns = wait_turns(job, most);
	take_batch(job);
	return now_ns() - before - turns * turn_length;
}

/*
 * How many pieces an I/O has is no accident: the kernel gives pages out in the order of
 * their use, and here neighbours are not used one after the other.
 */
static void make_buffer(struct job *job)
{
	unsigned int i;

	job->memory = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (job->memory == MAP_FAILED)
		die("mmap", errno);
	if (madvise(job->memory, 2 * HUGE_PAGE,
		    job->kind->whole ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		die("madvise", errno);
	job->buffer = job->memory + HUGE_PAGE - (uintptr_t)job->memory % HUGE_PAGE;
	for (i = 0; i < MOST_BYTES / PAGE; i++)
		job->buffer[i * 7 % (MOST_BYTES / PAGE) * PAGE] = 1;
}

/* Memory of the stand-in GPU, as a dma-buf. */
static int gpu_memory(void)
{
	struct softgpu_alloc alloc = { .size = MOST_BYTES };
	int gpu = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);

	if (gpu < 0 || ioctl(gpu, SOFTGPU_ALLOC, &alloc))
		die("/dev/softgpu0", errno);
	close(gpu);
	return alloc.fd;
}

static void lend(struct job *job, const struct place *place)
{
	uint32_t flags = strcmp(place->memory, "gpu") ? 0 : NVME_PEER_BUF_REQUIRE_DEVICE;
	struct nvme_peer_buf_import buffer;
	int dmabuf, ret;

	ret = nvmepeer_open(place->controller, &job->lent);
	if (!ret && !flags)
		ret = nvmepeer_hostmem_alloc(MOST_BYTES, &job->host);
	if (ret)
		die(place->controller, -ret);
	dmabuf = flags ? gpu_memory() : nvmepeer_hostmem_fd(job->host);
	ret = nvmepeer_buf_import(job->lent, dmabuf, flags, &buffer, sizeof(buffer));
	if (ret)
		die("import", -ret);
	if (flags)
		close(dmabuf);
	job->handle = buffer.handle;
	job->fd = nvmepeer_fd(job->lent);
}

static void open_node(struct job *job, const struct place *place)
{
	const char *node = job->kind->block ? place->block : place->generic;

	if (place->memory && !job->kind->block) {
		lend(job, place);
		return;
	}
	job->fd = open(node, O_RDWR | (job->kind->block ? O_DIRECT : 0));
	if (job->fd < 0)
		die(node, errno);
}

static void open_job(struct job *job, const struct kind *kind, const struct place *place)
{
	struct iovec whole = { .iov_len = MOST_BYTES };
	unsigned int flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			     IORING_SETUP_TASKRUN_FLAG;
	int ret;

	*job = (struct job){ .kind = kind, .random = 1, .least = place->least };
	open_node(job, place);
	if (!kind->block)
		flags |= IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	if (kind->poll)
		flags |= IORING_SETUP_IOPOLL;
	ret = io_uring_queue_init(MOST_BATCH, &job->ring, flags);
	if (ret)
		die("io_uring_queue_init", -ret);
	make_buffer(job);
	whole.iov_base = job->buffer;
	ret = kind->fixed && !job->lent ? io_uring_register_buffers(&job->ring, &whole, 1) : 0;
	if (ret)
		die("io_uring_register_buffers", -ret);
}

static void close_job(struct job *job)
{
	io_uring_queue_exit(&job->ring);
	munmap(job->memory, 2 * HUGE_PAGE);
	nvmepeer_hostmem_free(job->host);
	if (job->lent)
		nvmepeer_close(job->lent);
	else
		close(job->fd);
}

/* --- cases --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct kind *kind, const struct place *place)
{
	double figures[BATCHES], turn_length;
	uint64_t interrupts_before;
	struct job job;
	unsigned int i;

	open_job(&job, kind, place);
	turn_length = turn_ns(&job);
	for (i = 0; i < WARM_BATCHES; i++)
		run_batch(&job, turn_length);
	interrupts_before = interrupts();
	for (i = 0; i < BATCHES; i++)
		figures[i] = run_batch(&job, turn_length);
	qsort(figures, BATCHES, sizeof(*figures), compare);
	printf("%s %.1f %.3f\n", kind->name, figures[BATCHES / 4] / kind->batch,
	       (double)(interrupts() - interrupts_before) / (BATCHES * kind->batch));
	fflush(stdout);
	close_job(&job);
}

static const struct kind *find_kind(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	die(name, EINVAL);
	return NULL;
}

int main(int argc, char **argv)
{
	struct place place = { .least = LEAST_TURNS };

	argv++;
	if (argc > 2 && !strcmp(argv[0], "--least")) {
		place.least = strtoul(argv[1], NULL, 10);
		argv += 2;
		argc -= 2;
	}
	if (argc > 3 && !strcmp(argv[0], "--into")) {
		place.memory = argv[1];
		place.controller = argv[2];
		argv += 3;
		argc -= 3;
	}
	if (argc < 4) {
		fprintf(stderr, "usage: cpu_cost [--least TURNS] [--into gpu|host CONTROLLER] GENERIC-NODE BLOCK-NODE CASE...\n");
		return 2;
	}
	place.generic = *argv++;
	place.block = *argv++;
	while (*argv)
		measure(find_kind(*argv++), &place);
	return 0;
}
