/* SPDX-License-Identifier: GPL-2.0-only */
/* What earlier calls of the fuzzer made and later ones use, by all threads. */
#ifndef FUZZ_POOL_H
#define FUZZ_POOL_H

#include "fuzz.h"

bool fuzz_pick(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
bool fuzz_take(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_add(struct fuzz_thread *thread, const struct fuzz_resource *resource);
void fuzz_add_fd(struct fuzz_thread *thread, enum fuzz_kind kind, int fd);
void fuzz_drop(const struct fuzz_resource *resource);
void fuzz_drop_all(void);

/* Note the result of a call: an errno that user space must never see is a violation. */
void fuzz_result(struct fuzz_thread *thread, const char *call, int ret);
void fuzz_violation(struct fuzz_thread *thread, const char *call, int error);

#endif /* FUZZ_POOL_H */
