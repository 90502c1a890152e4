// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that is locked down lets nobody write to memory of its own, so it must not
 * let a peer have a controller do that either.  There is no way back from it.
 *
 * iommu: on off
 * last: yes
 */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define LOCKDOWN	"/sys/kernel/security/lockdown"

static bool can_lock_down(void)
{
	char text[128];

	if (access(LOCKDOWN, W_OK))
		mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	return !np_read_file(LOCKDOWN, text, sizeof(text)) && strstr(text, "[none]");
}

TEST(direct_mode_wants_an_iommu)
{
	struct nvme_peer_qp_create create;
	struct np_ctrl ctrl;
	struct np_qp before;

	if (!can_lock_down())
		SKIP(return, "this kernel cannot be locked down");
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&before, ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_write_file(LOCKDOWN, "integrity"));
	if (ctrl.info.domain == NVME_PEER_DOMAIN_TRANSLATED) {
		ASSERT_EQ(0, np_qp_create(ctrl.fd, ENTRIES, &create));
		close(create.qp_fd);
	} else {
		EXPECT_EQ(-EPERM, np_qp_create(ctrl.fd, ENTRIES, &create));
	}
	np_qp_close(&before);
	np_ctrl_close(&ctrl);
}

TEST_HARNESS_MAIN
