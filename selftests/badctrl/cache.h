/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * badctrl's volatile write cache. The disk has the new data; the old data is kept until a
 * Flush, FUA or a shutdown makes the new data durable. A power cut restores the old data.
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

/*
 * Power cut of a part of the disk, of so many @block_bytes: none, some or all of its blocks that
 * are not durable are lost.
 */
void bad_cache_lose_some(struct bad *ctrl, const uint8_t *at, size_t length, size_t block_bytes);

/* A random number below @range. */
uint32_t bad_cache_random(struct bad *ctrl, uint32_t range);

#endif /* BADCTRL_CACHE_H */
