// SPDX-License-Identifier: GPL-2.0-only
/* Load that verifies itself and outlives faults: see load.h. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REGION_BYTES	(LEDGER_BLOCKS * NP_BLOCK)
/* A peer that nobody helps helps itself; a busy machine may stand still for seconds. */
#define PATIENCE_MS	10000

static void fail(struct load *load, const char *error, int code)
{
	if (atomic_load(&load->error))
		return;
	load->code = code;
	atomic_store(&load->error, error);
}

static uint32_t below(struct load *load, uint32_t limit)
{
	return (uint32_t)nrand48(load->random) % limit;
}

/* Blocks nobody uses, and whether to write them; false: none were found. */
static bool choose(struct load *load, uint32_t *block, uint32_t *blocks, bool *write)
{
	*blocks = 1 + below(load, LEDGER_MOST);
	*block = below(load, LEDGER_BLOCKS - *blocks + 1);
	*write = ledger_known(&load->ledger, *block, *blocks) && below(load, 2);
	return ledger_free(&load->ledger, *block, *blocks);
}

/* --- the CPU ---------------------------------------------------------------- */

/* What is on the disk, by the block device: the CPU's own way there. */
static void judge_by_disk(struct load *load, void *bytes)
{
	int ret = np_disk_read(load->disk, bytes, REGION_BYTES, load->ledger.disk);

	if (ret)
		fail(load, "the CPU cannot read", ret);
	else if (!ledger_have_read(&load->ledger, 0, LEDGER_BLOCKS, bytes))
		fail(load, "wrong data, read by the CPU", -EIO);
}

static void disk_write(struct load *load, uint32_t block, uint32_t blocks, void *bytes)
{
	int ret;

	ledger_write(&load->ledger, block, blocks, bytes);
	ret = np_disk_write(load->disk, bytes, (size_t)blocks * NP_BLOCK,
			    ledger_place(&load->ledger, block));
	ledger_written(&load->ledger, block, blocks, !ret);
	if (ret)
		fail(load, "the CPU's write failed", ret);
}

static void disk_read(struct load *load, uint32_t block, uint32_t blocks, void *bytes)
{
	int ret;

	ledger_read(&load->ledger, block, blocks);
	ret = np_disk_read(load->disk, bytes, (size_t)blocks * NP_BLOCK,
			   ledger_place(&load->ledger, block));
	if (!ledger_have_read(&load->ledger, block, blocks, ret ? NULL : bytes))
		ret = -EIO;
	if (ret)
		fail(load, "the CPU's read failed", ret);
}

static void disk_run(struct load *load, void *bytes)
{
	uint32_t block, blocks;
	bool write;

	while (!atomic_load(&load->stop) && !atomic_load(&load->error)) {
		if (!choose(load, &block, &blocks, &write))
			continue;
		if (write)
			disk_write(load, block, blocks, bytes);
		else
			disk_read(load, block, blocks, bytes);
		atomic_fetch_add(&load->done, 1);
		np_sleep_ms(2);
	}
}

/* --- a peer: its commands --------------------------------------------------- */

static void *page_of(struct load *load, const struct load_command *command)
{
	return load->buffer.bytes + (size_t)(command - load->commands) * NP_PAGE;
}

static void submit(struct load *load, struct load_command *command)
{
	uint32_t offset = (uint32_t)(command - load->commands) * NP_PAGE;
	struct np_command entry;
	bool write;

	if (!choose(load, &command->block, &command->blocks, &write))
		return;
	command->opcode = write ? NP_CMD_WRITE : NP_CMD_READ;
	command->cid = load->next_cid++;
	command->used = true;
	if (write) {
		ledger_write(&load->ledger, command->block, command->blocks, page_of(load, command));
	} else {
		ledger_read(&load->ledger, command->block, command->blocks);
		memset(page_of(load, command), 0xee, NP_PAGE);
	}
	np_command_rw(&entry, &load->buffer, command->opcode,
		      ledger_place(&load->ledger, command->block), offset,
		      command->blocks * NP_BLOCK);
	entry.cid = command->cid;
	np_qp_put(&load->qp, &entry);
}

/* Its status, or -1: it will not be known. */
static void end(struct load *load, struct load_command *command, int status)
{
	struct ledger *ledger = &load->ledger;

	command->used = false;
	if (command->opcode == NP_CMD_WRITE)
		ledger_written(ledger, command->block, command->blocks, !status);
	else if (!ledger_have_read(ledger, command->block, command->blocks,
				   status ? NULL : page_of(load, command)))
		fail(load, "wrong data, read by the peer", -EIO);
	if (!status)
		atomic_fetch_add(&load->done, 1);
	else if (status > 0)
		atomic_fetch_add(&load->failed, 1);
}

/* A completion of no command: a fault may have announced it. */
static void stray(struct load *load)
{
	if (!atomic_load(&load->strays))
		fail(load, "a completion of no command", -EBADMSG);
	else
		atomic_fetch_sub(&load->strays, 1);
}

static void complete(struct load *load, uint16_t cid, int status)
{
	uint32_t i;

	for (i = 0; i < LOAD_DEPTH; i++) {
		if (!load->commands[i].used || load->commands[i].cid != cid)
			continue;
		end(load, &load->commands[i], status);
		return;
	}
	stray(load);
}

static uint32_t under_way(const struct load *load)
{
	uint32_t i, count = 0;

	for (i = 0; i < LOAD_DEPTH; i++)
		count += load->commands[i].used;
	return count;
}

static void reap(struct load *load)
{
	uint16_t cid;
	int status;

	do {
		status = np_qp_reap(&load->qp, &cid, 0);
		if (status >= 0)
			complete(load, cid, status);
	} while (status >= 0 && under_way(load));
}

/* --- a peer: loss and return ------------------------------------------------- */

static bool lost(const struct load *load)
{
	const volatile struct nvme_peer_status *status = load->qp.status.at;

	return status->state != NVME_PEER_QP_LIVE ||
	       status->generation != load->qp.create.generation;
}

/* All that was under way is, and it may or may not have been done. */
static void abandon(struct load *load)
{
	uint32_t i;

	for (i = 0; i < LOAD_DEPTH; i++)
		if (load->commands[i].used)
			end(load, &load->commands[i], -1);
}

/* Again where the controller refused, or was lost meanwhile: -ETIMEDOUT if that has no end. */
static int rearm(struct load *load)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	while ((ret = np_qp_rearm(&load->qp, NP_TIMEOUT_MS)) && ret != -EALREADY) {
		if (ret != -EIO && ret != -ESTALE && ret != -EAGAIN)
			return ret;
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		atomic_fetch_add(&load->refused, 1);
	}
	return ret;
}

static void recover(struct load *load, void *bytes)
{
	struct nvme_peer_request *request = load->request.at;
	int ret;

	if (load->strict) {
		fail(load, "the healthy controller lost its queue pair", -EIO);
		return;
	}
	ret = np_qp_wait_state(&load->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS);
	abandon(load);
	while (atomic_load(&load->hold))
		np_sleep_ms(1);
	/* It may have asked when the controller was being reset anyway. */
	atomic_store(&load->give_up, false);
	np_store(&request->quiesce, 0);
	ret = ret ?: rearm(load);
	if (ret) {
		fail(load, "the queue pair does not come back", ret);
		return;
	}
	atomic_store(&load->strays, 0);
	atomic_fetch_add(&load->losses, 1);
	judge_by_disk(load, bytes);
}

static void ask_for_help(struct load *load)
{
	struct nvme_peer_request *request = load->request.at;

	np_store(&request->quiesce, 1);
	if (np_qp_wait_state(&load->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS))
		fail(load, "nobody helps a peer that asks", -ETIMEDOUT);
}

static void fill(struct load *load)
{
	uint32_t depth = 1 + below(load, LOAD_DEPTH), i;

	for (i = 0; i < depth; i++)
		if (!load->commands[i].used)
			submit(load, &load->commands[i]);
}

static void peer_run(struct load *load, void *bytes)
{
	unsigned int done = atomic_load(&load->done);
	int64_t since = np_now_ms();

	while (!atomic_load(&load->stop) && !atomic_load(&load->error)) {
		if (lost(load)) {
			recover(load, bytes);
			continue;
		}
		if (atomic_load(&load->give_up) || np_now_ms() > since + PATIENCE_MS) {
			ask_for_help(load);
			since = np_now_ms();
			continue;
		}
		fill(load);
		/* A doorbell that is away is a loss, which the status page tells soon. */
		if (np_qp_ring(&load->qp) && !lost(load))
			np_sleep_ms(1);
		reap(load);
		if (atomic_load(&load->done) == done)
			continue;
		done = atomic_load(&load->done);
		since = np_now_ms();
	}
}

/* Nothing is wrong any more: all that is under way ends. */
static void peer_drain(struct load *load, void *bytes)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (under_way(load) && !atomic_load(&load->error)) {
		if (np_now_ms() > end)
			fail(load, "a command does not end", -ETIMEDOUT);
		if (lost(load))
			recover(load, bytes);
		reap(load);
	}
}

static void judge_by_peer(struct load *load)
{
	struct load_command *command = load->commands;
	struct np_command entry;
	uint32_t block;
	int status;

	for (block = 0; block < LEDGER_BLOCKS && !atomic_load(&load->error); block += LEDGER_MOST) {
		np_command_rw(&entry, &load->buffer, NP_CMD_READ, ledger_place(&load->ledger, block),
			      0, LEDGER_MOST * NP_BLOCK);
		entry.cid = load->next_cid++;
		status = np_qp_run(&load->qp, &entry, NP_TIMEOUT_MS);
		if (status)
			fail(load, "the peer cannot read", -EIO);
		else if (!ledger_have_read(&load->ledger, block, LEDGER_MOST, page_of(load, command)))
			fail(load, "wrong data, read by the peer at the end", -EIO);
	}
}

/* --- both -------------------------------------------------------------------- */

static void *run(void *argument)
{
	struct load *load = argument;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, REGION_BYTES)) {
		fail(load, "no memory", -ENOMEM);
		return NULL;
	}
	if (load->peer) {
		peer_run(load, bytes);
		peer_drain(load, bytes);
		judge_by_peer(load);
	} else {
		disk_run(load, bytes);
	}
	if (!atomic_load(&load->error))
		judge_by_disk(load, bytes);
	free(bytes);
	return NULL;
}

static int write_all(struct load *load)
{
	uint32_t block;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE))
		return -ENOMEM;
	for (block = 0; block < LEDGER_BLOCKS; block += LEDGER_MOST)
		disk_write(load, block, LEDGER_MOST, bytes);
	free(bytes);
	return load->code;
}

static int peer_open(struct load *load, int ctrl_fd)
{
	int ret = np_qp_open(&load->qp, ctrl_fd, LOAD_ENTRIES);

	if (ret)
		return ret;
	return np_export_open(&load->request, load->qp.fd, NVME_PEER_EXPORT_REQUEST, 0) ?:
	       np_buffer_open(&load->buffer, ctrl_fd, LOAD_DEPTH + 1, 0);
}

int load_start(struct load *load, const struct np_ctrl *ctrl, uint64_t disk, uint32_t seed)
{
	int ret = 0;

	ledger_init(&load->ledger, disk, seed);
	load->random[0] = (unsigned short)seed;
	load->random[1] = (unsigned short)(seed >> 16);
	load->random[2] = (unsigned short)(disk >> 12);
	load->qp.fd = -1;
	load->buffer.fd = -1;
	load->request.fd = -1;
	load->disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	if (load->disk < 0)
		return load->disk;
	if (load->peer)
		ret = peer_open(load, ctrl->fd);
	return ret ?: write_all(load) ?: -pthread_create(&load->thread, NULL, run, load);
}

void load_end(struct load *load)
{
	atomic_store(&load->stop, true);
	pthread_join(load->thread, NULL);
}

void load_close(struct load *load, int ctrl_fd)
{
	if (load->peer) {
		np_export_close(&load->request);
		np_qp_close(&load->qp);
		np_release(ctrl_fd, load->buffer.handle);
		np_buffer_close(&load->buffer);
	}
	close(load->disk);
}
