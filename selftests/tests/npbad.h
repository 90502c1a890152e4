/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * badctrl (selftests/badctrl), a controller that injects faults on request, bound or not,
 * beside a controller without faults.
 */
#ifndef NPBAD_H
#define NPBAD_H

#include "../badctrl/badctrl.h"
#include "nptest.h"

#define NP_IO_READ		(BADCTRL_ON_IO | NVMEPEER_OP_READ)
#define NP_IO_WRITE		(BADCTRL_ON_IO | NVMEPEER_OP_WRITE)
#define NP_IO_WRITE_ZEROES	(BADCTRL_ON_IO | NVMEPEER_OP_WRITE_ZEROES)
#define NP_IO_FLUSH		(BADCTRL_ON_IO | NVMEPEER_OP_FLUSH)

/* For BADCTRL_EVENT: namespace attribute changed (base specification, figure 151). */
#define EVENT_NAMESPACES	(2U | NVME_LOG_CHANGED_NAMESPACES << 16)
/* Firmware activation starting. */
#define EVENT_FIRMWARE		(2U | 1U << 8 | NVME_LOG_FIRMWARE << 16)

/* Byte offset in Identify Controller. */
#define CTRL_ACL		258

/**
 * struct np_bad - badctrl, the other controller, and the module's objects before the test
 * @address: PCI address of badctrl, empty if the guest has none
 * @config: its config space
 * @ctrl: its node while it is bound
 * @disk: its first namespace, opened for direct I/O, -1 for none
 * @generic: generic node of the same namespace
 * @good: the other controller
 * @before: the module's objects before badctrl was bound
 * @expiring: rule of np_bad_let_expire()
 * @expires: np_bad_let_expire() was called
 * @patience: thread that ends the short timeout then
 */
struct np_bad {
	char address[16];
	int config;
	struct np_ctrl ctrl;
	int disk;
	int generic;
	struct np_ctrl good;
	char before[NP_OBJECTS];
	unsigned int expiring;
	bool expires;
	pthread_t patience;
};

/* Clears all injected faults. */
int np_bad_open(struct np_bad *bad);
/*
 * Sets the driver's timeout of I/O commands to 2 s until np_bad_close(). A shorter one would expire
 * spuriously, as a guest on a busy machine may stand still for a second.
 */
int np_bad_short_io_timeout(void);
/*
 * The same for admin commands, for a test in which one has to expire: best after np_bad_bind(), as
 * each command of a start has this timeout too.
 */
int np_bad_short_admin_timeout(void);
/* Back to 60 s, in which none expires, however slow the machine is. */
int np_bad_long_admin_timeout(void);
/*
 * So also for new commands of namespace 1, whatever sends them and whatever timeout their mediated queue
 * pair has, until it is unbound.
 */
int np_bad_long_io_timeout(const struct np_bad *bad);
/*
 * The timeout of admin commands is 2 s until one hits @rule, which was set before and which makes that one
 * expire. Those after it, as of a reset, do not expire however late badctrl answers. Once a test.
 */
int np_bad_let_expire(struct np_bad *bad, unsigned int rule);
/* When these have expired: the block layer checks once a second, and one more for a busy machine. */
#define NP_BAD_EXPIRED_MS	4000
/*
 * Unbinds badctrl; fails unless all its objects are gone and the other controller works.
 */
int np_bad_close(struct np_bad *bad);

/* Access to the words of badctrl.h. */
int np_bad_set(struct np_bad *bad, uint32_t word, uint32_t value);
uint32_t np_bad_get(struct np_bad *bad, uint32_t word);
/* Sets one byte of an Identify structure. */
int np_bad_identify(struct np_bad *bad, unsigned int cns, uint32_t offset, uint8_t value);
int np_bad_rule(struct np_bad *bad, unsigned int rule, uint32_t match, uint32_t action,
		uint32_t argument, uint32_t times);
/* The same for I/O commands that begin in @blocks blocks from @first on; 0 for any place. */
struct np_bad_place {
	uint32_t first;
	uint32_t blocks;
};

int np_bad_rule_in(struct np_bad *bad, const struct np_bad_place *place, unsigned int rule, uint32_t match,
		   uint32_t action, uint32_t argument, uint32_t times);
uint32_t np_bad_hits(struct np_bad *bad, unsigned int rule);
/* Wait until it has had @hits: 0 or -ETIMEDOUT. */
int np_bad_wait_hits(struct np_bad *bad, unsigned int rule, uint32_t hits);
/* Drops data that is not durable, whether badctrl is bound or not. */
int np_bad_cut_power(struct np_bad *bad);
/*
 * Power of a set of namespaces, by bit. A cut loses none, some or all of their blocks that are not
 * durable, and leaves them off. np_bad_arm_cut() has it in the I/O command number @commands from now
 * on, or in none for 0; @namespaces may have BADCTRL_CUT_KEEPS. It uses rules 0 and 1.
 */
int np_bad_arm_cut(struct np_bad *bad, uint32_t commands, uint32_t namespaces);
int np_bad_cut_namespaces(struct np_bad *bad, uint32_t namespaces);
uint32_t np_bad_power_off(struct np_bad *bad);
int np_bad_set_power_off(struct np_bad *bad, uint32_t namespaces);
/* All namespaces have logical blocks of 4096 bytes, until BADCTRL_DEFAULTS; it is not bound. */
int np_bad_large_blocks(struct np_bad *bad);

/* Binds badctrl, waits for @namespaces namespaces and opens the first. */
int np_bad_bind(struct np_bad *bad, unsigned int namespaces);
int np_bad_unbind(struct np_bad *bad);
/* Calls its driver as at power off. */
int np_bad_shut_down(const struct np_bad *bad);
int np_bad_wait_namespaces(struct np_bad *bad, unsigned int namespaces);
/* Waits until badctrl is in @state and returns the generation. */
int np_bad_wait_state(struct np_bad *bad, uint32_t state);
/* Waits until a word is at least @value. */
int np_bad_wait_word(struct np_bad *bad, uint32_t word, uint32_t value);
/*
 * Read one block of namespace 1, or Identify Controller, by passthrough. Return the NVMe
 * status or a negative errno. Timeout 0 is the driver's own; commands that are known to
 * hang get a short one.
 */
#define NP_SHORT_MS	500U
int np_bad_read(struct np_bad *bad, void *data, uint32_t timeout_ms);
int np_bad_identify_ctrl(struct np_bad *bad, uint32_t timeout_ms);
/* Reads a page of its disk. */
int np_bad_read_disk(struct np_bad *bad, void *data);
/* Waits until its disk has a capacity of 0, as after a failure: 0 or -ETIMEDOUT. */
int np_bad_wait_no_capacity(struct np_bad *bad);
int np_bad_generation(struct np_bad *bad);
/* For pthread_create(): resets badctrl and returns the result of NVME_IOCTL_RESET. */
void *np_bad_reset_thread(void *bad);
/* Sends a command to the other controller. */
int np_bad_check_good(struct np_bad *bad);

#endif /* NPBAD_H */
