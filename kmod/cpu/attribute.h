/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forms that attributes of controllers and of namespaces share.
 */
#ifndef _NVMEP_ATTRIBUTE_H
#define _NVMEP_ATTRIBUTE_H

#include <linux/atomic.h>
#include <linux/types.h>

ssize_t nvmep_count_show(const atomic_long_t *count, char *buf);
ssize_t nvmep_count_store(atomic_long_t *count, const char *buf, size_t length);
ssize_t nvmep_switch_show(const bool *on, char *buf);
ssize_t nvmep_switch_store(bool *on, const char *buf, size_t length);

#endif /* _NVMEP_ATTRIBUTE_H */
