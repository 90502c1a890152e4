// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer smart: counters and health of the controller, SMART / Health Information
 * (NVM Express base specification 2.0, 5.16.1.3).
 *
 * The controller counts the commands of peers and of the CPU, so its counters verify a
 * benchmark.
 */
#include <nvmepeer.h>
#include <string.h>

#include "../lib/nvme.h"
#include "nvme-peer.h"
#include "smart.h"
#include "units.h"

enum {
	DATA_UNIT = 512000,	/* bytes: a thousand blocks of 512 */
	ZERO_CELSIUS = 273,	/* in kelvin */
	TEXT = 256,
};

static void warning_text(uint64_t value, char text[TEXT])
{
	static const char *const bits[] = {
		"spare below its threshold", "temperature beyond a threshold", "reliability degraded",
		"read-only", "volatile memory backup failed", "persistent memory region unreliable",
	};
	size_t i, length = 0;

	snprintf(text, TEXT, "none");
	for (i = 0; i < 8; i++)
		if (value >> i & 1)
			length += (size_t)snprintf(text + length, TEXT - length, "%s%s", length ? ", " : "",
						   i < sizeof(bits) / sizeof(bits[0]) ? bits[i] : "reserved");
}

static void temperature_text(uint64_t value, char text[TEXT])
{
	snprintf(text, TEXT, "%d °C", (int)value - ZERO_CELSIUS);
}

static void data_text(uint64_t value, char text[TEXT])
{
	units_disk(value * DATA_UNIT, text);
}

static void minutes_text(uint64_t value, char text[TEXT])
{
	snprintf(text, TEXT, "%llu h %u min", (unsigned long long)value / 60, (unsigned int)(value % 60));
}

/* Names as in the JSON output of nvme smart-log (nvme-cli). */
static const struct {
	const char *name;
	size_t offset;
	size_t length;
	const char *unit;
	void (*rounded)(uint64_t value, char text[TEXT]);
} numbers[] = {
	{ "critical_warning", 0, 1, "", warning_text },
	{ "temperature", 1, 2, "kelvin", temperature_text },
	{ "avail_spare", 3, 1, "%", NULL },
	{ "spare_thresh", 4, 1, "%", NULL },
	{ "percent_used", 5, 1, "%", NULL },
	{ "data_units_read", 32, 16, "units of 512,000 bytes", data_text },
	{ "data_units_written", 48, 16, "units of 512,000 bytes", data_text },
	{ "host_read_commands", 64, 16, NULL, NULL },
	{ "host_write_commands", 80, 16, NULL, NULL },
	{ "controller_busy_time", 96, 16, "minutes", minutes_text },
	{ "power_cycles", 112, 16, NULL, NULL },
	{ "power_on_hours", 128, 16, NULL, NULL },
	{ "unsafe_shutdowns", 144, 16, NULL, NULL },
	{ "media_errors", 160, 16, NULL, NULL },
	{ "num_err_log_entries", 176, 16, NULL, NULL },
};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

/* Little endian. Counters of 16 bytes are truncated to 64 bits. */
static uint64_t number_at(const uint8_t *bytes, size_t length)
{
	uint64_t value = 0;
	size_t i;

	for (i = length < 8 ? length : 8; i; i--)
		value = value << 8 | bytes[i - 1];
	return value;
}

int smart_read(struct nvmepeer *ctrl, uint8_t log[SMART_BYTES])
{
	struct nvme_passthru_cmd command = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)log,
		.data_len = SMART_BYTES,
		.cdw10 = (SMART_BYTES / 4 - 1) << 16 | NVME_LOG_HEALTH,
	};

	return nvmepeer_admin(ctrl, &command);
}

uint64_t smart_number(const uint8_t log[SMART_BYTES], const char *name)
{
	size_t i;

	for (i = 0; i < NUMBERS; i++)
		if (!strcmp(numbers[i].name, name))
			return number_at(log + numbers[i].offset, numbers[i].length);
	return 0;
}

static void report_log(struct report *report, const uint8_t log[SMART_BYTES])
{
	char text[TEXT];
	uint64_t value;
	size_t i;

	for (i = 0; i < NUMBERS; i++) {
		value = number_at(log + numbers[i].offset, numbers[i].length);
		if (numbers[i].rounded)
			numbers[i].rounded(value, text);
		if (numbers[i].rounded)
			report_rounded(report, numbers[i].name, value, numbers[i].unit, NULL, text);
		else
			report_number(report, numbers[i].name, value, numbers[i].unit);
	}
}

int command_smart(struct report *report, const struct options *options, int argc, char **argv)
{
	uint8_t log[SMART_BYTES] = { 0 };
	struct nvmepeer *ctrl;
	int result;

	(void)options;
	if (argc != 1)
		return usage_error("smart takes one controller node", NULL);
	result = nvmepeer_open(argv[0], &ctrl);
	if (!result) {
		result = smart_read(ctrl, log);
		nvmepeer_close(ctrl);
	}
	if (result) {
		report_failure(report);
		return EXIT_REFUSED;
	}
	report_log(report, log);
	return 0;
}
