// SPDX-License-Identifier: GPL-2.0-only
/*
 * The power cuts of lib/store/tests/power.c, on namespaces of badctrl through the module's block
 * devices: the members lose a random subset of unflushed blocks, writes are torn at logical
 * blocks, and members are cut separately. What the model of disks does there, badctrl does here.
 *
 * usage: store_power [CUTS [SEED]]
 *
 * kernels: 7
 * iommu: on
 * timeout: 120
 * arguments: 60
 * long-timeout: 3600
 * long-arguments: 1000
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npbad.h"
#include "../../lib/store/tests/model.h"

enum { DISKS = 3, ALL_DISKS = (1 << DISKS) - 1, WINDOW = 16384 };

/**
 * struct guest - badctrl in the model's place
 * @bad: the controller, opened by the first model_reset()
 * @disks: namespaces, for peers; -1 while badctrl is not bound
 * @block: logical block of all of them
 * @random: state of model_random()
 * @opened: @bad has to be closed
 * @bound: and is bound
 */
static struct {
	struct np_bad bad;
	int disks[DISKS];
	uint32_t block;
	uint64_t random;
	bool opened;
	bool bound;
} guest;

/* The test has no way on. */
static void must(int error, const char *what)
{
	if (!error)
		return;
	printf("not ok 1 %s: %s\n", what, strerror(-error));
	exit(1);
}

static void name(uint32_t disk, char *text)
{
	sprintf(text, "disk%u", disk);
}

static void unbind(void)
{
	for (int i = 0; i < DISKS; i++)
		if (guest.disks[i] >= 0)
			close(guest.disks[i]);
	memset(guest.disks, 0xff, sizeof(guest.disks));
	guest.bound = false;
	must(np_bad_unbind(&guest.bad), "badctrl is unbound");
}

static void leave(void)
{
	if (!guest.opened)
		return;
	guest.opened = false;
	unbind();
	must(np_bad_close(&guest.bad), "nothing is left behind");
}

static void open_badctrl(void)
{
	char folder[] = "/tmp/store-XXXXXX";
	int error = np_bad_open(&guest.bad);

	if (error == -ENOENT) {
		puts("ok 1 # SKIP no badctrl in this guest");
		exit(0);
	}
	must(error, "badctrl is opened");
	guest.opened = true;
	atexit(leave);
	must(!mkdtemp(folder) || chdir(folder) ? -errno : 0, "a folder for names");
}

/* Disks of zeros. The members of power.c are names of namespaces. */
void model_reset(uint64_t seed)
{
	if (!guest.opened)
		open_badctrl();
	unbind();
	must(np_bad_set(&guest.bad, BADCTRL_DEFAULTS, 1) ?:
	     np_bad_set(&guest.bad, BADCTRL_MODE, BADCTRL_WORKS) ?:
	     np_bad_set(&guest.bad, BADCTRL_ACTIVE, ALL_DISKS) ?:
	     np_bad_set(&guest.bad, BADCTRL_POWER(BADCTRL_POWER_RANDOM), (uint32_t)seed),
	     "badctrl is set up");
	guest.random = seed * 2654435761u + 1;
	guest.block = MODEL_BLOCK;
}

/* The logical block of all namespaces, 512 or 4096 bytes, and their length in blocks. */
void model_block(uint32_t disk, uint32_t bytes)
{
	(void)disk;
	guest.block = bytes;
	if (bytes != MODEL_BLOCK)
		must(np_bad_large_blocks(&guest.bad), "blocks of 4096 bytes");
}

static void show(uint32_t disk)
{
	char text[16], node[32];

	name(disk, text);
	unlink(text);
	snprintf(node, sizeof(node), "/dev/nvmep%dn%u", guest.bad.ctrl.instance, disk + 1);
	must(symlink(node, text) ? -errno : 0, "the name of a member");
}

static void bind(void)
{
	char pattern[32];

	must(np_bad_bind(&guest.bad, DISKS), "badctrl is bound");
	guest.bound = true;
	for (uint32_t i = 0; i < DISKS; i++) {
		snprintf(pattern, sizeof(pattern), "/dev/nvmep%%dn%u", i + 1);
		guest.disks[i] = np_open_node(&guest.bad.ctrl, pattern, O_RDWR | O_DIRECT);
		must(guest.disks[i] < 0 ? guest.disks[i] : 0, "a namespace is opened");
		show(i);
	}
}

void model_start(void)
{
	if (!guest.bound)
		bind();
	model_arm(MODEL_CUT, 0, 0);
	must(np_bad_set_power_off(&guest.bad, 0), "power is on");
}

uint32_t model_random(uint32_t range)
{
	guest.random = guest.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(guest.random >> 33) % range;
}

void model_arm(enum model_end end, uint32_t commands, uint32_t disks)
{
	uint32_t keeps = end == MODEL_KILL ? BADCTRL_CUT_KEEPS : 0;

	must(np_bad_arm_cut(&guest.bad, commands, disks | keeps), "power will be cut");
}

void model_end(enum model_end end, uint32_t disks)
{
	model_arm(end, 0, 0);
	if (end == MODEL_KILL)
		must(np_bad_set_power_off(&guest.bad, disks | model_ended()), "the process ends");
	else
		must(np_bad_cut_namespaces(&guest.bad, disks), "power is cut");
}

uint32_t model_ended(void)
{
	return np_bad_power_off(&guest.bad);
}

void model_hide(uint32_t disk, int error)
{
	char text[16];

	if (!error) {
		show(disk);
		return;
	}
	name(disk, text);
	must(unlink(text) ? -errno : 0, "a member is hidden");
}

/* The whole blocks that have these bytes: their offset in the first one. */
static size_t window_of(uint64_t offset, uint64_t bytes, uint64_t *start, size_t *length)
{
	size_t into = (size_t)(offset % guest.block);

	*start = offset - into + MODEL_OFFSET;
	*length = (into + bytes + guest.block - 1) / guest.block * guest.block;
	return into;
}

/* A peer pads its last block. A power cut may come before. */
void model_peer_write(uint32_t disk, uint64_t offset, const void *data, uint64_t bytes)
{
	static _Alignas(4096) uint8_t window[WINDOW];
	uint64_t start;
	size_t length, into = window_of(offset, bytes, &start, &length);

	memset(window, 0, length);
	memcpy(window + into, data, bytes);
	if (pwrite(guest.disks[disk], window, length, (off_t)start) != (ssize_t)length && !model_ended())
		must(-EIO, "a peer writes");
}

void model_peer_read(uint32_t disk, uint64_t offset, void *data, uint64_t bytes)
{
	static _Alignas(4096) uint8_t window[WINDOW];
	uint64_t start;
	size_t length, into = window_of(offset, bytes, &start, &length);

	must(np_disk_read(guest.disks[disk], window, length, start), "a peer reads");
	memcpy(data, window + into, bytes);
}
