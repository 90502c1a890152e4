# SPDX-License-Identifier: GPL-2.0-only
"""A Triton kernel that reads blocks; python.py launches it.

Triton requires kernels in a source file of their own.
"""
import triton
import triton.language as tl
from triton.language import core


@core.extern
def device_read(queue, buffer, offset, lba, blocks, _semantic=None):
	"""nvmepeer_device_read() for each element."""
	wide, narrow = core.dtype("uint64"), core.dtype("uint32")
	symbols = {(wide, wide, wide, wide, narrow): ("nvmepeer_device_read", core.dtype("int32"))}
	return core.extern_elementwise("nvmepeer", "", [queue, buffer, offset, lba, blocks],
				       symbols, is_pure=False, _semantic=_semantic)


@triton.jit
def read_blocks(queue, data, status, BLOCK: tl.constexpr):
	i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
	block = i.to(tl.uint64)
	none = block * 0
	result = device_read(none + queue.to(tl.uint64), none + data.to(tl.uint64), block * 4096,
			     block, (i * 0 + 8).to(tl.uint32))
	tl.store(status + i, result)
