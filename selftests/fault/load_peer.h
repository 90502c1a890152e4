/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load of a peer: what load_rings.c and load_library.c have in common, from the choice of a
 * command to the recovery of its queue pair.
 */
#ifndef LOAD_PEER_H
#define LOAD_PEER_H

#include <nvmepeer_peer.h>

#include "load.h"

/**
 * struct load_command - a command of a peer, with a page of its data
 * @block: of the region, the first
 * @blocks: how many
 * @write: or a read
 * @used: it is in flight
 * @cid: of the entry
 * @token: of the library
 */
struct load_command {
	uint32_t block;
	uint32_t blocks;
	bool write;
	bool used;
	uint16_t cid;
	struct nvmepeer_token token;
};

struct load_peer;

/**
 * struct load_peer_calls - how a peer uses its queue pair
 * @send: a chosen command: 0 or a status
 * @reap: calls load_peer_end() for commands that ended: 0, NVMEPEER_E_LOST, or the status of
 *	the queue pair
 * @state: of the queue pair
 * @rearm: after a loss: 0 or a negative errno
 * @read: LEDGER_MOST blocks into the first page: 0, a status or a negative errno
 */
struct load_peer_calls {
	int (*send)(struct load_peer *peer, struct load_command *command);
	int (*reap)(struct load_peer *peer);
	uint32_t (*state)(struct load_peer *peer);
	int (*rearm)(struct load_peer *peer);
	int (*read)(struct load_peer *peer, uint32_t block);
};

/**
 * struct load_peer - a peer; the first member of what a method opens
 * @load: the load
 * @calls: constant
 * @bytes: data, a page for each command
 * @commands: by page
 * @ended: commands that ended in this exchange
 */
struct load_peer {
	struct load *load;
	const struct load_peer_calls *calls;
	uint8_t *bytes;
	struct load_command commands[LOAD_DEPTH];
	unsigned int ended;
};

/* The place of its page in the data. */
uint32_t load_peer_offset(const struct load_peer *peer, const struct load_command *command);
/* The results of all commands in flight are unknown. */
void load_peer_abandon(struct load_peer *peer);
void load_peer_wait_for_loss(struct load_peer *peer);
/* Its status, or a negative one if the result is unknown. */
void load_peer_end(struct load_peer *peer, struct load_command *command, int status);
/* As of struct load_method. */
void load_peer_run(struct load *load, void *bytes);

#endif /* LOAD_PEER_H */
