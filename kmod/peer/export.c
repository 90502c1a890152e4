// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exporting a queue pair: its rings, doorbells and status page as dma-bufs.
 *
 * Two kinds of memory, two kinds of rules.
 *
 * Host pages (rings, status page) are ordinary memory that lives as long as
 * somebody looks at it.  Nothing has to be taken away from anybody: once the
 * controller has deleted the queues, writing to a ring has no effect.  Static
 * importers are welcome, mmap() inserts real pages so that pin_user_pages()
 * works.  After the end of the queue pair old users stay and new ones are
 * refused, except on the status page, which is there to tell about the end.
 *
 * Doorbells are registers of the controller.  They are revoked:
 *
 *  1. exports->closed: no new dma-buf, attachment, mapping or mmap
 *  2. (qp.c) Delete SQ, Delete CQ: from here on a write has no effect
 *  3. mmaps in progress are waited for, then all PTEs are zapped; a later
 *     access is SIGBUS
 *  4. importers are told, their fences and mappings waited for, bounded
 *
 * An importer must admit being told; one that cannot (it attached statically)
 * is let in only with NVME_PEER_EXPORT_ALLOW_STATIC and keeps its mapping until
 * it detaches, which is harmless as long as the BAR is decoded.
 *
 * PTEs of doorbells are all installed by mmap(): NVIDIA's driver looks them up
 * without faulting.  The price is a race that drivers which insert on fault do
 * not have: a VMA that is being set up has PTEs before the address space of the
 * file knows it, so unmap_mapping_range() would miss it.  See
 * nvmep_export_settle_mmaps().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "core/ctrl.h"
#include "export.h"
#include "peer.h"
#include "qp.h"
#include "core/pair.h"
#include "core/qids.h"
#include "core/queue.h"
#include "route.h"

/* How long importers may take to finish with, and to unmap, a doorbell. */
#define NVMEP_REVOKE_TIMEOUT	(5 * HZ)

/**
 * struct nvmep_export - one dma-buf
 * @qp: const, reference
 * @dmabuf: const; it owns this
 * @what: const
 * @host: const: its pages, owned by @qp; NULL for doorbells
 * @allow_static: const
 * @node: exports->lock: in exports->list
 * @mmaps: exports->lock: struct nvmep_mmap of doorbells
 * @revoking: exports->lock: somebody revokes it or has done so
 * @withdrawn: exports->lock: nvmep_exports_withdraw() has seen it
 * @revoked: reservation lock
 * @maps: mappings of importers that can be told to let go
 * @static_maps: mappings of others
 */
struct nvmep_export {
	struct nvmep_qp *qp;
	struct dma_buf *dmabuf;
	enum nvme_peer_export what;
	struct nvmep_host_pages *host;
	bool allow_static;
	struct list_head node;
	struct list_head mmaps;
	bool revoking;
	bool withdrawn;
	bool revoked;
	atomic_t maps;
	atomic_t static_maps;
};

/**
 * struct nvmep_mmap - one mmap() of a doorbell
 * @export: const; held by the VMAs' file
 * @mm: const, its structure is held
 * @vmas: exports->lock: VMAs that it was split into
 * @settled: exports->lock: revocation has waited for it
 * @node: exports->lock: in export->mmaps
 */
struct nvmep_mmap {
	struct nvmep_export *export;
	struct mm_struct *mm;
	unsigned int vmas;
	bool settled;
	struct list_head node;
};

/* --- where the doorbells are --------------------------------------------- */

static bool nvmep_ranges_meet(u64 start_a, u64 length_a, u64 start_b,
			      u64 length_b)
{
	return start_a < start_b + length_b && start_b < start_a + length_a;
}

/*
 * Some controllers keep the MSI-X structures in BAR0.  Whoever writes those
 * raises any interrupt anywhere.
 */
static bool nvmep_holds_msix(struct pci_dev *pdev, u64 start, u64 length)
{
	u32 table;
	u32 pba;
	u16 flags;
	u32 vectors;

	if (!pdev->msix_cap)
		return false;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &flags);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_PBA, &pba);
	vectors = (flags & PCI_MSIX_FLAGS_QSIZE) + 1;

	if ((table & PCI_MSIX_TABLE_BIR) == 0 &&
	    nvmep_ranges_meet(start, length, table & PCI_MSIX_TABLE_OFFSET,
			      (u64)vectors * PCI_MSIX_ENTRY_SIZE))
		return true;
	return (pba & PCI_MSIX_PBA_BIR) == 0 &&
	       nvmep_ranges_meet(start, length, pba & PCI_MSIX_PBA_OFFSET,
				 ALIGN(vectors, 64) / 8);
}

/**
 * nvmep_doorbell_init() - find the pages of a queue pair's doorbells
 * @qp: its identifier is known
 *
 * Whole pages only.  The first page of BAR0 holds the controller registers and
 * is never given away; on a kernel with large pages that leaves no doorbells.
 */
void nvmep_doorbell_init(struct nvmep_qp *qp)
{
	struct nvmep_doorbell *doorbell = &qp->doorbell;
	struct pci_dev *pdev = qp->ctrl->pdev;
	resource_size_t tail = nvmep_doorbell_offset(qp->ctrl, qp->qid, false);
	resource_size_t head = nvmep_doorbell_offset(qp->ctrl, qp->qid, true);

	doorbell->start = ALIGN_DOWN(tail, PAGE_SIZE);
	doorbell->length = ALIGN(head + sizeof(u32), PAGE_SIZE) - doorbell->start;
	doorbell->offset = tail - doorbell->start;
	doorbell->exportable =
		doorbell->start >= PAGE_SIZE &&
		PAGE_ALIGNED(pci_resource_start(pdev, 0)) &&
		doorbell->start + doorbell->length <= pci_resource_len(pdev, 0) &&
		!nvmep_holds_msix(pdev, doorbell->start, doorbell->length);
}

static phys_addr_t nvmep_export_phys(const struct nvmep_export *export)
{
	return pci_resource_start(export->qp->ctrl->pdev, 0) +
	       export->qp->doorbell.start;
}

static struct nvmep_host_pages *nvmep_export_pages(const struct nvmep_qp *qp,
						   enum nvme_peer_export what)
{
	switch (what) {
	case NVME_PEER_EXPORT_SQ:
		return qp->sq.host;
	case NVME_PEER_EXPORT_CQ:
		return qp->cq.host;
	case NVME_PEER_EXPORT_STATUS:
		return qp->status_page;
	default:
		return NULL;
	}
}

/**
 * nvmep_export_geometry() - where in the dma-buf the object lies
 * @qp: the queue pair
 * @what: which of its dma-bufs
 * @offset: out: of the object
 * @length: out: bytes of it
 */
void nvmep_export_geometry(const struct nvmep_qp *qp, enum nvme_peer_export what,
			   __u64 *offset, __u64 *length)
{
	*offset = 0;
	switch (what) {
	case NVME_PEER_EXPORT_SQ:
		*length = qp->sq.bytes;
		break;
	case NVME_PEER_EXPORT_CQ:
		*length = qp->cq.bytes;
		break;
	case NVME_PEER_EXPORT_DOORBELL:
		*offset = qp->doorbell.offset;
		*length = qp->ctrl->doorbell_stride + sizeof(u32);
		break;
	case NVME_PEER_EXPORT_STATUS:
		*length = PAGE_SIZE;
		break;
	}
}

/* --- attaching ----------------------------------------------------------- */

/* May somebody start to use this dma-buf? */
static bool nvmep_export_open(const struct nvmep_export *export)
{
	return export->what == NVME_PEER_EXPORT_STATUS ||
	       !READ_ONCE(export->qp->exports.closed);
}

/**
 * struct nvmep_importer - a device attached to an export
 * @verdict: const: how it reaches the doorbells
 * @provider: const: maps them for it; NULL where we do that ourselves
 * @told: const: it can be told to let go
 */
struct nvmep_importer {
	enum nvme_peer_route_verdict verdict;
	struct p2pdma_provider *provider;
	bool told;
};

static int nvmep_admit_to_doorbell(struct nvmep_export *export,
				   struct dma_buf_attachment *attach,
				   struct nvmep_importer *importer)
{
	struct nvmep_ctrl *ctrl = export->qp->ctrl;
	struct nvmep_route route;

	if (!dev_is_pci(attach->dev))
		return -EOPNOTSUPP;
	if (!export->allow_static &&
	    (!attach->peer2peer || !nvmep_dma_buf_attach_revocable(attach)))
		return -EOPNOTSUPP;

	nvmep_route_find(to_pci_dev(attach->dev), ctrl->pdev, &route);
	if (route.verdict == NVME_PEER_ROUTE_NONE) {
		dev_info_ratelimited(ctrl->dev,
				     "%s cannot reach the doorbells: %s\n",
				     dev_name(attach->dev),
				     nvmep_route_reason_text(route.reason));
		return -EXDEV;
	}
	importer->verdict = route.verdict;
	/* The kernel does not know about allow_host_bridge. */
	if (route.reason != NVME_PEER_REASON_HOST_BRIDGE_ALLOWED)
		importer->provider = ctrl->peers->provider;
	importer->told = nvmep_dma_buf_attach_revocable(attach);
	return 0;
}

static int nvmep_export_attach(struct dma_buf *dmabuf,
			       struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = dmabuf->priv;
	struct nvmep_importer *importer;
	int err;

	if (!nvmep_export_open(export))
		return -ENODEV;

	importer = kzalloc(sizeof(*importer), GFP_KERNEL);
	if (!importer)
		return -ENOMEM;
	if (!export->host) {
		err = nvmep_admit_to_doorbell(export, attach, importer);
		if (err) {
			kfree(importer);
			return err;
		}
	}

	attach->priv = importer;
	atomic_inc(&export->qp->exports.importers);
	nvmep_count(export->qp->ctrl->peers, NVMEP_OBJECT_IMPORTERS, 1);
	return 0;
}

static void nvmep_export_detach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = dmabuf->priv;

	kfree(attach->priv);
	atomic_dec(&export->qp->exports.importers);
	nvmep_count(export->qp->ctrl->peers, NVMEP_OBJECT_IMPORTERS, -1);
}

/* Nothing moves, so there is nothing to hold in place. */
static int nvmep_export_pin(struct dma_buf_attachment *attach)
{
	struct nvmep_export *export = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	return nvmep_export_open(export) ? 0 : -ENODEV;
}

static void nvmep_export_unpin(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
}

/* --- mapping for an importer --------------------------------------------- */

static struct sg_table *
nvmep_export_map_pages(const struct nvmep_host_pages *host,
		       struct dma_buf_attachment *attach,
		       enum dma_data_direction dir)
{
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

static void nvmep_export_unmap_pages(struct dma_buf_attachment *attach,
				     struct sg_table *sgt,
				     enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int nvmep_doorbell_dma(const struct nvmep_export *export,
			      struct dma_buf_attachment *attach,
			      enum dma_data_direction dir, dma_addr_t *dma)
{
	const struct nvmep_importer *importer = attach->priv;
	const struct nvmep_doorbell *doorbell = &export->qp->doorbell;

	if (importer->verdict == NVME_PEER_ROUTE_BUS_ADDR) {
		*dma = pci_bus_address(export->qp->ctrl->pdev, 0) +
		       doorbell->start;
		return *dma + doorbell->length - 1 > dma_get_mask(attach->dev) ?
		       -EOVERFLOW : 0;
	}

	*dma = dma_map_resource(attach->dev, nvmep_export_phys(export),
				doorbell->length, dir, DMA_ATTR_SKIP_CPU_SYNC);
	return dma_mapping_error(attach->dev, *dma) ? -ENOMEM : 0;
}

/*
 * A table without pages: there are none behind a register.  With no original
 * entries, whoever looks for pages finds an empty table.
 */
static struct sg_table *
nvmep_map_doorbell_self(const struct nvmep_export *export,
			struct dma_buf_attachment *attach,
			enum dma_data_direction dir)
{
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	dma_addr_t dma;
	int err;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (err)
		goto free_sgt;
	err = nvmep_doorbell_dma(export, attach, dir, &dma);
	if (err)
		goto free_table;
	sg_set_page(sgt->sgl, NULL, 0, 0);
	sg_dma_address(sgt->sgl) = dma;
	sg_dma_len(sgt->sgl) = export->qp->doorbell.length;
	sgt->orig_nents = 0;
	return sgt;

free_table:
	sg_free_table(sgt);
free_sgt:
	kfree(sgt);
	return ERR_PTR(err);
}

static struct sg_table *nvmep_map_doorbell(const struct nvmep_export *export,
					   struct dma_buf_attachment *attach,
					   enum dma_data_direction dir)
{
	const struct nvmep_importer *importer = attach->priv;

	if (!importer->provider)
		return nvmep_map_doorbell_self(export, attach, dir);
	return nvmep_p2p_map(attach, importer->provider,
			     nvmep_export_phys(export),
			     export->qp->doorbell.length, dir);
}

static void nvmep_unmap_doorbell(struct dma_buf_attachment *attach,
				 struct sg_table *sgt,
				 enum dma_data_direction dir)
{
	const struct nvmep_importer *importer = attach->priv;

	if (importer->provider) {
		nvmep_p2p_unmap(attach, sgt, dir);
		return;
	}
	if (importer->verdict != NVME_PEER_ROUTE_BUS_ADDR)
		dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl),
				   sg_dma_len(sgt->sgl), dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
	sgt->orig_nents = 1;
	sg_free_table(sgt);
	kfree(sgt);
}

static atomic_t *nvmep_export_maps(struct dma_buf_attachment *attach)
{
	const struct nvmep_importer *importer = attach->priv;
	struct nvmep_export *export = attach->dmabuf->priv;

	return importer->told ? &export->maps : &export->static_maps;
}

static struct sg_table *nvmep_export_map(struct dma_buf_attachment *attach,
					 enum dma_data_direction dir)
{
	struct nvmep_export *export = attach->dmabuf->priv;
	struct sg_table *sgt;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (export->revoked || !nvmep_export_open(export))
		return ERR_PTR(-ENODEV);
	if (export->host)
		sgt = nvmep_export_map_pages(export->host, attach, dir);
	else
		sgt = nvmep_map_doorbell(export, attach, dir);
	if (IS_ERR(sgt))
		return sgt;

	atomic_inc(nvmep_export_maps(attach));
	nvmep_count(export->qp->ctrl->peers, NVMEP_OBJECT_MAPS, 1);
	return sgt;
}

static void nvmep_export_unmap(struct dma_buf_attachment *attach,
			       struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	struct nvmep_export *export = attach->dmabuf->priv;
	atomic_t *maps = nvmep_export_maps(attach);

	if (export->host)
		nvmep_export_unmap_pages(attach, sgt, dir);
	else
		nvmep_unmap_doorbell(attach, sgt, dir);

	nvmep_count(export->qp->ctrl->peers, NVMEP_OBJECT_MAPS, -1);
	if (atomic_dec_and_test(maps))
		wake_up_var(maps);
}

/* --- mapping for a process ----------------------------------------------- */

static void nvmep_count_mmap(struct nvmep_export *export, int change)
{
	atomic_add(change, &export->qp->exports.mmaps);
	nvmep_count(export->qp->ctrl->peers, NVMEP_OBJECT_MMAPS, change);
}

static void nvmep_pages_vm_open(struct vm_area_struct *vma)
{
	nvmep_count_mmap(vma->vm_private_data, 1);
}

static void nvmep_pages_vm_close(struct vm_area_struct *vma)
{
	nvmep_count_mmap(vma->vm_private_data, -1);
}

static const struct vm_operations_struct nvmep_pages_vm_ops = {
	.open = nvmep_pages_vm_open,
	.close = nvmep_pages_vm_close,
};

static int nvmep_mmap_pages(struct nvmep_export *export,
			    struct vm_area_struct *vma)
{
	unsigned long count = vma_pages(vma);
	int err;

	/* Only the kernel tells the state; other peers look at the same page. */
	if (export->what == NVME_PEER_EXPORT_STATUS) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		nvmep_vm_flags_clear(vma, VM_MAYWRITE);
	}
	nvmep_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	err = vm_insert_pages(vma, vma->vm_start,
			      export->host->pages + vma->vm_pgoff, &count);
	if (err)
		return err;
	vma->vm_private_data = export;
	vma->vm_ops = &nvmep_pages_vm_ops;
	nvmep_count_mmap(export, 1);
	return 0;
}

static void nvmep_doorbell_vm_open(struct vm_area_struct *vma)
{
	struct nvmep_mmap *map = vma->vm_private_data;
	struct nvmep_exports *exports = &map->export->qp->exports;

	mutex_lock(&exports->lock);
	map->vmas++;
	mutex_unlock(&exports->lock);
	nvmep_count_mmap(map->export, 1);
}

/* Drops one VMA; the last one takes the mapping's record with it. */
static void nvmep_mmap_put(struct nvmep_mmap *map)
{
	struct nvmep_exports *exports = &map->export->qp->exports;
	bool last;

	mutex_lock(&exports->lock);
	last = --map->vmas == 0;
	if (last)
		list_del(&map->node);
	mutex_unlock(&exports->lock);
	if (!last)
		return;
	mmdrop(map->mm);
	kfree(map);
}

static void nvmep_doorbell_vm_close(struct vm_area_struct *vma)
{
	struct nvmep_mmap *map = vma->vm_private_data;

	nvmep_count_mmap(map->export, -1);
	nvmep_mmap_put(map);
}

/* Every PTE is there from the start, so a fault means that it was zapped. */
static vm_fault_t nvmep_doorbell_vm_fault(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct nvmep_doorbell_vm_ops = {
	.open = nvmep_doorbell_vm_open,
	.close = nvmep_doorbell_vm_close,
	.fault = nvmep_doorbell_vm_fault,
};

/* Records an mmap() before its first PTE, or refuses it. */
static struct nvmep_mmap *nvmep_mmap_begin(struct nvmep_export *export,
					   struct mm_struct *mm)
{
	struct nvmep_exports *exports = &export->qp->exports;
	struct nvmep_mmap *map = kzalloc(sizeof(*map), GFP_KERNEL);

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->export = export;
	map->mm = mm;
	map->vmas = 1;

	mutex_lock(&exports->lock);
	if (exports->closed) {
		mutex_unlock(&exports->lock);
		kfree(map);
		return ERR_PTR(-ENODEV);
	}
	mmgrab(mm);
	list_add_tail(&map->node, &export->mmaps);
	mutex_unlock(&exports->lock);
	return map;
}

/*
 * Installs every PTE at once.  Not by io_remap_pfn_range(): for a whole VMA that
 * has x86 keep a record of the range's memory type until 6.12, and a process
 * that exits while its mapping is being zapped races for it and warns.
 */
static int nvmep_insert_doorbell(const struct nvmep_export *export,
				 struct vm_area_struct *vma)
{
	unsigned long pfn = (nvmep_export_phys(export) >> PAGE_SHIFT) +
			    vma->vm_pgoff;
	unsigned long address;

	for (address = vma->vm_start; address < vma->vm_end;
	     address += PAGE_SIZE, pfn++)
		if (vmf_insert_pfn(vma, address, pfn) != VM_FAULT_NOPAGE)
			return -ENOMEM;
	return 0;
}

/*
 * VM_DONTCOPY: a child shall not inherit power over the controller by a fork()
 * that its parent made for something else.
 */
static int nvmep_mmap_doorbell(struct nvmep_export *export,
			       struct vm_area_struct *vma)
{
	struct nvmep_mmap *map;
	int err;

	map = nvmep_mmap_begin(export, vma->vm_mm);
	if (IS_ERR(map))
		return PTR_ERR(map);

	nvmep_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND |
				VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	err = nvmep_insert_doorbell(export, vma);
	if (err) {
		nvmep_mmap_put(map);
		return err;
	}
	vma->vm_private_data = map;
	vma->vm_ops = &nvmep_doorbell_vm_ops;
	nvmep_count_mmap(export, 1);
	return 0;
}

/* The dma-buf core has checked that the VMA lies inside the dma-buf. */
static int nvmep_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct nvmep_export *export = dmabuf->priv;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (!nvmep_export_open(export))
		return -ENODEV;
	if (export->host)
		return nvmep_mmap_pages(export, vma);
	return nvmep_mmap_doorbell(export, vma);
}

/* --- revoking ------------------------------------------------------------ */

/* An address space with an mmap() that was not waited for yet, or NULL. */
static struct mm_struct *nvmep_export_next_mm(struct nvmep_export *export)
{
	struct nvmep_exports *exports = &export->qp->exports;
	struct mm_struct *mm = NULL;
	struct nvmep_mmap *map;

	mutex_lock(&exports->lock);
	list_for_each_entry(map, &export->mmaps, node) {
		if (map->settled)
			continue;
		map->settled = true;
		/* An address space without users takes its PTEs with it. */
		if (!mmget_not_zero(map->mm))
			continue;
		mm = map->mm;
		break;
	}
	mutex_unlock(&exports->lock);
	return mm;
}

/*
 * An mmap() that came before exports->closed was set may still be under way:
 * its PTEs are there, its VMA is not yet where unmap_mapping_range() looks.
 * mmap() holds the mmap lock until the VMA is linked, so taking that lock once
 * waits for it.
 */
static void nvmep_export_settle_mmaps(struct nvmep_export *export)
{
	struct mm_struct *mm;

	while ((mm = nvmep_export_next_mm(export))) {
		mmap_read_lock(mm);
		mmap_read_unlock(mm);
		mmput(mm);
	}
}

/* Tells importers to let go; true if all did in time. */
static bool nvmep_export_invalidate(struct nvmep_export *export)
{
	struct dma_resv *resv = export->dmabuf->resv;
	long left;

	dma_resv_lock(resv, NULL);
	export->revoked = true;
	nvmep_dma_buf_invalidate(export->dmabuf);
	left = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false,
				     NVMEP_REVOKE_TIMEOUT);
	dma_resv_unlock(resv);

	if (left > 0)
		left = wait_var_event_timeout(&export->maps,
					      !atomic_read(&export->maps),
					      NVMEP_REVOKE_TIMEOUT);
	return left > 0 && !atomic_read(&export->static_maps);
}

static bool nvmep_export_revoke(struct nvmep_export *export)
{
	struct nvmep_qp *qp = export->qp;
	bool clean;

	nvmep_export_settle_mmaps(export);
	unmap_mapping_range(export->dmabuf->file->f_mapping, 0, 0, 1);
	clean = nvmep_export_invalidate(export);
	if (!clean)
		dev_warn(qp->ctrl->dev,
			 "queue pair %u: an importer still maps its doorbells; the queues are deleted, the identifier stays taken until it lets go\n",
			 qp->qid);
	return clean;
}

/*
 * The next export to revoke, with a reference to its dma-buf.  One that is
 * being released has no user left.
 */
static struct nvmep_export *nvmep_exports_next(struct nvmep_exports *exports)
{
	struct nvmep_export *export;
	struct nvmep_export *found = NULL;

	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node) {
		if (export->host || export->revoking)
			continue;
		export->revoking = true;
		if (!nvmep_get_file_active(&export->dmabuf->file))
			continue;
		found = export;
		break;
	}
	mutex_unlock(&exports->lock);
	return found;
}

/**
 * nvmep_exports_revoke() - take the doorbells away from everybody
 * @exports: closed; the controller has deleted the queues
 *
 * Return: true if nobody can write the doorbells any more.
 */
bool nvmep_exports_revoke(struct nvmep_exports *exports)
{
	struct nvmep_export *export;
	bool clean = true;

	while ((export = nvmep_exports_next(exports))) {
		clean &= nvmep_export_revoke(export);
		dma_buf_put(export->dmabuf);
	}
	return clean;
}

/**
 * nvmep_exports_close() - admit nobody new
 * @exports: the dma-bufs of a queue pair
 */
void nvmep_exports_close(struct nvmep_exports *exports)
{
	mutex_lock(&exports->lock);
	WRITE_ONCE(exports->closed, true);
	mutex_unlock(&exports->lock);
}

/**
 * nvmep_exports_init() - no dma-bufs yet
 * @exports: the dma-bufs of a queue pair
 */
void nvmep_exports_init(struct nvmep_exports *exports)
{
	mutex_init(&exports->lock);
	INIT_LIST_HEAD(&exports->list);
}

/* --- creation and end of a dma-buf --------------------------------------- */

static void nvmep_export_forget(struct nvmep_export *export)
{
	struct nvmep_qp *qp = export->qp;

	atomic_dec(&qp->exports.count);
	nvmep_count(qp->ctrl->peers, NVMEP_OBJECT_EXPORTS, -1);
	kfree(export);
	nvmep_qp_put(qp);
}

/* May run long after the controller was unbound. */
static void nvmep_export_release(struct dma_buf *dmabuf)
{
	struct nvmep_export *export = dmabuf->priv;
	struct nvmep_exports *exports = &export->qp->exports;

	mutex_lock(&exports->lock);
	list_del_init(&export->node);
	mutex_unlock(&exports->lock);
	nvmep_export_forget(export);
}

static const struct dma_buf_ops nvmep_export_ops = {
	.attach = nvmep_export_attach,
	.detach = nvmep_export_detach,
	.pin = nvmep_export_pin,
	.unpin = nvmep_export_unpin,
	.map_dma_buf = nvmep_export_map,
	.unmap_dma_buf = nvmep_export_unmap,
	.mmap = nvmep_export_mmap,
	.release = nvmep_export_release,
};

static struct nvmep_export *nvmep_export_alloc(struct nvmep_qp *qp,
					       enum nvme_peer_export what,
					       bool allow_static)
{
	struct nvmep_export *export = kzalloc(sizeof(*export), GFP_KERNEL);

	if (!export)
		return NULL;
	nvmep_qp_get(qp);
	export->qp = qp;
	export->what = what;
	export->host = nvmep_export_pages(qp, what);
	export->allow_static = allow_static;
	INIT_LIST_HEAD(&export->node);
	INIT_LIST_HEAD(&export->mmaps);
	atomic_inc(&qp->exports.count);
	nvmep_count(qp->ctrl->peers, NVMEP_OBJECT_EXPORTS, 1);
	return export;
}

static int nvmep_export_check(const struct nvmep_qp *qp,
			      enum nvme_peer_export what)
{
	switch (what) {
	case NVME_PEER_EXPORT_SQ:
	case NVME_PEER_EXPORT_CQ:
		return nvmep_export_pages(qp, what) ? 0 : -ENODATA;
	case NVME_PEER_EXPORT_DOORBELL:
		return qp->doorbell.exportable ? 0 : -ENXIO;
	case NVME_PEER_EXPORT_STATUS:
		return 0;
	}
	return -EINVAL;
}

/* Puts it on the list, unless the end came first. */
static int nvmep_export_publish(struct nvmep_export *export)
{
	struct nvmep_exports *exports = &export->qp->exports;
	int err = 0;

	mutex_lock(&exports->lock);
	if (exports->closed)
		err = -ESHUTDOWN;
	else
		list_add_tail(&export->node, &exports->list);
	mutex_unlock(&exports->lock);
	return err;
}

/**
 * nvmep_export() - make a dma-buf of a part of a queue pair
 * @qp: the queue pair
 * @what: which part
 * @allow_static: doorbells: admit importers that cannot be told to let go
 *
 * Return: the dma-buf with its only reference, or an ERR_PTR as struct
 * nvme_peer_qp_export says.
 */
struct dma_buf *nvmep_export(struct nvmep_qp *qp, enum nvme_peer_export what,
			     bool allow_static)
{
	DEFINE_DMA_BUF_EXPORT_INFO(exp_info);
	struct nvmep_export *export;
	struct dma_buf *dmabuf;
	int err;

	err = nvmep_export_check(qp, what);
	if (err)
		return ERR_PTR(err);
	if (!nvmep_qp_usable(qp))
		return ERR_PTR(-ESHUTDOWN);

	export = nvmep_export_alloc(qp, what, allow_static);
	if (!export)
		return ERR_PTR(-ENOMEM);

	exp_info.ops = &nvmep_export_ops;
	exp_info.size = export->host ? (size_t)export->host->count << PAGE_SHIFT :
				       qp->doorbell.length;
	exp_info.flags = O_RDWR;
	exp_info.priv = export;
	dmabuf = dma_buf_export(&exp_info);
	if (IS_ERR(dmabuf)) {
		nvmep_export_forget(export);
		return dmabuf;
	}
	export->dmabuf = dmabuf;

	err = nvmep_export_publish(export);
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	return dmabuf;
}

/**
 * nvmep_exports_withdraw() - zap and invalidate doorbells, and do not wait
 * @exports: the dma-bufs of a queue pair that is about to be lost
 *
 * Importers are told, not waited for; admits nobody new.  An mmap() that is
 * being set up right now is missed, see nvmep_export_settle_mmaps().
 */
void nvmep_exports_withdraw(struct nvmep_exports *exports)
{
	struct nvmep_export *export;

	nvmep_exports_close(exports);
again:
	mutex_lock(&exports->lock);
	list_for_each_entry(export, &exports->list, node) {
		if (export->host || export->withdrawn)
			continue;
		export->withdrawn = true;
		if (!nvmep_get_file_active(&export->dmabuf->file))
			continue;
		mutex_unlock(&exports->lock);

		unmap_mapping_range(export->dmabuf->file->f_mapping, 0, 0, 1);
		dma_resv_lock(export->dmabuf->resv, NULL);
		export->revoked = true;
		nvmep_dma_buf_invalidate(export->dmabuf);
		dma_resv_unlock(export->dmabuf->resv);
		dma_buf_put(export->dmabuf);
		goto again;
	}
	mutex_unlock(&exports->lock);
}
