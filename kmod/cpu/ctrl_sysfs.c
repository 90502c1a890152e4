// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of the controller's class device: those that libnvme looks for,
 * and the generation.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "core/ctrl.h"
#include "core/reset.h"
#include "ctrl_sysfs.h"
#include "scan.h"

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
NVMEP_ATTR(cntrltype, "%s", ctrl->id->cntrltype == 1 ? "io" : "reserved");
NVMEP_ATTR(address, "%s", pci_name(ctrl->pdev));
NVMEP_ATTR(numa_node, "%d", dev_to_node(ctrl->dev));
NVMEP_ATTR(queue_count, "%u", READ_ONCE(ctrl->cpu_queues_live) + 1);
NVMEP_ATTR(sqsize, "%u", ctrl->io_tags.queue_depth);

static ssize_t transport_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "pcie\n");
}
static DEVICE_ATTR_RO(transport);

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

static struct attribute *nvmep_ctrl_attrs[] = {
	&dev_attr_model.attr,
	&dev_attr_serial.attr,
	&dev_attr_firmware_rev.attr,
	&dev_attr_subsysnqn.attr,
	&dev_attr_state.attr,
	&dev_attr_generation.attr,
	&dev_attr_cntlid.attr,
	&dev_attr_cntrltype.attr,
	&dev_attr_transport.attr,
	&dev_attr_address.attr,
	&dev_attr_numa_node.attr,
	&dev_attr_queue_count.attr,
	&dev_attr_sqsize.attr,
	&dev_attr_reset_controller.attr,
	&dev_attr_rescan_controller.attr,
	NULL
};

static const struct attribute_group nvmep_ctrl_group = {
	.attrs = nvmep_ctrl_attrs,
};

const struct attribute_group *nvmep_ctrl_groups[] = {
	&nvmep_ctrl_group,
	NULL
};
