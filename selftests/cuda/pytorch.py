# SPDX-License-Identifier: GPL-2.0-only
"""PyTorch reads and writes pages of its tensors: operators, torch.compile, CUDA graphs, page tables,
and examples/read_pages.py.

usage: disk.sh pytorch.py

The disk is in GPU memory; see disk.py.  Prints KTAP.  On a deadlock the program ends after LIMIT_S
with the stacks of all threads.
"""
import contextlib
import faulthandler
import io
import runpy
import sys
from unittest import mock

import torch

import nvmepeer
import nvmepeer.pytorch
from disk import Disk, reset_fake
from ktap import Results
from nvmepeer import cuda

LIMIT_S = 400
TABLES, TABLE_PAGES, SLOTS, WANTED = 4, 256, 32, 16
PAGE = 8192
LAYERS, PAGES, BYTES = 32, 64, 41984	# MLA: 64 tokens of 656 bytes
BLOCKS, BLOCK = 1 << 18, 512
QUEUES, ENTRIES = 2, 64
LBA_OUT_OF_RANGE = 0x80


class Rig:
	"""A cache with layers in which a page has a piece of each, and its lists."""

	def __init__(self, disk):
		reset_fake(BLOCKS, ENTRIES)
		self.disk = disk
		self.cache = torch.zeros(LAYERS, PAGES, BYTES, dtype=torch.uint8, device="cuda")
		self.controller, self.gpu = nvmepeer.Controller("nvmep0"), cuda.Gpu(0)
		with nvmepeer.Namespace("ngp0n1") as namespace:
			self.queues = cuda.Queues(self.controller, namespace, self.gpu, ENTRIES, QUEUES)
		self.lists = cuda.Lists(self.queues, [self.cache])
		self.number = nvmepeer.pytorch.register(self.lists)
		layers = [cuda.tensor(layer * PAGES * BYTES, BYTES, BYTES) for layer in range(LAYERS)]
		self.blocks = cuda.lay_out(layers, self.queues.block_size)
		self.tensors = torch.tensor(layers, device="cuda")

	def pages(self, numbers):
		"""Page number and slot of the disk are the same."""
		return torch.tensor([cuda.page(one * self.blocks, one) for one in numbers], device="cuda")

	def statuses(self, pages):
		return torch.full((len(pages), LAYERS), -1, dtype=torch.int32, device="cuda")

	def fill(self, seed):
		"""New contents of the cache."""
		generator = torch.Generator(device="cuda").manual_seed(seed)
		self.cache.copy_(torch.randint(0, 256, self.cache.shape, dtype=torch.uint8, device="cuda",
					       generator=generator))

	def store(self, seed):
		"""New contents of the disk, as a cache; clears the cache."""
		self.fill(seed)
		before = self.cache.clone()
		self.disk.place(before.permute(1, 0, 2))
		self.cache.zero_()
		return before

	def close(self):
		self.queues.close()
		self.lists.close()
		self.gpu.close()
		self.controller.close()


def eager(results, disk):
	"""Write and read back, other pages untouched; a page behind the disk fails alone."""
	rig = Rig(disk)
	some, read = rig.pages([7, 3, 12]), rig.pages([12, 7])
	beyond = torch.tensor([cuda.page(BLOCKS, 20), cuda.page(3 * rig.blocks, 21)], device="cuda")
	statuses = [rig.statuses(one) for one in (some, read, beyond)]
	rig.fill(1)
	before = rig.cache.clone()
	with disk.serving(rig.queues):
		torch.ops.nvmepeer.write_pages([rig.cache], rig.number, rig.tensors, some, statuses[0])
		rig.cache.zero_()
		torch.ops.nvmepeer.read_pages([rig.cache], rig.number, rig.tensors, read, statuses[1])
		torch.ops.nvmepeer.read_pages([rig.cache], rig.number, rig.tensors, beyond, statuses[2])
	expected = torch.zeros_like(rig.cache)
	expected[:, [7, 12]] = before[:, [7, 12]]
	expected[:, 21] = before[:, 3]
	results.report("write_pages, then read_pages: the pages, and nothing else",
		       not statuses[0].any() and not statuses[1].any() and torch.equal(rig.cache, expected))
	results.report("a page behind the end of the disk fails alone",
		       bool((statuses[2][0] == LBA_OUT_OF_RANGE).all()) and not statuses[2][1].any())
	try:
		cuda.check(int(statuses[2][0, 0]))
		raised = False
	except nvmepeer.TransferError as error:
		raised = error.status == LBA_OUT_OF_RANGE
	results.report("its status is raised as TransferError", raised)
	copy = [rig.cache.clone()]
	try:
		torch.ops.nvmepeer.read_pages(copy, rig.number, rig.tensors, read, statuses[1])
		refused = False
	except ValueError:
		refused = True
	results.report("a copy of a tensor of the lists is refused", refused)
	rig.close()


def compiled(results, disk):
	"""Computation before and after the operator in one graph, with two sets of pages."""
	rig = Rig(disk)

	def step(cache, tensors, pages, statuses, slots):
		cache[:, slots] = 1
		torch.ops.nvmepeer.read_pages([cache], rig.number, tensors, pages, statuses)
		return cache[:, slots].to(torch.int64).sum(dim=2)

	fast = torch.compile(step, fullgraph=True)
	sets = [[5, 2, 9, 30], [40, 1, 63, 8]]
	pages = [rig.pages(one) for one in sets]
	statuses = [rig.statuses(one) for one in pages]
	slots = [torch.tensor(one, device="cuda") for one in sets]
	# Compiled and loaded while no kernel runs that waits for another.
	warm = rig.pages([0, 1, 2, 3])
	before = rig.store(2)
	with mock.patch.object(rig.lists, "read", lambda **given: given["statuses"].zero_()):
		fast(rig.cache, rig.tensors, warm, rig.statuses(warm), slots[0])
	with disk.serving(rig.queues):
		sums = [fast(rig.cache, rig.tensors, *one) for one in zip(pages, statuses, slots)]
	good = not any(one.any() for one in statuses)
	for one, found in zip(sets, sums):
		good = good and torch.equal(found, before[:, one].to(torch.int64).sum(dim=2))
	results.report("torch.compile: what is computed after read_pages sees its pages", good)
	rig.close()


def captured(results, disk):
	"""A CUDA graph with the operator, replayed with other pages in the same tensor."""
	rig = Rig(disk)
	before = rig.store(3)
	pages = rig.pages([11, 22])
	statuses, graph = rig.statuses(pages), torch.cuda.CUDAGraph()
	total = torch.zeros(LAYERS, dtype=torch.int64, device="cuda")
	# Kernels are loaded before the capture.
	total.add_(rig.cache.to(torch.int64).sum(dim=(1, 2)))
	total.zero_()
	torch.cuda.synchronize()
	with torch.cuda.graph(graph):
		torch.ops.nvmepeer.read_pages([rig.cache], rig.number, rig.tensors, pages, statuses)
		total.add_(rig.cache.to(torch.int64).sum(dim=(1, 2)))
	other = rig.pages([33, 60])
	torch.cuda.synchronize()
	with disk.serving(rig.queues):
		graph.replay()
		pages.copy_(other)
		graph.replay()
	expected = torch.zeros_like(rig.cache)
	expected[:, [11, 22]] = before[:, [11, 22]]
	first = expected.to(torch.int64).sum(dim=(1, 2))
	expected[:, [33, 60]] = before[:, [33, 60]]
	second = expected.to(torch.int64).sum(dim=(1, 2))
	results.report("a CUDA graph reads the pages that its tensor has at each replay",
		       not statuses.any() and torch.equal(rig.cache, expected) and
		       torch.equal(total, first + second))
	rig.close()


def page_tables(results, disk):
	"""Wanted pages of several tables, by steps and by replays of a CUDA graph: each is in the block that the
	step gives, also after others have taken its place; a page that does not exist fails alone."""
	reset_fake(BLOCKS, ENTRIES)
	generator = torch.Generator(device="cuda").manual_seed(4)
	content = torch.randint(0, 256, (TABLES, TABLE_PAGES, PAGE), dtype=torch.uint8, device="cuda",
				generator=generator)
	disk.place(content)
	cache = torch.zeros(TABLES * SLOTS, PAGE, dtype=torch.uint8, device="cuda")
	controller, gpu = nvmepeer.Controller("nvmep0"), cuda.Gpu(0)
	with nvmepeer.Namespace("ngp0n1") as namespace:
		queues = cuda.Queues(controller, namespace, gpu, ENTRIES, QUEUES)
	places = [[table * TABLE_PAGES + page for page in range(TABLE_PAGES)] for table in range(TABLES)]
	tables = cuda.PageTables(queues, cache, places, slots=SLOTS, blocks=PAGE // BLOCK, most=WANTED)
	rounds = [torch.stack([torch.randperm(TABLE_PAGES, device="cuda", generator=generator)[:WANTED]
			       for _ in range(TABLES)]).int() for _ in range(40)]
	rounds[20] = rounds[19].clone()
	wanted, blocks, statuses = (torch.empty(TABLES, WANTED, dtype=torch.int32, device="cuda") for _ in range(3))
	worst = torch.empty(TABLES, dtype=torch.int32, device="cuda")
	wrong, moved = (torch.zeros(len(rounds), dtype=torch.int64, device="cuda") for _ in range(2))
	rows = torch.arange(TABLES, device="cuda")[:, None]

	def compare(number):
		wrong[number] = (cache[blocks.long()] != content[rows, wanted.long()]).sum() + statuses.ne(0).sum()
		wrong[number] += worst.ne(0).sum()

	def count_moved(number, before):
		moved[number] = (blocks != before).sum()

	# Kernels are loaded before the disk's runs.
	wanted.copy_(rounds[0])
	blocks.zero_()
	compare(0)
	count_moved(0, blocks.clone())
	graph = torch.cuda.CUDAGraph()
	torch.cuda.synchronize()
	with torch.cuda.graph(graph):
		tables.read(wanted, blocks, statuses=statuses, worst=worst)
	torch.cuda.synchronize()
	with disk.serving(queues):
		for number, one in enumerate(rounds):
			wanted.copy_(one)
			before = blocks.clone()
			if number % 2:
				graph.replay()
			else:
				tables.read(wanted, blocks, statuses=statuses, worst=worst)
			compare(number)
			count_moved(number, before)
	results.report("page tables: pages of 40 steps, half of them in a graph, are in their blocks",
		       not wrong.any() and bool(moved.any()))
	results.report("page tables: pages that are wanted again stay where they are", int(moved[20]) == 0)
	wanted[1, 3] = TABLE_PAGES
	with disk.serving(queues):
		tables.read(wanted, blocks, statuses=statuses, worst=worst)
	good = int(statuses[1, 3]) < 0 and int(worst[1]) < 0 and int(blocks[1, 3]) == -1
	statuses[1, 3] = 0
	results.report("page tables: a page that does not exist fails alone", good and not statuses.any())
	queues.close()
	tables.close()
	gpu.close()
	controller.close()


def declared(results, disk):
	"""PyTorch's own check of the operators: schema, fake kernels, mutation."""
	rig = Rig(disk)
	pages = rig.pages([1, 2])
	arguments = ([rig.cache], rig.number, rig.tensors, pages, rig.statuses(pages))

	class Touched:
		"""Lists of tensors that are copies: sets what the operators set."""

		def __init__(self, number, caches, arguments):
			self.caches = caches

		def read(self, **given):
			self.caches[0].add_(1)
			given["statuses"].zero_()

		def write(self, **given):
			given["statuses"].zero_()

	with mock.patch.object(nvmepeer.pytorch, "_find", Touched):
		for operator in (torch.ops.nvmepeer.read_pages.default, torch.ops.nvmepeer.write_pages.default):
			try:
				torch.library.opcheck(operator, arguments,
						      test_utils=("test_schema", "test_faketensor"))
				good = True
			except Exception as error:	# opcheck has its own
				print(f"# {error}".replace("\n", "\n# "))
				good = False
			results.report(f"opcheck of {operator}", good)
	rig.close()


def example(results, disk, top):
	"""The program of the documentation, with the controller beside it."""
	reset_fake(BLOCKS, ENTRIES)
	expected = torch.randint(0, 256, (3, LAYERS, BYTES), dtype=torch.uint8, device="cuda")
	disk.place(expected)
	stack, printed = contextlib.ExitStack(), io.StringIO()
	tolist, read = torch.Tensor.tolist, cuda.Lists.read

	def reading(lists, **given):
		stack.enter_context(disk.serving(lists.queues))
		read(lists, **given)

	def listing(tensor):
		torch.cuda.current_stream().synchronize()
		stack.close()
		return tolist(tensor)

	with mock.patch.object(cuda.Lists, "read", reading), \
	     mock.patch.object(torch.Tensor, "tolist", listing), contextlib.redirect_stdout(printed):
		names = runpy.run_path(f"{top}/examples/read_pages.py")
	results.report("examples/read_pages.py: the pages of the list are in the cache",
		       torch.equal(names["cache"][:, [7, 3, 12]], expected.permute(1, 0, 2)) and
		       printed.getvalue().startswith("tensor("))


def main():
	top = sys.argv[1]
	faulthandler.dump_traceback_later(LIMIT_S, exit=True)
	results = Results()
	disk = Disk(top, torch.zeros(BLOCKS * BLOCK, dtype=torch.uint8, device="cuda"))
	# The first launches load kernels, for which the driver may wait until others have ended.
	warm = Rig(disk)
	warm.lists.read(tensors=warm.tensors, pages=warm.pages([0])[:0].contiguous(), statuses=warm.statuses([]))
	torch.cuda.synchronize()
	warm.close()
	eager(results, disk)
	captured(results, disk)
	page_tables(results, disk)
	declared(results, disk)
	example(results, disk, top)
	compiled(results, disk)
	return results.end()


sys.exit(main())
