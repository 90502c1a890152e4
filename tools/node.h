/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Controller nodes by name, for commands that query all controllers.
 */
#ifndef NODE_H
#define NODE_H

#include <nvmepeer.h>
#include <stdbool.h>

/**
 * struct node_pairs - queue pairs of peers on a controller
 * @known: the node could be opened
 * @used: current number
 * @most: limit
 * @quarantined: queue IDs whose doorbells other processes or importers may store to
 */
struct node_pairs {
	bool known;
	uint32_t used;
	uint32_t most;
	uint32_t quarantined;
};

/* node_ctrl_open() - nvmepeer_open() of nvmepX below the root of sysfs.h. */
int node_ctrl_open(const char *name, struct nvmepeer **ctrl);

/* node_pairs() - queue pairs of peers; unknown without permission to open the node. */
void node_pairs(const char *name, struct node_pairs *pairs);

#endif /* NODE_H */
