// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller may grant fewer queues after a reset.  The block layer still has
 * requests for those that are gone: their bios wait here until it was told, and
 * are submitted anew.
 */
#include <linux/blk-mq.h>

#include "core/ctrl.h"
#include "core/request.h"
#include "cpu.h"
#include "moved.h"

/**
 * nvmep_moved_add() - a request's queue has gone: keep its bios for another
 * @ctrl: controller
 * @rq: request that is being dispatched
 *
 * Passthrough, and the block layer's own flushes, have none and fail: nobody but
 * who sent them can send them again.
 *
 * Return: BLK_STS_OK, and the request has ended, or BLK_STS_IOERR.
 */
blk_status_t nvmep_moved_add(struct nvmep_ctrl *ctrl, struct request *rq)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	unsigned long flags;

	if (blk_rq_is_passthrough(rq) || !rq->bio) {
		nvmep_request(rq)->status = NVME_SC_HOST_PATH_ERROR;
		return BLK_STS_IOERR;
	}
	blk_mq_start_request(rq);
	spin_lock_irqsave(&cpu->moved_lock, flags);
	blk_steal_bios(&cpu->moved, rq);
	spin_unlock_irqrestore(&cpu->moved_lock, flags);
	blk_mq_end_request(rq, BLK_STS_OK);
	return BLK_STS_OK;
}

/**
 * nvmep_moved_submit() - submit the bios of nvmep_moved_add() anew
 * @ctrl: controller; the block layer knows its queues, or all I/O fails
 *
 * May wait for room in the queues.
 */
void nvmep_moved_submit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;
	struct bio_list moved;
	struct bio *bio;

	spin_lock_irq(&cpu->moved_lock);
	moved = cpu->moved;
	bio_list_init(&cpu->moved);
	spin_unlock_irq(&cpu->moved_lock);
	while ((bio = bio_list_pop(&moved)))
		submit_bio_noacct(bio);
}
