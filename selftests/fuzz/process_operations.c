// SPDX-License-Identifier: GPL-2.0-only
/* Files and mappings that are passed on: through a socket, and by fork(). */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"

/* Descriptors in flight are queued here; closing the pair drops them. */
static __thread int ends[2] = { -1, -1 };

static bool open_socket(void)
{
	return ends[0] >= 0 || !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

static void close_socket(void)
{
	close(ends[0]);
	close(ends[1]);
	ends[0] = -1;
	ends[1] = -1;
}

/*
 * Send a file through the socket and close it here at times; receive it later, or never.
 */
static void pass(struct fuzz_thread *thread)
{
	struct fuzz_resource resource = { .fd = -1 };

	if (!open_socket())
		return;
	if (fuzz_one_in(thread, 2) &&
	    fuzz_take(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_HANDLE), &resource)) {
		np_send_file(ends[0], &resource, sizeof(resource), resource.fd);
		if (fuzz_is_lasting(thread, resource.kind) || fuzz_one_in(thread, 2))
			fuzz_add(thread, &resource);
		else
			fuzz_drop(&resource);
	}
	if (fuzz_one_in(thread, 2)) {
		resource.fd = np_receive_file(ends[1], &resource, sizeof(resource));
		if (resource.fd >= 0)
			fuzz_add(thread, &resource);
	}
	if (fuzz_one_in(thread, 8))
		close_socket();
}

/*
 * The child has all files and mappings too, uses one of each and exits with them. A store
 * of 0 to the first word is harmless: see store().
 */
static void child(const struct fuzz_resource *mapping, const struct fuzz_resource *qp)
{
	struct nvme_peer_qp_info info;

	if (mapping->map)
		np_store((uint8_t *)mapping->map + mapping->offset, 0);
	if (qp->fd >= 0)
		np_qp_info(qp->fd, &info);
	_exit(0);
}

static void fork_child(struct fuzz_thread *thread)
{
	struct fuzz_resource mapping = { 0 }, qp = { .fd = -1 };
	bool mapped;
	pid_t pid;

	/* fork() is as expensive as a hundred other calls. */
	if (!fuzz_one_in(thread, 4))
		return;
	mapped = fuzz_take(thread, FUZZ_MAP, &mapping);
	fuzz_pick(thread, FUZZ_QP, &qp);
	pid = fork();
	if (!pid)
		child(&mapping, &qp);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	else
		fuzz_result(thread, "fork", -errno);
	if (mapped)
		fuzz_add(thread, &mapping);
}

const struct fuzz_operation fuzz_process_operations[] = {
	{ "pass", 4, false, pass },
	{ "fork", 1, false, fork_child },
	{ NULL }
};
