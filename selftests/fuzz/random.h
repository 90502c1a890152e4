/* SPDX-License-Identifier: GPL-2.0-only */
/* Choices of the fuzzer, and arguments that are a little wrong. */
#ifndef FUZZ_RANDOM_H
#define FUZZ_RANDOM_H

#include "fuzz.h"

uint64_t fuzz_random(struct fuzz_thread *thread);
/* An instance that a controller may have: those of np0 and np1 change as they are bound again. */
uint32_t fuzz_instance(struct fuzz_thread *thread);
uint32_t fuzz_below(struct fuzz_thread *thread, uint32_t limit);
bool fuzz_one_in(struct fuzz_thread *thread, uint32_t n);
uint64_t fuzz_interesting(struct fuzz_thread *thread);
/* Spoil some fields of @bytes, or none. */
void fuzz_mangle(struct fuzz_thread *thread, void *bytes, size_t length);
/*
 * Where the kernel is to read @length bytes: the caller's @bytes, a copy that ends
 * where memory ends, or one that is cut short by it.
 */
void *fuzz_place(struct fuzz_thread *thread, const void *bytes, size_t length);

#endif /* FUZZ_RANDOM_H */
