// SPDX-License-Identifier: GPL-2.0-only
/*
 * A manifest: what a process needs to use queue pairs that the guest's module has made, in place
 * of this GPU. Each part is a range of a file in the shared directory: the GPU's memory, the
 * guest's, or the controller's registers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <badctrl.h>
#include <linux/nvme_peer.h>

#include "manifest.h"
#include "memory.h"

#define NEW_MANIFEST	BADCTRL_SHARED_MANIFEST ".new"

/* Where a part is. */
struct part {
	const char *file;
	uint64_t offset;
};

static bool in_hbm(const struct gpu *gpu, uint64_t offset, uint64_t length, struct part *part)
{
	*part = (struct part){ BADCTRL_SHARED_MEMORY, offset };
	return gpu_hbm(gpu, GPU_HBM_VA + offset, length);
}

static bool is_guest(const struct gpu *gpu, const struct vfu_place *place)
{
	struct stat status;

	return !fstatat(gpu->share, BADCTRL_SHARED_GUEST, &status, 0) &&
	       status.st_dev == place->device && status.st_ino == place->inode;
}

static bool in_guest(struct gpu *gpu, uint64_t bus, uint64_t length, bool write, struct part *part)
{
	struct vfu_place place;

	if (vfu_locate(gpu->vfu, bus, length, write, &place))
		return false;
	*part = (struct part){ BADCTRL_SHARED_GUEST, place.offset };
	return is_guest(gpu, &place);
}

/* Does the bus page have the token of the file? */
static bool in_controller(struct gpu *gpu, uint64_t bus, uint64_t length, struct part *part)
{
	int fd = openat(gpu->share, BADCTRL_SHARED_BAR, O_RDONLY | O_CLOEXEC);
	uint64_t token;
	bool good;

	if (fd < 0)
		return false;
	good = pread(fd, &token, sizeof(token), BADCTRL_TOKEN) == sizeof(token);
	close(fd);
	*part = (struct part){ BADCTRL_SHARED_BAR, BADCTRL_DOORBELLS + bus % SOFTGPU_PAGE };
	return good && length <= SOFTGPU_PAGE - bus % SOFTGPU_PAGE &&
	       memory_has_token(gpu, bus, token);
}

/* Called in a view. */
static bool find(struct gpu *gpu, uint64_t address, uint64_t length, bool write, struct part *part)
{
	uint64_t entry, bus;

	if (gpu_hbm(gpu, address, length))
		return in_hbm(gpu, address - GPU_HBM_VA, length, part);
	entry = memory_entry(gpu, address, write);
	if (!entry || !memory_holds(gpu, address, length, write, entry))
		return false;
	bus = (entry & SOFTGPU_PTE_ADDRESS) + address % SOFTGPU_PAGE;
	if (entry & SOFTGPU_PTE_HBM)
		return in_hbm(gpu, bus, length, part);
	return in_guest(gpu, bus, length, write, part) ||
	       in_controller(gpu, bus, length, part);
}

static bool write_part(struct gpu *gpu, FILE *file, const char *before, const char *role,
		       uint64_t address, uint64_t bytes, bool write)
{
	struct part part;

	if (!find(gpu, address, bytes, write, &part)) {
		fprintf(stderr, "softgpu: manifest: the %s at %#llx is in no shared file\n", role,
			(unsigned long long)address);
		return false;
	}
	fprintf(file, "%s{\"file\": \"%s\", \"offset\": %llu, \"bytes\": %llu, \"role\": \"%s\"}",
		before, part.file, (unsigned long long)part.offset, (unsigned long long)bytes, role);
	return true;
}

/* Doorbells are offsets in their part, from the start of its page on; there are no addresses. */
static void write_geometry(FILE *file, const struct nvmepeer_geometry *geometry)
{
	fprintf(file, "{\"version\": %u, \"flags\": %u, \"sq_doorbell\": %llu, \"cq_doorbell\": %llu, ",
		geometry->version, geometry->flags,
		(unsigned long long)geometry->sq_doorbell % SOFTGPU_PAGE,
		(unsigned long long)geometry->cq_doorbell % SOFTGPU_PAGE);
	fprintf(file, "\"timeout_ns\": %llu, \"sq_entries\": %u, \"cq_entries\": %u, \"cids\": %u, ",
		(unsigned long long)geometry->timeout_ns, geometry->sq_entries,
		geometry->cq_entries, geometry->cids);
	fprintf(file, "\"generation\": %u, \"qid\": %u, \"nsid\": %u, \"lba_shift\": %u, ",
		geometry->generation, geometry->qid, geometry->nsid, geometry->lba_shift);
	fprintf(file, "\"page_shift\": %u, \"max_transfer\": %u, \"reserve\": %u}",
		geometry->page_shift, geometry->max_transfer, geometry->reserve);
}

static bool write_pair(struct gpu *gpu, FILE *file, const struct nvmepeer_geometry *geometry)
{
	uint64_t doorbells = geometry->sq_doorbell / SOFTGPU_PAGE * SOFTGPU_PAGE;

	if (geometry->cq_doorbell / SOFTGPU_PAGE * SOFTGPU_PAGE != doorbells ||
	    geometry->list_bytes)
		return false;
	fprintf(file, "{\"geometry\": ");
	write_geometry(file, geometry);
	fprintf(file, ",\n \"parts\": [");
	if (!write_part(gpu, file, "", "SQ", geometry->sq, 64ULL * geometry->sq_entries, true) ||
	    !write_part(gpu, file, ",\n  ", "CQ", geometry->cq, 16ULL * geometry->cq_entries, true) ||
	    !write_part(gpu, file, ",\n  ", "DOORBELL_MEMORY", doorbells, SOFTGPU_PAGE, true) ||
	    !write_part(gpu, file, ",\n  ", "STATUS", geometry->status, 64, false) ||
	    !write_part(gpu, file, ",\n  ", "CONTROL", geometry->control,
			sizeof(struct nvme_peer_control), true))
		return false;
	fprintf(file, "]}");
	return true;
}

static bool write_data(const struct gpu *gpu, FILE *file, const struct softgpu_data *data)
{
	if (!gpu_in_window(gpu, data->address, data->bytes))
		return false;
	fprintf(file, "{\"window\": %llu, \"dma\": %llu, \"bytes\": %llu}",
		(unsigned long long)(data->address - GPU_HBM_VA), (unsigned long long)data->dma,
		(unsigned long long)data->bytes);
	return true;
}

static bool write_all(struct gpu *gpu, FILE *file, const struct softgpu_manifest *manifest,
		      const struct nvmepeer_geometry *pairs)
{
	uint32_t i;

	fprintf(file, "{\"generation\": %u,\n", manifest->generation);
	if (!write_part(gpu, file, "\"control\": ", "PROCESSES", manifest->control, SOFTGPU_PAGE,
			true))
		return false;
	fprintf(file, ",\n\"data\": [");
	for (i = 0; i < manifest->data_count; i++) {
		fputs(i ? ",\n " : "", file);
		if (!write_data(gpu, file, &manifest->data[i]))
			return false;
	}
	fprintf(file, "],\n\"queue_pairs\": [");
	for (i = 0; i < manifest->pair_count; i++) {
		fputs(i ? ",\n" : "", file);
		if (!write_pair(gpu, file, &pairs[i]))
			return false;
	}
	fprintf(file, "]}\n");
	return true;
}

static enum softgpu_status prepare_manifest(struct slot *slot)
{
	const struct softgpu_manifest *manifest = &slot->parameters.manifest;
	const void *pairs = gpu_hbm(slot->gpu, manifest->pairs,
				    manifest->pair_count * sizeof(struct nvmepeer_geometry));

	return slot->threads == 1 && slot->gpu->share >= 0 && pairs && manifest->pairs % 8 == 0 &&
	       manifest->pair_count <= SOFTGPU_MOST_PAIRS &&
	       manifest->data_count <= SOFTGPU_MOST_DATA ? SOFTGPU_RUNNING : SOFTGPU_INVALID;
}

/* Nothing in between escapes. */
static enum softgpu_status run_manifest(struct lane *lane)
{
	struct gpu *gpu = lane->slot->gpu;
	const struct softgpu_manifest *manifest = &lane->slot->parameters.manifest;
	int fd = openat(gpu->share, NEW_MANIFEST, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool good;

	if (!file)
		return SOFTGPU_FAILED;
	memory_view_enter(lane);
	good = write_all(gpu, file, manifest, (const void *)(uintptr_t)manifest->pairs);
	memory_view_leave(lane);
	good &= !ferror(file);
	good &= !fclose(file);
	return good && !renameat(gpu->share, NEW_MANIFEST, gpu->share, BADCTRL_SHARED_MANIFEST) ?
	       SOFTGPU_OK : SOFTGPU_FAILED;
}

const struct program *manifest_program(uint32_t number)
{
	static const struct program program = { prepare_manifest, run_manifest };

	return number == SOFTGPU_MANIFEST ? &program : NULL;
}
