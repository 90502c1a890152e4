// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer smart: the controller's own counters, SMART / Health Information (NVM
 * Express base specification 2.0, 5.16.1.3).
 *
 * The controller counts what peers have it do as well as what the CPU does, so they
 * are the check of any benchmark.
 */
#include <nvmepeer.h>

#include "nvme-peer.h"
#include "units.h"

enum {
	GET_LOG_PAGE = 0x02,
	LOG_SMART = 0x02,
	LOG_BYTES = 512,
	ALL_NAMESPACES = 0xffffffff,
	DATA_UNIT = 512000,	/* bytes: a thousand blocks of 512 */
	ZERO_CELSIUS = 273,	/* in kelvin */
	UNIT_TEXT = 48,
};

/* Names as in the JSON of nvme-cli's smart-log, which programs know. */
static const struct {
	const char *name;
	size_t offset;
	size_t length;
	const char *unit;
} numbers[] = {
	{ "critical_warning", 0, 1, "0 is good" },
	{ "temperature", 1, 2, "kelvin" },
	{ "avail_spare", 3, 1, "percent" },
	{ "spare_thresh", 4, 1, "percent" },
	{ "percent_used", 5, 1, "percent" },
	{ "data_units_read", 32, 16, NULL },
	{ "data_units_written", 48, 16, NULL },
	{ "host_read_commands", 64, 16, NULL },
	{ "host_write_commands", 80, 16, NULL },
	{ "controller_busy_time", 96, 16, "minutes" },
	{ "power_cycles", 112, 16, NULL },
	{ "power_on_hours", 128, 16, NULL },
	{ "unsafe_shutdowns", 144, 16, NULL },
	{ "media_errors", 160, 16, NULL },
	{ "num_err_log_entries", 176, 16, NULL },
};

/* Little endian. What does not fit, of 16 bytes, no disk lives to count. */
static uint64_t number_at(const uint8_t *bytes, size_t length)
{
	uint64_t value = 0;
	size_t i;

	for (i = length < 8 ? length : 8; i; i--)
		value = value << 8 | bytes[i - 1];
	return value;
}

static int read_log(struct nvmepeer *ctrl, uint8_t log[LOG_BYTES])
{
	struct nvme_passthru_cmd command = {
		.opcode = GET_LOG_PAGE,
		.nsid = ALL_NAMESPACES,
		.addr = (uintptr_t)log,
		.data_len = LOG_BYTES,
		.cdw10 = (LOG_BYTES / 4 - 1) << 16 | LOG_SMART,
	};

	return nvmepeer_admin(ctrl, &command);
}

/* For people the units of data and of temperature are those of daily life. */
static const char *unit_of(size_t number, uint64_t value, char text[UNIT_TEXT])
{
	char bytes[UNITS_TEXT];

	if (numbers[number].offset == 1)
		snprintf(text, UNIT_TEXT, "kelvin, %d degrees Celsius", (int)value - ZERO_CELSIUS);
	else if (numbers[number].offset == 32 || numbers[number].offset == 48)
		snprintf(text, UNIT_TEXT, "(%s)", units_disk(value * DATA_UNIT, bytes));
	else
		return numbers[number].unit;
	return text;
}

static void report_log(struct report *report, const uint8_t log[LOG_BYTES])
{
	uint64_t value;
	char unit[UNIT_TEXT];
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		value = number_at(log + numbers[i].offset, numbers[i].length);
		report_number(report, numbers[i].name, value, unit_of(i, value, unit));
	}
}

int command_smart(struct report *report, const struct options *options, int argc, char **argv)
{
	uint8_t log[LOG_BYTES] = { 0 };
	struct nvmepeer *ctrl;
	int result;

	(void)options;
	if (argc != 1)
		return usage_error("smart takes one controller node", NULL);
	result = nvmepeer_open(argv[0], &ctrl);
	if (!result) {
		result = read_log(ctrl, log);
		nvmepeer_close(ctrl);
	}
	if (result) {
		report_failure(report);
		return EXIT_REFUSED;
	}
	report_log(report, log);
	return 0;
}
