// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * set.c: the queue pairs and buffers of several controllers, side by side in GPU
 * memory as device code wants a set.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char opening[] = "nvmepeer_cuda_set_open";

static int check(const struct nvmepeer_cuda_queues *queues,
		 const struct nvmepeer_cuda_buffer *buffers, uint32_t controllers)
{
	static const char what[] = "the controllers do not make a set";

	if (!controllers)
		return cuda_fail(opening, -EINVAL, what, "name one controller or more",
				 "no controller is given");
	for (uint32_t i = 1; i < controllers; i++) {
		if (queues[i].count != queues[0].count)
			return cuda_fail(opening, -EINVAL, what,
					 "open as many queue pairs on each",
					 "controller 0 has %u queue pairs and controller %u has %u",
					 queues[0].count, i, queues[i].count);
		if (queues[i].queues[0].lba_shift != queues[0].queues[0].lba_shift)
			return cuda_fail(opening, -EINVAL, what,
					 "format the namespaces alike",
					 "controller 0 has blocks of %u bytes and controller %u of %u",
					 1u << queues[0].queues[0].lba_shift, i,
					 1u << queues[i].queues[0].lba_shift);
		if (buffers[i].buffer.length != buffers[0].buffer.length)
			return cuda_fail(opening, -EINVAL, what,
					 "open the same memory for each controller",
					 "controller 0 has %llu bytes of data memory and controller %u has %llu",
					 (unsigned long long)buffers[0].buffer.length, i,
					 (unsigned long long)buffers[i].buffer.length);
	}
	return 0;
}

/* All handles, then all buffers, as they are to lie in GPU memory. */
static void *arrange(const struct nvmepeer_cuda_queues *queues,
		     const struct nvmepeer_cuda_buffer *buffers, uint32_t controllers)
{
	size_t each = queues[0].count * sizeof(struct nvmepeer_queue);
	char *image = malloc(controllers * (each + sizeof(struct nvmepeer_buffer)));
	char *at = image;

	if (!image)
		return NULL;
	for (uint32_t i = 0; i < controllers; i++, at += each)
		memcpy(at, queues[i].queues, each);
	for (uint32_t i = 0; i < controllers; i++, at += sizeof(struct nvmepeer_buffer))
		memcpy(at, &buffers[i].buffer, sizeof(struct nvmepeer_buffer));
	return image;
}

int nvmepeer_cuda_set_open(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_queues *queues,
			   const struct nvmepeer_cuda_buffer *buffers, uint32_t controllers,
			   uint32_t stripe_shift, uint32_t flags, struct nvmepeer_cuda_set *set)
{
	size_t handles, bytes;
	void *image;
	int error;

	memset(set, 0, sizeof(*set));
	set->cuda = cuda;
	error = check(queues, buffers, controllers);
	if (error)
		return error;
	handles = (size_t)controllers * queues[0].count * sizeof(struct nvmepeer_queue);
	bytes = handles + controllers * sizeof(struct nvmepeer_buffer);
	image = arrange(queues, buffers, controllers);
	if (!image)
		return cuda_fail(opening, -ENOMEM, "no memory is left", "", "out of memory");
	error = cuda_alloc(cuda, bytes, &set->memory);
	if (!error)
		error = cuda_upload(cuda, set->memory, image, bytes);
	free(image);
	if (error) {
		nvmepeer_cuda_set_close(set);
		return error;
	}
	set->set.queues = (const struct nvmepeer_queue *)(uintptr_t)set->memory;
	set->set.buffers = (const struct nvmepeer_buffer *)(uintptr_t)(set->memory + handles);
	set->set.controllers = controllers;
	set->set.queues_each = queues[0].count;
	set->set.stripe_shift = stripe_shift;
	set->set.flags = flags;
	return 0;
}

void nvmepeer_cuda_set_close(struct nvmepeer_cuda_set *set)
{
	if (set->memory)
		cuda_free(set->cuda, set->memory);
	set->memory = 0;
}
