// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a map of CPUs to queues while nvme-peer makes it, as the block layer
 * does for a CPU that goes offline: it uses each entry as an index. That race
 * cannot be held open, since a CPU goes offline after a grace period of RCU and
 * a stalled thread delays it.
 */
#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/slab.h>

#include "test.h"

/**
 * struct test_queue_map - reads the maps that are made
 * @probe: const: at the function of nvme-peer that places CPUs in a map
 * @maps: counts, written by the probe
 */
struct test_queue_map {
	struct kprobe probe;
	struct nvmep_test_maps maps;
};

static int test_queue_map_hit(struct kprobe *probe, struct pt_regs *regs)
{
	struct test_queue_map *queue_map =
		container_of(probe, struct test_queue_map, probe);
	const struct blk_mq_queue_map *map =
		(void *)regs_get_kernel_argument(regs, 0);
	unsigned int cpu;

	queue_map->maps.seen++;
	for_each_possible_cpu(cpu)
		if (map->mq_map[cpu] - map->queue_offset >= map->nr_queues)
			queue_map->maps.invalid++;
	return 0;
}
NOKPROBE_SYMBOL(test_queue_map_hit);

/* ENOENT: the compiler has inlined the function. */
int test_queue_map(struct test_file *file)
{
	struct test_queue_map *queue_map;
	int ret;

	lockdep_assert_held(&file->lock);
	if (file->queue_map)
		return -EBUSY;
	queue_map = kzalloc(sizeof(*queue_map), GFP_KERNEL);
	if (!queue_map)
		return -ENOMEM;
	queue_map->probe.symbol_name = "nvmep_place_cpus";
	queue_map->probe.pre_handler = test_queue_map_hit;
	ret = register_kprobe(&queue_map->probe);
	if (ret) {
		kfree(queue_map);
		return ret;
	}
	file->queue_map = queue_map;
	return 0;
}

int test_queue_map_read(struct test_file *file, struct nvmep_test_maps *maps)
{
	lockdep_assert_held(&file->lock);
	if (!file->queue_map)
		return -ENOENT;
	*maps = file->queue_map->maps;
	return 0;
}

void test_queue_map_end(struct test_file *file)
{
	lockdep_assert_held(&file->lock);
	if (!file->queue_map)
		return;
	unregister_kprobe(&file->queue_map->probe);
	kfree(file->queue_map);
	file->queue_map = NULL;
}
