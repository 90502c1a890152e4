/* SPDX-License-Identifier: GPL-2.0-only */
/* For unit-prp, in place of the kernel's <linux/blk_types.h>. */
#include "../kernel.h"
