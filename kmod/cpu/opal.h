/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self-encrypting disks: TCG Opal, by the kernel's sed-opal.
 */
#ifndef _NVMEP_OPAL_H
#define _NVMEP_OPAL_H

#include <linux/errno.h>
#include <linux/kconfig.h>

struct nvmep_ctrl;

#if IS_ENABLED(CONFIG_BLK_SED_OPAL)
void nvmep_opal_add(struct nvmep_ctrl *ctrl);
void nvmep_opal_unlock(struct nvmep_ctrl *ctrl);
int nvmep_opal_ioctl(struct nvmep_ctrl *ctrl, unsigned int cmd,
		     void __user *arg);
#else
static inline void nvmep_opal_add(struct nvmep_ctrl *ctrl)
{
}

static inline void nvmep_opal_unlock(struct nvmep_ctrl *ctrl)
{
}

static inline int nvmep_opal_ioctl(struct nvmep_ctrl *ctrl, unsigned int cmd,
				   void __user *arg)
{
	return -ENOTTY;
}
#endif

#endif /* _NVMEP_OPAL_H */
