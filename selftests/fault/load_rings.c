// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load of a peer that writes its submission ring and reads its completion ring itself, so
 * that it sees every entry that the controller writes: see load_peer.h.
 */
#include "load_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/**
 * struct rings - the peer
 * @peer: what all peers have
 * @node: controller file through which @qp and @buffer were created
 * @qp: the queue pair
 * @request: its control page
 * @buffer: data, and a page for lists
 * @next_cid: of the next command
 */
struct rings {
	struct load_peer peer;
	int node;
	struct np_qp qp;
	struct np_export request;
	struct np_buffer buffer;
	uint16_t next_cid;
};

static struct rings *rings_of(struct load_peer *peer)
{
	return (struct rings *)peer;
}

static int rings_send(struct load_peer *peer, struct load_command *command)
{
	struct rings *rings = rings_of(peer);
	struct np_command entry;

	command->cid = rings->next_cid++;
	np_command_rw(&entry, &rings->buffer, command->write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ,
		      ledger_place(&peer->load->ledger, command->block), load_peer_offset(peer, command),
		      command->blocks * NP_BLOCK);
	entry.cid = command->cid;
	np_qp_put(&rings->qp, &entry);
	return 0;
}

/* A completion with an unknown CID: a fault may permit it. */
static void stray(struct load *load)
{
	if (!atomic_load(&load->strays))
		load_fail(load, "a completion with an unknown CID", -EBADMSG);
	else
		atomic_fetch_sub(&load->strays, 1);
}

/* In mediated mode the queue pair stays, without the buffer that its exporter took. */
static void end_without_buffer(struct load *load)
{
	if (atomic_load(&load->mortal))
		atomic_store(&load->ended, true);
	else
		load_fail(load, "the buffer ended, but should not have", -EIO);
}

static void complete(struct load_peer *peer, uint16_t cid, int status)
{
	uint32_t i;

	if (np_as_tenant() && (status & NVME_STATUS_MASK) == NVME_PEER_STATUS_BUFFER_GONE)
		end_without_buffer(peer->load);
	for (i = 0; i < LOAD_DEPTH; i++) {
		if (!peer->commands[i].used || peer->commands[i].cid != cid)
			continue;
		load_peer_end(peer, &peer->commands[i], status);
		return;
	}
	stray(peer->load);
}

static uint32_t rings_state(struct load_peer *peer)
{
	const volatile struct nvme_peer_status *status = rings_of(peer)->qp.status.at;

	return status->state;
}

static bool lost(struct rings *rings)
{
	const volatile struct nvme_peer_status *status = rings->qp.status.at;

	return status->state != NVME_PEER_QP_LIVE ||
	       status->generation != rings->qp.create.generation;
}

/* A command hangs. */
static void ask_for_help(struct rings *rings)
{
	struct nvme_peer_control *request = rings->request.at;

	np_store(&request->quiesce, 1);
	load_peer_wait_for_loss(&rings->peer);
	if (rings_state(&rings->peer) == NVME_PEER_QP_LIVE)
		load_fail(rings->peer.load, "a requested recovery does not happen", -ETIMEDOUT);
}

/* A revoked doorbell is a loss, which the status page reports soon. */
static int rings_reap(struct load_peer *peer)
{
	struct rings *rings = rings_of(peer);
	uint16_t cid;
	int status;

	if (atomic_load(&peer->load->give_up) && !lost(rings))
		ask_for_help(rings);
	if (lost(rings))
		return NVMEPEER_E_LOST;
	np_qp_ring_doorbell(&rings->qp);
	while ((status = np_qp_reap(&rings->qp, &cid, 0)) >= 0)
		complete(peer, cid, status);
	if (atomic_load(&peer->load->ended))
		load_peer_abandon(peer);
	return 0;
}

static int rings_rearm(struct load_peer *peer)
{
	if (rings_state(peer) == NVME_PEER_QP_LIVE)
		load_fail(peer->load, "a queue pair of another generation is live", -EIO);
	return np_qp_rearm(&rings_of(peer)->qp, NP_TIMEOUT_MS);
}

static int rings_read(struct load_peer *peer, uint32_t block)
{
	struct rings *rings = rings_of(peer);
	struct np_command entry;

	np_command_rw(&entry, &rings->buffer, NVMEPEER_OP_READ,
		      ledger_place(&peer->load->ledger, block), 0, LEDGER_MOST * NP_BLOCK);
	entry.cid = rings->next_cid++;
	return np_qp_run(&rings->qp, &entry, NP_TIMEOUT_MS);
}

static const struct load_peer_calls calls = {
	.send = rings_send,
	.reap = rings_reap,
	.state = rings_state,
	.rearm = rings_rearm,
	.read = rings_read,
};

/* --- method ----------------------------------------------------------------------- */

static int open_pair(struct rings *rings, const struct np_ctrl *ctrl)
{
	rings->node = np_open_node(ctrl, "/dev/nvmep%d", O_RDWR);
	if (rings->node < 0)
		return rings->node;
	return np_qp_open(&rings->qp, rings->node, LOAD_ENTRIES) ?:
	       np_export_open(&rings->request, rings->qp.fd, NVME_PEER_EXPORT_CONTROL, 0) ?:
	       np_buffer_open(&rings->buffer, rings->node, LOAD_DEPTH + 1, 0);
}

static int rings_open(struct load *load, const struct np_ctrl *ctrl)
{
	struct rings *rings = calloc(1, sizeof(*rings));
	int ret;

	load->own = rings;
	if (!rings)
		return -ENOMEM;
	rings->peer = (struct load_peer){ .load = load, .calls = &calls };
	rings->buffer.fd = -1;
	rings->request.fd = -1;
	ret = open_pair(rings, ctrl);
	rings->peer.bytes = rings->buffer.bytes;
	load->qid = rings->qp.create.qid;
	load->dmabuf = rings->buffer.fd;
	return ret;
}

static void rings_close(struct load *load)
{
	struct rings *rings = load->own;

	np_export_close(&rings->request);
	np_qp_close(&rings->qp);
	np_buffer_close(&rings->buffer);
	close(rings->node);
	free(rings);
}

const struct load_method load_by_rings = {
	.name = "peer by its rings",
	.peer = true,
	.open = rings_open,
	.run = load_peer_run,
	.close = rings_close,
};
