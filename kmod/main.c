// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvme-peer: an NVMe driver that serves a controller to the CPU like any other
 * and on the same controller gives queue pairs to other bus masters.
 *
 * It binds to nothing by itself: the administrator gives it a function through
 * the function's driver_override.  This file is the PCI driver: the order in
 * which a controller is put together and taken apart, and what the PCI and
 * power management cores ask for.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>

#include "compat.h"
#include "core/admin.h"
#include "core/ctrl.h"
#include "core/data.h"
#include "core/debugfs.h"
#include "core/events.h"
#include "core/queue.h"
#include "core/registers.h"
#include "core/reset.h"
#include "core/start.h"
#include "core/stop.h"
#include "cpu/block.h"
#include "cpu/cpu.h"
#include "cpu/node.h"
#include "cpu/scan.h"
#include "peer/peer.h"
#include "peer/peer_debugfs.h"
#include "workqueue.h"

static unsigned int recovery_timeout = 60;
module_param(recovery_timeout, uint, 0644);
MODULE_PARM_DESC(recovery_timeout,
		 "seconds until a controller is given up whose link failed and did not recover");

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
	nvmep_pci_enable_aer(ctrl->pdev);
	return 0;

err_regions:
	pci_release_mem_regions(ctrl->pdev);
err_disable:
	pci_disable_device(ctrl->pdev);
	return ret;
}

/* pci_disable_device() leaves the memory decode on: see nvmep_ctrl_unmap(). */
static void nvmep_disable_pci(struct nvmep_ctrl *ctrl)
{
	nvmep_pci_disable_aer(ctrl->pdev);
	nvmep_ctrl_unmap(ctrl);
	pci_release_mem_regions(ctrl->pdev);
	pci_disable_device(ctrl->pdev);
}

/* The admin queue with one interrupt vector, which the first start replaces. */
static int nvmep_setup_admin(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = nvmep_data_init(ctrl);
	if (ret)
		return ret;
	ret = pci_alloc_irq_vectors(ctrl->pdev, 1, 1, PCI_IRQ_ALL_TYPES);
	if (ret < 0)
		goto err_pool;
	ret = nvmep_admin_init(ctrl, nvmep_events_entry);
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

	if (pdev->class != NVME_PCI_CLASS) {
		dev_err(&pdev->dev,
			"PCI class %06x is not an NVMe I/O controller (%06x)\n",
			pdev->class, NVME_PCI_CLASS);
		return -ENODEV;
	}
	ctrl = nvmep_ctrl_alloc(pdev, &nvmep_cpu_ops, &nvmep_peer_ops);
	if (IS_ERR(ctrl))
		return PTR_ERR(ctrl);
	nvmep_events_init(ctrl);
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

	pci_set_drvdata(pdev, ctrl);
	nvmep_debugfs_add(ctrl);
	nvmep_peer_debugfs_init(ctrl, ctrl->debugfs);
	nvmep_ctrl_go_live(ctrl);
	dev_info(&pdev->dev, "nvmep%d: %u CPU queues, %u of %u for peers\n",
		 ctrl->instance, ctrl->cpu_queues_live, ctrl->qids.peer_max,
		 ctrl->qids.total);
	return 0;

err_io:
	nvmep_ctrl_stop(ctrl, false);
	nvmep_block_exit(ctrl);
err_queues:
	/* The first start may have got as far as these before it failed. */
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
 * Ends everything that could start something new, then takes away what others
 * use, then what we use ourselves.  Open files keep the object only.
 */
static void nvmep_remove(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DELETING);
	if (nvmep_ctrl_gone(ctrl)) {
		ctrl->peer_ops->prepare(ctrl);
		nvmep_ctrl_stop(ctrl, false);
	}
	cancel_delayed_work_sync(&ctrl->recovery_work);
	flush_work(&ctrl->reset_work);
	if (!test_bit(NVMEP_CTRL_ENABLED, &ctrl->flags))
		ctrl->cpu_ops->fail(ctrl);

	ctrl->peer_ops->remove(ctrl);
	nvmep_namespaces_remove(ctrl);
	nvmep_debugfs_remove(ctrl);
	nvmep_node_remove_ctrl(ctrl);

	nvmep_ctrl_shutdown(ctrl);
	cancel_delayed_work_sync(&ctrl->event_work);
	nvmep_block_exit(ctrl);
	nvmep_ctrl_free_queues(ctrl);
	nvmep_teardown_admin(ctrl);
	nvmep_disable_pci(ctrl);
	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DEAD);
	nvmep_ctrl_put(ctrl);
}

/* Power off or kexec: the next owner finds a controller that does nothing. */
static void nvmep_pci_shutdown(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	nvmep_ctrl_set_state(ctrl, NVMEP_CTRL_DELETING);
	flush_work(&ctrl->reset_work);
	nvmep_ctrl_shutdown(ctrl);
}

/* --- resets and errors that the PCI core announces ----------------------- */

static void nvmep_reset_prepare(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	if (!nvmep_ctrl_hold(ctrl))
		return;
	ctrl->peer_ops->prepare(ctrl);
	nvmep_ctrl_stop(ctrl, false);
	nvmep_ctrl_tell_stopped(ctrl);
}

static void nvmep_reset_done(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	if (nvmep_ctrl_state(ctrl) != NVMEP_CTRL_RESETTING)
		return;
	nvmep_ctrl_resume_reset(ctrl);
	flush_work(&ctrl->reset_work);
}

/* Recovery of a whole subtree of the bus waits for this: no long waits. */
static pci_ers_result_t nvmep_error_detected(struct pci_dev *pdev,
					     pci_channel_state_t channel)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	if (channel == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (channel == pci_channel_io_perm_failure) {
		ctrl->peer_ops->prepare(ctrl);
		nvmep_ctrl_give_up(ctrl, "link failed for good", -EIO);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	dev_warn(&pdev->dev, "link frozen: stopping\n");
	if (!nvmep_ctrl_freeze(ctrl))
		return PCI_ERS_RESULT_DISCONNECT;
	queue_delayed_work(nvmep_wq, &ctrl->recovery_work,
			   msecs_to_jiffies(recovery_timeout * MSEC_PER_SEC));
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t nvmep_slot_reset(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	cancel_delayed_work_sync(&ctrl->recovery_work);
	nvmep_ctrl_thaw(ctrl);
	return PCI_ERS_RESULT_RECOVERED;
}

static void nvmep_error_resume(struct pci_dev *pdev)
{
	struct nvmep_ctrl *ctrl = pci_get_drvdata(pdev);

	flush_work(&ctrl->reset_work);
}

static const struct pci_error_handlers nvmep_error_handlers = {
	.error_detected = nvmep_error_detected,
	.slot_reset = nvmep_slot_reset,
	.resume = nvmep_error_resume,
	.reset_prepare = nvmep_reset_prepare,
	.reset_done = nvmep_reset_done,
};

/* --- sleep --------------------------------------------------------------- */

static int nvmep_suspend(struct device *dev)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);

	/* Nobody could tell a peer's program to wait, unless it has agreed to that. */
	if (ctrl->peer_ops->busy(ctrl)) {
		dev_warn(dev, "peers have queue pairs: not going to sleep\n");
		return -EBUSY;
	}
	if (!nvmep_ctrl_hold(ctrl))
		return 0;
	ctrl->peer_ops->prepare(ctrl);
	nvmep_ctrl_shutdown(ctrl);
	return 0;
}

static int nvmep_resume(struct device *dev)
{
	struct nvmep_ctrl *ctrl = dev_get_drvdata(dev);

	if (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING)
		nvmep_ctrl_resume_reset(ctrl);
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
	.err_handler = &nvmep_error_handlers,
	.driver.pm = pm_sleep_ptr(&nvmep_pm_ops),
};

static int __init nvmep_init(void)
{
	int ret;

	ret = nvmep_workqueues_init();
	if (ret)
		return ret;
	ret = nvmep_nodes_init();
	if (ret)
		goto err_workqueues;
	nvmep_peer_debugfs_module(nvmep_debugfs_init());
	ret = pci_register_driver(&nvmep_driver);
	if (ret)
		goto err_nodes;
	return 0;

err_nodes:
	nvmep_debugfs_exit();
	nvmep_nodes_exit();
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
	nvmep_workqueues_exit();
	/* For what call_rcu() was asked to call. */
	rcu_barrier();
}
module_exit(nvmep_exit);

MODULE_DESCRIPTION("NVMe driver with queue pairs for peers");
MODULE_LICENSE("GPL");
NVMEP_IMPORT_NS_DMA_BUF();
