/* SPDX-License-Identifier: GPL-2.0-only */
/* Moves of data between the disk and GPU memory, which a kernel on the GPU performs. */
#ifndef BADCTRL_MOVER_H
#define BADCTRL_MOVER_H

#include "controller.h"

/* Of a poller; the worker also uses the last ring. */
static inline unsigned int bad_mover_ring(const struct bad_poller *poller)
{
	return poller->number;
}

/* Use the file in @folder, if there is one. Returns false after an error. */
bool bad_mover_open(struct bad *ctrl, int folder);

/*
 * Begin a move if the memory is in the window. Returns BAD_PENDING if it is, 0 if it is other
 * memory, otherwise a status. bad_moves_end() follows the last one.
 * @moves: NULL: there must be none
 */
uint16_t bad_moves_add(struct bad *ctrl, struct bad_moves *moves, uint64_t address,
		       const uint8_t *data, size_t length, bool to_host);
uint16_t bad_moves_end(struct bad *ctrl, struct bad_moves *moves);

bool bad_moves_done(const struct bad *ctrl, struct bad_moves *moves);
/* Returns 0 or a status. */
uint16_t bad_moves_wait(const struct bad *ctrl, struct bad_moves *moves);

/* For struct vfu_device.unmapped: wait for all moves that have begun. */
void bad_mover_settle(struct bad *ctrl);

/* The number of SMs that perform moves. */
uint32_t bad_mover_sms(const struct bad *ctrl);

uint64_t bad_now_ns(void);

#endif /* BADCTRL_MOVER_H */
