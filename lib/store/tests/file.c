// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The store on real files, by io_uring.
 *
 * usage: unit-store-file [MEMBER...]	members that are overwritten; default two files
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nvmepeer_store.h>

enum { PAGE = 40004, VALUES = 150, FILE_BYTES = 16 << 20 };

static int number, failed;

static void check(int good, const char *what)
{
	struct nvmepeer_explanation why;

	printf("%sok %d %s\n", good ? "" : "not ", ++number, what);
	if (good)
		return;
	failed = 1;
	nvmepeer_explain(&why, sizeof(why));
	printf("# %s: %s: %s\n", why.call ? why.call : "", why.what, why.limit);
}

static void fill(uint32_t key, uint32_t *value)
{
	for (uint32_t i = 0; i < PAGE / 4; i++)
		value[i] = key * 2654435761u + i;
}

static int put_values(struct nvmepeer_store *store, uint32_t (*values)[PAGE / 4])
{
	static struct nvmepeer_store_item items[VALUES];
	uint32_t slots[VALUES];

	if (nvmepeer_store_alloc(store, slots, VALUES))
		return 0;
	for (uint32_t i = 0; i < VALUES; i++) {
		items[i].slot = slots[i];
		items[i].data = values[i];
		items[i].length = PAGE;
		memcpy(items[i].tag, &i, sizeof(i));
		fill(i, values[i]);
	}
	if (nvmepeer_store_write(store, items, VALUES))
		return 0;
	for (uint32_t i = 0; i < VALUES; i++)
		items[i].length = 0;
	return !nvmepeer_store_commit(store, items, VALUES);
}

static int find_values(struct nvmepeer_store *store, uint32_t (*values)[PAGE / 4])
{
	static struct nvmepeer_store_item items[VALUES + 1];
	static uint32_t expected[PAGE / 4];
	uint64_t position = 0;
	int good = nvmepeer_store_scan(store, &position, items, VALUES + 1) == VALUES;

	for (uint32_t i = 0; i < VALUES; i++)
		items[i].data = values[i];
	good &= !nvmepeer_store_read(store, items, VALUES);
	for (uint32_t i = 0; i < VALUES; i++) {
		uint32_t key;

		memcpy(&key, items[i].tag, sizeof(key));
		fill(key, expected);
		good &= !memcmp(values[i], expected, PAGE);
	}
	return good;
}

static int try_open(const char *path, struct nvmepeer_store **store)
{
	return nvmepeer_store_open(&path, 1, 0, store);
}

/* Data in the last block, as of md or a copy of a partition table. */
static void check_last_block(const char *const *paths)
{
	struct nvmepeer_store_options options = { sizeof(options), 0, PAGE, 0 };
	int file = open(paths[0], O_RDWR | O_CLOEXEC);

	check(!ftruncate(file, 0) && !ftruncate(file, FILE_BYTES) &&
	      pwrite(file, "data", 4, FILE_BYTES - 4) == 4 &&
	      nvmepeer_store_create(paths, 1, &options) == -EEXIST, "data in the last block");
	close(file);
}

/* What only files do. */
static void check_files(const char *const *paths)
{
	struct nvmepeer_store_options options = { sizeof(options), 0, PAGE, 0 };
	struct nvmepeer_store_item item = { .length = PAGE };
	static uint32_t value[PAGE / 4];
	struct nvmepeer_store *store;
	const char *null = "/dev/null", *proc = "/proc/version";

	check(try_open("/nonexistent", &store) == -ENOENT, "no such file");
	check(try_open(null, &store) == -ENOTBLK, "a character device is no member");
	check(try_open("/", &store) == -ENOTBLK, "a directory is no member");
	check(nvmepeer_store_create(&null, 1, &options) == -ENOTBLK, "nor at create");
	check(nvmepeer_store_open(&proc, 1, NVMEPEER_STORE_READ_ONLY, &store) == -EOPNOTSUPP,
	      "a file system without direct I/O");
	check(!nvmepeer_store_open(paths, 2, 0, &store), "open");
	check(nvmepeer_store_create(paths, 2, &options) == -EBUSY, "a file is used once");
	item.data = value;
	nvmepeer_store_alloc(store, &item.slot, 1);
	nvmepeer_store_write(store, &item, 1);
	item.length = 0;
	nvmepeer_store_commit(store, &item, 1);
	item.data = value;
	check(!truncate(paths[item.slot % 2], 8192) &&
	      nvmepeer_store_read(store, &item, 1) == -EIO, "a file that was truncated");
	nvmepeer_store_close(store);
	check(nvmepeer_store_open(paths, 2, 0, &store) == -EINVAL, "is refused later");
}

int main(int argc, char **argv)
{
	static uint32_t values[VALUES][PAGE / 4];
	struct nvmepeer_store_options options = { sizeof(options), NVMEPEER_STORE_FORCE, PAGE, 0 };
	char folder[] = "/tmp/unit-store-XXXXXX", names[2][64];
	const char *const files[] = { names[0], names[1] };
	const char *const *paths = argc > 1 ? (const char *const *)argv + 1 : files;
	uint32_t count = argc > 1 ? (uint32_t)argc - 1 : 2;
	struct nvmepeer_store_report report;
	struct nvmepeer_store *store;

	puts("TAP version 13");
	for (int i = 0; argc == 1 && i < 2; i++) {
		if (!i && !mkdtemp(folder))
			return 1;
		snprintf(names[i], sizeof(names[i]), "%s/member%d", folder, i);
		close(open(names[i], O_CREAT | O_RDWR, 0600));
		if (truncate(names[i], FILE_BYTES))
			return 1;
	}
	check(!nvmepeer_store_create(paths, count, &options), "create");
	check(!nvmepeer_store_open(paths, count, 0, &store), "open");
	if (failed)
		return 1;
	check(put_values(store, values), "put");
	check(find_values(store, values), "read");
	nvmepeer_store_close(store);
	check(!nvmepeer_store_open(paths, count, NVMEPEER_STORE_READ_ONLY, &store), "open again");
	check(find_values(store, values), "read again");
	check(!nvmepeer_store_check(store, &report, sizeof(report)) && report.verified == VALUES &&
	      !report.damaged_values && !report.damaged_entries, "check");
	nvmepeer_store_close(store);
	if (argc == 1) {
		check_files(paths);
		check_last_block(paths);
		unlink(names[0]);
		unlink(names[1]);
		rmdir(folder);
	}
	printf("1..%d\n", number);
	return failed;
}
