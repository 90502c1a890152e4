// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of the controller's class device: those of the kernel's own driver, by its
 * names and in its forms, as far as they mean anything here; the generation, and how many
 * queues the CPU keeps.
 */
#include <linux/bitops.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "core/ctrl.h"
#include "core/quirks.h"
#include "core/reset.h"
#include "attribute.h"
#include "ctrl_sysfs.h"
#include "params.h"
#include "scan.h"
#include "share.h"

/* Identify Controller, CNTRLTYPE and DCTYPE; base specification 5.1.13.2.1. */
static const char *const nvmep_controller_types[] = {
	NULL, "io", "discovery", "admin",
};

static const char *const nvmep_discovery_types[] = { "none", "ddc", "cdc" };

static const char *nvmep_type(const char *const *names, unsigned int count,
			      unsigned int type)
{
	return type < count && names[type] ? names[type] : "reserved";
}

#define NVMEP_TYPE(names, type)	nvmep_type(names, ARRAY_SIZE(names), type)

/* Identify's strings are not terminated: their formats end them. */
#define NVMEP_ATTR(name, format, value)					\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);			\
									\
	return sysfs_emit(buf, format "\n", value);			\
}									\
static DEVICE_ATTR_RO(name)

NVMEP_ATTR(model, "%.40s", ctrl->id->model);
NVMEP_ATTR(serial, "%.20s", ctrl->id->serial);
NVMEP_ATTR(firmware_rev, "%.8s", ctrl->id->firmware);
NVMEP_ATTR(subsysnqn, "%.256s", ctrl->id->subnqn);
NVMEP_ATTR(state, "%s", nvmep_ctrl_state_name(nvmep_ctrl_state(ctrl)));
NVMEP_ATTR(generation, "%u", nvmep_ctrl_generation(ctrl));
NVMEP_ATTR(cntlid, "%u", le16_to_cpu(ctrl->id->cntlid));
NVMEP_ATTR(cntrltype, "%s",
	   NVMEP_TYPE(nvmep_controller_types, ctrl->id->cntrltype));
NVMEP_ATTR(dctype, "%s", NVMEP_TYPE(nvmep_discovery_types, ctrl->id->dctype));
NVMEP_ATTR(address, "%s", pci_name(ctrl->pdev));
NVMEP_ATTR(numa_node, "%d", dev_to_node(ctrl->dev));
NVMEP_ATTR(queue_count, "%u", READ_ONCE(ctrl->cpu_queues_live) + 1);
NVMEP_ATTR(sqsize, "%u", ctrl->io_tags.queue_depth);
NVMEP_ATTR(io_timeout, "%u", jiffies_to_msecs(ctrl->io_tags.timeout));

static ssize_t transport_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "pcie\n");
}
static DEVICE_ATTR_RO(transport);

/* Keep Alive is for controllers that a network may cut off: none is started. */
static ssize_t kato_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(kato);

/* The same for all controllers; the module's parameter is in seconds. */
static ssize_t admin_timeout_show(struct device *dev,
				  struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", nvmep_admin_timeout * MSEC_PER_SEC);
}
static DEVICE_ATTR_RO(admin_timeout);

/* A line each. */
static ssize_t quirks_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);
	unsigned long quirks = ctrl->quirks;
	unsigned int bit;
	int length = 0;

	if (!quirks)
		return sysfs_emit(buf, "none\n");
	for_each_set_bit(bit, &quirks, BITS_PER_LONG)
		length += sysfs_emit_at(buf, length, "%s\n",
					nvmep_quirk_name(bit));
	return length;
}
static DEVICE_ATTR_RO(quirks);

static ssize_t cpu_queues_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", nvmep_share(dev_get_drvdata(dev)));
}

static ssize_t cpu_queues_store(struct device *dev,
				struct device_attribute *attr,
				const char *buf, size_t count)
{
	unsigned int share;
	int ret = kstrtouint(buf, 0, &share);

	if (!ret)
		ret = nvmep_share_change(dev_get_drvdata(dev), share);
	return ret ?: count;
}
static DEVICE_ATTR_RW(cpu_queues);

static ssize_t reset_controller_store(struct device *dev,
				      struct device_attribute *attr,
				      const char *buf, size_t count)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);
	int ret = nvmep_ctrl_reset_sync(ctrl);

	return ret ?: count;
}
static DEVICE_ATTR_WO(reset_controller);

static ssize_t rescan_controller_store(struct device *dev,
				       struct device_attribute *attr,
				       const char *buf, size_t count)
{
	nvmep_scan(dev_get_drvdata(dev));
	return count;
}
static DEVICE_ATTR_WO(rescan_controller);

static struct nvmep_ctrl *ctrl_of(struct device *dev)
{
	return dev_get_drvdata(dev);
}

NVMEP_ATTR_RW(passthru_err_log_enabled, switch,
	      &ctrl_of(dev)->failures.log_passthru);
NVMEP_ATTR_RW(reset_count, count, &ctrl_of(dev)->resets);
NVMEP_ATTR_RW(command_error_count, count, &ctrl_of(dev)->failures.errors);

static struct attribute *nvmep_ctrl_attrs[] = {
	&dev_attr_model.attr,
	&dev_attr_serial.attr,
	&dev_attr_firmware_rev.attr,
	&dev_attr_subsysnqn.attr,
	&dev_attr_state.attr,
	&dev_attr_generation.attr,
	&dev_attr_cntlid.attr,
	&dev_attr_cntrltype.attr,
	&dev_attr_dctype.attr,
	&dev_attr_transport.attr,
	&dev_attr_address.attr,
	&dev_attr_numa_node.attr,
	&dev_attr_queue_count.attr,
	&dev_attr_cpu_queues.attr,
	&dev_attr_sqsize.attr,
	&dev_attr_kato.attr,
	&dev_attr_quirks.attr,
	&dev_attr_admin_timeout.attr,
	&dev_attr_io_timeout.attr,
	&dev_attr_passthru_err_log_enabled.attr,
	&dev_attr_reset_controller.attr,
	&dev_attr_rescan_controller.attr,
	NULL
};

static const struct attribute_group nvmep_ctrl_group = {
	.attrs = nvmep_ctrl_attrs,
};

static struct attribute *nvmep_ctrl_diag_attrs[] = {
	&dev_attr_reset_count.attr,
	&dev_attr_command_error_count.attr,
	NULL
};

static const struct attribute_group nvmep_ctrl_diag_group = {
	.name = "diag",
	.attrs = nvmep_ctrl_diag_attrs,
};

const struct attribute_group *nvmep_ctrl_groups[] = {
	&nvmep_ctrl_group,
	&nvmep_ctrl_diag_group,
	NULL
};
