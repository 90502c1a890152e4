// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/peer/route.c, compiled for user space: paths and placements in machines that are made up.
 * 20,000 random trees of host bridges, root ports and switches with random ACS bits are compared
 * with a model that lets a request climb port by port; memory is scattered over RAM and BARs.
 */
#include "kernel/route.h"
#include "../../kmod/peer/route.c"

#include "kselftest_harness.h"

#define FUNCTIONS	40
#define HOSTS		3
#define PAGES		64
#define IOVA		0x100000000000ULL
#define REDIRECT	(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

bool kernel_warned;
struct unit_processor boot_cpu_data;
struct pci_dev *unit_functions[FUNCTIONS + 1];

/* --- a machine ------------------------------------------------------------------------------- */

static struct machine {
	struct pci_dev functions[FUNCTIONS];
	struct pci_bus buses[FUNCTIONS + HOSTS];
	struct pci_host_bridge hosts[HOSTS];
	unsigned int count, bus_count, host_count;
	struct iommu_domain domain;
} machine;

struct pci_dev *unit_next_function(struct pci_dev *from)
{
	unsigned int i = 0;

	while (from && unit_functions[i++] != from)
		;
	if (from)
		from->references--;
	if (unit_functions[i])
		unit_functions[i]->references++;
	return unit_functions[i];
}

struct pci_dev *pci_get_domain_bus_and_slot(u32 domain, unsigned int bus, unsigned int devfn)
{
	struct pci_dev *found = NULL;

	while ((found = unit_next_function(found)))
		if (found->bus->domain == domain && found->bus->number == bus && found->devfn == devfn)
			break;
	return found;
}

static struct pci_bus *add_bus(struct pci_dev *bridge, struct pci_host_bridge *host, u32 domain)
{
	struct pci_bus *bus = &machine.buses[machine.bus_count];

	*bus = (struct pci_bus){
		.self = bridge, .host = host, .domain = domain, .number = (u8)machine.bus_count++,
	};
	return bus;
}

static struct pci_dev *add_function(struct pci_bus *bus, unsigned int devfn, unsigned int type)
{
	struct pci_dev *function = &machine.functions[machine.count];

	*function = (struct pci_dev){
		.bus = bus, .devfn = devfn, .type = type, .vendor = PCI_VENDOR_ID_INTEL, .device = 0x1111,
	};
	unit_functions[machine.count++] = function;
	return function;
}

static struct pci_host_bridge *add_host(u32 domain, u64 offset)
{
	struct pci_host_bridge *host = &machine.hosts[machine.host_count++];

	*host = (struct pci_host_bridge){ .offset = offset };
	host->bus = add_bus(NULL, host, domain);
	return host;
}

/* A bridge, and the bus below it. */
static struct pci_bus *add_bridge(struct pci_bus *bus, unsigned int devfn, struct pci_dev **bridge)
{
	*bridge = add_function(bus, devfn, bus->self ? PCI_EXP_TYPE_DOWNSTREAM : PCI_EXP_TYPE_ROOT_PORT);
	return add_bus(*bridge, bus->host, bus->domain);
}

static void empty_machine(void)
{
	memset(&machine, 0, sizeof(machine));
	memset(unit_functions, 0, sizeof(unit_functions));
	boot_cpu_data = (struct unit_processor){};
	nvmep_trust = NVMEP_TRUST_NONE;
}

/*
 * Each bridge below a random one, at any device and function; most functions have ACS, in some machines with
 * most bits set.
 */
static void random_machine(void)
{
	unsigned int i, hosts = 1 + (unsigned int)rand() % HOSTS;
	int sparse = 1 + rand() % 8;
	struct pci_dev *bridge, *function;
	struct pci_bus *bus;

	empty_machine();
	for (i = 0; i < hosts; i++)
		add_host((u32)rand() % 2, 0);
	while (machine.count < 24) {
		/* Below the last bus, trees get deep. */
		bus = &machine.buses[machine.bus_count - 1];
		if (rand() % 3)
			bus = &machine.buses[(unsigned int)rand() % machine.bus_count];
		if (rand() % 2)
			add_bridge(bus, machine.count * 11 % 256, &bridge);
		else
			add_function(bus, machine.count * 11 % 256, PCI_EXP_TYPE_ENDPOINT);
	}
	for (i = 0; i < machine.count; i++) {
		function = &machine.functions[i];
		function->acs_cap = rand() % 4 ? 0x100 : 0;
		function->acs_control = rand() % sparse ? 0 : (u16)rand() & 0x7f;
		function->ats_enabled = rand() % 4 == 0;
		function->dev.uses_iommu = rand() % 2;
		function->device = rand() % 3 ? 0x09a2 : 0x3c00;
		if (function->type == PCI_EXP_TYPE_DOWNSTREAM && rand() % 4 == 0)
			function->type = PCI_EXP_TYPE_UPSTREAM;
	}
	nvmep_trust = (enum nvmep_trust)(rand() % 3);
	boot_cpu_data.x86_vendor = rand() % 2 ? X86_VENDOR_AMD : X86_VENDOR_INTEL;
	boot_cpu_data.x86 = rand() % 2 ? 0x16 : 0x17;
}

/* --- a model of paths ------------------------------------------------------------------------ */

static bool is_above(const struct pci_dev *bridge, const struct pci_dev *function)
{
	for (; function; function = function->bus->self)
		if (function == bridge)
			return true;
	return false;
}

static u16 control_of(const struct pci_dev *port)
{
	return port->acs_cap ? port->acs_control : 0;
}

/* What @port does to requests of @initiator that pass it upstream: bits by which it discards them. */
static u16 discards_translated(const struct pci_dev *port, const struct pci_dev *initiator)
{
	bool has = port->type == PCI_EXP_TYPE_ROOT_PORT || port->type == PCI_EXP_TYPE_DOWNSTREAM;

	return has && initiator->ats_enabled ? control_of(port) & PCI_ACS_TB : 0;
}

static u16 discards(const struct pci_dev *port, const struct pci_dev *initiator)
{
	u16 control = control_of(port), bits = discards_translated(port, initiator);
	/* Some of its requests carry addresses of other ports. */
	bool untranslated = !initiator->dev.uses_iommu;
	bool translated = initiator->ats_enabled && !(control & PCI_ACS_DT);

	if (control & PCI_ACS_EC && !(control & PCI_ACS_RR) && (untranslated || translated))
		bits |= PCI_ACS_EC;
	return bits;
}

static void blocks(struct nvme_peer_path *path, const struct pci_dev *port, u16 bits)
{
	if (!bits)
		return;
	if (path->blocker_count < NVME_PEER_ROUTE_BLOCKERS) {
		path->blockers[path->blocker_count].acs = bits;
		path->blockers[path->blocker_count].address = nvmep_pci_address(port);
	}
	path->blocker_count++;
}

static const struct pci_dev *root_of(const struct pci_dev *function)
{
	while (function->bus->self)
		function = function->bus->self;
	return function;
}

/* The first function of a root bus says which host bridge it is. */
static u16 host_kind(const struct pci_host_bridge *host)
{
	unsigned int i;

	for (i = 0; i < machine.count; i++) {
		const struct pci_dev *function = &machine.functions[i];

		if (function->bus == host->bus)
			return function->type == PCI_EXP_TYPE_ROOT_PORT || function->devfn == 0 ?
			       function->device : 0;
	}
	return 0;
}

static bool host_forwards(const struct pci_dev *a, const struct pci_dev *b)
{
	u16 kind_a = host_kind(a->bus->host), kind_b = host_kind(b->bus->host);

	if (boot_cpu_data.x86_vendor == X86_VENDOR_AMD && boot_cpu_data.x86 == 0x17)
		return true;
	if (!kind_a || !kind_b || kind_a == 0x1111 || kind_b == 0x1111)
		return false;
	return a->bus->host == b->bus->host || (kind_a == 0x09a2 && kind_b == 0x09a2);
}

static void expect_through_host(struct nvme_peer_path *path, const struct pci_dev *from,
				const struct pci_dev *to)
{
	const struct pci_dev *port, *ports[] = { root_of(from), root_of(to) };
	struct nvme_peer_path discarded = { .reason = NVME_PEER_REASON_ACS_BLOCKED };
	unsigned int i;

	for (port = from; port; port = port->bus->self)
		blocks(&discarded, port, discards_translated(port, from));
	if (discarded.blocker_count) {
		*path = discarded;
	} else if (host_forwards(from, to)) {
		path->verdict = NVME_PEER_ROUTE_HOST_BRIDGE;
		path->reason = NVME_PEER_REASON_HOST_BRIDGE_KNOWN;
	} else if (nvmep_trust != NVMEP_TRUST_NONE) {
		path->verdict = nvmep_trust == NVMEP_TRUST_ALL ? NVME_PEER_ROUTE_HOST_BRIDGE :
								NVME_PEER_ROUTE_HOST_BRIDGE_WRITES;
		path->reason = NVME_PEER_REASON_HOST_BRIDGE_ALLOWED;
	} else {
		path->verdict = NVME_PEER_ROUTE_NONE;
		path->reason = ports[0]->bus->domain == ports[1]->bus->domain ?
			       NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN : NVME_PEER_REASON_DIFFERENT_DOMAINS;
		for (i = 0; i < (ports[0] == ports[1] ? 1 : 2); i++) {
			if (path->blocker_count < NVME_PEER_ROUTE_BLOCKERS)
				path->blockers[path->blocker_count].address = nvmep_pci_address(ports[i]);
			path->blocker_count++;
		}
	}
}

static void expected(struct nvme_peer_path *path, const struct pci_dev *from, const struct pci_dev *to)
{
	const struct pci_dev *port, *turn = from;

	*path = (struct nvme_peer_path){ .reason = NVME_PEER_REASON_SAME_FUNCTION };
	if (from == to)
		return;
	/* A request climbs until it is above its target. */
	while (turn && !is_above(turn, to))
		turn = turn->bus->self;
	for (port = from; port && (!turn || is_above(turn, port)); port = port->bus->self)
		blocks(path, port, discards(port, from));
	if (path->blocker_count) {
		path->reason = NVME_PEER_REASON_ACS_BLOCKED;
		return;
	}
	for (port = turn ? from : NULL; port && is_above(turn, port); port = port->bus->self)
		blocks(path, port, control_of(port) & REDIRECT);
	for (port = to; turn && port != turn; port = port->bus->self)
		blocks(path, port, control_of(port) & REDIRECT);
	if (turn && !path->blocker_count) {
		path->verdict = NVME_PEER_ROUTE_BUS_ADDR;
		path->reason = NVME_PEER_REASON_COMMON_SWITCH;
		return;
	}
	expect_through_host(path, from, to);
}

/* Functions with a reference that nothing gave back. */
static int references(void)
{
	int sum = 0;
	unsigned int i;

	for (i = 0; i < machine.count; i++)
		sum += machine.functions[i].references != 0;
	return sum;
}

FIXTURE(route)
{
	struct nvme_peer_path path, wanted;
	unsigned int verdicts[8], reasons[16], long_lists;
};

FIXTURE_SETUP(route)
{
	srand(1);
	empty_machine();
}

FIXTURE_TEARDOWN(route)
{
	EXPECT_EQ(0, references());
	EXPECT_FALSE(kernel_warned);
}

TEST_F(route, random_machines_agree_with_model)
{
	unsigned int i, pair, from, to;

	for (i = 0; i < 20000; i++) {
		random_machine();
		for (pair = 0; pair < 8; pair++) {
			from = (unsigned int)rand() % machine.count;
			to = (unsigned int)rand() % machine.count;
			nvmep_route_find(&machine.functions[from], &machine.functions[to], &self->path);
			expected(&self->wanted, &machine.functions[from], &machine.functions[to]);
			ASSERT_EQ(0, memcmp(&self->path, &self->wanted, sizeof(self->path)))
				TH_LOG("machine %u: from %u to %u: verdict %u, reason %u, not %u and %u", i,
				       from, to, self->path.verdict, self->path.reason, self->wanted.verdict,
				       self->wanted.reason);
			self->verdicts[self->path.verdict]++;
			self->reasons[self->path.reason]++;
			self->long_lists += self->path.blocker_count > NVME_PEER_ROUTE_BLOCKERS;
		}
		ASSERT_EQ(0, references());
	}
	/* Each answer was given often. */
	EXPECT_LT(20, self->long_lists);
	EXPECT_LT(1000, self->verdicts[NVME_PEER_ROUTE_NONE]);
	EXPECT_LT(1000, self->verdicts[NVME_PEER_ROUTE_BUS_ADDR]);
	EXPECT_LT(1000, self->verdicts[NVME_PEER_ROUTE_HOST_BRIDGE]);
	EXPECT_LT(1000, self->verdicts[NVME_PEER_ROUTE_HOST_BRIDGE_WRITES]);
	EXPECT_LT(1000, self->reasons[NVME_PEER_REASON_ACS_BLOCKED]);
	EXPECT_LT(1000, self->reasons[NVME_PEER_REASON_DIFFERENT_DOMAINS]);
	EXPECT_LT(1000, self->reasons[NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN]);
	EXPECT_LT(1000, self->reasons[NVME_PEER_REASON_HOST_BRIDGE_ALLOWED]);
}

/* The list of host bridges: by each end of a range, and only by the function that identifies one. */
TEST_F(route, host_bridges_are_known_by_their_first_function)
{
	static const struct {
		u16 vendor, device;
		unsigned int devfn, type;
		bool known;
	} cases[] = {
		{ PCI_VENDOR_ID_INTEL, 0x2030, PCI_DEVFN(2, 0), PCI_EXP_TYPE_ROOT_PORT, true },
		{ PCI_VENDOR_ID_INTEL, 0x2033, PCI_DEVFN(2, 0), PCI_EXP_TYPE_ROOT_PORT, true },
		{ PCI_VENDOR_ID_INTEL, 0x202f, PCI_DEVFN(2, 0), PCI_EXP_TYPE_ROOT_PORT, false },
		{ PCI_VENDOR_ID_INTEL, 0x2034, PCI_DEVFN(2, 0), PCI_EXP_TYPE_ROOT_PORT, false },
		{ PCI_VENDOR_ID_INTEL, 0x09a2, PCI_DEVFN(0, 0), PCI_EXP_TYPE_RC_END, true },
		{ PCI_VENDOR_ID_INTEL, 0x09a2, PCI_DEVFN(0, 1), PCI_EXP_TYPE_RC_END, false },
		{ PCI_VENDOR_ID_INTEL, 0x09a2, PCI_DEVFN(1, 0), PCI_EXP_TYPE_ENDPOINT, false },
		{ NVMEP_VENDOR_GOOGLE, 0xffff, PCI_DEVFN(0, 0), PCI_EXP_TYPE_RC_END, true },
		{ PCI_VENDOR_ID_NVIDIA, 0x2f95, PCI_DEVFN(0, 0), PCI_EXP_TYPE_ROOT_PORT, true },
		{ PCI_VENDOR_ID_NVIDIA, 0x09a2, PCI_DEVFN(0, 0), PCI_EXP_TYPE_ROOT_PORT, false },
	};
	struct pci_host_bridge *host;
	struct pci_dev *first, *ports[2];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		empty_machine();
		host = add_host(0, 0);
		first = add_function(host->bus, cases[i].devfn, cases[i].type);
		first->vendor = cases[i].vendor;
		first->device = cases[i].device;
		for (j = 0; j < 2; j++)
			add_function(add_bridge(host->bus, PCI_DEVFN(8 + j, 0), &ports[j]), 0,
				     PCI_EXP_TYPE_ENDPOINT);
		nvmep_route_find(&machine.functions[2], &machine.functions[4], &self->path);
		EXPECT_EQ(cases[i].known ? NVME_PEER_ROUTE_HOST_BRIDGE : NVME_PEER_ROUTE_NONE,
			  self->path.verdict)
			TH_LOG("case %u", i);
	}
}

TEST_F(route, parameter_says_what_it_was_set_to)
{
	static const struct {
		const char *value, *shown;
	} cases[] = { { "writes", "writes\n" }, { "1", "Y\n" }, { "N", "N\n" } };
	const struct kernel_param_ops *parameter = unit_param_allow_host_bridge.ops;
	char text[16];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(0, parameter->set(cases[i].value, NULL));
		EXPECT_EQ((int)strlen(cases[i].shown), parameter->get(text, NULL));
		EXPECT_STREQ(cases[i].shown, text);
		EXPECT_EQ(-EINVAL, parameter->set("read", NULL));
		parameter->get(text, NULL);
		EXPECT_STREQ(cases[i].shown, text);
	}
}

TEST_F(route, functions_have_an_address)
{
	struct nvme_peer_pci_address address;
	struct pci_dev *found;
	unsigned int i;

	random_machine();
	for (i = 0; i < machine.count; i++) {
		address = nvmep_pci_address(&machine.functions[i]);
		found = nvmep_pci_get(&address);
		EXPECT_EQ(&machine.functions[i], found);
		pci_dev_put(found);
		address.valid = 0;
		EXPECT_EQ(NULL, nvmep_pci_get(&address));
	}
	address.valid = 1;
	address.domain = 0x10000;
	EXPECT_EQ(NULL, nvmep_pci_get(&address));
}

TEST_F(route, domains_have_kinds)
{
	static const struct {
		unsigned int type;
		enum nvme_peer_domain kind;
	} cases[] = {
		{ IOMMU_DOMAIN_IDENTITY, NVME_PEER_DOMAIN_PHYSICAL },
		{ IOMMU_DOMAIN_DMA, NVME_PEER_DOMAIN_STRICT },
		{ IOMMU_DOMAIN_DMA_FQ, NVME_PEER_DOMAIN_LAZY }, { 0, NVME_PEER_DOMAIN_PHYSICAL },
		{ 1, NVME_PEER_DOMAIN_PHYSICAL },
	};
	struct device device = {};
	unsigned int i;

	EXPECT_EQ(NVME_PEER_DOMAIN_PHYSICAL, nvmep_route_domain(&device));
	device.domain = &machine.domain;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		machine.domain.type = cases[i].type;
		EXPECT_EQ(cases[i].kind, nvmep_route_domain(&device));
	}
}

TEST_F(route, each_reason_has_a_text)
{
	unsigned int i, j;

	for (i = 0; i <= NVME_PEER_REASON_ACS_BLOCKED; i++)
		for (j = 0; j < i; j++)
			EXPECT_STRNE(nvmep_route_reason_text(i), nvmep_route_reason_text(j));
	EXPECT_STREQ("unknown", nvmep_route_reason_text(i));
}

/* --- placement ------------------------------------------------------------------------------- */

/* Physical memory: RAM below 1 GiB; BARs of functions; the rest belongs to nothing. */
#define RAM_END		0x40000000ULL

int region_intersects(phys_addr_t start, u64 length, unsigned long flags, unsigned long description)
{
	(void)flags;
	(void)description;
	if (start + length <= RAM_END)
		return REGION_INTERSECTS;
	return start < RAM_END ? REGION_MIXED : REGION_DISJOINT;
}

static phys_addr_t table[PAGES * 512];
static unsigned int steps, steps_until_signal, steps_until_invalid, steps_until_removal;
static struct nvmep_buf buffer;

phys_addr_t unit_translate(dma_addr_t address)
{
	u64 page = (address - IOVA) / PAGE_SIZE;

	return address >= IOVA && page < ARRAY_SIZE(table) ? table[page] + address % PAGE_SIZE : 0;
}

int nvmep_walk_resched(void)
{
	steps++;
	if (steps == steps_until_invalid)
		buffer.invalid = true;
	if (steps == steps_until_removal)
		buffer.ctrl->peers->removed = true;
	return steps == steps_until_signal ? -EINTR : 0;
}

FIXTURE(placement)
{
	struct nvmep_peers peers;
	struct nvmep_ctrl ctrl;
	struct nvmep_segment segments[PAGES];
	struct pci_dev *gpu, *other;
	struct nvmep_placement placement;
};

/* The controller and two functions with BARs below one switch. */
FIXTURE_SETUP(placement)
{
	struct pci_dev *bridge;
	struct pci_bus *bus;

	srand(1);
	empty_machine();
	bus = add_bridge(add_host(0, 0x1000000)->bus, 0, &bridge);
	self->ctrl = (struct nvmep_ctrl){
		.pdev = add_function(bus, PCI_DEVFN(0, 0), PCI_EXP_TYPE_ENDPOINT), .peers = &self->peers,
	};
	self->ctrl.dev = &self->ctrl.pdev->dev;
	self->gpu = add_function(bus, PCI_DEVFN(1, 0), PCI_EXP_TYPE_ENDPOINT);
	self->gpu->resource[1] = (struct resource){ 0x80000000, 0x8fffffff, IORESOURCE_MEM };
	self->gpu->resource[2] = (struct resource){ 0x50000000, 0x50000fff, 0 };
	/* The ROM is no BAR. */
	self->gpu->resource[PCI_STD_NUM_BARS] = (struct resource){ 0xb0000000, 0xb0000fff, IORESOURCE_MEM };
	self->other = add_function(bus, PCI_DEVFN(2, 0), PCI_EXP_TYPE_ENDPOINT);
	self->other->resource[5] = (struct resource){ 0x90000000, 0x90003fff, IORESOURCE_MEM };
	buffer = (struct nvmep_buf){
		.ctrl = &self->ctrl, .segments = { .list = self->segments, .count = 1 },
	};
	steps = steps_until_signal = steps_until_invalid = steps_until_removal = 0;
	machine.domain.type = IOMMU_DOMAIN_IDENTITY;
	self->ctrl.dev->domain = &machine.domain;
}

FIXTURE_TEARDOWN(placement)
{
	EXPECT_EQ(0, references());
	EXPECT_FALSE(kernel_warned);
	EXPECT_FALSE(buffer.lock.held);
}

/* A segment at a physical address; without translation its DMA address is that of the bus. */
static struct nvmep_segment at(const struct nvmep_ctrl *ctrl, phys_addr_t phys, u64 length)
{
	return (struct nvmep_segment){ .length = length, .dma = phys - ctrl->pdev->bus->host->offset };
}

static int reason_of(struct nvmep_placement *placement)
{
	int err = nvmep_placement_find(placement, &buffer);

	return err ?: (int)placement->path.reason;
}

TEST_F(placement, untranslated_ranges_have_one_owner)
{
	const struct {
		phys_addr_t phys;
		u64 length;
		const struct pci_dev *owner;
		int reason;
	} cases[] = {
		{ 0x2000000, 0x1000, NULL, NVME_PEER_REASON_HOST_MEMORY },
		{ 0x2000000, 0x1000000, NULL, NVME_PEER_REASON_HOST_MEMORY },
		{ RAM_END - 0x1000, 0x1000, NULL, NVME_PEER_REASON_HOST_MEMORY },
		{ RAM_END - 0x2000, 0x4000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ RAM_END, 0x1000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ 0x50000000, 0x1000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ 0xb0000000, 0x1000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ 0x80000000, 0x1000, self->gpu, NVME_PEER_REASON_COMMON_SWITCH },
		{ 0x80000000, 0x10000000, self->gpu, NVME_PEER_REASON_COMMON_SWITCH },
		{ 0x8ffff000, 0x1000, self->gpu, NVME_PEER_REASON_COMMON_SWITCH },
		{ 0x8ffff000, 0x2000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ 0x90003000, 0x1000, self->other, NVME_PEER_REASON_COMMON_SWITCH },
		{ 0x90003fff, 1, self->other, NVME_PEER_REASON_COMMON_SWITCH },
		{ 0x90003000, 0x2000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
		{ 0x7ffff000, 0x2000, NULL, NVME_PEER_REASON_UNKNOWN_MEMORY },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		self->segments[0] = at(&self->ctrl, cases[i].phys, cases[i].length);
		EXPECT_EQ(cases[i].reason, reason_of(&self->placement))
			TH_LOG("case %u", i);
		EXPECT_EQ(!cases[i].owner, !self->placement.owner.valid);
		if (cases[i].owner)
			EXPECT_EQ(nvmep_pci_address(cases[i].owner).function, self->placement.owner.function);
		EXPECT_EQ(cases[i].owner ? NVME_PEER_ROUTE_BUS_ADDR :
			  cases[i].reason == NVME_PEER_REASON_HOST_MEMORY ? NVME_PEER_ROUTE_SYSTEM :
			  NVME_PEER_ROUTE_NONE, self->placement.path.verdict);
	}
}

/* Where a page lies; pages of one place are one owner's. */
static phys_addr_t random_page(unsigned int place)
{
	static const phys_addr_t starts[] = { 0x100000, 0x80000000, 0x90000000, 0x60000000 };

	return starts[place] + (u64)(rand() % 4) * PAGE_SIZE;
}

TEST_F(placement, translated_pages_have_one_owner)
{
	static const int reasons[] = {
		NVME_PEER_REASON_HOST_MEMORY, NVME_PEER_REASON_HOST_BRIDGE_ALLOWED,
		NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, NVME_PEER_REASON_UNKNOWN_MEMORY,
	};
	unsigned int round, i, page, place, odd, count, pages;

	machine.domain.type = IOMMU_DOMAIN_DMA;
	nvmep_trust = NVMEP_TRUST_ALL;
	for (round = 0; round < 20000; round++) {
		place = (unsigned int)rand() % 4;
		buffer.segments.count = 1 + (unsigned int)rand() % 4;
		for (i = 0, page = 0; i < buffer.segments.count; i++, page += pages) {
			pages = 2 + (unsigned int)rand() % 8;
			self->segments[i] = (struct nvmep_segment){
				.dma = IOVA + page * PAGE_SIZE, .length = pages * PAGE_SIZE,
			};
		}
		count = page;
		for (page = 0; page < count; page++)
			table[page] = random_page(place);
		odd = (unsigned int)rand() % (2 * count);
		if (odd < count)
			table[odd] = random_page((place + 1 + (unsigned int)rand() % 3) % 4);
		ASSERT_EQ(odd < count ? NVME_PEER_REASON_UNKNOWN_MEMORY : reasons[place],
			  reason_of(&self->placement))
			TH_LOG("round %u: place %u, page %u of %u", round, place, odd, count);
		ASSERT_EQ(odd >= count && (place == 1 || place == 2), self->placement.owner.valid);
		ASSERT_EQ(0, references());
	}
}

/* A large page of one entry is looked up once; one that is not contiguous, by pages. */
TEST_F(placement, large_pages_are_looked_up_once)
{
	unsigned int i, pages = PMD_SIZE / PAGE_SIZE;

	machine.domain.type = IOMMU_DOMAIN_DMA_FQ;
	self->segments[0] = (struct nvmep_segment){ .dma = IOVA, .length = 8 * PMD_SIZE };
	for (i = 0; i < 8 * pages; i++)
		table[i] = 0x80000000 + i * PAGE_SIZE;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, reason_of(&self->placement));
	EXPECT_EQ(8, steps);
	/* Page by page as soon as the last page is elsewhere, and where the rest is shorter. */
	table[pages - 1] = 0x80000000;
	self->segments[0].length = 2 * PMD_SIZE - PAGE_SIZE;
	steps = 0;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, reason_of(&self->placement));
	EXPECT_EQ(2 * pages - 1, steps);
	/* Addresses of which one is not aligned. */
	for (i = 0; i < 8 * pages; i++)
		table[i] = 0x80001000 + i * PAGE_SIZE;
	self->segments[0].length = PMD_SIZE;
	steps = 0;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN, reason_of(&self->placement));
	EXPECT_EQ(pages, steps);
	/* The last page belongs to another owner. */
	for (i = 0; i < pages; i++)
		table[i] = 0x8fe00000 + i * PAGE_SIZE;
	self->gpu->resource[1].end = 0x8fffefff;
	EXPECT_EQ(NVME_PEER_REASON_UNKNOWN_MEMORY, reason_of(&self->placement));
}

/*
 * Requests with translated addresses climb to the root port, above the switch as well. A controller that
 * translates itself is refused where a port discards what it has translated, whichever port that is.
 */
TEST_F(placement, translated_requests_are_discarded_up_to_the_root)
{
	struct pci_dev *root, *upstream, *port, *functions[2];
	struct pci_bus *inside;
	unsigned int i;

	empty_machine();
	inside = add_bridge(add_bridge(add_host(0, 0x1000000)->bus, 0, &root), 0, &upstream);
	upstream->type = PCI_EXP_TYPE_UPSTREAM;
	for (i = 0; i < 2; i++)
		functions[i] = add_function(add_bridge(inside, PCI_DEVFN(i, 0), &port), 0,
					    PCI_EXP_TYPE_ENDPOINT);
	self->ctrl.pdev = functions[0];
	self->ctrl.dev = &functions[0]->dev;
	self->ctrl.dev->domain = &machine.domain;
	self->ctrl.dev->uses_iommu = true;
	functions[1]->resource[1] = (struct resource){ 0x80000000, 0x8fffffff, IORESOURCE_MEM };
	machine.domain.type = IOMMU_DOMAIN_DMA;
	nvmep_trust = NVMEP_TRUST_ALL;
	self->segments[0] = (struct nvmep_segment){ .dma = IOVA, .length = PAGE_SIZE };
	table[0] = 0x80000000;

	root->acs_cap = 0x100;
	root->acs_control = PCI_ACS_TB;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	functions[0]->ats_enabled = true;
	EXPECT_EQ(NVME_PEER_REASON_ACS_BLOCKED, reason_of(&self->placement));
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, self->placement.path.verdict);
	EXPECT_EQ(1, self->placement.path.blocker_count);
	EXPECT_EQ(nvmep_pci_address(root).function, self->placement.path.blockers[0].address.function);
	EXPECT_EQ(PCI_ACS_TB, self->placement.path.blockers[0].acs);
	/* The short route does not reach the root port. */
	nvmep_route_find(functions[0], functions[1], &self->placement.path);
	EXPECT_EQ(NVME_PEER_REASON_COMMON_SWITCH, self->placement.path.reason);
	port->acs_cap = 0x100;
	port->acs_control = PCI_ACS_CR;
	nvmep_route_find(functions[0], functions[1], &self->placement.path);
	EXPECT_EQ(NVME_PEER_REASON_ACS_BLOCKED, self->placement.path.reason);
	EXPECT_EQ(1, self->placement.path.blocker_count);
	port->acs_control = 0;

	/* No egress above the switch is another port's. */
	root->acs_control = PCI_ACS_EC;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	root->acs_control = 0;
	/* Egress control of addresses that it has translated, unless these are exempt. */
	port = functions[0]->bus->self;
	port->acs_cap = 0x100;
	port->acs_control = PCI_ACS_EC;
	EXPECT_EQ(NVME_PEER_REASON_ACS_BLOCKED, reason_of(&self->placement));
	port->acs_control = PCI_ACS_EC | PCI_ACS_DT;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	functions[0]->dev.uses_iommu = false;
	EXPECT_EQ(NVME_PEER_REASON_ACS_BLOCKED, reason_of(&self->placement));
	functions[0]->dev.uses_iommu = true;
	port->acs_control = PCI_ACS_EC;
	functions[0]->ats_enabled = false;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	port->acs_control = 0;
	/* As during a function reset; a controller has no translation blocking. */
	functions[0]->ats_enabled = true;
	functions[0]->acs_cap = 0x100;
	functions[0]->acs_control = 0xffff;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
}

/* A bus address beside translated ones is the switch's; where no switch routes it there is no path. */
TEST_F(placement, bus_addresses_beside_translation)
{
	machine.domain.type = IOMMU_DOMAIN_DMA;
	self->segments[0] = at(&self->ctrl, 0x80000000, 0x4000);
	EXPECT_EQ(NVME_PEER_REASON_COMMON_SWITCH, reason_of(&self->placement));
	EXPECT_EQ(NVME_PEER_ROUTE_BUS_ADDR, self->placement.path.verdict);
	self->gpu->acs_cap = 0x100;
	self->gpu->acs_control = PCI_ACS_RR;
	nvmep_trust = NVMEP_TRUST_ALL;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	EXPECT_EQ(NVME_PEER_ROUTE_NONE, self->placement.path.verdict);
	/* Without translation the root complex has the choice. */
	machine.domain.type = IOMMU_DOMAIN_IDENTITY;
	EXPECT_EQ(NVME_PEER_REASON_HOST_BRIDGE_ALLOWED, reason_of(&self->placement));
	EXPECT_EQ(NVME_PEER_ROUTE_HOST_BRIDGE, self->placement.path.verdict);
	/* Translated and untranslated memory of one owner is not one place. */
	machine.domain.type = IOMMU_DOMAIN_DMA;
	table[0] = 0x80000000;
	self->segments[1] = (struct nvmep_segment){ .dma = IOVA, .length = PAGE_SIZE };
	buffer.segments.count = 2;
	EXPECT_EQ(NVME_PEER_REASON_UNKNOWN_MEMORY, reason_of(&self->placement));
	/* The controller's own registers, translated, are itself. */
	self->ctrl.pdev->resource[0] = (struct resource){ 0xa0000000, 0xa0003fff, IORESOURCE_MEM };
	table[0] = 0xa0000000;
	self->segments[0] = self->segments[1];
	buffer.segments.count = 1;
	EXPECT_EQ(NVME_PEER_REASON_SAME_FUNCTION, reason_of(&self->placement));
}

/* Of a buffer that is mapped; anything else has no address. */
TEST_F(placement, first_byte_has_an_address)
{
	mutex_lock(&buffer.lock);
	buffer.attach = self;
	self->segments[0] = at(&self->ctrl, 0x80001000, 0x4000);
	EXPECT_EQ(0x80001000, nvmep_buf_phys(&buffer));
	machine.domain.type = IOMMU_DOMAIN_DMA;
	table[3] = 0x90002000;
	self->segments[0].dma = IOVA + 3 * PAGE_SIZE;
	EXPECT_EQ(0x90002000, nvmep_buf_phys(&buffer));
	buffer.invalid = true;
	EXPECT_EQ(0, nvmep_buf_phys(&buffer));
	buffer.invalid = false;
	buffer.attach = NULL;
	EXPECT_EQ(0, nvmep_buf_phys(&buffer));
	mutex_unlock(&buffer.lock);
}

TEST_F(placement, walk_ends_when_asked)
{
	unsigned int i;

	machine.domain.type = IOMMU_DOMAIN_DMA;
	self->segments[0] = (struct nvmep_segment){ .dma = IOVA, .length = 8 * PAGE_SIZE };
	for (i = 0; i < 8; i++)
		table[i] = 0x80000000;
	steps_until_signal = 3;
	EXPECT_EQ(-EINTR, reason_of(&self->placement));
	EXPECT_EQ(3, steps);
	steps_until_signal = 0;
	steps = 0;
	steps_until_removal = 4;
	EXPECT_EQ(-ESHUTDOWN, reason_of(&self->placement));
	EXPECT_EQ(4, steps);
	self->peers.removed = false;
	steps = steps_until_removal = 0;
	steps_until_invalid = 2;
	EXPECT_EQ(-ESTALE, reason_of(&self->placement));
	EXPECT_EQ(2, steps);
	EXPECT_EQ(-ESTALE, reason_of(&self->placement));
	EXPECT_EQ(2, steps);
}

TEST_HARNESS_MAIN
