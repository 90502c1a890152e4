/* SPDX-License-Identifier: GPL-2.0-only */
/* Resources that earlier calls created and later ones use, shared by all threads. */
#ifndef FUZZ_POOL_H
#define FUZZ_POOL_H

#include "fuzz.h"

bool fuzz_pick(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
bool fuzz_take(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_add(struct fuzz_thread *thread, const struct fuzz_resource *resource);
void fuzz_add_fd(struct fuzz_thread *thread, enum fuzz_kind kind, int fd);
/* Must resources of that kind be kept, because this thread cannot open another one? */
bool fuzz_is_lasting(const struct fuzz_thread *thread, enum fuzz_kind kind);
void fuzz_drop(const struct fuzz_resource *resource);
void fuzz_drop_all(void);

/*
 * A resource of that kind with a descriptor that no other thread closes: it stays valid
 * while it is held.
 */
bool fuzz_hold(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_let_go(const struct fuzz_resource *resource);

#endif /* FUZZ_POOL_H */
