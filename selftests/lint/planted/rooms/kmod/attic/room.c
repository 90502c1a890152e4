// SPDX-License-Identifier: GPL-2.0-only
/* A floor nobody planned. planted: floor: kmod/attic/room.c lies on none */
int planted_attic;
