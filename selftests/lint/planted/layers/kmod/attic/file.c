// SPDX-License-Identifier: GPL-2.0-only
/* A layer that is not listed. planted: layer: kmod/attic/file.c is in none */
int planted_attic;
