/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of operations; each ends with an entry without a name. */
#ifndef FUZZ_OPERATIONS_H
#define FUZZ_OPERATIONS_H

#include "fuzz.h"

/**
 * struct fuzz_operation - one kind of call
 * @name: in reports
 * @weight: how often, relative to others
 * @root: useful for privileged callers only
 * @run: makes the call; all choices come from @thread
 */
struct fuzz_operation {
	const char *name;
	unsigned int weight;
	bool root;
	void (*run)(struct fuzz_thread *thread);
};

extern const struct fuzz_operation fuzz_peer_operations[];
extern const struct fuzz_operation fuzz_memory_operations[];
extern const struct fuzz_operation fuzz_nvme_operations[];
extern const struct fuzz_operation fuzz_process_operations[];
extern const struct fuzz_operation fuzz_rights_operations[];
extern const struct fuzz_operation fuzz_transfer_operations[];

#endif /* FUZZ_OPERATIONS_H */
