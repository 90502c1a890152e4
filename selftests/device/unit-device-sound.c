// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-sound.c: guarantees of the device library at the worst
 * interleavings: bounded waits, matching tokens, no store after a loss, data
 * ordered before its completion.  One thread; hooks act for the others.
 */
#define NVP_FN static inline __attribute__((unused))
#define NVMEPEER_GATHER_SLOTS 64
#define NVMEPEER_PLATFORM_HEADER "hook_platform.h"
#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

enum { ENTRIES = 8, BYTES = 8 << 20, LIVE = NVP_STATE_LIVE };

static struct bench *bench;
static const struct nvmepeer_queue *queue;
static struct nvmepeer_state *state;
static struct nvmepeer_buffer buffer;
static uint8_t *memory;
static uint32_t page[1024];		/* status page */

/* The default hook: the controller works while the library pauses or polls. */
static void controller_works(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event == HOOK_PAUSE || event == HOOK_POLL)
		controller_step(&bench->controller);
}

static void begin(uint32_t flags)
{
	bench = bench_new(ENTRIES, ENTRIES);
	page[NVP_STATUS_STATE / 4] = LIVE;
	page[NVP_STATUS_LOSSES / 4] = 0;
	bench->geometry.status = (uintptr_t)page;
	bench->geometry.readback = (uintptr_t)page;
	bench->geometry.flags = flags;
	bench->geometry.timeout_ns = 1000000;
	hook_head_doorbell = bench->geometry.cq_doorbell;
	memset(&hooks, 0, sizeof(hooks));
	hooks.tick_ns = 10;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		abort();
	queue = &bench->queue;
	state = queue->state;
	hooks.at = controller_works;
}

static bool end(bool good)
{
	hooks.at = NULL;
	if (bench->controller.errors) {
		printf("# controller: %s\n", bench->controller.error);
		good = false;
	}
	bench_free(bench);
	return good;
}

static int submit_numbered(uint32_t number, struct nvmepeer_token *token)
{
	struct nvmepeer_sqe entry = { { 0 } };

	entry.dword[13] = number;
	return nvmepeer_submit_raw(queue, &entry, token, 1000000);
}

/*
 * Completions of other groups arrive faster than they can be reaped, for a long
 * time.
 */
static uint32_t fed;

static void feed(enum hook_event event, uint64_t address)
{
	uint32_t *slot = (uint32_t *)(uintptr_t)address;
	uint32_t index = state->head;

	if (event != HOOK_POLL || fed++ > 1000000)
		return;
	slot[3] = 31 | (uint32_t)((index / ENTRIES & 1) ^ 1) << 16;
}

static bool others_completions(void)
{
	struct nvmepeer_token token;
	bool good;

	begin(0);
	fed = 0;
	hooks.at = NULL;
	good = !submit_numbered(1, &token);
	hooks.at = feed;
	good = nvmepeer_wait(queue, token, NULL, 100000) == NVMEPEER_E_TIMEOUT && good;
	printf("# a wait of 10000 polls ended after %u\n", fed);
	return end(good && fed < 20000);
}

/*
 * The thread is stopped between its last poll and the read of the clock, which
 * a look at the status page follows; its command completes meanwhile.
 */
static void complete_after_poll(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event == HOOK_STATUS)
		controller_step(&bench->controller);
}

static bool stopped_before_clock(void)
{
	struct nvmepeer_command flush = { NVMEPEER_OP_FLUSH, 0, 0, NULL, 0, 0 };
	struct nvmepeer_exclusive exclusive;
	struct nvmepeer_token token;
	uint32_t which;
	bool good;

	begin(0);
	hooks.at = complete_after_poll;
	good = !submit_numbered(1, &token) && !nvmepeer_wait(queue, token, NULL, 0);
	good = good && !submit_numbered(2, &token) &&
	       !nvmepeer_wait_any(queue, &token, 1, &which, NULL, 0);
	exclusive = nvmepeer_exclusive_open(queue);
	good = good && !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, 0);
	nvmepeer_exclusive_close(&exclusive);
	return end(good && !nvmepeer_abandoned(queue));
}

/* Credits are not returned here: a submitter must detect its timeout. */
static bool full_queue_of_others(void)
{
	struct nvmepeer_token token;
	bool good = true;

	begin(0);
	fed = 0;
	hooks.at = NULL;
	for (uint32_t i = 0; i < ENTRIES - 1; i++)
		good = good && !submit_numbered(i, &token);
	hooks.at = feed;
	state->credits -= 1u << 20;
	good = nvmepeer_submit(queue, &(struct nvmepeer_command){ 0 }, &token, 100000) ==
	       NVMEPEER_E_FULL && good;
	return end(good && fed < 20000);
}

/*
 * Each time the doorbell rings another group publishes; some may take
 * ownership.
 */
static uint32_t arrivals, limit;
static bool takes_offer;

static void publish_another(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event == HOOK_TAIL_DOORBELL && arrivals < limit) {
		arrivals++;
		state->tail += ((uint64_t)1 << NVP_TICKET_SHIFT) + 1;
	}
#ifndef BEFORE
	if (event == HOOK_PAUSE && takes_offer && state->tail & NVP_TAIL_OFFERED)
		state->doorbell_offer = 0;
#endif
}

static bool owner_is_relieved(void)
{
	struct nvmepeer_token token;
	bool good;

	begin(0);
	arrivals = 0;
	limit = 1000;
	takes_offer = true;
	hooks.at = publish_another;
	good = !submit_numbered(1, &token);
	printf("# rang %u times for other groups\n", arrivals);
	return end(good && arrivals < 10);
}

/*
 * No group takes the offer: all entries are rung for in the end, no value
 * twice.
 */
static bool offer_not_taken(void)
{
	struct nvmepeer_token token;
	bool good;

	begin(0);
	arrivals = 0;
	limit = 50;
	takes_offer = false;
	hooks.at = publish_another;
	good = !submit_numbered(1, &token);
	good = good && bench->controller.doorbells->tail == (limit + 1) % ENTRIES &&
	       hook_count(HOOK_TAIL_DOORBELL) == limit + 1 &&
	       !(uint32_t)state->tail;
	return end(good);
}

#ifndef BEFORE
/*
 * Ownership is on offer: the next group to publish takes it, the one after does
 * not.
 */
static bool offer_taken_once(void)
{
	struct nvmepeer_token token;
	bool good;

	begin(0);
	hooks.at = NULL;
	/* Ticket 1 waits for an owner that never runs again. */
	state->tail = (uint64_t)1 << NVP_TICKET_SHIFT | NVP_TAIL_OFFERED | 1;
	state->tail_rung = 0;
	state->doorbell_offer = 1;
	good = !submit_numbered(1, &token) && bench->controller.doorbells->tail == 2 &&
	       !(uint32_t)state->tail && !state->doorbell_offer;
	/* Another group has taken it already. */
	state->tail |= NVP_TAIL_OFFERED | 1;
	hook_forget();
	good = good && !submit_numbered(2, &token) && !hook_count(HOOK_TAIL_DOORBELL);
	return end(good);
}

/*
 * During an offer another group takes ownership, rings, and offers it in turn.
 */
static bool handed_on;

static void take_and_offer(enum hook_event event, uint64_t address)
{
	/* Two groups each time, so that the owner that follows has fewer. */
	publish_another(event, address);
	publish_another(event, address);
	if (event != HOOK_PAUSE || handed_on)
		return;
	handed_on = true;
	nvp_take_doorbell(queue);
	/*
	 * The head doorbell of a group is due: all tail doorbells have been
	 * rung.
	 */
	state->tail += NVP_TAIL_OFFERED + 1;
	state->doorbell_offer = 1;
}

static bool ownership_returns(void)
{
	struct nvmepeer_token token;
	bool good;

	begin(0);
	arrivals = 0;
	limit = 2 * NVP_RINGS_IN_A_ROW;
	takes_offer = handed_on = false;
	hooks.at = take_and_offer;
	good = !submit_numbered(1, &token);
	return end(good && handed_on && hook_count(HOOK_TAIL_DOORBELL) ==
		   NVP_RINGS_IN_A_ROW + 1 &&
		   !(uint32_t)state->tail);
}
#endif

/*
 * Another group takes a slot before the head doorbell is due, and publishes
 * while it is rung.
 */
static uint32_t unwritten_stage;

static void publish_beside_head(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event == HOOK_TAIL && unwritten_stage == 0) {
		unwritten_stage++;
		state->tail += ((uint64_t)1 << NVP_TICKET_SHIFT) +
			       ((uint64_t)1 << NVP_UNWRITTEN_SHIFT);
	} else if (event == HOOK_HEAD_DOORBELL && unwritten_stage == 1) {
		unwritten_stage++;
		state->tail += 1 - ((uint64_t)1 << NVP_UNWRITTEN_SHIFT);
	}
}

/* It saw an owner and depends on that one. */
static bool head_rings_for_unwritten(void)
{
	struct nvmepeer_token token[2];
	bool good = true;

	begin(0);
	for (uint32_t i = 0; i < 2; i++)
		good = good && !submit_numbered(i, &token[i]);
	hooks.at = NULL;
	controller_step(&bench->controller);
	unwritten_stage = 0;
	hooks.at = publish_beside_head;
	for (uint32_t i = 0; i < 2; i++)
		good = good && !nvmepeer_wait(queue, token[i], NULL, 1000000);
	return end(good && unwritten_stage == 2 && bench->controller.doorbells->tail == 3 &&
		   !(uint32_t)state->tail);
}

static bool used_token(void)
{
	struct nvmepeer_token first, second;
	uint32_t result = 0;
	bool good;

	begin(0);
	good = !submit_numbered(1, &first) && !nvmepeer_wait(queue, first, &result, 1000000) &&
	       result == 1;
	good = good && !submit_numbered(2, &second) && second.cid == first.cid;
	good = good && nvmepeer_poll(queue, first, NULL) == NVMEPEER_E_TOKEN &&
	       nvmepeer_wait(queue, first, NULL, 1000000) == NVMEPEER_E_TOKEN;
	good = good && !nvmepeer_wait(queue, second, &result, 1000000) && result == 2;
	return end(good && nvmepeer_wait(queue, second, NULL, 1000) == NVMEPEER_E_TOKEN);
}

static void lose(void)
{
	page[NVP_STATUS_LOSSES / 4]++;
}

static bool stale_token(void)
{
	struct nvmepeer_token first, second;
	struct controller *controller;
	uint32_t result = 0;
	bool good;

	begin(0);
	controller = &bench->controller;
	hooks.at = NULL;
	good = !submit_numbered(1, &first);
	lose();
	good = good && nvmepeer_wait(queue, first, NULL, 1000000000) == NVMEPEER_E_LOST;
	memset(controller->cq, 0, 16 * ENTRIES);
	controller->doorbells->tail = controller->doorbells->head = 0;
	nvmepeer_queue_rearm(queue, page[NVP_STATUS_LOSSES / 4]);
	hooks.at = controller_works;
	good = good && !submit_numbered(2, &second) && second.cid == first.cid;
	good = good && nvmepeer_wait(queue, first, NULL, 1000000) == NVMEPEER_E_TOKEN;
	return end(good && !nvmepeer_wait(queue, second, &result, 1000000) && result == 2);
}

static uint32_t stores(void)
{
	return hook_count(HOOK_ENTRY) + hook_count(HOOK_LIST) + hook_count(HOOK_TAIL_DOORBELL) +
	       hook_count(HOOK_HEAD_DOORBELL);
}

static bool nothing_after_loss(void)
{
	struct nvmepeer_token token;
	bool good = true;

	begin(0);
	lose();
	good = nvmepeer_check(queue) == NVMEPEER_E_LOST;
	hook_forget();
	/* More often than any counter in the tail word could hold. */
	for (uint32_t i = 0; i < 40000; i++)
		good = good && submit_numbered(i, &token) == NVMEPEER_E_LOST;
	good = good && nvmepeer_read(queue, &buffer, 0, 0, 64) == NVMEPEER_E_LOST;
	return end(good && !stores());
}

/*
 * The queue pair is lost while an entry is being written: the owner that would
 * ring detects that.
 */
static void lose_at_fence(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event != HOOK_PUBLISH)
		return;
	lose();
	nvmepeer_check(queue);
}

static bool owner_sees_loss(void)
{
	struct nvmepeer_token token;

	begin(0);
	hooks.at = lose_at_fence;
	submit_numbered(1, &token);
	return end(!hook_count(HOOK_TAIL_DOORBELL) && !hook_count(HOOK_HEAD_DOORBELL));
}

static bool placements(void)
{
	const uint32_t apart = NVMEPEER_CQ_APART_FROM_DATA;
	struct nvmepeer_geometry geometry;
	struct nvmepeer_token token;
	bool good;

	begin(0);
	geometry = bench->geometry;
	geometry.flags = apart | NVMEPEER_CQ_REMOTE;
	good = nvmepeer_geometry_check(&geometry) == -14;
#ifndef BEFORE
	geometry.flags |= NVMEPEER_DATA_REMOTE;
	good = good && !nvmepeer_geometry_check(&geometry);
	geometry.readback = 0;
	good = good && nvmepeer_geometry_check(&geometry) == NVMEPEER_E_ADDRESS;
	geometry.flags = 0;
	geometry.metadata_bytes = 8;
	good = good && nvmepeer_geometry_check(&geometry) == NVMEPEER_E_METADATA;
	end(true);
	begin(apart | NVMEPEER_DATA_REMOTE);
	good = good && !submit_numbered(1, &token);
	hook_forget();
	good = good && !nvmepeer_wait(queue, token, NULL, 1000000) &&
	       hook_count(HOOK_STATUS) == 1 && strstr(hooks.trace, "sC");
#endif
	return end(good);
}

static bool gather_ranges(void)
{
	static struct nvmepeer_gather_table table;
	struct nvmepeer_staging staging = { &buffer, (uintptr_t)memory, 12, 0 };
	uint8_t *got = bench_memory(64, 128 << 10);
	struct nvmepeer_gather_range odd = { 0, (uintptr_t)got, 24, 0 };
	struct nvmepeer_gather_range lengthy = { 4000, (uintptr_t)got, 5 * 4096, 0 };
	struct nvmepeer_gather_range too_long = { 4080, (uintptr_t)got, 16 * 4096, 0 };
	bool good;

	begin(0);
	for (uint32_t i = 0; i < 64 << 10; i++)
		bench->controller.disk[i] = (uint8_t)(i * 167 >> 3);
	memset(got, 0x5a, 128 << 10);
	good = nvmepeer_block_gather(queue, &table, &staging, &odd, 1) == NVMEPEER_E_ALIGN &&
	       got[24] == 0x5a && got[31] == 0x5a;
	good = good && !nvmepeer_block_gather(queue, &table, &staging, &lengthy, 1) &&
	       !memcmp(got, bench->controller.disk + 4000, 5 * 4096) && got[5 * 4096] == 0x5a;
	good = good && nvmepeer_block_gather(queue, &table, &staging, &too_long, 1) ==
	       NVMEPEER_E_TOO_LARGE;
	staging.unit_shift = 8;
	good = good && nvmepeer_block_gather(queue, &table, &staging, &lengthy, 1) ==
	       NVMEPEER_E_GEOMETRY;
	free(got);
	return end(good);
}

/*
 * At an offset inside a page, with lists of two pages, of which one entry is a
 * link.
 */
static bool long_transfer(void)
{
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 9000, &buffer, 512 };
	bool good;

	begin(0);
	bench->queue.max_transfer = 8 << 20;
	good = !nvmepeer_warp_transfer(queue, &transfer) &&
	       !memcmp(memory + 512, bench->controller.disk, 9000 * 512);
	return end(good);
}

/*
 * Blocks of 16 KiB without memory for PRP lists.  Hangs where it does not fail.
 */
static bool large_blocks(void)
{
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_READ, 0, 0, 64, &buffer, 0 };
	bool good;

	begin(0);
	bench->queue.lba_shift = 14;
	bench->queue.list_area = 0;
	good = nvmepeer_warp_transfer(queue, &transfer) == NVMEPEER_E_NO_LIST;
	/* Two pages need no list. */
	bench->queue.lba_shift = 13;
	transfer.blocks = 3;
	good = good && !nvmepeer_warp_transfer(queue, &transfer);
	return end(good);
}

/*
 * Tables whose entries cover several pages, by PRPs and by SGLs: segments of 4 pages in
 * another order, of which the first one has @first pages.  @flags of the geometry.
 */
static bool short_table(uint32_t flags, uint32_t first, uint32_t blocks)
{
	enum { PAGES = 64, UNIT = 4 };
	uint64_t table[PAGES / UNIT];
	struct nvmepeer_buffer scattered = {
		(PAGES - UNIT) * 4096ull, (uint64_t)(UNIT - first) << 12 | 2 << 2, (uintptr_t)table,
	};
	bool good = true;

	begin(flags);
	if (flags)
		bench->queue.list_area = 0;
	for (uint32_t i = 0; i < PAGES / UNIT; i++)
		table[i] = (uintptr_t)memory + (i ^ 5) * UNIT * 4096ull;
	memset(memory, 0, PAGES * 4096);
	for (uint32_t at = 0; at < PAGES * 4096; at++)
		bench->controller.disk[at] = (uint8_t)(at * 2654435761u >> 15);
	for (uint32_t at = 0; good && at + blocks <= scattered.length / 512; at += blocks)
		good = !nvmepeer_read(queue, &scattered, 512 * at, at, blocks);
	for (uint32_t at = 0; good && at + blocks <= scattered.length / 512; at++) {
		uint32_t byte = 512 * at + (UNIT - first) * 4096;
		const uint8_t *entry = memory + (byte / (UNIT * 4096) ^ 5) * UNIT * 4096;

		good = !memcmp(entry + byte % (UNIT * 4096), bench->controller.disk + 512ull * at, 512);
	}
	/* Outside of an entry with SGLs alone. */
	if (flags)
		good = good && nvmepeer_read(queue, &scattered, first * 4096 - 512, 0, 24) ==
				       NVMEPEER_E_NO_LIST;
	return end(good);
}

static bool short_tables(void)
{
	bool good = true;

	for (uint32_t first = 1; first <= 4; first++)
		for (uint32_t blocks = 8; blocks <= 32; blocks += 8)
			good = good && short_table(0, first, blocks);
	return good && short_table(NVMEPEER_SGL, 4, 32) && short_table(NVMEPEER_SGL, 2, 16) &&
	       short_table(NVMEPEER_SGL | NVMEPEER_ONE_RANGE, 4, 32);
}

/* A token of the same CID and command number of another queue pair. */
static bool token_of_another(void)
{
	struct nvmepeer_token token, other;
	bool good;

	begin(0);
	good = !submit_numbered(1, &token);
	end(good);
	begin(0);
	bench->queue.qid = 3;
	nvmepeer_queue_reset(queue);
	good = good && !submit_numbered(1, &other) && other.cid == token.cid &&
	       nvmepeer_wait(queue, token, NULL, 1000) == NVMEPEER_E_TOKEN &&
	       !nvmepeer_wait(queue, other, NULL, 1000000);
	return end(good);
}

/* No slot is unwritten while PRP lists are written. */
static bool holds_slots;

static void look_for_slots(enum hook_event event, uint64_t address)
{
	if (event == HOOK_LIST && state->tail >> NVP_UNWRITTEN_SHIFT & NVP_UNWRITTEN_MASK)
		holds_slots = true;
	controller_works(event, address);
}

static bool lists_before_slots(void)
{
	begin(0);
	holds_slots = false;
	hooks.at = look_for_slots;
	return end(!nvmepeer_read(queue, &buffer, 512, 0, 64) && hook_count(HOOK_LIST) &&
		   !holds_slots);
}

static bool exclusive_of_busy(void)
{
	struct nvmepeer_command flush = { 0 };
	struct nvmepeer_exclusive busy, exclusive;
	struct nvmepeer_token token;
	bool good;

	begin(0);
	good = !submit_numbered(1, &token);
	busy = nvmepeer_exclusive_open(queue);
	good = good && nvmepeer_exclusive_execute(&busy, &flush, NULL, 1000) == -16;
	nvmepeer_exclusive_close(&busy);
	good = good && !nvmepeer_wait(queue, token, NULL, 1000000);
	exclusive = nvmepeer_exclusive_open(queue);
	busy = nvmepeer_exclusive_open(queue);
	good = good && nvmepeer_exclusive_execute(&busy, &flush, NULL, 1000) == -16 &&
	       !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, 1000000) &&
	       submit_numbered(2, &token) == NVMEPEER_E_FULL;
	nvmepeer_exclusive_close(&busy);
	nvmepeer_exclusive_close(&exclusive);
	good = good && !submit_numbered(3, &token) && !nvmepeer_wait(queue, token, NULL, 1000000);
	return end(good);
}

/* A loss that other groups detect during exclusive use is preserved. */
/*
 * All commands have completed, other groups have reaped them and all credits
 * are back, but the doorbell owner is not done: it would ring in parallel with
 * the exclusive group.
 */
static int exclusive_status;

static void open_while_ringing(enum hook_event event, uint64_t address)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	uint32_t head = 0;
	uint64_t none = 0;

	(void)address;
	if (event != HOOK_DEVICE || exclusive_status || !hook_count(HOOK_TAIL_DOORBELL))
		return;
	controller_step(&bench->controller);
	if (nvp_reap(queue, self, false, NVMEPEER_NO_CID, &none, &head) &&
	    state->credits == nvp_max_in_flight(queue))
		exclusive_status = nvmepeer_exclusive_open(queue).broken ? NVMEPEER_E_BUSY : 1;
}

static bool exclusive_while_ringing(void)
{
	struct nvmepeer_token token;

	begin(0);
	exclusive_status = 0;
	hooks.at = open_while_ringing;
	return end(!submit_numbered(1, &token) && exclusive_status == NVMEPEER_E_BUSY &&
		   !(state->head & NVP_HEAD_EXCLUSIVE));
}

static bool exclusive_of_lost(void)
{
	struct nvmepeer_command flush = { 0 };
	struct nvmepeer_token token;
	struct nvmepeer_exclusive exclusive;
	bool good;

	begin(0);
	exclusive = nvmepeer_exclusive_open(queue);
	good = !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, 1000000);
	lose();
	good = good && nvmepeer_check(queue) == NVMEPEER_E_LOST;
	nvmepeer_exclusive_close(&exclusive);
	hook_forget();
	return end(submit_numbered(1, &token) == NVMEPEER_E_LOST && good && !stores());
}

/*
 * The owner kept its handle over a re-arm, after @status, and closes it then, or
 * closes it twice: the state is that of others.
 */
static bool closed_late(int status, bool rearmed, bool owned)
{
	struct nvmepeer_command flush = { 0 };
	struct nvmepeer_exclusive exclusive, copy, next = { 0 };
	struct nvmepeer_state before;
	bool good;

	begin(0);
	exclusive = nvmepeer_exclusive_open(queue);
	good = !nvmepeer_exclusive_execute(&exclusive, &flush, NULL, 1000000);
	exclusive.broken = status;
	copy = exclusive;
	if (rearmed)
		nvmepeer_queue_rearm(queue, 1);
	else
		nvmepeer_exclusive_close(&exclusive);
	if (owned)
		next = nvmepeer_exclusive_open(queue);
	before = *state;
	nvmepeer_exclusive_close(&exclusive);
	/* A mistake of the caller that does no harm while no other group has opened it. */
	if (!owned)
		nvmepeer_exclusive_close(&copy);
	return end(good && !next.broken && !memcmp(&before, state, sizeof(before)));
}

static bool exclusive_closed_late(void)
{
	return closed_late(0, true, false) && closed_late(0, true, true) &&
	       closed_late(NVMEPEER_E_TIMEOUT, true, false) &&
	       closed_late(NVMEPEER_E_LOST, true, true) && closed_late(0, false, false) &&
	       closed_late(0, false, true);
}

/*
 * A group that opens exclusively has marked the head, and has not yet seen that another
 * one owns the doorbells: that one rings no value twice.
 */
static bool marked_while_ringing(void)
{
	uint32_t rung = 7;

	begin(0);
	state->head = 5 | NVP_HEAD_EXCLUSIVE;
	state->head_rung = 5;
	state->tail = (uint64_t)rung << NVP_TICKET_SHIFT | 1;
	hook_forget();
	nvp_ring_once(queue, state->tail, &rung, NVP_RING_HEAD);
	return end(!hook_count(HOOK_HEAD_DOORBELL) && state->head_rung == 5);
}

/* A group that reclaims the CID must subtract from a count that has the command. */
static bool counted;

static void look_at_count(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event == HOOK_DEVICE)
		counted = state->abandoned == 2 && !(queue->abandoned_cids[0] & 1u << 3);
}

static bool abandoned_is_counted_first(void)
{
	begin(0);
	state->abandoned = 1;
	queue->abandoned_cids[0] = 1u << 2;
	counted = false;
	hooks.at = look_at_count;
	nvp_abandon(queue, 3);
	return end(counted && state->abandoned == 2 && queue->abandoned_cids[0] == 3u << 2);
}

/* A flush is no transfer, and write zeroes has no buffer. */
static bool transfers_without_data(void)
{
	struct nvmepeer_transfer transfer = { NVMEPEER_OP_FLUSH, 0, 0, 0, NULL, 0 };
	struct nvmepeer_token tokens[4];
	struct nvmepeer_batch batch = { tokens, 4, 0, 0 };
	uint32_t shared;
	bool good;

	begin(NVMEPEER_SGL);
	bench->queue.max_transfer = 4096;
	good = nvmepeer_warp_transfer(queue, &transfer) == NVMEPEER_E_OPCODE &&
	       nvmepeer_block_transfer(queue, &transfer, &shared) == NVMEPEER_E_OPCODE &&
	       nvmepeer_warp_submit(queue, nvmepeer_group_self(), &transfer, &batch) == NVMEPEER_E_OPCODE &&
	       nvmepeer_block_submit(queue, &transfer, &batch) == NVMEPEER_E_OPCODE && !batch.count;
	transfer.opcode = NVMEPEER_OP_WRITE_ZEROES;
	transfer.blocks = 17;
	good = good && !nvmepeer_warp_transfer(queue, &transfer) &&
	       !nvmepeer_warp_submit(queue, nvmepeer_group_self(), &transfer, &batch) && batch.count == 3 &&
	       !nvmepeer_warp_wait(queue, nvmepeer_group_self(), &batch, 1000000);
	bench->queue.flags = 0;
	bench->queue.list_area = 0;
	bench->queue.max_transfer = 4 << 20;
	/* No PRP list limits it. */
	return end(good && nvmepeer_batch_commands(queue, &transfer) == 1);
}

/* 48 lanes get credits and CIDs without rounds. */
static bool wide_group(void)
{
	uint32_t before, free_bits = 0;
	bool good;

	begin(0);
	state->credits = 64;
	bench->queue.cid_words_mask = 1;
	queue->free_cids[0] = 0xfffffff0;
	queue->free_cids[1] = 0xffffffff;
	before = 60;
#ifdef BEFORE
	uint32_t word;

	good = nvp_reserve_all(queue, 48, &word);
#else
	struct nvp_cid_bits taken = nvp_reserve_all(queue, 48, nvp_reserve_start(queue, 48));
	uint64_t seen = 0;

	good = taken.bits;
	for (uint32_t rank = 0; good && rank < 48; rank++)
		seen |= (uint64_t)1 << nvp_cid_of_rank(taken, rank);
	good = good && __builtin_popcountll(seen) == 48 && !(seen & 15);
#endif
	for (uint32_t word = 0; word < 2; word++)
		free_bits += nvp_count_bits(queue->free_cids[word]);
	return end(good && before - free_bits == 48 && state->credits == 16);
}

/* Another group publishes while this one owns the doorbells. */
static bool came;

static void publish_while_ringing(enum hook_event event, uint64_t address)
{
	(void)address;
	if (event != HOOK_DEVICE || came)
		return;
	came = true;
	state->tail += ((uint64_t)1 << NVP_TICKET_SHIFT) + 1;
}

/*
 * A system fence between the add that shows entries of other groups and the
 * doorbell.
 */
static bool release_for_others(void)
{
	struct nvmepeer_token token;
	const char *second;
	bool good;

	begin(0);
	came = false;
	hooks.at = publish_while_ringing;
	good = !submit_numbered(1, &token) && hook_count(HOOK_TAIL_DOORBELL) == 2;
	second = strrchr(hooks.trace, HOOK_TAIL_DOORBELL);
	while (good && *second != HOOK_PUBLISH) {
		good = *second != HOOK_TAIL;
		second--;
	}
	return end(good);
}

/* An uncontended group does not need that fence. */
static bool uncontended_one_fence(void)
{
	struct nvmepeer_token token;

	begin(0);
	hooks.at = NULL;
	return end(!submit_numbered(1, &token) && hook_count(HOOK_PUBLISH) == 1);
}

/*
 * Between the exchange of the head and the add that makes another owner ring
 * for it.
 */
static bool release_of_head(void)
{
	struct nvmepeer_token token;
	const char *at;
	bool good = true;
	uint32_t due = 0;

	begin(0);
	for (uint32_t i = 0; i < 2; i++)
		good = good && !submit_numbered(i, &token);
	hooks.at = NULL;
	controller_step(&bench->controller);
	hook_forget();
	good = good && !nvmepeer_wait(queue, token, NULL, 1000000);
	for (at = hooks.trace; good && *at; at++) {
		const char *exchange = at;

		if (*at != HOOK_TAIL)
			continue;
		due++;
		while (exchange > hooks.trace && *exchange != HOOK_EXCHANGE &&
		       *exchange != HOOK_DEVICE && *exchange != HOOK_PUBLISH)
			exchange--;
		good = *exchange == HOOK_DEVICE || *exchange == HOOK_PUBLISH;
	}
	return end(good && due);
}

int main(void)
{
	memory = bench_memory(4096, BYTES);
	buffer = (struct nvmepeer_buffer){ BYTES, (uintptr_t)memory, 0 };
	ktap_start();
	ktap_check(others_completions(), "a timeout expires while completions of other groups arrive");
	ktap_check(stopped_before_clock(), "a command that completes before the clock is read is not timed out");
	ktap_check(full_queue_of_others(), "a submit timeout expires while other groups take the room");
	ktap_check(owner_is_relieved(), "doorbell ownership is handed over after rings for other groups");
	ktap_check(offer_not_taken(), "without a taker the owner continues to ring, each value once");
#ifndef BEFORE
	ktap_check(offer_taken_once(), "one group takes offered doorbell ownership");
	ktap_check(ownership_returns(), "a value that another owner has rung is not rung twice");
#endif
	ktap_check(head_rings_for_unwritten(), "a head doorbell owner also rings for slots that were unwritten");
	ktap_check(used_token(), "a used token completes no other command");
	ktap_check(stale_token(), "a token from before a re-arm completes no command");
	ktap_check(nothing_after_loss(), "no store after the queue pair is lost");
	ktap_check(owner_sees_loss(), "no doorbell after a loss by the next owner");
	ktap_check(placements(), "placement without readback is refused");
	ktap_check(gather_ranges(), "gather: invalid ranges refused, long ranges complete");
	ktap_check(long_transfer(), "transfer from inside a page");
	ktap_check(token_of_another(), "a token of another queue pair is refused");
	ktap_check(short_tables(), "tables whose entries cover several pages");
	ktap_check(lists_before_slots(), "PRP lists are written before slots are taken");
	ktap_check(exclusive_of_busy(), "exclusive use of a busy queue pair is refused");
	ktap_check(exclusive_while_ringing(), "exclusive use is refused while a group owns the doorbells");
	ktap_check(exclusive_of_lost(), "a loss is preserved across exclusive use");
	ktap_check(exclusive_closed_late(), "a handle of before a re-arm changes nothing");
	ktap_check(marked_while_ringing(), "a head that is marked exclusive is not rung twice");
	ktap_check(abandoned_is_counted_first(), "an abandoned command is counted before its CID can be reclaimed");
	ktap_check(transfers_without_data(), "transfers that have no data");
	ktap_check(wide_group(), "48 lanes reserve together");
	ktap_check(release_for_others(), "system fence before the doorbell for other groups");
	ktap_check(uncontended_one_fence(), "one system fence for an uncontended group");
	ktap_check(release_of_head(), "fence between head and tail");
	ktap_check(large_blocks(), "blocks larger than a page without a list");
	free(memory);
	return ktap_end();
}
