/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of the permissions that the module implements, for tests that compare it with
 * the results of calls.
 *
 * It follows linux/nvme_peer.h for queue pairs and addresses, and the in-tree NVMe driver
 * for commands: what that driver allows without capabilities is allowed here. The model
 * covers permissions only: an allowed call may fail for other reasons.
 */
#ifndef PERMIT_H
#define PERMIT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct np_caller - rights of the calling thread
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
 * struct np_sending - a command, and the file that it is sent through
 * @partition: the file is a partition of the namespace
 * @writable: the file is open for writing
 * @admin: for the admin queue
 * @opcode: of the command
 * @dword10: its command dword 10
 * @effects: the effects log's entry for an I/O command with that opcode
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
 * struct np_permit - the expected result of a call as far as permissions go
 * @allowed: the call is not refused for a missing permission; otherwise it has no effect
 * @late: permissions are checked after the caller's memory was read, so another error may
 *	come first
 * @refusal: the errno with which this kind of call is refused, also of allowed calls
 */
struct np_permit {
	bool allowed;
	bool late;
	int refusal;
};

/**
 * struct np_opening - a file of the module and its access rights
 * @path: with %d for the controller's instance
 * @flags: open flags
 * @everyone: every user may open it, not only root
 */
struct np_opening {
	const char *path;
	int flags;
	bool everyone;
};

#define NP_OPENINGS	13U
extern const struct np_opening np_openings[NP_OPENINGS];

struct np_permit np_permit_command(const struct np_caller *caller,
				   const struct np_sending *sending);
/* An ioctl that sends no command. */
struct np_permit np_permit_ioctl(const struct np_caller *caller, unsigned long number);
struct np_permit np_permit_open(const struct np_caller *caller, const struct np_opening *opening);

/*
 * Describes a result that contradicts @permit, NULL if it does not. @answer: 0 or more,
 * or a negative errno. @exact: the call can fail for missing permissions only.
 */
const char *np_permit_violation(const struct np_permit *permit, bool exact, int answer);

/* The I/O commands' entries of the Commands Supported and Effects log. */
#define NP_OPCODES	256U
int np_read_effects(int ctrl_fd, uint32_t effects[NP_OPCODES]);

#endif /* PERMIT_H */
