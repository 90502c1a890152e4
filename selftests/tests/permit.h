/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may do what: a model of the rights that the module promises, for tests that
 * compare it with what callers are told.
 *
 * It follows linux/nvme_peer.h for queue pairs and addresses, and the kernel's own
 * NVMe driver for commands: what that admits without capabilities is admitted here.  It
 * speaks of rights only: that a call is allowed does not say that it works.
 */
#ifndef PERMIT_H
#define PERMIT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct np_caller - who calls
 * @admin: has CAP_SYS_ADMIN
 * @rawio: has CAP_SYS_RAWIO
 * @root: owns the nodes
 */
struct np_caller {
	bool admin;
	bool rawio;
	bool root;
};

/**
 * struct np_sending - a command, and the open file that it is to go through
 * @partition: the file is a partition of the namespace
 * @writable: the file is open for writing
 * @admin: for the admin queue
 * @opcode: of the command
 * @dword10: its command dword 10
 * @effects: what the controller declares of an I/O command with that opcode
 */
struct np_sending {
	bool partition;
	bool writable;
	bool admin;
	uint8_t opcode;
	uint32_t dword10;
	uint32_t effects;
};

/**
 * struct np_permit - what becomes of a call as far as rights go
 * @allowed: it is not refused for want of a right; else it does nothing
 * @late: it is refused once its memory was looked at, so another error may come first
 * @refusal: the error by which this kind of call is refused, of allowed ones too
 */
struct np_permit {
	bool allowed;
	bool late;
	int refusal;
};

/**
 * struct np_opening - a file of the module's, and who may open it
 * @path: with %d for the controller's instance
 * @flags: how it is opened
 * @anybody: not only root
 */
struct np_opening {
	const char *path;
	int flags;
	bool anybody;
};

#define NP_OPENINGS	13U
extern const struct np_opening np_openings[NP_OPENINGS];

struct np_permit np_permit_command(const struct np_caller *caller,
				   const struct np_sending *sending);
/* An ioctl that sends no command. */
struct np_permit np_permit_ioctl(const struct np_caller *caller, unsigned long number);
struct np_permit np_permit_open(const struct np_caller *caller, const struct np_opening *opening);

/*
 * What is wrong with the answer to a call, 0 or more or a negative errno; NULL if
 * nothing is.  @exact: nothing but rights can be in the way of the call.
 */
const char *np_permit_broken(const struct np_permit *permit, bool exact, int answer);

/* What the controller declares of I/O commands: Commands Supported and Effects. */
#define NP_OPCODES	256U
int np_read_effects(int ctrl_fd, uint32_t effects[NP_OPCODES]);

#endif /* PERMIT_H */
