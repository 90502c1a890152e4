// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load of a peer that writes its submission ring and reads its completion ring itself, so
 * that it sees every entry that the controller writes: see load.h.
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/**
 * struct command - a command of the peer
 * @block: of the region, the first
 * @blocks: how many
 * @cid: of the entry
 * @opcode: NVMEPEER_OP_READ or NVMEPEER_OP_WRITE
 * @used: it is in flight
 */
struct command {
	uint32_t block;
	uint32_t blocks;
	uint16_t cid;
	uint8_t opcode;
	bool used;
};

/**
 * struct rings - the peer
 * @load: the load
 * @node: controller file through which @qp and @buffer were created
 * @qp: the queue pair
 * @request: its control page
 * @buffer: data, a page for each command
 * @commands: by page of @buffer
 * @next_cid: of the next command
 */
struct rings {
	struct load *load;
	int node;
	struct np_qp qp;
	struct np_export request;
	struct np_buffer buffer;
	struct command commands[LOAD_DEPTH];
	uint16_t next_cid;
};

/* --- commands ------------------------------------------------------------------- */

static void *page_of(struct rings *rings, const struct command *command)
{
	return rings->buffer.bytes + (size_t)(command - rings->commands) * NP_PAGE;
}

static void submit(struct rings *rings, struct command *command)
{
	struct ledger *ledger = &rings->load->ledger;
	uint32_t offset = (uint32_t)(command - rings->commands) * NP_PAGE;
	struct np_command entry;
	bool write;

	if (!load_choose(rings->load, &command->block, &command->blocks, &write))
		return;
	command->opcode = write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ;
	command->cid = rings->next_cid++;
	command->used = true;
	if (write) {
		ledger_write(ledger, command->block, command->blocks, page_of(rings, command));
	} else {
		ledger_read(ledger, command->block, command->blocks);
		memset(page_of(rings, command), 0xee, NP_PAGE);
	}
	np_command_rw(&entry, &rings->buffer, command->opcode,
		      ledger_place(ledger, command->block), offset, command->blocks * NP_BLOCK);
	entry.cid = command->cid;
	np_qp_put(&rings->qp, &entry);
}

/* Its status, or -1 if the result is unknown. */
static void end(struct rings *rings, struct command *command, int status)
{
	struct ledger *ledger = &rings->load->ledger;

	command->used = false;
	if (command->opcode == NVMEPEER_OP_WRITE)
		ledger_written(ledger, command->block, command->blocks, !status);
	else if (!ledger_have_read(ledger, command->block, command->blocks,
				   status ? NULL : page_of(rings, command)))
		load_fail(rings->load, "wrong data, read by the peer", -EIO);
	if (!status)
		atomic_fetch_add(&rings->load->done, 1);
}

/* A completion with an unknown CID: a fault may permit it. */
static void stray(struct rings *rings)
{
	if (!atomic_load(&rings->load->strays))
		load_fail(rings->load, "a completion with an unknown CID", -EBADMSG);
	else
		atomic_fetch_sub(&rings->load->strays, 1);
}

static void complete(struct rings *rings, uint16_t cid, int status)
{
	uint32_t i;

	for (i = 0; i < LOAD_DEPTH; i++) {
		if (!rings->commands[i].used || rings->commands[i].cid != cid)
			continue;
		end(rings, &rings->commands[i], status);
		return;
	}
	stray(rings);
}

static uint32_t under_way(const struct rings *rings)
{
	uint32_t i, count = 0;

	for (i = 0; i < LOAD_DEPTH; i++)
		count += rings->commands[i].used;
	return count;
}

/* Returns the number of completions. */
static unsigned int reap(struct rings *rings)
{
	unsigned int count = 0;
	uint16_t cid;
	int status;

	while ((status = np_qp_reap(&rings->qp, &cid, 0)) >= 0) {
		complete(rings, cid, status);
		count++;
	}
	return count;
}

/* --- loss and re-arm -------------------------------------------------------------- */

static bool lost(const struct rings *rings)
{
	const volatile struct nvme_peer_status *status = rings->qp.status.at;

	return status->state != NVME_PEER_QP_LIVE ||
	       status->generation != rings->qp.create.generation;
}

/* The results of all commands in flight are unknown. */
static void abandon(struct rings *rings)
{
	uint32_t i;

	for (i = 0; i < LOAD_DEPTH; i++)
		if (rings->commands[i].used)
			end(rings, &rings->commands[i], -1);
}

/* Its state, once that is not LIVE any more. */
static uint32_t wait_for_loss(const struct rings *rings)
{
	const volatile struct nvme_peer_status *status = rings->qp.status.at;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (status->state == NVME_PEER_QP_LIVE && np_now_ms() < end)
		np_sleep_ms(1);
	return status->state;
}

/*
 * Retries if the controller refused, or the queue pair was lost again: -ETIMEDOUT in the
 * end.
 */
static int rearm(struct rings *rings)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = np_qp_rearm(&rings->qp, NP_TIMEOUT_MS);
		if (ret != -EIO && ret != -ESTALE && ret != -EAGAIN)
			return ret;
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

static void recover(struct rings *rings, void *bytes)
{
	struct load *load = rings->load;

	atomic_store(&load->noticed, load_now());
	if (wait_for_loss(rings) == NVME_PEER_QP_LIVE)
		load_fail(load, "a queue pair of another generation is live", -EIO);
	abandon(rings);
	load_wait_released(load);
	load_came_back(load, rearm(rings), bytes);
}

static void ask_for_help(struct rings *rings)
{
	struct nvme_peer_control *request = rings->request.at;

	np_store(&request->quiesce, 1);
	if (wait_for_loss(rings) == NVME_PEER_QP_LIVE)
		load_fail(rings->load, "a requested recovery does not happen", -ETIMEDOUT);
}

static void fill(struct rings *rings)
{
	uint32_t depth = 1 + load_below(rings->load, LOAD_DEPTH), i;

	for (i = 0; i < depth; i++)
		if (!rings->commands[i].used)
			submit(rings, &rings->commands[i]);
}

/* A revoked doorbell is a loss, which the status page reports soon. */
static unsigned int exchange(struct rings *rings)
{
	fill(rings);
	np_qp_ring_doorbell(&rings->qp);
	return reap(rings);
}

static void serve(struct rings *rings, void *bytes)
{
	struct load *load = rings->load;
	int64_t since = np_now_ms();

	while (load_runs(load)) {
		if (lost(rings)) {
			recover(rings, bytes);
			since = np_now_ms();
		} else if (atomic_load(&load->give_up)) {
			ask_for_help(rings);
		} else if (exchange(rings)) {
			since = np_now_ms();
		} else if (np_now_ms() < since + NP_TIMEOUT_MS) {
			np_sleep_ms(1);
		} else {
			load_fail(load, "no command ends, and the status page reports no reason", -ETIMEDOUT);
		}
	}
}

/* There is no fault any more: all commands in flight complete. */
static void drain(struct rings *rings)
{
	struct load *load = rings->load;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (under_way(rings) && !atomic_load(&load->error)) {
		if (lost(rings))
			load_fail(load, "lost without a fault", -EIO);
		else if (np_now_ms() > end)
			load_fail(load, "a command does not end", -ETIMEDOUT);
		else if (!reap(rings))
			np_sleep_ms(1);
	}
}

static int read_blocks(struct rings *rings, uint32_t block)
{
	struct np_command entry;

	np_command_rw(&entry, &rings->buffer, NVMEPEER_OP_READ,
		      ledger_place(&rings->load->ledger, block), 0, LEDGER_MOST * NP_BLOCK);
	entry.cid = rings->next_cid++;
	return np_qp_run(&rings->qp, &entry, NP_TIMEOUT_MS);
}

static void judge_by_peer(struct rings *rings)
{
	struct load *load = rings->load;
	uint32_t block;

	for (block = 0; block < LEDGER_BLOCKS && !atomic_load(&load->error); block += LEDGER_MOST) {
		if (read_blocks(rings, block))
			load_fail(load, "the peer cannot read", -EIO);
		else if (!ledger_have_read(&load->ledger, block, LEDGER_MOST, rings->buffer.bytes))
			load_fail(load, "wrong data, read by the peer at the end", -EIO);
	}
}

/* --- method ----------------------------------------------------------------------- */

static void rings_run(struct load *load, void *bytes)
{
	struct rings *rings = load->own;

	serve(rings, bytes);
	if (atomic_load(&load->ended))
		return;
	drain(rings);
	judge_by_peer(rings);
}

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
	rings->load = load;
	rings->buffer.fd = -1;
	rings->request.fd = -1;
	ret = open_pair(rings, ctrl);
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
	.run = rings_run,
	.close = rings_close,
};
