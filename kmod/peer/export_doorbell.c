// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of doorbells, which are registers of the controller.  They are
 * revoked:
 *
 *  1. exports->closed: no new dma-buf, attachment, mapping or mmap
 *  2. (qp.c) Delete SQ, Delete CQ: from here on a write has no effect
 *  3. mmaps in progress are waited for, then all PTEs are zapped; a later
 *     access is SIGBUS, unless exports->closed was taken back meanwhile
 *  4. importers are told
 *  5. their mappings and fences are waited for, all against one deadline
 *
 * An importer must admit being told; one that cannot (it attached statically)
 * is let in only with NVME_PEER_EXPORT_ALLOW_STATIC and keeps its mapping until
 * it detaches, which is harmless as long as the BAR is decoded and the queue
 * identifier is nobody else's: see core/qids.c, which is told of every dma-buf and
 * of every process that maps one.
 *
 * PTEs of doorbells are all installed by mmap(): NVIDIA's driver looks them up
 * without faulting.  The price is a race that drivers which insert on fault do
 * not have: a VMA that is being set up has PTEs before the address space of the
 * file knows it, so unmap_mapping_range() would miss it.  See
 * nvmep_doorbell_settle_mmaps().
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "doorbell.h"
#include "export.h"
#include "export_doorbell.h"
#include "peers.h"
#include "route.h"
#include "take.h"

/**
 * struct nvmep_doorbell_export - a dma-buf of doorbells
 * @export: what all dma-bufs have
 * @doorbell: const: the pages; belongs to the queue pair, which @export holds
 * @allow_static: const: admit importers that cannot be told to let go
 * @mmaps: exports->lock: struct nvmep_mmap
 * @maps: mappings of importers that can be told to let go
 * @static_maps: mappings of others
 */
struct nvmep_doorbell_export {
	struct nvmep_export export;
	const struct nvmep_doorbell *doorbell;
	bool allow_static;
	struct list_head mmaps;
	atomic_t maps;
	atomic_t static_maps;
};

/**
 * struct nvmep_importer - a device attached to doorbells
 * @verdict: const: how it reaches them
 * @provider: const: maps them for it; NULL where we do that ourselves
 * @told: const: it can be told to let go
 */
struct nvmep_importer {
	enum nvme_peer_route_verdict verdict;
	struct p2pdma_provider *provider;
	bool told;
};

/**
 * struct nvmep_mmap - one mmap() of a doorbell
 * @doorbells: const; held by the VMAs' file
 * @mm: const, its structure is held
 * @vmas: exports->lock: VMAs that it was split into
 * @settled: exports->lock: revocation has waited for it
 * @node: exports->lock: in @doorbells->mmaps
 */
struct nvmep_mmap {
	struct nvmep_doorbell_export *doorbells;
	struct mm_struct *mm;
	unsigned int vmas;
	bool settled;
	struct list_head node;
};

static struct nvmep_doorbell_export *
nvmep_to_doorbells(struct nvmep_export *export)
{
	return container_of(export, struct nvmep_doorbell_export, export);
}

static struct nvmep_ctrl *
nvmep_doorbells_ctrl(const struct nvmep_doorbell_export *doorbells)
{
	return doorbells->export.exports->ctrl;
}

static phys_addr_t
nvmep_doorbells_phys(const struct nvmep_doorbell_export *doorbells)
{
	return pci_resource_start(nvmep_doorbells_ctrl(doorbells)->pdev, 0) +
	       doorbells->doorbell->start;
}

/* --- attaching ----------------------------------------------------------- */

static int nvmep_doorbell_admit(struct nvmep_doorbell_export *doorbells,
				struct dma_buf_attachment *attach,
				struct nvmep_importer *importer)
{
	struct nvmep_ctrl *ctrl = nvmep_doorbells_ctrl(doorbells);
	struct nvme_peer_path path;

	if (!dev_is_pci(attach->dev))
		return -EOPNOTSUPP;
	if (!doorbells->allow_static &&
	    (!attach->peer2peer || !nvmep_dma_buf_attach_revocable(attach)))
		return -EOPNOTSUPP;

	nvmep_route_find(to_pci_dev(attach->dev), ctrl->pdev, &path);
	if (path.verdict == NVME_PEER_ROUTE_NONE) {
		dev_info_ratelimited(ctrl->dev,
				     "%s cannot reach the doorbells: %s\n",
				     dev_name(attach->dev),
				     nvmep_route_reason_text(path.reason));
		return -EXDEV;
	}
	importer->verdict = path.verdict;
	/*
	 * The kernel maps only what it vouches for itself: it knows nothing of
	 * allow_host_bridge.
	 */
	if (nvmep_route_kernel_distance(ctrl->pdev, attach->dev) >= 0)
		importer->provider = ctrl->peers->provider;
	importer->told = nvmep_dma_buf_attach_revocable(attach);
	return 0;
}

static int nvmep_doorbell_attach(struct nvmep_export *export,
				 struct dma_buf_attachment *attach)
{
	struct nvmep_importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);
	int err;

	if (!importer)
		return -ENOMEM;
	err = nvmep_doorbell_admit(nvmep_to_doorbells(export), attach,
				   importer);
	if (err) {
		kfree(importer);
		return err;
	}
	attach->priv = importer;
	return 0;
}

static void nvmep_doorbell_detach(struct dma_buf_attachment *attach)
{
	kfree(attach->priv);
}

/* --- mapping for an importer --------------------------------------------- */

static int nvmep_doorbell_dma(const struct nvmep_doorbell_export *doorbells,
			      struct dma_buf_attachment *attach,
			      enum dma_data_direction dir, dma_addr_t *dma)
{
	const struct nvmep_importer *importer = attach->priv;
	const struct nvmep_doorbell *doorbell = doorbells->doorbell;

	if (importer->verdict == NVME_PEER_ROUTE_BUS_ADDR) {
		*dma = pci_bus_address(nvmep_doorbells_ctrl(doorbells)->pdev, 0) +
		       doorbell->start;
		return *dma + doorbell->length - 1 > dma_get_mask(attach->dev) ?
		       -EOVERFLOW : 0;
	}

	*dma = dma_map_resource(attach->dev, nvmep_doorbells_phys(doorbells),
				doorbell->length, dir, DMA_ATTR_SKIP_CPU_SYNC);
	return dma_mapping_error(attach->dev, *dma) ? -ENOMEM : 0;
}

/*
 * A table without pages: there are none behind a register.  With no original
 * entries, whoever looks for pages finds an empty table.
 */
static struct sg_table *
nvmep_doorbell_map_self(const struct nvmep_doorbell_export *doorbells,
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
	err = nvmep_doorbell_dma(doorbells, attach, dir, &dma);
	if (err)
		goto free_table;
	sg_set_page(sgt->sgl, NULL, 0, 0);
	sg_dma_address(sgt->sgl) = dma;
	sg_dma_len(sgt->sgl) = doorbells->doorbell->length;
	sgt->orig_nents = 0;
	return sgt;

free_table:
	sg_free_table(sgt);
free_sgt:
	kfree(sgt);
	return ERR_PTR(err);
}

static struct sg_table *
nvmep_doorbell_map_any(const struct nvmep_doorbell_export *doorbells,
		       struct dma_buf_attachment *attach,
		       enum dma_data_direction dir)
{
	const struct nvmep_importer *importer = attach->priv;

	if (!importer->provider)
		return nvmep_doorbell_map_self(doorbells, attach, dir);
	return nvmep_p2p_map(attach, importer->provider,
			     nvmep_doorbells_phys(doorbells),
			     doorbells->doorbell->length, dir);
}

static void nvmep_doorbell_unmap_any(struct dma_buf_attachment *attach,
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

/* The count of mappings that this importer's belong to. */
static atomic_t *nvmep_doorbell_maps(struct nvmep_doorbell_export *doorbells,
				     struct dma_buf_attachment *attach)
{
	const struct nvmep_importer *importer = attach->priv;

	return importer->told ? &doorbells->maps : &doorbells->static_maps;
}

static struct sg_table *nvmep_doorbell_map(struct nvmep_export *export,
					   struct dma_buf_attachment *attach,
					   enum dma_data_direction dir)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	struct sg_table *sgt = nvmep_doorbell_map_any(doorbells, attach, dir);

	if (!IS_ERR(sgt))
		atomic_inc(nvmep_doorbell_maps(doorbells, attach));
	return sgt;
}

static void nvmep_doorbell_unmap(struct nvmep_export *export,
				 struct dma_buf_attachment *attach,
				 struct sg_table *sgt,
				 enum dma_data_direction dir)
{
	atomic_t *maps = nvmep_doorbell_maps(nvmep_to_doorbells(export), attach);

	nvmep_doorbell_unmap_any(attach, sgt, dir);
	if (atomic_dec_and_test(maps))
		wake_up_var(maps);
}

/* --- mapping for a process ----------------------------------------------- */

static void nvmep_doorbell_vm_open(struct vm_area_struct *vma)
{
	struct nvmep_mmap *map = vma->vm_private_data;
	struct nvmep_exports *exports = map->doorbells->export.exports;

	mutex_lock(&exports->lock);
	map->vmas++;
	mutex_unlock(&exports->lock);
	nvmep_export_count_mmap(&map->doorbells->export, 1);
}

/* Drops one VMA; the last one takes the mapping's record with it. */
static void nvmep_mmap_put(struct nvmep_mmap *map)
{
	struct nvmep_exports *exports = map->doorbells->export.exports;
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

	nvmep_export_count_mmap(&map->doorbells->export, -1);
	nvmep_mmap_put(map);
}

/* The only way into a page table; nvmep_doorbell_mmap() has set the protection. */
static vm_fault_t
nvmep_doorbell_insert_page(const struct nvmep_doorbell_export *doorbells,
			   struct vm_area_struct *vma, unsigned long address,
			   pgoff_t page)
{
	return vmf_insert_pfn(vma, address,
			      (nvmep_doorbells_phys(doorbells) >> PAGE_SHIFT) +
			      page);
}

/*
 * Every PTE is there from the start, so a fault means that it was zapped: for
 * good, or until the queue pair came back.  Under the lock: who closes after us
 * zaps after us, too.
 */
static vm_fault_t nvmep_doorbell_vm_fault(struct vm_fault *vmf)
{
	struct nvmep_mmap *map = vmf->vma->vm_private_data;
	struct nvmep_exports *exports = map->doorbells->export.exports;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&exports->lock);
	if (!exports->closed)
		ret = nvmep_doorbell_insert_page(map->doorbells, vmf->vma,
						 vmf->address & PAGE_MASK,
						 vmf->pgoff);
	mutex_unlock(&exports->lock);
	return ret;
}

static const struct vm_operations_struct nvmep_doorbell_vm_ops = {
	.open = nvmep_doorbell_vm_open,
	.close = nvmep_doorbell_vm_close,
	.fault = nvmep_doorbell_vm_fault,
};

/* Records an mmap() before its first PTE, or refuses it. */
static struct nvmep_mmap *
nvmep_mmap_begin(struct nvmep_doorbell_export *doorbells, struct mm_struct *mm)
{
	struct nvmep_exports *exports = doorbells->export.exports;
	struct nvmep_mmap *map = kzalloc(sizeof(*map), GFP_KERNEL);

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->doorbells = doorbells;
	map->mm = mm;
	map->vmas = 1;

	mutex_lock(&exports->lock);
	if (exports->closed) {
		mutex_unlock(&exports->lock);
		kfree(map);
		return ERR_PTR(-ENODEV);
	}
	mmgrab(mm);
	list_add_tail(&map->node, &doorbells->mmaps);
	mutex_unlock(&exports->lock);
	return map;
}

/*
 * Installs every PTE at once.  Not by io_remap_pfn_range(): for a whole VMA that
 * has x86 keep a record of the range's memory type until 6.12, and a process
 * that exits while its mapping is being zapped races for it and warns.
 */
static int nvmep_doorbell_insert(const struct nvmep_doorbell_export *doorbells,
				 struct vm_area_struct *vma)
{
	unsigned long address = vma->vm_start;
	pgoff_t page = vma->vm_pgoff;

	for (; address < vma->vm_end; address += PAGE_SIZE, page++)
		if (nvmep_doorbell_insert_page(doorbells, vma, address, page) !=
		    VM_FAULT_NOPAGE)
			return -ENOMEM;
	return 0;
}

/*
 * VM_DONTCOPY: a child shall not inherit power over the controller by a fork()
 * that its parent made for something else.
 */
static int nvmep_doorbell_mmap(struct nvmep_export *export,
			       struct vm_area_struct *vma)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	struct nvmep_mmap *map;
	int err;

	err = nvmep_qid_add_writer(nvmep_doorbells_ctrl(doorbells),
				   doorbells->doorbell->qid);
	if (err)
		return err;
	map = nvmep_mmap_begin(doorbells, vma->vm_mm);
	if (IS_ERR(map))
		return PTR_ERR(map);

	nvmep_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND |
				VM_DONTDUMP | VM_DONTCOPY);
	/* Registers are not encrypted memory. */
	vma->vm_page_prot =
		pgprot_decrypted(pgprot_noncached(vma->vm_page_prot));
	err = nvmep_doorbell_insert(doorbells, vma);
	if (err) {
		nvmep_mmap_put(map);
		return err;
	}
	vma->vm_private_data = map;
	vma->vm_ops = &nvmep_doorbell_vm_ops;
	nvmep_export_count_mmap(export, 1);
	return 0;
}

/* --- revoking ------------------------------------------------------------ */

/* An address space with an mmap() that was not waited for yet. */
static void *nvmep_mmap_take(struct list_head *node, const void *unused)
{
	struct nvmep_mmap *map = list_entry(node, struct nvmep_mmap, node);

	if (map->settled)
		return NULL;
	map->settled = true;
	/* An address space without users takes its PTEs with it. */
	return mmget_not_zero(map->mm) ? map->mm : NULL;
}

/*
 * An mmap() that came before exports->closed was set may still be under way:
 * its PTEs are there, its VMA is not yet where unmap_mapping_range() looks.
 * mmap() holds the mmap lock until the VMA is linked, so taking that lock once
 * waits for it.
 */
static void nvmep_doorbell_settle_mmaps(struct nvmep_doorbell_export *doorbells)
{
	struct mutex *lock = &doorbells->export.exports->lock;
	struct mm_struct *mm;

	while ((mm = nvmep_take_first(lock, &doorbells->mmaps, nvmep_mmap_take,
				      NULL))) {
		mmap_read_lock(mm);
		mmap_read_unlock(mm);
		mmput(mm);
	}
}

/*
 * exports->closed is set, and whoever maps after us has seen that: a mapping is
 * made under the reservation lock, which is taken here.
 */
static void nvmep_doorbell_withdraw(struct nvmep_export *export)
{
	struct dma_buf *dmabuf = export->dmabuf;

	unmap_mapping_range(dmabuf->file->f_mapping, 0, 0, 1);
	dma_resv_lock(dmabuf->resv, NULL);
	nvmep_dma_buf_invalidate(dmabuf);
	dma_resv_unlock(dmabuf->resv);
}

static void nvmep_doorbell_revoke(struct nvmep_export *export)
{
	nvmep_doorbell_settle_mmaps(nvmep_to_doorbells(export));
	nvmep_doorbell_withdraw(export);
}

/* Jiffies from now to @deadline, 0 once it is over. */
static long nvmep_time_left(unsigned long deadline)
{
	return max_t(long, deadline - jiffies, 0);
}

/*
 * Mappings first: they are what counts, and a fence that never signals must not
 * use up their time.  Without the reservation lock, which importers need to
 * unmap.
 */
static void nvmep_doorbell_settle(struct nvmep_export *export,
				  unsigned long deadline)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	bool clean;

	clean = wait_var_event_timeout(&doorbells->maps,
				       !atomic_read(&doorbells->maps),
				       nvmep_time_left(deadline)) > 0;
	clean &= dma_resv_wait_timeout(export->dmabuf->resv,
				       DMA_RESV_USAGE_BOOKKEEP, false,
				       nvmep_time_left(deadline)) > 0;
	clean &= !atomic_read(&doorbells->static_maps);
	if (!clean)
		dev_warn(export->exports->ctrl->dev,
			 "queue pair %u: an importer still maps its doorbells; the queues are deleted, the identifier stays taken until it lets go\n",
			 doorbells->doorbell->qid);
}

static void nvmep_doorbell_release(struct nvmep_export *export)
{
	const struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);

	nvmep_qid_unexport(nvmep_doorbells_ctrl(doorbells),
			   doorbells->doorbell->qid);
}

static const struct nvmep_export_ops nvmep_doorbell_export_ops = {
	.attach = nvmep_doorbell_attach,
	.detach = nvmep_doorbell_detach,
	.map = nvmep_doorbell_map,
	.unmap = nvmep_doorbell_unmap,
	.mmap = nvmep_doorbell_mmap,
	.withdraw = nvmep_doorbell_withdraw,
	.revoke = nvmep_doorbell_revoke,
	.settle = nvmep_doorbell_settle,
	.release = nvmep_doorbell_release,
};

/**
 * nvmep_export_doorbell() - make a dma-buf of doorbells
 * @exports: the dma-bufs of their queue pair, which the caller holds
 * @doorbell: where they are; exportable
 * @allow_static: admit importers that cannot be told to let go
 *
 * Return: as nvmep_export_publish().
 */
struct dma_buf *nvmep_export_doorbell(struct nvmep_exports *exports,
				      const struct nvmep_doorbell *doorbell,
				      bool allow_static)
{
	struct nvmep_doorbell_export *doorbells;

	doorbells = kzalloc(sizeof(*doorbells), GFP_KERNEL);
	if (!doorbells)
		return ERR_PTR(-ENOMEM);
	doorbells->doorbell = doorbell;
	doorbells->allow_static = allow_static;
	INIT_LIST_HEAD(&doorbells->mmaps);
	nvmep_qid_export(exports->ctrl, doorbell->qid);
	return nvmep_export_publish(&doorbells->export, exports,
				    &nvmep_doorbell_export_ops,
				    doorbell->length);
}
