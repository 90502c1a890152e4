// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded by unit-tool.sh: answers ioctls of the nvme-peer command on the empty files that
 * stand for controller nodes of a fake machine. FAKE_PAIRS queue pairs of peers exist and
 * FAKE_QUARANTINED queue IDs are quarantined. Routes are blocked by two ports with the ACS bits FAKE_ACS
 * and FAKE_ACS_ABOVE.
 */
#include <linux/nvme_ioctl.h>
#include <linux/nvme_peer.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t configured(const char *name)
{
	const char *value = getenv(name);

	return value ? (uint32_t)strtoul(value, NULL, 0) : 0;
}

/* 64 queue IDs, half of them for peers, 8 of the CPU. */
static void answer_info(struct nvme_peer_info *info)
{
	struct nvme_peer_info all = {
		.size = info->size,
		.state = NVME_PEER_CTRL_LIVE,
		.max_entries = 1024,
		.page_size = 4096,
		.max_transfer = 524288,
		.doorbell_stride = 4,
		.qids_total = 64,
		.qids_cpu = 8,
		.qids_peer_max = 32,
		.qids_peer_free = 32 - configured("FAKE_PAIRS"),
		.qids_quarantined = configured("FAKE_QUARANTINED"),
	};

	memcpy(info, &all, info->size < sizeof(all) ? info->size : sizeof(all));
}

/* SMART / Health Information: warnings, 50 degrees Celsius, counters. */
static void answer_log(unsigned char *log)
{
	static const unsigned char head[] = { 5, 0x43, 0x01, 97, 10, 3 };

	memcpy(log, head, sizeof(head));
	log[33] = 1;	/* data units read: 256 */
	log[48] = 7;	/* written */
	log[64] = 100;	/* reads */
	log[80] = 50;	/* writes */
	log[96] = 90;	/* busy, minutes */
	log[112] = 3;
	log[128] = 200;
	log[144] = 2;
}

static void answer_route(struct nvme_peer_route *route)
{
	route->data = (struct nvme_peer_path){
		.verdict = NVME_PEER_ROUTE_NONE,
		.reason = NVME_PEER_REASON_ACS_BLOCKED,
		.blocker_count = 2,
		.blockers = {
			{ .address = { .function = 0x200, .valid = 1 }, .acs = configured("FAKE_ACS") },
			{ .address = { .function = 0x8, .valid = 1 }, .acs = configured("FAKE_ACS_ABOVE") },
		},
	};
	route->doorbell = route->data;
}

int ioctl(int fd, unsigned long command, ...)
{
	va_list arguments;
	void *argument;

	(void)fd;
	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == NVME_PEER_INFO)
		answer_info(argument);
	else if (command == NVME_PEER_ROUTE)
		answer_route(argument);
	else if (command == NVME_IOCTL_ADMIN_CMD)
		answer_log((void *)(uintptr_t)((struct nvme_passthru_cmd *)argument)->addr);
	else
		return -1;
	return 0;
}
