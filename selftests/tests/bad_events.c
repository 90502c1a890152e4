// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events: namespaces are added and removed, a controller with a persistent
 * internal error is reset, I/O is paused while firmware is activated, and after each
 * event the next one is received.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 240
 */
#include <errno.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

/* Dword 0 of the completion: type, information, log page (base specification 5.1.2). */
#define EVENT(type, info, log)	((type) | (info) << 8 | (log) << 16)
#define EVENT_ERROR_DOORBELL	EVENT(0, 0, NVME_LOG_ERRORS)
#define EVENT_ERROR_PERSISTENT	EVENT(0, 3, NVME_LOG_ERRORS)
#define EVENT_ERROR_TRANSIENT	EVENT(0, 4, NVME_LOG_ERRORS)
#define EVENT_SMART		EVENT(1, 1, NVME_LOG_HEALTH)
#define EVENT_VENDOR		EVENT(7, 1, 0xc0)
#define EVENT_UNKNOWN_NOTICE	EVENT(2, 0x55, 0xc0)
#define EVENT_UNKNOWN		EVENT(5, 0x55, 0xc0)

#define CTRL_FR			64	/* byte offset in Identify Controller */
#define CTRL_MTFA		270	/* byte offset in Identify Controller, in units of 100 ms */

FIXTURE(bad_events)
{
	struct np_bad bad;
	int generation;
};

FIXTURE_SETUP(bad_events)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_short_io_timeout());
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

/*
 * Set the active namespaces to @active and wait until the driver has processed the event.
 */
static int change_namespaces(struct np_bad *bad, uint32_t active)
{
	return np_bad_set(bad, BADCTRL_ACTIVE, active) ?:
	       np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES) ?:
	       np_bad_wait_namespaces(bad, (unsigned int)__builtin_popcount(active));
}

TEST_F(bad_events, namespace_event_adds_and_removes)
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

/*
 * The open file of a removed namespace returns errors, not the data of another namespace.
 */
TEST_F(bad_events, removed_namespace_in_use_fails_io)
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

TEST_F(bad_events, namespace_removed_under_command)
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

/* Uevents of the kernel from now on. */
static int uevents_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int uevents = socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			     NETLINK_KOBJECT_UEVENT);

	if (uevents >= 0 && bind(uevents, (struct sockaddr *)&address, sizeof(address))) {
		close(uevents);
		return -errno;
	}
	return uevents;
}

/* Pending uevents with the line @text. */
static unsigned int uevents_count(int uevents, const char *text)
{
	char message[8192];
	unsigned int count = 0;
	ssize_t length, at;

	while ((length = recv(uevents, message, sizeof(message) - 1, 0)) > 0) {
		message[length] = '\0';
		for (at = 0; at < length; at += strlen(message + at) + 1)
			count += !strcmp(message + at, text);
	}
	return count;
}

/*
 * Another Asynchronous Event Request is sent after each event. The driver reads the log pages of
 * notices and errors, so that the controller sends further ones; the others are left to user
 * space, to which the uevent reports them.
 */
TEST_F(bad_events, other_events_are_reported)
{
	static const struct {
		uint32_t event;
		bool reads;
		bool uevent;
	} events[] = {
		{ EVENT_FIRMWARE, true, false }, { EVENT_UNKNOWN_NOTICE, true, false },
		{ EVENT_UNKNOWN, false, false }, { EVENT_SMART, false, true },
		{ EVENT_ERROR_TRANSIENT, true, true }, { EVENT_VENDOR, false, true },
	};
	uint32_t i, reads = 0, count = sizeof(events) / sizeof(events[0]);
	uint32_t requests = BADCTRL_RULE_WORD(1, BADCTRL_RULE_HITS);
	int uevents = uevents_open(), log = np_log_open();
	char text[32];

	ASSERT_LE(0, uevents);
	ASSERT_LE(0, log);
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	np_bad_rule(&self->bad, 2, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, events[i].event));
		ASSERT_EQ(0, np_bad_wait_word(&self->bad, requests, i + 1));
		reads += events[i].reads;
		EXPECT_EQ(reads, np_bad_hits(&self->bad, 0));
		snprintf(text, sizeof(text), "NVME_AEN=0x%06x", events[i].event);
		EXPECT_EQ(events[i].uevent, uevents_count(uevents, text) == 1) {
			TH_LOG("%s", text);
		}
	}
	/* Only after the event of firmware the controller may have another revision. */
	EXPECT_EQ(1, np_bad_hits(&self->bad, 2));
	/* All others but the first need no action; the first, second, fourth and so on are logged. */
	EXPECT_EQ(0, np_log_wait(log, "AEN: event 0x10400, see log page 0x1, 4 so far",
				 NP_TIMEOUT_MS));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(reads + 1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, requests, count + 1));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(uevents);
	close(log);
}

/* --- firmware --------------------------------------------------------------- */

/* Returns when the namespaces have been scanned. */
static int scan(struct np_bad *bad)
{
	struct nvme_admin_cmd attach = { .opcode = NVME_ADMIN_NAMESPACE_ATTACH, .nsid = 1 };

	return np_bad_rule(bad, 6, attach.opcode, BADCTRL_LIE, 0, 1) ?: np_admin(bad->ctrl.fd, &attach);
}

/* The controller sets CSTS.PP: it processes no commands while it activates firmware. */
static void begin_activation(struct __test_metadata *_metadata, struct np_bad *bad,
			     uint8_t longest)
{
	int log = np_log_open();

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_identify(bad, NVME_CNS_CONTROLLER, CTRL_MTFA, longest));
	np_bad_rule(bad, 7, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	ASSERT_EQ(0, np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL));
	/* The last command of a start. */
	ASSERT_EQ(0, np_bad_wait_hits(bad, 7, 1));
	ASSERT_EQ(0, scan(bad));
	ASSERT_EQ(0, np_bad_set(bad, BADCTRL_PAUSED, 1));
	ASSERT_EQ(0, np_bad_set(bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_log_wait(log, "firmware", NP_TIMEOUT_MS));
	close(log);
}

/* Its first character. */
static char firmware_revision(struct np_bad *bad)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/firmware_rev",
		 bad->ctrl.instance);
	return np_read_file(path, text, sizeof(text)) ? '\0' : text[0];
}

/* Activation takes longer than the I/O timeout; I/O waits and does not time out. */
TEST_F(bad_events, io_waits_for_firmware_activation)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	begin_activation(_metadata, &self->bad, 255);
	self->generation = np_bad_generation(&self->bad);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	np_sleep_ms(NP_BAD_EXPIRED_MS);
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_RUNG));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_PAUSED));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_FR, '9'));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_PAUSED, 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reader.result);
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	/* The log page was read and another request was sent. */
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ('9', firmware_revision(&self->bad));
	free(reader.bytes);
}

/* The controller refuses Identify after an activation: the last known revision stays. */
TEST_F(bad_events, firmware_revision_survives_failed_identify)
{
	char before = firmware_revision(&self->bad);

	ASSERT_NE('9', before);
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, CTRL_FR, '9'));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
		    NVME_STATUS_DNR | NVME_SC_INTERNAL, 1);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 1, 1));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(before, firmware_revision(&self->bad));
}

/* Returns when the driver has requested the next event. */
static void end_activation(struct __test_metadata *_metadata, struct np_bad *bad)
{
	np_bad_rule(bad, 7, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	EXPECT_EQ(0, np_bad_set(bad, BADCTRL_PAUSED, 0));
	EXPECT_EQ(0, np_bad_wait_hits(bad, 7, 1));
}

/* A read is in flight. False if it was aborted before the driver has seen the activation. */
static bool activate_under_read(struct __test_metadata *_metadata, struct reader *reader,
				pthread_t *thread)
{
	int log = np_log_open();
	uint32_t rung;

	EXPECT_LE(0, log);
	np_bad_rule(reader->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);
	np_bad_rule(reader->bad, 1, NVME_ADMIN_ABORT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	EXPECT_EQ(0, pthread_create(thread, NULL, read_in_background, reader));
	EXPECT_EQ(0, np_bad_wait_word(reader->bad, BADCTRL_HELD, 1));
	rung = np_bad_get(reader->bad, BADCTRL_RUNG);
	EXPECT_EQ(0, np_bad_set(reader->bad, BADCTRL_PAUSED, 1));
	EXPECT_EQ(0, np_bad_set(reader->bad, BADCTRL_EVENT, EVENT_FIRMWARE));
	EXPECT_EQ(0, np_log_wait(log, "firmware activation", NP_TIMEOUT_MS));
	close(log);
	return !np_bad_hits(reader->bad, 1) && np_bad_get(reader->bad, BADCTRL_RUNG) == rung;
}

static void end_read(struct __test_metadata *_metadata, struct reader *reader, pthread_t thread)
{
	EXPECT_EQ(0, np_bad_set(reader->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reader->result);
}

/* A command that was in flight before the activation does not time out either. */
TEST_F_TIMEOUT(bad_events, inflight_command_survives_firmware_activation, 60)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;
	uint32_t rung;
	int tries = 0;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	begin_activation(_metadata, &self->bad, 255);
	self->generation = np_bad_generation(&self->bad);
	end_activation(_metadata, &self->bad);
	/* A busy machine may delay the driver by the timeout of the read. */
	while (!activate_under_read(_metadata, &reader, &thread) && ++tries < 3) {
		end_activation(_metadata, &self->bad);
		end_read(_metadata, &reader, thread);
	}
	EXPECT_LT(tries, 3);
	rung = np_bad_get(&self->bad, BADCTRL_RUNG);
	np_sleep_ms(NP_BAD_EXPIRED_MS);
	EXPECT_EQ(rung, np_bad_get(&self->bad, BADCTRL_RUNG));
	end_activation(_metadata, &self->bad);
	end_read(_metadata, &reader, thread);
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	free(reader.bytes);
}

/* MTFA is one second, and the controller does not return to service. */
TEST_F(bad_events, late_firmware_activation_resets)
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

TEST_F(bad_events, unbind_during_firmware_activation)
{
	struct reader reader = { .bad = &self->bad };
	pthread_t thread;
	int64_t start;

	ASSERT_EQ(0, posix_memalign(&reader.bytes, NP_PAGE, NP_PAGE));
	begin_activation(_metadata, &self->bad, 255);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_background, &reader));
	np_sleep_ms(500);
	start = np_now_ms();
	EXPECT_EQ(0, np_unbind(self->bad.address));
	pthread_join(thread, NULL);
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	free(reader.bytes);
}

static void *unbind_thread(void *argument)
{
	struct np_bad *bad = argument;

	return (void *)(intptr_t)np_unbind(bad->address);
}

/*
 * The uevent of an event names the device node, so unbind removes that after the uevent. Without
 * namespaces, as the stalled thread delays the removal of disks.
 */
TEST_F(bad_events, unbind_waits_for_uevent)
{
	struct nvmep_test_stall sender = {
		.function = "kobject_uevent_env",
		.after = "nvmep_get_log",
		.any_thread = 1,
	};
	pthread_t thread;
	char path[64];
	void *ret;
	int stall;

	EXPECT_EQ(0, change_namespaces(&self->bad, 0));
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d", self->bad.ctrl.instance);
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	stall = np_stall(&sender);
	ASSERT_LE(0, stall);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_ERROR_TRANSIENT));
	EXPECT_EQ(0, np_wait_stalled(stall));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, &self->bad));
	np_sleep_ms(1000);
	EXPECT_EQ(0, access(path, F_OK));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(0, close(stall));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
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
 * A storm of events led to few commands that hit rule 0, and to few lines of the log: it reports
 * each doubling of their number. One line has @also.
 */
static void expect_limited(struct __test_metadata *_metadata, struct np_bad *bad, int log,
			   const char *text, const char *also)
{
	uint32_t hits = np_bad_hits(bad, 0);
	unsigned int lines, most;
	bool named = false;

	EXPECT_LE(2, hits);
	EXPECT_GE(20, hits);
	lines = count_lines(log, text, also, &named);
	for (most = 1; hits > 1; hits /= 2)
		most++;
	EXPECT_LE(1, lines);
	EXPECT_GE(most, lines);
	EXPECT_TRUE(named);
}

/*
 * A peer that stores invalid values to its doorbell causes an event for each request. The
 * log is rate limited and names the queue, and the driver does not spin.
 */
TEST_F(bad_events, doorbell_error_storm_is_rate_limited)
{
	int log;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ERROR_QUEUE, 5));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	log = np_log_open();
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, EVENT_ERROR_DOORBELL));
	np_sleep_ms(5000);
	/* Other events are still processed. */
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	expect_limited(_metadata, &self->bad, log, "doorbell", "queue 5");
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, 0));
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(log);
}

/* A critical warning that persists, of a controller that does not mask the event. */
TEST_F(bad_events, health_event_storm_is_rate_limited)
{
	int log;

	np_bad_rule(&self->bad, 0, NVME_ADMIN_ASYNC_EVENT, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	log = np_log_open();
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, EVENT_SMART));
	/* The storm begins with the request that answers this event. */
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	np_sleep_ms(4000);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_STORM, 0));
	expect_limited(_metadata, &self->bad, log, "AEN: ", "log page 0x2");
	EXPECT_EQ(self->generation, np_bad_generation(&self->bad));
	close(log);
}

/* --- errors and failures ------------------------------------------------------ */

TEST_F(bad_events, persistent_internal_error_resets)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_ERROR_PERSISTENT));
	while (np_bad_generation(&self->bad) == self->generation && np_now_ms() < end)
		np_sleep_ms(10);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
}

/* The log page cannot be read: the event itself is still handled. */
TEST_F(bad_events, log_page_fails)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_STATUS, NVME_SC_INTERNAL, 1);
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
}

/*
 * Get Log Page times out: the controller is reset, and the namespaces are scanned after
 * the reset.
 */
TEST_F(bad_events, log_page_timeout_resets_and_rescans)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 0));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, change_namespaces(&self->bad, 1));
}

/* The scan is interrupted between the two Identify commands of a new namespace. */
TEST_F(bad_events, namespace_added_while_controller_fails)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 3);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1);
	ASSERT_EQ(0, np_bad_let_expire(&self->bad, 1));
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
	       np_bad_wait_hits(bad, rule, 1);
}

/* A namespace whose Identify failed once is kept. */
TEST_F(bad_events, transient_identify_error_keeps_namespace)
{
	uint8_t *bytes;

	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, NP_PAGE));
	/* Fails the Identify that follows the list and the descriptors. */
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, 2);
	np_bad_rule(&self->bad, 1, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS, NVME_SC_INTERNAL, 1);
	EXPECT_EQ(0, rescan(&self->bad, 1));
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, bytes));
	free(bytes);
}

/* --- a controller that refuses the request -------------------------------------- */

/*
 * The events are configured in the start: probe waits for no command of a LIVE controller, as it
 * holds the device lock, for which error recovery of the PCI core would wait.
 */
TEST_F(bad_events, events_are_configured_before_live)
{
	struct nvme_peer_info info;
	pthread_t thread;
	void *ret;

	/* The second Set Features after a reset configures asynchronous events. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SET_FEATURES, BADCTRL_COUNT, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_SET_FEATURES, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, np_bad_reset_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	EXPECT_EQ(NVME_PEER_CTRL_RESETTING, info.state);
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, change_namespaces(&self->bad, 3));
}

TEST_F(bad_events, async_event_request_refused)
{
	np_bad_rule(&self->bad, 0, NVME_ADMIN_ASYNC_EVENT, BADCTRL_STATUS, NVME_STATUS_DNR | 1,
		    BADCTRL_EVERY);
	/* The second Set Features after a reset configures asynchronous events. */
	np_bad_rule(&self->bad, 1, NVME_ADMIN_SET_FEATURES, BADCTRL_COUNT, 0, 1);
	np_bad_rule(&self->bad, 2, NVME_ADMIN_SET_FEATURES, BADCTRL_STATUS, NVME_STATUS_DNR | 2, 1);
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(self->generation + 1, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	/* Longer than the delay of a postponed scan. */
	np_sleep_ms(2500);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 2));
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
}

TEST_HARNESS_MAIN
