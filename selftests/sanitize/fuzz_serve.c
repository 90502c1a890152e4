// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: the check of a served queue pair's entries, with lists and segments of the
 * input.  What it accepts lies within namespace and buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFERS = 2, PAGES = 3, BLOCKS = 1000, SHIFT = 9, PIECES = 17 };

/* A page that belongs to no buffer follows each one. */
enum { BYTES = PAGES * SERVE_PAGE };

static _Alignas(SERVE_PAGE) uint8_t memory[BUFFERS][BYTES + SERVE_PAGE];

static bool is_inside(const struct iovec *piece)
{
	for (int i = 0; i < BUFFERS; i++) {
		size_t offset = (size_t)((uint8_t *)piece->iov_base - memory[i]);

		if (offset < BYTES && piece->iov_len <= BYTES - offset)
			return true;
	}
	return false;
}

static void check_accepted(const struct serve_command *command)
{
	uint64_t bytes = 0;

	if (command->bytes > BLOCKS << SHIFT || command->offset > (BLOCKS << SHIFT) - command->bytes)
		abort();
	for (uint32_t i = 0; i < command->count; i++) {
		if (!is_inside(&command->pieces[i]))
			abort();
		bytes += command->pieces[i].iov_len;
	}
	if (command->count && bytes != command->bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nvmepeer_serve serve = {
		.max_transfer = (PIECES - 1) * SERVE_PAGE,
		.most_pieces = PIECES,
		.namespace_count = 1,
		.buffer_count = BUFFERS,
		.namespaces = { { .blocks = BLOCKS, .shift = SHIFT, .alignment = 4 } },
	};
	struct iovec pieces[PIECES];
	struct serve_command command = { .pieces = pieces };
	uint32_t entry[16] = { 0 };
	size_t first = size < sizeof(entry) ? size : sizeof(entry);

	memcpy(entry, data, first);
	size -= first;
	memcpy(memory, data + first, size < sizeof(memory) ? size : sizeof(memory));
	for (int i = 0; i < BUFFERS; i++)
		serve.buffers[i] = (struct serve_buffer){ memory[i], BYTES };
	if (!serve_check(&serve, entry, &command))
		check_accepted(&command);
	return 0;
}
