// SPDX-License-Identifier: GPL-2.0-only
/*
 * Temperature sensors of a controller in hwmon, with the names and channels of
 * the in-tree driver: channel 0 is the composite temperature, channel N sensor N
 * of the SMART / Health Information log page (base specification 5.1.12.1.3).
 */
#include <linux/hwmon.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/units.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "core/quirks.h"
#include "cpu.h"
#include "hwmon.h"

/* How long a log page that was read is current, jiffies. */
#define NVMEP_HWMON_CURRENT	HZ

/* Limit of attempts to read the log page that a reset has ended. */
#define NVMEP_HWMON_TRIES	3

/**
 * struct nvmep_hwmon - temperature sensors of a controller
 * @ctrl: const: controller, bound while this exists
 * @device: const: the hwmon device
 * @lock: guards @log, @read and @error; held over commands that read, so that
 *	readers, which any user may be, take one admin tag only
 * @log: the log page that was read last, kmalloc() memory
 * @read: jiffies of the last attempt to read it
 * @error: result of that attempt
 */
struct nvmep_hwmon {
	struct nvmep_ctrl *ctrl;
	struct device *device;
	struct mutex lock;	/* @log, @read, @error */
	struct nvme_smart_log *log;
	unsigned long read;
	int error;
};

/* --- commands ------------------------------------------------------------- */

static int nvmep_hwmon_read_log(struct nvmep_hwmon *hwmon)
{
	int ret = nvmep_get_log(hwmon->ctrl, NVME_LOG_SMART, NVME_CSI_NVM,
				hwmon->log, sizeof(*hwmon->log));

	hwmon->read = jiffies;
	hwmon->error = nvmep_admin_errno(ret);
	return ret;
}

/*
 * The log page must not be read as often as any user may open the files, also
 * if the controller fails the command.  A reset is over soon.
 */
static int nvmep_hwmon_update(struct nvmep_hwmon *hwmon)
{
	lockdep_assert_held(&hwmon->lock);

	if (hwmon->error != -EAGAIN &&
	    time_before(jiffies, hwmon->read + NVMEP_HWMON_CURRENT))
		return hwmon->error;
	nvmep_hwmon_read_log(hwmon);
	return hwmon->error;
}

/* Dword 11 of the feature Temperature Threshold, base specification 5.1.25.1.3. */
static u32 nvmep_hwmon_threshold(int channel, bool under)
{
	return channel << NVME_TEMP_THRESH_SELECT_SHIFT |
	       (under ? NVME_TEMP_THRESH_TYPE_UNDER : 0);
}

/* A command for each read, as in-tree: passthrough may change it.  One at a time. */
static int nvmep_hwmon_get_threshold(struct nvmep_hwmon *hwmon, int channel,
				     bool under, long *value)
{
	u32 dword11 = nvmep_hwmon_threshold(channel, under);
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_get_features,
		.sqe.common.cdw10 = cpu_to_le32(NVME_FEAT_TEMP_THRESH),
		.sqe.common.cdw11 = cpu_to_le32(dword11),
	};
	int ret;

	mutex_lock(&hwmon->lock);
	ret = nvmep_admin_execute(hwmon->ctrl, &command);
	mutex_unlock(&hwmon->lock);
	if (!ret)
		*value = kelvin_to_millicelsius(command.result &
						NVME_TEMP_THRESH_MASK);
	return nvmep_admin_errno(ret);
}

static int nvmep_hwmon_set_threshold(struct nvmep_hwmon *hwmon, int channel,
				     bool under, long value)
{
	u32 dword11 = nvmep_hwmon_threshold(channel, under);
	long most = kelvin_to_millicelsius(NVME_TEMP_THRESH_MASK);
	int ret;

	value = clamp(value, (long)ABSOLUTE_ZERO_MILLICELSIUS, most);
	ret = nvmep_set_feature(hwmon->ctrl, NVME_FEAT_TEMP_THRESH,
				dword11 | millicelsius_to_kelvin(value), NULL);
	/* The controller may report another warning now. */
	mutex_lock(&hwmon->lock);
	hwmon->read = jiffies - NVMEP_HWMON_CURRENT;
	mutex_unlock(&hwmon->lock);
	return nvmep_admin_errno(ret);
}

/* --- hwmon operations ----------------------------------------------------- */

static unsigned int nvmep_hwmon_temperature(const struct nvme_smart_log *log,
					    int channel)
{
	return channel ? le16_to_cpu(log->temp_sensor[channel - 1]) :
			 log->temperature[0] | log->temperature[1] << 8;
}

/* As in-tree: thresholds of the composite temperature if it has a warning. */
static umode_t nvmep_hwmon_visible(const void *data,
				   enum hwmon_sensor_types type, u32 attribute,
				   int channel)
{
	const struct nvmep_hwmon *hwmon = data;
	const struct nvme_id_ctrl *id = hwmon->ctrl->id;
	unsigned int quirks = hwmon->ctrl->quirks;

	if (type == hwmon_chip)
		return 0;
	if (channel && !nvmep_hwmon_temperature(hwmon->log, channel))
		return 0;
	switch (attribute) {
	case hwmon_temp_crit:
		return id->cctemp ? 0444 : 0;
	case hwmon_temp_max:
	case hwmon_temp_min:
		if (channel ? quirks & NVMEP_QUIRK_NO_SENSOR_THRESH :
			      !id->wctemp)
			return 0;
		return quirks & NVMEP_QUIRK_NO_TEMP_THRESH ? 0444 : 0644;
	default:
		return 0444;
	}
}

static int nvmep_hwmon_read_current(struct nvmep_hwmon *hwmon, u32 attribute,
				    int channel, long *value)
{
	unsigned int kelvin;
	int ret;

	mutex_lock(&hwmon->lock);
	ret = nvmep_hwmon_update(hwmon);
	kelvin = nvmep_hwmon_temperature(hwmon->log, channel);
	*value = attribute == hwmon_temp_alarm ?
		 !!(hwmon->log->critical_warning & NVME_SMART_CRIT_TEMPERATURE) :
		 kelvin_to_millicelsius(kelvin);
	mutex_unlock(&hwmon->lock);
	return ret;
}

static int nvmep_hwmon_read(struct device *dev, enum hwmon_sensor_types type,
			    u32 attribute, int channel, long *value)
{
	struct nvmep_hwmon *hwmon = dev_get_drvdata(dev);

	switch (attribute) {
	case hwmon_temp_crit:
		*value = kelvin_to_millicelsius(le16_to_cpu(hwmon->ctrl->id->cctemp));
		return 0;
	case hwmon_temp_max:
	case hwmon_temp_min:
		return nvmep_hwmon_get_threshold(hwmon, channel,
						 attribute == hwmon_temp_min,
						 value);
	default:
		return nvmep_hwmon_read_current(hwmon, attribute, channel,
						value);
	}
}

/* hwmon calls it for the thresholds only: the other files are read-only. */
static int nvmep_hwmon_write(struct device *dev, enum hwmon_sensor_types type,
			     u32 attribute, int channel, long value)
{
	return nvmep_hwmon_set_threshold(dev_get_drvdata(dev), channel,
					 attribute == hwmon_temp_min, value);
}

static int nvmep_hwmon_read_string(struct device *dev,
				   enum hwmon_sensor_types type, u32 attribute,
				   int channel, const char **text)
{
	static const char *const labels[] = {
		"Composite", "Sensor 1", "Sensor 2", "Sensor 3", "Sensor 4",
		"Sensor 5", "Sensor 6", "Sensor 7", "Sensor 8",
	};

	*text = labels[channel];
	return 0;
}

static const struct hwmon_ops nvmep_hwmon_ops = {
	.is_visible = nvmep_hwmon_visible,
	.read = nvmep_hwmon_read,
	.read_string = nvmep_hwmon_read_string,
	.write = nvmep_hwmon_write,
};

#define NVMEP_HWMON_SENSOR						\
	(HWMON_T_INPUT | HWMON_T_MAX | HWMON_T_MIN | HWMON_T_LABEL)

/* Not const: hwmon of older kernels declares it so. */
static const struct hwmon_channel_info *nvmep_hwmon_channels[] = {
	HWMON_CHANNEL_INFO(chip, HWMON_C_REGISTER_TZ),
	HWMON_CHANNEL_INFO(temp, NVMEP_HWMON_SENSOR | HWMON_T_CRIT |
				 HWMON_T_ALARM,
			   NVMEP_HWMON_SENSOR, NVMEP_HWMON_SENSOR,
			   NVMEP_HWMON_SENSOR, NVMEP_HWMON_SENSOR,
			   NVMEP_HWMON_SENSOR, NVMEP_HWMON_SENSOR,
			   NVMEP_HWMON_SENSOR, NVMEP_HWMON_SENSOR),
	NULL
};

static const struct hwmon_chip_info nvmep_hwmon_chip = {
	.ops = &nvmep_hwmon_ops,
	.info = nvmep_hwmon_channels,
};

/* --- lifetime ------------------------------------------------------------- */

static void nvmep_hwmon_free(struct nvmep_hwmon *hwmon)
{
	kfree(hwmon->log);
	kfree(hwmon);
}

static struct nvmep_hwmon *nvmep_hwmon_alloc(struct nvmep_ctrl *ctrl)
{
	struct nvmep_hwmon *hwmon = kzalloc(sizeof(*hwmon), GFP_KERNEL);

	if (!hwmon)
		return NULL;
	hwmon->log = kzalloc(sizeof(*hwmon->log), GFP_KERNEL);
	if (!hwmon->log) {
		kfree(hwmon);
		return NULL;
	}
	hwmon->ctrl = ctrl;
	mutex_init(&hwmon->lock);
	return hwmon;
}

/* Returns 0, an NVMe status, or a negative error code. */
static int nvmep_hwmon_register(struct nvmep_hwmon *hwmon)
{
	int ret = nvmep_hwmon_read_log(hwmon);

	if (ret)
		return ret;
	hwmon->device =
		hwmon_device_register_with_info(&hwmon->ctrl->device, "nvme",
						hwmon, &nvmep_hwmon_chip, NULL);
	return PTR_ERR_OR_ZERO(hwmon->device);
}

/**
 * nvmep_hwmon_add() - add the temperature sensors of a controller, once
 * @ctrl: controller; called by scan work only
 *
 * After a failure the next scan tries again, unless the controller has refused
 * the log page, or has been reset at each of a few attempts.
 */
void nvmep_hwmon_add(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct nvmep_hwmon *hwmon;
	int ret;

	if (cpu->hwmon || cpu->hwmon_tries == NVMEP_HWMON_TRIES)
		return;
	hwmon = nvmep_hwmon_alloc(ctrl);
	if (!hwmon)
		return;
	ret = nvmep_hwmon_register(hwmon);
	if (!ret) {
		cpu->hwmon = hwmon;
		return;
	}
	cpu->hwmon_tries = ret > 0 ? NVMEP_HWMON_TRIES : cpu->hwmon_tries + 1;
	dev_info(ctrl->dev, "no temperature sensors (%d)\n", ret);
	nvmep_hwmon_free(hwmon);
}

/**
 * nvmep_hwmon_remove() - remove the temperature sensors of a controller
 * @ctrl: controller; no scan runs any more
 *
 * Waits for readers, whose command completes or times out.
 */
void nvmep_hwmon_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_hwmon *hwmon = ctrl->cpu->hwmon;

	if (!hwmon)
		return;
	hwmon_device_unregister(hwmon->device);
	nvmep_hwmon_free(hwmon);
	ctrl->cpu->hwmon = NULL;
}
