# SPDX-License-Identifier: GPL-2.0-only
"""Python programs call the device library: CuPy by NVRTC, Numba by the fatbin, Triton
by the bitcode.

usage: python.py TOP FATBIN BITCODE

A null controller runs as a kernel of its own; kernels of all three read from it.  Prints
KTAP; packages that are not installed are skipped.  On a deadlock the program ends after
LIMIT_S with the stacks of all threads.
"""
import faulthandler
import sys

import cupy

from ktap import Results

LIMIT_S = 300
E_RANGE = -5

COMMON = """
#include <nvmepeer_device.h>
#include "controller.cuh"
extern "C" __global__ void init(nvmepeer_queue *queue, null_queue *null, unsigned char *rings,
				unsigned char *state, int *status)
{
	nvmepeer_geometry geometry = {};

	geometry.version = NVMEPEER_GEOMETRY_VERSION;
	geometry.sq = (uint64_t)rings;
	geometry.cq = geometry.sq + 65536;
	geometry.sq_doorbell = geometry.cq + 65536;
	geometry.cq_doorbell = geometry.sq_doorbell + 4;
	geometry.sq_entries = geometry.cq_entries = 256;
	geometry.nsid = 1;
	geometry.lba_shift = 9;
	geometry.page_shift = 12;
	geometry.max_transfer = 131072;
	geometry.timeout_ns = 3000000000u;
	geometry.state = (uint64_t)state;
	*status = nvmepeer_queue_init(queue, &geometry);
	*null = { geometry.sq, geometry.cq, geometry.sq_doorbell, 256, 0 };
}
extern "C" __global__ void serve(const null_queue *null, null_count *count, const uint32_t *stop)
{
	null_serve(*null, count, stop);
}
extern "C" __global__ void read_blocks(const nvmepeer_queue *queue, const nvmepeer_buffer *data,
				       int *status)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	status[i] = nvmepeer_call_read(queue, data, i * 4096ull, i, 8);
}
"""


def main():
	top, fatbin, bitcode = sys.argv[1:]
	faulthandler.dump_traceback_later(LIMIT_S, exit=True)
	results = Results()
	options = ("-std=c++17", f"-I{top}/include", f"-I{top}/selftests/cuda")
	module = cupy.RawModule(code=COMMON, options=options, backend="nvrtc")
	kernels = {name: module.get_function(name) for name in ("init", "serve", "read_blocks")}
	raw = cupy.zeros(1 << 20, cupy.uint8)
	base = (raw.data.ptr + 4095) // 4096 * 4096
	queue, null, rings, state = base, base + 4096, base + 65536, base + 65536 * 4
	count, stop = base + 8192, base + 12288
	# struct nvmepeer_buffer: bytes, DMA address, no table of pages.
	data, nothing = (cupy.array([length, 1 << 40, 0], cupy.uint64) for length in (1 << 40, 0))
	status = cupy.full(1024, -99, cupy.int32)
	kernels["init"]((1,), (1,), (queue, null, rings, state, status))
	cupy.cuda.Device().synchronize()
	results.report("the header compiles by NVRTC and opens a queue pair", int(status[0]) == 0)
	readers = (("CuPy, a call that is not inlined", cupy_reader(kernels["read_blocks"])),
		   ("Numba, the fatbin", numba_reader(fatbin)),
		   ("Triton, the bitcode", triton_reader(bitcode)))
	side, work = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
	# The first launch of a kernel loads it and may need more local memory, for which the
	# driver waits until all other kernels have ended: it must precede the controller.
	for name, read in readers:
		if read:
			found = read(queue, nothing.data.ptr, status, work)
			results.report(f"{name}: an empty buffer is refused", (found == E_RANGE).all())
	status.fill(-99)
	cupy.cuda.Device().synchronize()
	kernels["serve"]((1,), (32,), (null, count, stop), stream=side)
	for name, read in readers:
		if read:
			found = read(queue, data.data.ptr, status, work)
			results.report(f"{name}: 1024 reads", not found.any())
	flag = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(stop, 4, raw), 0)
	flag.memset_async(1, 4, work)
	side.synchronize()
	return results.end()


def cupy_reader(kernel):
	"""A function that launches the kernel and returns the status of each read."""

	def launch(queue, data, status, stream):
		with stream:
			status.fill(-99)
		kernel((4,), (256,), (queue, data, status), stream=stream)
		return status.get(stream=stream)

	return launch


def numba_reader(fatbin):
	"""The same with Numba; None without it."""
	import numpy

	# numba-cuda uses it; numpy 2.4 has removed it.
	if not hasattr(numpy, "row_stack"):
		numpy.row_stack = numpy.vstack
	try:
		from numba import cuda
	except (ImportError, AttributeError) as error:
		print(f"# no Numba: {error}")
		return None
	read = cuda.declare_device("nvmepeer_numba_read",
				   "int32(uint64, uint64, uint64, uint64, uint32)",
				   link=[fatbin])

	@cuda.jit("void(uint64, uint64, int32[:])")
	def kernel(queue, data, status):
		i = cuda.grid(1)
		status[i] = read(queue, data, i * 4096, i, 8)

	def launch(queue, data, status, stream):
		with stream:
			status.fill(-99)
		kernel[4, 256, cuda.external_stream(stream.ptr)](queue, data, status)
		return status.get(stream=stream)

	return launch


def triton_reader(bitcode):
	"""The same with Triton; None without it."""
	try:
		import triton
	except ImportError as error:
		print(f"# no Triton: {error}")
		return None
	from triton_kernel import read_blocks

	class Pointer:
		"""The interface that Triton needs of an array."""

		dtype = "int32"

		def __init__(self, address):
			self.address = address

		def data_ptr(self):
			return self.address

	options = {"num_warps": 8, "extern_libs": {"nvmepeer": bitcode}}
	loaded = read_blocks.warmup(1 << 40, 1 << 40, Pointer(1 << 40), 256, grid=(4,), **options)
	if not loaded.run:
		return None

	def launch(queue, data, status, stream):
		status.fill(-99)
		read_blocks[(4,)](queue, data, Pointer(status.data.ptr), 256, **options)
		cupy.cuda.runtime.streamSynchronize(0)
		return status.get(stream=stream)

	return launch


if __name__ == "__main__":
	sys.exit(main())
