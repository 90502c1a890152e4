// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor of the CPU, put together: what it keeps for a controller, and what the
 * controller may tell it.
 */
#include <linux/slab.h>

#include "core/ctrl.h"
#include "cpu.h"
#include "freeze.h"
#include "node.h"
#include "scan.h"

static int nvmep_cpu_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = kzalloc(sizeof(*cpu), GFP_KERNEL);

	if (!cpu)
		return -ENOMEM;
	if (init_srcu_struct(&cpu->namespaces_srcu)) {
		kfree(cpu);
		return -ENOMEM;
	}
	cpu->ctrl = ctrl;
	cpu->ns_ops = &nvmep_node_ns_ops;
	mutex_init(&cpu->namespaces_lock);
	INIT_LIST_HEAD(&cpu->namespaces);
	mutex_init(&cpu->effects_lock);
	mutex_init(&cpu->scan_lock);
	INIT_WORK(&cpu->scan_work, nvmep_scan_work);
	spin_lock_init(&cpu->moved_lock);
	bio_list_init(&cpu->moved);
	ctrl->cpu = cpu;
	return 0;
}

static void nvmep_cpu_exit(struct nvmep_ctrl *ctrl)
{
	if (!ctrl->cpu)
		return;
	cleanup_srcu_struct(&ctrl->cpu->namespaces_srcu);
	kfree(ctrl->cpu);
}

const struct nvmep_cpu_ops nvmep_cpu_ops = {
	.init = nvmep_cpu_init,
	.exit = nvmep_cpu_exit,
	.quiesce = nvmep_namespaces_quiesce,
	.unquiesce = nvmep_namespaces_unquiesce,
	.drain = nvmep_namespaces_drain,
	.fail = nvmep_namespaces_fail,
	.scan = nvmep_scan,
};
