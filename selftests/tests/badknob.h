/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A controller that misbehaves as a test says (selftests/badctrl), bound or not,
 * beside one that is well.
 */
#ifndef BADKNOB_H
#define BADKNOB_H

#include "../badctrl/badctrl.h"
#include "nptest.h"

/* NVMe status codes, and the bit that says that trying again does not help. */
#define NP_STATUS_MASK	0x7ff
#define NP_STATUS_DNR	0x4000

/**
 * struct np_bad - both controllers and what the module had before
 * @address: PCI address, empty where the guest has none
 * @config: its config space
 * @ctrl: its node while it is bound
 * @good: the other controller
 * @before: the module's objects before it was bound
 */
struct np_bad {
	char address[16];
	int config;
	struct np_ctrl ctrl;
	struct np_ctrl good;
	char before[NP_OBJECTS];
};

/* Makes it one that works, and the driver's timeouts short. */
int np_bad_open(struct np_bad *bad);
/* Unbinds it; fails unless everything is gone and the other one works. */
int np_bad_close(struct np_bad *bad);

/* The words of badctrl.h. */
int np_bad_set(struct np_bad *bad, uint32_t word, uint32_t value);
uint32_t np_bad_get(struct np_bad *bad, uint32_t word);
/* One byte of a structure that it identifies itself with. */
int np_bad_identify(struct np_bad *bad, unsigned int cns, uint32_t offset, uint8_t value);
int np_bad_rule(struct np_bad *bad, unsigned int rule, uint32_t match, uint32_t action,
		uint32_t argument, uint32_t times);
uint32_t np_bad_hits(struct np_bad *bad, unsigned int rule);

/* Binds it and waits until @namespaces of its namespaces are there. */
int np_bad_bind(struct np_bad *bad, unsigned int namespaces);
int np_bad_unbind(struct np_bad *bad);
int np_bad_wait_namespaces(struct np_bad *bad, unsigned int namespaces);
/* Waits until it is in @state and more than @generation; returns the generation. */
int np_bad_wait_state(struct np_bad *bad, uint32_t state, uint32_t generation);
/* Waits for a word to be at least @value. */
int np_bad_wait_word(struct np_bad *bad, uint32_t word, uint32_t value);
/* A command for namespace 1: NVMe status, or a negative errno. */
int np_bad_io(struct np_bad *bad, uint8_t opcode, void *data, uint32_t bytes);
/* Does the other controller answer? */
int np_bad_good_works(struct np_bad *bad);

#endif /* BADKNOB_H */
