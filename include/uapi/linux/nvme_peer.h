/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * nvme-peer: I/O queue pairs of an NVMe controller for bus masters other than
 * the CPU.
 *
 * A *peer* is a bus master other than the CPU.  A *ring* is the memory of a
 * submission queue or a completion queue.  A *generation* counts controller
 * resets; the entries of a queue pair belong to one generation.
 *
 * The controller's device node /dev/nvmepX takes the ioctls NVME_PEER_INFO to
 * NVME_PEER_EXTENTS.  NVME_PEER_QP_CREATE returns a queue pair file, which
 * takes the ioctls NVME_PEER_QP_EXPORT to NVME_PEER_QP_SEAL, read() and
 * poll().  Closing the last reference to a queue pair file destroys the queue
 * pair.  poll() of the controller node reports EPOLLIN while the controller is
 * LIVE, and EPOLLHUP once it has failed or the driver was unbound.  The
 * controller node also takes the io_uring commands
 * NVME_PEER_URING_CMD_IO and NVME_PEER_URING_CMD_IO_VEC, and the standard NVMe
 * passthrough ABI (linux/nvme_ioctl.h).
 *
 * Each ioctl structure starts with its size, as user space was compiled with
 * it, and a word of flags.  A size below that of the first published version is
 * refused with EINVAL.  A size above the kernel's is accepted if the unknown
 * tail is zero.  A call that fails changes nothing and writes nothing back.
 * Two exceptions: NVME_PEER_BUF_TABLE may have exposed the buffer and written
 * addresses, and NVME_PEER_QP_REARM may have cleared rings and restored
 * doorbells.
 *
 * Each ioctl may fail with these errors as well as with its own:
 *
 * Errors:
 * EFAULT: The structure, or memory that it points to, is not accessible.
 * EINVAL: The size is too small, a flag is unknown, or a reserved field is not
 *   zero.
 * E2BIG: The structure is longer than the kernel's and its tail is not zero, or
 *   it is longer than a page.
 * ENOTTY: The file does not take this ioctl.
 * ENOMEM: Out of memory.
 * ESHUTDOWN: The driver is being unbound from the controller, or was unbound.
 *   NVME_PEER_QP_INFO and NVME_PEER_BUF_RELEASE still work then.
 */
#ifndef _UAPI_LINUX_NVME_PEER_H
#define _UAPI_LINUX_NVME_PEER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Type 0xBB is not in Documentation/userspace-api/ioctl/ioctl-number.rst.
 * Numbers 0x00 to 0x0f are ioctls of the controller node, 0x10 to 0x1f ioctls
 * of the queue pair file, 0x20 to 0x2f io_uring commands of the controller
 * node.
 */
#define NVME_PEER_TYPE	0xBB

enum {
	NVME_PEER_CMD_INFO = 0x00,
	NVME_PEER_CMD_ROUTE,
	NVME_PEER_CMD_BUF_IMPORT,
	NVME_PEER_CMD_BUF_RELEASE,
	NVME_PEER_CMD_BUF_TABLE,
	NVME_PEER_CMD_QP_CREATE,
	NVME_PEER_CMD_BUF_ALLOC,
	NVME_PEER_CMD_EXTENTS,
	NVME_PEER_CMD_QP_EXPORT = 0x10,
	NVME_PEER_CMD_QP_INFO,
	NVME_PEER_CMD_QP_REARM,
	NVME_PEER_CMD_WINDOW_ADD,
	NVME_PEER_CMD_WINDOW_REMOVE,
	NVME_PEER_CMD_WINDOW_INFO,
	NVME_PEER_CMD_BUF_ADD,
	NVME_PEER_CMD_BUF_REMOVE,
	NVME_PEER_CMD_QP_KICK,
	NVME_PEER_CMD_QP_LIMITS,
	NVME_PEER_CMD_QP_STATS,
	NVME_PEER_CMD_QP_SEAL,
	NVME_PEER_CMD_URING_IO = 0x20,
	NVME_PEER_CMD_URING_IO_VEC,
};

/**
 * struct nvme_peer_pci_address - address of a PCI function
 * @domain: PCI domain (segment).  Domains above 0xffff are virtual: the
 *	firmware does not list them
 * @function: bus << 8 | device << 3 | function
 * @valid: 1, or 0 for no function.  If it is 0, the other fields are 0
 */
struct nvme_peer_pci_address {
	__u32 domain;
	__u16 function;
	__u16 valid;
};

/**
 * enum nvme_peer_mode - which side writes doorbells and validates commands
 * @NVME_PEER_MODE_DIRECT: the peer writes the controller's doorbell registers
 *	itself and its commands are not validated.  Requires CAP_SYS_RAWIO: a
 *	doorbell page gives control over the whole controller and its DMA
 *	domain; without an IOMMU that translates, over the whole machine.  A
 *	kernel that is locked down (kernel_lockdown(7)) refuses it
 * @NVME_PEER_MODE_RELAY: the peer writes its doorbells to a page of host memory
 *	and a thread of the kernel writes the registers, if the values are less
 *	than the entries of the rings.  Commands are not validated: requires
 *	what NVME_PEER_MODE_DIRECT requires.  Stores to the doorbells and to
 *	memory of another device than the peer are not ordered: a submission
 *	ring lies in host memory or in the peer's own
 * @NVME_PEER_MODE_MEDIATED: the peer writes its doorbells as in
 *	NVME_PEER_MODE_RELAY, and a thread of the kernel copies each command,
 *	checks it, and submits a command of its own.  The namespace ID of a
 *	command is the ID of a window (NVME_PEER_WINDOW_ADD), its first block is
 *	relative to the window, and its data pointer is a handle address of a
 *	buffer (NVME_PEER_BUF_ADD).  Read, Write, Flush and Write Zeroes.  A
 *	command that is not allowed completes with an NVMe status.  Requires no
 *	capability: rights come from descriptors.  The rings are in host memory
 *
 * Reserved, and EINVAL until it exists: 3 SERVED.
 */
enum nvme_peer_mode {
	NVME_PEER_MODE_DIRECT = 0,
	NVME_PEER_MODE_RELAY = 1,
	NVME_PEER_MODE_MEDIATED = 2,
};

/**
 * enum nvme_peer_domain - kind of the controller's DMA addresses
 * @NVME_PEER_DOMAIN_PHYSICAL: no IOMMU, or an identity domain: a DMA address is
 *	a physical address or a PCI bus address
 * @NVME_PEER_DOMAIN_STRICT: an IOMMU translates: an address of one device's
 *	domain is meaningless for another device.  An address faults as soon as
 *	its memory is unmapped, unless it is a PCI bus address, which is not
 *	translated
 * @NVME_PEER_DOMAIN_LAZY: as NVME_PEER_DOMAIN_STRICT, but an address may work
 *	for some time after its memory was unmapped
 */
enum nvme_peer_domain {
	NVME_PEER_DOMAIN_PHYSICAL = 0,
	NVME_PEER_DOMAIN_STRICT = 1,
	NVME_PEER_DOMAIN_LAZY = 2,
};

/* nvme_peer_info.domain_flags */
/* The controller can raise only the interrupts that the kernel gave it. */
#define NVME_PEER_DOMAIN_ISOLATED_MSI	(1U << 0)

/**
 * enum nvme_peer_ctrl_state - state of the controller
 * @NVME_PEER_CTRL_NEW: the first start is in progress
 * @NVME_PEER_CTRL_LIVE: the controller takes commands
 * @NVME_PEER_CTRL_RESETTING: a reset is in progress; queue pairs are lost
 * @NVME_PEER_CTRL_DELETING: the driver is being unbound
 * @NVME_PEER_CTRL_DEAD: the controller has failed; only removal is possible
 */
enum nvme_peer_ctrl_state {
	NVME_PEER_CTRL_NEW = 0,
	NVME_PEER_CTRL_LIVE = 1,
	NVME_PEER_CTRL_RESETTING = 2,
	NVME_PEER_CTRL_DELETING = 3,
	NVME_PEER_CTRL_DEAD = 4,
};

/* nvme_peer_info.features.  Reserved: bit 6 SERVED. */
#define NVME_PEER_FEATURE_DIRECT	(1ULL << 0)	/* NVME_PEER_MODE_DIRECT */
#define NVME_PEER_FEATURE_BUF_RINGS	(1ULL << 1)	/* rings in imported buffers */
#define NVME_PEER_FEATURE_BUF_IO	(1ULL << 2)	/* NVME_PEER_URING_CMD_IO */
#define NVME_PEER_FEATURE_BUF_IO_VEC	(1ULL << 3)	/* NVME_PEER_URING_CMD_IO_VEC */
#define NVME_PEER_FEATURE_RELAY		(1ULL << 4)	/* NVME_PEER_MODE_RELAY */
#define NVME_PEER_FEATURE_MEDIATED	(1ULL << 5)	/* NVME_PEER_MODE_MEDIATED */
#define NVME_PEER_FEATURE_WINDOW	(1ULL << 7)	/* NVME_PEER_WINDOW_ADD */
#define NVME_PEER_FEATURE_BUF_ALLOC	(1ULL << 8)	/* NVME_PEER_BUF_ALLOC */
#define NVME_PEER_FEATURE_EXTENTS	(1ULL << 9)	/* NVME_PEER_EXTENTS */
#define NVME_PEER_FEATURE_KICK		(1ULL << 10)	/* NVME_PEER_QP_KICK */

/**
 * struct nvme_peer_info - ioctl(NVME_PEER_INFO), on the controller node
 * @size: sizeof(struct nvme_peer_info)
 * @flags: must be 0
 * @features: out: NVME_PEER_FEATURE_*, features of this kernel module
 * @cap: out: the controller's CAP register (NVMe base specification 3.1.4.1)
 * @version: out: the controller's VS register
 * @state: out: enum nvme_peer_ctrl_state
 * @generation: out: number of resets so far; see struct nvme_peer_status
 * @domain: out: enum nvme_peer_domain of the controller
 * @max_entries: out: maximum number of entries of a ring (CAP.MQES + 1)
 * @doorbell_stride: out: bytes from one doorbell register to the next
 *	(4 << CAP.DSTRD)
 * @page_size: out: bytes of a controller page, the unit of a PRP (CC.MPS)
 * @max_transfer: out: maximum data bytes of a command: MDTS, or the driver's
 *	limit if the controller reports none
 * @sgls: out: Identify Controller SGLS; 0: PRPs only
 * @namespaces: out: number of namespaces that have device nodes now
 * @qids_total: out: number of I/O queue pairs that the controller granted
 * @qids_cpu: out: number of them that the CPU's own queues use
 * @qids_peer_max: out: maximum number of peer queue pairs at a time
 * @qids_peer_free: out: number of them that the caller can create now
 * @pci_address: out: PCI function of the controller
 * @contiguous_rings: out: 1 if a ring must be one contiguous range of DMA
 *	addresses (CAP.CQR)
 * @qids_quarantined: out: number of queue IDs that are free but that the caller
 *	cannot get, because a late store may still reach their doorbells: a
 *	doorbell dma-buf is open, or another process that mapped them is alive
 * @cmb_size: out: bytes of the controller memory buffer, 0 for none
 * @domain_flags: out: NVME_PEER_DOMAIN_ISOLATED_MSI or 0
 * @reserved: out: 0
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_info {
	__u32 size;
	__u32 flags;
	__aligned_u64 features;
	__aligned_u64 cap;
	__u32 version;
	__u32 state;
	__u32 generation;
	__u32 domain;
	__u32 max_entries;
	__u32 doorbell_stride;
	__u32 page_size;
	__u32 max_transfer;
	__u32 sgls;
	__u32 namespaces;
	__u32 qids_total;
	__u32 qids_cpu;
	__u32 qids_peer_max;
	__u32 qids_peer_free;
	struct nvme_peer_pci_address pci_address;
	__u32 contiguous_rings;
	__u32 qids_quarantined;
	__aligned_u64 cmb_size;
	__u32 domain_flags;
	__u32 reserved;
};

#define NVME_PEER_INFO	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_INFO)

/**
 * enum nvme_peer_route_verdict - path of requests from one device to another
 * @NVME_PEER_ROUTE_NONE: there is no path, or none that is known to work
 * @NVME_PEER_ROUTE_BUS_ADDR: inside a PCIe switch, by PCI bus address.
 *	Requests pass neither the root complex nor the IOMMU
 * @NVME_PEER_ROUTE_HOST_BRIDGE: through the root complex, by DMA address
 * @NVME_PEER_ROUTE_SYSTEM: the memory is host RAM, which every device reaches
 * @NVME_PEER_ROUTE_HOST_BRIDGE_WRITES: as NVME_PEER_ROUTE_HOST_BRIDGE, but only
 *	writes are forwarded.  That suffices for doorbells and for data that the
 *	controller writes
 */
enum nvme_peer_route_verdict {
	NVME_PEER_ROUTE_NONE = 0,
	NVME_PEER_ROUTE_BUS_ADDR = 1,
	NVME_PEER_ROUTE_HOST_BRIDGE = 2,
	NVME_PEER_ROUTE_SYSTEM = 3,
	NVME_PEER_ROUTE_HOST_BRIDGE_WRITES = 4,
};

/**
 * enum nvme_peer_route_reason - reason of a verdict
 * @NVME_PEER_REASON_NONE: no reason: the peer device is not known
 * @NVME_PEER_REASON_COMMON_SWITCH: both functions are below one switch, and no
 *	ACS control bit redirects requests upstream
 * @NVME_PEER_REASON_HOST_BRIDGE_KNOWN: the path crosses a host bridge that is
 *	known to forward between its root ports
 * @NVME_PEER_REASON_HOST_BRIDGE_ALLOWED: the path crosses a host bridge that
 *	the administrator allowed (module parameter allow_host_bridge)
 * @NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN: the path crosses a host bridge that is
 *	not known to forward.  Place both functions below one switch, or load
 *	the module with allow_host_bridge=1
 * @NVME_PEER_REASON_DIFFERENT_DOMAINS: as NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN,
 *	and the functions are in different PCI domains
 * @NVME_PEER_REASON_SAME_FUNCTION: both ends are the same PCI function
 * @NVME_PEER_REASON_HOST_MEMORY: the memory is host RAM
 * @NVME_PEER_REASON_UNKNOWN_MEMORY: the memory is neither in a BAR nor host RAM
 * @NVME_PEER_REASON_EXPORTER_REFUSED: the exporter does not map the memory for
 *	the controller and reports no reason
 * @NVME_PEER_REASON_ACS_BLOCKED: a port discards the requests: by ACS egress
 *	control that neither redirects nor exempts them, or by ACS translation
 *	blocking while the initiator uses ATS
 */
enum nvme_peer_route_reason {
	NVME_PEER_REASON_NONE = 0,
	NVME_PEER_REASON_COMMON_SWITCH = 1,
	NVME_PEER_REASON_HOST_BRIDGE_KNOWN = 2,
	NVME_PEER_REASON_HOST_BRIDGE_ALLOWED = 3,
	NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN = 4,
	NVME_PEER_REASON_DIFFERENT_DOMAINS = 5,
	NVME_PEER_REASON_SAME_FUNCTION = 6,
	NVME_PEER_REASON_HOST_MEMORY = 7,
	NVME_PEER_REASON_UNKNOWN_MEMORY = 8,
	NVME_PEER_REASON_EXPORTER_REFUSED = 9,
	NVME_PEER_REASON_ACS_BLOCKED = 10,
};

/**
 * struct nvme_peer_route_blocker - a port that blocks the shorter path
 * @address: address of the port, or of an endpoint that redirects requests
 * @acs: ACS control bits of the port that redirect requests to the root complex
 *	(PCI_ACS_RR, PCI_ACS_CR, PCI_ACS_EC of linux/pci_regs.h), or that discard
 *	them (PCI_ACS_EC, PCI_ACS_TB); 0 for a root port of a host bridge that is
 *	not known to forward
 */
struct nvme_peer_route_blocker {
	struct nvme_peer_pci_address address;
	__u32 acs;
};

#define NVME_PEER_ROUTE_BLOCKERS	6

/**
 * struct nvme_peer_path - path of requests from one device to another
 * @verdict: enum nvme_peer_route_verdict
 * @reason: enum nvme_peer_route_reason
 * @blocker_count: number of ports that block a path.  It may exceed
 *	NVME_PEER_ROUTE_BLOCKERS; @blockers then holds the first of them
 * @blockers: the ports.  Ports with ACS bits come first, from the initiator
 *	upstream, then from the target upstream.  If @verdict is a path through
 *	the root complex, they are the ports that block the path inside the
 *	switch
 * @reserved: out: 0.  The structure is embedded and cannot grow
 */
struct nvme_peer_path {
	__u32 verdict;
	__u32 reason;
	__u32 blocker_count;
	struct nvme_peer_route_blocker blockers[NVME_PEER_ROUTE_BLOCKERS];
	__u32 reserved[7];
};

/* nvme_peer_route.flags */
#define NVME_PEER_ROUTE_BY_ADDRESS	(1U << 0)	/* @pci_address, not @dmabuf_fd */

/**
 * struct nvme_peer_route - ioctl(NVME_PEER_ROUTE), on the controller node
 * @size: sizeof(struct nvme_peer_route)
 * @flags: NVME_PEER_ROUTE_BY_ADDRESS or 0
 * @dmabuf_fd: in: dma-buf that the controller is to access; ignored with
 *	NVME_PEER_ROUTE_BY_ADDRESS
 * @pci_address: in with NVME_PEER_ROUTE_BY_ADDRESS, else out: PCI function of
 *	the peer; invalid if the memory is in no PCI function
 * @data: out: path from the controller to the memory, or to the peer's memory
 * @doorbell: out: path from the peer to the controller; NVME_PEER_REASON_NONE
 *	if the peer is not known
 *
 * The call succeeds for every verdict, NVME_PEER_ROUTE_NONE included.  It maps
 * the memory of a dma-buf, reads the addresses and unmaps it.  It pins nothing,
 * but kernels without CONFIG_DMABUF_MOVE_NOTIFY pin the memory while it is
 * mapped, which may move it.  An error of the exporter other than a refusal is returned as it
 * is.  It does not wake functions: ACS control bits of one in D3cold cannot be
 * read and count as set.
 *
 * Errors:
 * EBADF: @dmabuf_fd is not an open file.
 * EINVAL: @dmabuf_fd is not a dma-buf, @pci_address is not valid, @flags is
 *   unknown, or the dma-buf's mapping is empty or not aligned to controller
 *   pages.
 * ENODEV: There is no PCI function at @pci_address.
 * EOPNOTSUPP: DMA of the controller to this memory would use a bounce buffer
 *   (swiotlb), or the controller does not snoop the caches of the CPU.
 * EINTR: A signal interrupted the call.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_route {
	__u32 size;
	__u32 flags;
	__s32 dmabuf_fd;
	struct nvme_peer_pci_address pci_address;
	struct nvme_peer_path data;
	struct nvme_peer_path doorbell;
};

#define NVME_PEER_ROUTE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_ROUTE)

/**
 * enum nvme_peer_access - flags: DMA directions of a buffer
 * @NVME_PEER_ACCESS_BOTH: no flag: the controller reads and writes the buffer,
 *	as with both flags
 * @NVME_PEER_ACCESS_READ: the controller reads it: data of write commands,
 *	submission rings
 * @NVME_PEER_ACCESS_WRITE: the controller writes it: data of read commands,
 *	completion rings
 */
enum nvme_peer_access {
	NVME_PEER_ACCESS_BOTH = 0,
	NVME_PEER_ACCESS_READ = 1,
	NVME_PEER_ACCESS_WRITE = 2,
};

/* nvme_peer_buf_import.flags */
#define NVME_PEER_BUF_REQUIRE_DEVICE	(1U << 0)	/* refuse host RAM with ENXIO */

/**
 * struct nvme_peer_buf_import - ioctl(NVME_PEER_BUF_IMPORT), controller node
 * @size: sizeof(struct nvme_peer_buf_import)
 * @flags: NVME_PEER_BUF_REQUIRE_DEVICE: fail with ENXIO if the exporter
 *	delivers host RAM instead of device memory
 * @dmabuf_fd: in: the dma-buf.  The buffer holds a reference to it of its own
 * @access: in: flags of enum nvme_peer_access.  An IOMMU that translates
 *	enforces them, unless the exporter cannot move its memory and the kernel
 *	is an older one, such as 6.12: it maps such memory in both directions
 * @offset: in: byte offset of the imported range in the dma-buf, a multiple of
 *	nvme_peer_info.page_size
 * @length: in: bytes of the range, a multiple of the same, or 0 for everything
 *	from @offset on; out: bytes of the range
 * @handle: out: buffer handle for other calls on this open file; never 0
 * @segments: out: number of contiguous segments of DMA addresses
 * @verdict: out: enum nvme_peer_route_verdict: path from the controller to the
 *	memory, at its actual placement
 * @reason: out: enum nvme_peer_route_reason
 * @pci_address: out: PCI function that holds the memory, invalid for host RAM
 * @reserved: must be 0
 *
 * Offsets in all other calls are relative to the start of the imported range.
 *
 * The buffer stays mapped for the controller until NVME_PEER_BUF_RELEASE, an
 * invalidation by the exporter, or until the controller node and all queue pair
 * files created through it are closed.
 *
 * NVME_PEER_BUF_TABLE reports the DMA addresses of a buffer and so *exposes*
 * it: any queue pair created through the same open controller node may access
 * it from then on.  Queue pairs of other nodes must not: the buffer does not
 * stay mapped for them.
 *
 * An invalidation stops the queue pairs whose rings are in the buffer.  If the
 * buffer is exposed, it stops all queue pairs of its node, and all of the
 * controller unless an IOMMU translates the controller's addresses and flushes
 * them strictly, and the buffer's verdict is not NVME_PEER_ROUTE_BUS_ADDR:
 * such addresses are not translated.  The node then creates no queue pair
 * (ESTALE) until the handle is released, because peers may hold the addresses.
 *
 * Release, close and invalidation first wait for commands of
 * NVME_PEER_URING_CMD_IO and NVME_PEER_URING_CMD_IO_VEC that use the buffer,
 * and refuse new ones.
 *
 * Host RAM counts as locked memory of the importing user, until the buffer is
 * unmapped: the size of the dma-buf, whatever the range, once for each import.
 * CAP_IPC_LOCK exempts from the limit (RLIMIT_MEMLOCK).  A dma-buf of
 * NVME_PEER_BUF_ALLOC does not count again: its user is charged as long as it
 * exists.
 *
 * An error of the exporter other than a refusal is returned as it is.
 *
 * Errors:
 * EBADF: @dmabuf_fd is not an open file.
 * EINVAL: @dmabuf_fd is not a dma-buf, @access or @flags is unknown, or the
 *   range is empty or not aligned to controller pages.
 * ERANGE: The range exceeds the dma-buf, or begins at its end.
 * EACCES: The dma-buf is open for reading only, and @access is not
 *   NVME_PEER_ACCESS_READ alone, or the kernel would map it in both directions
 *   (see @access) behind an IOMMU.
 * EXDEV: The controller cannot reach the memory; NVME_PEER_ROUTE reports the
 *   reason.
 * ENXIO: The memory is host RAM and NVME_PEER_BUF_REQUIRE_DEVICE is set.
 * EOPNOTSUPP: DMA of the controller to this memory would use a bounce buffer
 *   (swiotlb), or the controller does not snoop the caches of the CPU: nothing
 *   is synchronized between commands.
 * EDQUOT: The open file has too many buffers.
 * ENOBUFS: The memory is host RAM, and the user would lock more of it than
 *   RLIMIT_MEMLOCK allows.
 * ESTALE: The exporter invalidated the buffer during the import.
 * ETIMEDOUT: The exporter did not finish moving its memory in time.
 * EINTR: A signal interrupted the call.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_buf_import {
	__u32 size;
	__u32 flags;
	__s32 dmabuf_fd;
	__u32 access;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 handle;
	__u32 segments;
	__u32 verdict;
	__u32 reason;
	struct nvme_peer_pci_address pci_address;
	__u32 reserved[2];
};

#define NVME_PEER_BUF_IMPORT	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_IMPORT)

/**
 * struct nvme_peer_buf_release - ioctl(NVME_PEER_BUF_RELEASE), controller node
 * @size: sizeof(struct nvme_peer_buf_release)
 * @flags: must be 0
 * @handle: in: buffer handle from NVME_PEER_BUF_IMPORT
 * @reserved: must be 0
 *
 * Errors:
 * EINVAL: @flags or @reserved is not 0.
 * ENOENT: The open file has no buffer with this handle.
 * EBUSY: A ring of a queue pair is in the buffer, or the buffer is exposed (see
 *   struct nvme_peer_buf_import) and an active queue pair was created through
 *   this open file: one that is being created, LIVE or QUIESCED.
 */
struct nvme_peer_buf_release {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

#define NVME_PEER_BUF_RELEASE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_RELEASE)

/**
 * struct nvme_peer_buf_range - contiguous DMA addresses of a buffer
 * @address: DMA address, in this controller's domain, of the first byte; a
 *	multiple of nvme_peer_info.page_size
 * @length: bytes, a multiple of the same
 */
struct nvme_peer_buf_range {
	__aligned_u64 address;
	__aligned_u64 length;
};

/**
 * struct nvme_peer_buf_table - ioctl(NVME_PEER_BUF_TABLE), controller node
 * @size: sizeof(struct nvme_peer_buf_table)
 * @flags: must be 0
 * @handle: in: buffer handle from NVME_PEER_BUF_IMPORT
 * @count: in: number of ranges that fit into @ranges; out: number of ranges
 *	written
 * @offset: in: byte offset in the buffer at which the first range begins, a
 *	multiple of nvme_peer_info.page_size
 * @ranges: in: user pointer to struct nvme_peer_buf_range[@count].  Receives
 *	the ranges in the order of the buffer, the last one up to its end.  If
 *	they do not fit, the caller continues at @offset plus their lengths
 *
 * nvme_peer_buf_import.segments is the number of ranges of the whole buffer.
 *
 * The call exposes the buffer: see struct nvme_peer_buf_import.
 *
 * Errors:
 * EPERM: The caller lacks CAP_SYS_RAWIO.
 * EINVAL: @offset is not aligned to a controller page, or @flags is not 0.
 * ERANGE: @offset is outside the buffer.
 * ENOENT: The open file has no buffer with this handle.
 * ESTALE: The exporter has invalidated the buffer.
 * EFAULT: @ranges is not writable.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_buf_table {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 count;
	__aligned_u64 offset;
	__aligned_u64 ranges;
};

#define NVME_PEER_BUF_TABLE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_TABLE)

/* nvme_peer_qp_create.flags */
/*
 * The queue pair does not block system suspend.  It is QUIESCED after resume,
 * as after a function reset.  The caller ensures that no command is in flight
 * during suspend, or that the loss of commands is acceptable.  Suspend is
 * refused while there are active queue pairs (being created, LIVE or QUIESCED)
 * without this flag.
 */
#define NVME_PEER_QP_ALLOW_SLEEP	(1U << 0)
/*
 * Receivers of the queue pair file cannot export doorbells to importers that do
 * not support revocation: NVME_PEER_EXPORT_ALLOW_STATIC fails with EACCES.  In
 * relay mode doorbells are host memory, which any driver may import.
 */
#define NVME_PEER_QP_NO_STATIC		(1U << 1)

/**
 * struct nvme_peer_qp_create - ioctl(NVME_PEER_QP_CREATE), controller node
 * @size: sizeof(struct nvme_peer_qp_create)
 * @flags: NVME_PEER_QP_ALLOW_SLEEP, NVME_PEER_QP_NO_STATIC, or 0
 * @mode: in: enum nvme_peer_mode
 * @reserved1: must be 0
 * @sq_entries: in: entries of the submission ring, 2 to
 *	nvme_peer_info.max_entries; one of them always stays empty
 * @cq_entries: in: entries of the completion ring, @sq_entries to
 *	nvme_peer_info.max_entries; NVME_PEER_MODE_MEDIATED:
 *	NVME_PEER_MAX_MEDIATED_ENTRIES at most
 * @sq_handle: in: handle of the buffer that holds the submission ring, 0 for
 *	host memory
 * @cq_handle: in: handle of the buffer that holds the completion ring, 0 for
 *	host memory
 * @sq_offset: in: byte offset of the ring in its buffer, a multiple of
 *	nvme_peer_info.page_size; 0 for host memory
 * @cq_offset: in: as @sq_offset, for the completion ring
 * @qp_fd: out: the queue pair file, close-on-exec
 * @qid: out: queue ID
 * @generation: out: generation of the queue pair
 * @reserved: must be 0
 * @depth: in: NVME_PEER_MODE_MEDIATED: most commands that the kernel has in
 *	flight for it, 1 to NVME_PEER_MAX_DEPTH, 0 for the default of 32
 * @weight: in: NVME_PEER_MODE_MEDIATED: share of the controller beside other
 *	queue pairs, 1 to NVME_PEER_MAX_WEIGHT, 0 for the default of 1; more
 *	than 1 requires CAP_SYS_NICE
 * @timeout_ms: in: NVME_PEER_MODE_MEDIATED: how long a command may take until
 *	it is aborted, 100 to 120000, or 0.  Less than the timeout of I/O of the
 *	controller (io_timeout in sysfs) has the effect of that timeout, and
 *	more requires CAP_SYS_RESOURCE
 * @max_windows: in: NVME_PEER_MODE_MEDIATED: most windows at a time, 1 to
 *	NVME_PEER_MAX_WINDOWS, 0 for the default of 16
 * @max_buffers: in: NVME_PEER_MODE_MEDIATED: most buffers at a time, 1 to
 *	NVME_PEER_MAX_BUFFERS, 0 for the default of 64
 * @reserved2: must be 0
 *
 * The fields from @depth on are 0 in other modes.  Later versions append
 * further controller nodes whose buffers it may use.
 *
 * A queue pair of NVME_PEER_MODE_MEDIATED cannot be isolated from one of another
 * mode of the same controller: a page of doorbells is that of all queues.  The
 * kernel does not create one beside the other, unless the administrator allows
 * it by the module parameter allow_mixed_modes.
 *
 * The kernel clears rings in host memory.  It cannot clear a ring in a buffer:
 * the caller clears the completion ring before the call.
 *
 * Errors:
 * EPERM: @mode is not NVME_PEER_MODE_MEDIATED, and the caller lacks
 *   CAP_SYS_RAWIO or the kernel is locked down.  Or it is, @weight is more than
 *   1, and the caller lacks CAP_SYS_NICE; or @timeout_ms is more than the
 *   timeout of I/O, and the caller lacks CAP_SYS_RESOURCE.
 * EDQUOT: NVME_PEER_MODE_MEDIATED: the user has as many such queue pairs on the
 *   controller as the module parameter mediated_max allows, or all users have
 *   as many as mediated_total allows.
 * ENOBUFS: NVME_PEER_MODE_MEDIATED: RLIMIT_MEMLOCK does not allow the pages of
 *   rings, doorbells and status.
 * EINVAL: @mode, the number of entries, an offset, a limit, @flags or a reserved
 *   field is not valid, or a handle of a ring is not 0 in
 *   NVME_PEER_MODE_MEDIATED.
 * ERANGE: A ring does not fit into its buffer.
 * EMSGSIZE: A ring is not in one contiguous segment and the controller requires
 *   that (nvme_peer_info.contiguous_rings).
 * EEXIST: The two rings overlap each other or a ring of another queue pair in
 *   the same dma-buf, or the dma-buf of a ring is one of NVME_PEER_QP_EXPORT.
 *   Overlap by several dma-bufs or controllers is not detected.
 * ENOSPC: No queue ID is free for peers, or those that are free are quarantined
 *   (nvme_peer_info.qids_quarantined).
 * EBUSY: A command that changes namespaces, such as Format NVM, is in progress.
 *   Or the controller has a queue pair of NVME_PEER_MODE_MEDIATED and this is
 *   none, or the reverse, or NVME_PEER_MODE_MEDIATED is requested while a
 *   process or an importer can still store to doorbells of the controller.
 * ENOENT: The open file has no buffer with this handle.
 * EACCES: The buffer of the submission ring was not imported for reading, or
 *   that of the completion ring not for writing.
 * ESTALE: The exporter has invalidated the buffer of a ring, or an exposed
 *   buffer of the open file whose handle was not released.
 * EAGAIN: The controller is being reset, its namespaces are being scanned, or
 *   its config space does not respond, as during a reset of the function.
 *   poll() of the controller node reports EPOLLIN once it is LIVE; the retry
 *   then waits some seconds for the end of the scan.
 * EIO: The controller refused to create a queue.
 * EOPNOTSUPP: DMA of the controller to a ring in host memory would use a bounce
 *   buffer (swiotlb), or the controller does not snoop the caches of the CPU.
 * EMFILE, ENFILE: Too many open files.
 * ESHUTDOWN: The driver is being unbound, was unbound, or the controller has
 *   failed.
 */
struct nvme_peer_qp_create {
	__u32 size;
	__u32 flags;
	__u32 mode;
	__u32 reserved1;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 sq_handle;
	__u32 cq_handle;
	__aligned_u64 sq_offset;
	__aligned_u64 cq_offset;
	__s32 qp_fd;
	__u32 qid;
	__u32 generation;
	__u32 reserved;
	__u32 depth;
	__u32 weight;
	__u32 timeout_ms;
	__u32 max_windows;
	__u32 max_buffers;
	__u32 reserved2;
};

/* Of one queue pair in NVME_PEER_MODE_MEDIATED. */
#define NVME_PEER_MAX_DEPTH	64
#define NVME_PEER_MAX_WEIGHT	16
#define NVME_PEER_MAX_WINDOWS	64
#define NVME_PEER_MAX_BUFFERS	256
#define NVME_PEER_MAX_MEDIATED_ENTRIES	4096

#define NVME_PEER_QP_CREATE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_CREATE)

/* Maximum bytes of one buffer of NVME_PEER_BUF_ALLOC. */
#define NVME_PEER_BUF_ALLOC_MAX	(1U << 30)

/**
 * struct nvme_peer_buf_alloc - ioctl(NVME_PEER_BUF_ALLOC), controller node
 * @size: sizeof(struct nvme_peer_buf_alloc)
 * @flags: must be 0
 * @length: in: bytes, 1 to NVME_PEER_BUF_ALLOC_MAX; out: bytes of the dma-buf,
 *	rounded up to whole pages of the CPU
 * @fd: out: the dma-buf, close-on-exec, for NVME_PEER_BUF_IMPORT, for mmap(),
 *	or for import by another driver
 * @reserved: must be 0
 *
 * Allocates zeroed host memory near the controller, for rings and for staging
 * buffers.  It is unmovable and never swapped.  A range of 4 MiB or less is
 * contiguous if the system has so much contiguous memory, else the memory
 * consists of several pieces: nvme_peer_buf_import.segments counts those that
 * the controller sees.
 *
 * The memory lives as long as the dma-buf: until its descriptors and mappings
 * are closed and its importers have released it, also after the driver was
 * unbound.  The module cannot be unloaded until then.
 *
 * It is charged to the memory cgroup of the caller, and counts as locked memory
 * of the calling user until the dma-buf is released.  CAP_IPC_LOCK exempts from
 * the limit (RLIMIT_MEMLOCK).
 *
 * Errors:
 * EINVAL: @length is 0, or @flags or @reserved is not 0.
 * EFBIG: @length exceeds NVME_PEER_BUF_ALLOC_MAX.
 * ENOBUFS: The user would lock more memory than RLIMIT_MEMLOCK allows.
 * ENOMEM: Out of memory, or the limit of the caller's memory cgroup is reached.
 * EINTR: A fatal signal interrupted the call.
 * EMFILE, ENFILE: Too many open files.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_buf_alloc {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__s32 fd;
	__u32 reserved;
};

#define NVME_PEER_BUF_ALLOC	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_ALLOC)

/**
 * struct nvme_peer_extent - contiguous blocks of a file
 * @first: the first block, on the file
 * @lba: the same block, on the namespace
 * @blocks: number of blocks
 */
struct nvme_peer_extent {
	__aligned_u64 first;
	__aligned_u64 lba;
	__aligned_u64 blocks;
};

/**
 * struct nvme_peer_extents - ioctl(NVME_PEER_EXTENTS), controller node
 * @size: sizeof(struct nvme_peer_extents)
 * @flags: must be 0
 * @fd: in: regular file that the caller has opened for reading and writing, as for
 *	NVME_PEER_WINDOW_ADD
 * @pin_fd: out: a file, close-on-exec, whose contents are struct nvme_peer_extent
 * @first: in: first block of the range on the file
 * @blocks: in: number of blocks, 0 for all from @first on; out: the number
 * @nsid: out: the namespace
 * @block_size: out: bytes of a block
 * @count: out: number of extents: blocks that are contiguous on the namespace
 * @reserved: must be 0
 *
 * For peers that read a file by queue pairs in NVME_PEER_MODE_DIRECT or
 * NVME_PEER_MODE_RELAY.  The file is written to the disk first.  Until @pin_fd is
 * closed, its blocks stay where they are, as by NVME_PEER_WINDOW_ADD, and must only
 * be read.
 *
 * The extents are read by read() and pread() of whole structures.  If fallocate() or
 * an exchange of extents began before, or a loop device on the file discards blocks,
 * they may change nevertheless: each read compares them first.  What a peer read before
 * is data of the file if a later read of the extents succeeds.
 *
 * A read fails with ESTALE, and so do all later ones, if blocks of the file have changed
 * or could not be compared; with EINVAL if its position is not a multiple of the
 * structure or its length less than one.
 *
 * Errors:
 * EBADF: @fd is not an open file.
 * EINVAL: @flags or @reserved is not 0, the range is empty, a partition does not begin
 *   at a block, or a block of the file system is smaller than one of the disk.
 * ENOTBLK: It is not a regular file of ext4 or XFS.
 * ETXTBSY: The file is in use as swap space.
 * ERANGE: The range exceeds the file.
 * EXDEV: The disk of the file system is not on this controller.
 * EMEDIUMTYPE: The namespace has metadata or protection information; or the blocks of
 *   the file do not hold its bytes, as for NVME_PEER_WINDOW_ADD.
 * ENODATA: The range has a hole or an unwritten extent, or the data is inline: write
 *   zeroes to it first.  Or a file of XFS shares blocks, or did: copy it.
 * EBUSY: A process has mapped the file for shared writes: unmap it.
 * EFBIG: The range has more than 262143 extents: copy the file, or pin parts of it.
 * ENOBUFS: The memory for the extents exceeds RLIMIT_MEMLOCK.
 * EACCES: The file is not open for writing, or the caller neither owns it nor has
 *   CAP_LEASE.
 * EROFS: The file system is read-only.
 * EPERM: The file is immutable or append-only.
 * EIO: The file could not be written to the disk.
 * EINTR: The process was killed.
 * EAGAIN: I/O of the namespace is held, as during Format NVM.
 * EMFILE, ENFILE: The process or the system has too many open files.
 * ESHUTDOWN: The driver is being unbound.
 */
struct nvme_peer_extents {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__s32 pin_fd;
	__aligned_u64 first;
	__aligned_u64 blocks;
	__u32 nsid;
	__u32 block_size;
	__u32 count;
	__u32 reserved;
};

#define NVME_PEER_EXTENTS	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_EXTENTS)

/**
 * enum nvme_peer_export - object of a queue pair that is exported as a dma-buf
 * @NVME_PEER_EXPORT_SQ: the submission ring, if it is in host memory
 * @NVME_PEER_EXPORT_CQ: the completion ring, if it is in host memory
 * @NVME_PEER_EXPORT_DOORBELL: the page or pages that hold the doorbells of this
 *	queue pair, of the kind that nvme_peer_qp_export.kind reports.  A peer
 *	must only write them
 * @NVME_PEER_EXPORT_STATUS: the status page, struct nvme_peer_status.  The
 *	dma-buf is read-only for processes, and for devices behind an IOMMU
 * @NVME_PEER_EXPORT_CONTROL: the control page, struct nvme_peer_control
 */
enum nvme_peer_export {
	NVME_PEER_EXPORT_SQ = 0,
	NVME_PEER_EXPORT_CQ = 1,
	NVME_PEER_EXPORT_DOORBELL = 2,
	NVME_PEER_EXPORT_STATUS = 3,
	NVME_PEER_EXPORT_CONTROL = 4,
};

/**
 * enum nvme_peer_kind - what lies behind an exported doorbell
 * @NVME_PEER_KIND_REGISTER: registers of the controller, in its BAR
 * @NVME_PEER_KIND_MEMORY: host memory, in NVME_PEER_MODE_RELAY and
 *	NVME_PEER_MODE_MEDIATED.  It is never revoked: stores have no effect
 *	while the queue pair is not LIVE
 */
enum nvme_peer_kind {
	NVME_PEER_KIND_REGISTER = 0,
	NVME_PEER_KIND_MEMORY = 1,
};

/* nvme_peer_qp_export.flags */
/*
 * Doorbells: allow importers that do not support revocation.  Kernels without
 * dma_buf_attach_revocable(), 6.1 and 6.12 among them, do not tell importers
 * apart that pin the memory for good, RDMA drivers for one.  There each one
 * counts as such that pins the memory itself, or maps it more than once at a
 * time.
 */
#define NVME_PEER_EXPORT_ALLOW_STATIC	(1U << 0)

/**
 * struct nvme_peer_qp_export - ioctl(NVME_PEER_QP_EXPORT), queue pair file
 * @size: sizeof(struct nvme_peer_qp_export)
 * @flags: NVME_PEER_EXPORT_ALLOW_STATIC, only with NVME_PEER_EXPORT_DOORBELL
 * @what: in: enum nvme_peer_export
 * @fd: out: the dma-buf, close-on-exec, for mmap() or import by another driver.
 *	64 processes at most may have mapped the doorbells of a queue ID: mmap()
 *	by another one fails with ENOSPC until one of them has ended
 * @offset: out: byte offset of the object in the dma-buf: of the ring, of the
 *	tail doorbell of the submission queue, or of the page
 * @length: out: bytes of the object from @offset on
 * @kind: out: enum nvme_peer_kind of NVME_PEER_EXPORT_DOORBELL, else 0
 * @reserved: must be 0
 *
 * Errors:
 * EACCES: NVME_PEER_EXPORT_ALLOW_STATIC is set and the queue pair was created
 *   with NVME_PEER_QP_NO_STATIC.
 * EINVAL: @what or @flags is unknown, or NVME_PEER_EXPORT_ALLOW_STATIC is set
 *   for an object other than doorbells, or @reserved is not 0.
 * ENODATA: The ring is in an imported buffer, which its owner exports.
 * EOPNOTSUPP: The doorbell pages also hold registers that must not be exported.
 * EAGAIN: The queue pair is quiesced: re-arm it first.  Or its doorbells are
 *   withdrawn for a reset that is about to quiesce it.
 * EDQUOT: 64 dma-bufs of the queue pair are open.
 * EMFILE, ENFILE: Too many open files.
 * ESHUTDOWN: The queue pair has failed or is gone, or the driver is being
 *   unbound.
 */
struct nvme_peer_qp_export {
	__u32 size;
	__u32 flags;
	__u32 what;
	__s32 fd;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 kind;
	__u32 reserved;
};

#define NVME_PEER_QP_EXPORT	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_EXPORT)

/**
 * enum nvme_peer_qp_state - state of a queue pair
 * @NVME_PEER_QP_LIVE: the controller processes its commands
 * @NVME_PEER_QP_QUIESCED: the queues are off the controller and their entries
 *	are lost; nothing completes any more.  The queue pair keeps its queue
 *	ID, rings and dma-bufs; NVME_PEER_QP_REARM makes it LIVE again
 * @NVME_PEER_QP_FAILED: as QUIESCED, but it cannot be re-armed; close it
 * @NVME_PEER_QP_GONE: stopped for good, because the driver was unbound, the
 *	exporter of a buffer that it may access invalidated that buffer, or its
 *	file was closed
 */
enum nvme_peer_qp_state {
	NVME_PEER_QP_LIVE = 1,
	NVME_PEER_QP_QUIESCED = 2,
	NVME_PEER_QP_FAILED = 3,
	NVME_PEER_QP_GONE = 4,
};

/**
 * enum nvme_peer_qp_reason - why a queue pair is not LIVE
 * @NVME_PEER_QP_REASON_NONE: it is LIVE
 * @NVME_PEER_QP_REASON_RESET: the controller was reset
 * @NVME_PEER_QP_REASON_REQUEST: a peer requested recovery in the control page
 * @NVME_PEER_QP_REASON_NO_QUEUE: the controller grants fewer queues than before
 *	the reset
 * @NVME_PEER_QP_REASON_BUFFER: an exporter invalidated a buffer
 * @NVME_PEER_QP_REASON_NAMESPACE: a namespace changed
 * @NVME_PEER_QP_REASON_CTRL: the controller has failed
 * @NVME_PEER_QP_REASON_UNBOUND: the driver was unbound
 * @NVME_PEER_QP_REASON_CLOSED: the file was closed
 * @NVME_PEER_QP_REASON_DOORBELL: a peer wrote a tail or head that is not less
 *	than the entries of the ring, in NVME_PEER_MODE_RELAY or
 *	NVME_PEER_MODE_MEDIATED
 *
 * Reserved: 9 RECALLED.
 */
enum nvme_peer_qp_reason {
	NVME_PEER_QP_REASON_NONE = 0,
	NVME_PEER_QP_REASON_RESET = 1,
	NVME_PEER_QP_REASON_REQUEST = 2,
	NVME_PEER_QP_REASON_NO_QUEUE = 3,
	NVME_PEER_QP_REASON_BUFFER = 4,
	NVME_PEER_QP_REASON_NAMESPACE = 5,
	NVME_PEER_QP_REASON_CTRL = 6,
	NVME_PEER_QP_REASON_UNBOUND = 7,
	NVME_PEER_QP_REASON_CLOSED = 8,
	NVME_PEER_QP_REASON_DOORBELL = 10,
};

/**
 * struct nvme_peer_qp_info - ioctl(NVME_PEER_QP_INFO), queue pair file
 * @size: sizeof(struct nvme_peer_qp_info)
 * @flags: must be 0
 * @qid: out: queue ID, which completion queue entries carry, too; 0xffff in
 *	NVME_PEER_MODE_MEDIATED
 * @state: out: enum nvme_peer_qp_state
 * @generation: out: generation that the queue pair belongs to
 * @mode: out: enum nvme_peer_mode
 * @sq_entries: out: entries of the submission ring
 * @cq_entries: out: entries of the completion ring
 * @doorbell_stride: out: bytes from the tail doorbell to the head doorbell
 * @doorbell_offset: out: byte offset of the tail doorbell in the exported
 *	doorbell pages; the head doorbell follows after @doorbell_stride bytes
 * @doorbell_length: out: bytes of the exported doorbell pages
 * @exports: out: number of open dma-bufs of this queue pair
 * @importers: out: number of devices attached to them
 * @mmaps: out: number of user mappings of them
 * @reason: out: enum nvme_peer_qp_reason
 * @losses: out: number of times that the queue pair stopped being LIVE, for
 *	NVME_PEER_QP_REARM
 * @sq_pci_address: out: PCI function that holds the submission ring, invalid
 *	for host memory
 * @cq_pci_address: out: PCI function that holds the completion ring, invalid
 *	for host memory.  PCIe does not order data and completions that are
 *	written to different devices: a peer that reaches the data over a bus
 *	reads a word of it first.  In the peer's own memory that orders nothing:
 *	place the completion ring there, too
 * @cpu_doorbell_writes: out: number of writes of the kernel to the doorbell
 *	registers of this queue pair, 0 unless it is in NVME_PEER_MODE_RELAY
 *
 * Errors:
 * EINVAL: @flags is not 0.
 */
struct nvme_peer_qp_info {
	__u32 size;
	__u32 flags;
	__u32 qid;
	__u32 state;
	__u32 generation;
	__u32 mode;
	__u32 sq_entries;
	__u32 cq_entries;
	__u32 doorbell_stride;
	__u32 doorbell_offset;
	__u32 doorbell_length;
	__u32 exports;
	__u32 importers;
	__u32 mmaps;
	__u32 reason;
	__u32 losses;
	struct nvme_peer_pci_address sq_pci_address;
	struct nvme_peer_pci_address cq_pci_address;
	__aligned_u64 cpu_doorbell_writes;
};

#define NVME_PEER_QP_INFO	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_INFO)

/**
 * struct nvme_peer_qp_rearm - ioctl(NVME_PEER_QP_REARM), queue pair file
 * @size: sizeof(struct nvme_peer_qp_rearm)
 * @flags: must be 0
 * @losses: in: nvme_peer_qp_info.losses, read before the caller began to handle
 *	the loss
 * @reserved: must be 0
 *
 * Creates the queues of a QUIESCED queue pair again, with the same queue ID,
 * rings, addresses and dma-bufs.  Tail and head are 0 and the phase tag is 1.
 *
 * The caller guarantees that no peer uses its old tail or head any more: a
 * doorbell write with an old tail makes the controller execute stale entries of
 * the ring.  After the call the queue pair is LIVE with these @losses, which the
 * status page reports too: a peer that compares them with those of before does
 * not go on.  NVME_PEER_QP_INFO reports the generation, which has changed unless
 * a peer requested the recovery.
 *
 * The kernel clears rings in host memory.  The caller clears a completion ring
 * in a buffer before the call, and should clear a submission ring in a buffer.
 *
 * A function reset (also one that ends a failed controller reset), a subsystem
 * reset, a link failure and suspend revoke the doorbells; re-arm restores them.
 * A process sees them again at its next access, an importer after it maps the
 * dma-buf again.  A controller reset alone does not revoke doorbells.  While
 * they are revoked, mmap() of an exported ring, control page or doorbell page
 * fails with EAGAIN, and with ENODEV once the queue pair has failed or is gone.
 *
 * Errors:
 * EINVAL: @flags or @reserved is not 0.
 * EALREADY: The queue pair is LIVE.
 * ESTALE: The queue pair was lost again: its losses differ from @losses.
 * EAGAIN: The controller is being reset, its namespaces are being scanned, or
 *   the doorbells are still being revoked.  NVME_PEER_EVENT_READY follows, or
 *   NVME_PEER_EVENT_STATE if it can no longer be re-armed.
 * ENOSPC: NVME_PEER_MODE_MEDIATED: no queue IDs are free, as the controller
 *   grants fewer queues than before.  The queue pair stays QUIESCED.
 * EBUSY: NVME_PEER_MODE_MEDIATED: cpu_queues is being changed.  The queue pair
 *   stays QUIESCED.
 * EIO: The controller refused the queues.  The queue pair stays QUIESCED.
 * ESHUTDOWN: The queue pair has failed or is gone, or the driver is being
 *   unbound.
 */
struct nvme_peer_qp_rearm {
	__u32 size;
	__u32 flags;
	__u32 losses;
	__u32 reserved;
};

#define NVME_PEER_QP_REARM	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_REARM)

/**
 * struct nvme_peer_qp_kick - ioctl(NVME_PEER_QP_KICK), queue pair file
 * @size: sizeof(struct nvme_peer_qp_kick)
 * @flags: must be 0
 *
 * Wakes the thread that polls doorbells in host memory.  A CPU that has stored
 * to a doorbell issues a full barrier, reads nvme_peer_status.poller_asleep,
 * and calls this if it is not 0.  Without the call the thread reads the doorbell
 * 1 ms after the store at the latest, plus the time until it gets a CPU: other
 * tasks of its CPU come first, and it may poll queue pairs of other tenants.
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * EOPNOTSUPP: The doorbells of the queue pair are registers.
 */
struct nvme_peer_qp_kick {
	__u32 size;
	__u32 flags;
};

#define NVME_PEER_QP_KICK	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_KICK)

/**
 * enum nvme_peer_rights - what commands may do with a window or a buffer
 * @NVME_PEER_RIGHT_READ: Read commands
 * @NVME_PEER_RIGHT_WRITE: Write and Write Zeroes commands
 */
enum nvme_peer_rights {
	NVME_PEER_RIGHT_READ = 1,
	NVME_PEER_RIGHT_WRITE = 2,
};

/**
 * struct nvme_peer_window_add - ioctl(NVME_PEER_WINDOW_ADD), queue pair file
 * @size: sizeof(struct nvme_peer_window_add)
 * @flags: must be 0
 * @fd: in: block device that the caller has opened: a namespace of this
 *	controller or one of its partitions; or a regular file of ext4 or XFS on
 *	one of these.  The window holds the open file
 * @id: out: ID of the window: commands carry it as namespace ID
 * @first: in: first block of the window on the device or file
 * @blocks: in: number of blocks, 0 for all from @first on; out: the number
 * @block_size: out: bytes of a block
 * @rights: out: flags of enum nvme_peer_rights: as the file was opened
 *
 * Queue pairs in NVME_PEER_MODE_MEDIATED.  The window stays until
 * NVME_PEER_WINDOW_REMOVE, or until the queue pair has ended.  Each command is
 * checked against the window, and against the size and the read-only flag that
 * the device has when it is submitted, or later.
 *
 * Commands bypass the page cache, and unlike O_DIRECT nothing of a block device is
 * written back or invalidated: buffered I/O of the same blocks, a file system on
 * them included, may read data of before a command and may overwrite what it
 * wrote.  Write back and invalidate first, by fsync() and BLKFLSBUF, and use the
 * blocks in one way at a time.
 *
 * After Format NVM with another format the commands of the window fail with
 * Invalid Namespace or Format.
 *
 * A regular file is written to the disk first, and its blocks stay where they are
 * while it has windows: write(), fallocate(), a truncate that shortens it, reflink
 * and the exchange of extents fail with ETXTBSY, unlink and rename with EPERM, and
 * mappings for shared writes with one of these.  read() and O_DIRECT reads are
 * allowed, and see what commands have written once they have completed.  The time
 * stamps and the change counter are set when the last window on the file is
 * removed, if commands have written.  Blocks are whole blocks of the file system
 * within the size that the file had.  A command may
 * reach over several extents.  While the file system is frozen, commands that
 * write complete with Namespace Not Ready, without Do Not Retry; while it is
 * read-only or the file is immutable or append-only, with Attempted Write to Read
 * Only Range; before Linux 6.6 also on XFS, if the size of the file is no multiple of
 * the page size and of its blocks, or has grown.  If fallocate() or an exchange of
 * extents began before and changes the blocks nevertheless, or a loop device on the file
 * discards them, the commands of the window fail with
 * Invalid Namespace or Format.
 *
 * The ID has a slot in its lower half and an epoch in its upper half.  The slot
 * of a window that was removed may be reused, in another epoch.
 *
 * Errors:
 * EBADF: @fd is not an open file.
 * EINVAL: @flags is not 0, the range is empty, a partition does not begin at a
 *   block, or a block of the file system is smaller than one of the disk.
 * ENOTBLK: The file is neither a block device nor a regular file of ext4 or XFS:
 *   other file systems need a served queue pair.
 * ETXTBSY: The device or file is in use as swap space.
 * ERANGE: The range exceeds the device or file.
 * EXDEV: The device, or that of the file system, is not on this controller.
 * EMEDIUMTYPE: The namespace has metadata or protection information, or no block
 *   I/O; or the blocks of the file do not hold its bytes: it is encrypted,
 *   compressed, DAX, on the realtime device of XFS, or has verity or journalled
 *   data.
 * ENODATA: The range has a hole or an unwritten extent, or the data is inline:
 *   write zeroes to it first.  Or a file of XFS shares blocks, or did: copy it.
 * EBUSY: A process has mapped the file for shared writes: unmap it.
 * EFBIG: The range has more than 262143 extents: copy the file, or add several
 *   windows.
 * ENOBUFS: The memory for its extents exceeds RLIMIT_MEMLOCK.
 * EACCES: The device is open neither for reading nor for writing; or the file is
 *   not open for writing, or the caller neither owns it nor has CAP_LEASE.
 * EROFS: The file system is read-only.
 * EIO: The file could not be written to the disk.
 * EINTR: The process was killed.
 * EAGAIN: I/O of the namespace is held, as during Format NVM.
 * EPERM: NVME_PEER_QP_SEAL was called, or the file is immutable or append-only.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 * EDQUOT: The queue pair has as many windows as it may have.
 * ESHUTDOWN: The queue pair is gone, or the driver is being unbound.
 */
struct nvme_peer_window_add {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 id;
	__aligned_u64 first;
	__aligned_u64 blocks;
	__u32 block_size;
	__u32 rights;
};

#define NVME_PEER_WINDOW_ADD	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_WINDOW_ADD)

/**
 * struct nvme_peer_window_remove - ioctl(NVME_PEER_WINDOW_REMOVE), queue pair
 *	file
 * @size: sizeof(struct nvme_peer_window_remove)
 * @flags: must be 0
 * @id: in: ID of the window
 * @reserved: must be 0
 *
 * Refuses new commands, and waits for those in flight.  Writes to a file whose
 * cached pages cannot be invalidated within a second complete with Command Abort
 * Requested.
 *
 * Errors:
 * EINVAL: @flags or @reserved is not 0.
 * ENOENT: The queue pair has no such window.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_window_remove {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 reserved;
};

#define NVME_PEER_WINDOW_REMOVE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_WINDOW_REMOVE)

/**
 * struct nvme_peer_window_info - ioctl(NVME_PEER_WINDOW_INFO), queue pair file
 * @size: sizeof(struct nvme_peer_window_info)
 * @flags: must be 0
 * @id: in: ID of the window
 * @rights: out: flags of enum nvme_peer_rights, now: without
 *	NVME_PEER_RIGHT_WRITE while the device is read-only
 * @first: out: first block of the window on the device
 * @blocks: out: number of blocks, now: those beyond the end of the device are
 *	not counted
 * @block_size: out: bytes of a block
 * @in_flight: out: number of commands in flight
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * ENOENT: The queue pair has no such window.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_window_info {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 rights;
	__aligned_u64 first;
	__aligned_u64 blocks;
	__u32 block_size;
	__u32 in_flight;
};

#define NVME_PEER_WINDOW_INFO	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_WINDOW_INFO)

/* A data pointer in NVME_PEER_MODE_MEDIATED: a byte of the buffer in a slot. */
#define NVME_PEER_HANDLE_ADDRESS(slot, offset) \
	((__u64)(slot) << 48 | (__u64)(offset))

/**
 * struct nvme_peer_buf_add - ioctl(NVME_PEER_BUF_ADD), queue pair file
 * @size: sizeof(struct nvme_peer_buf_add)
 * @flags: must be 0
 * @dmabuf_fd: in: as in struct nvme_peer_buf_import
 * @access: in: as in struct nvme_peer_buf_import
 * @offset: in: as in struct nvme_peer_buf_import
 * @length: in, out: as in struct nvme_peer_buf_import
 * @slot: out: slot of the buffer, never 0, for NVME_PEER_HANDLE_ADDRESS
 * @verdict: out: as in struct nvme_peer_buf_import
 * @reason: out: as in struct nvme_peer_buf_import
 * @pci_address: out: as in struct nvme_peer_buf_import
 * @reserved: must be 0
 *
 * Queue pairs in NVME_PEER_MODE_MEDIATED.  The buffer belongs to this queue
 * pair alone.  It stays mapped until NVME_PEER_BUF_REMOVE, until its exporter
 * invalidates it, or until the queue pair has ended.  After an invalidation its
 * commands complete with NVME_PEER_STATUS_BUFFER_GONE, the queue pair stays LIVE,
 * and NVME_PEER_EVENT_BUFFER_ENDED reports the slot.
 *
 * A command transfers one range of one buffer: the data pointer of its entry
 * (bytes 24 to 31) is the handle address, the rest of the data pointer is
 * ignored.  The address is a multiple of 4.
 *
 * The kernel orders completions behind data in memory of a device: it reads the
 * first word of the buffer before it publishes them.  Reads of more than 20
 * microseconds are slow: they may take, for all queue pairs of a user on the
 * controller, the part of a second that the module parameter mediated_read_ms
 * allows.  Beyond it a buffer ends as by an invalidation, if its queue pair has
 * read slowly in the last 10 seconds, or its user had when it was created.  The
 * first slow read of a user in 10 seconds is not counted.
 *
 * Errors:
 * EINVAL: As in struct nvme_peer_buf_import, or @reserved is not 0.
 * ENXIO: The processor cannot map the memory of the device.
 * EPERM: NVME_PEER_QP_SEAL was called.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED, or as in struct
 *   nvme_peer_buf_import.
 * EDQUOT: The queue pair has as many buffers as it may have.
 * ENOSPC: The buffers of the user's queue pairs on the controller exceed the
 *   module parameter mediated_mapped.
 * EBADF: As in struct nvme_peer_buf_import.
 * ERANGE: As in struct nvme_peer_buf_import.
 * EACCES: As in struct nvme_peer_buf_import.
 * EXDEV: As in struct nvme_peer_buf_import.
 * ENOBUFS: As in struct nvme_peer_buf_import.
 * ESTALE: As in struct nvme_peer_buf_import.
 * ETIMEDOUT: As in struct nvme_peer_buf_import.
 * EINTR: As in struct nvme_peer_buf_import.
 * ESHUTDOWN: The queue pair is gone, or the driver is being unbound.
 */
struct nvme_peer_buf_add {
	__u32 size;
	__u32 flags;
	__s32 dmabuf_fd;
	__u32 access;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 slot;
	__u32 verdict;
	__u32 reason;
	struct nvme_peer_pci_address pci_address;
	__u32 reserved;
};

#define NVME_PEER_BUF_ADD	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_ADD)

/**
 * struct nvme_peer_buf_remove - ioctl(NVME_PEER_BUF_REMOVE), queue pair file
 * @size: sizeof(struct nvme_peer_buf_remove)
 * @flags: must be 0
 * @slot: in: slot of the buffer
 * @reserved: must be 0
 *
 * Refuses new commands, waits for those in flight, and unmaps the buffer.
 *
 * Errors:
 * EINVAL: @flags or @reserved is not 0.
 * ENOENT: The queue pair has no buffer in this slot.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_buf_remove {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 reserved;
};

#define NVME_PEER_BUF_REMOVE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_REMOVE)

/**
 * struct nvme_peer_qp_limits - ioctl(NVME_PEER_QP_LIMITS), queue pair file
 * @size: sizeof(struct nvme_peer_qp_limits)
 * @flags: must be 0
 * @depth: out: as in struct nvme_peer_qp_create
 * @weight: out: as in struct nvme_peer_qp_create
 * @timeout_ms: out: as in struct nvme_peer_qp_create
 * @max_windows: out: as in struct nvme_peer_qp_create
 * @max_buffers: out: as in struct nvme_peer_qp_create
 * @max_transfer: out: most bytes of a Read or Write
 * @max_write_zeroes: out: most bytes of a Write Zeroes, 0 if the controller does
 *	not support it
 * @windows: out: number of windows
 * @buffers: out: number of buffers
 * @sealed: out: 1 after NVME_PEER_QP_SEAL
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_qp_limits {
	__u32 size;
	__u32 flags;
	__u32 depth;
	__u32 weight;
	__u32 timeout_ms;
	__u32 max_windows;
	__u32 max_buffers;
	__u32 max_transfer;
	__u32 max_write_zeroes;
	__u32 windows;
	__u32 buffers;
	__u32 sealed;
};

#define NVME_PEER_QP_LIMITS	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_LIMITS)

/**
 * struct nvme_peer_qp_stats - ioctl(NVME_PEER_QP_STATS), queue pair file
 * @size: sizeof(struct nvme_peer_qp_stats)
 * @flags: must be 0
 * @in_flight: out: number of commands in flight
 * @reserved: out: 0
 * @reads: out: number of Read commands that were submitted
 * @writes: out: the same of Write
 * @zeroes: out: the same of Write Zeroes
 * @flushes: out: the same of Flush; those that share one are counted
 * @read_bytes: out: bytes of the Read commands
 * @written_bytes: out: bytes of the Write commands
 * @refused: out: number of commands that were not allowed
 * @failed: out: number of submitted commands that the controller did not execute
 *	with success
 * @busy_ns: out: time of the kernel's thread for this queue pair
 *
 * Each value is read without stopping the thread, so they are not of one moment:
 * a command that is counted in @reads may not yet be counted in @read_bytes.
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_qp_stats {
	__u32 size;
	__u32 flags;
	__u32 in_flight;
	__u32 reserved;
	__aligned_u64 reads;
	__aligned_u64 writes;
	__aligned_u64 zeroes;
	__aligned_u64 flushes;
	__aligned_u64 read_bytes;
	__aligned_u64 written_bytes;
	__aligned_u64 refused;
	__aligned_u64 failed;
	__aligned_u64 busy_ns;
};

#define NVME_PEER_QP_STATS	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_STATS)

/**
 * struct nvme_peer_qp_seal - ioctl(NVME_PEER_QP_SEAL), queue pair file
 * @size: sizeof(struct nvme_peer_qp_seal)
 * @flags: must be 0
 *
 * No process can add windows or buffers any more: the file can be given to
 * another process with exactly the rights that it has.
 *
 * Errors:
 * EINVAL: @flags is not 0.
 * EOPNOTSUPP: The queue pair is not in NVME_PEER_MODE_MEDIATED.
 */
struct nvme_peer_qp_seal {
	__u32 size;
	__u32 flags;
};

#define NVME_PEER_QP_SEAL	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_SEAL)

/*
 * Status codes of this driver in completion queue entries: status code type 7.
 * Reserved: 0x7c0 RECALLED, 0x7c2 QUOTA.
 */
#define NVME_PEER_STATUS_BUFFER_GONE	0x7c1	/* the exporter invalidated it */

/**
 * enum nvme_peer_event_type - type of an event
 * @NVME_PEER_EVENT_STATE: the state of the queue pair changed
 * @NVME_PEER_EVENT_READY: the queue pair is QUIESCED and the controller is
 *	ready for NVME_PEER_QP_REARM.  Reported once after each loss, that which a
 *	peer requested included, unless the queue pair ends, and again if the
 *	controller is reset before the re-arm
 * @NVME_PEER_EVENT_BUFFER_ENDED: the exporter has invalidated a buffer of
 *	NVME_PEER_BUF_ADD.  @object is its slot
 *
 * Reserved: 3 WINDOW_RECALL, 4 WINDOW_ENDED, 6 OVERRUN.
 */
enum nvme_peer_event_type {
	NVME_PEER_EVENT_STATE = 1,
	NVME_PEER_EVENT_READY = 2,
	NVME_PEER_EVENT_BUFFER_ENDED = 5,
};

/* Bytes of the shortest read(): an event up to and including @lost. */
#define NVME_PEER_EVENT_LEAST	32

/**
 * struct nvme_peer_event - event of a queue pair, from read() of its file
 * @size: bytes from this event to the next.  A newer kernel may report events
 *	that are longer than this structure; a read() that is shorter than one
 *	event gets its beginning
 * @type: enum nvme_peer_event_type; skip unknown types
 * @time: time of the event, nanoseconds of CLOCK_MONOTONIC
 * @generation: generation of the controller at that time
 * @state: enum nvme_peer_qp_state at that time
 * @reason: enum nvme_peer_qp_reason at that time
 * @lost: number of events that were overwritten before this one, since the
 *	previous event that was read
 * @object: what the event is about, by @type; 0 for the types above
 * @detail: more about it, by @type; 0 for the types above
 *
 * read() consumes as many whole events as fit.  It blocks until there is an
 * event, unless the file is O_NONBLOCK.  It returns 0 once the queue pair is
 * GONE and all events are consumed.  poll() reports EPOLLIN and EPOLLPRI while
 * there is an event to read, and EPOLLHUP once the queue pair is GONE.
 *
 * Errors:
 * EAGAIN: The file is O_NONBLOCK, and there is no event or another thread is in
 *   read().  poll() and edge-triggered epoll report an event that is left when
 *   that read() ends.
 * EINVAL: The size is below NVME_PEER_EVENT_LEAST.
 * EFAULT: The memory is not writable.
 * EINTR: A signal interrupted the call.
 */
struct nvme_peer_event {
	__u32 size;
	__u32 type;
	__aligned_u64 time;
	__u32 generation;
	__u32 state;
	__u32 reason;
	__u32 lost;
	__aligned_u64 object;
	__aligned_u64 detail;
};

#define NVME_PEER_STATUS_MAGIC	0x7065706eU	/* "npep", little endian */

/**
 * struct nvme_peer_status - start of the status page, written by the kernel
 * @magic: NVME_PEER_STATUS_MAGIC
 * @version: 1.  A new version only adds fields, in bytes that were 0 before: a
 *	reader ignores what it does not know, and reads a field of a later
 *	version only if @version is at least that
 * @state: enum nvme_peer_qp_state; written after @generation, @reason and
 *	@losses
 * @generation: current generation of the controller.  If it differs from that
 *	in struct nvme_peer_qp_info, all entries in flight are lost
 * @qid: queue ID
 * @reason: enum nvme_peer_qp_reason
 * @size: bytes of the page, as NVME_PEER_QP_EXPORT reports them: one page of
 *	the CPU, which is 64 KiB on some machines.  Not the bytes of the fields
 * @losses: how often the queue pair stopped being LIVE.  It is LIVE with other
 *	entries than before if this has changed, even if @generation has not
 * @poller_asleep: not 0 while the thread that polls doorbells in host memory
 *	sleeps: see struct nvme_peer_qp_kick.  0 in NVME_PEER_MODE_DIRECT
 * @window_seq: number of changes of windows so far
 *
 * Each field is written by one store, so a peer may read them at any time.  The
 * page is in host memory.  At NVME_PEER_STATUS_WINDOWS begins an array of struct
 * nvme_peer_status_window, by slot; other bytes after this structure are zero.
 * Only the kernel writes the page; peers write the control page.
 */
struct nvme_peer_status {
	__le32 magic;
	__le32 version;
	__le32 state;
	__le32 generation;
	__le32 qid;
	__le32 reason;
	__le32 size;
	__le32 losses;
	__le32 poller_asleep;
	__le32 window_seq;
};

#define NVME_PEER_STATUS_WINDOWS	256

/**
 * struct nvme_peer_status_window - a slot for windows in the status page
 * @state: 1 while there is a window in the slot, else 0
 * @epoch: of this window, or of the next one
 */
struct nvme_peer_status_window {
	__le32 state;
	__le32 epoch;
};

/**
 * struct nvme_peer_control - start of the control page, written by peers
 * @quiesce: a peer sets it to a value other than 0 if a command timed out.
 *	Within 100 ms the kernel sets this word to 0 and begins to delete the
 *	queues.  They are off the controller only when the status page reports
 *	QUIESCED (NVME_PEER_QP_REASON_REQUEST).  All commands in flight are lost.
 *	If the controller does not delete the queues, the kernel resets it.
 *	NVME_PEER_QP_REARM also sets the word to 0, so that a request from
 *	before the loss has no effect
 * @seq: a peer may number its request here, before it sets @quiesce
 * @ack: the kernel copies @seq here when it has consumed a request, or when a
 *	re-arm follows a loss that answered it
 * @version: 1, written by the kernel when it creates the queue pair
 *
 * The page is in host memory.  The kernel does not distinguish the peers of one
 * queue pair: they have one owner.
 */
struct nvme_peer_control {
	__le32 quiesce;
	__le32 seq;
	__le32 ack;
	__le32 version;
};

/**
 * enum nvme_peer_io_opcode - opcodes of NVME_PEER_URING_CMD_IO
 * @NVME_PEER_IO_WRITE: from the buffer to the namespace
 * @NVME_PEER_IO_READ: from the namespace to the buffer
 *
 * The values are those of the NVM command set.
 */
enum nvme_peer_io_opcode {
	NVME_PEER_IO_WRITE = 0x01,
	NVME_PEER_IO_READ = 0x02,
};

/* nvme_peer_uring_io.flags */
#define NVME_PEER_IO_FUA	(1U << 0)	/* Force Unit Access */

/**
 * struct nvme_peer_uring_io - io_uring command NVME_PEER_URING_CMD_IO,
 *	controller node
 * @flags: NVME_PEER_IO_FUA or 0
 * @opcode: enum nvme_peer_io_opcode
 * @nsid: namespace ID
 * @handle: buffer handle from NVME_PEER_BUF_IMPORT on this open file
 * @offset: byte offset of the data in the buffer, a multiple of 4
 * @lba: first logical block
 * @blocks: number of logical blocks, at least 1; their bytes must not exceed
 *	nvme_peer_info.max_transfer
 * @reserved: must be 0
 *
 * The CPU submits one read or write command on its own queues.  The data is in
 * an imported buffer, at the DMA addresses of the import: nothing is copied,
 * pinned or mapped for the command.  Peers may use the buffer at the same time.
 *
 * The ring must have entries of 128 bytes (IORING_SETUP_SQE128).  This
 * structure is the command area of the entry.  It cannot express metadata or
 * protection information of the host: a namespace with metadata is supported
 * only if the controller inserts and strips it.  On a ring with
 * IORING_SETUP_IOPOLL the command completes on a polled queue, if there is one.
 *
 * As with NVMe passthrough, the command bypasses the caches of the file system
 * and of the block device.  Permissions are those of NVMe passthrough on the
 * controller node; access to the namespace's own nodes is not required.
 *
 * The completion reports 0, a positive NVMe status, or an error:
 *
 * Errors:
 * EINVAL: @flags, @opcode, @offset or @reserved is not valid, @blocks is 0, or
 *   IORING_URING_CMD_FIXED is set.
 * EOPNOTSUPP: The ring has entries of 64 bytes, or the namespace is not of the
 *   NVM command set.
 * ENODEV: There is no such namespace, or the controller has failed or is gone.
 * EACCES: The buffer was imported with NVME_PEER_ACCESS_READ and the command
 *   reads, or with NVME_PEER_ACCESS_WRITE and the command writes.  Without
 *   CAP_SYS_ADMIN also: a write on a node that is open for reading only, or a
 *   command whose effects the controller does not report as harmless.
 * EMEDIUMTYPE: The namespace has metadata that needs a buffer of its own.
 * EMSGSIZE: The transfer exceeds nvme_peer_info.max_transfer.
 * ENOENT: The open file has no buffer with this handle.
 * ERANGE: The data exceeds the buffer.
 * ESTALE: The exporter has invalidated the buffer.
 * EINTR: The controller was stopped while the command was in flight.  Whether
 *   the command was executed is unknown.
 * ESHUTDOWN: The driver is being unbound, or was unbound.
 */
struct nvme_peer_uring_io {
	__u32 flags;
	__u32 opcode;
	__u32 nsid;
	__u32 handle;
	__aligned_u64 offset;
	__aligned_u64 lba;
	__u32 blocks;
	__u32 reserved[11];
};

/* In io_uring_sqe.cmd_op, with IORING_OP_URING_CMD. */
#define NVME_PEER_URING_CMD_IO	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_URING_IO)

/* Maximum number of ranges of one command. */
#define NVME_PEER_IO_RANGES	32

/**
 * struct nvme_peer_io_range - one range of NVME_PEER_URING_CMD_IO_VEC
 * @offset: byte offset of its data in the buffer, a multiple of 4
 * @lba: first logical block
 * @blocks: number of logical blocks, at least 1; their bytes must not exceed
 *	nvme_peer_info.max_transfer
 * @handle: buffer handle from NVME_PEER_BUF_IMPORT on this open file; ranges
 *	may use different buffers
 */
struct nvme_peer_io_range {
	__aligned_u64 offset;
	__aligned_u64 lba;
	__u32 blocks;
	__u32 handle;
};

/**
 * struct nvme_peer_uring_io_vec - io_uring command NVME_PEER_URING_CMD_IO_VEC,
 *	controller node
 * @flags: NVME_PEER_IO_FUA or 0, for all ranges
 * @opcode: enum nvme_peer_io_opcode, for all ranges
 * @nsid: namespace ID, for all ranges
 * @count: number of ranges, 1 to NVME_PEER_IO_RANGES
 * @ranges: user pointer to struct nvme_peer_io_range[@count].  The kernel reads
 *	it during submission: it may change once io_uring_enter() has returned,
 *	or, with IORING_SETUP_SQPOLL or IOSQE_ASYNC, once the command completed
 * @reserved: must be 0
 *
 * As NVME_PEER_URING_CMD_IO, with one NVMe command for each range.  The
 * controller executes them in any order.  The io_uring command completes once,
 * after the last of them.  Ranges may overlap; the result of overlapping writes
 * is that of any of them.
 *
 * The completion reports 0 if all NVMe commands succeeded, else the NVMe status
 * of one that failed, or an error.  All ranges are validated before the first
 * is submitted: if one is refused, none is executed.  An invalidation or a
 * controller reset during submission, or a failure of the controller, may leave
 * some ranges executed.
 *
 * Each error of NVME_PEER_URING_CMD_IO may occur for any of the ranges.
 *
 * Errors:
 * EINVAL: As NVME_PEER_URING_CMD_IO, or @count is 0.
 * E2BIG: @count exceeds NVME_PEER_IO_RANGES.
 * EFAULT: @ranges is not readable.
 * EOPNOTSUPP: As NVME_PEER_URING_CMD_IO.
 * ENODEV: As NVME_PEER_URING_CMD_IO.
 * EACCES: As NVME_PEER_URING_CMD_IO.
 * EMEDIUMTYPE: As NVME_PEER_URING_CMD_IO.
 * EMSGSIZE: As NVME_PEER_URING_CMD_IO.
 * ENOENT: As NVME_PEER_URING_CMD_IO.
 * ERANGE: As NVME_PEER_URING_CMD_IO.
 * ESTALE: As NVME_PEER_URING_CMD_IO.
 * EINTR: As NVME_PEER_URING_CMD_IO.
 * ESHUTDOWN: As NVME_PEER_URING_CMD_IO.
 */
struct nvme_peer_uring_io_vec {
	__u32 flags;
	__u32 opcode;
	__u32 nsid;
	__u32 count;
	__aligned_u64 ranges;
	__u32 reserved[14];
};

/* In io_uring_sqe.cmd_op, with IORING_OP_URING_CMD. */
#define NVME_PEER_URING_CMD_IO_VEC	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_URING_IO_VEC)

#endif /* _UAPI_LINUX_NVME_PEER_H */
