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

/* The reason of a reset. */
enum vfu_reset {
	VFU_RESET_FUNCTION,	/* function level reset, by config space */
	VFU_RESET_BUS,		/* power-on, reboot, secondary bus reset */
	VFU_RESET_CLIENT_GONE,	/* the virtual machine has disconnected */
};

struct vfu_bar {
	uint64_t size;		/* a power of two; 0 for none */
	bool is_64bit;		/* also takes the next BAR */
	bool prefetchable;
	int fd;			/* memory that the guest maps; -1: each access is a callback */
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
 * @config_read: read config space; returns false for what the server shall read instead. May be
 *	NULL. Offsets from 0xc0 on are behind all capabilities
 * @config_write: write it, as @config_read
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
	void (*bar_read)(void *context, unsigned int bar, uint64_t offset, void *data,
			 uint32_t count);
	void (*bar_write)(void *context, unsigned int bar, uint64_t offset, const void *data,
			  uint32_t count);
	void (*reset)(void *context, enum vfu_reset why);
	bool (*config_read)(void *context, uint64_t offset, void *data, uint32_t count);
	bool (*config_write)(void *context, uint64_t offset, const void *data, uint32_t count);
	void (*unmapped)(void *context, uint64_t address, uint64_t size);
};

/* Counters of bus transactions since vfu_create(). */
enum vfu_counter {
	VFU_MAPPED_READS,	/* DMA reads of mapped guest memory */
	VFU_MAPPED_WRITES,
	VFU_MESSAGE_READS,	/* DMA reads by message */
	VFU_MESSAGE_WRITES,	/* DMA writes by message, with a reply */
	VFU_POSTED_WRITES,
	VFU_POSTED_FAILED,	/* posted writes that the client reported as failed */
	VFU_BYTES_WRITTEN,
	VFU_COUNTERS,
};

struct vfu;

/**
 * vfu_create() - create a server
 * @device: its device; must exist as long as the server
 * @context: passed to the callbacks
 * @neighbour: memory of another device's process, kept open by the caller; -1 for none
 *
 * The client maps the memory BAR of another vfio-user device without a file. A mapping without
 * a file and of the size of @neighbour is assumed to be that BAR, and accessed directly.
 *
 * Returns NULL if memory is short.
 */
struct vfu *vfu_create(const struct vfu_device *device, void *context, int neighbour);
void vfu_destroy(struct vfu *vfu);

/* Create a listening socket at @path, replacing a stale one. */
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

#define VFU_DMA_MESSAGE	(1U << 0)	/* by message even if memory is mapped */

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
 * access does not wait for posted writes; a read by message does, as on PCI Express.
 *
 * -EACCES: bus mastering is off, or the mapping forbids it. -EFAULT: nothing is mapped.
 * -ECANCELED: reset. -ENOTCONN: no client. -ETIMEDOUT: no reply.
 */
int vfu_dma_read(struct vfu *vfu, uint64_t address, void *data, size_t length,
		 unsigned int flags);
int vfu_dma_write(struct vfu *vfu, uint64_t address, const void *data, size_t length,
		  unsigned int flags);

/*
 * Posted write of 1 to 64 bytes by message, like on PCI Express; registers need 4 or 8 aligned
 * bytes. Posted writes arrive in order. Occasionally one waits for its reply, to limit the backlog
 * of the client. Failures are counted in VFU_POSTED_FAILED; only -EACCES and -ENOTCONN are returned.
 */
int vfu_dma_post(struct vfu *vfu, uint64_t address, const void *data, size_t length);

/* Location of the memory behind a bus address. */
struct vfu_place {
	int fd;
	uint64_t device;	/* st_dev and st_ino of the file */
	uint64_t inode;
	bool neighbour;		/* the file is the neighbour's memory */
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
 * The result, also its file, is valid until the callback @unmapped returns. Errors as for
 * vfu_dma_read(); -EFAULT also for memory without a file.
 */
int vfu_locate(struct vfu *vfu, uint64_t address, size_t length, bool write,
	       struct vfu_place *place);

/* Copy to or from memory with concurrent readers: 4 or 8 aligned bytes are one access. */
void vfu_copy_whole(void *to, const void *from, size_t length);

/*
 * Send an MSI. It may overtake posted writes; read by message first if that matters. -ENXIO: the
 * guest has not enabled @vector.
 */
int vfu_interrupt(struct vfu *vfu, unsigned int vector);

uint64_t vfu_counted(struct vfu *vfu, enum vfu_counter counter);

#endif /* VFIO_USER_H */
