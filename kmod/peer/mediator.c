// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mediators: the queue pairs that the tenants of a controller share, and one
 * pass of the thread over all of them.  mediated.h has structures and locks.
 */
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/queue.h"
#include "core/queue_pair.h"
#include "core/reset.h"
#include "host_pages.h"
#include "import.h"
#include "mediated.h"
#include "module.h"
#include "peer.h"
#include "qp.h"

/* Bytes that a tenant of weight 1 may submit in its turn. */
#define NVMEP_QUANTUM		SZ_64K

/* Entries that one pass takes from rings: it holds spinlocks. */
#define NVMEP_PASS_ENTRIES	128

/*
 * With these a tenant that is alone has no further turn: the controller sees
 * none of them before the pass ends.
 */
#define NVMEP_ALONE_ENTRIES	32

/* Bytes on the shared queue pairs with which no further command is sent. */
#define NVMEP_SHARED_BYTES	SZ_16M

/* Commands that one pass completes to tenants: it holds spinlocks. */
#define NVMEP_PASS_COMPLETIONS	256

/* Interval of the checks for timeouts. */
#define NVMEP_CHECK_INTERVAL	(HZ / 20 + 1)

/* How often to look for commands that have ended after their Abort: for a second. */
#define NVMEP_ABORT_POLLS	100
#define NVMEP_ABORT_POLL_MS	10

/* --- shared queue pairs --------------------------------------------------- */

static u16 nvmep_shared_slots(const struct nvmep_mediator *mediator)
{
	return mediator->entries - 1;
}

static u16 nvmep_shared_after(const struct nvmep_mediator *mediator, u16 index)
{
	return index + 1 == mediator->entries ? 0 : index + 1;
}

/* A queue pair that takes new commands and has room, or NULL. */
static struct nvmep_shared *
nvmep_mediator_pick(struct nvmep_mediator *mediator)
{
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->lock);

	if (mediator->bytes >= NVMEP_SHARED_BYTES)
		return NULL;
	nvmep_for_each_shared(shared, mediator)
		if (shared->live && !shared->stuck)
			return shared->in_flight <
			       nvmep_shared_slots(mediator) ? shared : NULL;
	return NULL;
}

static bool nvmep_over_quarters(const struct nvmep_mediator *mediator,
				unsigned int slots, u64 bytes,
				unsigned int quarters)
{
	return slots * 4 >= nvmep_shared_slots(mediator) * quarters ||
	       bytes * 4 >= NVMEP_SHARED_BYTES * quarters;
}

/*
 * A queue pair with a quarter of what is shared leaves a quarter to others, and
 * a user with a quarter leaves one to other users.
 */
static bool nvmep_tenant_over_share(const struct nvmep_tenant *tenant,
				    const struct nvmep_shared *shared)
{
	const struct nvmep_mediator *mediator = tenant->mediator;
	const struct nvmep_account *account = tenant->account;
	unsigned int quarters = 4;

	lockdep_assert_held(&mediator->lock);

	/* The threshold below is two quarters or more. */
	if (!nvmep_over_quarters(mediator, shared->in_flight, mediator->bytes,
				 2))
		return false;
	quarters -= nvmep_over_quarters(mediator, tenant->slots, tenant->bytes,
					1);
	quarters -= nvmep_over_quarters(mediator, account->slots,
					account->bytes, 1);
	/* nvmep_mediator_pick() has found room: four quarters are never in use. */
	return nvmep_over_quarters(mediator, shared->in_flight, mediator->bytes,
				   quarters);
}

static void nvmep_slot_count(const struct nvmep_shared_slot *slot)
{
	struct nvmep_tenant *tenant = slot->command->tenant;
	u64 bytes = slot->bytes;

	tenant->slots++;
	tenant->bytes += bytes;
	tenant->account->slots++;
	tenant->account->bytes += bytes;
	tenant->mediator->bytes += bytes;
}

static void nvmep_slot_uncount(const struct nvmep_shared_slot *slot)
{
	struct nvmep_tenant *tenant = slot->command->tenant;
	u64 bytes = slot->bytes;

	tenant->slots--;
	tenant->bytes -= bytes;
	tenant->account->slots--;
	tenant->account->bytes -= bytes;
	tenant->mediator->bytes -= bytes;
}

/* Slots are freed in about the order in which they are taken. */
static struct nvmep_shared_slot *
nvmep_shared_take_slot(const struct nvmep_mediator *mediator,
		       struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	lockdep_assert_held(&mediator->lock);

	do {
		slot = &shared->slots[shared->next];
		if (++shared->next == nvmep_shared_slots(mediator))
			shared->next = 0;
	} while (slot->command);
	/* Another use of the slot: an old entry does not complete it. */
	slot->cid += NVMEP_CID_USE;
	return slot;
}

/*
 * Writes one entry, for @command or a @part of it; the doorbell follows at the
 * end of the pass.  @shared has room.
 */
static void nvmep_shared_submit(struct nvmep_mediator *mediator,
				struct nvmep_shared *shared,
				struct nvmep_tenant_command *command,
				const struct nvmep_mediate_command *part,
				const struct nvmep_segment *segment,
				unsigned long timeout)
{
	struct nvmep_shared_slot *slot = nvmep_shared_take_slot(mediator,
								shared);

	slot->command = command;
	slot->bytes = part->bytes + part->zeroes;
	slot->timeout = timeout;
	slot->deadline = jiffies + timeout;
	nvmep_mediate_build(mediator->ctrl, part, segment, slot->list,
			    slot->list_dma, slot->cid,
			    (__le32 *)&shared->sq[shared->sq_tail]);
	shared->sq_tail = nvmep_shared_after(mediator, shared->sq_tail);
	shared->in_flight++;
	mediator->in_flight++;
	nvmep_slot_count(slot);
}

/* Under ctrl->relay_lock. */
static void nvmep_shared_ring(struct nvmep_mediator *mediator,
			      struct nvmep_shared *shared)
{
	struct nvmep_ctrl *ctrl = mediator->ctrl;

	if (!shared->live)
		return;
	if (shared->cq_rung != shared->cq_head)
		nvmep_relay_doorbell(ctrl, shared->qid, true, shared->cq_head);
	if (shared->sq_rung != shared->sq_tail)
		nvmep_relay_doorbell(ctrl, shared->qid, false,
				     shared->sq_tail);
	shared->cq_rung = shared->cq_head;
	shared->sq_rung = shared->sq_tail;
}

/*
 * A stop forbids doorbells under relay_lock, then increments the generation:
 * where they are allowed in this generation, the queues exist.
 */
static void nvmep_mediator_ring(struct nvmep_mediator *mediator)
{
	struct nvmep_ctrl *ctrl = mediator->ctrl;
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->lock);

	spin_lock(&ctrl->relay_lock);
	if (ctrl->relay_open &&
	    nvmep_ctrl_generation(ctrl) == mediator->generation)
		nvmep_for_each_shared(shared, mediator)
			nvmep_shared_ring(mediator, shared);
	spin_unlock(&ctrl->relay_lock);
}

static bool nvmep_mediator_must_ring(const struct nvmep_mediator *mediator)
{
	const struct nvmep_shared *shared;

	nvmep_for_each_shared(shared, mediator)
		if (shared->cq_rung != shared->cq_head ||
		    shared->sq_rung != shared->sq_tail)
			return true;
	return false;
}

/* --- end of commands ------------------------------------------------------ */

/*
 * The commands @in_flight share one reference: the first takes it, and the others
 * fail as it would.  What is killed right after the check waits for that
 * reference.
 */
static bool nvmep_ref_share(struct percpu_ref *ref, u32 in_flight)
{
	return in_flight ? !percpu_ref_is_dying(ref) :
			   percpu_ref_tryget_live(ref);
}

/* Holds the namespace. */
static bool nvmep_window_hold(struct nvmep_window *window)
{
	if (!nvmep_ref_share(&window->blocks.queue->q_usage_counter,
			     window->in_flight))
		return false;
	WRITE_ONCE(window->in_flight, window->in_flight + 1);
	return true;
}

static void nvmep_window_release(struct nvmep_window *window)
{
	WRITE_ONCE(window->in_flight, window->in_flight - 1);
	if (!window->in_flight)
		percpu_ref_put(&window->blocks.queue->q_usage_counter);
}

/*
 * Holds the memory of a buffer.  The rights of the tenant were checked: they have
 * the length and the direction of the buffer.
 */
static bool nvmep_data_hold(struct nvmep_buf *buf)
{
	if (!nvmep_ref_share(&buf->users, buf->in_flight))
		return false;
	buf->in_flight++;
	return true;
}

static void nvmep_data_release(struct nvmep_buf *buf)
{
	if (!--buf->in_flight)
		percpu_ref_put(&buf->users);
}

static bool nvmep_command_writes(const struct nvmep_mediate_command *command)
{
	return command->opcode != nvme_cmd_read;
}

/* The controller does not access its data any more. */
static void nvmep_command_release(struct nvmep_tenant_command *command)
{
	lockdep_assert_held(&command->tenant->mediator->lock);

	if (command->buf)
		nvmep_data_release(command->buf);
	command->buf = NULL;
	nvmep_window_release(command->window);
}

/* Adds to a counter under mediator->lock that others read without it. */
static void nvmep_count(u64 *counter, u64 value)
{
	WRITE_ONCE(*counter, *counter + value);
}

/* Frees the place of a command that was released. */
static void nvmep_command_idle(struct nvmep_tenant_command *command)
{
	struct nvmep_tenant *tenant = command->tenant;

	lockdep_assert_held(&tenant->mediator->lock);

	WRITE_ONCE(tenant->in_flight, tenant->in_flight - 1);
	if (command->command.opcode == nvme_cmd_write_zeroes)
		tenant->zeroes = false;
	command->next = tenant->idle;
	tenant->idle = command;
}

/* The completion queue has room: fetching a command reserves it. */
static void nvmep_tenant_post(struct nvmep_tenant *tenant, u16 cid, u16 status)
{
	__le32 *entry = &tenant->cq[tenant->cq_tail * NVMEP_CQE_DWORDS];

	lockdep_assert_held(&tenant->mediator->lock);

	WRITE_ONCE(entry[0], 0);
	WRITE_ONCE(entry[1], 0);
	WRITE_ONCE(entry[2], cpu_to_le32(NVMEP_QID_NONE << 16 |
					 tenant->sq_head));
	/* The phase tag publishes the entry, and the data before it. */
	dma_wmb();
	WRITE_ONCE(entry[3], nvmep_mediate_cqe_last(cid, status,
						    tenant->phase));
	if (++tenant->cq_tail < tenant->qp->cq_entries)
		return;
	tenant->cq_tail = 0;
	tenant->phase = !tenant->phase;
}

/* Its data is visible to the tenant's device. */
static void nvmep_command_finish(struct nvmep_tenant_command *command)
{
	struct nvmep_tenant *tenant = command->tenant;

	nvmep_command_release(command);
	if (command->status)
		nvmep_count(&tenant->stats.failed, 1);
	nvmep_command_idle(command);
	nvmep_tenant_post(tenant, command->command.cid, command->status);
}

/* It keeps its buffer until the data is ordered. */
static void nvmep_command_done(struct nvmep_mediator *mediator,
			       struct nvmep_tenant_command *command, u16 status)
{
	lockdep_assert_held(&mediator->lock);

	command->status = status;
	command->batch = mediator->batch;
	command->next = NULL;
	*mediator->done_end = command;
	mediator->done_end = &command->next;
}

/* Takes the first command that is done.  Returns NULL if there is none. */
static struct nvmep_tenant_command *
nvmep_mediator_take_done(struct nvmep_mediator *mediator)
{
	struct nvmep_tenant_command *command = mediator->done;

	lockdep_assert_held(&mediator->lock);

	if (!command)
		return NULL;
	mediator->done = command->next;
	if (!mediator->done)
		mediator->done_end = &mediator->done;
	return command;
}

static void nvmep_flushes_done(struct nvmep_mediator *mediator,
			       struct nvmep_flushes *flushes, u16 status)
{
	struct nvmep_tenant_command *command, *next;

	flushes->busy = false;
	list_for_each_entry_safe(command, next, &flushes->issued, node) {
		list_del_init(&command->node);
		nvmep_command_done(mediator, command, status);
	}
}

/* All parts have ended on the controller. */
static void nvmep_command_parts_done(struct nvmep_mediator *mediator,
				     struct nvmep_tenant_command *command)
{
	struct nvmep_file *file = command->file;
	bool write = nvmep_command_writes(&command->command);

	nvmep_file_end(file, write);
	if (!write || !nvmep_file_cached(file)) {
		nvmep_command_done(mediator, command, command->status);
		return;
	}
	nvmep_file_wrote(file, &command->command);
	nvmep_command_release(command);
	nvmep_file_wait(file, command);
}

/* After an error no further part is sent. */
static void nvmep_command_part_done(struct nvmep_mediator *mediator,
				    struct nvmep_tenant_command *command,
				    u16 status)
{
	if (status) {
		if (!command->status)
			command->status = status;
		list_del_init(&command->node);
	}
	if (!--command->parts && list_empty(&command->node))
		nvmep_command_parts_done(mediator, command);
}

/* The controller has completed, or will not execute, the command in @slot. */
static void nvmep_shared_slot_done(struct nvmep_mediator *mediator,
				   struct nvmep_shared *shared,
				   struct nvmep_shared_slot *slot, u16 status)
{
	struct nvmep_tenant_command *command = slot->command;

	lockdep_assert_held(&mediator->lock);

	nvmep_slot_uncount(slot);
	slot->command = NULL;
	shared->in_flight--;
	mediator->in_flight--;
	if (command->command.opcode == nvme_cmd_flush)
		nvmep_flushes_done(mediator, command->window->flushes, status);
	else if (command->file)
		nvmep_command_part_done(mediator, command, status);
	else
		nvmep_command_done(mediator, command, status);
}

/* The slot of a command in flight, or NULL: the controller has sent the CID. */
static struct nvmep_shared_slot *
nvmep_shared_find(struct nvmep_shared *shared, u16 cid)
{
	struct nvmep_shared_slot *slot = &shared->slots[cid % NVMEP_CID_USE];

	return slot->command && slot->cid == cid ? slot : NULL;
}

static void nvmep_shared_complete(struct nvmep_mediator *mediator,
				  struct nvmep_shared *shared, u16 cid,
				  u16 status)
{
	struct nvmep_shared_slot *slot = nvmep_shared_find(shared, cid);

	if (slot)
		nvmep_shared_slot_done(mediator, shared, slot,
				       nvmep_mediate_status(status));
	else
		dev_warn_ratelimited(mediator->ctrl->dev,
				     "queue %u: completion of CID %#x, which is not in flight\n",
				     shared->qid, cid);
}

static void nvmep_shared_reap(struct nvmep_mediator *mediator,
			      struct nvmep_shared *shared)
{
	const struct nvme_completion *cqe;
	u16 status;

	lockdep_assert_held(&mediator->lock);

	mediator->batch++;
	for (;;) {
		cqe = &shared->cq[shared->cq_head];
		status = le16_to_cpu(READ_ONCE(cqe->status));
		if ((status & 1) != shared->phase)
			return;
		/* The phase tag, then the rest. */
		dma_rmb();
		shared->cq_head = nvmep_shared_after(mediator,
						     shared->cq_head);
		shared->phase ^= !shared->cq_head;
		nvmep_shared_complete(mediator, shared,
				      nvmep_cid(READ_ONCE(cqe->command_id)),
				      status >> 1);
	}
}

/*
 * All commands of the thread wait for the read, those of other tenants too.
 * Returns whether it was slow.
 */
static bool nvmep_tenant_read_word(struct nvmep_tenant *tenant,
				   const struct nvmep_buf *buf, u64 began)
{
	u64 took;

	lockdep_assert_held(&tenant->mediator->lock);

	/* Write-combining memory: not before the read of the entry. */
	rmb();
	readl(buf->word);
	took = ktime_get_ns() - began;
	nvmep_count(&tenant->stats.busy_ns, took);
	return nvmep_account_read(tenant, began, took);
}

/* The work does the rest, as after an invalidation. */
static void nvmep_tenant_end_buffer(struct nvmep_tenant *tenant,
				    struct nvmep_buf *buf)
{
	lockdep_assert_held(&tenant->mediator->lock);

	WRITE_ONCE(buf->slow, true);
	if (tenant->buffers[buf->handle] == buf)
		tenant->rights.buffers[buf->handle].ended = true;
	queue_work(buf->ctrl->peers->invalidate_wq, &buf->invalidate_work);
}

/* Returns whether it has read slowly. */
static bool nvmep_command_read_word(const struct nvmep_tenant_command *command)
{
	struct nvmep_tenant *tenant = command->tenant;
	struct nvmep_buf *buf = command->buf;
	u64 began = ktime_get_ns();

	buf->unread = true;
	/* Its memory may not respond any more. */
	if (nvmep_buf_invalid(buf))
		return false;
	if (!nvmep_account_may_read(tenant, began)) {
		nvmep_tenant_end_buffer(tenant, buf);
		return false;
	}
	buf->unread = false;
	return nvmep_tenant_read_word(tenant, buf, began);
}

/*
 * PCIe does not order the data, which went to a device, and the entry of the
 * controller in host memory, which says that it was written.  A read of the
 * same buffer that is issued after the entry was seen does not pass the data.
 * One is enough for all entries that were seen before.  Returns whether it was
 * slow.
 */
static bool nvmep_command_order(const struct nvmep_mediator *mediator,
				struct nvmep_tenant_command *command)
{
	struct nvmep_buf *buf = command->buf;
	bool slow = false;

	if (!buf || !buf->word || command->status ||
	    nvmep_command_writes(&command->command))
		return false;
	if (buf->batch < command->batch) {
		slow = nvmep_command_read_word(command);
		buf->batch = mediator->batch;
	}
	if (buf->unread)
		command->status = nvmep_refuse(NVMEP_SC_BUFFER_GONE);
	return slow;
}

/*
 * Publishes what nvmep_shared_reap() has found, or the first part of it, up to a
 * slow read: others may take the locks before the next one.
 */
static enum nvmep_relay_seen
nvmep_mediator_publish(struct nvmep_mediator *mediator)
{
	struct nvmep_tenant_command *command;
	unsigned int count = 0;
	bool slow = false;

	lockdep_assert_held(&mediator->lock);

	while (!slow && count != NVMEP_PASS_COMPLETIONS) {
		command = nvmep_mediator_take_done(mediator);
		if (!command)
			break;
		slow = nvmep_command_order(mediator, command);
		nvmep_command_finish(command);
		count++;
	}
	if (slow)
		return NVMEP_RELAY_SLOW;
	return count ? NVMEP_RELAY_ACTIVE : NVMEP_RELAY_CLOSED;
}

/* --- stop of the controller ----------------------------------------------- */

static void nvmep_command_lose(struct nvmep_tenant_command *command)
{
	nvmep_command_release(command);
	nvmep_command_idle(command);
}

static void nvmep_commands_lose(struct list_head *commands)
{
	struct nvmep_tenant_command *command, *next;

	list_for_each_entry_safe(command, next, commands, node) {
		list_del_init(&command->node);
		nvmep_command_lose(command);
	}
}

/* No part is on the controller any more, which may have executed some. */
static void nvmep_command_lose_parts(struct nvmep_tenant_command *command)
{
	struct nvmep_file *file = command->file;
	bool write = nvmep_command_writes(&command->command);

	nvmep_file_end(file, write);
	if (write && nvmep_file_cached(file))
		nvmep_file_wrote(file, &command->command);
	nvmep_command_lose(command);
}

/* The commands of files that are on the controller lose their parts later. */
static void nvmep_mediator_lose_unsent(struct nvmep_mediator *mediator)
{
	struct nvmep_tenant_command *command, *next;

	list_for_each_entry_safe(command, next, &mediator->splitting, node) {
		list_del_init(&command->node);
		if (!command->parts)
			nvmep_command_lose_parts(command);
	}
}

static void nvmep_slot_lose(struct nvmep_shared_slot *slot)
{
	struct nvmep_tenant_command *command = slot->command;

	nvmep_slot_uncount(slot);
	slot->command = NULL;
	if (command->command.opcode == nvme_cmd_flush)
		return;
	if (!command->file)
		nvmep_command_lose(command);
	else if (!--command->parts)
		nvmep_command_lose_parts(command);
}

static void nvmep_shared_lose(struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	WRITE_ONCE(shared->live, false);
	WRITE_ONCE(shared->stuck, false);
	shared->in_flight = 0;
	nvmep_for_each_slot(slot, shared)
		if (slot->command)
			nvmep_slot_lose(slot);
}

/* Commands that were released: their tenants get no entries for them. */
static void nvmep_file_lose_cached(struct nvmep_file *file)
{
	struct nvmep_tenant_command *command, *next;

	lockdep_assert_held(&file->mediator->lock);

	list_splice_init(&file->running, &file->waiting);
	list_for_each_entry_safe(command, next, &file->waiting, node) {
		list_del_init(&command->node);
		nvmep_command_idle(command);
	}
	list_del_init(&file->node);
}

static void nvmep_mediator_lose_cached(struct nvmep_mediator *mediator,
				       const struct nvmep_tenant *only)
{
	struct nvmep_file *file, *next;

	list_for_each_entry_safe(file, next, &mediator->cached, node)
		if (!only || file->tenant == only)
			nvmep_file_lose_cached(file);
}

/**
 * nvmep_tenant_lose_cached() - do not complete what waits for cached pages
 * @tenant: is being quiesced
 */
void nvmep_tenant_lose_cached(struct nvmep_tenant *tenant)
{
	spin_lock(&tenant->mediator->lock);
	nvmep_mediator_lose_cached(tenant->mediator, tenant);
	spin_unlock(&tenant->mediator->lock);
}

/*
 * The controller has stopped all DMA and lost its queues.  The tenants lose
 * their commands, as the status page reports, and get no entries for them.
 */
static void nvmep_mediator_lose(struct nvmep_mediator *mediator)
{
	struct nvmep_tenant_command *command;
	struct nvmep_flushes *flushes;
	struct nvmep_shared *shared;
	struct nvmep_qp *qp, *next;

	lockdep_assert_held(&mediator->lock);

	if (mediator->lost)
		return;
	mediator->lost = true;
	mediator->in_flight = 0;
	while ((command = nvmep_mediator_take_done(mediator)))
		nvmep_command_lose(command);
	list_for_each_entry_safe(qp, next, &mediator->tenants, relay.node)
		list_del_init(&qp->relay.node);
	nvmep_mediator_lose_unsent(mediator);
	nvmep_mediator_lose_cached(mediator, NULL);
	nvmep_for_each_shared(shared, mediator)
		nvmep_shared_lose(shared);
	list_for_each_entry(flushes, &mediator->flushes, node) {
		flushes->busy = false;
		nvmep_commands_lose(&flushes->issued);
		nvmep_commands_lose(&flushes->waiting);
	}
}

/* Returns false if the shared queue pairs do not exist. */
static bool nvmep_mediator_check(struct nvmep_mediator *mediator)
{
	lockdep_assert_held(&mediator->lock);

	if (nvmep_ctrl_generation(mediator->ctrl) != mediator->generation)
		nvmep_mediator_lose(mediator);
	return !mediator->lost;
}

/* Completes released commands, with @error unless they have one. */
static void nvmep_commands_finish_cached(struct list_head *commands, u16 error)
{
	struct nvmep_tenant_command *command, *next;
	struct nvmep_tenant *tenant;
	u16 status;

	list_for_each_entry_safe(command, next, commands, node) {
		tenant = command->tenant;
		status = command->status ? command->status : error;
		if (status)
			nvmep_count(&tenant->stats.failed, 1);
		list_del_init(&command->node);
		nvmep_command_idle(command);
		nvmep_tenant_post(tenant, command->command.cid, status);
	}
}

/**
 * nvmep_mediator_finish_cached() - the pages of commands have been invalidated
 * @mediator: the mediator
 * @file: completes file->running
 * @status: 0, or the NVMe status if pages could not be invalidated
 */
void nvmep_mediator_finish_cached(struct nvmep_mediator *mediator,
				  struct nvmep_file *file, u16 status)
{
	spin_lock(&mediator->lock);
	file->ended |= status != 0;
	/* Loses them if the controller has stopped. */
	if (nvmep_mediator_check(mediator))
		nvmep_commands_finish_cached(&file->running, status);
	if (list_empty(&file->waiting))
		list_del_init(&file->node);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_abort_cached() - complete what waits for cached pages
 * @mediator: the mediator
 * @file: the file
 */
void nvmep_mediator_abort_cached(struct nvmep_mediator *mediator,
				 struct nvmep_file *file)
{
	spin_lock(&mediator->lock);
	if (nvmep_mediator_check(mediator)) {
		nvmep_commands_finish_cached(&file->running, NVME_SC_ABORT_REQ);
		nvmep_commands_finish_cached(&file->waiting, NVME_SC_ABORT_REQ);
	}
	list_del_init(&file->node);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_stopped() - the controller has lost its queues
 * @peers: of the controller, with its new generation
 *
 * Called by reset work.
 */
void nvmep_mediator_stopped(struct nvmep_peers *peers)
{
	struct nvmep_mediator *mediator = READ_ONCE(peers->mediator);

	if (!mediator)
		return;
	spin_lock(&mediator->lock);
	nvmep_mediator_check(mediator);
	spin_unlock(&mediator->lock);
}

/* --- timeouts ------------------------------------------------------------- */

static bool nvmep_slot_overdue(const struct nvmep_shared_slot *slot)
{
	return slot->command && time_after(jiffies, slot->deadline);
}

/* The first command that has exceeded its time, or NULL. */
static struct nvmep_shared_slot *nvmep_shared_overdue(struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	nvmep_for_each_slot(slot, shared)
		if (nvmep_slot_overdue(slot))
			return slot;
	return NULL;
}

static void nvmep_shared_check_timeout(struct nvmep_mediator *mediator,
				       struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	/* Also while it is replaced.  A lost one has no commands. */
	if (shared->stuck)
		return;
	slot = nvmep_shared_overdue(shared);
	if (!slot)
		return;
	dev_warn_ratelimited(mediator->ctrl->dev,
			     "queue %u: timeout of CID %#x (opcode %#x) of a mediated queue pair, aborting\n",
			     shared->qid, slot->cid,
			     slot->command->command.opcode);
	WRITE_ONCE(shared->stuck, true);
	queue_work(nvmep_mediate_wq, &mediator->work);
}

/* As for commands of the CPU: each has its whole time once more. */
static void nvmep_shared_defer_timeouts(struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	nvmep_for_each_slot(slot, shared)
		slot->deadline = jiffies + slot->timeout;
}

static void nvmep_mediator_check_timeouts(struct nvmep_mediator *mediator)
{
	bool deferred = nvmep_timeout_deferred(mediator->ctrl);
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->lock);

	if (time_before(jiffies, mediator->check))
		return;
	mediator->check = jiffies + NVMEP_CHECK_INTERVAL;
	nvmep_for_each_shared(shared, mediator)
		if (deferred)
			nvmep_shared_defer_timeouts(shared);
		else
			nvmep_shared_check_timeout(mediator, shared);
}

/*
 * Finds the first overdue command in slots from @index on: its identifier is stored
 * to @cid.
 */
static bool nvmep_shared_next_overdue(struct nvmep_mediator *mediator,
				      struct nvmep_shared *shared, u16 index,
				      u16 *cid)
{
	struct nvmep_shared_slot *slot = &shared->slots[index];
	bool found = false;

	spin_lock(&mediator->lock);
	nvmep_for_each_slot_from(slot, shared) {
		found = nvmep_slot_overdue(slot);
		if (found) {
			*cid = slot->cid;
			break;
		}
	}
	spin_unlock(&mediator->lock);
	return found;
}

/* Returns false if the limit of outstanding Abort commands is reached. */
static bool nvmep_shared_abort(struct nvmep_mediator *mediator,
			       struct nvmep_shared *shared, u16 cid)
{
	struct nvmep_ctrl *ctrl = mediator->ctrl;
	struct nvmep_admin_command command = {
		.sqe.common.opcode = nvme_admin_abort_cmd,
		.sqe.common.cdw10 = cpu_to_le32((u32)cid << 16 | shared->qid),
		.bound = true,
		.generation = mediator->generation,
	};
	bool allowed = atomic_dec_return(&ctrl->aborts) >= 0;

	if (allowed)
		nvmep_admin_execute(ctrl, &command);
	/* A start has set the limit again. */
	if (nvmep_ctrl_generation(ctrl) == command.generation)
		atomic_inc(&ctrl->aborts);
	return allowed;
}

/* Returns whether the overdue commands have ended. */
static bool nvmep_shared_abort_overdue(struct nvmep_mediator *mediator,
				       struct nvmep_shared *shared)
{
	unsigned int polls;
	u16 index = 0, cid;

	for (; nvmep_shared_next_overdue(mediator, shared, index, &cid);
	     index = cid % NVMEP_CID_USE + 1)
		if (!nvmep_shared_abort(mediator, shared, cid))
			break;
	for (polls = NVMEP_ABORT_POLLS; polls--; ) {
		nvmep_mediator_poll(mediator);
		if (!nvmep_shared_next_overdue(mediator, shared, 0, &cid))
			return true;
		msleep(NVMEP_ABORT_POLL_MS);
	}
	return false;
}

/*
 * The queues are off the controller: it has completed, or will not execute, the
 * commands.  They are not sent again: the controller may have executed them.
 */
static void nvmep_shared_end_all(struct nvmep_mediator *mediator,
				 struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;

	spin_lock(&mediator->lock);
	if (nvmep_mediator_check(mediator)) {
		nvmep_shared_reap(mediator, shared);
		nvmep_for_each_slot(slot, shared)
			if (slot->command)
				nvmep_shared_slot_done(mediator, shared, slot,
						       NVME_SC_ABORT_QUEUE);
		nvmep_mediator_publish(mediator);
	}
	spin_unlock(&mediator->lock);
}

static void nvmep_shared_set_live(struct nvmep_mediator *mediator,
				  struct nvmep_shared *shared, bool live)
{
	spin_lock(&mediator->lock);
	WRITE_ONCE(shared->live, live && !mediator->lost);
	shared->stuck &= !live;
	spin_unlock(&mediator->lock);
}

/*
 * Clears the rings of a queue pair that is not on the controller.  @replace: one
 * is replaced also while the driver is being unbound.
 */
static int nvmep_shared_create(struct nvmep_mediator *mediator,
			       struct nvmep_shared *shared, u32 generation,
			       bool replace)
{
	u16 entries = mediator->entries;
	const struct nvmep_queue_pair_params params = {
		.qid = shared->qid,
		.sq_entries = entries,
		.cq_entries = entries,
		.sq_dma = shared->sq_dma,
		.cq_dma = shared->cq_dma,
		.sq_contiguous = true,
		.cq_contiguous = true,
		.vector = -1,
	};

	lockdep_assert_held(&mediator->mutex);

	memset(shared->cq, 0, entries * sizeof(*shared->cq));
	spin_lock(&mediator->lock);
	shared->sq_tail = 0;
	shared->sq_rung = 0;
	shared->cq_head = 0;
	shared->cq_rung = 0;
	shared->phase = true;
	spin_unlock(&mediator->lock);
	if (replace)
		return nvmep_queue_pair_create_bound(mediator->ctrl, &params,
						     generation);
	return nvmep_queue_pair_create(mediator->ctrl, &params, generation);
}

static void nvmep_shared_replace(struct nvmep_mediator *mediator,
				 struct nvmep_shared *shared)
{
	u32 generation = mediator->generation;

	lockdep_assert_held(&mediator->mutex);

	nvmep_shared_set_live(mediator, shared, false);
	nvmep_queue_pair_delete(mediator->ctrl, shared->qid, generation);
	nvmep_shared_end_all(mediator, shared);
	if (nvmep_ctrl_generation(mediator->ctrl) != generation)
		return;
	if (nvmep_shared_create(mediator, shared, generation, true))
		nvmep_ctrl_ensure_stopped(mediator->ctrl, generation);
	else
		nvmep_shared_set_live(mediator, shared, true);
}

static void nvmep_shared_recover(struct nvmep_mediator *mediator,
				 struct nvmep_shared *shared)
{
	lockdep_assert_held(&mediator->mutex);

	if (nvmep_timeout_deferred(mediator->ctrl) ||
	    nvmep_shared_abort_overdue(mediator, shared)) {
		nvmep_shared_set_live(mediator, shared, true);
		return;
	}
	dev_warn_ratelimited(mediator->ctrl->dev,
			     "queue %u: commands do not end after Abort: deleting the queue pair\n",
			     shared->qid);
	nvmep_shared_replace(mediator, shared);
}

static bool nvmep_mediator_stuck(const struct nvmep_mediator *mediator)
{
	const struct nvmep_shared *shared;

	nvmep_for_each_shared(shared, mediator)
		if (READ_ONCE(shared->stuck))
			return true;
	return false;
}

/* With nvmep_mediator_leave() it is serialized by the mutex. */
static void nvmep_mediator_work(struct work_struct *work)
{
	struct nvmep_mediator *mediator =
		container_of(work, struct nvmep_mediator, work);
	struct nvmep_shared *shared;

	/* The mutex is held over allocations. */
	if (!nvmep_mediator_stuck(mediator))
		return;
	mutex_lock(&mediator->mutex);
	nvmep_for_each_shared(shared, mediator)
		if (READ_ONCE(shared->stuck))
			nvmep_shared_recover(mediator, shared);
	mutex_unlock(&mediator->mutex);
}

/* --- fetch ---------------------------------------------------------------- */

static unsigned long
nvmep_command_timeout(const struct nvmep_tenant_command *command)
{
	const struct request_queue *queue = command->window->blocks.queue;
	unsigned long cpu = READ_ONCE(queue->rq_timeout);

	/* It is that of others, too. */
	if (command->command.opcode == nvme_cmd_flush)
		return cpu;
	return max(command->tenant->timeout, cpu);
}

/* Sends one Flush for all that wait. */
static void nvmep_flushes_issue(struct nvmep_mediator *mediator,
				struct nvmep_flushes *flushes)
{
	struct nvmep_tenant_command *first;
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->lock);

	if (flushes->busy || list_empty(&flushes->waiting) ||
	    test_bit(NVMEP_CTRL_PAUSED, &mediator->ctrl->flags))
		return;
	shared = nvmep_mediator_pick(mediator);
	if (!shared)
		return;
	flushes->busy = true;
	list_splice_init(&flushes->waiting, &flushes->issued);
	first = list_first_entry(&flushes->issued, struct nvmep_tenant_command,
				 node);
	nvmep_shared_submit(mediator, shared, first, &first->command, NULL,
			    nvmep_command_timeout(first));
}

/* --- parts of commands of files --- */

/* The part that begins at @sent, up to the end of the extent. */
static void nvmep_command_next_part(const struct nvmep_tenant_command *command,
				    struct nvmep_mediate_command *part)
{
	const struct nvmep_file *file = command->file;
	u32 blocks = command->command.blocks - command->sent;
	u64 bytes;

	*part = command->command;
	part->slba = nvmep_file_map(file, part->slba + command->sent, &blocks);
	part->blocks = blocks;
	bytes = (u64)blocks << file->shift;
	part->offset += (u64)command->sent << file->shift;
	part->bytes = part->bytes ? bytes : 0;
	part->zeroes = part->zeroes ? bytes : 0;
}

static void nvmep_command_send_part(struct nvmep_mediator *mediator,
				    struct nvmep_shared *shared,
				    struct nvmep_tenant_command *command)
{
	const struct nvmep_segment *segment = command->segment;
	struct nvmep_mediate_command part;

	nvmep_command_next_part(command, &part);
	if (part.bytes)
		while (part.offset - segment->offset >= segment->length)
			segment++;
	command->segment = segment;
	command->sent += part.blocks;
	command->parts++;
	nvmep_shared_submit(mediator, shared, command, &part, segment,
			    nvmep_command_timeout(command));
}

/*
 * Sends parts of a command in mediator->splitting, within its tenant's share;
 * those of Write Zeroes one at a time.
 */
static void nvmep_command_send_parts(struct nvmep_mediator *mediator,
				     struct nvmep_tenant_command *command)
{
	struct nvmep_shared *shared;

	while (command->sent < command->command.blocks) {
		if (command->command.zeroes && command->parts)
			return;
		shared = nvmep_mediator_pick(mediator);
		if (!shared || nvmep_tenant_over_share(command->tenant, shared))
			return;
		nvmep_command_send_part(mediator, shared, command);
	}
	list_del_init(&command->node);
}

/*
 * Others wait for what the command holds, and it has many parts: its window is
 * being removed, its queue pair ends, the I/O of the namespace is held, or it has
 * taken as long as a command may.
 */
static bool nvmep_command_must_end(const struct nvmep_tenant_command *command)
{
	struct request_queue *queue = command->window->blocks.queue;

	return command->file->closing ||
	       list_empty(&command->tenant->qp->relay.node) ||
	       percpu_ref_is_dying(&queue->q_usage_counter) ||
	       time_after(jiffies, command->deadline);
}

static void nvmep_command_continue(struct nvmep_mediator *mediator,
				   struct nvmep_tenant_command *command)
{
	struct nvmep_tenant *tenant = command->tenant;
	u64 began = ktime_get_ns();

	if (!nvmep_command_must_end(command)) {
		nvmep_command_send_parts(mediator, command);
		nvmep_count(&tenant->stats.busy_ns, ktime_get_ns() - began);
		return;
	}
	command->status = NVME_SC_ABORT_REQ;
	list_del_init(&command->node);
	if (!command->parts)
		nvmep_command_parts_done(mediator, command);
}

/* They hold the namespace, as Flush commands do. */
static void nvmep_mediator_send_parts(struct nvmep_mediator *mediator)
{
	struct nvmep_tenant_command *command, *next;

	lockdep_assert_held(&mediator->lock);

	if (test_bit(NVMEP_CTRL_PAUSED, &mediator->ctrl->flags))
		return;
	list_for_each_entry_safe(command, next, &mediator->splitting, node)
		nvmep_command_continue(mediator, command);
}

/* Commands that were admitted, and are not on the controller completely. */
static void nvmep_mediator_issue(struct nvmep_mediator *mediator)
{
	struct nvmep_flushes *flushes;

	list_for_each_entry(flushes, &mediator->flushes, node)
		nvmep_flushes_issue(mediator, flushes);
	nvmep_mediator_send_parts(mediator);
}

/* --- one command --- */

static void nvmep_tenant_count(struct nvmep_tenant *tenant,
			       const struct nvmep_mediate_command *command)
{
	struct nvme_peer_qp_stats *stats = &tenant->stats;

	switch (command->opcode) {
	case nvme_cmd_flush:
		nvmep_count(&stats->flushes, 1);
		break;
	case nvme_cmd_write_zeroes:
		nvmep_count(&stats->zeroes, 1);
		break;
	case nvme_cmd_read:
		nvmep_count(&stats->reads, 1);
		nvmep_count(&stats->read_bytes, command->bytes);
		break;
	default:
		nvmep_count(&stats->writes, 1);
		nvmep_count(&stats->written_bytes, command->bytes);
		break;
	}
}

/*
 * Holds the namespace for a command.  Returns 0; an NVMe status; or -EAGAIN
 * while its I/O is held: the command stays in the ring.
 */
static int nvmep_window_get(struct nvmep_window *window)
{
	if (!nvmep_window_hold(window))
		return test_bit(GD_DEAD, &window->bdev->bd_disk->state) ?
		       nvmep_refuse(NVME_SC_INVALID_NS) : -EAGAIN;
	if (READ_ONCE(*window->blocks.format) == window->blocks.expected)
		return 0;
	nvmep_window_release(window);
	return nvmep_refuse(NVME_SC_INVALID_NS);
}

/* The first part is sent: the caller has checked that there is room. */
static void nvmep_command_split(struct nvmep_tenant_command *command,
				const struct nvmep_segment *segment)
{
	struct nvmep_mediator *mediator = command->tenant->mediator;

	command->segment = segment;
	command->sent = 0;
	command->parts = 0;
	command->deadline = jiffies + nvmep_command_timeout(command);
	command->status = 0;
	list_add_tail(&command->node, &mediator->splitting);
	nvmep_command_send_parts(mediator, command);
}

/* Takes @command, the first of tenant->idle.  It holds its window and data. */
static void nvmep_tenant_submit(struct nvmep_tenant *tenant,
				struct nvmep_shared *shared,
				struct nvmep_tenant_command *command,
				struct nvmep_file *file)
{
	const struct nvmep_mediate_command *checked = &command->command;
	struct nvmep_flushes *flushes = command->window->flushes;
	const struct nvmep_segment *segment = NULL;

	if (command->buf)
		segment = nvmep_segments_find(&command->buf->segments,
					      checked->offset);
	tenant->idle = command->next;
	command->file = file;
	WRITE_ONCE(tenant->in_flight, tenant->in_flight + 1);
	tenant->zeroes |= checked->opcode == nvme_cmd_write_zeroes;
	nvmep_tenant_count(tenant, checked);
	if (checked->opcode == nvme_cmd_flush) {
		list_add_tail(&command->node, &flushes->waiting);
		nvmep_flushes_issue(tenant->mediator, flushes);
		return;
	}
	if (file) {
		nvmep_command_split(command, segment);
		return;
	}
	nvmep_shared_submit(tenant->mediator, shared, command, checked,
			    segment, nvmep_command_timeout(command));
}

/*
 * Returns 0 if the command was submitted; an NVMe status; or -EAGAIN to leave it
 * in the ring.  @file: nvmep_file_begin() was called for the command, or NULL.
 */
static int nvmep_tenant_start(struct nvmep_tenant *tenant,
			      struct nvmep_shared *shared,
			      struct nvmep_tenant_command *command,
			      struct nvmep_file *file)
{
	const struct nvmep_mediate_command *checked = &command->command;
	struct nvmep_window *window = &tenant->windows[checked->window];
	struct nvmep_buf *buf = NULL;
	int ret;

	lockdep_assert_held(&tenant->mediator->lock);

	if (checked->opcode == nvme_cmd_write_zeroes && tenant->zeroes)
		return -EAGAIN;
	ret = nvmep_window_get(window);
	if (ret)
		return ret;
	if (checked->bytes) {
		buf = tenant->buffers[checked->buffer];
		/* Its exporter may have invalidated it since the check. */
		if (!nvmep_data_hold(buf)) {
			nvmep_window_release(window);
			return nvmep_refuse(NVMEP_SC_BUFFER_GONE);
		}
	}
	command->window = window;
	command->buf = buf;
	nvmep_tenant_submit(tenant, shared, command, file);
	return 0;
}

/* As nvmep_tenant_start(), for any window. */
static int nvmep_tenant_start_window(struct nvmep_tenant *tenant,
				     struct nvmep_shared *shared,
				     struct nvmep_tenant_command *command,
				     struct nvmep_file *file)
{
	bool write = nvmep_command_writes(&command->command);
	int ret;

	if (!file || !command->command.blocks)
		return nvmep_tenant_start(tenant, shared, command, NULL);
	ret = nvmep_file_begin(file, write);
	if (ret)
		return ret;
	ret = nvmep_tenant_start(tenant, shared, command, file);
	if (ret)
		nvmep_file_end(file, write);
	return ret;
}

/*
 * Returns the file of the window that an entry names, or NULL.  Reads its device
 * once a turn, which holds mediator->lock: the removal of a window clears its ID
 * under this lock before it waits for commands.
 */
static struct nvmep_file *nvmep_tenant_file(struct nvmep_tenant *tenant, u32 id)
{
	u32 slot = NVMEP_WINDOW_SLOT(id);

	lockdep_assert_held(&tenant->mediator->lock);

	if (slot >= tenant->rights.window_slots)
		return NULL;
	slot = array_index_nospec(slot, tenant->rights.window_slots);
	if (tenant->windows[slot].read_turn != tenant->turns)
		nvmep_window_refresh(tenant, slot);
	return tenant->windows[slot].pinned;
}

/* Each part costs as much as a command. */
static u32 nvmep_tenant_cost(const struct nvmep_mediate_command *command,
			     const struct nvmep_file *file)
{
	u32 cost = nvmep_mediate_cost(command);

	if (!file || !command->blocks)
		return cost;
	return cost + (nvmep_file_parts(file, command->slba, command->blocks) -
		       1) * NVMEP_COMMAND_COST;
}

/*
 * Copies an entry: the tenant may write it at any time.  A loop would cost a
 * check of the index for each word.
 */
static union nvmep_entry nvmep_tenant_copy(const struct nvmep_tenant *tenant)
{
	const u64 *words = tenant->sq[tenant->sq_head].words;

	return (union nvmep_entry){ .words = {
		READ_ONCE(words[0]), READ_ONCE(words[1]),
		READ_ONCE(words[2]), READ_ONCE(words[3]),
		READ_ONCE(words[4]), READ_ONCE(words[5]),
		READ_ONCE(words[6]), READ_ONCE(words[7]),
	} };
}

/*
 * Returns 0 if the entry was taken; or leaves it in the ring: -ENOBUFS if its
 * cost exceeds what is left of the turn, -EAGAIN if it has to wait, for which
 * its tenant keeps its cost.  The tenant has an idle command.
 */
static int nvmep_tenant_fetch_one(struct nvmep_tenant *tenant,
				  struct nvmep_shared *shared)
{
	struct nvmep_tenant_command *command = tenant->idle;
	const union nvmep_entry entry = nvmep_tenant_copy(tenant);
	struct nvmep_mediate_command *checked = &command->command;
	struct nvmep_file *file;
	int status;
	u32 cost;

	file = nvmep_tenant_file(tenant, le32_to_cpu(entry.dwords[1]));
	status = nvmep_mediate_check(&tenant->rights, entry.dwords, checked);
	cost = nvmep_tenant_cost(checked, status ? NULL : file);
	if (cost > tenant->deficit)
		return -ENOBUFS;
	if (!status)
		status = nvmep_tenant_start_window(tenant, shared, command,
						   file);
	if (status < 0) {
		tenant->deficit = cost;
		return status;
	}
	tenant->deficit -= cost;
	if (++tenant->sq_head == tenant->qp->sq_entries)
		tenant->sq_head = 0;
	if (status) {
		nvmep_count(&tenant->stats.refused, 1);
		nvmep_tenant_post(tenant, checked->cid, status);
	}
	return 0;
}

/* --- turns of the tenants --- */

/**
 * struct nvmep_round - what one pass has fetched
 * @taken: entries
 * @active: tenants that took some, or save for one
 * @alone: the last of them, if it took some and saves for its next one
 * @saving: a tenant saves for a command
 */
struct nvmep_round {
	unsigned int taken;
	unsigned int active;
	struct nvmep_qp *alone;
	bool saving;
};

/*
 * Entries that may be taken, each of which uses one place in the completion
 * queue: for a completion entry, or for a command in flight.
 */
static u32 nvmep_tenant_room(const struct nvmep_tenant *tenant)
{
	u32 entries = tenant->qp->cq_entries;
	u32 used = (tenant->cq_tail + entries - tenant->cq_head) % entries +
		   tenant->in_flight + 1;

	return entries - min(used, entries);
}

/* I/O of the CPU is held in the same states. */
static bool nvmep_mediator_held(const struct nvmep_mediator *mediator)
{
	return nvmep_ctrl_state(mediator->ctrl) != NVMEP_CTRL_LIVE ||
	       test_bit(NVMEP_CTRL_PAUSED, &mediator->ctrl->flags);
}

/*
 * Takes entries up to @tail.  Returns 0 if its turn ends because there is none, or
 * it has no room; -EAGAIN if its next one has to wait; -ENOBUFS if the turn is used
 * up; -EBUSY or -EDQUOT if the turn goes on in the next pass: the shared queue pairs
 * have no room or the pass has taken enough, or the tenant has its share.
 */
static int nvmep_tenant_fetch(struct nvmep_tenant *tenant, u32 tail,
			      struct nvmep_round *round)
{
	u32 room = nvmep_tenant_room(tenant);
	struct nvmep_shared *shared;
	int err;

	for (; tenant->sq_head != tail && room && tenant->idle; room--) {
		shared = nvmep_mediator_pick(tenant->mediator);
		if (!shared || round->taken == NVMEP_PASS_ENTRIES)
			return -EBUSY;
		if (nvmep_tenant_over_share(tenant, shared))
			return -EDQUOT;
		err = nvmep_tenant_fetch_one(tenant, shared);
		if (err)
			return err;
		round->taken++;
	}
	return 0;
}

/*
 * Deficit round robin: a tenant gets credit once, when its turn begins.  What
 * its next command costs beyond that it saves for its next turns; it saves
 * nothing while it has no command, and no more while that has to wait.
 */
static int nvmep_tenant_turn(struct nvmep_tenant *tenant, u32 tail,
			     struct nvmep_round *round)
{
	int err;

	lockdep_assert_held(&tenant->mediator->lock);

	tenant->turns++;
	if (!tenant->turn)
		tenant->deficit += (u64)NVMEP_QUANTUM * tenant->weight;
	err = nvmep_tenant_fetch(tenant, tail, round);
	tenant->turn = err == -EBUSY || err == -EDQUOT;
	if (!err)
		tenant->deficit = 0;
	/* It waits for other turns, not for a sleep of the thread. */
	round->saving |= err == -ENOBUFS;
	return err;
}

/* A turn, and further ones until the pass has taken @most entries; 0: one turn. */
static int nvmep_tenant_turns(struct nvmep_tenant *tenant, u32 tail,
			      unsigned int most, struct nvmep_round *round)
{
	unsigned int before;
	int err;

	do {
		before = round->taken;
		err = nvmep_tenant_turn(tenant, tail, round);
	} while (err == -ENOBUFS && round->taken > before &&
		 round->taken < most);
	return err;
}

/* Returns -ESHUTDOWN if the tenant takes no commands, else as above. */
static int nvmep_tenant_pass(struct nvmep_tenant *tenant, unsigned int most,
			     struct nvmep_round *round)
{
	struct nvmep_qp *qp = tenant->qp;
	u64 began;
	u32 tail;
	int err;

	if (!READ_ONCE(qp->relay.open) ||
	    !nvmep_relay_read(qp, &qp->relay.cq, &tenant->cq_head) ||
	    !nvmep_relay_read(qp, &qp->relay.sq, &tail))
		return -ESHUTDOWN;
	if (tail == tenant->sq_head) {
		tenant->turn = false;
		tenant->deficit = 0;
		return 0;
	}
	/* The entries that the tail announces, after it. */
	dma_rmb();
	began = ktime_get_ns();
	err = nvmep_tenant_turns(tenant, tail, most, round);
	nvmep_count(&tenant->stats.busy_ns, ktime_get_ns() - began);
	return err;
}

/*
 * Further turns of the only tenant that has commands to take.  Its doorbells
 * are read once, and those of others not again: that takes time for each turn.
 */
static void nvmep_mediator_fetch_alone(struct nvmep_mediator *mediator,
				       struct nvmep_round *round)
{
	struct nvmep_qp *qp = round->alone;
	int err = nvmep_tenant_pass(qp->tenant, NVMEP_ALONE_ENTRIES, round);

	if (err == -ESHUTDOWN)
		list_del_init(&qp->relay.node);
	else if (err == -EBUSY)
		list_move(&qp->relay.node, &mediator->tenants);
}

/* Notes a tenant that took an entry, or saves for one. */
static void nvmep_round_note(struct nvmep_round *round, struct nvmep_qp *qp,
			     unsigned int before, int err)
{
	if (round->taken == before && err != -ENOBUFS)
		return;
	round->active++;
	round->alone = err == -ENOBUFS && round->taken > before ? qp : NULL;
}

/*
 * The tenant whose turn it is comes first, also in the next pass; before it those
 * that got nothing because their users have their shares: what these give back
 * is for them, not for the tenants that had it.
 */
static enum nvmep_relay_seen nvmep_mediator_fetch(struct nvmep_mediator *mediator)
{
	struct nvmep_round round = { };
	struct nvmep_qp *qp, *last;
	unsigned int before;
	LIST_HEAD(waiting);
	int err = 0;

	if (list_empty(&mediator->tenants))
		return NVMEP_RELAY_CLOSED;
	last = list_last_entry(&mediator->tenants, struct nvmep_qp, relay.node);
	do {
		qp = list_first_entry(&mediator->tenants, struct nvmep_qp,
				      relay.node);
		before = round.taken;
		err = nvmep_tenant_pass(qp->tenant, 0, &round);
		nvmep_round_note(&round, qp, before, err);
		if (err == -ESHUTDOWN)
			list_del_init(&qp->relay.node);
		else if (err == -EDQUOT && round.taken == before)
			list_move_tail(&qp->relay.node, &waiting);
		else if (err != -EBUSY)
			list_move_tail(&qp->relay.node, &mediator->tenants);
	} while (err != -EBUSY && qp != last);
	if (round.active == 1 && round.alone)
		nvmep_mediator_fetch_alone(mediator, &round);
	list_splice(&waiting, &mediator->tenants);
	if (round.taken || round.saving)
		return NVMEP_RELAY_ACTIVE;
	return list_empty(&mediator->tenants) ? NVMEP_RELAY_CLOSED :
						NVMEP_RELAY_IDLE;
}

/* --- the pass ------------------------------------------------------------- */

/* Returns NVMEP_RELAY_CLOSED unless commands have completed. */
static enum nvmep_relay_seen nvmep_mediator_reap(struct nvmep_mediator *mediator)
{
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->lock);

	nvmep_for_each_shared(shared, mediator)
		if (shared->live)
			nvmep_shared_reap(mediator, shared);
	nvmep_mediator_check_timeouts(mediator);
	return nvmep_mediator_publish(mediator);
}

static enum nvmep_relay_seen
nvmep_mediator_pass_locked(struct nvmep_mediator *mediator)
{
	enum nvmep_relay_seen completed, seen = NVMEP_RELAY_CLOSED;

	lockdep_assert_held(&mediator->lock);

	if (!nvmep_mediator_check(mediator))
		return NVMEP_RELAY_CLOSED;
	completed = nvmep_mediator_reap(mediator);
	nvmep_mediator_issue(mediator);
	if (!nvmep_mediator_held(mediator))
		seen = nvmep_mediator_fetch(mediator);
	else if (!list_empty(&mediator->tenants))
		seen = NVMEP_RELAY_IDLE;
	if (nvmep_mediator_must_ring(mediator))
		nvmep_mediator_ring(mediator);
	if (mediator->in_flight || !list_empty(&mediator->splitting))
		seen = max(seen, NVMEP_RELAY_IDLE);
	return max(seen, completed);
}

/**
 * nvmep_mediator_pass() - complete and submit commands of all tenants
 * @mediator: the mediator; poller->lock is held
 *
 * Return: what was found.
 */
enum nvmep_relay_seen nvmep_mediator_pass(struct nvmep_mediator *mediator)
{
	enum nvmep_relay_seen seen;

	spin_lock(&mediator->lock);
	seen = nvmep_mediator_pass_locked(mediator);
	spin_unlock(&mediator->lock);
	return seen;
}

/*
 * Returns whether some are left of @batch and earlier ones.  @batch: 0 in the
 * first call, which sets it.
 */
static bool nvmep_mediator_poll_once(struct nvmep_mediator *mediator,
				     u64 *batch)
{
	const struct nvmep_tenant_command *first;
	bool more;

	spin_lock(&mediator->lock);
	if (nvmep_mediator_check(mediator)) {
		nvmep_mediator_reap(mediator);
		nvmep_mediator_issue(mediator);
		nvmep_mediator_ring(mediator);
	}
	if (!*batch)
		*batch = mediator->batch;
	first = mediator->done;
	more = first && first->batch <= *batch;
	spin_unlock(&mediator->lock);
	return more;
}

/**
 * nvmep_mediator_poll() - complete commands, and submit none
 * @mediator: the mediator
 *
 * For code that waits for them, while the thread may be frozen: all that have
 * ended by now, as a freeze polls only a few times a second.  May reschedule.
 */
void nvmep_mediator_poll(struct nvmep_mediator *mediator)
{
	u64 batch = 0;

	while (nvmep_mediator_poll_once(mediator, &batch))
		cond_resched();
}

static void nvmep_tenant_store_asleep(struct nvmep_qp *qp, bool asleep)
{
	struct nvme_peer_status *status =
		page_address(qp->status_page->pages[0]);

	WRITE_ONCE(status->poller_asleep, cpu_to_le32(asleep));
}

/**
 * nvmep_mediator_report() - report in the status pages that the thread sleeps
 * @mediator: the mediator; poller->lock is held
 * @asleep: it sleeps
 */
void nvmep_mediator_report(struct nvmep_mediator *mediator, bool asleep)
{
	struct nvmep_qp *qp;

	spin_lock(&mediator->lock);
	list_for_each_entry(qp, &mediator->tenants, relay.node)
		nvmep_tenant_store_asleep(qp, asleep);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_add() - have a tenant served that is LIVE
 * @tenant: the tenant; poller->lock is held
 * @asleep: the thread sleeps
 */
void nvmep_mediator_add(struct nvmep_tenant *tenant, bool asleep)
{
	struct nvmep_mediator *mediator = tenant->mediator;
	struct nvmep_qp *qp = tenant->qp;

	spin_lock(&mediator->lock);
	if (list_empty(&qp->relay.node))
		list_add_tail(&qp->relay.node, &mediator->tenants);
	nvmep_tenant_store_asleep(qp, asleep);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_remove() - submit no further command of a tenant
 * @tenant: the tenant
 */
void nvmep_mediator_remove(struct nvmep_tenant *tenant)
{
	struct nvmep_mediator *mediator = tenant->mediator;

	spin_lock(&mediator->lock);
	list_del_init(&tenant->qp->relay.node);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_count() - number of tenants that are served
 * @mediator: the mediator
 *
 * Return: the number.
 */
unsigned int nvmep_mediator_count(struct nvmep_mediator *mediator)
{
	unsigned int count = 0;
	struct nvmep_qp *qp;

	spin_lock(&mediator->lock);
	list_for_each_entry(qp, &mediator->tenants, relay.node)
		count++;
	spin_unlock(&mediator->lock);
	return count;
}

/* --- creation and end ----------------------------------------------------- */

static void nvmep_shared_free_qid(struct nvmep_mediator *mediator,
				  struct nvmep_shared *shared)
{
	if (shared->qid)
		nvmep_qid_free(mediator->ctrl, shared->qid, false);
	shared->qid = 0;
}

/* These queues do not block Format NVM as a peer's do: a freeze holds them. */
static int nvmep_shared_alloc_qid(struct nvmep_mediator *mediator,
				  struct nvmep_shared *shared)
{
	int qid = nvmep_qid_alloc(mediator->ctrl, NVMEP_QID_SHARED);

	if (qid < 0)
		return qid;
	shared->qid = qid;
	return 0;
}

static void nvmep_shared_free(struct nvmep_mediator *mediator,
			      struct nvmep_shared *shared)
{
	u16 entries = mediator->entries;
	struct nvmep_ctrl *ctrl = mediator->ctrl;
	struct nvmep_shared_slot *slot;

	if (shared->sq)
		dma_free_coherent(ctrl->dev, entries * sizeof(*shared->sq),
				  shared->sq, shared->sq_dma);
	if (shared->cq)
		dma_free_coherent(ctrl->dev, entries * sizeof(*shared->cq),
				  shared->cq, shared->cq_dma);
	nvmep_for_each_slot(slot, shared)
		if (slot->list)
			dma_pool_free(ctrl->prp_pool, slot->list,
				      slot->list_dma);
	nvmep_shared_free_qid(mediator, shared);
	memset(shared, 0, sizeof(*shared));
}

static int nvmep_shared_alloc_lists(struct nvmep_mediator *mediator,
				    struct nvmep_shared *shared)
{
	struct nvmep_shared_slot *slot;
	u16 i;

	for (i = nvmep_shared_slots(mediator); i--; ) {
		slot = &shared->slots[i];
		slot->cid = i;
		slot->list = dma_pool_alloc(mediator->ctrl->prp_pool,
					    GFP_KERNEL, &slot->list_dma);
		if (!slot->list)
			return -ENOMEM;
	}
	return 0;
}

static int nvmep_shared_alloc(struct nvmep_mediator *mediator,
			      struct nvmep_shared *shared)
{
	u16 entries = mediator->entries;
	struct nvmep_ctrl *ctrl = mediator->ctrl;
	int err = nvmep_shared_alloc_qid(mediator, shared);

	if (err)
		return err;
	shared->sq = dma_alloc_coherent(ctrl->dev,
					entries * sizeof(*shared->sq),
					&shared->sq_dma, GFP_KERNEL);
	shared->cq = dma_alloc_coherent(ctrl->dev,
					entries * sizeof(*shared->cq),
					&shared->cq_dma, GFP_KERNEL);
	if (!shared->sq || !shared->cq)
		return -ENOMEM;
	return nvmep_shared_alloc_lists(mediator, shared);
}

static void nvmep_mediator_free_shared(struct nvmep_mediator *mediator)
{
	struct nvmep_shared *shared;

	lockdep_assert_held(&mediator->mutex);

	nvmep_for_each_shared(shared, mediator)
		nvmep_shared_free(mediator, shared);
}

static int nvmep_mediator_alloc_shared(struct nvmep_mediator *mediator)
{
	struct nvmep_shared *shared;
	int err;

	lockdep_assert_held(&mediator->mutex);

	nvmep_for_each_shared(shared, mediator) {
		err = nvmep_shared_alloc(mediator, shared);
		if (err) {
			nvmep_mediator_free_shared(mediator);
			return err;
		}
	}
	return 0;
}

static struct nvmep_mediator *
nvmep_mediator_alloc(struct nvmep_ctrl *ctrl, struct nvmep_poller *poller)
{
	struct nvmep_mediator *mediator;

	mediator = kzalloc(sizeof(*mediator), GFP_KERNEL);
	if (!mediator)
		return NULL;
	mediator->ctrl = ctrl;
	mediator->poller = poller;
	mediator->readers = nvmep_poller_readers(poller);
	mediator->entries = min_t(u32, NVMEP_SHARED_ENTRIES, ctrl->max_entries);
	mediator->lost = true;
	INIT_LIST_HEAD(&mediator->poller_node);
	mutex_init(&mediator->mutex);
	spin_lock_init(&mediator->lock);
	INIT_LIST_HEAD(&mediator->tenants);
	INIT_LIST_HEAD(&mediator->splitting);
	INIT_LIST_HEAD(&mediator->cached);
	mediator->done_end = &mediator->done;
	INIT_LIST_HEAD(&mediator->flushes);
	INIT_LIST_HEAD(&mediator->accounts);
	INIT_WORK(&mediator->work, nvmep_mediator_work);
	return mediator;
}

/* The mediator of the controller, which is not @fresh if that lost a race. */
static struct nvmep_mediator *
nvmep_mediator_install(struct nvmep_peers *peers, struct nvmep_mediator *fresh)
{
	struct nvmep_mediator *mediator;

	mutex_lock(&peers->lock);
	if (!peers->mediator)
		WRITE_ONCE(peers->mediator, fresh);
	mediator = peers->mediator;
	mutex_unlock(&peers->lock);
	if (mediator != fresh)
		kfree(fresh);
	return mediator;
}

static int nvmep_mediator_get(struct nvmep_mediator *mediator)
{
	int err = 0;

	mutex_lock(&mediator->mutex);
	if (!mediator->users) {
		err = nvmep_mediator_alloc_shared(mediator);
		if (!err)
			nvmep_poller_add_mediator(mediator);
	}
	mediator->users += !err;
	mutex_unlock(&mediator->mutex);
	return err;
}

/**
 * nvmep_mediator_join() - have a tenant served by the mediator of its controller
 * @tenant: new; the caller holds the lock of its queue pair
 *
 * Return: 0, -ENOMEM, or -ENOSPC without queue IDs for the shared queue pairs.
 */
int nvmep_mediator_join(struct nvmep_tenant *tenant)
{
	struct nvmep_peers *peers = tenant->qp->ctrl->peers;
	struct nvmep_mediator *mediator = READ_ONCE(peers->mediator);
	int err;

	if (!mediator) {
		mediator = nvmep_mediator_alloc(tenant->qp->ctrl,
						tenant->qp->relay.poller);
		if (!mediator)
			return -ENOMEM;
		mediator = nvmep_mediator_install(peers, mediator);
	}
	err = nvmep_account_get(mediator, tenant);
	if (err)
		return err;
	tenant->mediator = mediator;
	err = nvmep_mediator_get(mediator);
	if (err) {
		nvmep_account_put(tenant);
		return err;
	}
	/* The node of the controller may have changed since. */
	tenant->qp->relay.poller = mediator->poller;
	return 0;
}

static void nvmep_mediator_delete_shared(struct nvmep_mediator *mediator)
{
	u32 generation = mediator->generation;
	struct nvmep_shared *shared;
	bool exists;

	lockdep_assert_held(&mediator->mutex);

	nvmep_for_each_shared(shared, mediator) {
		exists = READ_ONCE(shared->live);
		nvmep_shared_set_live(mediator, shared, false);
		if (exists)
			nvmep_queue_pair_delete(mediator->ctrl, shared->qid,
						generation);
	}
	spin_lock(&mediator->lock);
	nvmep_mediator_lose(mediator);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_mediator_leave() - undo nvmep_mediator_join()
 * @tenant: without commands in flight; the caller holds the lock of its queue
 *	pair
 *
 * The last one deletes the shared queue pairs.
 */
void nvmep_mediator_leave(struct nvmep_tenant *tenant)
{
	struct nvmep_mediator *mediator = tenant->mediator;

	nvmep_account_put(tenant);
	mutex_lock(&mediator->mutex);
	if (!--mediator->users) {
		nvmep_poller_remove_mediator(mediator);
		nvmep_mediator_delete_shared(mediator);
		nvmep_mediator_free_shared(mediator);
	}
	mutex_unlock(&mediator->mutex);
}

static int nvmep_mediator_create_shared(struct nvmep_mediator *mediator,
					u32 generation)
{
	struct nvmep_shared *shared;
	int err;

	lockdep_assert_held(&mediator->mutex);

	nvmep_for_each_shared(shared, mediator) {
		err = nvmep_shared_create(mediator, shared, generation, false);
		if (err)
			goto delete;
	}
	return 0;

delete:
	while (shared != mediator->shared)
		nvmep_queue_pair_delete(mediator->ctrl, (--shared)->qid,
					generation);
	return err;
}

static void nvmep_mediator_set_found(struct nvmep_mediator *mediator,
				     u32 generation)
{
	struct nvmep_shared *shared;

	spin_lock(&mediator->lock);
	mediator->generation = generation;
	mediator->lost = false;
	nvmep_for_each_shared(shared, mediator)
		shared->live = true;
	spin_unlock(&mediator->lock);
}

/*
 * Returns -ENOENT if the shared queue pairs do not exist, -EAGAIN if they exist
 * in another generation, which their tenants use.
 */
static int nvmep_mediator_find_running(struct nvmep_mediator *mediator,
				       u32 generation)
{
	int err = -ENOENT;

	spin_lock(&mediator->lock);
	if (nvmep_mediator_check(mediator))
		err = mediator->generation == generation ? 0 : -EAGAIN;
	spin_unlock(&mediator->lock);
	return err;
}

/* A reset may have granted fewer queues: other IDs for those above. */
static int nvmep_mediator_renew_qids(struct nvmep_mediator *mediator)
{
	struct nvmep_shared *shared;
	int err;

	lockdep_assert_held(&mediator->mutex);

	nvmep_for_each_shared(shared, mediator) {
		if (nvmep_qid_granted(mediator->ctrl, shared->qid))
			continue;
		nvmep_shared_free_qid(mediator, shared);
		err = nvmep_shared_alloc_qid(mediator, shared);
		if (err)
			return err;
	}
	return 0;
}

/**
 * nvmep_mediator_start() - create the shared queue pairs, unless they exist
 * @mediator: the mediator, with a user
 * @generation: generation that the controller must be in
 *
 * Return: 0; -EAGAIN in another generation; -ENOSPC if the controller grants too
 * few queues; or an error of nvmep_queue_pair_create().
 */
int nvmep_mediator_start(struct nvmep_mediator *mediator, u32 generation)
{
	int err;

	mutex_lock(&mediator->mutex);
	err = nvmep_mediator_find_running(mediator, generation);
	if (err == -ENOENT) {
		err = nvmep_mediator_renew_qids(mediator);
		if (!err)
			err = nvmep_mediator_create_shared(mediator, generation);
		if (!err)
			nvmep_mediator_set_found(mediator, generation);
	}
	mutex_unlock(&mediator->mutex);
	return err;
}

/**
 * nvmep_mediator_exit() - the driver is being unbound
 * @peers: of the controller, without queue pairs
 */
void nvmep_mediator_exit(struct nvmep_peers *peers)
{
	if (peers->mediator)
		cancel_work_sync(&peers->mediator->work);
}

/**
 * nvmep_mediator_free() - free the mediator of a controller
 * @peers: of the controller, which nothing uses any more
 */
void nvmep_mediator_free(struct nvmep_peers *peers)
{
	struct nvmep_mediator *mediator = peers->mediator;

	if (!mediator)
		return;
	nvmep_accounts_free(mediator);
	kfree(mediator);
}
