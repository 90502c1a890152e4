/* SPDX-License-Identifier: GPL-2.0-only */
/* Random choices, and slightly invalid arguments. */
#ifndef FUZZ_RANDOM_H
#define FUZZ_RANDOM_H

#include "fuzz.h"

uint64_t fuzz_random(struct fuzz_thread *thread);
/* A possible controller instance: the numbers of np0 and np1 change with each bind. */
uint32_t fuzz_instance(struct fuzz_thread *thread);
uint32_t fuzz_below(struct fuzz_thread *thread, uint32_t limit);
bool fuzz_one_in(struct fuzz_thread *thread, uint32_t n);
uint64_t fuzz_interesting(struct fuzz_thread *thread);
/* Corrupt some fields of @bytes, or none. */
void fuzz_mangle(struct fuzz_thread *thread, void *bytes, size_t length);
/*
 * An address for the kernel to read @length bytes from: @bytes itself, a copy at the end
 * of mapped memory, or one that extends beyond it.
 */
void *fuzz_place(struct fuzz_thread *thread, const void *bytes, size_t length);

#endif /* FUZZ_RANDOM_H */
