/* SPDX-License-Identifier: GPL-2.0-only */
/* A structure that has grown since its copy in Rust was made. */
#include <linux/types.h>

struct nvmepeer_planted {
	__u32 size;
	__u32 more;	/* planted: pub more: __u32 */
};
