// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cost and wake-up time of relay mode, and cost of mediated mode, in a guest with one processor whose
 * clock counts instructions (selftests/run --icount).
 *
 * usage: relay_cost
 *
 * Prints "NAME FIGURE MOST" for each, and fails if a figure is larger than MOST:
 *
 *  instructions	of the polls that found a new doorbell, a command of 4 KiB, in batches of 32
 *  warm_us	time from a store to the write of the register, microseconds, in the first
 *			10 ms after the last doorbell: that of 95 of 100 stores is shorter
 *  cold_us		the same, later
 *  kick_us		the same, with a kick
 *  mediated		as "instructions", in mediated mode: from the tail to the doorbell, and from the entry
 *			of the controller to that of the queue pair
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "tenant.h"

#define ENTRIES		64U
#define BATCH		32U
#define BATCHES		100U
#define SAMPLES		100U
#define INSTRUCTION_NS	2.0

static bool failed;

static void die(const char *what, int result)
{
	fprintf(stderr, "relay_cost: %s: %d\n", what, result);
	exit(1);
}

static void report(const char *name, double figure, double most)
{
	printf("%s %.0f %.0f\n", name, figure, most);
	failed |= figure > most;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned long long busy_ns(void)
{
	struct np_pollers pollers;
	int ret = np_pollers_read(&pollers);

	if (ret)
		die("pollers", ret);
	return pollers.busy_ns;
}

static uint64_t doorbell_writes(const struct np_qp *qp)
{
	struct nvme_peer_qp_info info;
	int ret = np_qp_info(qp->fd, &info);

	if (ret)
		die("NVME_PEER_QP_INFO", ret);
	return info.cpu_doorbell_writes;
}

static void run_batch(struct np_qp *qp, const struct np_command *command)
{
	unsigned int i;
	int ret;

	for (i = 0; i < BATCH; i++)
		np_qp_put(qp, command);
	ret = np_qp_ring_doorbell(qp);
	for (i = 0; i < BATCH && !ret; i++)
		ret = np_qp_reap(qp, NULL, NP_TIMEOUT_MS);
	if (ret)
		die("read", ret);
}

static double instructions(struct np_qp *qp, const struct np_command *command)
{
	unsigned long long before = busy_ns();
	unsigned int i;

	for (i = 0; i < BATCHES; i++)
		run_batch(qp, command);
	return (double)(busy_ns() - before) / INSTRUCTION_NS / (BATCHES * BATCH);
}

static void kick(const struct np_qp *qp)
{
	struct nvme_peer_qp_kick request = { .size = sizeof(request) };
	int ret = np_ioctl(qp->fd, NVME_PEER_QP_KICK, &request);

	if (ret)
		die("NVME_PEER_QP_KICK", ret);
}

/* Nanoseconds from the store of a tail to its register, @idle_ms after the last doorbell. */
static uint64_t wake_up(struct np_qp *qp, unsigned int idle_ms, bool with_kick)
{
	const struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	uint64_t writes, began, took;

	np_sleep_ms((int)idle_ms);
	writes = doorbell_writes(qp);
	np_qp_put(qp, &command);
	began = now_ns();
	np_qp_ring_doorbell(qp);
	if (with_kick)
		kick(qp);
	/* The thread of the kernel preempts this one, or takes the processor here. */
	do {
		sched_yield();
		took = now_ns() - began;
	} while (doorbell_writes(qp) == writes);
	if (np_qp_reap(qp, NULL, NP_TIMEOUT_MS))
		die("flush", -1);
	/* Until the head is written, too. */
	while (doorbell_writes(qp) < writes + 2)
		sched_yield();
	return took;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Other activity of the guest delays some of them. */
static double usual_us(struct np_qp *qp, unsigned int idle_ms, bool with_kick)
{
	uint64_t took[SAMPLES];
	unsigned int i;

	for (i = 0; i < SAMPLES; i++)
		took[i] = wake_up(qp, idle_ms + i % 8, with_kick);
	qsort(took, SAMPLES, sizeof(*took), compare);
	return (double)took[SAMPLES * 95 / 100] / 1000;
}

static void measure_relay(const struct np_ctrl *ctrl)
{
	struct np_command command;
	struct np_buffer buffer;
	struct np_qp qp;
	int ret;

	np_qp_set_mode(NVME_PEER_MODE_RELAY);
	ret = np_buffer_open(&buffer, ctrl->fd, 2, 0) ?: np_qp_open(&qp, ctrl->fd, ENTRIES);
	if (ret)
		die("relay mode", ret);
	np_command_rw(&command, &buffer, NVMEPEER_OP_READ, NP_AREA(9), 0, NP_PAGE);
	report("instructions", instructions(&qp, &command), 150);
	report("warm_us", usual_us(&qp, 1, false), 100);
	report("cold_us", usual_us(&qp, 40, false), 1100);
	report("kick_us", usual_us(&qp, 40, true), 100);
	np_qp_close(&qp);
	np_buffer_close(&buffer);
}

static void measure_mediated(const struct np_ctrl *ctrl)
{
	int disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDONLY);
	struct np_command command;
	struct np_memory memory;
	struct np_qp qp;
	uint32_t window;
	int ret;

	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ret = np_memory_alloc(&memory, ctrl->fd) ?: np_qp_open(&qp, ctrl->fd, ENTRIES);
	if (!ret)
		ret = np_buf_add(&qp, memory.fd, 0, &memory.slot) ?: np_window_add(&qp, disk, 0, 0, &window);
	if (ret)
		die("mediated mode", ret);
	command = np_window_command(NVMEPEER_OP_READ, window, 0, NP_PAGE / NP_BLOCK, memory.slot, 0);
	report("mediated", instructions(&qp, &command), 850);
	np_qp_close(&qp);
	np_memory_free(&memory);
	close(disk);
}

int main(void)
{
	struct np_ctrl ctrl;
	int ret = np_ctrl_open(&ctrl, "np0");

	if (ret)
		die("np0", ret);
	measure_relay(&ctrl);
	measure_mediated(&ctrl);
	np_ctrl_close(&ctrl);
	return failed;
}
