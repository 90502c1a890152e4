// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: the requests that it passes to the kernel,
 * the results that it returns, and the explanation of each refusal.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>

#include "fake.h"

#define REQUEST(type) ((const type *)(const void *)fake.request)

FIXTURE(controller)
{
	struct nvmepeer *ctrl;
	struct nvmepeer_explanation explanation;
};

FIXTURE_SETUP(controller)
{
	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
	ASSERT_EQ(fake.open_files, 1);
}

FIXTURE_TEARDOWN(controller)
{
	nvmepeer_close(self->ctrl);
	EXPECT_EQ(fake.open_files, 0);
}

TEST(open_completes_the_path)
{
	struct nvmepeer *ctrl;

	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep3", &ctrl), 0);
	EXPECT_STREQ(fake.path, "/dev/nvmep3");
	EXPECT_STREQ(nvmepeer_node(ctrl), "/dev/nvmep3");
	nvmepeer_close(ctrl);
	ASSERT_EQ(nvmepeer_open("./x/nvmep3", &ctrl), 0);
	EXPECT_STREQ(fake.path, "./x/nvmep3");
	nvmepeer_close(ctrl);
}

TEST(open_of_foreign_node_closes_it)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer *ctrl = NULL;

	fake_reset();
	fake.fail_command = NVME_PEER_INFO;
	fake.fail_error = ENOTTY;
	ASSERT_EQ(nvmepeer_open("/dev/nvme0", &ctrl), -ENOTTY);
	EXPECT_EQ(ctrl, NULL);
	EXPECT_EQ(fake.open_files, 0);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -ENOTTY);
	MENTIONS(explanation.what, "/dev/nvme0");
	MENTIONS(explanation.help, "/dev/nvmepX");
}

TEST(open_of_missing_node_explains_bind)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer *ctrl;

	fake_reset();
	fake.open_error = ENOENT;
	ASSERT_EQ(nvmepeer_open("nvmep0", &ctrl), -ENOENT);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -ENOENT);
	MENTIONS(explanation.help, "nvme-peer bind");
}

TEST(open_refuses_long_path)
{
	struct nvmepeer *ctrl;
	char path[300];

	fake_reset();
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	EXPECT_EQ(nvmepeer_open(path, &ctrl), -ENAMETOOLONG);
	EXPECT_EQ(fake.open_files, 0);
}

TEST_F(controller, import_passes_fd_and_flags)
{
	struct nvme_peer_buf_import buffer;

	memset(&buffer, 0xff, sizeof(buffer));
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer,
				      sizeof(buffer)), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->size, sizeof(buffer));
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->dmabuf_fd, 42);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->flags, NVME_PEER_BUF_REQUIRE_DEVICE);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->handle, 0);
	EXPECT_EQ(buffer.handle, 7);
	EXPECT_EQ(buffer.length, 65536);
}

TEST_F(controller, import_passes_range_and_access)
{
	struct nvme_peer_buf_import buffer = {
		.dmabuf_fd = 42,
		.access = NVME_PEER_ACCESS_WRITE,
		.offset = 8192,
		.length = 4096,
	};

	ASSERT_EQ(nvmepeer_buf_import_part(self->ctrl, &buffer, sizeof(buffer)), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->size, sizeof(buffer));
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->access, NVME_PEER_ACCESS_WRITE);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->offset, 8192);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->length, 4096);
	EXPECT_EQ(buffer.handle, 7);
}

static const struct {
	struct nvme_peer_buf_import part;
	int error;
	const char *limit;
	const char *help;
} bad_ranges[] = {
	{ { .access = 4 }, EINVAL, "access", "NVME_PEER_ACCESS_BOTH" },
	{ { .offset = 512 }, EINVAL, "512 and length 0", "whole pages" },
	{ { .length = 100 }, EINVAL, "length 100", "whole pages" },
	{ { .flags = 1U << 31 }, EINVAL, "dma-buf", "" },
	{ { .offset = 65536 }, ERANGE, "offset 65536", "within the dma-buf" },
	{ { }, EACCES, "reading only", "NVME_PEER_ACCESS_READ" },
};

TEST_F(controller, refused_ranges_are_explained)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	for (size_t i = 0; i < sizeof(bad_ranges) / sizeof(bad_ranges[0]); i++) {
		buffer = bad_ranges[i].part;
		fake.fail_error = bad_ranges[i].error;
		ASSERT_EQ(nvmepeer_buf_import_part(self->ctrl, &buffer, sizeof(buffer)),
			  -bad_ranges[i].error);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.limit, bad_ranges[i].limit);
		MENTIONS(self->explanation.help, bad_ranges[i].help);
	}
}

TEST_F(controller, refused_import_names_the_bridge)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EXDEV;
	fake.route.data.reason = NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN;
	fake.route.pci_address = (struct nvme_peer_pci_address){ 0, 0x0300, 1 };
	fake.route.data.blocker_count = 1;
	fake.route.data.blockers[0].address = (struct nvme_peer_pci_address){ 0, 0x0018, 1 };
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, 0, &buffer, sizeof(buffer)), -EXDEV);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EXDEV);
	MENTIONS(self->explanation.limit, "0000:03:00.0");
	MENTIONS(self->explanation.limit, "0000:00:03.0");
	MENTIONS(self->explanation.help, "allow_host_bridge");
}

TEST_F(controller, refusal_by_exporter_is_explained)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EXDEV;
	fake.route.data.reason = NVME_PEER_REASON_EXPORTER_REFUSED;
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, 0, &buffer, sizeof(buffer)), -EXDEV);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EXDEV);
	MENTIONS(self->explanation.limit, "exporter");
	MENTIONS(self->explanation.help, "exporting driver");
}

TEST_F(controller, route_for_writes_only_is_explained)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EXDEV;
	fake.route.data.verdict = NVME_PEER_ROUTE_HOST_BRIDGE_WRITES;
	fake.route.data.reason = NVME_PEER_REASON_HOST_BRIDGE_ALLOWED;
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, 0, &buffer, sizeof(buffer)), -EXDEV);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EXDEV);
	MENTIONS(self->explanation.limit, "for writes but not for reads");
	MENTIONS(self->explanation.help, "must read");
}

TEST_F(controller, host_ram_instead_of_device_memory_is_explained)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = ENXIO;
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer, sizeof(buffer)),
		  -ENXIO);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -ENXIO);
	MENTIONS(self->explanation.limit, "host RAM");
}

TEST_F(controller, bounce_buffers_are_explained)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64, .cq_entries = 64 };
	struct nvme_peer_buf_import buffer;
	struct nvmepeer_qp *qp;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = EOPNOTSUPP;
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, 0, &buffer, sizeof(buffer)), -EOPNOTSUPP);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EOPNOTSUPP);
	MENTIONS(self->explanation.limit, "swiotlb");
	fake.fail_command = NVME_PEER_QP_CREATE;
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), -EOPNOTSUPP);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EOPNOTSUPP);
	MENTIONS(self->explanation.limit, "swiotlb");
	MENTIONS(self->explanation.help, "IOMMU");
}

TEST_F(controller, table_returns_the_count)
{
	uint64_t addresses[4];

	ASSERT_EQ(nvmepeer_buf_table(self->ctrl, 7, 8192, addresses, 4), 4);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_table)->offset, 8192);
	EXPECT_EQ(addresses[0], 0x10002000);
	EXPECT_EQ(addresses[3], 0x10005000);
	fake.table_break = 3;
	ASSERT_EQ(nvmepeer_buf_table(self->ctrl, 7, 4096, addresses, 4), 4);
	EXPECT_EQ(addresses[1], 0x10002000);
	EXPECT_EQ(addresses[2], 0x10103000);
}

TEST_F(controller, contiguous_memory_has_one_address)
{
	uint64_t dma = 0;

	ASSERT_EQ(nvmepeer_buf_contiguous(self->ctrl, 7, 8192, 4096 * 1000, &dma), 0);
	EXPECT_EQ(dma, 0x10002000);
	fake.table_break = 700;
	EXPECT_EQ(nvmepeer_buf_contiguous(self->ctrl, 7, 0, 4096 * 700, &dma), 0);
	EXPECT_EQ(nvmepeer_buf_contiguous(self->ctrl, 7, 0, 4096 * 700 + 1, &dma), -EMSGSIZE);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	MENTIONS(self->explanation.limit, "2867200");
}

TEST_F(controller, completion_entries_default_to_submission_entries)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64, .sq_handle = 7 };
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_create)->size, sizeof(request));
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_create)->cq_entries, 64);
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_create)->sq_handle, 7);
	EXPECT_EQ(request.qid, 5);
	EXPECT_EQ(request.qp_fd, -1);
	EXPECT_EQ(fake.open_files, 2);
	nvmepeer_qp_destroy(qp);
	EXPECT_EQ(fake.open_files, 1);
}

TEST_F(controller, export_and_map)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_mapping *mapping;
	struct nvmepeer_export exported;
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	ASSERT_EQ(nvmepeer_qp_export(qp, NVME_PEER_EXPORT_DOORBELL,
				     NVME_PEER_EXPORT_ALLOW_STATIC, &exported, sizeof(exported)), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_export)->what, NVME_PEER_EXPORT_DOORBELL);
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_export)->flags, NVME_PEER_EXPORT_ALLOW_STATIC);
	EXPECT_EQ(exported.offset, 0x28);
	EXPECT_EQ(fake.open_files, 3);
	fake.open_files--;	/* exported.fd */

	ASSERT_EQ(nvmepeer_qp_map(qp, NVME_PEER_EXPORT_DOORBELL, &mapping), 0);
	EXPECT_EQ(fake.map_length, 4096);
	EXPECT_EQ(fake.map_protection, PROT_READ | PROT_WRITE);
	EXPECT_EQ((char *)nvmepeer_mapping_address(mapping) - (char *)nvmepeer_mapping_base(mapping), 0x28);
	EXPECT_EQ(nvmepeer_mapping_length(mapping), 8);
	EXPECT_EQ(nvmepeer_mapping_mapped(mapping), 4096);
	nvmepeer_unmap(mapping);
	ASSERT_EQ(nvmepeer_qp_map(qp, NVME_PEER_EXPORT_STATUS, &mapping), 0);
	EXPECT_EQ(fake.map_protection, PROT_READ);
	nvmepeer_unmap(mapping);
	EXPECT_EQ(fake.open_files, 2);
	nvmepeer_qp_destroy(qp);
}

TEST_F(controller, from_fd_refuses_other_files)
{
	struct nvmepeer_qp *qp;

	fake.fail_command = NVME_PEER_QP_INFO;
	fake.fail_error = ENOTTY;
	ASSERT_EQ(nvmepeer_qp_from_fd(nvmepeer_fd(self->ctrl), &qp), -ENOTTY);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -ENOTTY);
	MENTIONS(self->explanation.limit, "not a queue pair");
	EXPECT_EQ(fake.open_files, 1);
}

TEST_F(controller, export_of_imported_ring_is_explained)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_export exported;
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	fake.fail_command = NVME_PEER_QP_EXPORT;
	fake.fail_error = ENODATA;
	EXPECT_EQ(nvmepeer_qp_export(qp, NVME_PEER_EXPORT_SQ, 0, &exported, sizeof(exported)), -ENODATA);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	MENTIONS(self->explanation.what, "submission ring");
	nvmepeer_qp_destroy(qp);
}

static const struct {
	enum nvme_peer_export what;
	uint32_t flags;
	const char *help;
} bad_exports[] = {
	{ NVME_PEER_EXPORT_SQ, NVME_PEER_EXPORT_ALLOW_STATIC, "doorbell page only" },
	{ NVME_PEER_EXPORT_DOORBELL, NVME_PEER_EXPORT_ALLOW_STATIC, "" },
	{ NVME_PEER_EXPORT_SQ, 0, "" },
};

TEST_F(controller, help_for_static_importers_only_if_requested)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_export exported;
	struct nvmepeer_qp *qp;
	size_t i;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	fake.fail_command = NVME_PEER_QP_EXPORT;
	fake.fail_error = EINVAL;
	for (i = 0; i < sizeof(bad_exports) / sizeof(bad_exports[0]); i++) {
		EXPECT_EQ(nvmepeer_qp_export(qp, bad_exports[i].what, bad_exports[i].flags, &exported,
					     sizeof(exported)), -EINVAL);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.what, "was not exported");
		MENTIONS(self->explanation.limit, "'what' or 'flags' is unknown");
		MENTIONS(self->explanation.help, bad_exports[i].help);
		EXPECT_EQ(!self->explanation.help[0], !bad_exports[i].help[0]);
	}
	nvmepeer_qp_destroy(qp);
}

TEST_F(controller, failed_mapping_is_explained)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_mapping *mapping;
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	fake.map_error = EPERM;
	EXPECT_EQ(nvmepeer_qp_map(qp, NVME_PEER_EXPORT_CQ, &mapping), -EPERM);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	EXPECT_STREQ(self->explanation.call, "nvmepeer_qp_map");
	MENTIONS(self->explanation.what, "the completion ring was not mapped");
	nvmepeer_qp_destroy(qp);
}

/* ---- After a loss ------------------------------------------------------- */

TEST_F(controller, queue_pair_is_rearmed)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_qp *qp;
	uint32_t generation;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	ASSERT_EQ(nvmepeer_qp_rearm(qp, 3, &generation), 0);
	EXPECT_EQ(fake.losses, 3);
	EXPECT_EQ(generation, 10);
	nvmepeer_qp_destroy(qp);
}

static const struct {
	int error;
	const char *limit;
} rearm_refusals[] = {
	{ EAGAIN, "namespaces" },
	{ EALREADY, "LIVE" },
	{ ESTALE, "lost again" },
	{ ESHUTDOWN, "has failed or is gone" },
	{ EIO, "refused" },
};

/* Each call of a mediated queue pair. */
static int mediated_call(struct nvmepeer_qp *qp, unsigned int number, size_t size)
{
	union {
		struct nvme_peer_window_add window;
		struct nvme_peer_window_info info;
		struct nvme_peer_buf_add buffer;
		struct nvme_peer_qp_limits limits;
		struct nvme_peer_qp_stats stats;
	} argument = { { 0 } };

	switch (number) {
	case 0:
		return nvmepeer_window_add(qp, &argument.window, size);
	case 1:
		return nvmepeer_window_info(qp, 1, &argument.info, size);
	case 2:
		return nvmepeer_buf_add(qp, &argument.buffer, size);
	case 3:
		return nvmepeer_qp_limits(qp, &argument.limits, size);
	case 4:
		return nvmepeer_qp_stats(qp, &argument.stats, size);
	case 5:
		return nvmepeer_window_remove(qp, 1);
	case 6:
		return nvmepeer_buf_remove(qp, 1);
	default:
		return nvmepeer_qp_seal(qp);
	}
}

TEST_F(controller, windows_and_buffers_need_mediated_mode)
{
	static const size_t sizes[] = {
		sizeof(struct nvme_peer_window_add), sizeof(struct nvme_peer_window_info),
		sizeof(struct nvme_peer_buf_add), sizeof(struct nvme_peer_qp_limits),
		sizeof(struct nvme_peer_qp_stats), 0, 0, 0,
	};
	struct nvme_peer_qp_create request = { .sq_entries = 64, .mode = NVME_PEER_MODE_MEDIATED };
	struct nvmepeer_qp *qp;
	unsigned int i;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(mediated_call(qp, i, sizes[i]), 0);
		if (sizes[i])
			EXPECT_EQ(mediated_call(qp, i, sizes[i] - 1), -EINVAL);
	}
	nvmepeer_qp_destroy(qp);
	request.mode = NVME_PEER_MODE_DIRECT;
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(mediated_call(qp, i, sizes[i]), -EOPNOTSUPP);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.help, "NVME_PEER_MODE_MEDIATED");
	}
	nvmepeer_qp_destroy(qp);
	EXPECT_STREQ(nvmepeer_mode_name(NVME_PEER_MODE_MEDIATED), "mediated");
}

TEST_F(controller, queue_pair_in_relay_mode_is_kicked)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64, .mode = NVME_PEER_MODE_RELAY };
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	EXPECT_EQ(nvmepeer_qp_kick(qp), 0);
	nvmepeer_qp_destroy(qp);

	request.mode = NVME_PEER_MODE_DIRECT;
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	EXPECT_EQ(nvmepeer_qp_kick(qp), -EOPNOTSUPP);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	EXPECT_STREQ(self->explanation.call, "nvmepeer_qp_kick");
	MENTIONS(self->explanation.limit, "registers");
	MENTIONS(self->explanation.help, "NVME_PEER_MODE_RELAY");
	nvmepeer_qp_destroy(qp);
	EXPECT_STREQ(nvmepeer_mode_name(NVME_PEER_MODE_RELAY), "relay");
}

TEST_F(controller, refusal_to_rearm_is_explained)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_qp *qp;
	uint32_t generation = 1;
	size_t i;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	fake.fail_command = NVME_PEER_QP_REARM;
	for (i = 0; i < sizeof(rearm_refusals) / sizeof(rearm_refusals[0]); i++) {
		fake.fail_error = rearm_refusals[i].error;
		EXPECT_EQ(nvmepeer_qp_rearm(qp, 3, &generation), -fake.fail_error);
		EXPECT_EQ(generation, 1);
		EXPECT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -fake.fail_error);
		EXPECT_STREQ(self->explanation.call, "nvmepeer_qp_rearm");
		MENTIONS(self->explanation.limit, rearm_refusals[i].limit);
		EXPECT_NE(self->explanation.help[0], 0);
	}
	nvmepeer_qp_destroy(qp);
}

/* ---- Namespaces --------------------------------------------------------- */

static void describe_namespace(uint8_t flbas, uint8_t formats, unsigned int index,
			       uint8_t shift, uint16_t metadata)
{
	fake_reset();
	fake.identify[1] = 0x10;		/* NSZE = 0x1000 */
	fake.identify[25] = formats - 1;
	fake.identify[26] = flbas;
	fake.identify[128 + 4 * index] = metadata & 0xff;
	fake.identify[129 + 4 * index] = metadata >> 8;
	fake.identify[130 + 4 * index] = shift;
}

TEST(namespace_format_is_read)
{
	struct nvmepeer_ns *ns;

	describe_namespace(0x01, 2, 1, 12, 0);
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	EXPECT_STREQ(fake.path, "/dev/ngp0n1");
	EXPECT_EQ(nvmepeer_ns_info(ns)->size, sizeof(struct nvmepeer_ns_info));
	EXPECT_EQ(nvmepeer_ns_info(ns)->nsid, 3);
	EXPECT_EQ(nvmepeer_ns_info(ns)->block_size, 4096);
	EXPECT_EQ(nvmepeer_ns_info(ns)->blocks, 0x1000);
	nvmepeer_ns_close(ns);
	EXPECT_EQ(fake.open_files, 0);
}

TEST(namespace_format_above_15_is_read)
{
	struct nvmepeer_ns *ns;

	describe_namespace(0x22, 20, 18, 10, 0);
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	EXPECT_EQ(nvmepeer_ns_info(ns)->block_size, 1024);
	EXPECT_EQ(nvmepeer_ns_info(ns)->metadata_size, 0);
	nvmepeer_ns_close(ns);
}

/* FLBAS bit 4: metadata follows the data of each block; a read of 4096 bytes fills 4160. */
TEST(namespace_with_metadata_is_refused)
{
	static const uint8_t places[] = { 0x00, 0x10 };
	struct nvmepeer_explanation explanation;
	struct nvmepeer_ns *ns = NULL;
	size_t i;

	for (i = 0; i < 2; i++) {
		describe_namespace(places[i], 1, 0, 12, 64);
		EXPECT_EQ(nvmepeer_ns_open("ngp0n1", &ns), -EOPNOTSUPP);
		EXPECT_EQ(ns, NULL);
		EXPECT_EQ(fake.open_files, 0);
		nvmepeer_explain(&explanation, sizeof(explanation));
		MENTIONS(explanation.what, "ngp0n1");
		MENTIONS(explanation.limit, "metadata");
		MENTIONS(explanation.help, "nvme format");
	}
	describe_namespace(0x00, 1, 0, 9, 0x100);
	EXPECT_EQ(nvmepeer_ns_open("ngp0n1", &ns), -EOPNOTSUPP);
}

TEST(namespace_with_invalid_format_is_refused)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer_ns *ns = NULL;

	describe_namespace(0x05, 2, 5, 12, 0);
	EXPECT_EQ(nvmepeer_ns_open("ngp0n1", &ns), -EPROTO);
	describe_namespace(0x00, 1, 0, 0, 0);
	EXPECT_EQ(nvmepeer_ns_open("ngp0n1", &ns), -EPROTO);
	describe_namespace(0x00, 1, 0, 40, 0);
	EXPECT_EQ(nvmepeer_ns_open("ngp0n1", &ns), -EPROTO);
	EXPECT_EQ(ns, NULL);
	EXPECT_EQ(fake.open_files, 0);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "format");
}

TEST(read_fills_the_command)
{
	const struct nvme_passthru_cmd *command;
	struct nvmepeer_ns *ns;
	char data[512];

	describe_namespace(0x00, 1, 0, 9, 0);
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	ASSERT_EQ(nvmepeer_ns_read(ns, 0x123456789abull, 256, data), 0);
	command = REQUEST(struct nvme_passthru_cmd);
	EXPECT_EQ(command->opcode, 0x02);
	EXPECT_EQ(command->nsid, 3);
	EXPECT_EQ(command->cdw10, 0x456789ab);
	EXPECT_EQ(command->cdw11, 0x123);
	EXPECT_EQ(command->cdw12, 255);
	EXPECT_EQ(command->data_len, 131072);
	EXPECT_EQ(command->addr, (uintptr_t)data);
	ASSERT_EQ(nvmepeer_ns_write(ns, 1, 1, data), 0);
	EXPECT_EQ(command->opcode, 0x01);
	nvmepeer_ns_close(ns);
}

TEST(transfer_of_bad_length_is_refused_by_library)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer_ns *ns;
	unsigned int calls;
	char data[512];

	describe_namespace(0x00, 1, 0, 9, 0);
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	calls = fake.calls;
	EXPECT_EQ(nvmepeer_ns_read(ns, 0, 0, data), -EINVAL);
	EXPECT_EQ(nvmepeer_ns_write(ns, 0, 65537, data), -EINVAL);
	EXPECT_EQ(fake.calls, calls);
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.limit, "65536");
	nvmepeer_ns_close(ns);
}

TEST(controller_status_is_returned)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer_ns *ns;
	char data[512];

	describe_namespace(0x00, 1, 0, 9, 0);
	ASSERT_EQ(nvmepeer_ns_open("ngp0n1", &ns), 0);
	fake.fail_command = NVME_IOCTL_IO_CMD;
	fake.fail_status = 0x4080;
	EXPECT_EQ(nvmepeer_ns_read(ns, 0, 1, data), 0x4080);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), 0x4080);
	MENTIONS(explanation.limit, "LBA out of range");
	MENTIONS(explanation.limit, "do not retry");
	nvmepeer_ns_close(ns);
}

/* ---- Host memory -------------------------------------------------------- */

TEST(host_memory_is_whole_pages)
{
	struct nvmepeer_hostmem *memory;

	fake_reset();
	ASSERT_EQ(nvmepeer_hostmem_alloc(5000, &memory), 0);
	memset(nvmepeer_hostmem_address(memory), 0x5a, 8192);
	EXPECT_GE(nvmepeer_hostmem_fd(memory), 1000);
	EXPECT_EQ(nvmepeer_hostmem_length(memory), 8192);
	EXPECT_STREQ(fake.path, "/dev/udmabuf");
	EXPECT_EQ(fake.open_files, 1);
	nvmepeer_hostmem_free(memory);
	EXPECT_EQ(fake.open_files, 0);
	EXPECT_EQ(nvmepeer_hostmem_alloc(0, &memory), -EINVAL);
	EXPECT_EQ(nvmepeer_hostmem_alloc(SIZE_MAX, &memory), -EINVAL);
}

TEST(host_memory_without_devices_is_explained)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer_hostmem *memory;

	fake_reset();
	fake.open_error = ENOENT;
	EXPECT_EQ(nvmepeer_hostmem_alloc(4096, &memory), -ENOSYS);
	EXPECT_STREQ(fake.path, "/dev/dma_heap/system");
	nvmepeer_explain(&explanation, sizeof(explanation));
	MENTIONS(explanation.help, "CONFIG_UDMABUF");
}

TEST_F(controller, memory_of_the_module_is_whole_pages)
{
	struct nvmepeer_hostmem *memory;
	int files = fake.open_files;

	ASSERT_EQ(nvmepeer_buf_alloc(self->ctrl, 5000, &memory), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_alloc)->length, 5000);
	memset(nvmepeer_hostmem_address(memory), 0x5a, 8192);
	EXPECT_GE(nvmepeer_hostmem_fd(memory), 1000);
	EXPECT_EQ(nvmepeer_hostmem_length(memory), 8192);
	EXPECT_EQ(fake.open_files, files + 1);
	nvmepeer_hostmem_free(memory);
	EXPECT_EQ(fake.open_files, files);
	/* The dma-buf is closed if it cannot be mapped. */
	fake.map_error = ENOMEM;
	EXPECT_EQ(nvmepeer_buf_alloc(self->ctrl, 5000, &memory), -ENOMEM);
	EXPECT_EQ(fake.open_files, files);
}

TEST_F(controller, limits_of_allocation_are_explained)
{
	static const struct {
		int error;
		const char *limit;
		const char *help;
	} cases[] = {
		{ EFBIG, "1 GiB", "several buffers" },
		{ ENOBUFS, "RLIMIT_MEMLOCK", "ulimit -l" },
		{ ENOMEM, "cgroup", "memory.max" },
		{ ENOTTY, "NVME_PEER_BUF_ALLOC", "load a module" },
	};
	struct nvmepeer_explanation explanation;
	struct nvmepeer_hostmem *memory;
	size_t i;

	fake.fail_command = NVME_PEER_BUF_ALLOC;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.fail_error = cases[i].error;
		ASSERT_EQ(nvmepeer_buf_alloc(self->ctrl, 1, &memory), -cases[i].error);
		nvmepeer_explain(&explanation, sizeof(explanation));
		MENTIONS(explanation.limit, cases[i].limit);
		MENTIONS(explanation.help, cases[i].help);
	}
}

TEST(closing_null_is_allowed)
{
	nvmepeer_close(NULL);
	nvmepeer_qp_destroy(NULL);
	nvmepeer_ns_close(NULL);
	nvmepeer_hostmem_free(NULL);
	nvmepeer_unmap(NULL);
	nvmepeer_cpu_peer_close(NULL);
}

/* ---- Names and numbers -------------------------------------------------- */

TEST(pci_addresses)
{
	static const char *const bad[] = {
		"", "01", "01:00", "01:00.", "01:00.8", "01:20.0", "001:00.0",
		"g1:00.0", "000000000:01:00.0", "0000:01:00.00", "01:00.0 ", ":01:00.0",
	};
	static const char *const good[] = {
		"0000:01:1f.7", "abcd:fe:02.1", "10000:e1:00.0", "ffffffff:ff:1f.7",
	};
	struct nvme_peer_pci_address address;
	char text[NVMEPEER_PCI_TEXT];
	size_t i;

	ASSERT_EQ(nvmepeer_pci_parse("01:1f.7", &address), 0);
	EXPECT_EQ(address.domain, 0);
	EXPECT_EQ(address.function, 0x01ff);
	EXPECT_EQ(address.valid, 1);
	/* A domain behind Intel VMD. */
	ASSERT_EQ(nvmepeer_pci_parse("10000:e1:02.1", &address), 0);
	EXPECT_EQ(address.domain, 0x10000);
	EXPECT_EQ(address.function, 0xe111);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ASSERT_EQ(nvmepeer_pci_parse(good[i], &address), 0);
		EXPECT_STREQ(nvmepeer_pci_format(address, text), good[i]);
	}
	address.valid = 0;
	EXPECT_STREQ(nvmepeer_pci_format(address, text), "none");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(nvmepeer_pci_parse(bad[i], &address), -EINVAL)
			TH_LOG("bad address %zu was accepted", i);
}

TEST(unknown_values_have_a_name)
{
	EXPECT_STREQ(nvmepeer_qp_state_name(NVME_PEER_QP_LIVE), "live");
	EXPECT_STREQ(nvmepeer_qp_state_name(0), "unknown");
	EXPECT_STREQ(nvmepeer_qp_state_name(99), "unknown");
	EXPECT_STREQ(nvmepeer_verdict_name(99), "unknown");
	EXPECT_STREQ(nvmepeer_status_text(0x7ff), "status 0x7ff");
}

TEST(every_route_has_a_sentence)
{
	struct nvme_peer_route route = { .pci_address = { 0, 0x1234, 1 } };
	char text[200], cut[10];
	uint32_t reason;
	int length;

	for (reason = 0; reason <= NVME_PEER_REASON_ACS_BLOCKED; reason++) {
		route.data.reason = reason;
		length = nvmepeer_route_describe(&route, &route.data, text, sizeof(text));
		EXPECT_EQ(strlen(text), (size_t)length);
		EXPECT_EQ(strstr(text, "unknown to this library"), NULL);
		EXPECT_EQ(nvmepeer_route_describe(&route, &route.data, cut, sizeof(cut)), length);
		EXPECT_EQ(strlen(cut), sizeof(cut) - 1);
		EXPECT_STRNE(nvmepeer_reason_name(reason), "unknown");
	}
	route.doorbell.reason = NVME_PEER_REASON_SAME_FUNCTION;
	nvmepeer_route_describe(&route, &route.doorbell, text, sizeof(text));
	MENTIONS(text, "0000:12:06.4 is the controller itself");
}

TEST(route_description_names_every_blocking_port)
{
	struct nvme_peer_route route = { .data.reason = NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN };
	char text[640], cut[200];
	uint32_t i;
	int length;

	for (i = 0; i < NVME_PEER_ROUTE_BLOCKERS; i++)
		route.data.blockers[i] = (struct nvme_peer_route_blocker){
			.address = { 0x10000, (uint16_t)(0x100 * i), 1 },
			.acs = i ? 0x2c : 0,
		};
	route.data.blocker_count = NVME_PEER_ROUTE_BLOCKERS;
	length = nvmepeer_route_describe(&route, &route.data, text, sizeof(text));
	EXPECT_EQ(strlen(text), (size_t)length);
	MENTIONS(text, "blocked by 10000:00:00.0, 10000:01:00.0 (ACS RequestRedirect CompletionRedirect EgressControl)");
	MENTIONS(text, "10000:05:00.0");
	EXPECT_EQ(strstr(text, "more"), NULL);
	route.data.blocker_count += 3;
	length = nvmepeer_route_describe(&route, &route.data, text, sizeof(text));
	MENTIONS(text, " and 3 more");
	EXPECT_EQ(nvmepeer_route_describe(&route, &route.data, cut, sizeof(cut)), length);
	EXPECT_EQ(memcmp(cut, text, sizeof(cut) - 1), 0);
	EXPECT_EQ(cut[sizeof(cut) - 1], 0);
}

static void *explain_in_thread(void *result)
{
	struct nvmepeer_explanation explanation;

	*(int *)result = nvmepeer_explain(&explanation, sizeof(explanation));
	return NULL;
}

TEST_F(controller, explanations_are_per_thread)
{
	int elsewhere = 1;
	pthread_t thread;

	fake.fail_command = NVME_PEER_BUF_RELEASE;
	fake.fail_error = EBUSY;
	ASSERT_EQ(nvmepeer_buf_release(self->ctrl, 7), -EBUSY);
	ASSERT_EQ(pthread_create(&thread, NULL, explain_in_thread, &elsewhere), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(elsewhere, 0);
	EXPECT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EBUSY);
	MENTIONS(self->explanation.limit, "ring");
}

TEST_F(controller, error_without_meaning_uses_strerror)
{
	struct nvme_peer_info info;

	fake.fail_command = NVME_PEER_INFO;
	fake.fail_error = EXFULL;
	ASSERT_EQ(nvmepeer_info(self->ctrl, &info, sizeof(info)), -EXFULL);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	EXPECT_STREQ(self->explanation.limit, strerror(EXFULL));
}

TEST_HARNESS_MAIN
