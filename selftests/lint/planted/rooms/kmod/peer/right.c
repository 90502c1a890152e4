// SPDX-License-Identifier: GPL-2.0-only
/* The right hand. planted: include: kmod/peer/right.c:3 includes cpu/left.h */
#include <cpu/left.h>

int planted_right_data;
