// SPDX-License-Identifier: GPL-2.0-only
/*
 * The expected contents of a region of a disk, and the check of the actual contents: see
 * ledger.h.
 */
#include "ledger.h"

#include <string.h>

#include "nptest.h"

#define WORDS	(NP_BLOCK / sizeof(uint64_t))

void ledger_init(struct ledger *ledger, uint64_t disk, uint32_t salt)
{
	*ledger = (struct ledger){ .disk = disk, .salt = salt };
}

bool ledger_free(const struct ledger *ledger, uint32_t block, uint32_t blocks)
{
	while (blocks--)
		if (ledger->busy[block + blocks])
			return false;
	return true;
}

bool ledger_known(const struct ledger *ledger, uint32_t block, uint32_t blocks)
{
	while (blocks--)
		if (ledger->begun[block + blocks])
			return false;
	return true;
}

uint64_t ledger_place(const struct ledger *ledger, uint32_t block)
{
	return ledger->disk + (uint64_t)block * NP_BLOCK;
}

static void occupy(struct ledger *ledger, uint32_t block, uint32_t blocks, bool busy)
{
	while (blocks--)
		ledger->busy[block + blocks] = busy;
}

/*
 * A block contains its place, its region and its write in every word, so that torn writes
 * show.
 */
static void fill(const struct ledger *ledger, uint32_t block, uint32_t write, uint64_t *words)
{
	np_pattern(words, NP_BLOCK, ledger_place(ledger, block) + ((uint64_t)ledger->salt << 40),
		   write);
}

void ledger_write(struct ledger *ledger, uint32_t block, uint32_t blocks, void *bytes)
{
	uint32_t i;

	ledger->writes++;
	occupy(ledger, block, blocks, true);
	for (i = 0; i < blocks; i++) {
		ledger->begun[block + i] = ledger->writes;
		fill(ledger, block + i, ledger->writes, (uint64_t *)bytes + i * WORDS);
	}
}

void ledger_read(struct ledger *ledger, uint32_t block, uint32_t blocks)
{
	occupy(ledger, block, blocks, true);
}

void ledger_written(struct ledger *ledger, uint32_t block, uint32_t blocks, bool acknowledged)
{
	uint32_t i;

	occupy(ledger, block, blocks, false);
	for (i = block; acknowledged && i < block + blocks; i++) {
		ledger->done[i] = ledger->begun[i];
		ledger->begun[i] = 0;
	}
}

static bool has(const struct ledger *ledger, uint32_t block, uint32_t write, const uint64_t *words)
{
	uint64_t expected[WORDS];

	fill(ledger, block, write, expected);
	return !memcmp(words, expected, sizeof(expected));
}

/* Which of the region's writes a block is from, 0 for none. */
static uint32_t origin(const struct ledger *ledger, uint32_t block, const uint64_t *words)
{
	uint64_t none[WORDS], write;

	fill(ledger, block, 0, none);
	write = words[0] - none[0];
	if (!write || write > ledger->writes || !has(ledger, block, (uint32_t)write, words))
		return 0;
	return (uint32_t)write;
}

static bool judge(struct ledger *ledger, uint32_t block, const uint64_t *words)
{
	uint32_t found = origin(ledger, block, words);

	ledger->judged++;
	ledger->either += !!ledger->begun[block];
	if (found && (found == ledger->done[block] || found == ledger->begun[block])) {
		ledger->done[block] = found;
		ledger->begun[block] = 0;
		return true;
	}
	if (found)
		ledger->lost++;
	else
		ledger->corrupt++;
	printf("# block %u at %#llx: has write %u, last completed %u, last begun %u, %s\n", block,
	       (unsigned long long)ledger_place(ledger, block), found, ledger->done[block],
	       ledger->begun[block], found ? "lost" : "corrupt");
	return false;
}

bool ledger_have_read(struct ledger *ledger, uint32_t block, uint32_t blocks, const void *bytes)
{
	bool good = true;
	uint32_t i;

	occupy(ledger, block, blocks, false);
	for (i = 0; bytes && i < blocks; i++)
		good &= judge(ledger, block + i, (const uint64_t *)bytes + i * WORDS);
	return good;
}
