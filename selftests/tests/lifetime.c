// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair lives as long as its file, also if the file is passed on or its holder is
 * killed; the module cannot be unloaded while one of its objects exists.
 *
 * iommu: on
 * long-iommu: on off pt
 * mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES		128U
#define PAGES		33U
#define POISON		0xa5

FIXTURE(lifetime)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(lifetime)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(lifetime)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* Endless reads, so that a kill always finds some in flight. */
static void read_for_ever(int dmabuf, int ready)
{
	struct np_command command;
	struct np_buffer buffer;
	struct np_ctrl ctrl;
	struct np_qp qp;
	uint32_t i;

	/* The child opens the node itself, so that it does not share the file. */
	if (np_ctrl_open(&ctrl, "np0") || np_buffer_open_dmabuf(&buffer, ctrl.fd, dmabuf, PAGES) ||
	    np_qp_open(&qp, ctrl.fd, ENTRIES))
		_exit(1);
	for (i = 0; ; i++) {
		np_command_rw(&command, &buffer, NVMEPEER_OP_READ, NP_AREA(2) + i % 64 * NP_PAGE, 0,
			      (PAGES - 1) * NP_PAGE);
		np_qp_put(&qp, &command);
		if (i % 16 == 15)
			np_qp_ring_doorbell(&qp);
		if (i >= ENTRIES / 2 && np_qp_reap(&qp, NULL, NP_TIMEOUT_MS))
			_exit(2);
		if (i == ENTRIES && write(ready, "", 1) != 1)
			_exit(3);
	}
}

/* All queue IDs can be created: none is left behind on the controller. */
static int fill_queue_ids(const struct np_ctrl *ctrl)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_info info;
	int fds[256], count = 0, ret;

	ret = np_info(ctrl->fd, &info);
	while (!ret && count < 256 && (uint32_t)count < info.qids_peer_free) {
		ret = np_qp_create(ctrl->fd, 8, &create);
		if (!ret)
			fds[count++] = create.qp_fd;
	}
	while (count)
		close(fds[--count]);
	return ret;
}

static int check_poison(const uint8_t *bytes, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (bytes[i] != POISON)
			return -EIO;
	return 0;
}

TEST_F(lifetime, killed_process_leaves_nothing)
{
	size_t size = (PAGES - 1) * NP_PAGE;
	int ready[2], status, round, dmabuf;
	uint8_t *bytes;
	pid_t child;
	char byte = 0;

	dmabuf = np_test_export(PAGES, 0);
	ASSERT_LE(0, dmabuf);
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	ASSERT_NE(MAP_FAILED, bytes);
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, pipe(ready));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			read_for_ever(dmabuf, ready[1]);
		close(ready[1]);
		EXPECT_EQ(1, read(ready[0], &byte, 1));
		close(ready[0]);
		kill(child, SIGKILL);
		ASSERT_EQ(child, waitpid(child, &status, 0));
		EXPECT_EQ(SIGKILL, WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
		ASSERT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
		memset(bytes, POISON, size);
		np_sleep_ms(100);
		EXPECT_EQ(0, check_poison(bytes, size));
	}
	EXPECT_EQ(0, fill_queue_ids(&self->ctrl));
	munmap(bytes, size);
	close(dmabuf);
}

TEST_F(lifetime, forked_child_keeps_queue_pair)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_info info;
	int go[2], status;
	pid_t child;
	char byte = 0;

	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, pipe(go));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* After the parent closed its own descriptor. */
		if (read(go[0], &byte, 1) != 1 || np_qp_info(create.qp_fd, &info))
			_exit(1);
		_exit(info.state == NVME_PEER_QP_LIVE ? 0 : 2);
	}
	close(create.qp_fd);
	EXPECT_EQ(-ETIMEDOUT, np_objects_wait(&self->ctrl, self->before, 200));
	EXPECT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	close(go[0]);
	close(go[1]);
}

TEST_F(lifetime, passed_file_keeps_queue_pair)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_info info;
	int pair[2], fd;
	char byte = 0;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_send_file(pair[0], "", 1, create.qp_fd));
	close(create.qp_fd);
	/* The file is referenced by the socket only, not by a descriptor table. */
	EXPECT_EQ(-ETIMEDOUT, np_objects_wait(&self->ctrl, self->before, 200));
	fd = np_receive_file(pair[1], &byte, 1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	EXPECT_EQ(create.qid, info.qid);
	/* Sent again and not received: closing the socket drops it. */
	ASSERT_EQ(0, np_send_file(pair[0], "", 1, fd));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(lifetime, queue_pair_outlives_controller_file)
{
	struct nvme_peer_qp_info info;
	struct np_ctrl second;
	struct np_qp qp;
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };

	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_qp_open(&qp, second.fd, ENTRIES));
	np_ctrl_close(&second);
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	np_qp_close(&qp);
}

/* The dma-buf is still open, but its object is gone. */
TEST_F(lifetime, export_outlives_queue_pair_without_memory)
{
	struct np_export ring, doorbell, status;
	struct nvme_peer_qp_create create;
	const struct nvme_peer_status *page;

	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_open(&ring, create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
	ASSERT_EQ(0, np_export_open(&doorbell, create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	ASSERT_EQ(0, np_export_open(&status, create.qp_fd, NVME_PEER_EXPORT_STATUS, 0));
	EXPECT_EQ(0, np_store(doorbell.at, 0));
	close(create.qp_fd);
	page = status.at;
	EXPECT_EQ(NVME_PEER_QP_GONE, page->state);
	EXPECT_EQ(np_qp_revoked(), np_store(doorbell.at, 0));
	EXPECT_EQ(0, np_store(ring.at, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, doorbell.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, ring.fd, 0));
	/* A new mapping of the status page still works. */
	page = mmap(NULL, NP_PAGE, PROT_READ, MAP_SHARED, status.fd, 0);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(NVME_PEER_QP_GONE, page->state);
	munmap((void *)page, NP_PAGE);
	np_export_close(&ring);
	np_export_close(&doorbell);
	np_export_close(&status);
}

/* How often a dma-buf of nvmep_test is mapped for a device, or -errno. */
static int maps_of(int dmabuf)
{
	struct nvmep_test_move maps = { .fd = dmabuf };
	int test = np_test_open();
	int ret = test < 0 ? test : np_ioctl(test, NVMEP_TEST_MAPS, &maps);

	close(test);
	return ret ? ret : (int)maps.maps;
}

/* Commands of its own node's queue pairs may carry the exposed addresses. */
TEST_F(lifetime, exposed_buffer_stays_while_queue_pair_lives)
{
	struct nvme_peer_qp_create own, elsewhere;
	struct np_buffer buffer;
	struct np_ctrl other;

	NP_NOT_MEDIATED("no addresses are exposed");
	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(other.fd, ENTRIES, &elsewhere));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &own));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, buffer.handle));
	EXPECT_EQ(1, maps_of(buffer.fd));
	close(own.qp_fd);
	/* An idle queue pair of another node does not keep it. */
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	EXPECT_EQ(0, maps_of(buffer.fd));
	close(elsewhere.qp_fd);
	np_buffer_close(&buffer);
	np_ctrl_close(&other);
}

/*
 * The buffers of a closed node stay until its last queue pair is closed, the youngest here,
 * and not for queue pairs of other nodes.
 */
TEST_F(lifetime, closed_file_keeps_exposed_buffer)
{
	struct nvme_peer_qp_create pairs[3], elsewhere;
	struct np_buffer buffer;
	struct np_ctrl other;
	int i;

	NP_NOT_MEDIATED("no addresses are exposed");
	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, other.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &elsewhere));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, np_qp_create(other.fd, ENTRIES, &pairs[i]));
	np_ctrl_close(&other);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(1, maps_of(buffer.fd));
		close(pairs[i].qp_fd);
	}
	EXPECT_EQ(0, maps_of(buffer.fd));
	close(elsewhere.qp_fd);
	np_buffer_close(&buffer);
}

static uint32_t quarantined(const struct np_ctrl *ctrl)
{
	struct nvme_peer_info info = {};

	np_info(ctrl->fd, &info);
	return info.qids_quarantined;
}

/*
 * A queue ID whose doorbells the caller has not mapped is reused as late as possible, so that
 * a late doorbell store hits no other queue.
 */
TEST_F(lifetime, queue_id_reuse_is_least_recently_used)
{
	struct nvme_peer_qp_create create;
	uint32_t i, others = self->ctrl.info.qids_total - self->ctrl.info.qids_cpu - 1, first;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	first = create.qid;
	close(create.qp_fd);
	for (i = 0; i < others; i++) {
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
		close(create.qp_fd);
		ASSERT_NE(first, create.qid) {
			TH_LOG("after %u others", i);
		}
	}
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	close(create.qp_fd);
	EXPECT_EQ(first, create.qid);
}

/* The mapper's GPU may have registered the page, which the kernel cannot observe. */
TEST_F(lifetime, queue_id_quarantined_while_mapper_lives)
{
	struct nvme_peer_info info;
	struct np_mapper mapper;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
	/* Its mapping survives a reset. */
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
	np_mapper_end(&mapper);
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
}

/* A process that has exited stores no more, whether or not its parent has reaped it. */
TEST_F(lifetime, queue_id_freed_when_mapper_exits)
{
	struct np_mapper mapper;
	siginfo_t ended;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	close(mapper.leash);
	mapper.leash = -1;
	ASSERT_EQ(0, waitid(P_PID, mapper.pid, &ended, WEXITED | WNOWAIT));
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
	np_mapper_end(&mapper);
}

static bool is_zombie(pid_t pid)
{
	char path[32], text[128] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return false;
	close(fd);
	return strstr(text, ") Z ");
}

static void *outlive_main_thread(void *leash)
{
	char byte;

	_exit(read((int)(intptr_t)leash, &byte, 1) ? 3 : 0);
}

/* Map doorbells, close all, and end the main thread only. */
static void be_headless(int ctrl_fd, int leash)
{
	pthread_t thread;
	struct np_qp qp;

	if (np_qp_open(&qp, ctrl_fd, 16) ||
	    pthread_create(&thread, NULL, outlive_main_thread, (void *)(intptr_t)leash))
		_exit(1);
	np_qp_close(&qp);
	syscall(SYS_exit, 0);
}

/* A process whose main thread has exited may store by another thread, or by its GPU. */
TEST_F(lifetime, queue_id_quarantined_while_any_thread_lives)
{
	int leash[2], i;
	pid_t child;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, pipe(leash));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(leash[1]);
		be_headless(self->ctrl.fd, leash[0]);
	}
	close(leash[0]);
	for (i = 0; i < NP_TIMEOUT_MS / 10 && !is_zombie(child); i++)
		np_sleep_ms(10);
	EXPECT_GT(NP_TIMEOUT_MS / 10, i);
	EXPECT_EQ(1, quarantined(&self->ctrl));
	close(leash[1]);
	EXPECT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_EQ(0, quarantined(&self->ctrl));
}

/* Does the module's list, which outlives a binding, name the process? */
static bool is_in_quarantine(pid_t pid)
{
	char text[NP_OBJECTS], name[16];

	snprintf(name, sizeof(name), " %d\n", pid);
	return !np_read_file("/sys/kernel/debug/nvme-peer/quarantine", text, sizeof(text)) &&
	       strstr(text, name);
}

/* Unbinding does not end a mapping of BAR0, and the next binding has the same addresses. */
TEST_F_TIMEOUT(lifetime, queue_id_quarantined_across_unbind, 120)
{
	char address[sizeof(self->ctrl.address)], command[96];
	struct np_mapper mapper;
	int log = np_log_open();

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_LE(0, log);
	strcpy(address, self->ctrl.address);
	snprintf(command, sizeof(command), "/build/user/nvme-peer unbind %s", address);
	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	np_ctrl_close(&self->ctrl);
	EXPECT_NE(0, system(command));
	EXPECT_TRUE(np_bound(address));
	ASSERT_EQ(0, np_unbind(address));
	EXPECT_EQ(0, np_log_wait(log, "doorbells of 1 queue IDs", NP_TIMEOUT_MS));
	EXPECT_TRUE(is_in_quarantine(mapper.pid));
	ASSERT_EQ(0, np_bind(address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
	np_mapper_end(&mapper);
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_is_reused(self->ctrl.fd, mapper.qid));
	close(log);
}

/* A process that maps the doorbells and lives until the leash is closed. */
static int mmap_in_child(int doorbell, const int leash[2], pid_t *child)
{
	int answer[2], ret = -EIO;
	char byte;

	if (pipe(answer))
		return -errno;
	*child = fork();
	if (!*child) {
		close(leash[1]);
		ret = mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, doorbell, 0) == MAP_FAILED ?
		      -errno : 0;
		_exit(write(answer[1], &ret, sizeof(ret)) == sizeof(ret) ?
		      read(leash[0], &byte, 1) : 1);
	}
	close(answer[1]);
	if (read(answer[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -EIO;
	close(answer[0]);
	return ret;
}

/*
 * The kernel keeps a record of each process that may store: of 64 at a time, and of any
 * number one after the other.
 */
TEST_F_TIMEOUT(lifetime, processes_with_doorbells_are_limited, 120)
{
	struct nvme_peer_qp_export doorbell;
	struct nvme_peer_qp_create create;
	pid_t children[66];
	int leash[2], i;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &doorbell));
	ASSERT_EQ(0, pipe(leash));
	for (i = 0; i < 64; i++)
		ASSERT_EQ(0, mmap_in_child(doorbell.fd, leash, &children[i]));
	EXPECT_EQ(-ENOSPC, mmap_in_child(doorbell.fd, leash, &children[i++]));
	kill(children[0], SIGKILL);
	EXPECT_EQ(children[0], waitpid(children[0], NULL, 0));
	EXPECT_EQ(0, mmap_in_child(doorbell.fd, leash, &children[i]));
	close(leash[0]);
	close(leash[1]);
	for (; i; i--)
		EXPECT_EQ(children[i], waitpid(children[i], NULL, 0));
	close(doorbell.fd);
	close(create.qp_fd);
}

/* The quarantine count that another process reads. */
static int quarantined_for_others(const struct np_ctrl *ctrl)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit((int)quarantined(ctrl));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/*
 * A late store of a process to its own queue harms no other process, so a process that maps
 * repeatedly gets its own ID, and keeps no other from others.
 */
TEST_F_TIMEOUT(lifetime, mapper_reuses_its_own_queue_id, 120)
{
	uint32_t i, first = 0;
	struct np_qp qp;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	for (i = 0; i < self->ctrl.info.qids_total + 2; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES)) {
			TH_LOG("after %u others", i);
		}
		first = first ?: qp.create.qid;
		EXPECT_EQ(first, qp.create.qid);
		np_qp_close(&qp);
		EXPECT_EQ(0, quarantined(&self->ctrl));
	}
	EXPECT_EQ(1, quarantined_for_others(&self->ctrl));
}

TEST_F(lifetime, queue_id_quarantined_while_dmabuf_open)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export doorbell, ring;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &doorbell));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_SQ, 0, &ring));
	close(create.qp_fd);
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_is_reused(self->ctrl.fd, create.qid));
	close(doorbell.fd);
	/* Rings are memory and cause no quarantine. */
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_is_reused(self->ctrl.fd, create.qid));
	close(ring.fd);
}

/* With all queue IDs in quarantine, creation fails with ENOSPC. */
TEST_F_TIMEOUT(lifetime, all_queue_ids_quarantined_is_enospc, 120)
{
	uint32_t i, count = self->ctrl.info.qids_total - self->ctrl.info.qids_cpu;
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export *open;
	struct nvme_peer_info info;

	NP_NOT_MEDIATED("no queue ID of its own, and its doorbells are no registers");
	open = calloc(count, sizeof(*open));
	ASSERT_NE(NULL, open);
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, 2, &create));
		ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &open[i]));
		close(create.qp_fd);
	}
	EXPECT_EQ(-ENOSPC, np_qp_create(self->ctrl.fd, 2, &create));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(0, info.qids_peer_free);
	EXPECT_EQ(count, info.qids_quarantined);
	for (i = 0; i < count; i++)
		close(open[i].fd);
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	free(open);
}

/* Last in the file: it unloads the module, which other fixtures use. */
TEST_F_TIMEOUT(lifetime, open_export_pins_module, 120)
{
	static const uint32_t kinds[] = {
		NVME_PEER_EXPORT_SQ, NVME_PEER_EXPORT_DOORBELL, NVME_PEER_EXPORT_STATUS,
	};
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export out;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
		ASSERT_EQ(0, np_export_fd(create.qp_fd, kinds[i], 0, &out));
		close(create.qp_fd);
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(-EAGAIN, np_module_unload(0));
		close(out.fd);
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	}
	ASSERT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_module_unload(0));
	ASSERT_EQ(0, system("modprobe nvme_peer"));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

TEST_HARNESS_MAIN
