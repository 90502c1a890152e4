// SPDX-License-Identifier: GPL-2.0-only
#include <stddef.h>

/* This comes too late. planted: purpose: lib/silent.c has no purpose in its first comment */
int planted_silent;
