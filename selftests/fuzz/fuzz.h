/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fuzzer that knows the interfaces: it makes calls that are nearly right, in
 * orders that nobody means, from several threads, while the controller is reset
 * and unbound under them.
 *
 * A *program* is a short row of calls, each an operation and the seed of all its
 * choices. The same program makes the same calls. One that reached code which no
 * other did is kept and varied.
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

/** enum fuzz_kind - what a resource is */
enum fuzz_kind {
	FUZZ_CONTROLLER,	/* open /dev/nvmepX */
	FUZZ_GENERIC,		/* open /dev/ngpXnY */
	FUZZ_DISK,		/* open /dev/nvmepXnY */
	FUZZ_PARTITION,		/* open /dev/nvmepXnYpZ */
	FUZZ_QP,		/* queue pair file */
	FUZZ_EXPORT,		/* dma-buf of a queue pair */
	FUZZ_BUFFER,		/* dma-buf of another driver */
	FUZZ_IMPORTER,		/* open /dev/nvmep_test, may be attached */
	FUZZ_HANDLE,		/* handle of an imported buffer */
	FUZZ_MAP,		/* mapping of an export */
	FUZZ_KINDS
};

/**
 * struct fuzz_resource - something that earlier calls made and later calls use
 * @kind: what it is
 * @fd: its descriptor; of a handle, the controller's
 * @held: of one that is held, the same file by a descriptor that is the holder's own
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
 * struct fuzz_thread - one thread's own state
 * @random: state of the generator; set from a call's seed
 * @page: memory whose end is followed by nothing: arguments end there at times
 * @caller: the rights that it has
 * @instance: of np0, as the round began
 * @judge: shared
 * @program: what it runs now
 * @at: the call of that which is being made
 * @calls: that it made before
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
