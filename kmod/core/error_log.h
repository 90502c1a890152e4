/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Log lines of failed commands.
 */
#ifndef _NVMEP_ERROR_LOG_H
#define _NVMEP_ERROR_LOG_H

struct request;

void nvmep_error_log(struct request *rq);

#endif /* _NVMEP_ERROR_LOG_H */
