// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU and a controller that share this machine's memory: GPU threads access rings,
 * status page and doorbells of the module's queue pairs directly. Each event that ends a
 * queue pair under running threads is repeated CARD_ROUNDS times (environment, default
 * 2), half of them with rings in GPU memory. The longest durations are printed ("# times:
 * {...}", for selftests/cuda/card.sh).
 *
 * gpu: shared
 * timeout: 300
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ENTRIES		256U
#define RANGE		(2U << 20)
#define QUEUES		32U
/*
 * Limit from the event that ends a queue pair to the end of the job, and of the event
 * itself.
 */
#define END_MS		20000U
#define CAUSE_MS	20000
#define TRIES		1000	/* of 20 ms */
#define REARM_MS	NP_TIMEOUT_MS
#define ROUNDS_SECONDS	400
#define CANARY		0xa5
#define CANARY_BYTES	(16U << 20)

/* Fewer threads if the software GPU runs on few CPUs. */
static uint32_t threads(void)
{
	return np_gpu_is_real() ? 256 : 16;
}

/* Of one variant: the other variant runs as many. */
static unsigned int rounds(void)
{
	const char *all = getenv("CARD_ROUNDS");

	return all ? ((unsigned int)strtoul(all, NULL, 10) + 1) / 2 : 1;
}

static int counters(int gpu, struct softgpu_counters *now)
{
	return np_ioctl(gpu, SOFTGPU_COUNTERS, now);
}

/**
 * struct longest - the longest durations of all rounds, in milliseconds
 * @cause: the call that ends the queue pair
 * @end: from its start until the GPU's last call returned
 * @again: until the queue pair, or its replacement, was usable
 * @rounds: how many
 */
struct longest {
	int64_t cause;
	int64_t end;
	int64_t again;
	unsigned int rounds;
};

FIXTURE(card)
{
	struct np_bad bad;
	struct np_gpu_qp qp;
	struct softgpu_counters before;
	struct longest longest;
};

FIXTURE_VARIANT(card)
{
	const char *name;
	uint32_t rings;
};

FIXTURE_VARIANT_ADD(card, rings_in_gpu)
{
	.name = "gpu",
	.rings = 0,
};

FIXTURE_VARIANT_ADD(card, rings_in_host)
{
	.name = "host",
	.rings = NP_GPU_HOST_RINGS,
};

FIXTURE_SETUP(card)
{
	np_gpu_qp_clear(&self->qp);
	ASSERT_EQ(0, np_bad_open(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, QUEUES));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->bad.ctrl, ENTRIES, variant->rings));
	ASSERT_EQ(0, counters(self->qp.gpu, &self->before));
}

FIXTURE_TEARDOWN(card)
{
	np_gpu_qp_close(&self->qp);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int run(struct np_gpu_qp *qp, uint32_t program, struct softgpu_result *result)
{
	return np_gpu_run(qp->gpu, program, threads(), &qp->io, sizeof(qp->io), result);
}

static void longer(int64_t *most, int64_t since)
{
	int64_t took = np_now_ms() - since;

	*most = took > *most ? took : *most;
}

static void tell_longest(const struct longest *longest, const char *what, const char *rings)
{
	printf("# times: {\"what\": \"%s\", \"rings\": \"%s\", \"rounds\": %u, \"cause_ms\": %lld, \"end_ms\": %lld, \"again_ms\": %lld}\n",
	       what, rings, longest->rounds, (long long)longest->cause, (long long)longest->end,
	       (long long)longest->again);
}

/* Each started command has ended exactly once. */
static bool each_once(const struct softgpu_result *result)
{
	return result->commands == result->reads + result->writes + result->errors;
}

static uint32_t count(struct np_bad *bad, const struct np_gpu_qp *qp,
		      enum badctrl_queue_count what)
{
	return np_bad_get(bad, BADCTRL_QUEUE_COUNT(qp->io.queue.qid, what));
}

/* Every program succeeds, and its data is verified on the other side. */
TEST_F_TIMEOUT(card, both_directions, 120)
{
	struct softgpu_result result;
	uint32_t bytes;

	for (bytes = NP_PAGE; bytes <= 4 * NP_PAGE; bytes *= 2) {
		np_gpu_range(&self->qp, RANGE, RANGE, bytes, 0x1000 + bytes);
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_WRITE, &result));
		ASSERT_EQ(SOFTGPU_OK, result.status)
			TH_LOG("error %d at %llx", result.error, (unsigned long long)result.where);
		EXPECT_EQ(RANGE / bytes, result.writes);
		EXPECT_EQ(0, np_gpu_pattern_check(self->bad.disk, RANGE, RANGE, 0x1000 + bytes));
		EXPECT_EQ(0, np_gpu_pattern_write(self->bad.disk, RANGE, RANGE, 0x2000 + bytes));
		self->qp.io.seed = 0x2000 + bytes;
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_VERIFY, &result));
		EXPECT_EQ(SOFTGPU_OK, result.status);
		EXPECT_EQ(RANGE / bytes, result.reads);
		EXPECT_EQ(0, result.mismatches);
	}
	/* Wrong data is detected. */
	self->qp.io.seed++;
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_VERIFY, &result));
	EXPECT_EQ(SOFTGPU_FAILED, result.status);
	EXPECT_LT(0, result.mismatches);
}

/* Doorbells are not sent as messages, and the software GPU's CPU code copies no data. */
TEST_F_TIMEOUT(card, gpu_reaches_controller_directly, 60)
{
	struct nvme_peer_qp_info info;
	struct softgpu_counters after;
	struct softgpu_result result;

	np_gpu_range(&self->qp, RANGE, RANGE, NP_PAGE, 0x3000);
	self->qp.io.commands = 2000;
	ASSERT_EQ(0, run(&self->qp, SOFTGPU_MIXED, &result));
	ASSERT_EQ(SOFTGPU_OK, result.status);
	EXPECT_LT(2000, result.reads + result.writes);
	EXPECT_LE(result.reads + result.writes, count(&self->bad, &self->qp, BADCTRL_FETCHED));
	ASSERT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(0, info.cpu_doorbell_writes);
	EXPECT_LT(0, result.doorbells);
	ASSERT_EQ(0, counters(self->qp.gpu, &after));
	EXPECT_EQ(0, count(&self->bad, &self->qp, BADCTRL_MESSAGES));
	EXPECT_EQ(self->before.doorbells, after.doorbells);
	EXPECT_EQ(self->before.mapped_reads, after.mapped_reads);
	EXPECT_EQ(self->before.mapped_writes, after.mapped_writes);
	EXPECT_EQ(self->before.dma_bytes_written, after.dma_bytes_written);
	/*
	 * The doorbell page is looked up for each doorbell of a job, and a job ends with
	 * a read.
	 */
	EXPECT_GE(3, after.message_reads - self->before.message_reads);
}

/* Start an endless program and wait until it has completed commands. */
static int begin(struct np_gpu_qp *qp)
{
	struct softgpu_result result = { 0 };
	int job, tries;

	qp->io.depth = 4;
	qp->io.commands = 0;
	job = np_gpu_start(qp->gpu, SOFTGPU_RATE, threads(), &qp->io, sizeof(qp->io));
	for (tries = 0; job > 0 && tries < TRIES && result.reads < 100; tries++) {
		np_sleep_ms(20);
		if (np_gpu_progress(qp->gpu, job, &result))
			return -EIO;
	}
	return tries < TRIES ? job : -ETIMEDOUT;
}

/* The memory was revoked: its new owner's data must stay unchanged. */
static bool canary_lives(const uint8_t *bytes, uint64_t length)
{
	uint64_t i;

	np_sleep_ms(50);
	for (i = 0; i < length && bytes[i] == CANARY; i++)
		;
	return i == length;
}

static uint8_t *data_of(const struct np_gpu_qp *qp)
{
	return qp->memory.bytes + (qp->io.data_address - qp->memory.address);
}

static int reset_controller(const struct np_bad *bad)
{
	return np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL);
}

static int reset_function(const struct np_bad *bad)
{
	return np_pci_write(bad->address, "reset", "1");
}

/*
 * The job ends and each of its calls once; then the queue pair is re-armed. Returns 0 or
 * the failed line.
 */
static int end_and_rearm(struct np_gpu_qp *qp, int job, struct longest *longest, int64_t began,
			 struct softgpu_result *result)
{
	if (np_gpu_wait(qp->gpu, job, END_MS, result) || !each_once(result))
		return __LINE__;
	longer(&longest->end, began);
	if (!canary_lives(data_of(qp), qp->io.data.length))
		return __LINE__;
	if (np_gpu_qp_rearm(qp, REARM_MS))
		return __LINE__;
	longer(&longest->again, began);
	longest->rounds++;
	return 0;
}

/*
 * A reset ends every call, and no data is written after it; the queue pair is re-armed
 * and its data verified. Returns 0 or the failed line.
 */
static int reset_rounds(struct np_bad *bad, struct np_gpu_qp *qp, struct longest *longest,
			int (*reset)(const struct np_bad *bad), uint32_t status)
{
	struct softgpu_result result;
	unsigned int round;
	int64_t began;
	int job, line;

	np_gpu_range(qp, RANGE, RANGE, NP_PAGE, 0x4000);
	for (round = 0; round < rounds(); round++) {
		qp->io.seed++;
		qp->io.commands = 0;
		if (run(qp, SOFTGPU_WRITE, &result) || result.status != SOFTGPU_OK)
			return __LINE__;
		job = begin(qp);
		began = np_now_ms();
		if (job < 0 || reset(bad))
			return __LINE__;
		longer(&longest->cause, began);
		memset(data_of(qp), CANARY, qp->io.data.length);
		line = end_and_rearm(qp, job, longest, began, &result);
		if (line || result.status != status || result.error != NVMEPEER_E_LOST)
			return line ? line : __LINE__;
		if (run(qp, SOFTGPU_VERIFY, &result) || result.status != SOFTGPU_OK ||
		    result.reads != RANGE / NP_PAGE)
			return __LINE__;
	}
	return 0;
}

TEST_F_TIMEOUT(card, reset_under_load, ROUNDS_SECONDS)
{
	EXPECT_EQ(0, reset_rounds(&self->bad, &self->qp, &self->longest, reset_controller,
				  SOFTGPU_FAILED));
	EXPECT_GE(CAUSE_MS, self->longest.cause);
	tell_longest(&self->longest, "kernel reset", variant->name);
}

/* A function reset revokes the doorbells too. */
TEST_F_TIMEOUT(card, function_reset_under_load, ROUNDS_SECONDS)
{
	EXPECT_EQ(0, reset_rounds(&self->bad, &self->qp, &self->longest, reset_function,
				  SOFTGPU_FAULT));
	EXPECT_GE(CAUSE_MS, self->longest.cause);
	tell_longest(&self->longest, "function level reset", variant->name);
}

/* A queue pair that replaces the one that ended. */
static int open_again(struct np_gpu_qp *qp, const struct np_ctrl *ctrl, uint32_t rings)
{
	np_gpu_qp_close(qp);
	return np_gpu_qp_open(qp, ctrl, ENTRIES, rings);
}

/*
 * From the start of the event until the job has ended with an access error. Returns 0 or
 * the failed line.
 */
static int end_of(struct np_gpu_qp *qp, int job, struct longest *longest, int64_t began,
		  struct softgpu_result *result)
{
	if (np_gpu_wait(qp->gpu, job, END_MS, result) || !each_once(result))
		return __LINE__;
	longer(&longest->end, began);
	return result->status == SOFTGPU_OK ? __LINE__ : 0;
}

static int take_ring_back(struct np_gpu_qp *qp, struct longest *longest)
{
	/* Imports are numbered in order: the rings follow the doorbells. */
	struct softgpu_release release = { .handle = qp->doorbell_handle + 1 };
	struct softgpu_result result;
	int job, line;
	int64_t began;

	np_gpu_range(qp, RANGE, RANGE, NP_PAGE, 0x7000);
	job = begin(qp);
	began = np_now_ms();
	if (job < 0 || np_ioctl(qp->gpu, SOFTGPU_RELEASE, &release))
		return __LINE__;
	longer(&longest->cause, began);
	memset(qp->ring_maps[0].at, CANARY, ENTRIES * 64);
	line = end_of(qp, job, longest, began, &result);
	if (line || result.status != SOFTGPU_FAULT || result.error != NVMEPEER_E_LOST)
		return line ? line : __LINE__;
	return canary_lives(qp->ring_maps[0].at, ENTRIES * 64) ? 0 : __LINE__;
}

/*
 * The driver unmaps the submission ring from the GPU's address space. After that no GPU
 * thread may store to it, although the queue pair is LIVE.
 */
TEST_F_TIMEOUT(card, submission_ring_revoked_under_load, ROUNDS_SECONDS)
{
	struct softgpu_result result;
	unsigned int round;
	int64_t began;

	if (!variant->rings)
		SKIP(return, "the ring is the GPU's own memory");
	/* The other variant does no rounds. */
	for (round = 0; round < 2 * rounds(); round++) {
		began = np_now_ms();
		ASSERT_EQ(0, take_ring_back(&self->qp, &self->longest));
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_RATE, &result));
		EXPECT_EQ(SOFTGPU_FAULT, result.status);
		EXPECT_EQ(self->qp.io.queue.sq, result.where & ~(uint64_t)(NP_PAGE - 1));
		ASSERT_EQ(0, open_again(&self->qp, &self->bad.ctrl, variant->rings));
		longer(&self->longest.again, began);
		self->longest.rounds++;
	}
	tell_longest(&self->longest, "ring revoked", variant->name);
}

/*
 * An event that revokes the job's memory; its data is not written after that. Returns 0
 * or the failed line.
 */
static int lose(struct np_bad *bad, struct np_gpu_qp *qp, struct longest *longest,
		int (*cause)(struct np_bad *bad, struct np_gpu_qp *qp))
{
	struct softgpu_result result;
	int job, line;
	int64_t began;

	np_gpu_range(qp, RANGE, RANGE, NP_PAGE, 0x5000);
	job = begin(qp);
	began = np_now_ms();
	if (job < 0 || cause(bad, qp))
		return __LINE__;
	longer(&longest->cause, began);
	memset(data_of(qp), CANARY, qp->io.data.length);
	line = end_of(qp, job, longest, began, &result);
	if (line)
		return line;
	return canary_lives(data_of(qp), qp->io.data.length) ? 0 : __LINE__;
}

static int unbind(struct np_bad *bad, struct np_gpu_qp *qp)
{
	(void)qp;
	return np_bad_unbind(bad);
}

TEST_F_TIMEOUT(card, unbind_under_load, ROUNDS_SECONDS)
{
	unsigned int round;
	int64_t began;

	for (round = 0; round < rounds(); round++) {
		began = np_now_ms();
		ASSERT_EQ(0, lose(&self->bad, &self->qp, &self->longest, unbind));
		np_gpu_qp_close(&self->qp);
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		ASSERT_EQ(0, np_gpu_qp_open(&self->qp, &self->bad.ctrl, ENTRIES, variant->rings));
		longer(&self->longest.again, began);
		self->longest.rounds++;
	}
	EXPECT_GE(CAUSE_MS, self->longest.cause);
	tell_longest(&self->longest, "unbind", variant->name);
}

static int close_pair(struct np_bad *bad, struct np_gpu_qp *qp)
{
	int fd = qp->qp_fd;

	(void)bad;
	qp->qp_fd = -1;
	return close(fd);
}

/* The end of the queue pair revokes its memory under the running job. */
TEST_F_TIMEOUT(card, queue_pair_closed_under_load, ROUNDS_SECONDS)
{
	struct softgpu_result result;
	unsigned int round;
	int64_t began;

	for (round = 0; round < rounds(); round++) {
		began = np_now_ms();
		ASSERT_EQ(0, lose(&self->bad, &self->qp, &self->longest, close_pair));
		/* An address that is not mapped is refused. */
		ASSERT_EQ(0, run(&self->qp, SOFTGPU_RATE, &result));
		EXPECT_EQ(SOFTGPU_FAULT, result.status);
		ASSERT_EQ(0, open_again(&self->qp, &self->bad.ctrl, variant->rings));
		longer(&self->longest.again, began);
		self->longest.rounds++;
	}
	tell_longest(&self->longest, "queue pair closed", variant->name);
}

/*
 * Runs with a queue pair in use whose data is at @where in GPU memory, and with a
 * controller file of its own that imported the data. Never returns.
 */
static void die_under_load(const struct np_ctrl *ctrl, uint32_t rings, volatile uint64_t *where)
{
	struct np_ctrl own = *ctrl;
	struct np_gpu_qp qp;

	own.fd = np_open_node(ctrl, "/dev/nvmep%d", O_RDWR | O_CLOEXEC);
	if (own.fd < 0 || np_gpu_qp_open(&qp, &own, ENTRIES, rings))
		_exit(1);
	np_gpu_range(&qp, RANGE, RANGE, NP_PAGE, 0x6000);
	if (begin(&qp) <= 0)
		_exit(2);
	*where = qp.io.data_address;
	raise(SIGKILL);
}

/* Allocate GPU memory around @where as soon as it is free. */
static int alloc_around(int gpu, uint64_t where, struct softgpu_alloc *alloc)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		if (np_gpu_alloc(gpu, CANARY_BYTES, 0, alloc))
			return -ENOMEM;
		if (where >= alloc->address && where - alloc->address < CANARY_BYTES)
			return 0;
		close(alloc->fd);
		np_sleep_ms(20);
	}
	return -ETIMEDOUT;
}

/*
 * GPU memory of a process with a queue pair is allocated again after its death, and
 * nothing is written there. Returns 0 or the failed line.
 */
static int memory_after_death(uint64_t where)
{
	struct softgpu_alloc alloc;
	int gpu = np_gpu_open(), ret = gpu < 0 ? gpu : alloc_around(gpu, where, &alloc);
	uint8_t *bytes;
	bool lives;

	close(gpu);
	if (ret)
		return __LINE__;
	bytes = mmap(NULL, CANARY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, alloc.fd, 0);
	close(alloc.fd);
	if (bytes == MAP_FAILED)
		return __LINE__;
	memset(bytes, CANARY, CANARY_BYTES);
	lives = canary_lives(bytes, CANARY_BYTES);
	munmap(bytes, CANARY_BYTES);
	return lives ? 0 : __LINE__;
}

/* While another queue pair is LIVE, the controller keeps exposed buffers mapped. */
static int process_dies(struct np_bad *bad, struct np_gpu_qp *qp, uint32_t rings, unsigned int round)
{
	volatile uint64_t *where = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct softgpu_result result;
	pid_t child;
	int status;

	np_gpu_qp_close(qp);
	child = where == MAP_FAILED ? -1 : fork();
	if (!child)
		die_under_load(&bad->ctrl, rings, where);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
		return __LINE__;
	status = memory_after_death(*where);
	munmap((void *)where, NP_PAGE);
	if (status || np_gpu_qp_open(qp, &bad->ctrl, ENTRIES, rings))
		return status ?: __LINE__;
	np_gpu_range(qp, RANGE, RANGE, NP_PAGE, 0x6001 + round);
	if (run(qp, SOFTGPU_WRITE, &result) || result.status != SOFTGPU_OK)
		return __LINE__;
	return np_gpu_pattern_check(bad->disk, RANGE, RANGE, 0x6001 + round) ? __LINE__ : 0;
}

/* The process dies; the controller and a new process work on. */
TEST_F_TIMEOUT(card, process_killed_under_load, ROUNDS_SECONDS)
{
	unsigned int round;
	int64_t began;

	for (round = 0; round < rounds(); round++) {
		began = np_now_ms();
		ASSERT_EQ(0, process_dies(&self->bad, &self->qp, variant->rings, round));
		longer(&self->longest.end, began);
		self->longest.rounds++;
	}
	tell_longest(&self->longest, "process dies", variant->name);
}

TEST_HARNESS_MAIN
