/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weak.h: the memory of the machine of fibres.h, as weak as the memory models
 * of C11 and PTX allow, except for loads that read from the future
 * (out-of-thin-air values).
 *
 * A location is a word that is only accessed as a whole.  It keeps every store
 * to it, in coherence order.  A fibre may read any store that is not older than
 * its view of the location; a store may be inserted before stores that its
 * fibre has not seen.  A read-modify-write reads the newest store.
 *
 * A view has, for each location, the oldest store that a fibre may still read.
 * A release fence attaches the fibre's view to the stores that follow; an
 * acquire fence merges the views of the stores that were loaded before.  Both
 * apply only between fibres that the scopes of the fences and of the accesses
 * include: a controller is only included in the scope of the system.
 *
 * Stores of a controller cross a bus and reach one memory, so that they become
 * visible to all fibres at the same time.  The models do not guarantee that,
 * but the rings depend on it: an entry two passes old has the phase tag of a
 * new one.
 *
 * Stores become visible eventually: a load may miss a store for @weak.late
 * steps at most.  If the scope of the load or of the store does not include the
 * other fibre, the models guarantee nothing, and the store never becomes
 * visible.
 */
#ifndef SELFTESTS_DEVICE_WEAK_H
#define SELFTESTS_DEVICE_WEAK_H

#include "fibres.h"

enum weak_scope { WEAK_DEVICE, WEAK_SYSTEM, WEAK_SCOPES };

enum {
	WEAK_LOCATIONS = 1 << 14,
	WEAK_HASH = 4 * WEAK_LOCATIONS,
	WEAK_MESSAGES = 1 << 20,
	WEAK_VIEW_WORDS = 1 << 25,
	WEAK_GAP = 1 << 12,	/* gap between two stores, for insertions */
};

/*
 * The oldest store of each location that may still be read; for locations above
 * @count: any.
 */
struct weak_view {
	uint32_t count;
	uint32_t seen[];
};

struct weak_message {
	uint64_t value[2];
	uint32_t at;		/* in coherence order */
	uint32_t older;		/* the store before it, or 0 */
	uint32_t writer;
	uint32_t step;		/* step of the store */
	bool outside;		/* stored by a controller */
	bool glued;		/* a read-modify-write: no store may be inserted between it and the older one */
	enum weak_scope scope;
	const struct weak_view *view[WEAK_SCOPES];
};

struct weak_location {
	uintptr_t address;
	uint32_t bytes;
	uint32_t newest;
	uint32_t arrived;	/* order of the controller's last store that any fibre has read */
	uint32_t taken;		/* order of the last store that a controller has read */
};

/*
 * Views of a fibre: current, loaded and not yet acquired, and to be released.
 */
struct weak_fibre {
	uint32_t seen[WEAK_LOCATIONS];
	uint32_t pending[WEAK_SCOPES][WEAK_LOCATIONS];
	const struct weak_view *released[WEAK_SCOPES];
};

struct weak {
	uint32_t late;		/* steps that a store may stay invisible; 0: none, sequential consistency */
	uint32_t odds;		/* a load reads one store further back once in this many times */
	uint32_t place_count;
	uint32_t message_count;
	uint32_t view_words;
	struct weak_location locations[WEAK_LOCATIONS];
	uint16_t hash[WEAK_HASH];
	struct weak_message messages[WEAK_MESSAGES];
	uint32_t views[WEAK_VIEW_WORDS];
	uint32_t strongest[WEAK_LOCATIONS];	/* view on which sequentially consistent fences agree */
	struct weak_fibre fibres[MAX_FIBRES];
};

static struct weak weak;

/*
 * Reset the model to the current contents of memory.  Called after
 * machine_reset().
 */
static inline void weak_reset(uint32_t late, uint32_t odds)
{
	for (uint32_t i = 0; i < MAX_FIBRES; i++) {
		struct weak_fibre *fibre = &weak.fibres[i];

		memset(fibre->seen, 0, 4 * weak.place_count);
		memset(fibre->released, 0, sizeof(fibre->released));
		for (int scope = 0; scope < WEAK_SCOPES; scope++)
			memset(fibre->pending[scope], 0, 4 * weak.place_count);
	}
	memset(weak.strongest, 0, 4 * weak.place_count);
	memset(weak.hash, 0, sizeof(weak.hash));
	weak.place_count = 0;
	weak.message_count = 1;
	weak.view_words = 0;
	weak.late = late;
	weak.odds = odds ? odds : 1;
}

static inline void weak_full(const char *what)
{
	fprintf(stderr, "weak.h: too many %s for one run\n", what);
	abort();
}

static inline uint64_t weak_word(const struct weak_location *location, uint32_t half)
{
	uint32_t bytes = location->bytes < 8 ? location->bytes : 8;
	uint64_t value = 0;

	if (8 * half < location->bytes)
		memcpy(&value, (const char *)location->address + 8 * (size_t)half, bytes);
	return value;
}

static inline uint32_t weak_new_message(void)
{
	uint32_t message = weak.message_count++;

	if (message >= WEAK_MESSAGES)
		weak_full("stores");
	memset(&weak.messages[message], 0, sizeof(weak.messages[message]));
	return message;
}

/*
 * The location at @address; its first store is the current contents of memory.
 */
static inline uint32_t weak_location(const void *address, uint32_t bytes)
{
	uint64_t key = ((uint64_t)(uintptr_t)address >> 2) * 0x9e3779b97f4a7c15u;
	struct weak_location *location;
	uint32_t at = key >> 48;

	for (; weak.hash[at]; at = (at + 1) % WEAK_HASH) {
		location = &weak.locations[weak.hash[at] - 1];
		if (location->address != (uintptr_t)address)
			continue;
		if (location->bytes != bytes)
			weak_full("sizes of a word");
		return weak.hash[at] - 1u;
	}
	if (weak.place_count == WEAK_LOCATIONS)
		weak_full("words");
	weak.hash[at] = (uint16_t)(weak.place_count + 1);
	location = &weak.locations[weak.place_count];
	*location = (struct weak_location){ (uintptr_t)address, bytes, weak_new_message(), 0, 0 };
	weak.messages[location->newest].value[0] = weak_word(location, 0);
	weak.messages[location->newest].value[1] = weak_word(location, 1);
	return weak.place_count++;
}

static inline struct weak_fibre *weak_self(void)
{
	return &weak.fibres[machine.current];
}

static inline void weak_join(uint32_t *seen, const struct weak_view *view)
{
	for (uint32_t i = 0; view && i < view->count; i++)
		if (seen[i] < view->seen[i])
			seen[i] = view->seen[i];
}

static inline struct weak_view *weak_new_view(void)
{
	struct weak_view *view = (struct weak_view *)&weak.views[weak.view_words];

	weak.view_words += 1 + weak.place_count;
	if (weak.view_words > WEAK_VIEW_WORDS)
		weak_full("fences");
	view->count = weak.place_count;
	return view;
}

static inline const struct weak_view *weak_snapshot(const uint32_t *seen)
{
	struct weak_view *view = weak_new_view();

	memcpy(view->seen, seen, 4 * view->count);
	return view;
}

static inline const struct weak_view *weak_union(const struct weak_view *a,
						 const struct weak_view *b)
{
	struct weak_view *view;

	if (!a || !b || a == b)
		return a ? a : b;
	view = weak_new_view();
	memset(view->seen, 0, 4 * view->count);
	weak_join(view->seen, a);
	weak_join(view->seen, b);
	return view;
}

/* May a load still miss @message? */
static inline bool weak_is_late(const struct weak_message *message)
{
	return message->older && (uint64_t)message->step + weak.late > machine.steps;
}

/*
 * The scope that is needed to order the current fibre and the writer of a
 * store.
 */
static inline enum weak_scope weak_between(const struct weak_message *message)
{
	return message->outside || fibre_current()->outside ? WEAK_SYSTEM : WEAK_DEVICE;
}

/*
 * Is a load of @scope by the current fibre guaranteed to see @message
 * eventually?  All fibres see the initial contents.
 */
static inline bool weak_reaches(const struct weak_message *message, enum weak_scope scope)
{
	enum weak_scope between = weak_between(message);

	return !message->older || (scope >= between && message->scope >= between);
}

/*
 * The store of a location that a load of the current fibre reads, not older
 * than @floor.
 */
static inline const struct weak_message *weak_pick(const struct weak_location *location, uint32_t floor,
						   enum weak_scope scope)
{
	const struct weak_message *message = &weak.messages[location->newest];

	while (!weak_reaches(message, scope))
		message = &weak.messages[message->older];
	if (machine.random) {
		while (message->at > floor && weak_is_late(message) &&
		       machine_random() % weak.odds == 0)
			message = &weak.messages[message->older];
		return message;
	}
	if (message->at > floor && weak_is_late(message) && machine_deviate(2))
		while (message->at > floor && message->older)
			message = &weak.messages[message->older];
	return message;
}

/* The current fibre has read @message. */
static inline void weak_see(uint32_t where, const struct weak_message *message, int order,
			    enum weak_scope scope)
{
	struct weak_fibre *self = weak_self();
	enum weak_scope between = weak_between(message);

	if (self->seen[where] < message->at)
		self->seen[where] = message->at;
	if (message->outside && weak.locations[where].arrived < message->at)
		weak.locations[where].arrived = message->at;
	/*
	 * A store that a controller has read has arrived: no store is inserted
	 * before it any more.
	 */
	if (fibre_current()->outside && weak.locations[where].taken < message->at)
		weak.locations[where].taken = message->at;
	if (scope < between || message->scope < between)
		return;
	if (order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST)
		weak_join(self->seen, message->view[between]);
	else
		weak_join(self->pending[between], message->view[between]);
}

/*
 * The view that a store of the current fibre carries for fibres at distance
 * @between.
 */
static inline const struct weak_view *weak_carry(int order, enum weak_scope scope,
						 enum weak_scope between)
{
	if (scope >= between && (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ||
				 order == __ATOMIC_SEQ_CST))
		return weak_snapshot(weak_self()->seen);
	return weak_self()->released[between];
}

/* Add a store to a location, before @newer or as the newest (@newer is 0). */
static inline struct weak_message *weak_add(uint32_t where, uint32_t newer, int order,
					    enum weak_scope scope)
{
	struct weak_location *location = &weak.locations[where];
	uint32_t index = weak_new_message();
	struct weak_message *message = &weak.messages[index];

	message->older = newer ? weak.messages[newer].older : location->newest;
	message->at = weak.messages[message->older].at;
	if (newer) {
		message->at += (weak.messages[newer].at - message->at) / 2;
		weak.messages[newer].older = index;
	} else {
		message->at += WEAK_GAP;
		location->newest = index;
	}
	message->writer = machine.current;
	message->outside = fibre_current()->outside;
	message->step = (uint32_t)machine.steps;
	message->scope = scope;
	weak_self()->seen[where] = message->at;
	for (enum weak_scope between = WEAK_DEVICE; between < WEAK_SCOPES; between++)
		message->view[between] = weak_carry(order, scope, between);
	return message;
}

/*
 * The store of a location before which a store of the current fibre is
 * inserted; 0: none.
 */
static inline uint32_t weak_slot(uint32_t where)
{
	const struct weak_location *location = &weak.locations[where];
	uint32_t floor = weak_self()->seen[where], newer = 0, at = location->newest;

	/* Stores of a controller arrive in order. */
	if (fibre_current()->outside)
		return 0;
	if (floor < location->taken)
		floor = location->taken;
	while (weak.messages[at].at > floor) {
		const struct weak_message *message = &weak.messages[at];
		const struct weak_message *older = &weak.messages[message->older];

		if (!weak_is_late(message) || message->glued || message->at - older->at < 2)
			break;
		if (machine.random ? machine_random() % weak.odds != 0 : !machine_deviate(2))
			break;
		newer = at;
		at = message->older;
	}
	return newer;
}

/* Loads @bytes (4, 8 or 16) at once. */
static inline void weak_load(const void *address, uint32_t bytes, uint64_t value[2], int order,
			     enum weak_scope scope)
{
	uint32_t where = weak_location(address, bytes), floor = weak_self()->seen[where];
	const struct weak_location *location = &weak.locations[where];
	const struct weak_message *message;

	message = weak_pick(location, floor < location->arrived ? location->arrived : floor, scope);
	weak_see(where, message, order, scope);
	value[0] = message->value[0];
	value[1] = message->value[1];
}

/* Stores @bytes (4, 8 or 16) at once. */
static inline void weak_store(void *address, uint32_t bytes, const uint64_t value[2], int order,
			      enum weak_scope scope)
{
	uint32_t where = weak_location(address, bytes), newer = weak_slot(where);
	struct weak_message *message = weak_add(where, newer, order, scope);

	message->value[0] = value[0];
	message->value[1] = bytes > 8 ? value[1] : 0;
	if (!newer)
		memcpy(address, message->value, bytes);
}

/*
 * Begin a read-modify-write of 4 or 8 bytes: returns the old value.  The caller
 * passes the new value to weak_change(), if there is one.
 */
static inline uint64_t weak_newest(const void *address, uint32_t bytes, int order,
				   enum weak_scope scope)
{
	uint32_t where = weak_location(address, bytes);
	const struct weak_message *message = &weak.messages[weak.locations[where].newest];

	weak_see(where, message, order, scope);
	return message->value[0];
}

/*
 * A read-modify-write continues the release sequence of the store that it
 * replaces.
 */
static inline void weak_change(void *address, uint32_t bytes, uint64_t value, int order,
			       enum weak_scope scope)
{
	uint32_t where = weak_location(address, bytes);
	const struct weak_message *old = &weak.messages[weak.locations[where].newest];
	struct weak_message *message = weak_add(where, 0, order, scope);

	message->glued = true;
	message->value[0] = value;
	for (int between = 0; between < WEAK_SCOPES; between++)
		message->view[between] = weak_union(message->view[between], old->view[between]);
	memcpy(address, message->value, bytes);
}

static inline void weak_fence(int order, enum weak_scope scope)
{
	struct weak_fibre *self = weak_self();
	const struct weak_view *view;

	if (order != __ATOMIC_RELEASE)
		for (enum weak_scope s = WEAK_DEVICE; s <= scope; s++)
			for (uint32_t i = 0; i < weak.place_count; i++)
				if (self->seen[i] < self->pending[s][i])
					self->seen[i] = self->pending[s][i];
	if (order == __ATOMIC_SEQ_CST)
		for (uint32_t i = 0; i < weak.place_count; i++) {
			if (self->seen[i] < weak.strongest[i])
				self->seen[i] = weak.strongest[i];
			weak.strongest[i] = self->seen[i];
		}
	if (order == __ATOMIC_ACQUIRE)
		return;
	/* Often nothing has changed since the last fence. */
	view = self->released[scope];
	if (!view || view->count != weak.place_count ||
	    memcmp(view->seen, self->seen, 4 * view->count))
		view = weak_snapshot(self->seen);
	for (enum weak_scope s = WEAK_DEVICE; s <= scope; s++)
		self->released[s] = view;
}

/*
 * A register of a controller acts on every store to it, in order.  Returns true
 * if there is a next one.
 */
static inline bool weak_register(const uint32_t *address, uint32_t *value)
{
	uint32_t where = weak_location(address, 4), next = 0;
	struct weak_location *location = &weak.locations[where];

	for (uint32_t at = location->newest; weak.messages[at].at > location->taken;
	     at = weak.messages[at].older)
		if (weak_reaches(&weak.messages[at], WEAK_SYSTEM))
			next = at;
	if (!next || (weak_is_late(&weak.messages[next]) && machine.random && machine_random() % 2))
		return false;
	location->taken = weak.messages[next].at;
	weak_see(where, &weak.messages[next], __ATOMIC_ACQUIRE, WEAK_SYSTEM);
	*value = (uint32_t)weak.messages[next].value[0];
	return true;
}

/* A barrier of all lanes of @mask, which merges their views. */
static inline void weak_meet(uint64_t mask)
{
	struct fibre *fibre = fibre_current();

	machine_meet(mask, (uint64_t)(uintptr_t)weak_snapshot(weak_self()->seen));
	for (uint32_t lane = 0; lane < MAX_LANES; lane++)
		if (mask >> lane & 1)
			weak_join(weak_self()->seen,
				  (const struct weak_view *)(uintptr_t)fibre->others[lane]);
}

static inline uint64_t weak_union_of(uint64_t a, uint64_t b)
{
	return (uint64_t)(uintptr_t)weak_union((const struct weak_view *)(uintptr_t)a,
					       (const struct weak_view *)(uintptr_t)b);
}

/* The same for all fibres of the block. */
static inline void weak_barrier(void)
{
	uint64_t mine = (uint64_t)(uintptr_t)weak_snapshot(weak_self()->seen);

	weak_join(weak_self()->seen,
		  (const struct weak_view *)(uintptr_t)machine_barrier(mine, weak_union_of));
}

#endif /* SELFTESTS_DEVICE_WEAK_H */
