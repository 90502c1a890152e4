/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * badctrl's volatile write cache. The disk has the new data; the old data is kept until a
 * Flush, FUA or a shutdown makes the new data durable. A power cut restores the old data.
 * The unit is a page: making a part of it durable makes the whole page durable.
 */
#ifndef BADCTRL_CACHE_H
#define BADCTRL_CACHE_H

#include "controller.h"

/* Keep the old data of these bytes, which are about to change. */
void bad_cache_keep(struct bad *ctrl, const uint8_t *at, size_t length);

/* Make these bytes durable. */
void bad_cache_flush(struct bad *ctrl, const uint8_t *at, size_t length);

/* Power cut: restore the old data. */
void bad_cache_lose(struct bad *ctrl);

#endif /* BADCTRL_CACHE_H */
