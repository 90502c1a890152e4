/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The CPU as the peer: what peer.c makes and again.c uses. */
#ifndef NVMEPEER_LIB_PEER_H
#define NVMEPEER_LIB_PEER_H

#include <nvmepeer_peer.h>

#include "internal.h"

enum { PEER_MAPPINGS = NVME_PEER_EXPORT_REQUEST + 1 };

/**
 * struct nvmepeer_cpu_peer - a queue pair whose peer is this process
 * @queue: for the calls of <nvmepeer_device.h>
 * @data: the data memory, for those calls
 * @data_address: the same memory in this process
 * @qp: the queue pair
 * @ctrl: the controller, the caller's
 * @handle: of the imported memory
 * @memory: PRP lists, and the data behind them
 * @mappings: by enum nvme_peer_export
 * @pages: address of each controller page of @memory
 * @state: book-keeping of @queue
 * @gathering: the threads that use the queue pair
 *
 * All but what @queue, @data_address and @gathering lead to stays as it was made.
 */
struct nvmepeer_cpu_peer {
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer data;
	void *data_address;
	struct nvmepeer_qp *qp;
	struct nvmepeer *ctrl;
	uint32_t handle;
	struct nvmepeer_hostmem *memory;
	struct nvmepeer_mapping *mappings[PEER_MAPPINGS];
	uint64_t *pages;
	void *state;
	struct nvmepeer_gathering *gathering;
};

#endif /* NVMEPEER_LIB_PEER_H */
