/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel versions: the only file of the module with #ifdef
 * for them.
 *
 * compat.mk defines each NVMEP_HAVE_* by probing the kernel's headers, never by
 * version.  The names below follow those of the newest kernel.
 */
#ifndef _NVMEP_COMPAT_H
#define _NVMEP_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/device/class.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fileattr.h>
#include <linux/fs.h>
#include <linux/iommu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/msi.h>
#include <linux/nvme.h>
#include <linux/pci.h>
#include <linux/pr.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>
#ifdef NVMEP_HAVE_USE_DMA_IOMMU
#include <linux/iommu-dma.h>
#endif

#if defined(NVMEP_HAVE_DMABUF_PHYS_VEC) && defined(NVMEP_HAVE_P2PDMA_PROVIDER)
#include <linux/dma-buf-mapping.h>
#include <linux/pci-p2pdma.h>
#endif

#ifdef NVMEP_HAVE_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

#ifdef NVMEP_HAVE_AER_ENABLE
#include <linux/aer.h>
#endif

/* Newer kernels take the symbol namespace as a string. */
#ifdef NVMEP_HAVE_IMPORT_NS_TOKEN
#define NVMEP_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS(DMA_BUF)
#else
#define NVMEP_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS("DMA_BUF")
#endif

/* --- PCI, device model, files ------------------------------------------- */

/* On newer kernels the PCI core enables error reporting. */
static inline void nvmep_pci_enable_aer(struct pci_dev *pdev)
{
#ifdef NVMEP_HAVE_AER_ENABLE
	pci_enable_pcie_error_reporting(pdev);
#endif
}

static inline void nvmep_pci_disable_aer(struct pci_dev *pdev)
{
#ifdef NVMEP_HAVE_AER_ENABLE
	pci_disable_pcie_error_reporting(pdev);
#endif
}

/* Can the device trigger no interrupt except its own? */
static inline bool nvmep_has_isolated_msi(struct device *dev)
{
#ifdef NVMEP_HAVE_ISOLATED_MSI
	return msi_device_has_isolated_msi(dev);
#else
	return device_iommu_capable(dev, IOMMU_CAP_INTR_REMAP);
#endif
}

/*
 * Does the DMA API map for the device by an IOMMU?  The answer is part of the
 * device, so it can be read for any device.  The domain of a device belongs to
 * the driver that is bound, and may be freed when that driver is unbound.
 */
static inline bool nvmep_uses_iommu(struct device *dev)
{
#ifdef NVMEP_HAVE_USE_DMA_IOMMU
	return use_dma_iommu(dev);
#elif defined(CONFIG_IOMMU_DMA)
	return dev->dma_ops;
#else
	return false;
#endif
}

/* Does the device send requests with addresses that it has translated (ATS)? */
static inline bool nvmep_ats_enabled(const struct pci_dev *pdev)
{
#ifdef CONFIG_PCI_ATS
	return pdev->ats_enabled;
#else
	return false;
#endif
}

static inline struct class *nvmep_class_create(const char *name)
{
#ifdef NVMEP_HAVE_CLASS_CREATE_NAME
	return class_create(name);
#else
	return class_create(THIS_MODULE, name);
#endif
}

/* The type of the device parameter of &class.dev_uevent. */
#ifdef NVMEP_HAVE_UEVENT_CONST
#define nvmep_uevent_device	const struct device
#else
#define nvmep_uevent_device	struct device
#endif

/* What vfs_fileattr_get() fills. */
#ifdef NVMEP_HAVE_FILE_KATTR
#define nvmep_fileattr		struct file_kattr
#else
#define nvmep_fileattr		struct fileattr
#endif

/* Of a dirty folio iomap writes back the dirty blocks only: from Linux 6.6 on. */
#ifdef NVMEP_HAVE_IOMAP_DIRTY_FOLIO
#define NVMEP_IOMAP_WRITES_BLOCKS	true
#else
#define NVMEP_IOMAP_WRITES_BLOCKS	false
#endif

/*
 * Are these the operations of a file of ext4 whose data goes to its blocks, not
 * to the journal or past the page cache?  Those of other modes migrate pages in
 * another way, or not at all.
 */
static inline bool
nvmep_aops_plain(const struct address_space_operations *operations)
{
#ifdef CONFIG_MIGRATION
	return operations->migrate_folio == buffer_migrate_folio;
#else
	return false;
#endif
}

static inline void nvmep_vm_flags_set(struct vm_area_struct *vma,
				      unsigned long flags)
{
#ifdef NVMEP_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void nvmep_vm_flags_clear(struct vm_area_struct *vma,
					unsigned long flags)
{
#ifdef NVMEP_HAVE_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/* Zaps PTEs of a VM_PFNMAP VMA; the caller holds the mmap lock. */
static inline void nvmep_zap_range(struct vm_area_struct *vma,
				   unsigned long address, unsigned long size)
{
#ifdef NVMEP_HAVE_ZAP_SPECIAL
	zap_special_vma_range(vma, address, size);
#else
	zap_vma_ptes(vma, address, size);
#endif
}

/* Older kernels bind work to a CPU unless a workqueue is unbound. */
#ifdef NVMEP_HAVE_WQ_PERCPU
#define NVMEP_WQ_PERCPU		WQ_PERCPU
#else
#define NVMEP_WQ_PERCPU		0
#endif

/* --- dma-buf ------------------------------------------------------------ */

/*
 * The member of struct dma_buf_attach_ops that invalidates an importer's
 * mappings.
 */
#ifdef NVMEP_HAVE_DMABUF_INVALIDATE
#define nvmep_invalidate_member	invalidate_mappings
#else
#define nvmep_invalidate_member	move_notify
#endif

/* Invalidates all importers' mappings; the reservation lock is held. */
static inline void nvmep_dma_buf_invalidate(struct dma_buf *dmabuf)
{
#ifdef NVMEP_HAVE_DMABUF_INVALIDATE
	dma_buf_invalidate_mappings(dmabuf);
#else
	dma_buf_move_notify(dmabuf);
#endif
}

/*
 * Does a dynamic attachment to the dma-buf map it at once, in both directions?
 * Older kernels do that if the exporter cannot move its memory.
 */
static inline bool nvmep_dma_buf_attach_maps(const struct dma_buf *dmabuf)
{
#ifdef NVMEP_HAVE_DMABUF_ATTACH_DIR
	return !dmabuf->ops->pin;
#else
	return false;
#endif
}

/* Does the importer implement invalidation of its mappings? */
static inline bool nvmep_dma_buf_attach_revocable(struct dma_buf_attachment *attach)
{
#ifdef NVMEP_HAVE_DMABUF_REVOCABLE
	return dma_buf_attach_revocable(attach);
#else
	return attach->importer_ops && attach->importer_ops->move_notify;
#endif
}

/*
 * Number of pins up to which an importer with such a callback can be
 * invalidated.  Older kernels cannot tell importers apart whose callback does
 * nothing, as they pin the memory themselves, RDMA drivers for one.  For each
 * mapping the dma-buf core adds a pin there, unless it is built to move mapped
 * memory.
 */
#ifdef NVMEP_HAVE_DMABUF_REVOCABLE
#define NVMEP_REVOCABLE_PINS	UINT_MAX
#else
#define NVMEP_REVOCABLE_PINS	(IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY) ? 0 : 1)
#endif

/*
 * Maps a range of our BAR into the DMA domain of another device by the kernel's
 * P2PDMA functions.  The provider is NULL on kernels without them; the caller
 * then maps the range itself.
 */
#if defined(NVMEP_HAVE_DMABUF_PHYS_VEC) && defined(NVMEP_HAVE_P2PDMA_PROVIDER)
static inline struct p2pdma_provider *nvmep_p2p_provider(struct pci_dev *pdev,
							 int bar)
{
	if (pcim_p2pdma_init(pdev))
		return NULL;
	return pcim_p2pdma_provider(pdev, bar);
}

static inline struct sg_table *
nvmep_p2p_map(struct dma_buf_attachment *attach,
	      struct p2pdma_provider *provider, phys_addr_t address,
	      size_t length, enum dma_data_direction dir)
{
	struct phys_vec range = { .paddr = address, .len = length };

	return dma_buf_phys_vec_to_sgt(attach, provider, &range, 1, length,
				       dir);
}

static inline void nvmep_p2p_unmap(struct dma_buf_attachment *attach,
				   struct sg_table *sgt,
				   enum dma_data_direction dir)
{
	/*
	 * dma_buf_phys_vec_to_sgt() leaves orig_nents = 0, so sg_free_table()
	 * would free no entries and leak 32 bytes a mapping.
	 */
	sgt->orig_nents = sgt->nents;
	dma_buf_free_sgt(attach, sgt, dir);
}
#else
struct p2pdma_provider;

static inline struct p2pdma_provider *nvmep_p2p_provider(struct pci_dev *pdev,
							 int bar)
{
	return NULL;
}

static inline struct sg_table *
nvmep_p2p_map(struct dma_buf_attachment *attach,
	      struct p2pdma_provider *provider, phys_addr_t address,
	      size_t length, enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void nvmep_p2p_unmap(struct dma_buf_attachment *attach,
				   struct sg_table *sgt,
				   enum dma_data_direction dir)
{
}
#endif

/* --- NVMe --------------------------------------------------------------- */

/* Names of linux/nvme.h that older kernels lack. */

#ifndef NVMEP_HAVE_NVME_SGLS_ALIGNED
#define NVME_CTRL_SGLS_BYTE_ALIGNED	1
#define NVME_CTRL_SGLS_DWORD_ALIGNED	2
#endif

#ifndef NVMEP_HAVE_NVME_OPTPERF
#define NVME_NS_FEAT_OPTPERF_SHIFT	4
#define NVME_NS_FEAT_OPTPERF_MASK	0x1
#endif

#ifndef NVMEP_HAVE_NVME_EFFECTS_SCOPE
#define NVME_CMD_EFFECTS_SCOPE_MASK	GENMASK(31, 20)
#endif

#ifndef NVMEP_HAVE_NVME_WZ_DEAC
#define NVME_WZ_DEAC			BIT(9)
#endif

#ifndef NVMEP_HAVE_NVME_SCT
#define NVME_SC_MASK			0x00ff
#define NVME_SCT_SC_MASK		0x07ff
#define NVME_SCT(status)		((status) >> 8 & 7)
#endif

#ifndef NVMEP_HAVE_NVME_STATUS_DNR
#define NVME_STATUS_CRD			0x1800
#define NVME_STATUS_DNR			0x4000
#endif

/* --- persistent reservations, block device operations -------------------- */

/* Positive results of &struct pr_ops functions: enum pr_status. */
#define NVMEP_PR_STS_IOERR		0x2
#define NVMEP_PR_STS_CONFLICT		0x18
#define NVMEP_PR_STS_PATH_FAILED	0x10000

/* The members of struct pr_ops that read keys and reservation, where it has them. */
#ifdef NVMEP_HAVE_PR_READ
#define NVMEP_PR_READ_OPS(keys, reservation)				\
	.pr_read_keys = keys, .pr_read_reservation = reservation,
#else
#define NVMEP_PR_READ_OPS(keys, reservation)

struct pr_keys {
	u32 generation;
	u32 num_keys;
	u64 keys[];
};

struct pr_held_reservation {
	u64 key;
	u32 generation;
	enum pr_type type;
};
#endif

/*
 * NVMEP_GETGEO_FN(function) defines function_fn(), the function to set in
 * &block_device_operations.getgeo.  It calls function(struct gendisk *disk,
 * struct hd_geometry *geometry).
 */
#ifdef NVMEP_HAVE_GETGEO_DISK
#define NVMEP_GETGEO_FN(function)					\
static int function##_fn(struct gendisk *disk,				\
			 struct hd_geometry *geometry)			\
{									\
	return function(disk, geometry);				\
}
#else
#define NVMEP_GETGEO_FN(function)					\
static int function##_fn(struct block_device *bdev,			\
			 struct hd_geometry *geometry)			\
{									\
	return function(bdev->bd_disk, geometry);			\
}
#endif

/* --- block layer -------------------------------------------------------- */

#ifdef NVMEP_HAVE_BLK_MODE_T
#define nvmep_blk_mode_t	blk_mode_t
#define NVMEP_BLK_OPEN_WRITE	BLK_OPEN_WRITE
#else
#define nvmep_blk_mode_t	fmode_t
#define NVMEP_BLK_OPEN_WRITE	FMODE_WRITE
#endif

/* Newer kernels merge by default and have no flag for it. */
#ifdef NVMEP_HAVE_SHOULD_MERGE
#define NVMEP_BLK_MQ_F_SHOULD_MERGE	BLK_MQ_F_SHOULD_MERGE
#else
#define NVMEP_BLK_MQ_F_SHOULD_MERGE	0
#endif

#ifdef NVMEP_HAVE_RESV_CONFLICT
#define NVMEP_BLK_STS_RESV_CONFLICT	BLK_STS_RESV_CONFLICT
#else
#define NVMEP_BLK_STS_RESV_CONFLICT	BLK_STS_NEXUS
#endif

/*
 * A rq_end_io_fn has a third parameter on newer kernels.  A file defines its
 * callback with an ordinary signature:
 *
 *	static enum rq_end_io_ret
 *	my_end_io(struct request *rq, blk_status_t error,
 *		  const struct io_comp_batch *batch)
 *
 * and, after it, NVMEP_END_IO_FN(my_end_io) defines my_end_io_fn(), the
 * function to set in &request.end_io.  @batch is NULL on older kernels.
 */
#ifdef NVMEP_HAVE_END_IO_BATCH
#define NVMEP_END_IO_FN(function)					\
static enum rq_end_io_ret						\
function##_fn(struct request *rq, blk_status_t error,			\
	      const struct io_comp_batch *batch)			\
{									\
	return function(rq, error, batch);				\
}
#else
#define NVMEP_END_IO_FN(function)					\
static enum rq_end_io_ret						\
function##_fn(struct request *rq, blk_status_t error)			\
{									\
	return function(rq, error, NULL);				\
}
#endif

/*
 * Lists of requests.  Newer kernels have struct rq_list and functions for it.
 * Older ones use a pointer to the first request, with macros of the same names.
 *
 * NVMEP_QUEUE_RQS_FN(function) defines function_fn(), the function to set in
 * &blk_mq_ops.queue_rqs.  It calls function(struct rq_list *list), which leaves
 * on @list the requests that it did not submit.
 */
#ifdef NVMEP_HAVE_RQ_LIST
static inline struct request *nvmep_rq_list_pop(struct rq_list *list)
{
	return rq_list_pop(list);
}

static inline void nvmep_rq_list_add(struct rq_list *list, struct request *rq)
{
	rq_list_add_tail(list, rq);
}

#define NVMEP_QUEUE_RQS_FN(function)					\
static void function##_fn(struct rq_list *rqs)				\
{									\
	function(rqs);							\
}
#else
struct rq_list {
	struct request *head;
	struct request *tail;
};

static inline struct request *nvmep_rq_list_pop(struct rq_list *list)
{
	struct request *rq = list->head;

	if (rq) {
		list->head = rq->rq_next;
		rq->rq_next = NULL;
	}
	return rq;
}

static inline void nvmep_rq_list_add(struct rq_list *list, struct request *rq)
{
	rq->rq_next = NULL;
	if (list->head)
		list->tail->rq_next = rq;
	else
		list->head = rq;
	list->tail = rq;
}

#define NVMEP_QUEUE_RQS_FN(function)					\
static void function##_fn(struct request **rqs)				\
{									\
	struct rq_list list = { .head = *rqs };				\
									\
	function(&list);						\
	*rqs = list.head;						\
}
#endif

/* Undoes blk_freeze_queue_start(); does not restore memory allocation flags. */
static inline void nvmep_unfreeze_queue(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NOMEM
	blk_mq_unfreeze_queue_nomemrestore(queue);
#else
	blk_mq_unfreeze_queue(queue);
#endif
}

/* Has the administrator chosen to count passthrough in the disk's statistics? */
static inline bool nvmep_passthrough_counted(struct request_queue *queue)
{
#ifdef blk_queue_passthrough_stat
	return !!blk_queue_passthrough_stat(queue);
#else
	return false;
#endif
}

/*
 * Older kernels freeze the queue and leave it so without marking it as dying:
 * passthrough would wait for ever.
 */
static inline void nvmep_mark_disk_dead(struct gendisk *disk)
{
	struct request_queue *queue = disk->queue;

	blk_mark_disk_dead(disk);
	if (blk_queue_dying(queue))
		return;
	blk_queue_flag_set(QUEUE_FLAG_DYING, queue);
	wake_up_all(&queue->mq_freeze_wq);
}

/*
 * Waits until no thread dispatches on the queues that were quiesced by
 * blk_mq_quiesce_queue_nowait().  None is BLK_MQ_F_BLOCKING: one RCU grace
 * period covers all of them, also those of other tag sets than @queue's.
 */
static inline void nvmep_wait_quiesce_done(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_WAIT_QUIESCE_SET
	blk_mq_wait_quiesce_done(queue->tag_set);
#else
	blk_mq_wait_quiesce_done(queue);
#endif
}

/*
 * Freeze without lockdep's annotation, for a freeze that is held while locks
 * are taken whose other holders never wait for this queue: lockdep would report
 * a deadlock that cannot happen.
 */
static inline void nvmep_freeze_queue_start_non_owner(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NON_OWNER
	blk_freeze_queue_start_non_owner(queue);
#else
	blk_freeze_queue_start(queue);
#endif
}

static inline void nvmep_unfreeze_queue_non_owner(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NON_OWNER
	blk_mq_unfreeze_queue_non_owner(queue);
#else
	blk_mq_unfreeze_queue(queue);
#endif
}

/*
 * Before Linux 6.1.168 blk_mq_destroy_queue() also drops the caller's reference,
 * which no header shows.  No other reference comes or goes meanwhile.
 */
static inline void nvmep_destroy_queue(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_QUEUE_KOBJ
	unsigned int before = kref_read(&queue->kobj.kref) + 1;

	kobject_get(&queue->kobj);
	blk_mq_destroy_queue(queue);
	if (kref_read(&queue->kobj.kref) == before)
		kobject_put(&queue->kobj);
#else
	blk_mq_destroy_queue(queue);
#endif
}

static inline int nvmep_rq_map_kern(struct request *rq, void *buffer,
				    unsigned int length, gfp_t flags)
{
#ifdef NVMEP_HAVE_MAP_KERN_RQ
	return blk_rq_map_kern(rq, buffer, length, flags);
#else
	return blk_rq_map_kern(rq->q, rq, buffer, length, flags);
#endif
}

/*
 * A contiguous IOVA range, into which segments of memory are linked one after
 * another; segments meet at 4 KiB pages.  Allocation fails without an IOMMU
 * that has this granule, and on older kernels: the caller maps a scatter list
 * then.
 */
#ifdef NVMEP_HAVE_DMA_IOVA
static inline bool nvmep_iova_alloc(struct device *dev,
				    struct dma_iova_state *state,
				    phys_addr_t first, size_t length)
{
	unsigned long boundary = dma_get_merge_boundary(dev);

	return boundary && boundary < SZ_4K &&
	       dma_iova_try_alloc(dev, state, first, length);
}

static inline int nvmep_iova_link(struct device *dev,
				  struct dma_iova_state *state,
				  phys_addr_t segment, size_t offset,
				  size_t length, enum dma_data_direction dir)
{
	return dma_iova_link(dev, state, segment, offset, length, dir, 0);
}

static inline int nvmep_iova_sync(struct device *dev,
				  struct dma_iova_state *state, size_t length)
{
	return dma_iova_sync(dev, state, 0, length);
}

static inline void nvmep_iova_free(struct device *dev,
				   struct dma_iova_state *state, size_t linked,
				   enum dma_data_direction dir)
{
	dma_iova_destroy(dev, state, linked, dir, 0);
}
#else
struct dma_iova_state {
	dma_addr_t addr;
};

static inline bool nvmep_iova_alloc(struct device *dev,
				    struct dma_iova_state *state,
				    phys_addr_t first, size_t length)
{
	return false;
}

static inline int nvmep_iova_link(struct device *dev,
				  struct dma_iova_state *state,
				  phys_addr_t segment, size_t offset,
				  size_t length, enum dma_data_direction dir)
{
	return -EOPNOTSUPP;
}

static inline int nvmep_iova_sync(struct device *dev,
				  struct dma_iova_state *state, size_t length)
{
	return -EOPNOTSUPP;
}

static inline void nvmep_iova_free(struct device *dev,
				   struct dma_iova_state *state, size_t linked,
				   enum dma_data_direction dir)
{
}
#endif

/*
 * DMA attribute: map the memory without a bounce buffer and without cache
 * maintenance, or fail.  Its unmapping need not look up the physical address in
 * the IOMMU.
 */
#ifdef DMA_ATTR_REQUIRE_COHERENT
#define NVMEP_DMA_IN_PLACE	DMA_ATTR_REQUIRE_COHERENT
#else
#define NVMEP_DMA_IN_PLACE	0
#endif

/*
 * DMA attribute: cache lines of the memory are mapped more than once, which
 * DMA-API debugging must not report.
 */
#ifdef DMA_ATTR_DEBUGGING_IGNORE_CACHELINES
#define NVMEP_DMA_SHARED	DMA_ATTR_DEBUGGING_IGNORE_CACHELINES
#else
#define NVMEP_DMA_SHARED	0
#endif

/*
 * Must mappings be undone?  False for the direct mapping without bounce
 * buffers.
 */
static inline bool nvmep_dma_need_unmap(struct device *dev)
{
#ifdef NVMEP_HAVE_DMA_NEED_UNMAP
	return dma_need_unmap(dev);
#else
	return true;
#endif
}

/**
 * struct nvmep_limits - limits of a request queue, as of struct queue_limits
 * @block_size: logical block size, bytes
 * @physical_block_size: unit of writes without read-modify-write, bytes
 * @io_min: minimum efficient I/O size, bytes
 * @io_opt: optimal I/O size, bytes, 0 for none
 * @max_transfer: data of one command, bytes
 * @preferred_transfer: default of max_sectors_kb, bytes, 0 for the kernel's
 * @max_segments: segments of one request
 * @chunk: boundary that requests should not cross, bytes, 0 for none
 * @max_discard: length of one deallocate command, bytes, 0 for no support
 * @discard_granularity: bytes
 * @max_discard_ranges: ranges of one deallocate command
 * @max_write_zeroes: length of one Write Zeroes command, bytes, 0 for no
 *	support
 * @zeroes_deallocate: Write Zeroes can deallocate blocks that then read as zero
 * @write_cache: a volatile write cache is present
 * @fua: FUA writes are supported
 * @atomic_max: bytes that are written atomically, 0 for none
 * @atomic_boundary: no atomic write may cross a multiple of it, bytes, 0 for
 *	none
 * @virt_boundary: mask: segments of a request meet at multiples of it plus 1
 * @dma_alignment: mask of bits that are clear in addresses and lengths
 */
struct nvmep_limits {
	unsigned int block_size;
	unsigned int physical_block_size;
	unsigned int io_min;
	unsigned int io_opt;
	unsigned int max_transfer;
	unsigned int preferred_transfer;
	unsigned short max_segments;
	unsigned int chunk;
	u64 max_discard;
	unsigned int discard_granularity;
	unsigned short max_discard_ranges;
	u64 max_write_zeroes;
	bool zeroes_deallocate;
	bool write_cache;
	bool fua;
	unsigned int atomic_max;
	unsigned int atomic_boundary;
	unsigned int virt_boundary;
	unsigned int dma_alignment;
};

static inline unsigned int nvmep_to_sectors(u64 bytes)
{
	return min_t(u64, bytes >> SECTOR_SHIFT, UINT_MAX);
}

/*
 * Update of limits: begin, commit, end.  The queue is frozen from begin to end,
 * so other state that commands are built from may also change.
 */
struct nvmep_limits_update {
#ifdef NVMEP_HAVE_QUEUE_LIMITS
	struct queue_limits limits;
#endif
	unsigned int memflags;
};

#ifdef NVMEP_HAVE_QUEUE_LIMITS
static inline void nvmep_fill_atomic_limits(struct queue_limits *lim,
					    const struct nvmep_limits *limits)
{
#ifdef NVMEP_HAVE_ATOMIC_WRITES
	unsigned int max = limits->atomic_max;

	lim->atomic_write_hw_max = max;
	lim->atomic_write_hw_boundary = limits->atomic_boundary;
	lim->atomic_write_hw_unit_min = max ? limits->block_size : 0;
	lim->atomic_write_hw_unit_max = max ? rounddown_pow_of_two(max) : 0;
#endif
#ifdef BLK_FEAT_ATOMIC_WRITES
	lim->features &= ~BLK_FEAT_ATOMIC_WRITES;
	if (limits->atomic_max)
		lim->features |= BLK_FEAT_ATOMIC_WRITES;
#endif
}

static inline void nvmep_fill_queue_limits(struct queue_limits *lim,
					   const struct nvmep_limits *limits)
{
	lim->logical_block_size = limits->block_size;
	lim->physical_block_size = limits->physical_block_size;
	lim->io_min = limits->io_min;
	lim->io_opt = limits->io_opt;
	lim->max_hw_sectors = nvmep_to_sectors(limits->max_transfer);
	if (!lim->max_user_sectors)
		lim->max_user_sectors =
			nvmep_to_sectors(limits->preferred_transfer);
	lim->max_segments = limits->max_segments;
	lim->max_segment_size = UINT_MAX;
	lim->virt_boundary_mask = limits->virt_boundary;
	lim->dma_alignment = limits->dma_alignment;
	lim->chunk_sectors = nvmep_to_sectors(limits->chunk);
	lim->max_hw_discard_sectors = nvmep_to_sectors(limits->max_discard);
	lim->discard_granularity = limits->discard_granularity;
	lim->max_discard_segments = limits->max_discard_ranges;
	lim->max_write_zeroes_sectors =
		nvmep_to_sectors(limits->max_write_zeroes);
#ifdef NVMEP_HAVE_WZEROES_UNMAP
	lim->max_hw_wzeroes_unmap_sectors =
		limits->zeroes_deallocate ? lim->max_write_zeroes_sectors : 0;
#endif
	lim->features &= ~(BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA);
	if (limits->write_cache)
		lim->features |= BLK_FEAT_WRITE_CACHE;
	if (limits->fua)
		lim->features |= BLK_FEAT_FUA;
	nvmep_fill_atomic_limits(lim, limits);
}

static inline struct gendisk *nvmep_alloc_disk(struct blk_mq_tag_set *set,
					       unsigned int virt_boundary,
					       void *data)
{
	struct queue_limits lim = { .virt_boundary_mask = virt_boundary };

	return blk_mq_alloc_disk(set, &lim, data);
}

static inline struct request_queue *nvmep_alloc_queue(struct blk_mq_tag_set *set,
						      const struct nvmep_limits *limits,
						      void *data)
{
	struct queue_limits lim = { };

	nvmep_fill_queue_limits(&lim, limits);
	return blk_mq_alloc_queue(set, &lim, data);
}

static inline void nvmep_limits_begin(struct nvmep_limits_update *update,
				      struct request_queue *queue)
{
	update->limits = queue_limits_start_update(queue);
	update->memflags = memalloc_noio_save();
	blk_freeze_queue_start(queue);
}

static inline int nvmep_limits_commit(struct nvmep_limits_update *update,
				      struct request_queue *queue,
				      const struct nvmep_limits *limits)
{
	nvmep_fill_queue_limits(&update->limits, limits);
	return queue_limits_commit_update(queue, &update->limits);
}
#else
static inline void nvmep_set_queue_limits(struct request_queue *queue,
					  const struct nvmep_limits *limits)
{
	blk_queue_logical_block_size(queue, limits->block_size);
	blk_queue_physical_block_size(queue, limits->physical_block_size);
	blk_queue_io_min(queue, limits->io_min);
	blk_queue_io_opt(queue, limits->io_opt);
	blk_queue_max_hw_sectors(queue, nvmep_to_sectors(limits->max_transfer));
	if (limits->preferred_transfer)
		queue->limits.max_sectors =
			min(queue->limits.max_sectors,
			    nvmep_to_sectors(limits->preferred_transfer));
	blk_queue_max_segments(queue, limits->max_segments);
	blk_queue_virt_boundary(queue, limits->virt_boundary);
	blk_queue_dma_alignment(queue, limits->dma_alignment);
	blk_queue_chunk_sectors(queue, nvmep_to_sectors(limits->chunk));
	blk_queue_max_discard_sectors(queue,
				      nvmep_to_sectors(limits->max_discard));
	queue->limits.discard_granularity = limits->discard_granularity;
	blk_queue_max_discard_segments(queue, limits->max_discard_ranges);
	blk_queue_max_write_zeroes_sectors(queue,
					   nvmep_to_sectors(limits->max_write_zeroes));
	blk_queue_write_cache(queue, limits->write_cache, limits->fua);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, queue);
}

/* The caller sets the boundary later, with the other limits. */
static inline struct gendisk *nvmep_alloc_disk(struct blk_mq_tag_set *set,
					       unsigned int virt_boundary,
					       void *data)
{
	return blk_mq_alloc_disk(set, data);
}

static inline struct request_queue *nvmep_alloc_queue(struct blk_mq_tag_set *set,
						      const struct nvmep_limits *limits,
						      void *data)
{
	struct request_queue *queue = blk_mq_init_queue(set);

	if (!IS_ERR(queue)) {
		queue->queuedata = data;
		nvmep_set_queue_limits(queue, limits);
	}
	return queue;
}

static inline void nvmep_limits_begin(struct nvmep_limits_update *update,
				      struct request_queue *queue)
{
	update->memflags = memalloc_noio_save();
	blk_freeze_queue_start(queue);
}

static inline int nvmep_limits_commit(struct nvmep_limits_update *update,
				      struct request_queue *queue,
				      const struct nvmep_limits *limits)
{
	nvmep_set_queue_limits(queue, limits);
	return 0;
}
#endif

static inline void nvmep_limits_end(struct nvmep_limits_update *update,
				    struct request_queue *queue)
{
	nvmep_unfreeze_queue(queue);
	memalloc_noio_restore(update->memflags);
}

/* --- io_uring commands -------------------------------------------------- */

/*
 * The command bytes of an SQE; shared with user space until the request is
 * async.
 */
static inline const void *nvmep_uring_payload(const struct io_uring_cmd *ioucmd)
{
#ifdef NVMEP_HAVE_URING_CMD_H
	return ioucmd->sqe->cmd;
#else
	return ioucmd->cmd;
#endif
}

/*
 * NVMEP_URING_TW_FN(function) defines function_fn(), a task work function.  It
 * calls function(struct io_uring_cmd *ioucmd, unsigned int issue_flags); the
 * flags are those to complete the command with.
 */
#ifdef NVMEP_HAVE_URING_TW
#define NVMEP_URING_TW_FN(function)					\
static void								\
function##_fn(struct io_tw_req tw_req, io_tw_token_t tw_token)		\
{									\
	function(io_uring_cmd_from_tw(tw_req),				\
		 IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);			\
}
#else
#define NVMEP_URING_TW_FN(function)					\
static void								\
function##_fn(struct io_uring_cmd *ioucmd, unsigned int issue_flags)	\
{									\
	function(ioucmd, issue_flags);					\
}
#endif

#ifdef NVMEP_HAVE_URING_LAZY
#define nvmep_uring_complete_in_task	io_uring_cmd_do_in_task_lazy
#else
#define nvmep_uring_complete_in_task	io_uring_cmd_complete_in_task
#endif

static inline void nvmep_uring_done(struct io_uring_cmd *ioucmd, int result,
				    u64 result2, unsigned int issue_flags)
{
#ifdef NVMEP_HAVE_URING_DONE32
	io_uring_cmd_done32(ioucmd, result, result2, issue_flags);
#else
	io_uring_cmd_done(ioucmd, result, result2, issue_flags);
#endif
}

/*
 * Is @batch that of a poll of the command's own ring, by the task that
 * submitted the command?  False on kernels that do not provide this.
 */
static inline bool nvmep_uring_polls(struct io_uring_cmd *ioucmd,
				     const struct io_comp_batch *batch)
{
#ifdef NVMEP_HAVE_POLL_CTX
	return batch && batch->poll_ctx == io_uring_cmd_ctx_handle(ioucmd) &&
	       io_uring_cmd_get_task(ioucmd) == current;
#else
	return false;
#endif
}

static inline int nvmep_uring_import_fixed(u64 address, unsigned long length,
					   int direction, struct iov_iter *iter,
					   struct io_uring_cmd *ioucmd,
					   unsigned int issue_flags)
{
#ifdef NVMEP_HAVE_URING_FIXED_VEC
	return io_uring_cmd_import_fixed(address, length, direction, iter,
					 ioucmd, issue_flags);
#else
	return io_uring_cmd_import_fixed(address, length, direction, iter,
					 ioucmd);
#endif
}

/* A vector of ranges in registered buffers; older kernels do not support it. */
static inline int nvmep_uring_import_fixed_vec(u64 address, unsigned long count,
					       int direction,
					       struct iov_iter *iter,
					       struct io_uring_cmd *ioucmd,
					       unsigned int issue_flags)
{
#ifdef NVMEP_HAVE_URING_FIXED_VEC
	return io_uring_cmd_import_fixed_vec(ioucmd, u64_to_user_ptr(address),
					     count, direction, iter,
					     issue_flags);
#else
	return -EINVAL;
#endif
}

#endif /* _NVMEP_COMPAT_H */
