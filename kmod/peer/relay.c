// SPDX-License-Identifier: GPL-2.0-only
/*
 * Relay mode: a peer writes its doorbells to a page of host memory, and a
 * thread (poller.c) writes the registers.
 *
 * Writes of registers are bracketed by ctrl->relay_lock, which is held for two
 * posted writes at most.  Code that ends them takes that lock and waits for
 * nothing else: the stop of the controller (core/stop.c), the deletion of the
 * queues, and the revocation of doorbells, which precedes a phase without
 * memory decoding.  None of them waits for a thread of the pool.
 *
 * A value that is not less than the entries of its ring closes the relay at
 * once; the next health poll deletes the queues and fails the queue pair.
 *
 * Cost of a poll that finds no new value: five loads.  Of one that finds one: in
 * addition one locked instruction and one plain store for the lock, the loads
 * again, and for each doorbell two plain stores and one MMIO write with the
 * store fence of writel().
 */
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "core/ctrl.h"
#include "core/queue.h"
#include "host_pages.h"
#include "qp.h"
#include "relay.h"

static void nvmep_relay_init_doorbell(struct nvmep_relay_doorbell *doorbell,
				      void *word, u32 entries, bool cq)
{
	doorbell->word = word;
	doorbell->entries = entries;
	doorbell->cq = cq;
}

/**
 * nvmep_relay_init() - allocate the page of a queue pair in relay mode
 * @qp: the queue pair; the page is freed with it
 *
 * Return: 0; -ENOMEM; -EINTR after a fatal signal.
 */
int nvmep_relay_init(struct nvmep_qp *qp)
{
	struct nvmep_poller *poller =
		nvmep_poller_of_node(dev_to_node(qp->ctrl->dev));
	struct nvmep_host_pages *page;
	void *words;

	if (IS_ERR(poller))
		return PTR_ERR(poller);
	page = nvmep_host_pages_alloc(qp->ctrl, PAGE_SIZE);
	if (IS_ERR(page))
		return PTR_ERR(page);
	words = page_address(page->pages[0]);
	nvmep_relay_init_doorbell(&qp->relay.sq, words, qp->sq_entries, false);
	nvmep_relay_init_doorbell(&qp->relay.cq, words + NVMEP_RELAY_STRIDE,
				  qp->cq_entries, true);
	qp->doorbell.length = PAGE_SIZE;
	qp->doorbell.exportable = true;
	qp->relay.poller = poller;
	qp->relay.page = page;
	return 0;
}

static void nvmep_relay_restart(struct nvmep_relay_doorbell *doorbell)
{
	WRITE_ONCE(*doorbell->word, 0);
	WRITE_ONCE(doorbell->written, 0);
}

/**
 * nvmep_relay_reset() - restart both words at 0
 * @qp: the queue pair, closed, whose queues have taken no doorbell
 */
void nvmep_relay_reset(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->lock);

	if (!qp->relay.page)
		return;
	spin_lock(&qp->ctrl->relay_lock);
	nvmep_relay_restart(&qp->relay.sq);
	nvmep_relay_restart(&qp->relay.cq);
	WRITE_ONCE(qp->relay.bad, false);
	spin_unlock(&qp->ctrl->relay_lock);
}

/**
 * nvmep_relay_open() - doorbells may be written from now on
 * @qp: the queue pair, which has just become LIVE; the caller holds peers->lock
 *
 * A change from LIVE under the same lock closes it again.  nvmep_poller_add()
 * follows.
 */
void nvmep_relay_open(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->ctrl->peers->lock);

	if (!qp->relay.page)
		return;
	spin_lock(&qp->ctrl->relay_lock);
	WRITE_ONCE(qp->relay.open, true);
	spin_unlock(&qp->ctrl->relay_lock);
}

/**
 * nvmep_relay_close() - write no doorbell any more
 * @qp: the queue pair
 *
 * On return no thread writes one.
 */
void nvmep_relay_close(struct nvmep_qp *qp)
{
	if (!qp->relay.page)
		return;
	spin_lock(&qp->ctrl->relay_lock);
	WRITE_ONCE(qp->relay.open, false);
	spin_unlock(&qp->ctrl->relay_lock);
}

static bool nvmep_relay_changed(const struct nvmep_relay_doorbell *doorbell)
{
	return le32_to_cpu(READ_ONCE(*doorbell->word)) !=
	       READ_ONCE(doorbell->written);
}

static void nvmep_relay_set_bad(struct nvmep_qp *qp, u32 value)
{
	lockdep_assert_held(&qp->ctrl->relay_lock);

	WRITE_ONCE(qp->relay.bad_value, value);
	WRITE_ONCE(qp->relay.bad, true);
	WRITE_ONCE(qp->relay.open, false);
}

/**
 * nvmep_relay_read() - read the word of a doorbell
 * @qp: queue pair in mediated mode
 * @doorbell: of @qp
 * @value: out: less than the entries of the ring
 *
 * Return: false if the word is not: it has closed the relay.
 */
bool nvmep_relay_read(struct nvmep_qp *qp,
		      const struct nvmep_relay_doorbell *doorbell, u32 *value)
{
	u32 word = le32_to_cpu(READ_ONCE(*doorbell->word));

	if (word < doorbell->entries) {
		*value = word;
		return true;
	}
	spin_lock(&qp->ctrl->relay_lock);
	nvmep_relay_set_bad(qp, word);
	spin_unlock(&qp->ctrl->relay_lock);
	return false;
}

/* Reads the word once: the peer may write it again at any time. */
static void nvmep_relay_word(struct nvmep_qp *qp,
			     struct nvmep_relay_doorbell *doorbell)
{
	u32 value = le32_to_cpu(READ_ONCE(*doorbell->word));

	lockdep_assert_held(&qp->ctrl->relay_lock);

	if (value == doorbell->written || !qp->relay.open)
		return;
	if (value >= doorbell->entries) {
		nvmep_relay_set_bad(qp, value);
		return;
	}
	/* The entries that the word announces, before the register. */
	dma_rmb();
	WRITE_ONCE(doorbell->written, value);
	nvmep_relay_doorbell(qp->ctrl, qp->qid, doorbell->cq, value);
}

/* Head first: completions of the new commands need its room. */
static enum nvmep_relay_seen nvmep_relay_write_locked(struct nvmep_qp *qp)
{
	lockdep_assert_held(&qp->ctrl->relay_lock);

	if (!qp->relay.open || !qp->ctrl->relay_open)
		return NVMEP_RELAY_CLOSED;
	nvmep_relay_word(qp, &qp->relay.cq);
	nvmep_relay_word(qp, &qp->relay.sq);
	return qp->relay.open ? NVMEP_RELAY_ACTIVE : NVMEP_RELAY_CLOSED;
}

/**
 * nvmep_relay_poll() - write the doorbells whose words have changed
 * @qp: the queue pair
 *
 * Return: what was found.
 */
enum nvmep_relay_seen nvmep_relay_poll(struct nvmep_qp *qp)
{
	enum nvmep_relay_seen seen;

	if (!READ_ONCE(qp->relay.open))
		return NVMEP_RELAY_CLOSED;
	if (!nvmep_relay_changed(&qp->relay.cq) &&
	    !nvmep_relay_changed(&qp->relay.sq))
		return NVMEP_RELAY_IDLE;
	spin_lock(&qp->ctrl->relay_lock);
	seen = nvmep_relay_write_locked(qp);
	spin_unlock(&qp->ctrl->relay_lock);
	return seen;
}
