/* SPDX-License-Identifier: GPL-2.0-only */
/* BAR0 and the words. All functions but bad_defaults() are for the serving thread. */
#ifndef BADCTRL_REGISTERS_H
#define BADCTRL_REGISTERS_H

#include "controller.h"

extern const struct vfu_device bad_device;
void bad_defaults(struct bad *ctrl);
uint32_t bad_load32(const struct bad *ctrl, uint32_t offset);
uint64_t bad_load64(const struct bad *ctrl, uint32_t offset);
void bad_store32(struct bad *ctrl, uint32_t offset, uint32_t value);
/* Read and clear a doorbell, without the lock. */
uint32_t bad_doorbell(const struct bad *ctrl, uint16_t qid, bool cq);
void bad_doorbell_clear(struct bad *ctrl, uint16_t qid, bool cq);
/* Update @goes and @plain after a change. Called with the lock held. */
void bad_settle(struct bad *ctrl);
uint32_t bad_word(struct bad *ctrl, enum badctrl_word word);
void bad_count(struct bad *ctrl, enum badctrl_word word, uint32_t by);

#endif /* BADCTRL_REGISTERS_H */
