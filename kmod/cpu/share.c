// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU's share: how many queues of a controller the CPU keeps for itself, as the
 * administrator says while it runs.  Peers may have the others.
 */
#include <linux/device.h>
#include <linux/mutex.h>

#include "core/ctrl.h"
#include "core/qids.h"
#include "core/reset.h"
#include "cpu.h"
#include "share.h"

/**
 * nvmep_share() - how many queues peers do not get
 * @ctrl: controller
 *
 * Return: the number; the CPU uses as many as it has processors.
 */
unsigned int nvmep_share(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qid_usage usage;

	nvmep_qid_usage(ctrl, &usage);
	return usage.total - usage.peer_max;
}

/* Could the CPU have so many?  Peers are barred. */
static int nvmep_share_check(struct nvmep_ctrl *ctrl, unsigned int count)
{
	unsigned int possible = nvmep_qids_for_cpu(ctrl);
	struct nvmep_qid_usage usage;

	nvmep_qid_usage(ctrl, &usage);
	if (!count || count > usage.total) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, it is 1 to %u, what the controller grants\n",
			 count, usage.total);
		return -ERANGE;
	}
	if (min(count, ctrl->cpu_queues) > possible) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, all but %u were a peer's, who may still store to their doorbells: bind the controller anew\n",
			 count, possible);
		return -ENOSPC;
	}
	return 0;
}

static int nvmep_share_change_barred(struct nvmep_ctrl *ctrl,
				     unsigned int count)
{
	int ret = nvmep_share_check(ctrl, count);

	if (ret || count == nvmep_share(ctrl))
		return ret;
	return nvmep_ctrl_share(ctrl, count);
}

/**
 * nvmep_share_change() - have the CPU keep so many queues
 * @ctrl: controller; it starts anew for that
 * @count: 1 to what the controller grants
 *
 * Return: 0; -EBUSY while peers have queue pairs; -ERANGE; -ENOSPC where the CPU would
 * need identifiers that were a peer's; -EINTR for a process that was killed; -EIO or
 * -ENODEV for a controller that does not come back.
 */
int nvmep_share_change(struct nvmep_ctrl *ctrl, unsigned int count)
{
	int ret;

	if (mutex_lock_killable(&ctrl->cpu->effects_lock))
		return -EINTR;
	ret = nvmep_qids_bar_peers(ctrl);
	if (ret) {
		dev_warn(ctrl->dev,
			 "cpu_queues: refused, the controller would be reset under peers: close their queue pairs first\n");
	} else {
		ret = nvmep_share_change_barred(ctrl, count);
		nvmep_qids_admit_peers(ctrl);
	}
	mutex_unlock(&ctrl->cpu->effects_lock);
	return ret;
}
