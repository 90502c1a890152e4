// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA map of a vfio-user server: a sorted list of bus addresses that the client has shared,
 * and the guest's memory behind them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfu.h"

/* --- Locks and counters ----------------------------------------------------- */

/* The shard of the calling thread. */
static struct vfu_shard *shard_of_thread(struct vfu *vfu)
{
	static _Atomic unsigned int threads;
	static _Thread_local unsigned int number = VFU_SHARDS;

	if (number == VFU_SHARDS)
		number = atomic_fetch_add(&threads, 1) % VFU_SHARDS;
	return &vfu->shards[number];
}

void vfu_count(struct vfu *vfu, enum vfu_counter counter, uint64_t by)
{
	atomic_fetch_add_explicit(&shard_of_thread(vfu)->counters[counter], by,
				  memory_order_relaxed);
}

uint64_t vfu_counted(struct vfu *vfu, enum vfu_counter counter)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < VFU_SHARDS; i++)
		sum += atomic_load(&vfu->shards[i].counters[counter]);
	return sum;
}

void vfu_map_read_lock(struct vfu *vfu)
{
	pthread_rwlock_rdlock(&shard_of_thread(vfu)->map_lock);
}

void vfu_map_read_unlock(struct vfu *vfu)
{
	pthread_rwlock_unlock(&shard_of_thread(vfu)->map_lock);
}

void vfu_map_write_lock(struct vfu *vfu)
{
	unsigned int i;

	for (i = 0; i < VFU_SHARDS; i++)
		pthread_rwlock_wrlock(&vfu->shards[i].map_lock);
}

void vfu_map_write_unlock(struct vfu *vfu)
{
	unsigned int i;

	for (i = 0; i < VFU_SHARDS; i++)
		pthread_rwlock_unlock(&vfu->shards[i].map_lock);
}

/* --- The map --------------------------------------------------------------- */

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

/* Make room for one more; called with the map locked for writing. */
static int map_grow(struct vfu *vfu)
{
	size_t room = vfu->range_room ? 2 * vfu->range_room : 64;
	struct vfu_range *ranges;

	if (vfu->range_count < vfu->range_room)
		return 0;
	ranges = realloc(vfu->ranges, room * sizeof(*ranges));
	if (!ranges)
		return ENOMEM;
	vfu->ranges = ranges;
	vfu->range_room = room;
	return 0;
}

static int map_insert(struct vfu *vfu, const struct vfu_range *range)
{
	size_t index = vfu_map_find(vfu, range->address);

	if (index < vfu->range_count && vfu->ranges[index].address < vfu_range_end(range))
		return EEXIST;
	if (map_grow(vfu))
		return ENOMEM;
	memmove(&vfu->ranges[index + 1], &vfu->ranges[index],
		(vfu->range_count - index) * sizeof(*vfu->ranges));
	vfu->ranges[index] = *range;
	vfu->range_count++;
	return 0;
}

/* Memory that cannot be mapped is accessed by messages. */
static char *map_memory(const struct vfu_range *range, int fd)
{
	int protection = (vfu_range_allows(range, false) ? PROT_READ : 0) |
			 (vfu_range_allows(range, true) ? PROT_WRITE : 0);
	void *memory;

	if (fd < 0)
		return NULL;
	memory = mmap(NULL, range->size, protection, MAP_SHARED, fd, (off_t)range->offset);
	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * The index of the file @fd, or VFU_FILES if there are too many files: then vfu_locate() does not
 * find its memory. Called with the map locked for writing.
 */
static unsigned int map_file(struct vfu *vfu, int fd)
{
	struct vfu_place *file;
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return VFU_FILES;
	for (file = vfu->files; file < &vfu->files[vfu->file_count]; file++)
		if (file->device == status.st_dev && file->inode == status.st_ino)
			return (unsigned int)(file - vfu->files);
	if (vfu->file_count == VFU_FILES)
		return VFU_FILES;
	*file = (struct vfu_place){
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
		.device = status.st_dev,
		.inode = status.st_ino,
		.neighbour = fd == vfu->neighbour,
	};
	return file->fd < 0 ? VFU_FILES : vfu->file_count++;
}

int vfu_map_add(struct vfu *vfu, const struct vfu_map *map, int fd)
{
	struct vfu_range range = { map->address, map->size, map->flags, .offset = map->offset };
	int ret;

	if ((map->flags & ~(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)) || !map->size ||
	    vfu_range_end(&range) < map->size)
		return EINVAL;
	if (fd < 0 && map->size == vfu->neighbour_bytes) {
		fd = vfu->neighbour;
		range.offset = 0;
	}
	range.memory = map_memory(&range, fd);
	vfu_map_write_lock(vfu);
	range.file = map_file(vfu, fd);
	ret = map_insert(vfu, &range);
	vfu_map_write_unlock(vfu);
	if (ret && range.memory)
		munmap(range.memory, range.size);
	return ret;
}

/* Returns whether @address is inside a range; called with the map locked. */
static bool map_cuts(const struct vfu *vfu, uint64_t address)
{
	size_t index = vfu_map_find(vfu, address);

	return index < vfu->range_count && vfu->ranges[index].address < address;
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

/*
 * Removing an unknown range succeeds: QEMU does it for BARs of other devices. A part of a mapping
 * cannot be removed, as in the VFIO of Linux (version 2 of type 1).
 */
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size)
{
	uint64_t end = address + size < address ? UINT64_MAX : address + size;
	bool cuts;

	vfu_map_write_lock(vfu);
	cuts = map_cuts(vfu, address) || map_cuts(vfu, end);
	if (!cuts)
		map_drop(vfu, vfu_map_find(vfu, address), vfu_map_find(vfu, end));
	vfu_map_write_unlock(vfu);
	return cuts ? EINVAL : 0;
}

void vfu_map_clear(struct vfu *vfu)
{
	vfu_map_write_lock(vfu);
	map_drop(vfu, 0, vfu->range_count);
	while (vfu->file_count)
		close(vfu->files[--vfu->file_count].fd);
	vfu_map_write_unlock(vfu);
}

/* --- Memory for direct use -------------------------------------------------- */

/* An error unless @range is a part of a file and allows the access; the map is locked. */
static int map_allows(const struct vfu_range *range, bool write)
{
	if (!vfu_range_allows(range, write))
		return -EACCES;
	return range->memory && range->file != VFU_FILES ? 0 : -EFAULT;
}

/* Returns whether @next follows @range on the bus and in the file. */
static bool map_goes_on(const struct vfu_range *range, const struct vfu_range *next)
{
	return next->address == vfu_range_end(range) && next->file == range->file &&
	       next->offset == range->offset + range->size;
}

/*
 * The first range of the bytes, if all of them are contiguous in one file and allow the access.
 * With an IOMMU each page is a range. Called with the map locked.
 */
static int map_range_of(const struct vfu *vfu, uint64_t address, size_t length, bool write,
			const struct vfu_range **found)
{
	const struct vfu_range *range = &vfu->ranges[vfu_map_find(vfu, address)];
	const struct vfu_range *last = &vfu->ranges[vfu->range_count];
	int ret;

	if (!vfu->dma_enabled)
		return -EACCES;
	if (range == last || range->address > address)
		return -EFAULT;
	*found = range;
	ret = map_allows(range, write);
	while (!ret && vfu_range_end(range) - address < length) {
		if (range + 1 == last || !map_goes_on(range, range + 1))
			return -EFAULT;
		ret = map_allows(++range, write);
	}
	return ret;
}

int vfu_locate(struct vfu *vfu, uint64_t address, size_t length, bool write,
	       struct vfu_place *place)
{
	const struct vfu_range *range;
	int ret;

	vfu_map_read_lock(vfu);
	ret = map_range_of(vfu, address, length, write, &range);
	if (!ret) {
		*place = vfu->files[range->file];
		place->offset = range->offset + (address - range->address);
	}
	vfu_map_read_unlock(vfu);
	return ret;
}
