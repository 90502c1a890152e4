/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers of all tests: find and bind controllers, count the module's objects, buffers,
 * and a queue pair whose peer is the CPU.
 *
 * Functions return 0 or a negative errno and print nothing. They are not thread safe,
 * except that threads may use different queue pairs.
 */
#ifndef NPTEST_H
#define NPTEST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <linux/nvme_ioctl.h>
#include <linux/nvme_peer.h>

#include "nvme.h"
#include "nvmep_test.h"
#include "spare.h"

#define NP_PAGE		4096U
#define NP_BLOCK	512U

/*
 * Limit for events that should happen soon: an emulated guest on a busy machine may stand
 * still for seconds. Shorter than the harness's own limit of 30 s for a test.
 */
#define NP_TIMEOUT_MS	20000

/* Byte ranges of the disk, so that tests do not overwrite each other's data. */
#define NP_AREA(n)	((uint64_t)(n) << 24)

/**
 * struct np_ctrl - one bound controller
 * @fd: open /dev/nvmepX
 * @instance: X
 * @address: "0000:01:00.0"
 * @info: as of np_ctrl_open()
 */
struct np_ctrl {
	int fd;
	int instance;
	char address[16];
	struct nvme_peer_info info;
};

/* Files and functions. */
int np_write_file(const char *path, const char *text);

/* The kernel's trace. It is cleared as it is opened: a write of no bytes does not clear it. */
#define NP_TRACE	"/sys/kernel/tracing/"
int np_clear_trace(void);
/*
 * Lines of the trace @path that contain all of @texts, which NULL ends, or, of one that begins with '!', do
 * not contain the rest; or -errno.
 */
int np_count_trace(const char *path, const char *const *texts);

int np_read_file(const char *path, char *text, size_t size);
/* An attribute of a PCI function, for example "reset". */
int np_pci_write(const char *address, const char *attribute, const char *text);
/*
 * Choose how the kernel resets a function, "default" at the end of the test, and reset it. A test on a
 * spare controller without this reset is skipped, with the default restored.
 */
int np_reset_method(const char *address, const char *method);
int np_function_reset(const char *address);
int np_bind(const char *address);
/*
 * Pass a descriptor through a socket, with @length bytes beside it; np_receive_file()
 * returns the descriptor or -errno.
 */
int np_send_file(int socket, const void *bytes, size_t length, int fd);
int np_receive_file(int socket, void *bytes, size_t length);

/* Is kmemleak enabled? Does not start a scan, which may take minutes. */
bool np_kmemleak_on(void);
/*
 * kmemleak's report, or NULL with errno. Waits, as young objects are not reported, and
 * scans twice, as one scan may find a stale pointer.
 */
FILE *np_kmemleak_scan(void);

/* No driver binds the function any more, not even when a module is loaded. */
int np_clear_driver_override(const char *address);
int np_unbind(const char *address);
bool np_bound(const char *address);
/* Bind np0 and np1. */
int np_bind_all(void);
/* The PCI address of a function of this guest, "np0", "softgpu" and so on. */
int np_function_address(const char *name, char address[16]);
struct nvme_peer_pci_address np_parse_address(const char *address);
bool np_same_address(struct nvme_peer_pci_address a, struct nvme_peer_pci_address b);

/*
 * Controller registers, as dword indices (base specification 3.1.4), and bits in them.
 * NULL if the kernel forbids mapping a bound device's BAR (IO_STRICT_DEVMEM) or the
 * device does not respond.
 */
#define NP_REGISTER_CC		(0x14 / 4)
#define NP_REGISTER_CSTS	(0x1c / 4)
#define NP_CC_ENABLE		1U
#define NP_CSTS_READY		1U
const volatile uint32_t *np_registers_map(const char *address);
void np_registers_unmap(const volatile uint32_t *registers);

/*
 * Unload the module, waiting for files that are being closed, or load it with
 * @parameters. -EAGAIN: it is in use. Controllers have to be bound again.
 */
int np_module_unload(int timeout_ms);
int np_module_load(const char *parameters);
/* How many of the things that the module registers exist: all or none. */
#define NP_MODULE_REGISTRATIONS	8U
unsigned int np_module_registrations(void);
/* Is @name this guest's topology (see selftests/run)? */
bool np_topology_is(const char *name);
/* Send a line to QEMU's monitor, which executes it asynchronously. */
int np_monitor(const char *command);
/* Remove a function from the bus as if it were unplugged, and rescan for it. */
int np_surprise_remove(const char *address);
int np_rescan(const char *address);
/*
 * np_suspend() suspends and resumes the machine, np_hibernate() freezes and thaws it
 * without writing an image. Of its PCI functions only the one at @address takes part,
 * until np_sleep_end() of the file that np_sleep_begin() returned. -EOPNOTSUPP: the
 * kernel cannot suspend. After np_sleep_take_cpus() np_hibernate() takes all CPUs but one
 * offline, too.
 */
int np_sleep_begin(const char *address);
int np_sleep_take_cpus(void);
int np_suspend(void);
int np_hibernate(void);
void np_sleep_end(int test);

/*
 * The kernel log from now on, and wait for a line that contains @text: 0 or -ETIMEDOUT.
 */
int np_log_open(void);
int np_log_wait(int log, const char *text, int timeout_ms);
/*
 * Between "begin" and "end" the runner does not fail the cell for what the kernel logs;
 * for the bug "dma-fault" that holds for faults at BADCTRL_NOWHERE only.
 */
void np_expected_splat(const char *what, const char *name);

/* Controllers. */
int np_ctrl_open(struct np_ctrl *ctrl, const char *serial);
void np_ctrl_close(struct np_ctrl *ctrl);
int np_info(int fd, struct nvme_peer_info *info);
int np_ioctl(int fd, unsigned long cmd, void *arg);
int np_admin(int fd, struct nvme_admin_cmd *cmd);
/*
 * Wait until the controller is LIVE and fill @info: 0, -ENODEV if it is DEAD, -ETIMEDOUT.
 */
int np_ctrl_wait_live(int fd, struct nvme_peer_info *info, int timeout_ms);
/* A bit of Identify Controller, by its byte and its number in there. */
bool np_identifies(int fd, unsigned int byte, unsigned int bit);
/* Skip a test of a spare controller that is not QEMU's, of which the test expects @what. */
void np_needs_qemu(const struct np_ctrl *ctrl, const char *what);
/* X of the /dev/nvmepX of the function at @address, or -ENODEV. */
int np_instance(const char *address);
/* Open a node of @ctrl, for example "/dev/nvmep%dn1", waiting until it exists. */
int np_open_node(const struct np_ctrl *ctrl, const char *format, int flags);
/* The block device of namespace 1 of the controller whose node is open. */
int np_open_namespace(int ctrl_fd);
/*
 * Add the first partition of a disk without writing a partition table, or remove it,
 * waiting for files that are being closed.
 */
int np_partition_add(int disk);
int np_partition_remove(int disk);

/*
 * The objects of a controller or of the whole module, as text to compare: one kind of
 * object a line. Closing a file may finish asynchronously, so np_objects_wait() waits for
 * @before. io_uring closes registered files after the process that registered them has ended:
 * np_objects_alone() waits until @ctrl is the only open file.
 */
#define NP_OBJECTS	4096
int np_objects(const struct np_ctrl *ctrl, char text[NP_OBJECTS]);
int np_objects_alone(const struct np_ctrl *ctrl, char text[NP_OBJECTS], int timeout_ms);
int np_module_objects(char text[NP_OBJECTS]);
int np_objects_wait(const struct np_ctrl *ctrl, const char before[NP_OBJECTS],
		    int timeout_ms);
int np_module_objects_wait(const char before[NP_OBJECTS], int timeout_ms);

/**
 * struct np_pollers - sums over the threads of the kernel that poll doorbells
 * @threads: how many
 * @qps: queue pairs on their lists
 * @passes: polls of whole lists
 * @active: those that found a new value
 * @busy_ns: time that those took
 */
struct np_pollers {
	unsigned int threads;
	unsigned int qps;
	unsigned long long passes;
	unsigned long long active;
	unsigned long long busy_ns;
};

int np_pollers_read(struct np_pollers *pollers);

/**
 * struct np_buffer - host memory that the controller may read and write
 * @fd: dma-buf of nvmep_test
 * @handle: buffer handle
 * @pages: how many; the last one is for PRP lists
 * @bytes: the mapping
 * @table: DMA address of each page
 */
struct np_buffer {
	int fd;
	uint32_t handle;
	uint32_t pages;
	uint8_t *bytes;
	uint64_t *table;
};

/* The module of the tests (nvmep_test.h): a file, or -errno. */
int np_test_open(void);

/* Limit the calling process's locked memory. */
int np_limit_locked(uint64_t pages);

/* What @steps(@fd) returns in a process of its own, 0 to 255, or a negative errno. */
int np_in_child(int (*steps)(int fd), int fd);
/*
 * Kills a process that runs @steps, once they have written a byte to @answer; they do not return. Returns
 * 0 or a negative errno.
 */
int np_kill_child(void (*steps)(int answer));

int np_test_export(uint32_t pages, uint32_t flags);
int np_import(int ctrl_fd, int dmabuf, uint32_t flags, struct nvme_peer_buf_import *import);
int np_release(int ctrl_fd, uint32_t handle);
/* The DMA address of each of at most @count pages from @offset on; @got: how many. */
int np_buf_table(int ctrl_fd, uint32_t handle, uint64_t offset, uint64_t *addresses,
		 uint32_t count, uint32_t *got);
/*
 * Stall the next matching thread at the start of a kernel function, for its limit or
 * until the returned file is closed; -errno on failure.
 */
int np_stall(const struct nvmep_test_stall *stall);
/* Wait until a thread is stalled by NVMEP_TEST_STALL of the open file @test. */
int np_wait_stalled(int test);
/* Wait until a thread holds a lock by NVMEP_TEST_HOLD. */
int np_wait_held(int test);
/*
 * Waits until a thread of this process, which sets its ID, sleeps at three looks in a row: it waits in
 * the call that it makes next.
 */
int np_wait_sleeps(const atomic_int *thread);
/* Ends the wait of a thread in NVMEP_TEST_HOLD, by a signal that does nothing else. */
void np_interrupt(pthread_t thread);
/* pthread_join(), but ETIMEDOUT if the thread has not ended in time, which is whole seconds. */
int np_join(pthread_t thread, void **result, int timeout_ms);
/* Bind the calling thread to @cpu. */
int np_run_on(int cpu);
/*
 * Works that are bound to no CPU run on @cpu, until np_works_anywhere(). A stalled thread blocks its
 * CPU: what has to go on meanwhile runs on the other one.
 */
int np_works_on(int cpu);
int np_works_anywhere(void);
/* Calls an error handler of the function's driver: NVMEP_TEST_ERROR_*. */
int np_pci_error(const char *address, uint32_t step);
int np_buffer_open(struct np_buffer *buffer, int ctrl_fd, uint32_t pages, uint32_t flags);
/* The same with a dma-buf of nvmep_test that the caller opened. */
int np_buffer_open_dmabuf(struct np_buffer *buffer, int ctrl_fd, int dmabuf, uint32_t pages);
void np_buffer_close(struct np_buffer *buffer);

/**
 * struct np_export - an export of a queue pair, mapped
 * @fd: dma-buf
 * @map: mapping of the whole dma-buf
 * @size: of the mapping
 * @at: the object itself, @offset into the mapping
 * @length: of the object
 */
struct np_export {
	int fd;
	void *map;
	size_t size;
	void *at;
	uint64_t length;
};

int np_export_fd(int qp_fd, uint32_t what, uint32_t flags, struct nvme_peer_qp_export *out);
int np_export_open(struct np_export *export, int qp_fd, uint32_t what, uint32_t flags);
void np_export_close(struct np_export *export);

/**
 * struct np_command - a submission queue entry (NVMe base specification 4.1)
 */
struct np_command {
	uint8_t opcode;
	uint8_t flags;
	uint16_t cid;
	uint32_t nsid;
	uint64_t reserved;
	uint64_t metadata;
	uint64_t prp1;
	uint64_t prp2;
	uint32_t cdw10[6];
};

/**
 * struct np_completion - a completion queue entry (specification 4.2)
 * @status: bit 0 is the phase
 */
struct np_completion {
	uint32_t result;
	uint32_t reserved;
	uint16_t sq_head;
	uint16_t sq_id;
	uint16_t cid;
	uint16_t status;
};

/* Bits of the Commands Supported and Effects log page (base specification, figure 211). */
#define NP_EFFECT_SUPPORTED	(1U << 0)
#define NP_EFFECT_CONTENT	(1U << 1)
#define NP_EFFECT_NS_CAPABILITY	(1U << 2)
/* What a command changes, e.g. one namespace: a description, no effect. */
#define NP_EFFECTS_SCOPE	0xfff00000U
#define NP_EFFECTS_HARMFUL	0x0000fffcU	/* NS and controller capabilities, reserved */

#define NP_TENANT_BUFFERS	16U

/**
 * struct np_tenant - a mediated queue pair of a test that knows nothing of this mode
 * @window: on namespace 1, or 0 for any other queue pair
 * @count: of @buffers
 * @buffers: those that its commands have used: number of the name, and slot
 */
struct np_tenant {
	uint32_t window;
	uint32_t count;
	struct {
		uint32_t number;
		uint32_t slot;
	} buffers[NP_TENANT_BUFFERS];
};

/**
 * struct np_qp - a queue pair with rings in host memory, driven by the CPU
 * @fd: queue pair file
 * @create: result of the creation
 * @tenant: what np_qp_put() makes of commands in a run with NP_MODE=mediated
 */
struct np_qp {
	int fd;
	struct nvme_peer_qp_create create;
	struct np_tenant tenant;
	struct np_export sq;
	struct np_export cq;
	struct np_export doorbell;
	struct np_export status;
	volatile uint32_t *tail_doorbell;
	volatile uint32_t *head_doorbell;
	uint32_t tail;
	uint32_t head;
	uint16_t phase;
};

/* The mode of queue pairs that this process creates from now on; default: that of NP_MODE. */
void np_qp_set_mode(enum nvme_peer_mode mode);
enum nvme_peer_mode np_qp_mode(void);
/*
 * Does NP_MODE=mediated run this test? The helpers then add a window on namespace 1 to each queue pair,
 * and to commands of namespace 1 its ID and the handle addresses of buffers, which they add, too.
 */
bool np_as_tenant(void);
/* Skip a test in the run in mediated mode, because of what this mode has not. */
#define NP_NOT_MEDIATED(reason)						\
	do {								\
		if (np_as_tenant())					\
			SKIP(return, "not in mediated mode: %s", reason); \
	} while (0)
/* The timeout of commands of mediated queue pairs that it creates; default: the kernel's. */
void np_qp_set_timeout(uint32_t timeout_ms);
/* Their depth and weight; default, and by 0: the kernel's. */
void np_qp_set_shares(uint32_t depth, uint32_t weight);
/*
 * The result of a store to revoked doorbells: -EFAULT, or 0 in relay and mediated mode, whose
 * doorbells are memory: they stay, without effect.
 */
int np_qp_revoked(void);
int np_qp_create(int ctrl_fd, uint32_t entries, struct nvme_peer_qp_create *create);
int np_qp_info(int qp_fd, struct nvme_peer_qp_info *info);
int np_qp_open(struct np_qp *qp, int ctrl_fd, uint32_t entries);
/* @flags: of NVME_PEER_QP_CREATE */
int np_qp_open_with(struct np_qp *qp, int ctrl_fd, uint32_t entries, uint32_t flags);
void np_qp_close(struct np_qp *qp);
/* Write an entry into the ring; np_qp_ring_doorbell() submits it. */
void np_qp_put(struct np_qp *qp, const struct np_command *command);
/* 0, or -EFAULT if the doorbell was revoked. */
int np_qp_ring_doorbell(struct np_qp *qp);
/*
 * Consume the next completion: its status without the phase tag, -ETIMEDOUT or -EFAULT.
 */
int np_qp_reap(struct np_qp *qp, uint16_t *cid, int timeout_ms);
/* Submit one command and wait: NVMe status, or a negative errno. */
int np_qp_run(struct np_qp *qp, struct np_command *command, int timeout_ms);
/* Wait until its status page reports @state: 0 or -ETIMEDOUT. */
int np_qp_wait_state(const struct np_qp *qp, uint32_t state, int timeout_ms);
/* Reads events until one says that it may be re-armed. */
int np_qp_wait_ready(const struct np_qp *qp);
/* NVME_PEER_QP_REARM for the loss number @losses, without retries. */
int np_qp_rearm_loss(struct np_qp *qp, uint32_t losses);
/*
 * Re-arm after the last loss, waiting until the controller is ready; the ring restarts at
 * entry 0.
 */
int np_qp_rearm(struct np_qp *qp, int timeout_ms);
/* A flush through a new queue pair; returns as np_qp_run(). */
int np_qp_check(int ctrl_fd, int timeout_ms);

/**
 * struct np_mapper - a process that mapped doorbells and may store to them at any time
 * @pid: the process
 * @leash: closing it ends the process
 * @qid: the queue pair, which the process closed with all its exports
 */
struct np_mapper {
	pid_t pid;
	int leash;
	uint32_t qid;
};

/* Ended by np_mapper_end() or with the caller. */
int np_mapper_start(struct np_mapper *mapper, int ctrl_fd);
void np_mapper_end(struct np_mapper *mapper);
/* Does a process that creates queue pairs, one at a time, get the queue ID @qid? */
bool np_qid_is_reused(int ctrl_fd, uint32_t qid);

/* A read or write of @length bytes at @disk, data at @offset of @buffer. */
void np_command_rw(struct np_command *command, const struct np_buffer *buffer, uint8_t opcode,
		   uint64_t disk, uint32_t offset, uint32_t length);
/* Submit @count reads of @bytes from NP_AREA(9); the caller waits for them. */
int np_qp_submit_reads(struct np_qp *qp, uint32_t count, const struct np_buffer *buffer, uint32_t bytes);
/* Fill with bytes that depend on the offset on the disk and on @seed. */
void np_pattern(void *bytes, uint32_t length, uint64_t disk, uint32_t seed);
/* Complete transfers on the block device, bypassing the page cache. */
int np_disk_read(int fd, void *bytes, size_t length, uint64_t disk);
int np_disk_write(int fd, const void *bytes, size_t length, uint64_t disk);

/**
 * struct np_reader - a thread that reads NP_AREA(9) of a disk until it is stopped
 * @disk: block device
 * @stop: set by np_reader_stop()
 * @reads: so far
 * @error: why it stopped by itself, 0 if it did not
 */
struct np_reader {
	int disk;
	atomic_bool stop;
	atomic_uint reads;
	int error;
	pthread_t thread;
};

/* Returns after the first read. */
int np_reader_start(struct np_reader *reader, const struct np_ctrl *ctrl);
/* Returns the error that ended the thread, or 0. */
int np_reader_stop(struct np_reader *reader);
/* Wait for a read that starts after the call: 0, the thread's error, or -ETIMEDOUT. */
int np_reader_wait_read(struct np_reader *reader);

/* Does the mapping that begins at @address have all of @flags, as VmFlags of smaps names them? */
bool np_mapping_has(const void *address, const char *flags);

/*
 * Returns the result of @call, or -EFAULT if it raises SIGBUS or SIGSEGV, which leaves
 * @call at that instruction.
 */
int np_catch_fault(int (*call)(void *argument), void *argument);
/* Store @value at @address: -EFAULT if that raises SIGBUS or SIGSEGV. */
int np_store(volatile void *address, uint32_t value);

/**
 * struct np_storer - a thread that stores to a tail doorbell until that faults
 * @qp: its queue pair
 * @vary: store changing values, not 0: set by np_storer_wait() if doorbells are memory
 * @stop: set by np_storer_stop()
 * @stores: so far
 * @failed: a store raised SIGBUS or SIGSEGV
 */
struct np_storer {
	const struct np_qp *qp;
	atomic_bool vary;
	atomic_bool stop;
	atomic_uint stores;
	atomic_bool failed;
	pthread_t thread;
};

/* Returns after the first store. */
int np_storer_start(struct np_storer *storer, const struct np_qp *qp);
/*
 * Wait until a store faults, or, of doorbells in memory, until changing values have no effect: 0 or
 * -ETIMEDOUT.
 */
int np_storer_wait(struct np_storer *storer, int timeout_ms);
void np_storer_stop(struct np_storer *storer);
/* Drop all capabilities of this process: 0 or -errno. */
int np_drop_capabilities(void);
/*
 * Page faults in @length bytes of new anonymous memory block until the returned file is
 * closed; it reports them. -ENOSYS: a kernel without userfaultfd.
 */
int np_block_faults(void *pages, size_t length);
int64_t np_now_ms(void);
/* poll(), but 0 if it found events only when the time was over: nothing has woken it. */
int np_poll(int fd, short events, int timeout_ms);
void np_sleep_ms(int ms);

#endif /* NPTEST_H */
