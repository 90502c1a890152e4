/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The SMART / Health Information log page of a controller, for several commands.
 */
#ifndef SMART_H
#define SMART_H

#include <nvmepeer.h>

enum { SMART_BYTES = 512 };

/* smart_read() - read the log page. Returns 0, or the error of nvmepeer_admin(). */
int smart_read(struct nvmepeer *ctrl, uint8_t log[SMART_BYTES]);

/* smart_number() - a field by its name in the output of nvme smart-log. */
uint64_t smart_number(const uint8_t log[SMART_BYTES], const char *name);

#endif /* SMART_H */
