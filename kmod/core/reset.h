/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Start, stop and reset of a controller.  reset.c has the sequence.
 */
#ifndef _NVMEP_RESET_H
#define _NVMEP_RESET_H

#include <linux/blk-mq.h>
#include <linux/types.h>

struct cpumask;
struct nvmep_ctrl;

/* identify.c */
bool nvmep_cns_allowed(const struct nvmep_ctrl *ctrl, u8 cns);
int nvmep_ctrl_identify(struct nvmep_ctrl *ctrl);
int nvmep_read_effects(struct nvmep_ctrl *ctrl, u8 csi,
		       struct nvme_effects_log **effects);
void nvmep_ctrl_reread_firmware(struct nvmep_ctrl *ctrl);
int nvmep_set_host_features(struct nvmep_ctrl *ctrl);

/* io_queues.c */
int nvmep_ctrl_add_queues(struct nvmep_ctrl *ctrl, unsigned int count);
void nvmep_cpu_queue_set_affinity(struct nvmep_ctrl *ctrl, unsigned int index,
				  const struct cpumask *mask);
int nvmep_start_queues(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_ctrl_free_queues(struct nvmep_ctrl *ctrl);

/* stop.c */
void nvmep_ctrl_stop_locked(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_stop(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_ensure_stopped(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_ctrl_notify_stopped(struct nvmep_ctrl *ctrl);

/* timeout.c */
bool nvmep_timeout_deferred(const struct nvmep_ctrl *ctrl);
enum blk_eh_timer_return nvmep_timeout(struct request *rq);

/* reset.c */
void nvmep_reset_init(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_start(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_wait_restart(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_subsystem(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_set_queue_split(struct nvmep_ctrl *ctrl, unsigned int count);
int nvmep_ctrl_set_live(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_allow_rearm(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_ctrl_prepare(struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_save_config(struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_restore_config(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_shutdown(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_fail(struct nvmep_ctrl *ctrl, const char *why, int ret);
void nvmep_ctrl_fail_link(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_RESET_H */
