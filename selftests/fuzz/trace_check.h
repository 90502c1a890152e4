/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts refused commands that were submitted nevertheless, by the module's trace events.
 */
#ifndef FUZZ_TRACE_CHECK_H
#define FUZZ_TRACE_CHECK_H

/*
 * Command dword 11 of every command that must be refused, and of no other. If one is
 * submitted nevertheless, it is a block beyond any disk.
 */
#define FUZZ_REFUSED	0x0badcafeU

/* Start recording: 0 or -errno, -ENOENT if the kernel does not trace. */
int fuzz_trace_begin(void);
/* Stop recording: the number of such commands, or -errno. */
int fuzz_trace_end(void);

#endif /* FUZZ_TRACE_CHECK_H */
