// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program of the user library survives the loss of its queue pair: its threads get
 * NVMEPEER_E_LOST, one of them recovers the queue pair, and all data is verified.
 *
 * Debian's 6.1 has no udmabuf, which the library uses for its buffers.
 *
 * kernels: 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off
 * topology: root single
 * timeout: 180
 * relay: 7
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define THREADS		4U
#define RESETS		5U
#define BLOCKS		8U	/* of each thread's transfer */

/**
 * struct program - threads that write and read back through one queue pair
 * @peer: the queue pair
 * @barrier: all threads, before and after the queue pair is recovered
 * @recovered: number of recoveries
 * @result: of the last recovery
 * @rounds: verified transfers of all threads
 * @stop: set by the test
 */
struct program {
	struct nvmepeer_cpu_peer *peer;
	pthread_barrier_t barrier;
	atomic_uint recovered;
	atomic_int result;
	atomic_uint rounds;
	atomic_bool stop;
};

/* A thread and its first error: an NVMe status or errno. */
struct worker {
	struct program *program;
	uint32_t index;
	pthread_t thread;
	int error;
};

FIXTURE(recover)
{
	struct np_ctrl ctrl;
	struct nvmepeer *library;
	struct nvmepeer_ns *ns;
	char before[NP_OBJECTS];
	struct program program;
};

FIXTURE_SETUP(recover)
{
	char node[32];

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	snprintf(node, sizeof(node), "/dev/nvmep%d", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_open(node, &self->library));
	snprintf(node, sizeof(node), "/dev/ngp%dn1", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_ns_open(node, &self->ns));
	ASSERT_EQ(0, nvmepeer_cpu_peer_open(self->library, nvmepeer_ns_info(self->ns), ENTRIES,
					    THREADS * BLOCKS * NP_PAGE, &self->program.peer));
	ASSERT_EQ(0, pthread_barrier_init(&self->program.barrier, NULL, THREADS));
}

FIXTURE_TEARDOWN(recover)
{
	pthread_barrier_destroy(&self->program.barrier);
	nvmepeer_cpu_peer_close(self->program.peer);
	nvmepeer_ns_close(self->ns);
	nvmepeer_close(self->library);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* Write a pattern of this round and read it back, each with one command. */
static int verify(struct worker *worker, uint32_t round)
{
	struct nvmepeer_cpu_peer *peer = worker->program->peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	uint32_t bytes = BLOCKS << queue->lba_shift;
	uint64_t offset = (uint64_t)worker->index * bytes;
	uint64_t lba = (NP_AREA(4) >> queue->lba_shift) + worker->index * BLOCKS;
	uint8_t *data = (uint8_t *)nvmepeer_cpu_peer_address(peer) + offset;
	uint8_t pattern[BLOCKS * NP_PAGE];
	int status;

	np_pattern(pattern, bytes, lba, round);
	memcpy(data, pattern, bytes);
	status = nvmepeer_write(queue, nvmepeer_cpu_peer_data(peer), offset, lba, BLOCKS);
	if (status)
		return status;
	memset(data, 0, bytes);
	status = nvmepeer_read(queue, nvmepeer_cpu_peer_data(peer), offset, lba, BLOCKS);
	if (status)
		return status;
	return memcmp(data, pattern, bytes) ? -EIO : 0;
}

/* All threads have returned from their calls: one recovers, then all continue. */
static int recover(struct program *program)
{
	struct nvmepeer_state *state = nvmepeer_cpu_peer_queue(program->peer)->state;
	uint32_t before;
	int result;

	if (pthread_barrier_wait(&program->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
		before = state->generation;
		result = nvmepeer_cpu_peer_recover(program->peer, NP_TIMEOUT_MS);
		atomic_store(&program->result, result);
		/*
		 * The controller may complete commands as aborted before the module
		 * changes the state: the next call is lost too.
		 */
		if (state->generation != before)
			atomic_fetch_add(&program->recovered, 1);
	}
	pthread_barrier_wait(&program->barrier);
	return atomic_load(&program->result);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct program *program = worker->program;
	uint32_t round = 0;

	while (!worker->error) {
		worker->error = verify(worker, round);
		if (worker->error == NVMEPEER_E_LOST) {
			/* The test ends with a loss, so that all threads end together. */
			if (atomic_load(&program->stop)) {
				worker->error = 0;
				break;
			}
			worker->error = recover(program);
		} else if (!worker->error) {
			round++;
			atomic_fetch_add(&program->rounds, 1);
		}
	}
	return NULL;
}

static int wait_above(atomic_uint *count, unsigned int before)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (atomic_load(count) <= before) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
	}
	return 0;
}

TEST_F_TIMEOUT(recover, program_recovers_from_each_loss, 120)
{
	struct program *program = &self->program;
	struct worker workers[THREADS];
	struct nvme_peer_info info;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .program = program, .index = i };
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	for (i = 0; i < RESETS; i++) {
		EXPECT_EQ(0, wait_above(&program->rounds, atomic_load(&program->rounds) + THREADS));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		EXPECT_EQ(0, wait_above(&program->recovered, i));
		EXPECT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, wait_above(&program->rounds, atomic_load(&program->rounds) + THREADS));
	atomic_store(&program->stop, true);
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		EXPECT_EQ(0, workers[i].error);
	}
	EXPECT_EQ(RESETS, atomic_load(&program->recovered));
	TH_LOG("%u verified transfers", atomic_load(&program->rounds));
}

/* Nothing was lost, so there is nothing to recover. */
TEST_F(recover, recover_of_live_queue_pair_is_no_op)
{
	struct worker worker = { .program = &self->program };

	EXPECT_EQ(0, verify(&worker, 1));
	EXPECT_EQ(0, nvmepeer_cpu_peer_recover(self->program.peer, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&worker, 2));
}

/* A token from before the loss stays lost, whether its command was executed or not. */
TEST_F(recover, old_token_stays_lost_after_recovery)
{
	const struct nvmepeer_command command = {
		.opcode = NVMEPEER_OP_READ,
		.blocks = 1,
		.buffer = nvmepeer_cpu_peer_data(self->program.peer),
	};
	struct nvmepeer_cpu_peer *peer = self->program.peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	struct worker worker = { .program = &self->program };
	struct nvmepeer_token token;

	EXPECT_EQ(0, verify(&worker, 1));
	ASSERT_EQ(0, nvmepeer_submit(queue, &command, &token, queue->timeout_ns));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, nvmepeer_cpu_peer_recover(peer, NP_TIMEOUT_MS));
	EXPECT_EQ(NVMEPEER_E_TOKEN,
		  nvmepeer_wait(queue, token, NULL, queue->timeout_ns));
	EXPECT_EQ(0, verify(&worker, 2));
}

/* A caller whose command timed out requests recovery, and continues as after a reset. */
TEST_F(recover, quiesce_request_reports_loss)
{
	struct nvmepeer_cpu_peer *peer = self->program.peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	struct worker worker = { .program = &self->program };
	struct nvme_peer_qp_info info;

	ASSERT_EQ(0, nvmepeer_queue_quiesce(queue));
	while (!nvmepeer_qp_info(nvmepeer_cpu_peer_qp(peer), &info, sizeof(info)) &&
	       info.state == NVME_PEER_QP_LIVE)
		np_sleep_ms(1);
	EXPECT_EQ(NVMEPEER_E_LOST, verify(&worker, 1));
	EXPECT_EQ(0, nvmepeer_cpu_peer_recover(peer, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(&worker, 2));
}

/*
 * A request and a re-arm by the owner leave the generation unchanged. A peer that has not
 * noticed sees the loss in the status page, until it takes the new count of losses.
 */
TEST_F(recover, status_page_reports_loss_after_rearm)
{
	struct nvmepeer_cpu_peer *peer = self->program.peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	struct nvmepeer_qp *qp = nvmepeer_cpu_peer_qp(peer);
	struct worker worker = { .program = &self->program };
	struct nvme_peer_qp_info before, info;
	uint32_t generation;

	ASSERT_EQ(0, verify(&worker, 1));
	EXPECT_FALSE(nvp_status_lost(queue));
	ASSERT_EQ(0, nvmepeer_qp_info(qp, &before, sizeof(before)));
	ASSERT_EQ(0, nvmepeer_queue_quiesce(queue));
	while (!nvmepeer_qp_info(qp, &info, sizeof(info)) && info.state == NVME_PEER_QP_LIVE)
		np_sleep_ms(1);
	EXPECT_EQ(before.losses + 1, info.losses);
	ASSERT_EQ(0, nvmepeer_qp_rearm(qp, info.losses, &generation));
	EXPECT_EQ(before.generation, generation);
	EXPECT_TRUE(nvp_status_lost(queue));
	nvmepeer_queue_rearm(queue, info.losses);
	EXPECT_FALSE(nvp_status_lost(queue));
	EXPECT_EQ(0, verify(&worker, 2));
}

/* --- calls that retry after a loss ---------------------------------------------- */

/**
 * struct user - a thread that leaves the handling of losses to the library
 * @program: shared by all
 * @index: its part of data and disk
 * @write: it writes, in a part that no other thread reads; otherwise it reads prepared
 *	data
 * @lost: writes that were lost
 * @error: first error
 */
struct user {
	struct program *program;
	uint32_t index;
	bool write;
	atomic_uint lost;
	int error;
	pthread_t thread;
};

/* One transfer by the library's own calls; a read is compared. */
static int transfer(struct user *user, bool write, uint32_t seed)
{
	struct nvmepeer_cpu_peer *peer = user->program->peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	uint32_t bytes = BLOCKS << queue->lba_shift;
	uint64_t offset = (uint64_t)user->index * bytes;
	uint64_t lba = (NP_AREA(4) >> queue->lba_shift) + user->index * BLOCKS;
	uint8_t *data = (uint8_t *)nvmepeer_cpu_peer_address(peer) + offset;
	uint8_t pattern[BLOCKS * NP_PAGE];
	int status;

	np_pattern(pattern, bytes, lba, seed);
	if (write) {
		memcpy(data, pattern, bytes);
		return nvmepeer_cpu_peer_write(peer, offset, lba, BLOCKS, NP_TIMEOUT_MS);
	}
	memset(data, 0, bytes);
	status = nvmepeer_cpu_peer_read(peer, offset, lba, BLOCKS, NP_TIMEOUT_MS);
	return status ? status : memcmp(data, pattern, bytes) ? -EIO : 0;
}

static void *use(void *argument)
{
	struct user *user = argument;

	while (!user->error && !atomic_load(&user->program->stop)) {
		user->error = transfer(user, user->write, 1);
		if (user->write && user->error == NVMEPEER_E_LOST) {
			atomic_fetch_add(&user->lost, 1);
			user->error = 0;
		}
		atomic_fetch_add(&user->program->rounds, 1);
	}
	return NULL;
}

/* Reads are retried transparently; a lost write is reported. */
TEST_F_TIMEOUT(recover, reads_retry_and_writes_report_loss, 120)
{
	struct program *program = &self->program;
	struct nvme_peer_info info;
	struct user users[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		users[i] = (struct user){ .program = program, .index = i, .write = !i };
		ASSERT_EQ(0, transfer(&users[i], true, 1));
		ASSERT_EQ(0, pthread_create(&users[i].thread, NULL, use, &users[i]));
	}
	for (i = 0; i < 100 && !atomic_load(&users[0].lost); i++) {
		EXPECT_EQ(0, wait_above(&program->rounds,
					atomic_load(&program->rounds) + 4 * THREADS));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		EXPECT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, wait_above(&program->rounds, atomic_load(&program->rounds) + 4 * THREADS));
	atomic_store(&program->stop, true);
	for (i = 0; i < THREADS; i++) {
		pthread_join(users[i].thread, NULL);
		EXPECT_EQ(0, users[i].error);
	}
	EXPECT_LT(0, atomic_load(&users[0].lost));
}

/* As at power off: unlike an unbind, the doorbells stay mapped. */
static int shut_down(const struct np_ctrl *ctrl)
{
	struct nvme_peer_pci_address address = np_parse_address(ctrl->address);
	int test = np_test_open();
	int ret = test < 0 ? test : np_ioctl(test, NVMEP_TEST_SHUTDOWN, &address);

	close(test);
	return ret;
}

/*
 * Map a page of this process where the doorbells were, and repeat the store. Leaving the
 * handler by siglongjmp() would leave the library's call with its lock held.
 */
static void replace_doorbells(int number, siginfo_t *info, void *context)
{
	void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)(NP_PAGE - 1));

	(void)context;
	if (mmap(page, NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		signal(number, SIG_DFL);
}

/*
 * All callers get an error if the queue pair cannot be re-armed. A thread that was not running
 * when the doorbells were withdrawn may store to one before it reads the status page: SIGBUS.
 */
TEST_F(recover, reads_fail_if_queue_pair_gone)
{
	const struct sigaction replace = {
		.sa_sigaction = replace_doorbells,
		.sa_flags = SA_SIGINFO,
	};
	struct program *program = &self->program;
	struct user users[THREADS];
	unsigned int i;

	ASSERT_EQ(0, sigaction(SIGBUS, &replace, NULL));
	for (i = 0; i < THREADS; i++) {
		users[i] = (struct user){ .program = program, .index = i };
		ASSERT_EQ(0, transfer(&users[i], true, 1));
		ASSERT_EQ(0, pthread_create(&users[i].thread, NULL, use, &users[i]));
	}
	EXPECT_EQ(0, wait_above(&program->rounds, 4 * THREADS));
	ASSERT_EQ(0, shut_down(&self->ctrl));
	for (i = 0; i < THREADS; i++) {
		pthread_join(users[i].thread, NULL);
		EXPECT_EQ(NVMEPEER_E_LOST, users[i].error);
	}
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
}

/* A read that has completed is not repeated. */
TEST_F(recover, only_lost_reads_are_retried)
{
	struct nvmepeer_cpu_peer *peer = self->program.peer;
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(peer);
	uint64_t lba = NP_AREA(4) >> queue->lba_shift;
	struct worker worker = { .program = &self->program };
	uint8_t *data = nvmepeer_cpu_peer_address(peer);
	int status;

	EXPECT_EQ(0, verify(&worker, 1));
	for (status = -1; status < 2; status++) {
		int now = status;

		data[0] ^= 0xff;
		EXPECT_EQ(status, nvmepeer_read_retry(queue, nvmepeer_cpu_peer_data(peer), 0, lba, BLOCKS,
						      &now));
		data[0] ^= 0xff;
	}
	status = NVMEPEER_E_LOST;
	memset(data, 0, NP_BLOCK);
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(NVMEPEER_E_LOST, nvmepeer_read_retry(queue, nvmepeer_cpu_peer_data(peer), 0, lba, BLOCKS,
						       &status));
	EXPECT_EQ(0, nvmepeer_cpu_peer_recover(peer, NP_TIMEOUT_MS));
	EXPECT_EQ(0, nvmepeer_read_retry(queue, nvmepeer_cpu_peer_data(peer), 0, lba, BLOCKS, &status));
	EXPECT_EQ(0, status);
	EXPECT_NE(0, data[0] | data[1] | data[2] | data[3]);
}

TEST_HARNESS_MAIN
