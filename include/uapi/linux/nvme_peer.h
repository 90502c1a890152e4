/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * nvme-peer: I/O queue pairs of an NVMe controller for bus masters other than
 * the CPU.
 *
 * The controller node /dev/nvmepX takes the ioctls NVME_PEER_INFO to
 * NVME_PEER_QP_CREATE; the last one returns a queue pair file, which takes
 * NVME_PEER_QP_EXPORT and NVME_PEER_QP_INFO.  By io_uring the controller node
 * takes NVME_PEER_URING_CMD_IO and NVME_PEER_URING_CMD_IO_VEC.  Closing the last
 * reference to the queue pair file destroys the queue pair.  The standard NVMe
 * passthrough ABI (linux/nvme_ioctl.h) works on the same nodes beside it.
 *
 * Every structure of an ioctl starts with its own size, as user space was compiled
 * with it, and a flags word.  A shorter structure than the one first published is
 * refused with EINVAL; a longer one than the kernel knows is accepted if the
 * unknown tail is zero and refused with E2BIG if not; an unknown flag or a
 * reserved field that is not zero is refused with EINVAL.  A call that fails
 * changes nothing and writes nothing back.
 *
 * Words: a *peer* is a bus master other than the CPU; a *ring* is the memory
 * of a submission or completion queue; a *generation* counts controller
 * resets, and the entries of a queue pair belong to one generation.
 */
#ifndef _UAPI_LINUX_NVME_PEER_H
#define _UAPI_LINUX_NVME_PEER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Code 0xBB has no other user in Documentation/userspace-api/ioctl/ioctl-number.rst.
 * 00-0F are for the controller node, 10-1F for the queue pair file, 20-2F are io_uring
 * commands for the controller node.
 */
#define NVME_PEER_TYPE	0xBB

enum {
	NVME_PEER_CMD_INFO = 0x00,
	NVME_PEER_CMD_ROUTE,
	NVME_PEER_CMD_BUF_IMPORT,
	NVME_PEER_CMD_BUF_RELEASE,
	NVME_PEER_CMD_BUF_TABLE,
	NVME_PEER_CMD_QP_CREATE,
	NVME_PEER_CMD_QP_EXPORT = 0x10,
	NVME_PEER_CMD_QP_INFO,
	NVME_PEER_CMD_QP_REARM,
	NVME_PEER_CMD_URING_IO = 0x20,
	NVME_PEER_CMD_URING_IO_VEC,
};

/**
 * struct nvme_peer_pci_address - a PCI function
 * @domain: PCI domain (segment); beyond 0xffff where no firmware knows of it
 * @function: bus << 8 | device << 3 | function
 * @valid: 1, or 0 for no function; then the rest is 0, too
 */
struct nvme_peer_pci_address {
	__u32 domain;
	__u16 function;
	__u16 valid;
};

/**
 * enum nvme_peer_mode - who rings the doorbell and who checks the command
 * @NVME_PEER_MODE_DIRECT: the peer writes the controller's doorbell registers
 *	itself and nothing checks its commands.  Needs CAP_SYS_RAWIO: a page of
 *	doorbells is power over the whole controller.  Without an IOMMU that
 *	translates it is power over the whole machine, which a kernel that is
 *	locked down (kernel_lockdown(7)) gives to nobody
 */
enum nvme_peer_mode {
	NVME_PEER_MODE_DIRECT = 0,
};

/**
 * enum nvme_peer_domain - how the controller's DMA addresses are made
 * @NVME_PEER_DOMAIN_PHYSICAL: no IOMMU, or one that passes addresses through:
 *	a DMA address is a physical (or PCI bus) address
 * @NVME_PEER_DOMAIN_TRANSLATED: an IOMMU translates; an address of one
 *	device's domain means nothing to another device
 */
enum nvme_peer_domain {
	NVME_PEER_DOMAIN_PHYSICAL = 0,
	NVME_PEER_DOMAIN_TRANSLATED = 1,
};

/**
 * enum nvme_peer_ctrl_state - state of the controller
 * @NVME_PEER_CTRL_NEW: being brought up for the first time
 * @NVME_PEER_CTRL_LIVE: takes commands
 * @NVME_PEER_CTRL_RESETTING: being reset; no queue pair is on it
 * @NVME_PEER_CTRL_DELETING: being taken away from the driver
 * @NVME_PEER_CTRL_DEAD: gave up on it; only removal is left
 */
enum nvme_peer_ctrl_state {
	NVME_PEER_CTRL_NEW = 0,
	NVME_PEER_CTRL_LIVE = 1,
	NVME_PEER_CTRL_RESETTING = 2,
	NVME_PEER_CTRL_DELETING = 3,
	NVME_PEER_CTRL_DEAD = 4,
};

/* nvme_peer_info.features */
#define NVME_PEER_FEATURE_DIRECT	(1ULL << 0)	/* NVME_PEER_MODE_DIRECT */
#define NVME_PEER_FEATURE_BUF_RINGS	(1ULL << 1)	/* rings in imported buffers */
#define NVME_PEER_FEATURE_BUF_IO	(1ULL << 2)	/* NVME_PEER_URING_CMD_IO */
#define NVME_PEER_FEATURE_BUF_IO_VEC	(1ULL << 3)	/* NVME_PEER_URING_CMD_IO_VEC */

/**
 * struct nvme_peer_info - ioctl(NVME_PEER_INFO), on the controller node
 * @size: sizeof(struct nvme_peer_info)
 * @flags: must be 0
 * @features: out: NVME_PEER_FEATURE_*, what this kernel module can do
 * @cap: out: the controller's CAP register (NVMe base specification 3.1.4.1)
 * @version: out: the controller's VS register
 * @state: out: enum nvme_peer_ctrl_state
 * @generation: out: resets so far; see struct nvme_peer_status
 * @domain: out: enum nvme_peer_domain of the controller
 * @max_entries: out: most entries of a ring (CAP.MQES + 1)
 * @doorbell_stride: out: bytes from one doorbell register to the next
 *	(4 << CAP.DSTRD)
 * @page_size: out: bytes of a controller page, the unit of a PRP (CC.MPS)
 * @max_transfer: out: most bytes of one command's data (MDTS), or what the
 *	driver limits it to where the controller sets no limit
 * @sgls: out: Identify Controller SGLS; 0 means PRPs only
 * @namespaces: out: namespaces that have nodes now
 * @qids_total: out: I/O queue pairs that the controller granted
 * @qids_cpu: out: those that the CPU's own queues use
 * @qids_peer_max: out: most that peers may have at once
 * @qids_peer_free: out: those of them that the caller could get now
 * @pci_address: out: the controller's function
 * @contiguous_rings: out: 1 if a ring must be one contiguous range of DMA
 *	addresses (CAP.CQR)
 * @qids_quarantined: out: identifiers of queue pairs that have ended, which the
 *	caller cannot get because somebody may still store to their doorbells: a
 *	dma-buf of them is open, or another process that has mapped them lives
 * @cmb_size: out: bytes of controller memory buffer, 0 for none
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
};

#define NVME_PEER_INFO	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_INFO)

/**
 * enum nvme_peer_route_verdict - how requests get from one device to another
 * @NVME_PEER_ROUTE_NONE: they do not, or nobody promises that they do
 * @NVME_PEER_ROUTE_BUS_ADDR: inside a PCIe switch, by PCI bus address; the
 *	traffic does not pass the root complex or the IOMMU
 * @NVME_PEER_ROUTE_HOST_BRIDGE: through the root complex, by a DMA address
 * @NVME_PEER_ROUTE_SYSTEM: the memory is host RAM, which any device reaches
 * @NVME_PEER_ROUTE_HOST_BRIDGE_WRITES: as NVME_PEER_ROUTE_HOST_BRIDGE, but only
 *	writes arrive: enough for doorbells, and for data that the controller
 *	writes
 */
enum nvme_peer_route_verdict {
	NVME_PEER_ROUTE_NONE = 0,
	NVME_PEER_ROUTE_BUS_ADDR = 1,
	NVME_PEER_ROUTE_HOST_BRIDGE = 2,
	NVME_PEER_ROUTE_SYSTEM = 3,
	NVME_PEER_ROUTE_HOST_BRIDGE_WRITES = 4,
};

/**
 * enum nvme_peer_route_reason - why the verdict is what it is
 * @NVME_PEER_REASON_NONE: nothing to tell: there is no device to ask for
 * @NVME_PEER_REASON_COMMON_SWITCH: a switch below the root complex joins both
 *	and no ACS bit redirects requests upstream
 * @NVME_PEER_REASON_HOST_BRIDGE_KNOWN: the way leads through a host bridge that
 *	is known to forward between its root ports
 * @NVME_PEER_REASON_HOST_BRIDGE_ALLOWED: the way leads through a host bridge
 *	that the administrator vouches for (module parameter allow_host_bridge)
 * @NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN: the way leads through a host bridge
 *	that nobody vouches for.  Put both behind one switch or load the module
 *	with allow_host_bridge=1
 * @NVME_PEER_REASON_DIFFERENT_DOMAINS: as NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN,
 *	and they are in different PCI domains
 * @NVME_PEER_REASON_SAME_FUNCTION: both ends are one PCI function
 * @NVME_PEER_REASON_HOST_MEMORY: the memory is host RAM
 * @NVME_PEER_REASON_UNKNOWN_MEMORY: the address belongs to no PCI device and
 *	is not host RAM
 * @NVME_PEER_REASON_EXPORTER_REFUSED: the exporter of the memory does not let
 *	the controller have it, and does not say why
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
};

/**
 * struct nvme_peer_route_blocker - a port that is in the way
 * @address: of the port, or of an endpoint that redirects requests itself
 * @acs: its ACS control bits that send requests up to the root complex
 *	(PCI_ACS_RR, PCI_ACS_CR, PCI_ACS_EC of linux/pci_regs.h); 0 for a root
 *	port whose host bridge nobody vouches for
 */
struct nvme_peer_route_blocker {
	struct nvme_peer_pci_address address;
	__u32 acs;
};

#define NVME_PEER_ROUTE_BLOCKERS	6

/**
 * struct nvme_peer_path - how requests get from one device to another
 * @verdict: enum nvme_peer_route_verdict
 * @reason: enum nvme_peer_route_reason
 * @blocker_count: ports in the way.  If they are more than
 *	NVME_PEER_ROUTE_BLOCKERS, the rest of them is not told
 * @blockers: the ports: those with ACS bits first, from the sender up, then from
 *	the receiver up.  Where the way through the root complex is open, they
 *	are what keeps requests from the shorter way
 */
struct nvme_peer_path {
	__u32 verdict;
	__u32 reason;
	__u32 blocker_count;
	struct nvme_peer_route_blocker blockers[NVME_PEER_ROUTE_BLOCKERS];
};

/* nvme_peer_route.flags */
#define NVME_PEER_ROUTE_BY_ADDRESS	(1U << 0)	/* @pci_address, not @dmabuf_fd */

/**
 * struct nvme_peer_route - ioctl(NVME_PEER_ROUTE), on the controller node
 * @size: sizeof(struct nvme_peer_route)
 * @flags: NVME_PEER_ROUTE_BY_ADDRESS or 0
 * @dmabuf_fd: in: a dma-buf whose memory the controller is to reach; ignored
 *	with NVME_PEER_ROUTE_BY_ADDRESS
 * @pci_address: in with NVME_PEER_ROUTE_BY_ADDRESS, else out: the PCI function
 *	at the other end, the peer; none where the memory belongs to none
 * @data: out: from the controller to the memory, or to memory of the peer
 * @doorbell: out: from the peer to the controller; NVME_PEER_REASON_NONE if no
 *	peer is known
 *
 * A verdict is an answer, not an error: the call succeeds with
 * NVME_PEER_ROUTE_NONE too.  The memory of a dma-buf is mapped for a moment,
 * and not pinned.  ENODEV: no such PCI function.  EBADF, EINVAL: not a dma-buf;
 * EINVAL also for an address that is none.  EOPNOTSUPP: as NVME_PEER_BUF_IMPORT.
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
 * enum nvme_peer_access - what the controller does with memory
 * @NVME_PEER_ACCESS_BOTH: reads and writes it
 * @NVME_PEER_ACCESS_READ: only reads it: data of write commands, submission rings
 * @NVME_PEER_ACCESS_WRITE: only writes it: data of read commands, completion rings
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
 * @flags: NVME_PEER_BUF_REQUIRE_DEVICE: the caller means device memory; if
 *	the exporter delivers host RAM instead, the import fails with ENXIO
 * @dmabuf_fd: in: the dma-buf; the buffer keeps its own reference to it
 * @access: in: enum nvme_peer_access.  Where an IOMMU translates it holds the
 *	controller to it
 * @offset: in: byte offset in the dma-buf of the part that is imported, a multiple
 *	of nvme_peer_info.page_size
 * @length: in: bytes of that part, a multiple of the same, or 0 for all from
 *	@offset on; out: bytes
 * @handle: out: names the buffer in other calls on this open file; never 0
 * @segments: out: contiguous ranges of DMA addresses, after coalescing
 * @verdict: out: enum nvme_peer_route_verdict, where it really lies and how
 *	the controller reaches it
 * @reason: out: enum nvme_peer_route_reason
 * @pci_address: out: the function whose memory it is, none for host RAM
 * @reserved: must be 0
 *
 * All other calls know the part only: their offsets begin where it begins.
 *
 * The buffer stays mapped for the controller until BUF_RELEASE, the close of
 * the controller node or an invalidation by its exporter.  A buffer is exposed
 * once NVME_PEER_BUF_TABLE has told its addresses: any queue pair of the
 * controller may access it then, whoever made that.  The close of the node keeps
 * an exposed buffer until all queue pairs of the controller that were alive then
 * have ended.  An invalidation first takes away the queue pairs whose rings lie in
 * the buffer, and all of the controller if it is exposed.  All three first let the
 * commands end that NVME_PEER_URING_CMD_IO and _IO_VEC have sent, and admit no new ones.
 *
 * EINVAL: not a dma-buf, @access or alignment.  ERANGE: the dma-buf ends before the
 * part does.  EACCES: the dma-buf is open for reading only and @access is not
 * NVME_PEER_ACCESS_READ.
 * EXDEV: the controller cannot reach the memory; NVME_PEER_ROUTE tells why.
 * ENXIO: see @flags.  EOPNOTSUPP: the controller would see a copy of it
 * (swiotlb), which nobody keeps up to date between commands.  ENOSPC: too many
 * buffers.  ESHUTDOWN: the controller is going away.
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
 * @handle: in: from NVME_PEER_BUF_IMPORT
 * @reserved: must be 0
 *
 * EBUSY: a ring of a queue pair lies in the buffer, or the buffer is exposed
 * (NVME_PEER_BUF_IMPORT) and a queue pair of the controller, anybody's, is alive.
 * ENOENT: no such handle.
 */
struct nvme_peer_buf_release {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

#define NVME_PEER_BUF_RELEASE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_RELEASE)

/**
 * struct nvme_peer_buf_table - ioctl(NVME_PEER_BUF_TABLE), controller node
 * @size: sizeof(struct nvme_peer_buf_table)
 * @flags: must be 0
 * @handle: in: from NVME_PEER_BUF_IMPORT
 * @count: in: addresses that @addresses has room for; out: addresses written
 * @offset: in: byte offset of the first address in the buffer, a multiple of
 *	nvme_peer_info.page_size
 * @addresses: in: user pointer to __u64[@count]: the DMA address, in this
 *	controller's domain, of every controller page from @offset on
 *
 * Needs CAP_SYS_RAWIO.  ERANGE: @offset lies outside the buffer.  ESTALE: the
 * exporter has invalidated the buffer.
 */
struct nvme_peer_buf_table {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 count;
	__aligned_u64 offset;
	__aligned_u64 addresses;
};

#define NVME_PEER_BUF_TABLE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_BUF_TABLE)

/* nvme_peer_qp_create.flags */
/*
 * The machine may go to sleep, and the queue pair is QUIESCED when it wakes, as after a
 * reset of the function.  Who says so sees to it that nothing is in flight then, or that
 * it may be lost.  While there are queue pairs without this flag, sleep is refused.
 */
#define NVME_PEER_QP_ALLOW_SLEEP	(1U << 0)

/**
 * struct nvme_peer_qp_create - ioctl(NVME_PEER_QP_CREATE), controller node
 * @size: sizeof(struct nvme_peer_qp_create)
 * @flags: NVME_PEER_QP_ALLOW_SLEEP or 0
 * @mode: in: enum nvme_peer_mode
 * @reserved1: must be 0
 * @sq_entries: in: entries of the submission ring, 2 to
 *	nvme_peer_info.max_entries; one of them always stays empty
 * @cq_entries: in: entries of the completion ring, at least @sq_entries
 * @sq_handle: in: buffer that holds the submission ring, 0 for host memory
 * @cq_handle: in: buffer that holds the completion ring, 0 for host memory
 * @sq_offset: in: byte offset of the ring in @sq_handle, page aligned
 * @cq_offset: in: byte offset of the ring in @cq_handle, page aligned
 * @qp_fd: out: the queue pair file, close-on-exec
 * @qid: out: queue identifier
 * @generation: out: generation that the queue pair belongs to
 * @reserved: must be 0; room for the windows and handles of mediated queue pairs and
 *	for a list of the buffers that the queue pair may use
 *
 * The kernel clears the memory of host rings.  A completion ring in a buffer
 * must be zero before the call; the kernel cannot write it.
 *
 * EPERM: no CAP_SYS_RAWIO, or the kernel is locked down and the controller's domain
 * is NVME_PEER_DOMAIN_PHYSICAL.  EINVAL: entries, alignment, offsets.  ERANGE: a
 * ring does not fit into its buffer.  EMSGSIZE: a ring is longer than the segment
 * that it begins in and the controller wants it in one.  EEXIST: the two rings overlap
 * each other or those of another queue pair.  ENOSPC: no queue identifier is free, or
 * those that are wait for somebody to let go of their doorbells
 * (nvme_peer_info.qids_quarantined).  ENOENT: no such handle.  EACCES: the controller
 * may not read the buffer of the submission ring, or not write that of the completion
 * ring.  ESTALE: the buffer was invalidated.  EAGAIN: the controller is being reset.
 * ESHUTDOWN: it is going away.  EIO: it refused the queue.  EOPNOTSUPP: the controller
 * would see a copy of a ring in host memory (swiotlb).
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
	__u32 reserved[13];
};

#define NVME_PEER_QP_CREATE	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_CREATE)

/**
 * enum nvme_peer_export - what of a queue pair becomes a dma-buf
 * @NVME_PEER_EXPORT_SQ: the submission ring, host memory only
 * @NVME_PEER_EXPORT_CQ: the completion ring, host memory only
 * @NVME_PEER_EXPORT_DOORBELL: the page or pages of BAR0 that hold the doorbells
 *	of this queue pair; a peer must only write them
 * @NVME_PEER_EXPORT_STATUS: the status page, struct nvme_peer_status.  The
 *	dma-buf is read-only: for processes, and for devices behind an IOMMU
 * @NVME_PEER_EXPORT_REQUEST: the request page, struct nvme_peer_request
 */
enum nvme_peer_export {
	NVME_PEER_EXPORT_SQ = 0,
	NVME_PEER_EXPORT_CQ = 1,
	NVME_PEER_EXPORT_DOORBELL = 2,
	NVME_PEER_EXPORT_STATUS = 3,
	NVME_PEER_EXPORT_REQUEST = 4,
};

/* nvme_peer_qp_export.flags */
/* Doorbells: admit importers that cannot be told to let go. */
#define NVME_PEER_EXPORT_ALLOW_STATIC	(1U << 0)

/**
 * struct nvme_peer_qp_export - ioctl(NVME_PEER_QP_EXPORT), queue pair file
 * @size: sizeof(struct nvme_peer_qp_export)
 * @flags: NVME_PEER_EXPORT_ALLOW_STATIC: only with NVME_PEER_EXPORT_DOORBELL
 * @what: in: enum nvme_peer_export
 * @fd: out: the dma-buf, close-on-exec, for mmap() or import by another driver
 * @offset: out: byte offset in the dma-buf of the ring, of the submission
 *	queue's tail doorbell or of the status
 * @length: out: bytes of that object from @offset on
 *
 * ENODATA: the ring lies in an imported buffer, whose owner exports it.
 * ESHUTDOWN: the queue pair has failed or is gone.  EAGAIN: it is quiesced, re-arm
 * it first.  ENXIO: the doorbell page also holds
 * registers that must not be exported.  ENOSPC: 64 dma-bufs of the queue pair are
 * open.
 */
struct nvme_peer_qp_export {
	__u32 size;
	__u32 flags;
	__u32 what;
	__s32 fd;
	__aligned_u64 offset;
	__aligned_u64 length;
};

#define NVME_PEER_QP_EXPORT	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_EXPORT)

/**
 * enum nvme_peer_qp_state - state of a queue pair
 * @NVME_PEER_QP_LIVE: the controller serves it
 * @NVME_PEER_QP_QUIESCED: its entries are lost, nothing more will complete; it
 *	keeps its identifier, rings and dma-bufs and waits for NVME_PEER_QP_REARM
 * @NVME_PEER_QP_FAILED: likewise, but it cannot come back; close it
 * @NVME_PEER_QP_GONE: its controller or one of its rings went away
 */
enum nvme_peer_qp_state {
	NVME_PEER_QP_LIVE = 1,
	NVME_PEER_QP_QUIESCED = 2,
	NVME_PEER_QP_FAILED = 3,
	NVME_PEER_QP_GONE = 4,
};

/**
 * struct nvme_peer_qp_info - ioctl(NVME_PEER_QP_INFO), queue pair file
 * @size: sizeof(struct nvme_peer_qp_info)
 * @flags: must be 0
 * @qid: out: queue identifier
 * @state: out: enum nvme_peer_qp_state
 * @generation: out: generation that the queue pair belongs to
 * @mode: out: enum nvme_peer_mode
 * @sq_entries: out: entries of the submission ring
 * @cq_entries: out: entries of the completion ring
 * @doorbell_stride: out: bytes from the tail doorbell to the head doorbell
 * @doorbell_offset: out: byte offset of the tail doorbell in the exported
 *	doorbell pages; the head doorbell follows @doorbell_stride later
 * @doorbell_length: out: bytes of the exported doorbell pages
 * @exports: out: dma-bufs of this queue pair that are still open
 * @importers: out: devices attached to them
 * @mmaps: out: user mappings of them
 * @reason: out: why @state is not NVME_PEER_QP_LIVE, as in struct nvme_peer_status
 * @losses: out: how often it stopped being LIVE, for NVME_PEER_QP_REARM
 * @sq_pci_address: out: the function in whose memory the submission ring lies,
 *	none for host memory
 * @cq_pci_address: out: as well for the completion ring.  One that does not lie
 *	in the same device as the data gives no order between the two: read back
 *	the data's path before trusting it
 * @cpu_doorbell_writes: out: writes of the CPU to this queue pair's doorbells
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
 * @losses: in: nvme_peer_qp_info.losses, as it was when the caller began to deal
 *	with the loss
 * @reserved: must be 0
 *
 * Creates the queues of a QUIESCED queue pair again: same identifier, rings,
 * addresses and dma-bufs, tail and head 0, phase tag 1.  The caller vouches that no
 * peer uses what it knew of the entries before: a doorbell with an old tail would
 * have the controller execute what lies in the ring.  NVME_PEER_QP_INFO has the
 * generation that the queue pair belongs to then.
 *
 * The kernel clears rings in host memory.  Of rings in buffers, the caller clears
 * the completion ring, and should clear the submission ring, before the call.
 * Doorbells that went because the function was to be reset, or lost its link, are
 * there again: a process's mapping at its next access; an importer's when it maps
 * the dma-buf again.  Those of a reset of the controller alone never went.
 *
 * EALREADY: it is LIVE.  ESHUTDOWN: it has failed or is gone.  ESTALE: it was lost
 * again, @losses has moved.  EAGAIN: the controller is being reset or its
 * namespaces are being looked at; NVME_PEER_EVENT_READY comes after.  EIO: the
 * controller refused the queues; it is still QUIESCED.
 */
struct nvme_peer_qp_rearm {
	__u32 size;
	__u32 flags;
	__u32 losses;
	__u32 reserved;
};

#define NVME_PEER_QP_REARM	_IO(NVME_PEER_TYPE, NVME_PEER_CMD_QP_REARM)

/**
 * enum nvme_peer_event_type - what a record tells
 * @NVME_PEER_EVENT_STATE: the state of the queue pair changed
 * @NVME_PEER_EVENT_READY: the queue pair is QUIESCED, and the controller is ready for
 *	NVME_PEER_QP_REARM
 */
enum nvme_peer_event_type {
	NVME_PEER_EVENT_STATE = 1,
	NVME_PEER_EVENT_READY = 2,
};

/**
 * struct nvme_peer_event - a record of what happened, from read() of a queue pair file
 * @size: bytes from this record to the next; longer than this structure if the kernel
 *	knows more
 * @type: enum nvme_peer_event_type; pass over one that is not known
 * @time: nanoseconds of CLOCK_MONOTONIC
 * @generation: generation of the controller then
 * @state: enum nvme_peer_qp_state then
 * @reason: as in struct nvme_peer_status
 * @lost: records that nobody read in time, between the one before and this one
 *
 * read() gives as many whole records as fit and takes them off; it waits for one,
 * unless the file is O_NONBLOCK (EAGAIN).  EINVAL: not even one fits.  It returns 0 once
 * the queue pair is GONE and all was read.  poll() says EPOLLPRI while a record waits,
 * and EPOLLHUP once the queue pair is GONE.
 */
struct nvme_peer_event {
	__u32 size;
	__u32 type;
	__aligned_u64 time;
	__u32 generation;
	__u32 state;
	__u32 reason;
	__u32 lost;
};

#define NVME_PEER_STATUS_MAGIC	0x7065706eU	/* "npep", little endian */

/**
 * struct nvme_peer_status - start of the status page, written by the kernel
 * @magic: NVME_PEER_STATUS_MAGIC
 * @version: 1
 * @state: enum nvme_peer_qp_state; written after @generation and @reason
 * @generation: generation of the controller now.  If it differs from the one
 *	in struct nvme_peer_qp_info, every entry in flight is lost
 * @qid: queue identifier
 * @reason: why @state is not NVME_PEER_QP_LIVE, a positive errno
 * @size: bytes of the page, the length that NVME_PEER_QP_EXPORT gives: a page of the
 *	CPU, which on some machines is 64 KiB
 * @reserved: 0
 *
 * All fields are little endian and each is written by one store, so a peer may
 * read them at any time.  The page lies in host memory and is zero behind this
 * structure.  Nobody but the kernel writes it: what a peer has to say gets a page of its
 * own.
 */
struct nvme_peer_status {
	__u32 magic;
	__u32 version;
	__u32 state;
	__u32 generation;
	__u32 qid;
	__u32 reason;
	__u32 size;
	__u32 reserved;
};

/**
 * struct nvme_peer_request - start of the request page, written by peers
 * @quiesce: not 0: the peer has waited too long for a command and gives all of
 *	the queue pair's up.  Within 100 ms the kernel takes the queue pair off the
 *	controller, resets the controller if that does not work, sets the word to 0
 *	and the queue pair to QUIESCED; its reason is ETIMEDOUT.
 *	NVME_PEER_QP_REARM sets it to 0 too: what was asked before counts no more
 *
 * The page lies in host memory.  Whoever asks is not told apart: the queue pair is
 * one owner's.
 */
struct nvme_peer_request {
	__u32 quiesce;
};

/**
 * enum nvme_peer_io_opcode - what NVME_PEER_URING_CMD_IO does
 * @NVME_PEER_IO_WRITE: from the buffer to the namespace
 * @NVME_PEER_IO_READ: from the namespace to the buffer
 *
 * The numbers are those of the NVM command set.
 */
enum nvme_peer_io_opcode {
	NVME_PEER_IO_WRITE = 0x01,
	NVME_PEER_IO_READ = 0x02,
};

/* nvme_peer_uring_io.flags */
#define NVME_PEER_IO_FUA	(1U << 0)	/* past the controller's volatile cache */

/**
 * struct nvme_peer_uring_io - io_uring command NVME_PEER_URING_CMD_IO, controller node
 * @flags: NVME_PEER_IO_FUA or 0
 * @opcode: enum nvme_peer_io_opcode
 * @nsid: namespace
 * @handle: from NVME_PEER_BUF_IMPORT on this open file
 * @offset: byte of the buffer where the data begins, a multiple of 4
 * @lba: first block of the namespace
 * @blocks: how many, 1 or more; their bytes at most nvme_peer_info.max_transfer
 * @reserved: must be 0
 *
 * The CPU starts a read or write of one command whose data lies in an imported buffer,
 * at the addresses that the import has: nothing is copied, pinned or mapped for it.
 * It goes to the CPU's own queues, beside whatever peers do in the same buffer.
 *
 * The ring has entries of 128 bytes (IORING_SETUP_SQE128), and this structure is all
 * of an entry's command: what it does not say, metadata and protection information of
 * the host's own among it, cannot be said.  A namespace whose blocks carry metadata is
 * served where the controller makes and strips it.  A ring with IORING_SETUP_IOPOLL
 * finds its completions on a polled queue, if there is one.
 *
 * As with NVMe passthrough the file system's and the block device's cache are neither
 * asked nor told, and rights are asked for in the same way.  They are those of the
 * controller's node: who may open it need not be allowed to open its namespaces'.
 *
 * The completion says 0; a positive number, the NVMe status; or what was refused.
 * EINVAL: @flags, @opcode, @offset, @reserved, no @blocks, or IORING_URING_CMD_FIXED.
 * EOPNOTSUPP: a ring with small entries, or a namespace of another command set than
 * NVM.  ENODEV: no such namespace, or the controller
 * is gone.  EACCES: a buffer that was imported with NVME_PEER_ACCESS_READ for a read, or
 * with NVME_PEER_ACCESS_WRITE for a write; without CAP_SYS_ADMIN also a write through a
 * node that is open for reading, and what the controller does not declare to be harmless.
 * EMEDIUMTYPE: the blocks carry metadata that needs a place.  EMSGSIZE: longer than
 * nvme_peer_info.max_transfer.  ENOENT: no such handle.  ERANGE: the data ends behind the
 * buffer.  ESTALE: the exporter wants the buffer back.  ESHUTDOWN: the driver is being
 * unbound.  EINTR: the controller was stopped under it, and nobody knows whether it was
 * carried out.
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

/* Most ranges of a list. */
#define NVME_PEER_IO_RANGES	32

/**
 * struct nvme_peer_io_range - one of the ranges of NVME_PEER_URING_CMD_IO_VEC
 * @offset: byte of the buffer where its data begins, a multiple of 4
 * @lba: its first block of the namespace
 * @blocks: how many, 1 or more; their bytes at most nvme_peer_info.max_transfer
 * @handle: from NVME_PEER_BUF_IMPORT on this open file; each range may have another
 */
struct nvme_peer_io_range {
	__aligned_u64 offset;
	__aligned_u64 lba;
	__u32 blocks;
	__u32 handle;
};

/**
 * struct nvme_peer_uring_io_vec - io_uring command NVME_PEER_URING_CMD_IO_VEC, controller node
 * @flags: NVME_PEER_IO_FUA or 0, for all ranges
 * @opcode: enum nvme_peer_io_opcode, for all ranges
 * @nsid: namespace, for all ranges
 * @count: of the ranges, 1 to NVME_PEER_IO_RANGES
 * @ranges: user pointer to struct nvme_peer_io_range[@count], read while the entry is
 *	submitted: it may change once io_uring_enter() has returned, with
 *	IORING_SETUP_SQPOLL or IOSQE_ASYNC once the command has completed
 * @reserved: must be 0
 *
 * As NVME_PEER_URING_CMD_IO, for each range: as many NVMe commands as ranges, which
 * the controller carries out in any order, and one completion when the last of them has
 * ended.  Ranges that overlap are allowed, and what such writes leave is any of them.
 *
 * The completion says 0 if all were carried out.  Else what was refused, or how one of those
 * that failed did.  Every range is looked at before any is sent: of a list with one that is
 * refused nothing is carried out.  What changes in that moment, a buffer that is wanted
 * back or a controller that is stopped, may leave a part carried out, as may a failure of
 * the controller's.
 *
 * The errors are those of NVME_PEER_URING_CMD_IO, for any of the ranges, and EINVAL for
 * no range, E2BIG for more than NVME_PEER_IO_RANGES, EFAULT for a list that cannot be read.
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
