// SPDX-License-Identifier: GPL-2.0-only
/* Load of a peer: commands, losses of its queue pair, and the end; see load_peer.h. */
#include "load_peer.h"

#include <errno.h>
#include <string.h>

/* --- commands ------------------------------------------------------------------- */

uint32_t load_peer_offset(const struct load_peer *peer, const struct load_command *command)
{
	return (uint32_t)(command - peer->commands) * NP_PAGE;
}

static uint8_t *page_of(const struct load_peer *peer, const struct load_command *command)
{
	return peer->bytes + load_peer_offset(peer, command);
}

static int submit(struct load_peer *peer, struct load_command *command)
{
	struct ledger *ledger = &peer->load->ledger;
	uint8_t *page = page_of(peer, command);

	if (!load_choose(peer->load, &command->block, &command->blocks, &command->write))
		return 0;
	command->used = true;
	if (command->write) {
		ledger_write(ledger, command->block, command->blocks, page);
	} else {
		ledger_read(ledger, command->block, command->blocks);
		memset(page, 0xee, NP_PAGE);
	}
	return peer->calls->send(peer, command);
}

void load_peer_end(struct load_peer *peer, struct load_command *command, int status)
{
	struct ledger *ledger = &peer->load->ledger;
	const void *page = status ? NULL : page_of(peer, command);

	command->used = false;
	if (command->write)
		ledger_written(ledger, command->block, command->blocks, !status);
	else if (!ledger_have_read(ledger, command->block, command->blocks, page))
		load_fail(peer->load, "wrong data", -EIO);
	if (!status)
		atomic_fetch_add(&peer->load->done, 1);
	peer->ended++;
}

static uint32_t under_way(const struct load_peer *peer)
{
	uint32_t i, count = 0;

	for (i = 0; i < LOAD_DEPTH; i++)
		count += peer->commands[i].used;
	return count;
}

static int exchange(void *argument)
{
	struct load_peer *peer = argument;
	uint32_t depth = 1 + load_below(peer->load, LOAD_DEPTH), i;
	int status = 0;

	for (i = 0; i < depth && !status; i++)
		if (!peer->commands[i].used)
			status = submit(peer, &peer->commands[i]);
	return status ? status : peer->calls->reap(peer);
}

static int reap(void *argument)
{
	struct load_peer *peer = argument;

	return peer->calls->reap(peer);
}

/* --- loss and re-arm -------------------------------------------------------------- */

/* A doorbell is revoked before the status page reports the loss. */
void load_peer_wait_for_loss(struct load_peer *peer)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (peer->calls->state(peer) == NVME_PEER_QP_LIVE && np_now_ms() < end)
		np_sleep_ms(1);
}

void load_peer_abandon(struct load_peer *peer)
{
	uint32_t i;

	for (i = 0; i < LOAD_DEPTH; i++)
		if (peer->commands[i].used)
			load_peer_end(peer, &peer->commands[i], NVMEPEER_E_LOST);
}

/* Retries if the controller refused, or the queue pair was lost again. */
static int rearm(struct load_peer *peer)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = peer->calls->rearm(peer);
		if (ret != -EIO && ret != -ESTALE && ret != -EAGAIN)
			return ret;
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

static void recover(struct load_peer *peer, void *bytes)
{
	struct load *load = peer->load;

	atomic_store(&load->noticed, load_now());
	load_peer_wait_for_loss(peer);
	load_peer_abandon(peer);
	load_wait_released(load);
	load_came_back(load, rearm(peer), bytes);
}

static void serve(struct load_peer *peer, void *bytes)
{
	struct load *load = peer->load;
	int64_t since = np_now_ms();
	int status;

	while (load_runs(load)) {
		peer->ended = 0;
		/* Stores to a revoked doorbell raise SIGBUS. */
		status = np_catch_fault(exchange, peer);
		if (status == NVMEPEER_E_LOST || status == -EFAULT)
			recover(peer, bytes);
		else if (status)
			load_fail(load, "a command is refused", status);
		if (status || peer->ended)
			since = np_now_ms();
		else if (np_now_ms() > since + NP_TIMEOUT_MS)
			load_fail(load, "no command ends, and no reason is reported", -ETIMEDOUT);
		else
			np_sleep_ms(1);
	}
}

/* There is no fault any more: all commands in flight complete. */
static void drain(struct load_peer *peer)
{
	struct load *load = peer->load;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (under_way(peer) && !atomic_load(&load->error)) {
		peer->ended = 0;
		if (np_catch_fault(reap, peer))
			load_fail(load, "lost without a fault", -EIO);
		else if (np_now_ms() > end)
			load_fail(load, "a command does not end", -ETIMEDOUT);
		else if (!peer->ended)
			np_sleep_ms(1);
	}
}

/* --- the end ---------------------------------------------------------------------- */

static void judge_by_peer(struct load_peer *peer)
{
	struct load *load = peer->load;
	uint32_t block;

	for (block = 0; block < LEDGER_BLOCKS && !atomic_load(&load->error); block += LEDGER_MOST) {
		if (peer->calls->read(peer, block))
			load_fail(load, "the peer cannot read", -EIO);
		else if (!ledger_have_read(&load->ledger, block, LEDGER_MOST, peer->bytes))
			load_fail(load, "wrong data, read at the end", -EIO);
	}
}

void load_peer_run(struct load *load, void *bytes)
{
	struct load_peer *peer = load->own;

	serve(peer, bytes);
	if (atomic_load(&load->ended))
		return;
	drain(peer);
	judge_by_peer(peer);
}
