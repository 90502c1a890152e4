/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The route from a controller to another function: the verdict of the module if it is
 * bound to the controller, else an estimate from the ACS bits of the bridges.
 */
#ifndef ROUTE_H
#define ROUTE_H

#include <nvmepeer.h>
#include <stdbool.h>

#include "pci.h"

enum { ROUTE_VERDICT = 80, ROUTE_FIX = 256 };

/**
 * struct route - how requests get from a controller to a peer
 * @peer: the other function
 * @controller: the controller
 * @from_module: @path is the verdict of the module; else it is an estimate, and whether a
 *	host bridge forwards is unknown
 * @acs_hidden: not all ACS bits could be read
 * @path: the verdict, or the estimate
 */
struct route {
	const struct pci_function *peer;
	const struct pci_function *controller;
	bool from_module;
	bool acs_hidden;
	struct nvme_peer_route path;
};

/* route_find() - determine the route between @peer and @controller. */
void route_find(struct route *route, const struct pci_function *peer,
		const struct pci_function *controller);

/* route_is_open() - true if requests are known to arrive. */
bool route_is_open(const struct route *route);

/* route_verdict() - short name: "bus-address", "host-bridge?"; returns @text. */
const char *route_verdict(const struct route *route, char text[ROUTE_VERDICT]);

/* route_reason() - short name of the reason. */
const char *route_reason(const struct route *route);

/**
 * route_fixes() - commands that remove what blocks the route
 * @route: route, from route_find()
 * @show: called with each line
 * @context: argument of @show
 */
void route_fixes(const struct route *route, void (*show)(const char *line, void *context),
		 void *context);

#endif /* ROUTE_H */
