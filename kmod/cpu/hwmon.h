/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Temperature sensors of a controller in hwmon.
 */
#ifndef _NVMEP_HWMON_H
#define _NVMEP_HWMON_H

#include <linux/kconfig.h>

struct nvmep_ctrl;

#if IS_REACHABLE(CONFIG_HWMON)
void nvmep_hwmon_add(struct nvmep_ctrl *ctrl);
void nvmep_hwmon_remove(struct nvmep_ctrl *ctrl);
#else
static inline void nvmep_hwmon_add(struct nvmep_ctrl *ctrl)
{
}

static inline void nvmep_hwmon_remove(struct nvmep_ctrl *ctrl)
{
}
#endif

#endif /* _NVMEP_HWMON_H */
