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

#include "map.h"
#include "protocol.h"

/* --- Locks ----------------------------------------------------------------- */

struct vfu_shard *vfu_shard(struct vfu *vfu)
{
	static _Atomic unsigned int threads;
	static _Thread_local unsigned int number = VFU_SHARDS;

	if (number == VFU_SHARDS)
		number = atomic_fetch_add(&threads, 1) % VFU_SHARDS;
	return &vfu->shards[number];
}

/* Prefer writers, as programs that read guest memory in a loop must not starve an UNMAP. */
void vfu_map_init(struct vfu *vfu)
{
	pthread_rwlockattr_t attributes;
	unsigned int i;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes,
				      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (i = 0; i < VFU_SHARDS; i++)
		pthread_rwlock_init(&vfu->shards[i].map_lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

void vfu_map_destroy(struct vfu *vfu)
{
	unsigned int i;

	for (i = 0; i < VFU_SHARDS; i++)
		pthread_rwlock_destroy(&vfu->shards[i].map_lock);
}

void vfu_map_read_lock(struct vfu *vfu)
{
	pthread_rwlock_rdlock(&vfu_shard(vfu)->map_lock);
}

void vfu_map_read_unlock(struct vfu *vfu)
{
	pthread_rwlock_unlock(&vfu_shard(vfu)->map_lock);
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

/* Insert an empty entry at @index; called with the map locked for writing. */
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

/* Memory that cannot be mapped is accessed by messages. */
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

/*
 * The index of the file @fd, or VFU_FILES if there are too many files: then vfu_locate() does not
 * find its memory. Called with the map locked for writing.
 */
static unsigned int map_file(struct vfu *vfu, int fd)
{
	struct vfu_file *file;
	struct stat status;
	unsigned int i;

	if (fd < 0 || fstat(fd, &status))
		return VFU_FILES;
	for (i = 0; i < vfu->file_count; i++)
		if (vfu->files[i].device == status.st_dev &&
		    vfu->files[i].inode == status.st_ino)
			return i;
	if (i == VFU_FILES)
		return VFU_FILES;
	file = &vfu->files[i];
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0)
		return VFU_FILES;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	vfu->file_count++;
	return i;
}

int vfu_map_add(struct vfu *vfu, const struct vfu_range *range, int fd,
		uint64_t offset)
{
	struct vfu_range added = *range;
	int ret = EINVAL;

	if (fd < 0 && vfu->neighbour >= 0 && range->size == vfu->neighbour_bytes) {
		fd = fcntl(vfu->neighbour, F_DUPFD_CLOEXEC, 0);
		offset = 0;
		added.neighbour = true;
	}
	if (range->size && vfu_range_end(range) >= range->size) {
		added.memory = map_memory(range, fd, offset);
		added.offset = offset;
		vfu_map_write_lock(vfu);
		added.file = map_file(vfu, fd);
		ret = map_insert(vfu, &added);
		vfu_map_write_unlock(vfu);
		if (ret && added.memory)
			munmap(added.memory, added.size);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Split the range at @index at @address. */
static int map_split(struct vfu *vfu, size_t index, uint64_t address)
{
	uint64_t left = address - vfu->ranges[index].address;
	int ret = map_make_room(vfu, index);

	if (ret)
		return ret;
	vfu->ranges[index].size = left;
	vfu->ranges[index + 1].address += left;
	vfu->ranges[index + 1].size -= left;
	vfu->ranges[index + 1].offset += left;
	if (vfu->ranges[index + 1].memory)
		vfu->ranges[index + 1].memory += left;
	return 0;
}

/* Split ranges at both ends of a removal; called with the map locked. */
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

/* Removing an unknown range succeeds: QEMU does it for BARs of other devices. */
int vfu_map_remove(struct vfu *vfu, uint64_t address, uint64_t size)
{
	uint64_t end = address + size < address ? UINT64_MAX : address + size;
	size_t first, last;
	int ret;

	vfu_map_write_lock(vfu);
	ret = map_split_around(vfu, address, end);
	first = vfu_map_find(vfu, address);
	for (last = first; last < vfu->range_count; last++)
		if (vfu->ranges[last].address >= end)
			break;
	if (!ret)
		map_drop(vfu, first, last);
	vfu_map_write_unlock(vfu);
	return ret;
}

void vfu_map_clear(struct vfu *vfu)
{
	vfu_map_write_lock(vfu);
	map_drop(vfu, 0, vfu->range_count);
	while (vfu->file_count)
		close(vfu->files[--vfu->file_count].fd);
	vfu_map_write_unlock(vfu);
}

int vfu_set_neighbour(struct vfu *vfu, int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	vfu->neighbour = fd;
	vfu->neighbour_bytes = (uint64_t)status.st_size;
	return 0;
}

/* Returns whether @range is a part of a file and allows the access; the map is locked. */
static int map_allows(const struct vfu_range *range, bool write)
{
	if (!(range->flags & (write ? VFU_MAP_WRITE : VFU_MAP_READ)))
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
	size_t index = vfu_map_find(vfu, address);
	const struct vfu_range *range = &vfu->ranges[index], *last = &vfu->ranges[vfu->range_count];
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
		place->fd = fcntl(vfu->files[range->file].fd, F_DUPFD_CLOEXEC, 0);
		place->device = vfu->files[range->file].device;
		place->inode = vfu->files[range->file].inode;
		place->offset = range->offset + (address - range->address);
		if (place->fd < 0)
			ret = -errno;
	}
	vfu_map_read_unlock(vfu);
	return ret;
}

int vfu_locate_neighbour(struct vfu *vfu, uint64_t address, size_t length, bool write,
			 uint64_t *offset)
{
	const struct vfu_range *range;
	int ret;

	vfu_map_read_lock(vfu);
	ret = map_range_of(vfu, address, length, write, &range);
	if (!ret && !range->neighbour)
		ret = -EFAULT;
	if (!ret)
		*offset = range->offset + (address - range->address);
	vfu_map_read_unlock(vfu);
	return ret;
}
