/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool of queue identifiers of one controller, which the CPU and the peers
 * share.
 */
#ifndef _NVMEP_QIDS_H
#define _NVMEP_QIDS_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct nvmep_ctrl;

/**
 * enum nvmep_qid_owner - who a queue identifier is taken for
 * @NVMEP_QID_CPU: the kernel's own queues
 * @NVMEP_QID_PEER: a peer queue pair; counts against the peers' share
 */
enum nvmep_qid_owner {
	NVMEP_QID_CPU,
	NVMEP_QID_PEER,
};

/**
 * struct nvmep_qid_usage - how the pool of queue identifiers stands
 * @total: granted by the controller
 * @cpu: taken by the kernel
 * @peer_max: most that peers may have
 * @peer_free: of those, free now
 */
struct nvmep_qid_usage {
	unsigned int total;
	unsigned int cpu;
	unsigned int peer_max;
	unsigned int peer_free;
};

/**
 * struct nvmep_doorbell_count - writes of the CPU to a queue pair's doorbells
 * @sq: to the tail doorbell; changes under the lock of the submitting queue
 * @cq: to the head doorbell; likewise
 */
struct nvmep_doorbell_count {
	u64 sq;
	u64 cq;
};

/**
 * struct nvmep_qids - the pool of queue identifiers of one controller
 * @lock: guards all of this but @doorbells
 * @used: bit n: identifier n is taken; bit 0, the admin queue, always is
 * @peer: bit n: it is taken for a peer
 * @doorbells: one for every identifier, see struct nvmep_doorbell_count
 * @total: identifiers 1 to @total may be given out
 * @capacity: const: bits in @used and @peer; @total never exceeds it
 * @cpu: identifiers that the kernel has
 * @peer_count: identifiers that peers have
 * @peer_max: most that they may have
 * @peers_barred: they get none now, see nvmep_qids_bar_peers()
 */
struct nvmep_qids {
	spinlock_t lock;	/* see above */
	unsigned long *used;
	unsigned long *peer;
	struct nvmep_doorbell_count *doorbells;
	unsigned int total;
	unsigned int capacity;
	unsigned int cpu;
	unsigned int peer_count;
	unsigned int peer_max;
	bool peers_barred;
};

int nvmep_qids_init(struct nvmep_ctrl *ctrl, unsigned int capacity);
void nvmep_qids_exit(struct nvmep_ctrl *ctrl);
void nvmep_qids_grant(struct nvmep_ctrl *ctrl, unsigned int granted,
		      unsigned int peer_max);
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner);
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid);
int nvmep_qids_bar_peers(struct nvmep_ctrl *ctrl);
void nvmep_qids_admit_peers(struct nvmep_ctrl *ctrl);
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage);
bool nvmep_qid_granted(struct nvmep_ctrl *ctrl, u16 qid);
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid);

#endif /* _NVMEP_QIDS_H */
