# SPDX-License-Identifier: GPL-2.0-only
"""A disk for programs in Python that have a GPU but no controller; see disk.sh.

A kernel (disk.cuh) serves the queue pairs of a fake kernel (lib/tests/fake.c) and moves data between
a medium, in GPU memory or in pinned memory, and the memory of tensors.
"""
import contextlib

import cupy
import torch

import unit
from nvmepeer import library

BLOCK = 512
THREADS = 1024

SERVE = """
#include <disk.cuh>

extern "C" __global__ void __launch_bounds__(1024, 1)
serve(const nvmepeer_queue *queues, uint64_t medium, uint64_t blocks, const uint32_t *stop,
      unsigned long long *clocks, uint2 *places, uint32_t per_block, uint32_t each, uint32_t latency_ns,
      uint32_t ns_per_mib, uint32_t null)
{
	disk_setup setup = { queues, medium, blocks, stop, clocks, places, per_block, each, latency_ns, ns_per_mib, null,
			      1 };	/* rings are in memory of the GPU */

	disk_serve(setup);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
only_move(uint64_t memory, uint64_t medium, const long long *places, uint32_t pages, uint32_t bytes,
	  uint32_t count, uint32_t *next, const uint32_t *stop)
{
	disk_only_move(memory, medium, places, pages, bytes, count, next, stop);
}
"""


class Disk:
	"""A medium, a tensor of bytes; and a controller: "with disk.serving(queues):"."""

	def __init__(self, top, medium):
		options = ("-std=c++17", f"-I{top}/include", f"-I{top}/selftests/cuda")
		module = cupy.RawModule(code=SERVE, options=options, backend="nvrtc")
		self.kernel, self.only_move = module.get_function("serve"), module.get_function("only_move")
		self.medium = medium
		self.stop = torch.zeros(1, dtype=torch.int32, device="cuda")
		self.stream = cupy.cuda.Stream(non_blocking=True)

	def place(self, pages):
		"""Store pages of pieces, each piece from a block on, one after the other."""
		blocks = -(-pages.shape[2] // BLOCK)
		count = pages.shape[0] * pages.shape[1] * blocks * BLOCK
		self.medium[:count].view(*pages.shape[:2], -1)[:, :, :pages.shape[2]] = pages

	@contextlib.contextmanager
	def serving(self, queues, per_block=1, gbytes=0, null=False):
		"""The work must be waited for by its stream: the kernel ends only with this.

		per_block: queue pairs that a block, an SM, serves
		gbytes: limit of the rate of all of them in GB/s
		null: no data is moved
		"""
		if not hasattr(queues, "places"):
			queues.places = torch.zeros(2 * queues.count, dtype=torch.int32, device="cuda")
		clock = torch.zeros(1, dtype=torch.int64, device="cuda")
		self.stop.zero_()
		torch.cuda.synchronize()
		limit = int(1048576 / gbytes) if gbytes else 0
		self.kernel((queues.count // per_block,), (THREADS,), (
			queues.device, cupy.uint64(self.medium.data_ptr()), cupy.uint64(self.medium.numel() // BLOCK),
			self.stop.data_ptr(), clock.data_ptr(), queues.places.data_ptr(), cupy.uint32(per_block),
			cupy.uint32(queues.count), cupy.uint32(0), cupy.uint32(limit), cupy.uint32(null)),
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
