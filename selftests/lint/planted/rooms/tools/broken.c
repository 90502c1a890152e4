// SPDX-License-Identifier: GPL-2.0-only
/* A room that no compiler takes leaves nothing to read. planted: objects: tools/broken.c has none */
int planted_broken(
