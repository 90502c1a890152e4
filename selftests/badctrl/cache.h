/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * badctrl's volatile write cache.  The disk shows what was written; beside it lies what
 * was there before, until a Flush, FUA or the controller's shutdown makes the new
 * durable.  A power cut brings the old back.  By pages: what becomes durable takes the rest of its page with it.
 */
#ifndef BADCTRL_CACHE_H
#define BADCTRL_CACHE_H

#include "controller.h"

/* These bytes of the disk are about to change. */
void bad_cache_keep(struct bad *ctrl, const uint8_t *at, size_t length);

/* They are durable now. */
void bad_cache_flush(struct bad *ctrl, const uint8_t *at, size_t length);

/* The power is cut. */
void bad_cache_lose(struct bad *ctrl);

#endif /* BADCTRL_CACHE_H */
