// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The thread that serves a queue pair: takes entries that the tail doorbell announces,
 * executes them by io_uring, and writes completion entries as they end.
 *
 * The thread spins while there is something to do, then sleeps for short, and for longer
 * once nothing was done for a while, as the kernel's pollers do.  A completion of io_uring
 * and a kick end a sleep.
 */
#include <linux/falloc.h>
#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "serve.h"

/* Without work: how long to spin, and then to sleep for short; duration of a sleep. */
enum { SPIN_NS = 50000, WARM_NS = 10000000, SHORT_NS = 30000, LONG_NS = 950000 };

/* Times that a command is submitted again after EAGAIN or EINTR. */
enum { MOST_RETRIES = 16 };

/* A read that ends within a sector has reached the end of the file. */
enum { SECTOR = 512 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t *doorbell(const struct nvmepeer_serve *serve, uint32_t offset)
{
	uint8_t *doorbells = serve_memory(serve, NVME_PEER_EXPORT_DOORBELL);

	return (uint32_t *)(doorbells + offset);
}

/*
 * A peer may write the word again at any time: one load.  Ordered with the report that the
 * thread sleeps: a peer whose store is not seen after that report finds it.
 */
static uint32_t load(const uint32_t *word)
{
	return le32toh(__atomic_load_n(word, __ATOMIC_SEQ_CST));
}

static bool is_live(const struct nvmepeer_serve *serve)
{
	return serve->state == NVME_PEER_QP_LIVE;
}

static bool has_failed(const struct nvmepeer_serve *serve)
{
	return serve->state == NVME_PEER_QP_FAILED;
}

/* Commands in the kernel, or prepared for it. */
static uint32_t in_flight(const struct nvmepeer_serve *serve)
{
	return serve->depth - serve->idle_count;
}

/* No entry is taken any more; peers find the loss in the status page. */
static int lose(struct nvmepeer_serve *serve, enum nvme_peer_qp_state state,
		enum nvme_peer_qp_reason reason, int error)
{
	serve->losses += is_live(serve);
	serve_set_state(serve, state, reason);
	return error;
}

/* ---- Completions --------------------------------------------------------- */

/* The phase tag last; take() has made sure that there is room. */
static void post(struct nvmepeer_serve *serve, uint16_t cid, uint32_t status)
{
	uint32_t *entry = serve_memory(serve, NVME_PEER_EXPORT_CQ);
	uint32_t phase = (serve->posted / serve->entries & 1) ^ 1;
	uint32_t head = serve->fetched & (serve->entries - 1);

	if (!is_live(serve))
		return;
	entry += (size_t)(serve->posted & (serve->entries - 1)) * (SERVE_COMPLETION / 4);
	__atomic_store_n(&entry[0], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry[1], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry[2], htole32(head | 0xffffu << 16), __ATOMIC_RELAXED);
	__atomic_store_n(&entry[3], htole32(cid | phase << 16 | status << 17), __ATOMIC_RELEASE);
	serve->posted++;
}

/* ---- Execution ----------------------------------------------------------- */

/* One command has a place of its own in the ring. */
static void start(struct nvmepeer_serve *serve, struct serve_command *command)
{
	const struct serve_namespace *namespace = command->namespace;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&serve->ring);
	const struct iovec *pieces = command->pieces + command->piece;
	unsigned int count = command->count - command->piece;

	switch (command->opcode) {
	case NVMEPEER_OP_READ:
		io_uring_prep_readv(sqe, namespace->fd, pieces, count, command->offset);
		break;
	case NVMEPEER_OP_WRITE:
		io_uring_prep_writev2(sqe, namespace->fd, pieces, count, command->offset,
				      command->durable ? RWF_DSYNC : 0);
		break;
	case NVMEPEER_OP_WRITE_ZEROES:
		command->punches = namespace->punches;
		io_uring_prep_fallocate(sqe, namespace->fd, FALLOC_FL_KEEP_SIZE |
					(command->punches ? FALLOC_FL_PUNCH_HOLE :
							    FALLOC_FL_ZERO_RANGE),
					command->offset, command->bytes);
		break;
	default:
		io_uring_prep_fsync(sqe, namespace->fd, IORING_FSYNC_DATASYNC);
		break;
	}
	io_uring_sqe_set_data(sqe, command);
}

static bool has_data(const struct serve_command *command)
{
	return command->opcode == NVMEPEER_OP_READ || command->opcode == NVMEPEER_OP_WRITE;
}

static void advance(struct serve_command *command, uint64_t bytes)
{
	command->offset += bytes;
	command->bytes -= bytes;
	while (bytes) {
		struct iovec *piece = &command->pieces[command->piece];
		uint64_t step = bytes < piece->iov_len ? bytes : piece->iov_len;

		piece->iov_base = (char *)piece->iov_base + step;
		piece->iov_len -= step;
		command->piece += !piece->iov_len;
		bytes -= step;
	}
}

/* Not all is done, and a further submission may do the rest. */
static bool goes_on(struct serve_command *command, int result)
{
	if (result == -EAGAIN || result == -EINTR)
		return command->retries++ < MOST_RETRIES;
	if (result == -EOPNOTSUPP && command->opcode == NVMEPEER_OP_WRITE_ZEROES &&
	    !command->punches) {
		command->namespace->punches = true;
		return true;
	}
	if (result <= 0 || !has_data(command))
		return false;
	advance(command, (uint64_t)result);
	return command->bytes && (command->opcode == NVMEPEER_OP_WRITE || !(result % SECTOR));
}

static uint32_t status_of(const struct serve_command *command, int result)
{
	if (result < 0)
		return serve_status(command->opcode, result);
	if (!has_data(command) || !command->bytes)
		return 0;
	/* The file is shorter than it was. */
	return command->opcode == NVMEPEER_OP_READ ? NVME_SC_LBA_RANGE | NVME_STATUS_DNR :
						     NVME_SC_WRITE_FAULT;
}

static void complete(struct nvmepeer_serve *serve, struct serve_command *command, int result)
{
	if (goes_on(command, result)) {
		start(serve, command);
		return;
	}
	post(serve, command->cid, status_of(command, result));
	serve->idle[serve->idle_count++] = command;
}

/* Returns whether there was a completion. */
static bool reap(struct nvmepeer_serve *serve)
{
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;

	io_uring_for_each_cqe(&serve->ring, head, cqe) {
		complete(serve, io_uring_cqe_get_data(cqe), cqe->res);
		count++;
	}
	io_uring_cq_advance(&serve->ring, count);
	return count;
}

/*
 * Entries that the kernel refuses for now stay in the ring and are submitted later.  After
 * another error they stay there for good, and the queue pair has failed.
 */
static int submit(struct nvmepeer_serve *serve)
{
	int result = io_uring_sq_ready(&serve->ring) ? io_uring_submit(&serve->ring) : 0;

	if (result >= 0 || result == -EAGAIN || result == -EBUSY || result == -EINTR)
		return 0;
	return lose(serve, NVME_PEER_QP_FAILED, NVME_PEER_QP_REASON_CTRL, result);
}

/* ---- Entries ------------------------------------------------------------- */

/* Copied once: a peer may write the entry again at any time. */
static void copy_entry(const struct nvmepeer_serve *serve, uint32_t entry[16])
{
	const uint32_t *slot = serve_memory(serve, NVME_PEER_EXPORT_SQ);

	slot += (size_t)(serve->fetched & (serve->entries - 1)) * (SERVE_ENTRY / 4);
	for (int i = 0; i < 16; i++)
		entry[i] = le32toh(__atomic_load_n(&slot[i], __ATOMIC_RELAXED));
}

static void take(struct nvmepeer_serve *serve)
{
	struct serve_command *command = serve->idle[serve->idle_count - 1];
	uint32_t entry[16], status;

	copy_entry(serve, entry);
	serve->fetched++;
	status = serve_check(serve, entry, command);
	if (status) {
		post(serve, command->cid, status);
		return;
	}
	serve->idle_count--;
	start(serve, command);
}

/* Room in the completion ring that no command has. */
static uint32_t room(const struct nvmepeer_serve *serve)
{
	return serve->entries - 1 - (serve->posted - serve->consumed) - in_flight(serve);
}

/* Returns whether the head doorbell is valid: it does not pass what was posted. */
static bool read_head(struct nvmepeer_serve *serve)
{
	uint32_t head = load(doorbell(serve, SERVE_STRIDE));
	uint32_t step = (head - serve->consumed) & (serve->entries - 1);

	if (head >= serve->entries || step > serve->posted - serve->consumed)
		return false;
	serve->consumed += step;
	return true;
}

/* Returns 1 if entries were taken, 0 if there was none, or the error of a loss. */
static int fetch(struct nvmepeer_serve *serve)
{
	const struct nvme_peer_control *control = serve_memory(serve, NVME_PEER_EXPORT_CONTROL);
	uint32_t tail = load(doorbell(serve, 0)), count;
	int taken = 0;

	if (load(&control->quiesce))
		return lose(serve, NVME_PEER_QP_QUIESCED, NVME_PEER_QP_REASON_REQUEST, -ECANCELED);
	if (tail >= serve->entries || !read_head(serve))
		return lose(serve, NVME_PEER_QP_QUIESCED, NVME_PEER_QP_REASON_DOORBELL, -EPROTO);
	count = (tail - serve->fetched) & (serve->entries - 1);
	for (; count && serve->idle_count && room(serve); count--, taken = 1)
		take(serve);
	return taken;
}

/* ---- The loop ------------------------------------------------------------ */

static void report_asleep(struct nvmepeer_serve *serve, bool asleep)
{
	struct nvme_peer_status *status = serve_memory(serve, NVME_PEER_EXPORT_STATUS);

	serve->asleep = asleep;
	__atomic_exchange_n(&status->poller_asleep, htole32(asleep), __ATOMIC_SEQ_CST);
}

/* Until the kernel has completed a command, a kick, or the end of the duration. */
static void wait_for(struct nvmepeer_serve *serve, long duration_ns)
{
	struct timespec duration = { .tv_nsec = duration_ns };
	struct pollfd files[] = {
		{ .fd = serve->ring.ring_fd, .events = POLLIN },
		{ .fd = serve->kick_fd, .events = POLLIN },
	};
	uint64_t kicks;

	if (ppoll(files, ARRAY_SIZE(files), &duration, NULL) > 0 && files[1].revents & POLLIN &&
	    read(serve->kick_fd, &kicks, sizeof(kicks)) < 0)
		return;
}

static void rest(struct nvmepeer_serve *serve, bool active)
{
	uint64_t now = now_ns(), idle = now - serve->active_ns;
	bool cold = idle > WARM_NS;

	if (active) {
		serve->active_ns = now;
		if (serve->asleep)
			report_asleep(serve, false);
	} else if (cold && !serve->asleep) {
		report_asleep(serve, true);
	} else if (idle > SPIN_NS) {
		wait_for(serve, cold ? LONG_NS : SHORT_NS);
	} else {
		sched_yield();
	}
}

/* Returns 0, or the error of a loss. */
static int pass(struct nvmepeer_serve *serve)
{
	int result = fetch(serve), error;
	bool active = result > 0;

	if (result < 0)
		return result;
	error = submit(serve);
	if (error)
		return error;
	active |= reap(serve);
	rest(serve, active);
	return 0;
}

/* Until the kernel has no command, since it may access the data until then. */
static void drain(struct nvmepeer_serve *serve)
{
	while (in_flight(serve) > (has_failed(serve) ? io_uring_sq_ready(&serve->ring) : 0)) {
		if (!has_failed(serve))
			submit(serve);
		if (!reap(serve))
			wait_for(serve, LONG_NS);
	}
}

int nvmepeer_serve_run(struct nvmepeer_serve *serve)
{
	int error = 0;

	if (atomic_exchange(&serve->running, true))
		return failure_set(CALL_SERVE_RUN, -EBUSY, "");
	if (!is_live(serve))
		error = -ESHUTDOWN;
	serve->active_ns = now_ns();
	while (!error && !serve->stop)
		error = pass(serve);
	drain(serve);
	if (!error)
		serve->stop = false;
	serve->running = false;
	return error ? failure_set(CALL_SERVE_RUN, error, "") : 0;
}

void nvmepeer_serve_stop(struct nvmepeer_serve *serve)
{
	serve->stop = true;
	nvmepeer_serve_kick(serve);
}

void nvmepeer_serve_kick(struct nvmepeer_serve *serve)
{
	const uint64_t one = 1;

	/* A counter that is at its limit ends the sleep, too. */
	if (write(serve->kick_fd, &one, sizeof(one)) < 0)
		return;
}
