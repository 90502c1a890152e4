/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weak.h: the memory of the machine of fibres.h, as weak as the memory models
 * of C11 and PTX allow but for loads that see the future.
 *
 * A place is a word that is only touched as a whole.  It keeps every store to
 * it, in the order that all agree on (coherence).  A fibre may see any store
 * that is not older than what it knows of the place; a store may go before
 * others that its fibre does not know of.  A read-modify-write sees the newest.
 *
 * What a fibre knows is a view: for each place, the oldest store it may still
 * see.  A release fence attaches the view of its fibre to the stores that
 * follow; an acquire fence takes over the views of the stores that were loaded
 * before.  Both only between fibres that the scope of the fences and of the
 * accesses includes: a controller is reached by nothing less than the system.
 *
 * What a controller stores crosses a bus and arrives in one place, so it arrives
 * for all at the same time; the models do not say so, but the rings live on it:
 * an entry two rounds old has the phase tag of a new one.
 *
 * Sooner or later everything is seen: a load may overlook a store only for
 * @weak.late steps.  But where the scope of the load or of the store does not
 * include the other fibre the models promise nothing, and it is never seen.
 */
#ifndef SELFTESTS_DEVICE_WEAK_H
#define SELFTESTS_DEVICE_WEAK_H

#include "fibres.h"

enum weak_scope { WEAK_DEVICE, WEAK_SYSTEM, WEAK_SCOPES };

enum {
	WEAK_PLACES = 1 << 14,
	WEAK_HASH = 4 * WEAK_PLACES,
	WEAK_MESSAGES = 1 << 20,
	WEAK_VIEW_WORDS = 1 << 25,
	WEAK_GAP = 1 << 12,	/* between two stores, for others to go in between */
};

/* Oldest store of each place that may still be seen; places above @count: any. */
struct weak_view {
	uint32_t count;
	uint32_t seen[];
};

struct weak_message {
	uint64_t value[2];
	uint32_t at;		/* in the order of the place */
	uint32_t older;		/* message before it, or 0 */
	uint32_t writer;
	uint32_t step;		/* when it was stored */
	bool outside;		/* by a controller */
	bool glued;		/* a read-modify-write: nothing goes between it and the older one */
	enum weak_scope scope;
	const struct weak_view *view[WEAK_SCOPES];
};

struct weak_place {
	uintptr_t address;
	uint32_t bytes;
	uint32_t newest;
	uint32_t arrived;	/* order of a controller's last store that anybody has seen */
	uint32_t taken;		/* order of the last store that a controller has seen */
};

/* What a fibre knows, what it has loaded and not yet acquired, what it releases. */
struct weak_fibre {
	uint32_t seen[WEAK_PLACES];
	uint32_t pending[WEAK_SCOPES][WEAK_PLACES];
	const struct weak_view *released[WEAK_SCOPES];
};

struct weak {
	uint32_t late;		/* steps a store may stay unseen; 0: never, sequential consistency */
	uint32_t odds;		/* a load goes one store back once in so many times */
	uint32_t place_count;
	uint32_t message_count;
	uint32_t view_words;
	struct weak_place places[WEAK_PLACES];
	uint16_t hash[WEAK_HASH];
	struct weak_message messages[WEAK_MESSAGES];
	uint32_t views[WEAK_VIEW_WORDS];
	uint32_t strongest[WEAK_PLACES];	/* what fences of the strongest order agree on */
	struct weak_fibre fibres[MAX_FIBRES];
};

static struct weak weak;

/* Forgets everything: memory is what it is.  After machine_reset(). */
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

static inline uint64_t weak_word(const struct weak_place *place, uint32_t half)
{
	uint32_t bytes = place->bytes < 8 ? place->bytes : 8;
	uint64_t value = 0;

	if (8 * half < place->bytes)
		memcpy(&value, (const char *)place->address + 8 * (size_t)half, bytes);
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

/* The place at @address; its first store is what memory holds now. */
static inline uint32_t weak_place(const void *address, uint32_t bytes)
{
	uint64_t key = ((uint64_t)(uintptr_t)address >> 2) * 0x9e3779b97f4a7c15u;
	struct weak_place *place;
	uint32_t at = key >> 48;

	for (; weak.hash[at]; at = (at + 1) % WEAK_HASH) {
		place = &weak.places[weak.hash[at] - 1];
		if (place->address != (uintptr_t)address)
			continue;
		if (place->bytes != bytes)
			weak_full("sizes of a word");
		return weak.hash[at] - 1u;
	}
	if (weak.place_count == WEAK_PLACES)
		weak_full("words");
	weak.hash[at] = (uint16_t)(weak.place_count + 1);
	place = &weak.places[weak.place_count];
	*place = (struct weak_place){ (uintptr_t)address, bytes, weak_new_message(), 0, 0 };
	weak.messages[place->newest].value[0] = weak_word(place, 0);
	weak.messages[place->newest].value[1] = weak_word(place, 1);
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

/* May @message still be overlooked? */
static inline bool weak_is_late(const struct weak_message *message)
{
	return message->older && (uint64_t)message->step + weak.late > machine.steps;
}

/* What it takes for the current fibre and the writer of a message to be ordered. */
static inline enum weak_scope weak_between(const struct weak_message *message)
{
	return message->outside || fibre_current()->outside ? WEAK_SYSTEM : WEAK_DEVICE;
}

/*
 * Is it promised that a load of @scope by the current fibre ever sees @message?  What
 * was there at the beginning is seen by all.
 */
static inline bool weak_reaches(const struct weak_message *message, enum weak_scope scope)
{
	enum weak_scope between = weak_between(message);

	return !message->older || (scope >= between && message->scope >= between);
}

/* Which store of a place a load of the current fibre sees, not older than @floor. */
static inline const struct weak_message *weak_pick(const struct weak_place *place, uint32_t floor,
						   enum weak_scope scope)
{
	const struct weak_message *message = &weak.messages[place->newest];

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

/* The current fibre has seen @message. */
static inline void weak_see(uint32_t where, const struct weak_message *message, int order,
			    enum weak_scope scope)
{
	struct weak_fibre *self = weak_self();
	enum weak_scope between = weak_between(message);

	if (self->seen[where] < message->at)
		self->seen[where] = message->at;
	if (message->outside && weak.places[where].arrived < message->at)
		weak.places[where].arrived = message->at;
	/* What a controller has read has arrived: nothing goes before it any more. */
	if (fibre_current()->outside && weak.places[where].taken < message->at)
		weak.places[where].taken = message->at;
	if (scope < between || message->scope < between)
		return;
	if (order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST)
		weak_join(self->seen, message->view[between]);
	else
		weak_join(self->pending[between], message->view[between]);
}

/* The view that a store of the current fibre carries for fibres @between away. */
static inline const struct weak_view *weak_carry(int order, enum weak_scope scope,
						 enum weak_scope between)
{
	if (scope >= between && (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ||
				 order == __ATOMIC_SEQ_CST))
		return weak_snapshot(weak_self()->seen);
	return weak_self()->released[between];
}

/* Adds a store to a place, before @newer or as the newest (@newer is 0). */
static inline struct weak_message *weak_add(uint32_t where, uint32_t newer, int order,
					    enum weak_scope scope)
{
	struct weak_place *place = &weak.places[where];
	uint32_t index = weak_new_message();
	struct weak_message *message = &weak.messages[index];

	message->older = newer ? weak.messages[newer].older : place->newest;
	message->at = weak.messages[message->older].at;
	if (newer) {
		message->at += (weak.messages[newer].at - message->at) / 2;
		weak.messages[newer].older = index;
	} else {
		message->at += WEAK_GAP;
		place->newest = index;
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

/* Before which store of a place a store of the current fibre goes; 0: none. */
static inline uint32_t weak_slot(uint32_t where)
{
	const struct weak_place *place = &weak.places[where];
	uint32_t floor = weak_self()->seen[where], newer = 0, at = place->newest;

	/* What a controller stores arrives in order. */
	if (fibre_current()->outside)
		return 0;
	if (floor < place->taken)
		floor = place->taken;
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
	uint32_t where = weak_place(address, bytes), floor = weak_self()->seen[where];
	const struct weak_place *place = &weak.places[where];
	const struct weak_message *message;

	message = weak_pick(place, floor < place->arrived ? place->arrived : floor, scope);
	weak_see(where, message, order, scope);
	value[0] = message->value[0];
	value[1] = message->value[1];
}

/* Stores @bytes (4, 8 or 16) at once. */
static inline void weak_store(void *address, uint32_t bytes, const uint64_t value[2], int order,
			      enum weak_scope scope)
{
	uint32_t where = weak_place(address, bytes), newer = weak_slot(where);
	struct weak_message *message = weak_add(where, newer, order, scope);

	message->value[0] = value[0];
	message->value[1] = bytes > 8 ? value[1] : 0;
	if (!newer)
		memcpy(address, message->value, bytes);
}

/*
 * Begins a read-modify-write of 4 or 8 bytes: the old value is returned, and the
 * caller says by weak_change() what it becomes, if it does.
 */
static inline uint64_t weak_newest(const void *address, uint32_t bytes, int order,
				   enum weak_scope scope)
{
	uint32_t where = weak_place(address, bytes);
	const struct weak_message *message = &weak.messages[weak.places[where].newest];

	weak_see(where, message, order, scope);
	return message->value[0];
}

/* It carries on what the store that it changes released. */
static inline void weak_change(void *address, uint32_t bytes, uint64_t value, int order,
			       enum weak_scope scope)
{
	uint32_t where = weak_place(address, bytes);
	const struct weak_message *old = &weak.messages[weak.places[where].newest];
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
	/* Often nothing is new since the last one. */
	view = self->released[scope];
	if (!view || view->count != weak.place_count ||
	    memcmp(view->seen, self->seen, 4 * view->count))
		view = weak_snapshot(self->seen);
	for (enum weak_scope s = WEAK_DEVICE; s <= scope; s++)
		self->released[s] = view;
}

/*
 * A register of a controller: acts on every store to it, one after the other.
 * True if there is a next one.
 */
static inline bool weak_register(const uint32_t *address, uint32_t *value)
{
	uint32_t where = weak_place(address, 4), next = 0;
	struct weak_place *place = &weak.places[where];

	for (uint32_t at = place->newest; weak.messages[at].at > place->taken;
	     at = weak.messages[at].older)
		if (weak_reaches(&weak.messages[at], WEAK_SYSTEM))
			next = at;
	if (!next || (weak_is_late(&weak.messages[next]) && machine.random && machine_random() % 2))
		return false;
	place->taken = weak.messages[next].at;
	weak_see(where, &weak.messages[next], __ATOMIC_ACQUIRE, WEAK_SYSTEM);
	*value = (uint32_t)weak.messages[next].value[0];
	return true;
}

/* All lanes of @mask meet and know afterwards what each of them knew. */
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
