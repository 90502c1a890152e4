// SPDX-License-Identifier: MIT OR GPL-2.0
// minimal.hip: threads of an AMD GPU read from an NVMe namespace without the CPU. Rings, shared
// state and data are in one allocation of GPU memory. It is fine-grained: in coarse-grained memory a
// kernel may read its own cached copy of the completion ring until it ends.
// hipcc -x hip minimal.hip $(pkg-config --cflags --libs libnvmepeer) -lhsa-runtime64
#include <cstdio>
#include <hip/hip_runtime.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <nvmepeer_peer.h>
#include <unistd.h>

enum { ENTRIES = 128, READS = 64, STEP = 4096 };

// Offsets in that memory.
enum { SQ = 0, CQ = 64 << 10, STATE = 128 << 10, DATA = 1 << 20, STATUS = 3 << 19, BYTES = 2 << 20 };

__global__ void start(nvmepeer_queue queue)
{
	nvmepeer_queue_reset(&queue);
}

__global__ void read_blocks(nvmepeer_queue queue, nvmepeer_buffer data, int *status)
{
	status[threadIdx.x] = nvmepeer_read(&queue, &data, threadIdx.x * STEP, threadIdx.x, 1);
}

static int fail()
{
	nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "%s: %s. %s. %s.\n", why.call, why.what, why.limit, why.help);
	return 1;
}

// Imports the memory into the controller; host memory would be refused.
static int import(nvmepeer *ctrl, char *memory, uint32_t *handle)
{
	nvme_peer_buf_import buffer = {};

	buffer.flags = NVME_PEER_BUF_REQUIRE_DEVICE;
	buffer.length = BYTES;
	if (hsa_amd_portable_export_dmabuf(memory, BYTES, &buffer.dmabuf_fd, (uint64_t *)&buffer.offset))
		return fprintf(stderr, "cannot export the memory as a dma-buf\n"), 1;
	if (nvmepeer_buf_import_part(ctrl, &buffer, sizeof(buffer)))
		return fail();
	close(buffer.dmabuf_fd);
	*handle = buffer.handle;
	return 0;
}

// Maps registers of the controller into the GPU.
static int map_doorbell(nvmepeer_qp *qp, uint64_t *address)
{
	nvmepeer_mapping *page;
	void *seen;

	if (nvmepeer_qp_map(qp, NVME_PEER_EXPORT_DOORBELL, &page))
		return fail();
	if (hipHostRegister(nvmepeer_mapping_base(page), nvmepeer_mapping_mapped(page),
			    hipHostRegisterMapped | hipHostRegisterIoMemory) ||
	    hipHostGetDevicePointer(&seen, nvmepeer_mapping_base(page), 0))
		return fprintf(stderr, "the driver cannot map registers of other devices\n"), 1;
	*address = (uint64_t)seen;
	return 0;
}

static int open_queue(nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, char *memory, uint32_t handle,
		      nvmepeer_queue *queue)
{
	nvme_peer_qp_create request = {};
	nvmepeer_geometry geometry = {};
	nvmepeer_qp *qp;
	uint64_t doorbell;

	request.sq_entries = request.cq_entries = ENTRIES;
	request.sq_handle = request.cq_handle = handle;
	request.sq_offset = SQ;
	request.cq_offset = CQ;
	if (nvmepeer_qp_create(ctrl, &request, sizeof(request), &qp))
		return fail();
	if (map_doorbell(qp, &doorbell))
		return 1;
	geometry.sq_entries = geometry.cq_entries = ENTRIES;
	geometry.sq = (uint64_t)memory + SQ;
	geometry.cq = (uint64_t)memory + CQ;
	geometry.state = (uint64_t)memory + STATE;
	if (STATE + nvmepeer_state_bytes(&geometry) > DATA ||
	    nvmepeer_qp_geometry(ctrl, qp, ns, 0, doorbell, &geometry, sizeof(geometry)))
		return fail();
	return nvmepeer_queue_open(queue, &geometry);
}

int main()
{
	static int status[READS];
	nvmepeer_buffer data = {};
	nvmepeer_queue queue;
	nvmepeer *ctrl;
	nvmepeer_ns *ns;
	uint32_t handle;
	char *memory;
	int bad = 0;

	if (nvmepeer_open("nvmep0", &ctrl) || nvmepeer_ns_open("ngp0n1", &ns))
		return fail();
	if (hipExtMallocWithFlags((void **)&memory, BYTES, hipDeviceMallocFinegrained) ||
	    hipMemset(memory, 0, BYTES) || hipDeviceSynchronize())
		return fprintf(stderr, "cannot allocate GPU memory\n"), 1;
	if (import(ctrl, memory, &handle) ||
	    open_queue(ctrl, nvmepeer_ns_info(ns), memory, handle, &queue))
		return 1;
	data.length = READS * STEP;
	if (nvmepeer_buf_contiguous(ctrl, handle, DATA, data.length, &data.dma))
		return fail();
	start<<<1, 1>>>(queue);
	read_blocks<<<1, READS>>>(queue, data, (int *)(memory + STATUS));
	if (hipGetLastError() || hipMemcpy(status, memory + STATUS, sizeof(status), hipMemcpyDeviceToHost))
		return fprintf(stderr, "the kernel failed\n"), 1;
	for (int i = 0; i < READS; i++)
		bad += status[i] != 0;
	printf("%d of %d reads succeeded\n", READS - bad, READS);
	return bad != 0;
}
