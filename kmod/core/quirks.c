// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controllers that deviate from the specification: those that the in-tree driver
 * of Linux 7.3 lists, with the quirks that concern this driver, which has
 * neither power states nor fabrics.  Namespaces get the same identifiers from
 * both drivers.  The administrator adds others by the parameter quirks.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/string.h>

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
	  .driver_data = NVMEP_QUIRK_DELAY_BEFORE_READY |
			 NVMEP_QUIRK_NO_NS_DESC },
	/* Memblaze PBlaze5, Lexar 256 GB, Silicon Motion. */
	{ PCI_DEVICE(0x1c5f, 0x0555), .driver_data = NVMEP_QUIRK_NO_NS_DESC },
	{ PCI_DEVICE(0x1b4b, 0x1092), .driver_data = NVMEP_QUIRK_NO_NS_DESC },
	{ PCI_DEVICE(0x126f, 0x2263), .driver_data = NVMEP_QUIRK_NO_NS_DESC },
	/* O2 Micro, Micron: PRP lists are aligned to 512 bytes. */
	{ PCI_DEVICE(0x1217, 0x8760),
	  .driver_data = NVMEP_QUIRK_LISTS_ALIGN_512 },
	{ PCI_DEVICE(0x1344, 0x6004),
	  .driver_data = NVMEP_QUIRK_LISTS_ALIGN_512 },
	/* Intel 600P. */
	{ PCI_VDEVICE(INTEL, 0xf1a5),
	  .driver_data = NVMEP_QUIRK_NO_WRITE_ZEROES |
			 NVMEP_QUIRK_NO_TEMP_THRESH },
	/* Kingston KC3000, Wodposit. */
	{ PCI_DEVICE(0x2646, 0x5013),
	  .driver_data = NVMEP_QUIRK_NO_SENSOR_THRESH },
	{ PCI_DEVICE(0x1fa0, 0x2283),
	  .driver_data = NVMEP_QUIRK_NO_SENSOR_THRESH },
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

/* Write Zeroes fails, is slow, or does not write zeroes. */
static const struct pci_device_id nvmep_no_write_zeroes[] = {
	/* Samsung, among them PM9B1. */
	{ PCI_DEVICE(0x144d, 0xa809) },
	{ PCI_DEVICE(0x144d, 0xa80b) },
	/* SanDisk Skyhawk. */
	{ PCI_DEVICE(0x15b7, 0x2001) },
	/* Phison E19 and E21. */
	{ PCI_DEVICE(0x1987, 0x5019) },
	{ PCI_DEVICE(0x1987, 0x5021) },
	/* SK Hynix. */
	{ PCI_DEVICE(0x1c5c, 0x1504) },
	{ PCI_DEVICE(0x1c5c, 0x1d59) },
	/* Union Memory. */
	{ PCI_DEVICE(0x1cc4, 0x6302) },
	{ PCI_DEVICE(0x1cc4, 0x6303) },
	/* SPCC. */
	{ PCI_DEVICE(0x1d97, 0x2263) },
	/* Kingston. */
	{ PCI_DEVICE(0x2646, 0x5016) },
	{ PCI_DEVICE(0x2646, 0x5018) },
	{ PCI_DEVICE(0x2646, 0x501a) },
	{ PCI_DEVICE(0x2646, 0x501b) },
	{ PCI_DEVICE(0x2646, 0x501e) },
	{ PCI_DEVICE(0x2646, 0x502f) },
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

/* The in-tree driver's names; it has none for small_queues. */
static const char *const nvmep_quirk_names[] = {
	[ilog2(NVMEP_QUIRK_DELAY_BEFORE_READY)] = "delay_before_chk_rdy",
	[ilog2(NVMEP_QUIRK_SMALL_QUEUES)] = "small_queues",
	[ilog2(NVMEP_QUIRK_STRIPE)] = "stripe_size",
	[ilog2(NVMEP_QUIRK_NO_WRITE_ZEROES)] = "disable_write_zeroes",
	[ilog2(NVMEP_QUIRK_DMA_48)] = "dma_address_bits_48",
	[ilog2(NVMEP_QUIRK_BOGUS_NID)] = "bogus_nid",
	[ilog2(NVMEP_QUIRK_IDENTIFY_CNS)] = "identify_cns",
	[ilog2(NVMEP_QUIRK_NO_NS_DESC)] = "no_ns_desc_list",
	[ilog2(NVMEP_QUIRK_NO_TEMP_THRESH)] = "no_temp_thresh_change",
	[ilog2(NVMEP_QUIRK_NO_SENSOR_THRESH)] = "no_secondary_temp_thresh",
	[ilog2(NVMEP_QUIRK_LISTS_ALIGN_512)] = "dmapool_align_512",
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

/* --- the parameter ------------------------------------------------------- */

/* Most entries of the parameter, and most bytes of it. */
#define NVMEP_QUIRK_ENTRIES	16
#define NVMEP_QUIRK_TEXT	512

/**
 * struct nvmep_quirk_entry - what the administrator says of one model
 * @vendor: PCI vendor ID
 * @device: PCI device ID
 * @set: NVMEP_QUIRK_* that the model has
 * @clear: NVMEP_QUIRK_* that it does not have
 */
struct nvmep_quirk_entry {
	unsigned int vendor;
	unsigned int device;
	unsigned int set;
	unsigned int clear;
};

/* All three are guarded by kernel_param_lock(). */
static char nvmep_quirk_text[NVMEP_QUIRK_TEXT];
static struct nvmep_quirk_entry nvmep_quirk_entries[NVMEP_QUIRK_ENTRIES];
static unsigned int nvmep_quirk_entry_count;

/* The bit of a quirk, 0 if there is none of that name. */
static unsigned int nvmep_quirk_bit(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nvmep_quirk_names); i++)
		if (!strcmp(name, nvmep_quirk_names[i]))
			return BIT(i);
	return 0;
}

/* VENDOR:DEVICE:NAME,^NAME...; "^" is for quirks that the model does not have. */
static int nvmep_quirk_parse(char *text, struct nvmep_quirk_entry *entry)
{
	unsigned int bit;
	int length = 0;
	char *name;
	bool clear;

	*entry = (struct nvmep_quirk_entry){ };
	if (sscanf(text, "%4x:%4x:%n", &entry->vendor, &entry->device,
		   &length) != 2)
		return -EINVAL;
	/* Without the second colon, what follows is the name of no quirk. */
	text += length;
	while ((name = strsep(&text, ","))) {
		clear = *name == '^';
		bit = nvmep_quirk_bit(name + clear);
		if (!bit)
			return -EINVAL;
		if (clear)
			entry->clear |= bit;
		else
			entry->set |= bit;
	}
	return 0;
}

/* Returns the number of entries of @text, or -EINVAL. */
static int nvmep_quirks_parse(char *text, struct nvmep_quirk_entry *entries)
{
	int count = 0, ret;
	char *entry;

	text = strim(text);
	if (!*text)
		return 0;
	while ((entry = strsep(&text, "-"))) {
		if (count == NVMEP_QUIRK_ENTRIES)
			return -EINVAL;
		ret = nvmep_quirk_parse(entry, &entries[count++]);
		if (ret)
			return ret;
	}
	return count;
}

static int nvmep_quirks_set(const char *value, const struct kernel_param *param)
{
	static struct nvmep_quirk_entry entries[NVMEP_QUIRK_ENTRIES];
	static char text[NVMEP_QUIRK_TEXT];
	int count;

	if (strscpy(text, value, sizeof(text)) < 0)
		return -ENOSPC;
	count = nvmep_quirks_parse(text, entries);
	if (count < 0)
		return count;
	memcpy(nvmep_quirk_entries, entries, sizeof(entries));
	nvmep_quirk_entry_count = count;
	strscpy(nvmep_quirk_text, value, sizeof(nvmep_quirk_text));
	return 0;
}

static int nvmep_quirks_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", strim(nvmep_quirk_text));
}

static const struct kernel_param_ops nvmep_quirks_ops = {
	.set = nvmep_quirks_set,
	.get = nvmep_quirks_get,
};
module_param_cb(quirks, &nvmep_quirks_ops, NULL, 0644);
MODULE_PARM_DESC(quirks,
		 "quirks of more models, for controllers bound from now on: VENDOR:DEVICE:NAME,^NAME-...");

/* --- lookup -------------------------------------------------------------- */

static unsigned int nvmep_quirks_apply(const struct pci_dev *pdev,
				       unsigned int quirks)
{
	const struct nvmep_quirk_entry *entry;
	unsigned int i;

	kernel_param_lock(THIS_MODULE);
	for (i = 0; i < nvmep_quirk_entry_count; i++) {
		entry = &nvmep_quirk_entries[i];
		if (entry->vendor == pdev->vendor &&
		    entry->device == pdev->device)
			quirks = (quirks | entry->set) & ~entry->clear;
	}
	kernel_param_unlock(THIS_MODULE);
	return quirks;
}

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
	if (pci_match_id(nvmep_no_write_zeroes, pdev))
		quirks |= NVMEP_QUIRK_NO_WRITE_ZEROES;
	return nvmep_quirks_apply(pdev, quirks);
}
