// SPDX-License-Identifier: GPL-2.0-only
/*
 * In a locked-down kernel user space must not be able to write kernel memory, so a peer
 * queue pair is refused, with an IOMMU as well. NVME_PEER_INFO reports how far the IOMMU
 * confines the controller. Neither lockdown nor a lazy domain can be undone, so this runs
 * last.
 *
 * iommu: on off
 * last: yes
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define LOCKDOWN	"/sys/kernel/security/lockdown"

/* The kernel marks interrupt chips that an IOMMU remaps by "IR-" in their names. */
static bool interrupts_are_remapped(void)
{
	static char text[65536];

	return !np_read_file("/proc/interrupts", text, sizeof(text)) && strstr(text, "IR-");
}

static uint32_t domain_now(const struct np_ctrl *ctrl)
{
	struct nvme_peer_info info = { .size = sizeof(info) };

	return np_ioctl(ctrl->fd, NVME_PEER_INFO, &info) ? ~0U : info.domain;
}

/* An administrator can make a strict domain lazy while the driver is bound. */
TEST(info_reports_strict_domain_and_isolated_msi)
{
	uint32_t isolated = interrupts_are_remapped() ? NVME_PEER_DOMAIN_ISOLATED_MSI : 0;
	uint32_t domain = NVME_PEER_DOMAIN_PHYSICAL;
	char path[96], type[32] = "";
	struct np_ctrl ctrl;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type", ctrl.address);
	np_read_file(path, type, sizeof(type));
	if (!strcmp(type, "DMA\n"))
		domain = NVME_PEER_DOMAIN_STRICT;
	else if (!strcmp(type, "DMA-FQ\n"))
		domain = NVME_PEER_DOMAIN_LAZY;
	TH_LOG("domain %u, isolated MSI %u", domain, isolated);
	EXPECT_EQ(domain, domain_now(&ctrl));
	EXPECT_EQ(isolated, ctrl.info.domain_flags);
	if (domain == NVME_PEER_DOMAIN_STRICT) {
		ASSERT_EQ(0, np_write_file(path, "DMA-FQ"));
		EXPECT_EQ(NVME_PEER_DOMAIN_LAZY, domain_now(&ctrl));
	}
	np_ctrl_close(&ctrl);
}

static bool can_lock_down(void)
{
	char text[128];

	if (access(LOCKDOWN, W_OK))
		mount("securityfs", "/sys/kernel/security", "securityfs", 0, NULL);
	return !np_read_file(LOCKDOWN, text, sizeof(text)) && strstr(text, "[none]");
}

TEST(locked_down_kernel_refuses_queue_pairs)
{
	struct nvme_peer_qp_create create;
	struct np_ctrl ctrl;
	struct np_qp before;

	if (!can_lock_down())
		SKIP(return, "this kernel cannot be locked down");
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	ASSERT_EQ(0, np_qp_open(&before, ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_write_file(LOCKDOWN, "integrity"));
	EXPECT_EQ(-EPERM, np_qp_create(ctrl.fd, ENTRIES, &create));
	np_qp_close(&before);
	np_ctrl_close(&ctrl);
}

TEST_HARNESS_MAIN
