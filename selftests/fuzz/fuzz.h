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

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** enum fuzz_kind - what a resource is */
enum fuzz_kind {
	FUZZ_CONTROLLER,	/* open /dev/nvmepX */
	FUZZ_GENERIC,		/* open /dev/ngpXnY */
	FUZZ_DISK,		/* open /dev/nvmepXnY */
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
 * @what: of an export, its enum nvme_peer_export; of a handle, the handle
 * @map: of a mapping
 * @length: of a mapping or export
 * @offset: of the object in it
 */
struct fuzz_resource {
	enum fuzz_kind kind;
	int fd;
	uint32_t what;
	void *map;
	size_t length;
	size_t offset;
};

/**
 * struct fuzz_rights - what the caller may do
 * @privileged: it has CAP_SYS_RAWIO, so queue pairs are there to be had
 * @violations: calls that succeeded and must not have, or failed with an error
 *	that is none
 */
struct fuzz_rights {
	bool privileged;
	atomic_uint violations;
};

/**
 * struct fuzz_thread - one thread's own state
 * @random: state of the generator; set from a call's seed
 * @page: memory whose end is followed by nothing: arguments end there at times
 * @rights: shared
 */
struct fuzz_thread {
	uint64_t random;
	uint8_t *page;
	struct fuzz_rights *rights;
};

/* random.c: choices */
uint64_t fuzz_random(struct fuzz_thread *thread);
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

/* pool.c: resources of all threads */
bool fuzz_pick(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
bool fuzz_take(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource);
void fuzz_add(struct fuzz_thread *thread, const struct fuzz_resource *resource);
void fuzz_add_fd(struct fuzz_thread *thread, enum fuzz_kind kind, int fd);
void fuzz_drop(const struct fuzz_resource *resource);
void fuzz_drop_all(void);

/* Note the result of a call: an errno that user space must never see is a violation. */
void fuzz_result(struct fuzz_thread *thread, const char *call, int ret);
void fuzz_violation(struct fuzz_thread *thread, const char *call, int error);

/**
 * struct fuzz_operation - one kind of call
 * @name: in reports
 * @weight: how often, against the others
 * @privileged: makes no sense without rights
 * @run: makes the call; all choices come from @thread
 */
struct fuzz_operation {
	const char *name;
	unsigned int weight;
	bool privileged;
	void (*run)(struct fuzz_thread *thread);
};

extern const struct fuzz_operation fuzz_peer_operations[];
extern const struct fuzz_operation fuzz_memory_operations[];
extern const struct fuzz_operation fuzz_nvme_operations[];
extern const struct fuzz_operation fuzz_process_operations[];

/* program.c: which calls, in which order */
#define FUZZ_PROGRAM	12

struct fuzz_call {
	uint8_t operation;
	uint64_t seed;
};

struct fuzz_program {
	unsigned int length;
	struct fuzz_call calls[FUZZ_PROGRAM];
};

void fuzz_operations_init(void);
void fuzz_program_choose(struct fuzz_thread *thread, struct fuzz_program *program);
void fuzz_program_run(struct fuzz_thread *thread, const struct fuzz_program *program);
void fuzz_corpus_add(const struct fuzz_program *program);
int fuzz_corpus_load(const char *path);
int fuzz_corpus_save(const char *path);
unsigned int fuzz_corpus_size(void);

/* cover.c: what code was reached; one per thread, NULL where the kernel has no KCOV */
struct fuzz_cover;
struct fuzz_cover *fuzz_cover_open(void);
void fuzz_cover_begin(struct fuzz_cover *cover);
/* Places reached since begin that no thread had reached before. */
unsigned int fuzz_cover_end(struct fuzz_cover *cover);
void fuzz_cover_close(struct fuzz_cover *cover);
unsigned int fuzz_cover_total(void);

/* chaos.c: what happens to the controller meanwhile */
struct fuzz_chaos {
	atomic_bool *stop;
	uint64_t seed;
	unsigned int events;
};

void *fuzz_chaos_thread(void *chaos);

#endif /* FUZZ_H */
