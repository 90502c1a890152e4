// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The part of io_uring I/O that is not inlined: creation of the ring, and the transfer of
 * a large range.
 */
#include <unistd.h>

#include <nvmepeer_uring.h>

#include "internal.h"

int nvmepeer_uring_init(struct io_uring *ring, unsigned int depth)
{
	int result = io_uring_queue_init(depth, ring, IORING_SETUP_SQE128 |
					 IORING_SETUP_CQE32);

	return result < 0 ? failure_set(CALL_URING, result, "io_uring") : result;
}

/* Submissions that the kernel refuses in a row while it has none, and the pause. */
enum { MOST_REFUSALS = 1000, REFUSAL_US = 1000 };

/** struct range - a range that is transferred by several commands */
struct range {
	struct nvmepeer_ns *ns;
	enum nvmepeer_opcode opcode;
	uint64_t lba;		/* of the next command */
	uint64_t remaining;		/* blocks not yet submitted */
	uint32_t step;
	char *data;		/* of the next command */
	unsigned int in_flight;
	int result;		/* first failure; ends submission */
};

static void fill(struct io_uring *ring, struct range *range, unsigned int depth)
{
	size_t bytes = (size_t)range->step * range->ns->info.block_size;
	struct io_uring_sqe *sqe;

	while (range->remaining && range->in_flight < depth && !range->result) {
		sqe = io_uring_get_sqe(ring);
		if (!sqe)
			return;
		nvmepeer_prep_rw(sqe, range->ns, range->opcode, range->lba,
				 range->step, range->data);
		range->lba += range->step;
		range->remaining -= range->step;
		range->data += bytes;
		range->in_flight++;
	}
}

static void reap(struct io_uring *ring, struct range *range)
{
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;

	io_uring_for_each_cqe(ring, head, cqe) {
		if (cqe->res && !range->result)
			range->result = cqe->res;
		count++;
	}
	io_uring_cq_advance(ring, count);
	range->in_flight -= count;
}

/* Commands that the kernel has; the rest is still in the submission ring. */
static unsigned int submitted(const struct io_uring *ring, const struct range *range)
{
	return range->in_flight - io_uring_sq_ready(ring);
}

/* The kernel is short of memory or of room for completions: these pass. */
static bool is_transient(int result)
{
	return result == -EAGAIN || result == -EBUSY || result == -EINTR;
}

/*
 * Submit, and wait for a completion.  While the kernel refuses to submit, wait
 * for one of the commands that it has, which gives back what it lacks; without
 * any, wait a little, for a limited number of times.
 */
static int submit_and_wait(struct io_uring *ring, const struct range *range, unsigned int *refusals)
{
	int result = io_uring_submit_and_wait(ring, 1);
	struct io_uring_cqe *cqe;

	if (result >= 0 || !is_transient(result)) {
		*refusals = 0;
		return result;
	}
	if (submitted(ring, range)) {
		result = io_uring_wait_cqe(ring, &cqe);
		return result == -EINTR || result == -EAGAIN ? 0 : result;
	}
	if (++*refusals == MOST_REFUSALS)
		return result;
	usleep(REFUSAL_US);
	return 0;
}

/*
 * The ring is unusable.  The controller may still access the data of submitted
 * commands: wait for their completions, as far as the ring delivers any.
 */
static void drain(struct io_uring *ring, struct range *range)
{
	struct io_uring_cqe *cqe;
	int result;

	while (submitted(ring, range)) {
		result = io_uring_wait_cqe(ring, &cqe);
		if (result < 0 && !is_transient(result))
			return;
		reap(ring, range);
	}
}

/*
 * Remove the entries that were not submitted: a later submission would transfer to
 * memory that the caller has back.  The ring has no others.  With IORING_SETUP_SQPOLL a
 * thread of the kernel takes entries at any time, and never refuses one.
 */
static void drop_unsubmitted(struct io_uring *ring)
{
	unsigned int head = __atomic_load_n(ring->sq.khead, __ATOMIC_ACQUIRE);

	if (ring->flags & IORING_SETUP_SQPOLL)
		return;
	ring->sq.sqe_head = head;
	ring->sq.sqe_tail = head;
	__atomic_store_n(ring->sq.ktail, head, __ATOMIC_RELEASE);
}

static int range_failed(const struct range *range)
{
	struct failure failure;

	failure_init(&failure, range->opcode == NVMEPEER_OP_READ ? CALL_READ : CALL_WRITE,
		     range->result, range->ns->node);
	failure.request.command.data_len = range->step;
	return failure_record(&failure);
}

int nvmepeer_uring_rw(struct io_uring *ring, struct nvmepeer_ns *ns,
		      enum nvmepeer_opcode opcode, uint64_t lba,
		      uint64_t blocks, uint32_t step, void *data,
		      unsigned int depth)
{
	struct range range = {
		.ns = ns,
		.opcode = opcode,
		.lba = lba,
		.remaining = blocks,
		.step = step,
		.data = data,
	};
	unsigned int refusals = 0;
	int result;

	if (!step || !depth || blocks % step)
		range.result = -EINVAL;
	while (range.in_flight || (range.remaining && !range.result)) {
		fill(ring, &range, depth);
		result = submit_and_wait(ring, &range, &refusals);
		if (result < 0) {
			range.result = range.result ? range.result : result;
			drain(ring, &range);
			drop_unsubmitted(ring);
			break;
		}
		reap(ring, &range);
	}
	return range.result ? range_failed(&range) : 0;
}
