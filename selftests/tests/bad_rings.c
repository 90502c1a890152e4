// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings of several segments, on a controller that takes PRP lists for them (CAP.CQR = 0):
 * the list has an entry for every page, also where it spans several pages, and data is
 * transferred.
 *
 * iommu: on off
 * long-iommu: on off pt
 * timeout: 60
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define CAP_LOW		BADCTRL_REGISTERS
#define CAP_CONTIGUOUS	(1U << 16)
#define SQ_ENTRY	64U
#define CQ_ENTRY	16U
#define DATA_PAGES	33U

static uint32_t pages_of(uint32_t entries, uint32_t size)
{
	return (entries * size + NP_PAGE - 1) / NP_PAGE;
}

FIXTURE(bad_rings)
{
	struct np_bad bad;
	struct np_buffer data;
	struct np_buffer rings;
	struct np_qp qp;
};

FIXTURE_VARIANT(bad_rings)
{
	uint32_t entries;
	uint32_t lists;		/* pages of both PRP lists */
};

/* A list of 512 entries fills a page; of 513, it takes two. */
FIXTURE_VARIANT_ADD(bad_rings, one_page) { .entries = 1024, .lists = 2 };
FIXTURE_VARIANT_ADD(bad_rings, full_page) { .entries = 512 * 64, .lists = 2 };
FIXTURE_VARIANT_ADD(bad_rings, two_pages) { .entries = 513 * 64, .lists = 3 };

static int create(FIXTURE_DATA(bad_rings) *self, uint32_t entries)
{
	self->qp.create = (struct nvme_peer_qp_create){
		.size = sizeof(self->qp.create),
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = entries,
		.cq_entries = entries,
		.sq_handle = self->rings.handle,
		.cq_handle = self->rings.handle,
		.cq_offset = (uint64_t)pages_of(entries, SQ_ENTRY) * NP_PAGE,
		.qp_fd = -1,
	};
	return np_ioctl(self->bad.ctrl.fd, NVME_PEER_QP_CREATE, &self->qp.create);
}

FIXTURE_SETUP(bad_rings)
{
	uint32_t pages = pages_of(variant->entries, SQ_ENTRY) +
			 pages_of(variant->entries, CQ_ENTRY);

	self->qp = (struct np_qp){
		.fd = -1, .phase = 1, .sq.fd = -1, .cq.fd = -1, .doorbell.fd = -1, .status.fd = -1,
	};
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	/* MQES 65535, CQR 0. */
	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_LOW,
				(np_bad_get(&self->bad, CAP_LOW) & ~CAP_CONTIGUOUS) | 0xffff));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_buffer_open(&self->data, self->bad.ctrl.fd, DATA_PAGES, 0));
	ASSERT_EQ(0, np_buffer_open(&self->rings, self->bad.ctrl.fd, pages,
				    NVMEP_TEST_SCATTERED));
}

FIXTURE_TEARDOWN(bad_rings)
{
	if (!self->bad.address[0])
		return;
	np_qp_close(&self->qp);
	np_buffer_close(&self->rings);
	np_buffer_close(&self->data);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

static int open_qp(FIXTURE_DATA(bad_rings) *self, uint32_t entries)
{
	struct nvme_peer_qp_info info;
	int ret = create(self, entries);

	if (ret)
		return ret;
	self->qp.fd = self->qp.create.qp_fd;
	ret = np_qp_info(self->qp.fd, &info) ?:
	      np_export_open(&self->qp.doorbell, self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0);
	if (ret)
		return ret;
	self->qp.sq.at = self->rings.bytes;
	self->qp.cq.at = self->rings.bytes + self->qp.create.cq_offset;
	self->qp.tail_doorbell = self->qp.doorbell.at;
	self->qp.head_doorbell = (void *)((uint8_t *)self->qp.doorbell.at + info.doorbell_stride);
	return 0;
}

TEST_F(bad_rings, data_through_prp_list_rings)
{
	uint8_t bytes[NP_PAGE];
	struct np_command command;
	uint32_t size = (DATA_PAGES - 1) * NP_PAGE;

	ASSERT_EQ(0, open_qp(self, variant->entries));
	EXPECT_EQ(variant->lists, np_bad_get(&self->bad, BADCTRL_LISTS));
	np_pattern(self->data.bytes, size, 0, 1);
	memcpy(bytes, self->data.bytes, sizeof(bytes));
	np_command_rw(&command, &self->data, NVMEPEER_OP_WRITE, 0, 0, size);
	ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	memset(self->data.bytes, 0xee, size);
	np_command_rw(&command, &self->data, NVMEPEER_OP_READ, 0, 0, size);
	ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, memcmp(bytes, self->data.bytes, sizeof(bytes)));
	/* The CPU reads the same data. */
	EXPECT_EQ(0, np_disk_read(self->bad.disk, self->data.bytes + NP_PAGE, NP_PAGE, 0));
	EXPECT_EQ(0, memcmp(bytes, self->data.bytes + NP_PAGE, sizeof(bytes)));
}

/* @count flushes with one doorbell write. */
static int flush(struct np_qp *qp, uint32_t first, uint32_t count)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct np_completion *entry;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	uint32_t i;

	for (i = 0; i < count; i++) {
		command.cid = (uint16_t)(first + i);
		np_qp_put(qp, &command);
	}
	if (np_qp_ring_doorbell(qp))
		return -EFAULT;
	for (i = 0; i < count; i++) {
		entry = (struct np_completion *)qp->cq.at + qp->head;
		while ((__atomic_load_n(&entry->status, __ATOMIC_ACQUIRE) & 1) != qp->phase) {
			if (np_now_ms() > end)
				return -ETIMEDOUT;
			sched_yield();
		}
		if (entry->cid != (uint16_t)(first + i) || entry->status >> 1)
			return -EBADMSG;
		if (++qp->head == qp->create.cq_entries) {
			qp->head = 0;
			qp->phase ^= 1;
		}
	}
	return np_store(qp->head_doorbell, qp->head);
}

/* More than one round, so every entry of every page is used. */
TEST_F(bad_rings, rings_wrap)
{
	uint32_t done, count = variant->entries / 4;

	ASSERT_EQ(0, open_qp(self, variant->entries));
	for (done = 0; done < variant->entries + count; done += count)
		ASSERT_EQ(0, flush(&self->qp, done, count));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_FAULTS));
}

TEST_F(bad_rings, reset_frees_prp_list_rings)
{
	ASSERT_EQ(0, open_qp(self, variant->entries));
	EXPECT_EQ(-EBUSY, np_release(self->bad.ctrl.fd, self->rings.handle));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_LE(0, np_bad_wait_state(&self->bad, NVME_PEER_CTRL_LIVE));
	np_qp_close(&self->qp);
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->rings.handle));
}

TEST_HARNESS_MAIN
