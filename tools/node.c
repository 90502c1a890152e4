// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Controllers' nodes by their names; see node.h.
 */
#include "node.h"
#include "sysfs.h"

int node_ctrl_open(const char *name, struct nvmepeer **ctrl)
{
	char path[SYSFS_PATH];

	sysfs_path(path, "/dev/%s", name);
	return nvmepeer_open(path, ctrl);
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
		pairs->used = info.qids_peer_max - info.qids_peer_free - info.qids_quarantined;
	}
	nvmepeer_close(ctrl);
}
