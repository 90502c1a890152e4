// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: make the n-th allocation or user copy of the module fail, and find
 * leaks; see fault.h.
 */
#include "fault.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUGFS		"/sys/kernel/debug/"
#define MODULE		"[nvme_peer]"
/* Where x86-64 has modules, Documentation/arch/x86/x86_64/mm.rst. */
#define MODULES_START	"0xffffffffa0000000"
#define MODULES_END	"0xffffffffff000000"
#define DRIVER		"nvme-peer"
#define SLAB		"/sys/kernel/slab"
#define MAX_WORKERS	256

static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

static int set(const char *kind, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "%s/%s", kind, name);
	return np_write_file(path, value);
}

/* Lowest and highest address of functions whose line in kallsyms contains @part. */
static int text_range(const char *part, unsigned long *first, unsigned long *last)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	unsigned long address;
	char line[512], type;

	if (!symbols)
		return -errno;
	*first = ~0UL;
	*last = 0;
	while (fgets(line, sizeof(line), symbols)) {
		if (!strstr(line, part) || sscanf(line, "%lx %c", &address, &type) != 2 ||
		    tolower(type) != 't')
			continue;
		if (address < *first)
			*first = address;
		if (address > *last)
			*last = address;
	}
	fclose(symbols);
	return *last ? 0 : -ENOENT;
}

/* The last function ends in the page after its first byte. */
static int set_range(const char *kind, const char *which, const char *part)
{
	unsigned long first = 0, last = 0;
	char name[32], text[32];
	int ret;

	ret = text_range(part, &first, &last);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s-start", which);
	snprintf(text, sizeof(text), "%#lx", first);
	ret = set(kind, name, text);
	snprintf(name, sizeof(name), "%s-end", which);
	snprintf(text, sizeof(text), "%#lx", last + NP_PAGE);
	return ret ?: set(kind, name, text);
}

int fault_set_reach(enum fault_reach reach)
{
	char text[16];
	unsigned int i;
	int ret = 0;

	snprintf(text, sizeof(text), "%u", (unsigned int)reach);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !ret; i++)
		ret = set(kinds[i], "stacktrace-depth", text);
	return ret;
}

/* Below the module, but not in DMA-API debugging, which would disable itself for good. */
static int restrict_to_module(const char *kind)
{
	set_range(kind, "reject", " debug_dma_");
	return set_range(kind, "require", MODULE);
}

int fault_any_module(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !ret; i++)
		ret = set(kinds[i], "require-start", MODULES_START) ?:
		      set(kinds[i], "require-end", MODULES_END);
	return ret;
}

/*
 * All slab caches but one: the kernel warns when an interrupt is freed whose /proc entry
 * could not be created.
 */
static void choose_caches(void)
{
	DIR *caches = opendir(SLAB);
	struct dirent *entry;
	char path[320];

	if (!caches)
		return;
	while ((entry = readdir(caches))) {
		snprintf(path, sizeof(path), SLAB "/%s/failslab", entry->d_name);
		np_write_file(path, strcmp(entry->d_name, "proc_dir_entry") ? "1" : "0");
	}
	closedir(caches);
	set("failslab", "cache-filter", "Y");
}

int fault_setup(void)
{
	unsigned int i;
	int ret;

	if (access("/proc/thread-self/fail-nth", W_OK))
		return -EOPNOTSUPP;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ret = restrict_to_module(kinds[i]);
		if (ret)
			return ret;
		set(kinds[i], "verbose", "0");
		set(kinds[i], "probability", "0");
		/* Not every kind has these files. */
		set(kinds[i], "ignore-gfp-wait", "N");
		set(kinds[i], "ignore-gfp-highmem", "N");
		set(kinds[i], "min-order", "0");
	}
	choose_caches();
	return fault_set_reach(FAULT_FAR);
}

static int write_nth(const char *path, unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return np_write_file(path, text);
}

/* 0 means that the counter, which was not 0, has expired. */
static bool ran_out(const char *path)
{
	char text[16] = "";

	return !np_read_file(path, text, sizeof(text)) && !strtoul(text, NULL, 10);
}

/* Worker threads armed by fault_arm(): more may have been created since. */
static pid_t workers[MAX_WORKERS];
static unsigned int worker_count;

static bool is_worker(const char *pid)
{
	char path[320], name[32] = "";

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	return !np_read_file(path, name, sizeof(name)) && !strncmp(name, "kworker/", 8);
}

static void find_workers(void)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	worker_count = 0;
	if (!proc)
		return;
	while ((entry = readdir(proc)) && worker_count < MAX_WORKERS)
		if (isdigit((unsigned char)entry->d_name[0]) && is_worker(entry->d_name))
			workers[worker_count++] = (pid_t)strtol(entry->d_name, NULL, 10);
	closedir(proc);
}

static const char *worker_path(unsigned int i)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fail-nth", (int)workers[i]);
	return path;
}

int fault_arm(enum fault_where where, unsigned int n)
{
	unsigned int i;

	if (where == FAULT_CALLER)
		return write_nth("/proc/thread-self/fail-nth", n);
	find_workers();
	for (i = 0; i < worker_count; i++)
		write_nth(worker_path(i), n);
	return worker_count ? 0 : -ESRCH;
}

bool fault_disarm(enum fault_where where)
{
	bool fired = false;
	unsigned int i;

	if (where == FAULT_CALLER) {
		fired = ran_out("/proc/thread-self/fail-nth");
		write_nth("/proc/thread-self/fail-nth", 0);
		return fired;
	}
	for (i = 0; i < worker_count; i++) {
		fired |= ran_out(worker_path(i));
		write_nth(worker_path(i), 0);
	}
	return fired;
}

int fault_dma_mappings(bool print)
{
	FILE *dump = fopen(DEBUGFS "dma-api/dump", "re");
	char line[512];
	int count = 0;

	if (!dump)
		return -errno;
	while (fgets(line, sizeof(line), dump)) {
		if (strncmp(line, DRIVER " ", strlen(DRIVER " ")))
			continue;
		count++;
		if (print)
			printf("# %s", line);
	}
	fclose(dump);
	return count;
}

int fault_dma_all(void)
{
	char total[32], available[32];
	int ret = np_read_file(DEBUGFS "dma-api/nr_total_entries", total, sizeof(total)) ?:
		  np_read_file(DEBUGFS "dma-api/num_free_entries", available, sizeof(available));

	return ret ?: atoi(total) - atoi(available);
}

/* Reports begin with "unreferenced object" and continue with an indented trace. */
int fault_leaks(void)
{
	bool ours = false;
	char line[512];
	FILE *file;
	int count = 0;

	if (!np_kmemleak_on())
		return -EOPNOTSUPP;
	file = np_kmemleak_scan();
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "unreferenced", 12))
			ours = false;
		if (!ours && strstr(line, MODULE)) {
			ours = true;
			count++;
		}
		if (ours)
			printf("# %s", line);
	}
	fclose(file);
	return count;
}
