// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPU memory as a buffer: imported if the controller has a route to it, refused
 * otherwise, and refused if the exporter maps host memory instead.
 *
 * topology: root switch switch-acs unknown-bridge
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define BYTES	(64U << 10)
#define NOBODY	65534U

FIXTURE(memory)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_route route;
	struct softgpu_alloc alloc;
	int gpu;
};

FIXTURE_SETUP(memory)
{
	char address[16];

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->alloc.fd = -1;
	self->gpu = np_gpu_open();
	if (np_function_address("softgpu", address) || self->gpu < 0)
		SKIP(return, "no software GPU in this guest");
	self->route = (struct nvme_peer_route){
		.size = sizeof(self->route),
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
		.pci_address = np_parse_address(address),
	};
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &self->route));
}

FIXTURE_TEARDOWN(memory)
{
	if (self->alloc.fd >= 0)
		close(self->alloc.fd);
	if (self->gpu >= 0)
		close(self->gpu);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/*
 * Linux does not allow peer-to-peer through an unknown host bridge, and neither does the
 * driver.
 */
TEST_F(memory, import_follows_route)
{
	struct nvme_peer_buf_import import;
	int ret;

	ASSERT_EQ(0, np_gpu_alloc(self->gpu, BYTES, 0, &self->alloc));
	ret = np_import(self->ctrl.fd, self->alloc.fd, NVME_PEER_BUF_REQUIRE_DEVICE, &import);
	if (self->route.data.verdict == NVME_PEER_ROUTE_NONE) {
		EXPECT_EQ(-EXDEV, ret);
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(BYTES, import.length);
	EXPECT_TRUE(np_same_address(self->route.pci_address, import.pci_address));
	EXPECT_NE(NVME_PEER_ROUTE_NONE, import.verdict);
	EXPECT_NE(NVME_PEER_ROUTE_SYSTEM, import.verdict);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/*
 * amdgpu does this where it cannot do peer-to-peer: the mapping succeeds, with host
 * memory.
 */
TEST_F(memory, host_memory_fallback_is_detected)
{
	struct nvme_peer_buf_import import;

	ASSERT_EQ(0, np_gpu_alloc(self->gpu, BYTES, SOFTGPU_ALLOC_SYSTEM, &self->alloc));
	EXPECT_EQ(-ENXIO, np_import(self->ctrl.fd, self->alloc.fd, NVME_PEER_BUF_REQUIRE_DEVICE,
				    &import));
	/* Without the flag the import succeeds and reports host memory. */
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->alloc.fd, 0, &import));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, import.verdict);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/* A user who may lock no memory; in a process of its own. */
static int import_without_limit(int ctrl_fd, int dmabuf)
{
	struct rlimit none = { 0, 0 };
	struct nvme_peer_buf_import import;

	if (setrlimit(RLIMIT_MEMLOCK, &none) || setresuid(NOBODY, NOBODY, NOBODY))
		return EXIT_FAILURE;
	return np_import(ctrl_fd, dmabuf, 0, &import) || np_release(ctrl_fd, import.handle);
}

/* The GPU's driver limits the use of its memory. */
TEST_F(memory, device_memory_is_not_locked_memory)
{
	int status = -1;
	pid_t child;

	if (self->route.data.verdict == NVME_PEER_ROUTE_NONE)
		SKIP(return, "no route to the GPU");
	ASSERT_EQ(0, np_gpu_alloc(self->gpu, BYTES, 0, &self->alloc));
	child = fork();
	if (!child)
		_exit(import_without_limit(self->ctrl.fd, self->alloc.fd));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(memory, ring_across_segments_is_refused)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = 1024,
		.cq_entries = 1024,
	};
	struct nvme_peer_buf_import import;

	if (self->route.data.verdict == NVME_PEER_ROUTE_NONE)
		SKIP(return, "no route to the GPU");
	ASSERT_EQ(0, np_gpu_alloc(self->gpu, BYTES, SOFTGPU_ALLOC_SCATTERED, &self->alloc));
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->alloc.fd, 0, &import));
	if (import.segments > 1 && self->ctrl.info.contiguous_rings) {
		create.sq_handle = import.handle;
		EXPECT_EQ(-EMSGSIZE, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	}
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

TEST_F(memory, release_refused_while_ring_in_use)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = 64,
		.cq_entries = 64,
	};
	struct nvme_peer_qp_info info;

	if (self->route.data.verdict == NVME_PEER_ROUTE_NONE)
		SKIP(return, "no route to the GPU");
	ASSERT_EQ(0, np_gpu_alloc(self->gpu, BYTES, 0, &self->alloc));
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->alloc.fd, 0, &import));
	create.cq_handle = import.handle;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, import.handle));
	ASSERT_EQ(0, np_qp_info(create.qp_fd, &info));
	EXPECT_FALSE(info.sq_pci_address.valid);
	EXPECT_TRUE(np_same_address(self->route.pci_address, info.cq_pci_address));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

TEST_HARNESS_MAIN
