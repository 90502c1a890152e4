/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept of commands that failed.
 */
#ifndef _NVMEP_FAILURE_H
#define _NVMEP_FAILURE_H

#include <linux/atomic.h>
#include <linux/types.h>

struct request;

/**
 * struct nvmep_failures - what is kept of failed commands, of one request queue
 * @errors: so many ended with an error, of user space's those while @log_passthru was set
 * @retries: so many times one was sent again
 * @log_passthru: the log tells of each that user space sent; read and written once
 *
 * Whoever may write the attributes sets any of them.
 */
struct nvmep_failures {
	atomic_long_t errors;
	atomic_long_t retries;
	bool log_passthru;
};

void nvmep_failure_retried(struct nvmep_failures *failures);
void nvmep_failure_ended(struct nvmep_failures *failures, struct request *rq);

#endif /* _NVMEP_FAILURE_H */
