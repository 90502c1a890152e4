// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: refusals of NVME_PEER_QP_CREATE, each with
 * its explanation.
 */
#include <string.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>

#include "fake.h"

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

/* fake.info.features is 0. */
FIXTURE_VARIANT_ADD(refusal, relay_mode_of_older_module) {
	.request = { .sq_entries = 64, .mode = NVME_PEER_MODE_RELAY },
	.error = EINVAL, .limit = "NVME_PEER_MODE_RELAY", .help = "newer module",
};

FIXTURE_VARIANT_ADD(refusal, relay_mode_with_bounce_buffer) {
	.request = { .sq_entries = 64, .mode = NVME_PEER_MODE_RELAY, .cq_handle = 1 },
	.error = EOPNOTSUPP, .limit = "bounce buffer", .help = "swiotlb",
};

FIXTURE_VARIANT_ADD(refusal, reserved_field) {
	.request = { .sq_entries = 64, .reserved1 = 2 }, .error = EINVAL,
	.limit = "reserved", .help = "0",
};

FIXTURE_VARIANT_ADD(refusal, last_reserved_field) {
	.request = { .sq_entries = 64, .reserved = 1 }, .error = EINVAL,
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
	.limit = "submission ring", .help = "NVME_PEER_ACCESS_BOTH",
};

FIXTURE_VARIANT_ADD(refusal, several_segments) {
	.request = { .sq_entries = 64, .sq_handle = 1 }, .error = EMSGSIZE,
	.limit = "segment", .help = "CAP.CQR",
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
	.limit = "invalidated", .help = "import it again",
};

FIXTURE_VARIANT_ADD(refusal, resetting) {
	.request = { .sq_entries = 64 }, .error = EAGAIN,
	.limit = "reset", .help = "retry",
};

FIXTURE_VARIANT_ADD(refusal, going_away) {
	.request = { .sq_entries = 64 }, .error = ESHUTDOWN,
	.limit = "controller", .help = "bind",
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

TEST(quarantined_queue_ids_are_explained)
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
	MENTIONS(explanation.limit, "3 are quarantined");
	MENTIONS(explanation.help, "doorbell");
	nvmepeer_close(ctrl);
}

TEST(limit_of_entries_is_omitted_if_unknown)
{
	struct nvme_peer_qp_create request = { .sq_entries = 1 };
	struct nvmepeer_explanation explanation;
	struct nvmepeer *ctrl;
	struct nvmepeer_qp *qp;

	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &ctrl), 0);
	fake.fail_command = NVME_PEER_QP_CREATE;
	fake.fail_error = EINVAL;
	fake.no_info = true;
	ASSERT_EQ(nvmepeer_qp_create(ctrl, &request, sizeof(request), &qp), -EINVAL);
	ASSERT_EQ(nvmepeer_explain(&explanation, sizeof(explanation)), -EINVAL);
	MENTIONS(explanation.limit, "at least 2");
	EXPECT_EQ(strstr(explanation.limit, "CAP.MQES"), NULL);
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

TEST_HARNESS_MAIN
