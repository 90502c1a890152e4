/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The queue pairs of all processes.  A queue pair is a file, and the open files of the processes
 * are the only list of them.
 */
#ifndef QP_FILES_H
#define QP_FILES_H

#include <nvmepeer.h>

/**
 * struct qp_file - a queue pair as an open file
 * @command: name of the process
 * @controller: node of the controller
 * @info: its state
 * @limits: of mediated mode, otherwise 0
 * @stats: of mediated mode, otherwise 0
 */
struct qp_file {
	char command[64];
	char controller[64];
	struct nvme_peer_qp_info info;
	struct nvme_peer_qp_limits limits;
	struct nvme_peer_qp_stats stats;
};

/* qp_files_each() - call @visit for each; requires access to the processes. Returns 0 or -errno. */
int qp_files_each(void (*visit)(int pid, int fd, void *context), void *context);

/*
 * qp_file_read() - read one. Returns 0; -errno without access to the descriptor; or a positive
 * number if it is no queue pair, which nvmepeer_explain() explains.
 */
int qp_file_read(int pid, int fd, struct qp_file *file);

#endif /* QP_FILES_H */
