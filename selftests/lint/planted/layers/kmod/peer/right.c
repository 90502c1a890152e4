// SPDX-License-Identifier: GPL-2.0-only
/* Includes a layer beside its own. planted: include: kmod/peer/right.c:3 includes cpu/left.h */
#include <cpu/left.h>

int planted_right_data;
