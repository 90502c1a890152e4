/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happened to a queue pair, for its owner to read.
 */
#ifndef _NVMEP_RECORD_H
#define _NVMEP_RECORD_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <linux/nvme_peer.h>

/* Records that wait for a reader; the oldest goes when one more comes. */
#define NVMEP_RECORDS	16

/**
 * struct nvmep_records - the last records of one queue pair
 * @reader: held by who reads, over the copy to user space, so that each record goes
 *	to one reader and a copy that fails loses none
 * @lock: guards the rest; taken inside @reader
 * @first: number of the oldest record that waits, counted from the beginning
 * @next: number that the next one gets
 * @lost: records that were overwritten since the last one was read
 * @ended: the queue pair is GONE: no more will come
 * @ring: record number n is in n modulo NVMEP_RECORDS
 */
struct nvmep_records {
	struct mutex reader;	/* one of them reads */
	spinlock_t lock;	/* all below */
	u32 first;
	u32 next;
	u32 lost;
	bool ended;
	struct nvme_peer_event ring[NVMEP_RECORDS];
};

void nvmep_records_init(struct nvmep_records *records);
void nvmep_records_add(struct nvmep_records *records,
		       const struct nvme_peer_event *event);
bool nvmep_records_wait(struct nvmep_records *records);
bool nvmep_records_ended(struct nvmep_records *records);
ssize_t nvmep_records_read(struct nvmep_records *records, char __user *user,
			   size_t size);

#endif /* _NVMEP_RECORD_H */
