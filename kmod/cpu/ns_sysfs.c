// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of a namespace's disk: those by which user space tells one from another,
 * and what of its blocks the block layer has no place for.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "attribute.h"
#include "namespace.h"
#include "ns_sysfs.h"

static struct nvmep_ns *nvmep_ns_of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

#define NVMEP_NS_ATTR(name, format, value)				\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	struct nvmep_ns *ns = nvmep_ns_of(dev);				\
									\
	return sysfs_emit(buf, format "\n", value);			\
}									\
static DEVICE_ATTR_RO(name)

/* Names and forms are those of the kernel's own driver, for whoever reads them. */
NVMEP_NS_ATTR(nsid, "%u", ns->nsid);
NVMEP_NS_ATTR(uuid, "%pU", &ns->ids.uuid);
NVMEP_NS_ATTR(nguid, "%pU", ns->ids.nguid);
NVMEP_NS_ATTR(eui, "%8ph", ns->ids.eui64);
NVMEP_NS_ATTR(csi, "%u", ns->ids.csi);
NVMEP_NS_ATTR(metadata_bytes, "%u", ns->metadata_size);

/* Identify's strings are padded with spaces, by some with zeroes. */
static int nvmep_trimmed(const char *string, int length)
{
	while (length && (string[length - 1] == ' ' || !string[length - 1]))
		length--;
	return length;
}

static bool nvmep_has_nguid(const struct nvmep_identifiers *ids)
{
	return memchr_inv(ids->nguid, 0, sizeof(ids->nguid));
}

static bool nvmep_has_eui64(const struct nvmep_identifiers *ids)
{
	return memchr_inv(ids->eui64, 0, sizeof(ids->eui64));
}

/* As the kernel's own driver has it: names of links survive a change of driver. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = nvmep_ns_of(dev);
	const struct nvmep_identifiers *ids = &ns->ids;
	const struct nvme_id_ctrl *id = ns->ctrl->id;

	if (!uuid_is_null(&ids->uuid))
		return sysfs_emit(buf, "uuid.%pU\n", &ids->uuid);
	if (nvmep_has_nguid(ids))
		return sysfs_emit(buf, "eui.%16phN\n", ids->nguid);
	if (nvmep_has_eui64(ids))
		return sysfs_emit(buf, "eui.%8phN\n", ids->eui64);
	return sysfs_emit(buf, "nvme.%04x-%*phN-%*phN-%08x\n",
			  le16_to_cpu(id->vid),
			  nvmep_trimmed(id->serial, sizeof(id->serial)),
			  id->serial,
			  nvmep_trimmed(id->model, sizeof(id->model)),
			  id->model, ns->nsid);
}
static DEVICE_ATTR_RO(wwid);

/* The blocks in use are those of now, so the controller is asked. */
static ssize_t nuse_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = nvmep_ns_of(dev);
	struct nvme_id_ns *id = kmalloc(NVME_IDENTIFY_SIZE, GFP_KERNEL);
	ssize_t ret;

	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ns->ctrl, NVME_IDENTIFY_NAMESPACE, ns->nsid, id);
	if (!ret)
		ret = sysfs_emit(buf, "%llu\n", le64_to_cpu(id->nuse));
	else if (ret > 0)
		ret = -EIO;
	kfree(id);
	return ret;
}
static DEVICE_ATTR_RO(nuse);

NVMEP_ATTR_RW(passthru_err_log_enabled, switch,
	      &nvmep_ns_of(dev)->failures.log_passthru);
NVMEP_ATTR_RW(command_retries_count, count,
	      &nvmep_ns_of(dev)->failures.retries);
NVMEP_ATTR_RW(command_error_count, count, &nvmep_ns_of(dev)->failures.errors);

static struct attribute *nvmep_ns_attrs[] = {
	&dev_attr_nsid.attr,
	&dev_attr_wwid.attr,
	&dev_attr_uuid.attr,
	&dev_attr_nguid.attr,
	&dev_attr_eui.attr,
	&dev_attr_csi.attr,
	&dev_attr_metadata_bytes.attr,
	&dev_attr_nuse.attr,
	&dev_attr_passthru_err_log_enabled.attr,
	NULL
};

/* What a namespace does not have has no file: an identifier, or blocks. */
static umode_t nvmep_ns_attr_visible(struct kobject *kobj,
				     struct attribute *attr, int index)
{
	const struct nvmep_identifiers *ids = &nvmep_ns_of(kobj_to_dev(kobj))->ids;

	if ((attr == &dev_attr_uuid.attr && uuid_is_null(&ids->uuid)) ||
	    (attr == &dev_attr_nguid.attr && !nvmep_has_nguid(ids)) ||
	    (attr == &dev_attr_eui.attr && !nvmep_has_eui64(ids)) ||
	    (attr == &dev_attr_nuse.attr && ids->csi))
		return 0;
	return attr->mode;
}

static const struct attribute_group nvmep_ns_group = {
	.attrs = nvmep_ns_attrs,
	.is_visible = nvmep_ns_attr_visible,
};

static struct attribute *nvmep_ns_diag_attrs[] = {
	&dev_attr_command_retries_count.attr,
	&dev_attr_command_error_count.attr,
	NULL
};

static const struct attribute_group nvmep_ns_diag_group = {
	.name = "diag",
	.attrs = nvmep_ns_diag_attrs,
};

const struct attribute_group *nvmep_ns_groups[] = {
	&nvmep_ns_group,
	&nvmep_ns_diag_group,
	NULL
};
