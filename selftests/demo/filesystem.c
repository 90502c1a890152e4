// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initiator 2: ext4 on a partition of the block device. filesystem.sh copies a tree,
 * drops the caches and compares; this counts its rounds and the block layer's I/Os.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "filesystem.h"

/* Documentation/block/stat.rst of the kernel: reads, merges, sectors, ms, writes, ... */
bool block_count(const char *device, struct block_count *count)
{
	uint64_t reads, read_sectors, writes, written_sectors;
	char path[128];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), "/sys/class/block/%s/stat", device);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fscanf(file, "%" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64,
		       &reads, &read_sectors, &writes, &written_sectors);
	fclose(file);
	if (found != 4)
		return false;
	count->reads = reads;
	count->writes = writes;
	count->bytes = (read_sectors + written_sectors) * SECTOR;
	return true;
}

/* "round NUMBER BYTES": the bytes of one round were compared and equal. */
static void count_line(const char *line, struct tally *tally)
{
	uint64_t bytes;

	if (sscanf(line, "round %*u %" SCNu64, &bytes) == 1) {
		tally->verified += bytes;
		return;
	}
	report_error(false, "ext4: %s", line);
	tally->errors++;
}

void filesystem_run(const struct demo *demo, struct tally *tally)
{
	char command[512], line[512];
	FILE *script;

	snprintf(command, sizeof(command), "exec \"$(dirname \"$DEMO\")\"/filesystem.sh /dev/%s %s %s 2>&1",
		 demo->ext4_partition, demo->tree, demo->stop_file);
	script = popen(command, "re");
	if (!script) {
		report_error(false, "cannot start filesystem.sh");
		tally->errors++;
		return;
	}
	while (fgets(line, sizeof(line), script)) {
		line[strcspn(line, "\n")] = 0;
		count_line(line, tally);
	}
	if (pclose(script)) {
		report_error(false, "filesystem.sh failed");
		tally->errors++;
	}
}
