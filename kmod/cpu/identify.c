// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identify data of a namespace.
 *
 * Identifiers: a namespace identifier (NSID) may be assigned to another
 * namespace at any time, so only UUID, NGUID and EUI-64 identify one.
 * Format: size of data and metadata of a block, protection information.
 * Limits: what the block layer may send in one request.
 */
#include <linux/blkdev.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "core/admin.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/quirks.h"
#include "identify.h"
#include "namespace.h"
#include "nvme.h"

/* --- identifiers -------------------------------------------------------- */

static void nvmep_parse_descriptor(struct nvmep_identifiers *ids, u8 type,
				   const u8 *value)
{
	switch (type) {
	case NVME_NIDT_EUI64:
		memcpy(ids->eui64, value, sizeof(ids->eui64));
		break;
	case NVME_NIDT_NGUID:
		memcpy(ids->nguid, value, sizeof(ids->nguid));
		break;
	case NVME_NIDT_UUID:
		import_uuid(&ids->uuid, value);
		break;
	case NVME_NIDT_CSI:
		ids->csi = *value;
		break;
	}
}

/* Namespace Identification Descriptor list, base specification 5.1.13.2.4. */
static void nvmep_parse_descriptors(struct nvmep_identifiers *ids,
				    const void *list)
{
	const struct nvme_ns_id_desc *descriptor;
	unsigned int offset = 0;

	/* No value is longer than a UUID. */
	while (offset + sizeof(*descriptor) + sizeof(ids->uuid) <=
	       NVME_IDENTIFY_DATA_SIZE) {
		descriptor = list + offset;
		if (!descriptor->nidl)
			return;
		nvmep_parse_descriptor(ids, descriptor->nidt,
				       (const u8 *)(descriptor + 1));
		offset += sizeof(*descriptor) + descriptor->nidl;
	}
}

/* The descriptors have the command set, and identifiers unless made up. */
static bool nvmep_needs_descriptors(const struct nvmep_ctrl *ctrl)
{
	if (NVME_CAP_CSS(ctrl->cap) & NVME_CAP_CSS_CSI)
		return true;
	if (ctrl->quirks & NVMEP_QUIRK_NO_NS_DESC)
		return false;
	return ctrl->vs >= NVME_VS(1, 3, 0) &&
	       !(ctrl->quirks & NVMEP_QUIRK_BOGUS_NID);
}

/*
 * The controller has no descriptors.  Seagate Nytro (1bb1:0100) refuses the
 * list by Invalid Field without Do Not Retry.
 */
static bool nvmep_descriptors_refused(int ret)
{
	return ret > 0 && (ret & NVME_STATUS_DNR ||
			   (ret & NVME_SCT_SC_MASK) == NVME_SC_INVALID_FIELD);
}

/* Has the list identified this namespace, or its command set, before? */
static bool nvmep_from_descriptors(const struct nvmep_identifiers *known)
{
	return known && (!uuid_is_null(&known->uuid) || known->csi);
}

/*
 * A namespace whose list was read before keeps its disk: the error may not
 * recur.  Without the list it would seem to be another one.
 */
static int nvmep_descriptors_result(int ret,
				    const struct nvmep_identifiers *known)
{
	if (!nvmep_descriptors_refused(ret))
		return ret;
	return nvmep_from_descriptors(known) ? ret & ~NVME_STATUS_DNR : 0;
}

/**
 * nvmep_identifiers_read() - read the Namespace Identification Descriptor list
 * @ids: filled; all 0 on failure
 * @ctrl: controller; with NVMEP_QUIRK_BOGUS_NID only the command set is used
 * @nsid: namespace identifier
 * @known: identifiers as they were read before, or NULL
 *
 * Return: 0, also for a controller that has no such list; the NVMe status,
 * positive, of an error that may not recur; or a negative error code.
 */
int nvmep_identifiers_read(struct nvmep_identifiers *ids,
			   struct nvmep_ctrl *ctrl, u32 nsid,
			   const struct nvmep_identifiers *known)
{
	void *list;
	int ret;

	memset(ids, 0, sizeof(*ids));
	if (!nvmep_needs_descriptors(ctrl))
		return 0;
	list = kmalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_ID_CNS_NS_DESC_LIST, nsid, list);
	if (!ret)
		nvmep_parse_descriptors(ids, list);
	kfree(list);
	if (ctrl->quirks & NVMEP_QUIRK_BOGUS_NID)
		*ids = (struct nvmep_identifiers){ .csi = ids->csi };
	return nvmep_descriptors_result(ret, known);
}

/**
 * nvmep_identifiers_add() - add the identifiers of the Identify Namespace data
 * @ids: from nvmep_identifiers_read(), of the NVM command set
 * @ctrl: controller
 * @id: Identify Namespace data; before NVMe 1.3 the only source of identifiers
 */
void nvmep_identifiers_add(struct nvmep_identifiers *ids,
			   const struct nvmep_ctrl *ctrl,
			   const struct nvme_id_ns *id)
{
	if (ctrl->quirks & NVMEP_QUIRK_BOGUS_NID)
		return;
	memcpy(ids->nguid, id->nguid, sizeof(ids->nguid));
	memcpy(ids->eui64, id->eui64, sizeof(ids->eui64));
}

/**
 * nvmep_identifiers_clash() - do two namespaces have an identifier in common?
 * @a: identifiers of one
 * @b: identifiers of the other
 *
 * Return: true if both have the same UUID, NGUID or EUI-64, each of which is
 * globally unique by definition.
 */
bool nvmep_identifiers_clash(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b)
{
	if (!uuid_is_null(&a->uuid) && uuid_equal(&a->uuid, &b->uuid))
		return true;
	if (memchr_inv(a->nguid, 0, sizeof(a->nguid)) &&
	    !memcmp(a->nguid, b->nguid, sizeof(a->nguid)))
		return true;
	return memchr_inv(a->eui64, 0, sizeof(a->eui64)) &&
	       !memcmp(a->eui64, b->eui64, sizeof(a->eui64));
}

/* Also true if neither namespace has identifiers. */
bool nvmep_identifiers_equal(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b)
{
	return !memcmp(a->nguid, b->nguid, sizeof(a->nguid)) &&
	       !memcmp(a->eui64, b->eui64, sizeof(a->eui64)) &&
	       uuid_equal(&a->uuid, &b->uuid) && a->csi == b->csi;
}

/* --- format ------------------------------------------------------------- */

static const struct nvme_lbaf *nvmep_format(const struct nvme_id_ns *id)
{
	/* NVMe 2.0 put the upper two bits of the index into bits 6:5. */
	return &id->lbaf[(id->flbas & 0xf) | (id->flbas & 0x60) >> 1];
}

/**
 * nvmep_format_valid() - check that the size of a block is one of NVMe
 * @id: Identify Namespace data
 *
 * NVMe has blocks of 512 bytes or more.  The field can hold up to 2^255 bytes.
 *
 * Return: false if it has no such format; then call no other function with this
 * @id.
 */
bool nvmep_format_valid(const struct nvme_id_ns *id)
{
	return nvmep_format(id)->ds >= SECTOR_SHIFT &&
	       nvmep_format(id)->ds < 32;
}

/**
 * nvmep_format_usable() - check whether the block layer can use this format
 * @id: Identify Namespace data
 *
 * Return: false if only passthrough can access the namespace.
 */
bool nvmep_format_usable(const struct nvme_id_ns *id)
{
	const struct nvme_lbaf *format = nvmep_format(id);

	/* It is 0 for a command set without blocks. */
	if (format->ds < SECTOR_SHIFT || format->ds > PAGE_SHIFT)
		return false;
	if (!format->ms)
		return true;
	/* With PRACT the controller strips metadata of 8 bytes, all PI. */
	return id->dps & NVME_NS_DPS_PI_MASK &&
	       le16_to_cpu(format->ms) == 8;
}

/* Bytes of a logical block, or of a sector if the format is not usable. */
static unsigned int nvmep_format_block_size(const struct nvme_id_ns *id)
{
	return nvmep_format_usable(id) ? 1U << nvmep_format(id)->ds :
					 SECTOR_SIZE;
}

/*
 * True if Write Zeroes supports the Deallocate bit, and deallocated blocks read
 * as zero (NVM command set 4.1.5.1, DLFEAT).
 */
static bool nvmep_format_zeroes_deallocate(const struct nvme_id_ns *id)
{
	return (id->dlfeat & (NVMEP_NS_DLFEAT_DEALLOCATE |
			      NVMEP_NS_DLFEAT_READ_MASK)) ==
	       (NVMEP_NS_DLFEAT_DEALLOCATE | NVMEP_NS_DLFEAT_READ_ZEROES);
}

/*
 * PI that PRACT inserts and strips: for all block I/O, optional in passthrough.
 */
static enum nvmep_protection
nvmep_format_protection(const struct nvme_id_ns *id)
{
	return le16_to_cpu(nvmep_format(id)->ms) == 8 ?
	       id->dps & NVME_NS_DPS_PI_MASK : NVMEP_PROTECTION_NONE;
}

/**
 * nvmep_format_key() - what nvmep_ns_has_format() compares, as a number
 * @id: Identify Namespace data
 *
 * Return: the number.
 */
u32 nvmep_format_key(const struct nvme_id_ns *id)
{
	const struct nvme_lbaf *format = nvmep_format(id);

	return format->ds | le16_to_cpu(format->ms) << 8 |
	       (id->flbas & NVME_NS_FLBAS_META_EXT) << 20 |
	       nvmep_format_protection(id) << 28;
}

/**
 * nvmep_ns_has_format() - check whether the format is unchanged
 * @ns: namespace; scan_lock is held
 * @id: current Identify Namespace data
 *
 * Return: false if a command built for the old format would move another amount
 * of data.
 */
bool nvmep_ns_has_format(const struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	const struct nvme_lbaf *format = nvmep_format(id);

	return ns->block_shift == format->ds &&
	       ns->metadata_size == le16_to_cpu(format->ms) &&
	       ns->extended == !!(id->flbas & NVME_NS_FLBAS_META_EXT) &&
	       ns->protection == nvmep_format_protection(id);
}

/* A bit that is not in nvmep_format_key(): no number is 0. */
#define NVMEP_FORMAT_NUMBER	BIT(31)

/**
 * nvmep_ns_set_format() - set the format that commands are built for
 * @ns: namespace whose request queue is frozen
 * @id: Identify Namespace data
 */
void nvmep_ns_set_format(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	const struct nvme_lbaf *format = nvmep_format(id);

	ns->format = nvmep_format_usable(id) && !ns->ids.csi ?
		NVMEP_NS_FORMAT_BLOCKS : NVMEP_NS_FORMAT_PASSTHROUGH;
	ns->block_shift = format->ds;
	ns->metadata_size = le16_to_cpu(format->ms);
	ns->extended = id->flbas & NVME_NS_FLBAS_META_EXT;
	ns->protection = nvmep_format_protection(id);
	ns->zeroes_deallocate = nvmep_format_zeroes_deallocate(id);
	WRITE_ONCE(ns->format_number, ns->format == NVMEP_NS_FORMAT_BLOCKS ?
		   NVMEP_FORMAT_NUMBER | nvmep_format_key(id) : 0);
}

/* Capacity in sectors, 0 if the block layer cannot use the format. */
sector_t nvmep_ns_sectors(const struct nvme_id_ns *id)
{
	u64 blocks = le64_to_cpu(id->nsze);

	/* The size in bytes must fit into loff_t. */
	if (!nvmep_format_usable(id) ||
	    blocks > (u64)LLONG_MAX >> nvmep_format(id)->ds)
		return 0;
	return blocks << (nvmep_format(id)->ds - SECTOR_SHIFT);
}

/* --- limits ------------------------------------------------------------- */

/*
 * Size that is written atomically even if power fails; NVM command set 2.1.4.
 * Atomic units that do not begin at LBA 0 (NABO) do not match those of the
 * block layer.
 */
static unsigned int nvmep_atomic_size(const struct nvmep_ctrl *ctrl,
				      const struct nvme_id_ns *id,
				      unsigned int unit)
{
	if (id->nabo)
		return unit;
	if (id->nsfeat & NVME_NS_FEAT_ATOMICS && id->nawupf)
		return unit * (le16_to_cpu(id->nawupf) + 1);
	return unit * (le16_to_cpu(ctrl->id->awupf) + 1);
}

/*
 * Preferred sizes; NVM command set 5.2.3.  File systems assume that a physical
 * block is written atomically.
 */
static void nvmep_optimal_limits(struct nvmep_limits *limits,
				 const struct nvmep_ctrl *ctrl,
				 const struct nvme_id_ns *id)
{
	unsigned int unit = limits->block_size, atomic;

	if (!(id->nsfeat >> NVME_NS_FEAT_OPTPERF_SHIFT &
	      NVME_NS_FEAT_OPTPERF_MASK))
		return;
	limits->io_min = unit * (le16_to_cpu(id->npwg) + 1);
	/* 0 (one block) means that the controller reports no preference. */
	if (id->nows)
		limits->io_opt = unit * (le16_to_cpu(id->nows) + 1);
	limits->discard_granularity = unit * (le16_to_cpu(id->npdg) + 1);
	atomic = min(limits->io_min, nvmep_atomic_size(ctrl, id, unit));
	limits->physical_block_size = rounddown_pow_of_two(atomic);
}

/*
 * Atomic writes by request (RWF_ATOMIC); NVM command set 2.1.4.  One block is
 * always atomic.  AWUPF is not used, as in-tree: some controllers give it for
 * another block size than that of the namespace.
 *
 * The block layer requires that the boundary (NABSPF) is a power of two, that it
 * is not below the size, and that the chunk size is a multiple of it.
 */
static void nvmep_atomic_limits(struct nvmep_limits *limits,
				const struct nvme_id_ns *id)
{
	unsigned int unit = limits->block_size, boundary = 0, size = unit;

	if (id->nabo)
		return;
	if (id->nsfeat & NVME_NS_FEAT_ATOMICS && id->nawupf) {
		size = unit * (le16_to_cpu(id->nawupf) + 1);
		if (id->nabspf)
			boundary = unit * (le16_to_cpu(id->nabspf) + 1);
	}
	if (boundary && (!is_power_of_2(boundary) || limits->chunk % boundary))
		return;
	limits->atomic_boundary = boundary;
	limits->atomic_max = boundary ? min(size, boundary) : size;
}

static unsigned int nvmep_chunk_size(const struct nvmep_ctrl *ctrl,
				     const struct nvme_id_ns *id,
				     unsigned int unit)
{
	unsigned int boundary = le16_to_cpu(id->noiob) * unit;

	if (!boundary && ctrl->quirks & NVMEP_QUIRK_STRIPE)
		boundary = SZ_128K;
	/* Some kernels split only at boundaries that are powers of two. */
	return is_power_of_2(boundary) ? boundary : 0;
}

/*
 * The IOVA allocator caches ranges up to a size; longer ones are slow.  0, for
 * the kernel's default, if that size is no limit.
 */
static unsigned int nvmep_preferred_transfer(const struct nvmep_ctrl *ctrl)
{
	size_t cached = dma_opt_mapping_size(ctrl->dev);

	return cached < ctrl->max_transfer ? cached : 0;
}

/**
 * nvmep_ns_limits() - request queue limits of a namespace
 * @limits: filled; padding is zeroed for comparison by memcmp()
 * @ctrl: controller
 * @id: Identify Namespace data
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
	limits->chunk = nvmep_chunk_size(ctrl, id, unit);
	limits->max_discard = (u64)READ_ONCE(ctrl->max_discard) * unit;
	limits->discard_granularity = unit;
	limits->max_discard_ranges = READ_ONCE(ctrl->max_discard_ranges);
	limits->max_write_zeroes = READ_ONCE(ctrl->max_write_zeroes);
	limits->zeroes_deallocate = nvmep_format_zeroes_deallocate(id);
	limits->write_cache = ctrl->id->vwc & NVME_CTRL_VWC_PRESENT;
	limits->fua = ctrl->id->vwc & NVME_CTRL_VWC_PRESENT;
	limits->virt_boundary = NVMEP_DATA_BOUNDARY;
	limits->dma_alignment = NVMEP_DATA_ALIGNMENT;
	nvmep_optimal_limits(limits, ctrl, id);
	if (nvmep_format_usable(id))
		nvmep_atomic_limits(limits, id);
}
