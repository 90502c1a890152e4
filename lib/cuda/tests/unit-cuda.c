// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-cuda.c: the CUDA glue with a fake libcuda and a fake kernel: what it
 * creates, and that every error has its own errno and an explanation with the
 * fix, and leaks nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvmepeer_serve.h>

#include "../internal.h"
#include "../list_kernel.h"
#include "../pages_kernel.h"
#include "../../../selftests/device/controller.h"
#include "../../../selftests/lib/ktap.h"
#include "fake.h"

enum { ENTRIES = 64, QUEUES = 3, BYTES = 1 << 20 };

static void *fake_cuda;

/* Stands in for the caller's GPU memory. */
static char memory[(1 << 20) + (1 << 16)] __attribute__((aligned(1 << 16)));
static const struct nvmepeer_ns_info namespace = { sizeof(namespace), 1, 512, 0, 1 << 20 };

static int *fake_int(const char *name)
{
	return dlsym(fake_cuda, name);
}

/* The next call of libcuda's @call fails with @error. */
static void refuse(const char *call, int error)
{
	char text[80];

	snprintf(text, sizeof(text), "%s=%d", call, error);
	setenv("FAKE_CUDA_FAIL", text, 1);
}

/* Is the failure as expected, with an explanation? */
static bool fails_with(int got, int expected, const char *message)
{
	struct nvmepeer_explanation why;

	unsetenv("FAKE_CUDA_FAIL");
	fake.fail_command = 0;
	if (got == expected && nvmepeer_explain(&why, sizeof(why)) == expected && why.call && why.what[0] &&
	    (strstr(why.limit, message) || strstr(why.help, message)))
		return true;
	nvmepeer_explain(&why, sizeof(why));
	printf("# got %d, expected %d with '%s': %s: %s. %s. %s.\n", got, expected, message,
	       why.call, why.what, why.limit, why.help);
	return false;
}

/* The lowest free descriptor: a leaked dma-buf would hold it. */
static int next_descriptor(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD, 0);

	close(fd);
	return fd;
}

/*
 * Has a call used the legacy stream, which waits for kernels and which kernels
 * on non-blocking streams do not wait for, or invalidated another stream's
 * capture?
 */
static bool other_streams_undisturbed(void)
{
	if (!*fake_int("fake_legacy") && !*fake_int("fake_capture_broken"))
		return true;
	printf("# %d calls on the legacy stream, %d that invalidate a capture\n",
	       *fake_int("fake_legacy"), *fake_int("fake_capture_broken"));
	*fake_int("fake_legacy") = *fake_int("fake_capture_broken") = 0;
	return false;
}

/* Has everything been released? */
static bool nothing_left(int files)
{
	static int descriptor;

	if (!other_streams_undisturbed())
		return false;

	descriptor = descriptor ? descriptor : next_descriptor();
	if (!*fake_int("fake_allocations") && !*fake_int("fake_registrations") &&
	    !*fake_int("fake_contexts") && fake.open_files == files && !fake.buffers &&
	    next_descriptor() == descriptor)
		return true;
	printf("# left: %d allocations, %d registrations, %d contexts, %d files, %d buffers\n",
	       *fake_int("fake_allocations"), *fake_int("fake_registrations"),
	       *fake_int("fake_contexts"), fake.open_files - files, fake.buffers);
	return false;
}

static bool opening(const char *library, const char *old)
{
	struct nvmepeer_cuda *cuda;
	bool good;

	setenv("NVMEPEER_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
	good = fails_with(nvmepeer_cuda_open(0, &cuda), -ENOENT, "install NVIDIA's driver");
	setenv("NVMEPEER_LIBCUDA", old, 1);
	good = fails_with(nvmepeer_cuda_open(0, &cuda), -ENOSYS, "cuMemGetHandleForAddressRange") && good;
	setenv("NVMEPEER_LIBCUDA", library, 1);
	refuse("cuInit", 100);
	good = fails_with(nvmepeer_cuda_open(0, &cuda), -ENODEV, "cuInit") && good;
	refuse("cuDevicePrimaryCtxRetain", 46);
	good = fails_with(nvmepeer_cuda_open(0, &cuda), -ENODEV, "exclusive") && good;
	refuse("cuStreamCreate", 2);
	good = fails_with(nvmepeer_cuda_open(0, &cuda), -EIO, "cuStreamCreate") && good;
	return fails_with(nvmepeer_cuda_open(3, &cuda), -ENODEV, "no CUDA device 3") && good;
}

/* Answers of the controller for rings in GPU memory. */
static void set_device_answers(void)
{
	fake_reset();
	fake.qp_info.sq_entries = fake.qp_info.cq_entries = ENTRIES;
	fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1;
}

static int try_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, uint32_t entries,
		      uint32_t count)
{
	struct nvmepeer_cuda_queues *queues;
	int error = nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, entries, count, &queues);

	if (!error)
		nvmepeer_cuda_queues_close(queues);
	return error;
}

/*
 * Rings, PRP lists and states of several queue pairs: in one allocation,
 * without overlap.
 */
static bool queues_are_apart(const struct nvmepeer_cuda_queues *queues)
{
	for (uint32_t i = 0; i < queues->count; i++) {
		const struct nvmepeer_queue *queue = &queues->queues[i];
		uint64_t base = queue->sq, end = base + (queues->device ?
			((uint64_t)(uintptr_t)queues->device - queues->queues[0].sq) / queues->count : 0);

		if (queue->cq < base + 64 * ENTRIES || queue->list_area < queue->cq + 16 * ENTRIES ||
		    (uintptr_t)queue->state < queue->list_area + 4ull * ENTRIES * queue->list_bytes ||
		    (uintptr_t)(queue->abandoned_cids + 4 * ENTRIES / 32) > end)
			return false;
		if (queue->list_memory.dma != 0x10000000 + queue->list_area - queues->queues[0].sq)
			return false;
	}
	return true;
}

/* Each queue pair has a status page and a control page for kernels. */
static bool pages_are_set(const struct nvmepeer_cuda_queues *queues)
{
	for (uint32_t i = 0; i < queues->count; i++) {
		const struct nvmepeer_queue *queue = &queues->queues[i];

		if (!queue->status || !queue->control || queue->status == queue->control ||
		    nvmepeer_queue_quiesce(queue) || *(uint32_t *)(uintptr_t)queue->control != 1)
			return false;
	}
	return true;
}

static bool opening_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	bool good;

	set_device_answers();
	fake.open_files = files;
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues))
		return fails_with(0, 1, "");
	good = nvmepeer_cuda_queues_count(queues) == QUEUES && queues_are_apart(queues) &&
	       !memcmp(nvmepeer_cuda_queues_device(queues), nvmepeer_cuda_queues_host(queues),
		       QUEUES * sizeof(struct nvmepeer_queue)) &&
	       queues->queues[2].state->credits == ENTRIES - 1 &&
	       !(queues->queues[2].flags & NVMEPEER_CQ_APART_FROM_DATA) &&
	       fake.open_files == files + QUEUES &&
	       *fake_int("fake_registrations") == 3 * QUEUES && pages_are_set(queues);
	nvmepeer_cuda_queues_close(queues);
	fake.table_break = 40;		/* inside the PRP lists */
	good = good && !nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues) &&
	       queues->queues[0].list_memory.pages &&
	       *(uint64_t *)(uintptr_t)queues->queues[0].list_memory.pages ==
		       0x10000000 + queues->queues[0].list_area - queues->queues[0].sq;
	nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

/*
 * A failed open keeps its GPU memory, since libcuda waits for all kernels when it
 * frees some.  The next open of that size takes it.
 */
static bool nothing_left_but_kept(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files,
				  uint32_t count)
{
	int kept = *fake_int("fake_allocations");

	return kept <= 1 && !try_queues(ctrl, cuda, ENTRIES, count) && nothing_left(files);
}

/* Each step of open fails once, and waits for no kernel. */
static bool queues_refused(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	static const struct {
		const char *call;
		int cuda, result;
		const char *message;
	} cases[] = {
		{ "cuMemAlloc_v2", 2, -ENOMEM, "fewer entries" },
		{ "cuMemsetD8Async", 719, -EIO, "cuMemsetD8Async" },
		{ "cuMemGetHandleForAddressRange", 801, -EOPNOTSUPP, "nvidia-open" },
		{ "cuMemHostRegister_v2", 800, -EPERM, "CAP_SYS_ADMIN" },
		{ "cuMemHostRegister_v2", 1, -EFAULT, "570.133.07" },
		{ "cuMemHostRegister_v2", 304, -EFAULT, "dma_map_resource" },
		{ "cuMemHostRegister_v2", 801, -EOPNOTSUPP, "virtual machine" },
		{ "cuMemHostRegister_v2", 999, -EIO, "CUDA_ERROR_999" },
		{ "cuMemHostGetDevicePointer_v2", 1, -EIO, "cuMemHostGetDevicePointer" },
		{ "cuMemcpyHtoDAsync_v2", 700, -EIO, "cuMemcpyHtoDAsync" },
		{ "cuStreamSynchronize", 719, -EIO, "CUDA_ERROR_719" },
	};
	static const struct {
		unsigned long command;
		int error;
		const char *message;
	} kernel[] = {
		{ NVME_PEER_BUF_IMPORT, ENXIO, "host RAM" },
		{ NVME_PEER_QP_CREATE, EPERM, "CAP_SYS_RAWIO" },
		{ NVME_PEER_QP_EXPORT, EOPNOTSUPP, "other doorbell spacing" },
		{ NVME_PEER_BUF_TABLE, EPERM, "CAP_SYS_RAWIO" },
	};
	int frees;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse(cases[i].call, cases[i].cuda);
		good = fails_with(try_queues(ctrl, cuda, ENTRIES, QUEUES), cases[i].result,
			    cases[i].message) && nothing_left_but_kept(ctrl, cuda, files, QUEUES) && good;
	}
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++) {
		fake.fail_command = kernel[i].command;
		fake.fail_error = kernel[i].error;
		frees = *fake_int("fake_frees");
		good = fails_with(try_queues(ctrl, cuda, ENTRIES, QUEUES), -kernel[i].error,
			    kernel[i].message) && *fake_int("fake_frees") == frees &&
		       nothing_left_but_kept(ctrl, cuda, files, QUEUES) && good;
	}
	good = fails_with(try_queues(ctrl, cuda, 48, 1), -EINVAL, "power of two") && good;
	return fails_with(try_queues(ctrl, cuda, ENTRIES, 0), -EINVAL, "one queue pair") && good;
}

/*
 * The state that a device leaves: calls lost, entries in the completion ring.
 */
static void lose(const struct nvmepeer_cuda_queues *queues)
{
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	fake.qp_info.losses++;
	for (uint32_t i = 0; i < queues->count; i++) {
		const struct nvmepeer_queue *queue = &queues->queues[i];

		memset((void *)(uintptr_t)queue->cq, 0xff, 16 * ENTRIES);
		queue->state->credits = 3;
		queue->state->head = 5;
		queue->state->tail = (uint64_t)7 << NVP_TICKET_SHIFT;
		nvp_mark_lost(queue);
	}
}

/*
 * Empty, after @losses, with tickets that start at a new pass of
 * the ring.
 */
static bool is_rearmed(const struct nvmepeer_queue *queue, uint32_t losses)
{
	static const char zero[16 * ENTRIES];
	const struct nvmepeer_state *state = queue->state;
	uint32_t ticket = (uint32_t)(state->tail >> NVP_TICKET_SHIFT);

	return !memcmp((void *)(uintptr_t)queue->cq, zero, sizeof(zero)) && !state->lost &&
	       state->generation == losses && state->credits == ENTRIES - 1 && ticket > 7 &&
	       ticket % (2 * ENTRIES) == 0 && state->head == ticket &&
	       !(state->tail & NVP_TAIL_LOST);
}

/* A re-arm that failed halfway is completed by the next call. */
static bool rearm_refused(struct nvmepeer_cuda_queues *queues)
{
	static const struct {
		const char *call;
		const char *message;
	} cases[] = {
		{ "cuMemsetD8Async", "cuMemsetD8Async" },
		{ "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync" },
		{ "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync" },
	};
	bool good = true;

	queues->count = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		lose(queues);
		refuse(cases[i].call, 700);
		good = fails_with(nvmepeer_cuda_queues_rearm(queues, 0), -EIO, cases[i].message) && good;
		/*
		 * The kernel had re-armed it by then, except where the ring was
		 * not cleared.
		 */
		fake.qp_info.state = i ? NVME_PEER_QP_LIVE : NVME_PEER_QP_QUIESCED;
		good = good && !nvmepeer_cuda_queues_rearm(queues, 0) &&
		       is_rearmed(&queues->queues[0], fake.qp_info.losses);
	}
	lose(queues);
	fake.fail_command = NVME_PEER_QP_REARM;
	fake.fail_error = ESHUTDOWN;
	good = fails_with(nvmepeer_cuda_queues_rearm(queues, 0), -ESHUTDOWN, "") && good;
	fake.fail_command = NVME_PEER_QP_REARM;
	fake.fail_error = EAGAIN;
	good = fails_with(nvmepeer_cuda_queues_rearm(queues, 10), -ETIMEDOUT, "within the timeout") && good;
	fake.fail_command = 0;
	queues->count = QUEUES;
	return good;
}

/*
 * Each queue pair has a result of its own, and none keeps the others from being
 * re-armed.
 */
static bool rearm_of_each(struct nvmepeer_cuda_queues *queues)
{
	bool good;

	lose(queues);
	fake.rearm_refusals = 1;
	good = nvmepeer_cuda_queues_rearm(queues, 0) == -ESHUTDOWN &&
	       nvmepeer_cuda_queues_result(queues, 0) == -ESHUTDOWN;
	for (uint32_t i = 1; i < QUEUES; i++)
		good = good && !nvmepeer_cuda_queues_result(queues, i) &&
		       is_rearmed(&queues->queues[i], fake.qp_info.losses);
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && !nvmepeer_cuda_queues_result(queues, 0);
	return fails_with(nvmepeer_cuda_queues_result(queues, QUEUES), -EINVAL, "3 of 3") && good;
}

/*
 * The kernel's side of a quiesce: it takes the request, the queue pair stays
 * LIVE while its queues are deleted, and a completion still arrives.
 */
static const struct nvmepeer_queue *quiesced;
static int requests, steps;

static void quiesce_slowly(void)
{
	uint32_t *request = (uint32_t *)(uintptr_t)quiesced->control;

	requests += *request;
	if (*request)
		steps = 3;
	*request = 0;
	if (!steps || --steps)
		return;
	memset((void *)(uintptr_t)quiesced->cq, 0xff, 16 * ENTRIES);
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	fake.qp_info.losses++;
}

/* Is the queue pair re-armed after one request, and with clean rings? */
static bool comes_back(struct nvmepeer_cuda_queues *queues, int result)
{
	static const char zero[64 * ENTRIES];
	const struct nvmepeer_queue *queue = &queues->queues[0];

	return !result && requests && fake.losses == fake.qp_info.losses &&
	       is_rearmed(queue, fake.qp_info.losses) &&
	       queue->free_cids[0] == 0xffffffff && !queue->owners[3] &&
	       !memcmp((void *)(uintptr_t)queue->sq, zero, sizeof(zero));
}

static void use_up(struct nvmepeer_cuda_queues *queues)
{
	const struct nvmepeer_queue *queue = &queues->queues[0];

	fake.qp_info.state = NVME_PEER_QP_LIVE;
	quiesced = queue;
	requests = steps = 0;
	memset((void *)(uintptr_t)queue->sq, 0xff, 64 * ENTRIES);
	queue->state->tail = (uint64_t)9 << NVP_TICKET_SHIFT;
	queue->state->head = 5;
	queue->state->credits = 3;
	queue->free_cids[0] = 0xff;
	queue->owners[3] = NVP_OWNED;
}

/*
 * A queue pair that the kernel reports as LIVE but that kernels cannot use: an
 * exclusive owner timed out, tokens were left behind and the host gives up, or
 * a kernel has requested the quiesce.
 */
static bool rearm_of_live(struct nvmepeer_cuda_queues *queues)
{
	bool good;

	/* Completes the re-arm that failed last. */
	good = !nvmepeer_cuda_queues_rearm(queues, 0);
	queues->count = 1;
	fake.on_qp_info = quiesce_slowly;
	use_up(queues);
	nvp_mark_lost(&queues->queues[0]);
	good = good && fails_with(nvmepeer_cuda_queues_rearm(queues, 0), -ETIMEDOUT, "within the timeout") &&
	       comes_back(queues, nvmepeer_cuda_queues_rearm(queues, 1000));
	use_up(queues);
	good = good && !nvmepeer_cuda_queues_quiesce(queues, 0) &&
	       comes_back(queues, nvmepeer_cuda_queues_rearm(queues, 1000));
	use_up(queues);
	nvmepeer_queue_quiesce(&queues->queues[0]);
	nvp_mark_lost(&queues->queues[0]);
	good = good && comes_back(queues, nvmepeer_cuda_queues_rearm(queues, 1000));
	/* The kernel has taken the request and is deleting the queues. */
	use_up(queues);
	nvmepeer_queue_quiesce(&queues->queues[0]);
	quiesce_slowly();
	good = good && steps && comes_back(queues, nvmepeer_cuda_queues_rearm(queues, 1000));
	/* An exclusive owner has ended without a close. */
	use_up(queues);
	queues->queues[0].state->head |= NVP_HEAD_EXCLUSIVE;
	queues->queues[0].state->credits = (uint32_t)NVP_EXCLUSIVE_CREDITS;
	good = good && comes_back(queues, nvmepeer_cuda_queues_rearm(queues, 1000));
	fake.on_qp_info = NULL;
	queues->count = QUEUES;
	return fails_with(nvmepeer_cuda_queues_quiesce(queues, QUEUES), -EINVAL, "3 of 3") && good;
}

/* All that have to be deleted are, before the first is waited for. */
static struct nvmepeer_cuda_queues *deleted;
static uint32_t looks;
static bool all_requested;

static void count_requests(void)
{
	if (++looks != QUEUES + 1)
		return;
	all_requested = true;
	for (uint32_t i = 0; i < QUEUES; i++)
		all_requested = all_requested && *(uint32_t *)(uintptr_t)deleted->queues[i].control;
}

static bool rearm_requests_all(struct nvmepeer_cuda_queues *queues)
{
	bool good;

	deleted = queues;
	looks = 0;
	all_requested = false;
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	for (uint32_t i = 0; i < QUEUES; i++) {
		memset((void *)(uintptr_t)queues->queues[i].control, 0, 16);
		nvp_mark_lost(&queues->queues[i]);
	}
	fake.on_qp_info = count_requests;
	good = nvmepeer_cuda_queues_rearm(queues, 0) == -ETIMEDOUT && all_requested;
	fake.on_qp_info = NULL;
	/* Another process has re-armed it meanwhile: its state is that of before. */
	for (uint32_t i = 0; i < QUEUES; i++) {
		memset((void *)(uintptr_t)queues->queues[i].control, 0, 16);
		queues->queues[i].state->lost = 0;
	}
	fake.qp_info.losses++;
	good = good && nvmepeer_cuda_queues_rearm(queues, 0) == -ETIMEDOUT &&
	       *(uint32_t *)(uintptr_t)queues->queues[1].control == 1;
	for (uint32_t i = 0; i < QUEUES; i++)
		memset((void *)(uintptr_t)queues->queues[i].control, 0, 16);
	return good && nvmepeer_qp_fd(nvmepeer_cuda_queues_qp(queues, 1)) >= 0 &&
	       nvmepeer_cuda_queues_qp(queues, 0) != nvmepeer_cuda_queues_qp(queues, 1) &&
	       !nvmepeer_cuda_queues_qp(queues, QUEUES);
}

/* Re-arm after a loss. */
static bool rearming_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_state before;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues))
		return fails_with(0, 1, "");
	lose(queues);
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && fake.losses == 1;
	for (uint32_t i = 0; i < QUEUES; i++)
		good = good && is_rearmed(&queues->queues[i], fake.qp_info.losses);
	/* A LIVE queue pair is not changed. */
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	queues->queues[1].state->credits = 3;
	before = *queues->queues[1].state;
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) &&
	       !memcmp(&before, queues->queues[1].state, sizeof(before));
	good = good && rearm_of_each(queues) && rearm_refused(queues) && rearm_of_live(queues) &&
	       rearm_requests_all(queues);
	nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

/* Without ordering of data and completions, open fails. */
static bool ordering_required(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	bool good;

	set_device_answers();
	fake.open_files = files;
	*fake_int("fake_ordering") = 0;
	good = fails_with(try_queues(ctrl, cuda, ENTRIES, 1), -EOPNOTSUPP, "WRITES_ORDERING of device 0 is 0");
	*fake_int("fake_ordering") = 200;
	good = good && !try_queues(ctrl, cuda, ENTRIES, 1);
	*fake_int("fake_ordering") = 100;
	refuse("cuDeviceGetAttribute", 1);
	good = fails_with(try_queues(ctrl, cuda, ENTRIES, 1), -EOPNOTSUPP, "unknown: error") && good;
	fake.qp_info.cq_pci_address.valid = 0;
	good = fails_with(try_queues(ctrl, cuda, ENTRIES, 1), -EINVAL,
		    "place the completion ring in the same memory") && good;
	fake.qp_info.cq_pci_address.valid = 1;
	return good && nothing_left_but_kept(ctrl, cuda, files, 1);
}

/*
 * In a child without CAP_SYS_ADMIN: refused before anything is created, or
 * permitted.
 */
static int without_admin(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, const char *parameters)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	char path[] = "/tmp/nvmepeer-params-XXXXXX";
	int file = mkstemp(path), status = 0, result;
	pid_t child;

	if (file < 0 || write(file, parameters, strlen(parameters)) < 0)
		return -1;
	setenv("NVMEPEER_NVIDIA_PARAMS", path, 1);
	child = fork();
	if (!child) {
		syscall(SYS_capset, &header, data);
		fake.calls = 0;
		result = try_queues(ctrl, cuda, ENTRIES, 1);
		_exit(!result ? 1 : fails_with(result, -EPERM, "PeerMappingOverride=1") && !fake.calls ? 2 : 3);
	}
	waitpid(child, &status, 0);
	unsetenv("NVMEPEER_NVIDIA_PARAMS");
	unlink(path);
	close(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool privileges_checked_first(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	set_device_answers();
	fake.open_files = files;
	return without_admin(ctrl, cuda, "RegistryDwords: \"\"\n") == 2 &&
	       without_admin(ctrl, cuda, "RegistryDwords: \"PeerMappingOverride=1\"\n") == 1;
}

/* Kernels that were compiled with another layout get no queue pairs. */
static bool layouts(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct {
		struct nvmepeer_cuda_queues_options options;
		uint64_t more;
	} newer = { { .size = sizeof(newer), .layout = NVMEPEER_LAYOUT + (8 << 12), .count = 1,
		      .entries = ENTRIES }, 0 };
	struct nvmepeer_cuda_queues_options *options = &newer.options;
	struct nvmepeer_cuda_queues *queues;
	bool good;

	set_device_answers();
	fake.open_files = files;
	good = fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, options, &queues),
			  -EPROTO, "of the library") && !fake.calls;
	options->layout = NVMEPEER_LAYOUT;
	newer.more = 1;
	good = fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, options, &queues),
			  -E2BIG, "is not 0") && good;
	newer.more = 0;
	options->size = 8;
	good = fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, options, &queues),
			  -EINVAL, "8 bytes") && good;
	options->size = sizeof(newer);
	good = good && !nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, options, &queues) &&
	       !nvmepeer_queue_check_layout(nvmepeer_cuda_queues_host(queues)) &&
	       !nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

/* Sizes that the program chooses. */
static bool options(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues_options options = {
		.size = sizeof(options), .layout = NVMEPEER_LAYOUT, .count = 2, .entries = ENTRIES,
		.cq_entries = 4 * ENTRIES, .cids = 2 * ENTRIES, .list_bytes = 64,
		.reserve = 3, .timeout_ns = 123,
	};
	struct nvmepeer_cuda_queues *queues;
	const struct nvmepeer_queue *queue;
	bool good;

	set_device_answers();
	fake.qp_info.cq_entries = 4 * ENTRIES;
	fake.open_files = files;
	if (nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, &options, &queues))
		return fails_with(0, 1, "");
	queue = &nvmepeer_cuda_queues_host(queues)[1];
	good = queue->cq_mask == 4 * ENTRIES - 1 && queue->cid_words_mask == 2 * ENTRIES / 32 - 1 &&
	       queue->list_bytes == 64 && queue->timeout_ns == 123 && queue->reserve == 3 &&
	       (uintptr_t)queue->state >= queue->list_area + 64 * 2 * ENTRIES &&
	       queue->list_area >= queue->cq + 16 * 4 * ENTRIES &&
	       !nvmepeer_cuda_queues_close(queues);
	options.list_bytes = NVMEPEER_CUDA_NO_LISTS;
	good = good && !nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, &options, &queues) &&
	       !nvmepeer_cuda_queues_host(queues)->list_area && !nvmepeer_cuda_queues_close(queues);
	options.cids = 48;
	good = good && fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, &options, &queues),
				  -EINVAL, "48 CIDs");
	options.cids = 131072;
	good = good && fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, &options, &queues),
				  -EINVAL, "131072 CIDs");
	options.cids = 0;
	options.list_bytes = 24;
	good = good && fails_with(nvmepeer_cuda_queues_open_with(ctrl, &namespace, cuda, &options, &queues),
				  -EINVAL, "list_bytes");
	fake.qp_info.cq_entries = ENTRIES;
	return good && nothing_left_but_kept(ctrl, cuda, files, 1);
}

static int try_buffer(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer, size_t bytes)
{
	struct nvmepeer_cuda_buffer *buffer;
	int error = nvmepeer_cuda_buffer_open(ctrl, cuda, pointer, bytes, &buffer);

	if (!error)
		nvmepeer_cuda_buffer_close(buffer);
	return error;
}

/* Does the table say what the fake kernel does, by 2 pages and then as many as there are? */
static bool table_is(const struct nvmepeer_buffer *buffer, uint32_t first, uint32_t count)
{
	struct nvmepeer_queue queue = { .page_shift = 12 };
	uint64_t before = first % (sysconf(_SC_PAGESIZE) / 4096);
	const uint64_t *entries = (const uint64_t *)(uintptr_t)buffer->pages;

	for (uint32_t i = 0; i < count - 1; i++)
		if (nvp_dma(&queue, buffer, 4096 * i + 52) !=
		    0x10000000 + 4096 * (i + before) + (i + before < 2 ? 0 : 0x100000) + 52)
			return false;
	/* Two entries. */
	return entries[1] == 0x10102000 && nvp_table_shift(&queue, buffer) > 12;
}

/* Tables of any segments say the same when they are shortened, and are as short as possible. */
static bool shortened_tables(void)
{
	enum { PAGES = 700 };
	static uint64_t all[PAGES], table[PAGES];
	struct nvmepeer_queue queue = { .page_shift = 13 };
	struct nvmepeer_buffer buffer = { .pages = (uintptr_t)table };
	bool good = true;

	srand(7);
	for (uint32_t round = 0; good && round < 3000; round++) {
		uint32_t count = 2 + (uint32_t)rand() % (PAGES - 2), unit = 1u << rand() % 6, entries;
		uint32_t left = 1 + (uint32_t)rand() % (2 * unit), segments = 1;
		uint64_t at = 1ull << 40;

		for (uint32_t i = 0; i < count; i++, left--, at += 8192) {
			if (!left) {
				at += 8192ull * (1 + (uint32_t)rand() % 9);
				left = unit * (1 + (uint32_t)rand() % 3);
				segments++;
			}
			all[i] = table[i] = at;
		}
		entries = cuda_shorten_table(table, count, 8192, &buffer.dma);
		good = entries <= count / unit + 2 && entries <= (segments < 3 ? 2 : count) &&
		       !(buffer.dma & 0xf83);
		for (uint32_t i = 0; good && i < count; i++)
			good = nvp_dma(&queue, &buffer, 8192ull * i + 4) == all[i] + 4;
	}
	return good;
}

/* The caller's memory at any offset in its pages. */
static bool opening_buffers(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_buffer *buffer;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	for (uint32_t first = 0; good && first <= 8192 + 512; first += 512) {
		good = !nvmepeer_cuda_buffer_open(ctrl, cuda, memory + first, BYTES, &buffer) &&
		       buffer->buffer.length == BYTES && !buffer->buffer.pages &&
		       buffer->buffer.dma == 0x10000000 + first % 4096 &&
		       *(uint64_t *)fake_int("fake_exported") == (uintptr_t)memory + first / 4096 * 4096 &&
		       !memcmp(nvmepeer_cuda_buffer_device(buffer),
			       nvmepeer_cuda_buffer_host(buffer), sizeof(buffer->buffer));
		nvmepeer_cuda_buffer_close(buffer);
	}
	fake.table_break = 2;
	good = good && !nvmepeer_cuda_buffer_open(ctrl, cuda, memory + 4096, BYTES, &buffer) &&
	       buffer->buffer.pages && table_is(&buffer->buffer, 1, BYTES / 4096 + 1);
	nvmepeer_cuda_buffer_close(buffer);
	good = good && fails_with(try_buffer(ctrl, cuda, memory + 512, BYTES), -EINVAL,
			    "512 bytes into a page of 4096");
	return good && shortened_tables() && nothing_left(files);
}

/* Does @result report that the import is in use, with everything still there? */
static bool stays_open(int result, int allocations)
{
	return fails_with(result, -EBUSY, "destroy the queue pairs first") && fake.buffers == 1 &&
	       *fake_int("fake_allocations") == allocations;
}

/*
 * The controller keeps its access to an exposed buffer while any queue pair is
 * active: nothing that it may write is freed, and a later close succeeds.
 */
static bool closing_in_use(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_cuda_buffer *buffer;
	bool good;

	set_device_answers();
	fake.open_files = files;
	good = !nvmepeer_cuda_buffer_open(ctrl, cuda, memory, BYTES, &buffer);
	fake.fail_command = NVME_PEER_BUF_RELEASE;
	fake.fail_error = EBUSY;
	good = good && stays_open(nvmepeer_cuda_buffer_close(buffer), 1) &&
	       !nvmepeer_cuda_buffer_close(buffer) && nothing_left(files);
	good = good && !nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues);
	fake.fail_command = NVME_PEER_BUF_RELEASE;
	fake.fail_error = EBUSY;
	good = good && stays_open(nvmepeer_cuda_queues_close(queues), 1) &&
	       fails_with(nvmepeer_cuda_queues_rearm(queues, 1), -ESHUTDOWN, "close() again") &&
	       fails_with(nvmepeer_cuda_queues_quiesce(queues, 0), -ESHUTDOWN, "close() again") &&
	       fake.open_files == files && !*fake_int("fake_registrations") &&
	       !nvmepeer_cuda_queues_close(queues);
	return good && !nvmepeer_cuda_buffer_close(NULL) && !nvmepeer_cuda_queues_close(NULL) &&
	       nothing_left(files);
}

/*
 * A failed open neither exposes the buffer, whose import could not end then, nor
 * frees GPU memory, for which libcuda waits for all kernels.
 */
static bool failed_open_waits_for_nothing(struct nvmepeer *ctrl, int files)
{
	struct nvmepeer_cuda_buffer *buffer;
	struct nvmepeer_cuda *cuda;
	int frees = *fake_int("fake_frees");
	bool good;

	set_device_answers();
	fake.open_files = files;
	if (nvmepeer_cuda_open(0, &cuda))
		return false;
	fake.table_break = 2;
	good = fails_with(try_buffer(ctrl, cuda, memory + 512, BYTES), -EINVAL, "512 bytes into a page") &&
	       !fake.tables && !fake.buffers;
	for (int i = 0; i < 3; i++) {
		fake.fail_command = NVME_PEER_BUF_TABLE;
		fake.fail_error = EPERM;
		good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EPERM, "CAP_SYS_RAWIO") && good;
	}
	/* The addresses are read before memory for a table is allocated, or after the buffer's own is. */
	good = good && *fake_int("fake_frees") == frees && !*fake_int("fake_allocations");
	fake.table_break = 0;
	for (int i = 0; i < 3; i++) {
		fake.fail_command = NVME_PEER_BUF_TABLE;
		fake.fail_error = EPERM;
		good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EPERM, "CAP_SYS_RAWIO") && good;
	}
	good = good && *fake_int("fake_frees") == frees && *fake_int("fake_allocations") == 1 &&
	       !nvmepeer_cuda_buffer_open(ctrl, cuda, memory, BYTES, &buffer) &&
	       *fake_int("fake_allocations") == 1 && !nvmepeer_cuda_buffer_close(buffer);
	/* Memory of queues is not wasted on a buffer. */
	fake.fail_command = NVME_PEER_QP_CREATE;
	fake.fail_error = EPERM;
	good = fails_with(try_queues(ctrl, cuda, ENTRIES, QUEUES), -EPERM, "CAP_SYS_RAWIO") && good &&
	       *fake_int("fake_allocations") == 1 &&
	       !nvmepeer_cuda_buffer_open(ctrl, cuda, memory, BYTES, &buffer) &&
	       *fake_int("fake_allocations") == 2 && !nvmepeer_cuda_buffer_close(buffer);
	nvmepeer_cuda_close(cuda);
	return good && !*fake_int("fake_allocations") && !fake.buffers;
}

static bool buffers_refused(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	static const struct {
		const char *fact;
		int value, result;
		const char *message;
	} cases[] = {
		{ "fake_memory_type", 1, -EINVAL, "not CUDA device memory" },
		{ "fake_managed", 1, -EINVAL, "managed memory" },
		{ "fake_owner", 1, -EINVAL, "memory of CUDA device 1" },
	};
	bool good;

	set_device_answers();
	fake.open_files = files;
	good = fails_with(try_buffer(ctrl, cuda, memory + 2, 4096), -EINVAL, "multiple of 4");
	good = fails_with(try_buffer(ctrl, cuda, memory, 0), -EINVAL, "memory, above 0") && good;
	/* Its end is below its start, in the same page. */
	good = fails_with(try_buffer(ctrl, cuda, memory + 8, (size_t)-1), -EINVAL, "memory, above 0") && good;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int *fact = fake_int(cases[i].fact), before = *fact;

		*fact = cases[i].value;
		good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), cases[i].result,
			    cases[i].message) && good;
		*fact = before;
	}
	refuse("cuPointerGetAttribute", 1);
	good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EINVAL, "not CUDA device memory") && good;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EINVAL, "from end to end") && good;
	*fake_int("fake_capable") = 0;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EOPNOTSUPP, "gpuDirectRDMACapable") && good;
	*fake_int("fake_capable") = 1;
	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EXDEV;
	good = fails_with(try_buffer(ctrl, cuda, memory, BYTES), -EXDEV, "nvme-peer route") && good;
	return good && nothing_left(files);
}

/* Memory for I/O of the CPU: allocated by the glue, or the caller's. */
static bool dmabuf(struct nvmepeer_cuda *cuda, int files)
{
	void *made = NULL;
	int fd;
	bool good;

	set_device_answers();
	fake.open_files = files;
	good = !nvmepeer_cuda_alloc(cuda, 4097, &made) && made && *fake_int("fake_allocations") == 1 &&
	       ((char *)made)[CUDA_ALLOCATION_UNIT - 1] == 0;
	good = good && !nvmepeer_cuda_dmabuf(cuda, (char *)made + 4096, 8192, &fd) &&
	       *(uint64_t *)fake_int("fake_exported") == (uintptr_t)made + 4096 && !close(fd);
	nvmepeer_cuda_free(cuda, made);
	nvmepeer_cuda_free(cuda, NULL);
	good = fails_with(nvmepeer_cuda_alloc(cuda, 0, &made), -EINVAL, "0 bytes") && good;
	refuse("cuMemAlloc_v2", 2);
	good = fails_with(nvmepeer_cuda_alloc(cuda, 1, &made), -ENOMEM, "2097152 bytes") && good;
	good = fails_with(nvmepeer_cuda_dmabuf(cuda, memory + 512, 4096, &fd), -EINVAL, "page size") && good;
	good = fails_with(nvmepeer_cuda_dmabuf(cuda, memory, 512, &fd), -EINVAL, "page size") && good;
	good = fails_with(nvmepeer_cuda_dmabuf(cuda, memory, 0, &fd), -EINVAL, "page size") && good;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = fails_with(nvmepeer_cuda_dmabuf(cuda, memory, 4096, &fd), -EINVAL, "from end to end") && good;
	return good && nothing_left(files);
}

static bool is_set_of(const struct nvmepeer_set *set, struct nvmepeer_cuda_queues *const *queues,
		      struct nvmepeer_cuda_buffer *const *buffers)
{
	return set->controllers == 2 && set->queues_each == 2 && set->stripe_shift == 3 &&
	       set->flags == NVMEPEER_SET_HASH && set->queues[0].sq == queues[0]->queues[0].sq &&
	       set->queues[3].sq == queues[1]->queues[1].sq &&
	       set->buffers[1].length == buffers[1]->buffer.length &&
	       nvmepeer_set_check(set) != NVMEPEER_E_LAYOUT;
}

/*
 * Two controllers as one: device queues and buffers as device code reads them.
 */
static bool opening_sets(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues[2];
	struct nvmepeer_cuda_buffer *buffers[2];
	struct nvmepeer_cuda_set *set;
	struct nvmepeer_cuda *other = NULL;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	for (int i = 0; i < 2; i++)
		good = !nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, 2, &queues[i]) &&
		       !nvmepeer_cuda_buffer_open(ctrl, cuda, memory + 4096, 65536, &buffers[i]) &&
		       good;
	good = good && !nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, NVMEPEER_SET_HASH, &set) &&
	       is_set_of(nvmepeer_cuda_set_host(set), queues, buffers);
	nvmepeer_cuda_set_close(set);
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 64, 0, &set), -EINVAL,
			    "2^64") &&
	       fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 2, &set), -EINVAL,
		    "flags 0x2");
	queues[1]->count = 1;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "controller 1 has 1");
	queues[1]->count = 2;
	buffers[1]->address += 4096;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "open the same memory");
	buffers[1]->address -= 4096;
	buffers[1]->ctrl = NULL;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "buffer 1 is of another controller");
	buffers[1]->ctrl = ctrl;
	queues[1]->closed = true;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set),
				  -ESHUTDOWN, "only their memory is left");
	queues[1]->closed = false;
	buffers[1]->buffer.length = 512;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "65536 bytes of data memory and controller 1 has 512") &&
	       fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 0, 3, 0, &set), -EINVAL,
		    "no controller");
	good = good && !nvmepeer_cuda_open(1, &other) &&
	       fails_with(nvmepeer_cuda_set_open(other, queues, buffers, 2, 3, 0, &set), -EINVAL,
		    "device 1, but controller 0 has queue pairs for device 0");
	buffers[1]->cuda = other;
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "controller 1 has queue pairs for device 0 and data on device 1");
	buffers[1]->cuda = cuda;
	nvmepeer_cuda_close(other);
	refuse("cuMemcpyHtoDAsync_v2", 700);
	good = good && fails_with(nvmepeer_cuda_set_open(cuda, queues, buffers, 1, 3, 0, &set), -EIO,
			    "cuMemcpyHtoD");
	for (int i = 0; i < 2; i++) {
		nvmepeer_cuda_buffer_close(buffers[i]);
		nvmepeer_cuda_queues_close(queues[i]);
	}
	return good && nothing_left(files);
}

/* Registration flags of CUDA's driver ABI. */
/* --- Lists and page tables on streams ------------------------------------------ */

/* A launch or a node of a graph: the parameters as they were at the call. */
static struct list_parameters launched;
static void *launched_on;
static unsigned int launches;

static void take_launch(void *stream, unsigned int threads, void **arguments)
{
	launches += threads == LIST_THREADS && *fake_int("fake_blocks") == 1;
	launched_on = stream;
	launched = *(const struct list_parameters *)arguments[0];
}

/* The stream comes to the list: execute it on the CPU. */
static void run_stream(void)
{
	uint32_t worst;

	list_run(&launched, &worst);
}

static struct controller disk;
static bool disk_stops;

static void *disk_main(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&disk_stops, __ATOMIC_ACQUIRE))
		if (!controller_step(&disk))
			sched_yield();
	return NULL;
}

/* A disk whose bytes tell their places. */
static void make_disk(void)
{
	controller_init(&disk, ENTRIES, ENTRIES, 4096);
	for (uint32_t i = 0; i < 4096 * 512; i++)
		disk.disk[i] = (uint8_t)((i * 2246822519u) >> 24);
}

/*
 * A controller for the first queue pair, whose addresses are those of this process.
 * The lists' memories are opened after that.
 */
static pthread_t start_disk(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *buffer)
{
	struct nvmepeer_queue *queue = (struct nvmepeer_queue *)(uintptr_t)queues->device;
	pthread_t thread;

	free(disk.sq);
	free(disk.cq);
	free(disk.doorbells);
	disk.sq = (uint8_t *)(uintptr_t)queue->sq;
	disk.cq = (uint8_t *)(uintptr_t)queue->cq;
	disk.doorbells = (struct controller_doorbells *)(uintptr_t)queue->sq_doorbell;
	disk.doorbells->tail = disk.doorbells->head = 0;
	queue->status = 0;
	queue->list_memory.dma = queue->list_area;
	buffer->buffer.dma = buffer->address;
	disk_stops = false;
	pthread_create(&thread, NULL, disk_main, NULL);
	return thread;
}

static void stop_disk(pthread_t thread)
{
	__atomic_store_n(&disk_stops, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

enum { LIST_ITEMS = 9, LIST_BYTES = 1300 };

static struct nvmepeer_list_item list_items[LIST_ITEMS];
static struct nvmepeer_list_done list_done;
static uint32_t list_count;
static struct nvmepeer_cuda_list stream_list;

static void make_list(void)
{
	for (uint32_t i = 0; i < LIST_ITEMS; i++)
		list_items[i] = (struct nvmepeer_list_item){ 5 * (LIST_ITEMS - i), 4 + 2000 * i, 0,
							     LIST_BYTES, -99, 0 };
	stream_list = (struct nvmepeer_cuda_list){
		.size = sizeof(stream_list), .count = LIST_ITEMS, .items = list_items,
		.count_at = &list_count, .done = &list_done, .scratch = 3,
	};
}

/* The first @count items are read and the rest of the memory is as before. */
static bool has_items(const char *data, uint32_t count, int status)
{
	static char expected[BYTES];

	memset(expected, 0x5a, sizeof(expected));
	for (uint32_t i = 0; i < count; i++)
		memcpy(expected + list_items[i].offset, disk.disk + 512 * list_items[i].lba, LIST_BYTES);
	for (uint32_t i = 0; i < LIST_ITEMS; i++)
		if (list_items[i].status != (i < count ? status : -99))
			return false;
	return !memcmp(expected, data, sizeof(expected)) && list_done.status == status;
}

static void forget(char *data)
{
	memset(data, 0x5a, BYTES);
	for (uint32_t i = 0; i < LIST_ITEMS; i++)
		list_items[i].status = -99;
}

/*
 * Launched once and executed several times, as a graph does: items and count are
 * those of the execution, and after a loss and a re-arm it works again.
 */
static bool graph_replays(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_lists *lists,
			  pthread_t *thread, struct nvmepeer_cuda_buffer *buffer)
{
	char *data = (char *)(uintptr_t)buffer->address;
	const struct nvmepeer_queue *queue = queues->device;
	struct controller again;
	bool good;

	make_list();
	forget(data);
	good = !nvmepeer_cuda_read_list(lists, &stream_list, &launches) && launched_on == &launches &&
	       launches == 1 && !list_done.count && has_items(data, 0, 0);
	list_count = 4;
	run_stream();
	good = good && list_done.count == 1 && has_items(data, 4, 0);
	list_count = LIST_ITEMS + 100;
	list_items[7].lba = 1;
	forget(data);
	run_stream();
	good = good && list_done.count == 2 && has_items(data, LIST_ITEMS, 0);
	stop_disk(*thread);
	lose(queues);
	forget(data);
	run_stream();
	good = good && list_done.count == 3 &&
	       list_done.status == NVMEPEER_E_LOST && list_items[3].status == NVMEPEER_E_LOST;
	launched.layout++;
	run_stream();
	good = good && list_done.count == 4 && list_done.status == NVMEPEER_E_LAYOUT &&
	       list_items[0].status == NVMEPEER_E_LAYOUT &&
	       list_items[LIST_ITEMS - 1].status == NVMEPEER_E_LAYOUT;
	launched.layout--;
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && is_rearmed(queue, fake.qp_info.losses);
	again = disk;
	controller_again(&again);
	disk = again;
	disk_stops = false;
	pthread_create(thread, NULL, disk_main, NULL);
	forget(data);
	run_stream();
	return good && list_done.count == 5 && has_items(data, LIST_ITEMS, 0);
}

/* Tensors, written to the disk, with a status for each piece. */
static bool writes_tensors(struct nvmepeer_cuda_lists *lists, struct nvmepeer_cuda_buffer *buffer)
{
	struct nvmepeer_list_tensor tensors[2] = { { 0, 1300, 0, 1300, 0, 0 }, { 90000, 520, 0, 516, 0, 0 } };
	struct nvmepeer_list_page pages[2] = { { 100, 3, 0 }, { 50, 1, 0 } };
	char *data = (char *)(uintptr_t)buffer->address;
	int statuses[4] = { -99, -99, -99, -99 };
	struct nvmepeer_cuda_list list = {
		.size = sizeof(list), .count = 2, .tensors = tensors, .pages = pages, .statuses = statuses,
		.tensor_count = 2, .control = NVMEPEER_CONTROL_PLACEMENT(0) & 0xffffffff,
		.control_high = NVMEPEER_CONTROL_PLACEMENT(9) >> 32,
	};
	bool good;

	for (uint32_t i = 0; i < BYTES; i++)
		data[i] = (char)(i * 2654435761u >> 24);
	nvmepeer_list_lay_out(9, tensors, 2);
	good = !nvmepeer_cuda_write_list(lists, &list, NULL);
	run_stream();
	return good && !statuses[0] && !statuses[1] && !statuses[2] && !statuses[3] &&
	       (disk.last[12] & 0xfff00000) == 2 << 20 && disk.last[13] == 9 << 16 &&
	       !memcmp(disk.disk + 512 * 100, data + 3 * 1300, 1300) &&
	       !memcmp(disk.disk + 512 * 103, data + 90000 + 3 * 520, 516) &&
	       !memcmp(disk.disk + 512 * 50, data + 1300, 1300) &&
	       !memcmp(disk.disk + 512 * 53, data + 90000 + 520, 516);
}

/* A list without items has no arrays, and its end is reported. */
static bool empty_list_ends(struct nvmepeer_cuda_lists *lists)
{
	struct nvmepeer_cuda_list list = { .size = sizeof(list), .done = &list_done };
	bool good;

	list_done = (struct nvmepeer_list_done){ 7, -99 };
	good = !nvmepeer_cuda_read_list(lists, &list, NULL);
	run_stream();
	return good && list_done.count == 8 && !list_done.status;
}

static bool lists_refused(struct nvmepeer_cuda_lists *lists)
{
	struct {
		struct nvmepeer_cuda_list list;
		uint64_t newer;
	} larger = { .newer = 1 };
	bool good = true;

	launches = 0;
	make_list();
	stream_list.scratch = NVMEPEER_CUDA_LIST_SCRATCHES;
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "scratch") && good;
	make_list();
	stream_list.tensors = (void *)&stream_list;
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "tensors") && good;
	make_list();
	stream_list.statuses = (void *)&stream_list;
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "statuses are set") && good;
	make_list();
	stream_list.items = NULL;
	good = fails_with(nvmepeer_cuda_write_list(lists, &stream_list, NULL), -EINVAL, "items are NULL") && good;
	stream_list.tensors = (void *)&stream_list;
	stream_list.pages = (void *)&stream_list;
	good = fails_with(nvmepeer_cuda_write_list(lists, &stream_list, NULL), -EINVAL, "0 tensors") && good;
	stream_list.tensor_count = 1 << 20;
	stream_list.count = 1 << 12;
	good = fails_with(nvmepeer_cuda_write_list(lists, &stream_list, NULL), -EINVAL, "split") && good;
	make_list();
	stream_list.size = 8;
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "size") && good;
	make_list();
	larger.list = stream_list;
	larger.list.size = sizeof(larger);
	good = fails_with(nvmepeer_cuda_read_list(lists, &larger.list, NULL), -E2BIG, "update the library") && good;
	make_list();
	stream_list.items = (void *)((char *)stream_list.items + 4);
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "items at") && good;
	make_list();
	stream_list.done = (void *)((char *)stream_list.done + 2);
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EINVAL, "done at") && good;
	make_list();
	refuse("cuLaunchKernel", 400);
	good = fails_with(nvmepeer_cuda_read_list(lists, &stream_list, NULL), -EIO, "cuLaunchKernel") && good;
	return good && !launches;
}

/* Each step of open fails once, leaks nothing and waits for no kernel. */
static bool lists_open_refused(struct nvmepeer *other, struct nvmepeer_cuda_queues *queues,
			       struct nvmepeer_cuda_buffer *buffer)
{
	static const struct {
		const char *call;
		int cuda, result;
		const char *message;
	} cases[] = {
		{ "cuModuleLoad", 301, -ENOENT, "NVMEPEER_LIST_KERNEL" },
		{ "cuModuleLoad", 209, -EIO, "8.0" },
		{ "cuModuleGetFunction", 500, -EIO, "same version" },
		{ "cuMemAlloc_v2", 2, -ENOMEM, "cuMemAlloc" },
		{ "cuMemGetHandleForAddressRange", 801, -EOPNOTSUPP, "nvidia-open" },
	};
	struct nvmepeer *mine = buffer->ctrl;
	struct nvmepeer_cuda_lists *lists;
	int frees = *fake_int("fake_frees"), buffers = fake.buffers;
	bool good = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse(cases[i].call, cases[i].cuda);
		good = fails_with(nvmepeer_cuda_lists_open(queues, &buffer, 1, &lists), cases[i].result,
				  cases[i].message) && good;
	}
	good = fails_with(nvmepeer_cuda_lists_open(queues, &buffer, 0, &lists), -EINVAL, "one buffer") && good;
	buffer->ctrl = other;
	good = fails_with(nvmepeer_cuda_lists_open(queues, &buffer, 1, &lists), -EINVAL, "buffer 0") && good;
	buffer->ctrl = mine;
	return good && *fake_int("fake_frees") == frees && fake.buffers == buffers &&
	       !*fake_int("fake_modules");
}

enum { TABLES = 2, TABLE_PAGES = 24, TABLE_SLOTS = 4, PAGE_BLOCKS = 2, WANTED = 3 };

static struct pages_parameters step_launched;
static uint32_t step_blocks;

static void take_step(void *stream, unsigned int threads, void **arguments)
{
	launched_on = threads == PAGES_THREADS ? stream : NULL;
	step_blocks = (uint32_t)*fake_int("fake_blocks");
	step_launched = *(const struct pages_parameters *)arguments[0];
}

/* The stream comes to the step: each block of the kernel on the CPU. */
static void run_step(void)
{
	struct nvmepeer_page_request request;

	for (uint32_t i = 0; i < step_blocks; i++)
		pages_run(&step_launched, i, &request);
}

static uint32_t wanted[TABLES * WANTED], found_blocks[TABLES * WANTED];
static int page_statuses[TABLES * WANTED], worst[TABLES];

static struct nvmepeer_cuda_step make_step(void)
{
	return (struct nvmepeer_cuda_step){
		.size = sizeof(struct nvmepeer_cuda_step), .count = WANTED, .wanted = wanted,
		.blocks = found_blocks, .statuses = page_statuses, .worst = worst,
	};
}

/* Page p of table t is at place 7 * p + t; each has the slots of its table. */
static bool has_pages(const char *data, uint64_t lba)
{
	bool good = true;

	for (uint32_t i = 0; i < TABLES * WANTED; i++) {
		uint32_t table = i / WANTED, place = 7 * wanted[i] + table;

		good = good && !page_statuses[i] && !worst[table] && found_blocks[i] / TABLE_SLOTS == table &&
		       !memcmp(data + 1024 * found_blocks[i],
			       disk.disk + 512 * (lba + PAGE_BLOCKS * place), 1024);
	}
	return good;
}

static bool pages_open_refused(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *cache,
			       const struct nvmepeer_cuda_pages_options *right, uint32_t *places)
{
	struct nvmepeer_cuda_pages_options options = *right;
	struct nvmepeer_cuda_pages *pages;
	struct nvmepeer_explanation why;
	bool good;

	options.size--;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "bytes instead of");
	options = *right;
	options.most = 0;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "0 wanted pages") && good;
	options = *right;
	options.slots = BYTES / 1024;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "slots of 1024 bytes in") && good;
	options = *right;
	options.slots = NVMEPEER_PAGE_RESIDENT;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "2147483648 slots") && good;
	options = *right;
	options.blocks = (queues->queues[0].max_transfer >> 9) + 1;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "of at most") && good;
	options = *right;
	options.most = NVMEPEER_PAGE_RESIDENT / TABLES;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "1073741824 wanted pages") && good;
	options = *right;
	options.lba = UINT64_MAX - PAGE_BLOCKS * (7ull * (TABLE_PAGES - 1) + 1);
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "place 162 of 2 blocks") && good;
	places[5] = NVMEPEER_PAGE_PLACES;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, right, places, &pages), -EINVAL, "place 2147483647") && good;
	places[5] = 7 * 5;
	queues->closed = true;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, right, places, &pages), -ESHUTDOWN, "only their memory") && good;
	queues->closed = false;
	refuse("cuModuleLoad", 301);
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, right, places, &pages), -ENOENT, "cuModuleLoad") && good;
	nvmepeer_explain(&why, sizeof(why));
	return good && !strcmp(why.call, "nvmepeer_cuda_pages_open");
}

/* Two controller pages need no list, three do; a command has 65536 blocks at most. */
static bool long_pages_refused(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *cache,
			       const struct nvmepeer_cuda_pages_options *right, const uint32_t *places)
{
	struct nvmepeer_cuda_pages_options options = *right;
	struct nvmepeer_queue before = queues->queues[0];
	struct nvmepeer_cuda_pages *pages = NULL;
	bool good;

	queues->queues[0].list_area = 0;
	options.blocks = 17;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "8704 bytes of at most 8192");
	options.blocks = 16;
	good = !nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages) && good;
	nvmepeer_cuda_pages_close(pages);
	queues->queues[0].max_transfer = 1u << 30;
	queues->queues[0].flags |= NVMEPEER_SGL;
	options.blocks = 65537;
	good = fails_with(nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages), -EINVAL, "33554944 bytes of at most 33554432") && good;
	queues->queues[0] = before;
	return good;
}

/* An SGL describes a page without a list if each page is in one run of the cache's table. */
static bool pages_in_runs(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *cache,
			  const struct nvmepeer_cuda_pages_options *right, const uint32_t *places)
{
	static const struct {
		uint32_t blocks, start;
		bool opens;
	} cases[] = { { 32, 0, true }, { 128, 0, true }, { 32, 1, false }, { 24, 0, false }, { 136, 0, false }, { 16, 1, true } };
	struct nvmepeer_cuda_pages_options options = *right;
	struct nvmepeer_queue before = queues->queues[0];
	struct nvmepeer_buffer whole = cache->buffer;
	bool good = true;

	queues->queues[0].list_area = 0;
	queues->queues[0].flags |= NVMEPEER_SGL;
	cache->buffer.pages = cache->address;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nvmepeer_cuda_pages *pages = NULL;
		int error;

		/* Runs of 64 KiB, of which the cache starts at a page. */
		cache->buffer.dma = cases[i].start << 12 | 4 << 2;
		options.blocks = cases[i].blocks;
		error = nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages);
		good = (cases[i].opens ? !error : fails_with(error, -EINVAL, "of at most 8192")) && good;
		nvmepeer_cuda_pages_close(pages);
	}
	cache->buffer = whole;
	queues->queues[0] = before;
	return good;
}

static bool steps_refused(struct nvmepeer_cuda_pages *pages)
{
	struct nvmepeer_cuda_step step = make_step();
	bool good;

	step.size++;
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "bytes instead of");
	step = make_step();
	step.count = WANTED + 1;
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "4 pages of each table, 1 to 3") && good;
	step.count = 0;
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "0 pages of each table") && good;
	step = make_step();
	step.blocks = (uint32_t *)((char *)found_blocks + 1);
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "32 bits") && good;
	step = make_step();
	step.blocks = wanted;
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "do not overlap") && good;
	step = make_step();
	step.statuses = (int *)wanted + TABLES * WANTED - 1;
	good = fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "do not overlap") && good;
	step = make_step();
	step.wanted = found_blocks + TABLES * WANTED - 1;
	return fails_with(nvmepeer_cuda_read_pages(pages, &step, NULL), -EINVAL, "do not overlap") && good;
}

/* Slots of both tables that a command may still write. */
static uint32_t lent_slots(const struct nvmepeer_cuda_pages *pages)
{
	const struct nvmepeer_page_slot *slots = nvmepeer_cuda_pages_device(pages)->slots;
	uint32_t lent = 0;

	for (uint32_t i = 0; i < TABLES * TABLE_SLOTS; i++)
		lent += slots[i].page == NVP_PAGE_LENT;
	return lent;
}

/* The read of @page times out: its slot is out of use. */
static bool read_times_out(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_pages *pages, uint32_t page,
			   pthread_t thread)
{
	struct nvmepeer_queue *queue = (struct nvmepeer_queue *)(uintptr_t)queues->device;
	struct nvmepeer_cuda_step step = make_step();
	uint64_t timeout_ns = queue->timeout_ns;
	bool good;

	stop_disk(thread);
	disk_stops = false;
	disk.order = CONTROLLER_IN_ORDER;
	queue->timeout_ns = 1000000;
	wanted[2] = page;
	good = !nvmepeer_cuda_read_pages(pages, &step, &launches);
	run_step();
	queue->timeout_ns = timeout_ns;
	good = good && worst[0] == NVMEPEER_E_TIMEOUT && found_blocks[2] == NVMEPEER_PAGE_NONE;
	return good && lent_slots(pages) == 1;
}

/* A kernel of the caller has read a page by a queue pair that the table's steps do not use. */
static bool is_kept_for_others(struct nvmepeer_cuda_pages *pages)
{
	static uint32_t none[ENTRIES];
	struct nvmepeer_queue queues[2] = { *step_launched.queues, *step_launched.queues };
	struct nvmepeer_state state = *queues[0].state;
	struct pages_parameters before = step_launched;
	int reclaimed[TABLES] = { 0, 0 };

	state.abandoned = 0;
	queues[0].state = &state;
	queues[0].abandoned_cids = none;
	step_launched.queues = queues;
	step_launched.queue_count = 2;
	step_launched.worst = reclaimed;
	run_step();
	step_launched = before;
	return reclaimed[0] == NVMEPEER_E_BUSY && reclaimed[1] == NVMEPEER_E_BUSY && lent_slots(pages) == 1;
}

/* A slot stays out of use until the controller has completed the read. */
static bool read_late(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_pages *pages, const char *data,
		      pthread_t *thread)
{
	struct nvmepeer_cuda_step step = make_step();
	bool good;

	fake.qp_info.state = NVME_PEER_QP_LIVE;
	good = read_times_out(queues, pages, 3, *thread);
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && !nvmepeer_cuda_reclaim_pages(pages, &launches);
	run_step();
	good = good && lent_slots(pages) == 1 && is_kept_for_others(pages);
	pthread_create(thread, NULL, disk_main, NULL);
	good = good && !nvmepeer_cuda_read_pages(pages, &step, &launches);
	run_step();
	good = good && has_pages(data, 100) && lent_slots(pages) == 1 &&
	       !nvmepeer_cuda_reclaim_pages(pages, &launches);
	run_step();
	return good && !lent_slots(pages);
}

/* Nothing else runs on the queue pair: reclaim itself sees that the read has completed. */
static bool read_unseen(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_pages *pages, const char *data,
			pthread_t *thread)
{
	struct nvmepeer_cuda_step step = make_step();
	bool good = read_times_out(queues, pages, 9, *thread);

	while (controller_step(&disk))
		;
	good = good && !nvmepeer_cuda_reclaim_pages(pages, &launches);
	run_step();
	good = good && !lent_slots(pages) && !nvmepeer_cuda_read_pages(pages, &step, &launches);
	pthread_create(thread, NULL, disk_main, NULL);
	run_step();
	return good && has_pages(data, 100);
}

/* A queue pair that a thread is marking lost still takes the read: the slot may be written. */
static bool read_while_lost(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_pages *pages)
{
	struct nvmepeer_state *state = ((struct nvmepeer_queue *)(uintptr_t)queues->device)->state;

	nvp_or32(&state->lost, NVP_LOST);
	wanted[2] = 12;
	run_step();
	state->lost &= ~NVP_LOST;
	return worst[0] == NVMEPEER_E_LOST && lent_slots(pages) == 1;
}

/* Misses are read, hits are not, and what a lost queue pair has not read is read after a re-arm. */
static bool run_steps(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_pages *pages, const char *data,
		  pthread_t *thread)
{
	struct nvmepeer_cuda_step step = make_step();
	struct controller again;
	uint32_t before[TABLES * WANTED];
	bool good;

	for (uint32_t i = 0; i < TABLES * WANTED; i++)
		wanted[i] = 5 * (i % WANTED) + i / WANTED;
	good = !nvmepeer_cuda_read_pages(pages, &step, &launches) && launched_on == &launches &&
	       step_blocks == TABLES;
	run_step();
	good = good && has_pages(data, 100);
	/* In a graph: other pages, of which the first is a hit. */
	memcpy(before, found_blocks, sizeof(before));
	wanted[1] = 20;
	run_step();
	good = good && has_pages(data, 100) && found_blocks[0] == before[0] && found_blocks[2] == before[2];
	wanted[2] = TABLE_PAGES;
	run_step();
	good = good && worst[0] == NVMEPEER_E_RANGE && page_statuses[2] == NVMEPEER_E_RANGE &&
	       found_blocks[2] == NVMEPEER_PAGE_NONE && !worst[1] && !page_statuses[0];
	step_launched.layout++;
	run_step();
	good = good && worst[1] == NVMEPEER_E_LAYOUT && found_blocks[5] == NVMEPEER_PAGE_NONE &&
	       page_statuses[5] == NVMEPEER_E_LAYOUT;
	step_launched.layout--;
	stop_disk(*thread);
	good = read_while_lost(queues, pages) && good;
	lose(queues);
	wanted[2] = 11;
	run_step();
	good = good && worst[0] == NVMEPEER_E_LOST && found_blocks[2] == NVMEPEER_PAGE_NONE && !page_statuses[0];
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0);
	again = disk;
	controller_again(&again);
	disk = again;
	disk_stops = false;
	pthread_create(thread, NULL, disk_main, NULL);
	good = good && !nvmepeer_cuda_reclaim_pages(pages, &launches);
	run_step();
	good = good && !nvmepeer_cuda_read_pages(pages, &step, &launches);
	run_step();
	return good && has_pages(data, 100);
}

static bool page_tables(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_pages_options options = {
		.size = sizeof(options), .tables = TABLES, .pages = TABLE_PAGES, .slots = TABLE_SLOTS,
		.blocks = PAGE_BLOCKS, .most = WANTED, .lba = 100,
	};
	uint32_t places[TABLES * TABLE_PAGES];
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_cuda_buffer *cache;
	struct nvmepeer_cuda_pages *pages;
	pthread_t thread;
	bool good;

	set_device_answers();
	fake.open_files = files;
	*(void **)dlsym(fake_cuda, "fake_launched") = (void *)take_step;
	make_disk();
	for (uint32_t i = 0; i < TABLES * TABLE_PAGES; i++)
		places[i] = 7 * (i % TABLE_PAGES) + i / TABLE_PAGES;
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, 1, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, BYTES, &cache))
		return fails_with(0, 1, "");
	good = pages_open_refused(queues, cache, &options, places);
	good = long_pages_refused(queues, cache, &options, places) && good;
	good = pages_in_runs(queues, cache, &options, places) && good;
	thread = start_disk(queues, cache);
	*(struct nvmepeer_buffer *)(uintptr_t)cache->device = cache->buffer;
	if (nvmepeer_cuda_pages_open(queues, cache, &options, places, &pages))
		return fails_with(0, 1, "");
	good = steps_refused(pages) && good;
	good = run_steps(queues, pages, memory, &thread) && good;
	good = read_late(queues, pages, memory, &thread) && good;
	good = read_unseen(queues, pages, memory, &thread) && good;
	good = good && nvmepeer_cuda_pages_device(pages)[1].first == TABLE_SLOTS;
	stop_disk(thread);
	free(disk.disk);
	free(disk.held);
	nvmepeer_cuda_queues_close(queues);
	nvmepeer_cuda_pages_close(pages);
	nvmepeer_cuda_pages_close(NULL);
	nvmepeer_cuda_buffer_close(cache);
	return good && !*fake_int("fake_modules") && nothing_left(files);
}

static bool lists(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_cuda_buffer *buffer;
	struct nvmepeer_cuda_lists *opened;
	struct nvmepeer_memory *memories;
	pthread_t thread;
	bool good;

	set_device_answers();
	fake.open_files = files;
	*(void **)dlsym(fake_cuda, "fake_launched") = (void *)take_launch;
	make_disk();
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, 1, &queues) ||
	    nvmepeer_cuda_buffer_open(ctrl, cuda, memory, BYTES, &buffer))
		return fails_with(0, 1, "");
	good = lists_open_refused((struct nvmepeer *)&disk, queues, buffer);
	thread = start_disk(queues, buffer);
	if (nvmepeer_cuda_lists_open(queues, &buffer, 1, &opened))
		return fails_with(0, 1, "");
	/* The scratch memory, as the controller accesses it. */
	memories = (struct nvmepeer_memory *)(uintptr_t)opened->memories;
	memories[1].buffer.dma = memories[1].address;
	good = graph_replays(queues, opened, &thread, buffer) && good;
	good = writes_tensors(opened, buffer) && empty_list_ends(opened) && good;
	stop_disk(thread);
	good = lists_refused(opened) && !disk.errors && good;
	free(disk.disk);
	free(disk.held);
	nvmepeer_cuda_queues_close(queues);
	fake.release_refusals = 1;
	good = fails_with(nvmepeer_cuda_lists_close(opened), -EBUSY, "") && good;
	good = !nvmepeer_cuda_lists_close(opened) && !*fake_int("fake_modules") && good;
	nvmepeer_cuda_buffer_close(buffer);
	return good;
}

/* --- Queue pairs of another process -------------------------------------------- */

/* A file with all parts of a queue pair, by page, as a guest or a broker passes them. */
enum { AT_SQ, AT_CQ, AT_DOORBELLS, AT_STATUS, AT_CONTROL, AT_LISTS, AT_DATA = AT_LISTS + 4, AT_END = AT_DATA + 4 };
enum { FILE_LIST_BYTES = 64, PARTS = 7, IN_PAGE = 256 };	/* the status page starts inside a page */

static int parts_file;
static char *parts_memory;

static struct nvmepeer_cuda_file part_of(uint32_t role, uint32_t page, uint64_t bytes)
{
	return (struct nvmepeer_cuda_file){ parts_file, role, 4096 * (uint64_t)page, bytes };
}

/* The parts, in another order than that of the roles, and their geometry. */
static void describe_parts(struct nvmepeer_cuda_file parts[PARTS], struct nvmepeer_geometry *geometry)
{
	parts[0] = part_of(NVMEPEER_CUDA_CONTROL, AT_CONTROL, 4096);
	parts[1] = part_of(NVMEPEER_CUDA_DOORBELL_MEMORY, AT_DOORBELLS, 4096);
	parts[2] = part_of(NVMEPEER_CUDA_CQ, AT_CQ, 4096);
	parts[3] = part_of(NVMEPEER_CUDA_LISTS, AT_LISTS, 4096 * 4);
	parts[4] = part_of(NVMEPEER_CUDA_STATUS, AT_STATUS, 4096 - IN_PAGE);
	parts[4].offset += IN_PAGE;
	parts[5] = part_of(NVMEPEER_CUDA_SQ, AT_SQ, 4096);
	parts[6] = (struct nvmepeer_cuda_file){ 1001, NVMEPEER_CUDA_QUEUE_PAIR, 0, 0 };
	memset(geometry, 0, sizeof(*geometry));
	geometry->list_bytes = FILE_LIST_BYTES;
	geometry->list_memory.length = 4096 * 4;
	geometry->list_memory.dma = (uintptr_t)parts_memory + 4096 * AT_LISTS;
	nvmepeer_geometry_build(&fake.info, &fake.qp_info, &namespace, NVMEPEER_VIEW_DESCRIPTORS, 0,
				geometry, sizeof(*geometry));
}

/* Mappings of the file, of the test and of a queue pair that leaks some. */
static int mappings_of_parts(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "unit-cuda-parts") != NULL;
	fclose(maps);
	return count;
}

static int receive(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *parts, uint32_t count,
		   const struct nvmepeer_geometry *geometry, struct nvmepeer_cuda_queues **queues)
{
	return nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT, parts, count, geometry,
					     sizeof(*geometry), queues);
}

/* A controller on its own mapping of the file. */
static pthread_t start_parts_disk(void)
{
	pthread_t thread;

	controller_init(&disk, ENTRIES, ENTRIES, 4096);
	free(disk.sq);
	free(disk.cq);
	free(disk.doorbells);
	disk.sq = (uint8_t *)parts_memory + 4096 * AT_SQ;
	disk.cq = (uint8_t *)parts_memory + 4096 * AT_CQ;
	disk.doorbells = (struct controller_doorbells *)(parts_memory + 4096 * AT_DOORBELLS + 0x28);
	for (uint32_t i = 0; i < 4096 * 512; i++)
		disk.disk[i] = (uint8_t)((i * 2246822519u) >> 24);
	disk_stops = false;
	pthread_create(&thread, NULL, disk_main, NULL);
	return thread;
}

/* It executes what the queue pair submits. */
static bool parts_work(const struct nvmepeer_queue *queue)
{
	struct nvmepeer_buffer data = { 4096 * 4, (uintptr_t)parts_memory + 4096 * AT_DATA, 0 };
	char *start = parts_memory + 4096 * AT_DATA;
	pthread_t thread = start_parts_disk();
	bool good;

	/* Four pages: through a PRP list. */
	good = !nvmepeer_read(queue, &data, 0, 40, 32) &&
	       !memcmp(start, disk.disk + 512 * 40, 4096 * 4);
	start[700] ^= 1;
	good = good && !nvmepeer_write(queue, &data, 512, 7, 1) && disk.disk[512 * 7 + 188] == (uint8_t)start[700];
	stop_disk(thread);
	free(disk.disk);
	free(disk.held);
	return good && !disk.errors;
}

/* The items of make_list(). */
static bool reads_list(struct nvmepeer_cuda_lists *lists, char *data)
{
	make_list();
	list_count = LIST_ITEMS;
	list_done = (struct nvmepeer_list_done){ 0, -99 };
	forget(data);
	if (nvmepeer_cuda_read_list(lists, &stream_list, NULL))
		return false;
	run_stream();
	return list_done.count == 1 && !list_done.status && has_items(data, LIST_ITEMS, 0);
}

/* The queue pair of another process is read and written through its descriptors alone. */
static bool from_fds(struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_file parts[PARTS];
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_geometry geometry;
	int registers = *fake_int("fake_registers");
	uint32_t calls;
	bool good;

	set_device_answers();
	fake.qp_info.losses = 3;
	fake.open_files = files;
	describe_parts(parts, &geometry);
	calls = fake.calls;
	memset(parts_memory, 0, 4096 * AT_END);
	*(uint32_t *)(parts_memory + 4096 * AT_STATUS + IN_PAGE + NVP_STATUS_STATE) = NVP_STATE_LIVE;
	*(uint32_t *)(parts_memory + 4096 * AT_STATUS + IN_PAGE + NVP_STATUS_LOSSES) = 3;
	if (receive(cuda, parts, PARTS - 1, &geometry, &queues))
		return fails_with(0, 1, "");
	good = parts_work(nvmepeer_cuda_queues_host(queues)) && fake.calls == calls &&
	       nvmepeer_cuda_queues_count(queues) == 1 && *fake_int("fake_registrations") == 6 &&
	       *fake_int("fake_registers") == registers &&
	       !memcmp(nvmepeer_cuda_queues_device(queues), nvmepeer_cuda_queues_host(queues),
		       sizeof(struct nvmepeer_queue)) &&
	       !nvmepeer_check(nvmepeer_cuda_queues_host(queues)) &&
	       !nvmepeer_queue_quiesce(nvmepeer_cuda_queues_host(queues)) &&
	       *(uint32_t *)(parts_memory + 4096 * AT_CONTROL) == 1;
	good = fails_with(nvmepeer_cuda_queues_rearm(queues, 0), -EOPNOTSUPP, "NVMEPEER_CUDA_QUEUE_PAIR") && good;
	good = fails_with(nvmepeer_cuda_queues_quiesce(queues, 0), -EOPNOTSUPP, "created it") && good;
	good = good && !nvmepeer_cuda_queues_close(queues) && mappings_of_parts() == 1;
	if (!nothing_left(files) || receive(cuda, parts, PARTS, &geometry, &queues))
		return false;
	/* With the file of the queue pair this process re-arms it; of the rings only they are cleared. */
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	fake.qp_info.losses++;
	memset(parts_memory, 0xff, 4096 * (AT_CQ + 1));
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && fake.losses == 4 &&
	       !parts_memory[0] && !parts_memory[4096 * AT_CQ] && !parts_memory[4096 * AT_CQ + 1023] &&
	       parts_memory[4096 * AT_CQ + 1024] && queues->queues[0].state->generation == 4;
	nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files) && mappings_of_parts() == 1;
}

/* Memory as the broker has imported it: by the addresses of its pages, or one range. */
static int receive_memory(struct nvmepeer_cuda *cuda, char *start, size_t bytes, uint32_t page_size,
			  uint32_t count, struct nvmepeer_cuda_buffer **buffer)
{
	static uint64_t addresses[1024];

	for (uint32_t i = 0; i < count; i++)
		addresses[i] = (uintptr_t)start + (uint64_t)page_size * i;
	return nvmepeer_cuda_buffer_from_addresses(cuda, start, bytes, page_size, addresses, count, buffer);
}

static bool memory_refused(struct nvmepeer_cuda *cuda, char *start)
{
	static const struct {
		uint32_t offset, bytes, page_size, count;
		const char *message;
	} cases[] = {
		{ 0, 0, 4096, 1, "a length above 0" },
		{ 2, 4096, 4096, 1, "multiple of 4" },
		{ 0, 4096, 6144, 1, "pages of 6144" },
		{ 0, 4096, 512, 1, "pages of 512" },
		{ 0, 16384, 4096, 3, "3 addresses of 16384" },
		{ 0, 16384, 4096, 0, "0 addresses" },
		{ 512, 8192, 4096, 2, "from the start of a page" },
	};
	struct nvmepeer_cuda_buffer *buffer;
	int allocations = *fake_int("fake_allocations");
	uint64_t odd[2] = { 4096, 8200 };
	bool good = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		good = fails_with(receive_memory(cuda, start + cases[i].offset, cases[i].bytes,
						 cases[i].page_size, cases[i].count, &buffer),
				  -EINVAL, cases[i].message) && good;
	good = fails_with(nvmepeer_cuda_buffer_from_addresses(cuda, start, 8192, 4096, odd, 2, &buffer),
			  -EINVAL, "address 1 is 0x2008") && good;
	refuse("cuMemAlloc_v2", 2);
	good = fails_with(receive_memory(cuda, start, 8192, 4096, 2, &buffer), -ENOMEM, "") && good;
	return good && *fake_int("fake_allocations") == allocations;
}

/* Lists of a worker: it has descriptors and addresses, and no node of the controller. */
static bool lists_from_fds(struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_buffer *data, *scratch, *small, *pages;
	struct nvmepeer_cuda_file parts[PARTS];
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_geometry geometry;
	struct nvmepeer_cuda_lists *lists;
	pthread_t thread;
	uint32_t calls;
	char *extra;
	bool good;

	set_device_answers();
	fake.open_files = files;
	*(void **)dlsym(fake_cuda, "fake_launched") = (void *)take_launch;
	describe_parts(parts, &geometry);
	memset(parts_memory, 0, 4096 * AT_END);
	*(uint32_t *)(parts_memory + 4096 * AT_STATUS + IN_PAGE + NVP_STATUS_STATE) = NVP_STATE_LIVE;
	calls = fake.calls;
	if (receive(cuda, parts, PARTS - 1, &geometry, &queues))
		return fails_with(0, 1, "");
	good = memory_refused(cuda, memory);
	extra = aligned_alloc(1 << 21, nvmepeer_cuda_lists_scratch_bytes(queues));
	if (!extra || receive_memory(cuda, memory, BYTES, 4096, BYTES / 4096, &data) ||
	    receive_memory(cuda, extra, nvmepeer_cuda_lists_scratch_bytes(queues), 4096, 1, &scratch) ||
	    receive_memory(cuda, extra, 4096, 4096, 1, &small) ||
	    receive_memory(cuda, memory, BYTES, 8192, BYTES / 8192, &pages))
		return fails_with(0, 1, "");
	good = fails_with(nvmepeer_cuda_lists_open_with(queues, &pages, 1, scratch, &lists), -EINVAL,
			  "pages of 8192 bytes, the queue pair has 4096") && good;
	good = fails_with(nvmepeer_cuda_lists_open(queues, &data, 1, &lists), -EOPNOTSUPP, "descriptors") && good;
	good = fails_with(nvmepeer_cuda_lists_open_with(queues, &data, 1, small, &lists), -EINVAL, "4096 bytes of") && good;
	if (nvmepeer_cuda_lists_open_with(queues, &data, 1, scratch, &lists))
		return fails_with(0, 1, "");
	thread = start_parts_disk();
	good = reads_list(lists, memory) && writes_tensors(lists, data) && fake.calls == calls && good;
	stop_disk(thread);
	free(disk.disk);
	free(disk.held);
	good = good && !disk.errors && !nvmepeer_cuda_queues_close(queues) &&
	       !nvmepeer_cuda_lists_close(lists) && !*fake_int("fake_modules");
	/* It has stayed the caller's. */
	good = good && !nvmepeer_cuda_buffer_close(scratch) && !nvmepeer_cuda_buffer_close(small) &&
	       !nvmepeer_cuda_buffer_close(pages) && !nvmepeer_cuda_buffer_close(data);
	free(extra);
	return good && nothing_left(files) && mappings_of_parts() == 1;
}

static void *serve_main(void *serve)
{
	return (void *)(intptr_t)nvmepeer_serve_run(serve);
}

enum { SERVED_PARTS = NVME_PEER_EXPORT_CONTROL + 1 };

/* The parts of a served queue pair, whose commands a thread of this process executes. */
static bool from_served(struct nvmepeer_cuda *cuda, int files)
{
	static const uint32_t roles[SERVED_PARTS] = {
		[NVME_PEER_EXPORT_SQ] = NVMEPEER_CUDA_SQ,
		[NVME_PEER_EXPORT_CQ] = NVMEPEER_CUDA_CQ,
		[NVME_PEER_EXPORT_DOORBELL] = NVMEPEER_CUDA_DOORBELL_MEMORY,
		[NVME_PEER_EXPORT_STATUS] = NVMEPEER_CUDA_STATUS,
		[NVME_PEER_EXPORT_CONTROL] = NVMEPEER_CUDA_CONTROL,
	};
	struct nvmepeer_serve_options options = { .size = sizeof(options), .entries = ENTRIES };
	struct nvmepeer_geometry geometry = { .timeout_ns = 0 };
	struct nvmepeer_cuda_file parts[SERVED_PARTS];
	char *data = parts_memory + 4096 * AT_DATA;
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_serve *serve;
	struct nvmepeer_buffer buffer;
	struct nvmepeer_export part;
	struct nvmepeer_ns_info ns;
	pthread_t thread;
	bool good;

	set_device_answers();
	fake.open_files = files;
	memset(parts_memory, 0x5a, 4096 * AT_END);
	if (nvmepeer_serve_create(&options, &serve) ||
	    nvmepeer_serve_add_fd(serve, parts_file, 0, &ns, sizeof(ns)) ||
	    nvmepeer_serve_add_buffer(serve, data, 4096, &buffer) ||
	    nvmepeer_serve_geometry(serve, &ns, NVMEPEER_VIEW_DESCRIPTORS, &geometry, sizeof(geometry)))
		return fails_with(0, 1, "");
	for (uint32_t i = 0; i < SERVED_PARTS; i++) {
		if (nvmepeer_serve_export(serve, (enum nvme_peer_export)i, &part, sizeof(part)))
			return fails_with(0, 1, "");
		parts[i] = (struct nvmepeer_cuda_file){ part.fd, roles[i], part.offset, part.length };
	}
	if (receive(cuda, parts, SERVED_PARTS, &geometry, &queues))
		return fails_with(0, 1, "");
	for (uint32_t i = 0; i < SERVED_PARTS; i++)
		close(parts[i].fd);
	pthread_create(&thread, NULL, serve_main, serve);
	memset(data, 0, 4096);
	good = !nvmepeer_read(nvmepeer_cuda_queues_host(queues), &buffer, 0, 0, 8) &&
	       data[0] == 0x5a && data[4095] == 0x5a;
	nvmepeer_serve_stop(serve);
	pthread_join(thread, NULL);
	good = good && !nvmepeer_cuda_queues_close(queues);
	nvmepeer_serve_destroy(serve);
	return good && nothing_left(files);
}

/*
 * In a child without capabilities: doorbells that are registers are refused, and those in
 * memory are not.
 */
static bool without_capabilities(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_file *parts,
				 const struct nvmepeer_geometry *geometry)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	struct nvmepeer_cuda_queues *queues;
	int status = 0;
	pid_t child;

	setenv("NVMEPEER_NVIDIA_PARAMS", "/dev/null", 1);
	fflush(stdout);
	child = fork();
	if (!child) {
		syscall(SYS_capset, &header, data);
		parts[1].role = NVMEPEER_CUDA_DOORBELL;
		if (!fails_with(receive(cuda, parts, PARTS, geometry, &queues), -EPERM, "CAP_SYS_ADMIN"))
			_exit(1);
		parts[1].role = NVMEPEER_CUDA_DOORBELL_MEMORY;
		_exit(receive(cuda, parts, PARTS, geometry, &queues) ? 2 : 0);
	}
	waitpid(child, &status, 0);
	unsetenv("NVMEPEER_NVIDIA_PARAMS");
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Rings and lists in GPU memory of this process; the rest are registers and pages of files. */
static bool from_fds_in_gpu(struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_file parts[PARTS];
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_geometry geometry;
	int registers = *fake_int("fake_registers");
	bool good;

	set_device_answers();
	fake.open_files = files;
	describe_parts(parts, &geometry);
	parts[1].role = NVMEPEER_CUDA_DOORBELL;
	for (int i = 0; i < PARTS; i++) {
		if (parts[i].role != NVMEPEER_CUDA_SQ && parts[i].role != NVMEPEER_CUDA_CQ &&
		    parts[i].role != NVMEPEER_CUDA_LISTS)
			continue;
		parts[i].fd = NVMEPEER_CUDA_GPU_MEMORY;
		parts[i].offset += (uintptr_t)memory;
	}
	good = !receive(cuda, parts, PARTS - 1, &geometry, &queues) &&
	       queues->queues[0].sq == (uintptr_t)memory + 4096 * AT_SQ &&
	       queues->queues[0].cq == (uintptr_t)memory + 4096 * AT_CQ &&
	       queues->queues[0].list_area == (uintptr_t)memory + 4096 * AT_LISTS &&
	       *fake_int("fake_registrations") == 3 && *fake_int("fake_registers") == registers + 1 &&
	       !nvmepeer_cuda_queues_close(queues);
	*fake_int("fake_owner") = 1;
	good = fails_with(receive(cuda, parts, PARTS, &geometry, &queues), -EINVAL, "device 1") && good;
	*fake_int("fake_owner") = 0;
	*fake_int("fake_ordering") = 0;
	good = fails_with(receive(cuda, parts, PARTS, &geometry, &queues), -EOPNOTSUPP, "ORDERING") && good;
	/* Completions in host memory are not written to the GPU. */
	parts[2] = part_of(NVMEPEER_CUDA_CQ, AT_CQ, 4096);
	good = good && !receive(cuda, parts, PARTS - 1, &geometry, &queues) &&
	       !nvmepeer_cuda_queues_close(queues);
	*fake_int("fake_ordering") = 100;
	good = without_capabilities(cuda, parts, &geometry) && good;
	parts[4].fd = NVMEPEER_CUDA_GPU_MEMORY;
	good = fails_with(receive(cuda, parts, PARTS, &geometry, &queues), -EBADF, "status page") && good;
	return good && nothing_left(files) && mappings_of_parts() == 1;
}

/* One wrong value in the parts or in the geometry. */
static const struct {
	size_t at;
	uint64_t value;
	int result;
	const char *message;
	uint32_t bytes;
	bool of_geometry;
} wrong_parts[] = {
#define PART(index, field, value, result, message) { (index) * sizeof(struct nvmepeer_cuda_file) + \
	offsetof(struct nvmepeer_cuda_file, field), value, result, message, \
	sizeof(((struct nvmepeer_cuda_file *)0)->field), false }
#define GEOMETRY(field, value, result, message) { offsetof(struct nvmepeer_geometry, field), value, \
	result, message, sizeof(((struct nvmepeer_geometry *)0)->field), true }
	PART(0, role, 0, -EINVAL, "has role 0"),
	PART(0, role, 10, -EINVAL, "has role 10"),
	PART(0, role, NVMEPEER_CUDA_SQ, -EEXIST, "descriptors 0 and 5 are both the submission ring"),
	PART(0, role, NVMEPEER_CUDA_DOORBELL, -EEXIST, "descriptors 0 and 1 are both the doorbells"),
	PART(0, role, NVMEPEER_CUDA_READBACK, -ENODATA, "control page"),
	PART(6, role, NVMEPEER_CUDA_READBACK, -EINVAL, "has no readback word"),
	PART(0, bytes, sizeof(struct nvme_peer_control) - 1, -ENOSPC, "control page has 15 bytes; 16 are"),
	PART(1, bytes, 0x2c + 3, -ENOSPC, "48 are needed"),
	PART(2, bytes, 16 * ENTRIES - 1, -ENOSPC, "completion ring has 1023"),
	PART(3, bytes, 4 * ENTRIES * FILE_LIST_BYTES - 1, -ENOSPC, "PRP lists"),
	PART(4, bytes, sizeof(struct nvme_peer_status) - 1, -ENOSPC, "status page"),
	PART(5, bytes, 64 * ENTRIES - 1, -ENOSPC, "submission ring"),
	PART(5, bytes, 4096 * AT_END + 1, -ENOSPC, "the file has"),
	PART(3, offset, 4096 * AT_END, -ENOSPC, "the file has"),
	PART(3, offset, ~0ull & ~7ull, -EINVAL, "for the PRP lists"),
	PART(3, bytes, ~0ull, -EINVAL, "for the PRP lists"),
	PART(5, offset, 4096 + 32, -EINVAL, "multiple of 64"),
	PART(2, offset, 8, -EINVAL, "multiple of 16"),
	PART(0, offset, 4, -EINVAL, "multiple of 8"),
	PART(2, fd, 999, -EBADF, "descriptor 999 for the completion ring"),
	PART(6, fd, 999, -EBADF, "descriptor 999"),
	GEOMETRY(version, 2, -EPROTO, "version 2 of the geometry, 1 of the library"),
	GEOMETRY(flags, NVMEPEER_ONE_RANGE << 1, -E2BIG, "flags 0x80 of the geometry, 0x7f of the library"),
	GEOMETRY(sq, 4096, -EINVAL, "NVMEPEER_VIEW_DESCRIPTORS"),
	GEOMETRY(readback, 4, -EINVAL, "NVMEPEER_VIEW_DESCRIPTORS"),
	GEOMETRY(state, 128, -EINVAL, "NVMEPEER_VIEW_DESCRIPTORS"),
	GEOMETRY(sq_entries, 48, -EINVAL, "entries"),
	GEOMETRY(cids, 40, -EINVAL, "set cids to 0"),
	GEOMETRY(metadata_bytes, 8, -EINVAL, "metadata"),
	GEOMETRY(flags, NVMEPEER_CQ_APART_FROM_DATA, -EINVAL, "data"),
	GEOMETRY(flags, NVMEPEER_CQ_APART_FROM_DATA | NVMEPEER_DATA_REMOTE, -ENODATA, "readback word"),
	GEOMETRY(list_bytes, 0, -EINVAL, "has no PRP lists"),
	GEOMETRY(sq_doorbell, 0x1000, -ENOSPC, "doorbells has 4096 bytes; 4100"),
	GEOMETRY(sq_doorbell, 0xfffffffffffffffc, -EINVAL, "at most 0xffffffff"),
	GEOMETRY(cq_doorbell, 0x100000000, -EINVAL, "at most 0xffffffff"),
	GEOMETRY(list_memory.pages, 0x1004, -EINVAL, "multiple of 8"),
	GEOMETRY(list_memory.pages, 0x1000, -EINVAL, "0 in list_memory.dma"),
	GEOMETRY(qid, 6, -EINVAL, "the geometry has 6"),
};

/* Each wrong value has its error, and nothing is mapped, registered or allocated. */
static bool from_fds_refused(struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	for (size_t i = 0; i < sizeof(wrong_parts) / sizeof(wrong_parts[0]); i++) {
		struct {
			struct nvmepeer_geometry geometry;
			uint64_t more;
		} newer = { .more = 0 };
		struct nvmepeer_cuda_file parts[PARTS];
		char *object = wrong_parts[i].of_geometry ? (char *)&newer.geometry : (char *)parts;

		describe_parts(parts, &newer.geometry);
		memcpy(object + wrong_parts[i].at, &wrong_parts[i].value, wrong_parts[i].bytes);
		good = fails_with(receive(cuda, parts, PARTS, &newer.geometry, &queues),
				  wrong_parts[i].result, wrong_parts[i].message) &&
		       nothing_left(files) && mappings_of_parts() == 1 && good;
		describe_parts(parts, &newer.geometry);
		good = fails_with(nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT + 1, parts, PARTS,
								&newer.geometry, sizeof(newer), &queues),
				  -EPROTO, "of the library") && good;
		good = fails_with(nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT, parts, PARTS,
								&newer.geometry, 8, &queues),
				  -EINVAL, "8 bytes") && good;
		newer.more = 1;
		good = fails_with(nvmepeer_cuda_queues_from_fds(cuda, NVMEPEER_LAYOUT, parts, PARTS,
								&newer.geometry, sizeof(newer), &queues),
				  -E2BIG, "update") && good;
	}
	return good && nothing_left(files);
}

/* Each step after the checks fails once; what was mapped before is released. */
static bool from_fds_undone(struct nvmepeer_cuda *cuda, int files)
{
	static const struct {
		const char *call;
		int cuda, result;
		const char *message;
	} cases[] = {
		{ "cuMemAlloc_v2", 2, -ENOMEM, "fewer entries" },
		{ "cuMemHostRegister_v2", 800, -EPERM, "CAP_SYS_ADMIN" },
		{ "cuMemHostGetDevicePointer_v2", 1, -EIO, "cuMemHostGetDevicePointer" },
		{ "cuMemcpyHtoDAsync_v2", 700, -EIO, "cuMemcpyHtoDAsync" },
	};
	char path[] = "/tmp/unit-cuda-parts-XXXXXX";
	struct nvmepeer_cuda_file parts[PARTS];
	struct nvmepeer_explanation why;
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_geometry geometry;
	int file, read_only;
	bool good = true;

	set_device_answers();
	fake.open_files = files;
	describe_parts(parts, &geometry);
	parts[1].role = NVMEPEER_CUDA_DOORBELL;
	/* The doorbells come first, so that their registration is the one that fails. */
	parts[PARTS - 1] = parts[0];
	parts[0] = parts[1];
	parts[1] = parts[PARTS - 1];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse(cases[i].call, cases[i].cuda);
		good = fails_with(receive(cuda, parts, PARTS - 1, &geometry, &queues), cases[i].result,
				  cases[i].message) && mappings_of_parts() == 1 && good;
		nvmepeer_explain(&why, sizeof(why));
		/* The other two fail in what all allocations and copies call. */
		good = good && (i % 3 == 0 || !strcmp(why.call, "nvmepeer_cuda_queues_from_fds")) &&
		       *fake_int("fake_allocations") <= 1 &&
		       !receive(cuda, parts, PARTS - 1, &geometry, &queues) &&
		       !nvmepeer_cuda_queues_close(queues) && nothing_left(files);
	}
	file = mkstemp(path);
	read_only = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	good = good && !ftruncate(file, 4096 * AT_END);
	parts[PARTS - 2].fd = read_only;
	good = fails_with(receive(cuda, parts, PARTS - 1, &geometry, &queues), -EACCES,
			  "with the rights of the part") && mappings_of_parts() == 1 && good;
	close(read_only);
	close(file);
	unlink(path);
	parts[PARTS - 2].fd = parts_file;
	good = good && !receive(cuda, parts, PARTS - 1, &geometry, &queues) &&
	       !nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

static bool open_parts_file(void)
{
	parts_file = (int)syscall(SYS_memfd_create, "unit-cuda-parts", 1u);
	if (parts_file < 0 || ftruncate(parts_file, 4096 * AT_END))
		return false;
	parts_memory = mmap(NULL, 4096 * AT_END, PROT_READ | PROT_WRITE, MAP_SHARED, parts_file, 0);
	return parts_memory != MAP_FAILED;
}

static bool flags(struct nvmepeer_cuda *cuda)
{
	static const int expected[] = { 3 | 8, 3, 3 | 4 };
	static char page[4096];
	uint64_t address;
	bool good = true;

	for (int kind = CUDA_MEMORY_READ_ONLY; kind <= CUDA_MEMORY_REGISTERS; kind++) {
		good = good && !cuda_register(cuda, (enum cuda_memory)kind, page, 4096, &address) &&
		       address == (uintptr_t)page &&
		       *fake_int("fake_register_flags") == expected[kind];
		cuda_unregister(cuda, page);
	}
	refuse("cuMemHostRegister_v2", 712);
	good = fails_with(cuda_register(cuda, CUDA_MEMORY_READ_WRITE, page, 4096, &address), -EFAULT,
		    "unregister it first") && good;
	refuse("cuMemHostRegister_v2", 2);
	good = fails_with(cuda_register(cuda, CUDA_MEMORY_READ_ONLY, page, 4096, &address), -EFAULT,
		    "kernel log") && good;
	return good && !*fake_int("fake_registrations");
}

int main(int argc, char **argv)
{
	struct nvmepeer_cuda *cuda;
	struct nvmepeer *ctrl;
	char library[4096], old[4096];
	const char *here;
	int files;

	(void)argc;
	here = dirname(argv[0]);	/* modifies argv[0] */
	snprintf(library, sizeof(library), "%s/../lib/fake-libcuda.so", here);
	snprintf(old, sizeof(old), "%s/../lib/fake-libcuda-old.so", here);
	fake_reset();
	fake_cuda = dlopen(library, RTLD_NOW);
	/* Throughout, another thread captures a stream in the global mode. */
	*fake_int("fake_capturing") = 1;
	ktap_start();
	ktap_check(opening(library, old) && other_streams_undisturbed(), "open: no library, old library, no driver, no GPU");
	if (nvmepeer_cuda_open(0, &cuda) || nvmepeer_open("nvmep0", &ctrl)) {
		ktap_check(false, "open");
		return ktap_end();
	}
	if (!open_parts_file()) {
		ktap_check(false, "a file for the parts of a queue pair");
		return ktap_end();
	}
	files = fake.open_files;
	nothing_left(files);
	ktap_check(opening_queues(ctrl, cuda, files), "queues: several do not overlap, with a copy in GPU memory");
	ktap_check(queues_refused(ctrl, cuda, files), "queues: each error is explained and leaks nothing");
	ktap_check(rearming_queues(ctrl, cuda, files), "queues: re-arm after a loss, and after a failed re-arm");
	ktap_check(ordering_required(ctrl, cuda, files), "queues: refused without ordering of writes");
	ktap_check(privileges_checked_first(ctrl, cuda, files), "queues: missing privileges refused before anything is created");
	ktap_check(layouts(ctrl, cuda, files), "queues: refused to kernels with another layout");
	ktap_check(options(ctrl, cuda, files), "queues: rings, CIDs, lists and timeout as requested");
	ktap_check(opening_buffers(ctrl, cuda, files), "buffer: memory of the caller at any offset in a page");
	ktap_check(buffers_refused(ctrl, cuda, files), "buffer: each error is explained and leaks nothing");
	ktap_check(failed_open_waits_for_nothing(ctrl, files), "buffer: a failed open exposes nothing and waits for no kernel");
	ktap_check(closing_in_use(ctrl, cuda, files), "close: memory that the controller may still access stays open");
	ktap_check(dmabuf(cuda, files), "memory: exported as a dma-buf for I/O of the CPU");
	ktap_check(opening_sets(ctrl, cuda, files), "set: two controllers");
	ktap_check(lists(ctrl, cuda, files), "lists: on a stream, in a graph, after a re-arm, and refused");
	ktap_check(page_tables(ctrl, cuda, files), "pages: misses are read on a stream, in a graph, after a re-arm and late, and refused");
	ktap_check(from_fds(cuda, files), "descriptors: a controller executes the commands, without a call of the kernel");
	ktap_check(from_served(cuda, files), "descriptors: a queue pair that a process serves");
	ktap_check(lists_from_fds(cuda, files), "descriptors: lists of a process without a node");
	ktap_check(from_fds_in_gpu(cuda, files), "descriptors: rings and lists in GPU memory");
	ktap_check(from_fds_refused(cuda, files), "descriptors: each wrong value has its error and changes nothing");
	ktap_check(from_fds_undone(cuda, files), "descriptors: each failed step is undone");
	ktap_check(flags(cuda), "register: flags of read-only, writable and register pages, and errors");
	nvmepeer_close(ctrl);
	nvmepeer_cuda_close(cuda);
	ktap_check(!*fake_int("fake_streams"), "close: no stream is left");
	return ktap_end();
}
