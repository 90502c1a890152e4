// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: what a peer is told of a queue pair, its
 * geometry, from what the kernel and the caller say.
 */
#include <string.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>
#include <nvmepeer_uring.h>

#include "fake.h"

/* Whose memory rings lie in. */
static const struct nvme_peer_pci_address gpu = { 0, 0x0300, 1 };

FIXTURE(geometry)
{
	struct nvmepeer *ctrl;
	struct nvmepeer_qp *qp;
	struct nvmepeer_ns_info ns;
	struct nvmepeer_geometry geometry;
};

FIXTURE_SETUP(geometry)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };

	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &self->qp), 0);
	self->ns.size = sizeof(self->ns);
	self->ns.nsid = 3;
	self->ns.block_size = 4096;
	self->geometry.sq = 0x10000;
	self->geometry.cq = 0x20000;
	self->geometry.state = 0x30000;
	self->geometry.readback = 0x40000;
}

FIXTURE_TEARDOWN(geometry)
{
	nvmepeer_qp_destroy(self->qp);
	nvmepeer_close(self->ctrl);
}

static int geometry_of(FIXTURE_DATA(geometry) * self, uint32_t view)
{
	return nvmepeer_qp_geometry(self->ctrl, self->qp, &self->ns, view, 0x50000,
				    &self->geometry, sizeof(self->geometry));
}

TEST_F(geometry, is_completed)
{
	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.sq, 0x10000);
	EXPECT_EQ(self->geometry.sq_doorbell, 0x50028);
	EXPECT_EQ(self->geometry.cq_doorbell, 0x5002c);
	EXPECT_EQ(self->geometry.sq_entries, 64);
	EXPECT_EQ(self->geometry.cq_entries, 128);
	EXPECT_EQ(self->geometry.generation, 9);
	EXPECT_EQ(self->geometry.qid, 5);
	EXPECT_EQ(self->geometry.nsid, 3);
	EXPECT_EQ(self->geometry.lba_shift, 12);
	EXPECT_EQ(self->geometry.page_shift, 12);
	EXPECT_EQ(self->geometry.max_transfer, 131072);
	EXPECT_EQ(self->geometry.flags, 0);
	fake.info.sgls = 1;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.flags, NVMEPEER_SGL);
}

TEST_F(geometry, tells_where_things_lie)
{
	enum { apart = NVMEPEER_CQ_APART_FROM_DATA | NVMEPEER_DATA_REMOTE };
	static const struct {
		bool sq_in_device, cq_in_device;
		uint32_t view, flags;
	} cases[] = {
		{ false, false, NVMEPEER_VIEW_DATA_IN_HOST,
		  NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE | NVMEPEER_DATA_REMOTE },
		{ false, false, NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST, 0 },
		{ false, false, NVMEPEER_VIEW_CPU, apart },
		{ true, false,
		  NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST, NVMEPEER_SQ_REMOTE },
		{ false, true, 0, NVMEPEER_SQ_REMOTE },
		{ false, true,
		  NVMEPEER_VIEW_DATA_IN_HOST, apart | NVMEPEER_SQ_REMOTE },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.qp_info.sq_pci_address.valid = cases[i].sq_in_device;
		fake.qp_info.cq_pci_address.valid = cases[i].cq_in_device;
		ASSERT_EQ(geometry_of(self, cases[i].view), 0);
		EXPECT_EQ(self->geometry.flags, cases[i].flags)
			TH_LOG("case %zu", i);
	}
}

TEST_F(geometry, that_the_device_library_would_refuse)
{
	struct nvmepeer_explanation explanation;

	EXPECT_EQ(geometry_of(self, 0), -EINVAL)
		TH_LOG("rings in host memory, data in the device's");
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "read back");
	fake.qp_info.cq_pci_address = gpu;
	EXPECT_EQ(geometry_of(self, NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST), -EINVAL);
	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	fake.qp_info.sq_entries = 48;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "power of two");
	fake.qp_info.sq_entries = 64;
	self->geometry.state = 0x30001;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "aligned to 128");
	self->geometry.state = 0x30000;
	self->ns.block_size = 0;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "block size");
}

TEST_F(geometry, is_built_from_what_was_said_before)
{
	struct nvmepeer_geometry built = self->geometry;
	struct nvmepeer_explanation explanation;
	unsigned int calls;

	fake.qp_info.sq_pci_address = gpu;
	fake.info.sgls = 1;
	ASSERT_EQ(geometry_of(self, NVMEPEER_VIEW_DATA_IN_HOST), 0);
	calls = fake.calls;
	ASSERT_EQ(nvmepeer_geometry_build(&fake.info, &fake.qp_info, &self->ns,
					  NVMEPEER_VIEW_DATA_IN_HOST, 0x50000, &built,
					  sizeof(built)), 0);
	EXPECT_EQ(memcmp(&built, &self->geometry, sizeof(built)), 0);
	EXPECT_EQ(built.flags, NVMEPEER_CQ_REMOTE | NVMEPEER_DATA_REMOTE | NVMEPEER_SGL);
	EXPECT_EQ(built.sq_doorbell, 0x50028);
	fake.qp_info.sq_entries = 48;
	EXPECT_EQ(nvmepeer_geometry_build(&fake.info, &fake.qp_info, &self->ns, 0, 0x50000, &built,
					  sizeof(built)), -EINVAL);
	EXPECT_EQ(fake.calls, calls);
	nvmepeer_explain(&explanation, sizeof(explanation));
	EXPECT_STREQ(explanation.call, "nvmepeer_geometry_build");
	MENTIONS(explanation.limit, "power of two");
}

/* One whose format a caller found out itself. */
TEST_F(geometry, has_no_room_for_metadata)
{
	struct nvmepeer_explanation explanation;

	self->ns.metadata_size = 64;
	EXPECT_EQ(geometry_of(self, 0), -EOPNOTSUPP);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.what, "namespace 3");
	MENTIONS(explanation.limit, "metadata");
}

TEST_F(geometry, cpu_peer_leaves_nothing_behind_when_it_fails)
{
	static const unsigned long commands[] = {
		NVME_PEER_INFO, NVME_PEER_QP_CREATE, NVME_PEER_QP_EXPORT,
		NVME_PEER_BUF_IMPORT, NVME_PEER_BUF_TABLE, NVME_PEER_QP_INFO,
	};
	struct nvmepeer_cpu_peer *peer;
	int files = fake.open_files;
	size_t i;

	fake.qp_info.cq_entries = 64;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		fake.fail_command = commands[i];
		fake.fail_error = ESHUTDOWN;
		EXPECT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peer),
			  -ESHUTDOWN);
		EXPECT_EQ(fake.open_files, files) TH_LOG("command %zu", i);
	}
	fake.fail_command = 0;
	ASSERT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peer), 0);
	EXPECT_EQ(nvmepeer_cpu_peer_queue(peer)->qid, 5);
	EXPECT_EQ(nvmepeer_cpu_peer_data(peer)->length, 65536);
	memset(nvmepeer_cpu_peer_address(peer), 0x5a, 65536);
	nvmepeer_cpu_peer_close(peer);
	EXPECT_EQ(fake.open_files, files);
}

TEST_F(geometry, ring_entry_of_a_transfer)
{
	struct io_uring_sqe entry[2];
	const struct nvme_uring_cmd *command = (void *)entry[0].cmd;
	struct nvmepeer_ns *ns;
	char data[8];

	fake.identify[130] = 12;
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	memset(entry, 0xff, sizeof(entry));
	nvmepeer_prep_rw(entry, ns, NVMEPEER_OPCODE_WRITE, 0x123456789ull, 8, data);
	EXPECT_EQ(entry->opcode, IORING_OP_URING_CMD);
	EXPECT_EQ(entry->fd, nvmepeer_ns_fd(ns));
	EXPECT_EQ(entry->cmd_op, NVME_URING_CMD_IO);
	EXPECT_EQ(command->opcode, 1);
	EXPECT_EQ(command->nsid, 3);
	EXPECT_EQ(command->addr, (uintptr_t)data);
	EXPECT_EQ(command->data_len, 8 * 4096);
	EXPECT_EQ(command->cdw10, 0x23456789);
	EXPECT_EQ(command->cdw11, 1);
	EXPECT_EQ(command->cdw12, 7);
	EXPECT_EQ(command->timeout_ms, 0);
	nvmepeer_ns_close(ns);
}

TEST_F(geometry, fits_old_and_new_callers)
{
	NEWER(struct nvmepeer_geometry) newer = { self->geometry, 0 };
	struct nvmepeer_geometry as_it_was = self->geometry;

	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	ASSERT_EQ(nvmepeer_qp_geometry(self->ctrl, self->qp, &self->ns, 0, 0x50000, &newer.known,
				       sizeof(newer)), 0);
	EXPECT_EQ(newer.known.qid, 5);
	EXPECT_EQ(newer.more, 0);
	newer.more = 1;
	EXPECT_EQ(nvmepeer_qp_geometry(self->ctrl, self->qp, &self->ns, 0, 0x50000, &newer.known,
				       sizeof(newer)), -E2BIG);
	EXPECT_EQ(nvmepeer_qp_geometry(self->ctrl, self->qp, &self->ns, 0, 0x50000,
				       &self->geometry, sizeof(self->geometry) - 1), -EINVAL);
	EXPECT_EQ(memcmp(&self->geometry, &as_it_was, sizeof(as_it_was)), 0);
}

/* What a caller hands over as facts says itself how long it is. */
TEST_F(geometry, of_facts_that_are_too_short)
{
	struct nvme_peer_qp_info qp_info = fake.qp_info;
	struct nvme_peer_info info = fake.info;

	qp_info.sq_pci_address = qp_info.cq_pci_address = gpu;
	ASSERT_EQ(nvmepeer_geometry_build(&info, &qp_info, &self->ns, 0, 0x50000, &self->geometry,
					  sizeof(self->geometry)), 0);
	info.size--;
	EXPECT_EQ(nvmepeer_geometry_build(&info, &qp_info, &self->ns, 0, 0x50000, &self->geometry,
					  sizeof(self->geometry)), -EINVAL);
	info.size++;
	qp_info.size--;
	EXPECT_EQ(nvmepeer_geometry_build(&info, &qp_info, &self->ns, 0, 0x50000, &self->geometry,
					  sizeof(self->geometry)), -EINVAL);
	qp_info.size++;
	self->ns.size--;
	EXPECT_EQ(nvmepeer_geometry_build(&info, &qp_info, &self->ns, 0, 0x50000, &self->geometry,
					  sizeof(self->geometry)), -EINVAL);
}

TEST_HARNESS_MAIN
