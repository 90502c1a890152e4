// SPDX-License-Identifier: GPL-2.0-only
/*
 * Persistent reservations, IOC_PR_*: the reservation commands of the base
 * specification, section 7.
 *
 * Each function returns 0, PR_STS_* (positive) or a negative error code.
 */
#include <linux/blk-mq.h>
#include <linux/pr.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/request.h"
#include "namespace.h"
#include "nvme.h"
#include "reservation.h"

/* --- commands ------------------------------------------------------------ */

/* As in-tree. */
static int nvmep_pr_status(int status)
{
	if (status < 0)
		return status;
	if (NVME_SCT(status) == NVMEP_SCT_PATH)
		return NVMEP_PR_STS_PATH_FAILED;
	switch (status & NVME_SCT_SC_MASK) {
	case NVME_SC_SUCCESS:
		return 0;
	case NVME_SC_RESERVATION_CONFLICT:
		return NVMEP_PR_STS_CONFLICT;
	case NVME_SC_BAD_ATTRIBUTES:
	case NVME_SC_INVALID_OPCODE:
	case NVME_SC_INVALID_FIELD:
	case NVME_SC_INVALID_NS:
		return -EINVAL;
	default:
		return NVMEP_PR_STS_IOERR;
	}
}

/* Returns the NVMe status or a negative error code. */
static int nvmep_pr_execute(struct block_device *bdev, u8 opcode, u32 dword10,
			    u32 dword11, void *data, unsigned int length)
{
	struct nvmep_ns *ns = bdev->bd_disk->private_data;
	struct nvme_command sqe = {
		.common.opcode = opcode,
		.common.nsid = cpu_to_le32(ns->nsid),
		.common.cdw10 = cpu_to_le32(dword10),
		.common.cdw11 = cpu_to_le32(dword11),
	};
	struct request *rq;
	int ret;

	rq = nvmep_request_alloc(ns->queue, &sqe, 0, 0);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ret = nvmep_request_map_buffer(rq, data, length);
	if (!ret)
		ret = nvmep_request_status(rq, blk_execute_rq(rq, false));
	blk_mq_free_request(rq);
	return ret;
}

/* Register, Acquire or Release: the data are keys. */
static int nvmep_pr_keys(struct block_device *bdev, u8 opcode, u32 dword10,
			 u64 key, u64 other)
{
	__le64 *keys = kmalloc_array(2, sizeof(*keys), GFP_KERNEL);
	int ret;

	if (!keys)
		return -ENOMEM;
	keys[0] = cpu_to_le64(key);
	keys[1] = cpu_to_le64(other);
	ret = nvmep_pr_execute(bdev, opcode, dword10, 0, keys,
			       opcode == nvme_cmd_resv_release ?
			       sizeof(*keys) : 2 * sizeof(*keys));
	kfree(keys);
	return nvmep_pr_status(ret);
}

/* --- changes ------------------------------------------------------------- */

/* RTYPE has the values of enum pr_type. */
static u32 nvmep_pr_rtype(enum pr_type type)
{
	return type << NVMEP_RESERVATION_RTYPE_SHIFT;
}

static int nvmep_pr_register(struct block_device *bdev, u64 old_key,
			     u64 new_key, u32 flags)
{
	u32 action = NVMEP_REGISTER_KEY;

	if (flags & ~PR_FL_IGNORE_KEY)
		return -EOPNOTSUPP;
	if (!new_key)
		action = NVMEP_REGISTER_REMOVE_KEY;
	else if (old_key)
		action = NVMEP_REGISTER_REPLACE_KEY;
	if (flags & PR_FL_IGNORE_KEY)
		action |= NVMEP_RESERVATION_IGNORE_KEY;
	return nvmep_pr_keys(bdev, nvme_cmd_resv_register,
			     action | NVMEP_REGISTER_PERSIST, old_key, new_key);
}

static int nvmep_pr_reserve(struct block_device *bdev, u64 key,
			    enum pr_type type, u32 flags)
{
	u32 action = NVMEP_ACQUIRE;

	if (flags & ~PR_FL_IGNORE_KEY)
		return -EOPNOTSUPP;
	if (flags & PR_FL_IGNORE_KEY)
		action |= NVMEP_RESERVATION_IGNORE_KEY;
	return nvmep_pr_keys(bdev, nvme_cmd_resv_acquire,
			     action | nvmep_pr_rtype(type), key, 0);
}

static int nvmep_pr_preempt(struct block_device *bdev, u64 key, u64 other,
			    enum pr_type type, bool abort)
{
	u32 action = abort ? NVMEP_ACQUIRE_PREEMPT_ABORT :
			     NVMEP_ACQUIRE_PREEMPT;

	return nvmep_pr_keys(bdev, nvme_cmd_resv_acquire,
			     action | nvmep_pr_rtype(type), key, other);
}

/* A caller without a key ends the reservation of this host whatever its key. */
static int nvmep_pr_release_by(struct block_device *bdev, u64 key, u32 action,
			       u32 rtype)
{
	if (!key)
		action |= NVMEP_RESERVATION_IGNORE_KEY;
	return nvmep_pr_keys(bdev, nvme_cmd_resv_release, action | rtype, key,
			     0);
}

static int nvmep_pr_release(struct block_device *bdev, u64 key,
			    enum pr_type type)
{
	return nvmep_pr_release_by(bdev, key, NVMEP_RELEASE,
				   nvmep_pr_rtype(type));
}

static int nvmep_pr_clear(struct block_device *bdev, u64 key)
{
	return nvmep_pr_release_by(bdev, key, NVMEP_RELEASE_CLEAR, 0);
}

/* --- reports ------------------------------------------------------------- */

/* Registrants that a report has room for before their number is known. */
#define NVMEP_PR_FEW	8U

/**
 * struct nvmep_pr_report - a Reservation Status data structure
 * @data: its header and registrants, to be freed
 * @registrant: bytes of a registrant, and offset of the first one
 * @room: number of registrants that @data has room for
 */
struct nvmep_pr_report {
	void *data;
	size_t registrant;
	u32 room;
};

static u32 nvmep_pr_report_count(const struct nvmep_pr_report *report)
{
	const struct nvmep_reservation *header = report->data;

	return le16_to_cpu(header->registrants);
}

static bool nvmep_pr_report_holder(const struct nvmep_pr_report *report, u32 i)
{
	const struct nvmep_registrant *registrant = report->data +
		(i + 1) * report->registrant;

	return registrant->status & NVMEP_REGISTRANT_HOLDS;
}

static u64 nvmep_pr_report_key(const struct nvmep_pr_report *report, u32 i)
{
	const void *registrant = report->data + (i + 1) * report->registrant;
	const struct nvmep_registrant_extended *extended = registrant;
	const struct nvmep_registrant *plain = registrant;

	return le64_to_cpu(report->registrant == sizeof(*extended) ?
			   extended->key : plain->key);
}

/*
 * A controller with Host Identifiers of 128 bits requires the extended data
 * structure, and one with 64 bits refuses it.  Returns as nvmep_pr_execute().
 */
static int nvmep_pr_report_read(struct block_device *bdev,
				struct nvmep_pr_report *report, size_t length)
{
	u32 dwords = length / sizeof(u32) - 1;
	int ret;

	report->registrant = sizeof(struct nvmep_registrant_extended);
	ret = nvmep_pr_execute(bdev, nvme_cmd_resv_report, dwords,
			       NVMEP_REPORT_EXTENDED, report->data, length);
	if (ret < 0 || (ret & NVME_SCT_SC_MASK) != NVME_SC_HOST_ID_INCONSIST)
		return ret;
	report->registrant = sizeof(struct nvmep_registrant);
	return nvmep_pr_execute(bdev, nvme_cmd_resv_report, dwords, 0,
				report->data, length);
}

/* Registrants that a report has room for: their number has 16 bits. */
static u32 nvmep_pr_most(struct block_device *bdev)
{
	size_t bytes = (size_t)queue_max_hw_sectors(bdev_get_queue(bdev)) <<
		       SECTOR_SHIFT;

	return min_t(size_t, U16_MAX,
		     bytes / sizeof(struct nvmep_registrant_extended) - 1);
}

/*
 * Reads a report with room for @room registrants.  More are cut off, and what
 * one command cannot transfer.
 */
static int nvmep_pr_report_get(struct block_device *bdev,
			       struct nvmep_pr_report *report, u32 room)
{
	size_t length;
	int ret;

	report->room = min(room, nvmep_pr_most(bdev));
	length = (report->room + 1) * sizeof(struct nvmep_registrant_extended);
	report->data = kvzalloc(length, GFP_KERNEL);
	if (!report->data)
		return -ENOMEM;
	ret = nvmep_pr_status(nvmep_pr_report_read(bdev, report, length));
	if (ret)
		kvfree(report->data);
	return ret;
}

/* Reads a report with all registrants, unless others register meanwhile. */
static int nvmep_pr_report_get_all(struct block_device *bdev,
				   struct nvmep_pr_report *report)
{
	int ret = nvmep_pr_report_get(bdev, report, NVMEP_PR_FEW);
	u32 count;

	if (ret)
		return ret;
	count = nvmep_pr_report_count(report);
	if (count <= report->room)
		return 0;
	kvfree(report->data);
	return nvmep_pr_report_get(bdev, report, count);
}

/* Older kernels have no operations for reports. */
static int __maybe_unused nvmep_pr_read_keys(struct block_device *bdev,
					     struct pr_keys *keys)
{
	const struct nvmep_reservation *header;
	struct nvmep_pr_report report;
	u32 room = keys->num_keys, count;
	int ret;

	ret = nvmep_pr_report_get(bdev, &report, room);
	if (ret)
		return ret;
	header = report.data;
	keys->generation = le32_to_cpu(header->generation);
	keys->num_keys = nvmep_pr_report_count(&report);
	count = min3(room, report.room, keys->num_keys);
	while (count--)
		keys->keys[count] = nvmep_pr_report_key(&report, count);
	kvfree(report.data);
	return 0;
}

/* A type of 0 is no reservation, and one that the specification does not have. */
static int __maybe_unused
nvmep_pr_read_reservation(struct block_device *bdev,
			  struct pr_held_reservation *held)
{
	const struct nvmep_reservation *header;
	struct nvmep_pr_report report;
	u32 count;
	int ret;

	ret = nvmep_pr_report_get_all(bdev, &report);
	if (ret)
		return ret;
	header = report.data;
	held->generation = le32_to_cpu(header->generation);
	held->type = header->type <= PR_EXCLUSIVE_ACCESS_ALL_REGS ?
		     header->type : 0;
	held->key = 0;
	count = min(nvmep_pr_report_count(&report), report.room);
	/* Backwards: the first holder's key remains. */
	while (count--)
		if (nvmep_pr_report_holder(&report, count))
			held->key = nvmep_pr_report_key(&report, count);
	kvfree(report.data);
	return 0;
}

const struct pr_ops nvmep_pr_ops = {
	.pr_register = nvmep_pr_register,
	.pr_reserve = nvmep_pr_reserve,
	.pr_release = nvmep_pr_release,
	.pr_preempt = nvmep_pr_preempt,
	.pr_clear = nvmep_pr_clear,
	NVMEP_PR_READ_OPS(nvmep_pr_read_keys, nvmep_pr_read_reservation)
};
