/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes of the controller's class device.
 */
#ifndef _NVMEP_CTRL_SYSFS_H
#define _NVMEP_CTRL_SYSFS_H

struct attribute_group;

extern const struct attribute_group *nvmep_ctrl_groups[];

#endif /* _NVMEP_CTRL_SYSFS_H */
