// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvme-peer: an NVMe driver that serves a controller to the CPU, and on the
 * same controller provides queue pairs to other bus masters (peers).
 *
 * The ID table is empty: the driver binds only to functions whose
 * driver_override names it.  This file is the PCI driver: probe and remove in
 * their order, and the callbacks of the PCI core and of power management.  It
 * registers the callbacks of the cpu and peer layers with the core layer.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>

#include "compat.h"
#include "core/admin.h"
#include "core/async_event.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/debugfs.h"
#include "core/holds.h"
#include "core/qids.h"
#include "core/queue.h"
#include "core/registers.h"
#include "core/reset.h"
#include "cpu/block.h"
#include "cpu/cpu.h"
#include "cpu/node.h"
#include "cpu/scan.h"
#include "module.h"
#include "peer/peer.h"
#include "peer/peer_debugfs.h"
#include "peer/relay.h"

/* --- probe and remove ---------------------------------------------------- */

static int nvmep_enable_pci(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = pci_enable_device_mem(ctrl->pdev);
	if (ret)
		return ret;
	ret = pci_request_mem_regions(ctrl->pdev, "nvme-peer");
	if (ret)
		goto err_disable;
	ret = nvmep_ctrl_map(ctrl);
	if (ret)
		goto err_regions;
	ret = nvmep_ctrl_end_previous(ctrl);
	if (ret)
		goto err_unmap;
	nvmep_pci_enable_aer(ctrl->pdev);
	return 0;

err_unmap:
	nvmep_ctrl_unmap(ctrl);
err_regions:
	pci_release_mem_regions(ctrl->pdev);
err_disable:
	pci_disable_device(ctrl->pdev);
	return ret;
}

/* pci_disable_device() leaves memory decoding on: see nvmep_ctrl_unmap(). */
static void nvmep_disable_pci(struct nvmep_ctrl *ctrl)
{
	nvmep_pci_disable_aer(ctrl->pdev);
	nvmep_ctrl_unmap(ctrl);
	pci_release_mem_regions(ctrl->pdev);
	pci_disable_device(ctrl->pdev);
}

/*
 * Allocates the admin queue and one interrupt vector, which the first start
 * replaces.
 */
static int nvmep_setup_admin(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = nvmep_data_init(ctrl);
	if (ret)
		return ret;
	ret = pci_alloc_irq_vectors(ctrl->pdev, 1, 1, PCI_IRQ_ALL_TYPES);
	if (ret < 0)
		goto err_pool;
	ret = nvmep_admin_init(ctrl, nvmep_async_event_handle_cqe);
	if (ret)
		goto err_vectors;
	ret = nvmep_queue_request_irq(ctrl->admin, 0);
	if (ret)
		goto err_admin;
	return 0;

err_admin:
	nvmep_admin_exit(ctrl);
err_vectors:
	pci_free_irq_vectors(ctrl->pdev);
err_pool:
	nvmep_data_exit(ctrl);
	return ret;
}

static void nvmep_teardown_admin(struct nvmep_ctrl *ctrl)
{
	nvmep_admin_exit(ctrl);
	pci_free_irq_vectors(ctrl->pdev);
	nvmep_data_exit(ctrl);
}

static int nvmep_setup_io(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = nvmep_ctrl_start(ctrl);
	if (ret)
		return ret;
	ret = nvmep_block_init(ctrl);
	if (ret)
		goto err_stop;
	ret = ctrl->peer_ops->init(ctrl);
	if (ret)
		goto err_block;
	return 0;

err_block:
	nvmep_block_exit(ctrl);
err_stop:
	nvmep_ctrl_stop(ctrl, false);
	return ret;
}

static int nvmep_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nvmep_ctrl *ctrl;
	int ret;

	if (pdev->class != PCI_CLASS_STORAGE_EXPRESS) {
		dev_err(&pdev->dev,
			"PCI class %06x is not that of an NVMe I/O controller (%06x)\n",
			pdev->class, PCI_CLASS_STORAGE_EXPRESS);
		return -ENODEV;
	}
	ctrl = nvmep_ctrl_alloc(pdev, &nvmep_cpu_ops, &nvmep_peer_ops);
	if (IS_ERR(ctrl))
		return PTR_ERR(ctrl);
	nvmep_async_event_init(ctrl);
	nvmep_reset_init(ctrl);
	ret = ctrl->cpu_ops->init(ctrl);
	if (ret)
		goto err_ctrl;
	ret = nvmep_enable_pci(ctrl);
	if (ret)
		goto err_ctrl;
	ret = nvmep_setup_admin(ctrl);
	if (ret)
		goto err_pci;
	ret = nvmep_setup_io(ctrl);
	if (ret)
		goto err_queues;
	ret = nvmep_node_add_ctrl(ctrl);
	if (ret)
		goto err_io;

	/* For slot_reset() and for resets of the function. */
	nvmep_ctrl_save_config(ctrl);
	pci_set_drvdata(pdev, ctrl);
	nvmep_debugfs_add(ctrl);
	nvmep_peer_debugfs_init(ctrl, ctrl->debugfs);
	nvmep_ctrl_set_live(ctrl);
	dev_info(&pdev->dev,
		 "nvmep%d: %u I/O queues of the CPU, %u of %u queue pairs for peers\n",
		 ctrl->instance, ctrl->cpu_queues_live, ctrl->qids.peer_max,
		 ctrl->qids.total);
	return 0;

err_io:
	nvmep_ctrl_stop(ctrl, false);
	nvmep_block_exit(ctrl);
err_queues:
	/* A failed first start may have allocated them. */
	nvmep_ctrl_free_queues(ctrl);
	nvmep_teardown_admin(ctrl);
err_pci:
	nvmep_disable_pci(ctrl);
err_ctrl:
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD);
	nvmep_ctrl_put(ctrl);
	return ret;
}

/*
 * After NVMEP_HOLD_GOING was taken: the works cannot be queued any more.  A
 * controller that was not LIVE (@live) is stopped first: reset work may wait for
 * a command.  Its I/O fails from here on: event work may wait for memory, and so
 * for I/O.
 *
 * Event work sends uevents of the device node, which must exist until then.
 */
static void nvmep_end_works(struct nvmep_ctrl *ctrl, bool live)
{
	if (!live)
		nvmep_ctrl_stop(ctrl, false);
	cancel_delayed_work_sync(&ctrl->link_work);
	cancel_delayed_work_sync(&ctrl->async_event_work);
	flush_work(&ctrl->reset_work);
}

/*
 * Teardown order: work that could start new activity; then what users and
 * importers hold (queue pairs of peers, namespaces, device nodes); then the
 * driver's own queues and BAR0.  After that, open files only keep the
 * controller object.
 */
static void nvmep_remove(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);
	bool live = nvmep_ctrl_hold(ctrl, NVMEP_HOLD_GOING) == NVMEP_CTRL_LIVE;

	if (nvmep_ctrl_gone(ctrl)) {
		ctrl->peer_ops->revoke_doorbells(ctrl);
		live = false;
	}
	nvmep_end_works(ctrl, live);
	if (!test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		ctrl->cpu_ops->fail(ctrl);

	ctrl->peer_ops->remove(ctrl);
	nvmep_namespaces_remove(ctrl);
	nvmep_debugfs_remove(ctrl);
	nvmep_node_remove_ctrl(ctrl);

	nvmep_ctrl_shutdown(ctrl);
	nvmep_block_exit(ctrl);
	nvmep_ctrl_free_queues(ctrl);
	nvmep_teardown_admin(ctrl);
	nvmep_disable_pci(ctrl);
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD);
	nvmep_ctrl_put(ctrl);
}

/*
 * Power off or kexec: leave the controller disabled, without DMA, and its
 * doorbells unmapped, as the next kernel may use the same queue IDs.
 */
static void nvmep_pci_shutdown(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);
	bool live = nvmep_ctrl_hold(ctrl, NVMEP_HOLD_GOING) == NVMEP_CTRL_LIVE;

	nvmep_end_works(ctrl, live);
	nvmep_ctrl_shutdown(ctrl);
	ctrl->peer_ops->revoke_doorbells(ctrl);
}

/* --- PCI error handlers -------------------------------------------------- */

/* The flush is short: the stop ends the commands that reset work waits for. */
static void nvmep_reset_prepare(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	nvmep_ctrl_hold(ctrl, NVMEP_HOLD_PCI);
	nvmep_ctrl_prepare(ctrl);
	flush_work(&ctrl->reset_work);
}

/* The PCI core has restored config space, which some kernels do only once. */
static void nvmep_reset_done(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	nvmep_ctrl_save_config(ctrl);
	nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_PCI);
	nvmep_ctrl_wait_restart(ctrl);
}

/* Return: false if the controller is being removed or has failed. */
static bool nvmep_hold_link(struct nvmep_ctrl *ctrl)
{
	bool held = nvmep_ctrl_hold(ctrl, NVMEP_HOLD_LINK) < NVMEP_CTRL_DELETING;

	nvmep_ctrl_prepare(ctrl);
	return held;
}

/*
 * The recovery of a whole subtree of the bus waits for this: wait for nothing
 * long.
 */
static pci_ers_result_t nvmep_error_detected(struct pci_dev *pdev,
					     pci_channel_state_t channel)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	if (channel == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (channel == pci_channel_io_perm_failure) {
		nvmep_ctrl_fail_link(ctrl);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	dev_warn(&pdev->dev, "link frozen: stopping\n");
	return nvmep_hold_link(ctrl) ? PCI_ERS_RESULT_NEED_RESET :
				       PCI_ERS_RESULT_DISCONNECT;
}

/*
 * Another function may have asked for the reset: then error_detected() has not
 * stopped this controller.  Some kernels leave the channel frozen until
 * resume(), so the controller is started there.
 */
static pci_ers_result_t nvmep_slot_reset(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	if (!(READ_ONCE(ctrl->holds) & NVMEP_HOLD_LINK))
		nvmep_hold_link(ctrl);
	return nvmep_ctrl_restore_config(ctrl) ? PCI_ERS_RESULT_RECOVERED :
						 PCI_ERS_RESULT_DISCONNECT;
}

static void nvmep_error_resume(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	/*
	 * Do not wait for the reset work: it may reset the function, which
	 * takes the device lock and pci_bus_sem, and the caller holds both.
	 */
	nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_LINK);
}

static const struct pci_error_handlers nvmep_error_handlers = {
	.error_detected = nvmep_error_detected,
	.slot_reset = nvmep_slot_reset,
	.resume = nvmep_error_resume,
	.reset_prepare = nvmep_reset_prepare,
	.reset_done = nvmep_reset_done,
};

/* --- suspend and resume -------------------------------------------------- */

static int nvmep_suspend(struct device *dev)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);
	enum nvmep_ctrl_state before;
	int ret;

	/*
	 * A peer's program is not frozen and would use its queue pairs
	 * meanwhile.
	 */
	if (ctrl->peer_ops->busy(ctrl)) {
		dev_warn(dev, "suspend refused: peers have queue pairs\n");
		return -EBUSY;
	}
	/* Before the hold: I/O in flight may need a reset to end. */
	ret = ctrl->cpu_ops->sleep(ctrl);
	if (ret)
		return ret;
	before = nvmep_ctrl_hold(ctrl, NVMEP_HOLD_SLEEP);
	set_bit(NVMEP_CTRL_SLEPT, &ctrl->flags);
	/* A controller that has failed may still have mapped doorbells. */
	ctrl->peer_ops->revoke_doorbells(ctrl);
	if (before >= NVMEP_CTRL_DELETING)
		return 0;
	if (before != NVMEP_CTRL_LIVE)
		nvmep_ctrl_stop(ctrl, false);
	/* Short: it waits for no command any more, or it is at its end. */
	flush_work(&ctrl->reset_work);
	nvmep_ctrl_shutdown(ctrl);
	return 0;
}

static int nvmep_resume(struct device *dev)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);

	/* The PCI core has restored config space, perhaps for the last time. */
	nvmep_ctrl_save_config(ctrl);
	nvmep_ctrl_unhold(ctrl, NVMEP_HOLD_SLEEP);
	/* Before the restart, which may fail: new I/O waits while quiesced. */
	ctrl->cpu_ops->wake(ctrl);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(nvmep_pm_ops, nvmep_suspend, nvmep_resume);

/* --- module -------------------------------------------------------------- */

static struct pci_driver nvmep_driver = {
	.name = "nvme-peer",
	.id_table = NULL,	/* driver_override only */
	.probe = nvmep_probe,
	.remove = nvmep_remove,
	.shutdown = nvmep_pci_shutdown,
	.sriov_configure = pci_sriov_configure_simple,
	.err_handler = &nvmep_error_handlers,
	.driver.probe_type = PROBE_PREFER_ASYNCHRONOUS,
	.driver.pm = pm_sleep_ptr(&nvmep_pm_ops),
};

static int __init nvmep_init(void)
{
	int ret;

	ret = nvmep_workqueues_init();
	if (ret)
		return ret;
	ret = nvmep_pollers_init();
	if (ret)
		goto err_workqueues;
	ret = nvmep_nodes_init();
	if (ret)
		goto err_pollers;
	nvmep_peer_debugfs_module(nvmep_debugfs_init());
	ret = pci_register_driver(&nvmep_driver);
	if (ret)
		goto err_nodes;
	return 0;

err_nodes:
	nvmep_debugfs_exit();
	nvmep_nodes_exit();
err_pollers:
	nvmep_pollers_exit();
err_workqueues:
	nvmep_workqueues_exit();
	return ret;
}
module_init(nvmep_init);

static void __exit nvmep_exit(void)
{
	pci_unregister_driver(&nvmep_driver);
	nvmep_debugfs_exit();
	nvmep_nodes_exit();
	nvmep_pollers_exit();
	nvmep_workqueues_exit();
	nvmep_quarantines_exit();
	/* Wait for call_rcu() callbacks, which are code of this module. */
	rcu_barrier();
}
module_exit(nvmep_exit);

MODULE_DESCRIPTION("NVMe driver with queue pairs for peers");
MODULE_LICENSE("GPL");
MODULE_VERSION(NVMEP_VERSION);
NVMEP_IMPORT_NS_DMA_BUF();
