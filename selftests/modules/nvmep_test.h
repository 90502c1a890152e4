/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * User interface of nvmep_test_pin.ko, /dev/nvmep_test: what other drivers do
 * to the objects of nvme-peer, one step at a time.
 *
 * One open file acts as one driver: it holds at most one pinned range and at
 * most one attachment. Closing it releases both.
 */
#ifndef _NVMEP_TEST_H
#define _NVMEP_TEST_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

#define NVMEP_TEST_NODE	"/dev/nvmep_test"

/**
 * struct nvmep_test_range - a range of the caller's address space
 * @address: page aligned
 * @length: bytes, a multiple of the page size
 */
struct nvmep_test_range {
	__u64 address;
	__u64 length;
};

/* Pin pages as cuMemHostRegister() does: FOLL_WRITE | FOLL_LONGTERM. */
#define NVMEP_TEST_PIN		_IOW('T', 0, struct nvmep_test_range)
#define NVMEP_TEST_UNPIN	_IO('T', 1)

/**
 * struct nvmep_test_poke - exchange 8 bytes of the pinned pages
 * @offset: byte offset in the pinned range, a multiple of 8
 * @value: in: what to write; out: what was there
 */
struct nvmep_test_poke {
	__u64 offset;
	__u64 value;
};

#define NVMEP_TEST_POKE		_IOWR('T', 2, struct nvmep_test_poke)

/* nvmep_test_walk.found */
#define NVMEP_TEST_ONE_VMA	(1U << 0)	/* one VMA covers the range */
#define NVMEP_TEST_VM_IO	(1U << 1)
#define NVMEP_TEST_VM_PFNMAP	(1U << 2)
#define NVMEP_TEST_UNCACHED	(1U << 3)
#define NVMEP_TEST_CONTIGUOUS	(1U << 4)	/* page frames follow each other */

/**
 * struct nvmep_test_walk - look page frames up without faulting them in
 * @range: in: where
 * @found: out: NVMEP_TEST_*
 * @present: out: pages that have an entry in the page table
 * @first_frame: out: page frame number of the first page
 *
 * This is how cuMemHostRegister(IOMEMORY) resolves a mapped BAR.
 */
struct nvmep_test_walk {
	struct nvmep_test_range range;
	__u32 found;
	__u32 present;
	__u64 first_frame;
};

#define NVMEP_TEST_WALK		_IOWR('T', 3, struct nvmep_test_walk)

/* nvmep_test_attach.flags */
#define NVMEP_TEST_STATIC	(1U << 0)	/* dma_buf_attach(), cannot be invalidated */
#define NVMEP_TEST_STUBBORN	(1U << 1)	/* does not unmap when invalidated */
#define NVMEP_TEST_NO_P2P	(1U << 2)	/* dynamic, without allow_peer2peer */
#define NVMEP_TEST_ONLY_WRITE	(1U << 3)	/* the device is to write, not to read */
#define NVMEP_TEST_FENCED	(1U << 4)	/* device active until a fence signals */
#define NVMEP_TEST_SLOW		(1U << 5)	/* unmaps late when invalidated */
#define NVMEP_TEST_UNMAPPED	(1U << 6)	/* mapped by NVMEP_TEST_MAP */
#define NVMEP_TEST_PINNED	(1U << 7)	/* pins the memory while it is mapped */

#define NVMEP_TEST_NEVER	0xffffffffU	/* nvmep_test_attach.fence_ms: not before DETACH */

/**
 * struct nvmep_test_attach - attach a device to a dma-buf and map it, or map it
 * later
 * @dmabuf_fd: in
 * @flags: in: NVMEP_TEST_*
 * @pci_address: in: the device
 * @segments: out: entries of the mapping
 * @fence_ms: in: NVMEP_TEST_FENCED: when the fence signals, or NVMEP_TEST_NEVER
 * @slow_ms: in: NVMEP_TEST_SLOW
 * @address: out: DMA address of the first one
 * @length: out: total bytes
 */
struct nvmep_test_attach {
	__s32 dmabuf_fd;
	__u32 flags;
	struct nvme_peer_pci_address pci_address;
	__u32 segments;
	__u32 fence_ms;
	__u32 slow_ms;
	__u64 address;
	__u64 length;
};

#define NVMEP_TEST_ATTACH	_IOWR('T', 4, struct nvmep_test_attach)
#define NVMEP_TEST_DETACH	_IO('T', 5)
/*
 * Map an attachment made with NVMEP_TEST_UNMAPPED; uses the out members only.
 * EBUSY: it is mapped.
 */
#define NVMEP_TEST_MAP		_IOWR('T', 23, struct nvmep_test_attach)

/**
 * struct nvmep_test_importer - state of the attachment
 * @invalidations: out: times that the exporter invalidated it
 * @mapped: out: 1 while the mapping is held
 */
struct nvmep_test_importer {
	__u32 invalidations;
	__u32 mapped;
};

#define NVMEP_TEST_IMPORTER	_IOR('T', 6, struct nvmep_test_importer)

/* nvmep_test_export.flags */
#define NVMEP_TEST_SCATTERED	(1U << 0)	/* no two pages have adjacent DMA addresses */
#define NVMEP_TEST_NO_PIN	(1U << 1)	/* exporter without pin, never moves */
#define NVMEP_TEST_REFUSE	(1U << 2)	/* exporter that refuses attachments */
#define NVMEP_TEST_HANG_PIN	(1U << 3)	/* pin blocks until LET_GO, 30 s at most */
#define NVMEP_TEST_HANG_MAP	(1U << 4)	/* map blocks until LET_GO, 30 s at most */
#define NVMEP_TEST_PARTLY	(1U << 5)	/* scattered, last page in the device's BAR */
#define NVMEP_TEST_MOVING	(1U << 6)	/* fence signals at LET_GO: being moved */
#define NVMEP_TEST_PIECES	(1U << 7)	/* one block, mapped page by page */
#define NVMEP_TEST_ODD_START	(1U << 8)	/* entries of whole pages, unaligned start */
#define NVMEP_TEST_ODD_END	(1U << 9)	/* entries with an unaligned end */
#define NVMEP_TEST_READ_ONLY	(1U << 10)	/* open for reading only */

/**
 * struct nvmep_test_export - a dma-buf of host memory
 * @pages: in: 1 to 1024
 * @flags: in: NVMEP_TEST_*
 * @fd: out: the dma-buf, may be mapped
 * @times: in: 0, or 2 to 65536: a device's mapping names the memory so many
 *	times, as if the dma-buf were that much longer; not with
 *	NVMEP_TEST_SCATTERED or _PIECES
 */
struct nvmep_test_export {
	__u32 pages;
	__u32 flags;
	__s32 fd;
	__u32 times;
};

#define NVMEP_TEST_EXPORT	_IOWR('T', 7, struct nvmep_test_export)

/**
 * struct nvmep_test_move - invalidate the importers of a dma-buf of nvmep_test
 * @fd: in: from NVMEP_TEST_EXPORT
 * @maps: out: mappings that were held when the callbacks had returned
 * @direction: out: of the last mapping, the kernel's enum dma_data_direction
 * @pins: out: times that it was pinned so far
 * @mappings: out: times that it was mapped so far
 */
struct nvmep_test_move {
	__s32 fd;
	__u32 maps;
	__u32 direction;
	__u32 pins;
	__u32 mappings;
};

#define NVMEP_TEST_MOVE		_IOWR('T', 8, struct nvmep_test_move)
/* Count the mappings without invalidating them. */
#define NVMEP_TEST_MAPS		_IOWR('T', 9, struct nvmep_test_move)

/* End a hang or the move of a dma-buf; @maps is ignored. */
#define NVMEP_TEST_LET_GO	_IOW('T', 16, struct nvmep_test_move)

/**
 * struct nvmep_test_distance - the distance by Linux's PCI P2PDMA code
 * @provider: in: PCI address of the function that has the memory
 * @client: in: PCI address of the function that is to access it
 * @distance: out: negative if there is no path
 * @reserved: ignored
 *
 * EOPNOTSUPP: the kernel has no CONFIG_PCI_P2PDMA.
 */
struct nvmep_test_distance {
	struct nvme_peer_pci_address provider;
	struct nvme_peer_pci_address client;
	__s32 distance;
	__u32 reserved;
};

#define NVMEP_TEST_DISTANCE	_IOWR('T', 10, struct nvmep_test_distance)

/*
 * Call a function's driver as power off, reboot and kexec do. The argument is
 * the function's PCI address.
 */
#define NVMEP_TEST_SHUTDOWN	_IOW('T', 11, struct nvme_peer_pci_address)
/*
 * Of all PCI functions only this one, and the ports above it, are suspended
 * with the machine, until the file is closed: a guest that suspends all
 * functions loses access to its file systems. EOPNOTSUPP: the kernel cannot
 * suspend.
 */
#define NVMEP_TEST_SLEEP	_IOW('T', 12, struct nvme_peer_pci_address)

/**
 * struct nvmep_test_fake_pci - change what drivers see of a PCI function
 * @pci_address: in: the function
 * @vendor: in: vendor ID
 * @device: in: device ID
 * @acs: in: with NVMEP_TEST_ACS: ACS control bits
 * @ats: in: with NVMEP_TEST_ACS: 1 if the function uses ATS
 * @msix_table: in: with NVMEP_TEST_MSIX: offset and BAR of the table, as in
 *	config space
 * @msix_pba: in: the same of the pending bits
 *
 * The hardware is unchanged; until the file is closed.
 */
struct nvmep_test_fake_pci {
	struct nvme_peer_pci_address pci_address;
	__u16 vendor;
	__u16 device;
	__u16 acs;
	__u16 ats;
	__u32 msix_table;
	__u32 msix_pba;
};

/* Create a PCI domain with one function, a root port without a bus below it. */
#define NVMEP_TEST_DOMAIN	_IOW('T', 13, struct nvmep_test_fake_pci)
/* Change the IDs of an existing function. */
#define NVMEP_TEST_RENAME	_IOW('T', 14, struct nvmep_test_fake_pci)
/*
 * Make a function appear to have ACS control bits set, and to use ATS; 0xffff: its ACS
 * capability cannot be read any more.
 */
#define NVMEP_TEST_ACS		_IOW('T', 15, struct nvmep_test_fake_pci)
/* Make the MSI-X structures of a function appear to lie elsewhere. */
#define NVMEP_TEST_MSIX		_IOW('T', 17, struct nvmep_test_fake_pci)

/**
 * struct nvmep_test_watchpoint - watch a word in a page that a driver writes
 * @address: where the caller has mapped it, a multiple of 4
 */
struct nvmep_test_watchpoint {
	__u64 address;
};

/* Until the file is closed, once for a file. */
#define NVMEP_TEST_WATCHPOINT	_IOW('T', 18, struct nvmep_test_watchpoint)

#define NVMEP_TEST_STORES	8
#define NVMEP_TEST_WORDS	16

/**
 * struct nvmep_test_stores - the page's contents when the word was stored to
 * @count: out: times that it was stored to
 * @reserved: ignored
 * @seen: out: the first words of the page, for the first stores
 */
struct nvmep_test_stores {
	__u32 count;
	__u32 reserved;
	__u32 seen[NVMEP_TEST_STORES][NVMEP_TEST_WORDS];
};

#define NVMEP_TEST_SEEN		_IOR('T', 19, struct nvmep_test_stores)

#define NVMEP_TEST_FUNCTION	64

/**
 * struct nvmep_test_stall - stall the next matching thread
 * @function: kernel function at whose start it is stalled
 * @after: only once such a thread has entered this function; empty: at once
 * @any_thread: any thread, including kernel threads, not only the caller's process
 * @limit_ms: how long at most; 0: 20 s
 */
struct nvmep_test_stall {
	char function[NVMEP_TEST_FUNCTION];
	char after[NVMEP_TEST_FUNCTION];
	__u32 any_thread;
	__u32 limit_ms;
};

/* Until NVMEP_TEST_GO or the limit; the thread's CPU is blocked too. */
#define NVMEP_TEST_STALL	_IOW('T', 20, struct nvmep_test_stall)
/* Is a thread stalled? EAGAIN: not yet; ETIMEDOUT: it was, for too long. */
#define NVMEP_TEST_STALLED	_IO('T', 21)
#define NVMEP_TEST_GO		_IO('T', 22)

/* nvmep_test_error.step */
#define NVMEP_TEST_ERROR_FROZEN		0
#define NVMEP_TEST_ERROR_PERMANENT	1
#define NVMEP_TEST_ERROR_SLOT_RESET	2
#define NVMEP_TEST_ERROR_RESUME		3
#define NVMEP_TEST_CHANNEL_FROZEN	4
#define NVMEP_TEST_CHANNEL_NORMAL	5

/**
 * struct nvmep_test_error - call an error handler of a function's driver
 * @pci_address: in: the function
 * @step: in: NVMEP_TEST_ERROR_*: the link is not reset, and the state of the
 *	channel does not change; NVMEP_TEST_CHANNEL_*: only that state changes
 */
struct nvmep_test_error {
	struct nvme_peer_pci_address pci_address;
	__u32 step;
};

#define NVMEP_TEST_ERROR	_IOW('T', 24, struct nvmep_test_error)

/**
 * struct nvmep_test_hold - hold a lock in the calling thread
 * @dmabuf_fd: in: hold the reservation lock of this dma-buf; -1: hold the
 *	caller's mmap lock for writing; NVMEP_TEST_HOLD_BUSES: hold the kernel's
 *	lock of PCI buses for reading; NVMEP_TEST_HOLD_PORT: hold the device lock
 *	of the port above a function
 * @ms: in: for how long; a signal ends it
 * @pci_address: in: NVMEP_TEST_HOLD_PORT: the function
 * @siblings: in: NVMEP_TEST_HOLD_PORT: 1: the function appears to share its bus
 *	with other functions meanwhile
 */
struct nvmep_test_hold {
	__s32 dmabuf_fd;
	__u32 ms;
	struct nvme_peer_pci_address pci_address;
	__u32 siblings;
};

#define NVMEP_TEST_HOLD		_IOW('T', 25, struct nvmep_test_hold)
/* Does a thread hold a lock in this way, or by NVMEP_TEST_SLOW_MAP, of any file? EAGAIN: no. */
#define NVMEP_TEST_HELD		_IO('T', 31)

#define NVMEP_TEST_HOLD_BUSES	(-2)
#define NVMEP_TEST_HOLD_PORT	(-3)

/*
 * The next importer that has PCI P2PDMA map memory for it sleeps before, for so
 * many milliseconds. EOPNOTSUPP: the kernel does not map for importers.
 */
#define NVMEP_TEST_SLOW_MAP	_IOW('T', 27, __u32)

/**
 * struct nvmep_test_unique_id - identifier of a disk for users in the kernel
 * @fd: in: open file of the block device
 * @type: in: enum blk_unique_id
 * @length: out: bytes of @id, or a negative error code
 * @id: out
 */
struct nvmep_test_unique_id {
	__s32 fd;
	__u32 type;
	__s32 length;
	__u8 id[16];
};

#define NVMEP_TEST_UNIQUE_ID	_IOWR('T', 26, struct nvmep_test_unique_id)

/*
 * Read each map of CPUs to queues of nvme-peer's while it is made, until the
 * file is closed. ENOENT: it cannot be read in this build.
 */
#define NVMEP_TEST_QUEUE_MAP	_IO('T', 28)

/**
 * struct nvmep_test_maps - what was in the maps
 * @seen: out: times that a map was read
 * @invalid: out: entries that were not the index of one of its queues
 */
struct nvmep_test_maps {
	__u32 seen;
	__u32 invalid;
};

#define NVMEP_TEST_QUEUE_MAPS	_IOR('T', 29, struct nvmep_test_maps)

/**
 * struct nvmep_test_occupy - take what nvme-peer needs to be loaded
 * @driver: in: 1: the name of its driver; 0: majors of character devices
 * @spare_majors: in: how many of the majors that the kernel chooses from
 *	remain free
 */
struct nvmep_test_occupy {
	__u32 driver;
	__u32 spare_majors;
};

/* While nvme-peer is not loaded; until the file is closed, once for a file. */
#define NVMEP_TEST_OCCUPY	_IOW('T', 30, struct nvmep_test_occupy)

#endif /* _NVMEP_TEST_H */
