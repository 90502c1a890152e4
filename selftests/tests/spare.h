/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests on a spare controller of any machine instead of a guest's: TEST_BDF is the address of
 * np0, TEST_BDF2 that of np1. What only a guest has is missing there, and a test that needs it
 * is skipped. A disk is written only with TEST_WIPE=1.
 */
#ifndef SPARE_H
#define SPARE_H

#include <stdbool.h>
#include <stdint.h>

/* Does the test run on a spare controller? */
bool np_spare(void);
/* The PCI address of np0 or np1. Skips the test if there is none, as for badctrl or softgpu. */
const char *np_spare_address(const char *name);
/* Skip a test that is about to open a controller, unless its program keeps the disk. */
void np_spare_opens(void);
/* On a spare controller: end the process as skipped, with what it needs. Elsewhere: return. */
void np_spare_lacks(const char *what);
/* The same unless it @has that: what all controllers of a guest have, and not each of a user. */
void np_spare_needs(bool has, const char *what);
/* "np0" on a spare controller; in a guest @name, the controller that the test is for. */
const char *np_spare_or(const char *name);
/* Skip a test that is about to write to the disk, unless that is allowed. */
void np_spare_writes(void);
/* The same for a command, if it can change data. */
void np_spare_command(bool admin, uint8_t opcode);

void np_keep_disk(void);

/*
 * In a program that writes to a disk only by the helpers of nptest.h: without TEST_WIPE=1 those of
 * its tests that write are skipped. All other programs are skipped as a whole.
 */
#define NP_KEEPS_DISK()							\
	static void __attribute__((constructor)) declare_kept(void)	\
	{								\
		np_keep_disk();						\
	}

#endif /* SPARE_H */
