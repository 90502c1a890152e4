// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Explanations: from the record of a failure to three texts, what was refused, the limit
 * that refused it, and the fix.
 *
 * The limit is the meaning of the errno: the text in <linux/nvme_peer.h> (meaning.c), or
 * one of this table for what the library itself, its files and other kernel interfaces
 * return.  The functions below it add the numbers of the request and of the limit.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const struct {
	const char *name;
	const char *what;
} calls[CALL_COUNT] = {
	[CALL_NONE] = { "none", "no call has failed" },
	[CALL_OPEN] = { "nvmepeer_open", "the controller was not opened" },
	[CALL_INFO] = { "nvmepeer_info", "the limits of the controller were not read" },
	[CALL_ROUTE] = { "nvmepeer_route", "the route was not determined" },
	[CALL_ADMIN] = { "nvmepeer_admin", "the admin command failed" },
	[CALL_BUF_IMPORT] = { "nvmepeer_buf_import", "the dma-buf was not imported" },
	[CALL_BUF_RELEASE] = { "nvmepeer_buf_release", "the buffer was not released" },
	[CALL_BUF_TABLE] = { "nvmepeer_buf_table", "the buffer's DMA addresses were not read" },
	[CALL_BUF_ALLOC] = { "nvmepeer_buf_alloc", "no host memory was allocated" },
	[CALL_HOSTMEM] = { "nvmepeer_hostmem_alloc", "no dma-buf of host memory was created" },
	[CALL_QP_CREATE] = { "nvmepeer_qp_create", "the queue pair was not created" },
	[CALL_QP_FROM_FD] = { "nvmepeer_qp_from_fd", "the file is not usable as a queue pair" },
	[CALL_QP_INFO] = { "nvmepeer_qp_info", "the state of the queue pair was not read" },
	[CALL_QP_REARM] = { "nvmepeer_qp_rearm", "the queue pair was not re-armed" },
	[CALL_QP_KICK] = { "nvmepeer_qp_kick", "the poller was not woken" },
	[CALL_QP_LIMITS] = { "nvmepeer_qp_limits", "the limits of the queue pair were not read" },
	[CALL_QP_STATS] = { "nvmepeer_qp_stats", "the statistics of the queue pair were not read" },
	[CALL_QP_SEAL] = { "nvmepeer_qp_seal", "the queue pair was not sealed" },
	[CALL_EXTENTS] = { "nvmepeer_file_extents", "the extents of the file were not pinned" },
	[CALL_WINDOW_ADD] = { "nvmepeer_window_add", "the window was not added" },
	[CALL_WINDOW_REMOVE] = { "nvmepeer_window_remove", "the window was not removed" },
	[CALL_WINDOW_INFO] = { "nvmepeer_window_info", "the window was not read" },
	[CALL_FILE_CHECK] = { "nvmepeer_file_check", "the file was not checked" },
	[CALL_FILE_OPEN] = { "nvmepeer_file_open", "the file was not opened for reading and writing" },
	[CALL_BUF_ADD] = { "nvmepeer_buf_add", "the buffer was not added" },
	[CALL_BUF_REMOVE] = { "nvmepeer_buf_remove", "the buffer was not removed" },
	[CALL_QP_EXPORT] = { "nvmepeer_qp_export", "the export was refused" },
	[CALL_QP_MAP] = { "nvmepeer_qp_map", "the mapping was refused" },
	[CALL_EVENT] = { "nvmepeer_qp_events", "the events of the queue pair were not read" },
	[CALL_GEOMETRY] = { "nvmepeer_geometry_build", "the geometry is not usable by the device library" },
	[CALL_CPU_PEER] = { "nvmepeer_cpu_peer", "the CPU cannot act as the peer" },
	[CALL_NS_OPEN] = { "nvmepeer_ns_open", "the namespace was not opened" },
	[CALL_READ] = { "nvmepeer_ns_read", "the read failed" },
	[CALL_WRITE] = { "nvmepeer_ns_write", "the write failed" },
	[CALL_FLUSH] = { "nvmepeer_ns_flush", "the flush failed" },
	[CALL_URING] = { "nvmepeer_uring_init", "the ring for NVMe commands was not created" },
	[CALL_SERVE] = { "nvmepeer_serve_create", "no queue pair is served" },
	[CALL_SERVE_FD] = { "nvmepeer_serve_add_fd", "the descriptor is not usable as a namespace" },
	[CALL_SERVE_BUFFER] = { "nvmepeer_serve_add_buffer", "the memory is not usable for data" },
	[CALL_SERVE_RUN] = { "nvmepeer_serve_run", "the queue pair is not served any more" },
	[CALL_SERVE_EXPORT] = { "nvmepeer_serve_export", "the part is not exported" },
	[CALL_ERRORS] = { "nvmepeer_errors_new", "no memory for a record of failures" },
};

#define RAWIO "run as root or with CAP_SYS_RAWIO"
#define NO_BOUNCE "boot without swiotlb=force or with an IOMMU; peers are not possible in a guest with encrypted memory"
#define METADATA "the blocks of the namespace carry metadata, which transfers do not support"
#define NO_METADATA "use a namespace without metadata, or format it: nvme format --lbaf with a format of ms 0"
#define TRANSFER "the transfer is longer than max_transfer, or the memory is not aligned to 4 bytes"
#define SPLIT "split the transfer; nvme-peer info shows max_transfer"
#define MEMLOCK "raise the limit (ulimit -l, LimitMEMLOCK= of a systemd unit), release buffers not in use, or run with CAP_IPC_LOCK"
#define ONLY_MEDIATED "use a queue pair in NVME_PEER_MODE_MEDIATED"
#define SEALED "add windows and buffers before nvmepeer_qp_seal()"
#define END_SWAP "end the use as swap space first (swapoff)"
#define WRITE_ZEROS "write zeros to the file first (nvme-peer file prepare), or copy it (cp --reflink=never)"
#define UNMAP_FILE "unmap the file in all processes (fuser -m names them)"
#define EXTENT_MEMORY "raise RLIMIT_MEMLOCK (ulimit -l), or copy the file to free space"
#define REMOUNT "mount -o remount,rw"
#define RETRY_LATER "retry when the command has completed"
#define LOG "see the kernel log for the status that the controller returned"
#define NO_NODE "the node does not exist"
#define NO_URING "the kernel has no io_uring"
#define URING_DISABLED "io_uring is disabled"
#define ENABLE_URING "sysctl kernel.io_uring_disabled=0, or allow io_uring in the container"
#define IS_SERVED "a thread is in nvmepeer_serve_run()"
#define STOP_SERVING "call nvmepeer_serve_stop(), and wait until the thread has returned"
#define REARM_SERVED "call nvmepeer_serve_rearm() when no peer is in a call"
#define REPEAT "repeat reads, and writes to blocks that nothing else writes"
#define UNCERTAIN "the controller was stopped during the command, which may or may not have been executed"

/* A limit of NULL is the meaning in <linux/nvme_peer.h>.  CALL_NONE: of any other call. */
static const struct advice {
	enum call call;
	int error;
	const char *limit;
	const char *help;
} advice[] = {
	{ CALL_OPEN, ENOENT, NO_NODE,
	  "bind a controller: nvme-peer bind ADDRESS; nvme-peer topo lists the addresses" },
	{ CALL_OPEN, ENOTTY, "the node does not support NVME_PEER_INFO",
	  "use a controller node of nvme-peer, /dev/nvmepX; /dev/nvmeX belongs to the kernel's nvme driver" },
	{ CALL_OPEN, E2BIG, "the library is newer than the kernel module",
	  "load a module of the library's version" },
	{ CALL_ROUTE, ENODEV, NULL, "lspci -D lists the addresses" },
	{ CALL_BUF_IMPORT, EINVAL, NULL, "export the memory as a dma-buf with the driver of the GPU" },
	{ CALL_BUF_IMPORT, ERANGE, NULL,
	  "stay within the dma-buf; length 0 means all of it from the offset on" },
	{ CALL_BUF_IMPORT, EACCES, NULL,
	  "import it with NVME_PEER_ACCESS_READ, or export it for reading and writing" },
	{ CALL_BUF_IMPORT, EXDEV, NULL, "nvme-peer route shows the route and what blocks it" },
	{ CALL_BUF_IMPORT, ENXIO, NULL,
	  "keep the buffer in device memory (large BAR, pinned placement), or import "
	  "it without NVME_PEER_BUF_REQUIRE_DEVICE" },
	{ CALL_BUF_IMPORT, EDQUOT, NULL, "import fewer, larger buffers, or release those not in use" },
	{ CALL_BUF_IMPORT, ENOBUFS, NULL, MEMLOCK "; memory of a device does not count" },
	{ CALL_BUF_IMPORT, EOPNOTSUPP, NULL, NO_BOUNCE },
	{ CALL_BUF_RELEASE, EBUSY, NULL,
	  "destroy the queue pairs first, or close the controller: the kernel "
	  "releases the buffer after them" },
	{ CALL_BUF_TABLE, EPERM, NULL, RAWIO },
	{ CALL_BUF_TABLE, EINVAL, NULL, "start at a page boundary" },
	{ CALL_BUF_TABLE, ERANGE, NULL, "stay within the length that the import returned" },
	{ CALL_BUF_TABLE, EMSGSIZE, "the DMA addresses of the range are not contiguous",
	  "use the table of addresses page by page, or allocate contiguous memory" },
	{ CALL_BUF_ALLOC, EINVAL, "the length is 0", "" },
	{ CALL_BUF_ALLOC, EFBIG, "the length exceeds 1 GiB (NVME_PEER_BUF_ALLOC_MAX)",
	  "allocate several buffers" },
	{ CALL_BUF_ALLOC, ENOBUFS, NULL, MEMLOCK },
	{ CALL_BUF_ALLOC, ENOMEM, NULL,
	  "allocate less, or raise memory.max of the cgroup (MemoryMax= of a systemd unit)" },
	{ CALL_BUF_ALLOC, ENOTTY, "the kernel module does not support NVME_PEER_BUF_ALLOC",
	  "load a module of the library's version" },
	{ CALL_HOSTMEM, ENOSYS, "the kernel has neither /dev/udmabuf nor /dev/dma_heap/system",
	  "call nvmepeer_buf_alloc(), or use a kernel with CONFIG_UDMABUF or CONFIG_DMABUF_HEAPS_SYSTEM, "
	  "or memory of a device" },
	{ CALL_HOSTMEM, EINVAL, "the size is 0 or above udmabuf's size_limit_mb",
	  "raise /sys/module/udmabuf/parameters/size_limit_mb, or allocate several buffers" },
	{ CALL_HOSTMEM, EACCES, "no permission for /dev/udmabuf or /dev/dma_heap/system",
	  "run as root, or join the group that owns the node (often kvm)" },
	{ CALL_QP_CREATE, EPERM, NULL,
	  RAWIO "; or CAP_SYS_NICE for a weight above 1, CAP_SYS_RESOURCE for a timeout above io_timeout" },
	{ CALL_QP_CREATE, EDQUOT, NULL,
	  "close mediated queue pairs of the same user, or write more to "
	  "/sys/module/nvme_peer/parameters/mediated_max, or to mediated_total, the limit of all users" },
	{ CALL_QP_CREATE, ENOBUFS, NULL, MEMLOCK },
	{ CALL_QP_CREATE, EBUSY, NULL,
	  "retry when the command has completed; or close the queue pairs of the other modes and end the "
	  "processes that mapped their doorbells, or write 1 to "
	  "/sys/module/nvme_peer/parameters/allow_mixed_modes, which ends the isolation of mediated ones" },
	{ CALL_QP_CREATE, EACCES, NULL,
	  "the controller reads the submission ring and writes the completion ring: "
	  "import with NVME_PEER_ACCESS_BOTH" },
	{ CALL_QP_CREATE, ERANGE, NULL, "import a larger buffer or request fewer entries" },
	{ CALL_QP_CREATE, EMSGSIZE, NULL,
	  "allocate the ring contiguously in the device, or enable translation by an IOMMU "
	  "(CAP.CQR requires one range of DMA addresses)" },
	{ CALL_QP_CREATE, EEXIST, NULL, "give each ring a range of its own" },
	{ CALL_QP_CREATE, ENOSPC, NULL,
	  "close an unused queue pair (nvme-peer qp list), reduce cpu_queues in "
	  "/sys/class/nvme-peer, or load the module with a larger peer_queues" },
	{ CALL_QP_CREATE, EAGAIN, NULL, "poll() nvmepeer_fd() for POLLIN, then retry" },
	{ CALL_QP_CREATE, EIO, NULL, LOG },
	{ CALL_QP_CREATE, EOPNOTSUPP, NULL, NO_BOUNCE },
	{ CALL_QP_FROM_FD, ENOTTY, "the file is not a queue pair",
	  "pass the descriptor of nvmepeer_qp_fd()" },
	{ CALL_QP_REARM, EAGAIN, NULL, "poll() the file of the queue pair, then retry" },
	{ CALL_QP_REARM, EALREADY, NULL, "use it: it has lost nothing since it was created or re-armed" },
	{ CALL_QP_REARM, ESTALE, NULL, "let every peer see the new loss, then pass the new count of losses" },
	{ CALL_QP_REARM, ESHUTDOWN, NULL,
	  "close it and create a new one; the reason of nvmepeer_qp_info() is the cause" },
	{ CALL_QP_REARM, ENOSPC, NULL, "close other queue pairs, or write fewer to cpu_queues in sysfs" },
	{ CALL_QP_REARM, EBUSY, NULL, "retry when cpu_queues was changed" },
	{ CALL_QP_REARM, EIO, NULL, LOG "; a retry is possible" },
	{ CALL_QP_KICK, EOPNOTSUPP, NULL,
	  "kick only queue pairs in NVME_PEER_MODE_RELAY or NVME_PEER_MODE_MEDIATED" },
	{ CALL_QP_LIMITS, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_QP_STATS, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_QP_SEAL, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_WINDOW_ADD, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_WINDOW_ADD, EBADF, NULL, "open the block device or file first" },
	{ CALL_WINDOW_ADD, EACCES, NULL,
	  "open the block device or file with O_RDWR, a file as its owner" },
	{ CALL_WINDOW_ADD, ETXTBSY, NULL, END_SWAP },
	{ CALL_WINDOW_ADD, ENOTBLK, NULL,
	  "open a namespace (/dev/nvmepXnY), a partition, or a file of ext4 or XFS; "
	  "or use a served queue pair" },
	{ CALL_WINDOW_ADD, ENODATA, NULL, WRITE_ZEROS },
	{ CALL_WINDOW_ADD, EBUSY, NULL, UNMAP_FILE },
	{ CALL_WINDOW_ADD, EFBIG, NULL, "copy the file to free space, or add several windows" },
	{ CALL_WINDOW_ADD, ENOBUFS, NULL, EXTENT_MEMORY },
	{ CALL_WINDOW_ADD, EROFS, NULL, REMOUNT },
	{ CALL_WINDOW_ADD, EIO, NULL, LOG },
	{ CALL_WINDOW_ADD, ERANGE, NULL,
	  "request blocks that the device has (blockdev --getsz counts 512 bytes)" },
	{ CALL_WINDOW_ADD, EXDEV, NULL, "create the queue pair on the controller of the device" },
	{ CALL_WINDOW_ADD, EMEDIUMTYPE, NULL, NO_METADATA },
	{ CALL_WINDOW_ADD, EAGAIN, NULL, RETRY_LATER },
	{ CALL_WINDOW_ADD, EPERM, NULL, SEALED "; or chattr -i -a the file" },
	{ CALL_WINDOW_ADD, EDQUOT, NULL, "remove a window, or create the queue pair with more max_windows" },
	{ CALL_EXTENTS, ENOTTY, "the kernel module does not support NVME_PEER_EXTENTS",
	  "load a newer module" },
	{ CALL_EXTENTS, EBADF, NULL, "open the file first" },
	{ CALL_EXTENTS, EACCES, NULL, "open the file with O_RDWR, as its owner" },
	{ CALL_EXTENTS, ETXTBSY, NULL, END_SWAP },
	{ CALL_EXTENTS, ENOTBLK, NULL, "use a served queue pair" },
	{ CALL_EXTENTS, ENODATA, NULL, WRITE_ZEROS },
	{ CALL_EXTENTS, EBUSY, NULL, UNMAP_FILE },
	{ CALL_EXTENTS, EFBIG, NULL, "copy the file to free space, or pin parts of it" },
	{ CALL_EXTENTS, ENOBUFS, NULL, EXTENT_MEMORY },
	{ CALL_EXTENTS, EROFS, NULL, REMOUNT },
	{ CALL_EXTENTS, EPERM, NULL, "chattr -i -a the file" },
	{ CALL_EXTENTS, EIO, NULL, LOG },
	{ CALL_EXTENTS, ERANGE, NULL, "request blocks that the file has" },
	{ CALL_EXTENTS, EXDEV, NULL, "open the controller of the file: nvme-peer file check PATH" },
	{ CALL_EXTENTS, EMEDIUMTYPE, NULL, "see nvme-peer file check PATH, or use a served queue pair" },
	{ CALL_EXTENTS, EAGAIN, NULL, RETRY_LATER },
	{ CALL_FILE_CHECK, EBADF, "the file descriptor is not open", "open the file first" },
	{ CALL_FILE_OPEN, ENOENT, "there is no such file", "create it: nvme-peer file prepare PATH SIZE" },
	{ CALL_FILE_OPEN, EACCES, "the permissions of the file do not allow reading and writing",
	  "run as the owner of the file, or chmod u+rw" },
	{ CALL_FILE_OPEN, EPERM, "the file is immutable or append-only", "chattr -i, chattr -a" },
	{ CALL_FILE_OPEN, EROFS, "the file system is mounted read-only", REMOUNT },
	{ CALL_FILE_OPEN, EISDIR, "it is a directory", "pass a regular file" },
	{ CALL_FILE_OPEN, ETXTBSY, "the file is swap space, a running program, or has a window",
	  "end that use first (swapoff); a window ends with its queue pair" },
	{ CALL_WINDOW_REMOVE, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_WINDOW_INFO, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_BUF_ADD, EOPNOTSUPP, NULL, ONLY_MEDIATED ", and boot without swiotlb=force" },
	{ CALL_BUF_ADD, ENXIO, NULL, "use host memory (nvmepeer_buf_alloc())" },
	{ CALL_BUF_ADD, EPERM, NULL, SEALED },
	{ CALL_BUF_ADD, EDQUOT, NULL, "remove a buffer, or create the queue pair with more max_buffers" },
	{ CALL_BUF_ADD, ENOSPC, "the user's buffers on this controller exceed mediated_mapped",
	  "remove buffers, or write more GiB to /sys/module/nvme_peer/parameters/mediated_mapped" },
	{ CALL_BUF_ADD, ENOBUFS, NULL, MEMLOCK },
	{ CALL_BUF_REMOVE, EOPNOTSUPP, NULL, ONLY_MEDIATED },
	{ CALL_QP_EXPORT, EAGAIN, NULL, "re-arm it first: nvmepeer_qp_rearm()" },
	{ CALL_QP_EXPORT, EACCES, NULL, "export without NVME_PEER_EXPORT_ALLOW_STATIC" },
	{ CALL_QP_EXPORT, EDQUOT, NULL, "close dma-bufs of this queue pair" },
	{ CALL_QP_EXPORT, ENODATA, NULL, "use the dma-buf that was imported" },
	{ CALL_QP_EXPORT, EOPNOTSUPP, NULL, "use a controller with other doorbell spacing" },
	{ CALL_QP_EXPORT, ESHUTDOWN, NULL,
	  "if nvmepeer_qp_info() reports it as failed or gone, close the queue pair and create a new one" },
	{ CALL_QP_MAP, ENOSPC, "64 processes have mapped the doorbells of this queue ID",
	  "end one of them (quarantine in /sys/kernel/debug/nvme-peer lists them)" },
	{ CALL_QP_MAP, EPERM, "the kernel does not allow this kind of mapping", "" },
	{ CALL_GEOMETRY, EOPNOTSUPP, METADATA, NO_METADATA },
	{ CALL_NS_OPEN, ENOENT, NO_NODE,
	  "bind the controller to nvme-peer; its namespaces appear as /dev/ngpXnY" },
	{ CALL_NS_OPEN, EOPNOTSUPP, METADATA, NO_METADATA },
	{ CALL_NS_OPEN, EPROTO, "Identify does not describe the format of the namespace", "" },
	{ CALL_NS_OPEN, ENOTTY, "the node does not support NVME_IOCTL_ID",
	  "use a generic namespace node of nvme-peer, /dev/ngpXnY" },
	{ CALL_READ, EINVAL, TRANSFER, SPLIT },
	{ CALL_WRITE, EINVAL, TRANSFER, SPLIT },
	{ CALL_URING, ENOSYS, NO_URING,
	  "use the ioctls: nvmepeer_ns_read() and nvmepeer_ns_write()" },
	{ CALL_URING, EPERM, URING_DISABLED, ENABLE_URING },
	{ CALL_URING, EINVAL, "the depth is 0 or too large, or the kernel is older than 5.19",
	  "use 1 to 32768 entries" },
	{ CALL_SERVE, EINVAL,
	  "entries are a power of two from 2 to 32768, the depth is at most 4096, and a transfer a "
	  "multiple of 4096 bytes up to 16 MiB",
	  "set depth and max_transfer to 0 for suitable values" },
	{ CALL_SERVE, ENOSYS, NO_URING, "use a newer kernel; queue pairs of a controller need no io_uring" },
	{ CALL_SERVE, EPERM, URING_DISABLED, ENABLE_URING },
	{ CALL_SERVE_FD, EINVAL, "the block size is no power of two up to 65536, or below that of the device",
	  "pass 0 for the block size of the descriptor" },
	{ CALL_SERVE_FD, ENOTBLK, "it is neither a block device nor a regular file",
	  "pass /dev/nvmepXnY in place of /dev/ngpXnY" },
	{ CALL_SERVE_FD, ENODATA, "it is shorter than one block", "write the file first, or truncate(1) it" },
	{ CALL_SERVE_FD, ENOSPC, "a queue pair has at most 64 namespaces", "serve several queue pairs" },
	{ CALL_SERVE_FD, EBUSY, IS_SERVED, STOP_SERVING },
	{ CALL_SERVE_BUFFER, EINVAL, "the range is empty, or does not begin with a page of 4096 bytes",
	  "allocate it with mmap() or aligned_alloc()" },
	{ CALL_SERVE_BUFFER, ENOSPC, "a queue pair has at most 64 buffers", "add one large buffer" },
	{ CALL_SERVE_BUFFER, EBUSY, IS_SERVED, STOP_SERVING },
	{ CALL_SERVE_EXPORT, EINVAL, "a served queue pair has no such part",
	  "export the rings, doorbells, the status page or the control page" },
	{ CALL_SERVE_RUN, EBUSY, IS_SERVED, STOP_SERVING },
	{ CALL_SERVE_RUN, EALREADY, "the queue pair is LIVE and has lost nothing", "run it" },
	{ CALL_SERVE_RUN, ESHUTDOWN, "the queue pair is QUIESCED, or has failed with its ring",
	  REARM_SERVED ", or create another one" },
	{ CALL_SERVE_RUN, EPROTO,
	  "a peer wrote a tail or head that is not less than the entries, or that no completion has reached",
	  REARM_SERVED "; the peer may use the geometry of another queue pair" },
	{ CALL_SERVE_RUN, ECANCELED, "a peer requested it after a timeout", REARM_SERVED },
	{ CALL_COMMAND, EINTR, UNCERTAIN, REPEAT },
	{ CALL_COMMAND, EACCES, "a write through a node that is open for reading, or a command with effects on others",
	  "open the node for writing, or run with CAP_SYS_ADMIN" },
	{ CALL_COMMAND, EOPNOTSUPP, "the ring has entries of 64 bytes",
	  "create it with nvmepeer_uring_init(), or with IORING_SETUP_SQE128 and IORING_SETUP_CQE32" },
	{ CALL_COMMAND, EINVAL, TRANSFER, SPLIT },
	{ CALL_COMMAND, ENODEV, "the controller or the namespace is gone", "" },
	{ CALL_URING_IO, EINTR, NULL, REPEAT },
	{ CALL_URING_IO, EACCES, NULL, "import with NVME_PEER_ACCESS_BOTH, and open the node for writing" },
	{ CALL_URING_IO, EOPNOTSUPP, NULL, "create the ring with nvmepeer_uring_init()" },
	{ CALL_URING_IO, E2BIG, NULL, "split the list; one submission takes several" },
	{ CALL_URING_IO, EMSGSIZE, NULL, SPLIT },
	{ CALL_URING_IO, ERANGE, NULL, "import more of the dma-buf" },
	{ CALL_NONE, ENOENT, "no buffer of this open file has this handle",
	  "use a handle that was imported on the same open file" },
	{ CALL_NONE, ESTALE, "the exporter has invalidated the buffer",
	  "release the buffer and import it again" },
	{ CALL_NONE, ESHUTDOWN, NULL, "see the kernel log; bind the controller to nvme-peer again" },
	{ CALL_NONE, ENODEV, "the controller is being removed, or was disabled after a failed reset",
	  "see the kernel log; bind the controller to nvme-peer again" },
	{ CALL_NONE, EBADF, "the file descriptor is not open", "" },
	{ CALL_NONE, ENOMEM, NULL, "" },
	{ CALL_NONE, EMFILE, "this process has too many open files", "ulimit -n" },
	{ CALL_NONE, EACCES, "the permissions of the node do not allow it",
	  "run as root, or give the user access with a udev rule" },
	{ CALL_NONE, E2BIG, "the request uses a field that this kernel module or library does not support",
	  "use a module and a library of the version of the headers that the program was compiled with" },
};

__attribute__((format(printf, 2, 3)))
static void set_limit(struct nvmepeer_explanation *explanation, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(explanation->limit, sizeof(explanation->limit), format, arguments);
	va_end(arguments);
}

/* Append the numbers to the limit. */
__attribute__((format(printf, 2, 3)))
static void add_limit(struct nvmepeer_explanation *explanation, const char *format, ...)
{
	size_t length = strlen(explanation->limit);
	va_list arguments;

	if (length && length + 2 < sizeof(explanation->limit)) {
		memcpy(explanation->limit + length, ": ", 3);
		length += 2;
	}
	va_start(arguments, format);
	vsnprintf(explanation->limit + length, sizeof(explanation->limit) - length, format,
		  arguments);
	va_end(arguments);
}

static void set_help(struct nvmepeer_explanation *explanation, const char *help)
{
	snprintf(explanation->help, sizeof(explanation->help), "%s", help);
}

/* ---- Requests and their numbers ----------------------------------------- */

static void refine_import(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_buf_import *import = &failure->request.import;
	uint32_t page = failure->info.size ? failure->info.page_size : 0;

	if (failure->error == EINVAL &&
	    import->access & ~(NVME_PEER_ACCESS_READ | NVME_PEER_ACCESS_WRITE)) {
		set_limit(explanation, "access %u is unknown", import->access);
		set_help(explanation, "use NVME_PEER_ACCESS_BOTH, or _READ and _WRITE");
	} else if (failure->error == EINVAL && page &&
		   (import->offset % page || import->length % page)) {
		set_limit(explanation, "offset %llu and length %llu must be multiples of the controller page, %u bytes",
			  (unsigned long long)import->offset, (unsigned long long)import->length,
			  page);
		set_help(explanation, "import whole pages; length 0 means all of it from the offset on");
	} else if (failure->error == ERANGE) {
		add_limit(explanation, "offset %llu, length %llu", (unsigned long long)import->offset,
			  (unsigned long long)import->length);
	} else if (failure->error == ENXIO && failure->route.size) {
		add_limit(explanation, "route %s", nvmepeer_verdict_name(failure->route.data.verdict));
	}
}

/* A route was refused: name the reason and the ports. */
static void refine_route(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_path *data = &failure->route.data;

	if (!failure->route.size)
		return;
	nvmepeer_route_describe(&failure->route, data, explanation->limit,
				sizeof(explanation->limit));
	if (data->reason == NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN)
		set_help(explanation,
			 "put both devices behind one PCIe switch, or load the module with allow_host_bridge=1 if the platform forwards requests between root ports");
	else if (data->reason == NVME_PEER_REASON_DIFFERENT_DOMAINS)
		set_help(explanation, "move one of the devices below the host bridge of the other");
	else if (data->reason == NVME_PEER_REASON_ACS_BLOCKED)
		set_help(explanation, "clear these ACS control bits of the port (setpci, or firmware settings)");
	else if (data->reason == NVME_PEER_REASON_EXPORTER_REFUSED)
		set_help(explanation,
			 "see the kernel log for messages of the exporting driver; it may need peer-to-peer support (CONFIG_PCI_P2PDMA)");
	else if (data->verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		set_help(explanation,
			 "put both devices behind one PCIe switch: the controller must read the memory, too");
}

static void refine_table(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_buf_table *table = &failure->request.table;

	if (failure->error != EINVAL && failure->error != ERANGE && failure->error != EMSGSIZE)
		return;
	add_limit(explanation, "buffer %u, offset %llu", table->handle, (unsigned long long)table->offset);
	if (failure->error == EINVAL && failure->info.size)
		add_limit(explanation, "controller page %u bytes", failure->info.page_size);
}

/* @most: the largest number of entries of the controller, 0 if it is not known */
static void set_entries_limit(const struct nvme_peer_qp_create *create, uint32_t most,
			      struct nvmepeer_explanation *explanation)
{
	if (most)
		set_limit(explanation,
			  "%u submission and %u completion entries requested; a ring has 2 to %u (CAP.MQES)",
			  create->sq_entries, create->cq_entries, most);
	else
		set_limit(explanation,
			  "%u submission and %u completion entries requested; a ring has at least 2",
			  create->sq_entries, create->cq_entries);
}

/* EINVAL has one text for all fields: find the field. */
static bool find_bad_field(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;
	uint32_t most = failure->info.size ? failure->info.max_entries : 0;
	uint32_t page = failure->info.size && failure->info.page_size ? failure->info.page_size : 1;

	if (create->mode > NVME_PEER_MODE_MEDIATED) {
		set_limit(explanation, "mode %u is unknown", create->mode);
		set_help(explanation, "use NVME_PEER_MODE_DIRECT, NVME_PEER_MODE_RELAY or NVME_PEER_MODE_MEDIATED");
	} else if (create->mode == NVME_PEER_MODE_RELAY && failure->info.size &&
		   !(failure->info.features & NVME_PEER_FEATURE_RELAY)) {
		set_limit(explanation, "the loaded module has no NVME_PEER_MODE_RELAY");
		set_help(explanation, "load a newer module, or use NVME_PEER_MODE_DIRECT");
	} else if (create->sq_entries < 2 || create->cq_entries < 2 ||
		   (most && (create->sq_entries > most || create->cq_entries > most))) {
		set_entries_limit(create, most, explanation);
		set_help(explanation,
			 "request at least 2 entries, of which one stays empty; create several queue pairs for more depth");
	} else if (create->mode == NVME_PEER_MODE_MEDIATED &&
		   create->cq_entries > NVME_PEER_MAX_MEDIATED_ENTRIES) {
		set_limit(explanation, "%u completion entries requested; NVME_PEER_MODE_MEDIATED has at most %u",
			  create->cq_entries, NVME_PEER_MAX_MEDIATED_ENTRIES);
		set_help(explanation, "request fewer entries, or create several queue pairs");
	} else if (create->cq_entries < create->sq_entries) {
		set_limit(explanation,
			  "%u completion entries for %u submission entries: the completion ring could overflow",
			  create->cq_entries, create->sq_entries);
		snprintf(explanation->help, sizeof(explanation->help),
			 "request %u completion entries, or 0 for the number of submission entries",
			 create->sq_entries);
	} else if ((create->sq_offset && !create->sq_handle) ||
		   (create->cq_offset && !create->cq_handle)) {
		set_limit(explanation, "an offset is set for a ring in host memory");
		set_help(explanation, "set the offset to 0, or pass the handle of a buffer");
	} else if (create->sq_offset % page || create->cq_offset % page) {
		set_limit(explanation, "ring offsets %llu and %llu must be multiples of the controller page, %u bytes",
			  (unsigned long long)create->sq_offset,
			  (unsigned long long)create->cq_offset, page);
		set_help(explanation, "place each ring at a page boundary");
	} else if (create->reserved1 || create->reserved) {
		set_limit(explanation, "a reserved field is not 0");
		set_help(explanation, "set reserved fields to 0");
	} else {
		return false;
	}
	return true;
}

/* lockdown(7) marks the level in brackets: "none [integrity] confidentiality". */
static bool kernel_is_locked_down(void)
{
	char line[64] = "[none]";
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strchr(line, '[') && !strstr(line, "[none]");
}

static void refine_create(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_create *create = &failure->request.create;
	const struct nvme_peer_info *info = &failure->info;

	if (failure->error == EINVAL) {
		find_bad_field(failure, explanation);
	} else if (failure->error == EPERM && kernel_is_locked_down()) {
		set_limit(explanation,
			  "the kernel is locked down: a peer could write kernel memory through the controller");
		set_help(explanation,
			 "turn Secure Boot off, or remove lockdown= from the kernel command line");
	} else if (failure->error == ERANGE || failure->error == EEXIST) {
		add_limit(explanation,
			  "%u submission entries take %llu bytes from offset %llu, %u completion entries %llu bytes from offset %llu",
			  create->sq_entries, create->sq_entries * 64ull,
			  (unsigned long long)create->sq_offset, create->cq_entries,
			  create->cq_entries * 16ull, (unsigned long long)create->cq_offset);
	} else if (failure->error == ENOSPC && info->size) {
		set_limit(explanation,
			  "no queue ID is free: the controller granted %u I/O queue pairs; the CPU uses %u; peers may have %u and %u of those are free; %u are quarantined",
			  info->qids_total, info->qids_cpu, info->qids_peer_max,
			  info->qids_peer_free, info->qids_quarantined);
		if (info->qids_quarantined &&
		    info->qids_total < info->qids_cpu + info->qids_quarantined + info->qids_peer_max)
			set_help(explanation,
				 "close the doorbell dma-bufs of closed queue pairs and end the processes that have mapped them: quarantine in the controller's directory of debugfs lists both");
	}
}

static void refine_export(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	const struct nvme_peer_qp_export *export = &failure->request.export;

	snprintf(explanation->what, sizeof(explanation->what), "%s: the %s was not %s",
		 failure->subject, nvmepeer_export_name(export->what),
		 failure->call == CALL_QP_MAP ? "mapped" : "exported");
	if (failure->error == EINVAL && export->flags & NVME_PEER_EXPORT_ALLOW_STATIC &&
	    export->what != NVME_PEER_EXPORT_DOORBELL)
		set_help(explanation,
			 "set NVME_PEER_EXPORT_ALLOW_STATIC for the doorbell page only");
}

static void refine(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	switch (failure->call) {
	case CALL_BUF_IMPORT:
		if (failure->error == EXDEV)
			refine_route(failure, explanation);
		else
			refine_import(failure, explanation);
		break;
	case CALL_BUF_TABLE:
		refine_table(failure, explanation);
		break;
	case CALL_QP_CREATE:
		refine_create(failure, explanation);
		break;
	case CALL_QP_EXPORT:
	case CALL_QP_MAP:
		refine_export(failure, explanation);
		break;
	case CALL_GEOMETRY:
		if (failure->request.device_status)
			meaning_of_device_result(failure->request.device_status, explanation);
		break;
	case CALL_READ:
	case CALL_WRITE:
		if (failure->error == EINVAL && !failure->request.command.data_len)
			set_limit(explanation, "a command transfers 1 to 65536 blocks");
		break;
	default:
		break;
	}
}

/* ---- The texts ----------------------------------------------------------- */

static const struct advice *find_advice(enum call call, int error)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(advice); i++)
		if (advice[i].call == call && advice[i].error == error)
			return &advice[i];
	return NULL;
}

void explain_error(enum call call, int error, struct nvmepeer_explanation *explanation)
{
	const struct advice *found = find_advice(call, error);
	const struct advice *general = find_advice(CALL_NONE, error);
	const char *limit = found && found->limit ? found->limit :
			    call ? meaning_of_error(call, error) : NULL;
	char text[128];

	if (!limit && call == CALL_URING_IO)
		limit = meaning_of_error(CALL_URING_IO_VEC, error);
	if (!limit && general)
		limit = general->limit ? general->limit : meaning_of_error(CALL_NONE, error);
	set_limit(explanation, "%s", limit ? limit : strerror_r(error, text, sizeof(text)));
	set_help(explanation, found ? found->help : general ? general->help : "");
}

void explain_status(int status, struct nvmepeer_explanation *explanation)
{
	set_limit(explanation, "the controller returned: %s (status 0x%x%s)", nvmepeer_status_text(status),
		  (unsigned int)status & 0x7ff, status & 0x4000 ? ", do not retry" : "");
}

static void explain_size(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	set_limit(explanation, "a structure of %zu bytes was given; it must have at least %zu",
		  failure->size, failure->least);
	set_help(explanation, "pass sizeof() of the structure, from the headers of the library");
}

static void explain(const struct failure *failure, struct nvmepeer_explanation *explanation)
{
	if (failure->call == CALL_OTHER) {
		*explanation = failure->request.explanation;
		return;
	}
	memset(explanation, 0, sizeof(*explanation));
	explanation->call = calls[failure->call].name;
	explanation->error = failure->error;
	explanation->status = failure->status;
	snprintf(explanation->what, sizeof(explanation->what), "%s%s%s", failure->subject,
		 failure->subject[0] ? ": " : "", calls[failure->call].what);
	if (failure->status) {
		explain_status(failure->status, explanation);
		add_limit(explanation, "opcode 0x%02x, namespace %u", failure->request.command.opcode,
			  failure->request.command.nsid);
	} else if (failure->least) {
		explain_size(failure, explanation);
	} else if (failure->error) {
		explain_error(failure->call, failure->error, explanation);
		refine(failure, explanation);
	}
}

/* A wrong size is not recorded: the record would replace the failure to be explained. */
int nvmepeer_errors_explain(struct nvmepeer_errors *errors,
			    struct nvmepeer_explanation *explanation, size_t size)
{
	struct nvmepeer_explanation made;
	struct failure failure;

	if (size < EXPLANATION_LEAST)
		return -EINVAL;
	failure_last(errors, &failure);
	explain(&failure, &made);
	struct_copy(explanation, size, &made, sizeof(made));
	return failure_result(&failure);
}

int nvmepeer_explain(struct nvmepeer_explanation *explanation, size_t size)
{
	return nvmepeer_errors_explain(NULL, explanation, size);
}

int nvmepeer_fail(const struct nvmepeer_explanation *explanation, size_t size)
{
	struct failure failure;

	if (size < EXPLANATION_LEAST)
		return -EINVAL;
	failure_init(&failure, CALL_OTHER, 0, "");
	struct_copy(&failure.request.explanation, sizeof(failure.request.explanation), explanation,
		    size);
	failure.error = failure.request.explanation.error;
	failure.status = failure.error ? 0 : failure.request.explanation.status;
	return failure_record(&failure);
}
