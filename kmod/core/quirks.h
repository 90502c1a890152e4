/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Controllers that deviate from the specification.
 */
#ifndef _NVMEP_QUIRKS_H
#define _NVMEP_QUIRKS_H

#include <linux/bits.h>

struct pci_dev;

/* nvmep_ctrl.quirks */
#define NVMEP_QUIRK_DELAY_BEFORE_READY	BIT(0)	/* before polling CSTS.RDY */
#define NVMEP_QUIRK_SMALL_QUEUES	BIT(1)	/* MQES too small: use 64 */
#define NVMEP_QUIRK_STRIPE		BIT(2)	/* slow across 128 KiB */
#define NVMEP_QUIRK_NO_WRITE_ZEROES	BIT(3)	/* Write Zeroes is broken */
#define NVMEP_QUIRK_DMA_48		BIT(4)	/* 48-bit DMA addresses only */
#define NVMEP_QUIRK_BOGUS_NID		BIT(5)	/* identifiers not unique */
#define NVMEP_QUIRK_IDENTIFY_CNS	BIT(6)	/* VS 1.1 with CNS of 1.0 */
#define NVMEP_QUIRK_NO_NS_DESC		BIT(7)	/* no list of descriptors */
#define NVMEP_QUIRK_NO_TEMP_THRESH	BIT(8)	/* thresholds are constant */
#define NVMEP_QUIRK_NO_SENSOR_THRESH	BIT(9)	/* of the composite one only */
#define NVMEP_QUIRK_LISTS_ALIGN_512	BIT(10)	/* alignment of PRP lists */

unsigned int nvmep_quirks_find(struct pci_dev *pdev);
const char *nvmep_quirk_name(unsigned int bit);

#endif /* _NVMEP_QUIRKS_H */
