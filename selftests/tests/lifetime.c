// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair lives as long as its file, however that file travels and
 * however its holder ends; the module lives as long as any object of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

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
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* Reads that never stop, so that a kill always finds some in flight. */
static void read_for_ever(int dmabuf, int ready)
{
	struct np_command command;
	struct np_buffer buffer;
	struct np_ctrl ctrl;
	struct np_qp qp;
	uint32_t i;

	/* Only the open of the node may be shared with the parent, not the file. */
	if (np_ctrl_open(&ctrl, "np0") || np_buffer_adopt(&buffer, ctrl.fd, dmabuf, PAGES) ||
	    np_qp_open(&qp, ctrl.fd, ENTRIES))
		_exit(1);
	for (i = 0; ; i++) {
		np_command_rw(&command, &buffer, NP_CMD_READ, NP_AREA(2) + i % 64 * NP_PAGE, 0,
			      (PAGES - 1) * NP_PAGE);
		np_qp_put(&qp, &command);
		if (i % 16 == 15)
			np_qp_ring(&qp);
		if (i >= ENTRIES / 2 && np_qp_reap(&qp, NULL, NP_TIMEOUT_MS))
			_exit(2);
		if (i == ENTRIES && write(ready, "", 1) != 1)
			_exit(3);
	}
}

/* All queue identifiers can be created: none is left behind on the controller. */
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

TEST_F(lifetime, a_killed_process_leaves_nothing)
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
		ASSERT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
		memset(bytes, POISON, size);
		np_sleep_ms(100);
		EXPECT_EQ(0, check_poison(bytes, size));
	}
	EXPECT_EQ(0, fill_queue_ids(&self->ctrl));
	munmap(bytes, size);
	close(dmabuf);
}

TEST_F(lifetime, a_forked_child_keeps_the_queue_pair)
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
	EXPECT_EQ(-ETIMEDOUT, np_objects_settle(&self->ctrl, self->before, 200));
	EXPECT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	close(go[0]);
	close(go[1]);
}

TEST_F(lifetime, a_passed_file_keeps_the_queue_pair)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_info info;
	int pair[2], fd;
	char byte = 0;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_send_file(pair[0], "", 1, create.qp_fd));
	close(create.qp_fd);
	/* In nobody's descriptor table, only in the socket. */
	EXPECT_EQ(-ETIMEDOUT, np_objects_settle(&self->ctrl, self->before, 200));
	fd = np_receive_file(pair[1], &byte, 1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_qp_info(fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	EXPECT_EQ(create.qid, info.qid);
	/* Sent again and never received: goes with the socket. */
	ASSERT_EQ(0, np_send_file(pair[0], "", 1, fd));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(lifetime, a_queue_pair_outlives_the_node_it_came_from)
{
	struct nvme_peer_qp_info info;
	struct np_ctrl second;
	struct np_qp qp;
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };

	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_qp_open(&qp, second.fd, ENTRIES));
	np_ctrl_close(&second);
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	np_qp_close(&qp);
}

/* The dma-buf is still open, but what it stood for is gone. */
TEST_F(lifetime, an_export_outlives_its_queue_pair_as_an_empty_shell)
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
	EXPECT_EQ(-EFAULT, np_store(doorbell.at, 0));
	EXPECT_EQ(0, np_store(ring.at, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, doorbell.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, ring.fd, 0));
	/* Who comes now can still read what became of it. */
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
	int test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	int ret = test < 0 ? -errno : np_ioctl(test, NVMEP_TEST_MAPS, &maps);

	close(test);
	return ret ? ret : (int)maps.maps;
}

/* Somebody else's queue pair: commands of his may carry the addresses, too. */
TEST_F(lifetime, addresses_that_were_told_stay_while_a_queue_pair_lives)
{
	struct nvme_peer_qp_create create;
	struct np_buffer buffer;
	struct np_ctrl other;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(other.fd, ENTRIES, &create));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, buffer.handle));
	EXPECT_EQ(1, maps_of(buffer.fd));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	EXPECT_EQ(0, maps_of(buffer.fd));
	np_buffer_close(&buffer);
	np_ctrl_close(&other);
}

/* The close of the node waits for those that were alive, not for later ones. */
TEST_F(lifetime, a_closed_node_leaves_its_addresses_to_who_may_use_them)
{
	struct nvme_peer_qp_create before[2], after;
	struct np_buffer buffer;
	struct np_ctrl other;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, other.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &before[0]));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &before[1]));
	np_ctrl_close(&other);
	EXPECT_EQ(1, maps_of(buffer.fd));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &after));
	close(before[1].qp_fd);
	EXPECT_EQ(1, maps_of(buffer.fd));
	close(before[0].qp_fd);
	EXPECT_EQ(0, maps_of(buffer.fd));
	close(after.qp_fd);
	np_buffer_close(&buffer);
}

static uint32_t quarantined(const struct np_ctrl *ctrl)
{
	struct nvme_peer_info info = {};

	np_info(ctrl->fd, &info);
	return info.qids_quarantined;
}

/* What has just ended is the last to be handed out: a late store hits nobody. */
TEST_F(lifetime, an_identifier_rests_as_long_as_it_can)
{
	struct nvme_peer_qp_create create;
	uint32_t i, others = self->ctrl.info.qids_total - self->ctrl.info.qids_cpu - 1, first;

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

/* Its GPU may have registered the page, of which nobody tells the kernel. */
TEST_F(lifetime, an_identifier_is_kept_from_others_while_a_mapper_lives)
{
	struct nvme_peer_info info;
	struct np_mapper mapper;

	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_comes_up(self->ctrl.fd, mapper.qid));
	/* Its mapping outlives a reset. */
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &info, NP_TIMEOUT_MS));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_comes_up(self->ctrl.fd, mapper.qid));
	np_mapper_end(&mapper);
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_comes_up(self->ctrl.fd, mapper.qid));
}

/* One that has exited stores no more, whether or not its parent has looked. */
TEST_F(lifetime, an_identifier_is_not_kept_for_the_dead)
{
	struct np_mapper mapper;
	siginfo_t ended;

	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	EXPECT_EQ(1, quarantined(&self->ctrl));
	close(mapper.leash);
	mapper.leash = -1;
	ASSERT_EQ(0, waitid(P_PID, mapper.pid, &ended, WEXITED | WNOWAIT));
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_comes_up(self->ctrl.fd, mapper.qid));
	np_mapper_end(&mapper);
}

/* A late store of one's own hits one's own queue: who maps again and again can. */
TEST_F_TIMEOUT(lifetime, a_mapper_gets_its_own_identifiers_again, 120)
{
	struct np_qp qp;
	uint32_t i;

	for (i = 0; i < self->ctrl.info.qids_total + 2; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES)) {
			TH_LOG("after %u others", i);
		}
		np_qp_close(&qp);
		EXPECT_EQ(0, quarantined(&self->ctrl));
	}
}

TEST_F(lifetime, an_identifier_is_kept_while_a_dma_buf_of_its_doorbells_is_open)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export doorbell, ring;

	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &doorbell));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_SQ, 0, &ring));
	close(create.qp_fd);
	EXPECT_EQ(1, quarantined(&self->ctrl));
	EXPECT_FALSE(np_qid_comes_up(self->ctrl.fd, create.qid));
	close(doorbell.fd);
	/* Rings are memory: they do not matter. */
	EXPECT_EQ(0, quarantined(&self->ctrl));
	EXPECT_TRUE(np_qid_comes_up(self->ctrl.fd, create.qid));
	close(ring.fd);
}

/* With everything in quarantine there is nothing left, and that is said. */
TEST_F_TIMEOUT(lifetime, all_identifiers_may_be_in_quarantine, 120)
{
	uint32_t i, count = self->ctrl.info.qids_total - self->ctrl.info.qids_cpu;
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export *open;
	struct nvme_peer_info info;

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
	EXPECT_EQ(0, np_qp_try(self->ctrl.fd, NP_TIMEOUT_MS));
	free(open);
}

/* Last in the file: it takes the controllers away from under other fixtures. */
TEST_F(lifetime, the_module_stays_while_an_export_is_open)
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
	ASSERT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_module_unload(0));
	ASSERT_EQ(0, system("modprobe nvme_peer"));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

TEST_HARNESS_MAIN
