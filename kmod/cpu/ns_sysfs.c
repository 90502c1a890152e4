// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of a namespace's disk: those by which user space tells one from another.
 */
#include <linux/blkdev.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "core/ctrl.h"
#include "namespace.h"
#include "ns_sysfs.h"

static ssize_t nsid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = dev_to_disk(dev)->private_data;

	return sysfs_emit(buf, "%u\n", ns->nsid);
}
static DEVICE_ATTR_RO(nsid);

/* Identify's strings are padded with spaces, by some with zeroes. */
static int nvmep_trimmed(const char *string, int length)
{
	while (length && (string[length - 1] == ' ' || !string[length - 1]))
		length--;
	return length;
}

/* As the kernel's own driver has it: names of links survive a change of driver. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = dev_to_disk(dev)->private_data;
	const struct nvmep_identifiers *ids = &ns->ids;
	const struct nvme_id_ctrl *id = ns->ctrl->id;

	if (!uuid_is_null(&ids->uuid))
		return sysfs_emit(buf, "uuid.%pU\n", &ids->uuid);
	if (memchr_inv(ids->nguid, 0, sizeof(ids->nguid)))
		return sysfs_emit(buf, "eui.%16phN\n", ids->nguid);
	if (memchr_inv(ids->eui64, 0, sizeof(ids->eui64)))
		return sysfs_emit(buf, "eui.%8phN\n", ids->eui64);
	return sysfs_emit(buf, "nvme.%04x-%*phN-%*phN-%08x\n",
			  le16_to_cpu(id->vid),
			  nvmep_trimmed(id->serial, sizeof(id->serial)),
			  id->serial,
			  nvmep_trimmed(id->model, sizeof(id->model)),
			  id->model, ns->nsid);
}
static DEVICE_ATTR_RO(wwid);

static struct attribute *nvmep_ns_attrs[] = {
	&dev_attr_nsid.attr,
	&dev_attr_wwid.attr,
	NULL
};

static const struct attribute_group nvmep_ns_group = {
	.attrs = nvmep_ns_attrs,
};

const struct attribute_group *nvmep_ns_groups[] = {
	&nvmep_ns_group,
	NULL
};
