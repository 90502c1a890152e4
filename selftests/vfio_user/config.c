// SPDX-License-Identifier: GPL-2.0-only
/*
 * Config space of a vfio-user device: a type 0 header, power management, MSI
 * and PCI Express capabilities.
 *
 * QEMU itself handles BAR addresses and the MSI message and reads only constant fields here.
 * The bits with an effect are Bus Master Enable, the power state and Initiate Function Level
 * Reset.
 */
#include <errno.h>
#include <string.h>

#include "config.h"

/* Offsets and bits: PCI Express base specification, chapter 7. */
enum {
	CONFIG_VENDOR = 0x00,
	CONFIG_DEVICE = 0x02,
	CONFIG_COMMAND = 0x04,
	CONFIG_STATUS = 0x06,
	CONFIG_REVISION = 0x08,
	CONFIG_CACHE_LINE = 0x0c,
	CONFIG_LATENCY = 0x0d,
	CONFIG_BAR = 0x10,
	CONFIG_SUBSYSTEM = 0x2c,
	CONFIG_CAPABILITIES = 0x34,
	CONFIG_INTERRUPT_LINE = 0x3c,

	/* Power management: capabilities +2, control and status +4. */
	CONFIG_PM = 0x40,
	PM_CONTROL = CONFIG_PM + 4,

	/* MSI with 64-bit address: control +2, address +4, data +12. */
	CONFIG_MSI = 0x50,
	MSI_CONTROL = CONFIG_MSI + 2,

	/* PCI Express, version 2, endpoint. */
	CONFIG_EXPRESS = 0x70,
	EXPRESS_DEVICE_CONTROL = CONFIG_EXPRESS + 8,

	/* Behind all capabilities: registers of the device. */
	CONFIG_VENDOR_REGISTERS = 0xc0,
};

#define COMMAND_BUS_MASTER	0x0004U
#define STATUS_CAPABILITIES	0x0010U
#define PM_STATE		0x0003U
#define DEVICE_CONTROL_FLR	0x8000U

static void put16(uint8_t *config, unsigned int offset, uint16_t value)
{
	memcpy(config + offset, &value, sizeof(value));
}

static void put32(uint8_t *config, unsigned int offset, uint32_t value)
{
	memcpy(config + offset, &value, sizeof(value));
}

static uint16_t get16(const uint8_t *config, unsigned int offset)
{
	uint16_t value;

	memcpy(&value, config + offset, sizeof(value));
	return value;
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

/* Type bits of the BARs; QEMU does sizing and addresses. */
static int config_bars(struct vfu *vfu)
{
	unsigned int i;

	for (i = 0; i < VFU_BARS; i++) {
		const struct vfu_bar *bar = &vfu->device->bars[i];

		if (!bar->size)
			continue;
		if (!is_power_of_two(bar->size) ||
		    (bar->is_64bit && (i == VFU_BARS - 1 ||
				       vfu->device->bars[i + 1].size)))
			return -EINVAL;
		put32(vfu->power_on, CONFIG_BAR + 4 * i,
		      (bar->is_64bit ? 0x4 : 0) | (bar->prefetchable ? 0x8 : 0));
		put32(vfu->writable, CONFIG_BAR + 4 * i, 0xfffffff0);
		if (bar->is_64bit)
			put32(vfu->writable, CONFIG_BAR + 4 * i + 4, 0xffffffff);
	}
	return 0;
}

static void config_power_management(struct vfu *vfu)
{
	vfu->power_on[CONFIG_PM] = 0x01;
	vfu->power_on[CONFIG_PM + 1] = CONFIG_MSI;
	put16(vfu->power_on, CONFIG_PM + 2, 0x0003);	/* version 3 */
	put16(vfu->power_on, PM_CONTROL, 0x0008);	/* No_Soft_Reset */
	put16(vfu->writable, PM_CONTROL, PM_STATE);
}

static int config_msi(struct vfu *vfu)
{
	unsigned int vectors = vfu->device->vectors;

	if (!is_power_of_two(vectors) || vectors > VFU_MAX_VECTORS)
		return -EINVAL;
	vfu->power_on[CONFIG_MSI] = 0x05;
	vfu->power_on[CONFIG_MSI + 1] = CONFIG_EXPRESS;
	/* 64-bit addresses, Multiple Message Capable is a logarithm. */
	put16(vfu->power_on, MSI_CONTROL,
	      0x0080 | (unsigned int)__builtin_ctz(vectors) << 1);
	put16(vfu->writable, MSI_CONTROL, 0x0071);
	memset(vfu->writable + CONFIG_MSI + 4, 0xff, 10);
	return 0;
}

static void config_express(struct vfu *vfu)
{
	vfu->power_on[CONFIG_EXPRESS] = 0x10;
	put16(vfu->power_on, CONFIG_EXPRESS + 2, 0x0002);
	/* Payload up to 256 bytes, role based errors, function level reset. */
	put32(vfu->power_on, CONFIG_EXPRESS + 4, 0x10008001);
	put16(vfu->power_on, EXPRESS_DEVICE_CONTROL, 0x2810);
	put16(vfu->writable, EXPRESS_DEVICE_CONTROL, 0x7fff);
	/* Link: 2.5 GT/s, one lane. */
	put32(vfu->power_on, CONFIG_EXPRESS + 12, 0x00000011);
	put16(vfu->writable, CONFIG_EXPRESS + 16, 0x01fb);
	put16(vfu->power_on, CONFIG_EXPRESS + 18, 0x0011);
	put16(vfu->writable, CONFIG_EXPRESS + 40, 0xffff);
}

int vfu_config_init(struct vfu *vfu)
{
	const struct vfu_device *device = vfu->device;

	put16(vfu->power_on, CONFIG_VENDOR, device->vendor_id);
	put16(vfu->power_on, CONFIG_DEVICE, device->device_id);
	put16(vfu->power_on, CONFIG_STATUS, STATUS_CAPABILITIES);
	put32(vfu->power_on, CONFIG_REVISION,
	      device->class_code << 8 | device->revision);
	put16(vfu->power_on, CONFIG_SUBSYSTEM, device->vendor_id);
	put16(vfu->power_on, CONFIG_SUBSYSTEM + 2, device->device_id);
	vfu->power_on[CONFIG_CAPABILITIES] = CONFIG_PM;
	/* Memory, Bus Master, Parity, SERR, INTx Disable. */
	put16(vfu->writable, CONFIG_COMMAND, 0x0546);
	vfu->writable[CONFIG_CACHE_LINE] = 0xff;
	vfu->writable[CONFIG_LATENCY] = 0xff;
	vfu->writable[CONFIG_INTERRUPT_LINE] = 0xff;
	config_power_management(vfu);
	config_express(vfu);
	return config_msi(vfu) ?: config_bars(vfu);
}

void vfu_config_reset(struct vfu *vfu)
{
	memcpy(vfu->config, vfu->power_on, sizeof(vfu->config));
}

/* Returns whether the access is one whole vendor register, and its number. */
static bool vendor_register(uint64_t offset, uint32_t count, unsigned int *number)
{
	if (offset < CONFIG_VENDOR_REGISTERS || offset % 4 || count != 4)
		return false;
	*number = (unsigned int)(offset - CONFIG_VENDOR_REGISTERS) / 4;
	return *number < VFU_VENDOR_REGISTERS;
}

void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data,
		     uint32_t count)
{
	unsigned int number;
	uint32_t value;

	if (vfu->device->vendor_read && vendor_register(offset, count, &number)) {
		value = vfu->device->vendor_read(vfu->context, number);
		memcpy(data, &value, sizeof(value));
		return;
	}
	if (vfu->device->absent && vfu->device->absent(vfu->context)) {
		memset(data, 0xff, count);
		return;
	}
	memcpy(data, vfu->config + offset, count);
}

bool vfu_config_allows_dma(const struct vfu *vfu)
{
	return (get16(vfu->config, CONFIG_COMMAND) & COMMAND_BUS_MASTER) &&
	       !(get16(vfu->config, PM_CONTROL) & PM_STATE);
}

bool vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data,
		      uint32_t count)
{
	const uint8_t *bytes = data;
	unsigned int number;
	bool reset = false;
	uint32_t value, i;

	if (vfu->device->vendor_write && vendor_register(offset, count, &number)) {
		memcpy(&value, data, sizeof(value));
		vfu->device->vendor_write(vfu->context, number, value);
		return false;
	}
	for (i = 0; i < count; i++) {
		uint8_t mask = vfu->writable[offset + i];

		if (offset + i == EXPRESS_DEVICE_CONTROL + 1)
			reset = bytes[i] & (DEVICE_CONTROL_FLR >> 8);
		vfu->config[offset + i] = (vfu->config[offset + i] & ~mask) |
					  (bytes[i] & mask);
	}
	return reset;
}
