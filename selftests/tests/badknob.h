/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A controller that misbehaves as a test says (selftests/badctrl), bound or not,
 * beside one that is well.
 */
#ifndef BADKNOB_H
#define BADKNOB_H

#include "../badctrl/badctrl.h"
#include "nptest.h"

#define NP_IO_READ		(BADCTRL_ON_IO | NP_CMD_READ)
#define NP_IO_FLUSH		(BADCTRL_ON_IO | NP_CMD_FLUSH)

/* NVMe status codes, and the bit that says that trying again does not help. */
#define NP_STATUS_INTERNAL	0x006
#define NP_STATUS_ABORTED	0x007
#define NP_STATUS_HOST_PATH	0x370
#define NP_STATUS_DNR		0x4000

/* For BADCTRL_EVENT: a namespace changed (base specification, figure 151). */
#define EVENT_NAMESPACES	(2U | 4U << 16)

/**
 * struct np_bad - both controllers and what the module had before
 * @address: PCI address, empty where the guest has none
 * @config: its config space
 * @ctrl: its node while it is bound
 * @disk: its first namespace, opened for direct I/O, -1 for none
 * @generic: the same for passthrough
 * @good: the other controller
 * @before: the module's objects before it was bound
 */
struct np_bad {
	char address[16];
	int config;
	struct np_ctrl ctrl;
	int disk;
	int generic;
	struct np_ctrl good;
	char before[NP_OBJECTS];
};

/* Makes it one that works. */
int np_bad_open(struct np_bad *bad);
/*
 * Makes the driver's timeouts short until np_bad_close(): 2 s, as a guest on a busy
 * machine may well stand still for one, and what then runs out was not to be tested.
 */
int np_bad_hurry(void);
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
/* What it has not made durable is gone, bound or not. */
int np_bad_cut_power(struct np_bad *bad);

/* Binds it, waits for @namespaces and opens the first. */
int np_bad_bind(struct np_bad *bad, unsigned int namespaces);
int np_bad_unbind(struct np_bad *bad);
int np_bad_wait_namespaces(struct np_bad *bad, unsigned int namespaces);
/* Waits until it is in @state: returns the generation. */
int np_bad_wait_state(struct np_bad *bad, uint32_t state);
/* Waits for a word to be at least @value. */
int np_bad_wait_word(struct np_bad *bad, uint32_t word, uint32_t value);
/*
 * One block of namespace 1, Identify Controller, both by passthrough: NVMe
 * status, or a negative errno.  0 for the driver's own timeout; what is known
 * to hang is given a short one.
 */
#define NP_SHORT_MS	500U
int np_bad_read(struct np_bad *bad, void *data, uint32_t timeout_ms);
int np_bad_ask(struct np_bad *bad, uint32_t timeout_ms);
/* A page of its disk. */
int np_bad_read_disk(struct np_bad *bad, void *data);
/* Until its disk has no bytes, as one that is lost: 0 or -ETIMEDOUT. */
int np_bad_wait_empty(struct np_bad *bad);
int np_bad_generation(struct np_bad *bad);
/* For pthread_create(): resets it, and ends with what NVME_IOCTL_RESET returned. */
void *np_bad_reset_thread(void *bad);
/* Does the other controller answer? */
int np_bad_good_works(struct np_bad *bad);

#endif /* BADKNOB_H */
