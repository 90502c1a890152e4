// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * uring.c: the CPU reads 64 blocks through io_uring, all in flight at once.  It needs no
 * queue pair, only the permission to open the node.
 * The namespace is an optional argument.
 *
 *	cc uring.c $(pkg-config --cflags --libs libnvmepeer) -luring
 */
#include <stdio.h>
#include <stdlib.h>

#include <nvmepeer_uring.h>

enum { READS = 64 };

static int fail(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

/* A completion has 0, a positive NVMe status or a negative errno. */
static int reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;
	int good = 0;

	io_uring_for_each_cqe(ring, head, cqe) {
		good += cqe->res == 0;
		count++;
	}
	io_uring_cq_advance(ring, count);
	return good;
}

static int submit(struct io_uring *ring, const struct nvmepeer_ns *ns, char *data)
{
	size_t block = nvmepeer_ns_info(ns)->block_size;
	struct io_uring_sqe *sqe;

	for (unsigned int i = 0; i < READS; i++) {
		sqe = io_uring_get_sqe(ring);
		if (!sqe)
			return -1;
		nvmepeer_prep_rw(sqe, ns, NVMEPEER_OP_READ, i, 1, data + i * block);
	}
	return io_uring_submit_and_wait(ring, READS);
}

int main(int argc, char **argv)
{
	struct nvmepeer_ns *ns;
	struct io_uring ring;
	char *data;
	int good;

	if (nvmepeer_ns_open(argc > 1 ? argv[1] : "ngp0n1", &ns) || nvmepeer_uring_init(&ring, READS))
		return fail();
	data = aligned_alloc(4096, (size_t)READS * nvmepeer_ns_info(ns)->block_size);
	if (!data || submit(&ring, ns, data) < 0)
		return 1;
	good = reap(&ring);
	printf("%d of %d reads succeeded\n", good, READS);
	io_uring_queue_exit(&ring);
	nvmepeer_ns_close(ns);
	free(data);
	return good != READS;
}
