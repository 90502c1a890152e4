// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of controllers and namespaces in sysfs.
 *
 * Names and formats are those of the in-tree driver
 * (drivers/nvme/host/sysfs.c), so that nvme-cli and udev rules work.
 * Additional attributes of a controller are generation and cpu_queues, which
 * sets the queue split between the CPU and peers.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/quirks.h"
#include "core/reset.h"
#include "cpu.h"
#include "module.h"
#include "namespace.h"
#include "queue_map.h"
#include "scan.h"
#include "sysfs.h"

/* --- controllers and namespaces ----------------------------------------- */

static ssize_t nvmep_count_show(const atomic_long_t *count, char *buf)
{
	return sysfs_emit(buf, "%lu\n", (unsigned long)atomic_long_read(count));
}

/* The counter continues from the value that is written. */
static ssize_t nvmep_count_store(atomic_long_t *count, const char *buf,
				 size_t length)
{
	unsigned long value;
	int ret = kstrtoul(buf, 0, &value);

	if (ret)
		return ret;
	atomic_long_set(count, value);
	return length;
}

static ssize_t nvmep_switch_show(const bool *on, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(*on) ? "on" : "off");
}

static ssize_t nvmep_switch_store(bool *on, const char *buf, size_t length)
{
	bool value;
	int ret = kstrtobool(buf, &value);

	if (ret)
		return ret;
	WRITE_ONCE(*on, value);
	return length;
}

/*
 * A read-write attribute.  @owner is ctrl or ns, as some names exist in both;
 * @form is count or switch; @what is an expression for the address of the
 * value, of @dev.
 */
#define NVMEP_ATTR_RW(owner, name, form, what)				\
static ssize_t owner##_##name##_show(struct device *dev,		\
				     struct device_attribute *attr,	\
				     char *buf)				\
{									\
	return nvmep_##form##_show(what, buf);				\
}									\
									\
static ssize_t owner##_##name##_store(struct device *dev,		\
				      struct device_attribute *attr,	\
				      const char *buf, size_t count)	\
{									\
	return nvmep_##form##_store(what, buf, count);			\
}									\
static struct device_attribute dev_attr_##owner##_##name =		\
	__ATTR(name, 0644, owner##_##name##_show, owner##_##name##_store)

/* --- queue split -------------------------------------------------------- */

/*
 * Number of queues reserved for the CPU, of which it uses at most one for each
 * processor, plus polled ones.  Peers get the others.
 */
static unsigned int nvmep_queue_split(struct nvmep_ctrl *ctrl)
{
	struct nvmep_qid_usage usage;

	nvmep_qid_usage(ctrl, &usage);
	return usage.total - usage.peer_max;
}

/* Peers are blocked, so the usage cannot change. */
static int nvmep_queue_split_check(struct nvmep_ctrl *ctrl, unsigned int count)
{
	unsigned int possible = nvmep_qids_for_cpu(ctrl);
	struct nvmep_qid_usage usage;

	nvmep_qid_usage(ctrl, &usage);
	if (!count || count > usage.total) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, the controller grants %u queues: write 1 to %u\n",
			 count, usage.total, usage.total);
		return -ERANGE;
	}
	if (min(count, ctrl->max_cpu_queues) > possible) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, all but %u queue IDs were or are a peer's: bind the controller again, when the processes that still map their doorbells (debugfs: nvme-peer/quarantine) have ended\n",
			 count, possible);
		return -ENOSPC;
	}
	return 0;
}

static int nvmep_queue_split_set_peers_blocked(struct nvmep_ctrl *ctrl,
					       unsigned int count)
{
	int ret = nvmep_queue_split_check(ctrl, count);

	if (ret || count == nvmep_queue_split(ctrl))
		return ret;
	return nvmep_queues_split(ctrl, count);
}

/*
 * Sets the number of queues reserved for the CPU, which resets the controller.
 *
 * Returns 0; -ERANGE if @count is not 1 to what the controller grants; -EBUSY
 * while peers have queue pairs or a namespace is being removed, or if I/O in
 * flight does not end within 5 seconds; -ENOMEM; -ENOSPC if the CPU would need
 * queue IDs that were a peer's; -EINTR for a fatal signal; -EIO or -ENODEV if
 * the reset fails.
 */
static int nvmep_queue_split_set(struct nvmep_ctrl *ctrl, unsigned int count)
{
	int ret;

	if (mutex_lock_killable(&ctrl->cpu->effects_lock))
		return -EINTR;
	ret = nvmep_qids_block_peers(ctrl);
	if (!ret && nvmep_qids_block_shared(ctrl)) {
		nvmep_qids_unblock_peers(ctrl);
		ret = -EBUSY;
	}
	if (ret) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, it resets the controller: close all peer queue pairs first\n",
			 count);
	} else {
		ret = nvmep_queue_split_set_peers_blocked(ctrl, count);
		nvmep_qids_unblock_peers(ctrl);
	}
	mutex_unlock(&ctrl->cpu->effects_lock);
	return ret;
}

/* --- controllers -------------------------------------------------------- */

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

/* Strings of Identify Controller have no NUL: formats need a precision. */
#define NVMEP_ATTR(name, format, value)					\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);			\
									\
	return sysfs_emit(buf, format "\n", value);			\
}									\
static DEVICE_ATTR_RO(name)

NVMEP_ATTR(model, "%.40s", ctrl->id->mn);
NVMEP_ATTR(serial, "%.20s", ctrl->id->sn);
NVMEP_ATTR(firmware_rev, "%.8s", ctrl->id->fr);
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
NVMEP_ATTR(sqsize, "%u", ctrl->queues[0]->entries - 1);
NVMEP_ATTR(io_timeout, "%u", jiffies_to_msecs(ctrl->io_tags.timeout));

static ssize_t transport_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "pcie\n");
}
static DEVICE_ATTR_RO(transport);

/* The driver does not use Keep Alive, which PCI Express does not need. */
static ssize_t kato_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(kato);

/* In milliseconds, from the module parameter in seconds. */
static ssize_t admin_timeout_show(struct device *dev,
				  struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", nvmep_admin_timeout * MSEC_PER_SEC);
}
static DEVICE_ATTR_RO(admin_timeout);

/* One quirk a line. */
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
	return sysfs_emit(buf, "%u\n", nvmep_queue_split(dev_get_drvdata(dev)));
}

static ssize_t cpu_queues_store(struct device *dev,
				struct device_attribute *attr,
				const char *buf, size_t count)
{
	unsigned int share;
	int ret = kstrtouint(buf, 0, &share);

	if (!ret)
		ret = nvmep_queue_split_set(dev_get_drvdata(dev), share);
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

static struct nvmep_ctrl *nvmep_ctrl_of(struct device *dev)
{
	return dev_get_drvdata(dev);
}

NVMEP_ATTR_RW(ctrl, passthru_err_log_enabled, switch,
	      &nvmep_ctrl_of(dev)->failures.log_passthru);
NVMEP_ATTR_RW(ctrl, reset_count, count, &nvmep_ctrl_of(dev)->resets);
NVMEP_ATTR_RW(ctrl, command_error_count, count,
	      &nvmep_ctrl_of(dev)->failures.errors);

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
	&dev_attr_ctrl_passthru_err_log_enabled.attr,
	&dev_attr_reset_controller.attr,
	&dev_attr_rescan_controller.attr,
	NULL
};

static const struct attribute_group nvmep_ctrl_group = {
	.attrs = nvmep_ctrl_attrs,
};

static struct attribute *nvmep_ctrl_diag_attrs[] = {
	&dev_attr_ctrl_reset_count.attr,
	&dev_attr_ctrl_command_error_count.attr,
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

/* --- namespaces --------------------------------------------------------- */

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

NVMEP_NS_ATTR(nsid, "%u", ns->nsid);
NVMEP_NS_ATTR(uuid, "%pU", &ns->ids.uuid);
NVMEP_NS_ATTR(nguid, "%pU", ns->ids.nguid);
NVMEP_NS_ATTR(eui, "%8ph", ns->ids.eui64);
NVMEP_NS_ATTR(csi, "%u", ns->ids.csi);
NVMEP_NS_ATTR(metadata_bytes, "%u", ns->metadata_size);

/* Identify strings are padded with spaces, by some controllers with NUL. */
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

/* As in-tree, so that links in /dev/disk/by-id do not depend on the driver. */
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
			  nvmep_trimmed(id->sn, sizeof(id->sn)),
			  id->sn,
			  nvmep_trimmed(id->mn, sizeof(id->mn)),
			  id->mn, ns->nsid);
}
static DEVICE_ATTR_RO(wwid);

/* Returns as nvmep_identify(). */
static int nvmep_ns_read_nuse(struct nvmep_ns *ns)
{
	struct nvme_id_ns *id = kmalloc(NVME_IDENTIFY_DATA_SIZE, GFP_KERNEL);
	int ret;

	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ns->ctrl, NVME_ID_CNS_NS, ns->nsid, id);
	if (!ret)
		WRITE_ONCE(ns->nuse, le64_to_cpu(id->nuse));
	kfree(id);
	return ret;
}

/*
 * Writes change the number of blocks in use, so it is read from the controller,
 * but not as often as any user may open the file.
 */
static ssize_t nuse_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct nvmep_ns *ns = nvmep_ns_of(dev);
	int ret = __ratelimit(&ns->nuse_limit) ? nvmep_ns_read_nuse(ns) : 0;

	if (ret)
		return nvmep_admin_errno(ret);
	return sysfs_emit(buf, "%llu\n", READ_ONCE(ns->nuse));
}
static DEVICE_ATTR_RO(nuse);

NVMEP_ATTR_RW(ns, passthru_err_log_enabled, switch,
	      &nvmep_ns_of(dev)->failures.log_passthru);
NVMEP_ATTR_RW(ns, command_retries_count, count,
	      &nvmep_ns_of(dev)->failures.retries);
NVMEP_ATTR_RW(ns, command_error_count, count,
	      &nvmep_ns_of(dev)->failures.errors);

static struct attribute *nvmep_ns_attrs[] = {
	&dev_attr_nsid.attr,
	&dev_attr_wwid.attr,
	&dev_attr_uuid.attr,
	&dev_attr_nguid.attr,
	&dev_attr_eui.attr,
	&dev_attr_csi.attr,
	&dev_attr_metadata_bytes.attr,
	&dev_attr_nuse.attr,
	&dev_attr_ns_passthru_err_log_enabled.attr,
	NULL
};

/* Identifiers and nuse are shown only if the namespace has them. */
static umode_t nvmep_ns_attr_visible(struct kobject *kobj,
				     struct attribute *attr, int index)
{
	struct nvmep_ns *ns = nvmep_ns_of(kobj_to_dev(kobj));
	const struct nvmep_identifiers *ids = &ns->ids;

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
	&dev_attr_ns_command_retries_count.attr,
	&dev_attr_ns_command_error_count.attr,
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
