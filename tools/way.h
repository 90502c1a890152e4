/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The way from a controller to another function: the module's answer where it
 * has the controller, else what the bridges' ACS bits alone tell.
 */
#ifndef WAY_H
#define WAY_H

#include <nvmepeer.h>
#include <stdbool.h>

#include "pci.h"

enum { WAY_VERDICT = 80, WAY_CURE = 256 };

/**
 * struct way - how requests get from a controller to a peer
 * @peer: the other function
 * @controller: the controller
 * @asked: the module has answered; else it leads through a host bridge unless
 *	@route says that a switch turns it around, and nobody was asked about that
 * @blind: not all ACS bits could be read
 * @route: the answer, or what sysfs tells in its place
 */
struct way {
	const struct pci_function *peer;
	const struct pci_function *controller;
	bool asked;
	bool blind;
	struct nvme_peer_route route;
};

/* way_find() - fill @way in for its @peer and @controller. */
void way_find(struct way *way, const struct pci_function *peer,
	      const struct pci_function *controller);

/* way_is_open() - requests are known to arrive. */
bool way_is_open(const struct way *way);

/* way_verdict() - in a word: "bus-address", "host-bridge?"; returns @text. */
const char *way_verdict(const struct way *way, char text[WAY_VERDICT]);

/* way_reason() - why. */
const char *way_reason(const struct way *way);

/**
 * way_cures() - what to type to change what is in the way
 * @way: as way_find() left it
 * @say: gets each line
 * @where: for @say
 */
void way_cures(const struct way *way, void (*say)(const char *line, void *where), void *where);

#endif /* WAY_H */
