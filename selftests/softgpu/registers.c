// SPDX-License-Identifier: GPL-2.0-only
/*
 * BAR0 of softgpu, and resets. All functions run in the thread that serves the client, so only
 * a reset may wait for a job.
 */
#include <string.h>

#include "engine.h"
#include "memory.h"
#include "offload.h"
#include "registers.h"

static uint64_t read_counter(struct gpu *gpu, uint64_t offset)
{
	struct softgpu_counters counters = {
		.jobs = atomic_load(&gpu->jobs),
		.faults = atomic_load(&gpu->faults),
		.fault_address = atomic_load(&gpu->fault_address),
		.resets = atomic_load(&gpu->resets),
		.invalidations = atomic_load(&gpu->invalidations),
		.doorbells = vfu_counted(gpu->vfu, VFU_POSTED_WRITES),
		.posted_failed = vfu_counted(gpu->vfu, VFU_POSTED_FAILED),
		.mapped_reads = vfu_counted(gpu->vfu, VFU_MAPPED_READS),
		.mapped_writes = vfu_counted(gpu->vfu, VFU_MAPPED_WRITES),
		.message_reads = vfu_counted(gpu->vfu, VFU_MESSAGE_READS),
		.message_writes = vfu_counted(gpu->vfu, VFU_MESSAGE_WRITES),
		.dma_bytes_written = vfu_counted(gpu->vfu, VFU_BYTES_WRITTEN),
	};
	uint64_t value;

	memcpy(&value, (char *)&counters + offset, sizeof(value));
	return value;
}

static uint64_t running_jobs(struct gpu *gpu)
{
	uint64_t bits = 0;
	unsigned int i;

	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		if (slot_busy(&gpu->slots[i]))
			bits |= 1U << i;
	return bits;
}

/* The slot that the register at @offset belongs to, and its offset there. */
static struct slot *find_slot(struct gpu *gpu, uint64_t *offset)
{
	uint64_t number = (*offset - SOFTGPU_REG_SLOT(0)) / 0x40;

	if (*offset < SOFTGPU_REG_SLOT(0) || number >= SOFTGPU_MAX_SLOTS)
		return NULL;
	*offset -= SOFTGPU_REG_SLOT(number);
	return &gpu->slots[number];
}

static uint64_t read_slot(struct slot *slot, uint64_t offset)
{
	switch (offset) {
	case SOFTGPU_SLOT_JOB:
		return atomic_load(&slot->job_offset);
	case SOFTGPU_SLOT_STATUS:
		return slot_busy(slot);
	default:
		return 0;
	}
}

static uint64_t read_register(struct gpu *gpu, uint64_t offset)
{
	struct slot *slot = find_slot(gpu, &offset);

	if (slot)
		return read_slot(slot, offset);
	if (offset >= SOFTGPU_REG_COUNTERS && offset % 8 == 0 &&
	    offset < SOFTGPU_REG_COUNTERS + sizeof(struct softgpu_counters))
		return read_counter(gpu, offset - SOFTGPU_REG_COUNTERS);
	switch (offset) {
	case SOFTGPU_REG_ID:
		return SOFTGPU_ID;
	case SOFTGPU_REG_VERSION:
		return SOFTGPU_VERSION;
	case SOFTGPU_REG_HBM_BYTES:
		return gpu->hbm_bytes;
	case SOFTGPU_REG_HBM_VA:
		return GPU_HBM_VA;
	case SOFTGPU_REG_MMU_VA:
		return GPU_MMU_VA;
	case SOFTGPU_REG_SLOTS:
		return SOFTGPU_MAX_SLOTS;
	case SOFTGPU_REG_THREADS:
		return gpu->most_threads;
	case SOFTGPU_REG_TABLE:
		return atomic_load(&gpu->table);
	case SOFTGPU_REG_TABLE_PAGES:
		return atomic_load(&gpu->table_pages);
	case SOFTGPU_REG_INVALIDATE:
		return memory_invalidating(gpu);
	case SOFTGPU_REG_FLUSH:
		return atomic_load(&gpu->flush);
	case SOFTGPU_REG_WINDOW:
		return gpu->window;
	case SOFTGPU_REG_INT_STATUS:
		return atomic_load(&gpu->int_status);
	case SOFTGPU_REG_INT_ENABLE:
		return atomic_load(&gpu->int_enable);
	case SOFTGPU_REG_RESET:
		return running_jobs(gpu);
	default:
		return 0;
	}
}

static void write_slot(struct slot *slot, uint64_t offset, uint64_t value)
{
	if (offset == SOFTGPU_SLOT_JOB)
		atomic_store(&slot->job_offset, value);
	else if (offset == SOFTGPU_SLOT_CONTROL)
		slot_control(slot, (uint32_t)value);
}

static void abort_all(struct gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		slot_control(&gpu->slots[i], SOFTGPU_CONTROL_ABORT);
}

static void write_register(struct gpu *gpu, uint64_t offset, uint64_t value)
{
	struct slot *slot = find_slot(gpu, &offset);

	if (slot) {
		write_slot(slot, offset, value);
		return;
	}
	switch (offset) {
	case SOFTGPU_REG_TABLE:
		atomic_store(&gpu->table, value);
		break;
	case SOFTGPU_REG_TABLE_PAGES:
		atomic_store(&gpu->table_pages, value);
		break;
	case SOFTGPU_REG_INVALIDATE:
		memory_invalidate(gpu);
		break;
	case SOFTGPU_REG_FLUSH:
		atomic_store(&gpu->flush, value);
		break;
	case SOFTGPU_REG_INT_STATUS:
		atomic_fetch_and(&gpu->int_status, ~(uint32_t)value);
		break;
	case SOFTGPU_REG_INT_ENABLE:
		atomic_store(&gpu->int_enable, (uint32_t)value);
		break;
	case SOFTGPU_REG_RESET:
		abort_all(gpu);
		break;
	}
}

/* Only accesses to whole registers have an effect. */
static bool is_register(unsigned int bar, uint64_t offset, uint32_t count)
{
	return bar == 0 && (count == 4 || count == 8) && offset % count == 0;
}

static void bar_read(void *context, unsigned int bar, uint64_t offset,
		     void *data, uint32_t count)
{
	struct gpu *gpu = context;
	uint64_t value;

	memset(data, 0, count);
	if (bar == 2) {
		memcpy(data, gpu->hbm + offset, count);
	} else if (is_register(bar, offset, count)) {
		value = read_register(gpu, offset);
		memcpy(data, &value, count);
	}
}

static void bar_write(void *context, unsigned int bar, uint64_t offset,
		      const void *data, uint32_t count)
{
	struct gpu *gpu = context;
	uint64_t value = 0;

	if (bar == 2) {
		memcpy(gpu->hbm + offset, data, count);
	} else if (is_register(bar, offset, count)) {
		memcpy(&value, data, count);
		write_register(gpu, offset, value);
	}
}

/* HBM keeps its contents, like that of a real GPU after a function level reset. */
static void reset(void *context, enum vfu_reset why)
{
	struct gpu *gpu = context;
	unsigned int i;

	(void)why;
	engines_abort(gpu);
	atomic_store(&gpu->table, 0);
	atomic_store(&gpu->table_pages, 0);
	atomic_store(&gpu->flush, 0);
	atomic_store(&gpu->int_status, 0);
	atomic_store(&gpu->int_enable, 0);
	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		atomic_store(&gpu->slots[i].job_offset, 0);
	atomic_fetch_add(&gpu->resets, 1);
}

static void unmapped(void *context, uint64_t address, uint64_t size)
{
	struct gpu *gpu = context;

	if (gpu->offload)
		offload_unmapped(gpu, address, size);
}

void gpu_describe(const struct gpu *gpu, struct vfu_device *device)
{
	*device = (struct vfu_device){
		.vendor_id = SOFTGPU_VENDOR_ID,
		.device_id = SOFTGPU_DEVICE_ID,
		.class_code = SOFTGPU_CLASS,
		.revision = SOFTGPU_VERSION,
		.vectors = 1,
		.bars[0] = { .size = SOFTGPU_REGISTER_BYTES, .fd = -1 },
		.bars[2] = {
			.size = gpu->hbm_bytes,
			.is_64bit = true,
			.prefetchable = true,
			.fd = gpu->hbm_fd,
		},
		.bar_read = bar_read,
		.bar_write = bar_write,
		.reset = reset,
		.unmapped = unmapped,
	};
}
