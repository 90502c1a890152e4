// SPDX-License-Identifier: GPL-2.0-only
/*
 * badctrl: an NVMe controller that misbehaves on command, for tests of
 * nvme-peer in virtual machines.
 *
 *	badctrl --socket PATH
 *
 * A PCI function to QEMU's vfio-user-pci.  How it fails is set by words in its
 * config space (badctrl.h); at power-on it does not even become ready.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "registers.h"
#include "worker.h"

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

	ret = pthread_create(&worker, NULL, bad_work, ctrl);
	if (ret)
		return -ret;
	ret = serve(ctrl->vfu, path);
	unlink(path);
	pthread_mutex_lock(&ctrl->lock);
	ctrl->leaving = true;
	pthread_cond_signal(&ctrl->wake);
	pthread_mutex_unlock(&ctrl->lock);
	pthread_join(worker, NULL);
	return ret;
}

static void *map_disk(void)
{
	return mmap(NULL, BADCTRL_DISK_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(int argc, char **argv)
{
	static struct bad ctrl = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	int ret;

	if (argc != 3 || strcmp(argv[1], "--socket")) {
		fputs("usage: badctrl --socket PATH\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	bad_defaults(&ctrl);
	ctrl.disk = map_disk();
	ctrl.saved = map_disk();
	ctrl.vfu = vfu_create(&bad_device, &ctrl);
	if (ctrl.disk == MAP_FAILED || ctrl.saved == MAP_FAILED || !ctrl.vfu)
		return 1;
	ret = run(&ctrl, argv[2]);
	if (ret)
		fprintf(stderr, "badctrl: %s\n", strerror(-ret));
	vfu_destroy(ctrl.vfu);
	return ret ? 1 : 0;
}
