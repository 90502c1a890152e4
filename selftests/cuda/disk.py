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

SERVE = "#include <nvmepeer_device.h>\n#include <serve.cuh>\n"


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
						      cupy.uint64(self.medium.numel() // BLOCK), self.stop.data_ptr(), cupy.uint32(0)),
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
