/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues; Create and Delete return a status. */
#ifndef BADCTRL_QUEUE_H
#define BADCTRL_QUEUE_H

#include "controller.h"

/* Create the admin queue from AQA, ASQ and ACQ, or delete all. Called with the lock held. */
void bad_queues_start(struct bad *ctrl);
void bad_queues_stop(struct bad *ctrl);

/* Returns whether there is a command to fetch. */
bool bad_queue_rung(const struct bad *ctrl, uint16_t sqid);
bool bad_queue_fetch(struct bad *ctrl, uint16_t sqid, struct bad_command *command);
bool bad_queue_room(struct bad *ctrl, uint16_t sqid);
void bad_queue_complete(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t status,
			uint32_t result, bool quiet);
/* Write the completion in delayed pieces, the phase tag last. */
void bad_queue_complete_slowly(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t status);
/* Write the phase tag first; until the rest follows, the CID is @mistaken. */
void bad_queue_complete_torn(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t mistaken,
			     uint16_t status);

/* Maximum number of queues of one kind. */
uint32_t bad_granted(struct bad *ctrl, bool completion);
/* Returns whether the I/O submission queue exists. */
bool bad_queue_exists(const struct bad *ctrl, uint16_t sqid);
uint16_t bad_create_cq(struct bad *ctrl, const struct bad_command *command);
uint16_t bad_create_sq(struct bad *ctrl, const struct bad_command *command);
/* Called when the commands of the queue have ended. */
uint16_t bad_delete_sq(struct bad *ctrl, uint16_t qid);
uint16_t bad_delete_cq(struct bad *ctrl, uint16_t qid);

#endif /* BADCTRL_QUEUE_H */
