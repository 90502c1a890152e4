/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A PCI function in a process of its own: the server side of vfio-user.
 *
 * QEMU's vfio-user-pci connects to a unix socket and asks the process behind it
 * what a device does: config space, BARs, interrupts.  The process in turn
 * reaches guest memory and other devices' BARs by DMA.  This folder knows the
 * protocol, the DMA map, config space, MSI and resets; what the device is comes
 * from struct vfu_device.
 *
 * Threads: vfu_serve() runs in one thread, reads all messages and answers them;
 * the callbacks run there and must return soon (QEMU gives up after 5 s, and
 * its whole virtual machine stands still meanwhile).  They must not call
 * vfu_dma_*(), which wait for that same thread.  vfu_dma_*() and
 * vfu_interrupt() may be called from any other thread at any time.
 *
 * All functions return 0 or a negative errno.
 */
#ifndef VFIO_USER_H
#define VFIO_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFU_BARS		6
#define VFU_MAX_VECTORS		8
#define VFU_VENDOR_REGISTERS	4

/* Why a device is reset. */
enum vfu_reset {
	VFU_RESET_FUNCTION,	/* function level reset, by config space */
	VFU_RESET_BUS,		/* power-on, reboot, secondary bus reset */
	VFU_RESET_CLIENT_GONE,	/* the virtual machine went away */
};

/**
 * struct vfu_bar - a base address register
 * @size: bytes, a power of two; 0 for none
 * @is_64bit: a 64-bit BAR, which also takes the next one
 * @prefetchable: reading has no side effects
 * @fd: memory that the guest maps and accesses without telling us; -1: every
 *	access comes to the callbacks
 */
struct vfu_bar {
	uint64_t size;
	bool is_64bit;
	bool prefetchable;
	int fd;
};

/**
 * struct vfu_device - what a device is and does; constant while served
 * @vendor_id: PCI vendor
 * @device_id: PCI device
 * @class_code: base class, subclass, programming interface: 0xccsspp
 * @revision: PCI revision
 * @vectors: MSI vectors, a power of two up to VFU_MAX_VECTORS
 * @bars: base address registers
 * @bar_read: fill @data with @count bytes at @offset of @bar, which lie in it
 * @bar_write: the other way round
 * @reset: back to the state of power-on.  DMA is off already and stays off until
 *	the guest enables bus mastering again; waiting vfu_dma_*() have failed
 * @vendor_read: value of register @number of VFU_VENDOR_REGISTERS that lie in
 *	config space, where a guest reaches them whatever its drivers do; NULL for
 *	a device without
 * @vendor_write: the other way round
 * @unmapped: these bus addresses are no longer what they were, or not ours to use any
 *	more: what vfu_locate() gave for them must not be used once this returns.  NULL
 *	for a device that does not call it
 */
struct vfu_device {
	uint16_t vendor_id;
	uint16_t device_id;
	uint32_t class_code;
	uint8_t revision;
	unsigned int vectors;
	struct vfu_bar bars[VFU_BARS];
	void (*bar_read)(void *context, unsigned int bar, uint64_t offset,
			 void *data, uint32_t count);
	void (*bar_write)(void *context, unsigned int bar, uint64_t offset,
			  const void *data, uint32_t count);
	void (*reset)(void *context, enum vfu_reset why);
	uint32_t (*vendor_read)(void *context, unsigned int number);
	void (*vendor_write)(void *context, unsigned int number, uint32_t value);
	void (*unmapped)(void *context, uint64_t address, uint64_t size);
};

/**
 * struct vfu_statistics - what went over the bus, since vfu_create()
 * @mapped_reads: DMA reads of guest memory that is mapped here
 * @mapped_writes: DMA writes of such memory
 * @message_reads: DMA reads by message
 * @message_writes: DMA writes by message, waited for
 * @posted_writes: DMA writes by message, not waited for
 * @posted_failed: those of them that the other side reported as failed
 * @refused: DMA refused here: bus mastering off, or against a mapping's flags
 * @failed: DMA by message that failed
 * @bytes_read: by all reads
 * @bytes_written: by all writes
 * @interrupts: MSI sent
 * @ranges: entries of the DMA map now
 */
struct vfu_statistics {
	uint64_t mapped_reads;
	uint64_t mapped_writes;
	uint64_t message_reads;
	uint64_t message_writes;
	uint64_t posted_writes;
	uint64_t posted_failed;
	uint64_t refused;
	uint64_t failed;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t interrupts;
	uint64_t ranges;
};

/* Flags of vfu_dma_read() and vfu_dma_write(). */
#define VFU_DMA_MESSAGE	(1U << 0)	/* by message even where memory is mapped */

struct vfu;

/**
 * vfu_create() - make a server
 * @device: what it serves; must live as long as the server
 * @context: handed to the callbacks
 *
 * Returns NULL without memory or if @device makes no sense.
 */
struct vfu *vfu_create(const struct vfu_device *device, void *context);
void vfu_destroy(struct vfu *vfu);

/**
 * vfu_set_neighbour() - share memory with another device's process
 * @vfu: server, not yet serving
 * @fd: that device's memory, kept open by the caller
 *
 * The client maps the memory BAR of another vfio-user device here without its file.
 * A mapping without a file and of this size is taken for that BAR, and accessed
 * directly.
 */
int vfu_set_neighbour(struct vfu *vfu, int fd);

/** vfu_listen() - make a listening socket at @path; a stale one is replaced. */
int vfu_listen(const char *path);

/**
 * vfu_serve() - serve one client until it leaves
 * @vfu: server; one vfu_serve() at a time
 * @socket: connected stream socket, closed on return
 *
 * Returns 0 when the client closed the connection, -EPROTO when it sent
 * nonsense, or what the socket said.
 */
int vfu_serve(struct vfu *vfu, int socket);

/**
 * vfu_dma_read(), vfu_dma_write() - access an address of the guest's bus
 * @vfu: server
 * @address: as the guest's driver gave it
 * @data: source or destination
 * @length: bytes; 1, 2, 4 and 8 aligned ones are one access each
 * @flags: VFU_DMA_MESSAGE or 0
 *
 * Memory that the client shared is accessed directly as the DMA map allows;
 * everything else, other devices' BARs among it, by message and with an answer.
 * A direct access does not wait for posted writes; vfu_dma_flush() does.
 *
 * -EACCES: bus mastering is off, or the mapping forbids it.  -EFAULT: nothing
 * is there.  -ECANCELED: reset.  -ENOTCONN: no client.  -ETIMEDOUT: no answer.
 */
int vfu_dma_read(struct vfu *vfu, uint64_t address, void *data, size_t length,
		 unsigned int flags);
int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data,
		  size_t length, unsigned int flags);

/**
 * vfu_dma_post() - write by message without waiting, as PCI Express does
 * @vfu: server
 * @address: as above
 * @data: source
 * @length: 1 to 64 bytes; registers want 4 or 8, aligned
 *
 * Posted writes arrive in order.  Now and then one waits for its answer all the
 * same, so that a fast writer does not fill the other side's memory.  Failures
 * show in posted_failed only, except -EACCES and -ENOTCONN, found here.
 */
int vfu_dma_post(struct vfu *vfu, uint64_t address, const void *data,
		 size_t length);

/**
 * struct vfu_place - where the memory behind a bus address lies
 * @fd: the file, to be closed by the caller
 * @device: of the file, as fstat() tells; with @inode it tells files apart
 * @inode: likewise
 * @offset: in the file
 */
struct vfu_place {
	int fd;
	uint64_t device;
	uint64_t inode;
	uint64_t offset;
};

/**
 * vfu_locate() - find the memory that the client shared, to be used without us
 * @vfu: server
 * @address: as the guest's driver gave it
 * @length: bytes, which must lie in one piece of a file
 * @write: it will be written
 * @place: receives where they lie
 *
 * Good until the device is told by @unmapped.  Errors as vfu_dma_read(); -EFAULT also
 * for memory that came without a file.
 */
int vfu_locate(struct vfu *vfu, uint64_t address, size_t length, bool write,
	       struct vfu_place *place);

/**
 * vfu_dma_flush() - return when all posted writes have arrived
 * @vfu: server
 * @address: guest memory that may be read for it, 4 bytes
 *
 * A read pushes the posted writes before it, as on PCI Express.
 */
int vfu_dma_flush(struct vfu *vfu, uint64_t address);

/**
 * vfu_copy_whole() - copy to or from memory that others look at
 * @length: 4 or 8 bytes, aligned on both sides, are not torn
 */
void vfu_copy_whole(void *to, const void *from, size_t length);

/**
 * vfu_interrupt() - send an MSI
 *
 * It overtakes posted writes; who minds flushes first.  -ENXIO: the guest has
 * not enabled @vector.
 */
int vfu_interrupt(struct vfu *vfu, unsigned int vector);

/** vfu_statistics() - a snapshot of the counters. */
void vfu_statistics(struct vfu *vfu, struct vfu_statistics *statistics);

#endif /* VFIO_USER_H */
