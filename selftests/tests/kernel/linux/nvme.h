/* SPDX-License-Identifier: GPL-2.0-only */
/* For unit-mediate, in place of the kernel's <linux/nvme.h>. */
#include "../kernel.h"
