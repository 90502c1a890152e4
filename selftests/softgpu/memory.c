// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPU addresses: HBM directly, everything else through the page table to HBM
 * or to the bus.
 *
 * Invalidation: the driver clears page table entries and then writes SOFTGPU_REG_INVALIDATE,
 * which starts a new view. A lane stores the current view before it reads the page table, and
 * clears it after its access. Either the invalidator sees the stored old view and waits, or the
 * lane sees the cleared entry. Posted writes may be pending after that, so the invalidator
 * flushes them before the driver may reuse the memory behind the entry.
 */
#include <errno.h>

#include <badctrl.h>

#include "lane.h"
#include "memory.h"

void *gpu_hbm(const struct gpu *gpu, uint64_t address, uint64_t length)
{
	uint64_t offset = address - GPU_HBM_VA;

	if (address < GPU_HBM_VA || offset > gpu->window ||
	    length > gpu->window - offset)
		return NULL;
	return gpu->hbm + offset;
}

bool gpu_in_window(const struct gpu *gpu, uint64_t address, uint64_t length)
{
	uint64_t offset = address - GPU_HBM_VA;

	return address >= GPU_HBM_VA + gpu->window && offset <= gpu->hbm_bytes &&
	       length <= gpu->hbm_bytes - offset;
}

_Noreturn void lane_fault(struct lane *lane, uint64_t address)
{
	struct gpu *gpu = lane->slot->gpu;

	/* Do not report a fault after an abort or a reset. */
	lane_check(lane);
	atomic_store(&gpu->fault_address, address);
	atomic_fetch_add(&gpu->faults, 1);
	lane_note(lane, 0, address, 0);
	lane_escape(lane, SOFTGPU_FAULT);
}

/* --- Views --------------------------------------------------------------- */

void memory_view_enter(struct lane *lane)
{
	atomic_store(&lane->view, atomic_load(&lane->slot->gpu->view));
	/* Store the view before the load of the page table entry. */
	atomic_thread_fence(memory_order_seq_cst);
}

void memory_view_leave(struct lane *lane)
{
	atomic_store_explicit(&lane->view, 0, memory_order_release);
}

static bool older_view_in_use(struct gpu *gpu, uint32_t view)
{
	unsigned int i, k;

	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++) {
		for (k = 0; k < SOFTGPU_MAX_THREADS; k++) {
			uint32_t seen = atomic_load(&gpu->slots[i].lanes[k].view);

			if (seen && (int32_t)(seen - view) < 0)
				return true;
		}
	}
	return false;
}

void memory_flush(struct gpu *gpu)
{
	uint64_t flush = atomic_load(&gpu->flush);
	uint32_t word;

	if (flush)
		vfu_dma_read(gpu->vfu, flush, &word, sizeof(word), VFU_DMA_MESSAGE);
}

static void settle(struct gpu *gpu, uint32_t view)
{
	struct backoff backoff = { 0 };

	while (older_view_in_use(gpu, view))
		backoff_wait(&backoff);
	memory_flush(gpu);
}

static void *invalidator_main(void *argument)
{
	struct gpu *gpu = argument;
	uint32_t view;

	pthread_mutex_lock(&gpu->invalidate_lock);
	while (!gpu->exiting) {
		view = atomic_load(&gpu->view);
		if (gpu->settled == view) {
			pthread_cond_wait(&gpu->invalidate_changed,
					  &gpu->invalidate_lock);
			continue;
		}
		pthread_mutex_unlock(&gpu->invalidate_lock);
		settle(gpu, view);
		pthread_mutex_lock(&gpu->invalidate_lock);
		gpu->settled = view;
	}
	pthread_mutex_unlock(&gpu->invalidate_lock);
	return NULL;
}

void memory_invalidate(struct gpu *gpu)
{
	uint32_t view;

	pthread_mutex_lock(&gpu->invalidate_lock);
	view = atomic_load(&gpu->view) + 1;
	atomic_store(&gpu->view, view ? view : 1);
	pthread_cond_signal(&gpu->invalidate_changed);
	pthread_mutex_unlock(&gpu->invalidate_lock);
	atomic_fetch_add(&gpu->invalidations, 1);
}

bool memory_invalidating(struct gpu *gpu)
{
	bool busy;

	pthread_mutex_lock(&gpu->invalidate_lock);
	busy = gpu->settled != atomic_load(&gpu->view);
	pthread_mutex_unlock(&gpu->invalidate_lock);
	return busy;
}

int memory_start(struct gpu *gpu)
{
	pthread_mutex_init(&gpu->invalidate_lock, NULL);
	pthread_cond_init(&gpu->invalidate_changed, NULL);
	atomic_store(&gpu->view, 1);
	gpu->settled = 1;
	return -pthread_create(&gpu->invalidator, NULL, invalidator_main, gpu);
}

void memory_exit(struct gpu *gpu)
{
	pthread_mutex_lock(&gpu->invalidate_lock);
	gpu->exiting = true;
	pthread_cond_signal(&gpu->invalidate_changed);
	pthread_mutex_unlock(&gpu->invalidate_lock);
	pthread_join(gpu->invalidator, NULL);
}

/* --- Translation --------------------------------------------------------- */

/* The page table entry of @address, or 0. */
static uint64_t table_entry(const struct gpu *gpu, uint64_t address)
{
	uint64_t index = (address - GPU_MMU_VA) / SOFTGPU_PAGE;
	uint64_t *entry;

	if (address < GPU_MMU_VA || index >= atomic_load(&gpu->table_pages))
		return 0;
	entry = gpu_hbm(gpu, GPU_HBM_VA + atomic_load(&gpu->table) + 8 * index,
			8);
	if (!entry || (uintptr_t)entry % 8)
		return 0;
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

static bool entry_allows(uint64_t entry, bool write)
{
	uint64_t need = SOFTGPU_PTE_VALID | (write ? SOFTGPU_PTE_WRITE : 0);

	return (entry & need) == need;
}

uint64_t memory_entry(const struct gpu *gpu, uint64_t address, bool write)
{
	uint64_t entry = table_entry(gpu, address);

	return entry_allows(entry, write) ? entry : 0;
}

bool memory_holds(const struct gpu *gpu, uint64_t address, uint64_t length, bool write,
		  uint64_t entry)
{
	uint64_t page = address / SOFTGPU_PAGE * SOFTGPU_PAGE;

	for (; page < address + length; page += SOFTGPU_PAGE) {
		if (memory_entry(gpu, page, write) != entry)
			return false;
		entry += SOFTGPU_PAGE;
	}
	return true;
}

bool memory_has_token(struct gpu *gpu, uint64_t bus, uint64_t token)
{
	uint64_t page = bus / SOFTGPU_PAGE * SOFTGPU_PAGE, found = 0;

	return !vfu_dma_read(gpu->vfu, page + BADCTRL_TOKEN % SOFTGPU_PAGE, &found, sizeof(found),
			     VFU_DMA_MESSAGE) && found == token;
}

/* --- Accesses ------------------------------------------------------------ */

/**
 * struct access - an access by a lane, and its progress
 * @address: next GPU address
 * @data: next byte in this process
 * @length: remaining bytes
 * @write: a store
 * @flags: VFU_DMA_MESSAGE
 */
struct access {
	uint64_t address;
	char *data;
	size_t length;
	bool write;
	unsigned int flags;
};

static int access_hbm(const struct gpu *gpu, const struct access *access,
		      uint64_t address, size_t length)
{
	void *memory = gpu_hbm(gpu, address, length);

	if (!memory)
		return -EFAULT;
	if (access->write)
		vfu_copy_whole(memory, access->data, length);
	else
		vfu_copy_whole(access->data, memory, length);
	return 0;
}

static int access_bus(struct lane *lane, const struct access *access,
		      uint64_t address, size_t length)
{
	struct vfu *vfu = lane->slot->gpu->vfu;

	if (access->write) {
		lane_add(lane, remote_writes, 1);
		return vfu_dma_write(vfu, address, access->data, length,
				     access->flags);
	}
	lane_add(lane, remote_reads, 1);
	return vfu_dma_read(vfu, address, access->data, length, access->flags);
}

/* Execute the part of @access in its first page. */
static int access_page(struct lane *lane, const struct access *access,
		       size_t length)
{
	const struct gpu *gpu = lane->slot->gpu;
	uint64_t offset = access->address % SOFTGPU_PAGE, entry;
	int ret = -EFAULT;

	memory_view_enter(lane);
	entry = table_entry(gpu, access->address);
	if (!entry_allows(entry, access->write))
		ret = -EFAULT;
	else if (entry & SOFTGPU_PTE_HBM)
		ret = access_hbm(gpu, access, GPU_HBM_VA + offset +
				 (entry & SOFTGPU_PTE_ADDRESS), length);
	else
		ret = access_bus(lane, access, offset +
				 (entry & SOFTGPU_PTE_ADDRESS), length);
	memory_view_leave(lane);
	return ret;
}

static void access_all(struct lane *lane, struct access *access)
{
	const struct gpu *gpu = lane->slot->gpu;
	size_t length;

	lane_check(lane);
	if (!access_hbm(gpu, access, access->address, access->length))
		return;
	while (access->length) {
		length = SOFTGPU_PAGE - access->address % SOFTGPU_PAGE;
		if (length > access->length)
			length = access->length;
		if (access_page(lane, access, length))
			lane_fault(lane, access->address);
		access->address += length;
		access->data += length;
		access->length -= length;
		lane_check(lane);
	}
}

void lane_read(struct lane *lane, uint64_t address, void *data, size_t length,
	       unsigned int flags)
{
	struct access access = { address, data, length, false, flags };

	access_all(lane, &access);
}

void lane_write(struct lane *lane, uint64_t address, const void *data,
		size_t length, unsigned int flags)
{
	struct access access = { address, (char *)data, length, true, flags };

	access_all(lane, &access);
}

void lane_post(struct lane *lane, uint64_t address, uint32_t value)
{
	struct gpu *gpu = lane->slot->gpu;
	uint64_t entry;
	int ret = -EFAULT;

	lane_check(lane);
	if (gpu_hbm(gpu, address, sizeof(value))) {
		lane_write(lane, address, &value, sizeof(value), 0);
		return;
	}
	memory_view_enter(lane);
	entry = table_entry(gpu, address);
	if (address % 4 == 0 && entry_allows(entry, true) &&
	    !(entry & SOFTGPU_PTE_HBM))
		ret = vfu_dma_post(gpu->vfu, (entry & SOFTGPU_PTE_ADDRESS) +
				   address % SOFTGPU_PAGE,
				   &value, sizeof(value));
	memory_view_leave(lane);
	if (ret)
		lane_fault(lane, address);
	lane_add(lane, doorbells, 1);
	lane_add(lane, remote_writes, 1);
}
