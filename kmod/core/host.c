// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a controller is told of its host at each start, as a reset may make it forget: the
 * time, and which of the newer things it says the host understands.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "host.h"

/* A controller that offers a feature and refuses it is served all the same. */
static int nvmep_host_tell(struct nvmep_ctrl *ctrl, u8 feature, void *data,
			   unsigned int length)
{
	struct nvmep_admin_command command = {
		.sqe.opcode = NVME_ADMIN_SET_FEATURES,
		.sqe.cdw10 = cpu_to_le32(feature),
		.buffer = data,
		.length = length,
	};
	int ret = nvmep_admin_execute(ctrl, &command);

	if (ret > 0)
		dev_info(ctrl->dev, "feature %#x cannot be set: status %#x\n",
			 feature, ret);
	return min(ret, 0);
}

/* Milliseconds since 1970, UTC; base specification 5.1.25, Timestamp. */
static int nvmep_host_tell_time(struct nvmep_ctrl *ctrl)
{
	__le64 *now;
	int ret;

	if (!(le16_to_cpu(ctrl->id->oncs) & NVME_CTRL_ONCS_TIMESTAMP))
		return 0;
	now = kmalloc(sizeof(*now), GFP_KERNEL);
	if (!now)
		return -ENOMEM;
	*now = cpu_to_le64(ktime_to_ms(ktime_get_real()));
	ret = nvmep_host_tell(ctrl, NVME_FEATURE_TIMESTAMP, now, sizeof(*now));
	kfree(now);
	return ret;
}

/*
 * Formats beyond the sixteenth, and with larger guards, are shown to hosts only that know
 * of them; base specification 5.1.25, Host Behavior Support.
 */
static int nvmep_host_tell_behavior(struct nvmep_ctrl *ctrl)
{
	struct nvme_host_behavior *behavior;
	int ret;

	if (!(le32_to_cpu(ctrl->id->ctratt) & NVME_CTRL_CTRATT_ELBAS))
		return 0;
	behavior = kzalloc(sizeof(*behavior), GFP_KERNEL);
	if (!behavior)
		return -ENOMEM;
	behavior->lbafee = 1;
	ret = nvmep_host_tell(ctrl, NVME_FEATURE_HOST_BEHAVIOR, behavior,
			      sizeof(*behavior));
	kfree(behavior);
	return ret;
}

/**
 * nvmep_host_introduce() - tell a controller of its host
 * @ctrl: controller that starts, identified
 *
 * Return: 0, or a negative error code as nvmep_admin_execute().
 */
int nvmep_host_introduce(struct nvmep_ctrl *ctrl)
{
	int ret = nvmep_host_tell_time(ctrl);

	return ret ?: nvmep_host_tell_behavior(ctrl);
}
