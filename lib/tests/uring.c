// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: a transfer through io_uring while
 * submissions are refused.  The linker redirects liburing's calls here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../internal.h"

#include "kselftest_harness.h"

#include <nvmepeer_uring.h>

enum { DEPTH = 8, BLOCK = 512 };

/*
 * The kernel's side of a ring.  Of submissions number @first_refusal and so many
 * @refusals more fail with @refusal, after the kernel has taken one entry.
 */
static struct {
	struct io_uring ring;
	struct io_uring_sqe sqes[2 * DEPTH];
	struct io_uring_cqe cqes[4 * DEPTH];
	unsigned int sq_head, sq_tail, cq_head, cq_tail, cq_flags;
	unsigned int calls, first_refusal, refusals, in_flight, most, done;
	int refusal;
} kernel;

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int count);
int __wrap___io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **cqe,
			      unsigned int submit, unsigned int count, sigset_t *mask);

static void take(unsigned int count)
{
	kernel.sq_head += count;
	kernel.in_flight += count;
	kernel.most = kernel.in_flight > kernel.most ? kernel.in_flight : kernel.most;
}

/* One command completes. */
static void complete(void)
{
	struct io_uring_cqe *cqe = &kernel.cqes[(kernel.cq_tail & (2 * DEPTH - 1)) << 1];

	memset(cqe, 0, 2 * sizeof(*cqe));
	kernel.cq_tail++;
	kernel.in_flight--;
	kernel.done++;
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int count)
{
	unsigned int ready = ring->sq.sqe_tail - kernel.sq_head, call = kernel.calls++;

	if (call >= kernel.first_refusal && call - kernel.first_refusal < kernel.refusals) {
		take(ready && kernel.refusal != -EBUSY ? 1 : 0);
		return kernel.refusal;
	}
	take(ready);
	if (count && kernel.in_flight)
		complete();
	return (int)ready;
}

int __wrap___io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **cqe,
			      unsigned int submit, unsigned int count, sigset_t *mask)
{
	(void)ring;
	(void)submit;
	(void)count;
	(void)mask;
	/* A real ring would wait for ever. */
	if (!kernel.in_flight)
		abort();
	complete();
	*cqe = &kernel.cqes[(kernel.cq_head & (2 * DEPTH - 1)) << 1];
	return 0;
}

static void ring_reset(void)
{
	struct io_uring *ring = &kernel.ring;

	memset(&kernel, 0, sizeof(kernel));
	ring->flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	ring->sq.khead = &kernel.sq_head;
	ring->sq.ktail = &kernel.sq_tail;
	ring->sq.kflags = &kernel.cq_flags;
	ring->sq.sqes = kernel.sqes;
	ring->sq.ring_mask = DEPTH - 1;
	ring->sq.ring_entries = DEPTH;
	ring->cq.khead = &kernel.cq_head;
	ring->cq.ktail = &kernel.cq_tail;
	ring->cq.kflags = &kernel.cq_flags;
	ring->cq.cqes = kernel.cqes;
	ring->cq.ring_mask = 2 * DEPTH - 1;
	ring->cq.ring_entries = 2 * DEPTH;
}

static int transfer(uint64_t blocks)
{
	static struct nvmepeer_ns ns = { .fd = -1, .info = { .block_size = BLOCK } };
	static char data[64 * BLOCK];

	return nvmepeer_uring_rw(&kernel.ring, &ns, NVMEPEER_OP_READ, 0, blocks, 1, data, DEPTH);
}

TEST(whole_range_is_transferred)
{
	ring_reset();
	EXPECT_EQ(transfer(64), 0);
	EXPECT_EQ(kernel.done, 64);
	EXPECT_EQ(kernel.in_flight, 0);
	EXPECT_EQ(kernel.most, DEPTH);
}

/* EAGAIN: no memory for requests.  EBUSY: too many completions to be consumed. */
TEST(refused_submissions_are_repeated)
{
	static const int refusals[] = { -EAGAIN, -EBUSY, -EINTR };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		for (unsigned int first = 0; first < 20; first += 3) {
			ring_reset();
			kernel.refusal = refusals[i];
			kernel.first_refusal = first;
			kernel.refusals = 5;
			EXPECT_EQ(transfer(64), 0)
				TH_LOG("error %d from submission %u on", refusals[i], first);
			EXPECT_EQ(kernel.done, 64);
			EXPECT_EQ(kernel.in_flight, 0);
		}
	}
}

/* A ring that refused a submission has no entries of it, and can be used again. */
TEST(failed_transfer_leaves_no_entries)
{
	for (unsigned int first = 0; first < 20; first += 6) {
		ring_reset();
		kernel.refusal = -EBADF;
		kernel.first_refusal = first;
		kernel.refusals = 1;
		EXPECT_EQ(transfer(64), -EBADF);
		EXPECT_EQ(io_uring_sq_ready(&kernel.ring), 0);
		kernel.done = 0;
		EXPECT_EQ(transfer(16), 0);
		EXPECT_EQ(kernel.done, 16) TH_LOG("failure of submission %u", first);
	}
}

/* EBUSY for good, with nothing in flight: ends after a second. */
TEST(nothing_is_in_flight_after_a_failure)
{
	for (unsigned int first = 0; first < 20; first += 5) {
		ring_reset();
		kernel.refusal = first ? -EBADF : -EBUSY;
		kernel.first_refusal = first;
		kernel.refusals = ~0u;
		EXPECT_EQ(transfer(64), kernel.refusal);
		EXPECT_EQ(kernel.in_flight, 0)
			TH_LOG("failure from submission %u on", first);
	}
}

TEST_HARNESS_MAIN
