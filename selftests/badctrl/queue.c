// SPDX-License-Identifier: GPL-2.0-only
/* Queues, contiguous or described by a PRP list. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory.h"
#include "queue.h"
#include "registers.h"

#define SQ_ENTRY	64U
#define CQ_ENTRY	16U

#define QUEUE_CONTIGUOUS	(1U << 0)
#define CQ_INTERRUPTS		(1U << 1)

/* Completion queue entry, base 3.3.3.2. */
struct bad_completion {
	uint32_t result;
	uint32_t reserved;
	uint16_t sq_head;
	uint16_t sq_id;
	uint16_t cid;
	uint16_t status;
};

/* Delay between the pieces of an entry. */
static const struct timespec pause = { .tv_nsec = 5000000 };

static uint64_t entry_address(const struct bad_ring *ring, uint32_t index, uint32_t size)
{
	uint64_t offset = (uint64_t)index * size;

	if (!ring->pages)
		return ring->address + offset;
	return ring->pages[offset / BAD_PAGE] + offset % BAD_PAGE;
}

static void ring_drop(struct bad_ring *ring)
{
	free(ring->pages);
	ring->pages = NULL;
}

static void clear_counts(struct bad *ctrl, uint16_t qid)
{
	unsigned int i;

	for (i = 0; i < BADCTRL_QUEUE_COUNTS; i++)
		atomic_store(&ctrl->counts[qid].of[i], 0);
}

/* --- creation and deletion ------------------------------------------------ */

/* Called with the lock held, which protects AQA, ASQ and ACQ. */
void bad_queues_start(struct bad *ctrl)
{
	uint32_t attributes = bad_load32(ctrl, REG_AQA);

	ctrl->sqs[0] = (struct bad_sq){
		.exists = true,
		.ring = { .address = bad_load64(ctrl, REG_ASQ), .entries = (attributes & 0xfff) + 1 },
	};
	ctrl->cqs[0] = (struct bad_cq){
		.exists = true,
		.ring = { .address = bad_load64(ctrl, REG_ACQ),
			  .entries = (attributes >> 16 & 0xfff) + 1 },
		.phase = 1,
		.interrupts = true,
	};
	bad_doorbell_clear(ctrl, 0, false);
	bad_doorbell_clear(ctrl, 0, true);
}

void bad_queues_stop(struct bad *ctrl)
{
	unsigned int qid;

	for (qid = 0; qid <= BADCTRL_QUEUES; qid++) {
		ring_drop(&ctrl->sqs[qid].ring);
		ring_drop(&ctrl->cqs[qid].ring);
		ctrl->sqs[qid].exists = false;
		ctrl->cqs[qid].exists = false;
	}
	ctrl->last_sq = 0;
}

/* The common part of Create SQ and Create CQ. */
static uint16_t create_ring(struct bad *ctrl, const struct bad_command *command, uint32_t size,
			    struct bad_ring *ring)
{
	bool contiguous = command->cdw11 & QUEUE_CONTIGUOUS;
	uint32_t entries = (command->cdw10 >> 16) + 1, pages, lists = 0;
	uint16_t status;
	uint64_t cap;

	pthread_mutex_lock(&ctrl->lock);
	cap = bad_load64(ctrl, REG_CAP);
	pthread_mutex_unlock(&ctrl->lock);
	if (entries < 2 || entries - 1 > (cap & 0xffff))
		return NVME_STATUS_DNR | NVME_SC_QUEUE_SIZE;
	if (!contiguous && cap >> 16 & 1)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	*ring = (struct bad_ring){ .address = command->prp1, .entries = entries };
	if (contiguous)
		return 0;
	pages = (entries * size + BAD_PAGE - 1) / BAD_PAGE;
	ring->pages = calloc(pages, sizeof(*ring->pages));
	if (!ring->pages)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	status = bad_prp_list(ctrl, command->prp1, ring->pages, pages, &lists);
	bad_count(ctrl, BADCTRL_LISTS, lists);
	if (status)
		ring_drop(ring);
	return status;
}

uint32_t bad_granted(struct bad *ctrl, bool completion)
{
	uint32_t granted = bad_word(ctrl, BADCTRL_GRANT);

	return completion && granted >> 16 ? granted >> 16 : granted & 0xffff;
}

static bool valid_qid(struct bad *ctrl, uint16_t qid, bool completion)
{
	return qid && qid <= BADCTRL_QUEUES && qid <= bad_granted(ctrl, completion);
}

uint16_t bad_create_cq(struct bad *ctrl, const struct bad_command *command)
{
	uint16_t qid = (uint16_t)command->cdw10, vector = (uint16_t)(command->cdw11 >> 16), status;
	struct bad_cq cq = {
		.exists = true,
		.phase = 1,
		.interrupts = command->cdw11 & CQ_INTERRUPTS,
		.vector = vector,
	};

	if (!valid_qid(ctrl, qid, true) || ctrl->cqs[qid].exists)
		return NVME_STATUS_DNR | NVME_SC_QID_INVALID;
	if (vector >= BAD_VECTORS)
		return NVME_STATUS_DNR | NVME_SC_VECTOR;
	status = create_ring(ctrl, command, CQ_ENTRY, &cq.ring);
	if (status)
		return status;
	/* A new queue starts at 0, regardless of an earlier one. */
	bad_doorbell_clear(ctrl, qid, true);
	ctrl->cqs[qid] = cq;
	return 0;
}

uint16_t bad_create_sq(struct bad *ctrl, const struct bad_command *command)
{
	uint16_t qid = (uint16_t)command->cdw10, cqid = (uint16_t)(command->cdw11 >> 16), status;
	struct bad_sq sq = { .exists = true, .cqid = cqid };

	if (!valid_qid(ctrl, qid, false) || ctrl->sqs[qid].exists)
		return NVME_STATUS_DNR | NVME_SC_QID_INVALID;
	if (!valid_qid(ctrl, cqid, true) || !ctrl->cqs[cqid].exists)
		return NVME_STATUS_DNR | NVME_SC_CQ_INVALID;
	status = create_ring(ctrl, command, SQ_ENTRY, &sq.ring);
	if (status)
		return status;
	bad_doorbell_clear(ctrl, qid, false);
	clear_counts(ctrl, qid);
	ctrl->sqs[qid] = sq;
	ctrl->last_sq = qid > ctrl->last_sq ? qid : ctrl->last_sq;
	return 0;
}

bool bad_queue_exists(const struct bad *ctrl, uint16_t sqid)
{
	return sqid && sqid <= BADCTRL_QUEUES && ctrl->sqs[sqid].exists;
}

uint16_t bad_delete_sq(struct bad *ctrl, uint16_t qid)
{
	if (!bad_queue_exists(ctrl, qid))
		return NVME_STATUS_DNR | NVME_SC_QID_INVALID;
	ring_drop(&ctrl->sqs[qid].ring);
	ctrl->sqs[qid].exists = false;
	while (ctrl->last_sq && !ctrl->sqs[ctrl->last_sq].exists)
		ctrl->last_sq--;
	return 0;
}

uint16_t bad_delete_cq(struct bad *ctrl, uint16_t qid)
{
	unsigned int i;

	if (!qid || qid > BADCTRL_QUEUES || !ctrl->cqs[qid].exists)
		return NVME_STATUS_DNR | NVME_SC_QID_INVALID;
	for (i = 1; i <= BADCTRL_QUEUES; i++)
		if (ctrl->sqs[i].exists && ctrl->sqs[i].cqid == qid)
			return NVME_STATUS_DNR | NVME_SC_QUEUE_DELETION;
	ring_drop(&ctrl->cqs[qid].ring);
	ctrl->cqs[qid].exists = false;
	return 0;
}

/* --- entries -------------------------------------------------------------- */

bool bad_queue_rung(const struct bad *ctrl, uint16_t sqid)
{
	const struct bad_sq *sq = &ctrl->sqs[sqid];
	uint32_t tail;

	if (!sq->exists)
		return false;
	tail = bad_doorbell(ctrl, sqid, false);
	return tail != sq->head && tail < sq->ring.entries;
}

bool bad_queue_fetch(struct bad *ctrl, uint16_t sqid, struct bad_command *command)
{
	struct bad_sq *sq = &ctrl->sqs[sqid];

	if (!bad_queue_rung(ctrl, sqid))
		return false;
	if (bad_read(ctrl, entry_address(&sq->ring, sq->head, SQ_ENTRY), command, sizeof(*command)))
		return false;
	sq->head = (sq->head + 1) % sq->ring.entries;
	atomic_fetch_add_explicit(&ctrl->counts[sqid].of[BADCTRL_FETCHED], 1, memory_order_relaxed);
	return true;
}

bool bad_queue_room(struct bad *ctrl, uint16_t sqid)
{
	uint16_t cqid = ctrl->sqs[sqid].cqid;
	const struct bad_cq *cq = &ctrl->cqs[cqid];

	return (bad_doorbell(ctrl, cqid, true) + cq->ring.entries - cq->tail - 1) % cq->ring.entries >
	       cq->flying;
}

static uint64_t next_entry(const struct bad_cq *cq)
{
	return entry_address(&cq->ring, cq->tail, CQ_ENTRY);
}

/* next_entry() returns its address. */
static struct bad_completion make_entry(const struct bad *ctrl, uint16_t sqid, uint16_t cid,
					uint16_t status, uint32_t result)
{
	const struct bad_sq *sq = &ctrl->sqs[sqid];

	return (struct bad_completion){
		.result = result,
		.sq_head = (uint16_t)sq->head,
		.sq_id = sqid,
		.cid = cid,
		.status = (uint16_t)(status << 1 | ctrl->cqs[sq->cqid].phase),
	};
}

static void interrupt(struct bad *ctrl, const struct bad_cq *cq)
{
	if (cq->interrupts)
		vfu_interrupt(ctrl->vfu, cq->vector);
}

static void entry_written(struct bad *ctrl, uint16_t sqid, uint16_t cid)
{
	struct bad_cq *cq = &ctrl->cqs[ctrl->sqs[sqid].cqid];

	ctrl->sqs[sqid].completed = cid;
	if (++cq->tail == cq->ring.entries) {
		cq->tail = 0;
		cq->phase ^= 1;
	}
}

void bad_queue_complete(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t status,
			uint32_t result, bool quiet)
{
	struct bad_cq *cq = &ctrl->cqs[ctrl->sqs[sqid].cqid];
	struct bad_completion entry = make_entry(ctrl, sqid, cid, status, result);
	uint64_t address = next_entry(cq);

	if (!cq->exists)
		return;
	/* The half with the phase tag is written last. */
	bad_write(ctrl, address, &entry.result, 8);
	bad_write(ctrl, address + 8, &entry.sq_head, 8);
	entry_written(ctrl, sqid, cid);
	if (!quiet)
		interrupt(ctrl, cq);
}

/* An interrupt follows each piece, as if it overtook the rest of the entry. */
void bad_queue_complete_slowly(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t status)
{
	struct bad_cq *cq = &ctrl->cqs[ctrl->sqs[sqid].cqid];
	struct bad_completion entry = make_entry(ctrl, sqid, cid, status, 0);
	uint64_t address = next_entry(cq);

	if (!cq->exists)
		return;
	bad_write(ctrl, address + 8, &entry.sq_head, 4);
	interrupt(ctrl, cq);
	nanosleep(&pause, NULL);
	bad_write(ctrl, address + 12, &entry.cid, 2);
	interrupt(ctrl, cq);
	nanosleep(&pause, NULL);
	bad_write(ctrl, address, &entry.result, 8);
	bad_write(ctrl, address + 14, &entry.status, 2);
	entry_written(ctrl, sqid, cid);
	interrupt(ctrl, cq);
}

void bad_queue_complete_torn(struct bad *ctrl, uint16_t sqid, uint16_t cid, uint16_t mistaken,
			     uint16_t status)
{
	struct bad_cq *cq = &ctrl->cqs[ctrl->sqs[sqid].cqid];
	struct bad_completion entry = make_entry(ctrl, sqid, mistaken, status, 0);
	uint64_t address = next_entry(cq);

	if (!cq->exists)
		return;
	bad_write(ctrl, address + 12, &entry.cid, 4);
	interrupt(ctrl, cq);
	nanosleep(&pause, NULL);
	entry.cid = cid;
	bad_write(ctrl, address, &entry.result, 8);
	bad_write(ctrl, address + 8, &entry.sq_head, 8);
	entry_written(ctrl, sqid, cid);
	interrupt(ctrl, cq);
}
