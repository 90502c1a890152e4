/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes of controllers (class device) and of namespaces (disk).
 */
#ifndef _NVMEP_SYSFS_H
#define _NVMEP_SYSFS_H

struct attribute_group;

extern const struct attribute_group *nvmep_ctrl_groups[];
extern const struct attribute_group *nvmep_ns_groups[];

#endif /* _NVMEP_SYSFS_H */
