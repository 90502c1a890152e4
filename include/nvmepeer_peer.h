/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * From the host library to the device library: a queue pair's geometry as its
 * peer sees it, and the CPU itself as the peer, for tests and for programs
 * that want a queue of their own without a system call per command.
 */
#ifndef NVMEPEER_PEER_H
#define NVMEPEER_PEER_H

#include <nvmepeer.h>
#include <nvmepeer_device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who the peer is and where its data lies, for nvmepeer_geometry_build(). */
enum nvmepeer_view {
	NVMEPEER_VIEW_CPU = 1u << 0,		/* the CPU, not a device */
	NVMEPEER_VIEW_DATA_IN_HOST = 1u << 1,	/* data in host memory */
};

/**
 * nvmepeer_geometry_build() - complete a geometry from what the kernel said
 * @info: NVME_PEER_INFO of the controller
 * @qp_info: NVME_PEER_QP_INFO of a queue pair on it
 * @ns: namespace the peer is to use: its identifier and block size
 * @view: NVMEPEER_VIEW_*; 0 is a GPU with its data in its own memory
 * @doorbell_pages: first byte of the exported doorbell pages, as the peer sees it
 * @geometry: in: the peer's addresses: sq, cq, status, request, state, list_area,
 *	list_memory, readback, and list_bytes, cids and timeout_ns;
 *	out: everything else
 * @size: of @geometry
 *
 * Asks the kernel nothing: for whoever does the ioctls itself, or for a queue
 * pair that belongs to another process.  The first three say their size themselves.
 *
 * Returns 0, or -EINVAL if the device library would refuse the result;
 * nvmepeer_explain() tells why.
 */
int nvmepeer_geometry_build(const struct nvme_peer_info *info,
			    const struct nvme_peer_qp_info *qp_info,
			    const struct nvmepeer_ns_info *ns, uint32_t view,
			    uint64_t doorbell_pages,
			    struct nvmepeer_geometry *geometry, size_t size);

/**
 * nvmepeer_qp_geometry() - nvmepeer_geometry_build() with what the kernel says now
 * @ctrl: controller
 * @qp: queue pair on it
 * @ns: namespace the peer is to use
 * @view: as above
 * @doorbell_pages: as above
 * @geometry: as above
 * @size: as above
 *
 * Returns 0, -EINVAL as above, or what the kernel answered.
 */
int nvmepeer_qp_geometry(struct nvmepeer *ctrl, struct nvmepeer_qp *qp,
			 const struct nvmepeer_ns_info *ns, uint32_t view,
			 uint64_t doorbell_pages,
			 struct nvmepeer_geometry *geometry, size_t size);

/** struct nvmepeer_cpu_peer - a queue pair whose peer is this process. */
struct nvmepeer_cpu_peer;

/**
 * nvmepeer_cpu_peer_open() - queue pair, rings, doorbell and data memory
 * @ctrl: controller
 * @ns: namespace
 * @entries: of each ring, a power of two
 * @data_bytes: data memory, rounded up to controller pages
 * @peer: receives it; undo with nvmepeer_cpu_peer_close() before @ctrl closes
 *
 * Needs CAP_SYS_RAWIO, and a kernel where nvmepeer_hostmem_alloc() works.
 */
int nvmepeer_cpu_peer_open(struct nvmepeer *ctrl,
			   const struct nvmepeer_ns_info *ns, uint32_t entries,
			   size_t data_bytes, struct nvmepeer_cpu_peer **peer);
void nvmepeer_cpu_peer_close(struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_queue() - for the calls of <nvmepeer_device.h>, from any thread. */
const struct nvmepeer_queue *nvmepeer_cpu_peer_queue(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_data() - the data memory, for those calls. */
const struct nvmepeer_buffer *nvmepeer_cpu_peer_data(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_address() - the same memory in this process. */
void *nvmepeer_cpu_peer_address(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_qp() - the queue pair, owned by @peer. */
struct nvmepeer_qp *nvmepeer_cpu_peer_qp(const struct nvmepeer_cpu_peer *peer);

/**
 * nvmepeer_cpu_peer_recover() - go on after the queue pair was lost
 * @peer: all calls on its queue have returned, NVMEPEER_E_LOST or not, and none is
 *	made before this returns
 * @timeout_ms: how long to wait for the controller
 *
 * Waits until the controller is ready, re-arms the queue pair and its book-keeping.
 * All copies of its queue's handle stay good; tokens from before name nothing.
 *
 * Returns 0 if the queue pair is LIVE; -ETIMEDOUT; -ESHUTDOWN: it cannot come back;
 * or what nvmepeer_qp_rearm() says.
 */
int nvmepeer_cpu_peer_recover(struct nvmepeer_cpu_peer *peer, int timeout_ms);

/**
 * nvmepeer_cpu_peer_read() - read, and again each time that the queue pair was lost
 * @peer: all of its threads use this call and nvmepeer_cpu_peer_write(), and no other
 *	of its queue
 * @offset: in the data memory, bytes
 * @lba: first logical block
 * @blocks: how many
 * @timeout_ms: after each loss, how long to wait for the controller
 *
 * After a loss one of the threads recovers the queue pair, when all have come back.
 *
 * Returns what nvmepeer_read() does; NVMEPEER_E_LOST if the queue pair did not come
 * back, and nvmepeer_cpu_peer_recover() says why.
 */
int nvmepeer_cpu_peer_read(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			   uint32_t blocks, int timeout_ms);

/**
 * nvmepeer_cpu_peer_write() - write, once
 *
 * As nvmepeer_cpu_peer_read(), but NVMEPEER_E_LOST is for the caller to deal with: the
 * write may have been executed, and what others have written to the same blocks since
 * would be undone.  The queue pair is back by then, if it comes back.
 */
int nvmepeer_cpu_peer_write(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			    uint32_t blocks, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_PEER_H */
