// SPDX-License-Identifier: GPL-2.0-only
/*
 * badctrl: a fault-injecting NVMe controller for tests of nvme-peer in virtual machines.
 *
 *	badctrl --socket PATH [--share DIRECTORY] [--disk-mb N] [--pollers N]
 *
 * It is a PCI function for QEMU's vfio-user-pci. Words in its config space select the faults
 * (badctrl.h); at power-on it does not become ready. With --share its doorbells are in a file
 * that other processes map, and it polls them, with --pollers by several threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mover.h"
#include "poller.h"
#include "registers.h"
#include "worker.h"

struct options {
	const char *socket;
	const char *share;
	size_t disk_bytes;
	unsigned int pollers;
};

static int serve(struct vfu *vfu, const char *path)
{
	int listener = vfu_listen(path), client;

	if (listener < 0)
		return listener;
	client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (client < 0)
		return -errno;
	return vfu_serve(vfu, client);
}

static int run(struct bad *ctrl, const char *path)
{
	pthread_t worker;
	int ret;

	ret = bad_pollers_start(ctrl) ?: pthread_create(&worker, NULL, bad_work, ctrl);
	if (ret)
		return -ret;
	ret = serve(ctrl->vfu, path);
	unlink(path);
	pthread_mutex_lock(&ctrl->lock);
	ctrl->leaving = true;
	pthread_cond_signal(&ctrl->wake);
	pthread_mutex_unlock(&ctrl->lock);
	pthread_join(worker, NULL);
	bad_pollers_join(ctrl);
	return ret;
}

static void *map(size_t bytes, int flags, int fd)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* In a file if a GPU moves data. */
static void *map_disk(const struct bad *ctrl, size_t bytes, int folder)
{
	int fd;

	if (!ctrl->mover)
		return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fd = openat(folder, BADCTRL_SHARED_DISK, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return NULL;
	__atomic_store_n(&ctrl->mover->disk_bytes, ctrl->namespace_bytes, __ATOMIC_RELEASE);
	return map(bytes, MAP_SHARED, fd);
}

static bool make_disk(struct bad *ctrl, int folder)
{
	size_t bytes = bad_disk_bytes(ctrl);

	ctrl->disk = map_disk(ctrl, bytes, folder);
	ctrl->saved = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	ctrl->dirty = calloc(bytes / BAD_BLOCK, sizeof(*ctrl->dirty));
	return ctrl->disk && ctrl->saved && ctrl->dirty;
}

/* BAR0 in a shared file or in private memory. */
static bool make_registers(struct bad *ctrl, int folder)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	if (folder >= 0) {
		fd = openat(folder, BADCTRL_SHARED_BAR,
			    O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, BADCTRL_BAR_BYTES))
			return false;
		flags = MAP_SHARED;
		ctrl->polled = true;
	}
	ctrl->registers = map(BADCTRL_BAR_BYTES, flags, fd);
	return ctrl->registers &&
	       getrandom(&ctrl->token, sizeof(ctrl->token), 0) == sizeof(ctrl->token);
}

static bool make(struct bad *ctrl, const struct options *options)
{
	int folder = -1, neighbour = -1;

	if (options->share) {
		folder = open(options->share, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (folder < 0)
			return false;
		neighbour = openat(folder, BADCTRL_SHARED_MEMORY, O_RDWR | O_CLOEXEC);
	}
	ctrl->namespace_bytes = options->disk_bytes;
	ctrl->poller_count = options->pollers;
	if (!bad_mover_open(ctrl, folder) || !make_disk(ctrl, folder) ||
	    !make_registers(ctrl, folder))
		return false;
	bad_defaults(ctrl);
	ctrl->vfu = vfu_create(&bad_device, ctrl, neighbour);
	return ctrl->vfu;
}

static _Noreturn void usage(void)
{
	fputs("usage: badctrl --socket PATH [--share DIRECTORY] [--disk-mb N] [--pollers N]\n",
	      stderr);
	exit(2);
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "share", required_argument, NULL, 'd' },
		{ "disk-mb", required_argument, NULL, 'm' },
		{ "pollers", required_argument, NULL, 'p' },
		{ 0 }
	};
	int option;

	*options = (struct options){ .disk_bytes = BADCTRL_NAMESPACE_BYTES };
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's')
			options->socket = optarg;
		else if (option == 'd')
			options->share = optarg;
		else if (option == 'm')
			options->disk_bytes = strtoul(optarg, NULL, 10) << 20;
		else if (option == 'p')
			options->pollers = (unsigned int)strtoul(optarg, NULL, 10);
		else
			usage();
	}
	if (!options->socket || optind != argc || !options->disk_bytes ||
	    options->pollers > BAD_POLLERS_MAX || (options->pollers && !options->share))
		usage();
}

int main(int argc, char **argv)
{
	static struct bad ctrl = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	struct options options;
	int ret;

	parse(argc, argv, &options);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!make(&ctrl, &options)) {
		perror("badctrl");
		return 1;
	}
	ret = run(&ctrl, options.socket);
	if (ret)
		fprintf(stderr, "badctrl: %s\n", strerror(-ret));
	vfu_destroy(ctrl.vfu);
	return ret ? 1 : 0;
}
