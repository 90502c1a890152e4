// SPDX-License-Identifier: GPL-2.0-only
/*
 * An exporter of host memory, for kernels without udmabuf and for what udmabuf
 * cannot do: move on request, and have several segments.
 */
#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "test.h"

#define TEST_EXPORT_PAGES	1024U
#define TEST_EXPORT_TIMES	65536U

/*
 * DMA-API debugging warns if more mappings share a cache line than it can
 * count.
 */
#define TEST_MOST_MAPS		6U

#define TEST_LONGEST_HANG	(30 * HZ)

/*
 * A scattered page is the first of a block of two pages, and the device maps
 * both, so no IOVA allocator can make the addresses of two scattered pages
 * adjacent.
 */
#define TEST_SCATTER_ORDER	1U
#define TEST_SCATTER_SIZE	(PAGE_SIZE << TEST_SCATTER_ORDER)

/**
 * struct test_buffer - memory of one dma-buf
 * @scattered: const: no two pages have adjacent addresses
 * @flags: const: NVMEP_TEST_*
 * @go: ends a hang
 * @page_count: const
 * @times: const: how often a mapping names the pages, 0 means 1
 * @maps: mappings held, under the dma-buf's reservation lock
 * @direction: of the last of them, under that lock
 * @pins: times that it was pinned, under that lock
 * @mappings: times that it was mapped, under that lock
 * @arrival: signals when the memory has been moved, NULL if it is in place; set
 *	once
 * @pages: const
 */
struct test_buffer {
	bool scattered;
	u32 flags;
	struct completion go;
	unsigned int page_count;
	unsigned int times;
	unsigned int maps;
	enum dma_data_direction direction;
	unsigned int pins;
	unsigned int mappings;
	struct dma_fence *arrival;
	struct page *pages[];
};

static void test_buffer_free(struct test_buffer *buffer)
{
	unsigned int order = buffer->scattered ? TEST_SCATTER_ORDER : 0;
	unsigned int i;

	for (i = 0; i < buffer->page_count; i++)
		if (buffer->pages[i])
			__free_pages(buffer->pages[i], order);
	kvfree(buffer);
}

/*
 * One physically contiguous block, so that it is one segment without an IOMMU.
 */
static int test_fill_contiguous(struct test_buffer *buffer)
{
	unsigned int i, order = get_order(buffer->page_count << PAGE_SHIFT);
	struct page *block;

	block = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, order);
	if (!block)
		return -ENOMEM;
	split_page(block, order);
	for (i = 0; i < 1U << order; i++) {
		if (i < buffer->page_count)
			buffer->pages[i] = block + i;
		else
			__free_page(block + i);
	}
	return 0;
}

static int test_fill_scattered(struct test_buffer *buffer)
{
	unsigned int i;

	for (i = 0; i < buffer->page_count; i++) {
		buffer->pages[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO,
					       TEST_SCATTER_ORDER);
		if (!buffer->pages[i])
			return -ENOMEM;
	}
	return 0;
}

static struct test_buffer *test_buffer_alloc(unsigned int pages, bool scattered)
{
	struct test_buffer *buffer;
	int ret;

	buffer = kvzalloc(struct_size(buffer, pages, pages), GFP_KERNEL);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->page_count = pages;
	buffer->scattered = scattered;
	ret = scattered ? test_fill_scattered(buffer) :
			  test_fill_contiguous(buffer);
	if (ret) {
		test_buffer_free(buffer);
		return ERR_PTR(ret);
	}
	return buffer;
}

/* Does this entry name the device's own registers? */
static bool test_in_device(const struct test_buffer *buffer,
			   struct scatterlist *sg)
{
	return buffer->flags & NVMEP_TEST_PARTLY && sg_is_last(sg);
}

static dma_addr_t test_map_entry(const struct test_buffer *buffer,
				 struct device *dev, struct scatterlist *sg,
				 enum dma_data_direction dir)
{
	if (test_in_device(buffer, sg))
		return dma_map_resource(dev,
					pci_resource_start(to_pci_dev(dev), 0),
					PAGE_SIZE, dir, 0);
	return dma_map_page(dev, sg_page(sg), 0, TEST_SCATTER_SIZE, dir);
}

static void test_unmap_scattered(const struct test_buffer *buffer,
				 struct device *dev, struct sg_table *sgt,
				 enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_sg(sgt, sg, i)
		if (sg_dma_len(sg) && test_in_device(buffer, sg))
			dma_unmap_resource(dev, sg_dma_address(sg), PAGE_SIZE,
					   dir, 0);
		else if (sg_dma_len(sg))
			dma_unmap_page(dev, sg_dma_address(sg),
				       TEST_SCATTER_SIZE, dir);
}

static int test_map_scattered(const struct test_buffer *buffer,
			      struct device *dev, struct sg_table *sgt,
			      enum dma_data_direction dir)
{
	struct scatterlist *sg;
	dma_addr_t address;
	int i;

	for_each_sgtable_sg(sgt, sg, i)
		sg_dma_len(sg) = 0;
	for_each_sgtable_sg(sgt, sg, i) {
		address = test_map_entry(buffer, dev, sg, dir);
		if (dma_mapping_error(dev, address)) {
			test_unmap_scattered(buffer, dev, sgt, dir);
			return -EIO;
		}
		sg_dma_address(sg) = address;
		sg_dma_len(sg) = PAGE_SIZE;
	}
	return 0;
}

/*
 * Is the memory one block, which a mapping maps once and names in many entries?
 */
static bool test_is_block(const struct test_buffer *buffer)
{
	return buffer->times || buffer->flags & NVMEP_TEST_PIECES;
}

static size_t test_block_bytes(const struct test_buffer *buffer)
{
	return (size_t)buffer->page_count << PAGE_SHIFT;
}

/*
 * The entries of @sgt name the whole block repeatedly, or its pages in order.
 */
static int test_map_block(const struct test_buffer *buffer, struct device *dev,
			  struct sg_table *sgt, enum dma_data_direction dir)
{
	u32 before = buffer->flags & NVMEP_TEST_ODD_START ? 512 : 0;
	u32 behind = buffer->flags & NVMEP_TEST_ODD_END ? 512 : 0;
	size_t bytes = test_block_bytes(buffer), at = 0;
	struct scatterlist *sg;
	dma_addr_t address;
	int i;

	address = dma_map_page(dev, buffer->pages[0], 0, bytes, dir);
	if (dma_mapping_error(dev, address))
		return -EIO;
	for_each_sgtable_sg(sgt, sg, i) {
		sg_dma_address(sg) = address + at + before;
		sg_dma_len(sg) = sg->length - behind;
		at = (at + sg->length) % bytes;
	}
	return 0;
}

static void test_unmap_block(const struct test_buffer *buffer,
			     struct device *dev, struct sg_table *sgt,
			     enum dma_data_direction dir)
{
	dma_addr_t address = sg_dma_address(sgt->sgl);

	dma_unmap_page(dev, address & PAGE_MASK, test_block_bytes(buffer), dir);
}

static int test_repeated_table(const struct test_buffer *buffer,
			       struct sg_table *sgt)
{
	struct scatterlist *sg;
	int i, ret;

	ret = sg_alloc_table(sgt, buffer->times, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i)
		sg_set_page(sg, buffer->pages[0], test_block_bytes(buffer), 0);
	return 0;
}

static int test_buffer_table(const struct test_buffer *buffer,
			     struct sg_table *sgt)
{
	if (buffer->times)
		return test_repeated_table(buffer, sgt);
	/* Segments of one page each, also where pages are adjacent. */
	return sg_alloc_table_from_pages_segment(sgt,
			(struct page **)buffer->pages, buffer->page_count, 0,
			(unsigned long)buffer->page_count << PAGE_SHIFT,
			buffer->scattered || buffer->flags & NVMEP_TEST_PIECES ?
			PAGE_SIZE : UINT_MAX & PAGE_MASK,
			GFP_KERNEL);
}

static void test_hang(struct test_buffer *buffer, u32 where)
{
	if (buffer->flags & where)
		wait_for_completion_timeout(&buffer->go, TEST_LONGEST_HANG);
}

static struct sg_table *test_map_dma_buf(struct dma_buf_attachment *attachment,
					 enum dma_data_direction dir)
{
	struct test_buffer *buffer = attachment->dmabuf->priv;
	struct sg_table *sgt;
	int ret;

	if (buffer->maps == TEST_MOST_MAPS)
		return ERR_PTR(-EBUSY);
	test_hang(buffer, NVMEP_TEST_HANG_MAP);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = test_buffer_table(buffer, sgt);
	if (ret)
		goto err_free;
	if (test_is_block(buffer))
		ret = test_map_block(buffer, attachment->dev, sgt, dir);
	else if (buffer->scattered)
		ret = test_map_scattered(buffer, attachment->dev, sgt, dir);
	else
		ret = dma_map_sgtable(attachment->dev, sgt, dir, 0);
	if (ret)
		goto err_table;
	buffer->maps++;
	buffer->mappings++;
	buffer->direction = dir;
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void test_unmap_dma_buf(struct dma_buf_attachment *attachment,
			       struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	struct test_buffer *buffer = attachment->dmabuf->priv;

	buffer->maps--;
	if (test_is_block(buffer))
		test_unmap_block(buffer, attachment->dev, sgt, dir);
	else if (buffer->scattered)
		test_unmap_scattered(buffer, attachment->dev, sgt, dir);
	else
		dma_unmap_sgtable(attachment->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int test_pin_dma_buf(struct dma_buf_attachment *attachment)
{
	struct test_buffer *buffer = attachment->dmabuf->priv;

	dma_resv_assert_held(attachment->dmabuf->resv);
	buffer->pins++;
	test_hang(attachment->dmabuf->priv, NVMEP_TEST_HANG_PIN);
	return 0;
}

static void test_unpin_dma_buf(struct dma_buf_attachment *attachment)
{
	dma_resv_assert_held(attachment->dmabuf->resv);
}

static int test_mmap_dma_buf(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct test_buffer *buffer = dmabuf->priv;
	unsigned long i, count = vma_pages(vma);
	int ret;

	if (vma->vm_pgoff || count > buffer->page_count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		ret = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     buffer->pages[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void test_release_dma_buf(struct dma_buf *dmabuf)
{
	struct test_buffer *buffer = dmabuf->priv;

	test_fence_end(buffer->arrival);
	test_buffer_free(buffer);
}

static int test_refuse_dma_buf(struct dma_buf *dmabuf,
			       struct dma_buf_attachment *attachment)
{
	return -EOPNOTSUPP;
}

static const struct dma_buf_ops test_refusing_ops = {
	.attach = test_refuse_dma_buf,
	.map_dma_buf = test_map_dma_buf,
	.unmap_dma_buf = test_unmap_dma_buf,
	.release = test_release_dma_buf,
};

static const struct dma_buf_ops test_moving_ops = {
	.map_dma_buf = test_map_dma_buf,
	.unmap_dma_buf = test_unmap_dma_buf,
	.pin = test_pin_dma_buf,
	.unpin = test_unpin_dma_buf,
	.mmap = test_mmap_dma_buf,
	.release = test_release_dma_buf,
};

static const struct dma_buf_ops test_fixed_ops = {
	.map_dma_buf = test_map_dma_buf,
	.unmap_dma_buf = test_unmap_dma_buf,
	.mmap = test_mmap_dma_buf,
	.release = test_release_dma_buf,
};

static const struct dma_buf_ops *test_export_ops(u32 flags)
{
	if (flags & NVMEP_TEST_REFUSE)
		return &test_refusing_ops;
	return flags & NVMEP_TEST_NO_PIN ? &test_fixed_ops : &test_moving_ops;
}

/*
 * Attach a fence to the memory, if that was requested: importers have to wait
 * for it.
 */
static int test_send(struct dma_buf *dmabuf)
{
	struct test_buffer *buffer = dmabuf->priv;
	struct dma_fence *arrival;

	if (!(buffer->flags & NVMEP_TEST_MOVING))
		return 0;
	arrival = test_fence_add(dmabuf, DMA_RESV_USAGE_KERNEL);
	if (IS_ERR(arrival))
		return PTR_ERR(arrival);
	buffer->arrival = arrival;
	return 0;
}

int test_export(struct nvmep_test_export *export)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct test_buffer *buffer;
	struct dma_buf *dmabuf;
	int fd, ret;

	if (!export->pages || export->pages > TEST_EXPORT_PAGES ||
	    export->times > TEST_EXPORT_TIMES ||
	    (export->times &&
	     export->flags & (NVMEP_TEST_SCATTERED | NVMEP_TEST_PIECES)))
		return -EINVAL;
	buffer = test_buffer_alloc(export->pages,
				   export->flags & NVMEP_TEST_SCATTERED);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	buffer->times = export->times;
	buffer->flags = export->flags;
	init_completion(&buffer->go);
	info.ops = test_export_ops(export->flags);
	info.size = (size_t)export->pages << PAGE_SHIFT;
	if (export->times)
		info.size *= export->times;
	info.flags = export->flags & NVMEP_TEST_READ_ONLY ? O_RDONLY : O_RDWR;
	info.flags |= O_CLOEXEC;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		test_buffer_free(buffer);
		return PTR_ERR(dmabuf);
	}
	ret = test_send(dmabuf);
	if (ret) {
		dma_buf_put(dmabuf);
		return ret;
	}
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(dmabuf);
		return fd;
	}
	export->fd = fd;
	return 0;
}

/*
 * Invalidate the importers of @move->fd if @notify; report the mappings that
 * are left.
 */
int test_move(struct nvmep_test_move *move, bool notify)
{
	struct dma_buf *dmabuf = dma_buf_get(move->fd);
	struct test_buffer *buffer;
	int ret = 0;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (dmabuf->ops != &test_moving_ops &&
	    (notify || dmabuf->ops != &test_fixed_ops)) {
		ret = -EINVAL;
		goto out;
	}
	buffer = dmabuf->priv;
	dma_resv_lock(dmabuf->resv, NULL);
	if (notify)
		nvmep_dma_buf_invalidate(dmabuf);
	/*
	 * An importer must not unmap in its callback, which runs under the
	 * reservation lock.
	 */
	move->maps = buffer->maps;
	move->direction = buffer->direction;
	move->pins = buffer->pins;
	move->mappings = buffer->mappings;
	dma_resv_unlock(dmabuf->resv);
out:
	dma_buf_put(dmabuf);
	return ret;
}

/*
 * The reservation lock cannot be taken during a hang, so this does not take it.
 */
int test_let_go(const struct nvmep_test_move *move)
{
	struct dma_buf *dmabuf = dma_buf_get(move->fd);
	struct test_buffer *buffer;
	int ret = -EINVAL;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (dmabuf->ops == &test_moving_ops || dmabuf->ops == &test_fixed_ops) {
		buffer = dmabuf->priv;
		complete_all(&buffer->go);
		if (buffer->arrival)
			dma_fence_signal(buffer->arrival);
		ret = 0;
	}
	dma_buf_put(dmabuf);
	return ret;
}
