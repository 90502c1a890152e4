// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Controller nodes by name; see node.h.
 */
#include "node.h"
#include "sysfs.h"

int node_ctrl_open(const char *name, struct nvmepeer **ctrl)
{
	char path[SYSFS_PATH];

	sysfs_path(path, "/dev/%s", name);
	return nvmepeer_open(path, ctrl);
}

/*
 * Of the two limits of qids_peer_free, one counts: the share of peers, less their queue pairs; or
 * the free IDs.  The other one yields too high a number.
 */
static uint32_t count_pairs(const struct nvme_peer_info *info)
{
	uint32_t by_share = info->qids_peer_max - info->qids_peer_free;
	uint32_t by_ids = info->qids_total - info->qids_cpu - info->qids_quarantined -
			  info->qids_peer_free;

	return by_share < by_ids ? by_share : by_ids;
}

void node_pairs(const char *name, struct node_pairs *pairs)
{
	struct nvme_peer_info info;
	struct nvmepeer *ctrl;

	*pairs = (struct node_pairs){ 0 };
	if (node_ctrl_open(name, &ctrl))
		return;
	if (!nvmepeer_info(ctrl, &info, sizeof(info))) {
		pairs->known = true;
		pairs->most = info.qids_peer_max;
		pairs->used = count_pairs(&info);
		pairs->quarantined = info.qids_quarantined;
	}
	nvmepeer_close(ctrl);
}
