/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Controllers that need other treatment than the specification says.
 */
#ifndef _NVMEP_QUIRKS_H
#define _NVMEP_QUIRKS_H

#include <linux/bits.h>

struct pci_dev;

/* nvmep_ctrl.quirks */
#define NVMEP_QUIRK_DELAY_BEFORE_READY	BIT(0)	/* wait before polling CSTS.RDY */
#define NVMEP_QUIRK_SMALL_QUEUES	BIT(1)	/* MQES lies: at most 64 entries */
#define NVMEP_QUIRK_STRIPE		BIT(2)	/* slow across 128 KiB boundaries */
#define NVMEP_QUIRK_NO_WRITE_ZEROES	BIT(3)	/* Write Zeroes is broken */
#define NVMEP_QUIRK_DMA_48		BIT(4)	/* drives 48 address bits only */
#define NVMEP_QUIRK_BOGUS_NID		BIT(5)	/* namespaces of all disks have the same names */

unsigned int nvmep_quirks_find(struct pci_dev *pdev);
const char *nvmep_quirk_name(unsigned int bit);

#endif /* _NVMEP_QUIRKS_H */
