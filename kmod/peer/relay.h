/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Doorbells in host memory, for relay and mediated mode, and the threads that
 * poll them.
 */
#ifndef _NVMEP_RELAY_H
#define _NVMEP_RELAY_H

#include <linux/list.h>
#include <linux/types.h>

struct nvmep_host_pages;
struct nvmep_mediator;
struct nvmep_poller;
struct nvmep_qp;
struct nvmep_readers;
struct seq_file;

/* Bytes from the tail word to the head word: a cache line for each. */
#define NVMEP_RELAY_STRIDE	64

/**
 * struct nvmep_relay_doorbell - one doorbell of a queue pair in relay mode
 * @word: const: in the page; peers write it at any time
 * @entries: const: of the ring; a valid value is less
 * @cq: const: head of the completion queue, not tail of the submission queue
 * @written: written under ctrl->relay_lock, READ_ONCE() without it: last value
 *	written to the register
 */
struct nvmep_relay_doorbell {
	__le32 *word;
	u32 entries;
	bool cq;
	u32 written;
};

/**
 * struct nvmep_relay - doorbells of a queue pair in relay mode
 * @page: const: host page that holds the two words; NULL in direct mode
 * @poller: const: the thread that polls them
 * @sq: tail doorbell
 * @cq: head doorbell
 * @node: poller->lock: in poller->qps; in mediated mode mediator->lock: in
 *	mediator->tenants.  Added under qp->lock when the queue pair
 *	has become LIVE; removed by the thread that finds it closed, and under
 *	qp->lock before the queue pair is GONE
 * @open: written under ctrl->relay_lock, READ_ONCE() without it: the queues
 *	exist and take doorbells.  No register is written unless
 *	ctrl->relay_open is set, too
 * @bad: as @open: a word was not less than the entries of its ring
 * @bad_value: as @bad: its value
 */
struct nvmep_relay {
	struct nvmep_host_pages *page;
	struct nvmep_poller *poller;
	struct nvmep_relay_doorbell sq;
	struct nvmep_relay_doorbell cq;
	struct list_head node;
	bool open;
	bool bad;
	u32 bad_value;
};

/**
 * enum nvmep_relay_seen - what a poll has found
 * @NVMEP_RELAY_CLOSED: no register may be written until nvmep_relay_open()
 * @NVMEP_RELAY_IDLE: no new value
 * @NVMEP_RELAY_ACTIVE: a doorbell was written
 * @NVMEP_RELAY_SLOW: the same, and memory of a device was read, which took long
 */
enum nvmep_relay_seen {
	NVMEP_RELAY_CLOSED,
	NVMEP_RELAY_IDLE,
	NVMEP_RELAY_ACTIVE,
	NVMEP_RELAY_SLOW,
};

/* relay.c */
int nvmep_relay_init(struct nvmep_qp *qp);
void nvmep_relay_reset(struct nvmep_qp *qp);
void nvmep_relay_open(struct nvmep_qp *qp);
void nvmep_relay_close(struct nvmep_qp *qp);
bool nvmep_relay_read(struct nvmep_qp *qp,
		      const struct nvmep_relay_doorbell *doorbell, u32 *value);
enum nvmep_relay_seen nvmep_relay_poll(struct nvmep_qp *qp);

/* poller.c */
int nvmep_pollers_init(void);
void nvmep_pollers_exit(void);
void nvmep_pollers_show(struct seq_file *seq);
struct nvmep_poller *nvmep_poller_of_node(int node);
void nvmep_poller_add(struct nvmep_qp *qp);
void nvmep_poller_remove(struct nvmep_qp *qp);
void nvmep_poller_add_mediator(struct nvmep_mediator *mediator);
void nvmep_poller_remove_mediator(struct nvmep_mediator *mediator);
void nvmep_poller_kick(struct nvmep_poller *poller);
struct nvmep_readers *nvmep_poller_readers(struct nvmep_poller *poller);

#endif /* _NVMEP_RELAY_H */
