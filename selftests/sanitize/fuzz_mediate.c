// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: the check of a mediated queue pair's entries and what is built from them, with rights
 * and segments of the input, against the model of unit-mediate.
 */
#include "kernel/mediate_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next @length bytes of the input, or zeros. */
static void take(const uint8_t **data, size_t *size, void *into, size_t length)
{
	size_t there = length < *size ? length : *size;

	memset(into, 0, length);
	memcpy(into, *data, there);
	*data += there;
	*size -= there;
}

/* The ID is that of the slot, or 0, and the sum does not overflow: the ioctl that adds it guarantees that. */
static void take_window(const uint8_t **data, size_t *size, uint32_t slot,
			struct nvmep_mediate_window *window)
{
	uint64_t words[4];
	uint8_t bytes[4];

	take(data, size, words, sizeof(words));
	take(data, size, bytes, sizeof(bytes));
	*window = (struct nvmep_mediate_window){
		.id = bytes[1] & 1 ? (uint32_t)bytes[0] << 16 | slot : 0, .nsid = bytes[2],
		.shift = 9 + bytes[3] % 8,
		.read = bytes[3] & 8, .write = bytes[3] & 16, .device_read_only = bytes[3] & 32,
		.base = words[0] >> 2, .first = words[1] >> 2, .blocks = words[2] >> 2,
		.device_blocks = words[3],
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model model;
	__le32 entry[NVMEP_SQE_DWORDS];
	uint32_t buffer[2], slot;

	model_init(&model);
	take(&data, &size, entry, sizeof(entry));
	for (slot = 1; slot < MODEL_WINDOWS; slot++)
		take_window(&data, &size, slot, &model.windows[slot]);
	for (slot = 1; slot < MODEL_BUFFERS; slot++) {
		take(&data, &size, buffer, sizeof(buffer));
		model_buffer(&model, slot, buffer[0] % 600, buffer[1]);
		model.buffers[slot].read = buffer[0] >> 31;
		model.buffers[slot].write = buffer[0] >> 30 & 1;
		model.buffers[slot].ended = buffer[0] >> 28 == 7;
	}
	if (!model_agrees(&model, entry) || kernel_warned)
		abort();
	return 0;
}
