// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host pages that the controller and peers access, and their dma-bufs.
 *
 * Real pages, because CUDA pins them with pin_user_pages(), and unmovable,
 * because such a pin is long term.  A process that maps a page and a driver
 * that pins it hold a reference to the page itself.
 */
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/ctrl.h"
#include "export.h"
#include "host_pages.h"
#include "import.h"
#include "peer.h"
#include "route.h"

/* Contiguous pages with a reference count each; freed one by one. */
static struct page *nvmep_alloc_contiguous(int node, unsigned int count,
					   gfp_t effort)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	unsigned int order = order_base_2(count);
	struct page *first;
	unsigned int i;

	first = alloc_pages_node(node, gfp | effort, order);
	if (!first)
		return NULL;
	split_page(first, order);
	for (i = count; i < 1U << order; i++)
		__free_page(first + i);
	return first;
}

static struct nvmep_host_pages *
nvmep_host_pages_new(struct nvmep_ctrl *ctrl, unsigned int count)
{
	struct nvmep_host_pages *host;

	host = kvzalloc(struct_size(host, pages, count), GFP_KERNEL_ACCOUNT);
	if (host)
		host->leak_counters = &ctrl->peers->leak_counters;
	return host;
}

/* Appends contiguous pages, which now belong to @host. */
static void nvmep_host_pages_append(struct nvmep_host_pages *host,
				    struct page *first, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		host->pages[host->count++] = first + i;
	nvmep_leak_count(host->leak_counters, NVMEP_OBJECT_PAGES, count);
}

/**
 * nvmep_host_pages_alloc() - allocate zeroed contiguous pages that peers map
 * @ctrl: the controller
 * @bytes: rounded up to whole pages
 *
 * Return: the pages, or an ERR_PTR.
 */
struct nvmep_host_pages *nvmep_host_pages_alloc(struct nvmep_ctrl *ctrl,
						size_t bytes)
{
	unsigned int count = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	struct nvmep_host_pages *host = nvmep_host_pages_new(ctrl, count);
	struct page *first;

	if (!host)
		return ERR_PTR(-ENOMEM);
	first = nvmep_alloc_contiguous(dev_to_node(ctrl->dev), count, 0);
	if (!first) {
		kvfree(host);
		return ERR_PTR(-ENOMEM);
	}
	nvmep_host_pages_append(host, first, count);
	return host;
}

/*
 * Appends one piece of at most @piece pages, and halves @piece until there is
 * one.  Fails rather than invoking the OOM killer: the caller chose the size.
 */
static int nvmep_host_pages_add_piece(struct nvmep_host_pages *host, int node,
				      unsigned int *piece)
{
	struct page *first;

	for (;;) {
		first = nvmep_alloc_contiguous(node, *piece, *piece > 1 ?
					       __GFP_NORETRY :
					       __GFP_RETRY_MAYFAIL);
		if (first)
			break;
		if (*piece == 1)
			return -ENOMEM;
		*piece = DIV_ROUND_UP(*piece, 2);
	}
	nvmep_host_pages_append(host, first, *piece);
	return nvmep_walk_resched();
}

/**
 * nvmep_host_pages_alloc_pieces() - allocate zeroed pages in several pieces
 * @ctrl: the controller
 * @bytes: a multiple of the page size
 *
 * Pieces are as long as free memory allows.
 *
 * Return: the pages, or an ERR_PTR: -ENOMEM, -EINTR after a fatal signal.
 */
struct nvmep_host_pages *
nvmep_host_pages_alloc_pieces(struct nvmep_ctrl *ctrl, size_t bytes)
{
	unsigned int count = bytes >> PAGE_SHIFT;
	struct nvmep_host_pages *host = nvmep_host_pages_new(ctrl, count);
	unsigned int piece = MAX_ORDER_NR_PAGES;
	int err = 0;

	if (!host)
		return ERR_PTR(-ENOMEM);
	while (!err && host->count < count) {
		piece = min(piece, count - host->count);
		err = nvmep_host_pages_add_piece(host, dev_to_node(ctrl->dev),
						 &piece);
	}
	if (err) {
		nvmep_host_pages_free(host);
		return ERR_PTR(err);
	}
	return host;
}

/**
 * nvmep_host_pages_free() - drop the references to host pages
 * @host: the pages, may be NULL.  The caller holds their controller
 *
 * A page that a process has mapped or a driver has pinned stays allocated.
 */
void nvmep_host_pages_free(struct nvmep_host_pages *host)
{
	unsigned int i;

	if (!host)
		return;
	nvmep_leak_count(host->leak_counters, NVMEP_OBJECT_PAGES,
			 -(int)host->count);
	for (i = 0; i < host->count; i++) {
		put_page(host->pages[i]);
		cond_resched();
	}
	kvfree(host);
}

/**
 * nvmep_dma_bounces() - may DMA of the device pass through bounce buffers?
 * @dev: the device
 *
 * Mapping fails then for memory that is longer than a bounce buffer.
 *
 * Return: true if swiotlb is in use for the device.
 */
bool nvmep_dma_bounces(struct device *dev)
{
	return !nvmep_route_translated(dev) &&
	       dma_max_mapping_size(dev) != SIZE_MAX;
}

/**
 * nvmep_dma_needs_sync() - does DMA to the page need the CPU's help?
 * @dev: the device, for which its driver has just mapped the page
 * @dma: DMA address of the page for @dev
 * @page: the page
 *
 * It does if the DMA address leads to a bounce buffer, and if the device does
 * not snoop the caches of the CPU.  Behind an IOMMU dma_need_sync() is not
 * sufficient: older kernels return true for every mapping.
 *
 * Return: true if it does.
 */
bool nvmep_dma_needs_sync(struct device *dev, dma_addr_t dma, struct page *page)
{
	if (!dev_is_dma_coherent(dev))
		return true;
	if (nvmep_route_translated(dev))
		return iommu_iova_to_phys(iommu_get_domain_for_dev(dev), dma) !=
		       page_to_phys(page);
	return dma_need_sync(dev, dma);
}

/* --- dma-bufs of host pages ---------------------------------------------- */

/*
 * The memory needs no revocation: once the controller has deleted the queues, a
 * write to a ring has no effect.  Static importers are therefore accepted.
 * mmap() inserts real pages so that pin_user_pages() works.
 */

/**
 * struct nvmep_host_export - a dma-buf of host pages
 * @export: common part
 * @pages: const; part of the queue pair or host buffer, which @export holds
 */
struct nvmep_host_export {
	struct nvmep_export export;
	struct nvmep_host_pages *pages;
};

static struct nvmep_host_pages *nvmep_export_pages(struct nvmep_export *export)
{
	return container_of(export, struct nvmep_host_export, export)->pages;
}

/*
 * Both sides poll the memory without DMA sync: a bounce buffer cannot work.  It
 * is mapped without sync as well, as the unmapping of an importer that is
 * refused would copy old contents over memory in use.  Each attachment has a
 * mapping of its own.
 */
#define NVMEP_HOST_ATTRIBUTES	(DMA_ATTR_SKIP_CPU_SYNC | NVMEP_DMA_SHARED)

static bool nvmep_host_needs_sync(struct device *dev, struct sg_table *sgt,
				  struct page *first)
{
	struct scatterlist *sg;
	int i;

	if (nvmep_dma_needs_sync(dev, sg_dma_address(sgt->sgl), first))
		return true;
	/* Behind an IOMMU whole pages never bounce. */
	if (nvmep_route_translated(dev))
		return false;
	for_each_sgtable_dma_sg(sgt, sg, i)
		if (dma_need_sync(dev, sg_dma_address(sg)))
			return true;
	return false;
}

static struct sg_table *nvmep_host_map(struct nvmep_export *export,
				       struct dma_buf_attachment *attach,
				       enum dma_data_direction dir)
{
	const struct nvmep_host_pages *host = nvmep_export_pages(export);
	size_t length = (size_t)host->count << PAGE_SHIFT;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL_ACCOUNT);
	int err;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(sgt, (struct page **)host->pages,
					host->count, 0, length,
					GFP_KERNEL_ACCOUNT);
	if (err)
		goto free_sgt;
	err = dma_map_sgtable(attach->dev, sgt, dir, NVMEP_HOST_ATTRIBUTES);
	if (err)
		goto free_table;
	if (nvmep_host_needs_sync(attach->dev, sgt, host->pages[0])) {
		err = -EOPNOTSUPP;
		goto unmap;
	}
	return sgt;

unmap:
	dma_unmap_sgtable(attach->dev, sgt, dir, NVMEP_HOST_ATTRIBUTES);
free_table:
	sg_free_table(sgt);
free_sgt:
	kfree(sgt);
	return ERR_PTR(err);
}

static void nvmep_host_unmap(struct nvmep_export *export,
			     struct dma_buf_attachment *attach,
			     struct sg_table *sgt, enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, NVMEP_HOST_ATTRIBUTES);
	sg_free_table(sgt);
	kfree(sgt);
}

static void nvmep_host_vm_open(struct vm_area_struct *vma)
{
	nvmep_export_count_mmap(vma->vm_private_data, 1);
}

static void nvmep_host_vm_close(struct vm_area_struct *vma)
{
	nvmep_export_count_mmap(vma->vm_private_data, -1);
}

static const struct vm_operations_struct nvmep_host_vm_ops = {
	.open = nvmep_host_vm_open,
	.close = nvmep_host_vm_close,
};

static int nvmep_host_mmap(struct nvmep_export *export,
			   struct vm_area_struct *vma)
{
	struct nvmep_host_pages *host = nvmep_export_pages(export);
	unsigned long count = vma_pages(vma);
	int err;

	nvmep_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	err = vm_insert_pages(vma, vma->vm_start, host->pages + vma->vm_pgoff,
			      &count);
	if (err)
		return err;
	vma->vm_private_data = export;
	vma->vm_ops = &nvmep_host_vm_ops;
	nvmep_export_count_mmap(export, 1);
	return 0;
}

static const struct nvmep_export_ops nvmep_ring_export_ops = {
	.map = nvmep_host_map,
	.unmap = nvmep_host_unmap,
	.mmap = nvmep_host_mmap,
};

static const struct nvmep_export_ops nvmep_host_buffer_export_ops = {
	.host_buffer = true,
	.map = nvmep_host_map,
	.unmap = nvmep_host_unmap,
	.mmap = nvmep_host_mmap,
};

/*
 * Read-only: all peers of a queue pair share the page that the kernel writes.
 */
static const struct nvmep_export_ops nvmep_status_export_ops = {
	.stays_open = true,
	.read_only = true,
	.map = nvmep_host_map,
	.unmap = nvmep_host_unmap,
	.mmap = nvmep_host_mmap,
};

static struct dma_buf *nvmep_host_export(struct nvmep_exports *exports,
					 struct nvmep_host_pages *pages,
					 const struct nvmep_export_ops *ops)
{
	struct nvmep_host_export *host = kzalloc(sizeof(*host), GFP_KERNEL);

	if (!host)
		return ERR_PTR(-ENOMEM);
	host->pages = pages;
	return nvmep_export_publish(&host->export, exports, ops,
				    (size_t)pages->count << PAGE_SHIFT);
}

/**
 * nvmep_export_host_buffer() - export host memory of NVME_PEER_BUF_ALLOC
 * @exports: the dma-bufs of the host buffer, which the caller holds
 * @pages: the pages
 *
 * Return: see nvmep_export_publish().
 */
struct dma_buf *nvmep_export_host_buffer(struct nvmep_exports *exports,
					 struct nvmep_host_pages *pages)
{
	return nvmep_host_export(exports, pages, &nvmep_host_buffer_export_ops);
}

/**
 * nvmep_export_ring() - export a ring in host memory, or the control page
 * @exports: the dma-bufs of its queue pair, which the caller holds
 * @pages: the pages
 *
 * Return: see nvmep_export_publish().
 */
struct dma_buf *nvmep_export_ring(struct nvmep_exports *exports,
				  struct nvmep_host_pages *pages)
{
	return nvmep_host_export(exports, pages, &nvmep_ring_export_ops);
}

/**
 * nvmep_export_status() - export the status page
 * @exports: the dma-bufs of its queue pair, which the caller holds
 * @pages: the page
 *
 * Return: see nvmep_export_publish().
 */
struct dma_buf *nvmep_export_status(struct nvmep_exports *exports,
				    struct nvmep_host_pages *pages)
{
	return nvmep_host_export(exports, pages, &nvmep_status_export_ops);
}
