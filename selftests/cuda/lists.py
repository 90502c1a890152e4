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
LISTS_BESIDE = 40
LEAST = 0.8

GATHER = f"#define PAGE {PAGE}" + """
extern "C" __global__ void __launch_bounds__(512, 1) occupy(int milliseconds)
{
	for (int i = 0; i < milliseconds; i++)
		__nanosleep(1000000);
}

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


def matrix_product():
	"""Bound by computation."""
	left, right = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
	out = torch.empty_like(left)
	return lambda: [torch.mm(left, right, out=out) for _ in range(8)]


def attention():
	"""Of one token each, bound by memory."""
	query = torch.randn(16, 32, 1, 128, dtype=torch.bfloat16, device="cuda")
	key, value = (torch.randn(16, 32, 8192, 128, dtype=torch.bfloat16, device="cuda") for _ in range(2))
	attend = torch.nn.functional.scaled_dot_product_attention
	return lambda: [attend(query, key, value) for _ in range(16)]


def slowed(work, read, occupy, side):
	"""The time of the work while lists are read on the other stream, over that without; the same for
	a block that takes as much of an SM and sleeps; and whether the lists were read to the end."""
	front, alone, beside, idle, lasted = torch.cuda.Stream(), [], [], [], True
	with torch.cuda.stream(front):
		work()
		front.synchronize()
		for _ in range(ROUNDS):
			alone.append(milliseconds(work))
			with torch.cuda.stream(side):
				for _ in range(LISTS_BESIDE):
					read()
			beside.append(milliseconds(work))
			lasted = not side.query() and lasted
			side.synchronize()
			occupy(side)
			idle.append(milliseconds(work))
			side.synchronize()
	median = statistics.median
	return median(beside) / median(alone), median(idle) / median(alone), median(alone), lasted


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
	module = cupy.RawModule(code=GATHER, backend="nvrtc")
	kernel, sleeper = (module.get_function(name) for name in ("gather", "occupy"))
	side, works = torch.cuda.Stream(), {"matrix product": matrix_product(), "attention": attention()}
	expected = medium.view(-1, PAGE)[order[0]]

	def gather():
		stream = cupy.cuda.Stream.from_external(side)
		kernel((264,), (512,), (cache.data_ptr(), medium.data_ptr(), places.data_ptr(), COUNT), stream=stream)

	def read():
		lists.read(items)

	def occupy(stream):
		sleeper((1,), (512,), (40,), stream=cupy.cuda.Stream.from_external(stream))

	def fetched():
		"""The pages, which are cleared."""
		view = cache.view(-1, PAGE)
		found = view[order[1].cuda()].cpu()
		cache.zero_()
		return torch.equal(found, expected)

	times, good = {"list": [], "gather": []}, True
	for work in works.values():
		work()
	with torch.cuda.stream(side):
		gather()
		occupy(side)
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
			side.synchronize()
			slow = {name: slowed(work, read, occupy, side) for name, work in works.items()}
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
	for name, (over, idle, took, lasted) in slow.items():
		# The aim is 1.02.
		print(f"# {name} beside lists, 16 warps: {over:.3f} of its {took:.2f} ms alone; "
		      f"beside a block of 16 warps that sleeps: {idle:.3f}")
		results.report(f"lists are read until after the {name}", lasted)
	queues.close()
	lists.close()
	gpu.close()
	return results.end()


sys.exit(main())
