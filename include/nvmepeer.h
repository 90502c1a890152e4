/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libnvmepeer: the host side of nvme-peer.
 *
 * A program opens a controller node, imports the memory of a GPU as a dma-buf,
 * creates a queue pair whose rings lie in that memory or in the host's, and
 * hands the doorbell page to the GPU's driver as another dma-buf.  From then on
 * the GPU runs <nvmepeer_device.h> and this library is not in the way.
 *
 * Conventions
 *  - Functions return 0 (or a count) or a negative errno.  Functions that carry
 *    an NVMe command may also return a positive value: the status field of the
 *    completion, phase bit removed, as the kernel's passthrough reports it.
 *  - After a failure nvmepeer_explain() says what was refused, which limit
 *    refused it and what would help; in the thread that failed, or wherever
 *    nvmepeer_errors_use() has it noted.
 *  - Sizes and offsets are bytes unless the name says blocks or entries.
 *  - Objects may be used from several threads at once; the caller sees to it
 *    that nobody uses an object while or after it is closed.
 *  - What has to be given back is behind a pointer that only the library looks
 *    behind; closing NULL is fine.
 *  - A structure comes with its size: sizeof() of the variable, as the caller was
 *    compiled.  A library or a kernel that knows less of it leaves the rest 0, and
 *    refuses with -E2BIG if the caller has asked for something there; one that knows
 *    more keeps to the size.  -EINVAL: smaller than it was in the first version.
 *  - The structures of <linux/nvme_peer.h> are used as they are.  The library
 *    sets their size word itself, and flags that it takes as an argument.
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

#define NVMEPEER_VERSION "0.1"

/* The same as a number that grows: major << 16 | minor << 8 | patch. */
#define NVMEPEER_VERSION_NUMBER 0x000100

/* Bytes of the longest PCI address as text, with its NUL. */
enum { NVMEPEER_PCI_TEXT = 24 };

/** struct nvmepeer - an open controller node. */
struct nvmepeer;

/** struct nvmepeer_qp - a queue pair; destroying it takes it off the controller. */
struct nvmepeer_qp;

/** struct nvmepeer_ns - an open namespace node, for I/O by the CPU. */
struct nvmepeer_ns;

/** struct nvmepeer_hostmem - host memory that is also a dma-buf. */
struct nvmepeer_hostmem;

/** struct nvmepeer_mapping - part of a queue pair in this process' memory. */
struct nvmepeer_mapping;

/* ---- Controllers -------------------------------------------------------- */

/**
 * nvmepeer_open() - open a controller
 * @node: "/dev/nvmep0", or "nvmep0" for short
 * @ctrl: receives the controller, to be closed with nvmepeer_close()
 *
 * Returns 0, -ENOTTY if the node is not one of nvme-peer's, or what open(2)
 * says.
 */
int nvmepeer_open(const char *node, struct nvmepeer **ctrl);

/** nvmepeer_close() - close; imported buffers go, queue pairs stay. */
void nvmepeer_close(struct nvmepeer *ctrl);

/** nvmepeer_fd() - the file descriptor of the node, owned by @ctrl. */
int nvmepeer_fd(const struct nvmepeer *ctrl);

/** nvmepeer_node() - the path of the node, owned by @ctrl. */
const char *nvmepeer_node(const struct nvmepeer *ctrl);

/** nvmepeer_info() - limits, facts and state of the controller as of now. */
int nvmepeer_info(struct nvmepeer *ctrl, struct nvme_peer_info *info, size_t size);

/**
 * nvmepeer_route_dmabuf() - can the controller reach the memory of a dma-buf?
 * @ctrl: controller
 * @dmabuf_fd: the dma-buf; nothing is imported
 * @route: receives verdict and reason
 * @size: of @route
 *
 * NVME_PEER_ROUTE_NONE is an answer, not an error.
 */
int nvmepeer_route_dmabuf(struct nvmepeer *ctrl, int dmabuf_fd,
			  struct nvme_peer_route *route, size_t size);

/**
 * nvmepeer_route_pci() - can the controller and a PCI function reach each other?
 * @ctrl: controller
 * @pci_address: the function, see nvmepeer_pci_parse()
 * @route: receives verdict and reason
 * @size: of @route
 */
int nvmepeer_route_pci(struct nvmepeer *ctrl, struct nvme_peer_pci_address pci_address,
		       struct nvme_peer_route *route, size_t size);

/**
 * nvmepeer_admin() - send one admin command and wait for it
 * @ctrl: controller
 * @command: in: the command; out: @command->result, dword 0 of the completion
 *
 * Returns 0, a positive NVMe status, or a negative errno.
 */
int nvmepeer_admin(struct nvmepeer *ctrl, struct nvme_passthru_cmd *command);

/* ---- Buffers: memory that the controller reads and writes --------------- */

/**
 * nvmepeer_buf_import() - make the memory of a dma-buf known to the controller
 * @ctrl: controller
 * @dmabuf_fd: the dma-buf; may be closed afterwards
 * @flags: NVME_PEER_BUF_*
 * @buffer: receives handle, length, segments and where the memory really lies
 * @size: of @buffer
 */
int nvmepeer_buf_import(struct nvmepeer *ctrl, int dmabuf_fd, uint32_t flags,
			struct nvme_peer_buf_import *buffer, size_t size);

/**
 * nvmepeer_buf_import_part() - the same for a part of it, or for one direction
 * @ctrl: controller
 * @buffer: in: dmabuf_fd, flags, access, offset and length, the rest 0; out: as
 *	nvmepeer_buf_import(); not changed by a failure
 * @size: of @buffer
 */
int nvmepeer_buf_import_part(struct nvmepeer *ctrl,
			     struct nvme_peer_buf_import *buffer, size_t size);

/**
 * nvmepeer_buf_release() - undo an import
 * @ctrl: controller
 * @handle: imported buffer
 *
 * -EBUSY while a ring lies in it, and, once nvmepeer_buf_table() has told its
 * addresses, while any queue pair of the controller is alive.  The close of @ctrl
 * lets go of it as soon as those have ended.
 */
int nvmepeer_buf_release(struct nvmepeer *ctrl, uint32_t handle);

/**
 * nvmepeer_buf_table() - DMA addresses of a buffer's controller pages
 * @ctrl: controller
 * @handle: imported buffer
 * @offset: first byte, a multiple of nvme_peer_info.page_size
 * @addresses: room for @count addresses in the controller's own DMA domain
 * @count: how many
 *
 * Returns how many were written; fewer than @count at the end of the buffer.
 */
int nvmepeer_buf_table(struct nvmepeer *ctrl, uint32_t handle, uint64_t offset,
		       uint64_t *addresses, uint32_t count);

/**
 * nvmepeer_buf_contiguous() - DMA address of a range that is in one piece
 * @ctrl: controller
 * @handle: imported buffer
 * @offset: first byte, a multiple of nvme_peer_info.page_size
 * @length: bytes
 * @dma: receives the address of the first byte
 *
 * Returns 0, or -EMSGSIZE if the addresses of the range are not consecutive.
 */
int nvmepeer_buf_contiguous(struct nvmepeer *ctrl, uint32_t handle,
			    uint64_t offset, uint64_t length, uint64_t *dma);

/**
 * nvmepeer_hostmem_alloc() - get host memory that can be imported
 * @length: bytes, rounded up to whole pages
 * @memory: receives it, zeroed; undo with nvmepeer_hostmem_free()
 *
 * Uses /dev/udmabuf, and /dev/dma_heap/system where that is missing.  -ENOSYS
 * if the kernel has neither.
 */
int nvmepeer_hostmem_alloc(size_t length, struct nvmepeer_hostmem **memory);
void nvmepeer_hostmem_free(struct nvmepeer_hostmem *memory);

/** nvmepeer_hostmem_address() - where it is mapped in this process. */
void *nvmepeer_hostmem_address(const struct nvmepeer_hostmem *memory);

/** nvmepeer_hostmem_length() - bytes, whole pages. */
size_t nvmepeer_hostmem_length(const struct nvmepeer_hostmem *memory);

/** nvmepeer_hostmem_fd() - the dma-buf, for nvmepeer_buf_import(), owned by @memory. */
int nvmepeer_hostmem_fd(const struct nvmepeer_hostmem *memory);

/* ---- Queue pairs -------------------------------------------------------- */

/**
 * nvmepeer_qp_create() - create a queue pair
 * @ctrl: controller
 * @request: in: mode, flags, entries, and for each ring the buffer and offset, or
 *	handle 0 for host memory; cq_entries 0 means as many as sq_entries.
 *	out: qid and generation.  qp_fd stays the library's.
 * @size: of @request
 * @qp: receives the queue pair; it may outlive @ctrl
 */
int nvmepeer_qp_create(struct nvmepeer *ctrl,
		       struct nvme_peer_qp_create *request, size_t size,
		       struct nvmepeer_qp **qp);

/**
 * nvmepeer_qp_from_fd() - take over a queue pair file got from elsewhere
 * @fd: for example received over a unix socket; owned by @qp on success
 * @qp: receives the queue pair
 */
int nvmepeer_qp_from_fd(int fd, struct nvmepeer_qp **qp);

/**
 * nvmepeer_qp_destroy() - close the queue pair file
 *
 * The queue pair goes when the last copy of the file is closed.
 */
void nvmepeer_qp_destroy(struct nvmepeer_qp *qp);

/** nvmepeer_qp_fd() - the queue pair file, owned by @qp. */
int nvmepeer_qp_fd(const struct nvmepeer_qp *qp);

/** nvmepeer_qp_info() - geometry, state and counters of a queue pair as of now. */
int nvmepeer_qp_info(struct nvmepeer_qp *qp, struct nvme_peer_qp_info *info, size_t size);

/**
 * nvmepeer_qp_events() - what has happened to a queue pair
 * @qp: queue pair
 * @events: receives the records that wait, oldest first
 * @size: of one of them
 * @count: how many there is room for, 1 or more
 *
 * A loss and the way back are records; a poll of the file says EPOLLPRI while one waits
 * and EPOLLHUP once the queue pair is GONE.  Waits for one, unless the file is O_NONBLOCK:
 * then -EAGAIN.
 *
 * Returns how many; 0: the queue pair is GONE, and all was read.
 */
int nvmepeer_qp_events(struct nvmepeer_qp *qp, struct nvme_peer_event *events, size_t size,
		       uint32_t count);

/**
 * nvmepeer_qp_rearm() - make a QUIESCED queue pair live again
 * @qp: queue pair, whose peers have all seen the loss and use no old entry
 * @losses: nvme_peer_qp_info.losses when the caller began to deal with the loss
 * @generation: receives the new one, for nvmepeer_queue_rearm() on the device
 *
 * A completion ring in a buffer must be zero before the call.  -EAGAIN: the
 * controller is not ready yet; wait for the file and try again.  -EALREADY: it is
 * LIVE.  -ESTALE: it was lost again, @losses has moved.  -ESHUTDOWN: it cannot come
 * back.  -EIO: the controller refused; it may be tried again.
 */
int nvmepeer_qp_rearm(struct nvmepeer_qp *qp, uint32_t losses, uint32_t *generation);

/**
 * struct nvmepeer_export - part of a queue pair as a dma-buf
 * @fd: the dma-buf; the caller closes it
 * @offset: where in it the object starts
 * @length: bytes of the object
 */
struct nvmepeer_export {
	int fd;
	uint64_t offset;
	uint64_t length;
};

/**
 * nvmepeer_qp_export() - make a ring, the doorbells or the status page a dma-buf
 * @qp: queue pair
 * @what: which
 * @flags: NVME_PEER_EXPORT_ALLOW_STATIC or 0
 * @exported: receives it
 * @size: of @exported
 */
int nvmepeer_qp_export(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		       uint32_t flags, struct nvmepeer_export *exported, size_t size);

/**
 * nvmepeer_qp_map() - map a ring, the doorbells or the status page
 * @qp: queue pair
 * @what: which
 * @mapping: receives it; undo with nvmepeer_unmap()
 *
 * The status page is mapped for reading and the doorbells for writing only;
 * the rings for both.  What of it a CUDA program may register is told in
 * nvmepeer_qp_map(3).
 */
int nvmepeer_qp_map(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		    struct nvmepeer_mapping **mapping);
void nvmepeer_unmap(struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_address() - the object itself. */
void *nvmepeer_mapping_address(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_length() - bytes of the object. */
size_t nvmepeer_mapping_length(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_base() - start of the mapping, page aligned. */
void *nvmepeer_mapping_base(const struct nvmepeer_mapping *mapping);

/** nvmepeer_mapping_mapped() - bytes mapped at the base. */
size_t nvmepeer_mapping_mapped(const struct nvmepeer_mapping *mapping);

/* ---- Namespaces: I/O by the CPU ----------------------------------------- */

/**
 * struct nvmepeer_ns_info - format of a namespace
 * @size: bytes of this structure that whoever filled it in knows
 * @nsid: namespace identifier
 * @block_size: bytes of a logical block's data
 * @metadata_size: bytes of metadata that go with each block: 0, as namespaces with
 *	metadata are not served yet
 * @blocks: size of the namespace
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
 * @ns: receives it, to be closed with nvmepeer_ns_close()
 *
 * -EOPNOTSUPP: its blocks carry metadata, which is not served.
 */
int nvmepeer_ns_open(const char *node, struct nvmepeer_ns **ns);
void nvmepeer_ns_close(struct nvmepeer_ns *ns);

/** nvmepeer_ns_fd() - the file descriptor of the node, owned by @ns. */
int nvmepeer_ns_fd(const struct nvmepeer_ns *ns);

/** nvmepeer_ns_info() - its format, as read when it was opened, owned by @ns. */
const struct nvmepeer_ns_info *nvmepeer_ns_info(const struct nvmepeer_ns *ns);

/**
 * nvmepeer_ns_read(), nvmepeer_ns_write() - one command, and wait for it
 * @ns: namespace
 * @lba: first block
 * @blocks: 1 to 65536, and not more than the controller's max_transfer
 * @data: @blocks * block_size bytes, 4-byte aligned
 *
 * Return 0, a positive NVMe status, or a negative errno.  For many commands at
 * once see <nvmepeer_uring.h>.
 */
int nvmepeer_ns_read(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		     void *data);
int nvmepeer_ns_write(struct nvmepeer_ns *ns, uint64_t lba, uint32_t blocks,
		      const void *data);

/** nvmepeer_ns_flush() - what was written becomes durable. Returns as above. */
int nvmepeer_ns_flush(struct nvmepeer_ns *ns);

/* ---- Explanations ------------------------------------------------------- */

/**
 * struct nvmepeer_explanation - why a call failed
 * @call: name of the call
 * @error: positive errno, 0 if @status tells
 * @status: NVMe status, 0 if @error tells
 * @what: what was refused
 * @limit: the rule or limit that refused it, with the numbers
 * @help: what would help
 *
 * The texts are sentences without newline; @limit and @help may be empty.
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
 * Returns the negative errno or positive status that the call returned, 0 if
 * none has failed yet.  The facts were collected when the call failed.  The explanation
 * is plain data: it may be given to any thread.
 */
int nvmepeer_explain(struct nvmepeer_explanation *explanation, size_t size);

/**
 * struct nvmepeer_errors - where failures are noted, of one thread or of several, or of
 * a task that a runtime moves from thread to thread
 */
struct nvmepeer_errors;

/** nvmepeer_errors_new() - make one. Returns 0 or -ENOMEM. */
int nvmepeer_errors_new(struct nvmepeer_errors **errors);

/** nvmepeer_errors_free() - and no other thread uses it any more. */
void nvmepeer_errors_free(struct nvmepeer_errors *errors);

/**
 * nvmepeer_errors_use() - where this thread's failures are noted from now on
 * @errors: NULL: with the thread, as at first
 *
 * A runtime calls it before it lets a task run on a thread, with what is that task's.
 * Threads may use the same one.
 *
 * Returns what was used before.
 */
struct nvmepeer_errors *nvmepeer_errors_use(struct nvmepeer_errors *errors);

/**
 * nvmepeer_errors_explain() - nvmepeer_explain() of what was noted there last, by whomever
 * @errors: NULL: what this thread uses
 * @explanation: receives it
 * @size: of @explanation
 */
int nvmepeer_errors_explain(struct nvmepeer_errors *errors,
			    struct nvmepeer_explanation *explanation, size_t size);

/**
 * enum nvmepeer_result - where a result comes from that no call here returned
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
 * nvmepeer_explain_result() - explain a result, in any thread and at any time
 * @kind: where it comes from
 * @result: as it came
 * @explanation: receives it
 * @size: of @explanation
 *
 * Nothing is noted, and nothing has to be.
 *
 * Returns a negative errno, which for NVMEPEER_RESULT_DEVICE is not @result; the positive
 * status; or 0.
 */
int nvmepeer_explain_result(enum nvmepeer_result kind, int result,
			    struct nvmepeer_explanation *explanation, size_t size);

/**
 * nvmepeer_fail() - note a failure for a library that stands on this one
 * @explanation: what nvmepeer_explain() is to give in this thread from now on;
 *	its @call must stay readable
 * @size: of @explanation
 *
 * So that a program has one place to ask, whichever library refused it.
 * Returns the negative errno or positive status that @explanation holds.
 */
int nvmepeer_fail(const struct nvmepeer_explanation *explanation, size_t size);

/* ---- Names and numbers -------------------------------------------------- */

/* Short names for people and for JSON; "unknown" for a value not known here. */
const char *nvmepeer_state_name(enum nvme_peer_ctrl_state state);
const char *nvmepeer_qp_state_name(enum nvme_peer_qp_state state);
const char *nvmepeer_mode_name(enum nvme_peer_mode mode);
const char *nvmepeer_domain_name(enum nvme_peer_domain domain);
const char *nvmepeer_verdict_name(enum nvme_peer_route_verdict verdict);
const char *nvmepeer_reason_name(enum nvme_peer_route_reason reason);
const char *nvmepeer_export_name(enum nvme_peer_export what);

/** nvmepeer_status_text() - an NVMe status in words; "status 0x..." if unknown. */
const char *nvmepeer_status_text(int status);

/**
 * nvmepeer_route_describe() - one sentence on a route
 * @route: from nvmepeer_route_*()
 * @path: the direction in question, &route->data or &route->doorbell
 * @text: receives the sentence, cut to @length bytes with its NUL
 * @length: room in @text
 *
 * Returns the length that the whole sentence has, as snprintf() does.
 */
int nvmepeer_route_describe(const struct nvme_peer_route *route,
			    const struct nvme_peer_path *path, char *text, size_t length);

/** nvmepeer_pci_parse() - "0000:01:00.0" or "01:00.0" to an address; -EINVAL. */
int nvmepeer_pci_parse(const char *text, struct nvme_peer_pci_address *pci_address);

/** nvmepeer_pci_format() - and back; "none" for an address that is not valid. */
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
