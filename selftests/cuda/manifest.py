# SPDX-License-Identifier: GPL-2.0-only
"""Queue pairs of another process, such as one in a guest whose memory is a file, by a manifest.

usage: manifest.py FOLDER COUNT ENTRIES        make queue pairs, until the end of standard input

The manifest, FOLDER/manifest.json, has the generation, the control page, of each queue pair its geometry
and parts, {file, offset, bytes, role}, and the data memories, {window, dma, bytes}; files are in the folder.
The control page has words of both. The maker sets STOP to its generation; the user ends its kernels, closes
the queue pairs and sets DONE to it; only then the maker ends, or re-arms them, writes the manifest of the next
generation, and sets READY to that. The user asks for this by ASK.

Makers are the module in a guest with selftests/bench/guest_pairs.c, whose controller is badctrl: its data is in
the window of GPU memory, and a kernel of the user moves it (Mover); and this program, which has no controller:
rings, doorbells, status and control pages are in its file, a kernel serves them (disk.cuh), and the DMA address
of a tensor is its address.
"""
import contextlib
import enum
import json
import mmap
import os
import struct
import sys
import time

PAGE = 4096
STOP, READY, DONE, ASK, ARGUMENT, ASKED, ANSWERED = range(0, 28, 4)
WAIT_S, BOOT_S = 60, 300
# struct mover_shared of selftests/badctrl/mover_ring.h.
MOVER_STOP, MOVER_RINGS, MOVER_THREADS = 16, 8, 1024
# As in include/uapi/linux/nvme_peer.h and nvmepeer_device/queue.h.
STATUS_MAGIC, LIVE = 0x7065706e, 1
SQ_REMOTE, CQ_REMOTE, SGL = 1, 2, 8

KERNELS = """
#include <nvmepeer_device.h>
#include <mover.cuh>
#include <mover_kernel.h>

extern "C" __global__ void __launch_bounds__(1024, 1)
move(uint64_t shared, uint64_t disk, uint64_t memory)
{
	struct kernel_mover mover = { (struct mover_shared *)shared, disk, memory };

	mover_serve(&mover);
}

extern "C" __global__ void layout_of(uint32_t *layout)
{
	*layout = NVMEPEER_LAYOUT;
}

extern "C" __global__ void gather_queues(nvmepeer_queue *queues, const nvmepeer_queue *const *from)
{
	queues[threadIdx.x] = *from[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(512, 1)
transfer(const nvmepeer_queue *queues, uint32_t queue_count, const nvmepeer_memory *memories,
	 uint32_t memory_count, const nvmepeer_list_tensor *tensors, uint32_t tensor_count,
	 const nvmepeer_list_page *pages, uint32_t count, int *statuses, uint32_t opcode)
{
	__shared__ uint32_t worst;
	nvmepeer_list list = {};

	list.memories = memories;
	list.memory_count = memory_count;
	list.tensors = tensors;
	list.tensor_count = tensor_count;
	list.pages = pages;
	list.count = count;
	list.statuses = statuses;
	list.opcode = opcode;
	nvmepeer_block_list_transfer(queues, queue_count, &list, &worst);
}
"""
MOST_QUEUE_BYTES = 4096


class Ask(enum.IntEnum):
	"""What the user asks a guest for"""

	RESET = 1	# of the controller: all queue pairs are lost, and re-armed
	END = 2
	RATE = 3	# of data, in MB/s; 0: no limit


def load(memory, word):
	return struct.unpack_from("<I", memory, word)[0]


def store(memory, word, value):
	struct.pack_into("<I", memory, word, value)


def wait_until(condition, what, seconds=WAIT_S):
	end = time.monotonic() + seconds
	while not condition():
		if time.monotonic() > end:
			raise SystemExit(f"{what} in {seconds} s")
		time.sleep(0.001)


class Maker:
	"""Queue pairs whose parts are pages of a file, behind a control page."""

	def __init__(self, folder, count, entries):
		self.folder, self.entries = folder, entries
		self.ring_bytes = -(-64 * entries // PAGE) * PAGE
		self.each = 2 * self.ring_bytes + 3 * PAGE
		with open(os.path.join(folder, "memory"), "w+b") as file:
			file.truncate(PAGE + count * self.each)
			self.memory = mmap.mmap(file.fileno(), 0)
		manifest = {"generation": 1, "control": {"file": "memory", "offset": 0, "bytes": PAGE},
			    "queue_pairs": [self.make(number) for number in range(count)]}
		with open(os.path.join(folder, "manifest.new"), "w", encoding="utf-8") as file:
			json.dump(manifest, file)
		# Complete when it appears.
		os.rename(file.name, os.path.join(folder, "manifest.json"))

	def make(self, number):
		at, parts = PAGE + number * self.each, []
		for role, size in (("SQ", self.ring_bytes), ("CQ", self.ring_bytes), ("DOORBELL_MEMORY", PAGE),
				   ("STATUS", PAGE), ("CONTROL", PAGE)):
			parts.append({"file": "memory", "offset": at, "bytes": size, "role": role})
			if role == "STATUS":
				struct.pack_into("<8I", self.memory, at, STATUS_MAGIC, 1, LIVE, 1, number + 1, 0, PAGE, 0)
			if role == "CONTROL":
				struct.pack_into("<4I", self.memory, at, 0, 0, 0, 1)
			at += size
		geometry = {"version": 1, "flags": SQ_REMOTE | CQ_REMOTE | SGL, "cq_doorbell": 4,
			    "sq_entries": self.entries, "cq_entries": self.entries, "qid": number + 1, "nsid": 1,
			    "lba_shift": 9, "page_shift": 12, "max_transfer": 131072}
		return {"geometry": geometry, "parts": parts}

	def stop(self):
		"""Take the queue pairs back."""
		store(self.memory, STOP, 1)
		wait_until(lambda: load(self.memory, DONE) == 1, "the user keeps its queue pairs")


class Manifest:
	"""The user's side: the queue pairs of the current generation, and the control page."""

	def __init__(self, folder):
		self.folder, self.pairs = folder, []
		self.path = os.path.join(folder, "manifest.json")
		wait_until(self.is_there, f"no {self.path}", BOOT_S)
		self.read()
		part = self.content["control"]
		with self.open_file(part["file"]) as file:
			self.control = mmap.mmap(file.fileno(), PAGE, offset=part["offset"])

	def is_there(self):
		"""The folder of a guest is removed with it."""
		if not os.path.isdir(self.folder):
			raise SystemExit(f"no {self.folder}: the maker has ended")
		return os.path.exists(self.path)

	def read(self):
		with open(self.path, encoding="utf-8") as file:
			self.content = json.load(file)
		self.generation = self.content["generation"]

	def open_file(self, name):
		return open(os.path.join(self.folder, name), "r+b")

	def open(self, gpu, layout):
		"""Open its queue pairs; @layout: NVMEPEER_LAYOUT of the kernels."""
		from nvmepeer import cuda

		for pair in self.content["queue_pairs"]:
			with contextlib.ExitStack() as stack:
				files = [cuda.File(stack.enter_context(self.open_file(part["file"])).fileno(),
						   cuda.Role[part["role"]], part["offset"], part["bytes"])
					 for part in pair["parts"]]
				self.pairs.append(cuda.Queues.from_files(gpu, layout, files, cuda.Geometry(**pair["geometry"])))

	def ask(self, what, argument=0):
		"""Ask a guest, which answers RESET and END after the queue pairs were given up."""
		store(self.control, ASK, what)
		store(self.control, ARGUMENT, argument)
		asked = load(self.control, ASKED) + 1
		store(self.control, ASKED, asked)
		if what not in (Ask.RESET, Ask.END):
			wait_until(lambda: load(self.control, ANSWERED) == asked, f"no answer to {what}")

	def wait_for_stop(self):
		"""The maker asks for the queue pairs, and its controller does nothing for them any more."""
		wait_until(lambda: load(self.control, STOP) == self.generation, "the maker does not ask for its queue pairs")

	def give_up(self):
		"""Close the queue pairs, which no kernel uses any more, and acknowledge."""
		while self.pairs:
			self.pairs.pop().close()
		store(self.control, DONE, self.generation)

	def wait_for_next(self):
		"""The queue pairs are re-armed: use the manifest of the next generation."""
		wait_until(lambda: load(self.control, READY) > self.generation, "the queue pairs are not re-armed")
		self.read()

	def window(self):
		"""Start and length of the part of the window that has all data memories."""
		start = min(one["window"] for one in self.content["data"])
		return start, max(one["window"] + one["bytes"] for one in self.content["data"]) - start


class Mover:
	"""The data of badctrl: "with mover.running():".

	@run: makes the moves until STOP of the shared memory is set; returns an object with synchronize()
	"""

	def __init__(self, shared, run):
		self.shared, self.run = shared, run

	@contextlib.contextmanager
	def running(self):
		store(self.shared, MOVER_STOP, 0)
		running = self.run()
		try:
			yield
		finally:
			store(self.shared, MOVER_STOP, 1)
			running.synchronize()


class User:
	"""The queue pairs of a manifest as one array for kernels, and lists for the memory of tensors.

	@tensors: or, of a guest's manifest, a call that makes them from its data memories, tensors of bytes
	"""

	def __init__(self, top, gpu, folder, tensors):
		import cupy
		import torch

		self.torch, self.cupy, self.gpu = torch, cupy, gpu
		options = ("-std=c++17", f"-I{top}/include", *(f"-I{top}/selftests/{part}" for part in ("cuda", "badctrl", "softgpu")))
		module = cupy.RawModule(code=KERNELS, options=options, backend="nvrtc")
		self.transfer, self.gather, self.move = map(module.get_function, ("transfer", "gather_queues", "move"))
		layout = torch.zeros(1, dtype=torch.int32, device="cuda")
		module.get_function("layout_of")((1,), (1,), (layout.data_ptr(),))
		self.layout = layout.item() & 0xffffffff
		self.manifest = Manifest(folder)
		self.tensors = tensors(self.make_window()) if callable(tensors) else tensors
		rows = [[one.nbytes, self.dma_of(one), 0, one.data_ptr()] for one in self.tensors]
		self.memories = torch.tensor(rows, device="cuda")
		self.open()

	def make_window(self):
		"""The data memories, in memory of the GPU, and their mover."""
		start, length = self.manifest.window()
		self.all = self.torch.zeros(length, dtype=self.torch.uint8, device="cuda")
		self.shared, self.medium = map(self.register, ("mover", "disk"))
		self.stream = self.cupy.cuda.Stream(non_blocking=True)
		self.mover = Mover(self.shared.numpy(), lambda: self.start_mover(self.all.data_ptr() - start))
		self.data = self.manifest.content["data"]
		return [self.all[one["window"] - start:][:one["bytes"]] for one in self.data]

	def register(self, name):
		"""A file of the folder, for kernels."""
		path = os.path.join(self.manifest.folder, name)
		memory = self.torch.from_file(path, shared=True, size=os.path.getsize(path), dtype=self.torch.uint8)
		error = self.torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), memory.numel(), 0)
		if int(error):
			raise SystemExit(f"cudaHostRegister of {path}: {error}")
		return memory

	def start_mover(self, memory):
		as_uint64 = self.cupy.uint64
		self.torch.cuda.synchronize()
		self.move((MOVER_RINGS,), (MOVER_THREADS,), (
			as_uint64(self.shared.data_ptr()), as_uint64(self.medium.data_ptr()), as_uint64(memory)),
			stream=self.stream)
		return self.stream

	def dma_of(self, tensor):
		"""The DMA address of a tensor in a data memory."""
		if not hasattr(self, "data"):
			return tensor.data_ptr()
		offset = tensor.data_ptr() - self.all.data_ptr() + self.manifest.window()[0]
		for one in self.data:
			if 0 <= offset - one["window"] <= one["bytes"] - tensor.nbytes:
				return one["dma"] + offset - one["window"]
		raise SystemExit("a tensor is in no data memory")

	def open(self):
		self.manifest.open(self.gpu, self.layout)
		pairs = self.manifest.pairs
		self.count, self.block_size = len(pairs), pairs[0].block_size
		self.array = self.torch.zeros(self.count * MOST_QUEUE_BYTES, dtype=self.torch.uint8, device="cuda")
		self.device = self.array.data_ptr()
		from_ = self.torch.tensor([pair.device for pair in pairs], device="cuda")
		self.gather((1,), (self.count,), (self.device, from_.data_ptr()))
		self.torch.cuda.synchronize()

	def recover(self):
		"""After a loss: behind Manifest.wait_for_stop(), with no kernel running."""
		self.torch.cuda.synchronize()
		self.manifest.give_up()
		self.manifest.wait_for_next()
		self.open()

	def read(self, tensors, pages, statuses):
		"""As Lists.read() of nvmepeer.cuda, on the legacy stream."""
		self.run(tensors, pages, statuses, 2)

	def write(self, tensors, pages, statuses):
		self.run(tensors, pages, statuses, 1)

	def run(self, tensors, pages, statuses, opcode):
		if not len(pages):
			pages = self.memories	# no row of it is read
		count, as_uint32 = statuses.shape[0], self.cupy.uint32
		self.transfer((1,), (512,), (
			self.device, as_uint32(self.count), self.memories.data_ptr(), as_uint32(len(self.memories)),
			tensors.data_ptr(), as_uint32(len(tensors)), pages.data_ptr(), as_uint32(count),
			statuses.data_ptr(), as_uint32(opcode)))

	def close(self):
		"""Give the queue pairs up when the maker asks for it."""
		self.manifest.wait_for_stop()
		self.torch.cuda.synchronize()
		self.manifest.give_up()


def main():
	maker = Maker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
	sys.stdin.read()
	maker.stop()


if __name__ == "__main__":
	sys.exit(main())
