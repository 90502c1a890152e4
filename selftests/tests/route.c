// SPDX-License-Identifier: GPL-2.0-only
/*
 * The route between a controller and other functions' memory, and from them to its
 * doorbells: verdict, reason and blocking port in each topology, compared with Linux's
 * own p2pdma code; and in which domain the reported addresses are.
 *
 * topology: root switch switch-acs unknown-bridge
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/udmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_qp.h"
#include "kselftest_harness.h"

#define ALLOW_HOST_BRIDGE	"/sys/module/nvme_peer/parameters/allow_host_bridge"
#define DEVICES			"/sys/bus/pci/devices"

/* ACS control bits (PCI Express base specification 7.7.11.3). */
#define TRANSLATION_BLOCKING	0x02
#define REQUEST_REDIRECT	0x04
#define COMPLETION_REDIRECT	0x08
#define EGRESS_CONTROL		0x20

/* The domain that nvmep_test creates, which is not in any firmware table. */
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
	self->test = np_test_open();
	ASSERT_LE(0, self->test);
	if (np_function_address("softgpu", self->gpu))
		SKIP(return, "no software GPU in this guest");
}

FIXTURE_TEARDOWN(route)
{
	np_write_file(ALLOW_HOST_BRIDGE, "0");
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
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

/* The bridge @up levels above @address. */
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
	struct nvmep_test_fake_pci what = {
		.pci_address = np_parse_address(address),
		.vendor = vendor,
		.device = device,
		.acs = acs,
	};

	return np_ioctl(test, call, &what);
}

/* Linux's verdict on the path from @client to @provider: 1, 0, or an error. */
static int linux_reaches(int test, const char *provider, const char *client)
{
	struct nvmep_test_distance distance = {
		.provider = np_parse_address(provider),
		.client = np_parse_address(client),
	};

	return np_ioctl(test, NVMEP_TEST_DISTANCE, &distance) ?: distance.distance >= 0;
}

TEST_F(route, verdict_matches_topology)
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
		} else if (np_topology_is("unknown-bridge")) {
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

TEST_F(route, host_bridge_parameter_allows_route)
{
	struct nvme_peer_route route;
	char text[16];

	if (!np_topology_is("unknown-bridge"))
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

/* Can the GPU import the doorbells of a queue pair of this controller? */
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

/* Doorbells need writes only; GPU memory also needs reads by the controller. */
TEST_F(route, host_bridge_forwards_writes_only)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_route route;
	struct softgpu_alloc alloc;
	char text[16];
	int gpu;

	if (!np_topology_is("unknown-bridge"))
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
 * A switch port between both functions redirects requests to a host bridge that only the
 * administrator allowed. Linux does not map over such a path.
 */
TEST_F(route, allowed_host_bridge_works_with_acs_redirect)
{
	struct nvme_peer_route route;
	char port[16], root[16];
	struct np_ctrl other;

	if (!np_topology_is("unknown-bridge"))
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

/*
 * Ports above the source first, then above the target; more ports than the array holds.
 */
TEST_F(route, all_redirecting_ports_are_reported)
{
	char ports[6][16];
	struct nvme_peer_route route;
	struct np_ctrl other;
	uint32_t i;

	if (!np_topology_is("unknown-bridge"))
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

/*
 * Must egress control of a port on the initiator's side discard requests? Where it also
 * redirects, or where an IOMMU translates, they reach the root complex.
 */
static bool discards(FIXTURE_DATA(route) *self, uint16_t acs)
{
	return (acs & (EGRESS_CONTROL | REQUEST_REDIRECT)) == EGRESS_CONTROL &&
	       self->ctrl.info.domain == NVME_PEER_DOMAIN_PHYSICAL;
}

static bool is_redirected(const struct nvme_peer_path *path, const char *port, uint16_t acs)
{
	return path->verdict == NVME_PEER_ROUTE_HOST_BRIDGE &&
	       path->reason == NVME_PEER_REASON_HOST_BRIDGE_ALLOWED &&
	       path->blocker_count == 1 && is_blocker(path, 0, port, acs);
}

static bool is_discarded(const struct nvme_peer_path *path, const char *port, uint16_t acs)
{
	return path->verdict == NVME_PEER_ROUTE_NONE &&
	       path->reason == NVME_PEER_REASON_ACS_BLOCKED &&
	       path->blocker_count == 1 && is_blocker(path, 0, port, acs);
}

/*
 * Each bit of each port between two functions, of the bridge above both as well: no path
 * inside the switch, as in Linux. Egress control that does not redirect discards requests of
 * the initiator below the port.
 */
TEST_F(route, each_acs_bit_of_each_port_counts)
{
	static const uint16_t bits[] = {
		REQUEST_REDIRECT, COMPLETION_REDIRECT, EGRESS_CONTROL,
		EGRESS_CONTROL | REQUEST_REDIRECT, EGRESS_CONTROL | COMPLETION_REDIRECT,
	};
	struct nvme_peer_route route;
	struct np_ctrl other;
	unsigned int i, bit;
	uint16_t acs;
	char port[16];
	int test;

	if (!np_topology_is("unknown-bridge"))
		SKIP(return, "no path of many ports here");
	ASSERT_EQ(0, np_ctrl_open(&other, "np1"));
	ASSERT_EQ(0, np_write_file(ALLOW_HOST_BRIDGE, "1"));
	/* 0 to 4 is the controller up to the bridge above both, which is 2 of the GPU. */
	for (i = 0; i < 7; i++) {
		port_above(i < 5 ? other.address : self->gpu, i < 5 ? i : i - 5, port);
		for (bit = 0; bit < sizeof(bits) / sizeof(bits[0]); bit++) {
			acs = bits[bit];
			test = np_test_open();
			ASSERT_EQ(0, pretend(test, NVMEP_TEST_ACS, port, 0, 0, acs));
			EXPECT_NE(1, linux_reaches(test, self->gpu, other.address));
			ASSERT_EQ(0, route_to(other.fd, self->gpu, &route));
			EXPECT_TRUE(i < 5 && discards(self, acs) ?
				    is_discarded(&route.data, port, EGRESS_CONTROL) :
				    is_redirected(&route.data, port, acs)) {
				TH_LOG("data, port %u %s, bits %#x", i, port, acs);
			}
			EXPECT_TRUE(i >= 4 && discards(self, acs) ?
				    is_discarded(&route.doorbell, port, EGRESS_CONTROL) :
				    is_redirected(&route.doorbell, port, acs)) {
				TH_LOG("doorbell, port %u %s, bits %#x", i, port, acs);
			}
			close(test);
		}
	}
	np_ctrl_close(&other);
}

/*
 * Egress control of the port above an initiator applies to addresses of other ports, not to
 * those that an IOMMU translates.
 */
TEST_F(route, egress_control_spares_translated_requests)
{
	bool translated = self->ctrl.info.domain != NVME_PEER_DOMAIN_PHYSICAL;
	struct nvme_peer_route route;
	char port[2][16];
	int i, test;

	for (i = 0; i < 2; i++) {
		const struct nvme_peer_path *from[] = { &route.data, &route.doorbell };

		port_above(i ? self->gpu : self->ctrl.address, 1, port[i]);
		test = np_test_open();
		ASSERT_EQ(0, pretend(test, NVMEP_TEST_ACS, port[i], 0, 0, EGRESS_CONTROL));
		ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
		EXPECT_EQ(!translated, is_discarded(from[i], port[i], EGRESS_CONTROL)) {
			TH_LOG("port %s", port[i]);
		}
		/* Completions of the other direction's requests are not requests. */
		EXPECT_NE(NVME_PEER_REASON_ACS_BLOCKED, from[!i]->reason);
		close(test);
	}
}

/* Only an initiator that uses ATS sends what translation blocking discards. */
TEST_F(route, translation_blocking_discards_ats_requests)
{
	struct nvmep_test_fake_pci device = { .ats = 1 };
	struct nvme_peer_route before, route;
	struct nvme_peer_buf_import import;
	struct softgpu_alloc alloc;
	int gpu = np_gpu_open();
	char port[16];

	ASSERT_LE(0, gpu);
	ASSERT_EQ(0, np_gpu_alloc(gpu, NP_PAGE, 0, &alloc));
	port_above(self->ctrl.address, 1, port);
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &before));
	ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_ACS, port, 0, 0, TRANSLATION_BLOCKING));
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(before.data.reason, route.data.reason);

	device.pci_address = np_parse_address(self->ctrl.address);
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_ACS, &device));
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_TRUE(is_discarded(&route.data, port, TRANSLATION_BLOCKING));
	EXPECT_EQ(before.doorbell.reason, route.doorbell.reason);
	/* The same of its memory, which an IOMMU may translate. */
	ASSERT_EQ(0, route_of(self->ctrl.fd, alloc.fd, &route));
	EXPECT_TRUE(is_discarded(&route.data, port, TRANSLATION_BLOCKING));
	EXPECT_EQ(before.doorbell.reason, route.doorbell.reason);
	EXPECT_EQ(-EXDEV, np_import(self->ctrl.fd, alloc.fd, 0, &import));
	close(alloc.fd);
	close(gpu);
}

/* As of a port in D3cold: each bit may be set. */
TEST_F(route, unreadable_acs_counts_as_set)
{
	struct nvmep_test_fake_pci device = { .ats = 1 };
	struct nvme_peer_route route;
	char port[16];

	port_above(self->ctrl.address, 1, port);
	device.pci_address = np_parse_address(self->ctrl.address);
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_ACS, &device));
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_NE(NVME_PEER_REASON_ACS_BLOCKED, route.data.reason);
	ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_ACS, port, 0, 0, 0xffff));
	ASSERT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_TRUE(is_discarded(&route.data, port, TRANSLATION_BLOCKING));
}

/* Debian's 6.1 and 6.12 have no P2PDMA; where the kernel has it, both verdicts agree. */
TEST_F(route, agrees_with_p2pdma_distance)
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

/*
 * Do both give the same verdict on a host bridge with these IDs? @known counts positive
 * ones.
 */
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

/*
 * Compares Linux's list of host bridges with the driver's, by the listed IDs and their
 * neighbours.
 */
TEST_F(route, host_bridge_list_matches_linux)
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

	if (!np_topology_is("unknown-bridge"))
		SKIP(return, "the processor allows peer-to-peer");
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
	/* All 32 Google IDs are listed. */
	EXPECT_LT(32 + 20, known);
}

/*
 * A listed host bridge does or does not forward to another one; its first root port
 * identifies it.
 */
TEST_F(route, route_between_host_bridges)
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

	if (!np_topology_is("unknown-bridge"))
		SKIP(return, "the processor allows peer-to-peer");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test = self->test;
		self->test = np_test_open();
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

/*
 * Domains of Intel's VMD start at 0x10000; their lower 16 bits are those of another
 * domain.
 */
TEST_F(route, domains_have_more_than_16_bits)
{
	struct nvme_peer_route route;
	char root[16];

	ASSERT_EQ(-ENODEV, route_to(self->ctrl.fd, FAR_AWAY, &route));
	ASSERT_EQ(0, pretend(self->test, NVMEP_TEST_DOMAIN, FAR_AWAY, INTEL, 0x201d, 0));
	ASSERT_EQ(0, route_to(self->ctrl.fd, FAR_AWAY, &route));
	EXPECT_EQ(0x10000, route.pci_address.domain);
	if (!np_topology_is("unknown-bridge")) {
		EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_KNOWN, route.data.reason);
		return;
	}
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, route.data.verdict);
	EXPECT_EQ(NVME_PEER_REASON_DIFFERENT_DOMAINS, route.data.reason);
	port_above(self->ctrl.address, 1, root);
	EXPECT_TRUE(is_blocker(&route.data, 0, root, 0));
	EXPECT_TRUE(is_blocker(&route.data, 1, FAR_AWAY, 0));
}

static void *hold_buses_thread(void *unused)
{
	struct nvmep_test_hold hold = { .dmabuf_fd = NVMEP_TEST_HOLD_BUSES, .ms = NP_TIMEOUT_MS };
	int test = np_test_open();

	(void)unused;
	np_ioctl(test, NVMEP_TEST_HOLD, &hold);
	close(test);
	return NULL;
}

static void *add_domain_thread(void *thread)
{
	int test = np_test_open();

	atomic_store((atomic_int *)thread, gettid());
	pretend(test, NVMEP_TEST_DOMAIN, FAR_AWAY, INTEL, 0x201d, 0);
	close(test);
	return NULL;
}

/*
 * The recovery from a PCI error holds the lock of PCI buses and waits for drivers, and an
 * unbinding driver waits for the calls of users. A function that is added waits for the lock,
 * and all later readers for it.
 */
TEST_F(route, route_needs_no_lock_of_buses)
{
	struct nvme_peer_route route;
	pthread_t holder, writer;
	atomic_int adds = 0;

	ASSERT_EQ(0, pthread_create(&holder, NULL, hold_buses_thread, NULL));
	EXPECT_EQ(0, np_wait_held(self->test));
	ASSERT_EQ(0, pthread_create(&writer, NULL, add_domain_thread, &adds));
	EXPECT_EQ(0, np_wait_sleeps(&adds));
	EXPECT_EQ(0, route_to(self->ctrl.fd, self->gpu, &route));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_HELD, NULL));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(writer, NULL));
	np_interrupt(holder);
	pthread_join(holder, NULL);
	pthread_join(writer, NULL);
}

TEST_F(route, route_to_itself)
{
	struct nvme_peer_route route;

	ASSERT_EQ(0, route_to(self->ctrl.fd, self->ctrl.address, &route));
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, route.data.reason);
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, route.doorbell.reason);
}

TEST_F(route, route_to_host_memory)
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

TEST_F(route, route_of_refused_dmabuf_fails)
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

/* Kernels without CONFIG_DMABUF_MOVE_NOTIFY pin for every mapping. */
TEST_F(route, route_query_does_not_pin)
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

struct query {
	int ctrl_fd;
	int dmabuf;
	struct nvme_peer_route route;
	int result;
};

static void *query_route(void *argument)
{
	struct query *query = argument;

	/* A stall blocks the CPU. */
	query->result = np_run_on(1);
	if (!query->result)
		query->result = route_of(query->ctrl_fd, query->dmabuf, &query->route);
	return NULL;
}

/*
 * Memory of many pages takes long to look up. The exporter can map and move it meanwhile:
 * its lock is free. The thread that looks it up is stalled.
 */
TEST_F(route, route_query_leaves_exporter_unlocked)
{
	struct nvmep_test_stall look_up = { .function = "nvmep_placement_find" };
	struct query query = { .ctrl_fd = self->ctrl.fd, .dmabuf = np_test_export(4, 0) };
	struct nvmep_test_move move = { .fd = query.dmabuf };
	int stall = np_stall(&look_up);
	pthread_t thread;

	ASSERT_LE(0, query.dmabuf);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, query_route, &query));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(1, move.maps);
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_GO, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, query.result);
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, query.route.data.verdict);
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MAPS, &move));
	EXPECT_EQ(0, move.maps);
	close(stall);
	close(query.dmabuf);
}

/* No single verdict holds for all pages, wherever the first one lies. */
TEST_F(route, memory_in_two_places_has_no_route)
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

TEST_F(route, invalid_calls)
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

/*
 * A foreign exporter's host memory, imported with the flag that requires device memory.
 */
TEST_F(route, require_device_refuses_host_memory)
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

/*
 * Reported addresses are DMA addresses in the controller's own domain, never physical
 * ones.
 */
TEST_F(route, table_hides_physical_addresses)
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
	/* Bits 54 to 0 are the page frame number, for privileged readers. */
	entry = (entry & ((1ULL << 55) - 1)) * NP_PAGE;
	ASSERT_NE(0, entry);
	EXPECT_EQ(self->ctrl.info.domain == NVME_PEER_DOMAIN_PHYSICAL, buffer.table[0] == entry);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
	close(pagemap);
}

TEST_HARNESS_MAIN
