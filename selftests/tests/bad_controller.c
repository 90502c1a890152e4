// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bind a controller that cannot be started: the probe fails in bounded time, leaves
 * nothing behind and does not disturb the other controller.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off
 * timeout: 180
 */
#include <errno.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define PCI_COMMAND		4
#define PCI_COMMAND_MASTER	4
#define CAP_HIGH		4	/* CAP.DSTRD is in its lowest bits */
#define CAP_HIGH_CRWMS		(1U << 27)
#define CRTO			0x68

FIXTURE(bad_controller)
{
	struct np_bad bad;
};

/* @cap_high: bits of the upper half of CAP. A rule whose action is 0 does nothing. */
FIXTURE_VARIANT(bad_controller)
{
	uint32_t mode;
	uint32_t cap_high;
	uint32_t crto;
	uint32_t match;
	uint32_t action;
	int error;
};

FIXTURE_VARIANT_ADD(bad_controller, never_ready)
{
	.mode = BADCTRL_NEVER_READY, .error = -ETIMEDOUT,
};

FIXTURE_VARIANT_ADD(bad_controller, fatal) { .mode = BADCTRL_FATAL, .error = -EIO };
FIXTURE_VARIANT_ADD(bad_controller, silent) { .mode = BADCTRL_SILENT, .error = -ETIMEDOUT };

FIXTURE_VARIANT_ADD(bad_controller, never_stops)
{
	.mode = BADCTRL_NEVER_STOPS, .error = -ETIMEDOUT,
};

/* CRTO.CRWMT, here longer than the test, limits the time to become ready only; CAP.TO is 1 s. */
FIXTURE_VARIANT_ADD(bad_controller, never_stops_may_start_slowly)
{
	.mode = BADCTRL_NEVER_STOPS, .cap_high = CAP_HIGH_CRWMS, .crto = NP_TIMEOUT_MS / 500 + 2,
	.error = -ETIMEDOUT,
};

FIXTURE_VARIANT_ADD(bad_controller, gone) { .mode = BADCTRL_GONE, .error = -ENODEV };
FIXTURE_VARIANT_ADD(bad_controller, no_queue) { .mode = BADCTRL_NO_QUEUE, .error = -ENODEV };

FIXTURE_VARIANT_ADD(bad_controller, huge_pages)
{
	.mode = BADCTRL_HUGE_PAGES, .error = -ENODEV,
};

/*
 * A doorbell stride so large that BAR0 holds no doorbell, or those of the admin queue
 * only.
 */
FIXTURE_VARIANT_ADD(bad_controller, no_doorbells)
{
	.mode = BADCTRL_WORKS, .cap_high = 15, .error = -ENODEV,
};

FIXTURE_VARIANT_ADD(bad_controller, no_doorbells_for_io)
{
	.mode = BADCTRL_WORKS, .cap_high = 10, .error = -ENODEV,
};

#define IT_WORKS_BUT(name, opcode, what, errno)				\
	FIXTURE_VARIANT_ADD(bad_controller, name)			\
	{								\
		.mode = BADCTRL_WORKS, .match = opcode, .action = what, .error = errno,	\
	}

IT_WORKS_BUT(refuses_identify, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_identify, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(refuses_features, NVME_ADMIN_SET_FEATURES, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_features, NVME_ADMIN_SET_FEATURES, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(refuses_queues, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_queues, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(vanishes, NVME_ADMIN_CREATE_SQ, BADCTRL_VANISH, -ETIMEDOUT);

FIXTURE_SETUP(bad_controller)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, variant->mode));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REGISTERS + CAP_HIGH,
				np_bad_get(&self->bad, BADCTRL_REGISTERS + CAP_HIGH) |
				variant->cap_high));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REGISTERS + CRTO, variant->crto));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, variant->match, variant->action,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, 1));
}

FIXTURE_TEARDOWN(bad_controller)
{
	if (self->bad.address[0])
		EXPECT_EQ(0, np_bad_close(&self->bad));
}

TEST_F(bad_controller, probe_fails_and_leaves_nothing)
{
	int64_t start = np_now_ms();
	uint16_t command;

	if (variant->error == -ETIMEDOUT)
		ASSERT_EQ(0, np_bad_short_admin_timeout());
	EXPECT_EQ(variant->error, np_bind(self->bad.address));
	ASSERT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	/* It is ready still, and the next probe stops it before it maps memory. */
	if (variant->mode == BADCTRL_NEVER_STOPS)
		EXPECT_EQ(variant->error, np_bind(self->bad.address));
	EXPECT_FALSE(np_bound(self->bad.address));
	/* No command may be submitted before CSTS.RDY is set. */
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_EARLY));
	/*
	 * A controller that did not report CSTS.RDY = 0 must have bus mastering disabled.
	 */
	ASSERT_EQ(2, pread(self->bad.config, &command, sizeof(command), PCI_COMMAND));
	EXPECT_EQ(0, command & PCI_COMMAND_MASTER);
	/* The controller works again and can be bound. */
	ASSERT_EQ(0, np_bad_long_admin_timeout());
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_DEFAULTS, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	EXPECT_EQ(0, np_bad_bind(&self->bad, 1));
}

TEST_HARNESS_MAIN
