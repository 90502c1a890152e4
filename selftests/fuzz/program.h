/* SPDX-License-Identifier: GPL-2.0-only */
/* The sequences of calls that the fuzzer makes. */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include "fuzz.h"

#include <inttypes.h>

#define FUZZ_PROGRAM		12
/*
 * A call in the format of a corpus: a space or nothing, OPERATION:SEED. The size of a
 * buffer for a program.
 */
#define FUZZ_CALL_FORMAT	"%s%u:%" PRIx64
#define FUZZ_PROGRAM_TEXT	(FUZZ_PROGRAM * 24 + 1)

struct fuzz_call {
	uint8_t operation;
	uint64_t seed;
};

struct fuzz_program {
	unsigned int length;
	struct fuzz_call calls[FUZZ_PROGRAM];
};

void fuzz_operations_init(void);
/* Parse the words of a corpus, modifying @text: false if it contains no call. */
bool fuzz_program_parse(char *text, struct fuzz_program *program);
void fuzz_program_choose(struct fuzz_thread *thread, struct fuzz_program *program);
void fuzz_program_run(struct fuzz_thread *thread, const struct fuzz_program *program);
void fuzz_corpus_add(const struct fuzz_program *program);
int fuzz_corpus_load(const char *path);
int fuzz_corpus_save(const char *path);
unsigned int fuzz_corpus_size(void);

#endif /* FUZZ_PROGRAM_H */
