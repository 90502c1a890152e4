// SPDX-License-Identifier: GPL-2.0-only
/*
 * Doorbells: which pages of BAR0 hold them, and their dma-bufs.
 *
 * Doorbells are registers of the controller and are revoked, in this order:
 *
 *  1. exports->ended or withdrawn: refuse new dma-bufs, attachments, mappings
 *     and mmap()
 *  2. (qp.c) Delete SQ, Delete CQ: from here on a write has no effect
 *  3. work: zap all PTEs, until no mmap() from before is in progress.  A later
 *     access is SIGBUS, or faults the PTE in again if exports->withdrawn was
 *     cleared by a re-arm
 *  4. another work, beside it: invalidate importers
 *  5. wait for both works and for the mappings and fences of importers, all
 *     with one deadline.  After it, a holder of a lock that a work needs
 *     counts as a static importer
 *
 * Where memory decoding may go off, 3 and 4 follow 1 (withdrawn) at once, with a
 * short wait for the works and none for importers: nvmep_qp_revoke_doorbells().
 *
 * An importer must support revocation.  A static importer is accepted only with
 * NVME_PEER_EXPORT_ALLOW_STATIC and keeps its mapping until it detaches.  On
 * kernels without dma_buf_attach_revocable() one that pins the memory itself,
 * or maps it more than once at a time, counts as static.  A static mapping is
 * harmless while the BAR is decoded and the queue ID is not reused.
 * core/qids.c quarantines the queue ID: it counts every doorbell dma-buf and
 * every process that maps one.
 *
 * mmap() installs all PTEs at once, because NVIDIA's driver walks the page
 * table without faulting.  This opens a race that drivers which insert PTEs on
 * fault do not have: a VMA that is being set up has PTEs before it is linked
 * into the address space of the file, so unmap_mapping_range() misses it.
 * nvmep_doorbell_settle_mmaps() closes it.
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
#include <linux/workqueue.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "core/queue.h"
#include "export.h"
#include "peer.h"
#include "route.h"

/* --- doorbell pages ------------------------------------------------------ */

static bool nvmep_doorbell_overlaps(const struct nvmep_doorbell *doorbell,
				    u64 start, u64 length)
{
	return doorbell->start < start + length &&
	       start < doorbell->start + doorbell->length;
}

/*
 * Some controllers have the MSI-X structures in BAR0.  A peer that can write
 * them can raise any interrupt on any CPU.  Returns 1 if they are in the pages,
 * 0 if not, -EAGAIN if config space does not respond, as during a reset of the
 * function: BAR 7 does not exist, and the bits above the size are reserved.
 */
static int nvmep_holds_msix(struct pci_dev *pdev,
			    const struct nvmep_doorbell *doorbell)
{
	u32 table;
	u32 pba;
	u16 flags;
	u32 vectors;

	if (!pdev->msix_cap)
		return 0;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &flags);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_PBA, &pba);
	if (PCI_POSSIBLE_ERROR(flags) || PCI_POSSIBLE_ERROR(table) ||
	    PCI_POSSIBLE_ERROR(pba))
		return -EAGAIN;
	vectors = (flags & PCI_MSIX_FLAGS_QSIZE) + 1;

	if ((table & PCI_MSIX_TABLE_BIR) == 0 &&
	    nvmep_doorbell_overlaps(doorbell, table & PCI_MSIX_TABLE_OFFSET,
				    (u64)vectors * PCI_MSIX_ENTRY_SIZE))
		return 1;
	return (pba & PCI_MSIX_PBA_BIR) == 0 &&
	       nvmep_doorbell_overlaps(doorbell, pba & PCI_MSIX_PBA_OFFSET,
				       ALIGN(vectors, 64) / 8);
}

/**
 * nvmep_doorbell_init() - find the pages of a queue pair's doorbells
 * @doorbell: out
 * @ctrl: the controller
 * @qid: queue ID
 *
 * Whole pages only.  The first page of BAR0 holds the controller registers and
 * is never exported: with large pages there may be no exportable doorbell.
 *
 * Return: 0, or -EAGAIN while config space does not respond.
 */
int nvmep_doorbell_init(struct nvmep_doorbell *doorbell,
			const struct nvmep_ctrl *ctrl, u16 qid)
{
	struct pci_dev *pdev = ctrl->pdev;
	resource_size_t tail = nvmep_doorbell_offset(ctrl, qid, false);
	resource_size_t head = nvmep_doorbell_offset(ctrl, qid, true);
	int msix;

	doorbell->qid = qid;
	doorbell->start = ALIGN_DOWN(tail, PAGE_SIZE);
	doorbell->length = ALIGN(head + sizeof(u32), PAGE_SIZE) -
			   doorbell->start;
	doorbell->offset = tail - doorbell->start;
	msix = nvmep_holds_msix(pdev, doorbell);
	if (msix < 0)
		return msix;
	doorbell->exportable =
		doorbell->start >= PAGE_SIZE &&
		PAGE_ALIGNED(pci_resource_start(pdev, 0)) &&
		doorbell->start + doorbell->length <= pci_resource_len(pdev, 0) &&
		!msix;
	return 0;
}

/* --- the dma-buf --------------------------------------------------------- */

/**
 * struct nvmep_doorbell_export - a dma-buf of doorbells
 * @export: common part
 * @doorbell: const: the pages; part of the queue pair, which @export holds
 * @allow_static: const: accept importers without revocation
 * @mmaps: exports->lock: list of struct nvmep_mmap
 * @maps: number of mappings of revocable importers
 * @static_maps: number of mappings of static importers
 * @zap_work: takes the doorbells from processes; runs again while one of them
 *	holds its mmap lock
 * @invalidate_work: takes them from importers; runs again while another driver
 *	holds the reservation lock
 */
struct nvmep_doorbell_export {
	struct nvmep_export export;
	const struct nvmep_doorbell *doorbell;
	bool allow_static;
	struct list_head mmaps;
	atomic_t maps;
	atomic_t static_maps;
	struct delayed_work zap_work;
	struct delayed_work invalidate_work;
};

/**
 * struct nvmep_importer - a device attached to doorbells
 * @verdict: const: path from the device to the doorbells
 * @provider: const: P2PDMA provider that maps for it; NULL: this file maps
 * @revocable: reservation lock: supports revocation; cleared at most once
 * @pins: reservation lock: number of pins
 * @maps: reservation lock: number of mappings
 */
struct nvmep_importer {
	enum nvme_peer_route_verdict verdict;
	struct p2pdma_provider *provider;
	bool revocable;
	unsigned int pins;
	unsigned int maps;
};

/**
 * struct nvmep_mmap - the mappings of doorbells in one address space
 * @doorbells: const; held by the files of the VMAs
 * @mm: const; holds the structure, not the address space
 * @vmas: exports->lock: number of VMAs, and of mmap()s in progress
 * @settled: exports->lock: a revocation has seen that the last mmap() has ended
 * @node: exports->lock: in @doorbells->mmaps
 *
 * One for each address space.  core/qids.c limits the number of processes; one
 * that calls execve() while a clone keeps the old address space has several.
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

static void nvmep_provider_put(struct nvmep_peers *peers)
{
	if (atomic_dec_and_test(&peers->provider_users))
		wake_up_var(&peers->provider_users);
}

/*
 * P2PDMA's state of the controller is freed after the removal.  Unbinding sees
 * the count, or this sees @removed.
 */
static bool nvmep_provider_get(struct nvmep_peers *peers)
{
	atomic_inc(&peers->provider_users);
	/* Pairs with smp_mb() in nvmep_provider_wait(). */
	smp_mb__after_atomic();
	if (!READ_ONCE(peers->removed))
		return true;
	nvmep_provider_put(peers);
	return false;
}

static int
nvmep_doorbell_check_importer(struct nvmep_doorbell_export *doorbells,
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
				     "refusing doorbells for %s: no path: %s\n",
				     dev_name(attach->dev),
				     nvmep_route_reason_text(path.reason));
		return -EXDEV;
	}
	importer->verdict = path.verdict;
	if (!nvmep_provider_get(ctrl->peers))
		return -ENODEV;
	/*
	 * The provider maps only paths that pci_p2pdma_distance() accepts.  It
	 * does not know of the module parameter allow_host_bridge.
	 */
	if (nvmep_route_kernel_distance(ctrl->pdev, attach->dev) >= 0)
		importer->provider = ctrl->peers->provider;
	nvmep_provider_put(ctrl->peers);
	importer->revocable = nvmep_dma_buf_attach_revocable(attach);
	return 0;
}

static int nvmep_doorbell_attach(struct nvmep_export *export,
				 struct dma_buf_attachment *attach)
{
	struct nvmep_importer *importer = kzalloc(sizeof(*importer), GFP_KERNEL);
	int err;

	if (!importer)
		return -ENOMEM;
	err = nvmep_doorbell_check_importer(nvmep_to_doorbells(export), attach,
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

/* --- pinning ------------------------------------------------------------- */

/* Its mappings may exist already: count them as those of a static importer. */
static void nvmep_doorbell_set_static(struct nvmep_doorbell_export *doorbells,
				      struct nvmep_importer *importer)
{
	importer->revocable = false;
	atomic_add(importer->maps, &doorbells->static_maps);
	if (!atomic_sub_return(importer->maps, &doorbells->maps))
		wake_up_var(&doorbells->maps);
}

/* One that needs more pins than NVMEP_REVOCABLE_PINS is static. */
static int nvmep_doorbell_pin(struct nvmep_export *export,
			      struct dma_buf_attachment *attach)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	struct nvmep_importer *importer = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (importer->revocable && importer->pins >= NVMEP_REVOCABLE_PINS) {
		if (!doorbells->allow_static)
			return -EOPNOTSUPP;
		nvmep_doorbell_set_static(doorbells, importer);
	}
	importer->pins++;
	return 0;
}

static void nvmep_doorbell_unpin(struct dma_buf_attachment *attach)
{
	struct nvmep_importer *importer = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	importer->pins--;
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
 * A table without pages: registers have no struct page.  orig_nents is 0, so
 * that an importer that iterates over pages finds an empty table.
 */
static struct sg_table *
nvmep_doorbell_map_direct(const struct nvmep_doorbell_export *doorbells,
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

/* The unmapping does not need the provider. */
static struct sg_table *
nvmep_doorbell_map_by_provider(const struct nvmep_doorbell_export *doorbells,
			       struct dma_buf_attachment *attach,
			       enum dma_data_direction dir)
{
	struct nvmep_peers *peers = nvmep_doorbells_ctrl(doorbells)->peers;
	struct sg_table *sgt;

	if (!nvmep_provider_get(peers))
		return ERR_PTR(-ENODEV);
	sgt = nvmep_p2p_map(attach, peers->provider,
			    nvmep_doorbells_phys(doorbells),
			    doorbells->doorbell->length, dir);
	nvmep_provider_put(peers);
	return sgt;
}

static struct sg_table *
nvmep_doorbell_map_sgt(const struct nvmep_doorbell_export *doorbells,
		       struct dma_buf_attachment *attach,
		       enum dma_data_direction dir)
{
	const struct nvmep_importer *importer = attach->priv;

	return importer->provider ?
	       nvmep_doorbell_map_by_provider(doorbells, attach, dir) :
	       nvmep_doorbell_map_direct(doorbells, attach, dir);
}

static void nvmep_doorbell_unmap_sgt(struct dma_buf_attachment *attach,
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

/* The counter for mappings of this importer. */
static atomic_t *nvmep_doorbell_maps(struct nvmep_doorbell_export *doorbells,
				     struct dma_buf_attachment *attach)
{
	const struct nvmep_importer *importer = attach->priv;

	return importer->revocable ? &doorbells->maps : &doorbells->static_maps;
}

static struct sg_table *nvmep_doorbell_map(struct nvmep_export *export,
					   struct dma_buf_attachment *attach,
					   enum dma_data_direction dir)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	struct sg_table *sgt = nvmep_doorbell_map_sgt(doorbells, attach, dir);
	struct nvmep_importer *importer = attach->priv;

	if (IS_ERR(sgt))
		return sgt;
	importer->maps++;
	atomic_inc(nvmep_doorbell_maps(doorbells, attach));
	return sgt;
}

static void nvmep_doorbell_unmap(struct nvmep_export *export,
				 struct dma_buf_attachment *attach,
				 struct sg_table *sgt,
				 enum dma_data_direction dir)
{
	atomic_t *maps = nvmep_doorbell_maps(nvmep_to_doorbells(export),
					     attach);
	struct nvmep_importer *importer = attach->priv;

	nvmep_doorbell_unmap_sgt(attach, sgt, dir);
	importer->maps--;
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

/* Drops one VMA; the last one frees the structure. */
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

/*
 * The only place that inserts PTEs; nvmep_doorbell_mmap() sets the protection.
 */
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
 * Did a revocation begin before the calling thread had inserted PTEs?  Returns
 * an error of nvmep_exports_admit().
 */
static int nvmep_revoked_meanwhile(const struct nvmep_exports *exports)
{
	/* Pairs with smp_mb() in nvmep_exports_close() and _withdraw(). */
	smp_mb();
	return nvmep_exports_admit(exports);
}

/*
 * mmap() has installed every PTE.  A fault means that revocation zapped it: for
 * good, or until re-arm.  No lock: the insertion allocates page tables, and the
 * reset work must not wait for that.
 */
static vm_fault_t nvmep_doorbell_vm_fault(struct vm_fault *vmf)
{
	struct nvmep_mmap *map = vmf->vma->vm_private_data;
	struct nvmep_exports *exports = map->doorbells->export.exports;
	unsigned long address = vmf->address & PAGE_MASK;
	vm_fault_t ret;

	if (nvmep_exports_admit(exports))
		return VM_FAULT_SIGBUS;
	ret = nvmep_doorbell_insert_page(map->doorbells, vmf->vma, address,
					 vmf->pgoff);
	if (!nvmep_revoked_meanwhile(exports))
		return ret;
	nvmep_zap_range(vmf->vma, address, PAGE_SIZE);
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct nvmep_doorbell_vm_ops = {
	.open = nvmep_doorbell_vm_open,
	.close = nvmep_doorbell_vm_close,
	.fault = nvmep_doorbell_vm_fault,
};

static struct nvmep_mmap *
nvmep_mmap_find(const struct nvmep_doorbell_export *doorbells,
		const struct mm_struct *mm)
{
	struct nvmep_mmap *map;

	lockdep_assert_held(&doorbells->export.exports->lock);

	list_for_each_entry(map, &doorbells->mmaps, node)
		if (map->mm == mm)
			return map;
	return NULL;
}

/* Counts an mmap() in the entry of its address space, or in @fresh. */
static struct nvmep_mmap *
nvmep_mmap_count(struct nvmep_doorbell_export *doorbells, struct mm_struct *mm,
		 struct nvmep_mmap *fresh)
{
	struct nvmep_mmap *map = nvmep_mmap_find(doorbells, mm);

	if (!map) {
		map = fresh;
		map->doorbells = doorbells;
		map->mm = mm;
		mmgrab(mm);
		list_add_tail(&map->node, &doorbells->mmaps);
	}
	map->vmas++;
	map->settled = false;
	return map;
}

/* Registers an mmap() before its first PTE, or refuses it. */
static struct nvmep_mmap *
nvmep_mmap_begin(struct nvmep_doorbell_export *doorbells, struct mm_struct *mm)
{
	struct nvmep_exports *exports = doorbells->export.exports;
	struct nvmep_mmap *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct nvmep_mmap *map;
	int err;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&exports->lock);
	err = nvmep_exports_admit(exports);
	map = err ? ERR_PTR(err) : nvmep_mmap_count(doorbells, mm, fresh);
	mutex_unlock(&exports->lock);
	if (map != fresh)
		kfree(fresh);
	return map;
}

/*
 * Installs every PTE at once.  io_remap_pfn_range() of a whole VMA makes x86
 * track the memory type of the range until 6.12; a process that exits while its
 * mapping is being zapped then races with the untracking and the kernel warns.
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
 * VM_DONTCOPY: a child must not inherit control over the controller through an
 * unrelated fork().
 */
static int nvmep_doorbell_mmap(struct nvmep_export *export,
			       struct vm_area_struct *vma)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);
	struct nvmep_mmap *map;
	int err;

	err = nvmep_qid_add_mapper(nvmep_doorbells_ctrl(doorbells),
				   doorbells->doorbell->qid);
	if (err)
		return err;
	map = nvmep_mmap_begin(doorbells, vma->vm_mm);
	if (IS_ERR(map))
		return PTR_ERR(map);

	nvmep_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND |
				VM_DONTDUMP | VM_DONTCOPY);
	/* Registers are never encrypted memory. */
	vma->vm_page_prot =
		pgprot_decrypted(pgprot_noncached(vma->vm_page_prot));
	err = nvmep_doorbell_insert(doorbells, vma);
	if (!err)
		err = nvmep_revoked_meanwhile(export->exports);
	if (err) {
		/* A revocation does not find this VMA without @map. */
		nvmep_zap_range(vma, vma->vm_start,
				vma->vm_end - vma->vm_start);
		nvmep_mmap_put(map);
		return err;
	}
	vma->vm_private_data = map;
	vma->vm_ops = &nvmep_doorbell_vm_ops;
	nvmep_export_count_mmap(export, 1);
	return 0;
}

/* --- revoking ------------------------------------------------------------ */

/*
 * An mmap() from before the flag was set may still be in progress: its PTEs
 * exist, but unmap_mapping_range() does not find its VMA.  mmap() holds
 * the mmap lock until the VMA is linked, so having that lock once proves that
 * it has ended.
 *
 * Returns false if a process holds its mmap lock: a later call settles it.
 */
static bool nvmep_doorbell_settle_mmaps(struct nvmep_doorbell_export *doorbells)
{
	struct mutex *lock = &doorbells->export.exports->lock;
	struct nvmep_mmap *map;
	bool all = true;

	mutex_lock(lock);
	list_for_each_entry(map, &doorbells->mmaps, node) {
		if (!map->settled && mmap_read_trylock(map->mm)) {
			mmap_read_unlock(map->mm);
			map->settled = true;
		}
		all &= map->settled;
	}
	mutex_unlock(lock);
	return all;
}

/*
 * Blocks on no lock that a process or another driver may hold for ever: such
 * works would use up the workqueue.
 */
static void nvmep_doorbell_zap_work(struct work_struct *work)
{
	struct nvmep_doorbell_export *doorbells =
		container_of(to_delayed_work(work),
			     struct nvmep_doorbell_export, zap_work);
	bool settled = nvmep_doorbell_settle_mmaps(doorbells);

	unmap_mapping_range(d_inode(doorbells->export.dentry)->i_mapping,
			    0, 0, 1);
	if (settled)
		nvmep_export_work_done(&doorbells->export);
	else
		nvmep_export_retry_work(&doorbells->zap_work);
}

/*
 * The flag is set.  An importer maps under the reservation lock, which is taken
 * here: a later mapping sees it.
 */
static void nvmep_doorbell_invalidate_work(struct work_struct *work)
{
	struct nvmep_doorbell_export *doorbells =
		container_of(to_delayed_work(work),
			     struct nvmep_doorbell_export, invalidate_work);
	struct dma_buf *dmabuf = doorbells->export.dmabuf;

	if (!dma_resv_trylock(dmabuf->resv)) {
		nvmep_export_retry_work(&doorbells->invalidate_work);
		return;
	}
	nvmep_dma_buf_invalidate(dmabuf);
	dma_resv_unlock(dmabuf->resv);
	nvmep_export_work_done(&doorbells->export);
}

static void nvmep_doorbell_revoke(struct nvmep_export *export)
{
	struct nvmep_doorbell_export *doorbells = nvmep_to_doorbells(export);

	nvmep_export_queue_work(export, &doorbells->zap_work);
	nvmep_export_queue_work(export, &doorbells->invalidate_work);
}

/*
 * Mappings first: a fence that never signals must not use up the time for them.
 * Without the reservation lock, which importers take to unmap.
 */
static void nvmep_doorbell_wait(struct nvmep_export *export,
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
	clean &= !atomic_read(&export->exports->works);
	if (!clean)
		dev_warn(export->exports->ctrl->dev,
			 "queue pair %u: an importer still maps its doorbells: queues deleted, queue ID quarantined until it unmaps\n",
			 doorbells->doorbell->qid);
}

static void nvmep_doorbell_release(struct nvmep_export *export)
{
	const struct nvmep_doorbell_export *doorbells =
		nvmep_to_doorbells(export);

	nvmep_qid_unexport(nvmep_doorbells_ctrl(doorbells),
			   doorbells->doorbell->qid);
}

static const struct nvmep_export_ops nvmep_doorbell_export_ops = {
	.attach = nvmep_doorbell_attach,
	.detach = nvmep_doorbell_detach,
	.pin = nvmep_doorbell_pin,
	.unpin = nvmep_doorbell_unpin,
	.map = nvmep_doorbell_map,
	.unmap = nvmep_doorbell_unmap,
	.mmap = nvmep_doorbell_mmap,
	.revoke = nvmep_doorbell_revoke,
	.wait = nvmep_doorbell_wait,
	.release = nvmep_doorbell_release,
};

/**
 * nvmep_export_doorbell() - export doorbells as a dma-buf
 * @exports: the dma-bufs of their queue pair, which the caller holds
 * @doorbell: the doorbells; exportable
 * @allow_static: accept importers without revocation
 *
 * Return: see nvmep_export_publish().
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
	INIT_DELAYED_WORK(&doorbells->zap_work, nvmep_doorbell_zap_work);
	INIT_DELAYED_WORK(&doorbells->invalidate_work,
			  nvmep_doorbell_invalidate_work);
	nvmep_qid_export(exports->ctrl, doorbell->qid);
	return nvmep_export_publish(&doorbells->export, exports,
				    &nvmep_doorbell_export_ops,
				    doorbell->length);
}
