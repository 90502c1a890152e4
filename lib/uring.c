// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The part of io_uring I/O that is not worth inlining: making the ring, and
 * moving a large range.
 */
#include <nvmepeer_uring.h>

#include "internal.h"

int nvmepeer_uring_init(struct io_uring *ring, unsigned int depth)
{
	int result = io_uring_queue_init(depth, ring, IORING_SETUP_SQE128 |
						      IORING_SETUP_CQE32);

	return result < 0 ? failure_tell(CALL_URING, result, "io_uring") : result;
}

/** struct range - a range on its way, command by command */
struct range {
	struct nvmepeer_ns *ns;
	enum nvmepeer_opcode opcode;
	uint64_t lba;		/* of the next command */
	uint64_t left;		/* blocks not yet submitted */
	uint32_t step;
	char *data;		/* of the next command */
	unsigned int in_flight;
	int result;		/* first failure, ends submission */
};

static void fill(struct io_uring *ring, struct range *range, unsigned int depth)
{
	size_t bytes = (size_t)range->step * range->ns->info.block_size;
	struct io_uring_sqe *sqe;

	while (range->left && range->in_flight < depth && !range->result) {
		sqe = io_uring_get_sqe(ring);
		if (!sqe)
			return;
		nvmepeer_prep_rw(sqe, range->ns, range->opcode, range->lba,
				 range->step, range->data);
		range->lba += range->step;
		range->left -= range->step;
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

static int range_failed(const struct range *range)
{
	struct failure failure;

	failure_init(&failure, range->opcode == NVMEPEER_OPCODE_READ ? CALL_READ : CALL_WRITE,
		     range->result, range->ns->node);
	failure.request.command.data_len = range->step;
	return failure_note(&failure);
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
		.left = blocks,
		.step = step,
		.data = data,
	};
	int result;

	if (!step || !depth || blocks % step)
		range.result = -EINVAL;
	while (range.in_flight || (range.left && !range.result)) {
		fill(ring, &range, depth);
		result = io_uring_submit_and_wait(ring, 1);
		/* An interrupted wait has submitted; anything else lost the ring. */
		if (result < 0 && result != -EINTR) {
			range.result = result;
			break;
		}
		reap(ring, &range);
	}
	return range.result ? range_failed(&range) : 0;
}
