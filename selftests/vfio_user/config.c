// SPDX-License-Identifier: GPL-2.0-only
/*
 * Config space of a vfio-user device: a type 0 header, power management, MSI
 * and PCI Express capabilities.
 *
 * QEMU itself handles BAR addresses and the MSI message and reads only constant fields here.
 * The bits with an effect are Bus Master Enable, the power state and Initiate Function Level
 * Reset.
 */
#include <string.h>

#include <linux/pci_regs.h>

#include "vfu.h"

/* The capabilities. */
#define PM	0x40
#define MSI	0x50
#define EXPRESS	0x70

/* What is the same in all devices: dwords at power-on, and their writable bits. */
static const struct {
	unsigned int offset;
	uint32_t power_on;
	uint32_t writable;
} dwords[] = {
	/* Memory, Bus Master, Parity, SERR, INTx Disable. */
	{ PCI_COMMAND, PCI_STATUS_CAP_LIST << 16, 0x0546 },
	{ PCI_CACHE_LINE_SIZE, 0, 0xffff },
	{ PCI_CAPABILITY_LIST, PM, 0 },
	{ PCI_INTERRUPT_LINE, 0, 0xff },
	{ PM, 3 << 16 | MSI << 8 | PCI_CAP_ID_PM, 0 },
	{ PM + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET, PCI_PM_CTRL_STATE_MASK },
	{ MSI, PCI_MSI_FLAGS_64BIT << 16 | EXPRESS << 8 | PCI_CAP_ID_MSI,
	  (PCI_MSI_FLAGS_QSIZE | PCI_MSI_FLAGS_ENABLE) << 16 },
	{ MSI + PCI_MSI_ADDRESS_LO, 0, 0xffffffff },
	{ MSI + PCI_MSI_ADDRESS_HI, 0, 0xffffffff },
	{ MSI + PCI_MSI_DATA_64, 0, 0xffff },
	/* An endpoint: payload up to 256 bytes, role based errors, 2.5 GT/s, one lane. */
	{ EXPRESS, 2 << 16 | PCI_CAP_ID_EXP, 0 },
	{ EXPRESS + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | 1, 0 },
	{ EXPRESS + PCI_EXP_DEVCTL, 0x2810, 0x7fff },
	{ EXPRESS + PCI_EXP_LNKCAP, 0x11, 0 },
	{ EXPRESS + PCI_EXP_LNKCTL, 0x11 << 16, 0x01fb },
	{ EXPRESS + PCI_EXP_DEVCTL2, 0, 0xffff },
};

/* Type bits of the BARs; QEMU does sizing and addresses. */
static void config_bars(struct vfu *vfu)
{
	uint32_t *power_on = &vfu->power_on[PCI_BASE_ADDRESS_0 / 4];
	uint32_t *writable = &vfu->writable[PCI_BASE_ADDRESS_0 / 4];
	unsigned int i;

	for (i = 0; i < VFU_BARS; i++) {
		const struct vfu_bar *bar = &vfu->device->bars[i];

		if (!bar->size)
			continue;
		power_on[i] = (bar->is_64bit ? PCI_BASE_ADDRESS_MEM_TYPE_64 : 0) |
			      (bar->prefetchable ? PCI_BASE_ADDRESS_MEM_PREFETCH : 0);
		writable[i] = 0xfffffff0;
		if (bar->is_64bit)
			writable[i + 1] = 0xffffffff;
	}
}

void vfu_config_init(struct vfu *vfu)
{
	const struct vfu_device *device = vfu->device;
	uint32_t ids = (uint32_t)device->device_id << 16 | device->vendor_id;
	size_t i;

	for (i = 0; i < sizeof(dwords) / sizeof(dwords[0]); i++) {
		vfu->power_on[dwords[i].offset / 4] = dwords[i].power_on;
		vfu->writable[dwords[i].offset / 4] = dwords[i].writable;
	}
	vfu->power_on[PCI_VENDOR_ID / 4] = ids;
	vfu->power_on[PCI_SUBSYSTEM_VENDOR_ID / 4] = ids;
	vfu->power_on[PCI_CLASS_REVISION / 4] = device->class_code << 8 | device->revision;
	/* Multiple Message Capable is a logarithm. */
	vfu->power_on[MSI / 4] |= (uint32_t)__builtin_ctz(device->vectors) << (16 + 1);
	config_bars(vfu);
	vfu_config_reset(vfu);
}

void vfu_config_reset(struct vfu *vfu)
{
	memcpy(vfu->config, vfu->power_on, sizeof(vfu->config));
}

void vfu_config_read(struct vfu *vfu, uint64_t offset, void *data, uint32_t count)
{
	if (!vfu->device->config_read ||
	    !vfu->device->config_read(vfu->context, offset, data, count))
		memcpy(data, (const char *)vfu->config + offset, count);
}

bool vfu_config_allows_dma(const struct vfu *vfu)
{
	return (vfu->config[PCI_COMMAND / 4] & PCI_COMMAND_MASTER) &&
	       !(vfu->config[(PM + PCI_PM_CTRL) / 4] & PCI_PM_CTRL_STATE_MASK);
}

bool vfu_config_write(struct vfu *vfu, uint64_t offset, const void *data, uint32_t count)
{
	const uint8_t *writable = (const uint8_t *)vfu->writable + offset;
	uint8_t *config = (uint8_t *)vfu->config + offset;
	const uint8_t *bytes = data;
	bool reset = false;
	uint32_t i;

	if (vfu->device->config_write &&
	    vfu->device->config_write(vfu->context, offset, data, count))
		return false;
	for (i = 0; i < count; i++) {
		if (offset + i == EXPRESS + PCI_EXP_DEVCTL + 1)
			reset = bytes[i] & (PCI_EXP_DEVCTL_BCR_FLR >> 8);
		config[i] = (config[i] & ~writable[i]) | (bytes[i] & writable[i]);
	}
	return reset;
}
