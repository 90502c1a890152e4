// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forms that attributes of controllers and of namespaces share: counts that may be set,
 * switches.  They are those of the kernel's own driver.
 */
#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "attribute.h"

/**
 * nvmep_count_show() - read an attribute that is a count
 * @count: it
 * @buf: the page that is read
 *
 * Return: bytes.
 */
ssize_t nvmep_count_show(const atomic_long_t *count, char *buf)
{
	return sysfs_emit(buf, "%lu\n", (unsigned long)atomic_long_read(count));
}

/**
 * nvmep_count_store() - write an attribute that is a count
 * @count: it, which goes on from the number that is written
 * @buf: what is written
 * @length: bytes of it
 *
 * Return: @length, or -EINVAL or -ERANGE for what is no number.
 */
ssize_t nvmep_count_store(atomic_long_t *count, const char *buf, size_t length)
{
	unsigned long value;
	int ret = kstrtoul(buf, 0, &value);

	if (ret)
		return ret;
	atomic_long_set(count, value);
	return length;
}

/**
 * nvmep_switch_show() - read an attribute that is on or off
 * @on: it
 * @buf: the page that is read
 *
 * Return: bytes.
 */
ssize_t nvmep_switch_show(const bool *on, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(*on) ? "on" : "off");
}

/**
 * nvmep_switch_store() - write an attribute that is on or off
 * @on: it
 * @buf: what is written, any word that kstrtobool() knows
 * @length: bytes of it
 *
 * Return: @length, or -EINVAL.
 */
ssize_t nvmep_switch_store(bool *on, const char *buf, size_t length)
{
	bool value;
	int ret = kstrtobool(buf, &value);

	if (ret)
		return ret;
	WRITE_ONCE(*on, value);
	return length;
}
