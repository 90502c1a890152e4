// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Structures that come with their size, because the caller may have been
 * compiled with an older or a newer header than this library.
 */
#include <string.h>

#include "internal.h"

int struct_size_check(enum call call, const char *subject, size_t size, size_t least)
{
	struct failure failure;

	if (size >= least && size <= UINT32_MAX)
		return 0;
	failure_init(&failure, call, -EINVAL, subject);
	failure.size = size;
	failure.least = least;
	return failure_record(&failure);
}

int struct_size_in(enum call call, const char *subject, void *request, size_t size, size_t least)
{
	int result = struct_size_check(call, subject, size, least);

	if (!result)
		*(uint32_t *)request = (uint32_t)size;
	return result;
}

int struct_size_out(enum call call, const char *subject, void *answer, size_t size, size_t least)
{
	int result = struct_size_check(call, subject, size, least);

	if (!result) {
		memset(answer, 0, size);
		*(uint32_t *)answer = (uint32_t)size;
	}
	return result;
}

void struct_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
	size_t common = to_size < from_size ? to_size : from_size;

	memcpy(to, from, common);
	memset((char *)to + common, 0, to_size - common);
}

bool struct_tail_is_zero(const void *from, size_t size, size_t known)
{
	const char *byte = from;

	while (size > known)
		if (byte[--size])
			return false;
	return true;
}
