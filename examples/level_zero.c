// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * level_zero.c: the CPU submits reads by io_uring whose data goes to memory of
 * an Intel GPU.  The GPU's driver decides where the memory is once it has been
 * exported.
 *
 *	cc level_zero.c $(pkg-config --cflags --libs libnvmepeer) -luring -lze_loader
 */
#include <stdio.h>
#include <unistd.h>

#include <level_zero/ze_api.h>
#include <nvmepeer_uring.h>

enum { BYTES = 1 << 20 };

static int fail(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

/* Memory of the first GPU of the first driver, as a dma-buf; or -1. */
static int gpu_memory(void)
{
	ze_external_memory_export_desc_t exported = {
		.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
		.flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
	};
	ze_device_mem_alloc_desc_t kind = {
		.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
		.pNext = &exported,
	};
	ze_external_memory_export_fd_t dmabuf = {
		.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD,
		.flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
	};
	ze_memory_allocation_properties_t properties = {
		.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
		.pNext = &dmabuf,
	};
	ze_context_desc_t description = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	ze_context_handle_t context;
	ze_driver_handle_t driver;
	ze_device_handle_t device;
	uint32_t one = 1;
	void *memory;

	if (zeInit(0) || zeDriverGet(&one, &driver) || zeDeviceGet(driver, &one, &device) ||
	    zeContextCreate(driver, &description, &context) ||
	    zeMemAllocDevice(context, &kind, BYTES, 4096, device, &memory) ||
	    zeMemGetAllocProperties(context, memory, &properties, NULL))
		return -1;
	return dmabuf.fd;
}

static int read_one(struct nvmepeer *ctrl, const struct nvmepeer_ns *ns, uint32_t handle)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (nvmepeer_uring_init(&ring, 1))
		return fail();
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		return 1;
	nvmepeer_prep_buf_rw(sqe, ctrl, nvmepeer_ns_info(ns)->nsid,
			     NVMEPEER_OP_READ, 0, 1, handle, 0);
	if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_wait_cqe(&ring, &cqe))
		return 1;
	printf("read: %d\n", cqe->res);
	return cqe->res != 0;
}

int main(void)
{
	struct nvme_peer_buf_import buffer;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	int dmabuf;

	if (nvmepeer_open("nvmep0", &ctrl) || nvmepeer_ns_open("ngp0n1", &ns))
		return fail();
	dmabuf = gpu_memory();
	if (dmabuf < 0)
		return fprintf(stderr, "cannot export GPU memory\n"), 1;
	/*
	 * With NVME_PEER_BUF_REQUIRE_DEVICE, memory in host RAM would be
	 * refused.
	 */
	if (nvmepeer_buf_import(ctrl, dmabuf, 0, &buffer, sizeof(buffer)))
		return fail();
	close(dmabuf);
	printf("placement of the memory: %s\n", nvmepeer_verdict_name(buffer.verdict));
	return read_one(ctrl, ns, buffer.handle);
}
