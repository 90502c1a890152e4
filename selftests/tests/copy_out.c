// SPDX-License-Identifier: GPL-2.0-only
/*
 * An ioctl copies its result to memory that does not accept it yet, as a page of a slow
 * file system does. The object that the ioctl made must not be reachable before the
 * result is copied out, and no other call may block meanwhile.
 *
 * The page of the result is write-protected with userfaultfd, so the ioctl reads its
 * structure and stops at copy_to_user().
 *
 * kernels: 6.1 6.12 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off pt
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define FIRST_HANDLE	1U

/* SMART / health information; base specification 5.1.12.1.3. */
#define HEALTH_LENGTH	512U

/**
 * struct call - an ioctl in a thread of its own
 * @thread: the thread
 * @fd: controller file
 * @number: ioctl number
 * @argument: its structure
 * @result: return value, 0 or -errno
 */
struct call {
	pthread_t thread;
	int fd;
	unsigned long number;
	void *argument;
	int result;
};

FIXTURE(copy_out)
{
	struct np_ctrl ctrl;
	int dmabuf;
	int faults;
	void *page;
	struct call call;
};

static int protect(int faults, void *page, bool on)
{
	struct uffdio_writeprotect change = {
		.range = { .start = (uintptr_t)page, .len = NP_PAGE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(faults, UFFDIO_WRITEPROTECT, &change) ? -errno : 0;
}

static int watch(int faults, void *page)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)page, .len = NP_PAGE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	if (ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range))
		return -errno;
	return 0;
}

FIXTURE_SETUP(copy_out)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->dmabuf = np_test_export(4, 0);
	ASSERT_LE(0, self->dmabuf);
	self->page = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	self->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (self->faults < 0) {
		ASSERT_EQ(ENOSYS, errno);
		return;
	}
	ASSERT_EQ(0, watch(self->faults, self->page));
}

FIXTURE_TEARDOWN(copy_out)
{
	if (self->faults >= 0)
		close(self->faults);
	munmap(self->page, NP_PAGE);
	close(self->dmabuf);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_bind_all());
}

static void *make_call(void *argument)
{
	struct call *call = argument;

	call->result = np_ioctl(call->fd, call->number, call->argument);
	return NULL;
}

/* Returns once the ioctl is about to write to the page. */
static int call_until_copy_out(struct call *call, int faults, void *page)
{
	struct pollfd poll_faults = { .fd = faults, .events = POLLIN };
	struct uffd_msg fault;
	int ret = protect(faults, page, true);

	if (!ret)
		ret = -pthread_create(&call->thread, NULL, make_call, call);
	if (ret)
		return ret;
	if (poll(&poll_faults, 1, NP_TIMEOUT_MS) != 1)
		return -ETIMEDOUT;
	return read(faults, &fault, sizeof(fault)) == sizeof(fault) ? 0 : -errno;
}

static int let_it_answer(struct call *call, int faults, void *page)
{
	int ret = protect(faults, page, false);

	pthread_join(call->thread, NULL);
	return ret ? ret : call->result;
}

#define NEEDS_USERFAULTFD							\
	do {									\
		if (self->faults < 0)						\
			SKIP(return, "a kernel without userfaultfd");		\
	} while (0)

static atomic_bool guessing;

static void *guess_handles(void *fd)
{
	uint32_t handle;

	while (atomic_load(&guessing))
		for (handle = FIRST_HANDLE; handle < FIRST_HANDLE + 4; handle++)
			np_release(*(int *)fd, handle);
	return NULL;
}

/* Without userfaultfd the race is hit by chance only, and only KASAN reports it. */
TEST_F_TIMEOUT(copy_out, release_of_guessed_handle_races_with_import, 60)
{
	struct nvme_peer_buf_import import;
	pthread_t guesser;
	int i, ret;

	atomic_store(&guessing, true);
	ASSERT_EQ(0, pthread_create(&guesser, NULL, guess_handles, &self->ctrl.fd));
	for (i = 0; i < 2000; i++) {
		ret = np_import(self->ctrl.fd, self->dmabuf, 0, &import);
		if (ret)
			break;
		ret = np_release(self->ctrl.fd, import.handle);
		if (ret && ret != -ENOENT)
			break;
	}
	atomic_store(&guessing, false);
	pthread_join(guesser, NULL);
	EXPECT_EQ(2000, i) {
		TH_LOG("call %d: %d", i, ret);
	}
}

TEST_F(copy_out, buffer_unreachable_until_handle_copied_out)
{
	struct nvme_peer_buf_import *import = self->page;

	NEEDS_USERFAULTFD;
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.dmabuf_fd = self->dmabuf,
	};
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_IMPORT,
				    .argument = import };
	ASSERT_EQ(0, call_until_copy_out(&self->call, self->faults, self->page));
	EXPECT_EQ(-ENOENT, np_release(self->ctrl.fd, FIRST_HANDLE));
	EXPECT_EQ(0, let_it_answer(&self->call, self->faults, self->page));
	EXPECT_EQ(FIRST_HANDLE, import->handle);
	EXPECT_EQ(0, np_release(self->ctrl.fd, FIRST_HANDLE));
}

struct unbinding {
	pthread_t thread;
	const char *address;
	int done[2];
};

static void *unbind(void *argument)
{
	struct unbinding *unbinding = argument;

	np_unbind(unbinding->address);
	return write(unbinding->done[1], "", 1) == 1 ? NULL : argument;
}

/* Unbind while the call is blocked on its page. */
static void unbind_while_blocked(struct __test_metadata *_metadata, struct call *call, int faults,
				 void *page, const char *address)
{
	struct unbinding unbinding = { .address = address };
	struct pollfd done;
	struct call later = *call;
	struct nvme_peer_info info = { .size = sizeof(info) };

	ASSERT_EQ(0, pipe(unbinding.done));
	ASSERT_EQ(0, call_until_copy_out(call, faults, page));
	ASSERT_EQ(0, pthread_create(&unbinding.thread, NULL, unbind, &unbinding));
	done = (struct pollfd){ .fd = unbinding.done[0], .events = POLLIN };
	EXPECT_EQ(1, poll(&done, 1, NP_TIMEOUT_MS)) {
		TH_LOG("unbind blocks on a page of user memory");
	}
	later.number = NVME_PEER_INFO;
	later.argument = &info;
	let_it_answer(call, faults, page);
	make_call(&later);
	EXPECT_EQ(-ESHUTDOWN, later.result);
	pthread_join(unbinding.thread, NULL);
	close(unbinding.done[0]);
	close(unbinding.done[1]);
}

TEST_F_TIMEOUT(copy_out, unbind_while_import_faults_on_copy_out, 60)
{
	struct nvme_peer_buf_import *import = self->page;

	NEEDS_USERFAULTFD;
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.dmabuf_fd = self->dmabuf,
	};
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_IMPORT,
				    .argument = import };
	unbind_while_blocked(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import->handle));
}

TEST_F_TIMEOUT(copy_out, unbind_while_qp_create_faults_on_copy_out, 60)
{
	struct nvme_peer_qp_create *create = self->page;

	NEEDS_USERFAULTFD;
	*create = (struct nvme_peer_qp_create){
		.size = sizeof(*create),
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = 8,
		.cq_entries = 8,
	};
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_QP_CREATE,
				    .argument = create };
	unbind_while_blocked(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, close(create->qp_fd));
}

/*
 * Here the ioctl blocks on the table that the structure points to, not on the structure;
 * its handle is released meanwhile.
 */
TEST_F_TIMEOUT(copy_out, unbind_while_buf_table_faults_on_copy_out, 60)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.count = 4,
		.ranges = (uintptr_t)self->page,
	};

	NEEDS_USERFAULTFD;
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &import));
	table.handle = import.handle;
	*(volatile uint64_t *)self->page = 0;
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_TABLE,
				    .argument = &table };
	unbind_while_blocked(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/* Data at an unaligned address is bounced and copied back after the command. */
TEST_F_TIMEOUT(copy_out, reset_while_passthrough_faults_on_copy_out, 60)
{
	struct nvme_admin_cmd health = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = UINT32_MAX,
		.addr = (uintptr_t)self->page + 1,
		.data_len = HEALTH_LENGTH,
		.cdw10 = NVME_LOG_HEALTH | (HEALTH_LENGTH / 4 - 1) << 16,
	};

	NEEDS_USERFAULTFD;
	*(volatile uint64_t *)self->page = 0;
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_IOCTL_ADMIN_CMD,
				    .argument = &health };
	ASSERT_EQ(0, call_until_copy_out(&self->call, self->faults, self->page));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, let_it_answer(&self->call, self->faults, self->page));
}

TEST_HARNESS_MAIN
