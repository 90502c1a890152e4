// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-cuda.c: the CUDA glue against a libcuda without a GPU and a kernel made
 * of one structure: what it makes, and that every refusal has its own errno and
 * an explanation that says what to do, and leaves nothing behind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../internal.h"
#include "../../../selftests/device/ktap.h"
#include "fake.h"

enum { ENTRIES = 64, QUEUES = 3, BYTES = 1 << 20 };

static void *fake_cuda;

/* What stands for the caller's GPU memory. */
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

/* Is the failure as expected, and explained by the one channel there is? */
static bool says(int got, int expected, const char *message)
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

/* The lowest number that no file has: a dma-buf left open would hold it. */
static int next_descriptor(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD, 0);

	close(fd);
	return fd;
}

/* Has everything been given back? */
static bool nothing_left(int files)
{
	static int descriptor;

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
	good = says(nvmepeer_cuda_open(0, &cuda), -ENOENT, "install NVIDIA's driver");
	setenv("NVMEPEER_LIBCUDA", old, 1);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENOSYS, "cuMemGetHandleForAddressRange") && good;
	setenv("NVMEPEER_LIBCUDA", library, 1);
	refuse("cuInit", 100);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENODEV, "cuInit") && good;
	refuse("cuDevicePrimaryCtxRetain", 46);
	good = says(nvmepeer_cuda_open(0, &cuda), -ENODEV, "exclusive") && good;
	return says(nvmepeer_cuda_open(3, &cuda), -ENODEV, "no CUDA device 3") && good;
}

/* What the controller answers when rings lie in GPU memory. */
static void answer_as_device(void)
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

/* Rings, lists and states of several queue pairs: all in one piece of memory, apart. */
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

/* Kernels look for losses, and ask for help, at a page of each queue pair. */
static bool pages_are_known(const struct nvmepeer_cuda_queues *queues)
{
	for (uint32_t i = 0; i < queues->count; i++) {
		const struct nvmepeer_queue *queue = &queues->queues[i];

		if (!queue->status || !queue->request || queue->status == queue->request ||
		    nvmepeer_queue_give_up(queue) || *(uint32_t *)(uintptr_t)queue->request != 1)
			return false;
	}
	return true;
}

static bool opening_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	bool good;

	answer_as_device();
	fake.open_files = files;
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues))
		return says(0, 1, "");
	good = nvmepeer_cuda_queues_count(queues) == QUEUES && queues_are_apart(queues) &&
	       !memcmp(nvmepeer_cuda_queues_device(queues), nvmepeer_cuda_queues_host(queues),
		       QUEUES * sizeof(struct nvmepeer_queue)) &&
	       queues->queues[2].state->credits == ENTRIES - 1 &&
	       !(queues->queues[2].flags & NVMEPEER_CQ_APART_FROM_DATA) &&
	       fake.open_files == files + QUEUES &&
	       *fake_int("fake_registrations") == 3 * QUEUES && pages_are_known(queues);
	nvmepeer_cuda_queues_close(queues);
	fake.table_break = 40;		/* inside the lists */
	good = good && !nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues) &&
	       queues->queues[0].list_memory.pages &&
	       *(uint64_t *)(uintptr_t)queues->queues[0].list_memory.pages ==
		       0x10000000 + queues->queues[0].list_area - queues->queues[0].sq;
	nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

/* Each step of opening fails once. */
static bool queues_refused(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	static const struct {
		const char *call;
		int cuda, result;
		const char *message;
	} cases[] = {
		{ "cuMemAlloc_v2", 2, -ENOMEM, "fewer entries" },
		{ "cuMemsetD8_v2", 719, -EIO, "cuMemsetD8" },
		{ "cuMemGetHandleForAddressRange", 801, -EOPNOTSUPP, "nvidia-open" },
		{ "cuMemHostRegister_v2", 800, -EPERM, "CAP_SYS_ADMIN" },
		{ "cuMemHostRegister_v2", 1, -EFAULT, "570.133.07" },
		{ "cuMemHostRegister_v2", 304, -EFAULT, "dma_map_resource" },
		{ "cuMemHostRegister_v2", 801, -EOPNOTSUPP, "virtual machine" },
		{ "cuMemHostRegister_v2", 999, -EIO, "CUDA_ERROR_999" },
		{ "cuMemHostGetDevicePointer_v2", 1, -EIO, "cuMemHostGetDevicePointer" },
		{ "cuMemcpyHtoD_v2", 700, -EIO, "cuMemcpyHtoD" },
	};
	static const struct {
		unsigned long command;
		int error;
		const char *message;
	} kernel[] = {
		{ NVME_PEER_BUF_IMPORT, ENXIO, "host RAM" },
		{ NVME_PEER_QP_CREATE, EPERM, "CAP_SYS_RAWIO" },
		{ NVME_PEER_QP_EXPORT, ENXIO, "other doorbell spacing" },
		{ NVME_PEER_BUF_TABLE, EPERM, "CAP_SYS_RAWIO" },
	};
	bool good = true;

	answer_as_device();
	fake.open_files = files;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse(cases[i].call, cases[i].cuda);
		good = says(try_queues(ctrl, cuda, ENTRIES, QUEUES), cases[i].result,
			    cases[i].message) && nothing_left(files) && good;
	}
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++) {
		fake.fail_command = kernel[i].command;
		fake.fail_error = kernel[i].error;
		good = says(try_queues(ctrl, cuda, ENTRIES, QUEUES), -kernel[i].error,
			    kernel[i].message) && nothing_left(files) && good;
	}
	good = says(try_queues(ctrl, cuda, 48, 1), -EINVAL, "power of two") && good;
	return says(try_queues(ctrl, cuda, ENTRIES, 0), -EINVAL, "one queue pair") && good;
}

/* As a device leaves it: calls lost, entries in the completion ring. */
static void lose(const struct nvmepeer_cuda_queues *queues)
{
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	fake.qp_info.losses++;
	for (uint32_t i = 0; i < queues->count; i++) {
		const struct nvmepeer_queue *queue = &queues->queues[i];

		memset((void *)(uintptr_t)queue->cq, 0xff, 16 * ENTRIES);
		queue->state->credits = 3;
		queue->state->head = 5;
		queue->state->tail = (uint64_t)7 << NVMEPEER_TICKET_SHIFT;
		nvmepeer_mark_lost(queue);
	}
}

/* Empty, of generation @generation, and its tickets begin with a new round. */
static bool begins_anew(const struct nvmepeer_queue *queue, uint32_t generation)
{
	static const char zero[16 * ENTRIES];
	const struct nvmepeer_state *state = queue->state;
	uint32_t ticket = (uint32_t)(state->tail >> NVMEPEER_TICKET_SHIFT);

	return !memcmp((void *)(uintptr_t)queue->cq, zero, sizeof(zero)) && !state->lost &&
	       state->generation == generation && state->credits == ENTRIES - 1 && ticket > 7 &&
	       ticket % (2 * ENTRIES) == 0 && state->head == ticket &&
	       !(state->tail & NVMEPEER_TAIL_LOST);
}

/* A re-arm that failed on the way is gone through with the next time. */
static bool rearm_refused(struct nvmepeer_cuda_queues *queues)
{
	static const struct {
		const char *call;
		const char *message;
	} cases[] = {
		{ "cuMemsetD8_v2", "cuMemsetD8" },
		{ "cuMemcpyDtoH_v2", "cuMemcpyDtoH" },
		{ "cuMemcpyHtoD_v2", "cuMemcpyHtoD" },
	};
	bool good = true;

	queues->count = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		lose(queues);
		refuse(cases[i].call, 700);
		good = says(nvmepeer_cuda_queues_rearm(queues, 0), -EIO, cases[i].message) && good;
		/* The kernel had re-armed it by then, but where the ring was not cleared. */
		fake.qp_info.state = i ? NVME_PEER_QP_LIVE : NVME_PEER_QP_QUIESCED;
		good = good && !nvmepeer_cuda_queues_rearm(queues, 0) &&
		       begins_anew(&queues->queues[0], fake.qp_info.generation);
	}
	lose(queues);
	fake.fail_command = NVME_PEER_QP_REARM;
	fake.fail_error = ESHUTDOWN;
	good = says(nvmepeer_cuda_queues_rearm(queues, 0), -ESHUTDOWN, "") && good;
	fake.fail_command = NVME_PEER_QP_REARM;
	fake.fail_error = EAGAIN;
	good = good && nvmepeer_cuda_queues_rearm(queues, 10) == -ETIMEDOUT;
	fake.fail_command = 0;
	queues->count = QUEUES;
	return good;
}

/* Lost and back. */
static bool rearming_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_state before;
	bool good = true;

	answer_as_device();
	fake.open_files = files;
	if (nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, QUEUES, &queues))
		return says(0, 1, "");
	lose(queues);
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) && fake.losses == 1;
	for (uint32_t i = 0; i < QUEUES; i++)
		good = good && begins_anew(&queues->queues[i], 10 + i);
	/* What lost nothing is left as it is. */
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	queues->queues[1].state->credits = 3;
	before = *queues->queues[1].state;
	good = good && !nvmepeer_cuda_queues_rearm(queues, 0) &&
	       !memcmp(&before, queues->queues[1].state, sizeof(before));
	good = good && rearm_refused(queues);
	nvmepeer_cuda_queues_close(queues);
	return good && nothing_left(files);
}

/* Where data and completions could come in another order, nothing opens. */
static bool order_is_asked_for(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	bool good;

	answer_as_device();
	fake.open_files = files;
	*fake_int("fake_ordering") = 0;
	good = says(try_queues(ctrl, cuda, ENTRIES, 1), -EOPNOTSUPP, "WRITES_ORDERING of device 0 is 0");
	*fake_int("fake_ordering") = 200;
	good = good && !try_queues(ctrl, cuda, ENTRIES, 1);
	*fake_int("fake_ordering") = 100;
	refuse("cuDeviceGetAttribute", 1);
	good = says(try_queues(ctrl, cuda, ENTRIES, 1), -EOPNOTSUPP, "not known") && good;
	fake.qp_info.cq_pci_address.valid = 0;
	good = says(try_queues(ctrl, cuda, ENTRIES, 1), -EINVAL,
		    "completions would not lie beside the data") && good;
	return good && nothing_left(files);
}

/* In a child without CAP_SYS_ADMIN: refused before anything is made, or let through. */
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
		_exit(!result ? 1 : says(result, -EPERM, "PeerMappingOverride=1") && !fake.calls ? 2 : 3);
	}
	waitpid(child, &status, 0);
	unsetenv("NVMEPEER_NVIDIA_PARAMS");
	unlink(path);
	close(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool rights_come_first(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	answer_as_device();
	fake.open_files = files;
	return without_admin(ctrl, cuda, "RegistryDwords: \"\"\n") == 2 &&
	       without_admin(ctrl, cuda, "RegistryDwords: \"PeerMappingOverride=1\"\n") == 1;
}

static int try_buffer(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, void *pointer, size_t bytes)
{
	struct nvmepeer_cuda_buffer *buffer;
	int error = nvmepeer_cuda_buffer_open(ctrl, cuda, pointer, bytes, &buffer);

	if (!error)
		nvmepeer_cuda_buffer_close(buffer);
	return error;
}

/* The caller's memory, wherever it begins in its pages. */
static bool opening_buffers(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_buffer *buffer;
	bool good = true;

	answer_as_device();
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
	       buffer->buffer.pages && !buffer->buffer.dma &&
	       ((uint64_t *)(uintptr_t)buffer->buffer.pages)[0] == 0x10000000 &&
	       ((uint64_t *)(uintptr_t)buffer->buffer.pages)[2] == 0x10102000;
	nvmepeer_cuda_buffer_close(buffer);
	good = good && says(try_buffer(ctrl, cuda, memory + 512, BYTES), -EINVAL,
			    "512 bytes into a page of 4096");
	return good && nothing_left(files);
}

static bool buffers_refused(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	static const struct {
		const char *fact;
		int value, result;
		const char *message;
	} cases[] = {
		{ "fake_memory_type", 1, -EINVAL, "no device memory of CUDA" },
		{ "fake_managed", 1, -EINVAL, "managed memory" },
		{ "fake_owner", 1, -EINVAL, "memory of CUDA device 1" },
	};
	bool good;

	answer_as_device();
	fake.open_files = files;
	good = says(try_buffer(ctrl, cuda, memory + 2, 4096), -EINVAL, "multiple of 4");
	good = says(try_buffer(ctrl, cuda, memory, 0), -EINVAL, "some bytes") && good;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int *fact = fake_int(cases[i].fact), before = *fact;

		*fact = cases[i].value;
		good = says(try_buffer(ctrl, cuda, memory, BYTES), cases[i].result,
			    cases[i].message) && good;
		*fact = before;
	}
	refuse("cuPointerGetAttribute", 1);
	good = says(try_buffer(ctrl, cuda, memory, BYTES), -EINVAL, "no device memory of CUDA") && good;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = says(try_buffer(ctrl, cuda, memory, BYTES), -EINVAL, "from end to end") && good;
	*fake_int("fake_capable") = 0;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = says(try_buffer(ctrl, cuda, memory, BYTES), -EOPNOTSUPP, "gpuDirectRDMACapable") && good;
	*fake_int("fake_capable") = 1;
	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EXDEV;
	good = says(try_buffer(ctrl, cuda, memory, BYTES), -EXDEV, "nvme-peer route") && good;
	return good && nothing_left(files);
}

/* Memory that the CPU's own I/O goes to: made by the glue, or the caller's. */
static bool lending(struct nvmepeer_cuda *cuda, int files)
{
	void *made = NULL;
	int fd;
	bool good;

	answer_as_device();
	fake.open_files = files;
	good = !nvmepeer_cuda_alloc(cuda, 4097, &made) && made && *fake_int("fake_allocations") == 1 &&
	       ((char *)made)[CUDA_ALLOCATION_UNIT - 1] == 0;
	good = good && !nvmepeer_cuda_dmabuf(cuda, (char *)made + 4096, 8192, &fd) &&
	       *(uint64_t *)fake_int("fake_exported") == (uintptr_t)made + 4096 && !close(fd);
	nvmepeer_cuda_free(cuda, made);
	nvmepeer_cuda_free(cuda, NULL);
	good = says(nvmepeer_cuda_alloc(cuda, 0, &made), -EINVAL, "0 bytes") && good;
	refuse("cuMemAlloc_v2", 2);
	good = says(nvmepeer_cuda_alloc(cuda, 1, &made), -ENOMEM, "2097152 bytes") && good;
	good = says(nvmepeer_cuda_dmabuf(cuda, memory + 512, 4096, &fd), -EINVAL, "page size") && good;
	good = says(nvmepeer_cuda_dmabuf(cuda, memory, 512, &fd), -EINVAL, "page size") && good;
	good = says(nvmepeer_cuda_dmabuf(cuda, memory, 0, &fd), -EINVAL, "page size") && good;
	refuse("cuMemGetHandleForAddressRange", 1);
	good = says(nvmepeer_cuda_dmabuf(cuda, memory, 4096, &fd), -EINVAL, "from end to end") && good;
	return good && nothing_left(files);
}

static bool is_set_of(const struct nvmepeer_set *set, struct nvmepeer_cuda_queues *const *queues,
		      struct nvmepeer_cuda_buffer *const *buffers)
{
	return set->controllers == 2 && set->queues_each == 2 && set->stripe_shift == 3 &&
	       set->flags == NVMEPEER_SET_HASH && set->queues[0].sq == queues[0]->queues[0].sq &&
	       set->queues[3].sq == queues[1]->queues[1].sq &&
	       set->buffers[1].length == buffers[1]->buffer.length;
}

/* Two controllers as one: handles and buffers side by side, as device code reads them. */
static bool opening_sets(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda, int files)
{
	struct nvmepeer_cuda_queues *queues[2];
	struct nvmepeer_cuda_buffer *buffers[2];
	struct nvmepeer_cuda_set *set;
	bool good = true;

	answer_as_device();
	fake.open_files = files;
	for (int i = 0; i < 2; i++)
		good = !nvmepeer_cuda_queues_open(ctrl, &namespace, cuda, ENTRIES, 2, &queues[i]) &&
		       !nvmepeer_cuda_buffer_open(ctrl, cuda, memory + 4096 * i, 65536, &buffers[i]) &&
		       good;
	good = good && !nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, NVMEPEER_SET_HASH, &set) &&
	       is_set_of(nvmepeer_cuda_set_host(set), queues, buffers);
	nvmepeer_cuda_set_close(set);
	queues[1]->count = 1;
	good = good && says(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "controller 1 has 1");
	queues[1]->count = 2;
	buffers[1]->buffer.length = 512;
	good = good && says(nvmepeer_cuda_set_open(cuda, queues, buffers, 2, 3, 0, &set), -EINVAL,
			    "65536 bytes of data memory and controller 1 has 512") &&
	       says(nvmepeer_cuda_set_open(cuda, queues, buffers, 0, 3, 0, &set), -EINVAL,
		    "no controller");
	refuse("cuMemcpyHtoD_v2", 700);
	good = good && says(nvmepeer_cuda_set_open(cuda, queues, buffers, 1, 3, 0, &set), -EIO,
			    "cuMemcpyHtoD");
	for (int i = 0; i < 2; i++) {
		nvmepeer_cuda_buffer_close(buffers[i]);
		nvmepeer_cuda_queues_close(queues[i]);
	}
	return good && nothing_left(files);
}

/* How pages are registered: flags of CUDA's driver ABI. */
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
	good = says(cuda_register(cuda, CUDA_MEMORY_READ_WRITE, page, 4096, &address), -EFAULT,
		    "unregister it first") && good;
	refuse("cuMemHostRegister_v2", 2);
	good = says(cuda_register(cuda, CUDA_MEMORY_READ_ONLY, page, 4096, &address), -EFAULT,
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
	here = dirname(argv[0]);	/* cuts it short in place */
	snprintf(library, sizeof(library), "%s/../lib/fake-libcuda.so", here);
	snprintf(old, sizeof(old), "%s/../lib/fake-libcuda-old.so", here);
	fake_reset();
	ktap_start();
	ktap_check(opening(library, old), "open: no library, old library, no driver, no GPU");
	if (nvmepeer_cuda_open(0, &cuda) || nvmepeer_open("nvmep0", &ctrl)) {
		ktap_check(false, "open");
		return ktap_end();
	}
	files = fake.open_files;
	fake_cuda = dlopen(library, RTLD_NOW);
	nothing_left(files);
	ktap_check(opening_queues(ctrl, cuda, files), "queues: several, apart, and in GPU memory too");
	ktap_check(queues_refused(ctrl, cuda, files), "queues: every refusal explained, nothing left");
	ktap_check(rearming_queues(ctrl, cuda, files), "queues: lost, back, and back after a failure");
	ktap_check(order_is_asked_for(ctrl, cuda, files), "queues: no promise of order, no queues");
	ktap_check(rights_come_first(ctrl, cuda, files), "queues: missing rights said before anything is made");
	ktap_check(opening_buffers(ctrl, cuda, files), "buffer: memory of the caller, at any place");
	ktap_check(buffers_refused(ctrl, cuda, files), "buffer: every refusal explained, nothing left");
	ktap_check(lending(cuda, files), "memory: lent by itself, for the CPU's own I/O");
	ktap_check(opening_sets(ctrl, cuda, files), "set: two controllers side by side");
	ktap_check(flags(cuda), "register: pages to read, to write, registers, and refusals");
	nvmepeer_close(ctrl);
	nvmepeer_cuda_close(cuda);
	return ktap_end();
}
