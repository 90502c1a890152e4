// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counting live objects.
 *
 * An object is counted once, with its controller.  Whatever is counted holds
 * that controller, so the sum over all controllers that are still held is the
 * module's own.
 */
#include <linux/bug.h>
#include <linux/mutex.h>

#include "objects.h"

static DEFINE_MUTEX(nvmep_objects_lock);	/* the list */
static LIST_HEAD(nvmep_objects_list);

/**
 * nvmep_objects_init() - a controller without objects
 * @objects: the controller's, zeroed
 */
void nvmep_objects_init(struct nvmep_objects *objects)
{
	mutex_lock(&nvmep_objects_lock);
	list_add_tail(&objects->node, &nvmep_objects_list);
	mutex_unlock(&nvmep_objects_lock);
}

/**
 * nvmep_objects_exit() - the last reference to the controller is gone
 * @objects: the controller's; every object held the controller, so none is left
 */
void nvmep_objects_exit(struct nvmep_objects *objects)
{
	enum nvmep_object kind;

	mutex_lock(&nvmep_objects_lock);
	list_del(&objects->node);
	mutex_unlock(&nvmep_objects_lock);

	for (kind = 0; kind < NVMEP_OBJECT_KINDS; kind++)
		WARN_ON(nvmep_objects_count(objects, kind));
}

/**
 * nvmep_objects_add() - objects came or went
 * @objects: of their controller, which the caller holds
 * @kind: of object
 * @change: how many, negative if they went
 */
void nvmep_objects_add(struct nvmep_objects *objects, enum nvmep_object kind,
		       int change)
{
	atomic_add(change, &objects->count[kind]);
}

/**
 * nvmep_objects_count() - how many objects a controller has
 * @objects: the controller's
 * @kind: of object
 *
 * Return: their number.
 */
int nvmep_objects_count(const struct nvmep_objects *objects,
			enum nvmep_object kind)
{
	return atomic_read(&objects->count[kind]);
}

/**
 * nvmep_objects_sum() - how many objects the module has
 * @kind: of object
 *
 * Return: their number.
 */
int nvmep_objects_sum(enum nvmep_object kind)
{
	struct nvmep_objects *objects;
	int sum = 0;

	mutex_lock(&nvmep_objects_lock);
	list_for_each_entry(objects, &nvmep_objects_list, node)
		sum += nvmep_objects_count(objects, kind);
	mutex_unlock(&nvmep_objects_lock);
	return sum;
}
