// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initiator 1: unmodified fio, which writes to a part of the generic namespace node
 * through io_uring passthrough and verifies all that it wrote.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "fio.h"

enum {
	FIO_BLOCK = 4096,
	/* fio reports its first I/O after a second. */
	FIO_MARGIN = 4,
};

/* Fields of fio's terse output, version 3, counted from 0. */
enum {
	TERSE_ERROR = 4,
	TERSE_READ_KIB = 5,
	TERSE_WRITE_KIB = 46,
	TERSE_FIELDS = 47,
};

static bool parse_terse(char *line, uint64_t fields[TERSE_FIELDS])
{
	char *rest = line, *field;
	int i;

	for (i = 0; i < TERSE_FIELDS; i++) {
		field = strsep(&rest, ";");
		if (!field)
			return false;
		fields[i] = strtoull(field, NULL, 10);
	}
	return fields[0] == 3;
}

/* fio prints totals, not differences to the last line. */
static void count_line(char *line, struct tally *tally)
{
	uint64_t fields[TERSE_FIELDS], read, written;

	if (!parse_terse(line, fields)) {
		report_error(false, "fio: %s", line);
		return;
	}
	read = fields[TERSE_READ_KIB] * 1024;
	written = fields[TERSE_WRITE_KIB] * 1024;
	tally->ios = (read + written) / FIO_BLOCK;
	tally->bytes = read + written;
	tally->verified = read;
	if (fields[TERSE_ERROR])
		tally->errors = 1;
}

void fio_run(const struct demo *demo, struct tally *tally)
{
	char command[1024], line[4096];
	FILE *fio;

	snprintf(command, sizeof(command),
		 "exec fio --name=demo --thread --ioengine=io_uring_cmd --cmd_type=nvme "
		 "--filename=/dev/%s --offset=%" PRIu64 " --size=%" PRIu64 " "
		 "--rw=randwrite --bs=%d --iodepth=4 --time_based --runtime=%u "
		 "--verify=crc32c --verify_backlog=128 --verify_fatal=1 --verify_state_save=0 "
		 "--terse-version=3 --output-format=terse --status-interval=1 --eta=never 2>&1",
		 demo->namespace_node, demo->fio_region.first * demo->block_size,
		 demo->fio_region.blocks * demo->block_size, FIO_BLOCK,
		 demo->seconds + FIO_MARGIN);
	fio = popen(command, "re");
	if (!fio) {
		report_error(false, "cannot start fio");
		tally->errors++;
		return;
	}
	while (fgets(line, sizeof(line), fio)) {
		line[strcspn(line, "\n")] = 0;
		count_line(line, tally);
	}
	if (pclose(fio)) {
		report_error(false, "fio failed");
		tally->errors++;
	}
}
