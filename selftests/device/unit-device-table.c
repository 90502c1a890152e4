// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-table.c: page tables by blocks on a machine of fibres: two blocks with
 * a table each resolve and read random pages, under many schedules.  After each step
 * the whole table is compared with a clock that looks at one slot after the other,
 * and the data of each page with the disk.
 *
 * Usage: unit-device-table [CASE [SEED]]; all cases and seeds, or one.
 */
#define NVMEPEER_PLATFORM_HEADER "fibre_platform.h"
#include <nvmepeer_device.h>

#include "rig.h"
#include "../lib/ktap.h"

enum {
	LANES = NVMEPEER_LANES, BLOCKS = 2, PAGES = 60, SLOTS = 22, MOST = 40, STEPS = 10,
	BLOCK = CONTROLLER_BLOCK, PAGE_BLOCKS = 2, PAGE_BYTES = PAGE_BLOCKS * BLOCK,
	DISK = 16384, LBA = 100, FIRST = 3, CACHE = FIRST + BLOCKS * SLOTS, GUARD = 0x5a,
	NO_PLACE = DISK, UNTOUCHED = -99,
};

/* State of a table. */
struct state {
	uint32_t entries[PAGES];
	uint32_t pages[SLOTS];
	uint32_t used[SLOTS];
	uint32_t hand;
	uint32_t step;
};

/* Of a block; requests are in its shared memory. */
static struct sequence {
	struct nvmepeer_pages table;
	struct nvmepeer_page_slot slots[SLOTS];
	struct nvmepeer_page_request request;
	struct nvmepeer_page_miss misses[MOST];
	struct state before;
	uint32_t entries[PAGES];
	uint32_t places[PAGES];		/* on the disk */
	uint32_t wanted[MOST];
	uint32_t blocks[MOST];
	int statuses[MOST];
	uint32_t seed;
	bool victims[SLOTS];		/* whose page is replaced in this step */
} sequences[BLOCKS];

static uint8_t *cache;
static struct nvmepeer_buffer buffer;
static uint32_t warps, slots;	/* of a block; of a table */

static void controller_main(void *argument)
{
	(void)argument;
	while (lanes_left) {
		controller_step(&bench->controller);
		machine_rest();
	}
}

static void expect(bool good, const char *what)
{
	if (!good && !bad++)
		printf("# %s\n", what);
}

static struct sequence *mine(void)
{
	return &sequences[fibre_current()->block];
}

static uint32_t draw(struct sequence *sequence, uint32_t below)
{
	sequence->seed = sequence->seed * 1664525u + 1013904223u;
	return (sequence->seed >> 8) % below;
}

/* --- What a step must do ------------------------------------------------------ */

static void load_state(const struct sequence *sequence, struct state *state)
{
	for (uint32_t i = 0; i < PAGES; i++)
		state->entries[i] = nvp_load32(&sequence->entries[i]);
	for (uint32_t i = 0; i < slots; i++) {
		state->pages[i] = nvp_load32(&sequence->slots[i].page);
		state->used[i] = nvp_load32(&sequence->slots[i].used);
	}
	state->hand = nvp_load32(&sequence->table.hand);
	state->step = nvp_load32(&sequence->table.step);
}

/* Is page @i of the request the first of its kind that is missed? */
static bool is_miss(const struct sequence *sequence, uint32_t i)
{
	uint32_t page = sequence->wanted[i];

	if (page >= PAGES || (sequence->before.entries[page] & NVMEPEER_PAGE_RESIDENT))
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (sequence->wanted[k] == page)
			return false;
	return true;
}

static bool is_wanted(const struct sequence *sequence, uint32_t page)
{
	for (uint32_t i = 0; i < sequence->request.count; i++)
		if (sequence->wanted[i] == page)
			return true;
	return false;
}

/*
 * The clock, one slot after the other.  Returns how many misses get a slot; @used: whether
 * the page of each slot counts as used then.
 */
static uint32_t run_clock(struct sequence *sequence, uint32_t missing, bool used[SLOTS],
			  uint32_t *hand)
{
	const struct state *before = &sequence->before;
	uint32_t taken = 0;

	memset(sequence->victims, 0, sizeof(sequence->victims));
	for (uint32_t i = 0; i < slots; i++)
		used[i] = (before->used[i] & 1) || is_wanted(sequence, before->pages[i]);
	*hand = before->hand;
	for (uint32_t seen = 0; taken < missing && seen < 2 * slots; seen++) {
		uint32_t slot = *hand, page = before->pages[slot];

		*hand = (*hand + 1) % slots;
		if (sequence->victims[slot] || page == NVP_PAGE_LENT ||
		    (page < PAGES && is_wanted(sequence, page)))
			continue;
		if (page == NVMEPEER_PAGE_NONE || !used[slot]) {
			sequence->victims[slot] = used[slot] = true;
			taken++;
		} else {
			used[slot] = false;
		}
	}
	return taken;
}

/* Each page is in one place, and that is what its entry says. */
static void check_places(const struct sequence *sequence, const struct state *now)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		uint32_t slot = now->entries[i] & ~NVMEPEER_PAGE_RESIDENT;

		if (now->entries[i] & NVMEPEER_PAGE_RESIDENT)
			expect(slot < slots && now->pages[slot] == i, "slot of an entry");
		else
			expect(now->entries[i] == sequence->places[i], "place of an entry");
	}
	for (uint32_t i = 0; i < slots; i++)
		expect(now->pages[i] >= PAGES ||
		       now->entries[now->pages[i]] == (NVMEPEER_PAGE_RESIDENT | i), "entry of a slot");
}

/* Compare the slots with the clock's. */
static void check_clock(struct sequence *sequence, const struct state *now)
{
	uint32_t missing = 0, hand, taken;
	bool used[SLOTS];

	for (uint32_t i = 0; i < sequence->request.count; i++)
		missing += is_miss(sequence, i);
	taken = run_clock(sequence, missing, used, &hand);
	expect(sequence->request.missing == taken, "number of misses");
	if (taken == missing)
		expect(now->hand == hand, "hand of the clock");
	expect(now->step == sequence->before.step + 1, "step");
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t page = now->pages[i];

		if (!sequence->victims[i])
			expect(page == sequence->before.pages[i], "page that stays");
		else
			expect(page >= PAGES || is_wanted(sequence, page), "page in place of another");
		expect(page >= PAGES || (now->used[i] & 1) == used[i], "use of a slot");
	}
}

/* What @status must be where a page has no block. */
static bool excuses(const struct sequence *sequence, uint32_t i, int status)
{
	if (sequence->wanted[i] >= PAGES)
		return status == NVMEPEER_E_RANGE;
	if (bench->controller.mute)
		return status == NVMEPEER_E_TIMEOUT || status == NVMEPEER_E_FULL;
	if (nvp_known_lost(&bench->queue))
		return status == NVMEPEER_E_LOST;
	if (sequence->places[sequence->wanted[i]] == NO_PLACE)
		return status == 0x4080 || !is_miss(sequence, i);
	return status == NVMEPEER_E_FULL;
}

static void check_step(struct sequence *sequence, int status)
{
	struct state now;
	uint32_t worst = 0;

	load_state(sequence, &now);
	check_places(sequence, &now);
	check_clock(sequence, &now);
	for (uint32_t i = 0; i < sequence->request.count; i++) {
		uint32_t page = sequence->wanted[i], block = sequence->blocks[i];
		int here = sequence->statuses[i];

		worst = here ? (uint32_t)nvp_worse((int)worst, here) : worst;
		if (!here) {
			expect(page < PAGES && now.entries[page] == (NVMEPEER_PAGE_RESIDENT |
			       (block - sequence->table.first)), "block of a page");
			continue;
		}
		expect(block == NVMEPEER_PAGE_NONE, "block of a page that was not read");
		expect(page >= PAGES || !(now.entries[page] & NVMEPEER_PAGE_RESIDENT),
		       "entry of a page that was not read");
		expect(excuses(sequence, i, here), "status of a page");
	}
	expect((uint32_t)status == worst, "worst status");
}

/* --- What lanes do ------------------------------------------------------------ */

/* All lanes see the bytes of page @i. */
static void check_data(const struct sequence *sequence, uint32_t i)
{
	uint64_t at = (uint64_t)(LBA + PAGE_BLOCKS * sequence->places[sequence->wanted[i]]) * BLOCK;
	uint64_t word = lane_load((const uint64_t *)(cache + (uint64_t)sequence->blocks[i] * PAGE_BYTES));

	expect(!memcmp(&word, bench->controller.disk + at, 8), "data of a page");
}

/* Draw the pages of a step: some of them twice, and with @far some that are none. */
static void draw_pages(struct sequence *sequence, uint32_t count, bool far)
{
	/* Pages of the last step are likely to be wanted again. */
	for (uint32_t i = 0; i < count; i++)
		if (draw(sequence, 3) || sequence->wanted[i] >= PAGES)
			sequence->wanted[i] = draw(sequence, PAGES + (far ? 5 : 0));
	sequence->request.count = count;
	for (uint32_t i = 0; i < MOST; i++)
		sequence->statuses[i] = UNTOUCHED;
}

static void begin_step(struct sequence *sequence, uint32_t count, bool far)
{
	nvp_block_sync();
	if (nvp_block_thread())
		return;
	draw_pages(sequence, count, far);
	load_state(sequence, &sequence->before);
}

static void end_step(struct sequence *sequence, int status, bool data)
{
	for (uint32_t i = 0; data && i < sequence->request.count; i++)
		if (!sequence->statuses[i])
			check_data(sequence, i);
	if (!nvp_block_thread())
		check_step(sequence, status);
	done++;
	nvp_block_sync();
}

static void take_steps(uint32_t count, bool far)
{
	struct sequence *sequence = mine();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		begin_step(sequence, step % 3 ? count : count / 3, far);
		end_step(sequence, nvmepeer_block_pages_read(&bench->queue, &sequence->table,
							     &sequence->request), true);
	}
}

static void lane_reads(void)
{
	take_steps(slots - 2, false);
}

static void lane_wants_most(void)
{
	take_steps(MOST, true);
}

/* Between the two halves all hits have their data. */
static void lane_reads_in_halves(void)
{
	struct sequence *sequence = mine();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		bool hit[MOST] = { false };
		int status;

		begin_step(sequence, SLOTS - 2, true);
		status = nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
		for (uint32_t i = 0; i < sequence->request.count; i++)
			expect(sequence->blocks[i] - sequence->table.first < slots ||
			       sequence->blocks[i] == NVMEPEER_PAGE_NONE, "block of each page");
		for (uint32_t i = 0; i < sequence->request.count; i++)
			hit[i] = sequence->wanted[i] < PAGES &&
				 (sequence->before.entries[sequence->wanted[i]] & NVMEPEER_PAGE_RESIDENT);
		for (uint32_t i = 0; i < sequence->request.missing; i++) {
			const struct nvmepeer_page_miss *miss = &sequence->misses[i];

			expect(!hit[miss->index] &&
			       sequence->blocks[miss->index] == sequence->table.first + miss->slot,
			       "miss");
		}
		nvmepeer_block_pages_submit(&bench->queue, &sequence->table, &sequence->request);
		for (uint32_t i = 0; i < sequence->request.count; i++)
			if (hit[i])
				check_data(sequence, i);
		expect(nvmepeer_block_pages_wait(&bench->queue, &sequence->table, &sequence->request,
						 RIG_LONG) == status, "status of both halves");
		end_step(sequence, status, true);
	}
}

/* Polls until all reads have ended; the wait has nothing to wait for. */
static void lane_polls(void)
{
	struct sequence *sequence = mine();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		begin_step(sequence, SLOTS - 2, false);
		nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
		nvmepeer_block_pages_submit(&bench->queue, &sequence->table, &sequence->request);
		for (uint32_t i = nvp_block_thread(); i < sequence->request.missing;
		     i += nvp_block_threads()) {
			struct nvmepeer_page_miss *miss = &sequence->misses[i];
			int status;

			while (nvmepeer_page_poll(&bench->queue, miss) == NVMEPEER_AGAIN)
				nvp_pause(0);
			status = nvmepeer_page_poll(&bench->queue, miss);
			expect(status == 0 || status == 0x4080, "status of a poll");
		}
		end_step(sequence, nvmepeer_block_pages_wait(&bench->queue, &sequence->table,
							     &sequence->request, 0), true);
	}
}

/* The second step begins before all lanes have ended the first. */
static void lane_resolves_twice(void)
{
	struct sequence *sequence = mine();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		int status[2];

		begin_step(sequence, SLOTS - 2, true);
		for (int i = 0; i < 2; i++)
			status[i] = nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
		expect(status[0] == status[1], "status of a step that is repeated");
		expect(!sequence->request.missing, "misses of a step that is repeated");
		done++;
	}
}

/* Pages that are there stay when slots out of use are reclaimed. */
static void lane_reclaims(void)
{
	struct sequence *sequence = mine();
	struct state after;

	take_steps(SLOTS - 2, false);
	load_state(sequence, &sequence->before);
	nvp_block_sync();
	nvmepeer_block_pages_reclaim(&sequence->table);
	load_state(sequence, &after);
	expect(!memcmp(&after, &sequence->before, sizeof(after)), "table after it was reclaimed");
	nvp_block_sync();
}

/* Statuses of single pages are not wanted. */
static void lane_reads_without_statuses(void)
{
	struct sequence *sequence = mine();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		begin_step(sequence, SLOTS, true);
		if (!nvp_block_thread())
			sequence->request.statuses = NULL;
		nvmepeer_block_pages_read(&bench->queue, &sequence->table, &sequence->request);
		for (uint32_t i = 0; i < sequence->request.count; i++) {
			expect(sequence->statuses[i] == UNTOUCHED, "status that is not wanted");
			if (sequence->blocks[i] != NVMEPEER_PAGE_NONE)
				check_data(sequence, i);
			else
				expect(sequence->wanted[i] >= PAGES, "page without a block");
		}
		done++;
	}
}

static uint32_t count_slots(const struct sequence *sequence, uint32_t page)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < slots; i++)
		count += nvp_load32(&sequence->slots[i].page) == page;
	return count;
}

/* Reads time out, or stay without room: only slots of the first are out of use. */
static void lane_times_out(void)
{
	struct sequence *sequence = mine();
	uint32_t lent = 0;

	for (uint32_t step = 0; step < 3 && !bad; step++) {
		uint32_t timeouts = 0;

		begin_step(sequence, 8, false);
		end_step(sequence, nvmepeer_block_pages_read(&bench->queue, &sequence->table,
							     &sequence->request), false);
		for (uint32_t i = 0; i < sequence->request.missing; i++)
			timeouts += sequence->statuses[sequence->misses[i].index] == NVMEPEER_E_TIMEOUT;
		lent += timeouts;
		expect(count_slots(sequence, NVP_PAGE_LENT) == lent, "slots out of use");
		expect(step || bench->queue.sq_mask < 8 || timeouts, "a timeout");
		nvp_block_sync();
	}
	nvmepeer_block_pages_reclaim(&sequence->table);
	expect(count_slots(sequence, NVMEPEER_PAGE_NONE) == slots, "slots in use again");
	nvp_block_sync();
}

/* A thread with several reads waits for room once. */
static void lane_has_no_room(void)
{
	struct sequence *sequence = mine();
	uint64_t began = machine.now_ns;

	begin_step(sequence, 20, false);
	end_step(sequence, nvmepeer_block_pages_read(&bench->queue, &sequence->table,
						     &sequence->request), false);
	expect(machine.now_ns - began < 8 * bench->queue.timeout_ns, "one timeout");
}

/* The same in halves. */
static void lane_submits_without_room(void)
{
	struct sequence *sequence = mine();
	uint64_t began = machine.now_ns, timeout_ns = bench->queue.timeout_ns;

	begin_step(sequence, 20, false);
	nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
	nvmepeer_block_pages_submit(&bench->queue, &sequence->table, &sequence->request);
	end_step(sequence, nvmepeer_block_pages_wait(&bench->queue, &sequence->table,
						     &sequence->request, timeout_ns), false);
	expect(machine.now_ns - began < 8 * timeout_ns, "one timeout");
}

/* All pages that were resident are where they were, and only those. */
static void check_restored(struct sequence *sequence, uint32_t misses)
{
	const struct state *before = &sequence->before;
	bool used[SLOTS];
	struct state now;
	uint32_t hand;

	load_state(sequence, &now);
	expect(!memcmp(now.entries, before->entries, sizeof(now.entries)), "entries after a loss");
	expect(!memcmp(now.pages, before->pages, sizeof(now.pages)), "pages after a loss");
	expect(run_clock(sequence, misses, used, &hand), "pages to be replaced");
	for (uint32_t i = 0; i < slots; i++) {
		if (now.pages[i] >= PAGES)
			continue;
		expect(nvp_load32(&sequence->slots[i].place) == sequence->places[now.pages[i]],
		       "place of a page after a loss");
		expect(!(now.used[i] & 1) || !sequence->victims[i], "use of a page that came back");
	}
}

/*
 * Nothing is submitted to a queue pair that is lost: all slots stay in use, and have the
 * pages that were to be replaced.
 */
static void lane_is_lost(void)
{
	struct sequence *sequence = mine();
	uint32_t misses = 0;
	int status;

	begin_step(sequence, SLOTS, false);
	end_step(sequence, nvmepeer_block_pages_read(&bench->queue, &sequence->table,
						     &sequence->request), true);
	while (done < lanes_left)
		nvp_pause(0);
	nvp_mark_lost(&bench->queue);
	/* Another lane may have been the first, and still take reads: their slots are lent. */
	while (!(nvp_load64(&bench->queue.state->tail) & NVP_TAIL_LOST))
		nvp_pause(0);
	begin_step(sequence, SLOTS - 1, false);
	nvp_block_sync();
	for (uint32_t i = 0; i < sequence->request.count; i++)
		misses += is_miss(sequence, i);
	status = nvmepeer_block_pages_read(&bench->queue, &sequence->table, &sequence->request);
	expect(misses && status == NVMEPEER_E_LOST, "status after a loss");
	for (uint32_t i = 0; i < sequence->request.count; i++)
		if (!sequence->statuses[i])
			check_data(sequence, i);
		else
			expect(sequence->statuses[i] == NVMEPEER_E_LOST, "status of a page after a loss");
	if (!nvp_block_thread())
		check_restored(sequence, misses);
	expect(!count_slots(sequence, NVP_PAGE_LENT), "slots after a loss");
	nvp_block_sync();
}

/* More misses than CIDs, on one queue pair. */
static void lane_has_few_cids(void)
{
	struct sequence *sequence = mine();

	begin_step(sequence, 0, false);
	if (!nvp_block_thread()) {
		for (uint32_t i = 0; i < SLOTS; i++)
			sequence->wanted[i] = i;
		sequence->request.count = SLOTS;
	}
	nvp_block_sync();
	expect(!nvmepeer_block_pages_read(&bench->queue, &sequence->table, &sequence->request),
	       "reads with few CIDs");
	done++;
}

/* A reset leaves slots out of use that a command may still write. */
static void lane_resets(void)
{
	struct sequence *sequence = mine();

	if (!nvp_block_thread())
		nvp_store32(&sequence->slots[3].page, NVP_PAGE_LENT);
	nvp_block_sync();
	nvmepeer_block_pages_reset(&sequence->table);
	expect(count_slots(sequence, NVP_PAGE_LENT) == 1, "slot out of use after a reset");
	nvp_block_sync();
	done++;
}

/* One thread polls while the others wait already; one token is another's. */
static void lane_polls_for_others(void)
{
	struct sequence *sequence = mine();
	struct nvmepeer_page_miss *first = &sequence->misses[0];

	begin_step(sequence, 12, false);
	nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
	nvmepeer_block_pages_submit(&bench->queue, &sequence->table, &sequence->request);
	nvp_block_sync();
	for (uint32_t k = 0; !nvp_block_thread() && k < 20; k++)
		for (uint32_t i = 1; i < sequence->request.missing; i++)
			nvmepeer_page_poll(&bench->queue, &sequence->misses[i]);
	if (!nvp_block_thread())
		expect(nvp_claim_token(&bench->queue, first->token), "token of a miss");
	expect(nvmepeer_block_pages_wait(&bench->queue, &sequence->table, &sequence->request,
					 RIG_LONG) == NVMEPEER_E_TOKEN, "status of a token in use");
	expect(count_slots(sequence, NVP_PAGE_LENT) == 1, "slot of a token in use");
	nvp_block_sync();
	if (!nvp_block_thread()) {
		nvp_release_token(&bench->queue, first->token);
		expect(!nvmepeer_wait(&bench->queue, first->token, NULL, RIG_LONG), "the command");
	}
	done++;
}

/* Bring a miss from elsewhere. */
static void bring(const struct sequence *sequence, struct nvmepeer_page_miss *miss)
{
	uint32_t place = sequence->places[sequence->wanted[miss->index]];
	uint8_t *to = cache + (uint64_t)(sequence->table.first + miss->slot) * PAGE_BYTES;
	const uint8_t *from = bench->controller.disk + (uint64_t)(LBA + PAGE_BLOCKS * place) * BLOCK;
	uint64_t word;

	if (place == NO_PLACE) {
		nvmepeer_page_failed(miss, 0x4080);
		return;
	}
	memcpy(&word, from, 8);
	memcpy(to + 8, from + 8, PAGE_BYTES - 8);
	lane_store((uint64_t *)to, word);
}

/* Nothing is submitted.  The thread that brings a miss is not that which ends it. */
static void lane_brings(void)
{
	struct sequence *sequence = mine();
	uint32_t thread = nvp_block_thread(), threads = nvp_block_threads();

	for (uint32_t step = 0; step < STEPS && !bad; step++) {
		begin_step(sequence, SLOTS - 2, false);
		nvmepeer_block_pages_resolve(&sequence->table, &sequence->request);
		for (uint32_t i = 0; i < sequence->request.missing; i++) {
			if ((i + 1) % threads == thread)
				bring(sequence, &sequence->misses[i]);
			nvp_pause(0);
		}
		end_step(sequence, nvmepeer_block_pages_wait(NULL, &sequence->table,
							     &sequence->request, 0), true);
	}
}

static void check_reset(const struct sequence *sequence)
{
	expect(!nvp_load32(&sequence->table.hand) && !nvp_load32(&sequence->table.step) &&
	       !nvp_load32(&sequence->table.missing), "table after a reset");
	for (uint32_t i = 0; i < slots; i++)
		expect(nvp_load32(&sequence->slots[i].page) == NVMEPEER_PAGE_NONE &&
		       !nvp_load32(&sequence->slots[i].used), "slot after a reset");
}

static void lane_main(void *argument)
{
	nvmepeer_block_pages_reset(&mine()->table);
	check_reset(mine());
	nvp_block_sync();
	((void (*)(void))argument)();
	lanes_left--;
}

/* --- Runs --------------------------------------------------------------------- */

struct table_case {
	const char *name, *what;
	void (*lane)(void);
	uint32_t warps;
	uint32_t threads;		/* of a block that is no whole warp; 0: it is */
	uint32_t slots;
	bool fails;			/* some places are not on the disk */
	bool mute;			/* reads never complete */
};

enum { PART = LANES > 3 ? LANES - 3 : 0, PAIR = LANES > 3 ? 2 : 0 };

static const struct table_case cases[] = {
	{ "block", "steps of a block", lane_reads, 2, 0, SLOTS, false, false },
	{ "warp", "steps of a warp", lane_reads, 1, 0, SLOTS, false, false },
	{ "part", "steps of less than a warp", lane_reads, 1, PART, SLOTS, false, false },
	{ "few", "less slots than lanes", lane_reads, 2, 0, 5, false, false },
	{ "most", "more pages than slots", lane_wants_most, 2, 0, SLOTS, false, false },
	{ "halves", "hits are there before the misses", lane_reads_in_halves, 2, 0, SLOTS, false, false },
	{ "twice", "a step that is repeated", lane_resolves_twice, 2, 0, SLOTS, false, false },
	{ "failing", "reads that fail", lane_reads, 2, 0, SLOTS, true, false },
	{ "polls", "reads that are polled", lane_polls, 2, 0, SLOTS, true, false },
	{ "silent", "steps without statuses", lane_reads_without_statuses, 2, 0, SLOTS, false, false },
	{ "reclaim", "nothing to reclaim", lane_reclaims, 2, 0, SLOTS, false, false },
	{ "timeout", "reads that time out", lane_times_out, 2, 0, SLOTS, false, true },
	{ "room", "reads without room", lane_has_no_room, 1, PAIR, SLOTS, false, true },
	{ "roomless", "submits without room", lane_submits_without_room, 1, PAIR, SLOTS, false, true },
	{ "lost", "reads of a queue pair that is lost", lane_is_lost, 2, 0, SLOTS, false, false },
	{ "cids", "more misses than CIDs", lane_has_few_cids, 1, PAIR, SLOTS, false, false },
	{ "turns", "more threads than CIDs", lane_has_few_cids, 3, 0, SLOTS, false, false },
	{ "reset", "a reset while a slot is lent", lane_resets, 1, 0, SLOTS, false, false },
	{ "others", "reads that one thread polls", lane_polls_for_others, 2, 0, SLOTS, false, false },
	{ "brought", "misses from elsewhere", lane_brings, 2, 0, SLOTS, true, false },
};

static void make_sequence(uint32_t index, uint32_t seed, bool fails)
{
	struct sequence *sequence = &sequences[index];

	memset(sequence, 0, sizeof(*sequence));
	sequence->seed = seed * 2654435761u + index;
	for (uint32_t i = 0; i < PAGES; i++) {
		sequence->places[i] = draw(sequence, (DISK - LBA) / PAGE_BLOCKS);
		if (fails && !draw(sequence, 4))
			sequence->places[i] = NO_PLACE;
		sequence->entries[i] = sequence->places[i];
	}
	for (uint32_t i = 0; i < slots; i++)
		sequence->slots[i] = (struct nvmepeer_page_slot){ i, i, 1 << 1 | 1, 0 };
	sequence->table = (struct nvmepeer_pages){
		.entries = sequence->entries, .slots = sequence->slots, .buffer = &buffer, .lba = LBA,
		.count = PAGES, .slot_count = slots, .first = FIRST + index * SLOTS,
		.blocks = PAGE_BLOCKS, .hand = 1, .step = 0xffffffff, .missing = 5,
	};
	sequence->request = (struct nvmepeer_page_request){
		.wanted = sequence->wanted, .blocks = sequence->blocks,
		.statuses = sequence->statuses, .misses = sequence->misses,
	};
	for (uint32_t i = 0; i < MOST; i++)
		sequence->wanted[i] = draw(sequence, PAGES);
}

static void make_bench(const struct table_case *one, uint32_t seed)
{
	bool few = one->lane == lane_has_few_cids;

	bench = bench_new(few || one->lane == lane_has_no_room || one->lane == lane_submits_without_room ?
			  4 : seed % 3 ? 64 : one->mute ? 4 : 8, 64);
	bench->controller.order = CONTROLLER_SHUFFLED;
	bench->controller.seed = seed;
	bench->controller.mute = one->mute;
	bench->geometry.cids = few ? 32 : 128;
	bench->geometry.timeout_ns = one->mute ? 100000 : few ? 1000000 : RIG_LONG;
	for (uint32_t i = 0; i < DISK * BLOCK; i += 4) {
		uint32_t word = i * 2654435761u;

		memcpy(bench->controller.disk + i, &word, 4);
	}
	cache = bench_memory(4096, CACHE * PAGE_BYTES);
	memset(cache, GUARD, CACHE * PAGE_BYTES);
	buffer = (struct nvmepeer_buffer){ CACHE * PAGE_BYTES, (uintptr_t)cache, 0 };
}

/* All bytes of all pages in slots, and none before the first. */
static bool cache_is_right(void)
{
	bool good = true;

	for (uint32_t i = 0; i < FIRST * PAGE_BYTES; i++)
		good = good && cache[i] == GUARD;
	for (uint32_t k = 0; k < BLOCKS * SLOTS; k++) {
		const struct sequence *sequence = &sequences[k / SLOTS];
		uint32_t page = sequence->slots[k % SLOTS].page;

		if (k % SLOTS < slots && page < PAGES)
			good = good && !memcmp(cache + (FIRST + k) * PAGE_BYTES, bench->controller.disk +
					       (uint64_t)(LBA + PAGE_BLOCKS * sequence->places[page]) * BLOCK,
					       PAGE_BYTES);
	}
	return good;
}

static const char *run_once(const struct table_case *one, uint32_t seed)
{
	uint32_t lanes = one->threads ? one->threads : LANES;
	const char *wrong = NULL;

	warps = one->warps;
	slots = one->slots;
	make_bench(one, seed);
	for (uint32_t i = 0; i < BLOCKS; i++)
		make_sequence(i, seed, one->fails);
	lanes_left = 0;
	if (!rig_begin(seed, 1000))
		return "init";
	machine.step_limit = 8000 * 1000;
	fibre_block_warps = warps;
	fibre_block_threads = one->threads;
	rig_add_warps(BLOCKS * warps, lanes, lane_main);
	for (uint32_t i = 0; i < BLOCKS * warps * lanes; i++) {
		machine.fibres[i].argument = (void *)one->lane;
		machine.fibres[i].block = machine.fibres[i].warp / warps;
	}
	machine_add_outside(controller_main, NULL);
	if (!machine_run() || !done)
		wrong = "deadlock";
	else if (bad)
		wrong = "a table is wrong";
	else if (bench->controller.errors)
		wrong = bench->controller.error;
	else if (one->lane != lane_resolves_twice && !cache_is_right())
		wrong = "the cache is wrong";
	else if (!one->mute && one->lane != lane_is_lost && one->lane != lane_resolves_twice)
		wrong = rig_books();
	fibre_block_threads = 0;
	free(cache);
	bench_free(bench);
	return wrong;
}

int main(int argc, char **argv)
{
	uint32_t only = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;

	ktap_start();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *wrong = NULL;

		if (!ktap_wants(argc, argv, cases[i].name))
			continue;
		for (uint32_t seed = only ? only : 1; !wrong && seed <= (only ? only : 6); seed++) {
			wrong = run_once(&cases[i], seed);
			if (wrong)
				printf("# %s %u: %s\n", cases[i].name, seed, wrong);
		}
		ktap_check(!wrong, cases[i].what);
	}
	return ktap_end();
}
