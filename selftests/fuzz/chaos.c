// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets, rescans, unbinds and binds concurrently with the fuzzer's calls: see chaos.h.
 */
#include "chaos.h"
#include "random.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "nptest.h"

static void on_controller(struct fuzz_thread *thread, unsigned long cmd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/nvmep%u", fuzz_below(thread, 3));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	np_ioctl(fd, cmd, NULL);
	close(fd);
}

static void rebind(struct fuzz_thread *thread)
{
	char address[16];

	if (np_function_address(fuzz_one_in(thread, 2) ? "np0" : "np1", address))
		return;
	np_unbind(address);
	np_sleep_ms((int)fuzz_below(thread, 50));
	np_bind(address);
}

static void event(struct fuzz_thread *thread)
{
	switch (fuzz_below(thread, 8)) {
	case 0:
		rebind(thread);
		break;
	case 1:
	case 2:
		on_controller(thread, NVME_IOCTL_RESCAN);
		break;
	default:
		on_controller(thread, NVME_IOCTL_RESET);
	}
}

void *fuzz_chaos_thread(void *argument)
{
	struct fuzz_chaos *chaos = argument;
	struct fuzz_thread thread = { .random = chaos->seed };

	while (!atomic_load(chaos->stop)) {
		np_sleep_ms((int)fuzz_below(&thread, 400));
		event(&thread);
		chaos->events++;
	}
	np_bind_all();
	return NULL;
}
