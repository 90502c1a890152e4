// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * set.c: put the queue pairs and buffers of several controllers into one array
 * in GPU memory, as device code expects a set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char opening[] = "nvmepeer_cuda_set_open";

/**
 * struct nvmepeer_cuda_set - queue pairs of several controllers as one
 * @set: for device code
 * @cuda: GPU, owned by the caller
 * @memory: GPU address of the device queues and buffers
 */
struct nvmepeer_cuda_set {
	struct nvmepeer_set set;
	struct nvmepeer_cuda *cuda;
	uint64_t memory;
};

static const char what[] = "the controllers cannot form a set";

/*
 * A completion in one GPU may overtake data in another.  The DMA addresses of a buffer
 * are those of one controller, and only queue pairs of the struct nvmepeer that it was
 * opened with keep it from being closed.
 */
static int check_pair(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_queues *queues,
		      const struct nvmepeer_cuda_buffer *buffer, uint32_t controller)
{
	int rings = cuda_number(queues->cuda), data = cuda_number(buffer->cuda);

	if (queues->ctrl != buffer->ctrl)
		return cuda_fail(opening, -EINVAL, what,
				 "pass the buffers in the order of the queue pairs, opened with the same struct nvmepeer",
				 "buffer %u is of another controller than the queue pairs beside it",
				 controller);
	if (rings == cuda_number(cuda) && data == rings)
		return queues_check_open(queues, opening);
	return cuda_fail(opening, -EINVAL, what,
			 "open queue pairs, buffers and the set for one GPU",
			 "the set is for CUDA device %d, but controller %u has queue pairs for device %d and data on device %d",
			 cuda_number(cuda), controller, rings, data);
}

static int check(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_queues *const *queues,
		 struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers)
{
	int error = 0;

	if (!controllers)
		return cuda_fail(opening, -EINVAL, what, "pass at least one controller",
				 "no controller");
	for (uint32_t i = 0; !error && i < controllers; i++)
		error = check_pair(cuda, queues[i], buffers[i], i);
	if (error)
		return error;
	for (uint32_t i = 1; i < controllers; i++) {
		if (queues[i]->count != queues[0]->count)
			return cuda_fail(opening, -EINVAL, what,
					 "open the same number of queue pairs on each",
					 "controller 0 has %u queue pairs and controller %u has %u",
					 queues[0]->count, i, queues[i]->count);
		if (queues[i]->queues[0].lba_shift != queues[0]->queues[0].lba_shift)
			return cuda_fail(opening, -EINVAL, what,
					 "format the namespaces with the same block size",
					 "controller 0 has blocks of %u bytes and controller %u has blocks of %u",
					 1u << queues[0]->queues[0].lba_shift, i,
					 1u << queues[i]->queues[0].lba_shift);
		if (buffers[i]->address != buffers[0]->address)
			return cuda_fail(opening, -EINVAL, what,
					 "open the same memory for each controller",
					 "controller 0 has the memory at %#llx and controller %u that at %#llx",
					 (unsigned long long)buffers[0]->address, i,
					 (unsigned long long)buffers[i]->address);
		if (buffers[i]->buffer.length != buffers[0]->buffer.length)
			return cuda_fail(opening, -EINVAL, what,
					 "open the same memory for each controller",
					 "controller 0 has %llu bytes of data memory and controller %u has %llu",
					 (unsigned long long)buffers[0]->buffer.length, i,
					 (unsigned long long)buffers[i]->buffer.length);
	}
	return 0;
}

/* All device queues, then all buffers, in the layout of GPU memory. */
static void *arrange(struct nvmepeer_cuda_queues *const *queues,
		     struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers)
{
	size_t each = queues[0]->count * sizeof(struct nvmepeer_queue);
	char *image = malloc(controllers * (each + sizeof(struct nvmepeer_buffer)));
	char *at = image;

	if (!image)
		return NULL;
	for (uint32_t i = 0; i < controllers; i++, at += each)
		memcpy(at, queues[i]->queues, each);
	for (uint32_t i = 0; i < controllers; i++, at += sizeof(struct nvmepeer_buffer))
		memcpy(at, &buffers[i]->buffer, sizeof(struct nvmepeer_buffer));
	return image;
}

/* Copy the device queues and buffers to GPU memory and set their addresses. */
static int open_parts(struct nvmepeer_cuda_set *set, struct nvmepeer_cuda_queues *const *queues,
		      struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers)
{
	size_t handles = (size_t)controllers * queues[0]->count * sizeof(struct nvmepeer_queue);
	size_t bytes = handles + controllers * sizeof(struct nvmepeer_buffer);
	void *image = arrange(queues, buffers, controllers);
	int error;

	if (!image)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	error = cuda_alloc(set->cuda, bytes, &set->memory);
	if (!error)
		error = cuda_upload(set->cuda, set->memory, image, bytes);
	free(image);
	if (error)
		return error;
	set->set.queues = (const struct nvmepeer_queue *)(uintptr_t)set->memory;
	set->set.buffers = (const struct nvmepeer_buffer *)(uintptr_t)(set->memory + handles);
	set->set.controllers = controllers;
	set->set.queues_each = queues[0]->count;
	return 0;
}

int nvmepeer_cuda_set_open(struct nvmepeer_cuda *cuda,
			   struct nvmepeer_cuda_queues *const *queues,
			   struct nvmepeer_cuda_buffer *const *buffers, uint32_t controllers,
			   uint32_t stripe_shift, uint32_t flags, struct nvmepeer_cuda_set **set)
{
	struct nvmepeer_cuda_set *opened;
	int error = check(cuda, queues, buffers, controllers);

	if (!error && (stripe_shift > 63 || flags & ~(uint32_t)NVMEPEER_SET_HASH))
		error = cuda_fail(opening, -EINVAL, "invalid stripes or flags",
				  "pass log2 of the blocks of a stripe, up to 63, and NVMEPEER_SET_HASH or 0",
				  "stripes of 2^%u blocks, flags %#x", stripe_shift, flags);
	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	opened->cuda = cuda;
	opened->set.stripe_shift = stripe_shift;
	opened->set.flags = flags;
	opened->set.layout = NVMEPEER_LAYOUT;
	error = open_parts(opened, queues, buffers, controllers);
	if (error)
		nvmepeer_cuda_set_close(opened);
	else
		*set = opened;
	return error;
}

void nvmepeer_cuda_set_close(struct nvmepeer_cuda_set *set)
{
	if (!set)
		return;
	if (set->memory)
		cuda_free(set->cuda, set->memory);
	free(set);
}

const struct nvmepeer_set *nvmepeer_cuda_set_host(const struct nvmepeer_cuda_set *set)
{
	return &set->set;
}
