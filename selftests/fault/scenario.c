// SPDX-License-Identifier: GPL-2.0-only
/* The paths through the module in which failures are injected: see scenario.h. */
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softgpu_drv.h"
#include "tenant.h"

#define ENTRIES		64U
#define PAGES		16U
#define NEIGHBOUR	"np1"

/* Slots of descriptors. */
enum {
	QP = 0,
	BUFFER,
	EXPORT,
	NODE,
	DRIVER,
};

/* The stage */

int stage_open(struct stage *stage)
{
	unsigned int i;

	memset(stage, 0, sizeof(*stage));
	for (i = 0; i < SCENARIO_FILES; i++)
		stage->files[i] = -1;
	if (posix_memalign((void **)&stage->bytes, NP_PAGE, STAGE_BYTES))
		return -ENOMEM;
	return np_ctrl_open(&stage->ctrl, "np0");
}

void stage_clear(struct stage *stage)
{
	unsigned int i;

	if (stage->map)
		munmap(stage->map, stage->map_length);
	stage->map = NULL;
	/* Queue pairs before the buffers that hold their rings. */
	for (i = 0; i < SCENARIO_FILES; i++) {
		if (stage->files[i] >= 0)
			close(stage->files[i]);
		stage->files[i] = -1;
	}
	for (i = 0; i < 2; i++) {
		if (stage->handles[i])
			np_release(stage->ctrl.fd, stage->handles[i]);
		stage->handles[i] = 0;
	}
}

void stage_close(struct stage *stage)
{
	stage_clear(stage);
	np_ctrl_close(&stage->ctrl);
	free(stage->bytes);
}

static int identify(struct stage *stage)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)stage->bytes,
		.data_len = NP_PAGE,
		.cdw10 = NVME_CNS_CONTROLLER,
	};

	return np_admin(stage->ctrl.fd, &cmd);
}

int stage_check(struct stage *stage)
{
	return identify(stage) ?: np_qp_check(stage->ctrl.fd, NP_TIMEOUT_MS);
}

/* Keep a descriptor on the stage: 0, or the errno that it is. */
static int keep(struct stage *stage, int slot, int fd)
{
	if (fd < 0)
		return fd;
	stage->files[slot] = fd;
	return 0;
}

/* Nodes */

static int open_node(struct stage *stage, const char *prefix, const char *suffix, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/%s%d%s", prefix, stage->ctrl.instance, suffix);
	fd = open(path, O_RDWR | O_CLOEXEC | flags);
	return keep(stage, NODE, fd < 0 ? -errno : fd);
}

static int open_controller(struct stage *stage)
{
	return open_node(stage, "nvmep", "", 0);
}

static int open_generic(struct stage *stage)
{
	return open_node(stage, "ngp", "n1", 0);
}

static int open_block(struct stage *stage)
{
	return open_node(stage, "nvmep", "n1", O_DIRECT);
}

static int prepare_second_open(struct stage *stage)
{
	struct nvme_peer_buf_import import;
	int ret;

	ret = open_controller(stage) ?: keep(stage, BUFFER, np_test_export(PAGES, 0));
	return ret ?: np_import(stage->files[NODE], stage->files[BUFFER], 0, &import);
}

/* Close a controller file that still holds a buffer. */
static int close_controller(struct stage *stage)
{
	close(stage->files[NODE]);
	stage->files[NODE] = -1;
	return 0;
}

/* Peer ioctls of the controller */

static int get_info(struct stage *stage)
{
	struct nvme_peer_info info;

	return np_info(stage->ctrl.fd, &info);
}

static int neighbour(struct nvme_peer_pci_address *address)
{
	char text[16];
	int ret = np_function_address(NEIGHBOUR, text);

	*address = np_parse_address(text);
	return ret;
}

static int read_blocks_in_use(struct stage *stage)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/nuse", stage->ctrl.instance);
	return np_read_file(path, text, sizeof(text));
}

static int route_by_address(struct stage *stage)
{
	struct nvme_peer_route route = {
		.size = sizeof(route),
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
	};
	int ret = neighbour(&route.pci_address);

	return ret ?: np_ioctl(stage->ctrl.fd, NVME_PEER_ROUTE, &route);
}

static int make_buffer(struct stage *stage)
{
	return keep(stage, BUFFER, np_test_export(PAGES, 0));
}

static int make_scattered(struct stage *stage)
{
	return keep(stage, BUFFER, np_test_export(PAGES, NVMEP_TEST_SCATTERED));
}

/* Memory of the software GPU. */
static int make_device_buffer(struct stage *stage)
{
	struct softgpu_alloc alloc = { .size = PAGES * NP_PAGE };
	int ret;

	ret = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);
	ret = keep(stage, DRIVER, ret < 0 ? -errno : ret);
	ret = ret ?: np_ioctl(stage->files[DRIVER], SOFTGPU_ALLOC, &alloc);
	return ret ?: keep(stage, BUFFER, alloc.fd);
}

static int route_by_dmabuf(struct stage *stage)
{
	struct nvme_peer_route route = {
		.size = sizeof(route),
		.dmabuf_fd = stage->files[BUFFER],
	};

	return np_ioctl(stage->ctrl.fd, NVME_PEER_ROUTE, &route);
}

static int import_buffer(struct stage *stage)
{
	struct nvme_peer_buf_import import;
	int ret = np_import(stage->ctrl.fd, stage->files[BUFFER], 0, &import);

	if (!ret)
		stage->handles[0] = import.handle;
	return ret;
}

static int make_imported(struct stage *stage)
{
	return make_buffer(stage) ?: import_buffer(stage);
}

/* Several pieces, one of which is no power of two. */
static int allocate_buffer(struct stage *stage)
{
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = (4 << 20) + 3 * NP_PAGE };
	int ret = np_ioctl(stage->ctrl.fd, NVME_PEER_BUF_ALLOC, &alloc);

	return ret ?: keep(stage, BUFFER, alloc.fd);
}

static int get_table(struct stage *stage)
{
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.handle = stage->handles[0],
		.count = PAGES,
		.ranges = (uintptr_t)stage->bytes,
	};

	return np_ioctl(stage->ctrl.fd, NVME_PEER_BUF_TABLE, &table);
}

static int release_buffer(struct stage *stage)
{
	int ret = np_release(stage->ctrl.fd, stage->handles[0]);

	if (!ret)
		stage->handles[0] = 0;
	return ret;
}

/* Queue pairs */

static int create_qp(struct stage *stage);

/*
 * A buffer that was exposed through a node of its own, and a queue pair that may use it.
 */
static int make_exposed(struct stage *stage)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.count = PAGES,
		.ranges = (uintptr_t)stage->bytes,
	};
	int ret = open_controller(stage) ?: make_buffer(stage);

	ret = ret ?: np_import(stage->files[NODE], stage->files[BUFFER], 0, &import);
	table.handle = import.handle;
	ret = ret ?: np_ioctl(stage->files[NODE], NVME_PEER_BUF_TABLE, &table);
	return ret ?: create_qp(stage);
}

static int make_told_and_closed(struct stage *stage)
{
	return make_exposed(stage) ?: close_controller(stage);
}

static int create_qp(struct stage *stage)
{
	struct nvme_peer_qp_create create;
	int ret = np_qp_create(stage->ctrl.fd, ENTRIES, &create);

	return ret ?: keep(stage, QP, create.qp_fd);
}

/* The checks of this program have mapped doorbells, to which it could store. */
static int allow_mixed_modes(struct stage *stage)
{
	(void)stage;
	return np_write_file(NP_MIXED_MODES, "1");
}

static int create_mediated_qp(struct stage *stage)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.mode = NVME_PEER_MODE_MEDIATED,
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
		.max_windows = NVME_PEER_MAX_WINDOWS,
		.max_buffers = NVME_PEER_MAX_BUFFERS,
	};
	int ret = np_ioctl(stage->ctrl.fd, NVME_PEER_QP_CREATE, &create);

	return ret ?: keep(stage, QP, create.qp_fd);
}

static int make_mediated_qp(struct stage *stage)
{
	return allow_mixed_modes(stage) ?: open_block(stage) ?: make_buffer(stage) ?:
	       create_mediated_qp(stage);
}

static int make_mediated_qp_and_device_buffer(struct stage *stage)
{
	return allow_mixed_modes(stage) ?: make_device_buffer(stage) ?: create_mediated_qp(stage);
}

static int add_window(struct stage *stage)
{
	struct nvme_peer_window_add add = { .size = sizeof(add), .fd = stage->files[NODE] };

	return np_ioctl(stage->files[QP], NVME_PEER_WINDOW_ADD, &add);
}

static int add_buffer(struct stage *stage)
{
	struct nvme_peer_buf_add add = { .size = sizeof(add), .dmabuf_fd = stage->files[BUFFER] };

	return np_ioctl(stage->files[QP], NVME_PEER_BUF_ADD, &add);
}

/* Submission ring in the first page of the buffer, completion ring in the second. */
static int create_qp_in_buffer(struct stage *stage)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
		.sq_handle = stage->handles[0],
		.cq_handle = stage->handles[0],
		.cq_offset = NP_PAGE,
	};
	int ret = np_ioctl(stage->ctrl.fd, NVME_PEER_QP_CREATE, &create);

	return ret ?: keep(stage, QP, create.qp_fd);
}

static int make_qp_in_buffer(struct stage *stage)
{
	return make_imported(stage) ?: create_qp_in_buffer(stage);
}

static int get_qp_info(struct stage *stage)
{
	struct nvme_peer_qp_info info;

	return np_qp_info(stage->files[QP], &info);
}

static int close_qp(struct stage *stage)
{
	close(stage->files[QP]);
	stage->files[QP] = -1;
	return 0;
}

static int export(struct stage *stage, uint32_t what)
{
	struct nvme_peer_qp_export out;
	int ret = np_export_fd(stage->files[QP], what, 0, &out);

	if (ret)
		return ret;
	stage->map_length = (out.offset + out.length + NP_PAGE - 1) / NP_PAGE * NP_PAGE;
	return keep(stage, EXPORT, out.fd);
}

static int export_sq(struct stage *stage)
{
	return export(stage, NVME_PEER_EXPORT_SQ);
}

static int export_doorbell(struct stage *stage)
{
	return export(stage, NVME_PEER_EXPORT_DOORBELL);
}

static int export_status(struct stage *stage)
{
	return export(stage, NVME_PEER_EXPORT_STATUS);
}

static int make_sq(struct stage *stage)
{
	return create_qp(stage) ?: export_sq(stage);
}

static int make_doorbell(struct stage *stage)
{
	return create_qp(stage) ?: export_doorbell(stage);
}

static int make_status(struct stage *stage)
{
	return create_qp(stage) ?: export_status(stage);
}

static int map(struct stage *stage, int protection)
{
	void *at = mmap(NULL, stage->map_length, protection, MAP_SHARED, stage->files[EXPORT], 0);

	if (at == MAP_FAILED)
		return -errno;
	stage->map = at;
	return 0;
}

static int map_ring(struct stage *stage)
{
	return map(stage, PROT_READ | PROT_WRITE);
}

/* Far from all other mappings, so that there is no page table yet. */
static int map_doorbell(struct stage *stage)
{
	static uintptr_t place = 0x100000000000;
	void *at;

	place += 0x40000000;
	at = mmap((void *)place, stage->map_length, PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		  stage->files[EXPORT], 0);
	if (at == MAP_FAILED)
		return -errno;
	stage->map = at;
	return 0;
}

static int map_status(struct stage *stage)
{
	return map(stage, PROT_READ);
}

/* Another driver imports an export. */
static int attach(struct stage *stage)
{
	struct nvmep_test_attach attach = { .dmabuf_fd = stage->files[EXPORT] };
	int ret = neighbour(&attach.pci_address);

	return ret ?: np_ioctl(stage->files[DRIVER], NVMEP_TEST_ATTACH, &attach);
}

static int open_importer(struct stage *stage)
{
	int fd = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);

	return keep(stage, DRIVER, fd < 0 ? -errno : fd);
}

static int make_doorbell_and_importer(struct stage *stage)
{
	return make_doorbell(stage) ?: open_importer(stage);
}

static int make_sq_and_importer(struct stage *stage)
{
	return make_sq(stage) ?: open_importer(stage);
}

/* Everything at once: a mapped and imported doorbell of a live queue pair. */
static int make_busy(struct stage *stage)
{
	return make_doorbell_and_importer(stage) ?: map_doorbell(stage) ?: attach(stage);
}

/* A reset has quiesced the queue pair, and the controller is ready for its re-arm. */
static int make_quiesced(struct stage *stage)
{
	struct nvme_peer_info info;

	return make_doorbell(stage) ?:
	       np_ioctl(stage->ctrl.fd, NVME_IOCTL_RESET, NULL) ?:
	       np_ctrl_wait_live(stage->ctrl.fd, &info, NP_TIMEOUT_MS);
}

static int rearm(struct stage *stage)
{
	struct np_qp qp = { .fd = stage->files[QP] };

	return np_qp_rearm(&qp, NP_TIMEOUT_MS);
}

static int make_qp_to_move(struct stage *stage)
{
	return make_qp_in_buffer(stage) ?: open_importer(stage);
}

/* The exporter invalidates the memory that holds the rings. */
static int move_rings(struct stage *stage)
{
	struct nvmep_test_move move = { .fd = stage->files[BUFFER] };

	return np_ioctl(stage->files[DRIVER], NVMEP_TEST_MOVE, &move);
}

/* Standard passthrough */

static int read_ioctl(struct stage *stage)
{
	struct nvme_passthru_cmd64 cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)stage->bytes,
		.data_len = STAGE_BYTES / 2,
		.cdw12 = STAGE_BYTES / 2 / NP_BLOCK - 1,
	};

	return np_ioctl(stage->files[NODE], NVME_IOCTL_IO64_CMD, &cmd);
}

static int read_vector(struct stage *stage)
{
	struct iovec parts[2] = {
		{ stage->bytes, NP_PAGE },
		{ stage->bytes + 2 * NP_PAGE, NP_PAGE },
	};
	struct nvme_passthru_cmd64 cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)parts,
		.vec_cnt = 2,
		.cdw12 = 2 * NP_PAGE / NP_BLOCK - 1,
	};

	return np_ioctl(stage->files[NODE], NVME_IOCTL_IO64_CMD_VEC, &cmd);
}

static int submit(struct io_uring *ring, const struct nvme_uring_cmd *cmd, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int ret;

	if (!sqe)
		return -EBUSY;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->fd = fd;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
	ret = io_uring_submit_and_wait(ring, 1);
	if (ret >= 0)
		ret = io_uring_wait_cqe(ring, &cqe);
	if (ret < 0)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	/* A controller status would not be an errno for a failed allocation. */
	return ret > 0 ? -EREMOTEIO : ret;
}

/* One command in a ring of its own. */
static int run_uring(struct stage *stage, const struct nvme_uring_cmd *cmd)
{
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	if (ret)
		return ret;
	ret = submit(&ring, cmd, stage->files[NODE]);
	io_uring_queue_exit(&ring);
	return ret;
}

static int read_uring(struct stage *stage)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.addr = (uintptr_t)stage->bytes,
		.data_len = 8 * NP_PAGE,
		.cdw12 = 8 * NP_PAGE / NP_BLOCK - 1,
	};

	return run_uring(stage, &cmd);
}

static int read_uring_metadata(struct stage *stage)
{
	struct nvme_uring_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 2,
		.addr = (uintptr_t)stage->bytes,
		.data_len = NP_PAGE,
		.metadata = (uintptr_t)stage->bytes + NP_PAGE,
		.metadata_len = NP_PAGE / NP_BLOCK * 8,
		.cdw12 = NP_PAGE / NP_BLOCK - 1,
	};

	return run_uring(stage, &cmd);
}

static int read_disk(struct stage *stage)
{
	return np_disk_read(stage->files[NODE], stage->bytes, STAGE_BYTES, 0);
}

/* np1 has a namespace with metadata. */
static int open_metadata(struct stage *stage)
{
	struct np_ctrl ctrl;
	int ret = np_ctrl_open(&ctrl, NEIGHBOUR);

	if (ret)
		return ret;
	ret = keep(stage, NODE, np_open_node(&ctrl, "/dev/ngp%dn2", O_RDWR));
	np_ctrl_close(&ctrl);
	return ret;
}

static int read_metadata(struct stage *stage)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 2,
		.addr = (uintptr_t)stage->bytes,
		.data_len = NP_PAGE,
		.metadata = (uintptr_t)stage->bytes + NP_PAGE,
		.metadata_len = NP_PAGE / NP_BLOCK * 8,
		.cdw12 = NP_PAGE / NP_BLOCK - 1,
	};

	return np_ioctl(stage->files[NODE], NVME_IOCTL_IO_CMD, &cmd);
}

static int discard_disk(struct stage *stage)
{
	uint64_t range[2] = { NP_AREA(3), NP_PAGE };

	return ioctl(stage->files[NODE], BLKDISCARD, range) ? -errno : 0;
}

/* A controller without any transfer so far has no memory for lists. */
static int bind_anew(struct stage *stage)
{
	np_ctrl_close(&stage->ctrl);
	return np_unbind(stage->ctrl.address) ?: np_ctrl_open(&stage->ctrl, "np0") ?:
	       keep(stage, NODE, np_open_node(&stage->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT));
}

/* Life of the controller */

static int wait_settled(struct stage *stage)
{
	int64_t end = np_now_ms() + 2 * NP_TIMEOUT_MS;
	struct nvme_peer_info info;
	int ret;

	do {
		ret = np_info(stage->ctrl.fd, &info);
		if (ret || info.state == NVME_PEER_CTRL_LIVE)
			return ret;
		if (info.state == NVME_PEER_CTRL_DEAD)
			return -ENODEV;
		np_sleep_ms(10);
	} while (np_now_ms() < end);
	return -ETIMEDOUT;
}

static int reset(struct stage *stage)
{
	int ret = np_ioctl(stage->ctrl.fd, NVME_IOCTL_RESET, NULL);

	return wait_settled(stage) ?: ret;
}

/* By the PCI core, which has the driver revoke the doorbells before. */
static int reset_function(struct stage *stage)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", stage->ctrl.address);
	ret = np_write_file(path, "1");
	return wait_settled(stage) ?: ret;
}

static int rescan(struct stage *stage)
{
	return np_ioctl(stage->ctrl.fd, NVME_IOCTL_RESCAN, NULL);
}

static int unbind_controller(struct stage *stage)
{
	return np_unbind(stage->ctrl.address);
}

static int bind_controller(struct stage *stage)
{
	return np_bind(stage->ctrl.address);
}

const struct scenario scenarios[] = {
	{ "open of the controller", FAULT_CALLER, NULL, open_controller },
	{ "open of the generic node", FAULT_CALLER, NULL, open_generic },
	{ "open of the block device", FAULT_CALLER, NULL, open_block },
	{ "close of the controller", FAULT_CALLER, prepare_second_open, close_controller,
	  .must_succeed = true },
	{ "close of a controller with exposed addresses", FAULT_CALLER, make_exposed,
	  close_controller, .must_succeed = true },
	{ "INFO", FAULT_CALLER, NULL, get_info },
	{ "blocks in use", FAULT_CALLER, NULL, read_blocks_in_use },
	{ "ROUTE by address", FAULT_CALLER, NULL, route_by_address },
	{ "ROUTE by dma-buf", FAULT_CALLER, make_buffer, route_by_dmabuf },
	{ "ROUTE to a device's dma-buf", FAULT_CALLER, make_device_buffer, route_by_dmabuf },
	{ "BUF_IMPORT of host memory", FAULT_CALLER, make_buffer, import_buffer },
	{ "BUF_IMPORT of scattered memory", FAULT_CALLER, make_scattered, import_buffer },
	{ "BUF_IMPORT of device memory", FAULT_CALLER, make_device_buffer, import_buffer },
	{ "BUF_ALLOC", FAULT_CALLER, NULL, allocate_buffer },
	{ "BUF_TABLE", FAULT_CALLER, make_imported, get_table },
	{ "BUF_RELEASE", FAULT_CALLER, make_imported, release_buffer },
	{ "QP_CREATE", FAULT_CALLER, NULL, create_qp },
	{ "QP_CREATE in a buffer", FAULT_CALLER, make_imported, create_qp_in_buffer },
	{ "QP_CREATE of a mediated queue pair", FAULT_CALLER, allow_mixed_modes, create_mediated_qp },
	/* Of the calls below, new slabs allocate as well, in some rounds: so not every n comes to a place. */
	{ "QP_CREATE of a mediated queue pair (near)", FAULT_CALLER, allow_mixed_modes, create_mediated_qp,
	  .near = true },
	{ "WINDOW_ADD", FAULT_CALLER, make_mediated_qp, add_window },
	{ "BUF_ADD", FAULT_CALLER, make_mediated_qp, add_buffer },
	{ "BUF_ADD of a device's memory", FAULT_CALLER, make_mediated_qp_and_device_buffer, add_buffer },
	{ "QP_INFO", FAULT_CALLER, create_qp, get_qp_info },
	{ "close of a queue pair", FAULT_CALLER, make_sq, close_qp, .must_succeed = true },
	{ "close of a queue pair with exposed addresses", FAULT_CALLER, make_told_and_closed,
	  close_qp, .must_succeed = true },
	{ "QP_EXPORT of a ring", FAULT_CALLER, create_qp, export_sq },
	{ "QP_EXPORT of the doorbells", FAULT_CALLER, create_qp, export_doorbell },
	{ "QP_EXPORT of the status", FAULT_CALLER, create_qp, export_status },
	{ "mmap of a ring", FAULT_CALLER, make_sq, map_ring },
	{ "mmap of the doorbells", FAULT_CALLER, make_doorbell, map_doorbell },
	{ "mmap of the status", FAULT_CALLER, make_status, map_status },
	{ "attach to the doorbells", FAULT_CALLER, make_doorbell_and_importer, attach },
	{ "attach to a ring", FAULT_CALLER, make_sq_and_importer, attach },
	{ "exporter invalidates its memory", FAULT_CALLER, make_qp_to_move, move_rings },
	{ "exporter invalidates its memory (workers)", FAULT_WORKERS, make_qp_to_move, move_rings },
	{ "re-arm of a queue pair", FAULT_CALLER, make_quiesced, rearm },
	{ "admin command", FAULT_CALLER, NULL, identify },
	{ "I/O command", FAULT_CALLER, open_generic, read_ioctl },
	{ "vectored I/O command", FAULT_CALLER, open_generic, read_vector },
	{ "I/O command with metadata", FAULT_CALLER, open_metadata, read_metadata },
	{ "io_uring command", FAULT_CALLER, open_generic, read_uring },
	{ "io_uring command with metadata", FAULT_CALLER, open_metadata, read_uring_metadata },
	{ "read of the block device", FAULT_CALLER, open_block, read_disk },
	{ "first read of the block device", FAULT_CALLER, bind_anew, read_disk, .costly = true },
	{ "discard on the block device", FAULT_CALLER, open_block, discard_disk },
	{ "rescan", FAULT_CALLER, NULL, rescan },
	{ "reset", FAULT_CALLER, make_busy, reset, .may_die = true },
	{ "reset (workers)", FAULT_WORKERS, make_busy, reset, .may_die = true },
	{ "function reset", FAULT_CALLER, make_busy, reset_function, .may_die = true,
	  .costly = true },
	{ "unbind", FAULT_CALLER, make_busy, unbind_controller, .must_succeed = true,
	  .may_die = true },
	{ "unbind (workers)", FAULT_WORKERS, make_busy, unbind_controller, .must_succeed = true,
	  .may_die = true },
	{ "bind", FAULT_CALLER, unbind_controller, bind_controller, .may_die = true,
	  .costly = true },
	{ "bind, its own", FAULT_CALLER, unbind_controller, bind_controller, .may_die = true,
	  .near = true },
	{ "bind (workers)", FAULT_WORKERS, unbind_controller, bind_controller, .may_die = true,
	  .costly = true },
};

const unsigned int scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
