/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place where kernels differ.
 *
 * Every NVMEP_HAVE_* comes from compat.mk, which looks into the headers.  The
 * rest of the module calls the functions below and never asks what kernel it
 * runs on.  The names follow the newest kernel's.
 */
#ifndef _NVMEP_COMPAT_H
#define _NVMEP_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/device/class.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched/mm.h>

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

#ifndef NVMEP_HAVE_MAP_HW_QUEUES
#include <linux/blk-mq-pci.h>
#endif

/* Symbol namespaces became strings. */
#ifdef NVMEP_HAVE_IMPORT_NS_TOKEN
#define NVMEP_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS(DMA_BUF)
#else
#define NVMEP_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS("DMA_BUF")
#endif

/* --- PCI, device model, files ------------------------------------------- */

/* The PCI core enables error reporting itself on newer kernels. */
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

static inline struct class *nvmep_class_create(const char *name)
{
#ifdef NVMEP_HAVE_CLASS_CREATE_NAME
	return class_create(name);
#else
	return class_create(THIS_MODULE, name);
#endif
}

/* What a class's dev_uevent is called with. */
#ifdef NVMEP_HAVE_UEVENT_CONST
#define nvmep_uevent_device	const struct device
#else
#define nvmep_uevent_device	struct device
#endif

/*
 * Takes a reference to *@file unless its last one is being dropped.  The
 * caller holds a lock that the file's release must take before the file's
 * memory can go.
 */
static inline bool nvmep_get_file_active(struct file **file)
{
#ifdef NVMEP_HAVE_GET_FILE_ACTIVE
	return get_file_active(file);
#else
	return get_file_rcu(*file);
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

/* --- dma-buf ------------------------------------------------------------ */

/* The member of struct dma_buf_attach_ops that tells an importer to let go. */
#ifdef NVMEP_HAVE_DMABUF_INVALIDATE
#define nvmep_invalidate_member	invalidate_mappings
#else
#define nvmep_invalidate_member	move_notify
#endif

/* Tell every importer of @dmabuf to let go; the reservation lock is held. */
static inline void nvmep_dma_buf_invalidate(struct dma_buf *dmabuf)
{
#ifdef NVMEP_HAVE_DMABUF_INVALIDATE
	dma_buf_invalidate_mappings(dmabuf);
#else
	dma_buf_move_notify(dmabuf);
#endif
}

/* Can the importer behind @attach be told to let go? */
static inline bool nvmep_dma_buf_attach_revocable(struct dma_buf_attachment *attach)
{
#ifdef NVMEP_HAVE_DMABUF_REVOCABLE
	return dma_buf_attach_revocable(attach);
#else
	return attach->importer_ops && attach->importer_ops->move_notify;
#endif
}

/*
 * Registers of ours in another device's DMA domain, the kernel's own way.  A
 * NULL provider says that this kernel has none; the caller has its own then.
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
	 * dma_buf_phys_vec_to_sgt() leaves a CPU side of no entries, by which
	 * sg_free_table() would free none: 32 bytes lost with each mapping.
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

/* --- block layer -------------------------------------------------------- */

#ifdef NVMEP_HAVE_BLK_MODE_T
#define nvmep_blk_mode_t	blk_mode_t
#define NVMEP_BLK_OPEN_WRITE	BLK_OPEN_WRITE
#else
#define nvmep_blk_mode_t	fmode_t
#define NVMEP_BLK_OPEN_WRITE	FMODE_WRITE
#endif

/* Merging became the default and its flag went away. */
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

/* The parameters of a rq_end_io_fn: a request @rq and a block status @error. */
#ifdef NVMEP_HAVE_END_IO_BATCH
#define NVMEP_END_IO_PARAMS						\
	struct request *rq, blk_status_t error, const struct io_comp_batch *iob
#define NVMEP_END_IO_BATCH	iob
#else
#define NVMEP_END_IO_PARAMS	struct request *rq, blk_status_t error
#define NVMEP_END_IO_BATCH	NULL
#endif

/*
 * Lists of requests: a type of their own, and functions, became of a pointer and macros.
 * What older kernels have under the same names is not for @list.
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

#define NVMEP_RQ_LIST_PARAM	struct rq_list *rqs
#define nvmep_rq_list_take(rqs)	(*(rqs))
#define nvmep_rq_list_give(list)	(list)
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

#define NVMEP_RQ_LIST_PARAM	struct request **rqs
#define nvmep_rq_list_take(rqs)	((struct rq_list){ .head = *(rqs) })
#define nvmep_rq_list_give(list)	((list).head)
#endif

static inline void nvmep_map_hw_queues(struct blk_mq_queue_map *map,
				       struct pci_dev *pdev, int offset)
{
#ifdef NVMEP_HAVE_MAP_HW_QUEUES
	blk_mq_map_hw_queues(map, &pdev->dev, offset);
#else
	blk_mq_pci_map_queues(map, pdev, offset);
#endif
}

/* Undoes blk_freeze_queue_start(); memory allocation flags are the caller's. */
static inline void nvmep_unfreeze_queue(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NOMEM
	blk_mq_unfreeze_queue_nomemrestore(queue);
#else
	blk_mq_unfreeze_queue(queue);
#endif
}

/*
 * Returns when nobody dispatches any more on queues that share @queue's tags and were
 * quiesced with blk_mq_quiesce_queue_nowait().
 */
static inline void nvmep_wait_quiesce_done(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_WAIT_QUIESCE_SET
	blk_mq_wait_quiesce_done(queue->tag_set);
#else
	/* One wait for RCU serves all: our dispatch does not sleep. */
	blk_mq_wait_quiesce_done(queue);
#endif
}

/*
 * Freezing that lockdep does not see: for locks that are taken meanwhile, and
 * whose other holders cannot wait for this queue.
 */
static inline void nvmep_freeze_start_unseen(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NON_OWNER
	blk_freeze_queue_start_non_owner(queue);
#else
	blk_freeze_queue_start(queue);
#endif
}

static inline void nvmep_unfreeze_unseen(struct request_queue *queue)
{
#ifdef NVMEP_HAVE_FREEZE_NON_OWNER
	blk_mq_unfreeze_queue_non_owner(queue);
#else
	blk_mq_unfreeze_queue(queue);
#endif
}

static inline int nvmep_rq_map_kern(struct request *rq, void *buffer,
				    unsigned int length)
{
#ifdef NVMEP_HAVE_MAP_KERN_RQ
	return blk_rq_map_kern(rq, buffer, length, GFP_KERNEL);
#else
	return blk_rq_map_kern(rq->q, rq, buffer, length, GFP_KERNEL);
#endif
}

/*
 * A range of an IOMMU's addresses, into which pieces of memory are linked one behind the
 * other; they meet at pages of 4 KiB.  None where there is no such IOMMU or the kernel
 * cannot: then scatter lists are mapped.
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
				  phys_addr_t piece, size_t offset,
				  size_t length, enum dma_data_direction dir)
{
	return dma_iova_link(dev, state, piece, offset, length, dir, 0);
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
				  phys_addr_t piece, size_t offset,
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
 * For the DMA of memory that is mapped where it lies, with neither a bounce buffer nor
 * caches to flush, and else not at all: unmapping it need not ask the IOMMU where it was.
 */
#ifdef DMA_ATTR_REQUIRE_COHERENT
#define NVMEP_DMA_IN_PLACE	DMA_ATTR_REQUIRE_COHERENT
#else
#define NVMEP_DMA_IN_PLACE	0
#endif

/* May it be that what was mapped lies elsewhere, or has to be given back? */
static inline bool nvmep_dma_need_unmap(struct device *dev)
{
#ifdef NVMEP_HAVE_DMA_NEED_UNMAP
	return dma_need_unmap(dev);
#else
	return true;
#endif
}

/**
 * struct nvmep_limits - what a request queue is told about its namespace
 * @block_size: logical block, bytes
 * @physical_block_size: bytes that are written atomically or at least whole
 * @io_min: smallest sensible transfer, bytes
 * @io_opt: preferred transfer, bytes, 0 for none
 * @max_transfer: bytes of one command
 * @preferred_transfer: what the block layer asks for at most where users set nothing
 *	else, bytes, 0 for no opinion
 * @max_segments: entries of one scatter list
 * @chunk: bytes that a command should not straddle, 0 for none
 * @max_discard: bytes of one deallocate command, 0 for no support
 * @discard_granularity: bytes
 * @max_discard_ranges: ranges of one deallocate command
 * @max_write_zeroes: bytes of one Write Zeroes command, 0 for no support
 * @zeroes_deallocate: such a command gives the blocks back, and they read as zero
 * @write_cache: a volatile write cache is present
 * @fua: a write can be told to go past it
 * @virt_boundary: pieces of a request meet at multiples of this plus 1
 * @dma_alignment: mask of the bits that addresses and lengths have clear
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
	unsigned int virt_boundary;
	unsigned int dma_alignment;
};

static inline unsigned int nvmep_to_sectors(u64 bytes)
{
	return min_t(u64, bytes >> SECTOR_SHIFT, UINT_MAX);
}

/*
 * A change of limits: begin, commit, end.  Between begin and end the queue is
 * frozen, so that whatever else commands are built from may change too.
 */
struct nvmep_limits_update {
#ifdef NVMEP_HAVE_QUEUE_LIMITS
	struct queue_limits limits;
#endif
	unsigned int memflags;
};

#ifdef NVMEP_HAVE_QUEUE_LIMITS
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
	blk_mq_freeze_queue_wait(queue);
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

/* The boundary comes with the other limits here. */
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
	blk_mq_freeze_queue_wait(queue);
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

/* The command bytes of an SQE; user memory until the request went async. */
static inline const void *nvmep_uring_payload(const struct io_uring_cmd *ioucmd)
{
#ifdef NVMEP_HAVE_URING_CMD_H
	return ioucmd->sqe->cmd;
#else
	return ioucmd->cmd;
#endif
}

/*
 * The parameters of a task work function, and what it finds in them: the
 * command and the flags to complete it with.
 */
#ifdef NVMEP_HAVE_URING_TW
#define NVMEP_URING_TW_PARAMS	struct io_tw_req tw_req, io_tw_token_t tw_token
#define NVMEP_URING_TW_CMD	io_uring_cmd_from_tw(tw_req)
#define NVMEP_URING_TW_FLAGS	IO_URING_CMD_TASK_WORK_ISSUE_FLAGS
#else
#define NVMEP_URING_TW_PARAMS	struct io_uring_cmd *tw_cmd, unsigned int tw_flags
#define NVMEP_URING_TW_CMD	tw_cmd
#define NVMEP_URING_TW_FLAGS	tw_flags
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
 * Is it the command's own ring that polls, with @batch, and the task that sent it?  Where
 * the kernel cannot tell, no.
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

/* A vector into registered buffers; older kernels cannot. */
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
