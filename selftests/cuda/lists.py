# SPDX-License-Identifier: GPL-2.0-only
"""The slowdown of computation while lists of pages are read over the link, by its parts.

usage: disk.sh lists.py [PAGE-BYTES]

The disk is in pinned memory, and its controller, a kernel on CONTROLLER_SMS SMs, moves the data. A
matrix product and an attention run alone, with each part of that beside them, and with all of it. Medians
of ROUNDS, in each of which all cases take turns; every byte of a list is compared.
"""
import contextlib
import ctypes
import statistics
import sys
import time

import cupy
import torch

import nvmepeer
from disk import BLOCK, THREADS, Disk, reset_fake
from ktap import Results
from nvmepeer import cuda

QUEUES, ENTRIES, CONTROLLER_SMS = 16, 256, 8
PAGE, COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 16384, 4096
MEDIUM, CACHE = 1 << 30, 1 << 29
ROUNDS, ENQUEUED = 5, 200
LISTS_BESIDE = 40
# GB/s of the link, for controllers that move nothing but complete as many commands.
LINK = 50

# Keeps as many registers as the kernel of a list has, so that no other block fits beside it.
SLEEP = """
extern "C" __global__ void __launch_bounds__(512, 1) sleep_for(int milliseconds, volatile unsigned int *words)
{
	unsigned int kept[100];

	#pragma unroll
	for (int i = 0; i < 100; i++)
		kept[i] = words[i];
	for (int i = 0; i < milliseconds; i++)
		__nanosleep(1000000);
	#pragma unroll
	for (int i = 0; i < 100; i++)
		words[i] = kept[i];
}
"""


# The commands of a list by hand, without the library: a warp for each queue pair writes entries, a
# fence and the doorbell, and polls completions, with two groups of 32 in flight.
BY_HAND = """
#include <nvmepeer_device.h>

static __device__ void submit(const nvmepeer_queue &queue, uint32_t from, uint32_t lane, uint64_t memory, uint32_t blocks)
{
	uint32_t at = from + lane, lba = at % 4096 * blocks;
	uint64_t slot = queue.sq + (at & queue.sq_mask) * 64ull;
	const uint32_t entry[16] = { 2 | (at & 0xffff) << 16, 1, 0, 0, 0, 0, (uint32_t)memory, (uint32_t)(memory >> 32),
				     0, 0, lba, 0, blocks - 1, 0, 0, 0 };

	for (int i = 0; i < 16; i += 4)
		asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(slot + 4 * i),
			     "r"(entry[i]), "r"(entry[i + 1]), "r"(entry[i + 2]), "r"(entry[i + 3]) : "memory");
	__syncwarp();
	if (lane)
		return;
	asm volatile("fence.acq_rel.sys;" : : : "memory");
	*(volatile uint32_t *)queue.sq_doorbell = (from + 32) & queue.sq_mask;
}

static __device__ void wait(const nvmepeer_queue &queue, uint32_t from, uint32_t lane)
{
	uint32_t at = from + lane, phase = !(at >> queue.cq_shift & 1), word;
	uint64_t slot = queue.cq + (at & queue.cq_mask) * 16ull + 12;

	do {
		asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(slot) : "memory");
	} while ((word >> 16 & 1) != phase);
	asm volatile("fence.acquire.sys;" : : : "memory");
	__syncwarp();
	if (!lane)
		*(volatile uint32_t *)queue.cq_doorbell = (from + 32) & queue.cq_mask;
}

extern "C" __global__ void __launch_bounds__(512, 1)
by_hand(const nvmepeer_queue *queues, uint32_t *sent, uint64_t memory, uint32_t blocks, uint32_t rounds)
{
	const nvmepeer_queue &queue = queues[threadIdx.x / 32];
	uint32_t lane = threadIdx.x % 32, from = sent[threadIdx.x / 32];

	for (uint32_t i = 0; i < rounds; i++, from += 32) {
		submit(queue, from, lane, memory, blocks);
		if (i)
			wait(queue, from - 32, lane);
	}
	wait(queue, from - 32, lane);
	if (!lane)
		sent[threadIdx.x / 32] = from;
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
	spans, times = cuda.span_of(items), []
	request = cuda._List(size=ctypes.sizeof(cuda._List), count=1, items=spans.address)
	stream = torch.cuda.current_stream().cuda_stream
	call, handle = cuda._library().nvmepeer_cuda_read_list, lists._resource.open()
	for _ in range(ENQUEUED):
		start = time.perf_counter()
		call(handle, ctypes.byref(request), stream)
		times.append((time.perf_counter() - start) * 1e6)
	return statistics.median(times)


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


class Beside:
	"""What runs beside the computation, on streams of its own: contexts by name."""

	def __init__(self, top, disk, queues, spare, lists, items, places, cache):
		"""@spare: as many queue pairs as @queues, which no list uses."""
		self.disk, self.queues, self.lists, self.items, self.places = disk, queues, lists, items, places
		self.spare = spare
		self.side, self.copying = torch.cuda.Stream(), torch.cuda.Stream()
		self.cache = cache
		self.sleeper = cupy.RawModule(code=SLEEP, backend="nvrtc").get_function("sleep_for")
		options = ("-std=c++17", f"-I{top}/include")
		self.hand = cupy.RawModule(code=BY_HAND, options=options, backend="nvrtc").get_function("by_hand")
		self.sent = torch.zeros(QUEUES, dtype=torch.int32, device="cuda")
		self.next, self.words = (torch.zeros(100, dtype=torch.int32, device="cuda") for _ in range(2))
		self.lasted = True
		self.cases = {
			"controllers that poll": lambda: self.controllers(),
			"and a block of 16 warps that sleeps": lambda: self.controllers(self.sleep),
			"a list, controllers that move nothing": lambda: self.controllers(self.read, null=True, gbytes=LINK),
			"the moves without a list": self.moves,
			"the same by a quarter of the warps": lambda: self.moves(THREADS // 4),
			"a copy engine and controllers that poll": lambda: self.with_copies(),
			"a copy engine and a list, controllers that move nothing":
				lambda: self.with_copies(self.read, null=True, gbytes=LINK),
			"a copy engine and as many commands by hand, controllers that move nothing":
				lambda: self.with_copies(self.by_hand, null=True, gbytes=LINK, queues=spare),
			"a list": lambda: self.controllers(self.read),
		}

	@contextlib.contextmanager
	def controllers(self, work=None, queues=None, **how):
		with self.disk.serving(queues or self.queues, per_block=QUEUES // CONTROLLER_SMS, **how):
			with torch.cuda.stream(self.side):
				if work:
					work()
			time.sleep(0.001)
			yield
			self.check("kernels beside", not work or not self.side.query())
			self.side.synchronize()

	def sleep(self):
		self.sleeper((1,), (512,), (60, self.words.data_ptr()), stream=cupy.cuda.Stream.from_external(self.side))

	def read(self):
		for _ in range(LISTS_BESIDE):
			self.lists.read(self.items)

	def by_hand(self):
		rounds = LISTS_BESIDE * COUNT // (32 * QUEUES)
		self.hand((1,), (32 * QUEUES,), (
			cupy.uint64(self.spare.device), self.sent.data_ptr(), cupy.uint64(self.cache.data_ptr()),
			cupy.uint32(PAGE // BLOCK), cupy.uint32(rounds)), stream=cupy.cuda.Stream.from_external(self.side))

	@contextlib.contextmanager
	def moves(self, threads=THREADS):
		self.next.zero_()
		self.disk.stop.zero_()
		torch.cuda.synchronize()
		self.disk.only_move((CONTROLLER_SMS,), (threads,), (
			cupy.uint64(self.cache.data_ptr()), cupy.uint64(self.disk.medium.data_ptr()),
			self.places.data_ptr(), cupy.uint32(COUNT), cupy.uint32(PAGE),
			cupy.uint32(COUNT * LISTS_BESIDE), self.next.data_ptr(), self.disk.stop.data_ptr()),
			stream=self.disk.stream)
		time.sleep(0.001)
		yield
		self.check("moves", not self.disk.stream.done)
		self.disk.stop.fill_(1)
		self.disk.stream.synchronize()

	@contextlib.contextmanager
	def with_copies(self, work=None, **how):
		"""Of as many bytes, by one engine of the GPU."""
		part = COUNT * PAGE
		with self.controllers(work, **how):
			with torch.cuda.stream(self.copying):
				for _ in range(LISTS_BESIDE):
					self.cache[:part].copy_(self.disk.medium[:part], non_blocking=True)
			yield
			self.check("copies", not self.copying.query())
			self.copying.synchronize()

	def check(self, what, lasts):
		"""Does it last until after the computation?"""
		if not lasts:
			print(f"# the {what} ended before the computation")
			self.lasted = False


def slowed(name, work, beside):
	"""Print the time of the work beside each case over that alone, in the same round."""
	times, front = {case: [] for case in ["alone", *beside.cases]}, torch.cuda.Stream()
	with torch.cuda.stream(front):
		for _ in range(ROUNDS + 1):
			times["alone"].append(milliseconds(work))
			for case, context in beside.cases.items():
				with context():
					times[case].append(milliseconds(work))
	times = {case: some[1:] for case, some in times.items()}
	print(f"# {name}: {statistics.median(times['alone']):.2f} ms alone; beside")
	for case, some in times.items():
		over = [one / alone for one, alone in zip(some, times["alone"])]
		polls = [one / other for one, other in zip(some, times["controllers that poll"])]
		if case != "alone":
			print(f"#   {case}: {statistics.median(over):.3f} of it; "
			      f"{statistics.median(polls):.3f} of that beside controllers that poll", flush=True)


def main():
	top, results = sys.argv[1], Results()
	medium = torch.randint(0, 256, (MEDIUM,), dtype=torch.uint8).pin_memory()
	disk = Disk(top, medium)
	cache = torch.zeros(CACHE, dtype=torch.uint8, device="cuda")
	reset_fake(MEDIUM // BLOCK, ENTRIES)
	controller, gpu = nvmepeer.Controller("nvmep0"), cuda.Gpu(0)
	with nvmepeer.Namespace("ngp0n1") as namespace:
		queues, spare = (cuda.Queues(controller, namespace, gpu, ENTRIES, QUEUES) for _ in range(2))
	lists = cuda.Lists(queues, [cache])
	order = torch.randperm(MEDIUM // PAGE)[:COUNT], torch.randperm(CACHE // PAGE)[:COUNT]
	places = torch.stack(order, 1) * PAGE
	rows = [cuda.item(from_ // BLOCK, to, PAGE) for from_, to in places.tolist()]
	items, places = torch.tensor(rows, device="cuda"), places.cuda()
	beside = Beside(top, disk, queues, spare, lists, items, places, cache)
	works = {"matrix product": matrix_product(), "attention": attention()}

	for work in works.values():
		work()
	torch.cuda.synchronize()
	with disk.serving(queues):
		lists.read(items)
		torch.cuda.current_stream().synchronize()
		enqueued = enqueue_us(lists, items)
	found = cache.view(-1, PAGE)[order[1].cuda()].cpu()
	results.report("every page was read into its place", torch.equal(found, medium.view(-1, PAGE)[order[0]]) and
		       not (items[:, 3].cpu() & 0xffffffff).any())
	print(f"# a list is enqueued in {enqueued:.1f} us with ctypes")
	results.report("a list is enqueued in 10 us", enqueued <= 10)
	for name, work in works.items():
		slowed(name, work, beside)
	results.report("all of it lasted until after the computation", beside.lasted)
	spare.close()
	queues.close()
	lists.close()
	gpu.close()
	return results.end()


sys.exit(main())
