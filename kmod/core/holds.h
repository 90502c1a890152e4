/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holds: reasons for which a stopped controller must not be started now.
 */
#ifndef _NVMEP_HOLDS_H
#define _NVMEP_HOLDS_H

#include <linux/bits.h>
#include <linux/types.h>

#include "ctrl.h"

/*
 * nvmep_ctrl.holds; each has one owner at a time, which takes and ends it.
 *
 * PLAN		a change of the queue split, or an NVM subsystem reset, prepares
 *		its reset; a user's thread, ends by itself
 * LINK		the PCI core resets the link: error_detected() to resume(); a
 *		permanent failure, which also fails the controller: to resume(),
 *		if the PCI core calls it
 * ABSENT	the function does not respond in config space, or its channel is
 *		frozen: reset work, until it responds
 * PCI		the PCI core resets the function: reset_prepare() to
 *		reset_done()
 * SLEEP	suspend() to resume()
 * GOING	remove() or shutdown(): never ends
 */
#define NVMEP_HOLD_PLAN		BIT(0)
#define NVMEP_HOLD_LINK		BIT(1)
#define NVMEP_HOLD_ABSENT	BIT(2)
#define NVMEP_HOLD_PCI		BIT(3)
#define NVMEP_HOLD_SLEEP	BIT(4)
#define NVMEP_HOLD_GOING	BIT(5)

/* After recovery_timeout the controller fails. */
#define NVMEP_HOLDS_OF_LINK	(NVMEP_HOLD_LINK | NVMEP_HOLD_ABSENT)

enum nvmep_ctrl_state nvmep_ctrl_hold(struct nvmep_ctrl *ctrl,
				      unsigned int hold);
int nvmep_ctrl_hold_live(struct nvmep_ctrl *ctrl, unsigned int hold);
void nvmep_ctrl_unhold(struct nvmep_ctrl *ctrl, unsigned int hold);
bool nvmep_ctrl_held(const struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_may_start(struct nvmep_ctrl *ctrl, u32 *taken);
bool nvmep_ctrl_held_since(const struct nvmep_ctrl *ctrl, u32 taken);
void nvmep_holds_init(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_HOLDS_H */
