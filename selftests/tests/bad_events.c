// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events: namespaces come and go, a controller that has an
 * internal error is reset, one that activates firmware is left alone meanwhile,
 * and whatever an event says, the next one arrives.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 120
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

/* Dword 0: type, information, log page; base specification 5.1.2. */
#define EVENT(type, info, log)	((type) | (info) << 8 | (log) << 16)
#define EVENT_ERROR_DOORBELL	EVENT(0, 0, 1)
#define EVENT_ERROR_PERSISTENT	EVENT(0, 3, 1)
#define EVENT_ERROR_TRANSIENT	EVENT(0, 4, 1)
#define EVENT_SMART		EVENT(1, 1, 2)
#define EVENT_FIRMWARE		EVENT(2, 1, 3)
#define EVENT_UNKNOWN_NOTICE	EVENT(2, 0x55, 0xc0)
#define EVENT_UNKNOWN		EVENT(5, 0x55, 0xc0)

#define CTRL_MTFA		270	/* in Identify Controller, units of 100 ms */

FIXTURE(bad_events)
{
	struct np_bad bad;
	int generation;
};

FIXTURE_SETUP(bad_events)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	self->generation = np_bad_generation(&self->bad);
}

FIXTURE_TEARDOWN(bad_events)
{
	if (self->bad.address[0])
		EXPECT_EQ(0, np_bad_close(&self->bad));
}

static bool node_exists(struct np_bad *bad, unsigned int nsid)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/nvmep%dn%u", bad->ctrl.instance, nsid);
	return !access(path, F_OK);
}

/* Namespaces are @active now and the controller says so: it is noticed. */
static int change_namespaces(struct np_bad *bad, uint32_t active)
{
	return np_bad_set(bad, BADCTRL_ACTIVE, active) ?:
	       np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES) ?:
	       np_bad_wait_namespaces(bad, (unsigned int)__builtin_popcount(active));
}

TEST_F(bad_events, namespaces_come_and_go)
{
	int i;

	EXPECT_EQ(0, change_namespaces(&self->bad, 0xd));
	EXPECT_TRUE(node_exists(&self->bad, 1));
	EXPECT_FALSE(node_exists(&self->bad, 2));
	EXPECT_EQ(0, change_namespaces(&self->bad, 0x2));
	EXPECT_FALSE(node_exists(&self->bad, 1));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, change_namespaces(&self->bad, 0xf));
		EXPECT_EQ(0, change_namespaces(&self->bad, 0x1));
	}
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* Its holder sees errors, not another namespace's data. */
TEST_F(bad_events, a_namespace_in_use_goes)
{
	uint8_t *bytes;

	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, bytes));
	EXPECT_EQ(0, change_namespaces(&self->bad, 0));
	EXPECT_GT(0, np_bad_read_disk(&self->bad, bytes));
	EXPECT_GT(0, np_bad_read(&self->bad, bytes, 0));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
	EXPECT_GT(0, np_bad_read_disk(&self->bad, bytes));
	free(bytes);
}

struct reader {
	struct np_bad *bad;
	void *bytes;
	int result;
};

static void *read_in_background(void *argument)
{
	struct reader *reader = argument;

	reader->result = np_bad_read_disk(reader->bad, reader->bytes);
	return NULL;
}

TEST_F(bad_events, a_namespace_goes_under_a_command)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, change_namespaces(&self->bad, 2));
	pthread_join(thread, NULL);
	EXPECT_GT(0, reader.result);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	free(reader.bytes);
}

/* An event is reported once its log page was read, and another request is sent. */
TEST_F(bad_events, others_are_only_reported)
{
	static const uint32_t events[] = {
		EVENT_FIRMWARE, EVENT_UNKNOWN_NOTICE, EVENT_UNKNOWN, EVENT_SMART,
		EVENT_ERROR_TRANSIENT,
	};
	uint32_t i, count = sizeof(events) / sizeof(events[0]);
	uint32_t hits = BADCTRL_RULE_WORD(0, BADCTRL_RULE_HITS);

	np_bad_rule(&self->bad, 0, NP_ADMIN_GET_LOG, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 1, NP_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, events[i]));
		ASSERT_EQ(0, np_bad_wait_word(&self->bad, hits, i + 1));
	}
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(count + 1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_RULE_WORD(1, BADCTRL_RULE_HITS),
				      count + 1));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
}

/* --- firmware --------------------------------------------------------------- */

/* It takes no commands for the sake of new firmware, and says so. */
static void begin_activation(struct __test_metadata *_metadata, struct np_bad *bad,
			     uint8_t longest)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_identify(bad, 1, CTRL_MTFA, longest));
	ASSERT_EQ(0, np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_bad_wait_namespaces(bad, 1));
	/* The event request is the last command of a start. */
	np_bad_rule(bad, 7, NP_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	ASSERT_EQ(0, np_bad_ask(bad, 0));
	np_sleep_ms(500);
	ASSERT_EQ(0, np_bad_set(bad, BADCTRL_PAUSED, 1));
	ASSERT_EQ(0, np_bad_set(bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_log_wait(log, "firmware", NP_TIMEOUT_MS));
	close(log);
}

/* Longer than commands may take; I/O waits, and nobody loses patience. */
TEST_F(bad_events, io_waits_while_firmware_is_activated)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_hurry());
	begin_activation(_metadata, &self->bad, 255);
	self->generation = np_bad_generation(&self->bad);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	np_sleep_ms(6000);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RUNG));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_PAUSED));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reader.result);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	/* The log was read and another request was sent. */
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	free(reader.bytes);
}

/* What was under way before waits too. */
TEST_F(bad_events, a_command_outlives_the_activation_of_firmware)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;
	uint32_t rung;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	begin_activation(_metadata, &self->bad, 255);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	ASSERT_EQ(0, change_namespaces(&self->bad, 3));
	ASSERT_EQ(0, np_bad_hurry());
	self->generation = np_bad_generation(&self->bad);
	np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	np_bad_rule(&self->bad, 1, NP_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	/* The disks that came may still be read from until the event is heard. */
	np_sleep_ms(1000);
	rung = np_bad_get(&self->bad, BADCTRL_RUNG);
	np_sleep_ms(5000);
	EXPECT_EQ(rung, np_bad_get(&self->bad, BADCTRL_RUNG));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reader.result);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	free(reader.bytes);
}

/* It said that it takes one second at most, and does not come back. */
TEST_F(bad_events, firmware_that_takes_too_long_leads_to_a_reset)
{
	uint8_t *bytes;

	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	begin_activation(_metadata, &self->bad, 10);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, bytes));
	EXPECT_EQ(self->generation + 2, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_PAUSED));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	free(bytes);
}

TEST_F(bad_events, it_can_be_unbound_while_firmware_is_activated)
{
	struct reader reader = { .bad = &self->bad };
	int64_t start = np_now_ms();
	pthread_t thread;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_hurry());
	begin_activation(_metadata, &self->bad, 255);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	np_sleep_ms(500);
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(thread, NULL);
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	free(reader.bytes);
}

/* --- storms ----------------------------------------------------------------- */

/* Lines of the kernel's log that contain @text, and whether one contains @also. */
static unsigned int count_lines(int log, const char *text, const char *also, bool *found)
{
	unsigned int count = 0;
	char record[8192];
	ssize_t length;

	while ((length = read(log, record, sizeof(record) - 1)) > 0) {
		record[length] = '\0';
		if (!strstr(record, text))
			continue;
		count++;
		*found |= !!strstr(record, also);
	}
	return count;
}

/*
 * A peer that stores nonsense to its doorbell has the controller say so for each
 * request: it is told once in a while, with the queue, and nothing spins.
 */
TEST_F(bad_events, a_storm_of_doorbell_errors_is_no_flood)
{
	uint32_t hits;
	bool named = false;
	unsigned int lines, most;
	int log;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ERROR_QUEUE, 5));
	np_bad_rule(&self->bad, 0, NP_ADMIN_GET_LOG, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	log = np_log_open();
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, EVENT_ERROR_DOORBELL));
	np_sleep_ms(5000);
	/* Others still get through. */
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	hits = np_bad_hits(&self->bad, 0);
	EXPECT_LE(2, hits);
	EXPECT_GE(20, hits);
	lines = count_lines(log, "doorbell", "queue 5", &named);
	/* Each time that there were twice as many. */
	for (most = 1; hits > 1; hits /= 2)
		most++;
	EXPECT_LE(1, lines);
	EXPECT_GE(most, lines);
	EXPECT_TRUE(named);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, 0));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(log);
}

/* --- errors and failures ------------------------------------------------------ */

TEST_F(bad_events, an_internal_error_that_stays_leads_to_a_reset)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_ERROR_PERSISTENT));
	while (np_bad_generation(&self->bad) == self->generation && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
}

/* Its log page cannot be read: what it said counts all the same. */
TEST_F(bad_events, the_log_page_may_fail)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_GET_LOG, BADCTRL_STATUS, NP_STATUS_INTERNAL, 1);
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
}

/* Nobody reads it: a reset, after which the namespaces are looked at anyway. */
TEST_F(bad_events, the_log_page_may_hang)
{
	ASSERT_EQ(0, np_bad_hurry());
	np_bad_rule(&self->bad, 0, NP_ADMIN_GET_LOG, BADCTRL_HOLD, 0, 1);
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
}

/* The scan is cut short between the two commands for a new namespace. */
TEST_F(bad_events, a_namespace_comes_while_the_controller_fails)
{
	ASSERT_EQ(0, np_bad_hurry());
	np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 3);
	np_bad_rule(&self->bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1);
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
}

static int rescan(struct np_bad *bad, unsigned int rule)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/rescan_controller",
		 bad->ctrl.instance);
	return np_write_file(path, "1") ?:
	       np_bad_wait_word(bad, BADCTRL_RULE_WORD(rule, BADCTRL_RULE_HITS), 1);
}

/* A namespace that could not be identified for once is still the same. */
TEST_F(bad_events, a_namespace_in_use_survives_a_transient_error)
{
	uint8_t *bytes;

	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	/* After the list and its descriptors. */
	np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 2);
	np_bad_rule(&self->bad, 1, NP_ADMIN_IDENTIFY, BADCTRL_STATUS, NP_STATUS_INTERNAL, 1);
	EXPECT_EQ(0, rescan(&self->bad, 1));
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, bytes));
	free(bytes);
}

/* --- a controller that wants no such requests --------------------------------- */

TEST_F(bad_events, the_request_may_be_refused)
{
	np_bad_rule(&self->bad, 0, NP_ADMIN_ASYNC_EVENT, BADCTRL_STATUS, NP_STATUS_DNR | 1,
		    BADCTRL_EVERY);
	/* The second Set Features after a reset configures events. */
	np_bad_rule(&self->bad, 1, NP_ADMIN_SET_FEATURES, BADCTRL_COUNT, 0, 1);
	np_bad_rule(&self->bad, 2, NP_ADMIN_SET_FEATURES, BADCTRL_STATUS, NP_STATUS_DNR | 2, 1);
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_RULE_WORD(0, BADCTRL_RULE_HITS), 1));
	/* Longer than what can wait is made to wait. */
	np_sleep_ms(2500);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 2));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
}

TEST_HARNESS_MAIN
