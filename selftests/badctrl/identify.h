/* SPDX-License-Identifier: GPL-2.0-only */
/* Default Identify data. */
#ifndef BADCTRL_IDENTIFY_H
#define BADCTRL_IDENTIFY_H

#include "controller.h"

/* Called with the lock held. */
void bad_identify_defaults(struct bad *ctrl);

#endif /* BADCTRL_IDENTIFY_H */
