// SPDX-License-Identifier: GPL-2.0-only
/* Random choices, and slightly invalid arguments: see random.h. */
#include "random.h"

#include <string.h>
#include <unistd.h>

/* splitmix64: any seed is valid, including 0. */
uint64_t fuzz_random(struct fuzz_thread *thread)
{
	uint64_t mixed = thread->random += 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

uint32_t fuzz_below(struct fuzz_thread *thread, uint32_t limit)
{
	return limit ? (uint32_t)(fuzz_random(thread) % limit) : 0;
}

bool fuzz_one_in(struct fuzz_thread *thread, uint32_t n)
{
	return fuzz_below(thread, n) == 0;
}

uint32_t fuzz_instance(struct fuzz_thread *thread)
{
	return fuzz_one_in(thread, 2) ? thread->instance : fuzz_below(thread, 3);
}

/* Limits of comparisons, shifts and sums. */
uint64_t fuzz_interesting(struct fuzz_thread *thread)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 256, 511, 512, 4095, 4096, 4097, 65535, 65536,
		0x7fffffff, 0x80000000, 0xfffff000, 0xffffffff, 0x100000000,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000, 0xffffffffffffffff,
	};
	uint32_t count = sizeof(values) / sizeof(values[0]);

	if (fuzz_one_in(thread, 4))
		return fuzz_random(thread);
	if (fuzz_one_in(thread, 4))
		return 1ULL << fuzz_below(thread, 64);
	return values[fuzz_below(thread, count)];
}

void fuzz_mangle(struct fuzz_thread *thread, void *bytes, size_t length)
{
	uint32_t fields = (uint32_t)(length / sizeof(uint32_t));
	uint64_t value;
	uint32_t count;

	/* Half of the calls stay valid, otherwise no object would be created. */
	if (!fields || fuzz_one_in(thread, 2))
		return;
	for (count = 1 + fuzz_below(thread, 2); count; count--) {
		value = fuzz_interesting(thread);
		memcpy((uint8_t *)bytes + fuzz_below(thread, fields) * sizeof(uint32_t), &value,
		       sizeof(uint32_t));
	}
}

void *fuzz_place(struct fuzz_thread *thread, const void *bytes, size_t length)
{
	size_t cut = 0;

	if (!fuzz_one_in(thread, 8))
		return (void *)bytes;
	if (fuzz_one_in(thread, 2))
		cut = fuzz_below(thread, (uint32_t)length + 1);
	if (length > 4096)
		return thread->page;
	memcpy(thread->page + 4096 - (length - cut), bytes, length - cut);
	return thread->page + 4096 - (length - cut);
}
