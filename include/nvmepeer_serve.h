/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Served queue pairs: a thread of this process executes the commands of a queue pair by
 * io_uring on descriptors of any kind, with the rights of this process.  Device code that
 * runs on a queue pair of a controller so reaches dm, md, NVMe over Fabrics and files of
 * every file system.  No controller and no kernel module is needed.
 *
 * Rings, doorbells, status and control page lie in memory of a memfd.  The data lies in
 * buffers of host memory that the caller adds; a peer addresses it by the handle of the
 * buffer, and a GPU copies it from there.
 *
 * Link with -luring.
 */
#ifndef NVMEPEER_SERVE_H
#define NVMEPEER_SERVE_H

#include <nvmepeer_peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most namespaces, and most buffers, of a served queue pair. */
enum { NVMEPEER_SERVE_NAMESPACES = 64, NVMEPEER_SERVE_BUFFERS = 64 };

/** struct nvmepeer_serve - a served queue pair. */
struct nvmepeer_serve;

/**
 * struct nvmepeer_serve_options - a served queue pair
 * @size: sizeof(struct nvmepeer_serve_options)
 * @flags: 0
 * @entries: of each ring, a power of two from 2 to 32768
 * @depth: most commands that the kernel has at a time, up to 4096; 0: 64
 * @max_transfer: most bytes of a command, a multiple of 4096 up to 16 MiB; 0: 1 MiB.  The
 *	pieces of memory of a command are at most 1024
 * @reserved: 0
 */
struct nvmepeer_serve_options {
	uint32_t size;
	uint32_t flags;
	uint32_t entries;
	uint32_t depth;
	uint32_t max_transfer;
	uint32_t reserved;
};

/**
 * nvmepeer_serve_create() - create a served queue pair
 * @options: size, entries and limits
 * @serve: receives it, LIVE and without namespaces and buffers
 *
 * Returns 0; -EINVAL for an invalid option; -E2BIG if @options has a field that this
 * library does not support; an errno of memfd_create(2), or of io_uring_setup(2): -ENOSYS,
 * -EPERM.
 */
int nvmepeer_serve_create(const struct nvmepeer_serve_options *options,
			  struct nvmepeer_serve **serve);

/**
 * nvmepeer_serve_destroy() - end a served queue pair
 * @serve: nvmepeer_serve_run() has returned; or NULL
 *
 * The status page reports GONE to peers that have mapped it.
 */
void nvmepeer_serve_destroy(struct nvmepeer_serve *serve);

/**
 * nvmepeer_serve_add_fd() - add a namespace
 * @serve: a queue pair that is not running
 * @fd: block device or regular file; duplicated.  Its access mode decides whether peers
 *	may write.  With O_DIRECT data is not cached, and buffers must have the alignment
 *	that the descriptor requires
 * @block_size: bytes of a logical block, a power of two from 512 to 65536; 0: that of the
 *	block device, or what direct I/O of the file requires, or 512
 * @ns: receives the identifier, from 1 on, and the format
 * @size: of @ns
 *
 * The namespace has the whole blocks that the descriptor has now.  Peers get no access
 * beyond them if it grows, and the status LBA Out of Range if it has become shorter.
 *
 * Returns 0; -EINVAL for an invalid block size; -ENOTBLK if @fd is neither; -ENOSPC if
 * there are NVMEPEER_SERVE_NAMESPACES; -EBUSY while the queue pair is running; -ENODATA if
 * there is not one block; or an errno of the descriptor.
 */
int nvmepeer_serve_add_fd(struct nvmepeer_serve *serve, int fd, uint32_t block_size,
			  struct nvmepeer_ns_info *ns, size_t size);

/**
 * nvmepeer_serve_add_buffer() - add data memory, for data, PRP lists or SGL segments
 * @serve: a queue pair that is not running
 * @address: memory of this process, aligned to 4096 bytes.  It must stay mapped until
 *	nvmepeer_serve_destroy()
 * @length: bytes, up to 2^48
 * @buffer: receives the buffer for the calls of the device library
 *
 * Returns 0; -EINVAL for an invalid range; -ENOSPC if there are NVMEPEER_SERVE_BUFFERS;
 * -EBUSY while the queue pair is running.
 */
int nvmepeer_serve_add_buffer(struct nvmepeer_serve *serve, void *address, uint64_t length,
			      struct nvmepeer_buffer *buffer);

/**
 * nvmepeer_serve_geometry() - complete a geometry
 * @serve: the queue pair
 * @ns: a namespace of nvmepeer_serve_add_fd()
 * @view: NVMEPEER_VIEW_CPU if the peer is a CPU, and NVMEPEER_VIEW_DESCRIPTORS if it is in
 *	another process or on a GPU: it maps what nvmepeer_serve_export() returns
 * @geometry: in: state, cids and timeout_ns; list_area, list_memory and list_bytes for PRP
 *	lists, which only nvmepeer_scatter() needs; out: all other fields
 * @size: of @geometry
 *
 * Without NVMEPEER_VIEW_DESCRIPTORS the addresses are those of this process.
 *
 * Returns 0 or an error of nvmepeer_geometry_build().
 */
int nvmepeer_serve_geometry(struct nvmepeer_serve *serve, const struct nvmepeer_ns_info *ns,
			    uint32_t view, struct nvmepeer_geometry *geometry, size_t size);

/**
 * nvmepeer_serve_export() - a descriptor of a part, for mmap() by another process or a GPU
 * @serve: the queue pair
 * @what: the part; the doorbells are memory
 * @exported: receives descriptor, offset and length; the descriptor is that of all parts
 * @size: of @exported
 *
 * Returns 0, -EINVAL or an errno of fcntl(2).
 */
int nvmepeer_serve_export(struct nvmepeer_serve *serve, enum nvme_peer_export what,
			  struct nvmepeer_export *exported, size_t size);

/**
 * nvmepeer_serve_run() - execute commands in the calling thread
 * @serve: a queue pair that is not running
 *
 * A command is copied once and then checked; one that is malformed completes with an NVMe
 * status.  Commands complete in any order.  The thread polls, and sleeps for short and
 * then for up to 1 ms while there is nothing to do.
 *
 * Returns when all commands that it has begun have completed: 0 after
 * nvmepeer_serve_stop(); the queue pair is LIVE and can be run again.  After a loss it is
 * QUIESCED: -EPROTO after a doorbell with an invalid value, -ECANCELED on request of
 * a peer (nvmepeer_queue_quiesce()); nvmepeer_serve_rearm() makes it LIVE.  It is FAILED
 * after an error of io_uring_enter(2).  -EBUSY while it is running; -ESHUTDOWN if it is not
 * LIVE.
 */
int nvmepeer_serve_run(struct nvmepeer_serve *serve);

/** nvmepeer_serve_stop() - make nvmepeer_serve_run() return; also in a signal handler. */
void nvmepeer_serve_stop(struct nvmepeer_serve *serve);

/**
 * nvmepeer_serve_kick() - wake the thread that serves
 *
 * For a CPU that has stored to a doorbell, issued a full barrier and found
 * nvme_peer_status.poller_asleep set.  Without it the thread finds the command within 1 ms.
 */
void nvmepeer_serve_kick(struct nvmepeer_serve *serve);

/**
 * nvmepeer_serve_rearm() - make a queue pair LIVE after a loss
 * @serve: QUIESCED and not running; no peer is in a call on it
 * @losses: receives the argument of nvmepeer_queue_rearm()
 *
 * An nvmepeer_serve_stop() before it does not end the next nvmepeer_serve_run().
 *
 * Returns 0, -EALREADY if it is LIVE, -ESHUTDOWN if it has failed, or -EBUSY while it is
 * running.
 */
int nvmepeer_serve_rearm(struct nvmepeer_serve *serve, uint32_t *losses);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_SERVE_H */
