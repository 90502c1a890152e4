# SPDX-License-Identifier: GPL-2.0-only
"""Lists of pages over the link into GPU memory, beside a kernel that gathers the same pages from
pinned memory.

usage: disk.sh lists.py [PAGE-BYTES]

The disk is in pinned memory, and its controller moves the data: @MOVER_BLOCKS blocks, one for a
queue pair.  Medians of ROUNDS, in which both take turns; every byte is compared.
"""
import ctypes
import statistics
import sys
import time

import cupy
import torch

import nvmepeer
from disk import BLOCK, Disk, reset_fake
from ktap import Results
from nvmepeer import cuda

QUEUES, ENTRIES = 16, 256
PAGE, COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 16384, 4096
MEDIUM, CACHE = 1 << 30, 1 << 29
ROUNDS, ENQUEUED = 5, 200
LEAST = 0.8

GATHER = f"#define PAGE {PAGE}" + """
extern "C" __global__ void gather(uint4 *to, const uint4 *from, const long long *pages, int count)
{
	for (int page = blockIdx.x; page < count; page += gridDim.x) {
		const uint4 *source = from + pages[2 * page] / 16;
		uint4 *target = to + pages[2 * page + 1] / 16;

		for (int at = threadIdx.x; at < PAGE / 16; at += blockDim.x)
			target[at] = __ldcv(source + at);
	}
}
"""


def milliseconds(work):
	"""Of the current stream, which has all work before it begins."""
	start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
	torch.cuda._sleep(3000000)
	start.record()
	work()
	end.record()
	end.synchronize()
	return start.elapsed_time(end)


def enqueue_us(lists, items):
	"""A call of the C function, with the overhead of ctypes."""
	spans = cuda.span_of(items)
	request = cuda._List(size=ctypes.sizeof(cuda._List), count=1, items=spans.address)
	stream = torch.cuda.current_stream().cuda_stream
	call, handle = cuda._library().nvmepeer_cuda_read_list, lists._resource.open()
	start = time.perf_counter()
	for _ in range(ENQUEUED):
		call(handle, ctypes.byref(request), stream)
	return (time.perf_counter() - start) / ENQUEUED * 1e6


def main():
	top, results = sys.argv[1], Results()
	medium = torch.randint(0, 256, (MEDIUM,), dtype=torch.uint8).pin_memory()
	disk = Disk(top, medium)
	cache = torch.zeros(CACHE, dtype=torch.uint8, device="cuda")
	reset_fake(MEDIUM // BLOCK, ENTRIES)
	controller, gpu = nvmepeer.Controller("nvmep0"), cuda.Gpu(0)
	with nvmepeer.Namespace("ngp0n1") as namespace:
		queues = cuda.Queues(controller, namespace, gpu, ENTRIES, QUEUES)
	lists = cuda.Lists(queues, [cache])
	order = torch.randperm(MEDIUM // PAGE)[:COUNT], torch.randperm(CACHE // PAGE)[:COUNT]
	places = torch.stack(order, 1) * PAGE
	rows = [cuda.item(from_ // BLOCK, to, PAGE) for from_, to in places.tolist()]
	items, places = torch.tensor(rows, device="cuda"), places.cuda()
	kernel = cupy.RawModule(code=GATHER, backend="nvrtc").get_function("gather")
	side = torch.cuda.Stream()
	expected = medium.view(-1, PAGE)[order[0]]

	def gather():
		stream = cupy.cuda.Stream.from_external(side)
		kernel((264,), (512,), (cache.data_ptr(), medium.data_ptr(), places.data_ptr(), COUNT), stream=stream)

	def read():
		lists.read(items)

	def fetched():
		"""The pages, which are cleared."""
		view = cache.view(-1, PAGE)
		found = view[order[1].cuda()].cpu()
		cache.zero_()
		return torch.equal(found, expected)

	times, good = {"list": [], "gather": []}, True
	with torch.cuda.stream(side):
		gather()
		fetched()
		lists.read(items[:0])
		torch.cuda._sleep(1)
		torch.cuda.synchronize()
		with disk.serving(queues):
			for _ in range(ROUNDS + 1):
				times["list"].append(milliseconds(read))
				good = fetched() and good
				times["gather"].append(milliseconds(gather))
				good = fetched() and good
			enqueued = enqueue_us(lists, items)
	statuses = items[:, 3].cpu()
	results.report("every page was read into its place", good and not (statuses & 0xffffffff).any())
	rates = {name: COUNT * PAGE / statistics.median(one[1:]) / 1e6 for name, one in times.items()}
	ratio = statistics.median(one / other for one, other in
				  zip([1 / x for x in times["list"][1:]], [1 / x for x in times["gather"][1:]]))
	# The aim is 0.95.
	print(f"# list {rates['list']:.1f} GB/s, gather kernel {rates['gather']:.1f} GB/s, ratio {ratio:.3f}; "
	      f"enqueue {enqueued:.1f} us with ctypes")
	results.report(f"a list of {COUNT} pages of {PAGE} bytes at {LEAST} of the gather kernel", ratio >= LEAST)
	results.report("a list is enqueued in 10 us", enqueued <= 10)
	queues.close()
	lists.close()
	gpu.close()
	return results.end()


sys.exit(main())
