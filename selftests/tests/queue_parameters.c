// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameter io_queue_depth, with the in-tree driver's meaning: the entries of each queue; and
 * the map of CPUs to queues.
 *
 * Without interrupt remapping, the kernel moves a vector that is in use at its next interrupt only.
 *
 * kernels: 6.1 6.12 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on off
 * timeout: 60
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define PARAMETERS	"/sys/module/nvme_peer/parameters/"
#define DEPTH		PARAMETERS "io_queue_depth"
#define IOS		64

FIXTURE(queue_parameters)
{
	struct np_ctrl ctrl;
	int block;
	uint8_t *bytes;
	char affinity[64];	/* of new interrupts */
};

#define NEW_INTERRUPTS	"/proc/irq/default_smp_affinity"

FIXTURE_SETUP(queue_parameters)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->block = -1;
	ASSERT_EQ(0, np_read_file(NEW_INTERRUPTS, self->affinity, sizeof(self->affinity)));
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
	EXPECT_EQ(0, np_write_file(NEW_INTERRUPTS, self->affinity));
	EXPECT_EQ(0, bind_again(self));
	close(self->block);
	free(self->bytes);
	np_ctrl_close(&self->ctrl);
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

static unsigned int attribute(const char *format, const struct np_ctrl *ctrl)
{
	char path[96], text[32] = "";

	snprintf(path, sizeof(path), format, ctrl->instance);
	np_read_file(path, text, sizeof(text));
	return strtoul(text, NULL, 0);
}

TEST_F(queue_parameters, depth_of_queues)
{
	np_spare_needs(self->ctrl.info.max_entries >= 1024, "queues of 1024 entries");
	EXPECT_EQ(-EINVAL, np_write_file(DEPTH, "2"));
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
	ASSERT_EQ(0, np_write_file(DEPTH, "3"));
	ASSERT_EQ(0, bind_again(self));
	EXPECT_EQ(2, attribute("/sys/class/nvme-peer/nvmep%d/sqsize", &self->ctrl));
	EXPECT_EQ(0, transfer(self, true));
	EXPECT_EQ(0, transfer(self, false));
}

/* A file with one CPU, or -1. */
static int cpu_in(const char *path)
{
	char text[32] = "";

	return np_read_file(path, text, sizeof(text)) || !*text || strpbrk(text, ",-") ? -1 : atoi(text);
}

/* The interrupt of I/O queue @number, or -1. */
static int interrupt_of(const struct np_ctrl *ctrl, int number)
{
	FILE *list = fopen("/proc/interrupts", "re");
	char line[512], name[32];
	int found = -1;

	if (!list)
		return -1;
	snprintf(name, sizeof(name), " nvmep%dq%d\n", ctrl->instance, number);
	while (found < 0 && fgets(line, sizeof(line), list))
		if (strstr(line, name))
			found = atoi(line);
	fclose(list);
	return found;
}

/* With a queue for each CPU. */
static bool interrupts_what_it_serves(const struct np_ctrl *ctrl, int queue)
{
	char serves[96], interrupts[96];

	snprintf(serves, sizeof(serves), "/sys/block/nvmep%dn1/mq/%d/cpu_list", ctrl->instance, queue);
	snprintf(interrupts, sizeof(interrupts), "/proc/irq/%d/effective_affinity_list",
		 interrupt_of(ctrl, queue + 1));
	return cpu_in(serves) >= 0 && cpu_in(serves) == cpu_in(interrupts);
}

/* Already before its first interrupt, whatever CPU the kernel prefers for new ones. */
TEST_F(queue_parameters, queue_interrupts_the_cpu_that_it_serves_at_once)
{
	static const char *const preferred[] = { "1", "2", "3" };
	int i, queue;

	np_spare_needs(self->ctrl.info.qids_cpu == (uint32_t)get_nprocs(), "a queue for each processor");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, np_write_file(NEW_INTERRUPTS, preferred[i]));
		ASSERT_EQ(0, bind_again(self));
		for (queue = 0; queue < get_nprocs(); queue++)
			EXPECT_TRUE(interrupts_what_it_serves(&self->ctrl, queue)) {
				TH_LOG("queue %d, preferred %s", queue + 1, preferred[i]);
			}
	}
}

/* The block layer reads the map while it is made, when a CPU goes offline. */
TEST_F(queue_parameters, map_has_queues_only_while_it_is_made)
{
	struct nvmep_test_maps maps;
	int test = np_test_open(), ret;

	ASSERT_LE(0, test);
	ret = np_ioctl(test, NVMEP_TEST_QUEUE_MAP, NULL);
	if (ret == -ENOENT)
		SKIP(return, "the function is inlined in this build");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, bind_again(self));
	EXPECT_EQ(0, np_ioctl(test, NVMEP_TEST_QUEUE_MAPS, &maps));
	EXPECT_LE(1, maps.seen);
	EXPECT_EQ(0, maps.invalid);
	close(test);
}

TEST_HARNESS_MAIN
