/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool of queue identifiers of one controller, which the CPU and the peers
 * share.
 */
#ifndef _NVMEP_QIDS_H
#define _NVMEP_QIDS_H

#include <linux/cache.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct nvmep_ctrl;
struct nvmep_qid_writer;
struct seq_file;

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
 * @peer_free: of those, free for the caller now
 * @quarantined: nobody's, but somebody other than the caller may still store to
 *	their doorbells
 */
struct nvmep_qid_usage {
	unsigned int total;
	unsigned int cpu;
	unsigned int peer_max;
	unsigned int peer_free;
	unsigned int quarantined;
};

/**
 * struct nvmep_doorbell_count - writes of the CPU to a queue pair's doorbells
 * @sq: to the tail doorbell; changes under the lock of the submitting queue
 * @cq: to the head doorbell; likewise
 *
 * Each write is counted: queues of different processors share no cache line here.
 */
struct nvmep_doorbell_count {
	u64 sq;
	u64 cq;
} ____cacheline_aligned_in_smp;

/**
 * struct nvmep_qid - an identifier that is or was a peer's
 * @freed: nvmep_qids.freed when its doorbells were last let go of; 0 for one that
 *	never was a peer's
 * @exports: dma-bufs of its doorbells that are open
 * @writers: processes that have mapped them, see struct nvmep_qid_writer
 *
 * Guarded by nvmep_qids.lock.
 */
struct nvmep_qid {
	u64 freed;
	unsigned int exports;
	struct nvmep_qid_writer *writers;
};

/**
 * struct nvmep_qids - the pool of queue identifiers of one controller
 * @lock: guards all of this but @doorbells
 * @used: bit n: identifier n is taken; bit 0, the admin queue, always is
 * @peer: bit n: it is taken for a peer
 * @qids: one for every identifier
 * @freed: times that doorbells were let go of
 * @doorbells: one for every identifier, see struct nvmep_doorbell_count
 * @total: identifiers 1 to @total may be given out
 * @capacity: const: bits in @used and @peer; @total never exceeds it
 * @peer_count: identifiers that peers have
 * @peer_max: most that they may have
 * @peers_barred: they get none now, see nvmep_qids_bar_peers()
 */
struct nvmep_qids {
	spinlock_t lock;	/* see above */
	unsigned long *used;
	unsigned long *peer;
	struct nvmep_qid *qids;
	u64 freed;
	struct nvmep_doorbell_count *doorbells;
	unsigned int total;
	unsigned int capacity;
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
void nvmep_qid_export(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qid_unexport(struct nvmep_ctrl *ctrl, u16 qid);
int nvmep_qid_add_writer(struct nvmep_ctrl *ctrl, u16 qid);
void nvmep_qids_show_quarantine(struct nvmep_ctrl *ctrl, struct seq_file *seq);
int nvmep_qids_bar_peers(struct nvmep_ctrl *ctrl);
void nvmep_qids_admit_peers(struct nvmep_ctrl *ctrl);
unsigned int nvmep_qids_for_cpu(struct nvmep_ctrl *ctrl);
void nvmep_qid_usage(struct nvmep_ctrl *ctrl, struct nvmep_qid_usage *usage);
bool nvmep_qid_granted(struct nvmep_ctrl *ctrl, u16 qid);
u16 nvmep_qid_next_peer(struct nvmep_ctrl *ctrl, u16 qid);

#endif /* _NVMEP_QIDS_H */
