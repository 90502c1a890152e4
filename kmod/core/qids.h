/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool of queue identifiers of one controller, for the CPU and for peers.
 */
#ifndef _NVMEP_QIDS_H
#define _NVMEP_QIDS_H

#include <linux/cache.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct nvmep_ctrl;
struct nvmep_qid_mapper;
struct nvmep_quarantine;
struct seq_file;

/**
 * enum nvmep_qid_owner - kind of queue that an identifier is allocated for
 * @NVMEP_QID_CPU: a queue of the CPU
 * @NVMEP_QID_PEER: a peer queue pair; counts against &nvmep_qids.peer_max
 * @NVMEP_QID_SHARED: a queue of the kernel for mediated queue pairs.  It may have
 *	been a peer's, counts neither as the CPU's nor as a peer's, and is blocked
 *	by nvmep_qids_block_shared() only
 */
enum nvmep_qid_owner {
	NVMEP_QID_CPU,
	NVMEP_QID_PEER,
	NVMEP_QID_SHARED,
};

/**
 * struct nvmep_qid_usage - statistics of the pool of queue identifiers
 * @total: granted by the controller
 * @cpu: in use by the CPU, without those of mediated queue pairs
 * @peer_max: limit of peers
 * @peer_free: of those, available to the calling process now
 * @quarantined: not in use, but a process other than the caller may still store
 *	to their doorbells
 */
struct nvmep_qid_usage {
	unsigned int total;
	unsigned int cpu;
	unsigned int peer_max;
	unsigned int peer_free;
	unsigned int quarantined;
};

/**
 * struct nvmep_doorbell_count - number of doorbell writes by the CPU
 * @sq: to the tail doorbell; guarded by &nvmep_queue.sq_lock
 * @cq: to the head doorbell; guarded by &nvmep_queue.cq_lock
 *
 * Those of a peer's queue pair in relay mode are guarded by
 * &nvmep_ctrl.relay_lock.
 *
 * Read with READ_ONCE().  Aligned, so that queues of different CPUs do not
 * share a cache line.
 */
struct nvmep_doorbell_count {
	u64 sq;
	u64 cq;
} ____cacheline_aligned_in_smp;

/**
 * struct nvmep_qid - history of an identifier that is or was a peer's
 * @freed: &nvmep_quarantine.freed when it or a dma-buf of its doorbells was last
 *	released; 0 if it never was a peer's
 * @exports: open dma-bufs of its doorbells
 * @mappers: processes that have mapped its doorbells, see struct
 *	nvmep_qid_mapper
 *
 * Guarded by &nvmep_quarantine.lock.
 */
struct nvmep_qid {
	u64 freed;
	unsigned int exports;
	struct nvmep_qid_mapper *mappers;
};

/**
 * struct nvmep_qids - the pool of queue identifiers of one controller
 * @quarantine: const, reference: of the physical range of BAR0.  Its lock guards
 *	all members but @doorbells and @capacity
 * @used: bit n: identifier n is in use; bit 0, the admin queue, is always set
 * @peer: bit n: it is in use by a peer
 * @shared: bit n: it is in use for mediated queue pairs
 * @doorbells: array of @capacity, see struct nvmep_doorbell_count for its locks
 * @total: identifiers 1 to @total may be allocated; read racily by READ_ONCE()
 * @capacity: const: bits in @used, @peer and @shared; @total is below it
 * @peer_count: identifiers in use by peers
 * @peer_max: limit of @peer_count
 * @shared_count: bits in @shared
 * @peers_blocked: peers get no identifier now, see nvmep_qids_block_peers()
 * @shared_blocked: nor do mediated queue pairs, see nvmep_qids_block_shared()
 */
struct nvmep_qids {
	struct nvmep_quarantine *quarantine;
	unsigned long *used;
	unsigned long *peer;
	unsigned long *shared;
	struct nvmep_doorbell_count *doorbells;
	unsigned int total;
	unsigned int capacity;
	unsigned int peer_count;
	unsigned int peer_max;
	unsigned int shared_count;
	bool peers_blocked;
	bool shared_blocked;
};

int nvmep_qids_init(struct nvmep_ctrl *ctrl, unsigned int capacity);
void nvmep_qids_exit(struct nvmep_ctrl *ctrl);
void nvmep_quarantines_exit(void);
void nvmep_qids_grant(struct nvmep_ctrl *ctrl, unsigned int granted,
		      unsigned int peer_max);
int nvmep_qid_alloc(struct nvmep_ctrl *ctrl, enum nvmep_qid_owner owner);
void nvmep_qid_free(struct nvmep_ctrl *ctrl, u16 qid, bool exported);
void nvmep_qid_export(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qid_unexport(struct nvmep_ctrl *ctrl, u16 qid);
int nvmep_qid_add_mapper(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qids_warn_quarantine(struct nvmep_ctrl *ctrl);
void nvmep_quarantines_show(struct seq_file *seq);
void nvmep_qids_show_quarantine(struct nvmep_ctrl *ctrl, struct seq_file *seq);
int nvmep_qids_block_peers(struct nvmep_ctrl *ctrl);
void nvmep_qids_unblock_peers(struct nvmep_ctrl *ctrl);
int nvmep_qids_block_shared(struct nvmep_ctrl *ctrl);
unsigned int nvmep_qids_for_cpu(struct nvmep_ctrl *ctrl);
unsigned int nvmep_qids_reachable(struct nvmep_ctrl *ctrl);
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage);
bool nvmep_qid_granted(struct nvmep_ctrl *ctrl, u16 qid);
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid);
u16 nvmep_qid_next_shared(struct nvmep_ctrl *ctrl, u16 qid);

#endif /* _NVMEP_QIDS_H */
