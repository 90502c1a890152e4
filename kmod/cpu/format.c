// SPDX-License-Identifier: GPL-2.0-only
/*
 * The format of a namespace's blocks: what Identify Namespace says of it, and whether
 * the block layer can use it.
 */
#include <linux/blkdev.h>

#include "format.h"
#include "namespace.h"
#include "nvme.h"

static const struct nvme_lba_format *nvmep_format(const struct nvme_id_ns *id)
{
	/* The upper two bits of the index came later. */
	return &id->lbaf[(id->flbas & 0xf) | (id->flbas & 0x60) >> 1];
}

/**
 * nvmep_format_possible() - tell whether blocks can have this size
 * @id: Identify Namespace
 *
 * A controller may say anything below 2^255 bytes.
 *
 * Return: false for what 32 bits cannot hold; nothing else here is called for that.
 */
bool nvmep_format_possible(const struct nvme_id_ns *id)
{
	return nvmep_format(id)->data_shift < 32;
}

/**
 * nvmep_format_usable() - can the block layer use a namespace of this format?
 * @id: Identify Namespace
 *
 * Return: false for blocks that only passthrough can move.
 */
bool nvmep_format_usable(const struct nvme_id_ns *id)
{
	const struct nvme_lba_format *format = nvmep_format(id);

	if (format->data_shift < SECTOR_SHIFT ||
	    format->data_shift > PAGE_SHIFT)
		return false;
	if (!format->metadata_size)
		return true;
	/* PRACT hides exactly 8 bytes of protection information. */
	return id->dps & NVME_NS_DPS_PI_MASK &&
	       le16_to_cpu(format->metadata_size) == 8;
}

/**
 * nvmep_format_block_size() - the unit of the block layer's requests
 * @id: Identify Namespace
 *
 * Return: bytes; a sector's for a namespace that the block layer cannot use.
 */
unsigned int nvmep_format_block_size(const struct nvme_id_ns *id)
{
	return nvmep_format_usable(id) ? 1U << nvmep_format(id)->data_shift :
					 SECTOR_SIZE;
}

/**
 * nvmep_format_zeroes_deallocate() - may Write Zeroes give blocks back?
 * @id: Identify Namespace
 *
 * Return: true if the command takes the bit that asks for it, and blocks given back read
 * as zero; NVM command set 4.1.5.1, DLFEAT.
 */
bool nvmep_format_zeroes_deallocate(const struct nvme_id_ns *id)
{
	return (id->dlfeat & (NVME_NS_DLFEAT_DEALLOCATE |
			      NVME_NS_DLFEAT_READ_MASK)) ==
	       (NVME_NS_DLFEAT_DEALLOCATE | NVME_NS_DLFEAT_READ_ZEROES);
}

/* Protection information that the block layer hides, and passthrough may. */
static enum nvmep_protection nvmep_format_protection(const struct nvme_id_ns *id)
{
	return le16_to_cpu(nvmep_format(id)->metadata_size) == 8 ?
	       id->dps & NVME_NS_DPS_PI_MASK : NVMEP_PROTECTION_NONE;
}

/**
 * nvmep_ns_has_format() - are the blocks still what commands were built for?
 * @ns: namespace; scan_lock is held
 * @id: Identify Namespace, as of now
 *
 * Return: false if a command may move more or less than its sender thinks.
 */
bool nvmep_ns_has_format(const struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	const struct nvme_lba_format *format = nvmep_format(id);

	return ns->block_shift == format->data_shift &&
	       ns->metadata_size == le16_to_cpu(format->metadata_size) &&
	       ns->extended == !!(id->flbas & NVME_NS_FLBAS_EXTENDED) &&
	       ns->protection == nvmep_format_protection(id);
}

/**
 * nvmep_ns_set_format() - commands are built for these blocks from now on
 * @ns: namespace whose queue is frozen, or that nobody uses yet
 * @id: Identify Namespace
 */
void nvmep_ns_set_format(struct nvmep_ns *ns, const struct nvme_id_ns *id)
{
	const struct nvme_lba_format *format = nvmep_format(id);

	ns->format = nvmep_format_usable(id) ? NVMEP_NS_FORMAT_BLOCKS :
					       NVMEP_NS_FORMAT_PASSTHROUGH;
	ns->block_shift = format->data_shift;
	ns->metadata_size = le16_to_cpu(format->metadata_size);
	ns->extended = id->flbas & NVME_NS_FLBAS_EXTENDED;
	ns->protection = nvmep_format_protection(id);
	ns->zeroes_deallocate = nvmep_format_zeroes_deallocate(id);
}

/**
 * nvmep_ns_sectors() - capacity as the block layer counts it
 * @id: Identify Namespace
 *
 * Return: sectors, 0 for a namespace that the block layer cannot use.
 */
sector_t nvmep_ns_sectors(const struct nvme_id_ns *id)
{
	if (!nvmep_format_usable(id))
		return 0;
	return le64_to_cpu(id->nsze) <<
	       (nvmep_format(id)->data_shift - SECTOR_SHIFT);
}
