/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code that a thread has reached; one for each thread, NULL if the kernel has no
 * KCOV.
 */
#ifndef FUZZ_COVER_H
#define FUZZ_COVER_H

struct fuzz_cover;
struct fuzz_cover *fuzz_cover_open(void);
void fuzz_cover_begin(struct fuzz_cover *cover);
/* Number of program counters since the begin that no thread had reached before. */
unsigned int fuzz_cover_end(struct fuzz_cover *cover);
void fuzz_cover_close(struct fuzz_cover *cover);
unsigned int fuzz_cover_total(void);

#endif /* FUZZ_COVER_H */
