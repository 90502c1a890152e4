/* SPDX-License-Identifier: GPL-2.0-only */
/* What all floors stand on, were it not for the next line. */
/* planted: include: kmod/ground.h:4 includes core/lower.h */
#include "core/lower.h"
