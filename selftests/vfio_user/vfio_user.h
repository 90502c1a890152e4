/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server side of vfio-user: a PCI function in a separate process.
 *
 * QEMU's vfio-user-pci connects to a unix socket of the process and forwards accesses to config
 * space and BARs. The process accesses guest memory and BARs of other devices by DMA. This
 * directory implements the protocol, the DMA map, config space, MSI and resets; struct
 * vfu_device describes the device.
 *
 * Threads: vfu_serve() runs in one thread, receives all messages and replies to them. The
 * callbacks run in this thread and must return soon: the whole virtual machine waits, and QEMU
 * times out after 5 s. They must not call vfu_dma_*(), which wait for the same thread.
 * vfu_dma_*() and vfu_interrupt() may be called from any other thread.
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

/* The reason of a reset. */
enum vfu_reset {
	VFU_RESET_FUNCTION,	/* function level reset, by config space */
	VFU_RESET_BUS,		/* power-on, reboot, secondary bus reset */
	VFU_RESET_CLIENT_GONE,	/* the virtual machine has disconnected */
};

/**
 * struct vfu_bar - a base address register
 * @size: bytes, a power of two; 0 for none
 * @is_64bit: a 64-bit BAR, which also takes the next one
 * @prefetchable: reading has no side effects
 * @fd: memory that the guest maps and accesses directly; -1: the callbacks handle every
 *	access
 */
struct vfu_bar {
	uint64_t size;
	bool is_64bit;
	bool prefetchable;
	int fd;
};

/**
 * struct vfu_device - description of a device; constant while it is served
 * @vendor_id: PCI vendor
 * @device_id: PCI device
 * @class_code: base class, subclass, programming interface: 0xccsspp
 * @revision: PCI revision
 * @vectors: MSI vectors, a power of two up to VFU_MAX_VECTORS
 * @bars: base address registers
 * @bar_read: read @count bytes at @offset of @bar into @data; the range is valid
 * @bar_write: write them
 * @reset: return to the state of power-on. DMA is already disabled, until the guest enables
 *	bus mastering again, and pending vfu_dma_*() have failed
 * @vendor_read: read register @number of VFU_VENDOR_REGISTERS in config space, which is
 *	accessible while a driver is bound; NULL without such registers
 * @vendor_write: write it
 * @absent: does config space read all ones, except for the vendor registers? May be NULL
 * @unmapped: the mapping of these bus addresses ends: results of vfu_locate() for them must
 *	not be used after this returns. NULL for a device that does not call vfu_locate()
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
	bool (*absent)(void *context);
	void (*unmapped)(void *context, uint64_t address, uint64_t size);
};

/**
 * struct vfu_statistics - bus transactions since vfu_create()
 * @mapped_reads: DMA reads of mapped guest memory
 * @mapped_writes: DMA writes of mapped guest memory
 * @message_reads: DMA reads by message
 * @message_writes: DMA writes by message, with a reply
 * @posted_writes: DMA writes by message, posted
 * @posted_failed: posted writes that the client reported as failed
 * @refused: DMA refused by the server: bus mastering is off, or the mapping forbids it
 * @failed: failed DMA by message
 * @bytes_read: bytes of all reads
 * @bytes_written: bytes of all writes
 * @interrupts: sent MSIs
 * @ranges: current entries of the DMA map
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
#define VFU_DMA_MESSAGE	(1U << 0)	/* by message even if memory is mapped */

struct vfu;

/**
 * vfu_create() - create a server
 * @device: its device; must exist as long as the server
 * @context: passed to the callbacks
 *
 * Returns NULL if memory is short or @device is invalid.
 */
struct vfu *vfu_create(const struct vfu_device *device, void *context);
void vfu_destroy(struct vfu *vfu);

/**
 * vfu_set_neighbour() - access memory of another device's process directly
 * @vfu: server, not yet serving
 * @fd: memory of that device, kept open by the caller
 *
 * The client maps the memory BAR of another vfio-user device without a file. A mapping without
 * a file and of this size is assumed to be that BAR, and accessed directly.
 */
int vfu_set_neighbour(struct vfu *vfu, int fd);

/** vfu_listen() - create a listening socket at @path, replacing a stale one. */
int vfu_listen(const char *path);

/**
 * vfu_serve() - serve one client until it disconnects
 * @vfu: server; one vfu_serve() at a time
 * @socket: connected stream socket, closed on return
 *
 * Returns 0 if the client closed the connection, -EPROTO after an invalid message, or the error
 * of the socket.
 */
int vfu_serve(struct vfu *vfu, int socket);

/**
 * vfu_dma_read(), vfu_dma_write() - access an address of the guest's bus
 * @vfu: server
 * @address: bus address, set by the guest's driver
 * @data: source or destination
 * @length: bytes; 1, 2, 4 and 8 aligned bytes are one access
 * @flags: VFU_DMA_MESSAGE or 0
 *
 * Memory that the client has shared is accessed directly if the DMA map allows it. All other
 * accesses, among them those to BARs of other devices, are messages with a reply. A direct
 * access does not wait for posted writes; see vfu_dma_flush().
 *
 * -EACCES: bus mastering is off, or the mapping forbids it. -EFAULT: nothing is mapped.
 * -ECANCELED: reset. -ENOTCONN: no client. -ETIMEDOUT: no reply.
 */
int vfu_dma_read(struct vfu *vfu, uint64_t address, void *data, size_t length,
		 unsigned int flags);
int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data,
		  size_t length, unsigned int flags);

/**
 * vfu_dma_post() - posted write by message, like on PCI Express
 * @vfu: server
 * @address: bus address
 * @data: source
 * @length: 1 to 64 bytes; registers need 4 or 8 aligned bytes
 *
 * Posted writes arrive in order. Occasionally one waits for its reply, to limit the backlog of
 * the client. Failures are counted in posted_failed; only -EACCES and -ENOTCONN are returned.
 */
int vfu_dma_post(struct vfu *vfu, uint64_t address, const void *data,
		 size_t length);

/**
 * struct vfu_place - location of the memory behind a bus address
 * @fd: the file, to be closed by the caller
 * @device: st_dev of the file; with @inode it identifies the file
 * @inode: st_ino of the file
 * @offset: offset in the file
 */
struct vfu_place {
	int fd;
	uint64_t device;
	uint64_t inode;
	uint64_t offset;
};

/**
 * vfu_locate() - find memory that the client has shared, for direct use
 * @vfu: server
 * @address: bus address, set by the guest's driver
 * @length: bytes, which have to be contiguous in one file
 * @write: it will be written
 * @place: receives the location
 *
 * The result is valid until the callback @unmapped. Errors as for vfu_dma_read(); -EFAULT also
 * for memory without a file.
 */
int vfu_locate(struct vfu *vfu, uint64_t address, size_t length, bool write,
	       struct vfu_place *place);

/**
 * vfu_locate_neighbour() - find memory of the neighbour behind a bus address
 * @vfu: server
 * @address: bus address, set by the guest's driver
 * @length: bytes
 * @write: it will be written
 * @offset: receives the offset in the neighbour's memory
 *
 * As vfu_locate(). -EFAULT: it is other memory.
 */
int vfu_locate_neighbour(struct vfu *vfu, uint64_t address, size_t length, bool write,
			 uint64_t *offset);

/**
 * vfu_dma_flush() - wait until all posted writes have arrived
 * @vfu: server
 * @address: readable guest memory, 4 bytes
 *
 * A read pushes the posted writes before it, as on PCI Express.
 */
int vfu_dma_flush(struct vfu *vfu, uint64_t address);

/**
 * vfu_copy_whole() - copy to or from memory with concurrent readers
 * @length: 4 or 8 bytes, aligned on both sides, are one access
 */
void vfu_copy_whole(void *to, const void *from, size_t length);

/**
 * vfu_interrupt() - send an MSI
 *
 * The interrupt may overtake posted writes; call vfu_dma_flush() first if that matters.
 * -ENXIO: the guest has not enabled @vector.
 */
int vfu_interrupt(struct vfu *vfu, unsigned int vector);

/** vfu_statistics() - a snapshot of the counters. */
void vfu_statistics(struct vfu *vfu, struct vfu_statistics *statistics);

#endif /* VFIO_USER_H */
