// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernels of manifest.py as functions, for guest_pages.py: without a GPU, its memory is memory of
 * the process.
 */
#include <nvmepeer_device.h>

#include <mover_kernel.h>

uint32_t manifest_layout(void);
int manifest_transfer(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list);
void manifest_move(uint64_t shared, uint64_t disk, uint64_t memory, uint32_t ring);

uint32_t manifest_layout(void)
{
	return NVMEPEER_LAYOUT;
}

int manifest_transfer(const struct nvmepeer_queue *queue, const struct nvmepeer_list *list)
{
	return nvmepeer_list_transfer(queue, list);
}

void manifest_move(uint64_t shared, uint64_t disk, uint64_t memory, uint32_t ring)
{
	const struct kernel_mover mover = { (struct mover_shared *)(uintptr_t)shared, disk, memory };

	mover_serve(&mover, ring);
}
