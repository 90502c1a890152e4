/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forms that attributes of controllers and of namespaces share.
 */
#ifndef _NVMEP_ATTRIBUTE_H
#define _NVMEP_ATTRIBUTE_H

#include <linux/atomic.h>
#include <linux/device.h>

ssize_t nvmep_count_show(const atomic_long_t *count, char *buf);
ssize_t nvmep_count_store(atomic_long_t *count, const char *buf, size_t length);
ssize_t nvmep_switch_show(const bool *on, char *buf);
ssize_t nvmep_switch_store(bool *on, const char *buf, size_t length);

/*
 * An attribute to read and to set: @form is count or switch, @what where it is
 * kept, by @dev.
 */
#define NVMEP_ATTR_RW(name, form, what)					\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	return nvmep_##form##_show(what, buf);				\
}									\
									\
static ssize_t name##_store(struct device *dev,				\
			    struct device_attribute *attr,		\
			    const char *buf, size_t count)		\
{									\
	return nvmep_##form##_store(what, buf, count);			\
}									\
static DEVICE_ATTR_RW(name)

#endif /* _NVMEP_ATTRIBUTE_H */
