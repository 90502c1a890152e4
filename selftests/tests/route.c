// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the controller reaches other functions' memory: the verdict and its
 * reason, in each topology, and what Linux's own peer-to-peer code thinks; and
 * in whose domain the addresses are that it hands out.
 *
 * topology: root switch switch-acs stranger
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define NOBODY	0xffffffffU
#define ALLOW_HOST_BRIDGE	"/sys/module/nvme_peer/parameters/allow_host_bridge"

FIXTURE(route)
{
	struct np_ctrl ctrl;
	char gpu[16];
	char before[NP_OBJECTS];
	int test;
};

FIXTURE_SETUP(route)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->test);
	if (np_place("softgpu", self->gpu))
		SKIP(return, "no stand-in GPU in this guest");
}

FIXTURE_TEARDOWN(route)
{
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, 2000));
	close(self->test);
	np_ctrl_close(&self->ctrl);
}

static int route_to(int ctrl_fd, const char *address, struct nvme_peer_route *route)
{
	*route = (struct nvme_peer_route){
		.size = sizeof(*route),
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
		.dmabuf_fd = -1,
		.pci_address = np_parse_address(address),
	};
	return np_ioctl(ctrl_fd, NVME_PEER_ROUTE, route);
}

static int route_of(int ctrl_fd, int dmabuf, struct nvme_peer_route *route)
{
	*route = (struct nvme_peer_route){ .size = sizeof(*route), .dmabuf_fd = dmabuf };
	return np_ioctl(ctrl_fd, NVME_PEER_ROUTE, route);
}

TEST_F(route, to_the_gpu_is_what_the_topology_gives)
{
	struct nvme_peer_route route;

	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(np_parse_address(self->gpu), route.pci_address);
	if (np_topology_is("switch")) {
		EXPECT_EQ(NVME_PEER_ROUTE_BUS_ADDR, route.verdict);
		EXPECT_EQ(NVME_PEER_REASON_COMMON_SWITCH, route.reason);
		EXPECT_EQ(NOBODY, route.blocker);
	} else if (np_topology_is("stranger")) {
		EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.verdict);
		EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, route.reason);
		EXPECT_NE(NOBODY, route.blocker);
	} else {
		EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, route.verdict);
		EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_KNOWN, route.reason);
	}
}

TEST_F(route, an_administrator_may_vouch_for_a_host_bridge)
{
	struct nvme_peer_route route;
	int ret;

	if (!np_topology_is("stranger"))
		SKIP(return, "the host bridge is known here");
	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "1"));
	ret = route_to(self->ctrl.fd, self->gpu, &route);
	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "0"));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, route.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, route.reason);
}

/* Debian's 6.1 and 6.12 have no opinion; where Linux has one, it is ours. */
TEST_F(route, agrees_with_linux)
{
	struct nvmep_test_distance distance = {
		.provider = np_parse_address(self->gpu),
		.client = np_parse_address(self->ctrl.address),
	};
	struct nvme_peer_route route;
	int ret = np_ioctl(self->test, NVMEP_TEST_DISTANCE, &distance);

	if (ret == -EOPNOTSUPP)
		SKIP(return, "kernel without PCI_P2PDMA");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(distance.distance >= 0, route.verdict != NVME_PEER_ROUTE_NONE) {
		TH_LOG("distance %d, verdict %u", distance.distance, route.verdict);
	}
}

TEST_F(route, to_itself)
{
	struct nvme_peer_route route;

	ASSERT_EQ(0, route_to(self->ctrl.fd, self->ctrl.address, &route));
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, route.reason);
}

TEST_F(route, to_host_memory)
{
	struct nvme_peer_route route;
	int dmabuf = np_test_export(4, 0);

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, route_of(self->ctrl.fd, dmabuf, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, route.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_MEMORY, route.reason);
	EXPECT_EQ(NOBODY, route.pci_address);
	close(dmabuf);
}

TEST_F(route, wrong_calls)
{
	struct nvme_peer_route route;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(-ENODEV, route_to(self->ctrl.fd, "0000:fe:1f.7", &route));
	EXPECT_EQ(-EBADF, route_of(self->ctrl.fd, -1, &route));
	EXPECT_EQ(-EINVAL, route_of(self->ctrl.fd, file, &route));
	EXPECT_EQ(-EINVAL, route_of(self->ctrl.fd, self->ctrl.fd, &route));
	route.flags = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
	close(file);
}

/* Memory of a foreign exporter that is not device memory, though wanted so. */
TEST_F(route, host_memory_is_refused_where_device_memory_is_required)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = 4 * NP_PAGE };
	struct nvme_peer_buf_import import;
	int memory, dmabuf, udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	dmabuf = np_test_export(4, 0);
	ASSERT_LE(0, dmabuf);
	EXPECT_EQ(-ENXIO, np_import(self->ctrl.fd, dmabuf, NVME_PEER_BUF_REQUIRE_DEVICE,
				    &import));
	close(dmabuf);
	if (udmabuf < 0)
		SKIP(return, "kernel without udmabuf");
	memory = memfd_create("host", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(memory, 4 * NP_PAGE));
	ASSERT_EQ(0, fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK));
	create.memfd = (uint32_t)memory;
	dmabuf = ioctl(udmabuf, UDMABUF_CREATE, &create);
	ASSERT_LE(0, dmabuf);
	EXPECT_EQ(-ENXIO, np_import(self->ctrl.fd, dmabuf, NVME_PEER_BUF_REQUIRE_DEVICE,
				    &import));
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, import.verdict);
	EXPECT_EQ(4 * NP_PAGE, import.length);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
	close(memory);
	close(udmabuf);
}

/* The table's addresses are of the controller's own domain, and no other. */
TEST_F(route, physical_addresses_show_only_where_they_are_dma_addresses)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct np_buffer buffer;
	uint64_t entry = 0;
	off_t where;

	ASSERT_LE(0, pagemap);
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, 4, 0));
	buffer.bytes[0] = 1;
	where = (off_t)((uintptr_t)buffer.bytes / NP_PAGE * sizeof(entry));
	ASSERT_EQ(sizeof(entry), pread(pagemap, &entry, sizeof(entry), where));
	/* Bits 54 to 0 are the page frame, for those who may know. */
	entry = (entry & ((1ULL << 55) - 1)) * NP_PAGE;
	ASSERT_NE(0, entry);
	EXPECT_EQ(self->ctrl.info.domain == NVME_PEER_DOMAIN_PHYSICAL, buffer.table[0] == entry);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
	close(pagemap);
}

TEST_HARNESS_MAIN
