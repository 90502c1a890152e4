/* SPDX-License-Identifier: GPL-2.0-only */
/* For unit-mediate, in place of the kernel's <linux/nospec.h>: no speculation to prevent. */
#define array_index_nospec(index, size)	((void)(size), (index))
