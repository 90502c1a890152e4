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

static void nvmep_take_descriptor(struct nvmep_identifiers *ids, u8 type,
				  const u8 *value)
{
	switch (type) {
	case NVME_NS_DESCRIPTOR_EUI64:
		memcpy(ids->eui64, value, sizeof(ids->eui64));
		break;
	case NVME_NS_DESCRIPTOR_NGUID:
		memcpy(ids->nguid, value, sizeof(ids->nguid));
		break;
	case NVME_NS_DESCRIPTOR_UUID:
		import_uuid(&ids->uuid, value);
		break;
	case NVME_NS_DESCRIPTOR_CSI:
		ids->csi = *value;
		break;
	}
}

/* Namespace Identification Descriptor list, base specification 5.1.13.2.4. */
static void nvmep_take_descriptors(struct nvmep_identifiers *ids,
				   const void *list)
{
	const struct nvme_ns_descriptor *descriptor;
	unsigned int offset = 0;

	/* No value is longer than a UUID. */
	while (offset + sizeof(*descriptor) + sizeof(ids->uuid) <=
	       NVME_IDENTIFY_SIZE) {
		descriptor = list + offset;
		if (!descriptor->length)
			return;
		nvmep_take_descriptor(ids, descriptor->type,
				      (const u8 *)(descriptor + 1));
		offset += sizeof(*descriptor) + descriptor->length;
	}
}

/* Is there anything in its descriptors that we want to know? */
static bool nvmep_has_descriptors(const struct nvmep_ctrl *ctrl)
{
	if (NVME_CAP_CSS_ALL(ctrl->cap))
		return true;
	return ctrl->vs >= NVME_VERSION(1, 3) &&
	       !(ctrl->quirks & NVMEP_QUIRK_BOGUS_NID);
}

/**
 * nvmep_identifiers_read() - ask a namespace who it is
 * @ids: filled from its descriptors; all 0 where the call fails
 * @ctrl: its controller; of those that make identifiers up, only the command set is read
 * @nsid: its number
 *
 * Return: 0; an NVMe status, positive, that says nothing for good; or a negative error
 * code.
 */
int nvmep_identifiers_read(struct nvmep_identifiers *ids,
			   struct nvmep_ctrl *ctrl, u32 nsid)
{
	void *list;
	int ret;

	memset(ids, 0, sizeof(*ids));
	if (!nvmep_has_descriptors(ctrl))
		return 0;
	list = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_DESCRIPTORS, nsid, list);
	if (!ret)
		nvmep_take_descriptors(ids, list);
	kfree(list);
	if (ctrl->quirks & NVMEP_QUIRK_BOGUS_NID)
		*ids = (struct nvmep_identifiers){ .csi = ids->csi };
	/* A refusal for good is an answer: there are none. */
	return ret > 0 && ret & NVME_STATUS_DNR ? 0 : ret;
}

/**
 * nvmep_identifiers_add() - what Identify Namespace says of who it is
 * @ids: from nvmep_identifiers_read(), of the NVM command set
 * @ctrl: its controller
 * @id: Identify Namespace, which older controllers have only
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
	       uuid_equal(&a->uuid, &b->uuid) && a->csi == b->csi;
}
