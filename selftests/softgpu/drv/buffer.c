// SPDX-License-Identifier: GPL-2.0-only
/*
 * Export of GPU memory as dma-bufs, like drivers of real GPUs: without struct page, mapped by
 * dma_map_resource() for each importer, movable, revocable.
 */
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/pfn.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "buffer.h"
#include "device.h"
#include "mmu.h"

#define SCATTERED_PIECES	4
#define FAULT_AROUND		64

/* DMA-API debugging warns if more mappings than this share a cache line. */
#define SOFTGPU_MOST_MAPS	6

/**
 * struct softgpu_buffer - memory and its dma-buf
 * @gpu: const, referenced
 * @dmabuf: const: owns the buffer; its file may be freed before it
 * @dentry: const: of @dmabuf, which is released with it
 * @size: const: bytes
 * @remapped: const: addressed through the page table
 * @window: const: in the window, which the CPU cannot access
 * @pages: const: host memory, NULL for HBM
 * @page_dma: const: DMA addresses of @pages for the GPU
 * @node: in softgpu.buffers, under softgpu.lock
 * @revoked: under softgpu.lock: the device was removed and the memory revoked
 * @pieces: HBM; under the reservation lock, like all following fields
 * @piece_count: entries of @pieces
 * @address: GPU address
 * @gone: no new mappings any more
 * @moving: no new mappings during a move
 * @maps: mappings of importers
 * @pins: pins of importers
 * @unmapped: woken when @maps becomes 0
 */
struct softgpu_buffer {
	struct softgpu *gpu;
	struct dma_buf *dmabuf;
	struct dentry *dentry;
	u64 size;
	bool remapped;
	bool window;
	struct page **pages;
	dma_addr_t *page_dma;
	struct list_head node;
	bool revoked;
	struct softgpu_piece pieces[SCATTERED_PIECES];
	unsigned int piece_count;
	u64 address;
	bool gone;
	bool moving;
	unsigned int maps;
	unsigned int pins;
	wait_queue_head_t unmapped;
};

/* --- Mappings for importers ---------------------------------------------- */

static int softgpu_map_hbm(struct softgpu_buffer *buffer, struct device *dev,
			   struct sg_table *sgt, enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i, ret;

	ret = sg_alloc_table(sgt, buffer->piece_count, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		const struct softgpu_piece *piece = &buffer->pieces[i];
		dma_addr_t address;

		address = dma_map_resource(dev, buffer->gpu->hbm_phys +
					   piece->offset, piece->length, dir,
					   DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(dev, address))
			goto err_unmap;
		sg_set_page(sg, NULL, piece->length, 0);
		sg_dma_address(sg) = address;
		sg_dma_len(sg) = piece->length;
	}
	return 0;

err_unmap:
	sgt->nents = i;
	for_each_sgtable_dma_sg(sgt, sg, i)
		dma_unmap_resource(dev, sg_dma_address(sg), sg_dma_len(sg), dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	return -EIO;
}

static int softgpu_map_pages(struct softgpu_buffer *buffer, struct device *dev,
			     struct sg_table *sgt, enum dma_data_direction dir)
{
	int ret = sg_alloc_table_from_pages(sgt, buffer->pages,
					    buffer->size >> PAGE_SHIFT, 0,
					    buffer->size, GFP_KERNEL);

	if (ret)
		return ret;
	ret = dma_map_sgtable(dev, sgt, dir, 0);
	if (ret)
		sg_free_table(sgt);
	return ret;
}

static struct sg_table *softgpu_map_dma_buf(struct dma_buf_attachment *attach,
					    enum dma_data_direction dir)
{
	struct softgpu_buffer *buffer = attach->dmabuf->priv;
	struct sg_table *sgt;
	int ret;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (buffer->gone)
		return ERR_PTR(-ENODEV);
	if (buffer->moving)
		return ERR_PTR(-EBUSY);
	if (buffer->pages && buffer->maps == SOFTGPU_MOST_MAPS)
		return ERR_PTR(-EBUSY);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	if (buffer->pages)
		ret = softgpu_map_pages(buffer, attach->dev, sgt, dir);
	else
		ret = softgpu_map_hbm(buffer, attach->dev, sgt, dir);
	if (ret) {
		kfree(sgt);
		return ERR_PTR(ret);
	}
	buffer->maps++;
	return sgt;
}

static void softgpu_unmap_dma_buf(struct dma_buf_attachment *attach,
				  struct sg_table *sgt,
				  enum dma_data_direction dir)
{
	struct softgpu_buffer *buffer = attach->dmabuf->priv;
	struct scatterlist *sg;
	int i;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (buffer->pages)
		dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	else
		for_each_sgtable_dma_sg(sgt, sg, i)
			dma_unmap_resource(attach->dev, sg_dma_address(sg),
					   sg_dma_len(sg), dir,
					   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(sgt);
	if (!--buffer->maps)
		wake_up_all(&buffer->unmapped);
}

/* A dynamic importer must support peer-to-peer addresses, as NVIDIA's driver requires. */
static int softgpu_attach(struct dma_buf *dmabuf,
			  struct dma_buf_attachment *attach)
{
	struct softgpu_buffer *buffer = dmabuf->priv;

	if (!buffer->pages && attach->importer_ops && !attach->peer2peer)
		return -EOPNOTSUPP;
	return 0;
}

static int softgpu_pin(struct dma_buf_attachment *attach)
{
	struct softgpu_buffer *buffer = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (buffer->gone)
		return -ENODEV;
	buffer->pins++;
	return 0;
}

static void softgpu_unpin(struct dma_buf_attachment *attach)
{
	struct softgpu_buffer *buffer = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	buffer->pins--;
}

/* --- Mappings for the CPU ------------------------------------------------ */

/* Page frame @index of the buffer; called with the reservation lock held. */
static unsigned long softgpu_frame(const struct softgpu_buffer *buffer,
				   unsigned long index)
{
	u64 offset = (u64)index << PAGE_SHIFT;
	unsigned int i;

	if (buffer->pages)
		return page_to_pfn(buffer->pages[index]);
	for (i = 0; offset >= buffer->pieces[i].length; i++)
		offset -= buffer->pieces[i].length;
	return PHYS_PFN(buffer->gpu->hbm_phys + buffer->pieces[i].offset +
			offset);
}

static vm_fault_t softgpu_insert(struct vm_area_struct *vma,
				 const struct softgpu_buffer *buffer,
				 unsigned long address)
{
	unsigned long index = (address - vma->vm_start) >> PAGE_SHIFT;
	pgprot_t prot = vma->vm_page_prot;

	if (!buffer->pages)
		prot = pgprot_writecombine(prot);
	return vmf_insert_pfn_prot(vma, address,
				   softgpu_frame(buffer, vma->vm_pgoff + index),
				   prot);
}

static vm_fault_t softgpu_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct softgpu_buffer *buffer = vma->vm_private_data;
	unsigned long address = vmf->address & PAGE_MASK;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned int i;

	atomic64_inc(&buffer->gpu->cpu_maps);
	dma_resv_lock(buffer->dmabuf->resv, NULL);
	if (!buffer->gone)
		ret = softgpu_insert(vma, buffer, address);
	for (i = 1; i < FAULT_AROUND && ret == VM_FAULT_NOPAGE; i++) {
		address += PAGE_SIZE;
		if (address >= vma->vm_end ||
		    softgpu_insert(vma, buffer, address) != VM_FAULT_NOPAGE)
			break;
	}
	dma_resv_unlock(buffer->dmabuf->resv);
	return ret;
}

static const struct vm_operations_struct softgpu_vm_ops = {
	.fault = softgpu_fault,
};

/* The dma-buf core has checked the range. */
static int softgpu_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct softgpu_buffer *buffer = dmabuf->priv;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (buffer->window)
		return -ENXIO;
	atomic64_inc(&buffer->gpu->cpu_maps);
	nvmep_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND |
			   VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = buffer;
	vma->vm_ops = &softgpu_vm_ops;
	return 0;
}

static void softgpu_zap(struct softgpu_buffer *buffer)
{
	unmap_mapping_range(d_inode(buffer->dentry)->i_mapping, 0, 0, 1);
}

/* --- Memory -------------------------------------------------------------- */

static void softgpu_free_pieces(struct softgpu_buffer *buffer)
{
	while (buffer->piece_count)
		softgpu_hbm_free(buffer->gpu,
				 &buffer->pieces[--buffer->piece_count]);
}

/* Allocate @count pieces with a gap of one page between any two of them. */
static int softgpu_get_pieces(struct softgpu_buffer *buffer, unsigned int count)
{
	struct softgpu_piece gaps[SCATTERED_PIECES];
	u64 each = buffer->size / count & PAGE_MASK, left = buffer->size;
	unsigned int i, gap_count = 0;
	int ret = 0;

	for (i = 0; i < count && !ret; i++) {
		ret = softgpu_hbm_alloc(buffer->gpu,
					i == count - 1 ? left : each,
					buffer->window, &buffer->pieces[i]);
		if (ret)
			break;
		buffer->piece_count++;
		left -= each;
		if (i == count - 1)
			break;
		ret = softgpu_hbm_alloc(buffer->gpu, PAGE_SIZE, false, &gaps[i]);
		if (!ret)
			gap_count++;
	}
	while (gap_count)
		softgpu_hbm_free(buffer->gpu, &gaps[--gap_count]);
	if (ret)
		softgpu_free_pieces(buffer);
	return ret;
}

static void softgpu_clear_pieces(struct softgpu_buffer *buffer)
{
	unsigned int i;

	for (i = 0; i < buffer->piece_count; i++)
		memset_io(buffer->gpu->hbm + buffer->pieces[i].offset, 0,
			  buffer->pieces[i].length);
}

static void softgpu_free_pages(struct softgpu_buffer *buffer)
{
	unsigned long i;

	for (i = 0; buffer->pages && i < buffer->size >> PAGE_SHIFT; i++)
		if (buffer->pages[i])
			__free_page(buffer->pages[i]);
	kvfree(buffer->page_dma);
	kvfree(buffer->pages);
}

/* Unmap the first @count pages from the GPU. */
static void softgpu_unmap_own(struct softgpu_buffer *buffer,
			      unsigned long count)
{
	while (count--)
		dma_unmap_page(&buffer->gpu->pdev->dev,
			       buffer->page_dma[count], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
}

static int softgpu_get_pages(struct softgpu_buffer *buffer)
{
	struct device *dev = &buffer->gpu->pdev->dev;
	unsigned long count = buffer->size >> PAGE_SHIFT, i;

	buffer->pages = kvcalloc(count, sizeof(*buffer->pages), GFP_KERNEL);
	buffer->page_dma = kvcalloc(count, sizeof(*buffer->page_dma),
				    GFP_KERNEL);
	if (!buffer->pages || !buffer->page_dma)
		goto err_free;
	for (i = 0; i < count; i++) {
		buffer->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!buffer->pages[i])
			goto err_unmap;
		buffer->page_dma[i] = dma_map_page(dev, buffer->pages[i], 0,
						   PAGE_SIZE,
						   DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev, buffer->page_dma[i]))
			goto err_unmap;
	}
	return 0;

err_unmap:
	softgpu_unmap_own(buffer, i);
err_free:
	softgpu_free_pages(buffer);
	return -ENOMEM;
}

/* Map the pieces or pages at GPU addresses. */
static int softgpu_remap(struct softgpu_buffer *buffer)
{
	struct softgpu *gpu = buffer->gpu;
	u64 offset = 0, i;
	int ret = softgpu_va_alloc(gpu, buffer->size, &buffer->address);

	if (ret)
		return ret;
	for (i = 0; i < buffer->piece_count; i++) {
		softgpu_mmu_map(gpu, buffer->address + offset,
				buffer->pieces[i].offset,
				buffer->pieces[i].length,
				SOFTGPU_PTE_HBM | SOFTGPU_PTE_WRITE);
		offset += buffer->pieces[i].length;
	}
	for (i = 0; buffer->pages && i < buffer->size >> PAGE_SHIFT; i++)
		softgpu_mmu_map(gpu, buffer->address + (i << PAGE_SHIFT),
				buffer->page_dma[i], PAGE_SIZE,
				SOFTGPU_PTE_WRITE);
	return 0;
}

static int softgpu_get_memory(struct softgpu_buffer *buffer, u32 flags)
{
	unsigned int count = 1;
	int ret;

	buffer->window = flags & SOFTGPU_ALLOC_WINDOW;
	buffer->remapped = flags & ~SOFTGPU_ALLOC_WINDOW;
	if (flags & SOFTGPU_ALLOC_SYSTEM) {
		ret = softgpu_get_pages(buffer);
	} else {
		if (flags & SOFTGPU_ALLOC_SCATTERED)
			count = min_t(u64, SCATTERED_PIECES,
				      buffer->size >> PAGE_SHIFT);
		ret = softgpu_get_pieces(buffer, count);
	}
	if (ret)
		return ret;
	if (!buffer->window)
		softgpu_clear_pieces(buffer);
	buffer->address = buffer->gpu->hbm_va + buffer->pieces[0].offset;
	if (!buffer->remapped)
		return 0;
	ret = softgpu_remap(buffer);
	if (ret) {
		softgpu_free_pieces(buffer);
		if (buffer->pages) {
			softgpu_unmap_own(buffer, buffer->size >> PAGE_SHIFT);
			softgpu_free_pages(buffer);
		}
	}
	return ret;
}

/*
 * Unmap the memory from the GPU. The device may be being removed, and waits for this.
 */
static void softgpu_withdraw(struct softgpu_buffer *buffer)
{
	struct softgpu *gpu = buffer->gpu;

	down_read(&gpu->hw_lock);
	if (buffer->remapped)
		softgpu_mmu_unmap(gpu, buffer->address, buffer->size);
	if (buffer->pages)
		softgpu_unmap_own(buffer, buffer->size >> PAGE_SHIFT);
	up_read(&gpu->hw_lock);
}

static void softgpu_put_memory(struct softgpu_buffer *buffer)
{
	if (buffer->remapped)
		softgpu_va_free(buffer->gpu, buffer->address, buffer->size);
	softgpu_free_pieces(buffer);
	softgpu_free_pages(buffer);
}

static void softgpu_buffer_release(struct dma_buf *dmabuf)
{
	struct softgpu_buffer *buffer = dmabuf->priv;
	struct softgpu *gpu = buffer->gpu;
	bool revoked;

	mutex_lock(&gpu->lock);
	revoked = buffer->revoked;
	mutex_unlock(&gpu->lock);
	if (!revoked)
		softgpu_withdraw(buffer);
	softgpu_put_memory(buffer);
	mutex_lock(&gpu->lock);
	list_del(&buffer->node);
	mutex_unlock(&gpu->lock);
	wake_up_all(&gpu->buffers_wait);
	kfree(buffer);
	softgpu_put(gpu);
}

static const struct dma_buf_ops softgpu_buffer_ops = {
	.attach = softgpu_attach,
	.pin = softgpu_pin,
	.unpin = softgpu_unpin,
	.map_dma_buf = softgpu_map_dma_buf,
	.unmap_dma_buf = softgpu_unmap_dma_buf,
	.mmap = softgpu_mmap,
	.release = softgpu_buffer_release,
};

bool softgpu_owns(const struct softgpu *gpu, const struct dma_buf *dmabuf)
{
	const struct softgpu_buffer *buffer = dmabuf->priv;

	return dmabuf->ops == &softgpu_buffer_ops && buffer->gpu == gpu;
}

/* --- Allocation ---------------------------------------------------------- */

static struct softgpu_buffer *softgpu_buffer_new(struct softgpu *gpu, u64 size,
						 u32 flags)
{
	struct softgpu_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	int ret;

	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->gpu = gpu;
	buffer->size = size;
	init_waitqueue_head(&buffer->unmapped);
	ret = softgpu_get_memory(buffer, flags);
	if (ret) {
		kfree(buffer);
		return ERR_PTR(ret);
	}
	return buffer;
}

/* On success the dma-buf owns the buffer; on failure the caller does. */
static int softgpu_buffer_export(struct softgpu_buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct softgpu *gpu = buffer->gpu;
	struct dma_buf *dmabuf;

	info.ops = &softgpu_buffer_ops;
	info.size = buffer->size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	buffer->dmabuf = dmabuf;
	buffer->dentry = dmabuf->file->f_path.dentry;
	kref_get(&gpu->ref);
	mutex_lock(&gpu->lock);
	list_add_tail(&buffer->node, &gpu->buffers);
	mutex_unlock(&gpu->lock);
	return 0;
}

int softgpu_alloc(struct softgpu_file *file, struct softgpu_alloc *alloc)
{
	struct softgpu *gpu = file->gpu;
	u64 size = PAGE_ALIGN(alloc->size);
	struct softgpu_buffer *buffer;
	int ret;

	lockdep_assert_held(&gpu->hw_lock);
	if (!size || size < alloc->size || size > SZ_1G ||
	    (alloc->flags & ~(SOFTGPU_ALLOC_SYSTEM | SOFTGPU_ALLOC_SCATTERED) &&
	     alloc->flags != SOFTGPU_ALLOC_WINDOW))
		return -EINVAL;
	buffer = softgpu_buffer_new(gpu, size, alloc->flags);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	ret = softgpu_buffer_export(buffer);
	if (ret) {
		if (buffer->remapped)
			softgpu_mmu_unmap(gpu, buffer->address, size);
		if (buffer->pages)
			softgpu_unmap_own(buffer, size >> PAGE_SHIFT);
		softgpu_put_memory(buffer);
		kfree(buffer);
		return ret;
	}
	alloc->size = size;
	alloc->address = buffer->address;
	ret = dma_buf_fd(buffer->dmabuf, O_CLOEXEC);
	if (ret < 0) {
		/* The release runs on return to user space, not under hw_lock. */
		dma_buf_put(buffer->dmabuf);
		return ret;
	}
	alloc->fd = ret;
	return 0;
}

/* --- Moving and revoking ------------------------------------------------- */

/* Invalidate importers and wait until they have unmapped the buffer. */
static int softgpu_evict(struct softgpu_buffer *buffer)
{
	struct dma_resv *resv = buffer->dmabuf->resv;

	dma_resv_lock(resv, NULL);
	nvmep_dma_buf_invalidate(buffer->dmabuf);
	dma_resv_unlock(resv);
	dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false,
			      SOFTGPU_RELEASE_TIMEOUT);
	if (!wait_event_timeout(buffer->unmapped, !READ_ONCE(buffer->maps),
				SOFTGPU_RELEASE_TIMEOUT))
		return -ETIMEDOUT;
	return 0;
}

/* Begin a move, if it is allowed: no new mappings until its end. */
static int softgpu_move_begin(struct softgpu_buffer *buffer, u32 flags)
{
	int ret = -EBUSY;

	dma_resv_lock(buffer->dmabuf->resv, NULL);
	if (!buffer->moving &&
	    (!buffer->pins || flags & SOFTGPU_MOVE_FORCE)) {
		buffer->moving = true;
		ret = 0;
	}
	dma_resv_unlock(buffer->dmabuf->resv);
	return ret;
}

static void softgpu_copy_hbm(struct softgpu *gpu, u64 to, u64 from, u64 length)
{
	u64 i;

	for (i = 0; i < length; i += sizeof(u64))
		__raw_writeq(__raw_readq(gpu->hbm + from + i),
			     gpu->hbm + to + i);
}

/* Move it to @piece, which receives the old piece. */
static void softgpu_move_to(struct softgpu_buffer *buffer,
			    struct softgpu_piece *piece)
{
	dma_resv_lock(buffer->dmabuf->resv, NULL);
	softgpu_zap(buffer);
	softgpu_copy_hbm(buffer->gpu, piece->offset, buffer->pieces[0].offset,
			 buffer->size);
	swap(buffer->pieces[0], *piece);
	buffer->address = buffer->gpu->hbm_va + buffer->pieces[0].offset;
	dma_resv_unlock(buffer->dmabuf->resv);
}

static int softgpu_buffer_move(struct softgpu_buffer *buffer,
			       struct softgpu_move *move)
{
	struct softgpu_piece piece;
	int ret;

	if (buffer->remapped || buffer->window || move->flags & ~SOFTGPU_MOVE_FORCE)
		return -EINVAL;
	ret = softgpu_hbm_alloc(buffer->gpu, buffer->size, false, &piece);
	if (ret)
		return ret;
	ret = softgpu_move_begin(buffer, move->flags);
	if (ret)
		goto out_free;
	ret = softgpu_evict(buffer);
	if (!ret)
		softgpu_move_to(buffer, &piece);
	dma_resv_lock(buffer->dmabuf->resv, NULL);
	buffer->moving = false;
	move->address = buffer->address;
	dma_resv_unlock(buffer->dmabuf->resv);
out_free:
	softgpu_hbm_free(buffer->gpu, &piece);
	return ret;
}

int softgpu_move(struct softgpu_file *file, struct softgpu_move *move)
{
	struct dma_buf *dmabuf = dma_buf_get(move->fd);
	int ret = -EINVAL;

	lockdep_assert_held(&file->gpu->hw_lock);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (softgpu_owns(file->gpu, dmabuf))
		ret = softgpu_buffer_move(dmabuf->priv, move);
	dma_buf_put(dmabuf);
	return ret;
}

static void softgpu_buffer_revoke(struct softgpu_buffer *buffer)
{
	struct softgpu *gpu = buffer->gpu;

	dma_resv_lock(buffer->dmabuf->resv, NULL);
	buffer->gone = true;
	dma_resv_unlock(buffer->dmabuf->resv);
	softgpu_zap(buffer);
	if (softgpu_evict(buffer))
		pci_err(gpu->pdev, "an importer did not let go of %llu bytes\n",
			buffer->size);
	softgpu_withdraw(buffer);
	mutex_lock(&gpu->lock);
	buffer->revoked = true;
	mutex_unlock(&gpu->lock);
}

/*
 * A buffer that is not revoked yet, with a reference to the dentry of its dma-buf, or NULL. Its
 * file may be gone.
 */
static struct softgpu_buffer *softgpu_next_buffer(struct softgpu *gpu)
{
	struct softgpu_buffer *buffer, *found = NULL;

	mutex_lock(&gpu->lock);
	list_for_each_entry(buffer, &gpu->buffers, node) {
		if (!buffer->revoked && lockref_get_not_dead(&buffer->dentry->d_lockref)) {
			found = buffer;
			break;
		}
	}
	mutex_unlock(&gpu->lock);
	return found;
}

static bool softgpu_all_revoked(struct softgpu *gpu)
{
	struct softgpu_buffer *buffer;
	bool all = true;

	mutex_lock(&gpu->lock);
	list_for_each_entry(buffer, &gpu->buffers, node)
		all = all && buffer->revoked;
	mutex_unlock(&gpu->lock);
	return all;
}

void softgpu_buffers_revoke(struct softgpu *gpu)
{
	struct softgpu_buffer *buffer;

	while ((buffer = softgpu_next_buffer(gpu))) {
		softgpu_buffer_revoke(buffer);
		dput(buffer->dentry);
	}
	/* Wait for buffers whose release was in progress. */
	wait_event(gpu->buffers_wait, softgpu_all_revoked(gpu));
}
