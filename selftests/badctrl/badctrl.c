// SPDX-License-Identifier: GPL-2.0-only
/*
 * badctrl: an NVMe controller that cannot be brought up, for tests of
 * nvme-peer in virtual machines.
 *
 *	badctrl --socket PATH
 *
 * A PCI function to QEMU's vfio-user-pci.  It has the registers of a controller
 * and nothing behind them; how it fails is set by a register (badctrl.h).
 */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "badctrl.h"
#include "vfio_user.h"

/* Registers, NVMe base specification 3.1.4. */
#define REG_CAP		0x00
#define REG_VS		0x08
#define REG_CC		0x14
#define REG_CSTS	0x1c
#define DOORBELLS	0x1000

#define CC_ENABLE	(1U << 0)
#define CSTS_READY	(1U << 0)
#define CSTS_FATAL	(1U << 1)

#define CAP_ENTRIES	63ULL		/* MQES, 0-based */
#define CAP_CONTIGUOUS	(1ULL << 16)	/* CQR */
#define CAP_TIMEOUT	(2ULL << 24)	/* TO, half seconds */
#define CAP_NVM		(1ULL << 37)	/* CSS */
#define CAP_MPSMIN_64K	(4ULL << 48)

/**
 * struct badctrl - the controller; only the thread that serves touches it
 * @registers: of the whole BAR, as last written
 * @stuck: was ready once and never stops
 */
struct badctrl {
	uint8_t registers[BADCTRL_BAR_BYTES];
	bool stuck;
};

static uint32_t load32(const struct badctrl *ctrl, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, ctrl->registers + offset, sizeof(value));
	return le32toh(value);
}

static void store32(struct badctrl *ctrl, uint32_t offset, uint32_t value)
{
	value = htole32(value);
	memcpy(ctrl->registers + offset, &value, sizeof(value));
}

static uint64_t capabilities(uint32_t mode)
{
	uint64_t cap = CAP_CONTIGUOUS | CAP_TIMEOUT | CAP_NVM;

	if (mode != BADCTRL_NO_QUEUE)
		cap |= CAP_ENTRIES;
	if (mode == BADCTRL_HUGE_PAGES)
		cap |= CAP_MPSMIN_64K | CAP_MPSMIN_64K << 4;
	return cap;
}

/* CSTS after CC was written: nothing takes time, it happens or it never does. */
static uint32_t status(struct badctrl *ctrl, uint32_t mode)
{
	bool enabled = load32(ctrl, REG_CC) & CC_ENABLE;

	switch (mode) {
	case BADCTRL_FATAL:
		return enabled ? CSTS_FATAL : 0;
	case BADCTRL_SILENT:
		return enabled ? CSTS_READY : 0;
	case BADCTRL_NEVER_STOPS:
		ctrl->stuck |= enabled;
		return ctrl->stuck ? CSTS_READY : 0;
	default:
		return 0;
	}
}

static void update(struct badctrl *ctrl)
{
	uint32_t mode = load32(ctrl, BADCTRL_REG_MODE);
	uint64_t cap = htole64(capabilities(mode));

	memcpy(ctrl->registers + REG_CAP, &cap, sizeof(cap));
	store32(ctrl, REG_VS, 0x00010400);
	store32(ctrl, REG_CSTS, status(ctrl, mode));
}

static void bar_read(void *context, unsigned int bar, uint64_t offset, void *data, uint32_t count)
{
	const struct badctrl *ctrl = context;

	(void)bar;
	if (load32(ctrl, BADCTRL_REG_MODE) == BADCTRL_GONE && offset < BADCTRL_REG_MODE)
		memset(data, 0xff, count);
	else
		memcpy(data, ctrl->registers + offset, count);
}

static void bar_write(void *context, unsigned int bar, uint64_t offset, const void *data,
		      uint32_t count)
{
	struct badctrl *ctrl = context;

	(void)bar;
	memcpy(ctrl->registers + offset, data, count);
	if (offset == BADCTRL_REG_MODE)
		store32(ctrl, BADCTRL_REG_EARLY, 0);
	if (offset >= DOORBELLS && offset < BADCTRL_REG_MODE &&
	    !(load32(ctrl, REG_CSTS) & CSTS_READY))
		store32(ctrl, BADCTRL_REG_EARLY, load32(ctrl, BADCTRL_REG_EARLY) + 1);
	update(ctrl);
}

/* The mode survives a function reset: the driver may try one to get it going. */
static void reset(void *context, enum vfu_reset why)
{
	struct badctrl *ctrl = context;
	uint32_t mode = why == VFU_RESET_FUNCTION ? load32(ctrl, BADCTRL_REG_MODE) : 0;

	memset(ctrl, 0, sizeof(*ctrl));
	store32(ctrl, BADCTRL_REG_MODE, mode);
	update(ctrl);
}

static const struct vfu_device device = {
	.vendor_id = BADCTRL_VENDOR,
	.device_id = BADCTRL_DEVICE,
	.class_code = 0x010802,
	.vectors = 1,
	.bars = { [0] = { .size = BADCTRL_BAR_BYTES, .is_64bit = true, .fd = -1 } },
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
};

static int serve(struct vfu *vfu, const char *path)
{
	int listener = vfu_listen(path), client;

	if (listener < 0)
		return listener;
	client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (client < 0)
		return -errno;
	return vfu_serve(vfu, client);
}

int main(int argc, char **argv)
{
	static struct badctrl ctrl;
	struct vfu *vfu;
	int ret;

	if (argc != 3 || strcmp(argv[1], "--socket")) {
		fputs("usage: badctrl --socket PATH\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	update(&ctrl);
	vfu = vfu_create(&device, &ctrl);
	if (!vfu)
		return 1;
	ret = serve(vfu, argv[2]);
	if (ret)
		fprintf(stderr, "badctrl: %s\n", strerror(-ret));
	unlink(argv[2]);
	vfu_destroy(vfu);
	return ret ? 1 : 0;
}
