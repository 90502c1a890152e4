// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controllers that deviate from the specification.  The first list is short on
 * purpose: datacenter disks whose deviation was reported against other drivers
 * and would break this one.  The second must match the in-tree driver's list,
 * so that namespaces get the same identifiers from both drivers.
 */
#include <linux/log2.h>
#include <linux/pci.h>

#include "quirks.h"

static const struct pci_device_id nvmep_quirks[] = {
	/*
	 * HGST and Memblaze fail if CSTS is read too soon after a write to
	 * CC.EN.
	 */
	{ PCI_DEVICE(0x1c58, 0x0003),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c58, 0x0023),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	{ PCI_DEVICE(0x1c5f, 0x0540),
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY },
	/* Samsung PM1725 and PM1725a; the first reports MQES = 0. */
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
	/* QEMU before its own device ID; old versions claim VS 1.1. */
	{ PCI_VDEVICE(INTEL, 0x5845),
	  .driver_data = NVMEP_QUIRK_IDENTIFY_CNS |
			 NVMEP_QUIRK_NO_WRITE_ZEROES },
	/* Amazon controllers ignore the upper 16 bits of an address. */
	{ PCI_DEVICE(0x1d0f, 0x0061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x0065), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0x8061), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd00), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd01), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ PCI_DEVICE(0x1d0f, 0xcd02), .driver_data = NVMEP_QUIRK_DMA_48 },
	{ }
};

/* NGUID, EUI64 or UUID are not unique or change. */
static const struct pci_device_id nvmep_bogus_nids[] = {
	/* QEMU, old and new device ID. */
	{ PCI_VDEVICE(INTEL, 0x5845) },
	{ PCI_VDEVICE(REDHAT, 0x0010) },
	/* Intel P4500 and P4600. */
	{ PCI_VDEVICE(INTEL, 0x0a54) },
	/* Realtek controllers: ADATA, Team Group. */
	{ PCI_DEVICE(0x10ec, 0x5762) },
	{ PCI_DEVICE(0x10ec, 0x5763) },
	{ PCI_DEVICE(0x10ec, 0x5765) },
	/* Silicon Motion. */
	{ PCI_DEVICE(0x126f, 0x2262) },
	{ PCI_DEVICE(0x126f, 0x2263) },
	/* Micron. */
	{ PCI_DEVICE(0x1344, 0x6001) },
	/* Samsung SM953 and PM9B1. */
	{ PCI_DEVICE(0x144d, 0xa802) },
	{ PCI_DEVICE(0x144d, 0xa80b) },
	/* Phison E12 and E16. */
	{ PCI_DEVICE(0x1987, 0x5012) },
	{ PCI_DEVICE(0x1987, 0x5016) },
	/* SK Hynix P31. */
	{ PCI_DEVICE(0x1c5c, 0x174a) },
	/* ADATA. */
	{ PCI_DEVICE(0x1cc1, 0x33f8) },
	{ PCI_DEVICE(0x1cc1, 0x5350) },
	/* Lexar. */
	{ PCI_DEVICE(0x1d97, 0x1d97) },
	{ PCI_DEVICE(0x1d97, 0x2263) },
	{ PCI_DEVICE(0x1d97, 0x2269) },
	/* Innogrit controllers: Acer, ADATA. */
	{ PCI_DEVICE(0x1dbe, 0x5216) },
	{ PCI_DEVICE(0x1dbe, 0x5236) },
	/* Maxio controllers. */
	{ PCI_DEVICE(0x1e4b, 0x1001) },
	{ PCI_DEVICE(0x1e4b, 0x1002) },
	{ PCI_DEVICE(0x1e4b, 0x1202) },
	{ PCI_DEVICE(0x1e4b, 0x1602) },
	/* Netac. */
	{ PCI_DEVICE(0x1f40, 0x1202) },
	{ PCI_DEVICE(0x1f40, 0x5236) },
	/* Crucial. */
	{ PCI_DEVICE(0xc0a9, 0x540a) },
	{ }
};

/**
 * nvmep_quirks_find() - quirks of a controller
 * @pdev: its PCI function
 *
 * Return: NVMEP_QUIRK_* bits.
 */
unsigned int nvmep_quirks_find(struct pci_dev *pdev)
{
	const struct pci_device_id *quirk = pci_match_id(nvmep_quirks, pdev);
	unsigned int quirks = quirk ? quirk->driver_data : 0;

	if (pci_match_id(nvmep_bogus_nids, pdev))
		quirks |= NVMEP_QUIRK_BOGUS_NID;
	return quirks;
}

/* The in-tree driver's names; it has none for small_queues. */
static const char *const nvmep_quirk_names[] = {
	[ilog2(NVMEP_QUIRK_DELAY_BEFORE_READY)] = "delay_before_chk_rdy",
	[ilog2(NVMEP_QUIRK_SMALL_QUEUES)] = "small_queues",
	[ilog2(NVMEP_QUIRK_STRIPE)] = "stripe_size",
	[ilog2(NVMEP_QUIRK_NO_WRITE_ZEROES)] = "disable_write_zeroes",
	[ilog2(NVMEP_QUIRK_DMA_48)] = "dma_address_bits_48",
	[ilog2(NVMEP_QUIRK_BOGUS_NID)] = "bogus_nid",
	[ilog2(NVMEP_QUIRK_IDENTIFY_CNS)] = "identify_cns",
};

/**
 * nvmep_quirk_name() - name of a quirk
 * @bit: bit number of the quirk
 *
 * Return: its name.
 */
const char *nvmep_quirk_name(unsigned int bit)
{
	return nvmep_quirk_names[bit];
}
