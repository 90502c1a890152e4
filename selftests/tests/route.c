// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the controller reaches other functions' memory, and they its doorbells: the
 * verdict, its reason and what is in the way, in each topology, and what Linux's own
 * peer-to-peer code thinks; and in whose domain the addresses are that it hands out.
 *
 * topology: root switch switch-acs stranger
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpupeer.h"
#include "kselftest_harness.h"

#define ALLOW_HOST_BRIDGE	"/sys/module/nvme_peer/parameters/allow_host_bridge"
#define DEVICES			"/sys/bus/pci/devices"

/* ACS control bits (PCI Express base specification 7.7.11.3). */
#define REQUEST_REDIRECT	0x04
#define COMPLETION_REDIRECT	0x08

/* What nvmep_test puts into a PCI domain that no firmware knows. */
#define FAR_AWAY	"10000:00:00.0"
#define INTEL		0x8086
#define NVIDIA		0x10de
#define GOOGLE		0x1ae0

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
	np_write_file(ALLOW_HOST_BRIDGE, "0");
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

static bool is_blocker(const struct nvme_peer_path *path, uint32_t index, const char *address,
		       uint32_t acs)
{
	return path->blocker_count > index && path->blockers[index].acs == acs &&
	       np_same_address(path->blockers[index].address, np_parse_address(address));
}

/* The function @up bridges above @address. */
static void port_above(const char *address, unsigned int up, char port[16])
{
	char link[64], path[512], *part;

	snprintf(link, sizeof(link), DEVICES "/%s", address);
	if (!realpath(link, path))
		path[0] = '\0';
	for (part = strrchr(path, '/'); part && up; up--) {
		*part = '\0';
		part = strrchr(path, '/');
	}
	snprintf(port, 16, "%.15s", part ? part + 1 : "");
}

static int pretend(int test, unsigned long call, const char *address, uint16_t vendor,
		   uint16_t device, uint16_t acs)
{
	struct nvmep_test_pretend what = {
		.pci_address = np_parse_address(address),
		.vendor = vendor,
		.device = device,
		.acs = acs,
	};

	return np_ioctl(test, call, &what);
}

/* What Linux says of the way from @client to @provider: 1, 0, or an error. */
static int linux_reaches(int test, const char *provider, const char *client)
{
	struct nvmep_test_distance distance = {
		.provider = np_parse_address(provider),
		.client = np_parse_address(client),
	};

	return np_ioctl(test, NVMEP_TEST_DISTANCE, &distance) ?: distance.distance >= 0;
}

TEST_F(route, to_the_gpu_is_what_the_topology_gives)
{
	struct nvme_peer_route route;
	const struct nvme_peer_path *ways[] = { &route.data, &route.doorbell };
	char root[2][16];
	size_t i;

	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_TRUE(np_same_address(np_parse_address(self->gpu), route.pci_address));
	port_above(self->ctrl.address, 1, root[0]);
	port_above(self->gpu, 3, root[1]);
	for (i = 0; i < 2; i++) {
		if (np_topology_is("switch")) {
			EXPECT_EQ(NVME_PEER_ROUTE_BUS_ADDR, ways[i]->verdict);
			EXPECT_EQ(NVME_PEER_REASON_COMMON_SWITCH, ways[i]->reason);
			EXPECT_EQ(0, ways[i]->blocker_count);
		} else if (np_topology_is("stranger")) {
			EXPECT_EQ(NVME_PEER_ROUTE_NONE, ways[i]->verdict);
			EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, ways[i]->reason);
			EXPECT_EQ(2, ways[i]->blocker_count);
			EXPECT_TRUE(is_blocker(ways[i], 0, root[i], 0));
			EXPECT_TRUE(is_blocker(ways[i], 1, root[!i], 0));
		} else {
			EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, ways[i]->verdict);
			EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_KNOWN, ways[i]->reason);
			EXPECT_EQ(0, ways[i]->blocker_count);
		}
	}
}

TEST_F(route, an_administrator_may_vouch_for_a_host_bridge)
{
	struct nvme_peer_route route;
	char text[16];

	if (!np_topology_is("stranger"))
		SKIP(return, "the host bridge is known here");
	EXPECT_EQ(-EINVAL, np_write_file(ALLOW_HOST_BRIDGE, "reads"));
	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "1"));
	ASSERT_EQ(0, np_read_file(ALLOW_HOST_BRIDGE, text, sizeof(text)));
	EXPECT_STREQ("Y\n", text);
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, route.data.reason);
	EXPECT_EQ(0, route.data.blocker_count);
}

static int attach(int test, int dmabuf, const char *function)
{
	struct nvmep_test_attach attach = {
		.dmabuf_fd = dmabuf,
		.pci_address = np_parse_address(function),
	};

	return np_ioctl(test, NVMEP_TEST_ATTACH, &attach);
}

/* Can the GPU have the doorbells of a queue pair of this controller? */
static int lend_doorbells(int test, int ctrl_fd, const char *gpu)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export doorbell;
	int ret = np_qp_create(ctrl_fd, 16, &create);

	if (ret)
		return ret;
	ret = np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &doorbell);
	if (!ret) {
		ret = attach(test, doorbell.fd, gpu) ?: np_ioctl(test, NVMEP_TEST_DETACH, NULL);
		close(doorbell.fd);
	}
	close(create.qp_fd);
	return ret;
}

/* Doorbells are only written; memory is read by the controller, too. */
TEST_F(route, a_host_bridge_may_forward_writes_only)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_route route;
	struct softgpu_alloc alloc;
	char text[16];
	int gpu;

	if (!np_topology_is("stranger"))
		SKIP(return, "the host bridge is known here");
	gpu = np_gpu_open();
	ASSERT_LE(0, gpu);
	ASSERT_EQ(0, np_gpu_alloc(gpu, NP_PAGE, 0, &alloc));
	EXPECT_EQ(-EXDEV, lend_doorbells(self->test, self->ctrl.fd, self->gpu));

	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "writes"));
	ASSERT_EQ(0, np_read_file(ALLOW_HOST_BRIDGE, text, sizeof(text)));
	EXPECT_STREQ("writes\n", text);
	ASSERT_EQ(0, route_of(self->ctrl.fd, alloc.fd, &route));
	EXPECT_TRUE(np_same_address(np_parse_address(self->gpu), route.pci_address));
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE_WRITES, route.data.verdict);
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE_WRITES, route.doorbell.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, route.doorbell.reason);
	EXPECT_EQ(-EXDEV, np_import(self->ctrl.fd, alloc.fd, 0, &import));
	import = (struct nvme_peer_buf_import){
		.size = sizeof(import),
		.dmabuf_fd = alloc.fd,
		.access = NVME_PEER_ACCESS_WRITE,
	};
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_IMPORT, &import));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	EXPECT_EQ(0, lend_doorbells(self->test, self->ctrl.fd, self->gpu));

	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "1"));
	ASSERT_EQ(0, np_import(self->ctrl.fd, alloc.fd, 0, &import));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(alloc.fd);
	close(gpu);
}

/*
 * A port of the switch that joins the two sends requests up to a host bridge that only
 * the administrator vouches for.  Linux's own code does not map for such a way.
 */
TEST_F(route, a_host_bridge_that_is_allowed_serves_behind_acs_too)
{
	struct nvme_peer_route route;
	char port[16], root[16];
	struct np_ctrl other;

	if (!np_topology_is("stranger"))
		SKIP(return, "the host bridge is known here");
	ASSERT_EQ(0, np_ctrl_open(&other, "np1"));
	ASSERT_EQ(0, route_to(other.fd, self->gpu, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_BUS_ADDR, route.data.verdict);
	EXPECT_EQ(NVME_PEER_ROUTE_BUS_ADDR, route.doorbell.verdict);

	port_above(self->gpu, 1, port);
	port_above(self->gpu, 3, root);
	ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_ACS, port, 0, 0, REQUEST_REDIRECT));
	EXPECT_NE(1, linux_reaches(self->test, other.address, self->gpu));
	ASSERT_EQ(0, route_to(other.fd, self->gpu, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.doorbell.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, route.doorbell.reason);
	EXPECT_EQ(2, route.doorbell.blocker_count);
	EXPECT_TRUE(is_blocker(&route.doorbell, 0, port, REQUEST_REDIRECT));
	EXPECT_TRUE(is_blocker(&route.doorbell, 1, root, 0));
	EXPECT_EQ(-EXDEV, lend_doorbells(self->test, other.fd, self->gpu));

	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "1"));
	ASSERT_EQ(0, route_to(other.fd, self->gpu, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, route.doorbell.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, route.doorbell.reason);
	EXPECT_EQ(1, route.doorbell.blocker_count);
	EXPECT_TRUE(is_blocker(&route.doorbell, 0, port, REQUEST_REDIRECT));
	EXPECT_EQ(0, lend_doorbells(self->test, other.fd, self->gpu));
	np_ctrl_close(&other);
}

/* From the sender up, then from the receiver up; more than there is room for. */
TEST_F(route, every_port_in_the_way_is_told)
{
	char ports[6][16];
	struct nvme_peer_route route;
	struct np_ctrl other;
	uint32_t i;

	if (!np_topology_is("stranger"))
		SKIP(return, "no path of many ports here");
	ASSERT_EQ(0, np_ctrl_open(&other, "np1"));
	for (i = 0; i < 6; i++)
		port_above(i < 4 ? other.address : self->gpu, i < 4 ? i : i - 4, ports[i]);
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_ACS, ports[i], 0, 0,
				     COMPLETION_REDIRECT)) {
			TH_LOG("port %u, %s", i, ports[i]);
		}
	}
	ASSERT_EQ(0, route_to(other.fd, self->gpu, &route));
	for (i = 0; i < 6; i++) {
		EXPECT_TRUE(is_blocker(&route.data, i, ports[i], COMPLETION_REDIRECT));
		EXPECT_TRUE(is_blocker(&route.doorbell, i, ports[(i + 4) % 6],
				       COMPLETION_REDIRECT));
	}
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_ROUTE_BLOCKERS + 1, route.data.blocker_count);
	EXPECT_EQ(NVME_PEER_ROUTE_BLOCKERS + 1, route.doorbell.blocker_count);
	np_ctrl_close(&other);
}

/* Debian's 6.1 and 6.12 have no opinion; where Linux has one, it is ours. */
TEST_F(route, agrees_with_linux)
{
	struct nvme_peer_route route;
	int ret = linux_reaches(self->test, self->gpu, self->ctrl.address);

	if (ret == -EOPNOTSUPP)
		SKIP(return, "kernel without PCI_P2PDMA");
	ASSERT_LE(0, ret);
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(ret, route.data.verdict != NVME_PEER_ROUTE_NONE) {
		TH_LOG("Linux %d, verdict %u", ret, route.data.verdict);
	}
}

/* Both say the same of a host bridge with these IDs; @known counts a yes. */
static bool same_opinion(FIXTURE_DATA(route) *self, const char *peer, uint16_t vendor,
			 uint16_t device, unsigned int *known)
{
	struct nvme_peer_route route;
	int theirs;

	if (pretend(self->test, NVMEP_TEST_RENAME, "0000:00:00.0", vendor, device, 0) ||
	    (strcmp(peer, self->gpu) &&
	     pretend(self->test, NVMEP_TEST_RENAME, peer, vendor, device, 0)) ||
	    route_to(self->ctrl.fd, peer, &route))
		return false;
	theirs = linux_reaches(self->test, peer, self->ctrl.address);
	*known += theirs > 0;
	return theirs == (route.data.verdict != NVME_PEER_ROUTE_NONE);
}

/* Linux's list of host bridges and ours, by what they say to IDs and their neighbours. */
TEST_F(route, knows_the_host_bridges_that_linux_knows)
{
	static const struct {
		uint16_t vendor, first;
	} cases[] = {
		{ INTEL, 0x0990 }, { INTEL, 0x0b10 }, { INTEL, 0x0cf0 }, { INTEL, 0x11f0 },
		{ INTEL, 0x1210 }, { INTEL, 0x2010 }, { INTEL, 0x2030 }, { INTEL, 0x2ef0 },
		{ INTEL, 0x3bf0 }, { INTEL, 0x4930 }, { NVIDIA, 0x2f80 }, { GOOGLE, 0x1200 },
		{ 0x1234, 0x0990 },
	};
	unsigned int i, known = 0;
	uint16_t device;

	if (!np_topology_is("stranger"))
		SKIP(return, "the processor vouches here");
	if (linux_reaches(self->test, self->gpu, self->ctrl.address) == -EOPNOTSUPP)
		SKIP(return, "kernel without PCI_P2PDMA");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (device = 0; device < 32; device++) {
			EXPECT_TRUE(same_opinion(self, self->gpu, cases[i].vendor,
						 cases[i].first + device, &known)) {
				TH_LOG("host bridge %04x:%04x", cases[i].vendor,
				       cases[i].first + device);
			}
		}
	}
	/* Google's count all. */
	EXPECT_LT(32 + 20, known);
}

/* One that is known forwards to another one, or does not; its first port stands for it. */
TEST_F(route, knows_what_goes_from_one_host_bridge_to_another)
{
	static const struct {
		const char *peer;
		uint16_t device;
		bool known;
	} cases[] = {
		{ FAR_AWAY, 0x3c00, false }, { FAR_AWAY, 0x09a2, true },
		{ "10000:00:01.0", 0x2031, true }, { "10000:00:01.0", 0x3c01, false },
	};
	struct nvme_peer_route route;
	unsigned int i, known;
	int test;

	if (!np_topology_is("stranger"))
		SKIP(return, "the processor vouches here");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test = self->test;
		self->test = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
		ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_DOMAIN, cases[i].peer, INTEL, 0, 0));
		ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_RENAME, cases[i].peer, INTEL,
				     cases[i].device, 0));
		ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_RENAME, "0000:00:00.0", INTEL,
				     cases[i].device, 0));
		ASSERT_EQ(0, route_to(self->ctrl.fd, cases[i].peer, &route));
		EXPECT_EQ(cases[i].known, route.data.verdict == NVME_PEER_ROUTE_HOST_BRIDGE) {
			TH_LOG("case %u", i);
		}
		if (linux_reaches(self->test, cases[i].peer, self->ctrl.address) >= 0)
			EXPECT_TRUE(same_opinion(self, cases[i].peer, INTEL, cases[i].device,
						 &known));
		close(self->test);
		self->test = test;
	}
}

/* As behind Intel's VMD; their lower bits name another function. */
TEST_F(route, domains_have_more_than_16_bits)
{
	struct nvme_peer_route route;
	char root[16];

	ASSERT_EQ(-ENODEV, route_to(self->ctrl.fd, FAR_AWAY, &route));
	ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_DOMAIN, FAR_AWAY, INTEL, 0x201d, 0));
	ASSERT_EQ(0, route_to(self->ctrl.fd, FAR_AWAY, &route));
	EXPECT_EQ(0x10000, route.pci_address.domain);
	if (!np_topology_is("stranger")) {
		EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_KNOWN, route.data.reason);
		return;
	}
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_DIFFERENT_DOMAINS, route.data.reason);
	port_above(self->ctrl.address, 1, root);
	EXPECT_TRUE(is_blocker(&route.data, 0, root, 0));
	EXPECT_TRUE(is_blocker(&route.data, 1, FAR_AWAY, 0));
}

TEST_F(route, to_itself)
{
	struct nvme_peer_route route;

	ASSERT_EQ(0, route_to(self->ctrl.fd, self->ctrl.address, &route));
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, route.data.reason);
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, route.doorbell.reason);
}

TEST_F(route, to_host_memory)
{
	struct nvme_peer_route route;
	int dmabuf = np_test_export(4, 0);

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, route_of(self->ctrl.fd, dmabuf, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_HOST_MEMORY, route.data.reason);
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.doorbell.verdict);
	EXPECT_EQ(NVME_PEER_REASON_NONE, route.doorbell.reason);
	EXPECT_FALSE(route.pci_address.valid);
	close(dmabuf);
}

TEST_F(route, of_a_refused_dma_buf_is_a_refusal)
{
	struct nvme_peer_route route;
	int dmabuf = np_test_export(1, NVMEP_TEST_REFUSE);

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, route_of(self->ctrl.fd, dmabuf, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_EXPORTER_REFUSED, route.data.reason);
	EXPECT_EQ(NVME_PEER_REASON_NONE, route.doorbell.reason);
	EXPECT_FALSE(route.pci_address.valid);
	close(dmabuf);
}

static int count_pins(int test, int dmabuf)
{
	struct nvmep_test_move move = { .fd = dmabuf };

	return np_ioctl(test, NVMEP_TEST_MAPS, &move) ?: (int)(move.pins << 8 | move.maps);
}

/* Kernels without CONFIG_DMABUF_MOVE_NOTIFY pin for whoever maps. */
TEST_F(route, pins_nothing)
{
	int mapped, asked, dmabuf[2] = { np_test_export(4, 0), np_test_export(4, 0) };
	struct nvme_peer_buf_import import;
	struct nvme_peer_route route;

	ASSERT_EQ(0, attach(self->test, dmabuf[0], self->ctrl.address));
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
	mapped = count_pins(self->test, dmabuf[0]);
	ASSERT_LE(0, mapped);
	ASSERT_EQ(0, route_of(self->ctrl.fd, dmabuf[1], &route));
	asked = count_pins(self->test, dmabuf[1]);
	EXPECT_EQ(mapped, asked);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf[1], 0, &import));
	EXPECT_LT(asked + 1, count_pins(self->test, dmabuf[1]));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf[0]);
	close(dmabuf[1]);
}

/* No one answer is true of it, wherever the first of its pages lies. */
TEST_F(route, memory_in_two_places_is_nowhere)
{
	int dmabuf = np_test_export(4, NVMEP_TEST_SCATTERED | NVMEP_TEST_PARTLY);
	struct nvme_peer_buf_import import;
	struct nvme_peer_route route;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, route_of(self->ctrl.fd, dmabuf, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_UNKNOWN_MEMORY, route.data.reason);
	EXPECT_EQ(0, route.pci_address.valid);
	EXPECT_EQ(-EXDEV, np_import(self->ctrl.fd, dmabuf, 0, &import));
	close(dmabuf);
}

TEST_F(route, wrong_calls)
{
	struct nvme_peer_route route;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(-ENODEV, route_to(self->ctrl.fd, "0000:fe:1f.7", &route));
	route.pci_address = (struct nvme_peer_pci_address){ 0 };
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
	route.pci_address.valid = 2;
	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
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
