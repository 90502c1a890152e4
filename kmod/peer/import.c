// SPDX-License-Identifier: GPL-2.0-only
/*
 * Importing GPU memory.
 *
 * The attachment is made with the NVMe function's own device, so that the
 * exporter maps the memory into the controller's DMA domain, and is dynamic
 * with peer2peer allowed, because that is what GPU drivers want to see before
 * they hand out video memory.  It is pinned: user space learns the addresses,
 * so they cannot change under it.
 *
 * Some exporters pin into host RAM without saying so.  So what came back is
 * looked at: each DMA address is turned into a physical one and that into the
 * PCI function whose BAR it lies in, or into RAM.
 *
 * When the exporter wants its memory back it calls us under the reservation
 * lock, where no admin command may be sent.  The callback only flags the buffer
 * and queues work; the work deletes every queue pair that could reach the
 * memory and then unmaps it.  That includes queue pairs that have their rings
 * elsewhere, once user space knows the buffer's addresses: a command in flight
 * may carry one, and deleting the queue is the only way to stop it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "core/ctrl.h"
#include "import.h"
#include "peer.h"
#include "qp.h"

/* Most buffers of one open controller node. */
#define NVMEP_MAX_BUFS		4096

/* How long an exporter may take to move its memory before the first use. */
#define NVMEP_FENCE_TIMEOUT	(10 * HZ)

/* --- placement ----------------------------------------------------------- */

static bool nvmep_is_ram(phys_addr_t address)
{
	return region_intersects(address, 1, IORESOURCE_SYSTEM_RAM,
				 IORES_DESC_NONE) == REGION_INTERSECTS;
}

static phys_addr_t nvmep_bus_to_phys(struct pci_dev *pdev, dma_addr_t address)
{
	struct pci_bus_region region = { .start = address, .end = address };
	struct resource resource = { .flags = IORESOURCE_MEM };

	pcibios_bus_to_resource(pdev->bus, &resource, &region);
	return resource.start;
}

/**
 * struct nvmep_place - where memory really lies
 * @owner: function in whose BAR it lies, with a reference; NULL for none
 * @ram: it is host RAM
 * @translated: the DMA address goes through the controller's IOMMU domain
 * @first: physical address from which on all this is true
 * @last: last physical address for which all this is true
 */
struct nvmep_place {
	struct pci_dev *owner;
	bool ram;
	bool translated;
	phys_addr_t first;
	phys_addr_t last;
};

/*
 * The physical address behind a DMA address.  One that the domain does not
 * know is a bus address: exporters use those below a common switch, and the
 * IOVA allocator keeps clear of PCI's windows.
 */
static phys_addr_t nvmep_dma_to_phys(struct nvmep_ctrl *ctrl,
				     dma_addr_t address, bool *translated)
{
	phys_addr_t phys = 0;

	if (nvmep_route_translated(ctrl->dev))
		phys = iommu_iova_to_phys(iommu_get_domain_for_dev(ctrl->dev),
					  address);
	*translated = phys != 0;
	return *translated ? phys : nvmep_bus_to_phys(ctrl->pdev, address);
}

/* The function with a memory BAR that holds @phys, with a reference. */
static void nvmep_place_bar(struct nvmep_place *place, phys_addr_t phys)
{
	struct pci_dev *pdev = NULL;
	int bar;

	for_each_pci_dev(pdev) {
		for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
			if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
			    phys < pci_resource_start(pdev, bar) ||
			    phys > pci_resource_end(pdev, bar))
				continue;
			place->owner = pdev;
			place->first = pci_resource_start(pdev, bar);
			place->last = pci_resource_end(pdev, bar);
			return;
		}
	}
}

static void nvmep_place_find(struct nvmep_place *place, phys_addr_t phys,
			     bool translated)
{
	memset(place, 0, sizeof(*place));
	place->translated = translated;
	place->first = ALIGN_DOWN(phys, PAGE_SIZE);
	place->last = place->first + PAGE_SIZE - 1;
	place->ram = nvmep_is_ram(phys);
	if (!place->ram)
		nvmep_place_bar(place, phys);
}

/*
 * Does the page at @phys lie where @place says?  Leaves @place with the extent
 * that was looked at last.
 */
static bool nvmep_place_holds(struct nvmep_place *place, phys_addr_t phys,
			      bool translated)
{
	struct nvmep_place here;
	bool same;

	if (translated != place->translated)
		return false;
	if (phys >= place->first && phys <= place->last)
		return true;

	nvmep_place_find(&here, phys, translated);
	same = here.owner == place->owner && here.ram == place->ram;
	place->first = here.first;
	place->last = here.last;
	pci_dev_put(here.owner);
	return same;
}

/*
 * Walks a segment: behind an IOMMU page by page, because it makes scattered
 * memory look contiguous; else by what is contiguous physically.
 */
static bool nvmep_segment_holds(struct nvmep_ctrl *ctrl,
				const struct nvmep_segment *segment,
				struct nvmep_place *place)
{
	phys_addr_t phys;
	bool translated;
	u64 done = 0;

	while (done < segment->length) {
		phys = nvmep_dma_to_phys(ctrl, segment->dma + done,
					 &translated);
		if (!nvmep_place_holds(place, phys, translated))
			return false;
		done += translated ? PAGE_SIZE : place->last - phys + 1;
		cond_resched();
	}
	return true;
}

/*
 * The best route between the two functions is not the one that is taken: the
 * exporter chose it when it mapped the memory.  An address that the IOMMU
 * translates passes the root complex; one that it does not know must turn
 * around before.
 */
static void nvmep_buf_route_device(struct nvmep_buf *buf,
				   const struct nvmep_place *place)
{
	struct nvmep_ctrl *ctrl = buf->ctrl;
	struct nvmep_route *route = &buf->route;

	buf->owner_address = nvmep_pci_address(place->owner);
	nvmep_route_find(ctrl->pdev, place->owner, route);

	if (place->translated && place->owner != ctrl->pdev)
		nvmep_route_through_host(ctrl->pdev, place->owner, route);
	else if (nvmep_route_translated(ctrl->dev) &&
		 route->verdict == NVME_PEER_ROUTE_HOST_BRIDGE)
		route->verdict = NVME_PEER_ROUTE_NONE;
}

/* Finds out where the buffer lies and how the controller reaches it. */
static void nvmep_buf_route(struct nvmep_buf *buf)
{
	struct nvmep_ctrl *ctrl = buf->ctrl;
	struct nvmep_place place;
	phys_addr_t phys;
	bool translated;
	u32 i;

	phys = nvmep_dma_to_phys(ctrl, buf->segments[0].dma, &translated);
	nvmep_place_find(&place, phys, translated);

	buf->owner_address = NVMEP_NO_PCI_ADDRESS;
	if (place.ram)
		nvmep_route_host_memory(&buf->route);
	else if (place.owner)
		nvmep_buf_route_device(buf, &place);
	else
		nvmep_route_unknown_memory(&buf->route);

	for (i = 0; i < buf->segment_count; i++) {
		if (nvmep_segment_holds(ctrl, &buf->segments[i], &place))
			continue;
		/* Parts of it lie elsewhere: no one answer is true. */
		nvmep_route_unknown_memory(&buf->route);
		buf->owner_address = NVMEP_NO_PCI_ADDRESS;
		break;
	}
	pci_dev_put(place.owner);
}

/* --- segments ------------------------------------------------------------ */

/*
 * Coalesces the DMA addresses of the mapping.  Called twice: first without
 * room, to count.
 */
static u32 nvmep_fill_segments(struct sg_table *sgt,
			       struct nvmep_segment *segments)
{
	struct nvmep_segment now = { };
	struct scatterlist *sg;
	u32 count = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (now.length && sg_dma_address(sg) == now.dma + now.length) {
			now.length += sg_dma_len(sg);
		} else {
			now.offset += now.length;
			now.dma = sg_dma_address(sg);
			now.length = sg_dma_len(sg);
			count++;
		}
		if (segments)
			segments[count - 1] = now;
	}
	return count;
}

/* The unit of everything is the controller page, so segments must keep to it. */
static bool nvmep_segments_aligned(const struct nvmep_buf *buf)
{
	u32 page_size = buf->ctrl->page_size;
	u32 i;

	for (i = 0; i < buf->segment_count; i++)
		if (!IS_ALIGNED(buf->segments[i].dma, page_size) ||
		    !IS_ALIGNED(buf->segments[i].length, page_size))
			return false;
	return true;
}

/*
 * Nobody syncs between two commands of a peer, so the controller has to see the
 * memory itself.  Behind an IOMMU whole pages never bounce.
 */
static bool nvmep_segments_bounce(const struct nvmep_buf *buf)
{
	struct device *dev = buf->ctrl->dev;
	u32 i;

	if (nvmep_route_translated(dev))
		return false;
	for (i = 0; i < buf->segment_count; i++)
		if (dma_need_sync(dev, buf->segments[i].dma))
			return true;
	return false;
}

/* The reservation lock is held: @sgt stays. */
static int nvmep_buf_read_segments(struct nvmep_buf *buf)
{
	const struct nvmep_segment *last;

	dma_resv_assert_held(buf->dmabuf->resv);

	buf->segment_count = nvmep_fill_segments(buf->sgt, NULL);
	if (!buf->segment_count)
		return -EINVAL;
	buf->segments = kvcalloc(buf->segment_count, sizeof(*buf->segments),
				 GFP_KERNEL);
	if (!buf->segments)
		return -ENOMEM;
	nvmep_fill_segments(buf->sgt, buf->segments);

	last = &buf->segments[buf->segment_count - 1];
	buf->length = last->offset + last->length;
	if (!nvmep_segments_aligned(buf))
		return -EINVAL;
	return nvmep_segments_bounce(buf) ? -EOPNOTSUPP : 0;
}

/**
 * nvmep_buf_segment() - find the segment that holds a byte
 * @buf: the buffer
 * @offset: of the byte, less than the buffer's length
 *
 * Return: the segment.
 */
const struct nvmep_segment *nvmep_buf_segment(const struct nvmep_buf *buf,
					      u64 offset)
{
	u32 low = 0;
	u32 high = buf->segment_count;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (buf->segments[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &buf->segments[low];
}

/* --- mapping ------------------------------------------------------------- */

/**
 * nvmep_buf_invalid() - tell whether the exporter wants its memory back
 * @buf: the buffer
 *
 * Return: true if it does; it stays so.
 */
bool nvmep_buf_invalid(const struct nvmep_buf *buf)
{
	return READ_ONCE(buf->invalid);
}

/* Under the reservation lock of an exporter: flag, queue, go. */
static void nvmep_buf_invalidate(struct dma_buf_attachment *attach)
{
	struct nvmep_buf *buf = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);

	/* Some exporters place the memory, and say so, while it is pinned. */
	if (!buf->sgt || buf->invalid)
		return;
	WRITE_ONCE(buf->invalid, true);
	queue_work(buf->ctrl->peers->invalidate_wq,
		   &buf->invalidate_work);
}

static const struct dma_buf_attach_ops nvmep_buf_attach_ops = {
	.allow_peer2peer = true,
	.nvmep_invalidate_member = nvmep_buf_invalidate,
};

/*
 * Exporters refuse a peer in several ways, one of which is no error code for
 * user space.
 */
static int nvmep_exporter_error(struct nvmep_ctrl *ctrl, int err)
{
	if (err != -EOPNOTSUPP && err != -ENOTSUPP && err != -EINVAL)
		return err;
	dev_info_ratelimited(ctrl->dev,
			     "the exporter does not let this controller reach its dma-buf (error %d)\n",
			     err);
	return -EXDEV;
}

/* Long segments do not fit into a bounce buffer: mapping them fails already. */
static int nvmep_map_error(struct nvmep_ctrl *ctrl, int err)
{
	if (!nvmep_route_translated(ctrl->dev) &&
	    dma_max_mapping_size(ctrl->dev) != SIZE_MAX)
		return -EOPNOTSUPP;
	return nvmep_exporter_error(ctrl, err);
}

static int nvmep_buf_map_locked(struct nvmep_buf *buf)
{
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(buf->dmabuf->resv);

	err = dma_buf_pin(buf->attach);
	if (err)
		return nvmep_exporter_error(buf->ctrl, err);
	buf->pinned = true;

	sgt = dma_buf_map_attachment(buf->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return nvmep_map_error(buf->ctrl, PTR_ERR(sgt));
	buf->sgt = sgt;
	return nvmep_buf_read_segments(buf);
}

static int nvmep_buf_map(struct nvmep_buf *buf)
{
	struct dma_resv *resv = buf->dmabuf->resv;
	long left;
	int err;

	err = dma_resv_lock_interruptible(resv, NULL);
	if (err)
		return err;
	err = nvmep_buf_map_locked(buf);
	dma_resv_unlock(resv);
	if (err)
		return err;

	left = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, true,
				     NVMEP_FENCE_TIMEOUT);
	if (left < 0)
		return left;
	return left ? 0 : -ETIMEDOUT;
}

/*
 * The controller no longer accesses the memory, or its user answers for it.
 */
static void nvmep_buf_unmap(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->lock);

	dma_resv_lock(buf->dmabuf->resv, NULL);
	if (buf->sgt)
		dma_buf_unmap_attachment(buf->attach, buf->sgt,
					 DMA_BIDIRECTIONAL);
	buf->sgt = NULL;
	if (buf->pinned)
		dma_buf_unpin(buf->attach);
	buf->pinned = false;
	dma_resv_unlock(buf->dmabuf->resv);
}

static void nvmep_buf_invalidate_work(struct work_struct *work)
{
	struct nvmep_buf *buf =
		container_of(work, struct nvmep_buf, invalidate_work);

	nvmep_qp_stop_users(buf);

	mutex_lock(&buf->lock);
	if (buf->attach)
		nvmep_buf_unmap(buf);
	mutex_unlock(&buf->lock);

	/*
	 * Cutting the peers off comes last: it may be this very exporter that
	 * has the doorbells mapped and waits for its memory first.
	 */
	nvmep_qp_kill_stopped(buf->ctrl);
}

/**
 * nvmep_buf_detach() - let go of the exporter's memory for good
 * @buf: the buffer; no queue pair uses it any more
 */
void nvmep_buf_detach(struct nvmep_buf *buf)
{
	mutex_lock(&buf->lock);
	if (buf->attach) {
		nvmep_buf_unmap(buf);
		dma_buf_detach(buf->dmabuf, buf->attach);
		buf->attach = NULL;
		if (atomic_dec_and_test(&buf->ctrl->peers->attached))
			wake_up_var(&buf->ctrl->peers->attached);
	}
	mutex_unlock(&buf->lock);

	/* With the attachment gone nobody queues it again. */
	cancel_work_sync(&buf->invalidate_work);
}

static void nvmep_buf_free(struct kref *ref)
{
	struct nvmep_buf *buf = container_of(ref, struct nvmep_buf, ref);

	struct nvmep_ctrl *ctrl = buf->ctrl;

	nvmep_buf_detach(buf);
	dma_buf_put(buf->dmabuf);
	nvmep_count(ctrl->peers, NVMEP_OBJECT_BUFS, -1);
	kvfree(buf->segments);
	kfree(buf);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_buf_put() - drop a reference
 * @buf: the buffer
 */
void nvmep_buf_put(struct nvmep_buf *buf)
{
	kref_put(&buf->ref, nvmep_buf_free);
}

static struct nvmep_buf *nvmep_buf_alloc(struct nvmep_peer_file *file, int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	struct nvmep_buf *buf;

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);

	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	if (!buf) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&buf->ref);
	buf->ctrl = nvmep_ctrl_get(file->ctrl);
	buf->file = file;
	buf->dmabuf = dmabuf;
	mutex_init(&buf->lock);
	INIT_LIST_HEAD(&buf->node);
	INIT_WORK(&buf->invalidate_work, nvmep_buf_invalidate_work);
	nvmep_count(file->ctrl->peers, NVMEP_OBJECT_BUFS, 1);
	return buf;
}

/**
 * nvmep_buf_import() - attach to a dma-buf, map it and find out where it lies
 * @file: the open controller node; the caller holds it, and peers->gate
 * @fd: the dma-buf
 *
 * The verdict is in the buffer; a NONE is the caller's to refuse.
 *
 * Return: the buffer without a handle, or an ERR_PTR: EBADF or EINVAL for what
 * is no dma-buf, EXDEV if the exporter does not admit the controller,
 * EOPNOTSUPP if the controller's DMA to it bounces, else what the exporter
 * said.
 */
struct nvmep_buf *nvmep_buf_import(struct nvmep_peer_file *file, int fd)
{
	struct nvmep_ctrl *ctrl = file->ctrl;
	struct dma_buf_attachment *attach;
	struct nvmep_buf *buf;
	int err;

	buf = nvmep_buf_alloc(file, fd);
	if (IS_ERR(buf))
		return buf;

	attach = dma_buf_dynamic_attach(buf->dmabuf, ctrl->dev,
					&nvmep_buf_attach_ops, buf);
	if (IS_ERR(attach)) {
		err = nvmep_exporter_error(ctrl, PTR_ERR(attach));
		goto put_buf;
	}
	buf->attach = attach;
	atomic_inc(&ctrl->peers->attached);

	err = nvmep_buf_map(buf);
	if (err)
		goto put_buf;
	nvmep_buf_route(buf);
	return buf;

put_buf:
	nvmep_buf_put(buf);
	return ERR_PTR(err);
}

/* --- handles ------------------------------------------------------------- */

/**
 * nvmep_buf_publish() - give a buffer a handle
 * @file: the open controller node that it was imported through
 * @buf: the buffer; its reference goes to the handle on success
 *
 * Return: 0, ENOSPC if the file has too many, ENOMEM, ESTALE if the exporter
 * asked for it back meanwhile.
 */
int nvmep_buf_publish(struct nvmep_peer_file *file, struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	int err;

	if (nvmep_buf_invalid(buf))
		return -ESTALE;

	/* The reset work wants this lock: memory must not wait for I/O. */
	mutex_lock(&peers->lock);
	err = xa_alloc(&file->bufs, &buf->handle, buf,
		       XA_LIMIT(1, NVMEP_MAX_BUFS), GFP_NOIO);
	if (!err)
		list_add_tail(&buf->node, &peers->bufs);
	mutex_unlock(&peers->lock);
	return err == -EBUSY ? -ENOSPC : err;
}

/**
 * nvmep_buf_lookup() - find a buffer by its handle
 * @file: the open controller node
 * @handle: the handle
 *
 * Return: the buffer with a reference, or NULL.
 */
struct nvmep_buf *nvmep_buf_lookup(struct nvmep_peer_file *file, u32 handle)
{
	struct nvmep_peers *peers = file->ctrl->peers;
	struct nvmep_buf *buf;

	mutex_lock(&peers->lock);
	buf = xa_load(&file->bufs, handle);
	if (buf)
		kref_get(&buf->ref);
	mutex_unlock(&peers->lock);
	return buf;
}

/**
 * nvmep_buf_release() - take a handle away
 * @file: the open controller node
 * @handle: the handle
 *
 * Return: 0, ENOENT, or EBUSY while a ring lies in the buffer.
 */
int nvmep_buf_release(struct nvmep_peer_file *file, u32 handle)
{
	struct nvmep_peers *peers = file->ctrl->peers;
	struct nvmep_buf *buf;
	int err = 0;

	mutex_lock(&peers->lock);
	buf = xa_load(&file->bufs, handle);
	if (!buf) {
		err = -ENOENT;
	} else if (buf->rings) {
		err = -EBUSY;
	} else {
		xa_erase(&file->bufs, handle);
		list_del_init(&buf->node);
	}
	mutex_unlock(&peers->lock);

	if (!err)
		nvmep_buf_put(buf);
	return err;
}

/**
 * nvmep_buf_claim() - note that a ring is going to lie in a buffer
 * @file: the open controller node
 * @handle: the buffer's handle
 *
 * Until nvmep_buf_unclaim() the handle cannot be released.
 *
 * Return: the buffer, or an ERR_PTR: ENOENT, ESTALE.
 */
struct nvmep_buf *nvmep_buf_claim(struct nvmep_peer_file *file, u32 handle)
{
	struct nvmep_buf *buf;

	lockdep_assert_held(&file->ctrl->peers->lock);

	buf = xa_load(&file->bufs, handle);
	if (!buf)
		return ERR_PTR(-ENOENT);
	if (nvmep_buf_invalid(buf))
		return ERR_PTR(-ESTALE);
	buf->rings++;
	return buf;
}

/**
 * nvmep_buf_unclaim() - the ring is gone
 * @buf: the buffer
 */
void nvmep_buf_unclaim(struct nvmep_buf *buf)
{
	lockdep_assert_held(&buf->ctrl->peers->lock);
	WARN_ON(!buf->rings);
	buf->rings--;
}

/**
 * nvmep_buf_expose() - the buffer's addresses are about to reach user space
 * @buf: the buffer
 *
 * From here on any queue pair of its file may access it.
 *
 * Return: 0, or ESTALE if the exporter has asked for it back.
 */
int nvmep_buf_expose(struct nvmep_buf *buf)
{
	struct nvmep_peers *peers = buf->ctrl->peers;
	int err = 0;

	mutex_lock(&peers->lock);
	if (nvmep_buf_invalid(buf))
		err = -ESTALE;
	else
		buf->exposed = true;
	mutex_unlock(&peers->lock);
	return err;
}
