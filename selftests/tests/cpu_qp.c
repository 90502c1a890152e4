// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers, exports, and a queue pair whose peer is the CPU: see nptest.h.
 *
 * The CPU does what a GPU would do: it writes entries to the mapped ring and stores to
 * the mapped doorbell. No system call is made between np_qp_put() and np_qp_reap().
 */
#include "nptest.h"
#include "spare.h"
#include "tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- mode ----------------------------------------------------------------- */

static enum nvme_peer_mode mode;
static uint32_t mediated_timeout_ms;
static uint32_t mediated_depth;
static uint32_t mediated_weight;

/*
 * The queue pairs of a test that knows nothing of mediated mode: np_qp_open() adds a window on the
 * namespace, and np_qp_put() makes of its commands those of a tenant.
 */
static bool as_tenant;

/* NP_MODE runs a test in another mode: see selftests/run. */
static void __attribute__((constructor)) mode_from_environment(void)
{
	static const char * const names[] = {
		[NVME_PEER_MODE_RELAY] = "relay", [NVME_PEER_MODE_MEDIATED] = "mediated",
	};
	const char *name = getenv("NP_MODE");
	unsigned int i;

	for (i = NVME_PEER_MODE_RELAY; name && i <= NVME_PEER_MODE_MEDIATED; i++)
		if (!strcmp(name, names[i]))
			mode = i;
	as_tenant = mode == NVME_PEER_MODE_MEDIATED;
}

bool np_as_tenant(void)
{
	return as_tenant;
}

enum nvme_peer_mode np_qp_mode(void)
{
	return mode;
}

void np_qp_set_mode(enum nvme_peer_mode new_mode)
{
	mode = new_mode;
}

void np_qp_set_timeout(uint32_t timeout_ms)
{
	mediated_timeout_ms = timeout_ms;
}

void np_qp_set_shares(uint32_t depth, uint32_t weight)
{
	mediated_depth = depth;
	mediated_weight = weight;
}

int np_qp_revoked(void)
{
	return mode == NVME_PEER_MODE_DIRECT ? -EFAULT : 0;
}

/* --- stores that may fault ------------------------------------------------- */

static pthread_once_t store_once = PTHREAD_ONCE_INIT;
static __thread sigjmp_buf store_failed;
static __thread volatile sig_atomic_t storing;

static void store_signal(int number)
{
	if (storing)
		siglongjmp(store_failed, 1);
	signal(number, SIG_DFL);
	raise(number);
}

/*
 * The signal is not blocked in its handler, so that leaving it by siglongjmp() needs no
 * system call.
 */
static void store_prepare(void)
{
	struct sigaction catch = { .sa_handler = store_signal, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &catch, NULL);
	sigaction(SIGSEGV, &catch, NULL);
}

int np_catch_fault(int (*call)(void *argument), void *argument)
{
	int ret;

	pthread_once(&store_once, store_prepare);
	if (sigsetjmp(store_failed, 0)) {
		storing = 0;
		return -EFAULT;
	}
	storing = 1;
	ret = call(argument);
	storing = 0;
	return ret;
}

struct store {
	volatile uint32_t *address;
	uint32_t value;
};

static int store(void *argument)
{
	const struct store *what = argument;

	*what->address = what->value;
	return 0;
}

int np_store(volatile void *address, uint32_t value)
{
	struct store what = { address, value };

	return np_catch_fault(store, &what);
}

static void *store_on_and_on(void *argument)
{
	struct np_storer *storer = argument;
	uint32_t value;

	while (!atomic_load(&storer->stop) && !atomic_load(&storer->failed)) {
		value = atomic_load(&storer->vary) ? atomic_load(&storer->stores) & 1 : 0;
		if (np_store(storer->qp->tail_doorbell, value))
			atomic_store(&storer->failed, true);
		atomic_fetch_add(&storer->stores, 1);
		sched_yield();
	}
	return NULL;
}

int np_storer_start(struct np_storer *storer, const struct np_qp *qp)
{
	int ret;

	*storer = (struct np_storer){ .qp = qp };
	ret = pthread_create(&storer->thread, NULL, store_on_and_on, storer);
	while (!ret && !atomic_load(&storer->stores))
		np_sleep_ms(1);
	return -ret;
}

/* What stores to doorbells in memory have led to: writes of the register, or refused commands. */
static int effects(const struct np_qp *qp, uint64_t *count)
{
	struct nvme_peer_qp_stats stats;
	struct nvme_peer_qp_info info;
	int ret;

	if (qp->create.mode == NVME_PEER_MODE_MEDIATED) {
		ret = np_qp_stats(qp, &stats);
		*count = stats.refused;
	} else {
		ret = np_qp_info(qp->fd, &info);
		*count = info.cpu_doorbell_writes;
	}
	return ret;
}

/* Do changing values have no effect for 20 ms? */
static bool has_no_effect(struct np_storer *storer)
{
	unsigned int stores = atomic_load(&storer->stores) + 2;
	uint64_t before, after;

	atomic_store(&storer->vary, true);
	if (effects(storer->qp, &before))
		return false;
	np_sleep_ms(20);
	while (atomic_load(&storer->stores) < stores)
		np_sleep_ms(1);
	return !effects(storer->qp, &after) && after == before;
}

int np_storer_wait(struct np_storer *storer, int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;

	while (np_qp_revoked() ? !atomic_load(&storer->failed) : !has_no_effect(storer)) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
	}
	return 0;
}

void np_storer_stop(struct np_storer *storer)
{
	atomic_store(&storer->stop, true);
	pthread_join(storer->thread, NULL);
}

/* --- buffers -------------------------------------------------------------- */

int np_test_export(uint32_t pages, uint32_t flags)
{
	struct nvmep_test_export export = { .pages = pages, .flags = flags };
	int fd = np_test_open();
	int ret;

	if (fd < 0)
		return fd;
	ret = np_ioctl(fd, NVMEP_TEST_EXPORT, &export);
	close(fd);
	return ret ? ret : export.fd;
}

int np_import(int ctrl_fd, int dmabuf, uint32_t flags, struct nvme_peer_buf_import *import)
{
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.flags = flags,
		.dmabuf_fd = dmabuf,
	};
	return np_ioctl(ctrl_fd, NVME_PEER_BUF_IMPORT, import);
}

int np_release(int ctrl_fd, uint32_t handle)
{
	struct nvme_peer_buf_release release = { .size = sizeof(release), .handle = handle };

	return np_ioctl(ctrl_fd, NVME_PEER_BUF_RELEASE, &release);
}

#define RANGES	64U

int np_buf_table(int ctrl_fd, uint32_t handle, uint64_t offset, uint64_t *addresses,
		 uint32_t count, uint32_t *got)
{
	struct nvme_peer_buf_range ranges[RANGES] = {};
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.handle = handle,
		.ranges = (uintptr_t)ranges,
	};
	uint32_t i, done = 0;
	uint64_t at;
	int ret;

	do {
		table.count = RANGES;
		table.offset = offset + (uint64_t)done * NP_PAGE;
		ret = np_ioctl(ctrl_fd, NVME_PEER_BUF_TABLE, &table);
		for (i = 0; !ret && i < table.count; i++)
			for (at = 0; at < ranges[i].length && done < count; at += NP_PAGE)
				addresses[done++] = ranges[i].address + at;
	} while (!ret && done < count && table.count == RANGES);
	*got = done;
	/* The last full array may have ended with the buffer. */
	return done && ret == -ERANGE ? 0 : ret;
}

static int buffer_table(struct np_buffer *buffer, int ctrl_fd)
{
	uint32_t got;
	int ret;

	buffer->table = calloc(buffer->pages, sizeof(*buffer->table));
	if (!buffer->table)
		return -ENOMEM;
	ret = np_buf_table(ctrl_fd, buffer->handle, 0, buffer->table, buffer->pages, &got);
	if (ret)
		return ret;
	return got == buffer->pages ? 0 : -EIO;
}

/* A tenant learns no addresses: its commands have the buffer's name, which np_qp_put() replaces. */
static int buffer_name(struct np_buffer *buffer)
{
	uint64_t name = np_tenant_name(buffer->fd);
	uint32_t i;

	buffer->table = calloc(buffer->pages, sizeof(*buffer->table));
	for (i = 0; buffer->table && i < buffer->pages; i++)
		buffer->table[i] = name + (uint64_t)i * NP_PAGE;
	return buffer->table ? 0 : -ENOMEM;
}

int np_buffer_open_dmabuf(struct np_buffer *buffer, int ctrl_fd, int dmabuf, uint32_t pages)
{
	struct nvme_peer_buf_import import;
	void *map;
	int ret;

	*buffer = (struct np_buffer){ .fd = dmabuf, .pages = pages };
	map = mmap(NULL, (size_t)pages * NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	if (map == MAP_FAILED)
		return -errno;
	buffer->bytes = map;
	ret = np_import(ctrl_fd, dmabuf, 0, &import);
	if (ret)
		return ret;
	buffer->handle = import.handle;
	return as_tenant ? buffer_name(buffer) : buffer_table(buffer, ctrl_fd);
}

/* Without the module of the tests, memory of nvme-peer itself serves: it has no @flags. */
static int export_memory(int ctrl_fd, uint32_t pages, uint32_t flags)
{
	struct nvme_peer_buf_alloc alloc = {
		.size = sizeof(alloc), .length = (uint64_t)pages * NP_PAGE,
	};

	if (!np_spare() || flags || !access(NVMEP_TEST_NODE, F_OK))
		return np_test_export(pages, flags);
	return np_ioctl(ctrl_fd, NVME_PEER_BUF_ALLOC, &alloc) ?: alloc.fd;
}

int np_buffer_open(struct np_buffer *buffer, int ctrl_fd, uint32_t pages, uint32_t flags)
{
	int dmabuf = export_memory(ctrl_fd, pages, flags), ret;

	if (dmabuf < 0)
		return dmabuf;
	ret = np_buffer_open_dmabuf(buffer, ctrl_fd, dmabuf, pages);
	if (ret)
		np_buffer_close(buffer);
	return ret;
}

/* The import stays until the controller file is closed or np_release(). */
void np_buffer_close(struct np_buffer *buffer)
{
	if (buffer->bytes)
		munmap(buffer->bytes, (size_t)buffer->pages * NP_PAGE);
	free(buffer->table);
	if (buffer->fd >= 0)
		close(buffer->fd);
	*buffer = (struct np_buffer){ .fd = -1 };
}

int np_export_fd(int qp_fd, uint32_t what, uint32_t flags, struct nvme_peer_qp_export *out)
{
	*out = (struct nvme_peer_qp_export){
		.size = sizeof(*out),
		.flags = flags,
		.what = what,
		.fd = -1,
	};
	return np_ioctl(qp_fd, NVME_PEER_QP_EXPORT, out);
}

int np_export_open(struct np_export *export, int qp_fd, uint32_t what, uint32_t flags)
{
	int prot = what == NVME_PEER_EXPORT_STATUS ? PROT_READ : PROT_READ | PROT_WRITE;
	struct nvme_peer_qp_export out;
	off_t size;
	int ret;

	*export = (struct np_export){ .fd = -1 };
	ret = np_export_fd(qp_fd, what, flags, &out);
	if (ret)
		return ret;
	export->fd = out.fd;
	export->length = out.length;
	size = lseek(out.fd, 0, SEEK_END);
	if (size < 0 || out.offset + out.length > (uint64_t)size) {
		np_export_close(export);
		return -EIO;
	}
	export->size = (size_t)size;
	export->map = mmap(NULL, export->size, prot, MAP_SHARED, out.fd, 0);
	if (export->map == MAP_FAILED) {
		ret = -errno;
		export->map = NULL;
		np_export_close(export);
		return ret;
	}
	export->at = (uint8_t *)export->map + out.offset;
	return 0;
}

void np_export_close(struct np_export *export)
{
	if (export->map)
		munmap(export->map, export->size);
	if (export->fd >= 0)
		close(export->fd);
	*export = (struct np_export){ .fd = -1 };
}

static int create(int ctrl_fd, uint32_t entries, uint32_t flags,
		  struct nvme_peer_qp_create *request)
{
	*request = (struct nvme_peer_qp_create){
		.size = sizeof(*request),
		.flags = flags,
		.mode = mode,
		.sq_entries = entries,
		.cq_entries = entries,
		.qp_fd = -1,
		.timeout_ms = mode == NVME_PEER_MODE_MEDIATED ? mediated_timeout_ms : 0,
		.depth = mode == NVME_PEER_MODE_MEDIATED ? mediated_depth : 0,
		.weight = mode == NVME_PEER_MODE_MEDIATED ? mediated_weight : 0,
	};
	return np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, request);
}

int np_qp_create(int ctrl_fd, uint32_t entries, struct nvme_peer_qp_create *request)
{
	return create(ctrl_fd, entries, 0, request);
}

int np_qp_info(int qp_fd, struct nvme_peer_qp_info *info)
{
	*info = (struct nvme_peer_qp_info){ .size = sizeof(*info) };
	return np_ioctl(qp_fd, NVME_PEER_QP_INFO, info);
}

static int qp_map(struct np_qp *qp)
{
	struct nvme_peer_qp_info info;
	int ret;

	ret = np_qp_info(qp->fd, &info) ?:
	      (info.mode == qp->create.mode ? 0 : -EPROTO) ?:
	      np_export_open(&qp->sq, qp->fd, NVME_PEER_EXPORT_SQ, 0) ?:
	      np_export_open(&qp->cq, qp->fd, NVME_PEER_EXPORT_CQ, 0) ?:
	      np_export_open(&qp->doorbell, qp->fd, NVME_PEER_EXPORT_DOORBELL, 0) ?:
	      np_export_open(&qp->status, qp->fd, NVME_PEER_EXPORT_STATUS, 0);
	if (ret)
		return ret;
	qp->tail_doorbell = qp->doorbell.at;
	qp->head_doorbell = (void *)((uint8_t *)qp->doorbell.at + info.doorbell_stride);
	return 0;
}

int np_qp_open(struct np_qp *qp, int ctrl_fd, uint32_t entries)
{
	return np_qp_open_with(qp, ctrl_fd, entries, 0);
}

int np_qp_open_with(struct np_qp *qp, int ctrl_fd, uint32_t entries, uint32_t flags)
{
	int ret;

	*qp = (struct np_qp){
		.phase = 1,
		.sq.fd = -1,
		.cq.fd = -1,
		.doorbell.fd = -1,
		.status.fd = -1,
	};
	ret = create(ctrl_fd, entries, flags, &qp->create);
	qp->fd = qp->create.qp_fd;
	if (ret) {
		qp->fd = -1;
		return ret;
	}
	ret = qp_map(qp);
	if (!ret && as_tenant)
		ret = np_tenant_open(&qp->tenant, qp->fd, ctrl_fd);
	if (ret)
		np_qp_close(qp);
	return ret;
}

void np_qp_close(struct np_qp *qp)
{
	np_export_close(&qp->sq);
	np_export_close(&qp->cq);
	np_export_close(&qp->doorbell);
	np_export_close(&qp->status);
	if (qp->fd >= 0)
		close(qp->fd);
	qp->fd = -1;
}

int np_qp_wait_state(const struct np_qp *qp, uint32_t state, int timeout_ms)
{
	const volatile struct nvme_peer_status *status = qp->status.at;
	int64_t end = np_now_ms() + timeout_ms;

	while (status->state != state) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(1);
	}
	return 0;
}

int np_qp_wait_ready(const struct np_qp *qp)
{
	struct nvme_peer_event event = { 0 };

	while (event.type != NVME_PEER_EVENT_READY)
		if (read(qp->fd, &event, sizeof(event)) != sizeof(event))
			return -errno;
	return 0;
}

int np_qp_rearm_loss(struct np_qp *qp, uint32_t losses)
{
	struct nvme_peer_qp_rearm rearm = { .size = sizeof(rearm), .losses = losses };
	struct nvme_peer_qp_info info;
	int ret = np_ioctl(qp->fd, NVME_PEER_QP_REARM, &rearm) ?: np_qp_info(qp->fd, &info);

	if (ret)
		return ret;
	qp->create.generation = info.generation;
	qp->tail = 0;
	qp->head = 0;
	qp->phase = 1;
	return 0;
}

int np_qp_rearm(struct np_qp *qp, int timeout_ms)
{
	int64_t end = np_now_ms() + timeout_ms;
	struct nvme_peer_qp_info info;
	int ret;

	for (;;) {
		ret = np_qp_info(qp->fd, &info) ?: np_qp_rearm_loss(qp, info.losses);
		if (ret != -EAGAIN || np_now_ms() > end)
			return ret;
		np_sleep_ms(10);
	}
}

void np_qp_put(struct np_qp *qp, const struct np_command *command)
{
	struct np_command *ring = qp->sq.at;

	np_spare_command(false, command->opcode);
	ring[qp->tail] = qp->tenant.window ? np_tenant_command(&qp->tenant, qp->fd, command) : *command;
	qp->tail = (qp->tail + 1) % qp->create.sq_entries;
}

int np_qp_ring_doorbell(struct np_qp *qp)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return np_store(qp->tail_doorbell, qp->tail);
}

int np_qp_submit_reads(struct np_qp *qp, uint32_t count, const struct np_buffer *buffer, uint32_t bytes)
{
	struct np_command command;

	for (; count; count--) {
		np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(9), 0, bytes);
		np_qp_put(qp, &command);
	}
	return np_qp_ring_doorbell(qp);
}

int np_qp_reap(struct np_qp *qp, uint16_t *cid, int timeout_ms)
{
	struct np_completion *entry = (struct np_completion *)qp->cq.at + qp->head;
	int64_t end = np_now_ms() + timeout_ms;
	uint16_t status;

	while (((status = __atomic_load_n(&entry->status, __ATOMIC_ACQUIRE)) & 1) != qp->phase) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		sched_yield();
	}
	if (cid)
		*cid = entry->cid;
	if (++qp->head == qp->create.cq_entries) {
		qp->head = 0;
		qp->phase ^= 1;
	}
	return np_store(qp->head_doorbell, qp->head) ?: status >> 1;
}

int np_qp_run(struct np_qp *qp, struct np_command *command, int timeout_ms)
{
	uint16_t cid;
	int status;

	np_qp_put(qp, command);
	status = np_qp_ring_doorbell(qp) ?: np_qp_reap(qp, &cid, timeout_ms);
	if (status >= 0 && cid != command->cid)
		return -EBADMSG;
	return status;
}

int np_qp_check(int ctrl_fd, int timeout_ms)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct np_qp qp;
	int ret;

	ret = np_qp_open(&qp, ctrl_fd, 8);
	if (ret)
		return ret;
	ret = np_qp_run(&qp, &flush, timeout_ms);
	np_qp_close(&qp);
	return ret;
}

/* --- other processes ------------------------------------------------------- */

static void be_mapper(int ctrl_fd, int leash, int answer)
{
	struct np_qp qp;
	int result;
	char byte;

	result = np_qp_open(&qp, ctrl_fd, 16);
	if (!result) {
		result = (int)qp.create.qid;
		np_qp_close(&qp);
	}
	/* It keeps nothing of the controller but its record in the quarantine. */
	close(ctrl_fd);
	if (write(answer, &result, sizeof(result)) != sizeof(result))
		_exit(2);
	_exit(read(leash, &byte, 1) ? 3 : 0);
}

int np_mapper_start(struct np_mapper *mapper, int ctrl_fd)
{
	int leash[2], answer[2], result;

	if (pipe(leash) || pipe(answer))
		return -errno;
	mapper->pid = fork();
	if (!mapper->pid) {
		close(leash[1]);
		be_mapper(ctrl_fd, leash[0], answer[1]);
	}
	mapper->leash = leash[1];
	close(leash[0]);
	close(answer[1]);
	if (mapper->pid < 0 || read(answer[0], &result, sizeof(result)) != sizeof(result))
		result = -EIO;
	close(answer[0]);
	if (result < 0)
		np_mapper_end(mapper);
	else
		mapper->qid = (uint32_t)result;
	return result < 0 ? result : 0;
}

void np_mapper_end(struct np_mapper *mapper)
{
	close(mapper->leash);
	if (mapper->pid > 0)
		waitpid(mapper->pid, NULL, 0);
	mapper->pid = -1;
}

bool np_qid_is_reused(int ctrl_fd, uint32_t qid)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_info info;
	uint32_t i;

	if (np_info(ctrl_fd, &info))
		return false;
	/* More than one round through all queue IDs. */
	for (i = 0; i < info.qids_total + 2; i++) {
		if (np_qp_create(ctrl_fd, 16, &create))
			return false;
		close(create.qp_fd);
		if (create.qid == qid)
			return true;
	}
	return false;
}

void np_command_rw(struct np_command *command, const struct np_buffer *buffer, uint8_t opcode,
		   uint64_t disk, uint32_t offset, uint32_t length)
{
	uint32_t first = offset / NP_PAGE, last = (offset + length - 1) / NP_PAGE;
	uint64_t *list = (uint64_t *)(buffer->bytes + (size_t)(buffer->pages - 1) * NP_PAGE);

	*command = (struct np_command){
		.opcode = opcode,
		.nsid = 1,
		.prp1 = buffer->table[first] + offset % NP_PAGE,
		.cdw10 = { (uint32_t)(disk / NP_BLOCK), (uint32_t)(disk / NP_BLOCK >> 32),
			   length / NP_BLOCK - 1 },
	};
	if (last == first + 1)
		command->prp2 = buffer->table[last];
	if (last <= first + 1)
		return;
	memcpy(list, buffer->table + first + 1, (last - first) * sizeof(*list));
	command->prp2 = buffer->table[buffer->pages - 1];
}
