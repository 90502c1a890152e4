// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Unit tests of libnvmepeer without a kernel: callers that were compiled with older and
 * newer headers than the library.
 */
#include <string.h>

#include "kselftest_harness.h"

#include <nvmepeer_peer.h>

#include "fake.h"

#define REQUEST(type) ((const type *)(const void *)fake.request)

FIXTURE(callers)
{
	struct nvmepeer *ctrl;
	struct nvmepeer_explanation explanation;
};

FIXTURE_SETUP(callers)
{
	fake_reset();
	ASSERT_EQ(nvmepeer_open("nvmep0", &self->ctrl), 0);
	ASSERT_EQ(fake.open_files, 1);
}

FIXTURE_TEARDOWN(callers)
{
	nvmepeer_close(self->ctrl);
	EXPECT_EQ(fake.open_files, 0);
}

/* Structures of input and of output whose memory was not cleared. */
#define WITH_DIRT(variable, byte) memset(&(variable), byte, sizeof(variable))

TEST_F(callers, newer_caller_gets_zeros_in_unknown_fields)
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

TEST_F(callers, newer_caller_gets_zeros_of_queue_pair)
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

TEST_F(callers, newer_caller_using_unknown_field_is_refused)
{
	NEWER(struct nvme_peer_qp_create) request = { { .sq_entries = 64 }, 1 };
	NEWER(struct nvme_peer_buf_import) part = { { .dmabuf_fd = 42 }, 1 };
	struct nvmepeer_qp *qp = NULL;

	EXPECT_EQ(nvmepeer_qp_create(self->ctrl, &request.known, sizeof(request), &qp), -E2BIG);
	EXPECT_EQ(qp, NULL);
	nvmepeer_explain(&self->explanation, sizeof(self->explanation));
	MENTIONS(self->explanation.limit, "does not support");
	EXPECT_EQ(nvmepeer_buf_import_part(self->ctrl, &part.known, sizeof(part)), -E2BIG);
	EXPECT_EQ(part.more, 1);
}

TEST_F(callers, explanation_fits_old_and_new_callers)
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

/* Calls with a structure that is one byte shorter than its first version. */
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
		return nvmepeer_qp_create(ctrl, structure,
					  offsetof(struct nvme_peer_qp_create, depth) - 1, &made);
	case 6:
		return nvmepeer_qp_info(qp, structure, sizeof(struct nvme_peer_qp_info) - 1);
	case 7:
		return nvmepeer_qp_export(qp, NVME_PEER_EXPORT_DOORBELL, 0, structure,
					  sizeof(struct nvmepeer_export) - 1);
	default:
		return 0;
	}
}

TEST_F(callers, structure_below_first_version_is_refused)
{
	struct nvme_peer_qp_create request = { .sq_entries = 64 };
	unsigned char room[512], before[512];
	struct nvmepeer_qp *qp;
	unsigned int calls;
	int which;

	ASSERT_EQ(nvmepeer_qp_create(self->ctrl, &request, sizeof(request), &qp), 0);
	WITH_DIRT(room, 0x5a);
	WITH_DIRT(before, 0x5a);
	calls = fake.calls;
	for (which = 0; which < 8; which++) {
		EXPECT_EQ(call_with_less(self->ctrl, qp, which, room), -EINVAL)
			TH_LOG("call %d", which);
		EXPECT_EQ(memcmp(room, before, sizeof(room)), 0) TH_LOG("call %d", which);
		EXPECT_EQ(fake.calls, calls) TH_LOG("call %d", which);
		nvmepeer_explain(&self->explanation, sizeof(self->explanation));
		MENTIONS(self->explanation.limit, "bytes was given");
	}
	nvmepeer_qp_destroy(qp);
}

TEST(version_text_and_number_agree)
{
	unsigned int major = NVMEPEER_VERSION_NUMBER >> 16, minor = NVMEPEER_VERSION_NUMBER >> 8 & 0xff;
	unsigned int patch = NVMEPEER_VERSION_NUMBER & 0xff;
	char text[40];

	snprintf(text, sizeof(text), "%u.%u.%u", major, minor, patch);
	EXPECT_STREQ(nvmepeer_version(), text);
	EXPECT_EQ(nvmepeer_version_number(), NVMEPEER_VERSION_NUMBER);
}

TEST_HARNESS_MAIN
