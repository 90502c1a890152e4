// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load of a peer that uses the user library as a program would: each loss is one status,
 * and one call re-arms the queue pair; see load_peer.h.
 */
#include "load_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SUBMIT_NS	1000000000ULL

/**
 * struct program - the peer
 * @peer: what all peers have
 * @ctrl: the controller
 * @ns: its first namespace
 * @cpu: the queue pair
 */
struct program {
	struct load_peer peer;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct nvmepeer_cpu_peer *cpu;
};

static struct nvmepeer_cpu_peer *cpu_of(struct load_peer *peer)
{
	return ((struct program *)peer)->cpu;
}

static int library_send(struct load_peer *peer, struct load_command *command)
{
	const struct nvmepeer_command request = {
		.opcode = command->write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ,
		.blocks = command->blocks,
		.lba = ledger_place(&peer->load->ledger, command->block) / NP_BLOCK,
		.buffer = nvmepeer_cpu_peer_data(cpu_of(peer)),
		.offset = load_peer_offset(peer, command),
	};

	return nvmepeer_submit(nvmepeer_cpu_peer_queue(cpu_of(peer)), &request, &command->token,
			       SUBMIT_NS);
}

/* Polls all commands in flight. Once the load has been stopped, there is no fault. */
static int library_reap(struct load_peer *peer)
{
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(cpu_of(peer));
	struct load_command *command;
	int status;

	for (command = peer->commands; command < peer->commands + LOAD_DEPTH; command++) {
		if (!command->used)
			continue;
		status = nvmepeer_poll(queue, command->token, NULL);
		if (status == NVMEPEER_AGAIN)
			continue;
		if (status < 0)
			return status;
		load_peer_end(peer, command, status);
		if (status && !load_runs(peer->load))
			load_fail(peer->load, "a command does not succeed", -EIO);
	}
	return nvmepeer_check(queue);
}

static uint32_t library_state(struct load_peer *peer)
{
	struct nvme_peer_qp_info info;

	if (nvmepeer_qp_info(nvmepeer_cpu_peer_qp(cpu_of(peer)), &info, sizeof(info)))
		return NVME_PEER_QP_GONE;
	return info.state;
}

static int library_rearm(struct load_peer *peer)
{
	return nvmepeer_cpu_peer_recover(cpu_of(peer), NP_TIMEOUT_MS);
}

static int library_read(struct load_peer *peer, uint32_t block)
{
	return nvmepeer_read(nvmepeer_cpu_peer_queue(cpu_of(peer)), nvmepeer_cpu_peer_data(cpu_of(peer)), 0,
			     ledger_place(&peer->load->ledger, block) / NP_BLOCK, LEDGER_MOST);
}

static const struct load_peer_calls calls = {
	.send = library_send,
	.reap = library_reap,
	.state = library_state,
	.rearm = library_rearm,
	.read = library_read,
};

/* --- method ----------------------------------------------------------------------- */

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
	uint32_t nsid = program->peer.load->nsid;
	char node[32];
	int ret;

	snprintf(node, sizeof(node), "/dev/nvmep%d", ctrl->instance);
	ret = nvmepeer_open(node, &program->ctrl) ?: wait_node(ctrl, nsid);
	if (ret)
		return ret;
	snprintf(node, sizeof(node), "/dev/ngp%dn%u", ctrl->instance, nsid);
	return nvmepeer_ns_open(node, &program->ns) ?:
	       nvmepeer_cpu_peer_open(program->ctrl, nvmepeer_ns_info(program->ns), LOAD_ENTRIES,
				      (size_t)LOAD_DEPTH * NP_PAGE, &program->cpu);
}

static int library_open(struct load *load, const struct np_ctrl *ctrl)
{
	struct program *program = calloc(1, sizeof(*program));
	int ret;

	load->own = program;
	if (!program)
		return -ENOMEM;
	program->peer = (struct load_peer){ .load = load, .calls = &calls };
	ret = open_pair(program, ctrl);
	if (!ret)
		program->peer.bytes = nvmepeer_cpu_peer_address(program->cpu);
	return ret;
}

static void library_close(struct load *load)
{
	struct program *program = load->own;

	nvmepeer_cpu_peer_close(program->cpu);
	nvmepeer_ns_close(program->ns);
	nvmepeer_close(program->ctrl);
	free(program);
}

const struct load_method load_by_library = {
	.name = "peer by the library",
	.peer = true,
	.open = library_open,
	.run = load_peer_run,
	.close = library_close,
};
