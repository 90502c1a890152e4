// SPDX-License-Identifier: GPL-2.0-only
/*
 * softgpu_drv: driver of softgpu, the software GPU of nvme-peer's tests. It handles dma-bufs and
 * peer-to-peer DMA like drivers of real GPUs.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "buffer.h"
#include "device.h"
#include "import.h"
#include "job.h"
#include "mmu.h"
#include "node.h"

static irqreturn_t softgpu_interrupt(int irq, void *data)
{
	struct softgpu *gpu = data;
	u32 slots = readl(gpu->regs + SOFTGPU_REG_INT_STATUS);

	if (!slots || slots == U32_MAX)
		return IRQ_NONE;
	writel(slots, gpu->regs + SOFTGPU_REG_INT_STATUS);
	atomic64_inc(&gpu->interrupts);
	softgpu_jobs_done(gpu, slots);
	return IRQ_HANDLED;
}

/* Initialize the registers after power-on or a reset. */
static void softgpu_hw_start(struct softgpu *gpu)
{
	softgpu_mmu_start(gpu);
	writeq(gpu->flush_dma, gpu->regs + SOFTGPU_REG_FLUSH);
	writel(U16_MAX, gpu->regs + SOFTGPU_REG_INT_ENABLE);
}

/* Stop all jobs and DMA; called with hw_lock held for writing. */
static void softgpu_hw_stop(struct softgpu *gpu)
{
	int tries;

	lockdep_assert_held_write(&gpu->hw_lock);
	writel(0, gpu->regs + SOFTGPU_REG_INT_ENABLE);
	writel(1, gpu->regs + SOFTGPU_REG_RESET);
	for (tries = 0; tries < 1000; tries++) {
		u32 running = readl(gpu->regs + SOFTGPU_REG_RESET);

		if (!running || running == U32_MAX)
			break;
		usleep_range(1000, 2000);
	}
	writeq(0, gpu->regs + SOFTGPU_REG_FLUSH);
	writeq(0, gpu->regs + SOFTGPU_REG_TABLE_PAGES);
	pci_clear_master(gpu->pdev);
}

static int softgpu_map_bars(struct softgpu *gpu)
{
	struct pci_dev *pdev = gpu->pdev;

	gpu->regs = pci_iomap(pdev, 0, SOFTGPU_REGISTER_BYTES);
	if (!gpu->regs)
		return -ENOMEM;
	if (readl(gpu->regs + SOFTGPU_REG_ID) != SOFTGPU_ID ||
	    readl(gpu->regs + SOFTGPU_REG_VERSION) != SOFTGPU_VERSION) {
		pci_iounmap(pdev, gpu->regs);
		return -ENODEV;
	}
	gpu->hbm_phys = pci_resource_start(pdev, 2);
	gpu->hbm_bytes = pci_resource_len(pdev, 2);
	gpu->window = readq(gpu->regs + SOFTGPU_REG_WINDOW);
	gpu->hbm_va = readq(gpu->regs + SOFTGPU_REG_HBM_VA);
	gpu->mmu_va = readq(gpu->regs + SOFTGPU_REG_MMU_VA);
	gpu->hbm = ioremap_wc(gpu->hbm_phys, gpu->hbm_bytes);
	if (!gpu->hbm) {
		pci_iounmap(pdev, gpu->regs);
		return -ENOMEM;
	}
	return 0;
}

static void softgpu_unmap_bars(struct softgpu *gpu)
{
	iounmap(gpu->hbm);
	pci_iounmap(gpu->pdev, gpu->regs);
}

static int softgpu_irq_init(struct softgpu *gpu)
{
	struct pci_dev *pdev = gpu->pdev;
	int ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI);

	if (ret < 0)
		return ret;
	ret = request_irq(pci_irq_vector(pdev, 0), softgpu_interrupt, 0,
			  gpu->name, gpu);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

static void softgpu_irq_exit(struct softgpu *gpu)
{
	free_irq(pci_irq_vector(gpu->pdev, 0), gpu);
	pci_free_irq_vectors(gpu->pdev);
}

static int softgpu_pci_init(struct pci_dev *pdev)
{
	int ret = pci_enable_device_mem(pdev);

	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = pci_request_mem_regions(pdev, "softgpu_drv");
	if (ret) {
		pci_disable_device(pdev);
		return ret;
	}
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	pci_set_master(pdev);
	return 0;
}

static void softgpu_pci_exit(struct pci_dev *pdev)
{
	pci_clear_master(pdev);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

static int softgpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct softgpu *gpu = softgpu_new(pdev, &softgpu_fops);
	int ret;

	if (IS_ERR(gpu))
		return PTR_ERR(gpu);
	ret = softgpu_pci_init(pdev);
	if (ret)
		goto err_put;
	ret = softgpu_map_bars(gpu);
	if (ret)
		goto err_pci;
	ret = softgpu_mmu_init(gpu);
	if (ret)
		goto err_bars;
	ret = -ENOMEM;
	gpu->flush_page = dma_alloc_coherent(&pdev->dev, PAGE_SIZE,
					     &gpu->flush_dma, GFP_KERNEL);
	if (!gpu->flush_page)
		goto err_bars;
	gpu->workqueue = alloc_workqueue("%s", WQ_UNBOUND, 0, gpu->name);
	if (!gpu->workqueue)
		goto err_flush_page;
	ret = softgpu_irq_init(gpu);
	if (ret)
		goto err_workqueue;
	softgpu_hw_start(gpu);
	pci_set_drvdata(pdev, gpu);
	ret = misc_register(&gpu->misc);
	if (ret)
		goto err_irq;
	return 0;

err_irq:
	down_write(&gpu->hw_lock);
	softgpu_hw_stop(gpu);
	up_write(&gpu->hw_lock);
	softgpu_irq_exit(gpu);
err_workqueue:
	destroy_workqueue(gpu->workqueue);
err_flush_page:
	dma_free_coherent(&pdev->dev, PAGE_SIZE, gpu->flush_page,
			  gpu->flush_dma);
err_bars:
	softgpu_unmap_bars(gpu);
err_pci:
	softgpu_pci_exit(pdev);
err_put:
	softgpu_put(gpu);
	return ret;
}

/*
 * Files and dma-bufs may stay open. DMA of the device stops before its imports are unmapped, and
 * importers have unmapped its memory before its BAR can be reused.
 */
static void softgpu_remove(struct pci_dev *pdev)
{
	struct softgpu *gpu = pci_get_drvdata(pdev);

	misc_deregister(&gpu->misc);
	down_write(&gpu->hw_lock);
	gpu->gone = true;
	softgpu_hw_stop(gpu);
	up_write(&gpu->hw_lock);
	softgpu_irq_exit(gpu);
	wake_up_all(&gpu->job_wait);
	softgpu_imports_shutdown(gpu);
	softgpu_buffers_revoke(gpu);
	destroy_workqueue(gpu->workqueue);
	dma_free_coherent(&pdev->dev, PAGE_SIZE, gpu->flush_page,
			  gpu->flush_dma);
	softgpu_unmap_bars(gpu);
	softgpu_pci_exit(pdev);
	softgpu_put(gpu);
}

/* A reset by the PCI core: HBM keeps its contents, running jobs are lost. */
static void softgpu_reset_prepare(struct pci_dev *pdev)
{
	struct softgpu *gpu = pci_get_drvdata(pdev);

	down_write(&gpu->hw_lock);
	writel(0, gpu->regs + SOFTGPU_REG_INT_ENABLE);
}

static void softgpu_reset_done(struct pci_dev *pdev)
{
	struct softgpu *gpu = pci_get_drvdata(pdev);

	softgpu_jobs_lost(gpu);
	softgpu_hw_start(gpu);
	up_write(&gpu->hw_lock);
	wake_up_all(&gpu->job_wait);
}

static const struct pci_error_handlers softgpu_error_handlers = {
	.reset_prepare = softgpu_reset_prepare,
	.reset_done = softgpu_reset_done,
};

static const struct pci_device_id softgpu_ids[] = {
	{ PCI_DEVICE(SOFTGPU_VENDOR_ID, SOFTGPU_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, softgpu_ids);

static struct pci_driver softgpu_driver = {
	.name = "softgpu_drv",
	.id_table = softgpu_ids,
	.probe = softgpu_probe,
	.remove = softgpu_remove,
	.err_handler = &softgpu_error_handlers,
};

module_pci_driver(softgpu_driver);
NVMEP_IMPORT_NS_DMA_BUF();
MODULE_DESCRIPTION("Driver of the software GPU of nvme-peer's tests");
MODULE_LICENSE("GPL");
