// SPDX-License-Identifier: GPL-2.0-only
/*
 * A new queue pair works. The template of a test: Documentation/writing-tests.rst.
 * iommu: on
 * timeout: 60
 */
#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

/* It writes to no disk, or only by helpers of nptest.h. */
NP_KEEPS_DISK()

FIXTURE(template)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(template)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(template)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(template, new_queue_pair_completes_flush)
{
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
}

TEST_HARNESS_MAIN
