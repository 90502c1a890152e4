/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface of peer/ for main.c. */
#include "core/lower.h"
