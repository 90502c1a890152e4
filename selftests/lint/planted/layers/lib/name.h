/* SPDX-License-Identifier: GPL-2.0-only */
/* name.h: planted. */
/* planted: purpose: lib/name.h has no purpose in its first comment */
