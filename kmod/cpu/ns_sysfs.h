/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes of a namespace's disk.
 */
#ifndef _NVMEP_NS_SYSFS_H
#define _NVMEP_NS_SYSFS_H

struct attribute_group;

extern const struct attribute_group *nvmep_ns_groups[];

#endif /* _NVMEP_NS_SYSFS_H */
