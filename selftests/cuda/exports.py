# SPDX-License-Identifier: GPL-2.0-only
"""Which memory of a CUDA GPU does its driver export as a dma-buf?

usage: exports.py

Each way to allocate, by cuMemGetHandleForAddressRange(); prints a table for
Documentation/device-library.rst. Needs PyTorch for its rows, and nothing else.
"""
import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_ubyte, c_ushort, c_void_p

DMA_BUF = 1
PIECE = 2 << 20
PAGE = 65536


class Properties(ctypes.Structure):
	"""CUmemAllocationProp of GPU 0."""

	_fields_ = [("type", c_int), ("handles", c_int), ("place", c_int), ("device", c_int),
		    ("windows", c_void_p), ("compression", c_ubyte), ("rdma", c_ubyte),
		    ("usage", c_ushort), ("reserved", c_ubyte * 4)]


class Handle(ctypes.Structure):
	"""CUipcMemHandle"""

	_fields_ = [("bytes", c_ubyte * 64)]


class Access(ctypes.Structure):
	"""CUmemAccessDesc"""

	_fields_ = [("place", c_int), ("device", c_int), ("flags", c_int)]


cuda = ctypes.CDLL("libcuda.so.1")


def name_of(error):
	text = ctypes.c_char_p()
	cuda.cuGetErrorName(error, byref(text))
	return (text.value or b"%d" % error).decode()


def call(name, *arguments):
	error = getattr(cuda, name)(*arguments)
	if error:
		raise OSError(f"{name}: {name_of(error)}")


def export(address, size):
	"""The answer of the driver."""
	fd = c_int(-1)
	error = cuda.cuMemGetHandleForAddressRange(byref(fd), c_uint64(address), c_size_t(size), DMA_BUF,
						   c_uint64(0))
	if error:
		return name_of(error)
	os.close(fd.value)
	return "yes"


def tell(what, address, size):
	print(f"| {what:58} | {export(address, size):32} |", flush=True)


def begin():
	context, device = c_void_p(), c_int()
	call("cuInit", 0)
	call("cuDeviceGet", byref(device), 0)
	call("cuDevicePrimaryCtxRetain", byref(context), device)
	call("cuCtxSetCurrent", context)


def allocate(size, function="cuMemAlloc_v2", *more):
	address = c_uint64()
	call(function, byref(address), c_size_t(size), *more)
	return address.value


def plain():
	memory = allocate(16 * PIECE)
	tell("cudaMalloc, all of it", memory, 16 * PIECE)
	tell("cudaMalloc, pages of 64 KiB inside", memory + 3 * PAGE, PAGE)
	tell("cudaMalloc, pages of 4 KiB inside", memory + 3 * 4096, 4096)
	tell("cudaMalloc, not whole pages", memory + 512, 4096)
	small = allocate(4096)
	tell("cudaMalloc of 4 KiB", small, 4096)
	tell("cudaMalloc of 4 KiB, 64 KiB of it", small // PAGE * PAGE, PAGE)
	pooled = allocate(PIECE, "cuMemAllocAsync", c_void_p(2))
	call("cuCtxSynchronize")
	tell("cudaMallocAsync", pooled, PIECE)
	handle = Handle()
	call("cuIpcGetMemHandle", byref(handle), c_uint64(memory))
	sys.stdout.flush()
	subprocess.run([sys.executable, __file__, "ipc", bytes(handle).hex()], check=False)


def opened(text):
	"""In another process."""
	handle, address = Handle.from_buffer_copy(bytes.fromhex(text)), c_uint64()
	call("cuIpcOpenMemHandle_v2", byref(address), handle, 1)
	tell("cudaMalloc of another process, by cudaIpcOpenMemHandle", address.value, 16 * PIECE)


def host():
	memory = allocate(PIECE, "cuMemAllocManaged", 1)
	tell("cudaMallocManaged", memory, PIECE)
	pinned = c_void_p()
	call("cuMemAllocHost_v2", byref(pinned), c_size_t(PIECE))
	tell("cudaMallocHost", pinned.value, PIECE)
	room = ctypes.create_string_buffer(2 * PIECE)
	start = (ctypes.addressof(room) + PAGE - 1) // PAGE * PAGE
	call("cuMemHostRegister_v2", c_void_p(start), c_size_t(PIECE), 3)
	tell("cudaHostRegister", start, PIECE)


def handle_of(size, rdma, handles=1):
	properties = Properties(type=1, handles=handles, place=1, rdma=rdma)
	handle = c_uint64()
	call("cuMemCreate", byref(handle), c_size_t(size), byref(properties), c_uint64(0))
	return handle


def mapped(handles, size):
	"""One range of addresses, over memory of several handles."""
	address, access = c_uint64(), Access(place=1, flags=3)
	call("cuMemAddressReserve", byref(address), c_size_t(len(handles) * size), c_size_t(0), c_uint64(0),
	     c_uint64(0))
	for i, handle in enumerate(handles):
		call("cuMemMap", c_uint64(address.value + i * size), c_size_t(size), c_size_t(0), handle, c_uint64(0))
	call("cuMemSetAccess", address, c_size_t(len(handles) * size), byref(access), c_size_t(1))
	return address.value


def virtual():
	tell("cuMemCreate, one handle", mapped([handle_of(4 * PIECE, 0)], 4 * PIECE), 4 * PIECE)
	tell("cuMemCreate, one handle, gpuDirectRDMACapable", mapped([handle_of(4 * PIECE, 1)], 4 * PIECE),
	     4 * PIECE)
	several = mapped([handle_of(PIECE, 1) for _ in range(4)], PIECE)
	tell("cuMemCreate, four handles, all of them", several, 4 * PIECE)
	tell("cuMemCreate, four handles, one of them", several + PIECE, PIECE)
	tell("cuMemCreate, four handles, half of two", several + PIECE // 2, PIECE)
	fd = c_int()
	call("cuMemExportToShareableHandle", byref(fd), handle_of(4 * PIECE, 1), 1, c_uint64(0))
	handle = c_uint64()
	call("cuMemImportFromShareableHandle", byref(handle), c_void_p(fd.value), 1)
	tell("cuMemImportFromShareableHandle, one handle", mapped([handle], 4 * PIECE), 4 * PIECE)


def pytorch(kind):
	import torch

	small, large = (torch.empty(size, dtype=torch.uint8, device="cuda") for size in (4096, 100 << 20))
	tell(f"PyTorch, {kind}, tensor of 100 MiB", large.data_ptr(), 100 << 20)
	tell(f"PyTorch, {kind}, 16 KiB inside of it", large.data_ptr() + 5 * 4096, 16384)
	tell(f"PyTorch, {kind}, tensor of 4 KiB", small.data_ptr(), 4096)
	for segment in torch.cuda.memory_snapshot():
		tell(f"PyTorch, {kind}, segment of {segment['total_size'] >> 20} MiB", segment["address"],
		     segment["total_size"])


def main():
	what = sys.argv[1] if len(sys.argv) > 1 else ""
	if what.startswith("PyTorch"):
		pytorch(sys.argv[2])
		return
	begin()
	if what == "ipc":
		opened(sys.argv[2])
		return
	for part in (plain, host, virtual):
		try:
			part()
		except OSError as error:
			print(f"# {part.__name__}: {error}", flush=True)
	for kind, option in (("its allocator", ""), ("expandable segments", "expandable_segments:True")):
		subprocess.run([sys.executable, __file__, "PyTorch", kind], check=False,
			       env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=option, PYTORCH_ALLOC_CONF=option))


main()
