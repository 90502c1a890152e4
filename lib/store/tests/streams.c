// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Calls on streams, on modelled disks.  The stream of the test executes what was added to
 * it when the test says so; a list is executed as a GPU does it, on the disk of its number.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <nvmepeer_cuda.h>
#include <nvmepeer_store.h>

#include "model.h"

enum { MEMBERS = 2, SLOTS = 12, PAGE = 4 * MODEL_BLOCK, MEMORY = 16 * PAGE, MOST = 4 * PAGE };
enum { OPERATIONS = 3, WORKS = 32 };

static const char *const paths[] = { "disk0", "disk1" };
static int number, failed;

static void check(bool good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++number, what);
	failed |= !good;
}

/**
 * struct work - on the stream
 * @function: of the host; NULL: a list
 * @argument: of the function
 * @list: the list
 * @disk: number of the disk
 * @write: the list writes
 */
static struct work {
	void (*function)(void *argument);
	void *argument;
	struct nvmepeer_cuda_list list;
	uint32_t disk;
	bool write;
} works[WORKS];
static uint32_t added, refuse_host, refuse_list, broken_disk;
static uint64_t broken_lba;
static char memory[2][MEMORY];

static int call_host(void *stream, void (*function)(void *argument), void *argument)
{
	(void)stream;
	if (refuse_host && !--refuse_host)
		return 999;
	works[added++] = (struct work){ .function = function, .argument = argument };
	return 0;
}

static int add_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list, bool write)
{
	static const struct nvmepeer_explanation why = { .call = "list", .error = EIO };

	if (refuse_list && !--refuse_list)
		return nvmepeer_fail(&why, sizeof(why));
	works[added++] = (struct work){
		.list = *list,
		.disk = (uint32_t)(uintptr_t)lists - 1,
		.write = write,
	};
	return 0;
}

static int read_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list, void *stream)
{
	(void)stream;
	return add_list(lists, list, false);
}

static int write_list(struct nvmepeer_cuda_lists *lists, const struct nvmepeer_cuda_list *list, void *stream)
{
	(void)stream;
	return add_list(lists, list, true);
}

static void run_list(const struct work *work)
{
	for (uint32_t i = 0; i < *work->list.count_at && i < work->list.count; i++) {
		struct nvmepeer_list_item *item = &work->list.items[i];
		char *data = &memory[item->memory][item->offset];
		/* The members are partitions. */
		uint64_t offset = item->lba * MODEL_BLOCK - MODEL_OFFSET;

		item->status = work->disk == broken_disk && item->lba == broken_lba ? 0x4281 : 0;
		if (!item->status && work->write)
			model_peer_write(work->disk, offset, data, item->bytes);
		else if (!item->status)
			model_peer_read(work->disk, offset, data, item->bytes);
	}
}

/* The stream executes all that was added. */
static void run(void)
{
	for (uint32_t i = 0; i < added; i++) {
		if (works[i].function)
			works[i].function(works[i].argument);
		else
			run_list(&works[i]);
	}
	added = 0;
}

static void fill_memory(void *argument)
{
	for (uint32_t i = 0; i < MEMORY; i++)
		memory[0][i] = (char)(i * 31 + i / 509 + (uintptr_t)argument);
}

/** struct call - parameters of a call */
struct call {
	size_t size;
	int64_t offset;
	int64_t base_offset;
	int64_t done;
};

static struct nvmepeer_store *store;
static struct nvmepeer_store_streams *by_lists, *by_host;
static uint32_t slots[SLOTS];
static uint64_t pinned[2048];

static int read_call(struct nvmepeer_store_streams *streams, uint32_t base, struct call *call)
{
	return nvmepeer_store_read_async(streams, memory[base], &call->size, &call->offset,
					 &call->base_offset, &call->done, NULL);
}

static int write_call(struct nvmepeer_store_streams *streams, uint32_t base, struct call *call)
{
	return nvmepeer_store_write_async(streams, memory[base], &call->size, &call->offset,
					  &call->base_offset, &call->done, NULL);
}

/* One call, and its result. */
static int64_t result_of(struct nvmepeer_store_streams *streams, size_t size, int64_t offset,
			 int64_t base_offset)
{
	struct call call = { size, offset, base_offset, 0 };
	int error = read_call(streams, 1, &call);

	run();
	return error ? error : call.done;
}

static struct nvmepeer_store_streams_options options_of(bool lists)
{
	static const struct nvmepeer_store_memory memories[] = {
		{ memory[0], MEMORY }, { memory[1], MEMORY },
	};
	static struct nvmepeer_cuda_lists *const disks[] = {
		(void *)(uintptr_t)1, (void *)(uintptr_t)2,
	};

	return (struct nvmepeer_store_streams_options){
		.size = sizeof(struct nvmepeer_store_streams_options),
		.operations = OPERATIONS,
		.most_bytes = MOST,
		.slots = slots,
		.slot_count = SLOTS,
		.memories = memories,
		.lists = lists ? disks : NULL,
		.call_host = call_host,
		.read_list = read_list,
		.write_list = write_list,
		.pinned = pinned,
		.memory_count = 2,
		.pinned_bytes = sizeof(pinned),
	};
}

static bool open_all(void)
{
	struct nvmepeer_store_options made = { sizeof(made), 0, PAGE, SLOTS };
	struct nvmepeer_store_streams_options lists = options_of(true), host = options_of(false);

	model_reset(1);
	return !nvmepeer_store_create(paths, MEMBERS, &made) &&
	       !nvmepeer_store_open(paths, MEMBERS, 0, &store) &&
	       !nvmepeer_store_alloc(store, slots, SLOTS) &&
	       nvmepeer_store_streams_bytes(store, OPERATIONS, MOST) <= sizeof(pinned) &&
	       !nvmepeer_store_streams_open(store, &lists, &by_lists) &&
	       !nvmepeer_store_streams_open(store, &host, &by_host);
}

/* Writes by one way, reads by both. */
static void test_round_trip(struct nvmepeer_store_streams *writer, uintptr_t key, const char *what)
{
	/* From inside a page to inside another one, over both members. */
	struct call write = { 3 * PAGE, PAGE + MODEL_BLOCK, MODEL_BLOCK, 0 };
	struct call read = { 3 * PAGE, PAGE + MODEL_BLOCK, 4, 0 };
	bool good;

	fill_memory((void *)key);
	memset(memory[1], 0, MEMORY);
	good = !write_call(writer, 0, &write) && !write.done;
	run();
	good &= write.done == 3 * PAGE;
	for (int i = 0; i < 2; i++) {
		memset(memory[1], 0, MEMORY);
		read.done = 0;
		good &= !read_call(i ? by_host : by_lists, 1, &read) && !read.done;
		run();
		good &= read.done == 3 * PAGE && !memory[1][3] && !memory[1][4 + 3 * PAGE];
		good &= !memcmp(memory[0] + MODEL_BLOCK, memory[1] + 4, 3 * PAGE);
	}
	check(good, what);
}

static void test_late_parameters(struct nvmepeer_store_streams *streams, const char *what)
{
	struct call write = { 1, -1, -1, 0 }, read = { 1, -1, -1, 0 };
	bool good = !call_host(NULL, fill_memory, (void *)(uintptr_t)7);

	/* The data, too, comes from earlier work of the stream. */
	memset(memory, 0, sizeof(memory));
	good &= !write_call(streams, 0, &write) && !read_call(streams, 1, &read);
	write.size = read.size = PAGE;
	write.offset = read.offset = 5 * PAGE;
	write.base_offset = PAGE;
	read.base_offset = 2 * PAGE;
	good &= !write.done && !read.done;
	run();
	good &= write.done == PAGE && read.done == PAGE;
	check(good && memory[0][1] && !memcmp(memory[0] + PAGE, memory[1] + 2 * PAGE, PAGE), what);
}

static void test_limits(struct nvmepeer_store_streams *streams, const char *what)
{
	bool good = result_of(streams, PAGE + 4, 0, 0) == -EINVAL;

	good &= result_of(streams, PAGE, 4, 0) == -EINVAL;
	good &= result_of(streams, MOST + MODEL_BLOCK, 0, 0) == -E2BIG;
	good &= result_of(streams, PAGE, SLOTS * PAGE - MODEL_BLOCK, 0) == -ERANGE;
	good &= result_of(streams, PAGE, -PAGE, 0) == -ERANGE;
	good &= result_of(streams, PAGE, 0, -PAGE) == -ERANGE;
	good &= result_of(streams, PAGE, 0, MEMORY - PAGE + 4) == -ERANGE;
	good &= result_of(streams, MOST, SLOTS * PAGE - MOST, MEMORY - MOST) == MOST;
	good &= nvmepeer_store_read_async(streams, &good, NULL, NULL, NULL, NULL, NULL) == -EFAULT;
	check(good && result_of(streams, 0, 0, 0) == 0, what);
}

/* Operations end by result; a failure is that of its call. */
static void test_failures(void)
{
	struct call calls[OPERATIONS + 1] = { { 0 } };
	struct nvmepeer_store_place place = { .size = sizeof(place) };
	bool good = !nvmepeer_store_place(store, slots[2], &place, sizeof(place));

	for (uint32_t i = 0; i <= OPERATIONS; i++)
		calls[i] = (struct call){ PAGE, (int64_t)i * PAGE + PAGE, 0, 0 };
	for (uint32_t i = 0; i < OPERATIONS; i++)
		good &= !read_call(by_lists, 1, &calls[i]);
	check(good && read_call(by_lists, 1, &calls[OPERATIONS]) == -EBUSY &&
	      nvmepeer_store_streams_close(by_lists) == -EBUSY, "calls in flight are limited");
	broken_disk = place.member;
	broken_lba = place.lba;
	run();
	broken_lba = 0;
	check(calls[0].done == PAGE && calls[1].done == -EIO && calls[2].done == PAGE &&
	      !calls[3].done, "a failure is that of one call");
}

/* Pages of two tensors, of which the first is padded: 3 blocks of a slot, and 1. */
enum { PAGES = 4, FIRST = 2 * MODEL_BLOCK + 100, SECOND = MODEL_BLOCK };

static struct nvmepeer_list_tensor tensors[2];
static struct nvmepeer_store_item page_items[PAGES];
static uint32_t page_count, page_numbers[PAGES];
static int64_t pages_done;

static struct nvmepeer_store_pages pages_of(uint32_t base)
{
	tensors[0] = (struct nvmepeer_list_tensor){ 4, FIRST + 8, base, FIRST, 0, 0 };
	tensors[1] = (struct nvmepeer_list_tensor){ 9 * PAGE, 2 * SECOND, base, SECOND, 3, 0 };
	pages_done = 0;
	page_count = PAGES;
	for (uint32_t i = 0; i < PAGES; i++) {
		page_items[i] = (struct nvmepeer_store_item){
			.slot = slots[2 * i + 1 - i % 2], .length = PAGE, .result = 1,
		};
		page_numbers[i] = 3 - i;
	}
	return (struct nvmepeer_store_pages){
		.size = sizeof(struct nvmepeer_store_pages), .tensor_count = 2, .tensors = tensors,
		.count = &page_count, .items = page_items, .numbers = page_numbers, .done = &pages_done,
	};
}

static void test_refusals(void)
{
	struct call call = { PAGE, 0, 0, 0 };
	bool good = true;

	for (uint32_t i = 1; i <= MEMBERS; i++) {
		struct call *freed = mmap(NULL, sizeof(call), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		*freed = call;
		refuse_list = i;
		good &= read_call(by_lists, 1, freed) == -EIO;
		munmap(freed, sizeof(call));
		run();
	}
	for (uint32_t i = 1; i <= MEMBERS; i++) {
		struct nvmepeer_store_pages pages = pages_of(1);

		refuse_list = i;
		good &= nvmepeer_store_read_pages_async(by_lists, &pages, NULL) == -EIO;
		page_count = 1u << 31;
		run();
		good &= page_items[0].result == 1 && !pages_done;
	}
	refuse_host = 1;
	good &= read_call(by_lists, 1, &call) == -EIO && !added;
	for (uint32_t i = 0; i < OPERATIONS; i++)
		good &= !read_call(by_lists, 1, &call);
	run();
	check(good && call.done == PAGE, "a refused call does not use its parameters, and no operation is lost");
	refuse_host = 2;
	call.done = 0;
	good = read_call(by_lists, 1, &call) == -EIO && added == 1 + MEMBERS;
	run();
	check(good && !call.done && nvmepeer_store_streams_close(by_lists) == -EBUSY,
	      "without its last function a call does not report its end");
}

static void test_lost_member(void)
{
	struct nvmepeer_store_item item = { .slot = slots[SLOTS - 1], .length = PAGE, .data = memory[0] };
	struct nvmepeer_store_pages pages;
	int64_t lists, host, both, other;

	/* The table of its member cannot be written. */
	nvmepeer_store_write(store, &item, 1);
	model_fail(item.slot % MEMBERS, IO_WRITE_FUA, 0, 100);
	nvmepeer_store_commit(store, &item, 1);
	lists = result_of(by_lists, PAGE, (SLOTS - 1) * PAGE, 0);
	host = result_of(by_host, PAGE, (SLOTS - 1) * PAGE, 0);
	memset(memory[1], 0xa5, MEMORY);
	both = result_of(by_lists, 2 * PAGE, (SLOTS - 2) * PAGE, 0);
	check(lists == -ENODEV && host == -ENODEV && both == -ENODEV && memory[1][9] == memory[1][PAGE],
	      "slots of a lost member fail, and nothing of the call is read");
	for (int i = 0; i < 2; i++) {
		pages = pages_of(1);
		nvmepeer_store_read_pages_async(i ? by_host : by_lists, &pages, NULL);
		run();
		check(pages_done == PAGES / 2 && page_items[0].result + page_items[1].result == -ENODEV,
		      "pages of a lost member fail, others are read");
	}
	other = result_of(by_lists, PAGE, (SLOTS - 2) * PAGE, 0);
	check(other == PAGE && memory[1][9] != memory[1][PAGE], "others are read");
}

/* Page @to of memory 1 is page @from of memory 0, and nothing around it has changed. */
static bool page_moved(uint32_t from, uint32_t to)
{
	const char *first = memory[1] + 4 + to * (FIRST + 8);
	const char *second = memory[1] + 9 * PAGE + to * 2 * SECOND;

	return !memcmp(first, memory[0] + 4 + from * (FIRST + 8), FIRST) && first[FIRST] == 0x5a &&
	       !memcmp(second, memory[0] + 9 * PAGE + from * 2 * SECOND, SECOND) && second[SECOND] == 0x5a;
}

static bool pages_read(struct nvmepeer_store_streams *streams, uint64_t generation)
{
	struct nvmepeer_store_pages pages = pages_of(1);
	bool good;

	memset(memory[1], 0x5a, MEMORY);
	/* All of them are read when the stream comes to the call. */
	page_count = 0;
	good = !nvmepeer_store_read_pages_async(streams, &pages, NULL) && !pages_done;
	memset(&pages, 0, sizeof(pages));
	page_count = PAGES;
	for (uint32_t i = 0; i < PAGES; i++) {
		page_numbers[i] = i;
		page_items[i].generation = generation;
	}
	run();
	for (uint32_t i = 0; i < PAGES; i++)
		good &= !page_items[i].result && page_moved(3 - i, i);
	return good && pages_done == PAGES;
}

static void test_pages(struct nvmepeer_store_streams *streams, uintptr_t key, const char *what)
{
	struct nvmepeer_store_pages pages = pages_of(0);
	bool good = !call_host(NULL, fill_memory, (void *)key) &&
		    !nvmepeer_store_write_pages_async(streams, &pages, NULL) && !pages_done;

	run();
	good &= pages_done == PAGES && pages_read(by_lists, 0) && pages_read(by_host, 0);
	check(good, what);
}

/* A failure is that of its page. */
static void test_page_failures(struct nvmepeer_store_streams *streams, const char *what)
{
	struct nvmepeer_store_pages pages = pages_of(1);
	bool good;

	page_items[0].slot = SLOTS * MEMBERS;
	page_items[1].generation = 7;
	page_numbers[3] = 1u << 31;
	good = !nvmepeer_store_read_pages_async(streams, &pages, NULL);
	run();
	good &= pages_done == 1 && page_items[0].result == -EINVAL && page_items[1].result == -EINVAL &&
		!page_items[2].result && page_items[3].result == -ERANGE;
	pages = pages_of(1);
	tensors[1].block = 4;
	good &= !nvmepeer_store_read_pages_async(streams, &pages, NULL);
	run();
	good &= pages_done == 0 && page_items[2].result == -ERANGE;
	for (uint32_t i = 0; i < 2; i++) {
		pages = pages_of(1);
		tensors[1].offset = MEMORY - SECOND + 4 * i;
		good &= !nvmepeer_store_read_pages_async(streams, &pages, NULL);
		run();
		good &= pages_done == !i && page_items[3].result == (i ? -ERANGE : 0);
	}
	pages = pages_of(2);
	good &= !nvmepeer_store_read_pages_async(streams, &pages, NULL);
	run();
	good &= pages_done == 0 && page_items[2].result == -ERANGE;
	pages = pages_of(1);
	pages.numbers = NULL;
	good &= nvmepeer_store_read_pages_async(streams, &pages, NULL) == -EINVAL;
	pages.size = 8;
	good &= nvmepeer_store_read_pages_async(streams, &pages, NULL) == -EINVAL;
	check(good && !added, what);
}

static void test_broken_page(void)
{
	struct nvmepeer_store_pages pages = pages_of(1);
	struct nvmepeer_store_place place = { .size = sizeof(place) };
	bool good = !nvmepeer_store_place(store, page_items[2].slot, &place, sizeof(place));

	broken_disk = place.member;
	broken_lba = place.lba + 3;
	good &= !nvmepeer_store_read_pages_async(by_lists, &pages, NULL);
	run();
	broken_lba = 0;
	good &= pages_done == PAGES - 1 && page_items[2].result == -EIO && !page_items[3].result;
	/* More pieces than a call has room for. */
	pages = pages_of(1);
	pages.tensor_count = 1;
	page_count = 1;
	for (uint32_t i = 0; i < 2; i++) {
		static struct nvmepeer_list_tensor many[64];

		for (uint32_t j = 0; j < 64; j++)
			many[j] = (struct nvmepeer_list_tensor){ 0, 4, 1, 4, 0, 0 };
		pages.tensors = many;
		pages.tensor_count = i ? 64 : 2;
		pages_done = 0;
		good &= !nvmepeer_store_read_pages_async(by_lists, &pages, NULL);
		run();
		good &= pages_done == (i ? -E2BIG : 1);
	}
	check(good, "a failed command is that of its page, and a call has a most of pieces");
}

/* Values are read while they are pinned, and not written. */
static void test_pinned_pages(void)
{
	struct nvmepeer_store_pages pages = pages_of(0);
	struct nvmepeer_store_item value = page_items[2];
	bool good;

	fill_memory((void *)5);
	good = !nvmepeer_store_write_pages_async(by_lists, &pages, NULL);
	run();
	value.flags = NVMEPEER_STORE_PEER;
	good &= pages_done == PAGES && !nvmepeer_store_commit(store, &value, 1);
	for (int pinned_now = 0; pinned_now < 2; pinned_now++) {
		pages = pages_of(1);
		page_items[2].generation = value.generation;
		memset(memory[1], 0x5a, MEMORY);
		good &= !nvmepeer_store_read_pages_async(by_lists, &pages, NULL);
		run();
		good &= page_items[2].result == (pinned_now ? 0 : -EINVAL) && page_moved(1, 1) == pinned_now;
		good &= !nvmepeer_store_write_pages_async(by_lists, &pages, NULL);
		run();
		good &= page_items[2].result == -EINVAL && !page_items[1].result;
		if (!pinned_now)
			good &= !nvmepeer_store_pin(store, &value, 1);
	}
	nvmepeer_store_unpin(store, &value, 1);
	good &= !nvmepeer_store_free(store, &value, 1, 0) && !nvmepeer_store_alloc(store, &value.slot, 1);
	check(good, "a value is read while it is pinned, and not written");
}

static bool is_refused(struct nvmepeer_store_streams_options options, int error)
{
	struct nvmepeer_store_streams *streams;

	return nvmepeer_store_streams_open(store, &options, &streams) == error;
}

static void test_options(void)
{
	struct nvmepeer_store_streams_options options = options_of(true);
	uint32_t slot = SLOTS * MEMBERS;
	bool good;

	options.pinned_bytes = nvmepeer_store_streams_bytes(store, OPERATIONS, MOST) - 1;
	good = is_refused(options, -EINVAL);
	options = options_of(true);
	options.call_host = NULL;
	good &= is_refused(options, -EINVAL);
	options = options_of(true);
	options.slots = &slot;
	options.slot_count = 1;
	good &= is_refused(options, -EINVAL);
	nvmepeer_store_alloc(store, &slot, 1);
	nvmepeer_store_free(store, &(struct nvmepeer_store_item){ .slot = slot }, 1, 0);
	good &= is_refused(options, -EINVAL);
	options = options_of(true);
	options.size = 8;
	good &= is_refused(options, -EINVAL);
	check(good, "invalid options are refused");
}

int main(void)
{
	printf("TAP version 13\n");
	check(open_all(), "streams are opened");
	if (failed)
		return 1;
	test_options();
	test_round_trip(by_lists, 1, "data is where the host finds it");
	test_round_trip(by_host, 2, "the host's data is where lists find it");
	test_late_parameters(by_lists, "lists: parameters and data are those of the stream's time");
	test_late_parameters(by_host, "host: parameters and data are those of the stream's time");
	test_limits(by_lists, "lists: ranges are checked");
	test_limits(by_host, "host: ranges are checked");
	test_pages(by_lists, 3, "lists: pages of tensors are where both find them");
	test_pages(by_host, 4, "host: pages of tensors are where both find them");
	test_page_failures(by_lists, "lists: a page that is invalid fails by itself");
	test_page_failures(by_host, "host: a page that is invalid fails by itself");
	test_broken_page();
	test_pinned_pages();
	test_failures();
	test_refusals();
	test_lost_member();
	nvmepeer_store_streams_close(by_host);
	nvmepeer_store_close(store);
	printf("1..%d\n", number);
	return failed;
}
