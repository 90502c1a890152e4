/* SPDX-License-Identifier: GPL-2.0-only */
/* For unit-prp, in place of the kernel's <linux/sizes.h>. */
#define SZ_4K	0x1000
#define SZ_64K	0x10000
#define SZ_8M	0x800000
