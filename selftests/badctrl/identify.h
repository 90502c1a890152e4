/* SPDX-License-Identifier: GPL-2.0-only */
/* What an ordinary controller says about itself. */
#ifndef BADCTRL_IDENTIFY_H
#define BADCTRL_IDENTIFY_H

#include "controller.h"

/* Lock held. */
void bad_identify_defaults(struct bad *ctrl);

#endif /* BADCTRL_IDENTIFY_H */
