/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The limits of a namespace's request queue.
 */
#ifndef _NVMEP_LIMITS_H
#define _NVMEP_LIMITS_H

struct nvme_id_ns;
struct nvmep_ctrl;
struct nvmep_limits;

void nvmep_ns_limits(struct nvmep_limits *limits,
		     const struct nvmep_ctrl *ctrl, const struct nvme_id_ns *id);

#endif /* _NVMEP_LIMITS_H */
