// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: the geometry of a queue pair.
 */
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>
#include <nvmepeer_uring.h>

#include "fake.h"

/* Function that has the rings. */
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
	fake.qp_info.losses = 4;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.sq, 0x10000);
	EXPECT_EQ(self->geometry.sq_doorbell, 0x50028);
	EXPECT_EQ(self->geometry.cq_doorbell, 0x5002c);
	EXPECT_EQ(self->geometry.sq_entries, 64);
	EXPECT_EQ(self->geometry.cq_entries, 128);
	EXPECT_EQ(self->geometry.generation, 4);
	EXPECT_EQ(self->geometry.qid, 5);
	EXPECT_EQ(self->geometry.nsid, 3);
	EXPECT_EQ(self->geometry.lba_shift, 12);
	EXPECT_EQ(self->geometry.page_shift, 12);
	EXPECT_EQ(self->geometry.max_transfer, 131072);
	EXPECT_EQ(self->geometry.flags, 0);
	fake.info.sgls = 1;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.flags, NVMEPEER_SGL);
	fake.info.sgls = 1u << 16 | 2;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.flags, NVMEPEER_SGL | NVMEPEER_SGL_BIT_BUCKET);
	fake.info.sgls = 1u << 16;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.flags, 0);
}

/* For a peer in another process: everything but addresses is checked, and none is set. */
TEST_F(geometry, without_addresses_for_descriptors)
{
	memset(&self->geometry, 0, sizeof(self->geometry));
	self->geometry.list_bytes = 8;
	self->geometry.list_memory.length = 8 * 4 * 64;
	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
	ASSERT_EQ(nvmepeer_qp_geometry(self->ctrl, self->qp, &self->ns, NVMEPEER_VIEW_DESCRIPTORS, 0,
				       &self->geometry, sizeof(self->geometry)), 0);
	EXPECT_EQ(self->geometry.sq_doorbell, 0x28);
	EXPECT_EQ(self->geometry.cq_doorbell, 0x2c);
	EXPECT_EQ(self->geometry.sq, 0);
	EXPECT_EQ(self->geometry.state, 0);
	EXPECT_EQ(self->geometry.list_area, 0);
	EXPECT_EQ(self->geometry.readback, 0);
	self->geometry.list_memory.length--;
	EXPECT_EQ(geometry_of(self, NVMEPEER_VIEW_DESCRIPTORS), -EINVAL);
	self->geometry.list_memory.length++;
	/* Completions of host memory and data of the GPU: no word could be read back. */
	fake.qp_info.cq_pci_address.valid = 0;
	EXPECT_EQ(geometry_of(self, NVMEPEER_VIEW_DESCRIPTORS), -EINVAL);
	EXPECT_EQ(geometry_of(self, NVMEPEER_VIEW_DESCRIPTORS | NVMEPEER_VIEW_CPU), 0);
}

TEST_F(geometry, has_flags_for_placement)
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

/* PCIe does not order a completion in one device after data in another. */
TEST_F(geometry, data_in_another_device_is_refused)
{
	const struct nvme_peer_pci_address host = { 0, 0, 0 }, other = { 0, 0x0400, 1 },
					   domain = { 1, 0x0300, 1 };
	const uint32_t elsewhere = NVMEPEER_VIEW_DATA_IN_DEVICE | NVMEPEER_VIEW_DATA_ELSEWHERE;
	struct nvmepeer_explanation explanation;

	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	EXPECT_EQ(nvmepeer_data_view(&fake.qp_info, &gpu), NVMEPEER_VIEW_DATA_IN_DEVICE);
	EXPECT_EQ(nvmepeer_data_view(&fake.qp_info, &host), NVMEPEER_VIEW_DATA_IN_HOST);
	EXPECT_EQ(nvmepeer_data_view(&fake.qp_info, &other), elsewhere);
	EXPECT_EQ(nvmepeer_data_view(&fake.qp_info, &domain), elsewhere);
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(geometry_of(self, nvmepeer_data_view(&fake.qp_info, &other)), -EINVAL);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.help, "same memory as the data");
	/* The CPU reads over a bus from either device, which flushes the data. */
	ASSERT_EQ(geometry_of(self, NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_ELSEWHERE), 0);
	EXPECT_TRUE(self->geometry.flags & NVMEPEER_CQ_APART_FROM_DATA);
	fake.qp_info.cq_pci_address = host;
	EXPECT_EQ(nvmepeer_data_view(&fake.qp_info, &other), NVMEPEER_VIEW_DATA_IN_DEVICE);
}

/* The combined view of several buffers is as strict as each of them. */
TEST_F(geometry, data_in_several_memories)
{
	enum { REFUSED = 1u << 31, APART = NVMEPEER_CQ_APART_FROM_DATA | NVMEPEER_DATA_REMOTE };
	static const struct nvme_peer_pci_address host = { 0, 0, 0 }, other = { 0, 0x0400, 1 };
	static const struct {
		const struct nvme_peer_pci_address *cq, *data[2];
		uint32_t peer, flags;
	} cases[] = {
		/* A GPU as the peer. */
		{ &host, { &host, &gpu }, 0, REFUSED },
		{ &gpu, { &gpu, &gpu }, 0, 0 },
		{ &gpu, { &gpu, &host }, 0, APART },
		{ &gpu, { &host, &other }, 0, REFUSED },
		{ &gpu, { &gpu, &other }, 0, REFUSED },
		/* The CPU. */
		{ &host, { &host, &gpu }, NVMEPEER_VIEW_CPU, APART },
		{ &gpu, { &gpu, &host }, NVMEPEER_VIEW_CPU, REFUSED },
		{ &gpu, { &gpu, &other }, NVMEPEER_VIEW_CPU, APART },
		{ &gpu, { &host, &other }, NVMEPEER_VIEW_CPU, REFUSED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t view = cases[i].peer;

		fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = *cases[i].cq;
		for (int part = 0; part < 2; part++)
			view |= nvmepeer_data_view(&fake.qp_info, cases[i].data[part]);
		if (cases[i].flags == REFUSED) {
			EXPECT_EQ(geometry_of(self, view), -EINVAL) TH_LOG("case %zu", i);
			continue;
		}
		ASSERT_EQ(geometry_of(self, view), 0) TH_LOG("case %zu", i);
		EXPECT_EQ(self->geometry.flags & APART, cases[i].flags) TH_LOG("case %zu", i);
	}
}

TEST_F(geometry, is_checked_like_the_device_library)
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
	MENTIONS(explanation.help, "aligned to 128");
	self->geometry.state = 0x30000;
	self->ns.block_size = 0;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "block size");
}

/* Its rings are in host memory, and the kernel orders completions behind data in devices. */
TEST_F(geometry, mediated_queue_pair_permits_data_in_devices)
{
	fake.qp_info.mode = NVME_PEER_MODE_MEDIATED;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.flags, NVMEPEER_SQ_REMOTE | NVMEPEER_CQ_REMOTE);
	ASSERT_EQ(geometry_of(self, NVMEPEER_VIEW_DATA_IN_HOST | NVMEPEER_VIEW_DATA_IN_DEVICE), 0);
	ASSERT_EQ(geometry_of(self, NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_DEVICE), 0);
	EXPECT_EQ(self->geometry.flags, NVMEPEER_DATA_REMOTE);
	fake.qp_info.mode = NVME_PEER_MODE_RELAY;
	EXPECT_EQ(geometry_of(self, 0), -EINVAL);
}

TEST_F(geometry, is_built_without_system_calls)
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
	/* Only the caller knows that data must be one range. */
	built.flags = NVMEPEER_ONE_RANGE | NVMEPEER_SQ_REMOTE;
	ASSERT_EQ(nvmepeer_geometry_build(&fake.info, &fake.qp_info, &self->ns,
					  NVMEPEER_VIEW_DATA_IN_HOST, 0x50000, &built,
					  sizeof(built)), 0);
	EXPECT_EQ(built.flags, self->geometry.flags | NVMEPEER_ONE_RANGE);
	fake.qp_info.sq_entries = 48;
	EXPECT_EQ(nvmepeer_geometry_build(&fake.info, &fake.qp_info, &self->ns, 0, 0x50000, &built,
					  sizeof(built)), -EINVAL);
	EXPECT_EQ(fake.calls, calls);
	nvmepeer_explain(&explanation, sizeof(explanation));
	EXPECT_STREQ(explanation.call, "nvmepeer_geometry_build");
	MENTIONS(explanation.limit, "power of two");
}

/* The caller has filled in the format itself. */
TEST_F(geometry, refuses_metadata)
{
	struct nvmepeer_explanation explanation;

	self->ns.metadata_size = 64;
	EXPECT_EQ(geometry_of(self, 0), -EOPNOTSUPP);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.what, "namespace 3");
	MENTIONS(explanation.limit, "metadata");
}

/* A queue opened before the re-arm sees the loss; one of now has the losses of now. */
TEST_F(geometry, generation_of_a_quiesced_queue_pair_is_that_before_the_loss)
{
	fake.qp_info.sq_pci_address = fake.qp_info.cq_pci_address = gpu;
	fake.qp_info.losses = 4;
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.generation, 3);
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	ASSERT_EQ(geometry_of(self, 0), 0);
	EXPECT_EQ(self->geometry.generation, 4);
}

static const struct nvmepeer_queue *recovered;

/* The kernel takes a request to quiesce the queue pair. */
static void quiesce_on_request(void)
{
	uint32_t *request = (uint32_t *)(uintptr_t)recovered->control;

	if (*request) {
		fake.qp_info.state = NVME_PEER_QP_QUIESCED;
		fake.qp_info.losses++;
	}
	*request = 0;
}

/* A CPU peer that is LIVE for the kernel and cannot be used. */
static struct nvmepeer_cpu_peer *unusable_peer(FIXTURE_DATA(geometry) *self)
{
	struct nvmepeer_cpu_peer *peer;

	if (nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peer))
		return NULL;
	recovered = nvmepeer_cpu_peer_queue(peer);
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	fake.on_qp_info = quiesce_on_request;
	return peer;
}

/* Marked lost by an exclusive owner that timed out. */
TEST_F(geometry, cpu_peer_that_is_marked_lost_is_recovered)
{
	struct nvmepeer_cpu_peer *peer = unusable_peer(self);

	ASSERT_NE(peer, NULL);
	nvp_mark_lost(recovered);
	fake.on_qp_info = NULL;
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 0), -ETIMEDOUT);
	fake.on_qp_info = quiesce_on_request;
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 1000), 0);
	EXPECT_FALSE(nvp_known_lost(recovered));
	EXPECT_EQ(recovered->state->generation, fake.qp_info.losses);
	nvmepeer_cpu_peer_close(peer);
}

TEST_F(geometry, cpu_peer_that_stayed_exclusive_is_recovered)
{
	struct nvmepeer_cpu_peer *peer = unusable_peer(self);
	struct nvmepeer_exclusive exclusive;

	ASSERT_NE(peer, NULL);
	exclusive = nvmepeer_exclusive_open(recovered);
	EXPECT_EQ(exclusive.broken, 0);
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 1000), 0);
	exclusive = nvmepeer_exclusive_open(recovered);
	EXPECT_EQ(exclusive.broken, 0);
	nvmepeer_cpu_peer_close(peer);
}

/* The kernel has taken a request and deletes the queues; the queue pair is still LIVE. */
TEST_F(geometry, cpu_peer_that_is_being_quiesced_is_recovered)
{
	struct nvmepeer_cpu_peer *peer = unusable_peer(self);

	ASSERT_NE(peer, NULL);
	fake.on_qp_info = NULL;
	ASSERT_EQ(nvmepeer_queue_quiesce(recovered), 0);
	*(uint32_t *)(uintptr_t)recovered->control = 0;
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 20), -ETIMEDOUT);
	fake.qp_info.state = NVME_PEER_QP_QUIESCED;
	fake.qp_info.losses++;
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 20), 0);
	EXPECT_EQ(recovered->state->generation, fake.qp_info.losses);
	/* A request from before the loss does not count. */
	fake.qp_info.state = NVME_PEER_QP_LIVE;
	EXPECT_EQ(nvmepeer_cpu_peer_recover(peer, 20), 0);
	nvmepeer_cpu_peer_close(peer);
}

TEST_F(geometry, failed_cpu_peer_leaks_nothing)
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

/* Other queue pairs of the node keep the memory of a closed peer imported. */
TEST_F(geometry, closed_cpu_peer_is_released_later)
{
	struct nvmepeer_cpu_peer *peers[2];

	ASSERT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peers[0]), 0);
	ASSERT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peers[1]), 0);
	EXPECT_EQ(fake.buffers, 2);
	fake.release_refusals = 1;
	nvmepeer_cpu_peer_close(peers[0]);
	EXPECT_EQ(fake.buffers, 2);
	nvmepeer_cpu_peer_close(peers[1]);
	EXPECT_EQ(fake.buffers, 0);
	ASSERT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peers[0]), 0);
	fake.release_refusals = 1;
	nvmepeer_cpu_peer_close(peers[0]);
	EXPECT_EQ(fake.buffers, 1);
	ASSERT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peers[0]), 0);
	EXPECT_EQ(fake.buffers, 1);
	/* One that the controller's close releases. */
	fake.release_refusals = 1;
	nvmepeer_cpu_peer_close(peers[0]);
}

/* The close of what was open before the failure does not replace it. */
TEST_F(geometry, failed_cpu_peer_is_explained)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer_cpu_peer *peer;

	fake.fail_command = NVME_PEER_BUF_TABLE;
	fake.fail_error = EPERM;
	fake.release_refusals = 1;
	EXPECT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peer), -EPERM);
	nvmepeer_explain(&explanation, sizeof(explanation));
	EXPECT_EQ(explanation.error, EPERM);
	EXPECT_STREQ(explanation.call, "nvmepeer_buf_table");
	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = ENOBUFS;
	EXPECT_EQ(nvmepeer_cpu_peer_open(self->ctrl, &self->ns, 64, 65536, &peer), -ENOBUFS);
	EXPECT_EQ(fake.buffers, 0);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "RLIMIT_MEMLOCK");
	MENTIONS(explanation.help, "ulimit -l");
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
	nvmepeer_prep_rw(entry, ns, NVMEPEER_OP_WRITE, 0x123456789ull, 8, data);
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
	struct nvmepeer_geometry before = self->geometry;

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
	EXPECT_EQ(memcmp(&self->geometry, &before, sizeof(before)), 0);
}

/* Input structures carry their sizes. */
TEST_F(geometry, refuses_short_input)
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
