// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU cost of an I/O, in a guest whose clock counts instructions (selftests/run --icount).
 *
 * usage: cpu_cost [--threads THREADS] [--least TURNS] [--into gpu|host CONTROLLER] GENERIC-NODE BLOCK-NODE CASE...
 *
 * Prints "CASE NANOSECONDS INTERRUPTS", both for one I/O. A batch is submitted by one system call
 * and reaped by another. Between both the processor runs turns of a loop until the device is
 * done; the cost of the loop is known exactly and subtracted. So the result does not depend on the
 * speed of the host: neither on the number of I/Os for each interrupt nor on waiting. Other
 * activity, such as the timer interrupt, only adds to the cost of a batch: the result is the lower
 * quartile of many. If peers keep the controller busy, a batch takes longer and has more such
 * activity: --least sets the same minimum wait for all cases.
 *
 * With --threads each of the first THREADS processors has a thread that sleeps until its batch is
 * done, so wake-ups count, too. The clock advances with the instructions of any processor. Instead of
 * idling, which takes an unknown time, a processor runs turns in a thread of policy SCHED_IDLE. What is
 * not turns is the cost of the I/O on all processors, of whatever processor took part, and of the
 * background, which is measured without I/O and subtracted.
 *
 * With --into the data of passthrough cases is in a buffer that was imported by that controller,
 * of the software GPU or of the host, and NVME_PEER_URING_CMD_IO is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <nvmepeer_device/opcodes.h>
#include <nvmepeer_uring.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
#define LENT_BYTES	(MOST_BATCH * 4096U)	/* bytes of a buffer of --into */

#define PAGE		4096U
#define HUGE_PAGE	(1U << 21)
#define SPAN		(1ULL << 30)	/* used part of the disk */
#define WARM_BATCHES	16U
#define BATCHES		200U

/* The waiting loop: steps of a turn, and the minimum and maximum number of turns. */
#define TURN_STEPS	500U		/* a microsecond */
#define LEAST_TURNS	200U
#define MOST_TURNS	100000U
/* Time between the first and the last completion of a batch. */
#define LATE_TURNS	50U
#define LATE_BYTES	2048U		/* that a turn more is for */

/* With --threads. */
#define MOST_THREADS	64U
#define THREAD_IOS	3200U		/* of each thread */

/**
 * struct kind - a kind of I/O
 * @name: name on the command line
 * @block: on the block device; otherwise passthrough
 * @fixed: from a registered buffer
 * @write: writes instead of reads
 * @poll: poll for completions
 * @whole: the buffer is physically contiguous; otherwise no two pages are
 * @sequential: each I/O follows the one before; otherwise at random places
 * @bytes: size of an I/O
 * @batch: I/Os of a batch
 */
struct kind {
	const char *name;
	bool block;
	bool fixed;
	bool write;
	bool poll;
	bool whole;
	bool sequential;
	unsigned int bytes;
	unsigned int batch;
};

#define SEQUENTIAL(writes) .block = true, .sequential = true, .write = (writes)

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
	{ .name = "seq-read-128k-8", SEQUENTIAL(false), .bytes = 131072, .batch = 8 },
	{ .name = "seq-read-128k-8-whole", SEQUENTIAL(false), .whole = true, .bytes = 131072, .batch = 8 },
	{ .name = "seq-read-128k-32", SEQUENTIAL(false), .bytes = 131072, .batch = 32 },
	{ .name = "seq-read-1m-8", SEQUENTIAL(false), .bytes = 1048576, .batch = 8 },
	{ .name = "seq-write-128k-8", SEQUENTIAL(true), .bytes = 131072, .batch = 8 },
	{ .name = "seq-write-1m-8", SEQUENTIAL(true), .bytes = 1048576, .batch = 8 },
	{ .name = "poll-pass-32", .poll = true, .fixed = true, .bytes = 4096, .batch = 32 },
	{ .name = "poll-read-32", .block = true, .poll = true, .bytes = 4096, .batch = 32 },
};

/**
 * struct place - arguments of the command line
 * @generic: generic node of the namespace
 * @block: block device of the namespace
 * @memory: "gpu", "host", or NULL for memory of this process
 * @controller: node for imports
 * @least: minimum turns for a batch, like @LEAST_TURNS
 * @threads: a thread on each of so many processors, or 0
 */
struct place {
	const char *generic;
	const char *block;
	const char *memory;
	const char *controller;
	unsigned int least;
	unsigned int threads;
};

/**
 * struct job - a running measurement
 * @kind: const
 * @fd: const: the node
 * @lent: controller that has imported the buffer, or NULL
 * @host: host memory of the imported buffer
 * @handle: handle of the imported buffer
 * @ring: io_uring of this job
 * @memory: const: mapping of @buffer and a huge page more
 * @buffer: @kind->batch times @kind->bytes in @memory
 * @random: state of the address generator
 * @next: address of the next I/O of a sequential kind
 * @least: const: minimum turns for a batch
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
	uint64_t next;
	unsigned int least;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "cpu_cost: %s: %s\n", what, strerror(error));
	exit(1);
}

/* --- clock and interrupts ------------------------------------------------ */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Sum of the numbers at the start of a text. */
static uint64_t sum_of(char *text)
{
	uint64_t sum = 0;
	char *end;

	for (;; text = end) {
		uint64_t number = strtoull(text, &end, 10);

		if (end == text)
			return sum;
		sum += number;
	}
}

/* Interrupts of all NVMe controllers so far, on all processors. */
static uint64_t interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	uint64_t sum = 0;
	char line[2048];

	if (!file)
		die("/proc/interrupts", errno);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "nvme"))
			sum += sum_of(strchr(line, ':') + 1);
	fclose(file);
	return sum;
}

/* --- I/O ----------------------------------------------------------------- */

static size_t batch_bytes(const struct kind *kind)
{
	return (size_t)kind->batch * kind->bytes;
}

static uint64_t next_address(struct job *job)
{
	if (job->kind->sequential) {
		job->next += job->kind->bytes;
		return (job->next - job->kind->bytes) % SPAN;
	}
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
		.opcode = job->kind->write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ,
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

/* Same cost in user space as for the other kinds, so that the kernel's part is compared. */
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

/* One turn of waiting, always the same number of instructions. */
static void __attribute__((noinline)) turn(void)
{
	unsigned int i;

	for (i = 0; i < TURN_STEPS; i++)
		__asm__ volatile("");
}

/* Returns whether a completion waits for the next system call. */
static bool arrived(const struct job *job)
{
	return IO_URING_READ_ONCE(*job->ring.sq.kflags) & IORING_SQ_TASKRUN;
}

/*
 * Run turns until the batch is done, at most @most. Not inlined: a turn must have the same length
 * for all callers, as one of them measures it.
 */
static unsigned int __attribute__((noinline)) wait_turns(const struct job *job, unsigned int most)
{
	unsigned int turns = 0;

	/* Prevent specialized copies of the loop for a caller. */
	__asm__ volatile("" : "+r"(most));

	do
		turn();
	while (++turns < job->least || (turns < most && !arrived(job)));
	most = turns + LATE_TURNS + batch_bytes(job->kind) / LATE_BYTES;
	for (; turns < most; turns++)
		turn();
	return turns;
}

/* Nanoseconds of a turn: the minimum of many. */
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
	/* With polling, no completion arrives before the system call. */
	unsigned int turns, most = job->kind->poll ? 2 * job->least : MOST_TURNS;
	uint64_t before = now_ns();

	submit_batch(job);
	turns = wait_turns(job, most);
	take_batch(job);
	return now_ns() - before - turns * turn_length;
}

/*
 * Make the number of segments of an I/O deterministic: the kernel allocates pages in the order of
 * their first use, and here neighbours are not used successively.
 */
static void make_buffer(struct job *job)
{
	size_t i, pages = batch_bytes(job->kind) / PAGE;

	job->memory = mmap(NULL, batch_bytes(job->kind) + 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (job->memory == MAP_FAILED)
		die("mmap", errno);
	if (madvise(job->memory, batch_bytes(job->kind) + 2 * HUGE_PAGE,
		    job->kind->whole ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		die("madvise", errno);
	job->buffer = job->memory + HUGE_PAGE - (uintptr_t)job->memory % HUGE_PAGE;
	for (i = 0; i < pages; i++)
		job->buffer[i * 7 % pages * PAGE] = 1;
}

/* Allocate memory of the software GPU as a dma-buf. */
static int gpu_memory(void)
{
	struct softgpu_alloc alloc = { .size = LENT_BYTES };
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
		ret = nvmepeer_hostmem_alloc(LENT_BYTES, &job->host);
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
		if (batch_bytes(job->kind) > LENT_BYTES)
			die(job->kind->name, E2BIG);
		lend(job, place);
		return;
	}
	job->fd = open(node, O_RDWR | (job->kind->block ? O_DIRECT : 0));
	if (job->fd < 0)
		die(node, errno);
}

static void open_job(struct job *job, const struct kind *kind, const struct place *place)
{
	struct iovec whole = { .iov_len = batch_bytes(kind) };
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
	munmap(job->memory, batch_bytes(job->kind) + 2 * HUGE_PAGE);
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

/* --- a thread on each processor ------------------------------------------ */

/**
 * struct crew - a running measurement with --threads
 * @kind: const
 * @place: const
 * @barrier: of all workers
 * @turn_length: const: nanoseconds of a turn of spin()
 * @turns: of each processor's idle thread so far
 * @stop: ends the idle threads
 */
struct crew {
	const struct kind *kind;
	const struct place *place;
	pthread_barrier_t barrier;
	double turn_length;
	_Atomic uint64_t turns[MOST_THREADS];
	atomic_bool stop;
};

/**
 * struct member - a thread
 * @crew: const
 * @cpu: const: its processor
 * @thread: joined by measure_threads()
 */
struct member {
	struct crew *crew;
	unsigned int cpu;
	pthread_t thread;
};

/**
 * struct moment - a point of a measurement
 * @ns: clock
 * @busy: of these, on all processors together, not spent in turns
 * @interrupts: of the controllers
 */
struct moment {
	double ns;
	double busy;
	double interrupts;
};

static void spin(struct crew *crew, unsigned int cpu, uint64_t most) __attribute__((noinline));

/* The same number of instructions for each turn. */
static void spin(struct crew *crew, unsigned int cpu, uint64_t most)
{
	uint64_t turns = 0;

	do {
		turn();
		atomic_store_explicit(&crew->turns[cpu], ++turns, memory_order_relaxed);
	} while (turns < most && !atomic_load_explicit(&crew->stop, memory_order_relaxed));
}

/* The minimum of many, like turn_ns(). */
static double spin_ns(struct crew *crew)
{
	double least = 0;
	unsigned int i;

	for (i = 0; i < BATCHES; i++) {
		uint64_t before = now_ns();
		double figure;

		spin(crew, 0, LEAST_TURNS);
		figure = (double)(now_ns() - before) / LEAST_TURNS;
		if (!i || figure < least)
			least = figure;
	}
	return least;
}

static struct moment moment_now(const struct crew *crew)
{
	struct moment moment = { .interrupts = interrupts() };
	double turns = 0;
	unsigned int i;

	for (i = 0; i < crew->place->threads; i++)
		turns += atomic_load_explicit(&crew->turns[i], memory_order_relaxed);
	moment.ns = now_ns();
	moment.busy = moment.ns - turns * crew->turn_length;
	return moment;
}

static void stay_on(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
}

static void *idle_thread(void *argument)
{
	const struct sched_param parameter = { 0 };
	struct member *self = argument;

	stay_on(self->cpu);
	if (sched_setscheduler(0, SCHED_IDLE, &parameter))
		die("sched_setscheduler", errno);
	spin(self->crew, self->cpu, UINT64_MAX);
	return NULL;
}

static void run_batches(struct job *job, unsigned int ios)
{
	unsigned int i;

	for (i = 0; i < ios; i += job->kind->batch) {
		submit_batch(job);
		take_batch(job);
	}
}

/* All threads wait for the first processor's. */
static struct moment moment_together(struct crew *crew, unsigned int cpu)
{
	struct moment moment = { 0 };

	pthread_barrier_wait(&crew->barrier);
	if (!cpu)
		moment = moment_now(crew);
	pthread_barrier_wait(&crew->barrier);
	return moment;
}

static void report(const struct crew *crew, struct moment start, struct moment end,
		   struct moment quiet)
{
	double background = (quiet.busy - end.busy) / (quiet.ns - end.ns);
	double ios = (double)crew->place->threads * THREAD_IOS;

	printf("%s %.1f %.3f\n", crew->kind->name,
	       (end.busy - start.busy - background * (end.ns - start.ns)) / ios,
	       (end.interrupts - start.interrupts) / ios);
	fflush(stdout);
}

static void *worker_thread(void *argument)
{
	struct member *self = argument;
	struct crew *crew = self->crew;
	struct moment start, end;
	struct job job;

	stay_on(self->cpu);
	open_job(&job, crew->kind, crew->place);
	job.random += self->cpu;
	run_batches(&job, WARM_BATCHES * crew->kind->batch);
	start = moment_together(crew, self->cpu);
	run_batches(&job, THREAD_IOS);
	end = moment_together(crew, self->cpu);
	if (!self->cpu) {
		/* The background for as long. */
		usleep((end.ns - start.ns) / 1000);
		report(crew, start, end, moment_now(crew));
	}
	pthread_barrier_wait(&crew->barrier);
	close_job(&job);
	return NULL;
}

static void start_members(struct member *members, struct crew *crew, void *(*run)(void *))
{
	unsigned int i;
	int ret;

	for (i = 0; i < crew->place->threads; i++) {
		members[i] = (struct member){ .crew = crew, .cpu = i };
		ret = pthread_create(&members[i].thread, NULL, run, &members[i]);
		if (ret)
			die("pthread_create", ret);
	}
}

static void join_members(struct member *members, unsigned int count)
{
	while (count--)
		pthread_join(members[count].thread, NULL);
}

static void measure_threads(const struct kind *kind, const struct place *place)
{
	struct crew crew = { .kind = kind, .place = place };
	struct member workers[MOST_THREADS], idle[MOST_THREADS];

	crew.turn_length = spin_ns(&crew);
	pthread_barrier_init(&crew.barrier, NULL, place->threads);
	start_members(idle, &crew, idle_thread);
	start_members(workers, &crew, worker_thread);
	join_members(workers, place->threads);
	atomic_store(&crew.stop, true);
	join_members(idle, place->threads);
	pthread_barrier_destroy(&crew.barrier);
}

/* --- command line -------------------------------------------------------- */

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
	if (argc > 2 && !strcmp(argv[0], "--threads")) {
		place.threads = strtoul(argv[1], NULL, 10);
		if (place.threads > MOST_THREADS)
			die("--threads", E2BIG);
		argv += 2;
		argc -= 2;
	}
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
		fprintf(stderr, "usage: cpu_cost [--threads THREADS] [--least TURNS] [--into gpu|host CONTROLLER] GENERIC-NODE BLOCK-NODE CASE...\n");
		return 2;
	}
	place.generic = *argv++;
	place.block = *argv++;
	while (*argv)
		(place.threads ? measure_threads : measure)(find_kind(*argv++), &place);
	return 0;
}
