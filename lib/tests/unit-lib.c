// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: what it passes to the kernel,
 * what it makes of the answers, and what it says about each refusal.
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

TEST(open_of_a_foreign_node_closes_it)
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

TEST(open_of_nothing_tells_how_to_bind)
{
	struct nvmepeer_explanation explanation;
	struct nvmepeer *ctrl;

	fake_reset();
	fake.open_error = ENOENT;
	ASSERT_EQ(nvmepeer_open("nvmep0", &ctrl), -ENOENT);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -ENOENT);
	MENTIONS(explanation.help, "nvme-peer bind");
}

TEST(open_refuses_a_path_that_does_not_fit)
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

TEST_F(controller, a_part_is_imported_as_it_is_named)
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
} bad_parts[] = {
	{ { .access = 3 }, EINVAL, "access", "NVME_PEER_ACCESS_BOTH" },
	{ { .offset = 512 }, EINVAL, "512 and length 0", "whole pages" },
	{ { .length = 100 }, EINVAL, "length 100", "whole pages" },
	{ { .flags = 1U << 31 }, EINVAL, "flag is unknown", "" },
	{ { .offset = 65536 }, ERANGE, "offset 65536", "within the dma-buf" },
	{ { }, EACCES, "reading only", "NVME_PEER_ACCESS_READ" },
};

TEST_F(controller, refused_parts_are_explained)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	for (size_t i = 0; i < sizeof(bad_parts) / sizeof(bad_parts[0]); i++) {
		buffer = bad_parts[i].part;
		fake.fail_error = bad_parts[i].error;
		ASSERT_EQ(nvmepeer_buf_import_part(self->ctrl, &buffer, sizeof(buffer)), -bad_parts[i].error);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.limit, bad_parts[i].limit);
		MENTIONS(self->explanation.help, bad_parts[i].help);
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

TEST_F(controller, refusal_of_the_exporter_is_said)
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

TEST_F(controller, a_way_for_writes_only_is_said)
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

TEST_F(controller, host_ram_in_place_of_device_memory_is_said)
{
	struct nvme_peer_buf_import buffer;

	fake.fail_command = NVME_PEER_BUF_IMPORT;
	fake.fail_error = ENXIO;
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer, sizeof(buffer)),
		  -ENXIO);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -ENXIO);
	MENTIONS(self->explanation.limit, "host RAM");
}

TEST_F(controller, memory_that_would_be_copied_is_said)
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
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_table)->addresses, (uintptr_t)addresses);
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

TEST_F(controller, queue_pair_gets_as_many_completion_entries)
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
	fake.open_files--;	/* exported.fd, which is the test's */

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

TEST_F(controller, only_a_queue_pair_is_taken_as_one)
{
	struct nvmepeer_qp *qp;

	fake.fail_command = NVME_PEER_QP_INFO;
	fake.fail_error = ENOTTY;
	ASSERT_EQ(nvmepeer_qp_from_fd(nvmepeer_fd(self->ctrl), &qp), -ENOTTY);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -ENOTTY);
	MENTIONS(self->explanation.limit, "not a queue pair");
	EXPECT_EQ(fake.open_files, 1);
}

TEST_F(controller, export_of_an_imported_ring_is_explained)
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
	{ EALREADY, "live" },
	{ ESTALE, "lost again" },
	{ ESHUTDOWN, "cannot come back" },
	{ EIO, "refused" },
};

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

/* ---- What QP_CREATE refuses, and why ------------------------------------ */

FIXTURE(refusal)
{
	struct nvmepeer *ctrl;
};

FIXTURE_VARIANT(refusal)
{
	struct nvme_peer_qp_create request;
	int error;
	const char *limit;
	const char *help;
};

FIXTURE_VARIANT_ADD(refusal, one_entry) {
	.request = { .sq_entries = 1 }, .error = EINVAL,
	.limit = "2 to 1024", .help = "2 entries",
};

FIXTURE_VARIANT_ADD(refusal, too_deep) {
	.request = { .sq_entries = 1025 }, .error = EINVAL,
	.limit = "1025", .help = "several queue pairs",
};

FIXTURE_VARIANT_ADD(refusal, short_completion_ring) {
	.request = { .sq_entries = 64, .cq_entries = 32 }, .error = EINVAL,
	.limit = "32 completion entries for 64", .help = "64",
};

FIXTURE_VARIANT_ADD(refusal, misaligned) {
	.request = { .sq_entries = 64, .sq_handle = 1, .sq_offset = 64 }, .error = EINVAL,
	.limit = "4096", .help = "page boundary",
};

FIXTURE_VARIANT_ADD(refusal, offset_without_buffer) {
	.request = { .sq_entries = 64, .cq_offset = 4096 }, .error = EINVAL,
	.limit = "host memory", .help = "buffer",
};

FIXTURE_VARIANT_ADD(refusal, unknown_mode) {
	.request = { .sq_entries = 64, .mode = 9 }, .error = EINVAL,
	.limit = "mode", .help = "NVME_PEER_MODE_DIRECT",
};

FIXTURE_VARIANT_ADD(refusal, reserved_field) {
	.request = { .sq_entries = 64, .reserved1 = 2 }, .error = EINVAL,
	.limit = "reserved", .help = "0",
};

FIXTURE_VARIANT_ADD(refusal, last_reserved_field) {
	.request = { .sq_entries = 64, .reserved = { [12] = 1 } }, .error = EINVAL,
	.limit = "reserved", .help = "0",
};

FIXTURE_VARIANT_ADD(refusal, no_capability) {
	.request = { .sq_entries = 64 }, .error = EPERM,
	.limit = "CAP_SYS_RAWIO", .help = "root",
};

FIXTURE_VARIANT_ADD(refusal, buffer_too_small) {
	.request = { .sq_entries = 64, .sq_handle = 1 }, .error = ERANGE,
	.limit = "4096 bytes", .help = "larger buffer",
};

FIXTURE_VARIANT_ADD(refusal, buffer_of_another_access) {
	.request = { .sq_entries = 64, .sq_handle = 1 }, .error = EACCES,
	.limit = "not imported for it", .help = "NVME_PEER_ACCESS_BOTH",
};

FIXTURE_VARIANT_ADD(refusal, several_segments) {
	.request = { .sq_entries = 64, .sq_handle = 1 }, .error = EMSGSIZE,
	.limit = "CAP.CQR", .help = "contiguous",
};

FIXTURE_VARIANT_ADD(refusal, overlap) {
	.request = { .sq_entries = 64, .sq_handle = 1, .cq_handle = 1 }, .error = EEXIST,
	.limit = "offset 0", .help = "own",
};

FIXTURE_VARIANT_ADD(refusal, no_queue_identifier) {
	.request = { .sq_entries = 64 }, .error = ENOSPC,
	.limit = "peers may have 4", .help = "peer_queues",
};

FIXTURE_VARIANT_ADD(refusal, no_such_handle) {
	.request = { .sq_entries = 64, .sq_handle = 99 }, .error = ENOENT,
	.limit = "handle", .help = "open file",
};

FIXTURE_VARIANT_ADD(refusal, invalidated) {
	.request = { .sq_entries = 64, .sq_handle = 1 }, .error = ESTALE,
	.limit = "taken the memory back", .help = "import it again",
};

FIXTURE_VARIANT_ADD(refusal, resetting) {
	.request = { .sq_entries = 64 }, .error = EAGAIN,
	.limit = "reset", .help = "try again",
};

FIXTURE_VARIANT_ADD(refusal, going_away) {
	.request = { .sq_entries = 64 }, .error = ESHUTDOWN,
	.limit = "removed", .help = "bind",
};

FIXTURE_VARIANT_ADD(refusal, refused_by_controller) {
	.request = { .sq_entries = 64 }, .error = EIO,
	.limit = "refused", .help = "log",
};

FIXTURE_SETUP(refusal)
{
	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
}

FIXTURE_TEARDOWN(refusal)
{
	nvmepeer_close(self->ctrl);
}

TEST(identifiers_in_quarantine_are_told_from_none)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	struct nvmepeer_explanation explanation;
	struct nvmepeer *ctrl;
	struct nvmepeer_qp *qp;

	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &ctrl), 0);
	fake.fail_command = NVME_PEER_QP_CREATE;
	fake.fail_error = ENOSPC;
	fake.info.qids_quarantined = 3;
	ASSERT_EQ(nvmepeer_qp_create(ctrl, &request, sizeof(request), &qp), -ENOSPC);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -ENOSPC);
	MENTIONS(explanation.limit, "3 are kept");
	MENTIONS(explanation.help, "doorbell");
	nvmepeer_close(ctrl);
}

TEST_F(refusal, is_explained)
{
	struct nvme_peer_qp_create request = variant->request;
	struct nvmepeer_explanation explanation;
	struct nvmepeer_qp *qp = NULL;

	fake.fail_command = NVME_PEER_QP_CREATE;
	fake.fail_error = variant->error;
	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), -variant->error);
	EXPECT_EQ(qp, NULL);
	EXPECT_EQ(fake.open_files, 1);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -variant->error);
	EXPECT_STREQ(explanation.call, "nvmepeer_qp_create");
	EXPECT_EQ(explanation.error, variant->error);
	MENTIONS(explanation.what, "/dev/nvmep0");
	MENTIONS(explanation.limit, variant->limit);
	MENTIONS(explanation.help, variant->help);
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

/* FLBAS bit 4: behind each block's data; a read of 4096 bytes would fill 4160. */
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

TEST(namespace_with_a_senseless_format_is_refused)
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

TEST(transfer_of_no_or_too_many_blocks_never_reaches_the_kernel)
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

TEST(status_of_the_controller_is_passed_on)
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

/* ---- Callers of other versions ------------------------------------------ */

/* One that asks, and one that is only answered in: memory that was never cleared. */
#define WITH_DIRT(variable, byte) memset(&(variable), byte, sizeof(variable))

TEST_F(controller, a_newer_caller_gets_zeros_in_what_is_not_known)
{
	NEWER(struct nvme_peer_info) info;
	NEWER(struct nvme_peer_route) route;
	NEWER(struct nvme_peer_buf_import) buffer;

	WITH_DIRT(info, 0xff);
	ASSERT_EQ(nvmepeer_info(self->ctrl, &info.known, sizeof(info)), 0);
	EXPECT_EQ(info.known.size, sizeof(info));
	EXPECT_EQ(info.known.max_entries, 1024);
	EXPECT_EQ(info.more, 0);
	WITH_DIRT(route, 0xff);
	ASSERT_EQ(nvmepeer_route_dmabuf(self->ctrl, 42, &route.known, sizeof(route)), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_route)->size, sizeof(route));
	EXPECT_EQ(REQUEST(struct nvme_peer_route)->dmabuf_fd, 42);
	EXPECT_EQ(route.more, 0);
	WITH_DIRT(buffer, 0xff);
	ASSERT_EQ(nvmepeer_buf_import(self->ctrl, 42, 0, &buffer.known, sizeof(buffer)), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_buf_import)->size, sizeof(buffer));
	EXPECT_EQ(buffer.known.handle, 7);
	EXPECT_EQ(buffer.more, 0);
}

TEST_F(controller, a_newer_caller_gets_zeros_of_a_queue_pair)
{
	NEWER(struct nvme_peer_qp_create) request = { .known.sq_entries = 64 };
	NEWER(struct nvme_peer_qp_info) info;
	NEWER(struct nvmepeer_export) exported;
	struct nvmepeer_qp *qp;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request.known, sizeof(request), &qp), 0);
	EXPECT_EQ(REQUEST(struct nvme_peer_qp_create)->size, sizeof(request));
	WITH_DIRT(info, 0xff);
	ASSERT_EQ(nvmepeer_qp_info(qp, &info.known, sizeof(info)), 0);
	EXPECT_EQ(info.known.generation, 9);
	EXPECT_EQ(info.more, 0);
	WITH_DIRT(exported, 0xff);
	ASSERT_EQ(nvmepeer_qp_export(qp, NVME_PEER_EXPORT_DOORBELL, 0, &exported.known,
				     sizeof(exported)), 0);
	EXPECT_EQ(exported.known.offset, 0x28);
	EXPECT_EQ(exported.more, 0);
	fake.open_files--;	/* exported.fd */
	nvmepeer_qp_destroy(qp);
}

TEST_F(controller, a_newer_caller_who_asks_for_more_is_refused)
{
	NEWER(struct nvme_peer_qp_create) request = { { .sq_entries = 64 }, 1 };
	NEWER(struct nvme_peer_buf_import) part = { { .dmabuf_fd = 42 }, 1 };
	struct nvmepeer_qp *qp = NULL;

	EXPECT_EQ(nvmepeer_qp_create(self->ctrl, &request.known, sizeof(request), &qp), -E2BIG);
	EXPECT_EQ(qp, NULL);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	MENTIONS(self->explanation.limit, "newer");
	EXPECT_EQ(nvmepeer_buf_import_part(self->ctrl, &part.known, sizeof(part)), -E2BIG);
	EXPECT_EQ(part.more, 1);
}

TEST_F(controller, an_explanation_fits_old_and_new_callers)
{
	NEWER(struct nvmepeer_explanation) newer;

	fake.fail_command = NVME_PEER_BUF_RELEASE;
	fake.fail_error = EBUSY;
	ASSERT_EQ(nvmepeer_buf_release(self->ctrl, 7), -EBUSY);
	WITH_DIRT(newer, 0xff);
	ASSERT_EQ(nvmepeer_explain(&newer.known, sizeof(newer)), -EBUSY);
	EXPECT_EQ(newer.more, 0);
	newer.known.error = EXFULL;
	ASSERT_EQ(nvmepeer_fail(&newer.known, sizeof(newer)), -EXFULL);
	EXPECT_EQ(nvmepeer_fail(&newer.known, sizeof(newer.known) - 1), -EINVAL);
	WITH_DIRT(self->explanation, 0x5a);
	EXPECT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation) - 1), -EINVAL);
	EXPECT_EQ(self->explanation.error, 0x5a5a5a5a);
	ASSERT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EXFULL);
}

/* Each call with a byte less than its structure had in the first version. */
static int call_with_less(struct nvmepeer *ctrl, struct nvmepeer_qp *qp, int which,
			  unsigned char *room)
{
	struct nvmepeer_qp *made = NULL;
	void *structure = room;

	switch (which) {
	case 0:
		return nvmepeer_info(ctrl, structure, sizeof(struct nvme_peer_info) - 1);
	case 1:
		return nvmepeer_route_dmabuf(ctrl, 4, structure, sizeof(struct nvme_peer_route) - 1);
	case 2:
		return nvmepeer_route_pci(ctrl, (struct nvme_peer_pci_address){ 0, 0x100, 1 },
					  structure, sizeof(struct nvme_peer_route) - 1);
	case 3:
		return nvmepeer_buf_import(ctrl, 4, 0, structure,
					   sizeof(struct nvme_peer_buf_import) - 1);
	case 4:
		return nvmepeer_buf_import_part(ctrl, structure,
						sizeof(struct nvme_peer_buf_import) - 1);
	case 5:
		return nvmepeer_qp_create(ctrl, structure, sizeof(struct nvme_peer_qp_create) - 1,
					  &made);
	case 6:
		return nvmepeer_qp_info(qp, structure, sizeof(struct nvme_peer_qp_info) - 1);
	case 7:
		return nvmepeer_qp_export(qp, NVME_PEER_EXPORT_DOORBELL, 0, structure,
					  sizeof(struct nvmepeer_export) - 1);
	default:
		return 0;
	}
}

TEST_F(controller, less_than_the_first_version_is_refused_and_left_alone)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	unsigned char room[512], as_it_was[512];
	struct nvmepeer_qp *qp;
	unsigned int calls;
	int which;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	WITH_DIRT(room, 0x5a);
	WITH_DIRT(as_it_was, 0x5a);
	calls = fake.calls;
	for (which = 0; which < 8; which++) {
		EXPECT_EQ(call_with_less(self->ctrl, qp, which, room), -EINVAL)
			TH_LOG("call %d", which);
		EXPECT_EQ(memcmp(room, as_it_was, sizeof(room)), 0) TH_LOG("call %d", which);
		EXPECT_EQ(fake.calls, calls) TH_LOG("call %d", which);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.limit, "bytes was given");
	}
	nvmepeer_qp_destroy(qp);
}

TEST(closing_nothing_is_fine)
{
	nvmepeer_close(NULL);
	nvmepeer_qp_destroy(NULL);
	nvmepeer_ns_close(NULL);
	nvmepeer_hostmem_free(NULL);
	nvmepeer_unmap(NULL);
	nvmepeer_cpu_peer_close(NULL);
}

TEST(version_is_one_in_words_and_in_numbers)
{
	unsigned int major = NVMEPEER_VERSION_NUMBER >> 16, minor = NVMEPEER_VERSION_NUMBER >> 8 & 0xff;
	unsigned int patch = NVMEPEER_VERSION_NUMBER & 0xff;
	char text[40];

	if (patch)
		snprintf(text, sizeof(text), "%u.%u.%u", major, minor, patch);
	else
		snprintf(text, sizeof(text), "%u.%u", major, minor);
	EXPECT_STREQ(nvmepeer_version(), text);
	EXPECT_EQ(nvmepeer_version_number(), NVMEPEER_VERSION_NUMBER);
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
	/* As behind Intel's VMD. */
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
			TH_LOG("bad address %zu was taken", i);
}

TEST(names_of_values_not_known_here)
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

	for (reason = 0; reason <= NVME_PEER_REASON_EXPORTER_REFUSED; reason++) {
		route.data.reason = reason;
		length = nvmepeer_route_describe(&route, &route.data, text, sizeof(text));
		EXPECT_EQ(strlen(text), (size_t)length);
		EXPECT_EQ(strstr(text, "does not know"), NULL);
		EXPECT_EQ(nvmepeer_route_describe(&route, &route.data, cut, sizeof(cut)), length);
		EXPECT_EQ(strlen(cut), sizeof(cut) - 1);
		EXPECT_STRNE(nvmepeer_reason_name(reason), "unknown");
	}
	route.doorbell.reason = NVME_PEER_REASON_SAME_FUNCTION;
	nvmepeer_route_describe(&route, &route.doorbell, text, sizeof(text));
	MENTIONS(text, "0000:12:06.4 is the controller itself");
}

TEST(every_port_in_the_way_is_named)
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
	MENTIONS(text, "in the way: 10000:00:00.0, 10000:01:00.0 (ACS RequestRedirect CompletionRedirect EgressControl)");
	MENTIONS(text, "10000:05:00.0");
	EXPECT_EQ(strstr(text, "more"), NULL);
	route.data.blocker_count += 3;
	length = nvmepeer_route_describe(&route, &route.data, text, sizeof(text));
	MENTIONS(text, " and 3 more");
	EXPECT_EQ(nvmepeer_route_describe(&route, &route.data, cut, sizeof(cut)), length);
	EXPECT_EQ(memcmp(cut, text, sizeof(cut) - 1), 0);
	EXPECT_EQ(cut[sizeof(cut) - 1], 0);
}

static void *explain_elsewhere(void *result)
{
	struct nvmepeer_explanation explanation;

	*(int *)result = nvmepeer_explain(&explanation, sizeof(explanation));
	return NULL;
}

TEST_F(controller, explanations_belong_to_threads)
{
	int elsewhere = 1;
	pthread_t thread;

	fake.fail_command = NVME_PEER_BUF_RELEASE;
	fake.fail_error = EBUSY;
	ASSERT_EQ(nvmepeer_buf_release(self->ctrl, 7), -EBUSY);
	ASSERT_EQ(pthread_create(&thread, NULL, explain_elsewhere, &elsewhere), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(elsewhere, 0);
	EXPECT_EQ(nvmepeer_explain(&self->explanation, sizeof(self->explanation)), -EBUSY);
	MENTIONS(self->explanation.limit, "ring");
}

TEST_F(controller, error_without_a_rule_is_named)
{
	struct nvme_peer_info info;

	fake.fail_command = NVME_PEER_INFO;
	fake.fail_error = EXFULL;
	ASSERT_EQ(nvmepeer_info(self->ctrl, &info, sizeof(info)), -EXFULL);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	EXPECT_STREQ(self->explanation.limit, strerror(EXFULL));
}

TEST_HARNESS_MAIN
