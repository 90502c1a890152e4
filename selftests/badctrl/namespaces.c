// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces: those of word BADCTRL_ACTIVE, with the size in the Identify Namespace data, until
 * the host deletes them and creates others. For that a test has to set the Namespace Management
 * bit and TNVMCAP, the capacity, in the Identify Controller data.
 */
#include <string.h>

#include "memory.h"
#include "namespaces.h"
#include "registers.h"

#define BLOCK_BYTES		512U
#define CREATED_UUID		0x80
#define OACS_MANAGEMENT		(1U << 3)
#define SELECT(command)		((command)->cdw10 & 0xf)
/* Attribute changed: notice, namespace attributes, Changed Namespace List. */
#define EVENT_CHANGED		0x040002U

/* Status codes of both commands, base 4.2.3.2. */

static bool is_one(uint32_t nsid)
{
	return nsid && nsid <= BADCTRL_NAMESPACE_MAX;
}

bool bad_namespace_active(struct bad *ctrl, uint32_t nsid)
{
	return is_one(nsid) && bad_word(ctrl, BADCTRL_ACTIVE) & 1U << (nsid - 1);
}

bool bad_namespace_allocated(struct bad *ctrl, uint32_t nsid)
{
	return bad_namespace_active(ctrl, nsid) || (is_one(nsid) && ctrl->created[nsid - 1]);
}

/* Base 5.1.13.2.2 and 5.1.13.2.10. */
void bad_namespace_list(struct bad *ctrl, uint32_t after, bool allocated, uint32_t *list)
{
	uint32_t nsid, i;

	if (bad_word(ctrl, BADCTRL_ACTIVE) & BADCTRL_ACTIVE_ENDLESS) {
		for (i = 0; i < BAD_PAGE / sizeof(*list); i++)
			list[i] = 1;
		return;
	}
	for (nsid = after + 1; nsid <= BADCTRL_NAMESPACE_MAX; nsid++)
		if (allocated ? bad_namespace_allocated(ctrl, nsid) :
				bad_namespace_active(ctrl, nsid))
			*list++ = nsid;
}

/*
 * Set NSZE, NCAP and NUSE of a namespace that the host has created, or the end of the UUID, which
 * differs for each namespace.
 */
void bad_namespace_own(struct bad *ctrl, uint32_t nsid, bool descriptors, uint8_t *page)
{
	uint64_t blocks = is_one(nsid) ? ctrl->created[nsid - 1] : 0;
	unsigned int i;

	if (descriptors && !bad_word(ctrl, BADCTRL_SAME_UUID))
		page[19] ^= (uint8_t)(nsid - 1) | (blocks ? CREATED_UUID : 0);
	for (i = 0; blocks && !descriptors && i < 3; i++)
		memcpy(page + i * sizeof(blocks), &blocks, sizeof(blocks));
}

static bool managed(struct bad *ctrl)
{
	bool can;

	pthread_mutex_lock(&ctrl->lock);
	can = ctrl->identify[1][256] & OACS_MANAGEMENT;
	pthread_mutex_unlock(&ctrl->lock);
	return can;
}

/* Change size and attachment, and send the event that other hosts get; 0 blocks: deleted. */
static void change(struct bad *ctrl, uint32_t nsid, uint64_t blocks, bool active)
{
	uint32_t *word = &ctrl->words[BADCTRL_ACTIVE / 4], bit = 1U << (nsid - 1);

	pthread_mutex_lock(&ctrl->lock);
	if (!(*word & bit) != !active && ctrl->event_count < BAD_EVENTS_MAX)
		ctrl->events[ctrl->event_count++] = EVENT_CHANGED;
	*word = active ? *word | bit : *word & ~bit;
	ctrl->created[nsid - 1] = blocks;
	atomic_fetch_add(&ctrl->changes, 1);
	pthread_mutex_unlock(&ctrl->lock);
}

/* Namespaces that were not created by the host have the size in the Identify data. */
static uint64_t blocks_of(struct bad *ctrl, uint32_t nsid)
{
	uint64_t blocks = ctrl->created[nsid - 1];

	pthread_mutex_lock(&ctrl->lock);
	if (!blocks)
		memcpy(&blocks, ctrl->identify[0], sizeof(blocks));
	pthread_mutex_unlock(&ctrl->lock);
	return blocks;
}

/* Unallocated blocks. */
static uint64_t blocks_left(struct bad *ctrl)
{
	uint64_t total, used = 0;
	uint32_t nsid;

	pthread_mutex_lock(&ctrl->lock);
	memcpy(&total, ctrl->identify[1] + 280, sizeof(total));
	pthread_mutex_unlock(&ctrl->lock);
	for (nsid = 1; nsid <= BADCTRL_NAMESPACE_MAX; nsid++)
		if (bad_namespace_allocated(ctrl, nsid))
			used += blocks_of(ctrl, nsid);
	total /= BLOCK_BYTES;
	return total > used ? total - used : 0;
}

static uint32_t free_identifier(struct bad *ctrl)
{
	uint32_t nsid = 1;

	while (bad_namespace_allocated(ctrl, nsid))
		nsid++;
	return is_one(nsid) ? nsid : 0;
}

/* The host passes the Identify Namespace fields; only the first format is supported. */
static uint16_t create(struct bad *ctrl, const struct bad_command *command, uint32_t *result)
{
	uint32_t nsid = free_identifier(ctrl);
	uint8_t page[BAD_PAGE];
	uint64_t size[2];
	uint16_t status;

	status = bad_from_host(ctrl, command, page, sizeof(page));
	if (status)
		return status;
	memcpy(size, page, sizeof(size));
	if (page[26] || page[29])
		return NVME_STATUS_DNR | NVME_SC_INVALID_FORMAT;
	if (!size[0] || size[0] != size[1])
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (!nsid)
		return NVME_STATUS_DNR | NVME_SC_NS_IDENTIFIER;
	if (size[1] > blocks_left(ctrl) || size[0] > ctrl->namespace_bytes / BLOCK_BYTES)
		return NVME_STATUS_DNR | NVME_SC_NS_CAPACITY;
	change(ctrl, nsid, size[0], false);
	*result = nsid;
	return 0;
}

static uint16_t delete(struct bad *ctrl, uint32_t nsid)
{
	uint32_t each;

	if (nsid != NVME_ALL_NAMESPACES) {
		if (!bad_namespace_allocated(ctrl, nsid))
			return NVME_STATUS_DNR | NVME_SC_INVALID_NAMESPACE;
		change(ctrl, nsid, 0, false);
		return 0;
	}
	for (each = 1; each <= BADCTRL_NAMESPACE_MAX; each++)
		change(ctrl, each, 0, false);
	return 0;
}

uint16_t bad_namespace_manage(struct bad *ctrl, const struct bad_command *command,
			      uint32_t *result)
{
	if (!managed(ctrl))
		return NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE;
	switch (SELECT(command)) {
	case 0:
		return create(ctrl, command, result);
	case 1:
		return delete(ctrl, command->nsid);
	default:
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	}
}

/* The list has to name one controller, ID 0. */
uint16_t bad_namespace_attach(struct bad *ctrl, const struct bad_command *command)
{
	bool attach = !SELECT(command);
	uint16_t list[BAD_PAGE / 2];
	uint16_t status;

	if (!managed(ctrl))
		return NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE;
	status = bad_from_host(ctrl, command, list, sizeof(list));
	if (status)
		return status;
	if (!bad_namespace_allocated(ctrl, command->nsid))
		return NVME_STATUS_DNR | NVME_SC_INVALID_NAMESPACE;
	if (list[0] != 1 || list[1])
		return NVME_STATUS_DNR | NVME_SC_CONTROLLER_LIST;
	if (attach == bad_namespace_active(ctrl, command->nsid))
		return NVME_STATUS_DNR | (attach ? NVME_SC_NS_ATTACHED : NVME_SC_NS_NOT_ATTACHED);
	change(ctrl, command->nsid, blocks_of(ctrl, command->nsid), attach);
	return 0;
}
