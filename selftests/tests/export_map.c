// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every export kind, mapped and imported as GPU drivers do it.
 *
 * Rings must support long-term pinning (cuMemHostRegister). Doorbells must be found in
 * the page table without a fault, in one VMA, uncached (cuMemHostRegister with IOMEMORY).
 * A static importer of doorbells, which cannot be invalidated, is refused unless the
 * export allows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES	64U
#define DIRTY_PAGES	256U

#define DOORBELL_FOUND	(NVMEP_TEST_ONE_VMA | NVMEP_TEST_VM_IO | NVMEP_TEST_VM_PFNMAP | \
			 NVMEP_TEST_UNCACHED | NVMEP_TEST_CONTIGUOUS)

FIXTURE(export)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_qp_create create;
	struct np_export part;
	int test;
	char other[16];
};

FIXTURE_SETUP(export)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->test = np_test_open();
	ASSERT_LE(0, self->test);
	self->part.fd = -1;
	ASSERT_EQ(0, np_function_address("np1", self->other));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &self->create));
}

FIXTURE_TEARDOWN(export)
{
	close(self->test);
	np_export_close(&self->part);
	close(self->create.qp_fd);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* The pages that a driver pinned are those that user space has mapped. */
static void check_pin(struct __test_metadata *_metadata, int test, struct np_export *part)
{
	struct nvmep_test_range range = {
		.address = (uintptr_t)part->map,
		.length = part->size,
	};
	struct nvmep_test_poke poke = { .value = 0x1122334455667788ULL };
	volatile uint64_t *word = part->map;

	*word = 42;
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_PIN, &range));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_POKE, &poke));
	EXPECT_EQ(42, poke.value);
	EXPECT_EQ(0x1122334455667788ULL, *word);
	*word = 0;
	EXPECT_EQ(0, np_ioctl(test, NVMEP_TEST_UNPIN, NULL));
}

TEST_F(export, sq_can_be_pinned)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
	EXPECT_EQ(ENTRIES * 64, self->part.length);
	check_pin(_metadata, self->test, &self->part);
}

TEST_F(export, cq_can_be_pinned)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_CQ, 0));
	EXPECT_EQ(ENTRIES * 16, self->part.length);
	check_pin(_metadata, self->test, &self->part);
}

TEST_F(export, rings_are_not_dumped)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
	EXPECT_TRUE(np_mapping_has(self->part.map, "de dd"));
	EXPECT_FALSE(np_mapping_has(self->part.map, "io"));
}

TEST_F(export, files_end_with_exec)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_CQ, 0));
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->part.fd, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->create.qp_fd, F_GETFD));
}

/* Pinned pages may outlive the queue pair; they must not be reused then. */
TEST_F(export, pinned_ring_outlives_queue_pair)
{
	struct nvmep_test_range range;
	struct nvmep_test_poke poke = { .value = 7 };

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_CQ, 0));
	range = (struct nvmep_test_range){ (uintptr_t)self->part.map, self->part.size };
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_PIN, &range));
	close(self->create.qp_fd);
	self->create.qp_fd = -1;
	np_export_close(&self->part);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_POKE, &poke));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_UNPIN, NULL));
}

TEST_F(export, doorbell_maps_without_fault)
{
	struct nvmep_test_walk walk = {};
	char path[128], line[256];
	unsigned long long bar;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	walk.range = (struct nvmep_test_range){ (uintptr_t)self->part.map, self->part.size };
	ASSERT_EQ(-EFAULT, np_ioctl(self->test, NVMEP_TEST_PIN, &walk.range));
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_WALK, &walk));
	EXPECT_EQ(DOORBELL_FOUND, walk.found);
	EXPECT_EQ(self->part.size / NP_PAGE, walk.present);
	EXPECT_TRUE(np_mapping_has(self->part.map, "io pf dc de dd"));

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", self->ctrl.address);
	ASSERT_EQ(0, np_read_file(path, line, sizeof(line)));
	ASSERT_EQ(1, sscanf(line, "%llx", &bar));
	/* Page 0 of BAR0 holds CC and is never exported. */
	EXPECT_LT(bar >> 12, walk.first_frame);
	EXPECT_EQ((bar + 0x1000 + 2 * self->create.qid * self->ctrl.info.doorbell_stride) >> 12,
		  walk.first_frame);
}

TEST_F(export, doorbell_offset_matches_qid)
{
	struct nvme_peer_qp_info info;
	uint32_t stride = self->ctrl.info.doorbell_stride;

	ASSERT_EQ(0, np_qp_info(self->create.qp_fd, &info));
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(2 * self->create.qid * stride % NP_PAGE, info.doorbell_offset);
	EXPECT_EQ(info.doorbell_offset, (uint8_t *)self->part.at - (uint8_t *)self->part.map);
	EXPECT_EQ(self->part.size, info.doorbell_length);
	EXPECT_EQ(stride, info.doorbell_stride);
}

TEST_F(export, status_page_is_read_only)
{
	const struct nvme_peer_status *status;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_STATUS, 0));
	status = self->part.at;
	EXPECT_EQ(NVME_PEER_STATUS_MAGIC, status->magic);
	EXPECT_EQ(1, status->version);
	EXPECT_EQ(NVME_PEER_QP_LIVE, status->state);
	EXPECT_EQ(self->create.generation, status->generation);
	EXPECT_EQ(self->create.qid, status->qid);
	EXPECT_EQ(0, status->reason);
	EXPECT_EQ(sysconf(_SC_PAGESIZE), status->size);
	EXPECT_EQ(self->part.size, status->size);
	EXPECT_EQ(self->part.length, status->size);
	EXPECT_EQ(-1, mprotect(self->part.map, self->part.size, PROT_READ | PROT_WRITE));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, self->part.size, PROT_READ | PROT_WRITE, MAP_SHARED,
				   self->part.fd, 0));
	EXPECT_EQ(O_RDONLY, fcntl(self->part.fd, F_GETFL) & O_ACCMODE);
}

/* --- other registers in the pages ------------------------------------------------ */

/*
 * Export the doorbell of a queue pair that is created while the MSI-X structures appear
 * to lie at the given offsets.
 */
static int export_beside(const char *ctrl, int ctrl_fd, uint32_t table, uint32_t pba)
{
	struct nvmep_test_fake_pci msix = {
		.pci_address = np_parse_address(ctrl),
		.msix_table = table,
		.msix_pba = pba,
	};
	int ret, test = np_test_open();
	struct nvme_peer_qp_export out = { .fd = -1 };
	struct nvme_peer_qp_create create;

	ret = np_ioctl(test, NVMEP_TEST_MSIX, &msix) ?: np_qp_create(ctrl_fd, ENTRIES, &create);
	if (!ret) {
		ret = np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &out);
		close(out.fd);
		close(create.qp_fd);
	}
	close(test);
	return ret;
}

/*
 * A writer of the MSI-X table can raise any interrupt; a reader of the PBA learns about
 * other interrupts.
 */
TEST_F(export, doorbell_page_with_msix_not_exported)
{
	/*
	 * The page of the first 512 queue pairs' doorbells, and structures in and beside
	 * it.
	 */
	static const struct {
		uint32_t table, pba;
		int ret;
	} cases[] = {
		{ 0x3000, 0x3800, 0 },
		{ 0x1000, 0x3800, -EOPNOTSUPP },
		{ 0x1ff8, 0x3800, -EOPNOTSUPP },
		/* The end of the table is in the page. */
		{ 0x0ff8, 0x3800, -EOPNOTSUPP },
		{ 0x2000, 0x3800, 0 },
		/* At the same offset in another BAR. */
		{ 0x1000 | 4, 0x3800, 0 },
		{ 0x3000, 0x1000, -EOPNOTSUPP },
		{ 0x3000, 0x1ff8, -EOPNOTSUPP },
		{ 0x3000, 0x2000, 0 },
		{ 0x3000, 0x1000 | 4, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_EQ(cases[i].ret, export_beside(self->ctrl.address, self->ctrl.fd,
						      cases[i].table, cases[i].pba)) {
			TH_LOG("table %#x, pending bits %#x", cases[i].table, cases[i].pba);
		}
	}
}

/* The number of MSI-X vectors by config space, or 0. */
static uint32_t msix_vectors(const char *ctrl)
{
	uint8_t config[256] = {}, at;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", ctrl);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, config, sizeof(config), 0) != sizeof(config))
		at = 0;
	else
		at = config[PCI_CAPABILITY_LIST];
	close(fd);
	while (at && config[at] != PCI_CAP_ID_MSIX)
		at = config[at + PCI_CAP_LIST_NEXT];
	return at ? ((config[at + 3] << 8 | config[at + 2]) & PCI_MSIX_FLAGS_QSIZE) + 1 : 0;
}

/* Up to the last byte before the page, but not one entry longer. */
TEST_F(export, msix_structures_end_at_the_page)
{
	uint32_t vectors = msix_vectors(self->ctrl.address), table, pba;

	ASSERT_LT(0, vectors);
	table = 0x1000 - vectors * PCI_MSIX_ENTRY_SIZE;
	pba = 0x1000 - (vectors + 63) / 64 * 8;
	EXPECT_EQ(0, export_beside(self->ctrl.address, self->ctrl.fd, table, 0x3800));
	EXPECT_EQ(-EOPNOTSUPP, export_beside(self->ctrl.address, self->ctrl.fd, table + 8, 0x3800));
	EXPECT_EQ(0, export_beside(self->ctrl.address, self->ctrl.fd, 0x3000, pba));
	EXPECT_EQ(-EOPNOTSUPP, export_beside(self->ctrl.address, self->ctrl.fd, 0x3000, pba + 8));
}

/* Config space reads as all ones during a reset: no queue pair exists without its doorbell. */
TEST_F(export, unreadable_msix_delays_creation)
{
	EXPECT_EQ(-EAGAIN, export_beside(self->ctrl.address, self->ctrl.fd, ~0U, 0x3800));
	EXPECT_EQ(-EAGAIN, export_beside(self->ctrl.address, self->ctrl.fd, 0x3000, ~0U));
	EXPECT_EQ(0, export_beside(self->ctrl.address, self->ctrl.fd, 0x3000, 0x3800));
}

/* Fill pages that the kernel allocates next with data: unmovable ones. */
static int dirty_free_pages(void)
{
	size_t size = (size_t)DIRTY_PAGES * NP_PAGE;
	int dmabuf = np_test_export(DIRTY_PAGES, 0);
	void *map;

	if (dmabuf < 0)
		return dmabuf;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	close(dmabuf);
	if (map == MAP_FAILED)
		return -errno;
	memset(map, 0xa5, size);
	munmap(map, size);
	return 0;
}

/* Counts non-zero bytes from @from on in the export of @kind. */
static uint64_t dirt_in(int qp_fd, uint32_t kind, size_t from)
{
	struct np_export part;
	uint64_t dirt = 0;

	if (np_export_open(&part, qp_fd, kind, 0))
		return ~0ULL;
	for (; from < part.size; from++)
		dirt += ((const uint8_t *)part.map)[from] != 0;
	np_export_close(&part);
	return dirt;
}

/*
 * A stale entry in a completion ring could be taken for a new completion, and stale data
 * would leak. Without init_on_alloc, and without an IOMMU, kernels hand out pages
 * unzeroed.
 */
TEST_F(export, rings_and_pages_are_zeroed)
{
	struct nvme_peer_qp_create create;
	uint32_t i;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, dirty_free_pages());
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES << i % 4, &create));
		EXPECT_EQ(0, dirt_in(create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
		EXPECT_EQ(0, dirt_in(create.qp_fd, NVME_PEER_EXPORT_CQ, 0));
		EXPECT_EQ(0, dirt_in(create.qp_fd, NVME_PEER_EXPORT_CONTROL,
				     sizeof(struct nvme_peer_control)));
		EXPECT_EQ(0, dirt_in(create.qp_fd, NVME_PEER_EXPORT_STATUS,
				     sizeof(struct nvme_peer_status)));
		close(create.qp_fd);
	}
}

/* --- mappings --------------------------------------------------------------------- */

/* A private mapping, or one that is too long, would show other memory than the ring. */
TEST_F(export, wrong_mappings_are_refused)
{
	static const uint32_t kinds[] = {
		NVME_PEER_EXPORT_SQ, NVME_PEER_EXPORT_CQ,
		NVME_PEER_EXPORT_DOORBELL, NVME_PEER_EXPORT_STATUS,
	};
	struct nvme_peer_qp_export out;
	size_t i, size;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ASSERT_EQ(0, np_export_fd(self->create.qp_fd, kinds[i], 0, &out));
		size = (size_t)lseek(out.fd, 0, SEEK_END);
		EXPECT_EQ(MAP_FAILED, mmap(NULL, size, PROT_READ, MAP_PRIVATE, out.fd, 0)) {
			TH_LOG("kind %zu: private mapping", i);
		}
		EXPECT_EQ(MAP_FAILED,
			  mmap(NULL, size + NP_PAGE, PROT_READ, MAP_SHARED, out.fd, 0)) {
			TH_LOG("kind %zu: too long", i);
		}
		EXPECT_EQ(MAP_FAILED,
			  mmap(NULL, NP_PAGE, PROT_READ, MAP_SHARED, out.fd, (off_t)size)) {
			TH_LOG("kind %zu: beyond the end", i);
		}
		close(out.fd);
	}
}

TEST_F(export, mremap_cannot_grow)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(MAP_FAILED, mremap(self->part.map, self->part.size, self->part.size + NP_PAGE,
				     MREMAP_MAYMOVE));
}

/* mremap() keeps the mapping known, so it is zapped at its new address. */
TEST_F(export, mremap_moved_mapping_is_zapped)
{
	struct nvme_peer_qp_info info;
	size_t size;
	void *at;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	size = self->part.size;
	at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(at, mremap(self->part.map, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at));
	self->part.at = (uint8_t *)at + ((uint8_t *)self->part.at - (uint8_t *)self->part.map);
	self->part.map = at;
	ASSERT_EQ(0, np_qp_info(self->create.qp_fd, &info));
	EXPECT_EQ(1, info.mmaps);
	EXPECT_EQ(0, np_store(self->part.at, 0));
	close(self->create.qp_fd);
	self->create.qp_fd = -1;
	EXPECT_EQ(-EFAULT, np_store(self->part.at, 0));
}

/* How a child exits that stores to its parent's mapping: 0 or a signal. */
static int store_in_a_child(uint32_t *address)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		*(volatile uint32_t *)address = 0;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* fork() must not give a child access to the controller. */
TEST_F(export, fork_does_not_copy_doorbells)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(SIGSEGV, store_in_a_child(self->part.at));
	EXPECT_EQ(0, np_store(self->part.at, 0));
	np_export_close(&self->part);
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
	EXPECT_EQ(0, store_in_a_child(self->part.at));
}

static int attach(int test, int dmabuf, const char *function, uint32_t flags)
{
	struct nvmep_test_attach attach = {
		.dmabuf_fd = dmabuf,
		.flags = flags,
		.pci_address = np_parse_address(function),
	};

	return np_ioctl(test, NVMEP_TEST_ATTACH, &attach);
}

/* NVIDIA's driver imports statically; rings are host memory, for which that is safe. */
TEST_F(export, static_importer_maps_rings)
{
	struct nvmep_test_importer importer;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_SQ, 0));
	ASSERT_EQ(0, attach(self->test, self->part.fd, self->other, NVMEP_TEST_STATIC));
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_IMPORTER, &importer));
	EXPECT_EQ(1, importer.mapped);
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
}

/* Most importers request both directions; they get a read-only mapping. */
TEST_F(export, device_write_to_status_page_refused)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_STATUS, 0));
	EXPECT_EQ(-EACCES, attach(self->test, self->part.fd, self->other,
				  NVMEP_TEST_ONLY_WRITE));
	EXPECT_EQ(0, attach(self->test, self->part.fd, self->other, 0));
}

TEST_F(export, static_doorbell_import_needs_flag)
{
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(-EOPNOTSUPP, attach(self->test, self->part.fd, self->other, NVMEP_TEST_STATIC));
	EXPECT_EQ(-EOPNOTSUPP, attach(self->test, self->part.fd, self->other, NVMEP_TEST_NO_P2P));
	np_export_close(&self->part);
	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL,
				    NVME_PEER_EXPORT_ALLOW_STATIC));
	EXPECT_EQ(0, attach(self->test, self->part.fd, self->other, NVMEP_TEST_STATIC));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
}

/* Does the kernel report which importers can be invalidated? */
static bool reports_revocable(void)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[512];
	bool found = false;

	while (symbols && !found && fgets(line, sizeof(line), symbols))
		found = strstr(line, " dma_buf_attach_revocable");
	if (symbols)
		fclose(symbols);
	return found;
}

/*
 * Older kernels do not report it, and an importer that pins the memory has a callback that
 * does nothing: it is static, and revocation does not wait for it.
 */
TEST_F_TIMEOUT(export, pinned_doorbell_import_needs_flag, 60)
{
	bool revocable = reports_revocable();
	uint32_t flags = NVMEP_TEST_PINNED | NVMEP_TEST_STUBBORN;
	int64_t start;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(revocable ? 0 : -EOPNOTSUPP,
		  attach(self->test, self->part.fd, self->other, flags));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
	EXPECT_EQ(0, attach(self->test, self->part.fd, self->other, 0));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
	np_export_close(&self->part);

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL,
				    NVME_PEER_EXPORT_ALLOW_STATIC));
	ASSERT_EQ(0, attach(self->test, self->part.fd, self->other, flags));
	start = np_now_ms();
	close(self->create.qp_fd);
	self->create.qp_fd = -1;
	EXPECT_EQ(revocable, np_now_ms() - start >= 4000);
}

TEST_F(export, info_counts_exports_and_mappings)
{
	struct nvme_peer_qp_info info;

	ASSERT_EQ(0, np_export_open(&self->part, self->create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0));
	ASSERT_EQ(0, attach(self->test, self->part.fd, self->other, 0));
	ASSERT_EQ(0, np_qp_info(self->create.qp_fd, &info));
	EXPECT_EQ(1, info.exports);
	EXPECT_EQ(1, info.importers);
	EXPECT_EQ(1, info.mmaps);
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_DETACH, NULL));
	np_export_close(&self->part);
	ASSERT_EQ(0, np_qp_info(self->create.qp_fd, &info));
	EXPECT_EQ(0, info.exports);
	EXPECT_EQ(0, info.importers);
	EXPECT_EQ(0, info.mmaps);
}

TEST_HARNESS_MAIN
