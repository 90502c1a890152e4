// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * files.c: the parts of a queue pair as descriptors: check them against its
 * geometry, map them and register them with the GPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../placeholders.h"
#include "internal.h"

static const char call[] = "nvmepeer_cuda_queues_from_fds";

/*
 * Parts of a queue pair.  @gpu: may be GPU memory.  @align: of its first byte, in
 * bytes.
 */
static const struct part_kind {
	const char *name;
	enum cuda_memory memory;
	uint32_t align;
	bool gpu;
} kinds[CUDA_ROLES] = {
	[NVMEPEER_CUDA_SQ] = { "submission ring", CUDA_MEMORY_READ_WRITE, 64, true },
	[NVMEPEER_CUDA_CQ] = { "completion ring", CUDA_MEMORY_READ_WRITE, 16, true },
	[NVMEPEER_CUDA_DOORBELL] = { "doorbells", CUDA_MEMORY_REGISTERS, 4, false },
	[NVMEPEER_CUDA_STATUS] = { "status page", CUDA_MEMORY_READ_ONLY, 4, false },
	[NVMEPEER_CUDA_CONTROL] = { "control page", CUDA_MEMORY_READ_WRITE, 8, false },
	[NVMEPEER_CUDA_LISTS] = { "PRP lists", CUDA_MEMORY_READ_WRITE, 8, true },
	[NVMEPEER_CUDA_READBACK] = { "readback word", CUDA_MEMORY_READ_ONLY, 4, false },
	[NVMEPEER_CUDA_QUEUE_PAIR] = { "queue pair file", CUDA_MEMORY_READ_WRITE, 1, false },
};

static bool in_gpu(const struct nvmepeer_cuda_file *file)
{
	return file->fd == NVMEPEER_CUDA_GPU_MEMORY;
}

/* Bytes that the geometry needs of a part; 0: none, the part is not used. */
static uint64_t bytes_needed(const struct nvmepeer_geometry *geometry, uint32_t role)
{
	uint64_t sq = geometry->sq_doorbell, cq = geometry->cq_doorbell;

	switch (role) {
	case NVMEPEER_CUDA_SQ:
		return 64 * (uint64_t)geometry->sq_entries;
	case NVMEPEER_CUDA_CQ:
		return 16 * (uint64_t)geometry->cq_entries;
	case NVMEPEER_CUDA_DOORBELL:
		return (sq > cq ? sq : cq) + 4;
	case NVMEPEER_CUDA_STATUS:
		return sizeof(struct nvme_peer_status);
	case NVMEPEER_CUDA_CONTROL:
		return sizeof(struct nvme_peer_control);
	case NVMEPEER_CUDA_LISTS:
		return (uint64_t)nvmepeer_cids(geometry) * geometry->list_bytes;
	case NVMEPEER_CUDA_READBACK:
		return geometry->flags & NVMEPEER_CQ_APART_FROM_DATA ? 4 : 0;
	default:
		return 0;
	}
}

/* The place of a part: doorbells are registers or memory. */
static uint32_t place(uint32_t role)
{
	return role == NVMEPEER_CUDA_DOORBELL_MEMORY ? (uint32_t)NVMEPEER_CUDA_DOORBELL : role;
}

/* Each part has one place in @by_role. */
static int sort(const struct nvmepeer_cuda_file *files, uint32_t count,
		const struct nvmepeer_cuda_file *by_role[CUDA_ROLES])
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t role = place(files[i].role);

		if (role >= CUDA_ROLES || !kinds[role].name)
			return cuda_fail(call, -EINVAL, "unknown role", "pass NVMEPEER_CUDA_SQ and so on",
					 "descriptor %u of %u has role %u", i, count, role);
		if (by_role[role])
			return cuda_fail(call, -EEXIST, "a role was passed twice",
					 "pass one descriptor for each role",
					 "descriptors %u and %u are both the %s",
					 (unsigned int)(by_role[role] - files), i, kinds[role].name);
		by_role[role] = &files[i];
	}
	return 0;
}

static int check_range(const struct nvmepeer_cuda_file *file, uint32_t role, uint64_t needed)
{
	const struct part_kind *kind = &kinds[role];
	unsigned long long offset = file->offset, bytes = file->bytes;

	if (bytes < needed)
		return cuda_fail(call, -ENOSPC, "a part is too small for the geometry",
				 "pass the part that belongs to this geometry",
				 "the %s has %llu bytes; %llu are needed", kind->name, bytes,
				 (unsigned long long)needed);
	if (offset > INT64_MAX || bytes > INT64_MAX - offset)
		return cuda_fail(call, -EINVAL, "invalid range", "pass the offset and bytes of the part",
				 "%llu bytes at %#llx for the %s", bytes, offset, kind->name);
	if (offset % kind->align)
		return cuda_fail(call, -EINVAL, "a part is misaligned", "pass the offset of the part",
				 "the %s is at %#llx; it starts at a multiple of %u bytes", kind->name,
				 offset, kind->align);
	return 0;
}

/*
 * Access behind the end of a mapped file is SIGBUS.  Device files have no size: their
 * mmap() fails.
 */
static int check_file(const struct nvmepeer_cuda_file *file, uint32_t role)
{
	struct stat status;

	if (fstat(file->fd, &status))
		return cuda_fail(call, -EBADF, "not an open descriptor", "pass the descriptor received",
				 "descriptor %d for the %s", file->fd, kinds[role].name);
	if (status.st_size > 0 && file->offset + file->bytes > (uint64_t)status.st_size)
		return cuda_fail(call, -ENOSPC, "a part ends behind its file",
				 "pass the offset and bytes of the part",
				 "%llu bytes at %#llx for the %s; the file has %llu",
				 (unsigned long long)file->bytes, (unsigned long long)file->offset,
				 kinds[role].name, (unsigned long long)status.st_size);
	return 0;
}

static int check_memory(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *file,
			uint32_t role)
{
	if (kinds[role].gpu)
		return cuda_check_memory(cuda, file->offset, file->bytes);
	return cuda_fail(call, -EBADF, "the part cannot be GPU memory", "pass the descriptor received",
			 "descriptor %d for the %s", file->fd, kinds[role].name);
}

static int check_part(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry,
		      const struct nvmepeer_cuda_file *file, uint32_t role)
{
	uint64_t needed = bytes_needed(geometry, role);
	int error;

	if (role == NVMEPEER_CUDA_QUEUE_PAIR)
		return 0;	/* checked by nvmepeer_qp_from_fd() */
	if (!file && !needed)
		return 0;
	if (!file)
		return cuda_fail(call, -ENODATA, "a role is missing", "pass a descriptor for it",
				 "the geometry needs %llu bytes for the %s", (unsigned long long)needed,
				 kinds[role].name);
	if (!needed)
		return cuda_fail(call, -EINVAL, "a part is not used by the geometry",
				 "leave it out, or pass the geometry that it belongs to",
				 "the geometry has no %s", kinds[role].name);
	error = check_range(file, role, needed);
	if (error)
		return error;
	return in_gpu(file) ? check_memory(cuda, file, role) : check_file(file, role);
}

/* The table of the PRP lists' pages, which is in GPU memory of this process. */
static int check_list_table(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry)
{
	uint64_t table = geometry->list_memory.pages, page = 1ull << geometry->page_shift;
	uint64_t bytes = bytes_needed(geometry, NVMEPEER_CUDA_LISTS);

	if (!bytes || !table)
		return 0;
	/* With list_memory.dma its length would be another one. */
	if (table % sizeof(uint64_t) || geometry->list_memory.dma)
		return cuda_fail(call, -EINVAL, "the table of the PRP lists is invalid",
				 "pass a multiple of 8 in list_memory.pages, and 0 in list_memory.dma",
				 "address %#llx, dma %#llx", (unsigned long long)table,
				 (unsigned long long)geometry->list_memory.dma);
	return cuda_check_memory(cuda, table, (bytes + page - 1) / page * sizeof(uint64_t));
}

/* Privileges and ordering that the parts require. */
static int check_gpu(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *const *by_role)
{
	int error = 0;

	if (by_role[NVMEPEER_CUDA_DOORBELL]->role == NVMEPEER_CUDA_DOORBELL)
		error = cuda_may_register();
	if (!error && in_gpu(by_role[NVMEPEER_CUDA_CQ]))
		error = cuda_keeps_order(cuda);
	return error;
}

/* All of the geometry that does not depend on addresses. */
static int check_geometry(const struct nvmepeer_geometry *geometry)
{
	struct nvmepeer_geometry placed = with_placeholders(geometry);
	struct nvmepeer_explanation why;
	int status = nvmepeer_geometry_check(&placed);

	if (!status)
		return 0;
	nvmepeer_explain_result(NVMEPEER_RESULT_DEVICE, status, &why, sizeof(why));
	return cuda_fail(call, -EINVAL, "the geometry is invalid", why.help, "%s",
			 why.limit[0] ? why.limit : why.what);
}

int cuda_check_files(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *files,
		     uint32_t count, const struct nvmepeer_geometry *geometry)
{
	const struct nvmepeer_cuda_file *by_role[CUDA_ROLES] = { NULL };
	int error = check_geometry(geometry);

	if (!error)
		error = sort(files, count, by_role);
	for (uint32_t role = 0; !error && role < CUDA_ROLES; role++)
		if (kinds[role].name)
			error = check_part(cuda, geometry, by_role[role], role);
	if (!error)
		error = check_list_table(cuda, geometry);
	return error ? error : check_gpu(cuda, by_role);
}

static int map_failed(const struct nvmepeer_cuda_file *file, uint32_t role, int error)
{
	return cuda_fail(call, error, "cannot map a part of the queue pair",
			 "pass a descriptor with the rights of the part: the status page read, all else read and write",
			 "mmap() of %llu bytes at %#llx for the %s: %s",
			 (unsigned long long)file->bytes, (unsigned long long)file->offset,
			 kinds[role].name, strerror(-error));
}

/* Map a part and register it with the GPU, which accesses it at @address. */
static int map_part(struct nvmepeer_cuda *cuda, struct cuda_mapping *mapping,
		    const struct nvmepeer_cuda_file *file, uint64_t *address)
{
	uint32_t role = place(file->role);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = file->offset / page * page, in_first = file->offset - start;
	enum cuda_memory memory = kinds[role].memory;
	void *base;
	int error;

	if (in_gpu(file)) {
		*address = file->offset;
		return 0;
	}
	if (file->role != role)
		memory = CUDA_MEMORY_READ_WRITE;
	mapping->bytes = cuda_round_up(in_first + file->bytes, page);
	base = mmap(NULL, mapping->bytes,
		    memory == CUDA_MEMORY_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE,
		    MAP_SHARED, file->fd, (off_t)start);
	if (base == MAP_FAILED)
		return map_failed(file, role, -errno);
	mapping->base = base;
	mapping->address = (char *)base + in_first;
	error = cuda_register(cuda, memory, base, mapping->bytes, address);
	mapping->registered = !error;
	*address += in_first;
	return error;
}

static void set_address(struct nvmepeer_geometry *geometry, uint32_t role, uint64_t address)
{
	uint64_t *const fields[CUDA_ROLES] = {
		[NVMEPEER_CUDA_SQ] = &geometry->sq,
		[NVMEPEER_CUDA_CQ] = &geometry->cq,
		[NVMEPEER_CUDA_STATUS] = &geometry->status,
		[NVMEPEER_CUDA_CONTROL] = &geometry->control,
		[NVMEPEER_CUDA_LISTS] = &geometry->list_area,
		[NVMEPEER_CUDA_READBACK] = &geometry->readback,
	};

	if (fields[role])
		*fields[role] = address;
	if (role != NVMEPEER_CUDA_DOORBELL)
		return;
	geometry->sq_doorbell += address;
	geometry->cq_doorbell += address;
}

int cuda_map_files(struct nvmepeer_cuda *cuda, const struct nvmepeer_cuda_file *files,
		   uint32_t count, struct cuda_mapping mappings[CUDA_ROLES],
		   struct nvmepeer_geometry *geometry)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < count; i++) {
		uint32_t role = place(files[i].role);
		uint64_t address = 0;

		if (role == NVMEPEER_CUDA_QUEUE_PAIR)
			continue;
		error = map_part(cuda, &mappings[role], &files[i], &address);
		set_address(geometry, role, address);
	}
	return error;
}

void cuda_unmap_files(struct nvmepeer_cuda *cuda, struct cuda_mapping mappings[CUDA_ROLES])
{
	for (uint32_t role = 0; role < CUDA_ROLES; role++) {
		if (mappings[role].registered)
			cuda_unregister(cuda, mappings[role].base);
		if (mappings[role].base)
			munmap(mappings[role].base, mappings[role].bytes);
		memset(&mappings[role], 0, sizeof(mappings[role]));
	}
}

static int refuse_addresses(void)
{
	return cuda_fail(call, -EINVAL, "the geometry has addresses",
			 "build it with NVMEPEER_VIEW_DESCRIPTORS",
			 "sq, cq, status, control, state, list_area and readback are 0 here: the descriptors have their places");
}

int cuda_take_geometry(uint32_t layout, const struct nvmepeer_geometry *geometry, size_t size,
		       struct nvmepeer_geometry *taken)
{
	const unsigned char *bytes = (const unsigned char *)geometry;

	if (layout != NVMEPEER_LAYOUT)
		return cuda_fail(call, -EPROTO, "the kernels have another layout of the device queue",
				 "compile the program with the header of the installed library",
				 "layout %#x of the program, %#x of the library", layout, NVMEPEER_LAYOUT);
	if (size < sizeof(*taken))
		return cuda_fail(call, -EINVAL, "invalid size of the geometry",
				 "pass the size of the structure", "%zu bytes; the minimum is %zu", size,
				 sizeof(*taken));
	if (geometry->version != NVMEPEER_GEOMETRY_VERSION)
		return cuda_fail(call, -EPROTO, "the geometry has another version",
				 "use one version of the library in the broker and here",
				 "version %u of the geometry, %u of the library", geometry->version,
				 NVMEPEER_GEOMETRY_VERSION);
	for (size_t i = sizeof(*taken); i < size; i++)
		if (bytes[i])
			return cuda_fail(call, -E2BIG, "the geometry has an unknown field",
					 "update the library", "byte %zu of the geometry is not 0", i);
	if (geometry->flags & ~(uint32_t)NVP_GEOMETRY_FLAGS)
		return cuda_fail(call, -E2BIG, "the geometry has an unknown flag",
				 "update the library", "flags %#x of the geometry, %#x of the library",
				 geometry->flags, (uint32_t)NVP_GEOMETRY_FLAGS);
	if (geometry->sq || geometry->cq || geometry->status || geometry->control ||
	    geometry->state || geometry->list_area || geometry->readback)
		return refuse_addresses();
	if (geometry->sq_doorbell > UINT32_MAX || geometry->cq_doorbell > UINT32_MAX)
		return cuda_fail(call, -EINVAL, "invalid place of a doorbell",
				 "pass the offsets in the part of the doorbells",
				 "offsets %#llx and %#llx of at most 0xffffffff",
				 (unsigned long long)geometry->sq_doorbell,
				 (unsigned long long)geometry->cq_doorbell);
	memcpy(taken, geometry, sizeof(*taken));
	return 0;
}
