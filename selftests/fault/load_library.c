// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load of a peer that uses the user library as a program would: each loss is one status,
 * and one call re-arms the queue pair; see load.h.
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nvmepeer_peer.h>

#define SUBMIT_NS	1000000000ULL

/**
 * struct command - a command of the peer
 * @block: of the region, the first
 * @blocks: how many
 * @write: or a read
 * @used: it is in flight
 * @token: of the library
 */
struct command {
	uint32_t block;
	uint32_t blocks;
	bool write;
	bool used;
	struct nvmepeer_token token;
};

/**
 * struct program - the peer
 * @load: the load
 * @ctrl: the controller
 * @ns: its first namespace
 * @peer: the queue pair
 * @commands: each with a page of the peer's data
 * @ended: commands that ended in this exchange
 */
struct program {
	struct load *load;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct nvmepeer_cpu_peer *peer;
	struct command commands[LOAD_DEPTH];
	unsigned int ended;
};

/* --- commands ------------------------------------------------------------------- */

static uint64_t offset_of(const struct program *program, const struct command *command)
{
	return (uint64_t)(command - program->commands) * NP_PAGE;
}

static void *page_of(const struct program *program, const struct command *command)
{
	return (uint8_t *)nvmepeer_cpu_peer_address(program->peer) + offset_of(program, command);
}

static int send(struct program *program, struct command *command)
{
	const struct nvmepeer_command request = {
		.opcode = command->write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ,
		.blocks = command->blocks,
		.lba = ledger_place(&program->load->ledger, command->block) / NP_BLOCK,
		.buffer = nvmepeer_cpu_peer_data(program->peer),
		.offset = offset_of(program, command),
	};

	return nvmepeer_submit(nvmepeer_cpu_peer_queue(program->peer), &request, &command->token, SUBMIT_NS);
}

static int submit(struct program *program, struct command *command)
{
	struct ledger *ledger = &program->load->ledger;
	void *page = page_of(program, command);

	if (!load_choose(program->load, &command->block, &command->blocks, &command->write))
		return 0;
	command->used = true;
	if (command->write) {
		ledger_write(ledger, command->block, command->blocks, page);
	} else {
		ledger_read(ledger, command->block, command->blocks);
		memset(page, 0xee, NP_PAGE);
	}
	return send(program, command);
}

/* Its status; a negative one means that the result is unknown. */
static void end(struct program *program, struct command *command, int status)
{
	struct ledger *ledger = &program->load->ledger;
	const void *page = status ? NULL : page_of(program, command);

	command->used = false;
	if (command->write)
		ledger_written(ledger, command->block, command->blocks, !status);
	else if (!ledger_have_read(ledger, command->block, command->blocks, page))
		load_fail(program->load, "wrong data, read by the library", -EIO);
	if (!status)
		atomic_fetch_add(&program->load->done, 1);
}

/* Polls all commands in flight: 0, or the library's status of the queue pair. */
static int reap(struct program *program)
{
	struct command *command;
	int status;

	for (command = program->commands; command < program->commands + LOAD_DEPTH; command++) {
		if (!command->used)
			continue;
		status = nvmepeer_poll(nvmepeer_cpu_peer_queue(program->peer), command->token, NULL);
		if (status == NVMEPEER_AGAIN)
			continue;
		if (status < 0)
			return status;
		end(program, command, status);
		program->ended++;
	}
	return nvmepeer_check(nvmepeer_cpu_peer_queue(program->peer));
}

static int exchange(void *argument)
{
	struct program *program = argument;
	uint32_t depth = 1 + load_below(program->load, LOAD_DEPTH), i;
	int status = 0;

	for (i = 0; i < depth && !status; i++)
		if (!program->commands[i].used)
			status = submit(program, &program->commands[i]);
	return status ? status : reap(program);
}

/* --- loss and re-arm -------------------------------------------------------------- */

static uint32_t state_of(struct program *program)
{
	struct nvme_peer_qp_info info;

	if (nvmepeer_qp_info(nvmepeer_cpu_peer_qp(program->peer), &info, sizeof(info)))
		return NVME_PEER_QP_GONE;
	return info.state;
}

/* A doorbell is revoked before the status page reports the loss. */
static void wait_for_loss(struct program *program)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (state_of(program) == NVME_PEER_QP_LIVE && np_now_ms() < end)
		np_sleep_ms(1);
}

/* Retries if the controller refused. */
static int rearm(struct program *program)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = nvmepeer_cpu_peer_recover(program->peer, NP_TIMEOUT_MS);
	} while (ret == -EIO && np_now_ms() < end);
	return ret;
}

static void recover(struct program *program, void *bytes)
{
	struct load *load = program->load;
	uint32_t i;

	atomic_store(&load->noticed, load_now());
	wait_for_loss(program);
	for (i = 0; i < LOAD_DEPTH; i++)
		if (program->commands[i].used)
			end(program, &program->commands[i], NVMEPEER_E_LOST);
	load_wait_released(load);
	load_came_back(load, rearm(program), bytes);
}

static void serve(struct program *program, void *bytes)
{
	struct load *load = program->load;
	int64_t since = np_now_ms();
	int status;

	while (load_runs(load)) {
		program->ended = 0;
		/* The library's stores to a revoked doorbell raise SIGBUS. */
		status = np_catch_fault(exchange, program);
		if (program->ended)
			since = np_now_ms();
		if (status == NVMEPEER_E_LOST || status == -EFAULT) {
			recover(program, bytes);
			since = np_now_ms();
		} else if (status) {
			load_fail(load, "the library refuses a command", status);
		} else if (np_now_ms() > since + NP_TIMEOUT_MS) {
			load_fail(load, "no command ends, and the library reports no reason", -ETIMEDOUT);
		} else if (!program->ended) {
			np_sleep_ms(1);
		}
	}
}

/* There is no fault any more: all commands in flight complete. */
static void drain(struct program *program)
{
	uint32_t i;
	int status;

	for (i = 0; i < LOAD_DEPTH && !atomic_load(&program->load->error); i++) {
		if (!program->commands[i].used)
			continue;
		status = nvmepeer_wait(nvmepeer_cpu_peer_queue(program->peer),
				       program->commands[i].token, NULL,
				       NP_TIMEOUT_MS * 1000000ULL);
		end(program, &program->commands[i], status);
		if (status)
			load_fail(program->load, "a command does not succeed", -EIO);
	}
}

static void judge_by_library(struct program *program)
{
	struct load *load = program->load;
	uint32_t block;

	for (block = 0; block < LEDGER_BLOCKS && !atomic_load(&load->error); block += LEDGER_MOST) {
		if (nvmepeer_read(nvmepeer_cpu_peer_queue(program->peer),
				  nvmepeer_cpu_peer_data(program->peer), 0,
				  ledger_place(&load->ledger, block) / NP_BLOCK, LEDGER_MOST))
			load_fail(load, "the library cannot read", -EIO);
		else if (!ledger_have_read(&load->ledger, block, LEDGER_MOST,
					   nvmepeer_cpu_peer_address(program->peer)))
			load_fail(load, "wrong data, read by the library at the end", -EIO);
	}
}

/* --- method ----------------------------------------------------------------------- */

static void library_run(struct load *load, void *bytes)
{
	struct program *program = load->own;

	serve(program, bytes);
	if (atomic_load(&load->ended))
		return;
	drain(program);
	judge_by_library(program);
}

/* A namespace's generic node is created after its disk. */
static int wait_node(const struct np_ctrl *ctrl, uint32_t nsid)
{
	char format[32];
	int fd;

	snprintf(format, sizeof(format), "/dev/ngp%%dn%u", nsid);
	fd = np_open_node(ctrl, format, O_RDWR);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int open_pair(struct program *program, const struct np_ctrl *ctrl)
{
	char node[32];
	int ret;

	snprintf(node, sizeof(node), "/dev/nvmep%d", ctrl->instance);
	ret = nvmepeer_open(node, &program->ctrl) ?: wait_node(ctrl, program->load->nsid);
	if (ret)
		return ret;
	snprintf(node, sizeof(node), "/dev/ngp%dn%u", ctrl->instance, program->load->nsid);
	return nvmepeer_ns_open(node, &program->ns) ?:
	       nvmepeer_cpu_peer_open(program->ctrl, nvmepeer_ns_info(program->ns), LOAD_ENTRIES,
				      (size_t)LOAD_DEPTH * NP_PAGE, &program->peer);
}

static int library_open(struct load *load, const struct np_ctrl *ctrl)
{
	struct program *program = calloc(1, sizeof(*program));

	load->own = program;
	if (!program)
		return -ENOMEM;
	program->load = load;
	return open_pair(program, ctrl);
}

static void library_close(struct load *load)
{
	struct program *program = load->own;

	nvmepeer_cpu_peer_close(program->peer);
	nvmepeer_ns_close(program->ns);
	nvmepeer_close(program->ctrl);
	free(program);
}

const struct load_method load_by_library = {
	.name = "peer by the library",
	.peer = true,
	.open = library_open,
	.run = library_run,
	.close = library_close,
};
