// SPDX-License-Identifier: GPL-2.0-only
/*
 * A queue pair in a container. A privileged process creates it and passes its file and
 * that of the data buffer. Inside, in namespaces of its own and without capabilities,
 * device nodes or other files, they suffice to read blocks and to re-arm after a reset,
 * and allow nothing else.
 *
 * iommu: on
 * long-iommu: on off
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include <nvmepeer_peer.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		64U
#define PAGES		9U
#define DATA		((PAGES - 1) * NP_PAGE)
#define PLACE		NP_AREA(14)
#define SEED		77U

/* User ID outside the container of its root. */
#define NOBODY_ELSE	"0 100000 1\n"

/**
 * struct gift - what the container receives with the two files
 * @info: of the controller
 * @ns: namespace to use
 * @table: DMA addresses of the data pages
 */
struct gift {
	struct nvme_peer_info info;
	struct nvmepeer_ns_info ns;
	uint64_t table[PAGES];
};

/* The exit status of the container is the step that failed. */
enum step {
	DONE,
	NAMESPACES,
	ROOT,
	RIGHTS,
	NOT_ALONE,
	FILES,
	TOO_MUCH,
	QUEUE,
	READ,
	WRONG_DATA,
	NOT_LOST,
	NOT_BACK,
};

enum task { ONCE, OVER_A_RESET, FOR_EVER };

/* --- inside the container ----------------------------------------------------- */

/**
 * struct guest - state inside the container
 * @socket: to the process outside
 * @gift: as received
 * @qp: queue pair
 * @pages: the CPU's mappings of its exports, as the CPU is the peer
 * @queue: device queue of the device library
 * @state: its bookkeeping
 * @data: for the device library
 * @bytes: the same memory, mapped
 */
struct guest {
	int socket;
	struct gift gift;
	struct nvmepeer_qp *qp;
	struct nvmepeer_mapping *pages[5];
	struct nvmepeer_queue queue;
	void *state;
	struct nvmepeer_buffer data;
	uint8_t *bytes;
};

/*
 * The last process that belongs to the old namespaces, with an empty root and one file.
 */
static int enter_container(struct guest *guest)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("container", "/mnt", "tmpfs", 0, NULL) || chdir("/mnt") || chroot("."))
		return ROOT;
	if (dup2(guest->socket, 3) < 0 || syscall(SYS_close_range, 4, ~0U, 0))
		return ROOT;
	guest->socket = 3;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || np_drop_capabilities())
		return RIGHTS;
	return DONE;
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	return syscall(SYS_capget, &header, data) || data[0].permitted || data[1].permitted;
}

/* No node can be opened or created, and no other process is visible. */
static int check_isolation(void)
{
	if (getpid() != 1 || !kill(2, 0))
		return NOT_ALONE;
	if (has_capabilities() || open("/dev/nvmep0", O_RDWR) >= 0 || errno != ENOENT ||
	    !mknod("/nvmep0", S_IFCHR | 0600, makedev(1, 3)) || errno != EPERM)
		return RIGHTS;
	return DONE;
}

static int take_files(struct guest *guest)
{
	int qp = np_receive_file(guest->socket, &guest->gift, sizeof(guest->gift)), data;
	char nothing = 0;

	if (qp < 0 || nvmepeer_qp_from_fd(qp, &guest->qp))
		return FILES;
	data = np_receive_file(guest->socket, &nothing, 1);
	if (data < 0)
		return FILES;
	guest->bytes = mmap(NULL, PAGES * NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, data, 0);
	close(data);
	guest->data.length = DATA;
	guest->data.pages = (uintptr_t)guest->gift.table;
	return guest->bytes == MAP_FAILED ? FILES : DONE;
}

/*
 * The file of a queue pair cannot create queue pairs, import buffers or report addresses.
 */
static int check_refused(struct guest *guest)
{
	struct nvme_peer_qp_create create = { .size = sizeof(create), .sq_entries = 2, .cq_entries = 2 };
	struct nvme_peer_buf_table table = { .size = sizeof(table) };
	struct nvme_passthru_cmd identify = { .opcode = NVME_ADMIN_IDENTIFY };
	int fd = nvmepeer_qp_fd(guest->qp);

	if (np_ioctl(fd, NVME_PEER_QP_CREATE, &create) != -ENOTTY ||
	    np_ioctl(fd, NVME_PEER_BUF_TABLE, &table) != -ENOTTY ||
	    np_ioctl(fd, NVME_IOCTL_ADMIN_CMD, &identify) != -ENOTTY)
		return TOO_MUCH;
	return DONE;
}

static uint64_t mapped(const struct guest *guest, enum nvme_peer_export what)
{
	return (uintptr_t)nvmepeer_mapping_address(guest->pages[what]);
}

static int open_queue(struct guest *guest)
{
	struct nvmepeer_geometry geometry = { .sq_entries = ENTRIES, .cq_entries = ENTRIES };
	struct nvme_peer_qp_info info;
	size_t bytes = (nvmepeer_state_bytes(&geometry) + 127) / 128 * 128;

	for (unsigned int what = 0; what < 5; what++)
		if (nvmepeer_qp_map(guest->qp, what, &guest->pages[what]))
			return QUEUE;
	guest->state = aligned_alloc(128, bytes);
	if (!guest->state || nvmepeer_qp_info(guest->qp, &info, sizeof(info)))
		return QUEUE;
	memset(guest->state, 0, bytes);
	geometry.state = (uintptr_t)guest->state;
	geometry.sq = mapped(guest, NVME_PEER_EXPORT_SQ);
	geometry.cq = mapped(guest, NVME_PEER_EXPORT_CQ);
	geometry.status = mapped(guest, NVME_PEER_EXPORT_STATUS);
	geometry.control = mapped(guest, NVME_PEER_EXPORT_CONTROL);
	if (nvmepeer_geometry_build(&guest->gift.info, &info, &guest->gift.ns,
				    NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
				    (uintptr_t)nvmepeer_mapping_base(guest->pages[NVME_PEER_EXPORT_DOORBELL]),
				    &geometry, sizeof(geometry)))
		return QUEUE;
	return nvmepeer_queue_init(&guest->queue, &geometry) ? QUEUE : DONE;
}

static int read_page(struct guest *guest, uint32_t page)
{
	uint64_t lba = (PLACE + (uint64_t)page * NP_PAGE) / NP_BLOCK;

	return nvmepeer_read(&guest->queue, &guest->data, (uint64_t)page * NP_PAGE, lba,
			     NP_PAGE / NP_BLOCK);
}

static int read_all(struct guest *guest)
{
	uint8_t wanted[NP_PAGE];

	memset(guest->bytes, 0, DATA);
	for (uint32_t page = 0; page < PAGES - 1; page++) {
		if (read_page(guest, page))
			return READ;
		np_pattern(wanted, NP_PAGE, PLACE + (uint64_t)page * NP_PAGE, SEED);
		if (memcmp(wanted, guest->bytes + page * NP_PAGE, NP_PAGE))
			return WRONG_DATA;
	}
	return DONE;
}

static int re_arm(struct guest *guest)
{
	struct pollfd file = { .fd = nvmepeer_qp_fd(guest->qp), .events = POLLPRI };
	struct nvme_peer_event events[8];
	struct nvme_peer_qp_info info;
	uint32_t generation;
	int count;

	while (poll(&file, 1, NP_TIMEOUT_MS) == 1 && file.revents == POLLPRI) {
		count = nvmepeer_qp_events(guest->qp, events, sizeof(events[0]), 8);
		if (count <= 0 || events[count - 1].type != NVME_PEER_EVENT_READY)
			continue;
		if (nvmepeer_qp_info(guest->qp, &info, sizeof(info)) ||
		    nvmepeer_qp_rearm(guest->qp, info.losses, &generation))
			break;
		nvmepeer_queue_rearm(&guest->queue, info.losses);
		return DONE;
	}
	return NOT_BACK;
}

/* Read until a reset, requested from the process outside, cancels a read. */
static int rearm_after_reset(struct guest *guest)
{
	int status, step;

	if (write(guest->socket, "r", 1) != 1)
		return FILES;
	do
		status = read_page(guest, 0);
	while (!status);
	if (status != NVMEPEER_E_LOST)
		return NOT_LOST;
	step = re_arm(guest);
	return step ? step : read_all(guest);
}

static int read_for_ever(struct guest *guest)
{
	int status = 0;

	if (write(guest->socket, "r", 1) != 1)
		return FILES;
	while (!status)
		status = read_page(guest, 0);
	return READ;
}

static int live_in(struct guest *guest, enum task task)
{
	int (*const steps[])(struct guest *) = { take_files, check_refused, open_queue, read_all };
	int step = enter_container(guest);

	if (!step)
		step = check_isolation();
	for (size_t i = 0; !step && i < ARRAY_SIZE(steps); i++)
		step = steps[i](guest);
	if (step || task == ONCE)
		return step;
	return task == OVER_A_RESET ? rearm_after_reset(guest) : read_for_ever(guest);
}

/* --- outside the container ---------------------------------------------------- */

/*
 * The first process waits for the second one, which is alone in its PID namespace and is
 * killed with it.
 */
static int enter(int socket, enum task task)
{
	struct guest guest = { .socket = socket };
	int status;
	pid_t pid;
	char go;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS) || write(socket, "u", 1) != 1 || read(socket, &go, 1) != 1 ||
	    setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return NAMESPACES;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(live_in(&guest, task));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return NAMESPACES;
	return WEXITSTATUS(status);
}

FIXTURE(container)
{
	struct np_ctrl ctrl;
	struct np_buffer buffer;
	struct gift gift;
	char before[NP_OBJECTS];
	int socket;
	pid_t pid;
};

/* A queue pair whose only file is passed to the container. */
static int give(FIXTURE_DATA(container) *self)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
	};
	int err = np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create);

	if (err)
		return err;
	err = np_send_file(self->socket, &self->gift, sizeof(self->gift), create.qp_fd);
	if (!err)
		err = np_send_file(self->socket, "", 1, self->buffer.fd);
	close(create.qp_fd);
	return err;
}

static int map_ids(pid_t pid)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	err = np_write_file(path, NOBODY_ELSE);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	return err ?: np_write_file(path, NOBODY_ELSE);
}

static int start(FIXTURE_DATA(container) *self, enum task task)
{
	int sockets[2], err;
	char ready;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	self->pid = fork();
	if (!self->pid) {
		close(sockets[0]);
		_exit(enter(sockets[1], task));
	}
	close(sockets[1]);
	self->socket = sockets[0];
	if (read(self->socket, &ready, 1) != 1)
		return -ECHILD;
	err = map_ids(self->pid);
	if (!err && write(self->socket, "g", 1) != 1)
		err = -errno;
	return err ?: give(self);
}

/* Returns the last step. */
static int finish(FIXTURE_DATA(container) *self)
{
	int status;

	if (waitpid(self->pid, &status, 0) != self->pid)
		return -errno;
	close(self->socket);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int write_pattern(const struct np_ctrl *ctrl)
{
	int disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT), err;
	uint8_t *bytes = aligned_alloc(NP_PAGE, DATA);

	if (disk < 0 || !bytes)
		return -ENODEV;
	for (uint32_t at = 0; at < DATA; at += NP_PAGE)
		np_pattern(bytes + at, NP_PAGE, PLACE + at, SEED);
	err = np_disk_write(disk, bytes, DATA, PLACE);
	free(bytes);
	close(disk);
	return err;
}

FIXTURE_SETUP(container)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, write_pattern(&self->ctrl));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	self->gift.info = self->ctrl.info;
	self->gift.ns = (struct nvmepeer_ns_info){
		.size = sizeof(self->gift.ns),
		.nsid = 1,
		.block_size = NP_BLOCK,
	};
	memcpy(self->gift.table, self->buffer.table, sizeof(self->gift.table));
}

/* The buffer can be released once the queue pair is gone; no process here closes it. */
static int wait_for_end(const struct np_ctrl *ctrl, uint32_t handle)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int err;

	do {
		np_sleep_ms(2);
		err = np_release(ctrl->fd, handle);
	} while (err == -EBUSY && np_now_ms() < end);
	return err;
}

FIXTURE_TEARDOWN(container)
{
	EXPECT_EQ(0, wait_for_end(&self->ctrl, self->buffer.handle));
	np_buffer_close(&self->buffer);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(container, two_files_suffice_to_read)
{
	ASSERT_EQ(0, start(self, ONCE));
	EXPECT_EQ(DONE, finish(self));
}

TEST_F(container, container_rearms_after_reset)
{
	char asked;

	ASSERT_EQ(0, start(self, OVER_A_RESET));
	ASSERT_EQ(1, read(self->socket, &asked, 1));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(DONE, finish(self));
}

TEST_F(container, killed_container_releases_all)
{
	char asked;

	ASSERT_EQ(0, start(self, FOR_EVER));
	ASSERT_EQ(1, read(self->socket, &asked, 1));
	ASSERT_EQ(0, kill(self->pid, SIGKILL));
	EXPECT_EQ(-SIGKILL, finish(self));
}

TEST_HARNESS_MAIN
