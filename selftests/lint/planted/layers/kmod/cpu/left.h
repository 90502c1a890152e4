/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface of cpu/ for main.c. */
#include "core/lower.h"
