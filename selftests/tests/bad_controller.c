// SPDX-License-Identifier: GPL-2.0-only
/*
 * Binding a controller that cannot be brought up: the probe fails in bounded
 * time, leaves nothing behind and does not disturb another controller.
 *
 * kernels: 6.1 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off
 * timeout: 180
 */
#include <errno.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

#define PCI_COMMAND		4
#define PCI_COMMAND_MASTER	4
#define CAP_HIGH		4	/* DSTRD in its lowest bits */

FIXTURE(bad_controller)
{
	struct np_bad bad;
};

/* A rule whose action is 0 does nothing. @stride: CAP.DSTRD */
FIXTURE_VARIANT(bad_controller)
{
	uint32_t mode;
	uint32_t stride;
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

FIXTURE_VARIANT_ADD(bad_controller, gone) { .mode = BADCTRL_GONE, .error = -ENODEV };
FIXTURE_VARIANT_ADD(bad_controller, no_queue) { .mode = BADCTRL_NO_QUEUE, .error = -ENODEV };

FIXTURE_VARIANT_ADD(bad_controller, huge_pages)
{
	.mode = BADCTRL_HUGE_PAGES, .error = -ENODEV,
};

/* Doorbells so far apart that BAR0 has none, or those of the admin queue only. */
FIXTURE_VARIANT_ADD(bad_controller, no_doorbells)
{
	.mode = BADCTRL_WORKS, .stride = 15, .error = -ENODEV,
};

FIXTURE_VARIANT_ADD(bad_controller, no_doorbells_for_io)
{
	.mode = BADCTRL_WORKS, .stride = 10, .error = -ENODEV,
};

#define IT_WORKS_BUT(name, opcode, what, errno)				\
	FIXTURE_VARIANT_ADD(bad_controller, name)			\
	{								\
		.mode = BADCTRL_WORKS, .match = opcode, .action = what, .error = errno,	\
	}

IT_WORKS_BUT(refuses_identify, NP_ADMIN_IDENTIFY, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_identify, NP_ADMIN_IDENTIFY, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(refuses_features, NP_ADMIN_SET_FEATURES, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_features, NP_ADMIN_SET_FEATURES, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(refuses_queues, NP_ADMIN_CREATE_CQ, BADCTRL_STATUS, -EIO);
IT_WORKS_BUT(ignores_queues, NP_ADMIN_CREATE_SQ, BADCTRL_HOLD, -ETIMEDOUT);
IT_WORKS_BUT(vanishes, NP_ADMIN_CREATE_SQ, BADCTRL_VANISH, -ETIMEDOUT);

FIXTURE_SETUP(bad_controller)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_bad_hurry());
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, variant->mode));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REGISTERS + CAP_HIGH,
				np_bad_get(&self->bad, BADCTRL_REGISTERS + CAP_HIGH) |
				variant->stride));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, variant->match, variant->action,
				 NP_STATUS_DNR | NP_STATUS_INTERNAL, 1));
}

FIXTURE_TEARDOWN(bad_controller)
{
	if (self->bad.address[0])
		EXPECT_EQ(0, np_bad_close(&self->bad));
}

TEST_F(bad_controller, is_refused_and_left_alone)
{
	int64_t start = np_now_ms();
	uint16_t command;

	EXPECT_EQ(variant->error, np_bind(self->bad.address));
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	EXPECT_FALSE(np_bound(self->bad.address));
	/* Nothing may be asked of a controller that is not ready. */
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_EARLY));
	/* Who did not prove that it stopped must not reach memory any more. */
	ASSERT_EQ(2, pread(self->bad.config, &command, sizeof(command), PCI_COMMAND));
	EXPECT_EQ(0, command & PCI_COMMAND_MASTER);
	/* It got well. */
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_DEFAULTS, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_WORKS));
	EXPECT_EQ(0, np_bad_bind(&self->bad, 1));
}

TEST_HARNESS_MAIN
