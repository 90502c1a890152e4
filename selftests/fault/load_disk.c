// SPDX-License-Identifier: GPL-2.0-only
/* The CPU's load, through the block device: see load.h. */
#include "load.h"

static void disk_run(struct load *load, void *bytes)
{
	uint32_t block, blocks;
	bool write;

	while (load_runs(load)) {
		if (!load_choose(load, &block, &blocks, &write))
			continue;
		if (write)
			load_disk_write(load, block, blocks, bytes);
		else
			load_disk_read(load, block, blocks, bytes);
		atomic_fetch_add(&load->done, 1);
		np_sleep_ms(1);
	}
}

/* Needs nothing besides the block device. */
static int disk_open(struct load *load, const struct np_ctrl *ctrl)
{
	(void)load;
	(void)ctrl;
	return 0;
}

static void disk_close(struct load *load)
{
	(void)load;
}

const struct load_method load_by_disk = {
	.name = "CPU",
	.open = disk_open,
	.run = disk_run,
	.close = disk_close,
};
