// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks that need other treatment than the specification says.  The list is
 * short on purpose: what is here was reported for datacenter disks against
 * other drivers and would stop ours from working.
 */
#include <linux/pci.h>

#include "quirks.h"

static const struct pci_device_id nvmep_quirks[] = {
	/* HGST and Memblaze lose CSTS reads that come too soon after CC.EN. */
	{ PCI_DEVICE(0x1c58, 0x0003),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c58, 0x0023),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c5f, 0x0540),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	/* Samsung PM1725 and PM1725a; the first says MQES = 0. */
	{ PCI_DEVICE(0x144d, 0xa821),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY |
			 NVMEP_QUIRK_SMALL_QUEUES },
	{ PCI_DEVICE(0x144d, 0xa822),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY |
			 NVMEP_QUIRK_NO_WRITE_ZEROES },
	/* Seagate Nytro. */
	{ PCI_DEVICE(0x1bb1, 0x0100),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	/* Intel P3x00 and P4x00 split commands at 128 KiB internally. */
	{ PCI_VDEVICE(INTEL, 0x0953), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a53), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a54), .driver_data = NVMEP_QUIRK_STRIPE },
	{ PCI_VDEVICE(INTEL, 0x0a55), .driver_data = NVMEP_QUIRK_STRIPE },
	/* Amazon's controllers drop the upper 16 bits of an address. */
	{ PCI_DEVICE(0x1d0f, 0x0061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x0065), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x8061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd00), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd01), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd02), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ }
};

/**
 * nvmep_quirks_find() - what is special about a controller
 * @pdev: its PCI function
 *
 * Return: NVMEP_QUIRK_* bits.
 */
unsigned int nvmep_quirks_find(struct pci_dev *pdev)
{
	const struct pci_device_id *quirk = pci_match_id(nvmep_quirks, pdev);

	return quirk ? quirk->driver_data : 0;
}
