# SPDX-License-Identifier: GPL-2.0-only
"""A disk for programs in Python that have a GPU but no controller; see disk.sh.

A kernel serves the queue pairs of a fake kernel (lib/tests/fake.c) and moves data between a medium,
in GPU memory or in pinned memory, and the memory of tensors.
"""
import contextlib

import cupy
import torch

import unit
from nvmepeer import library

BLOCK = 512
THREADS = 1024

SERVE = """
#include <nvmepeer_device.h>
#include <mover.cuh>

static __device__ void part_move(uint64_t memory, uint64_t medium, uint32_t bytes, bool read, uint32_t lane)
{
	mover_move(read ? memory : medium, read ? medium : memory, bytes, lane);
}

static __device__ uint32_t entry_word(uint64_t sq, uint32_t at, uint32_t index)
{
	return ((const volatile uint32_t *)(sq + at * 64ull))[index];
}

/* Data of the command in lanes 0 to 15 of @word: PRP entries. */
static __device__ void transfer(uint32_t word, uint64_t medium, uint32_t bytes, uint32_t lane)
{
	uint64_t low = __shfl_sync(~0u, word, 6), prp1 = low | (uint64_t)__shfl_sync(~0u, word, 7) << 32;
	uint64_t prp2 = __shfl_sync(~0u, word, 8) | (uint64_t)__shfl_sync(~0u, word, 9) << 32;
	uint32_t first = min(bytes, 4096 - (uint32_t)(prp1 & 4095)), done = first, number = 0;
	bool read = (__shfl_sync(~0u, word, 0) & 255) == 2, listed = bytes - first > 4096;
	uint64_t entry = 0;

	part_move(prp1, medium, first, read, lane);
	for (; done < bytes; number++) {
		uint32_t part = min(bytes - done, 4096u);

		/* 32 entries of the list at once. */
		if (listed && number % 32 == 0 && (number + lane) * 4096ull < bytes - first)
			entry = ((const volatile uint64_t *)prp2)[number + lane];
		part_move(listed ? __shfl_sync(~0u, entry, number % 32) : prp2, medium + done, part, read, lane);
		done += part;
	}
}

/* A block serves a queue pair: a warp polls the doorbell, each of the others serves a command. */
extern "C" __global__ void __launch_bounds__(1024) serve(const nvmepeer_queue *queues, unsigned char *disk, uint64_t blocks,
				 const volatile uint32_t *stop)
{
	const nvmepeer_queue &queue = queues[blockIdx.x];
	const volatile uint32_t *doorbell = (const volatile uint32_t *)queue.sq_doorbell;
	__shared__ struct mover_block block;
	__shared__ uint32_t posted;
	uint32_t lane = threadIdx.x % 32;

	if (!threadIdx.x)
		block.tail = block.end = block.fetched = posted = 0;
	__syncthreads();
	while (!block.end) {
		uint32_t at, word;
		uint64_t lba;
		uint32_t count;
		bool bad;

		if (!mover_claim(&block, doorbell, stop, queue.sq_mask, &at))
			continue;
		word = lane < 16 ? entry_word(queue.sq, at, lane) : 0;
		lba = __shfl_sync(~0u, word, 10) | (uint64_t)__shfl_sync(~0u, word, 11) << 32;
		count = (__shfl_sync(~0u, word, 12) & 0xffff) + 1;
		bad = lba + count > blocks;
		if (!bad)
			transfer(word, (uint64_t)disk + (lba << queue.lba_shift),
				 count << queue.lba_shift, lane);
		__threadfence_system();
		__syncwarp();
		if (!lane) {
			uint32_t slot = atomicAdd(&posted, 1);
			volatile uint32_t *cqe = (volatile uint32_t *)
				(queue.cq + (slot & queue.cq_mask) * 16ull);
			uint32_t phase = !(slot / (queue.cq_mask + 1) & 1);

			cqe[0] = cqe[1] = 0;
			cqe[2] = *(volatile uint32_t *)&block.fetched | queue.qid << 16;
			__threadfence_system();
			cqe[3] = word >> 16 | phase << 16 | (bad ? 0x80u << 17 : 0);
		}
	}
}
"""


class Disk:
	"""A medium, a tensor of bytes; and a controller: "with disk.serving(queues):"."""

	def __init__(self, top, medium):
		options = ("-std=c++17", f"-I{top}/include", f"-I{top}/selftests/cuda")
		self.kernel = cupy.RawModule(code=SERVE, options=options, backend="nvrtc").get_function("serve")
		self.medium = medium
		self.stop = torch.zeros(1, dtype=torch.int32, device="cuda")
		self.stream = cupy.cuda.Stream(non_blocking=True)

	def place(self, pages):
		"""Store pages of pieces, each piece from a block on, one after the other."""
		blocks = -(-pages.shape[2] // BLOCK)
		count = pages.shape[0] * pages.shape[1] * blocks * BLOCK
		self.medium[:count].view(*pages.shape[:2], -1)[:, :, :pages.shape[2]] = pages

	@contextlib.contextmanager
	def serving(self, queues):
		"""The work must be waited for by its stream: the kernel ends only with this."""
		# A launch starts at the first entry: the rings are not at theirs any more.
		assert not getattr(queues, "served", False)
		queues.served = True
		self.stop.zero_()
		torch.cuda.synchronize()
		self.kernel((queues.count,), (THREADS,), (queues.device, self.medium.data_ptr(),
						      cupy.uint64(self.medium.numel() // BLOCK), self.stop.data_ptr()),
			    stream=self.stream)
		try:
			yield
			torch.cuda.current_stream().synchronize()
		finally:
			self.stop.fill_(1)
			self.stream.synchronize()


def reset_fake(blocks, entries):
	"""A controller with one namespace, and queue pairs of @entries."""
	library._library.fake_reset()
	fake = unit.Fake.in_dll(library._library, "fake")
	for i, byte in enumerate(blocks.to_bytes(8, "little")):
		fake.identify[i] = byte
	fake.identify[130] = 9
	fake.qp_info.sq_entries = fake.qp_info.cq_entries = entries
	fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1
