/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The CPU as the peer: cpu_peer.c makes it, rearm.c recovers it. */
#ifndef NVMEPEER_LIB_CPU_PEER_H
#define NVMEPEER_LIB_CPU_PEER_H

#include <pthread.h>

#include <nvmepeer_peer.h>

#include "internal.h"

enum { PEER_MAPPINGS = NVME_PEER_EXPORT_CONTROL + 1 };

/**
 * struct nvmepeer_cpu_peer - a queue pair whose peer is this process
 * @queue: for the calls of <nvmepeer_device.h>
 * @data: the data memory, for those calls
 * @data_address: the same memory in this process
 * @qp: the queue pair
 * @ctrl: the controller; owned by the caller
 * @import: has the buffer handle of @memory, 0 while there is none
 * @memory: PRP lists, followed by the data
 * @mappings: by enum nvme_peer_export
 * @pages: DMA address of each controller page of @memory
 * @state: state of @queue
 * @in_use: held for reading during a call on @queue, for writing during a recovery
 * @losses: recoveries so far, successful or not; written with @in_use held for writing
 * @recover_result: result of the last one; protected like @losses
 *
 * The fields before @in_use are constant once the peer is open.
 */
struct nvmepeer_cpu_peer {
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer data;
	void *data_address;
	struct nvmepeer_qp *qp;
	struct nvmepeer *ctrl;
	struct left_buffer *import;
	struct nvmepeer_hostmem *memory;
	struct nvmepeer_mapping *mappings[PEER_MAPPINGS];
	uint64_t *pages;
	void *state;
	pthread_rwlock_t in_use;
	unsigned int losses;
	int recover_result;
};

#endif /* NVMEPEER_LIB_CPU_PEER_H */
