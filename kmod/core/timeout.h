/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to a command that takes too long.
 */
#ifndef _NVMEP_TIMEOUT_H
#define _NVMEP_TIMEOUT_H

#include <linux/blk-mq.h>

enum blk_eh_timer_return nvmep_timeout(struct request *rq);

#endif /* _NVMEP_TIMEOUT_H */
