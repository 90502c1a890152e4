// SPDX-License-Identifier: MIT OR GPL-2.0
/* nvme-peer store: create, list, check and measure a store of pages. */
#include <errno.h>
#include <nvmepeer_store.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "nvme-peer.h"
#include "units.h"

enum { LIST = 64, DEFAULT_SECONDS = 5, DEFAULT_VALUES = 32, MOST_VALUES = 1024, PATH = 4096 };

/* "nvmep0n1" is a node; a file has a slash. */
static const char *const *paths_of(int argc, char **argv)
{
	static char names[NVMEPEER_STORE_MEMBERS][PATH];
	static const char *paths[NVMEPEER_STORE_MEMBERS];

	for (int i = 0; i < argc && i < NVMEPEER_STORE_MEMBERS; i++) {
		snprintf(names[i], PATH, "%s%s", strchr(argv[i], '/') ? "" : "/dev/", argv[i]);
		paths[i] = names[i];
	}
	return paths;
}

static int refused(struct report *report)
{
	report_failure(report);
	return EXIT_REFUSED;
}

static void report_info(struct report *report, struct nvmepeer_store *store)
{
	struct nvmepeer_store_info info;
	char uuid[2 * sizeof(info.uuid) + 1];

	nvmepeer_store_info(store, &info, sizeof(info));
	for (size_t i = 0; i < sizeof(info.uuid); i++)
		snprintf(uuid + 2 * i, 3, "%02x", info.uuid[i]);
	report_text(report, "uuid", uuid);
	report_number(report, "members", info.members, NULL);
	report_number(report, "live_members", (uint64_t)__builtin_popcountll(info.live), NULL);
	report_bytes(report, "page_bytes", info.page_bytes);
	report_bytes(report, "slot_bytes", info.slot_bytes);
	report_number(report, "slots", info.slots, NULL);
	report_number(report, "free_slots", info.free_slots, NULL);
}

static int open_to_read(struct report *report, int argc, char **argv, struct nvmepeer_store **store)
{
	if (nvmepeer_store_open(paths_of(argc, argv), (uint32_t)argc,
				NVMEPEER_STORE_READ_ONLY | NVMEPEER_STORE_DEGRADED, store))
		return refused(report);
	report_info(report, *store);
	return 0;
}

static int store_create(struct report *report, const struct options *options, int argc, char **argv)
{
	struct nvmepeer_store_options made = {
		.size = sizeof(made),
		.flags = options->given & OPTION_FORCE ? NVMEPEER_STORE_FORCE : 0,
		.page_bytes = options->size,
		.slots = options->given & OPTION_COUNT ? (uint32_t)options->count : 0,
	};
	struct nvmepeer_store *store;
	int status;

	if (!(options->given & OPTION_SIZE))
		return usage_error("store create needs --size, the bytes of a page", NULL);
	if (nvmepeer_store_create(paths_of(argc, argv), (uint32_t)argc, &made))
		return refused(report);
	status = open_to_read(report, argc, argv, &store);
	if (!status)
		nvmepeer_store_close(store);
	return status;
}

static void report_value(struct report *report, const struct nvmepeer_store_item *item)
{
	char tag[2 * NVMEPEER_STORE_TAG + 1];

	for (size_t i = 0; i < NVMEPEER_STORE_TAG; i++)
		snprintf(tag + 2 * i, 3, "%02x", item->tag[i]);
	report_object(report, NULL);
	report_number(report, "slot", item->slot, NULL);
	report_number(report, "length", item->length, "bytes");
	report_number(report, "generation", item->generation, NULL);
	report_text(report, "tag", tag);
	report_object_end(report);
}

static int store_list(struct report *report, const struct options *options, int argc, char **argv)
{
	struct nvmepeer_store_item items[LIST];
	uint64_t position = 0, rest = options->count;
	struct nvmepeer_store *store;
	int status = open_to_read(report, argc, argv, &store);
	int count;

	if (status)
		return status;
	report_list(report, "values");
	while (rest && (count = nvmepeer_store_scan(store, &position, items,
						    rest < LIST ? (uint32_t)rest : LIST)) > 0) {
		for (int i = 0; i < count; i++)
			report_value(report, &items[i]);
		rest -= (uint64_t)count;
	}
	report_list_end(report);
	nvmepeer_store_close(store);
	return 0;
}

static int store_check(struct report *report, int argc, char **argv)
{
	struct nvmepeer_store_report found;
	struct nvmepeer_store_info info;
	struct nvmepeer_store *store;
	uint32_t dead, emptied;
	int status = open_to_read(report, argc, argv, &store);

	if (status)
		return status;
	if (nvmepeer_store_check(store, &found, sizeof(found))) {
		nvmepeer_store_close(store);
		return refused(report);
	}
	report_number(report, "values", found.values, NULL);
	report_number(report, "verified", found.verified, NULL);
	report_number(report, "without_checksum", found.unverified, NULL);
	report_number(report, "damaged_values", found.damaged_values, NULL);
	report_number(report, "damaged_entries", found.damaged_entries, NULL);
	nvmepeer_store_info(store, &info, sizeof(info));
	nvmepeer_store_close(store);
	dead = info.members - (uint32_t)__builtin_popcountll(info.live);
	if (dead)
		fprintf(stderr, "nvme-peer: %u of %u members missing or lost: their values are not checked\n"
			"  help:  pass all members; see the kernel's log\n", dead, info.members);
	emptied = (uint32_t)__builtin_popcountll(info.emptied);
	if (emptied)
		fprintf(stderr, "nvme-peer: %u of %u members have missed changes: their values are not checked\n"
			"  help:  the next open that writes empties them\n", emptied, info.members);
	return dead || emptied || found.damaged_values || found.damaged_entries ? EXIT_REFUSED : 0;
}

/**
 * struct measure - the values of a measurement
 * @store: store
 * @items: list of @count values
 * @page_bytes: length of each
 * @nanoseconds: how long to repeat each call
 */
struct measure {
	struct nvmepeer_store *store;
	struct nvmepeer_store_item *items;
	uint32_t count;
	uint32_t page_bytes;
	uint64_t nanoseconds;
};

/* The signal that ends a measurement, whose values are then freed. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = number;
}

static int put(struct measure *measure)
{
	int error;

	for (uint32_t i = 0; i < measure->count; i++)
		measure->items[i].length = measure->page_bytes;
	error = nvmepeer_store_write(measure->store, measure->items, measure->count);
	for (uint32_t i = 0; i < measure->count; i++)
		measure->items[i].length = 0;
	return error ? error :
	       nvmepeer_store_commit(measure->store, measure->items, measure->count);
}

static int get(struct measure *measure)
{
	return nvmepeer_store_read(measure->store, measure->items, measure->count);
}

/* Freed and allocated: the next slots, so that all of the disk is used. */
static int renew(struct measure *measure, uint32_t *slots)
{
	int error = nvmepeer_store_alloc(measure->store, slots, measure->count);

	for (uint32_t i = 0; !error && i < measure->count; i++) {
		measure->items[i].slot = slots[i];
		measure->items[i].generation = 0;
	}
	return error;
}

static void report_rate(struct report *report, const char *name, const struct measure *measure,
			uint64_t lists, uint64_t took)
{
	uint64_t bytes = lists * measure->count * measure->page_bytes;
	char amount[UNITS_TEXT], text[UNITS_TEXT + 2];
	uint64_t rate = (uint64_t)((double)bytes * 1e9 / (double)(took ? took : 1));

	report_object(report, name);
	report_number(report, "values", lists * measure->count, NULL);
	snprintf(text, sizeof(text), "%s/s", units_disk(rate, amount));
	report_rounded(report, "bytes_per_second", rate, "bytes/s", NULL, text);
	report_duration(report, "list_ns", "list", lists ? took / lists : 0);
	report_object_end(report);
}

static int measure_all(struct report *report, struct measure *measure, uint32_t *slots)
{
	uint64_t puts = 0, gets = 0, putting = 0, getting = 0, began;
	int error = renew(measure, slots);

	while (!error && !stopped && putting < measure->nanoseconds) {
		began = now_ns();
		error = put(measure);
		putting += now_ns() - began;
		puts++;
		if (!error && !stopped && putting < measure->nanoseconds) {
			error = nvmepeer_store_free(measure->store, measure->items, measure->count, 0);
			if (!error)
				error = renew(measure, slots);
		}
	}
	while (!error && !stopped && getting < measure->nanoseconds) {
		began = now_ns();
		error = get(measure);
		getting += now_ns() - began;
		gets++;
	}
	if (error) {
		refused(report);
		/* What has a value or an allocation is freed. */
		nvmepeer_store_free(measure->store, measure->items, measure->count, 0);
		return EXIT_REFUSED;
	}
	report_rate(report, "put", measure, puts, putting);
	report_rate(report, "read", measure, gets, getting);
	if (nvmepeer_store_free(measure->store, measure->items, measure->count, 0))
		return refused(report);
	return stopped ? 128 + stopped : 0;
}

/* Only slots without values are written, and they have none afterwards, also after a signal. */
static int store_bench(struct report *report, const struct options *options, int argc, char **argv)
{
	struct measure measure = {
		.count = options->entries ? options->entries : DEFAULT_VALUES,
		.nanoseconds = (options->seconds ? options->seconds : DEFAULT_SECONDS) * 1000000000,
	};
	struct sigaction action = { .sa_handler = stop };
	struct nvmepeer_store_info info;
	uint32_t *slots;
	void *data = NULL;
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (measure.count > MOST_VALUES)
		return usage_error("store bench takes at most 1024 --entries", NULL);
	if (nvmepeer_store_open(paths_of(argc, argv), (uint32_t)argc, 0, &measure.store))
		return refused(report);
	report_info(report, measure.store);
	nvmepeer_store_info(measure.store, &info, sizeof(info));
	measure.page_bytes = info.page_bytes;
	measure.items = calloc(measure.count, sizeof(*measure.items));
	slots = calloc(measure.count, sizeof(*slots));
	if (!measure.items || !slots || posix_memalign(&data, 65536, measure.count * info.slot_bytes)) {
		fputs("nvme-peer: out of memory: use fewer --entries\n", stderr);
		status = EXIT_REFUSED;
	} else {
		memset(data, 0x5a, measure.count * info.slot_bytes);
		for (uint32_t i = 0; i < measure.count; i++)
			measure.items[i].data = (char *)data + i * info.slot_bytes;
		status = measure_all(report, &measure, slots);
	}
	free(data);
	free(slots);
	free(measure.items);
	nvmepeer_store_close(measure.store);
	return status;
}

int command_store(struct report *report, const struct options *options, int argc, char **argv)
{
	const char *what = argc ? argv[0] : "";

	if (strcmp(what, "create") != 0 && strcmp(what, "list") != 0 && strcmp(what, "check") != 0 &&
	    strcmp(what, "bench") != 0)
		return usage_error("store takes create, list, check or bench", argc ? what : NULL);
	argc--;
	argv++;
	if (!argc)
		return usage_error("store takes the members of a store", NULL);
	if (!strcmp(what, "create"))
		return store_create(report, options, argc, argv);
	if (!strcmp(what, "list"))
		return store_list(report, options, argc, argv);
	if (!strcmp(what, "check"))
		return store_check(report, argc, argv);
	return store_bench(report, options, argc, argv);
}
