// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameters io_queue_depth and write_queues, with the in-tree driver's meaning: the
 * entries of each queue; and queues for writes, so that reads and writes use different ones.
 *
 * iommu: on
 * timeout: 60
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define PARAMETERS	"/sys/module/nvme_peer/parameters/"
#define DEPTH		PARAMETERS "io_queue_depth"
#define WRITES		PARAMETERS "write_queues"
#define POLLED		PARAMETERS "poll_queues"
#define MAX_QUEUES	16
#define IOS		64

FIXTURE(queue_parameters)
{
	struct np_ctrl ctrl;
	int block;
	uint8_t *bytes;
};

FIXTURE_SETUP(queue_parameters)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->block = -1;
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

/* Parameters are read when a controller is bound. */
static int bind_again(FIXTURE_DATA(queue_parameters) *self)
{
	int ret;

	np_ctrl_close(&self->ctrl);
	if (self->block >= 0)
		close(self->block);
	ret = np_unbind(self->ctrl.address) ?: np_bind(self->ctrl.address) ?:
	      np_ctrl_open(&self->ctrl, "np0");
	if (ret)
		return ret;
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	return self->block < 0 ? self->block : 0;
}

FIXTURE_TEARDOWN(queue_parameters)
{
	EXPECT_EQ(0, np_write_file(DEPTH, "1024"));
	EXPECT_EQ(0, np_write_file(WRITES, "0"));
	EXPECT_EQ(0, np_write_file(POLLED, "0"));
	EXPECT_EQ(0, bind_again(self));
	close(self->block);
	free(self->bytes);
	np_ctrl_close(&self->ctrl);
}

/* Commands completed by each of the CPU's I/O queues, by index; returns their number. */
static int completions(const struct np_ctrl *ctrl, uint64_t counts[MAX_QUEUES])
{
	char path[64], text[4096], *line, *rest = text;
	int queues = 0;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nvme-peer/nvmep%d/queues", ctrl->instance);
	if (np_read_file(path, text, sizeof(text)))
		return -EIO;
	while ((line = strsep(&rest, "\n")) && queues < MAX_QUEUES)
		if (sscanf(line, "%*u io %*u %*d %*u %*u %" SCNu64, &counts[queues]) == 1)
			queues++;
	return queues;
}

/* Writes and then reads, of each CPU. */
static int transfer(FIXTURE_DATA(queue_parameters) *self, bool write)
{
	int cpu, i, ret = 0;

	for (cpu = 0; cpu < get_nprocs() && !ret; cpu++) {
		ret = np_run_on(cpu);
		for (i = 0; i < IOS && !ret; i++)
			ret = write ?
			      np_disk_write(self->block, self->bytes, NP_PAGE, NP_AREA(9)) :
			      np_disk_read(self->block, self->bytes, NP_PAGE, NP_AREA(9));
	}
	return ret;
}

/* Sets @write and @read to masks of the queues that writes and reads go to. */
static int used_queues(FIXTURE_DATA(queue_parameters) *self, uint32_t *write, uint32_t *read)
{
	uint64_t counts[3][MAX_QUEUES];
	int i, step, queues = 0, ret = 0;

	*write = 0;
	*read = 0;
	for (step = 0; step < 3 && !ret; step++) {
		if (step)
			ret = transfer(self, step == 1);
		queues = completions(&self->ctrl, counts[step]);
	}
	for (i = 0; i < queues; i++) {
		*write |= (counts[1][i] - counts[0][i] >= IOS) << i;
		*read |= (counts[2][i] - counts[1][i] >= IOS) << i;
	}
	return ret ?: queues;
}

static unsigned int attribute(const char *format, const struct np_ctrl *ctrl)
{
	char path[96], text[32] = "";

	snprintf(path, sizeof(path), format, ctrl->instance);
	np_read_file(path, text, sizeof(text));
	return strtoul(text, NULL, 0);
}

TEST_F(queue_parameters, depth_of_queues)
{
	EXPECT_EQ(-EINVAL, np_write_file(DEPTH, "1"));
	EXPECT_EQ(-EINVAL, np_write_file(DEPTH, "4096"));
	EXPECT_EQ(1023, attribute("/sys/class/nvme-peer/nvmep%d/sqsize", &self->ctrl));
	ASSERT_EQ(0, np_write_file(DEPTH, "64"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(63, attribute("/sys/class/nvme-peer/nvmep%d/sqsize", &self->ctrl));
	EXPECT_EQ(62, attribute("/sys/block/nvmep%dn1/queue/nr_requests", &self->ctrl));
	EXPECT_EQ(0, transfer(self, true));
	EXPECT_EQ(0, transfer(self, false));
}

/* No more than the controller has (CAP.MQES), and no less than one command. */
TEST_F(queue_parameters, depth_has_limits)
{
	ASSERT_EQ(0, np_write_file(DEPTH, "4095"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(self->ctrl.info.max_entries - 1,
		  attribute("/sys/class/nvme-peer/nvmep%d/sqsize", &self->ctrl));
	EXPECT_EQ(0, transfer(self, false));
	ASSERT_EQ(0, np_write_file(DEPTH, "2"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(1, attribute("/sys/class/nvme-peer/nvmep%d/sqsize", &self->ctrl));
	EXPECT_EQ(0, transfer(self, true));
	EXPECT_EQ(0, transfer(self, false));
}

TEST_F(queue_parameters, reads_and_writes_share_queues)
{
	uint32_t all = (1U << get_nprocs()) - 1, write, read;

	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(get_nprocs(), used_queues(self, &write, &read));
	EXPECT_EQ(all, write);
	EXPECT_EQ(all, read);
}

/* The first queue is for writes, the others for reads: one for each CPU. */
TEST_F(queue_parameters, writes_have_queues_of_their_own)
{
	uint32_t write, read;

	ASSERT_EQ(0, np_write_file(WRITES, "1"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(1 + get_nprocs(), used_queues(self, &write, &read));
	EXPECT_EQ(1, write);
	EXPECT_EQ(((1U << get_nprocs()) - 1) << 1, read);
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(1 + get_nprocs(), used_queues(self, &write, &read));
	EXPECT_EQ(1, write);
}

/* Polled queues are the last; a flush is no read. */
TEST_F(queue_parameters, with_polled_queues)
{
	uint64_t before[MAX_QUEUES] = {}, after[MAX_QUEUES] = {};
	uint32_t write, read;

	ASSERT_EQ(0, np_write_file(WRITES, "1"));
	ASSERT_EQ(0, np_write_file(POLLED, "1"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(2 + get_nprocs(), used_queues(self, &write, &read));
	EXPECT_EQ(1, write);
	EXPECT_EQ(((1U << get_nprocs()) - 1) << 1, read);
	completions(&self->ctrl, before);
	EXPECT_EQ(0, transfer(self, true) ?: fsync(self->block));
	completions(&self->ctrl, after);
	EXPECT_EQ(before[1], after[1]);
}

/* One queue is left for reads, or all share the only one. */
TEST_F(queue_parameters, fewer_queues_than_asked_for)
{
	uint32_t write, read;
	char share[96];

	ASSERT_EQ(0, np_write_file(WRITES, "2"));
	ASSERT_EQ(0, bind_again(self));
	snprintf(share, sizeof(share), "/sys/class/nvme-peer/nvmep%d/cpu_queues",
		 self->ctrl.instance);
	ASSERT_EQ(0, np_write_file(share, "2"));
	EXPECT_EQ(2, used_queues(self, &write, &read));
	EXPECT_EQ(1, write);
	EXPECT_EQ(2, read);
	ASSERT_EQ(0, np_write_file(share, "1"));
	EXPECT_EQ(1, used_queues(self, &write, &read));
	EXPECT_EQ(1, write);
	EXPECT_EQ(1, read);
	ASSERT_EQ(0, np_write_file(share, "4"));
	EXPECT_EQ(4, used_queues(self, &write, &read));
	EXPECT_EQ(3, write);
	EXPECT_EQ(0xc, read);
}

TEST_HARNESS_MAIN
