/* SPDX-License-Identifier: GPL-2.0-only */
/* Which commands were sent that nobody was to send, as the module's own trace has it. */
#ifndef FUZZ_SENT_H
#define FUZZ_SENT_H

/*
 * Command dword 11 of a command that is to be refused, and of no other: in a command
 * that somebody lets go after all, a block beyond any disk.
 */
#define FUZZ_REFUSED	0x0badcafeU

/* Begin: 0 or -errno, -ENOENT on a kernel that does not trace. */
int fuzz_sent_watch(void);
/* End: how many there were, or -errno. */
int fuzz_sent_count(void);

#endif /* FUZZ_SENT_H */
