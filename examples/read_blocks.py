# SPDX-License-Identifier: MIT OR GPL-2.0
"""A GPU reads 64 blocks of an NVMe namespace by itself, into a CuPy array.

usage: read_blocks.py [CONTROLLER NAMESPACE]      default: nvmep0 ngp0n1

The host side is libnvmepeer_cuda by ctypes; the device side is the header of
the device library, compiled by NVRTC.  PyTorch: use tensor.data_ptr() instead
of array.data.ptr.  Numba: declare nvmepeer_device_read and link
lib/nvmepeer/nvmepeer_device.fatbin.
"""
import ctypes
import subprocess
import sys

BLOCKS = 64
KERNEL = """
#include <nvmepeer_device.h>
extern "C" __global__ void read_blocks(const nvmepeer_queue *queues, const nvmepeer_buffer *data,
				       int *status)
{
	/* The library made the queues, NVRTC compiles this: do both have the same layout? */
	int bad = nvmepeer_queue_check_layout(&queues[0]);

	status[threadIdx.x] = bad ? bad : nvmepeer_call_read(&queues[0], data, threadIdx.x * 4096ull,
							     threadIdx.x, 1);
}
"""


class Explanation(ctypes.Structure):
	"""struct nvmepeer_explanation"""

	_fields_ = [("call", ctypes.c_char_p), ("error", ctypes.c_int), ("status", ctypes.c_int),
		    ("what", ctypes.c_char * 160), ("limit", ctypes.c_char * 320),
		    ("help", ctypes.c_char * 320)]


def load():
	"""Both libraries, with pointer types declared."""
	host = ctypes.CDLL("libnvmepeer.so.0", mode=ctypes.RTLD_GLOBAL)
	glue = ctypes.CDLL("libnvmepeer_cuda.so.0")
	host.nvmepeer_ns_info.restype = ctypes.c_void_p
	glue.nvmepeer_cuda_queues_device.restype = ctypes.c_void_p
	glue.nvmepeer_cuda_buffer_device.restype = ctypes.c_void_p
	return host, glue


def check(host, result):
	"""One call explains failures of both libraries."""
	if not result:
		return
	why = Explanation()
	host.nvmepeer_explain(ctypes.byref(why), ctypes.c_size_t(ctypes.sizeof(why)))
	sys.exit(b"%s: %s. %s. %s." % (why.call, why.what, why.limit, why.help))


def main():
	nodes = sys.argv[1:3] if len(sys.argv) > 2 else ["nvmep0", "ngp0n1"]
	host, glue = load()
	ctrl, namespace, gpu = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
	queues, data = ctypes.c_void_p(), ctypes.c_void_p()
	check(host, host.nvmepeer_open(nodes[0].encode(), ctypes.byref(ctrl)))
	check(host, host.nvmepeer_ns_open(nodes[1].encode(), ctypes.byref(namespace)))
	check(host, glue.nvmepeer_cuda_open(0, ctypes.byref(gpu)))

	import cupy

	array = cupy.zeros(2 << 20, cupy.uint8)
	status = cupy.full(BLOCKS, -99, cupy.int32)
	info = ctypes.c_void_p(host.nvmepeer_ns_info(namespace))
	check(host, glue.nvmepeer_cuda_queues_open(ctrl, info, gpu, 256, 1, ctypes.byref(queues)))
	check(host, glue.nvmepeer_cuda_buffer_open(ctrl, gpu, ctypes.c_void_p(array.data.ptr),
						   ctypes.c_size_t(array.nbytes),
						   ctypes.byref(data)))
	flags = subprocess.check_output(["pkg-config", "--cflags", "libnvmepeer_cuda"], text=True)
	module = cupy.RawModule(code=KERNEL, options=("-std=c++17", *flags.split()), backend="nvrtc")
	module.get_function("read_blocks")((1,), (BLOCKS,), (glue.nvmepeer_cuda_queues_device(queues),
							     glue.nvmepeer_cuda_buffer_device(data),
							     status))
	good = int((status.get() == 0).sum())
	print(f"{good} of {BLOCKS} reads succeeded")
	# The queue pairs first: while one is active, the controller keeps its access to the memory.
	check(host, glue.nvmepeer_cuda_queues_close(queues))
	check(host, glue.nvmepeer_cuda_buffer_close(data))
	return good != BLOCKS


if __name__ == "__main__":
	sys.exit(main())
