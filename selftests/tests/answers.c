// SPDX-License-Identifier: GPL-2.0-only
/*
 * An ioctl answers into memory that does not take the answer for now, as a
 * page of a slow file system does: what it made is not reachable before its
 * caller knows of it, and nobody else waits.
 *
 * The answer's page is write-protected with userfaultfd, so the ioctl can read
 * its structure and stops where it writes it.
 *
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

#define ADMIN_GET_LOG_PAGE	0x02
/* SMART / health information; base specification 5.1.12.1.3. */
#define LOG_HEALTH	0x02U
#define HEALTH_LENGTH	512U

/**
 * struct call - an ioctl on a thread of its own
 * @thread: that thread
 * @fd: the controller node
 * @number: the ioctl
 * @argument: its structure
 * @result: what came of it
 */
struct call {
	pthread_t thread;
	int fd;
	unsigned long number;
	void *argument;
	int result;
};

FIXTURE(answers)
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

FIXTURE_SETUP(answers)
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

FIXTURE_TEARDOWN(answers)
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

/* On return it is about to write into the page. */
static int call_until_answer(struct call *call, int faults, void *page)
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

/* Without userfaultfd it takes luck, and KASAN to see it. */
TEST_F_TIMEOUT(answers, guessed_handles_are_released_while_they_are_made, 60)
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

TEST_F(answers, a_buffer_cannot_be_released_before_its_handle_is_known)
{
	struct nvme_peer_buf_import *import = self->page;

	NEEDS_USERFAULTFD;
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.dmabuf_fd = self->dmabuf,
	};
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_IMPORT,
				    .argument = import };
	ASSERT_EQ(0, call_until_answer(&self->call, self->faults, self->page));
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

/* Unbinds while the call waits for its page. */
static void unbind_meanwhile(struct __test_metadata *_metadata, struct call *call, int faults,
			     void *page, const char *address)
{
	struct unbinding unbinding = { .address = address };
	struct pollfd done;
	struct call later = *call;
	struct nvme_peer_info info = { .size = sizeof(info) };

	ASSERT_EQ(0, pipe(unbinding.done));
	ASSERT_EQ(0, call_until_answer(call, faults, page));
	ASSERT_EQ(0, pthread_create(&unbinding.thread, NULL, unbind, &unbinding));
	done = (struct pollfd){ .fd = unbinding.done[0], .events = POLLIN };
	EXPECT_EQ(1, poll(&done, 1, NP_TIMEOUT_MS)) {
		TH_LOG("unbinding waits for a page of user memory");
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

TEST_F_TIMEOUT(answers, unbinding_does_not_wait_for_an_import_to_answer, 60)
{
	struct nvme_peer_buf_import *import = self->page;

	NEEDS_USERFAULTFD;
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.dmabuf_fd = self->dmabuf,
	};
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_IMPORT,
				    .argument = import };
	unbind_meanwhile(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import->handle));
}

TEST_F_TIMEOUT(answers, unbinding_does_not_wait_for_a_queue_pair_to_answer, 60)
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
	unbind_meanwhile(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, close(create->qp_fd));
}

/* Not the structure but the table that it points to; its handle goes meanwhile. */
TEST_F_TIMEOUT(answers, unbinding_does_not_wait_for_a_table_of_addresses, 60)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.count = 4,
		.addresses = (uintptr_t)self->page,
	};

	NEEDS_USERFAULTFD;
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &import));
	table.handle = import.handle;
	*(volatile uint64_t *)self->page = 0;
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_PEER_BUF_TABLE,
				    .argument = &table };
	unbind_meanwhile(_metadata, &self->call, self->faults, self->page, self->ctrl.address);
	EXPECT_EQ(0, self->call.result);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/* Data at an odd address goes through a copy, which is copied back after the command. */
TEST_F_TIMEOUT(answers, a_reset_does_not_wait_for_data_to_be_copied_back, 60)
{
	struct nvme_admin_cmd health = {
		.opcode = ADMIN_GET_LOG_PAGE,
		.nsid = UINT32_MAX,
		.addr = (uintptr_t)self->page + 1,
		.data_len = HEALTH_LENGTH,
		.cdw10 = LOG_HEALTH | (HEALTH_LENGTH / 4 - 1) << 16,
	};

	NEEDS_USERFAULTFD;
	*(volatile uint64_t *)self->page = 0;
	self->call = (struct call){ .fd = self->ctrl.fd, .number = NVME_IOCTL_ADMIN_CMD,
				    .argument = &health };
	ASSERT_EQ(0, call_until_answer(&self->call, self->faults, self->page));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, let_it_answer(&self->call, self->faults, self->page));
}

TEST_HARNESS_MAIN
