/* SPDX-License-Identifier: GPL-2.0-only */
/* What earlier calls of the fuzzer made and later ones use, by all threads. */
#ifndef FUZZ_POOL_H
#define FUZZ_POOL_H

#include "fuzz.h"

bool fuzz_pick(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
bool fuzz_take(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_add(struct fuzz_thread *thread, const struct fuzz_resource *resource);
void fuzz_add_fd(struct fuzz_thread *thread, enum fuzz_kind kind, int fd);
/* Is that kind never given away, as this thread could not open it again? */
bool fuzz_is_lasting(const struct fuzz_thread *thread, enum fuzz_kind kind);
void fuzz_drop(const struct fuzz_resource *resource);
void fuzz_drop_all(void);

/*
 * One of that kind, and a descriptor that nobody else closes: it is what it is said to be,
 * as long as it is held.
 */
bool fuzz_hold(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_let_go(const struct fuzz_resource *resource);

#endif /* FUZZ_POOL_H */
