/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Persistent reservations of a namespace.
 */
#ifndef _NVMEP_RESERVATION_H
#define _NVMEP_RESERVATION_H

struct pr_ops;

extern const struct pr_ops nvmep_pr_ops;

#endif /* _NVMEP_RESERVATION_H */
