/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fuzzer with knowledge of the interfaces: it makes nearly valid calls in unusual
 * orders, from several threads, while the controller is reset and unbound.
 *
 * A *program* is a short sequence of calls, each an operation and the seed of all its
 * choices. The same program makes the same calls. A program that reaches new code is kept
 * and varied.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "permit.h"

struct fuzz_judge;
struct fuzz_program;

/**
 * enum fuzz_kind - kinds of resources
 */
enum fuzz_kind {
	FUZZ_CONTROLLER,	/* open /dev/nvmepX */
	FUZZ_GENERIC,		/* open /dev/ngpXnY */
	FUZZ_DISK,		/* open /dev/nvmepXnY */
	FUZZ_PARTITION,		/* open /dev/nvmepXnYpZ */
	FUZZ_QP,		/* queue pair file */
	FUZZ_EXPORT,		/* dma-buf of a queue pair */
	FUZZ_BUFFER,		/* dma-buf of another driver */
	FUZZ_IMPORTER,		/* open /dev/nvmep_test, may be attached */
	FUZZ_HANDLE,		/* buffer handle */
	FUZZ_MAP,		/* mapping of an export */
	FUZZ_KINDS
};

/**
 * struct fuzz_resource - an object of an earlier call, used by later ones
 * @kind: what it is
 * @fd: its descriptor; of a handle, the controller's
 * @held: of a held resource, the holder's own descriptor of the same file
 * @what: of an export, its enum nvme_peer_export; of a handle, the handle
 * @map: of a mapping
 * @length: of a mapping or export
 * @offset: of the object in it
 */
struct fuzz_resource {
	enum fuzz_kind kind;
	int fd;
	int held;
	uint32_t what;
	void *map;
	size_t length;
	size_t offset;
};

/**
 * struct fuzz_thread - state of a thread
 * @random: state of the generator; set from a call's seed
 * @page: memory that is followed by unmapped memory, for arguments at its end
 * @caller: the thread's rights
 * @instance: of np0, as the round began
 * @judge: shared
 * @program: the program that is running
 * @at: index of its present call
 * @calls: number of calls before it
 */
struct fuzz_thread {
	uint64_t random;
	uint8_t *page;
	struct np_caller caller;
	uint32_t instance;
	struct fuzz_judge *judge;
	const struct fuzz_program *program;
	unsigned int at;
	unsigned long calls;
};

#endif /* FUZZ_H */
