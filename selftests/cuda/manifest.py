# SPDX-License-Identifier: GPL-2.0-only
"""Queue pairs of another process, such as one in a guest whose memory is a file, by a manifest.

usage: manifest.py FOLDER COUNT ENTRIES        make queue pairs, until the end of standard input

The manifest, FOLDER/manifest.json, has the generation, the control page, and of each queue pair its
geometry and parts, {file, offset, bytes, role}; files are in the folder. The control page has three
words: the maker sets STOP, the user ends its kernels, closes the queue pairs and sets DONE; only then the
maker re-arms them, and increments REARMED, or ends. This maker has no controller: rings, doorbells,
status and control pages are in its file, and a kernel serves them (disk.cuh).
"""
import contextlib
import json
import mmap
import os
import struct
import sys
import time

PAGE = 4096
STOP, REARMED, DONE = 0, 4, 8
WAIT_S = 30
# As in include/uapi/linux/nvme_peer.h and nvmepeer_device/queue.h.
STATUS_MAGIC, LIVE = 0x7065706e, 1
SQ_REMOTE, CQ_REMOTE, SGL = 1, 2, 8

KERNELS = """
#include <nvmepeer_device.h>

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
		"""Take the queue pairs back; returns whether the user has given them up."""
		struct.pack_into("<I", self.memory, STOP, 1)
		end = time.monotonic() + WAIT_S
		while time.monotonic() < end:
			if struct.unpack_from("<I", self.memory, DONE)[0]:
				return True
			time.sleep(0.01)
		return False


class User:
	"""The queue pairs of a manifest as one array for kernels, and lists for the memory of tensors.

	The DMA address of a tensor is its address, which the manifest of a real controller has to say.
	"""

	def __init__(self, top, gpu, folder, tensors):
		import cupy
		import torch
		from nvmepeer import cuda

		self.torch, options = torch, ("-std=c++17", f"-I{top}/include")
		module = cupy.RawModule(code=KERNELS, options=options, backend="nvrtc")
		self.transfer, self.as_uint32 = module.get_function("transfer"), cupy.uint32
		layout = torch.zeros(1, dtype=torch.int32, device="cuda")
		module.get_function("layout_of")((1,), (1,), (layout.data_ptr(),))
		manifest = self.wait(os.path.join(folder, "manifest.json"))
		with contextlib.ExitStack() as stack:
			names = {part["file"] for pair in manifest["queue_pairs"] for part in pair["parts"]}
			files = {name: stack.enter_context(open(os.path.join(folder, name), "r+b"))
				 for name in names | {manifest["control"]["file"]}}
			self.pairs = [cuda.Queues.from_files(
				gpu, layout.item() & 0xffffffff,
				[cuda.File(files[part["file"]].fileno(), cuda.Role[part["role"]], part["offset"], part["bytes"])
				 for part in pair["parts"]], cuda.Geometry(**pair["geometry"]))
				for pair in manifest["queue_pairs"]]
			self.control = mmap.mmap(files[manifest["control"]["file"]].fileno(), PAGE,
						 offset=manifest["control"]["offset"])
		self.count, self.block_size = len(self.pairs), self.pairs[0].block_size
		self.array = torch.zeros(self.count * MOST_QUEUE_BYTES, dtype=torch.uint8, device="cuda")
		self.device = self.array.data_ptr()
		from_ = torch.tensor([pair.device for pair in self.pairs], device="cuda")
		module.get_function("gather_queues")((1,), (self.count,), (self.device, from_.data_ptr()))
		self.memories = torch.tensor([[one.nbytes, one.data_ptr(), 0, one.data_ptr()] for one in tensors], device="cuda")
		torch.cuda.synchronize()

	@staticmethod
	def wait(path):
		end = time.monotonic() + WAIT_S
		while not os.path.exists(path):
			if time.monotonic() > end:
				raise SystemExit(f"no {path} in {WAIT_S} s")
			time.sleep(0.01)
		with open(path, encoding="utf-8") as file:
			return json.load(file)

	def read(self, tensors, pages, statuses):
		"""As Lists.read() of nvmepeer.cuda, on the legacy stream."""
		self.run(tensors, pages, statuses, 2)

	def write(self, tensors, pages, statuses):
		self.run(tensors, pages, statuses, 1)

	def run(self, tensors, pages, statuses, opcode):
		if not len(pages):
			pages = self.memories	# no row of it is read
		count = statuses.shape[0]
		self.transfer((1,), (512,), (
			self.device, self.as_uint32(self.count), self.memories.data_ptr(), self.as_uint32(len(self.memories)),
			tensors.data_ptr(), self.as_uint32(len(tensors)), pages.data_ptr(), self.as_uint32(count),
			statuses.data_ptr(), self.as_uint32(opcode)))

	def close(self):
		"""Give the queue pairs up when the maker asks for it."""
		end = time.monotonic() + WAIT_S
		while not struct.unpack_from("<I", self.control, STOP)[0]:
			if time.monotonic() > end:
				raise SystemExit("the maker does not ask for its queue pairs")
			time.sleep(0.01)
		self.torch.cuda.synchronize()
		for pair in self.pairs:
			pair.close()
		struct.pack_into("<I", self.control, DONE, 1)


def main():
	maker = Maker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
	sys.stdin.read()
	return not maker.stop()


if __name__ == "__main__":
	sys.exit(main())
