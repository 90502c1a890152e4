/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The PCI functions that nvme-peer topo shows.
 */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include <stdbool.h>
#include <stdio.h>

#include "pci.h"
#include "route.h"

/**
 * struct topology - the functions and those that are shown
 * @pci: all functions
 * @is_peer: per function: it is a peer
 * @is_shown: per function: it is a peer, a controller, or a bridge above one
 */
struct topology {
	struct pci pci;
	bool *is_peer;
	bool *is_shown;
};

typedef void topology_visit(const struct pci_function *function, int depth, void *context);

/* topology_walk() - call @visit for each function that is shown, a bridge before those below it. */
void topology_walk(const struct topology *topology, topology_visit *visit, void *context);

/* topology_each_route() - call @show for each pair of a peer and a controller. */
void topology_each_route(const struct topology *topology,
			 void (*show)(const struct route *route, void *context), void *context);

#endif /* TOPOLOGY_H */
