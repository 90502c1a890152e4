// SPDX-License-Identifier: GPL-2.0-only
/*
 * softgpu: a software GPU for tests of nvme-peer in virtual machines.
 *
 *	softgpu --socket PATH [--hbm-mb N] [--once] [--share DIRECTORY] [--engine cuda]
 *
 * A PCI function for QEMU's vfio-user-pci: memory in a BAR, bus mastering, an interrupt, and
 * engines that run programs over the device library, like real GPUs (softgpu_regs.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <badctrl.h>

#include "engine.h"
#include "manifest.h"
#include "memory.h"
#include "offload.h"
#include "programs_io.h"
#include "programs_memory.h"
#include "registers.h"

/* Address space of HBM and of the page table. */
#define ADDRESS_SPACE	(GPU_MMU_VA - GPU_HBM_VA + (1ULL << 40))

struct options {
	const char *socket;
	uint64_t hbm_bytes;
	bool once;
	const char *share;
	bool cuda;
	const char *kernel;
};

static _Noreturn void usage(void)
{
	fputs("usage: softgpu --socket PATH [--hbm-mb N] [--once] [--share DIRECTORY]\n"
	      "               [--engine cpu|cuda] [--kernel FILE]\n"
	      "  --socket PATH  unix socket to listen on for QEMU's vfio-user-pci\n"
	      "  --hbm-mb N     memory in MiB, a power of two (64)\n"
	      "  --once         end when the first client leaves\n"
	      "  --share DIR    what this process and the controller's share: memory, doorbells\n"
	      "  --engine cuda  programs on blocks run on a GPU of NVIDIA's (cpu)\n"
	      "  --kernel FILE  of --engine cuda: those programs (softgpu.cubin beside this one)\n",
	      stderr);
	exit(2);
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "hbm-mb", required_argument, NULL, 'm' },
		{ "once", no_argument, NULL, '1' },
		{ "share", required_argument, NULL, 'd' },
		{ "engine", required_argument, NULL, 'e' },
		{ "kernel", required_argument, NULL, 'k' },
		{ 0 }
	};
	char *end = "";
	int option;

	*options = (struct options){ .hbm_bytes = 64ULL << 20 };
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's')
			options->socket = optarg;
		else if (option == 'm')
			options->hbm_bytes = strtoull(optarg, &end, 10) << 20;
		else if (option == '1')
			options->once = true;
		else if (option == 'd')
			options->share = optarg;
		else if (option == 'k')
			options->kernel = optarg;
		else if (option == 'e' && !strcmp(optarg, "cuda"))
			options->cuda = true;
		else if (option != 'e' || strcmp(optarg, "cpu"))
			usage();
	}
	if (!options->socket || optind != argc || *end ||
	    options->hbm_bytes < (1ULL << 20) ||
	    options->hbm_bytes > GPU_MMU_VA - GPU_HBM_VA ||
	    (options->hbm_bytes & (options->hbm_bytes - 1)))
		usage();
}

static int open_share(struct gpu *gpu, const char *share)
{
	gpu->share = share ? open(share, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return share && gpu->share < 0 ? -errno : 0;
}

static int open_memory(const struct gpu *gpu)
{
	if (gpu->share < 0)
		return memfd_create("softgpu-hbm", MFD_CLOEXEC);
	return openat(gpu->share, BADCTRL_SHARED_MEMORY, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);
}

/*
 * HBM is mapped at its GPU address. The rest of the GPU address space is reserved and
 * inaccessible, so that a program that dereferences such an address faults.
 */
static int make_hbm(struct gpu *gpu)
{
	void *wanted = (void *)(uintptr_t)GPU_HBM_VA;

	gpu->hbm_fd = open_memory(gpu);
	if (gpu->hbm_fd < 0 ||
	    ftruncate(gpu->hbm_fd, (off_t)gpu->hbm_bytes))
		return -errno;
	if (mmap(wanted, ADDRESS_SPACE, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		 MAP_FIXED_NOREPLACE, -1, 0) != wanted)
		return -ENOMEM;
	if (mmap(wanted, gpu->hbm_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, gpu->hbm_fd, 0) != wanted)
		return -errno;
	gpu->hbm = wanted;
	return 0;
}

/* The kernel is in the directory of the program. */
static int start_offload(struct gpu *gpu, const struct options *options)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(".cubin"));

	if (!options->cuda)
		return 0;
	if (length < 0)
		return -errno;
	strcpy(path + length, ".cubin");
	gpu->offload_run = offload_run;
	return offload_start(gpu, options->kernel ? options->kernel : path);
}

static const struct program *find_program(uint32_t number)
{
	const struct program *program = io_program(number);

	if (!program)
		program = memory_program(number);
	return program ? program : manifest_program(number);
}

static int serve(struct gpu *gpu, const struct options *options)
{
	int listener = vfu_listen(options->socket), client, ret;

	if (listener < 0)
		return listener;
	do {
		client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0)
			return -errno;
		ret = vfu_serve(gpu->vfu, client);
		if (ret)
			fprintf(stderr, "softgpu: client: %s\n", strerror(-ret));
	} while (!options->once);
	unlink(options->socket);
	return 0;
}

int main(int argc, char **argv)
{
	static struct gpu gpu;
	struct vfu_device device;
	struct options options;
	int ret;

	parse(argc, argv, &options);
	/* End with the runner, even if it is killed. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* Programs wait for shorter times than the default slack. */
	prctl(PR_SET_TIMERSLACK, 1000);
	gpu.hbm_bytes = options.hbm_bytes;
	/* A GPU has the second half for itself, if the controller can have it move data. */
	gpu.window = options.cuda && options.share ? gpu.hbm_bytes / 2 : gpu.hbm_bytes;
	gpu.most_threads = SOFTGPU_MAX_THREADS;
	ret = open_share(&gpu, options.share) ?: make_hbm(&gpu);
	if (!ret)
		ret = start_offload(&gpu, &options);
	if (!ret) {
		gpu_describe(&gpu, &device);
		gpu.vfu = vfu_create(&device, &gpu, -1);
		ret = gpu.vfu ? memory_start(&gpu) : -ENOMEM;
	}
	if (!ret)
		ret = engines_start(&gpu, find_program);
	if (!ret) {
		ret = serve(&gpu, &options);
		engines_exit(&gpu);
		memory_exit(&gpu);
	}
	if (ret)
		fprintf(stderr, "softgpu: %s\n", strerror(-ret));
	return ret ? 1 : 0;
}
