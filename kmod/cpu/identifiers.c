// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identifiers of a namespace: its number says only which one a controller means now.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "core/quirks.h"
#include "identifiers.h"

/* Namespace Identification Descriptor list, base specification 5.1.13.2.4. */
static void nvmep_find_uuid(uuid_t *uuid, const void *list)
{
	const struct nvme_ns_descriptor *descriptor;
	unsigned int offset = 0;

	while (offset + sizeof(*descriptor) + sizeof(*uuid) <=
	       NVME_IDENTIFY_SIZE) {
		descriptor = list + offset;
		if (!descriptor->length)
			return;
		if (descriptor->type == NVME_NS_DESCRIPTOR_UUID)
			import_uuid(uuid, (const u8 *)(descriptor + 1));
		offset += sizeof(*descriptor) + descriptor->length;
	}
}

static int nvmep_read_uuid(uuid_t *uuid, struct nvmep_ctrl *ctrl, u32 nsid)
{
	void *list;
	int ret;

	if (ctrl->vs < NVME_VERSION(1, 3))
		return 0;
	list = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_DESCRIPTORS, nsid, list);
	if (!ret)
		nvmep_find_uuid(uuid, list);
	kfree(list);
	/* A refusal for good is an answer: there is none. */
	return ret > 0 && ret & NVME_STATUS_DNR ? 0 : ret;
}

/**
 * nvmep_identifiers_read() - ask a namespace who it is
 * @ids: filled; without @uuid where the call fails
 * @ctrl: its controller; those of disks that make them up are not read
 * @nsid: its number
 * @id: Identify Namespace
 *
 * Return: 0; an NVMe status, positive, that says nothing for good; or a negative error
 * code.
 */
int nvmep_identifiers_read(struct nvmep_identifiers *ids,
			   struct nvmep_ctrl *ctrl, u32 nsid,
			   const struct nvme_id_ns *id)
{
	memset(ids, 0, sizeof(*ids));
	if (ctrl->quirks & NVMEP_QUIRK_BOGUS_NID)
		return 0;
	memcpy(ids->nguid, id->nguid, sizeof(ids->nguid));
	memcpy(ids->eui64, id->eui64, sizeof(ids->eui64));
	return nvmep_read_uuid(&ids->uuid, ctrl, nsid);
}

/**
 * nvmep_identifiers_equal() - is this the same namespace?
 * @a: identifiers of one
 * @b: identifiers of another
 *
 * Return: true also where neither has any.
 */
bool nvmep_identifiers_equal(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b)
{
	return !memcmp(a->nguid, b->nguid, sizeof(a->nguid)) &&
	       !memcmp(a->eui64, b->eui64, sizeof(a->eui64)) &&
	       uuid_equal(&a->uuid, &b->uuid);
}
