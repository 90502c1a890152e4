// SPDX-License-Identifier: GPL-2.0-only
/* A file that does not compile has no object. planted: objects: tools/broken.c has none */
int planted_broken(
