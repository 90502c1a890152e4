// SPDX-License-Identifier: GPL-2.0-only
/* The peer interface: every ioctl, nearly valid. */
#include "judge.h"
#include "operations.h"
#include "pool.h"
#include "random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "softgpu_drv.h"

#define MOST_PAGES	40

/*
 * Call with @argument corrupted, misplaced or of another size: 0 or -errno. The result is
 * in @argument unless it was misplaced.
 */
static int call(struct fuzz_thread *thread, const char *name, int fd, unsigned long cmd,
		void *argument, uint32_t size)
{
	/* Room for a structure with a larger size field. */
	uint8_t bytes[512] = { 0 };
	void *placed;
	bool right;
	int ret;

	memcpy(bytes, argument, size);
	fuzz_mangle(thread, bytes, fuzz_one_in(thread, 8) ? size + 16 : size);
	right = !memcmp(bytes, argument, size);
	placed = fuzz_place(thread, bytes, size);
	ret = np_ioctl(fd, cmd, placed);
	fuzz_judge(thread, name, np_permit_ioctl(&thread->caller, cmd), right && placed == bytes, ret);
	if (!ret && placed == bytes)
		memcpy(argument, bytes, size);
	return ret ?: placed == bytes ? 0 : 1;
}

static bool controller(struct fuzz_thread *thread, struct fuzz_resource *resource)
{
	return fuzz_pick(thread, FUZZ_CONTROLLER, resource);
}

static uint32_t some_handle(struct fuzz_thread *thread)
{
	struct fuzz_resource handle;

	if (fuzz_one_in(thread, 8) || !fuzz_pick(thread, FUZZ_HANDLE, &handle))
		return fuzz_below(thread, 8);
	return handle.what;
}

/* A dma-buf of any exporter, including nvme-peer, or another file. */
static int some_dmabuf(struct fuzz_thread *thread)
{
	static const enum fuzz_kind kinds[] = {
		FUZZ_BUFFER, FUZZ_BUFFER, FUZZ_BUFFER, FUZZ_EXPORT, FUZZ_QP, FUZZ_CONTROLLER,
	};
	struct fuzz_resource resource;

	if (!fuzz_pick(thread, kinds[fuzz_below(thread, 6)], &resource))
		return -1;
	return resource.fd;
}

static void info(struct fuzz_thread *thread)
{
	struct nvme_peer_info argument = { .size = sizeof(argument) };
	struct fuzz_resource ctrl;

	if (controller(thread, &ctrl))
		call(thread, "INFO", ctrl.fd, NVME_PEER_INFO, &argument, sizeof(argument));
}

static void route(struct fuzz_thread *thread)
{
	struct nvme_peer_route argument = { .size = sizeof(argument) };
	struct fuzz_resource ctrl;

	if (!controller(thread, &ctrl))
		return;
	if (fuzz_one_in(thread, 2)) {
		argument.flags = NVME_PEER_ROUTE_BY_ADDRESS;
		argument.pci_address = (struct nvme_peer_pci_address){
			.domain = fuzz_one_in(thread, 8) ? 0x10000 : 0,
			.function = (uint16_t)(fuzz_below(thread, 6) << 8 |
					       fuzz_below(thread, 8) << 3),
			.valid = (uint16_t)!fuzz_one_in(thread, 8),
		};
	} else {
		argument.dmabuf_fd = some_dmabuf(thread);
	}
	call(thread, "ROUTE", ctrl.fd, NVME_PEER_ROUTE, &argument, sizeof(argument));
}

static void import(struct fuzz_thread *thread)
{
	struct nvme_peer_buf_import argument = { .size = sizeof(argument) };
	struct fuzz_resource ctrl, handle = { .kind = FUZZ_HANDLE };

	if (!controller(thread, &ctrl))
		return;
	argument.dmabuf_fd = some_dmabuf(thread);
	if (fuzz_one_in(thread, 4))
		argument.flags = NVME_PEER_BUF_REQUIRE_DEVICE;
	if (fuzz_one_in(thread, 3))
		argument.access = fuzz_below(thread, 4);
	if (fuzz_one_in(thread, 3))
		argument.offset = (uint64_t)fuzz_below(thread, 4) * NP_PAGE;
	if (fuzz_one_in(thread, 3))
		argument.length = (uint64_t)fuzz_below(thread, 6) * NP_PAGE;
	if (call(thread, "BUF_IMPORT", ctrl.fd, NVME_PEER_BUF_IMPORT, &argument, sizeof(argument)))
		return;
	handle.fd = ctrl.fd;
	handle.what = argument.handle;
	fuzz_add(thread, &handle);
}

static void allocate(struct fuzz_thread *thread)
{
	struct nvme_peer_buf_alloc argument = {
		.size = sizeof(argument),
		.length = fuzz_below(thread, MOST_PAGES * NP_PAGE),
	};
	struct fuzz_resource ctrl;
	int ret;

	if (!fuzz_hold(thread, FUZZ_CONTROLLER, &ctrl))
		return;
	if (fuzz_one_in(thread, 16))
		argument.length = NVME_PEER_BUF_ALLOC_MAX + 1ULL;
	/* A corrupted length could take the memory of all other threads. */
	ret = np_ioctl(ctrl.held, NVME_PEER_BUF_ALLOC, &argument);
	fuzz_judge(thread, "BUF_ALLOC", np_permit_ioctl(&thread->caller, NVME_PEER_BUF_ALLOC), true,
		   ret);
	if (!ret)
		fuzz_add_fd(thread, FUZZ_BUFFER, argument.fd);
	fuzz_let_go(&ctrl);
}

static void release(struct fuzz_thread *thread)
{
	struct nvme_peer_buf_release argument = { .size = sizeof(argument) };
	struct fuzz_resource handle;

	if (!fuzz_take(thread, FUZZ_HANDLE, &handle))
		return;
	argument.handle = handle.what;
	call(thread, "BUF_RELEASE", handle.fd, NVME_PEER_BUF_RELEASE, &argument, sizeof(argument));
}

static void table(struct fuzz_thread *thread)
{
	struct nvme_peer_buf_range ranges[MOST_PAGES] = { 0 };
	struct nvme_peer_buf_table argument = { .size = sizeof(argument) };
	struct np_permit permit = np_permit_ioctl(&thread->caller, NVME_PEER_BUF_TABLE);
	struct fuzz_resource file;

	/* A missing permission is reported before the handle is looked up. */
	if (!fuzz_hold(thread, permit.allowed ? FUZZ_HANDLE : FUZZ_CONTROLLER, &file))
		return;
	argument.handle = file.what;
	argument.count = fuzz_below(thread, MOST_PAGES);
	argument.offset = (uint64_t)fuzz_below(thread, 4) * NP_PAGE;
	argument.ranges = (uintptr_t)fuzz_place(thread, ranges, sizeof(ranges));
	/* A count larger than the array would let the kernel overwrite the stack. */
	fuzz_judge(thread, "BUF_TABLE", permit, true,
		   np_ioctl(file.held, NVME_PEER_BUF_TABLE, &argument));
	fuzz_let_go(&file);
}

/*
 * A caller that must be refused passes valid ring sizes, so that no other error applies.
 */
static uint32_t ring_entries(struct fuzz_thread *thread)
{
	return thread->caller.rawio && fuzz_one_in(thread, 4) ? (uint32_t)fuzz_interesting(thread) :
					2 + fuzz_below(thread, 126);
}

static void create(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_create argument = { .size = sizeof(argument) };
	struct fuzz_resource ctrl;
	int ret;

	if (!fuzz_hold(thread, FUZZ_CONTROLLER, &ctrl))
		return;
	argument.sq_entries = ring_entries(thread);
	argument.cq_entries = !thread->caller.rawio || fuzz_one_in(thread, 2) ?
			      argument.sq_entries : ring_entries(thread);
	if (fuzz_one_in(thread, 4))
		argument.flags = NVME_PEER_QP_ALLOW_SLEEP;
	if (fuzz_one_in(thread, 3))
		argument.mode = NVME_PEER_MODE_RELAY;
	if (fuzz_one_in(thread, 3))
		argument.sq_handle = some_handle(thread);
	if (fuzz_one_in(thread, 3))
		argument.cq_handle = some_handle(thread);
	if (argument.sq_handle)
		argument.sq_offset = (uint64_t)fuzz_below(thread, 4) * NP_PAGE;
	if (argument.cq_handle)
		argument.cq_offset = (uint64_t)fuzz_below(thread, 4) * NP_PAGE;
	ret = call(thread, "QP_CREATE", ctrl.held, NVME_PEER_QP_CREATE, &argument, sizeof(argument));
	fuzz_let_go(&ctrl);
	if (!ret)
		fuzz_add_fd(thread, FUZZ_QP, argument.qp_fd);
}

static void export(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_export argument = { .size = sizeof(argument) };
	struct fuzz_resource qp, made = { .kind = FUZZ_EXPORT };

	if (!fuzz_pick(thread, FUZZ_QP, &qp))
		return;
	argument.what = fuzz_below(thread, 5);
	if (argument.what == NVME_PEER_EXPORT_DOORBELL && fuzz_one_in(thread, 3))
		argument.flags = NVME_PEER_EXPORT_ALLOW_STATIC;
	if (call(thread, "QP_EXPORT", qp.fd, NVME_PEER_QP_EXPORT, &argument, sizeof(argument)))
		return;
	made.fd = argument.fd;
	made.what = argument.what;
	made.offset = argument.offset;
	made.length = (argument.offset + argument.length + NP_PAGE - 1) / NP_PAGE * NP_PAGE;
	fuzz_add(thread, &made);
}

static void qp_info(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_info argument = { .size = sizeof(argument) };
	struct fuzz_resource qp;

	if (fuzz_pick(thread, FUZZ_QP, &qp))
		call(thread, "QP_INFO", qp.fd, NVME_PEER_QP_INFO, &argument, sizeof(argument));
}

/* Events that the other operations caused. */
static void qp_read(struct fuzz_thread *thread)
{
	struct nvme_peer_event events[3] = { 0 };
	struct fuzz_resource qp;
	ssize_t ret;

	if (!fuzz_pick(thread, FUZZ_QP, &qp) || fcntl(qp.fd, F_SETFL, O_NONBLOCK))
		return;
	ret = read(qp.fd, fuzz_place(thread, events, sizeof(events)),
		   fuzz_below(thread, sizeof(events) + 1));
	fuzz_result(thread, "QP read", ret < 0 ? -errno : 0);
	/* A short read gets the beginning of one event. */
	if (ret > 0 && (ret < NVME_PEER_EVENT_LEAST ||
			(ret > (ssize_t)sizeof(events[0]) && ret % (ssize_t)sizeof(events[0]))))
		fuzz_violation(thread, "QP read", "part of an event", (int)ret);
}

/* After any loss, most often the last one. */
static void qp_rearm(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_info now = { .size = sizeof(now) };
	struct nvme_peer_qp_rearm argument = { .size = sizeof(argument) };
	struct fuzz_resource qp;

	if (!fuzz_pick(thread, FUZZ_QP, &qp) || np_ioctl(qp.fd, NVME_PEER_QP_INFO, &now))
		return;
	argument.losses = fuzz_one_in(thread, 4) ? fuzz_below(thread, 4) : now.losses;
	call(thread, "QP_REARM", qp.fd, NVME_PEER_QP_REARM, &argument, sizeof(argument));
}

static void qp_kick(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_kick argument = { .size = sizeof(argument) };
	struct fuzz_resource qp;

	if (fuzz_pick(thread, FUZZ_QP, &qp))
		call(thread, "QP_KICK", qp.fd, NVME_PEER_QP_KICK, &argument, sizeof(argument));
}

/* A peer requests recovery. */
static void qp_give_up(struct fuzz_thread *thread)
{
	struct nvme_peer_qp_export argument = {
		.size = sizeof(argument), .what = NVME_PEER_EXPORT_CONTROL,
	};
	struct nvme_peer_control *request;
	struct fuzz_resource qp;

	if (!fuzz_pick(thread, FUZZ_QP, &qp) || np_ioctl(qp.fd, NVME_PEER_QP_EXPORT, &argument))
		return;
	request = mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, argument.fd, 0);
	close(argument.fd);
	if (request == MAP_FAILED)
		return;
	request->quiesce = 1;
	munmap(request, NP_PAGE);
}

/* Any ioctl number of the module's types, on any file, with any argument. */
static void any_ioctl(struct fuzz_thread *thread)
{
	struct fuzz_resource resource;
	uint64_t bytes[32];
	unsigned long cmd;
	unsigned int i;

	if (!fuzz_hold(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_HANDLE), &resource))
		return;
	/* Valid sizes more often than by chance; invalid addresses. */
	for (i = 0; i < 32; i++)
		bytes[i] = fuzz_interesting(thread) & ~0xffff00000000ULL;
	bytes[0] = fuzz_below(thread, 256);
	cmd = _IOC(fuzz_below(thread, 4), NVME_PEER_TYPE, fuzz_below(thread, 0x20),
		   fuzz_below(thread, 128));
	fuzz_judge(thread, "ioctl", np_permit_ioctl(&thread->caller, cmd), false,
		   np_ioctl(resource.held, cmd, fuzz_place(thread, bytes, sizeof(bytes))));
	fuzz_let_go(&resource);
}

static void open_controller(struct fuzz_thread *thread)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvmep%u", fuzz_instance(thread));
	fuzz_add_fd(thread, FUZZ_CONTROLLER, open(path, O_RDWR | O_CLOEXEC));
}

static void close_any(struct fuzz_thread *thread)
{
	enum fuzz_kind kind = (enum fuzz_kind)fuzz_below(thread, FUZZ_KINDS);
	struct fuzz_resource resource;

	if (fuzz_is_lasting(thread, kind))
		return;
	if (fuzz_take(thread, kind, &resource))
		fuzz_drop(&resource);
}

/* A second descriptor of the same file. */
static void duplicate(struct fuzz_thread *thread)
{
	struct fuzz_resource resource;

	if (!fuzz_hold(thread, (enum fuzz_kind)fuzz_below(thread, FUZZ_HANDLE), &resource))
		return;
	resource.fd = resource.held;
	fuzz_add(thread, &resource);
}

static void make_buffer(struct fuzz_thread *thread)
{
	static const uint32_t flags[] = { 0, 0, NVMEP_TEST_SCATTERED, NVMEP_TEST_NO_PIN };

	uint32_t pages = 1 + fuzz_below(thread, MOST_PAGES);

	fuzz_add_fd(thread, FUZZ_BUFFER, np_test_export(pages, flags[fuzz_below(thread, 4)]));
}

static void make_device_buffer(struct fuzz_thread *thread)
{
	static const uint32_t flags[] = { 0, 0, SOFTGPU_ALLOC_SYSTEM, SOFTGPU_ALLOC_SCATTERED };
	struct softgpu_alloc alloc = {
		.size = (1 + (uint64_t)fuzz_below(thread, MOST_PAGES)) * NP_PAGE,
		.flags = flags[fuzz_below(thread, 4)],
	};
	int gpu = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);

	if (gpu < 0)
		return;
	if (!np_ioctl(gpu, SOFTGPU_ALLOC, &alloc))
		fuzz_add_fd(thread, FUZZ_BUFFER, alloc.fd);
	close(gpu);
}

/* Another driver attaches to an export, or detaches. */
static void attach(struct fuzz_thread *thread)
{
	static const uint32_t flags[] = {
		0, 0, NVMEP_TEST_STATIC, NVMEP_TEST_STUBBORN, NVMEP_TEST_NO_P2P,
		NVMEP_TEST_FENCED | NVMEP_TEST_SLOW,
	};
	struct nvmep_test_attach argument = {
		.flags = flags[fuzz_below(thread, 6)],
		.fence_ms = fuzz_below(thread, 50),
		.slow_ms = fuzz_below(thread, 50),
	};
	struct fuzz_resource importer = { .kind = FUZZ_IMPORTER };
	char address[16];

	/*
	 * A device that keeps its driver: mappings of an unbound device would be a bug of
	 * the fuzzer.
	 */
	if (np_function_address("softgpu", address))
		return;
	argument.pci_address = np_parse_address(address);
	argument.dmabuf_fd = some_dmabuf(thread);
	importer.fd = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	if (importer.fd < 0)
		return;
	fuzz_result(thread, "attach", np_ioctl(importer.fd, NVMEP_TEST_ATTACH, &argument));
	fuzz_add(thread, &importer);
}

static void detach(struct fuzz_thread *thread)
{
	struct fuzz_resource importer;

	if (fuzz_pick(thread, FUZZ_IMPORTER, &importer))
		np_ioctl(importer.fd, NVMEP_TEST_DETACH, NULL);
}

/* The exporter of a buffer invalidates it. */
static void move(struct fuzz_thread *thread)
{
	struct fuzz_resource buffer, importer;
	struct nvmep_test_move argument;

	if (!fuzz_pick(thread, FUZZ_BUFFER, &buffer) ||
	    !fuzz_pick(thread, FUZZ_IMPORTER, &importer))
		return;
	argument.fd = buffer.fd;
	np_ioctl(importer.fd, NVMEP_TEST_MOVE, &argument);
}

const struct fuzz_operation fuzz_peer_operations[] = {
	{ "open controller", 6, false, open_controller },
	{ "close", 14, false, close_any },
	{ "dup", 3, false, duplicate },
	{ "INFO", 2, false, info },
	{ "ROUTE", 4, false, route },
	{ "make buffer", 4, false, make_buffer },
	{ "make device buffer", 3, false, make_device_buffer },
	{ "BUF_IMPORT", 10, false, import },
	{ "BUF_ALLOC", 4, false, allocate },
	{ "BUF_RELEASE", 5, false, release },
	{ "BUF_TABLE", 4, false, table },
	{ "QP_CREATE", 16, false, create },
	{ "QP_EXPORT", 14, false, export },
	{ "QP_INFO", 3, false, qp_info },
	{ "QP read", 3, false, qp_read },
	{ "QP_REARM", 4, false, qp_rearm },
	{ "QP_KICK", 2, false, qp_kick },
	{ "give up", 2, false, qp_give_up },
	{ "any ioctl", 6, false, any_ioctl },
	{ "attach", 6, true, attach },
	{ "detach", 3, true, detach },
	{ "move", 3, true, move },
	{ NULL }
};
