/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Controllers' nodes by their names, for what asks many of them.
 */
#ifndef NODE_H
#define NODE_H

#include <nvmepeer.h>
#include <stdbool.h>

/**
 * struct node_pairs - queue pairs that peers may have on a controller
 * @known: the node could be asked
 * @used: they have so many now
 * @most: and may have so many
 */
struct node_pairs {
	bool known;
	uint32_t used;
	uint32_t most;
};

/* node_ctrl_open() - open nvmepX of the machine that sysfs.h shows; as nvmepeer_open(). */
int node_ctrl_open(const char *name, struct nvmepeer **ctrl);

/* node_pairs() - the queue pairs of peers; not known without the right to ask. */
void node_pairs(const char *name, struct node_pairs *pairs);

#endif /* NODE_H */
