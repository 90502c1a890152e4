// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test of the software GPU itself, which other tests and the demonstration rely on. Runs in a
 * guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu_drv.h"
#include "softgpu_programs.h"

#include "kselftest_harness.h"

#define NODE		"/dev/softgpu0"
#define SIZE		(1U << 20)
#define WAIT_MS		10000U

FIXTURE(softgpu)
{
	int fd;
	struct softgpu_info info;
	struct softgpu_counters before;
};

FIXTURE_SETUP(softgpu)
{
	self->fd = open(NODE, O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->fd, 0)
		TH_LOG("%s: %s; is softgpu_drv loaded?", NODE, strerror(errno));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_INFO, &self->info));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_COUNTERS, &self->before));
}

FIXTURE_TEARDOWN(softgpu)
{
	close(self->fd);
}

/* Start a program on memory; the job or a negative errno. */
static int start(int fd, uint32_t program, uint32_t threads,
		 const struct softgpu_memory *memory)
{
	struct softgpu_start request = {
		.program = program,
		.threads = threads,
		.parameters = (uintptr_t)memory,
		.length = sizeof(*memory),
	};

	if (ioctl(fd, SOFTGPU_START, &request))
		return -errno;
	return (int)request.job;
}

/* Run a program on memory; its status or a negative errno. */
static int run(int fd, uint32_t program, uint32_t threads,
	       const struct softgpu_memory *memory,
	       struct softgpu_result *result)
{
	struct softgpu_wait wait = { .timeout_ms = WAIT_MS };
	int job = start(fd, program, threads, memory);

	if (job < 0)
		return job;
	wait.job = (uint32_t)job;
	if (ioctl(fd, SOFTGPU_WAIT, &wait))
		return -errno;
	if (result)
		*result = wait.result;
	return (int)wait.result.status;
}

static int allocate(int fd, uint32_t flags, struct softgpu_alloc *alloc)
{
	*alloc = (struct softgpu_alloc){ .size = SIZE, .flags = flags };
	return ioctl(fd, SOFTGPU_ALLOC, alloc) ? -errno : 0;
}

static uint64_t *map(const struct softgpu_alloc *alloc)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, alloc->fd,
		    0);
}

static uint64_t wrong_words(const uint64_t *words, uint64_t seed)
{
	uint64_t wrong = 0, i;

	for (i = 0; i < SIZE / 8; i++)
		wrong += words[i] != softgpu_pattern(seed, 0, i);
	return wrong;
}

TEST_F(softgpu, memory_is_there)
{
	EXPECT_GE(self->info.hbm_bytes, 16U << 20);
	EXPECT_GT(self->info.hbm_free, self->info.hbm_bytes / 2);
	EXPECT_NE(0, self->info.pci_address);
}

/* CPU and GPU access the same bytes, in both directions. */
TEST_F(softgpu, cpu_and_gpu_share_hbm)
{
	struct softgpu_memory memory = { .length = SIZE, .seed = 1 };
	struct softgpu_result result;
	struct softgpu_alloc alloc;
	uint64_t *words;

	ASSERT_EQ(0, allocate(self->fd, 0, &alloc));
	EXPECT_GE(alloc.address, self->info.hbm_va);
	words = map(&alloc);
	ASSERT_NE(MAP_FAILED, words);
	EXPECT_EQ(0, words[SIZE / 8 - 1]);
	memory.address = alloc.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 4, &memory, &result));
	EXPECT_EQ(SIZE, result.bytes_written);
	EXPECT_EQ(0, result.remote_writes);
	EXPECT_EQ(0, wrong_words(words, 1));
	words[77] ^= 1;
	EXPECT_EQ(SOFTGPU_FAILED,
		  run(self->fd, SOFTGPU_CHECK, 4, &memory, &result));
	EXPECT_EQ(1, result.mismatches);
	EXPECT_EQ(alloc.address + 77 * 8, result.where);
	words[77] ^= 1;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_CHECK, 4, &memory, NULL));
	munmap(words, SIZE);
	close(alloc.fd);
}

/* Bus-master DMA to host memory, through its mapping and by message. */
static void check_system_memory(struct __test_metadata *const _metadata,
				int fd, uint32_t flags)
{
	struct softgpu_memory memory = { .length = SIZE, .flags = flags };
	struct softgpu_alloc alloc;
	struct softgpu_result result;
	uint64_t *words;

	memory.seed = 2 + flags;
	ASSERT_EQ(0, allocate(fd, SOFTGPU_ALLOC_SYSTEM, &alloc));
	words = map(&alloc);
	ASSERT_NE(MAP_FAILED, words);
	memory.address = alloc.address;
	EXPECT_EQ(SOFTGPU_OK, run(fd, SOFTGPU_FILL, 4, &memory, &result));
	EXPECT_EQ(SIZE / 4096, result.remote_writes);
	EXPECT_EQ(0, wrong_words(words, memory.seed));
	EXPECT_EQ(SOFTGPU_OK, run(fd, SOFTGPU_CHECK, 4, &memory, &result));
	EXPECT_EQ(SIZE / 4096, result.remote_reads);
	words[5]++;
	EXPECT_EQ(SOFTGPU_FAILED, run(fd, SOFTGPU_CHECK, 1, &memory, &result));
	EXPECT_EQ(1, result.mismatches);
	munmap(words, SIZE);
	close(alloc.fd);
}

TEST_F(softgpu, dma_to_mapped_host_memory)
{
	struct softgpu_counters after;

	check_system_memory(_metadata, self->fd, 0);
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_COUNTERS, &after));
	EXPECT_GE(after.mapped_writes, self->before.mapped_writes + SIZE / 4096);
	EXPECT_EQ(after.faults, self->before.faults);
}

/* Also checks that the shared mapping is the guest's memory. */
TEST_F(softgpu, dma_by_message)
{
	struct softgpu_counters after;

	check_system_memory(_metadata, self->fd, SOFTGPU_MEMORY_MESSAGE);
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_COUNTERS, &after));
	EXPECT_GE(after.message_writes,
		  self->before.message_writes + SIZE / 4096);
	EXPECT_EQ(after.mapped_writes, self->before.mapped_writes);
}

/* Posted stores arrive in order, and before the end of the job is reported. */
TEST_F(softgpu, posted_stores)
{
	struct softgpu_memory memory = {
		.value = 0x12345678,
		.width = 4,
		.flags = SOFTGPU_MEMORY_POSTED,
	};
	struct softgpu_result result;
	struct softgpu_alloc alloc;
	uint64_t *words;

	ASSERT_EQ(0, allocate(self->fd, SOFTGPU_ALLOC_SYSTEM, &alloc));
	words = map(&alloc);
	ASSERT_NE(MAP_FAILED, words);
	memory.address = alloc.address + 12;
	EXPECT_EQ(SOFTGPU_OK,
		  run(self->fd, SOFTGPU_STORE, 1, &memory, &result));
	EXPECT_EQ(1, result.doorbells);
	EXPECT_EQ(0x1234567800000000, words[1]);
	munmap(words, SIZE);
	close(alloc.fd);
}

TEST_F(softgpu, scattered_memory_is_one_to_programs)
{
	struct softgpu_memory memory = { .length = SIZE, .seed = 3 };
	struct softgpu_alloc alloc;
	uint64_t *words;

	ASSERT_EQ(0, allocate(self->fd, SOFTGPU_ALLOC_SCATTERED, &alloc));
	words = map(&alloc);
	ASSERT_NE(MAP_FAILED, words);
	memory.address = alloc.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 3, &memory, NULL));
	EXPECT_EQ(0, wrong_words(words, 3));
	munmap(words, SIZE);
	close(alloc.fd);
}

/* An access to an unmapped address ends the job only. */
TEST_F(softgpu, a_fault_ends_the_job)
{
	struct softgpu_memory memory = { .width = 4 };
	struct softgpu_counters after;
	struct softgpu_result result;
	uint64_t bad[] = {
		self->info.mmu_va + (100U << 20),
		self->info.hbm_va + self->info.hbm_bytes,
		4096,
		0xffff888000000000,
	};
	unsigned int i;

	for (i = 0; i < 4; i++) {
		memory.address = bad[i];
		EXPECT_EQ(SOFTGPU_FAULT, run(self->fd, i % 2 ? SOFTGPU_LOAD :
					     SOFTGPU_STORE, 1, &memory,
					     &result));
		EXPECT_EQ(bad[i], result.where);
	}
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_COUNTERS, &after));
	EXPECT_EQ(self->before.faults + 4, after.faults);
	EXPECT_EQ(bad[3], after.fault_address);
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_NOP, 1, &memory, NULL));
}

TEST_F(softgpu, memory_that_was_freed_faults)
{
	struct softgpu_memory memory = { .width = 4 };
	struct softgpu_alloc alloc;

	ASSERT_EQ(0, allocate(self->fd, SOFTGPU_ALLOC_SYSTEM, &alloc));
	memory.address = alloc.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_STORE, 1, &memory, NULL));
	close(alloc.fd);
	EXPECT_EQ(SOFTGPU_FAULT, run(self->fd, SOFTGPU_STORE, 1, &memory, NULL));
}

TEST_F(softgpu, every_job_sends_an_interrupt)
{
	struct softgpu_memory memory = { 0 };
	struct softgpu_info after;
	unsigned int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(SOFTGPU_OK,
			  run(self->fd, SOFTGPU_NOP, 1, &memory, NULL));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_INFO, &after));
	EXPECT_EQ(self->info.interrupts + 20, after.interrupts);
}

TEST_F(softgpu, bad_jobs_are_refused)
{
	struct softgpu_memory memory = { .address = self->info.hbm_va,
					 .width = 3 };

	EXPECT_EQ(SOFTGPU_INVALID, run(self->fd, 999, 1, &memory, NULL));
	EXPECT_EQ(SOFTGPU_INVALID, run(self->fd, SOFTGPU_NOP, 0, &memory, NULL));
	EXPECT_EQ(SOFTGPU_INVALID,
		  run(self->fd, SOFTGPU_NOP, SOFTGPU_MAX_THREADS + 1, &memory,
		      NULL));
	EXPECT_EQ(SOFTGPU_INVALID,
		  run(self->fd, SOFTGPU_LOAD, 1, &memory, NULL));
	EXPECT_EQ(SOFTGPU_INVALID,
		  run(self->fd, SOFTGPU_WRITE, 1, &memory, NULL));
}

/* An endless job ends when it is stopped or aborted, or its file is closed. */
TEST_F(softgpu, endless_jobs_end)
{
	struct softgpu_memory memory = { .address = self->info.hbm_va,
					 .width = 4, .mask = 1, .value = 2 };
	struct softgpu_wait wait = { .timeout_ms = 50 };
	struct softgpu_stop stop = { 0 };
	struct softgpu_info info;
	int fd, job = start(self->fd, SOFTGPU_POLL, 1, &memory);

	ASSERT_GT(job, 0);
	wait.job = stop.job = (uint32_t)job;
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(ETIMEDOUT, errno);
	wait.timeout_ms = WAIT_MS;
	EXPECT_EQ(0, ioctl(self->fd, SOFTGPU_STOP, &stop));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(SOFTGPU_FAILED, wait.result.status);

	job = start(self->fd, SOFTGPU_POLL, 1, &memory);
	ASSERT_GT(job, 0);
	wait.job = stop.job = (uint32_t)job;
	stop.flags = SOFTGPU_STOP_ABORT;
	EXPECT_EQ(0, ioctl(self->fd, SOFTGPU_STOP, &stop));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(SOFTGPU_ABORTED, wait.result.status);
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(ENOENT, errno);

	fd = open(NODE, O_RDWR | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_GT(start(fd, SOFTGPU_POLL, 1, &memory), 0);
	close(fd);
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_INFO, &info));
	EXPECT_EQ(0, info.jobs);
}

static int function_level_reset(uint32_t address)
{
	char path[96];
	int fd, ret;

	snprintf(path, sizeof(path),
		 "/sys/bus/pci/devices/%04x:%02x:%02x.%x/reset_method",
		 address >> 16, address >> 8 & 0xff, address >> 3 & 0x1f,
		 address & 7);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	ret = write(fd, "flr", 3) == 3 ? 0 : -errno;
	close(fd);
	if (ret)
		return ret;
	strcpy(strrchr(path, '/'), "/reset");
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	ret = write(fd, "1", 1) == 1 ? 0 : -errno;
	close(fd);
	return ret;
}

/* A function level reset aborts jobs, keeps HBM, and the device works after. */
TEST_F(softgpu, function_level_reset)
{
	struct softgpu_memory memory = { .address = self->info.hbm_va,
					 .width = 4, .mask = 1, .value = 2 };
	struct softgpu_memory fill = { .length = SIZE, .seed = 4 };
	struct softgpu_wait wait = { .timeout_ms = WAIT_MS };
	struct softgpu_counters after;
	struct softgpu_alloc hbm, host;
	int job;

	ASSERT_EQ(0, allocate(self->fd, 0, &hbm));
	ASSERT_EQ(0, allocate(self->fd, SOFTGPU_ALLOC_SYSTEM, &host));
	fill.address = hbm.address;
	ASSERT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 1, &fill, NULL));
	job = start(self->fd, SOFTGPU_POLL, 1, &memory);
	ASSERT_GT(job, 0);
	wait.job = (uint32_t)job;
	ASSERT_EQ(0, function_level_reset(self->info.pci_address));
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(SOFTGPU_ABORTED, wait.result.status);
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_COUNTERS, &after));
	EXPECT_EQ(self->before.resets + 1, after.resets);
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_CHECK, 2, &fill, NULL));
	fill.address = host.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 2, &fill, NULL));
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_CHECK, 2, &fill, NULL));
	close(hbm.fd);
	close(host.fd);
}

TEST_F(softgpu, memory_moves)
{
	struct softgpu_memory memory = { .length = SIZE, .seed = 5 };
	struct softgpu_move move = { 0 };
	struct softgpu_alloc alloc;
	uint64_t *words;

	ASSERT_EQ(0, allocate(self->fd, 0, &alloc));
	words = map(&alloc);
	ASSERT_NE(MAP_FAILED, words);
	memory.address = alloc.address;
	ASSERT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 2, &memory, NULL));
	EXPECT_EQ(0, wrong_words(words, 5));
	move.fd = alloc.fd;
	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_MOVE, &move));
	EXPECT_NE(alloc.address, move.address);
	memory.address = move.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_CHECK, 2, &memory, NULL));
	words[0]++;
	EXPECT_EQ(SOFTGPU_FAILED,
		  run(self->fd, SOFTGPU_CHECK, 2, &memory, NULL));
	munmap(words, SIZE);
	close(alloc.fd);
}

static int write_driver_file(const char *name, uint32_t address)
{
	char path[96], text[16];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/softgpu_drv/%s",
		 name);
	snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", address >> 16,
		 address >> 8 & 0xff, address >> 3 & 0x1f, address & 7);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static sigjmp_buf after_signal;

static void on_bus_error(int number)
{
	(void)number;
	siglongjmp(after_signal, 1);
}

/* Returns whether a store to @word raises SIGBUS. */
static bool store_fails(volatile uint64_t *word)
{
	struct sigaction action = { .sa_handler = on_bus_error }, before;
	bool failed = true;

	sigaction(SIGBUS, &action, &before);
	if (!sigsetjmp(after_signal, 1)) {
		*word = 1;
		failed = false;
	}
	sigaction(SIGBUS, &before, NULL);
	return failed;
}

/* The driver is unbound during a job, with a mapping and an open file. */
TEST_F(softgpu, the_device_goes_away)
{
	struct softgpu_memory poll = { .address = self->info.hbm_va,
				       .width = 4, .mask = 1, .value = 2 };
	struct softgpu_memory fill = { .length = SIZE, .seed = 6 };
	struct softgpu_wait wait = { .timeout_ms = WAIT_MS };
	struct softgpu_alloc hbm, host;
	uint64_t *words;
	int job;

	ASSERT_EQ(0, allocate(self->fd, 0, &hbm));
	ASSERT_EQ(0, allocate(self->fd, SOFTGPU_ALLOC_SYSTEM, &host));
	words = map(&hbm);
	ASSERT_NE(MAP_FAILED, words);
	EXPECT_FALSE(store_fails(words));
	job = start(self->fd, SOFTGPU_POLL, 1, &poll);
	ASSERT_GT(job, 0);
	wait.job = (uint32_t)job;
	ASSERT_EQ(0, write_driver_file("unbind", self->info.pci_address));
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_WAIT, &wait));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_INFO, &self->info));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_TRUE(store_fails(words));
	munmap(words, SIZE);
	close(hbm.fd);
	close(host.fd);
	close(self->fd);
	EXPECT_EQ(0, write_driver_file("bind", self->info.pci_address));
	self->fd = open(NODE, O_RDWR | O_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, allocate(self->fd, 0, &hbm));
	fill.address = hbm.address;
	EXPECT_EQ(SOFTGPU_OK, run(self->fd, SOFTGPU_FILL, 1, &fill, NULL));
	close(hbm.fd);
}

TEST_F(softgpu, bad_requests)
{
	struct softgpu_alloc alloc = { .size = 4096, .flags = 1U << 31 };
	struct softgpu_import import = { .fd = self->fd };
	struct softgpu_release release = { .handle = 1 };
	struct softgpu_alloc mine;

	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_ALLOC, &alloc));
	EXPECT_EQ(EINVAL, errno);
	alloc.flags = 0;
	alloc.size = 0;
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_ALLOC, &alloc));
	EXPECT_EQ(EINVAL, errno);
	alloc.size = 512U << 20;
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_ALLOC, &alloc));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_IMPORT, &import));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_RELEASE, &release));
	EXPECT_EQ(ENOENT, errno);
	ASSERT_EQ(0, allocate(self->fd, 0, &mine));
	import.fd = mine.fd;
	EXPECT_EQ(-1, ioctl(self->fd, SOFTGPU_IMPORT, &import));
	EXPECT_EQ(EINVAL, errno);
	close(mine.fd);
	EXPECT_EQ(-1, ioctl(self->fd, _IO('g', 99)));
	EXPECT_EQ(ENOTTY, errno);
}

TEST_F(softgpu, nothing_is_left)
{
	struct softgpu_info info;

	ASSERT_EQ(0, ioctl(self->fd, SOFTGPU_INFO, &info));
	EXPECT_EQ(0, info.jobs);
	EXPECT_EQ(0, info.imports);
	EXPECT_EQ(0, info.buffers);
}

TEST_HARNESS_MAIN
