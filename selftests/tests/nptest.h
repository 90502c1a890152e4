/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests share: finding and binding controllers, counting the module's
 * objects, buffers, and a queue pair whose peer is the CPU.
 *
 * Functions return 0 or a negative errno and never print; a test says what it
 * expected.  Nothing here is thread safe, except that different queue pairs
 * may be used by different threads.
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

#include "nvmep_test.h"

#define NP_PAGE		4096U
#define NP_BLOCK	512U

/*
 * What has to happen soon may take this long: an emulated guest on a busy machine
 * may stand still for seconds.  Below the harness's own limit of 30 s for a test.
 */
#define NP_TIMEOUT_MS	20000

/* Byte ranges of the disk, so that tests do not write over each other. */
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
int np_read_file(const char *path, char *text, size_t size);
/* An attribute of a PCI function, "reset" say. */
int np_pci_write(const char *address, const char *attribute, const char *text);
int np_bind(const char *address);
/* A descriptor through a socket, with @length bytes beside it: 0 or -errno, and it. */
int np_send_file(int socket, const void *bytes, size_t length, int fd);
int np_receive_file(int socket, void *bytes, size_t length);

/* Does kmemleak look at this guest? Asks without a scan, which may take minutes. */
bool np_kmemleak_on(void);
/*
 * What it reports now, or NULL with errno: young objects are not reported, so this
 * waits, and one scan may see a stale pointer, so there are two.
 */
FILE *np_kmemleak_scan(void);

/* Nobody binds it any more by itself, a module that is loaded included. */
int np_disown(const char *address);
int np_unbind(const char *address);
bool np_bound(const char *address);
/* Bind np0 and np1. */
int np_bind_all(void);
/* Where the runner put a function, "np0", "softgpu" and so on. */
int np_place(const char *name, char address[16]);
struct nvme_peer_pci_address np_parse_address(const char *address);
bool np_same_address(struct nvme_peer_pci_address a, struct nvme_peer_pci_address b);

/*
 * Controller registers, in dwords (base specification 3.1.4), and bits in them: NULL where
 * the kernel lets nobody look at what a driver has, or nothing answers.
 */
#define NP_REGISTER_CC		(0x14 / 4)
#define NP_REGISTER_CSTS	(0x1c / 4)
#define NP_CC_ENABLE		1U
#define NP_CSTS_READY		1U
const volatile uint32_t *np_registers_map(const char *address);
void np_registers_unmap(const volatile uint32_t *registers);

/*
 * Take the module away, waiting for those who are just closing, or bring it back with
 * @parameters.  -EAGAIN: it is in use.  Its controllers are to be bound again.
 */
int np_module_unload(int timeout_ms);
int np_module_load(const char *parameters);
/* How much of what the module registers is there: all or nothing. */
#define NP_MODULE_TRACES	7U
unsigned int np_module_traces(void);
/* Is this guest's topology (selftests/run) @name? */
bool np_topology_is(const char *name);
/* A line for QEMU's monitor; it is obeyed a little later. */
int np_monitor(const char *command);
/* Take a function off the bus as if it were pulled, and look for it again. */
int np_pull(const char *address);
int np_find_again(const char *address);
/*
 * np_fall_asleep() has the machine sleep and wake at once, np_hibernate() freeze for an
 * image that is not written and go on: of its PCI functions only the one at @address,
 * until np_sleep_end() of what np_sleep_begin() returned.  -EOPNOTSUPP: this kernel does
 * not sleep.
 */
int np_sleep_begin(const char *address);
int np_fall_asleep(void);
int np_hibernate(void);
void np_sleep_end(int test);

/* The kernel's log from here on; wait for a line that contains @text: 0 or -ETIMEDOUT. */
int np_log_open(void);
int np_log_wait(int log, const char *text, int timeout_ms);
/*
 * Between "begin" and "end" the runner does not hold against a cell what the kernel says;
 * of the mistake "dma-fault", faults at BADCTRL_NOWHERE only.
 */
void np_planted(const char *what, const char *name);

/* Controllers. */
int np_ctrl_open(struct np_ctrl *ctrl, const char *serial);
void np_ctrl_close(struct np_ctrl *ctrl);
int np_info(int fd, struct nvme_peer_info *info);
int np_ioctl(int fd, unsigned long cmd, void *arg);
int np_admin(int fd, struct nvme_admin_cmd *cmd);
/* Wait until the controller is LIVE and fill @info: 0, -ENODEV if it is dead, -ETIMEDOUT. */
int np_ctrl_settle(int fd, struct nvme_peer_info *info, int timeout_ms);
/* X of the /dev/nvmepX that the function at @address has now, or -ENODEV. */
int np_instance(const char *address);
/* Open a node of @ctrl, "/dev/nvmep%dn1" say, waiting until it is there. */
int np_open_node(const struct np_ctrl *ctrl, const char *format, int flags);
/*
 * Make the first partition of a disk, which no table on it names, or take it away, which
 * waits for those who are just closing it.
 */
int np_partition_add(int disk);
int np_partition_remove(int disk);

/*
 * What a controller, or the whole module, holds: text to compare, one object
 * kind a line.  Closing a
 * file may finish a little later, so np_objects_settle() waits for @before.
 */
#define NP_OBJECTS	4096
int np_objects(const struct np_ctrl *ctrl, char text[NP_OBJECTS]);
int np_module_objects(char text[NP_OBJECTS]);
int np_objects_settle(const struct np_ctrl *ctrl, const char before[NP_OBJECTS],
		      int timeout_ms);
int np_module_objects_settle(const char before[NP_OBJECTS], int timeout_ms);

/**
 * struct np_buffer - host RAM that the controller may read and write
 * @fd: dma-buf of nvmep_test
 * @handle: as imported
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

int np_test_export(uint32_t pages, uint32_t flags);
int np_import(int ctrl_fd, int dmabuf, uint32_t flags, struct nvme_peer_buf_import *import);
int np_release(int ctrl_fd, uint32_t handle);
/*
 * Who is described comes to a function of the kernel next and is held up there, for 3
 * seconds or until the file is closed: the file, or -errno.
 */
int np_stall(const struct nvmep_test_stall *stall);
/* Waits until somebody is held up by an NVMEP_TEST_STALL of the open file @test. */
int np_wait_stalled(int test);
/* The calling thread runs on @cpu only. */
int np_run_on(int cpu);
int np_buffer_open(struct np_buffer *buffer, int ctrl_fd, uint32_t pages, uint32_t flags);
/* The same with a dma-buf of nvmep_test that somebody else opened. */
int np_buffer_adopt(struct np_buffer *buffer, int ctrl_fd, int dmabuf, uint32_t pages);
void np_buffer_close(struct np_buffer *buffer);

/**
 * struct np_export - one exported part of a queue pair, mapped
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

/* Opcodes of I/O commands (NVM command set specification 3.2), then of admin commands. */
#define NP_CMD_FLUSH		0x00
#define NP_CMD_WRITE		0x01
#define NP_CMD_READ		0x02
#define NP_CMD_COMPARE		0x05
#define NP_CMD_WRITE_ZEROES	0x08
#define NP_CMD_DATASET		0x09
#define NP_CMD_VERIFY		0x0c
#define NP_CMD_COPY		0x19
#define NP_CMD_FABRICS		0x7f
#define NP_CMD_VENDOR		0x80
/* Bits of the Commands Supported and Effects log page (base specification, figure 211). */
#define NP_EFFECT_SUPPORTED	(1U << 0)
#define NP_EFFECT_CONTENT	(1U << 1)
#define NP_EFFECT_NS_CAPABILITY	(1U << 2)
#define NP_EFFECTS_HARMFUL	0x0000fffcU	/* of namespaces, controllers, unknown ones */

#define NP_ADMIN_DELETE_SQ	0x00
#define NP_ADMIN_CREATE_SQ	0x01
#define NP_ADMIN_GET_LOG	0x02
#define NP_ADMIN_DELETE_CQ	0x04
#define NP_ADMIN_CREATE_CQ	0x05
#define NP_ADMIN_IDENTIFY	0x06
#define NP_ADMIN_ABORT		0x08
#define NP_ADMIN_SET_FEATURES	0x09
#define NP_ADMIN_GET_FEATURES	0x0a
#define NP_ADMIN_ASYNC_EVENT	0x0c
#define NP_ADMIN_KEEP_ALIVE	0x18
#define NP_ADMIN_DOORBELL_BUFFER	0x7c
#define NP_ADMIN_FORMAT		0x80
#define NP_ADMIN_VENDOR		0xc0

/**
 * struct np_qp - a queue pair with rings in host memory, run by the CPU
 * @fd: queue pair file
 * @create: as created
 */
struct np_qp {
	int fd;
	struct nvme_peer_qp_create create;
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

int np_qp_create(int ctrl_fd, uint32_t entries, struct nvme_peer_qp_create *create);
int np_qp_info(int qp_fd, struct nvme_peer_qp_info *info);
int np_qp_open(struct np_qp *qp, int ctrl_fd, uint32_t entries);
/* @flags: of NVME_PEER_QP_CREATE */
int np_qp_open_with(struct np_qp *qp, int ctrl_fd, uint32_t entries, uint32_t flags);
void np_qp_close(struct np_qp *qp);
/* Put an entry into the ring; np_qp_ring() tells the controller. */
void np_qp_put(struct np_qp *qp, const struct np_command *command);
/* 0, or -EFAULT if the doorbell was taken away. */
int np_qp_ring(struct np_qp *qp);
/* Next completion: its status without the phase, -ETIMEDOUT or -EFAULT. */
int np_qp_reap(struct np_qp *qp, uint16_t *cid, int timeout_ms);
/* One command from start to end: NVMe status, or a negative errno. */
int np_qp_run(struct np_qp *qp, struct np_command *command, int timeout_ms);
/* 0 once its status page says @state, or -ETIMEDOUT. */
int np_qp_wait_state(const struct np_qp *qp, uint32_t state, int timeout_ms);
/* NVME_PEER_QP_REARM for the loss numbered @losses: as the kernel answers at once. */
int np_qp_rearm_loss(struct np_qp *qp, uint32_t losses);
/* For the last loss, when the controller is ready; the ring starts from entry 0 again. */
int np_qp_rearm(struct np_qp *qp, int timeout_ms);
/* A flush through a queue pair that is made for it: the same. */
int np_qp_try(int ctrl_fd, int timeout_ms);

/**
 * struct np_mapper - a process that mapped doorbells, and may store to them for ever
 * @pid: the process
 * @leash: it ends when this is closed
 * @qid: the queue pair, which it has closed, and all that was made of it
 */
struct np_mapper {
	pid_t pid;
	int leash;
	uint32_t qid;
};

/* Ended if need be by np_mapper_end(), and with the caller. */
int np_mapper_start(struct np_mapper *mapper, int ctrl_fd);
void np_mapper_end(struct np_mapper *mapper);
/* Does somebody who makes queue pairs, one at a time, get the identifier @qid? */
bool np_qid_comes_up(int ctrl_fd, uint32_t qid);

/* A read or write of @length bytes at @disk, data at @offset of @buffer. */
void np_command_rw(struct np_command *command, const struct np_buffer *buffer, uint8_t opcode,
		   uint64_t disk, uint32_t offset, uint32_t length);
/* Puts @count reads of @bytes from NP_AREA(9) and rings; who waits for them is the caller's. */
int np_qp_fill(struct np_qp *qp, uint32_t count, const struct np_buffer *buffer, uint32_t bytes);
/* Bytes that depend on the place on the disk and on @seed. */
void np_pattern(void *bytes, uint32_t length, uint64_t disk, uint32_t seed);
/* Whole transfers on the block device, around the page cache. */
int np_disk_read(int fd, void *bytes, size_t length, uint64_t disk);
int np_disk_write(int fd, const void *bytes, size_t length, uint64_t disk);

/**
 * struct np_reader - a thread that reads NP_AREA(9) of a disk until told to stop
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

/* Returns when the first read is done. */
int np_reader_start(struct np_reader *reader, const struct np_ctrl *ctrl);
/* The error that ended it before, or 0. */
int np_reader_stop(struct np_reader *reader);
/* 0 when it has read once more from beginning to end, or its error, or -ETIMEDOUT. */
int np_reader_goes_on(struct np_reader *reader);

/* What @call returns; -EFAULT if it raises SIGBUS or SIGSEGV, and was left there and then. */
int np_guard(int (*call)(void *argument), void *argument);
/* Store @value at @address: -EFAULT if that raises SIGBUS or SIGSEGV. */
int np_store(volatile void *address, uint32_t value);

/**
 * struct np_storer - a thread that stores 0 at an address until that fails
 * @address: where
 * @stop: set by np_storer_stop()
 * @stores: so far
 * @failed: one raised SIGBUS or SIGSEGV
 */
struct np_storer {
	volatile void *address;
	atomic_bool stop;
	atomic_uint stores;
	atomic_bool failed;
	pthread_t thread;
};

/* Returns when the first store is done. */
int np_storer_start(struct np_storer *storer, volatile void *address);
/* Waits until a store fails: 0 or -ETIMEDOUT. */
int np_storer_wait(struct np_storer *storer, int timeout_ms);
void np_storer_stop(struct np_storer *storer);
/* From now on this process has none: 0 or -errno. */
int np_drop_capabilities(void);
int64_t np_now_ms(void);
void np_sleep_ms(int ms);

#endif /* NPTEST_H */
