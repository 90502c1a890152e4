# SPDX-License-Identifier: GPL-2.0-only
"""Pages of a process without a GPU through queue pairs that the module has made in a guest.

usage: guest_pages.py FOLDER LIBRARY        FOLDER: selftests/run --share; LIBRARY: manifest-host.so

What model.py does with a GPU, by manifest.py as well: open the queue pairs of the manifest by
Queues.from_files(), with a libcuda without a GPU, whose memory is memory of this process. The data is in the
window of badctrl's neighbour: threads of this process move it. Write pages, read them to other places, and
compare them and the disk; lose the queue pairs while a list runs; read all again through those of the next
generation.
"""
import ctypes
import mmap
import os
import random
import sys
import threading
import time
from ctypes import c_int, c_uint32, c_uint64, c_void_p

from nvmepeer import cuda

from ktap import Results
from manifest import MOVER_RINGS, READY, Ask, Manifest, Mover, load

PIECE, PAGES, BLOCK, READ, WRITE = 65536, 48, 512, 2, 1
LIMIT_S, SLOW_MB_S = 60, 1


class List(ctypes.Structure):
	"""struct nvmepeer_list"""

	_fields_ = [("memories", c_void_p), ("items", c_void_p), ("tensors", c_void_p), ("pages", c_void_p),
		    ("statuses", c_void_p), ("scratch", c_void_p), ("memory_count", c_uint32), ("tensor_count", c_uint32),
		    ("count", c_uint32), ("opcode", c_uint32), ("control", c_uint64)]


def table(rows):
	"""An array of C of rows of integers."""
	numbers = [number for row in rows for number in row]
	return (c_uint64 * len(numbers))(*numbers)


class Threads:
	"""Threads as a kernel."""

	def __init__(self, calls):
		self.threads = [threading.Thread(target=call) for call in calls]
		for thread in self.threads:
			thread.start()

	def synchronize(self):
		for thread in self.threads:
			thread.join()


class User:
	"""Lists over the queue pairs of a manifest."""

	def __init__(self, folder, library):
		self.host = ctypes.CDLL(library)
		self.host.manifest_layout.restype = c_uint32
		self.host.manifest_transfer.argtypes = [c_void_p, c_void_p]
		self.host.manifest_move.argtypes = [c_uint64, c_uint64, c_uint64, c_uint32]
		self.host.manifest_move.restype = None
		self.gpu, self.manifest = cuda.Gpu(0), Manifest(folder)
		data, (start, length) = self.manifest.content["data"], self.manifest.window()
		self.memory = mmap.mmap(-1, length)
		address = self.address_of(self.memory)
		self.shared, self.disk = map(self.map_file, ("mover", "disk"))
		move = [self.address_of(self.shared), self.address_of(self.disk), address - start]
		self.mover = Mover(self.shared, lambda: Threads(
			[lambda ring=ring: self.host.manifest_move(*move, ring) for ring in range(MOVER_RINGS)]))
		self.starts = [one["window"] - start for one in data]
		self.memories = table([one["bytes"], one["dma"], 0, address + at] for one, at in zip(data, self.starts))
		tensors = [cuda.tensor(0, PIECE, PIECE, memory) for memory in range(len(data))]
		self.page_blocks = cuda.lay_out(tensors, BLOCK)
		self.tensors, self.tensor_count = table(tensors), len(tensors)
		self.open()

	@staticmethod
	def address_of(memory):
		return ctypes.addressof(ctypes.c_char.from_buffer(memory))

	def map_file(self, name):
		with self.manifest.open_file(name) as file:
			return mmap.mmap(file.fileno(), 0)

	def open(self):
		self.manifest.open(self.gpu, self.host.manifest_layout())

	def piece(self, memory, number):
		at = self.starts[memory] + number * PIECE
		return slice(at, at + PIECE)

	def page(self, number):
		"""Its bytes."""
		return b"".join(self.memory[self.piece(memory, number)] for memory in range(self.tensor_count))

	def start(self, opcode, places):
		"""Page i of the disk and place @places[i], by one thread for each queue pair; returns these and the statuses."""
		pages = table([cuda.page(i * self.page_blocks, place) for i, place in enumerate(places)])
		statuses, each = (c_int * (len(places) * self.tensor_count))(*[-1] * (len(places) * self.tensor_count)), \
			-(-len(places) // len(self.manifest.pairs))

		def transfer(first, pair):
			some = List(memories=ctypes.addressof(self.memories), tensors=ctypes.addressof(self.tensors),
				    pages=ctypes.addressof(pages) + 16 * first,
				    statuses=ctypes.addressof(statuses) + 4 * first * self.tensor_count,
				    memory_count=self.tensor_count, tensor_count=self.tensor_count,
				    count=max(0, min(each, len(places) - first)), opcode=opcode)
			self.host.manifest_transfer(pair.device, ctypes.byref(some))

		return Threads([lambda i=i, pair=pair: transfer(min(len(places), i * each), pair)
				for i, pair in enumerate(self.manifest.pairs)]), statuses

	def run(self, opcode, places):
		"""Returns whether all was transferred."""
		threads, statuses = self.start(opcode, places)
		threads.synchronize()
		return not any(statuses)

	def lose(self, places):
		"""Have the controller reset while a slow list runs; returns its statuses, and whether the maker waited for this."""
		self.manifest.ask(Ask.RATE, SLOW_MB_S)
		with self.mover.running():
			threads, statuses = self.start(READ, places)
			time.sleep(0.2)
			self.manifest.ask(Ask.RESET)
			threads.synchronize()
			self.manifest.wait_for_stop()
		time.sleep(0.3)
		kept = load(self.manifest.control, READY) == self.manifest.generation
		self.manifest.give_up()
		self.manifest.wait_for_next()
		self.open()
		self.manifest.ask(Ask.RATE, 0)
		return list(statuses), kept


def wipe(user, places):
	for place in places:
		for memory in range(user.tensor_count):
			user.memory[user.piece(memory, place)] = bytes(PIECE)


def main():
	results, user, choice = Results(), User(*sys.argv[1:]), random.Random(1)
	threading.Timer(LIMIT_S, lambda: os._exit(3)).start()
	places = list(range(user.manifest.content["data"][0]["bytes"] // PIECE))
	choice.shuffle(places)
	first, second = places[:PAGES], places[PAGES:2 * PAGES]
	results.report("all parts are ranges of shared files", {part["file"] for pair in user.manifest.content["queue_pairs"]
		for part in pair["parts"]} == {"memory", "guest", "controller"})
	for place in first:
		for memory in range(user.tensor_count):
			user.memory[user.piece(memory, place)] = choice.randbytes(PIECE)
	expected = [user.page(place) for place in first]
	with user.mover.running():
		written = user.run(WRITE, first)
	results.report("pages are written", written)
	page = user.page_blocks * BLOCK
	results.report("the disk has them",
		       all(user.disk[i * page:(i + 1) * page] == one for i, one in enumerate(expected)))
	with user.mover.running():
		good = user.run(READ, second)
	results.report("pages are read to other places", good and [user.page(place) for place in second] == expected)
	wipe(user, second)
	generation, (statuses, kept) = user.manifest.generation, user.lose(second)
	lost = sum(status != 0 for status in statuses)
	print(f"# {lost} of {len(statuses)} pieces were not read")
	results.report("a loss ends a running list, whose pieces have their statuses", 0 < lost < len(statuses))
	results.report("those that were read are right", all(
		user.memory[user.piece(i % user.tensor_count, second[i // user.tensor_count])] ==
		expected[i // user.tensor_count][i % user.tensor_count * PIECE:][:PIECE]
		for i, status in enumerate(statuses) if not status))
	results.report("the maker waits until the queue pairs are given up", kept)
	results.report("the queue pairs are re-armed as the next generation", user.manifest.generation == generation + 1)
	wipe(user, second)
	with user.mover.running():
		good = user.run(READ, second)
	results.report("all pages are read through them", good and [user.page(place) for place in second] == expected)
	user.manifest.ask(Ask.END)
	user.manifest.wait_for_stop()
	user.manifest.give_up()
	user.gpu.close()
	# The timer and the exported addresses end with the process.
	status = results.end()
	sys.stdout.flush()
	os._exit(status)


main()
