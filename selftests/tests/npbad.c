// SPDX-License-Identifier: GPL-2.0-only
/* Control of badctrl through its words and rules in config space; see npbad.h. */
#include "npbad.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PARAMETERS	"/sys/module/nvme_peer/parameters/"

/* --- words ---------------------------------------------------------------- */

/* Of the address of a word until its access: np_bad_let_expire() has a thread. */
static pthread_mutex_t window = PTHREAD_MUTEX_INITIALIZER;

int np_bad_set(struct np_bad *bad, uint32_t word, uint32_t value)
{
	bool set;

	pthread_mutex_lock(&window);
	set = pwrite(bad->config, &word, sizeof(word), BADCTRL_CONFIG_ADDRESS) == sizeof(word) &&
	      pwrite(bad->config, &value, sizeof(value), BADCTRL_CONFIG_DATA) == sizeof(value);
	pthread_mutex_unlock(&window);
	return set ? 0 : -EIO;
}

uint32_t np_bad_get(struct np_bad *bad, uint32_t word)
{
	uint32_t value;
	bool got;

	pthread_mutex_lock(&window);
	got = pwrite(bad->config, &word, sizeof(word), BADCTRL_CONFIG_ADDRESS) == sizeof(word) &&
	      pread(bad->config, &value, sizeof(value), BADCTRL_CONFIG_DATA) == sizeof(value);
	pthread_mutex_unlock(&window);
	return got ? value : 0xdeadbeef;
}

int np_bad_identify(struct np_bad *bad, unsigned int cns, uint32_t offset, uint8_t value)
{
	uint32_t word = BADCTRL_IDENTIFY(cns) + offset / 4 * 4, shift = offset % 4 * 8;
	uint32_t now = np_bad_get(bad, word);

	return np_bad_set(bad, word, (now & ~(0xffU << shift)) | (uint32_t)value << shift);
}

/* TIMES is written last: it arms the rule. */
int np_bad_rule(struct np_bad *bad, unsigned int rule, uint32_t match, uint32_t action,
		uint32_t argument, uint32_t times)
{
	const struct np_bad_place any = { 0 };

	return np_bad_rule_in(bad, &any, rule, match, action, argument, times);
}

int np_bad_rule_in(struct np_bad *bad, const struct np_bad_place *place, unsigned int rule, uint32_t match,
		   uint32_t action, uint32_t argument, uint32_t times)
{
	return np_bad_set(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_TIMES), 0) ?:
	       np_bad_set(bad, BADCTRL_PLACE(rule), place->first) ?:
	       np_bad_set(bad, BADCTRL_PLACE(rule) + 4, place->blocks) ?:
	       np_bad_set(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_MATCH), match) ?:
	       np_bad_set(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_ACTION),
			  argument << 16 | action) ?:
	       np_bad_set(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_HITS), 0) ?:
	       np_bad_set(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_TIMES), times);
}

uint32_t np_bad_hits(struct np_bad *bad, unsigned int rule)
{
	return np_bad_get(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_HITS));
}

int np_bad_wait_word(struct np_bad *bad, uint32_t word, uint32_t value)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (np_bad_get(bad, word) < value) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

int np_bad_wait_hits(struct np_bad *bad, unsigned int rule, uint32_t hits)
{
	return np_bad_wait_word(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_HITS), hits);
}

static int cut_power(struct np_bad *bad, uint32_t value)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret = np_bad_set(bad, BADCTRL_POWER_CUT, value);

	while (!ret && np_bad_get(bad, BADCTRL_POWER_CUT)) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
	}
	return ret;
}

int np_bad_cut_power(struct np_bad *bad)
{
	return cut_power(bad, 1);
}

int np_bad_cut_namespaces(struct np_bad *bad, uint32_t namespaces)
{
	return cut_power(bad, namespaces << BADCTRL_CUT_SHIFT);
}

/* Rule 0 counts the commands before the one that rule 1 interrupts. */
int np_bad_arm_cut(struct np_bad *bad, uint32_t commands, uint32_t namespaces)
{
	const uint32_t all = BADCTRL_ON_IO | BADCTRL_ANY;
	int ret = np_bad_rule(bad, 0, all, BADCTRL_COUNT, 0, 0) ?:
		  np_bad_rule(bad, 1, all, BADCTRL_CUT, namespaces, 0);

	if (ret || !commands)
		return ret;
	return np_bad_rule(bad, 0, all, BADCTRL_COUNT, 0, commands - 1) ?:
	       np_bad_rule(bad, 1, all, BADCTRL_CUT, namespaces, 1);
}

uint32_t np_bad_power_off(struct np_bad *bad)
{
	return np_bad_get(bad, BADCTRL_POWER(BADCTRL_POWER_OFF));
}

int np_bad_set_power_off(struct np_bad *bad, uint32_t namespaces)
{
	return np_bad_set(bad, BADCTRL_POWER(BADCTRL_POWER_OFF), namespaces);
}

int np_bad_large_blocks(struct np_bad *bad)
{
	static const uint32_t lengths[] = { 0, 8, 16 };
	int ret = np_bad_identify(bad, 0, 130, 12);

	for (int i = 0; i < 3 && !ret; i++)
		ret = np_bad_identify(bad, 0, lengths[i] + 1,
				      (uint8_t)(BADCTRL_NAMESPACE_BYTES / NP_PAGE >> 8));
	return ret;
}

/* --- the controller --------------------------------------------------------- */

static int set_admin_timeout(const char *seconds)
{
	return np_write_file(PARAMETERS "admin_timeout", seconds);
}

static int set_io_timeout(const char *seconds)
{
	return np_write_file(PARAMETERS "io_timeout", seconds);
}

int np_bad_short_io_timeout(void)
{
	return set_io_timeout("2");
}

int np_bad_short_admin_timeout(void)
{
	return set_admin_timeout("2");
}

int np_bad_long_admin_timeout(void)
{
	return set_admin_timeout("60");
}

int np_bad_long_io_timeout(const struct np_bad *bad)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/io_timeout", bad->ctrl.instance);
	return np_write_file(path, "60000");
}

static void *wait_expiring(void *argument)
{
	struct np_bad *bad = argument;

	np_bad_wait_hits(bad, bad->expiring, 1);
	np_bad_long_admin_timeout();
	return NULL;
}

int np_bad_let_expire(struct np_bad *bad, unsigned int rule)
{
	int ret = np_bad_short_admin_timeout();

	bad->expiring = rule;
	ret = ret ?: -pthread_create(&bad->patience, NULL, wait_expiring, bad);
	bad->expires = !ret;
	return ret;
}

int np_bad_open(struct np_bad *bad)
{
	char path[128];
	int ret;

	*bad = (struct np_bad){
		.config = -1, .ctrl.fd = -1, .disk = -1, .generic = -1, .good.fd = -1,
	};
	ret = np_function_address("badctrl", bad->address);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", bad->address);
	bad->config = open(path, O_RDWR | O_CLOEXEC);
	if (bad->config < 0)
		return -errno;
	/* A test that was killed may have left it bound. */
	return np_bad_unbind(bad) ?: np_ctrl_open(&bad->good, "np0") ?: np_module_objects(bad->before) ?:
	       np_bad_set(bad, BADCTRL_DEFAULTS, 1) ?:
	       np_bad_set(bad, BADCTRL_MODE, BADCTRL_WORKS);
}

int np_bad_close(struct np_bad *bad)
{
	/* A test that has failed may have left works on one processor. */
	int works = np_works_anywhere(), ret = np_bad_unbind(bad);
	uint32_t faults = np_bad_get(bad, BADCTRL_FAULTS);

	if (bad->expires)
		pthread_join(bad->patience, NULL);
	ret = works ?: ret ?: np_module_objects_wait(bad->before, NP_TIMEOUT_MS) ?: np_bad_check_good(bad);
	/* badctrl counts accesses to memory that was unmapped too early. */
	if (faults)
		ret = ret ?: -EFAULT;
	np_bad_set(bad, BADCTRL_DEFAULTS, 1);
	set_io_timeout("30");
	np_bad_long_admin_timeout();
	np_ctrl_close(&bad->good);
	close(bad->config);
	return ret;
}

int np_bad_wait_namespaces(struct np_bad *bad, unsigned int namespaces)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_info info;
	int ret;

	do {
		ret = np_info(bad->ctrl.fd, &info);
		if (ret || info.namespaces == namespaces)
			return ret;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

/* The character device is created last, after the partition scan. */
static int open_namespace(struct np_bad *bad)
{
	bad->generic = np_open_node(&bad->ctrl, "/dev/ngp%dn1", O_RDWR);
	if (bad->generic < 0)
		return bad->generic;
	bad->disk = np_open_node(&bad->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	return bad->disk < 0 ? bad->disk : 0;
}

/* Has the scan failed, or the controller refused the command? */
static bool logs_no_sensors(int log)
{
	char record[8192];
	ssize_t length;

	while ((length = read(log, record, sizeof(record) - 1)) > 0) {
		record[length] = '\0';
		if (strstr(record, "no temperature sensors") || strstr(record, "namespace scan failed"))
			return true;
	}
	return false;
}

/*
 * The last command of the first scan reads the temperatures: rules of a test must not meet it. @log, from
 * before the scan, tells if none is read.
 */
static void wait_sensors(struct np_bad *bad, int log)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	char pattern[128];
	glob_t found;

	if (access("/sys/class/hwmon", F_OK))
		return;
	snprintf(pattern, sizeof(pattern), "/sys/class/nvme-peer/nvmep%d/hwmon*",
		 bad->ctrl.instance);
	while (glob(pattern, 0, NULL, &found) && !logs_no_sensors(log) && np_now_ms() < end)
		np_sleep_ms(5);
	globfree(&found);
}

int np_bad_bind(struct np_bad *bad, unsigned int namespaces)
{
	int log = np_log_open(), ret;

	if (log < 0)
		return log;
	ret = np_bind(bad->address) ?: np_ctrl_open(&bad->ctrl, "bad") ?:
	      np_bad_wait_namespaces(bad, namespaces);
	if (!ret)
		wait_sensors(bad, log);
	close(log);
	return ret ?: namespaces ? open_namespace(bad) : 0;
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int np_bad_unbind(struct np_bad *bad)
{
	close_file(&bad->disk);
	close_file(&bad->generic);
	np_ctrl_close(&bad->ctrl);
	if (!np_bound(bad->address))
		return 0;
	return np_unbind(bad->address);
}

int np_bad_shut_down(const struct np_bad *bad)
{
	struct nvme_peer_pci_address address = np_parse_address(bad->address);
	int test = np_test_open();
	int ret = np_ioctl(test, NVMEP_TEST_SHUTDOWN, &address);

	close(test);
	return ret;
}

int np_bad_generation(struct np_bad *bad)
{
	struct nvme_peer_info info;

	return np_info(bad->ctrl.fd, &info) ?: (int)info.generation;
}

int np_bad_wait_state(struct np_bad *bad, uint32_t state)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_info info;
	int ret;

	do {
		ret = np_info(bad->ctrl.fd, &info);
		if (ret)
			return ret;
		if (info.state == state)
			return (int)info.generation;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

int np_bad_read(struct np_bad *bad, void *data, uint32_t timeout_ms)
{
	struct nvme_passthru_cmd command = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)data,
		.data_len = NP_BLOCK,
		.timeout_ms = timeout_ms,
	};

	return np_ioctl(bad->generic, NVME_IOCTL_IO_CMD, &command);
}

int np_bad_read_disk(struct np_bad *bad, void *data)
{
	memset(data, 0xee, NP_PAGE);
	return np_disk_read(bad->disk, data, NP_PAGE, 0);
}

int np_bad_wait_no_capacity(struct np_bad *bad)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	uint64_t bytes;

	do {
		if (!np_ioctl(bad->disk, BLKGETSIZE64, &bytes) && !bytes)
			return 0;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

static int ask(int fd, uint32_t timeout_ms)
{
	static uint8_t data[4096];
	struct nvme_admin_cmd identify = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.cdw10 = NVME_CNS_CONTROLLER,
		.addr = (uintptr_t)data,
		.data_len = sizeof(data),
		.timeout_ms = timeout_ms,
	};

	return np_admin(fd, &identify);
}

int np_bad_identify_ctrl(struct np_bad *bad, uint32_t timeout_ms)
{
	return ask(bad->ctrl.fd, timeout_ms);
}

int np_bad_check_good(struct np_bad *bad)
{
	return ask(bad->good.fd, 0);
}

void *np_bad_reset_thread(void *bad)
{
	const struct np_bad *which = bad;

	return (void *)(intptr_t)np_ioctl(which->ctrl.fd, NVME_IOCTL_RESET, NULL);
}
