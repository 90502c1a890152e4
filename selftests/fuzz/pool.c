// SPDX-License-Identifier: GPL-2.0-only
/* Resources that calls create and other calls use: see pool.h. */
#include "pool.h"
#include "random.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"

/* Few, so that threads use the same ones and close them soon. */
#define POOL	24
/* All may be of one dma-buf, and the kernel's DMA debugging counts 7 mappings of a page. */
#define HANDLES	4

/* Guarded by lock. Entries 0 to count - 1 of each kind are valid. */
static struct fuzz_resource pool[FUZZ_KINDS][POOL];
static unsigned int counts[FUZZ_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Copy a resource of that kind. Another thread may close it concurrently, which is
 * intended.
 */
bool fuzz_pick(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource)
{
	uint64_t choice = fuzz_random(thread);
	bool found;

	pthread_mutex_lock(&lock);
	found = counts[kind] > 0;
	if (found)
		*resource = pool[kind][choice % counts[kind]];
	pthread_mutex_unlock(&lock);
	return found;
}

bool fuzz_hold(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource)
{
	uint64_t choice = fuzz_random(thread);

	resource->held = -1;
	pthread_mutex_lock(&lock);
	/* Resources in the pool are open: only the thread that took one out closes it. */
	if (counts[kind]) {
		*resource = pool[kind][choice % counts[kind]];
		resource->held = fcntl(resource->fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&lock);
	return resource->held >= 0;
}

void fuzz_let_go(const struct fuzz_resource *resource)
{
	close(resource->held);
}

static struct fuzz_resource take_locked(enum fuzz_kind kind, unsigned int i)
{
	struct fuzz_resource resource = pool[kind][i];

	pool[kind][i] = pool[kind][--counts[kind]];
	return resource;
}

/* Remove a resource of that kind from the pool: only the caller may close or unmap it. */
bool fuzz_take(struct fuzz_thread *thread, enum fuzz_kind kind, struct fuzz_resource *resource)
{
	uint64_t choice = fuzz_random(thread);
	bool found;

	pthread_mutex_lock(&lock);
	found = counts[kind] > 0;
	if (found)
		*resource = take_locked(kind, choice % counts[kind]);
	pthread_mutex_unlock(&lock);
	return found;
}

/* Without nodes the other operations would do nothing. */
bool fuzz_is_lasting(const struct fuzz_thread *thread, enum fuzz_kind kind)
{
	return !thread->caller.root && (kind < FUZZ_QP || kind == FUZZ_BUFFER);
}

void fuzz_drop(const struct fuzz_resource *resource)
{
	switch (resource->kind) {
	case FUZZ_MAP:
		munmap(resource->map, resource->length);
		break;
	case FUZZ_HANDLE:
		np_release(resource->fd, resource->what);
		break;
	default:
		close(resource->fd);
	}
}

void fuzz_add(struct fuzz_thread *thread, const struct fuzz_resource *resource)
{
	unsigned int room = resource->kind == FUZZ_HANDLE ? HANDLES : POOL;
	uint64_t choice = fuzz_random(thread);
	struct fuzz_resource old = { .fd = -1 };
	bool full;

	pthread_mutex_lock(&lock);
	full = counts[resource->kind] == room;
	if (full)
		old = take_locked(resource->kind, choice % room);
	pool[resource->kind][counts[resource->kind]++] = *resource;
	pthread_mutex_unlock(&lock);
	if (full)
		fuzz_drop(&old);
}

void fuzz_add_fd(struct fuzz_thread *thread, enum fuzz_kind kind, int fd)
{
	struct fuzz_resource resource = { .kind = kind, .fd = fd };

	if (fd >= 0)
		fuzz_add(thread, &resource);
}

/* No other thread runs any more. */
void fuzz_drop_all(void)
{
	int kind;

	for (kind = FUZZ_KINDS - 1; kind >= 0; kind--)
		while (counts[kind])
			fuzz_drop(&pool[kind][--counts[kind]]);
}
