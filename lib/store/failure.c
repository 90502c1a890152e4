// SPDX-License-Identifier: MIT OR GPL-2.0
/* Explained failures of the store, for nvmepeer_explain(). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

int store_fail(const char *call, int error, const char *what, const char *help,
	       const char *limit, ...)
{
	struct nvmepeer_explanation explanation = { .call = call, .error = -error };
	va_list arguments;

	snprintf(explanation.what, sizeof(explanation.what), "%s", what);
	snprintf(explanation.help, sizeof(explanation.help), "%s", help);
	va_start(arguments, limit);
	vsnprintf(explanation.limit, sizeof(explanation.limit), limit, arguments);
	va_end(arguments);
	return nvmepeer_fail(&explanation, sizeof(explanation));
}

int store_fail_memory(const char *call)
{
	return store_fail(call, -ENOMEM, "out of memory", "", "the host has no free memory");
}

int store_check_size(const char *call, size_t size, size_t least)
{
	if (size >= least)
		return 0;
	return store_fail(call, -EINVAL, "the structure is too small",
			  "set its size to sizeof() of the structure", "%zu bytes of at least %zu",
			  size, least);
}

bool error_is_of_disk(int error)
{
	switch (error) {
	case -ENODEV:
	case -EILSEQ:
	case -EIO:
	case -ENODATA:
	case -ENXIO:
	case -EREMOTEIO:
		return true;
	default:
		return false;
	}
}

int store_check_newer(const char *call, const void *structure, size_t size, size_t known)
{
	for (size_t i = known; i < size; i++)
		if (((const uint8_t *)structure)[i])
			return store_fail(call, -E2BIG, "the structure is of a newer version",
					  "update the library, or leave newer fields 0",
					  "a field behind the first %zu bytes is not 0", known);
	return 0;
}

static const struct {
	int error;
	const char *limit;
	const char *help;
} causes[] = {
	{ -ENOENT, "the slot has no value of this generation", "treat it as a miss" },
	{ -ENODEV, "its member is lost",
	  "treat it as a miss; see the kernel's log, and open the store again when the disk works" },
	{ -EILSEQ, "the value does not have its checksum", "treat it as a miss and free the slot" },
	{ -ETIMEDOUT, "readers have the slot pinned", "unpin it, then free it again" },
	{ -EBUSY, "another call on the slot is in progress", "wait for that call" },
	{ -EINVAL, "it does not exist, is not allocated or not written, or the length is invalid",
	  "pass an allocated slot and a multiple of 4 bytes, at most a page; a peer's value needs "
	  "NVMEPEER_STORE_PEER" },
	{ -EROFS, "the store was opened with NVMEPEER_STORE_READ_ONLY", "open it without" },
	{ -EIO, "the disk reports an error", "see the kernel's log" },
};

int store_fail_items(const struct nvmepeer_store *store, const char *call,
		     const struct nvmepeer_store_item *items, uint32_t count)
{
	char given[64] = "";

	for (uint32_t i = 0; i < count; i++) {
		size_t cause = 0;

		if (!items[i].result)
			continue;
		while (cause < ARRAY_SIZE(causes) - 1 && causes[cause].error != items[i].result)
			cause++;
		if (items[i].result == -EINVAL)
			snprintf(given, sizeof(given), " of %llu, %u bytes of at most %u",
				 (unsigned long long)store->layout.slots * store->layout.members,
				 items[i].length, store->layout.page_bytes);
		return store_fail(call, items[i].result, "an item of the list failed",
				  causes[cause].help, "item %u, slot %u%s: %s", i, items[i].slot,
				  given, causes[cause].limit);
	}
	return 0;
}

int store_fail_queue(const char *call, int error)
{
	if (error == -ENOMEM)
		return store_fail_memory(call);
	return store_fail(call, error, "io_uring is not available",
			  "set kernel.io_uring_disabled=0, or allow io_uring in the container",
			  "io_uring_setup(): %s", strerrordesc_np(-error));
}

int store_fail_call(const char *call, int error, struct nvmepeer_store_item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		items[i].result = error;
	return store_fail_queue(call, error);
}

void store_copy_out(void *to, size_t to_size, const void *from, size_t from_size)
{
	memset(to, 0, to_size);
	memcpy(to, from, to_size < from_size ? to_size : from_size);
}
