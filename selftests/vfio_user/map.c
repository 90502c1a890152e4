// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA map of a vfio-user server: which bus addresses the client shared,
 * sorted, and the guest's memory behind them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "map.h"
#include "protocol.h"

size_t vfu_map_find(const struct vfu *vfu, uint64_t address)
{
	size_t low = 0, high = vfu->range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vfu_range_end(&vfu->ranges[middle]) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Make room for an entry at @index; map_lock is held for writing. */
static int map_make_room(struct vfu *vfu, size_t index)
{
	if (vfu->range_count == vfu->range_room) {
		size_t room = vfu->range_room ? 2 * vfu->range_room : 64;
		struct vfu_range *ranges = realloc(vfu->ranges,
						   room * sizeof(*ranges));

		if (!ranges)
			return ENOMEM;
		vfu->ranges = ranges;
		vfu->range_room = room;
	}
	memmove(&vfu->ranges[index + 1], &vfu->ranges[index],
		(vfu->range_count - index) * sizeof(*vfu->ranges));
	vfu->range_count++;
	return 0;
}

static int map_insert(struct vfu *vfu, const struct vfu_range *range)
{
	size_t index = vfu_map_find(vfu, range->address);
	int ret;

	if (index < vfu->range_count &&
	    vfu->ranges[index].address < vfu_range_end(range))
		return EEXIST;
	ret = map_make_room(vfu, index);
	if (!ret)
		vfu->ranges[index] = *range;
	return ret;
}

/* Memory that cannot be mapped is no error: messages reach it too. */
static char *map_memory(const struct vfu_range *range, int fd, uint64_t offset)
{
	int protection = (range->flags & VFU_MAP_READ ? PROT_READ : 0) |
			 (range->flags & VFU_MAP_WRITE ? PROT_WRITE : 0);
	void *memory;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, range->size, protection, MAP_SHARED, fd,
		      (off_t)offset);
	return memory == MAP_FAILED ? NULL : memory;
}

int vfu_map_add(struct vfu *vfu, const struct vfu_range *range, int fd,
		uint64_t offset)
{
	struct vfu_range added = *range;
	int ret = EINVAL;

	if (range->size && vfu_range_end(range) >= range->size) {
		added.memory = map_memory(range, fd, offset);
		pthread_rwlock_wrlock(&vfu->map_lock);
		ret = map_insert(vfu, &added);
		pthread_rwlock_unlock(&vfu->map_lock);
		if (ret && added.memory)
			munmap(added.memory, added.size);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Split the range at @index, so that one begins at @address. */
static int map_split(struct vfu *vfu, size_t index, uint64_t address)
{
	uint64_t left = address - vfu->ranges[index].address;
	int ret = map_make_room(vfu, index);

	if (ret)
		return ret;
	vfu->ranges[index].size = left;
	vfu->ranges[index + 1].address += left;
	vfu->ranges[index + 1].size -= left;
	if (vfu->ranges[index + 1].memory)
		vfu->ranges[index + 1].memory += left;
	return 0;
}

/* Let the ranges begin and end where a removal does; map_lock is held. */
static int map_split_around(struct vfu *vfu, uint64_t address, uint64_t end)
{
	uint64_t cuts[] = { address, end };
	size_t i;

	for (i = 0; i < 2; i++) {
		size_t index = vfu_map_find(vfu, cuts[i]);
		int ret;

		if (index == vfu->range_count ||
		    vfu->ranges[index].address >= cuts[i])
			continue;
		ret = map_split(vfu, index, cuts[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void map_drop(struct vfu *vfu, size_t first, size_t last)
{
	size_t i;

	if (first == last)
		return;
	for (i = first; i < last; i++)
		if (vfu->ranges[i].memory)
			munmap(vfu->ranges[i].memory, vfu->ranges[i].size);
	memmove(&vfu->ranges[first], &vfu->ranges[last],
		(vfu->range_count - last) * sizeof(*vfu->ranges));
	vfu->range_count -= last - first;
}

/* Removing what is not there is no error: QEMU does it for foreign BARs. */
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size)
{
	uint64_t end = address + size < address ? UINT64_MAX : address + size;
	size_t first, last;
	int ret;

	pthread_rwlock_wrlock(&vfu->map_lock);
	ret = map_split_around(vfu, address, end);
	first = vfu_map_find(vfu, address);
	for (last = first; last < vfu->range_count; last++)
		if (vfu->ranges[last].address >= end)
			break;
	if (!ret)
		map_drop(vfu, first, last);
	pthread_rwlock_unlock(&vfu->map_lock);
	return ret;
}

void vfu_map_clear(struct vfu *vfu)
{
	pthread_rwlock_wrlock(&vfu->map_lock);
	map_drop(vfu, 0, vfu->range_count);
	pthread_rwlock_unlock(&vfu->map_lock);
}
