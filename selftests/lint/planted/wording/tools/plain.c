// SPDX-License-Identifier: GPL-2.0-only
/* A directory without marker words is not reported: permitted: tools: */
int plain;
