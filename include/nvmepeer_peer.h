/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * From the host library to the device library: the geometry of a queue pair in the
 * address space of its peer, and the CPU as the peer, for tests and for programs that
 * submit commands without a system call.
 */
#ifndef NVMEPEER_PEER_H
#define NVMEPEER_PEER_H

#include <nvmepeer.h>
#include <nvmepeer_device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The peer and the placement of its data, for nvmepeer_geometry_build(). */
enum nvmepeer_view {
	NVMEPEER_VIEW_CPU = 1u << 0,		/* the peer is the CPU, not a device */
	NVMEPEER_VIEW_DATA_IN_HOST = 1u << 1,	/* data is in host memory */
	/* data is in memory of another device than the completion ring */
	NVMEPEER_VIEW_DATA_ELSEWHERE = 1u << 2,
	/* data is in memory of a device; the default if no flag says where data is */
	NVMEPEER_VIEW_DATA_IN_DEVICE = 1u << 3,
	/*
	 * the peer is in another process, which receives descriptors: the geometry has no
	 * addresses, and the doorbells are offsets in the exported doorbell pages
	 */
	NVMEPEER_VIEW_DESCRIPTORS = 1u << 4,
};

/**
 * nvmepeer_data_view() - where data is, for nvmepeer_geometry_build()
 * @qp_info: NVME_PEER_QP_INFO of the queue pair
 * @data: nvme_peer_buf_import.pci_address of the data memory
 *
 * Returns NVMEPEER_VIEW_DATA_IN_HOST or NVMEPEER_VIEW_DATA_IN_DEVICE, the latter with
 * NVMEPEER_VIEW_DATA_ELSEWHERE if that device does not hold the completion ring.  A caller
 * with several buffers combines their results by OR.  Data in host memory and in devices
 * then is accepted only if the completion ring is beside one part and the peer can read the
 * other back.  The word that it reads flushes the data of one device: data in several
 * devices without the completion ring needs a queue pair for each.  In
 * NVME_PEER_MODE_MEDIATED the kernel orders completions behind the data of all buffers, so
 * data may be anywhere.
 */
uint32_t nvmepeer_data_view(const struct nvme_peer_qp_info *qp_info,
			    const struct nvme_peer_pci_address *data);

/**
 * nvmepeer_geometry_build() - complete a geometry from the answers of the kernel
 * @info: NVME_PEER_INFO of the controller
 * @qp_info: NVME_PEER_QP_INFO of a queue pair on it
 * @ns: namespace for the peer: its identifier and block size
 * @view: NVMEPEER_VIEW_*; 0 is a GPU with its data in its own memory.  Take the part
 *	about the data from nvmepeer_data_view(): a completion in one GPU may overtake
 *	data in another one
 * @doorbell_pages: address of the exported doorbell pages for the peer; 0 with
 *	NVMEPEER_VIEW_DESCRIPTORS, for nvmepeer_cuda_queues_from_fds()
 * @geometry: in: the peer's addresses: sq, cq, status, control, state, list_area,
 *	list_memory, readback, and list_bytes, cids, timeout_ns and reserve, and
 *	NVMEPEER_ONE_RANGE of flags, which are 0 otherwise; out: all other fields
 * @size: of @geometry
 *
 * Makes no system call: for programs that make the ioctls themselves, and for queue pairs
 * of other processes.  The first three structures carry their sizes.
 *
 * Returns 0; -EINVAL if the device library would refuse the result, such as
 * NVMEPEER_ONE_RANGE on a controller without SGLs; -E2BIG if @geometry
 * uses a field that this library does not support; -EOPNOTSUPP if the namespace has
 * metadata.
 */
int nvmepeer_geometry_build(const struct nvme_peer_info *info,
			    const struct nvme_peer_qp_info *qp_info,
			    const struct nvmepeer_ns_info *ns, uint32_t view,
			    uint64_t doorbell_pages,
			    struct nvmepeer_geometry *geometry, size_t size);

/**
 * nvmepeer_qp_geometry() - nvmepeer_geometry_build() with current answers of the kernel
 * @ctrl: controller
 * @qp: queue pair on it
 * @ns: namespace for the peer
 * @view: as above
 * @doorbell_pages: as above
 * @geometry: as above
 * @size: as above
 *
 * Returns 0, an error as above, or an error of nvmepeer_info() or nvmepeer_qp_info().
 */
int nvmepeer_qp_geometry(struct nvmepeer *ctrl, struct nvmepeer_qp *qp,
			 const struct nvmepeer_ns_info *ns, uint32_t view,
			 uint64_t doorbell_pages,
			 struct nvmepeer_geometry *geometry, size_t size);

/** struct nvmepeer_cpu_peer - a queue pair whose peer is this process. */
struct nvmepeer_cpu_peer;

/**
 * nvmepeer_cpu_peer_open() - create a queue pair with the CPU as its peer
 * @ctrl: controller
 * @ns: namespace
 * @entries: of each ring, a power of two
 * @data_bytes: data memory, rounded up to controller pages
 * @peer: receives the peer, to be closed with nvmepeer_cpu_peer_close() before @ctrl
 *
 * Requires CAP_SYS_RAWIO, and a kernel that supports nvmepeer_hostmem_alloc().  The data
 * memory and the PRP lists count towards RLIMIT_MEMLOCK (-ENOBUFS above it) until the
 * peer is closed.  If other queue pairs of @ctrl keep the driver from releasing them then,
 * they count until a later open or close of a CPU peer on @ctrl can release them, or until
 * @ctrl is closed.
 */
int nvmepeer_cpu_peer_open(struct nvmepeer *ctrl,
			   const struct nvmepeer_ns_info *ns, uint32_t entries,
			   size_t data_bytes, struct nvmepeer_cpu_peer **peer);
void nvmepeer_cpu_peer_close(struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_queue() - for the calls of <nvmepeer_device.h>, from any thread. */
const struct nvmepeer_queue *nvmepeer_cpu_peer_queue(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_data() - the data memory, for those calls. */
const struct nvmepeer_buffer *nvmepeer_cpu_peer_data(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_address() - address of the data memory in this process. */
void *nvmepeer_cpu_peer_address(const struct nvmepeer_cpu_peer *peer);

/** nvmepeer_cpu_peer_qp() - the queue pair, owned by @peer. */
struct nvmepeer_qp *nvmepeer_cpu_peer_qp(const struct nvmepeer_cpu_peer *peer);

/**
 * nvmepeer_cpu_peer_recover() - recover a queue pair after a loss
 * @peer: peer; all calls on its queue must have returned, and no new one may begin before
 *	this call returns
 * @timeout_ms: longest time to wait for the controller
 *
 * Waits until the controller is ready, then re-arms the queue pair and its state.  One that
 * is LIVE but cannot be used is quiesced first: after a timeout in exclusive mode, with an
 * exclusive owner that has not closed it, or after nvmepeer_queue_quiesce().
 * Copies of struct nvmepeer_queue stay valid; tokens of earlier commands and every struct
 * nvmepeer_exclusive do not.
 *
 * Returns 0 if the queue pair is LIVE, -ETIMEDOUT, -ESHUTDOWN if it cannot be re-armed,
 * or another error of nvmepeer_qp_rearm().
 */
int nvmepeer_cpu_peer_recover(struct nvmepeer_cpu_peer *peer, int timeout_ms);

/**
 * nvmepeer_cpu_peer_read() - read, and repeat the read after a loss
 * @peer: peer; all threads must use this call and nvmepeer_cpu_peer_write() only
 * @offset: offset in the data memory
 * @lba: first logical block
 * @blocks: number of blocks
 * @timeout_ms: longest time to wait for the controller after each loss
 *
 * After a loss one of the threads recovers the queue pair, once the calls of all threads
 * have returned.
 *
 * Returns the status of nvmepeer_read(); NVMEPEER_E_LOST if the recovery failed.
 */
int nvmepeer_cpu_peer_read(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			   uint32_t blocks, int timeout_ms);

/**
 * nvmepeer_cpu_peer_write() - write, without repetition after a loss
 *
 * As nvmepeer_cpu_peer_read(), but returns NVMEPEER_E_LOST after a loss, with the queue
 * pair recovered if possible.  The write may have been executed, and a repetition could
 * overwrite later writes to the same blocks.
 */
int nvmepeer_cpu_peer_write(struct nvmepeer_cpu_peer *peer, uint64_t offset, uint64_t lba,
			    uint32_t blocks, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* NVMEPEER_PEER_H */
