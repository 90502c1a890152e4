/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libnvmepeer: the host side of nvme-peer.
 *
 * A program opens a controller node, imports the memory of a GPU as a dma-buf,
 * creates a queue pair whose rings are in that memory or in host memory, and passes
 * the doorbell page to the driver of the GPU as another dma-buf.  After that the GPU
 * runs <nvmepeer_device.h> without this library.
 *
 * Conventions
 *  - Functions return 0 or a count on success and a negative errno on failure.
 *    Functions that execute an NVMe command may also return a positive value: the
 *    status field of the completion without the phase tag, as the kernel's passthrough
 *    reports it.
 *  - After a failure nvmepeer_explain() gives the request, the limit and the fix, in the
 *    thread whose call failed.  nvmepeer_errors_use() shares the record of failures
 *    between threads or binds it to a task.
 *  - Sizes and offsets are in bytes unless the name says blocks or entries.
 *  - Objects may be used by several threads at once.  The caller must not use an object
 *    while or after it is closed.
 *  - Objects are opaque pointers.  Closing NULL is allowed.
 *  - A structure is passed with its size, sizeof() of the caller's variable.  A library
 *    or a kernel that supports fewer fields sets the rest to 0 on output, and refuses
 *    with -E2BIG if the rest is not 0 on input.  One that supports more fields uses
 *    only the size given.  A size below that of the first version is refused with
 *    -EINVAL.
 *  - The structures of <linux/nvme_peer.h> are used unchanged.  The library sets their
 *    size, and their flags where flags are an argument.
 */
#ifndef NVMEPEER_H
#define NVMEPEER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/nvme_ioctl.h>
#include <linux/nvme_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVMEPEER_VERSION "0.9.0"

/* The same as an increasing number: major << 16 | minor << 8 | patch. */
#define NVMEPEER_VERSION_NUMBER 0x000900

/* Size of the longest PCI address as text, with the NUL. */
enum { NVMEPEER_PCI_TEXT = 24 };

/** struct nvmepeer - an open controller node. */
struct nvmepeer;

/** struct nvmepeer_qp - a queue pair; its queues are deleted when it is destroyed. */
struct nvmepeer_qp;

/** struct nvmepeer_ns - an open namespace node, for I/O by the CPU. */
struct nvmepeer_ns;

/** struct nvmepeer_hostmem - host memory that is also a dma-buf. */
struct nvmepeer_hostmem;

/** struct nvmepeer_mapping - part of a queue pair, mapped into this process. */
struct nvmepeer_mapping;

/* ---- Controllers -------------------------------------------------------- */

/**
 * nvmepeer_open() - open a controller
 * @node: "/dev/nvmep0", or "nvmep0" for short
 * @ctrl: receives the controller, to be closed with nvmepeer_close()
 *
 * Returns 0, -ENOTTY if the node is not a controller node of nvme-peer, or the errno of
 * open(2).
 */
int nvmepeer_open(const char *node, struct nvmepeer **ctrl);

/** nvmepeer_close() - close; releases imported buffers, queue pairs stay. */
void nvmepeer_close(struct nvmepeer *ctrl);

/** nvmepeer_fd() - the file descriptor of the node, owned by @ctrl. */
int nvmepeer_fd(const struct nvmepeer *ctrl);

/** nvmepeer_node() - the path of the node, owned by @ctrl. */
const char *nvmepeer_node(const struct nvmepeer *ctrl);

/** nvmepeer_info() - current limits, properties and state of the controller. */
int nvmepeer_info(struct nvmepeer *ctrl, struct nvme_peer_info *info, size_t size);

/**
 * nvmepeer_route_dmabuf() - determine the route to the memory of a dma-buf
 * @ctrl: controller
 * @dmabuf_fd: the dma-buf; nothing is imported
 * @route: receives verdict and reason
 * @size: of @route
 *
 * A verdict of NVME_PEER_ROUTE_NONE is not an error.
 */
int nvmepeer_route_dmabuf(struct nvmepeer *ctrl, int dmabuf_fd,
			  struct nvme_peer_route *route, size_t size);

/**
 * nvmepeer_route_pci() - determine the route to a PCI function
 * @ctrl: controller
 * @pci_address: the function, see nvmepeer_pci_parse()
 * @route: receives verdict and reason
 * @size: of @route
 */
int nvmepeer_route_pci(struct nvmepeer *ctrl, struct nvme_peer_pci_address pci_address,
		       struct nvme_peer_route *route, size_t size);

/**
 * nvmepeer_admin() - execute one admin command
 * @ctrl: controller
 * @command: in: the command; out: @command->result, dword 0 of the completion
 *
 * Returns 0, a positive NVMe status, or a negative errno.
 */
int nvmepeer_admin(struct nvmepeer *ctrl, struct nvme_passthru_cmd *command);

/* ---- Buffers: memory that the controller reads and writes --------------- */

/**
 * nvmepeer_buf_import() - map the memory of a dma-buf for the controller
 * @ctrl: controller
 * @dmabuf_fd: the dma-buf; may be closed afterwards
 * @flags: NVME_PEER_BUF_*
 * @buffer: receives buffer handle, length, segments and the placement of the memory
 * @size: of @buffer
 */
int nvmepeer_buf_import(struct nvmepeer *ctrl, int dmabuf_fd, uint32_t flags,
			struct nvme_peer_buf_import *buffer, size_t size);

/**
 * nvmepeer_buf_import_part() - import a range of a dma-buf, or for one direction
 * @ctrl: controller
 * @buffer: in: dmabuf_fd, flags, access, offset and length, the rest 0; out: as
 *	nvmepeer_buf_import(); unchanged after a failure
 * @size: of @buffer
 */
int nvmepeer_buf_import_part(struct nvmepeer *ctrl,
			     struct nvme_peer_buf_import *buffer, size_t size);

/**
 * nvmepeer_buf_release() - undo an import
 * @ctrl: controller
 * @handle: buffer handle
 *
 * Fails with -EBUSY while a ring is in the buffer, and, once nvmepeer_buf_table() has
 * returned its addresses, while a queue pair that was created through @ctrl is active.
 * After the close of @ctrl the kernel releases the buffer when those queue pairs have ended.
 */
int nvmepeer_buf_release(struct nvmepeer *ctrl, uint32_t handle);

/**
 * nvmepeer_buf_table() - DMA addresses of a buffer's controller pages
 * @ctrl: controller
 * @handle: buffer handle
 * @offset: first byte, a multiple of nvme_peer_info.page_size
 * @addresses: receives up to @count addresses in the DMA domain of the controller
 * @count: number of addresses
 *
 * Returns the number of addresses written; fewer than @count at the end of the buffer.
 */
int nvmepeer_buf_table(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset,
		       uint64_t *addresses, uint32_t count);

/**
 * nvmepeer_buf_contiguous() - DMA address of a contiguous range
 * @ctrl: controller
 * @handle: buffer handle
 * @offset: first byte, a multiple of nvme_peer_info.page_size
 * @length: bytes
 * @dma: receives the address of the first byte
 *
 * Returns 0, or -EMSGSIZE if the addresses of the range are not consecutive.
 */
int nvmepeer_buf_contiguous(struct nvmepeer *ctrl, uint32_t handle,
			    uint64_t offset, uint64_t length, uint64_t *dma);

/**
 * nvmepeer_hostmem_alloc() - allocate host memory that can be imported
 * @length: bytes, rounded up to whole pages
 * @memory: receives zeroed memory, to be freed with nvmepeer_hostmem_free()
 *
 * Uses /dev/udmabuf, or /dev/dma_heap/system where that is missing.  Fails with -ENOSYS
 * if the kernel has neither.
 */
int nvmepeer_hostmem_alloc(size_t length, struct nvmepeer_hostmem **memory);
void nvmepeer_hostmem_free(struct nvmepeer_hostmem *memory);


/**
 * nvmepeer_buf_alloc() - allocate host memory by the kernel module
 * @ctrl: controller that the memory is near
 * @length: bytes, rounded up to whole pages; at most NVME_PEER_BUF_ALLOC_MAX
 * @memory: receives zeroed memory, to be freed with nvmepeer_hostmem_free()
 *
 * As nvmepeer_hostmem_alloc(), but on every kernel, and contiguous if there is as much
 * contiguous memory: for rings and staging buffers.  @memory may outlive @ctrl.
 */
int nvmepeer_buf_alloc(struct nvmepeer *ctrl, size_t length, struct nvmepeer_hostmem **memory);

/** nvmepeer_hostmem_address() - address of the memory in this process. */
void *nvmepeer_hostmem_address(const struct nvmepeer_hostmem *memory);

/** nvmepeer_hostmem_length() - bytes, whole pages. */
size_t nvmepeer_hostmem_length(const struct nvmepeer_hostmem *memory);

/** nvmepeer_hostmem_fd() - the dma-buf, for nvmepeer_buf_import(), owned by @memory. */
int nvmepeer_hostmem_fd(const struct nvmepeer_hostmem *memory);

/* ---- Queue pairs -------------------------------------------------------- */

/**
 * nvmepeer_qp_create() - create a queue pair
 * @ctrl: controller
 * @request: in: mode, flags, entries, and for each ring the buffer handle and offset, or
 *	handle 0 for host memory; cq_entries 0 means the value of sq_entries.
 *	out: qid and generation.  The library keeps qp_fd.
 * @size: of @request
 * @qp: receives the queue pair; it may outlive @ctrl
 */
int nvmepeer_qp_create(struct nvmepeer *ctrl,
		       struct nvme_peer_qp_create *request, size_t size,
		       struct nvmepeer_qp **qp);

/**
 * nvmepeer_qp_from_fd() - adopt a queue pair file of another process
 * @fd: for example received over a unix socket; owned by @qp on success
 * @qp: receives the queue pair
 */
int nvmepeer_qp_from_fd(int fd, struct nvmepeer_qp **qp);

/**
 * nvmepeer_qp_destroy() - close the queue pair file
 *
 * The kernel deletes the queue pair when the last reference to the file is closed.
 */
void nvmepeer_qp_destroy(struct nvmepeer_qp *qp);

/** nvmepeer_qp_fd() - the queue pair file, owned by @qp. */
int nvmepeer_qp_fd(const struct nvmepeer_qp *qp);

/** nvmepeer_qp_info() - current geometry, state and counters of a queue pair. */
int nvmepeer_qp_info(struct nvmepeer_qp *qp, struct nvme_peer_qp_info *info, size_t size);

/**
 * nvmepeer_qp_events() - read the events of a queue pair
 * @qp: queue pair
 * @events: receives pending events, oldest first
 * @size: size of one event
 * @count: most events to read, at least 1
 *
 * Changes of state and the readiness for a re-arm are events.  poll() of the file returns
 * EPOLLIN and EPOLLPRI while an event is pending and EPOLLHUP once the queue pair is GONE.  The call
 * waits for an event; with O_NONBLOCK it fails with -EAGAIN instead.
 *
 * Returns the number of events; 0 once the queue pair is GONE and all events were read.
 */
int nvmepeer_qp_events(struct nvmepeer_qp *qp, struct nvme_peer_event *events, size_t size,
		       uint32_t count);

/**
 * nvmepeer_qp_rearm() - re-arm a QUIESCED queue pair
 * @qp: queue pair; all of its peers must have seen the loss and use no old entry
 * @losses: nvme_peer_qp_info.losses when the caller began to handle the loss
 * @generation: receives the new generation.  nvmepeer_queue_rearm() on the device
 *	takes @losses
 *
 * A completion ring in a buffer must be zero before the call.  The errors are those of
 * struct nvme_peer_qp_rearm.  After -EAGAIN poll the file and retry; after -EIO a retry is
 * possible; after -ESHUTDOWN the queue pair has to be closed.
 */
int nvmepeer_qp_rearm(struct nvmepeer_qp *qp, uint32_t losses, uint32_t *generation);

/**
 * nvmepeer_qp_kick() - wake the kernel's thread that polls doorbells in host memory
 * @qp: queue pair in relay or mediated mode
 *
 * For a CPU that has stored to a doorbell, issued a full barrier and found
 * nvme_peer_status.poller_asleep set.
 */
int nvmepeer_qp_kick(struct nvmepeer_qp *qp);

/* ---- Mediated queue pairs ------------------------------------------------ */

/**
 * nvmepeer_window_add() - let a mediated queue pair access blocks of a block device or file
 * @qp: queue pair in mediated mode
 * @window: in: fd, first and blocks; out: id, which commands carry as namespace ID, and
 *	the rest.  The rights are those with which fd was opened; it may be closed
 * @size: of @window
 */
int nvmepeer_window_add(struct nvmepeer_qp *qp, struct nvme_peer_window_add *window, size_t size);

/** nvmepeer_window_remove() - remove a window, after its commands have completed. */
int nvmepeer_window_remove(struct nvmepeer_qp *qp, uint32_t id);

/** nvmepeer_window_info() - what a window is now. */
int nvmepeer_window_info(struct nvmepeer_qp *qp, uint32_t id, struct nvme_peer_window_info *info,
			 size_t size);

/**
 * nvmepeer_buf_add() - let a mediated queue pair transfer data of a dma-buf
 * @qp: queue pair in mediated mode
 * @buffer: in: dmabuf_fd, access, offset and length; out: slot, for
 *	NVME_PEER_HANDLE_ADDRESS(), and the rest
 * @size: of @buffer
 */
int nvmepeer_buf_add(struct nvmepeer_qp *qp, struct nvme_peer_buf_add *buffer, size_t size);

/** nvmepeer_buf_remove() - remove a buffer, after its commands have completed. */
int nvmepeer_buf_remove(struct nvmepeer_qp *qp, uint32_t slot);

/** nvmepeer_qp_limits() - limits of a mediated queue pair, and what it uses of them. */
int nvmepeer_qp_limits(struct nvmepeer_qp *qp, struct nvme_peer_qp_limits *limits, size_t size);

/**
 * nvmepeer_qp_stats() - commands, bytes and time of a mediated queue pair
 *
 * The values are not of one moment: commands run meanwhile.
 */
int nvmepeer_qp_stats(struct nvmepeer_qp *qp, struct nvme_peer_qp_stats *stats, size_t size);

/**
 * nvmepeer_qp_seal() - let no process add windows or buffers
 * @qp: queue pair in mediated mode, whose file may be given away then
 */
int nvmepeer_qp_seal(struct nvmepeer_qp *qp);

/**
 * struct nvmepeer_export - part of a queue pair as a dma-buf
 * @fd: dma-buf, to be closed by the caller
 * @offset: offset of the object in the dma-buf
 * @length: size of the object
 */
struct nvmepeer_export {
	int fd;
	uint64_t offset;
	uint64_t length;
};

/**
 * nvmepeer_qp_export() - export a ring, the doorbells, the status or the control page
 * @qp: queue pair
 * @what: object to export
 * @flags: NVME_PEER_EXPORT_ALLOW_STATIC or 0
 * @exported: receives the dma-buf
 * @size: of @exported
 */
int nvmepeer_qp_export(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		       uint32_t flags, struct nvmepeer_export *exported, size_t size);

/**
 * nvmepeer_qp_map() - map a ring, the doorbells, the status or the control page
 * @qp: queue pair
 * @what: object to map
 * @mapping: receives the mapping, to be removed with nvmepeer_unmap()
 *
 * The status page is mapped for reading, everything else for reading and writing.  A load
 * of a doorbell has no meaning.  nvmepeer_qp_map(3) describes how a CUDA program
 * registers the mappings.
 */
int nvmepeer_qp_map(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		    struct nvmepeer_mapping **mapping);
void nvmepeer_unmap(struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_address() - address of the object. */
void *nvmepeer_mapping_address(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_length() - size of the object. */
size_t nvmepeer_mapping_length(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_base() - start of the mapping, page aligned. */
void *nvmepeer_mapping_base(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_mapped() - size of the mapping. */
size_t nvmepeer_mapping_mapped(const struct nvmepeer_mapping *mapping);

/* ---- Namespaces: I/O by the CPU ----------------------------------------- */

/**
 * struct nvmepeer_ns_info - format of a namespace
 * @size: sizeof(struct nvmepeer_ns_info), set by the code that fills it in
 * @nsid: namespace identifier
 * @block_size: bytes of data of a logical block
 * @metadata_size: bytes of metadata of a logical block; 0, as namespaces with metadata
 *	are not supported
 * @blocks: size of the namespace in logical blocks
 */
struct nvmepeer_ns_info {
	uint32_t size;
	uint32_t nsid;
	uint32_t block_size;
	uint32_t metadata_size;
	uint64_t blocks;
};

/**
 * nvmepeer_ns_open() - open a namespace for I/O
 * @node: "/dev/ngp0n1", or "ngp0n1" for short
 * @ns: receives the namespace, to be closed with nvmepeer_ns_close()
 *
 * Fails with -EOPNOTSUPP if the blocks of the namespace carry metadata.
 */
int nvmepeer_ns_open(const char *node, struct nvmepeer_ns **ns);
void nvmepeer_ns_close(struct nvmepeer_ns *ns);

/** nvmepeer_ns_fd() - the file descriptor of the node, owned by @ns. */
int nvmepeer_ns_fd(const struct nvmepeer_ns *ns);

/** nvmepeer_ns_info() - format of the namespace when it was opened, owned by @ns. */
const struct nvmepeer_ns_info *nvmepeer_ns_info(const struct nvmepeer_ns *ns);

/**
 * nvmepeer_ns_read(), nvmepeer_ns_write() - execute one command
 * @ns: namespace
 * @lba: first block
 * @blocks: 1 to 65536, and at most max_transfer bytes
 * @data: @blocks * block_size bytes, 4-byte aligned
 *
 * Return 0, a positive NVMe status, or a negative errno.  <nvmepeer_uring.h> executes
 * several commands at a time.
 */
int nvmepeer_ns_read(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		     void *data);
int nvmepeer_ns_write(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		      const void *data);

/** nvmepeer_ns_flush() - make completed writes durable. Returns as above. */
int nvmepeer_ns_flush(struct nvmepeer_ns *ns);

/* ---- Explanations ------------------------------------------------------- */

/**
 * struct nvmepeer_explanation - why a call failed
 * @call: name of the call
 * @error: positive errno, or 0 if the call failed with @status
 * @status: NVMe status, or 0 if the call failed with @error
 * @what: what was refused
 * @limit: the limit that refused it, with the numbers
 * @help: the fix
 *
 * The texts have no newline; @limit and @help may be empty.
 */
struct nvmepeer_explanation {
	const char *call;
	int error;
	int status;
	char what[160];
	char limit[320];
	char help[320];
};

/**
 * nvmepeer_explain() - explain the last call that failed in this thread
 * @explanation: receives it
 * @size: of @explanation
 *
 * Returns the negative errno or positive status that the call returned, or 0 if no call
 * has failed.  Limits are those at the time of the failure.  The explanation is plain
 * data and may be passed to another thread.
 */
int nvmepeer_explain(struct nvmepeer_explanation *explanation, size_t size);

/** struct nvmepeer_errors - record of the last failure, for several threads or for a task. */
struct nvmepeer_errors;

/** nvmepeer_errors_new() - create a record. Returns 0 or -ENOMEM. */
int nvmepeer_errors_new(struct nvmepeer_errors **errors);

/** nvmepeer_errors_free() - free a record that no other thread uses. */
void nvmepeer_errors_free(struct nvmepeer_errors *errors);

/**
 * nvmepeer_errors_use() - select where failures of this thread are recorded
 * @errors: record, or NULL for the thread's own, which is the default
 *
 * A runtime that moves tasks between threads calls it before it runs a task, with the
 * record of the task.  Several threads may use the same record.
 *
 * Returns the record that was in use before.
 */
struct nvmepeer_errors *nvmepeer_errors_use(struct nvmepeer_errors *errors);

/**
 * nvmepeer_errors_explain() - explain the last failure of a record
 * @errors: record, or NULL for the one that this thread uses
 * @explanation: receives it
 * @size: of @explanation
 */
int nvmepeer_errors_explain(struct nvmepeer_errors *errors,
			    struct nvmepeer_explanation *explanation, size_t size);

/**
 * enum nvmepeer_result - origin of a result that no call of this library returned
 * @NVMEPEER_RESULT_COMMAND: @cqe->res of nvmepeer_prep_rw() or nvmepeer_prep_command()
 * @NVMEPEER_RESULT_BUFFER: @cqe->res of nvmepeer_prep_buf_rw() or nvmepeer_prep_buf_vec()
 * @NVMEPEER_RESULT_DEVICE: a call of <nvmepeer_device.h>
 */
enum nvmepeer_result {
	NVMEPEER_RESULT_COMMAND = 0,
	NVMEPEER_RESULT_BUFFER = 1,
	NVMEPEER_RESULT_DEVICE = 2,
};

/**
 * nvmepeer_explain_result() - explain a result
 * @kind: origin of the result
 * @result: the result
 * @explanation: receives the explanation
 * @size: of @explanation
 *
 * Uses no record, so it may be called in any thread and at any time.
 *
 * Returns a negative errno, which for NVMEPEER_RESULT_DEVICE differs from @result; the
 * positive status; or 0.
 */
int nvmepeer_explain_result(enum nvmepeer_result kind, int result,
			    struct nvmepeer_explanation *explanation, size_t size);

/**
 * nvmepeer_fail() - record a failure of a library that is built on this one
 * @explanation: explanation for nvmepeer_explain() to return; the string @call must
 *	stay valid
 * @size: of @explanation
 *
 * With it nvmepeer_explain() covers both libraries.
 *
 * Returns the negative errno or positive status of @explanation.
 */
int nvmepeer_fail(const struct nvmepeer_explanation *explanation, size_t size);

/* ---- Files --------------------------------------------------------------- */

/**
 * enum nvmepeer_file_obstacle - why a file cannot have a window, as bits
 * @NVMEPEER_FILE_NOT_REGULAR: it is a directory, a device or another special file
 * @NVMEPEER_FILE_NO_DISK: its file system is not on a block device of its own: btrfs,
 *	overlayfs, tmpfs, NFS
 * @NVMEPEER_FILE_OTHER_DISK: its disk is no namespace of nvme-peer and no partition of one:
 *	dm, md, loop, a disk of another driver
 * @NVMEPEER_FILE_SYSTEM: the file system is neither ext4 nor XFS
 * @NVMEPEER_FILE_READ_ONLY: the descriptor is not open for reading and writing
 * @NVMEPEER_FILE_NOT_OWNER: the caller neither owns the file nor has CAP_LEASE
 * @NVMEPEER_FILE_IMMUTABLE: it is immutable
 * @NVMEPEER_FILE_APPEND_ONLY: it is append-only
 * @NVMEPEER_FILE_ENCRYPTED: its blocks are not its data
 * @NVMEPEER_FILE_COMPRESSED: its blocks are not its data
 * @NVMEPEER_FILE_VERITY: it is protected by fs-verity
 * @NVMEPEER_FILE_DAX: it is accessed by DAX
 * @NVMEPEER_FILE_JOURNALLED: its data is written to the journal first
 * @NVMEPEER_FILE_INLINE: its data is in the inode
 * @NVMEPEER_FILE_SHARED: it shares blocks with another file
 * @NVMEPEER_FILE_UNPLACED: data has no known location on the disk
 * @NVMEPEER_FILE_EMPTY: it has no whole block of the file system
 * @NVMEPEER_FILE_HOLES: a part has no blocks
 * @NVMEPEER_FILE_UNWRITTEN: a part has blocks that were never written
 */
enum nvmepeer_file_obstacle {
	NVMEPEER_FILE_NOT_REGULAR = 1 << 0,
	NVMEPEER_FILE_NO_DISK = 1 << 1,
	NVMEPEER_FILE_OTHER_DISK = 1 << 2,
	NVMEPEER_FILE_SYSTEM = 1 << 3,
	NVMEPEER_FILE_READ_ONLY = 1 << 4,
	NVMEPEER_FILE_NOT_OWNER = 1 << 5,
	NVMEPEER_FILE_IMMUTABLE = 1 << 6,
	NVMEPEER_FILE_APPEND_ONLY = 1 << 7,
	NVMEPEER_FILE_ENCRYPTED = 1 << 8,
	NVMEPEER_FILE_COMPRESSED = 1 << 9,
	NVMEPEER_FILE_VERITY = 1 << 10,
	NVMEPEER_FILE_DAX = 1 << 11,
	NVMEPEER_FILE_JOURNALLED = 1 << 12,
	NVMEPEER_FILE_INLINE = 1 << 13,
	NVMEPEER_FILE_SHARED = 1 << 14,
	NVMEPEER_FILE_UNPLACED = 1 << 15,
	NVMEPEER_FILE_EMPTY = 1 << 16,
	NVMEPEER_FILE_HOLES = 1 << 17,
	NVMEPEER_FILE_UNWRITTEN = 1 << 18,
};

/**
 * struct nvmepeer_file_info - a file, and what prevents a window on it
 * @size: sizeof(struct nvmepeer_file_info), set by the library
 * @obstacles: bits of enum nvmepeer_file_obstacle; 0 if the caller finds none
 * @bytes: size of the file
 * @extents: number of extents
 * @holes: bytes without blocks
 * @unwritten: bytes whose blocks were never written
 * @file_system: type of the file system, "ext4"
 * @disk: block device of the file system, "nvmep0n1p1"; empty without one
 * @controller: controller of that device, "nvmep0"; empty if it is not of nvme-peer
 */
struct nvmepeer_file_info {
	uint32_t size;
	uint32_t obstacles;
	uint64_t bytes;
	uint64_t extents;
	uint64_t holes;
	uint64_t unwritten;
	char file_system[16];
	char disk[32];
	char controller[16];
};

/**
 * nvmepeer_file_check() - find what prevents a window of a mediated queue pair on a file
 * @fd: the file; dirty data is written back
 * @info: receives the result
 * @size: of @info
 *
 * The kernel checks again in NVME_PEER_WINDOW_ADD, and more: a file that is in use as swap
 * space or mapped for writing.  @info->extents, @holes and @unwritten are counted on ext4
 * and XFS only.
 *
 * Returns 0, also with obstacles, or a negative errno.
 */
int nvmepeer_file_check(int fd, struct nvmepeer_file_info *info, size_t size);

/** nvmepeer_file_obstacle_name() - "unwritten"; "unknown" if @obstacle is not one bit. */
const char *nvmepeer_file_obstacle_name(enum nvmepeer_file_obstacle obstacle);

/**
 * nvmepeer_file_explain() - explain an obstacle
 * @info: of nvmepeer_file_check()
 * @obstacle: one bit of @info->obstacles
 * @explanation: receives the limit and the fix
 * @size: of @explanation
 *
 * Returns 0 or -EINVAL.
 */
int nvmepeer_file_explain(const struct nvmepeer_file_info *info,
			  enum nvmepeer_file_obstacle obstacle,
			  struct nvmepeer_explanation *explanation, size_t size);

/**
 * nvmepeer_file_extents() - pin a file and find its extents, for peers in direct or relay mode
 * @ctrl: controller of the disk that the file is on
 * @extents: in: fd, first and blocks; out: the others
 * @size: of @extents
 *
 * The file at pin_fd has the struct nvme_peer_extent, which pread(2) reads: with ESTALE if
 * blocks of the file have changed.  While it is open the blocks stay where they are, and must
 * only be read.
 *
 * Returns 0 or a negative errno.
 */
int nvmepeer_file_extents(struct nvmepeer *ctrl, struct nvme_peer_extents *extents, size_t size);

/**
 * nvmepeer_file_open() - let a mediated queue pair access a file
 * @qp: queue pair in mediated mode
 * @path: a regular file on a disk of the queue pair's controller, fully written
 *	(nvme-peer file prepare)
 * @window: in: first and blocks, or 0 for all of it; out: as nvmepeer_window_add().  fd
 *	is not used
 * @size: of @window
 *
 * Opens the file for reading and writing, checks it as nvmepeer_file_check() does, and adds
 * the window, which holds the open file until nvmepeer_window_remove().
 *
 * Returns 0; -EOPNOTSUPP after the first obstacle that nvmepeer_file_check() finds; an errno
 * of open(2), or of nvmepeer_window_add(): -ENOTBLK from a module that takes block devices
 * only.  nvmepeer_explain() names the fix; for files that cannot have a window it is a
 * served queue pair, <nvmepeer_serve.h>.
 */
int nvmepeer_file_open(struct nvmepeer_qp *qp, const char *path,
		       struct nvme_peer_window_add *window, size_t size);

/* ---- Names and numbers -------------------------------------------------- */

/* Short names, also for JSON; "unknown" for a value that this library does not define. */
const char *nvmepeer_state_name(enum nvme_peer_ctrl_state state);
const char *nvmepeer_qp_state_name(enum nvme_peer_qp_state state);
const char *nvmepeer_mode_name(enum nvme_peer_mode mode);
const char *nvmepeer_domain_name(enum nvme_peer_domain domain);
const char *nvmepeer_verdict_name(enum nvme_peer_route_verdict verdict);
const char *nvmepeer_reason_name(enum nvme_peer_route_reason reason);
const char *nvmepeer_export_name(enum nvme_peer_export what);

/** nvmepeer_status_text() - text of an NVMe status; "status 0x..." if unknown. */
const char *nvmepeer_status_text(int status);

/**
 * nvmepeer_route_describe() - describe one direction of a route
 * @route: from nvmepeer_route_*()
 * @path: the direction, &route->data or &route->doorbell
 * @text: receives the description, truncated to @length bytes with the NUL
 * @length: size of @text
 *
 * Returns the length of the whole description, as snprintf() does.
 */
int nvmepeer_route_describe(const struct nvme_peer_route *route,
			    const struct nvme_peer_path *path, char *text, size_t length);

/** nvmepeer_pci_parse() - parse "0000:01:00.0" or "01:00.0". Returns 0 or -EINVAL. */
int nvmepeer_pci_parse(const char *text, struct nvme_peer_pci_address *pci_address);

/** nvmepeer_pci_format() - format an address; "none" if it is not valid. */
const char *nvmepeer_pci_format(struct nvme_peer_pci_address pci_address,
				char text[NVMEPEER_PCI_TEXT]);

/** nvmepeer_version() - NVMEPEER_VERSION of the library that is linked. */
const char *nvmepeer_version(void);

/** nvmepeer_version_number() - NVMEPEER_VERSION_NUMBER of the library that is linked. */
uint32_t nvmepeer_version_number(void);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_H */
