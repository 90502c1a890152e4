// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identify the controller, derive its limits, and set the features that
 * describe the host.  Part of each start, as a reset may change or clear any of
 * these.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "data.h"
#include "quirks.h"
#include "reset.h"

/* Limit of one Write Zeroes command, bytes: NLB of the smallest blocks. */
#define NVMEP_MAX_ZEROES	(NVMEP_RW_MAX_BLOCKS * SECTOR_SIZE)

/* --- limits and log pages ------------------------------------------------ */

/*
 * Limits of commands without data transfer: bytes of a Write Zeroes, blocks of
 * a Dataset Management, 0 where the command is not supported; and ranges of a
 * Dataset Management.
 */
struct nvmep_command_limits {
	u32 write_zeroes;
	u32 discard;
	u16 discard_ranges;
};

/* MDTS in bytes, clamped to the driver's limit. */
static u32 nvmep_max_transfer(struct nvmep_ctrl *ctrl)
{
	unsigned int shift = ctrl->id->mdts + 12 + NVME_CAP_MPSMIN(ctrl->cap);

	if (!ctrl->id->mdts || shift >= 32)
		return nvmep_transfer_limit(ctrl);
	return min_t(u32, nvmep_transfer_limit(ctrl), 1U << shift);
}

/**
 * nvmep_cns_allowed() - may an Identify command with this CNS be sent?
 * @ctrl: controller
 * @cns: CNS, the data structure to return
 *
 * CNS had one bit in version 1.0 and two bits in 1.1.  Such a controller may
 * truncate a longer value and return another structure.
 *
 * Return: false if the version of the controller does not have it.
 */
bool nvmep_cns_allowed(const struct nvmep_ctrl *ctrl, u8 cns)
{
	if (ctrl->vs >= NVME_VS(1, 2, 0))
		return true;
	if (ctrl->vs >= NVME_VS(1, 1, 0) &&
	    !(ctrl->quirks & NVMEP_QUIRK_IDENTIFY_CNS))
		return cns <= 3;
	return cns <= 1;
}

/* Applies the limits of commands without data transfer; 0 means no limit. */
static void nvmep_apply_limits(struct nvmep_ctrl *ctrl,
			       struct nvmep_command_limits *limits,
			       const struct nvme_id_ctrl_nvm *id)
{
	unsigned int shift = id->wzsl + 12 + NVME_CAP_MPSMIN(ctrl->cap);
	u32 range = le32_to_cpu(id->dmrsl);
	u64 command = le64_to_cpu(id->dmsl);

	if (id->wzsl && limits->write_zeroes)
		limits->write_zeroes = shift < ilog2(NVMEP_MAX_ZEROES) ?
				       1U << shift : NVMEP_MAX_ZEROES;
	/* The controller ignores ranges beyond these and reports success. */
	if (range)
		limits->discard = min(limits->discard, range);
	if (command)
		limits->discard = min_t(u64, limits->discard, command);
	if (id->dmrl)
		limits->discard_ranges = id->dmrl;
}

/* Without Identify, CNS 06h: MDTS limits Write Zeroes, as in-tree. */
static struct nvmep_command_limits
nvmep_default_limits(const struct nvmep_ctrl *ctrl)
{
	struct nvmep_command_limits limits = {
		.discard_ranges = NVME_DSM_MAX_RANGES,
	};
	u16 oncs = le16_to_cpu(ctrl->id->oncs);

	if (oncs & NVME_CTRL_ONCS_WRITE_ZEROES &&
	    !(ctrl->quirks & NVMEP_QUIRK_NO_WRITE_ZEROES))
		limits.write_zeroes = ctrl->max_transfer;
	if (oncs & NVME_CTRL_ONCS_DSM)
		limits.discard = U32_MAX;
	return limits;
}

/*
 * Limits of commands without data transfer; NVM command set 4.1.5.3.  Many
 * controllers older than version 2.0, which introduced them, report them too.
 */
static int nvmep_identify_limits(struct nvmep_ctrl *ctrl)
{
	struct nvmep_command_limits limits = nvmep_default_limits(ctrl);
	struct nvme_id_ctrl_nvm *id;
	int ret = 0;

	if (nvmep_cns_allowed(ctrl, NVME_ID_CNS_CS_CTRL)) {
		id = kzalloc(sizeof(*id), GFP_KERNEL);
		if (!id)
			return -ENOMEM;
		ret = nvmep_identify(ctrl, NVME_ID_CNS_CS_CTRL, 0, id);
		if (!ret)
			nvmep_apply_limits(ctrl, &limits, id);
		kfree(id);
	}
	/*
	 * The controller may refuse: there are no such limits then.  Publish
	 * whole values: a scan may use them meanwhile.
	 */
	if (ret < 0)
		return ret;
	WRITE_ONCE(ctrl->max_write_zeroes, limits.write_zeroes);
	WRITE_ONCE(ctrl->max_discard, limits.discard);
	WRITE_ONCE(ctrl->max_discard_ranges, limits.discard_ranges);
	return 0;
}

/**
 * nvmep_read_effects() - read the Commands Supported and Effects log page
 * @ctrl: controller
 * @csi: command set
 * @effects: the log, to be freed.  Unchanged if the controller has none:
 *	without it, unprivileged passthrough is refused
 *
 * Return: 0, or a negative error code.
 */
int nvmep_read_effects(struct nvmep_ctrl *ctrl, u8 csi,
		       struct nvme_effects_log **effects)
{
	struct nvme_effects_log *log;
	int ret;

	if (!(ctrl->id->lpa & NVME_CTRL_LPA_CMD_EFFECTS_LOG))
		return 0;
	log = kzalloc(sizeof(*log), GFP_KERNEL);
	if (!log)
		return -ENOMEM;
	ret = nvmep_get_log(ctrl, NVME_LOG_CMD_EFFECTS, csi, log, sizeof(*log));
	if (ret)
		kfree(log);
	else
		WRITE_ONCE(*effects, log);
	return min(ret, 0);
}

static int nvmep_identify_ctrl(struct nvmep_ctrl *ctrl)
{
	struct nvme_id_ctrl *id = kzalloc(sizeof(*id), GFP_KERNEL);
	int ret;

	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_ID_CNS_CTRL, 0, id);
	if (!ret)
		memcpy(ctrl->id, id, sizeof(*id));
	else
		dev_err(ctrl->dev, "Identify Controller failed (%d)\n", ret);
	kfree(id);
	return ret > 0 ? -EIO : ret;
}

/**
 * nvmep_ctrl_reread_firmware() - read the firmware revision again
 * @ctrl: controller that has activated firmware without a reset
 *
 * After a failure the old revision stays until the next start.
 */
void nvmep_ctrl_reread_firmware(struct nvmep_ctrl *ctrl)
{
	struct nvme_id_ctrl *id = kzalloc(sizeof(*id), GFP_KERNEL);

	if (id && !nvmep_identify(ctrl, NVME_ID_CNS_CTRL, 0, id))
		memcpy(ctrl->id->fr, id->fr, sizeof(id->fr));
	kfree(id);
}

/**
 * nvmep_ctrl_identify() - identify a controller and derive its limits
 * @ctrl: enabled controller in a start
 *
 * Return: 0 or a negative error code.
 */
int nvmep_ctrl_identify(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = nvmep_identify_ctrl(ctrl);
	if (ret)
		return ret;
	atomic_set(&ctrl->aborts, ctrl->id->acl + 1);
	ctrl->sgls = le32_to_cpu(ctrl->id->sgls);
	ctrl->max_transfer = nvmep_max_transfer(ctrl);
	ret = nvmep_identify_limits(ctrl);
	/*
	 * Read once per bind: unprivileged readers use ctrl->effects without a
	 * lock.  After a firmware update that changes the log, bind the
	 * controller again.
	 */
	if (!ret && !ctrl->effects)
		ret = nvmep_read_effects(ctrl, NVME_CSI_NVM, &ctrl->effects);
	return ret;
}

/* --- features of the host ------------------------------------------------ */

/*
 * A controller that reports a feature and refuses to set it is used without it.
 */
static int nvmep_set_host_feature(struct nvmep_ctrl *ctrl, u8 feature,
				  void *data, unsigned int length)
{
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_set_features,
		.sqe.common.cdw10 = cpu_to_le32(feature),
		.buffer = data,
		.length = length,
	};
	int ret = nvmep_admin_execute(ctrl, &command);

	if (ret > 0)
		dev_info(ctrl->dev, "Set Features %#x failed, status %#x: continuing without\n",
			 feature, ret);
	return min(ret, 0);
}

/* Milliseconds since 1970, UTC; base specification 5.1.25, Timestamp. */
static int nvmep_set_timestamp(struct nvmep_ctrl *ctrl)
{
	__le64 *now;
	int ret;

	if (!(le16_to_cpu(ctrl->id->oncs) & NVME_CTRL_ONCS_TIMESTAMP))
		return 0;
	now = kmalloc(sizeof(*now), GFP_KERNEL);
	if (!now)
		return -ENOMEM;
	*now = cpu_to_le64(ktime_to_ms(ktime_get_real()));
	ret = nvmep_set_host_feature(ctrl, NVME_FEAT_TIMESTAMP, now,
				     sizeof(*now));
	kfree(now);
	return ret;
}

/*
 * A controller reports formats after the sixteenth, and larger guards, only to
 * hosts that set LBAFEE, and delays of retries (CRD) only to hosts that set
 * ACRE; base specification 5.1.25, Host Behavior Support.
 */
static int nvmep_set_host_behavior(struct nvmep_ctrl *ctrl)
{
	bool formats = le32_to_cpu(ctrl->id->ctratt) & NVME_CTRL_ATTR_ELBAS;
	struct nvme_feat_host_behavior *behavior;
	int ret;

	if (!formats && !ctrl->id->crdt1)
		return 0;
	behavior = kzalloc(sizeof(*behavior), GFP_KERNEL);
	if (!behavior)
		return -ENOMEM;
	behavior->acre = ctrl->id->crdt1 ? NVME_ENABLE_ACRE : 0;
	behavior->lbafee = formats ? NVME_ENABLE_LBAFEE : 0;
	ret = nvmep_set_host_feature(ctrl, NVME_FEAT_HOST_BEHAVIOR, behavior,
				     sizeof(*behavior));
	kfree(behavior);
	return ret;
}

/**
 * nvmep_set_host_features() - set the features that describe the host
 * @ctrl: identified controller in a start
 *
 * Return: 0, or a negative error code as nvmep_admin_execute().
 */
int nvmep_set_host_features(struct nvmep_ctrl *ctrl)
{
	int ret = nvmep_set_timestamp(ctrl);

	return ret ?: nvmep_set_host_behavior(ctrl);
}
