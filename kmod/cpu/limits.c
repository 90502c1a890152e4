// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of a namespace's request queue, from what the controller and the namespace
 * say they take and like.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/quirks.h"
#include "format.h"
#include "limits.h"

/* Preferred sizes; NVM command set 5.2.3. */
static void nvmep_optimal_limits(struct nvmep_limits *limits,
				 const struct nvme_id_ns *id)
{
	unsigned int unit = limits->block_size;

	if (id->nsfeat & NVME_NS_FEAT_ATOMICS && id->nawupf)
		limits->physical_block_size =
			rounddown_pow_of_two(unit *
					     (le16_to_cpu(id->nawupf) + 1));
	if (!(id->nsfeat & NVME_NS_FEAT_OPTIMAL_IO))
		return;
	limits->io_min = unit * (le16_to_cpu(id->npwg) + 1);
	/* One block, a zero there, is what who has no opinion says. */
	if (id->nows)
		limits->io_opt = unit * (le16_to_cpu(id->nows) + 1);
	limits->discard_granularity = unit * (le16_to_cpu(id->npdg) + 1);
	/* What is written whole is not larger than what should be. */
	limits->physical_block_size =
		min(limits->physical_block_size,
		    (unsigned int)rounddown_pow_of_two(limits->io_min));
}

static unsigned int nvmep_chunk(const struct nvmep_ctrl *ctrl,
				const struct nvme_id_ns *id, unsigned int unit)
{
	unsigned int boundary = le16_to_cpu(id->noiob) * unit;

	if (!boundary && ctrl->quirks & NVMEP_QUIRK_STRIPE)
		boundary = SZ_128K;
	/* The block layer splits at powers of two only on some kernels. */
	return is_power_of_2(boundary) ? boundary : 0;
}

/* An IOMMU keeps addresses of short mappings at hand, and looks for longer ones. */
static unsigned int nvmep_preferred_transfer(const struct nvmep_ctrl *ctrl)
{
	return min_t(size_t, ctrl->max_transfer, dma_opt_mapping_size(ctrl->dev));
}

/**
 * nvmep_ns_limits() - what the block layer is told about a namespace
 * @limits: filled, the bytes between its members with 0: they can be compared
 * @ctrl: its controller
 * @id: Identify Namespace
 */
void nvmep_ns_limits(struct nvmep_limits *limits,
		     const struct nvmep_ctrl *ctrl, const struct nvme_id_ns *id)
{
	unsigned int unit = nvmep_format_block_size(id);

	memset(limits, 0, sizeof(*limits));
	limits->block_size = unit;
	limits->physical_block_size = unit;
	limits->io_min = unit;
	limits->max_transfer = ctrl->max_transfer;
	limits->preferred_transfer = nvmep_preferred_transfer(ctrl);
	limits->max_segments = min_t(u32, USHRT_MAX,
				     ctrl->max_transfer / ctrl->page_size + 1);
	limits->chunk = nvmep_chunk(ctrl, id, unit);
	limits->max_discard = (u64)ctrl->max_discard * unit;
	limits->discard_granularity = unit;
	limits->max_discard_ranges = ctrl->max_discard_ranges;
	limits->max_write_zeroes = ctrl->max_write_zeroes;
	limits->zeroes_deallocate = nvmep_format_zeroes_deallocate(id);
	limits->write_cache = ctrl->id->vwc & NVME_CTRL_VWC_PRESENT;
	limits->fua = ctrl->id->vwc & NVME_CTRL_VWC_PRESENT;
	limits->virt_boundary = NVMEP_DATA_BOUNDARY;
	limits->dma_alignment = NVMEP_DATA_ALIGNMENT;
	nvmep_optimal_limits(limits, id);
}
