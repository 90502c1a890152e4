/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file of a queue pair.
 */
#ifndef _NVMEP_QP_FILE_H
#define _NVMEP_QP_FILE_H

struct file;
struct nvmep_qp;

struct file *nvmep_qp_file(struct nvmep_qp *qp);

#endif /* _NVMEP_QP_FILE_H */
