// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of host pages: rings and the status page.
 *
 * They are ordinary memory that lives as long as somebody looks at it.  Nothing
 * has to be taken away from anybody: once the controller has deleted the
 * queues, writing to a ring has no effect.  Static importers are welcome,
 * mmap() inserts real pages so that pin_user_pages() works.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "compat.h"
#include "export.h"
#include "export_host.h"
#include "hostmem.h"

/**
 * struct nvmep_host_export - a dma-buf of host pages
 * @export: what all dma-bufs have
 * @pages: const; they belong to the queue pair, which @export holds
 */
struct nvmep_host_export {
	struct nvmep_export export;
	struct nvmep_host_pages *pages;
};

static struct nvmep_host_pages *nvmep_export_pages(struct nvmep_export *export)
{
	return container_of(export, struct nvmep_host_export, export)->pages;
}

static struct sg_table *nvmep_host_map(struct nvmep_export *export,
				       struct dma_buf_attachment *attach,
				       enum dma_data_direction dir)
{
	const struct nvmep_host_pages *host = nvmep_export_pages(export);
	size_t length = (size_t)host->count << PAGE_SHIFT;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int err;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(sgt, (struct page **)host->pages,
					host->count, 0, length, GFP_KERNEL);
	if (err)
		goto free_sgt;
	err = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (err)
		goto free_table;
	/* Both sides poll it and nobody syncs: a bounce buffer is no ring. */
	if (nvmep_dma_bounces(attach->dev, sg_dma_address(sgt->sgl),
			      host->pages[0])) {
		err = -EOPNOTSUPP;
		goto unmap;
	}
	return sgt;

unmap:
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
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
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
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

/* Only the kernel tells the state; other peers look at the same page. */
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
 * nvmep_export_ring() - make a dma-buf of a ring in host memory
 * @exports: the dma-bufs of its queue pair, which the caller holds
 * @pages: the ring
 *
 * Return: as nvmep_export_publish().
 */
struct dma_buf *nvmep_export_ring(struct nvmep_exports *exports,
				  struct nvmep_host_pages *pages)
{
	return nvmep_host_export(exports, pages, &nvmep_ring_export_ops);
}

/**
 * nvmep_export_status() - make a dma-buf of the status page
 * @exports: the dma-bufs of its queue pair, which the caller holds
 * @pages: the page
 *
 * Return: as nvmep_export_publish().
 */
struct dma_buf *nvmep_export_status(struct nvmep_exports *exports,
				    struct nvmep_host_pages *pages)
{
	return nvmep_host_export(exports, pages, &nvmep_status_export_ops);
}
