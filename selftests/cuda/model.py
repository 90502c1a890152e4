# SPDX-License-Identifier: GPL-2.0-only
"""A model evicts the KV pages of a prompt to a store, and continues with them after a restart of it.

usage: disk.sh model.py [--manifest] [FOLDER]    folder of the file that is the disk; default: /dev/shm
       disk.sh model.py --guest FOLDER           see model-guest.sh

The model has the shape of Llama-3-8B and random weights, and its attention reads a paged cache. The
prompt of PROMPT tokens is computed, its pages are written to slots of a store by a list on the stream,
committed and wiped; the store is closed and opened, and the pages it finds are read to other places of
the cache. All bytes and the logits of the following tokens are compared with those of the same request
on pages that were never evicted. The time to the first token is printed, with the pages read at several
rates, and with the prompt computed again. The controllers are a kernel on CONTROLLER_SMS SMs, see disk.py.
With --manifest another process makes the queue pairs, and this one opens them by descriptors (manifest.py).
With --guest the module in a guest makes them, the controller is badctrl, and a kernel on 8 SMs moves its data
between its disk, which is the store's, and the cache. They are lost and re-armed once, while a list runs.
"""
import argparse
import contextlib
import faulthandler
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn.attention.bias import causal_lower_right

import nvmepeer
from disk import BLOCK, Disk, reset_fake
from ktap import Results
from manifest import Ask, User
from nvmepeer import cuda, store

# What transformers imports has the names of programs in this folder.
sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
import transformers

LIMIT_S = 400
PROMPT, MESSAGE, DECODED, PAGE = 16384, 16, 8, 16
PAGES = PROMPT // PAGE
# Of a sequence: the message and what is decoded have pages of their own.
TABLE = PAGES + (MESSAGE + DECODED + PAGE - 1) // PAGE
SHAPE = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
	 "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 32768}
QUEUES, ENTRIES, CONTROLLER_SMS = 16, 256, 8
RATES, ROUNDS = (0, 28, 14, 7), 5	# GB/s; 0: the link's
VALUES, LISTS = 256, 16
# The rate of a list that a reset of the controller ends, and when.
LOSS_GBYTES, LOSS_S = 0.5, 1


class PagedCache:
	"""Keys and values of all layers in pages, and the attention of a sequence over its pages."""

	def __init__(self, config, pages):
		self.shape = (pages, 2, PAGE, config.num_key_value_heads, config.hidden_size // config.num_attention_heads)
		self.layers = [torch.zeros(self.shape, dtype=torch.bfloat16, device="cuda")
			       for _ in range(config.num_hidden_layers)]
		self.piece = self.layers[0][0].numel() * self.layers[0].element_size()

	def move_to(self, memories):
		"""Have the layers in tensors of bytes, as many in each; returns them."""
		each, size = len(self.layers) // len(memories), self.layers[0].nbytes
		self.layers = [memory[i * size:(i + 1) * size].view(torch.bfloat16).view(self.shape)
			       for memory in memories for i in range(each)]
		return self.layers

	def begin(self, table, past, new):
		"""The tokens of the next step, from @past on, belong to the pages of @table."""
		self.positions = torch.arange(past, past + new, device="cuda")
		self.total, places = past + new, torch.tensor(table, device="cuda")
		self.used = places[:-(-self.total // PAGE)]
		self.page, self.token = places[self.positions // PAGE], self.positions % PAGE

	def attend(self, module, query, key, value, mask, scaling=None, **_):
		"""What transformers calls in each layer: store the new tokens, attend to all."""
		pages = self.layers[module.layer_idx]
		pages[self.page, 0, self.token] = key[0].transpose(0, 1)
		pages[self.page, 1, self.token] = value[0].transpose(0, 1)
		found = pages[self.used]
		keys, values = (found[:, i].flatten(0, 1)[:self.total].transpose(0, 1)[None] for i in (0, 1))
		result = torch.nn.functional.scaled_dot_product_attention(
			query, keys, values, attn_mask=causal_lower_right(query.shape[2], self.total),
			scale=scaling, enable_gqa=True)
		return result.transpose(1, 2).contiguous(), None

	def wipe(self):
		"""Whatever is read from a page that nothing was stored in is not a number."""
		for layer in self.layers:
			layer.fill_(float("nan"))

	def bytes_of(self, numbers):
		"""A copy of pages."""
		places = torch.tensor(numbers, device="cuda")
		return [layer.view(torch.int16)[places] for layer in self.layers]


class Engine:
	"""The model, its cache, and the service of pages below its index."""

	def __init__(self, top, folder, manifest, guest):
		transformers.AttentionInterface.register("nvmepeer_paged", self.attend)
		config = transformers.LlamaConfig(**SHAPE)
		torch.manual_seed(1)
		with torch.device("cuda"):
			self.model = transformers.AutoModelForCausalLM.from_config(
				config, dtype=torch.bfloat16, attn_implementation="nvmepeer_paged").eval()
		self.cache = PagedCache(config, 2 * TABLE)
		self.bytes = self.cache.piece * config.num_hidden_layers
		self.gpu, self.maker, self.guest, self.rate = cuda.Gpu(0), None, guest, 0
		if guest:
			self.queues = self.lists = User(top, self.gpu, guest, self.cache.move_to)
			self.path, self.disk = os.path.join(guest, "disk"), Disk(top, self.queues.medium)
		else:
			self.path = os.path.join(folder, f"nvme-peer-model.{os.getpid()}")
			self.disk = Disk(top, self.make_medium(2 * PAGES * self.bytes))
		store.create([self.path], self.bytes, slots=PAGES + 64)
		# An engine has a tensor for each layer: each is a memory of the lists.
		if manifest:
			self.queues = self.lists = self.receive(top)
		elif not guest:
			self.controller = nvmepeer.Controller("nvmep0")
			with nvmepeer.Namespace("ngp0n1") as namespace:
				self.queues = cuda.Queues(self.controller, namespace, self.gpu, ENTRIES, QUEUES)
			self.lists = cuda.Lists(self.queues, self.cache.layers)
		rows = [cuda.tensor(0, self.cache.piece, self.cache.piece, layer) for layer in range(len(self.cache.layers))]
		cuda.lay_out(rows, self.queues.block_size)
		self.tensors = torch.tensor(rows, device="cuda")
		self.open()

	def make_medium(self, size):
		"""The disk: a file, which the store opens, registered with the GPU."""
		medium = torch.from_file(self.path, shared=True, size=size, dtype=torch.uint8)
		error = torch.cuda.cudart().cudaHostRegister(medium.data_ptr(), size, 0)
		if int(error):
			raise SystemExit(f"cudaHostRegister of {size} bytes of {self.path}: {error}")
		reset_fake(size // BLOCK, ENTRIES)
		return medium

	def receive(self, top):
		"""Queue pairs that another process makes."""
		self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
		program = os.path.join(top, "selftests/cuda/manifest.py")
		self.maker = subprocess.Popen([sys.executable, program, self.folder.name, str(QUEUES), str(ENTRIES)],
					      stdin=subprocess.PIPE)
		return User(top, self.gpu, self.folder.name, self.cache.layers)

	def attend(self, *arguments, **more):
		return self.cache.attend(*arguments, **more)

	def open(self):
		"""Open the store; the index is what it has."""
		self.store = store.Store([self.path])
		self.index = {value.tag: value for value in self.store.scan()}

	def close(self, results):
		self.store.close()
		if self.maker:
			self.maker.stdin.close()
		if self.guest:
			self.queues.manifest.ask(Ask.END)
		self.queues.close()
		if self.maker:
			results.report("the maker ends after its queue pairs were given up", self.maker.wait() == 0)
		elif not self.guest:
			self.lists.close()
			self.controller.close()
		self.gpu.close()
		os.unlink(self.path)

	@contextlib.contextmanager
	def serving(self, gbytes=0):
		"""The controllers run, or what moves the data of the guest's."""
		if self.guest:
			if gbytes != self.rate:
				self.queues.manifest.ask(Ask.RATE, int(1000 * gbytes))
				self.rate = gbytes
			with self.queues.mover.running():
				yield
				torch.cuda.current_stream().synchronize()
			return
		with self.disk.serving(self.queues, per_block=QUEUES // CONTROLLER_SMS, gbytes=gbytes):
			yield

	def step(self, tokens, table, past):
		"""Logits of the last of @tokens, enqueued."""
		self.cache.begin(table, past, len(tokens))
		return self.forward(torch.tensor([tokens], device="cuda"))

	def forward(self, tokens):
		with torch.inference_mode():
			return self.model(input_ids=tokens, position_ids=self.cache.positions[None], use_cache=False,
					  logits_to_keep=1).logits[0, -1]

	def decode(self, first, table):
		"""Continue behind the message with the most likely tokens; returns all logits."""
		logits = [first]
		for past in range(PROMPT + MESSAGE, PROMPT + MESSAGE + DECODED):
			logits.append(self.step([int(logits[-1].argmax())], table, past))
		return torch.stack(logits)

	def statuses(self, pages):
		return torch.full((pages, len(self.cache.layers)), -1, dtype=torch.int32, device="cuda")

	def evict(self, tags, numbers):
		"""Write pages to slots, and commit them."""
		slots = self.store.alloc(len(tags))
		# A store in use has no free slots one after the other.
		random.Random(1).shuffle(slots)
		pages = torch.tensor(self.store.fill_pages(0, slots, numbers, self.bytes), device="cuda")
		statuses = self.statuses(len(tags))
		began = time.monotonic()
		self.lists.write(tensors=self.tensors, pages=pages, statuses=statuses)
		failed = bool(statuses.any())	# waits for the stream
		written = time.monotonic()
		if failed:
			raise SystemExit("a page was not written")
		values = self.store.commit(slots, tags, length=self.bytes, peer=True)
		self.index.update((value.tag, value) for value in values)
		return written - began, time.monotonic() - written

	def restore(self, tags, numbers):
		"""Read the values of tags to pages, on the stream."""
		values = self.store.pin([self.index[tag] for tag in tags])
		pages = torch.tensor(self.store.fill_pages(0, values, numbers), device="cuda")
		statuses = self.statuses(len(tags))
		self.lists.read(tensors=self.tensors, pages=pages, statuses=statuses)
		return values, pages, statuses


def tags_of(tokens):
	"""A tag for each page: a hash of its tokens, of those before, and of what else makes its bytes."""
	tags, so_far = [], hashlib.sha256(json.dumps([SHAPE, "random weights, seed 1", "bf16", PAGE]).encode())
	for page in range(0, len(tokens), PAGE):
		so_far.update(str(tokens[page:page + PAGE]).encode())
		tags.append(so_far.copy().digest().ljust(store.TAG_BYTES, b"\0"))
	return tags


def milliseconds(call):
	"""Of a call that ends with the first token on the host; returns that and its result."""
	torch.cuda.current_stream().synchronize()
	began = time.monotonic()
	result = call()
	return 1000 * (time.monotonic() - began), result


def first_token(logits):
	"""Returns the logits once the token is there."""
	logits.argmax().item()
	return logits


def restored(engine, prompt, message, table):
	"""The request with the pages of the store: all work of the host is part of it."""
	tags = tags_of(prompt)
	# What is copied from the host would wait for the list.
	engine.cache.begin(table, PROMPT, MESSAGE)
	tokens = torch.tensor([message], device="cuda")
	values, _pages, statuses = engine.restore(tags, table[:PAGES])
	logits = first_token(engine.forward(tokens))
	if statuses.any():
		raise SystemExit("a page was not read")
	engine.store.unpin(values)
	return logits


def read_alone(engine, prompt, table):
	"""Milliseconds of the host's part, and of the list."""
	began = time.monotonic()
	tags = tags_of(prompt)
	hashed = time.monotonic()
	start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
	values = engine.store.pin([engine.index[tag] for tag in tags])
	pages = torch.tensor(engine.store.fill_pages(0, values, table[:PAGES]), device="cuda")
	statuses = engine.statuses(PAGES)
	torch.cuda.current_stream().synchronize()
	filled = time.monotonic()
	start.record()
	engine.lists.read(tensors=engine.tensors, pages=pages, statuses=statuses)
	end.record()
	torch.cuda.current_stream().synchronize()
	engine.store.unpin(values)
	return 1000 * (hashed - began), 1000 * (filled - hashed), start.elapsed_time(end)


def read_by_slots(engine, values, numbers, kept):
	"""Read values to pages on the stream. @kept: what must stay until the list has ended."""
	pinned = engine.store.pin(values)
	# The list reads them from there: a copy to the GPU would wait for the lists before.
	pages = torch.tensor(engine.store.fill_pages(0, pinned, numbers)).pin_memory()
	end, statuses = torch.cuda.Event(), engine.statuses(len(values))
	engine.lists.read(tensors=engine.tensors, pages=pages, statuses=statuses)
	end.record()
	kept.append((pinned, pages, statuses, end))


def end_read(engine, kept):
	"""Wait for the first list that has not been waited for; returns its statuses."""
	pinned, _pages, statuses, end = kept.pop(0)
	end.synchronize()
	engine.store.unpin(pinned)
	return statuses


def compare_slots(engine, numbers, results):
	"""VALUES values by their slots over the same list made before: one at a time, and two in flight."""
	values, kept, statuses = list(engine.index.values())[:VALUES], [], engine.statuses(VALUES)
	pages = torch.tensor(engine.store.fill_pages(0, engine.store.pin(values), numbers), device="cuda")

	def plain(flight):
		for _ in range(LISTS):
			engine.lists.read(tensors=engine.tensors, pages=pages, statuses=statuses)
			if not flight:
				torch.cuda.current_stream().synchronize()
		torch.cuda.current_stream().synchronize()
		return [statuses]

	def by_slots(flight):
		found = []
		for _ in range(LISTS):
			read_by_slots(engine, values, numbers, kept)
			while len(kept) > flight:
				found.append(end_read(engine, kept))
		while kept:
			found.append(end_read(engine, kept))
		return found

	# CUDA pins memory while no kernel waits for another.
	warm = [pages.cpu().pin_memory() for _ in range(4)]
	del warm
	good = True
	for flight in (0, 1):
		ratios = []
		for _ in range(ROUNDS + 1):
			with engine.serving():
				took = [milliseconds(lambda: call(flight)) for call in (plain, by_slots)]
			good = good and not any(bool(one.any()) for _, found in took for one in found)
			ratios.append(took[0][0] / took[1][0])
		ratio = statistics.median(ratios[1:])
		print(f"# {VALUES} values by slot over the plain list, {1 + flight} in flight: {ratio:.3f}, "
		      f"{LISTS * VALUES * engine.bytes / took[1][0] / 1e6:.1f} GB/s")
	engine.store.unpin(values)
	results.report("values by slot: two in flight reach 0.97 of the list", good and ratio >= 0.97)


def checked_attention(engine, prompt, table, results):
	"""Is it the attention of transformers?"""
	some = prompt[:2048]
	ours = engine.step(some, table, 0)
	engine.model.set_attn_implementation("sdpa")
	theirs = engine.forward(torch.tensor([some], device="cuda"))
	engine.model.set_attn_implementation("nvmepeer_paged")
	far = ((ours - theirs).float().norm() / theirs.float().norm()).item()
	print(f"# logits of 2,048 tokens by pages and by transformers' attention differ by {far:.2e} of their norm")
	results.report("attention over pages is that of transformers", far < 0.02)


def report_times(engine, prompt, message, table, other, before, expected, results):
	"""The times, and each restored request compared."""
	recomputed, resident = [], []
	for _ in range(ROUNDS):
		recomputed.append(milliseconds(lambda: first_token(engine.step(prompt + message, other, 0)))[0])
		resident.append(milliseconds(lambda: first_token(engine.step(message, table, PROMPT)))[0])
	recompute = statistics.median(recomputed)
	print(f"# first token of {PROMPT} + {MESSAGE} tokens: computed {recompute:.1f} ms, with resident pages "
	      f"{statistics.median(resident):.1f} ms")
	written, committed = evict_and_restart(engine, prompt, table, results)
	gigabytes = PAGES * engine.bytes / 1e9
	print(f"# evicted {PAGES} pages of {engine.bytes} bytes: {gigabytes / written:.1f} GB/s, "
	      f"committed in {1000 * committed:.1f} ms")
	same_bytes = same_logits = True
	for gbytes in RATES:
		times, parts = [], []
		for _ in range(ROUNDS):
			engine.cache.wipe()
			with engine.serving(gbytes):
				took, logits = milliseconds(lambda: restored(engine, prompt, message, other))
				all_logits = engine.decode(logits, other)
			times.append(took)
			same_bytes &= all(map(torch.equal, before, engine.cache.bytes_of(other[:PAGES])))
			same_logits &= torch.equal(all_logits, expected)
			with engine.serving(gbytes):
				parts.append(read_alone(engine, prompt, other))
		hashed, filled, list_ms = map(statistics.median, zip(*parts))
		line = {"limit_gb_s": gbytes, "ms": round(statistics.median(times), 1),
			"over_recomputed": round(statistics.median(times) / recompute, 3),
			"tags_ms": round(hashed, 2), "pin_and_fill_ms": round(filled, 2),
			"list_ms": round(list_ms, 1), "list_gb_s": round(1000 * gigabytes / list_ms, 1)}
		print(f"# restored: {json.dumps(line)}", flush=True)
		if not gbytes and not engine.guest:
			results.report("restored at the link's rate: at most 0.15 of the time of computing again",
				       statistics.median(times) <= 0.15 * recompute)
	results.report(f"restored {ROUNDS * len(RATES)} times: every byte of the pages", same_bytes)
	results.report(f"and the logits of the message and of {DECODED} more tokens, bit by bit", same_logits)


def lose_and_restore(engine, prompt, message, other, before, expected, results):
	"""The controller is reset while a list runs: the queue pairs are lost, and used again once they are re-armed."""
	manifest, places = engine.queues.manifest, torch.tensor(other[:PAGES], device="cuda")
	generation = manifest.generation
	engine.cache.wipe()
	with engine.serving(LOSS_GBYTES):
		values, _pages, statuses = engine.restore(tags_of(prompt), other[:PAGES])
		time.sleep(LOSS_S)
		manifest.ask(Ask.RESET)
		torch.cuda.current_stream().synchronize()
		manifest.wait_for_stop()
	engine.store.unpin(values)
	read = statuses == 0
	print(f"# a reset while a list ran: {read.sum().item()} of {read.numel()} pieces were read before", flush=True)
	results.report("a loss ends the kernel of a list, whose pieces have their statuses",
		       0 < read.sum().item() < read.numel())
	results.report("the pieces that were read before are right", all(
		torch.equal(layer.view(torch.int16)[places][read[:, i]], before[i][read[:, i]])
		for i, layer in enumerate(engine.cache.layers)))
	began = time.monotonic()
	engine.queues.recover()
	print(f"# given up, re-armed and opened again in {time.monotonic() - began:.1f} s", flush=True)
	results.report("the queue pairs are those of the next generation", manifest.generation == generation + 1)
	engine.cache.wipe()
	with engine.serving():
		logits = engine.decode(restored(engine, prompt, message, other), other)
	results.report("restored through them: every byte of the pages, and all logits",
		       all(map(torch.equal, before, engine.cache.bytes_of(other[:PAGES]))) and torch.equal(logits, expected))


def report_only_moved(engine, prompt, table):
	"""The same moves without commands, by as many SMs: what is left of a list's time is the controller's."""
	values = engine.store.pin([engine.index[tag] for tag in tags_of(prompt)])
	rows = torch.tensor(engine.store.fill_pages(0, values, table[:PAGES]), device="cuda")
	engine.store.unpin(values)
	piece = engine.cache.piece
	first = torch.tensor([layer.data_ptr() - engine.queues.all.data_ptr() for layer in engine.cache.layers], device="cuda")
	block = torch.arange(len(first), device="cuda") * piece
	places = torch.stack([rows[:, :1] * engine.queues.block_size + block, first + (rows[:, 1:] & 0xffffffff) * piece], -1)
	places, following = places.reshape(-1, 2).contiguous(), torch.zeros(1, dtype=torch.int32, device="cuda")
	start, end, times, uint32 = *(torch.cuda.Event(enable_timing=True) for _ in range(2)), [], engine.queues.cupy.uint32
	for _ in range(ROUNDS):
		following.zero_()
		engine.disk.stop.zero_()
		start.record()
		engine.disk.only_move((CONTROLLER_SMS,), (1024,), (
			engine.queues.cupy.uint64(engine.queues.all.data_ptr()), engine.queues.cupy.uint64(engine.disk.medium.data_ptr()),
			places.data_ptr(), uint32(len(places)), uint32(piece), uint32(len(places)), following.data_ptr(),
			engine.disk.stop.data_ptr()))
		end.record()
		torch.cuda.current_stream().synchronize()
		times.append(start.elapsed_time(end))
	took = statistics.median(times)
	print(f"# the same {len(places)} moves without a controller: {took:.1f} ms, {len(places) * piece / took / 1e6:.1f} GB/s",
	      flush=True)


def evict_and_restart(engine, prompt, table, results):
	"""Returns the times of writing and of the commit."""
	tags = tags_of(prompt)
	with engine.serving():
		times = engine.evict(tags, table[:PAGES])
	engine.cache.wipe()
	engine.store.close()
	began = time.monotonic()
	engine.open()
	print(f"# opened and scanned in {1000 * (time.monotonic() - began):.1f} ms")
	results.report("an opened store has the pages of the prompt, in its order",
		       len(engine.index) == PAGES and all(tag in engine.index for tag in tags))
	return times


def main():
	parser = argparse.ArgumentParser()
	parser.add_argument("top")
	parser.add_argument("--manifest", action="store_true")
	parser.add_argument("--guest")
	parser.add_argument("folder", nargs="?", default="/dev/shm")
	given = parser.parse_args()
	faulthandler.dump_traceback_later(LIMIT_S, exit=True)
	results, engine = Results(), Engine(given.top, given.folder, given.manifest, given.guest)
	print(f"# torch {torch.__version__}, transformers {transformers.__version__}, "
	      f"{torch.cuda.get_device_name()}, {sum(one.numel() for one in engine.model.parameters()) / 1e9:.2f} "
	      "G parameters", flush=True)
	generator = random.Random(2)
	prompt, message = ([generator.randrange(SHAPE["vocab_size"]) for _ in range(count)]
			   for count in (PROMPT, MESSAGE))
	places = list(range(2 * TABLE))
	generator.shuffle(places)
	table, other = places[:TABLE], places[TABLE:]
	# Kernels are loaded and memory is allocated before the controllers run.
	checked_attention(engine, prompt, table, results)
	engine.step(prompt + message, other, 0)
	none = torch.zeros((0, 2), dtype=torch.int64, device="cuda")
	for call in (engine.lists.read, engine.lists.write):
		call(tensors=engine.tensors, pages=none, statuses=engine.statuses(0))
	engine.statuses(PAGES).any().item()
	# The run that is never evicted.
	engine.step(prompt, table, 0)
	before = engine.cache.bytes_of(table[:PAGES])
	expected = engine.decode(first_token(engine.step(message, table, PROMPT)), table)
	results.report("logits are numbers, and differ from token to token",
		       bool(expected.isfinite().all()) and not torch.equal(expected[0], expected[1]))
	report_times(engine, prompt, message, table, other, before, expected, results)
	if engine.guest:
		report_only_moved(engine, prompt, other)
		lose_and_restore(engine, prompt, message, other, before, expected, results)
	else:
		compare_slots(engine, other[:VALUES], results)
	values = list(engine.index.values())
	engine.store.free(values)
	results.report("freed: all slots are free", engine.store.info().free_slots == engine.store.info().slots)
	engine.close(results)
	return results.end()


sys.exit(main())
