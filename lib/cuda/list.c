// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * list.c: lists of transfers on a stream: the kernel of the library, the data
 * memories and the scratch memory of its lists.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "list_kernel.h"

static const char opening[] = "nvmepeer_cuda_lists_open";
static const char reading[] = "nvmepeer_cuda_read_list";
static const char writing[] = "nvmepeer_cuda_write_list";

uint64_t nvmepeer_cuda_lists_scratch_bytes(const struct nvmepeer_cuda_queues *queues)
{
	return cuda_round_up(nvmepeer_scratch_bytes(&queues->queues[0],
						    LIST_THREADS * NVMEPEER_CUDA_LIST_SCRATCHES),
			     CUDA_ALLOCATION_UNIT);
}

/* A table has an address for each page of the controller. */
static int check_page(const char *call, const struct nvmepeer_cuda_queues *queues,
		      const struct nvmepeer_cuda_buffer *buffer)
{
	uint32_t page = 1u << queues->queues[0].page_shift;

	if (!buffer->page || buffer->page == page)
		return 0;
	return cuda_fail(call, -EINVAL, "the DMA addresses of a buffer are not those of the controller's pages",
			 "pass the page size of the queue pair's controller to nvmepeer_cuda_buffer_from_addresses()",
			 "pages of %u bytes, the queue pair has %u", buffer->page, page);
}

int cuda_check_buffers(const char *call, const struct nvmepeer_cuda_queues *queues,
		       struct nvmepeer_cuda_buffer *const *buffers, uint32_t count)
{
	static const char what[] = "the queue pairs cannot use the buffers";
	int error;

	if (!count)
		return cuda_fail(call, -EINVAL, what, "pass at least one buffer", "no buffer");
	for (uint32_t i = 0; i < count; i++) {
		if (buffers[i]->ctrl != queues->ctrl || buffers[i]->cuda != queues->cuda)
			return cuda_fail(call, -EINVAL, what,
					 "open queue pairs and buffers with the same struct nvmepeer and struct nvmepeer_cuda",
					 "buffer %u is of another controller or GPU", i);
		error = check_page(call, queues, buffers[i]);
		if (error)
			return error;
	}
	return 0;
}

/* Scratch memory in GPU memory, as a buffer of the controller. */
static int open_scratch(struct nvmepeer_cuda_lists *lists)
{
	const struct nvmepeer_cuda_queues *queues = lists->queues;
	uint64_t bytes = nvmepeer_cuda_lists_scratch_bytes(queues);
	int error;

	if (!queues->ctrl)
		return cuda_fail(opening, -EOPNOTSUPP, "the lists need scratch memory",
				 "pass memory that the other process has imported to nvmepeer_cuda_lists_open_with()",
				 "the queue pair came as descriptors: this process has no node of its controller");
	error = cuda_alloc(queues->cuda, bytes, &lists->scratch);
	lists->scratch_bytes = bytes;
	if (error)
		return error;
	return nvmepeer_cuda_buffer_open(queues->ctrl, queues->cuda,
					 (void *)(uintptr_t)lists->scratch, bytes,
					 &lists->scratch_buffer);
}

/* Scratch memory of the caller, which starts at a page of the controller. */
static int take_scratch(struct nvmepeer_cuda_lists *lists, struct nvmepeer_cuda_buffer *scratch)
{
	const struct nvmepeer_cuda_queues *queues = lists->queues;
	uint64_t bytes = nvmepeer_cuda_lists_scratch_bytes(queues);
	uint64_t page = 1ull << queues->queues[0].page_shift;

	if (scratch->ctrl != queues->ctrl || scratch->cuda != queues->cuda ||
	    scratch->buffer.length < bytes || (!scratch->buffer.pages && scratch->buffer.dma % page))
		return cuda_fail(opening, -EINVAL, "the buffer cannot be the scratch memory of lists",
				 "pass as many bytes as nvmepeer_cuda_lists_scratch_bytes() returns, from the start of a page on, of the same controller and GPU",
				 "%llu bytes of %llu at DMA address %#llx",
				 (unsigned long long)scratch->buffer.length, (unsigned long long)bytes,
				 (unsigned long long)scratch->buffer.dma);
	lists->scratch_buffer = scratch;
	return check_page(opening, queues, scratch);
}

/* The data memories, and behind them the scratch memory, in GPU memory. */
static int upload_memories(struct nvmepeer_cuda_lists *lists,
			   struct nvmepeer_cuda_buffer *const *buffers)
{
	size_t bytes = (lists->count + 1) * sizeof(struct nvmepeer_memory);
	struct nvmepeer_memory *memories = calloc(1, bytes);
	int error;

	if (!memories)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	for (uint32_t i = 0; i <= lists->count; i++) {
		const struct nvmepeer_cuda_buffer *buffer =
			i < lists->count ? buffers[i] : lists->scratch_buffer;

		memories[i].buffer = buffer->buffer;
		memories[i].address = buffer->address;
	}
	error = cuda_alloc(lists->cuda, bytes, &lists->memories);
	if (!error)
		error = cuda_upload(lists->cuda, lists->memories, memories, bytes);
	free(memories);
	return error;
}

/*
 * Free all, or nothing if the controller may still access the scratch memory.  Of a
 * failed open all but that is freed; the memory is kept, since cuda_free() would wait
 * for the kernels of others.  The queue pairs may have been closed.
 */
static int release(struct nvmepeer_cuda_lists *lists, bool failed)
{
	struct nvmepeer_cuda *cuda = lists->cuda;
	size_t bytes = (lists->count + 1) * sizeof(struct nvmepeer_memory);
	int error = lists->scratch ? nvmepeer_cuda_buffer_close(lists->scratch_buffer) : 0;

	if (error && !failed)
		return error;
	if (lists->module)
		cuda_unload(cuda, lists->module);
	if (lists->scratch && failed && !error)
		cuda_keep(cuda, lists->scratch, lists->scratch_bytes);
	else if (lists->scratch && !failed)
		cuda_free(cuda, lists->scratch);
	if (lists->memories && failed)
		cuda_keep(cuda, lists->memories, bytes);
	else if (lists->memories)
		cuda_free(cuda, lists->memories);
	free(lists);
	return 0;
}

int nvmepeer_cuda_lists_open_with(struct nvmepeer_cuda_queues *queues,
				  struct nvmepeer_cuda_buffer *const *buffers, uint32_t count,
				  struct nvmepeer_cuda_buffer *scratch,
				  struct nvmepeer_cuda_lists **lists)
{
	struct nvmepeer_cuda_lists *opened;
	struct nvmepeer_explanation why;
	int error = cuda_check_buffers(opening, queues, buffers, count);

	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	opened->queues = queues;
	opened->cuda = queues->cuda;
	opened->count = count;
	error = cuda_load(queues->cuda, opening, "nvmepeer_list", &opened->module, &opened->kernel);
	if (!error)
		error = scratch ? take_scratch(opened, scratch) : open_scratch(opened);
	if (!error)
		error = upload_memories(opened, buffers);
	if (!error) {
		*lists = opened;
		return 0;
	}
	nvmepeer_explain(&why, sizeof(why));
	release(opened, true);
	return nvmepeer_fail(&why, sizeof(why));
}

int nvmepeer_cuda_lists_open(struct nvmepeer_cuda_queues *queues,
			     struct nvmepeer_cuda_buffer *const *buffers, uint32_t count,
			     struct nvmepeer_cuda_lists **lists)
{
	return nvmepeer_cuda_lists_open_with(queues, buffers, count, NULL, lists);
}

int nvmepeer_cuda_lists_close(struct nvmepeer_cuda_lists *lists)
{
	return lists ? release(lists, false) : 0;
}

static int check_list(const struct nvmepeer_cuda_list *list, const char *call)
{
	static const char what[] = "the list is invalid";
	size_t least = offsetof(struct nvmepeer_cuda_list, control_high) + sizeof(list->control_high);

	if (list->size < least)
		return cuda_fail(call, -EINVAL, what, "set size to the size of the structure",
				 "%u bytes of at least %zu", list->size, least);
	for (size_t i = sizeof(*list); i < list->size; i++)
		if (((const unsigned char *)list)[i])
			return cuda_fail(call, -E2BIG, "unknown field of a list",
					 "update the library, or leave newer fields 0",
					 "byte %zu of the list is not 0", i);
	/* An empty list has no arrays, but is reported by list->done. */
	if (list->count && (!list->items == !list->tensors || !list->tensors != !list->pages ||
			    (list->tensors && !list->tensor_count)))
		return cuda_fail(call, -EINVAL, what,
				 "set items, or tensors and pages and the number of tensors",
				 "items are %s, tensors are %s, pages are %s, %u tensors",
				 list->items ? "set" : "NULL", list->tensors ? "set" : "NULL",
				 list->pages ? "set" : "NULL", list->tensor_count);
	if (list->items && list->statuses)
		return cuda_fail(call, -EINVAL, what, "read the status of each item in it",
				 "items have their statuses, and statuses are set, too");
	if (list->tensors && (uint64_t)list->count * list->tensor_count > UINT32_MAX)
		return cuda_fail(call, -EINVAL, what, "split the list", "%u pages of %u tensors",
				 list->count, list->tensor_count);
	if (list->scratch >= NVMEPEER_CUDA_LIST_SCRATCHES)
		return cuda_fail(call, -EINVAL, what, "pass a number below NVMEPEER_CUDA_LIST_SCRATCHES",
				 "scratch memory %u of %u", list->scratch, NVMEPEER_CUDA_LIST_SCRATCHES);
	return 0;
}

/* The kernel accesses them by words of their types. */
static int check_alignment(const struct nvmepeer_cuda_list *list, const char *call)
{
	const struct {
		const char *name;
		const void *address;
		uintptr_t unit;
	} arrays[] = {
		{ "items", list->items, 8 },
		{ "tensors", list->tensors, 8 },
		{ "pages", list->pages, 8 },
		{ "statuses", list->statuses, 4 },
		{ "count_at", list->count_at, 4 },
		{ "done", list->done, 4 },
	};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		if ((uintptr_t)arrays[i].address % arrays[i].unit)
			return cuda_fail(call, -EINVAL, "an array of the list is misaligned",
					 "pass an address that is a multiple of the unit",
					 "%s at %p, in units of %u bytes", arrays[i].name,
					 arrays[i].address, (unsigned int)arrays[i].unit);
	return 0;
}

static int launch(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
		  void *stream, uint32_t opcode)
{
	const struct nvmepeer_memory *memories = (const void *)(uintptr_t)lists->memories;
	struct list_parameters parameters = {
		.queues = lists->queues->device,
		.queue_count = lists->queues->count,
		.layout = NVMEPEER_LAYOUT,
		.count = list->count_at,
		.done = list->done,
		.list = {
			.memories = memories,
			.items = list->items,
			.tensors = list->tensors,
			.pages = list->pages,
			.statuses = list->statuses,
			.memory_count = lists->count,
			.tensor_count = list->tensor_count,
			.count = list->count,
			.opcode = opcode,
			.control = (uint64_t)list->control_high << 32 | list->control,
		},
		.scratch = {
			.memory = &memories[lists->count],
			.first = list->scratch * LIST_THREADS,
			.slots = LIST_THREADS,
		},
	};
	void *arguments[] = { &parameters };
	const char *call = opcode == NVMEPEER_OP_READ ? reading : writing;
	int error = check_list(list, call);

	if (!error)
		error = check_alignment(list, call);
	if (!error)
		error = queues_check_open(lists->queues, call);
	return error ? error : cuda_launch(lists->cuda, call, lists->kernel, 1,
					   LIST_THREADS, stream, arguments);
}

int nvmepeer_cuda_read_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
			    void *stream)
{
	return launch(lists, list, stream, NVMEPEER_OP_READ);
}

int nvmepeer_cuda_write_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list,
			     void *stream)
{
	return launch(lists, list, stream, NVMEPEER_OP_WRITE);
}
