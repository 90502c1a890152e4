/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface of the base, which may include no layer. */
/* planted: include: kmod/base.h:4 includes core/lower.h */
#include "core/lower.h"
