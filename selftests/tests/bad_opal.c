// SPDX-License-Identifier: GPL-2.0-only
/*
 * A self-encrypting disk: the ioctls of sed-opal reach the controller, which is unlocked after
 * sleep and at no other time.
 *
 * kernels: 7
 * iommu: off
 */
#include <errno.h>
#include <linux/sed-opal.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define CTRL_OACS	256
#define OACS_SECURITY	1
#define NOBODY		65534
#define FLAGS	(OPAL_FL_SUPPORTED | OPAL_FL_LOCKING_SUPPORTED | OPAL_FL_LOCKING_ENABLED | \
		 OPAL_FL_LOCKED)

FIXTURE(bad_opal)
{
	struct np_bad bad;
	uint8_t *bytes;
};

FIXTURE_SETUP(bad_opal)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(bad_opal)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	free(self->bytes);
}

static int bind_with_security(struct np_bad *bad)
{
	return np_bad_identify(bad, NVME_CNS_CONTROLLER, CTRL_OACS, OACS_SECURITY) ?:
	       np_bad_bind(bad, 1);
}

/* The controller is asked after the first scan. */
static int wait_status(struct np_bad *bad, struct opal_status *status)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	while ((ret = np_ioctl(bad->disk, IOC_OPAL_GET_STATUS, status)) && np_now_ms() < end)
		np_sleep_ms(10);
	return ret;
}

TEST_F(bad_opal, disk_without_security_commands)
{
	struct opal_status status;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SECURITY_RECEIVE, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	np_sleep_ms(200);
	EXPECT_EQ(-EOPNOTSUPP, np_ioctl(self->bad.disk, IOC_OPAL_GET_STATUS, &status));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
}

TEST_F(bad_opal, status_is_that_of_the_disk)
{
	struct opal_lock_unlock lock = {
		.session = { .who = OPAL_ADMIN1, .opal_key = { .key_len = 4, .key = "key" } },
		.l_state = OPAL_RW,
	};
	struct opal_status status;

	ASSERT_EQ(0, bind_with_security(&self->bad));
	ASSERT_EQ(0, wait_status(&self->bad, &status));
	EXPECT_EQ(FLAGS, status.flags & FLAGS);
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(-EACCES, np_ioctl(self->bad.disk, IOC_OPAL_GET_STATUS, &status));
	ASSERT_EQ(0, seteuid(0));
	/* An open file of a disk that is unbound; the status needs no command. */
	ASSERT_EQ(0, np_unbind(self->bad.address));
	EXPECT_NE(0, np_ioctl(self->bad.disk, IOC_OPAL_LOCK_UNLOCK, &lock));
}

/* A disk without Opal is asked once, but again if a reset has ended the command. */
TEST_F(bad_opal, asked_until_it_answers)
{
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SECURITY_RECEIVE, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NVME_ADMIN_SECURITY_RECEIVE, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, BADCTRL_EVERY));
	ASSERT_EQ(0, bind_with_security(&self->bad));
	ASSERT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 1, 1));
	np_sleep_ms(200);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	np_sleep_ms(500);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 1));
}

/* Each question that is not answered ends by a reset: there are three. */
TEST_F(bad_opal, controller_that_never_answers_is_asked_three_times)
{
	unsigned int i;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SECURITY_RECEIVE, BADCTRL_HOLD, 0,
				 BADCTRL_EVERY));
	ASSERT_EQ(0, bind_with_security(&self->bad));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, i));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	}
	np_sleep_ms(500);
	EXPECT_EQ(3, np_bad_hits(&self->bad, 0));
}

static int sleep_once(struct np_bad *bad)
{
	int test = np_sleep_begin(bad->ctrl.address), ret;
	struct nvme_peer_info info;

	if (test < 0)
		return test;
	ret = np_suspend();
	np_sleep_end(test);
	return ret ?: np_ctrl_wait_live(bad->ctrl.fd, &info, NP_TIMEOUT_MS);
}

TEST_F(bad_opal, unlocked_after_sleep_only)
{
	struct opal_lock_unlock saved = {
		.session = { .who = OPAL_ADMIN1, .opal_key = { .key_len = 4, .key = "key" } },
		.l_state = OPAL_RW,
	};
	struct opal_status status;
	uint32_t hits;

	ASSERT_EQ(0, bind_with_security(&self->bad));
	ASSERT_EQ(0, wait_status(&self->bad, &status));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SECURITY_SEND, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	ASSERT_EQ(0, sleep_once(&self->bad));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.disk, IOC_OPAL_SAVE, &saved));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, sleep_once(&self->bad));
	hits = np_bad_hits(&self->bad, 0);
	EXPECT_LE(1, hits);
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(hits, np_bad_hits(&self->bad, 0));
}

/**
 * struct question - a status of Opal that a thread asks for
 * @disk: open file of the disk
 * @ret: of the ioctl
 */
struct question {
	int disk;
	int ret;
};

static void *ask_thread(void *argument)
{
	struct question *question = argument;
	struct opal_status status;

	question->ret = np_ioctl(question->disk, IOC_OPAL_GET_STATUS, &status);
	return NULL;
}

/*
 * An ioctl may wait for a page of its caller under the lock that the unlock after sleep takes,
 * and that page for this disk: none begins before the disk is unlocked.
 */
TEST_F(bad_opal, ioctl_waits_for_unlock_after_sleep)
{
	struct opal_status status;
	struct question question;
	pthread_t thread;
	int test;

	ASSERT_EQ(0, bind_with_security(&self->bad));
	ASSERT_EQ(0, wait_status(&self->bad, &status));
	question.disk = self->bad.disk;
	test = np_sleep_begin(self->bad.address);
	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	EXPECT_EQ(0, np_suspend());
	np_sleep_end(test);
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, ask_thread, &question));
	np_sleep_ms(500);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, question.ret);
}

TEST_HARNESS_MAIN
