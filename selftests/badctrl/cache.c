// SPDX-License-Identifier: GPL-2.0-only
/* badctrl's volatile write cache: see cache.h. */
#include <string.h>

#include "cache.h"

struct span {
	size_t first;
	size_t end;
};

static struct span pages_of(const struct bad *ctrl, const uint8_t *at, size_t length)
{
	size_t start = (size_t)(at - ctrl->disk);

	return (struct span){ start / BAD_PAGE, (start + length + BAD_PAGE - 1) / BAD_PAGE };
}

void bad_cache_keep(struct bad *ctrl, const uint8_t *at, size_t length)
{
	struct span pages = pages_of(ctrl, at, length);
	size_t page;

	for (page = pages.first; page < pages.end; page++) {
		if (ctrl->dirty[page])
			continue;
		memcpy(ctrl->saved + page * BAD_PAGE, ctrl->disk + page * BAD_PAGE, BAD_PAGE);
		ctrl->dirty[page] = true;
	}
}

void bad_cache_flush(struct bad *ctrl, const uint8_t *at, size_t length)
{
	struct span pages = pages_of(ctrl, at, length);

	memset(ctrl->dirty + pages.first, 0, pages.end - pages.first);
}

void bad_cache_lose(struct bad *ctrl)
{
	size_t page;

	for (page = 0; page < bad_disk_bytes(ctrl) / BAD_PAGE; page++) {
		if (!ctrl->dirty[page])
			continue;
		memcpy(ctrl->disk + page * BAD_PAGE, ctrl->saved + page * BAD_PAGE, BAD_PAGE);
		ctrl->dirty[page] = false;
	}
}
