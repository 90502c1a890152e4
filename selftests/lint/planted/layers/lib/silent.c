// SPDX-License-Identifier: GPL-2.0-only
#include <stddef.h>

/* This comment is not the first. planted: purpose: lib/silent.c has no purpose in its first comment */
int planted_silent;
