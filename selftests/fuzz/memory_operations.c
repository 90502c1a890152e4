// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of exports: create, split, move, write and remove them. */
#include "operations.h"
#include "pool.h"
#include "random.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"

static void map(struct fuzz_thread *thread)
{
	static const int protections[] = {
		PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE,
		PROT_READ | PROT_EXEC,
	};
	struct fuzz_resource export, mapping = { .kind = FUZZ_MAP, .fd = -1 };
	off_t offset = 0;

	if (!fuzz_pick(thread, FUZZ_EXPORT, &export))
		return;
	mapping.what = export.what;
	mapping.offset = export.offset;
	mapping.length = export.length ?: NP_PAGE;
	if (fuzz_one_in(thread, 4))
		mapping.length = (1 + (size_t)fuzz_below(thread, 5)) * NP_PAGE;
	if (fuzz_one_in(thread, 8))
		offset = (off_t)(fuzz_interesting(thread) & ~(uint64_t)(NP_PAGE - 1));
	mapping.map = mmap(NULL, mapping.length, protections[fuzz_below(thread, 6)],
			   fuzz_one_in(thread, 8) ? MAP_PRIVATE : MAP_SHARED, export.fd, offset);
	if (mapping.map != MAP_FAILED)
		fuzz_add(thread, &mapping);
}

static void unmap(struct fuzz_thread *thread)
{
	struct fuzz_resource mapping;

	if (fuzz_take(thread, FUZZ_MAP, &mapping))
		fuzz_drop(&mapping);
}

/* Unmap or move a part in the middle: the rest must stay valid. */
static void reshape(struct fuzz_thread *thread)
{
	struct fuzz_resource mapping;
	size_t length;
	void *moved;

	if (!fuzz_take(thread, FUZZ_MAP, &mapping))
		return;
	switch (fuzz_below(thread, 4)) {
	case 0:
		munmap(mapping.map, NP_PAGE);
		/* Another thread's mapping may be there by now. */
		mapping.map = (uint8_t *)mapping.map + NP_PAGE;
		mapping.length -= NP_PAGE;
		break;
	case 1:
		length = (1 + (size_t)fuzz_below(thread, 5)) * NP_PAGE;
		moved = mremap(mapping.map, mapping.length, length, MREMAP_MAYMOVE);
		if (moved != MAP_FAILED) {
			mapping.map = moved;
			mapping.length = length;
		}
		break;
	case 2:
		mprotect(mapping.map, NP_PAGE, fuzz_one_in(thread, 2) ? PROT_READ | PROT_WRITE :
									 PROT_READ | PROT_EXEC);
		break;
	default:
		madvise(mapping.map, mapping.length, fuzz_one_in(thread, 2) ? MADV_DONTNEED :
									       MADV_POPULATE_WRITE);
	}
	if (mapping.length)
		fuzz_drop(&mapping);
}

/*
 * What a peer may write without access to memory: commands without data transfer, and any
 * value to its own doorbells.
 */
static void store(struct fuzz_thread *thread)
{
	struct fuzz_resource mapping;
	size_t at;
	uint32_t value;

	if (!fuzz_take(thread, FUZZ_MAP, &mapping))
		return;
	if (mapping.what == NVME_PEER_EXPORT_DOORBELL) {
		at = mapping.offset + fuzz_below(thread, 2) * sizeof(uint32_t);
		value = fuzz_one_in(thread, 8) ? (uint32_t)fuzz_interesting(thread) :
						 fuzz_below(thread, 64);
	} else {
		at = fuzz_below(thread, (uint32_t)(mapping.length / 64)) * 64UL;
		value = fuzz_below(thread, 0x10000) << 16;
	}
	if (at + sizeof(value) <= mapping.length)
		np_store((uint8_t *)mapping.map + at, value);
	fuzz_add(thread, &mapping);
}

const struct fuzz_operation fuzz_memory_operations[] = {
	{ "mmap", 12, false, map },
	{ "munmap", 5, false, unmap },
	{ "reshape", 3, false, reshape },
	{ "store", 5, false, store },
	{ NULL }
};
