# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of the offloading for vLLM, on modelled disks, a fake kernel and a fake libcuda.

The interface of vLLM (vllm/v1/kv_offload/base.py of its commit 0105e23, and the connector around it)
is declared here as far as it is used.
"""
import abc
import ctypes
import dataclasses
import enum
import logging
import os
import pickle
import sys
import types
import unittest
from typing import Any, Optional

import nvmepeer
from nvmepeer import cuda, library, store

import engines
import unit
from engines import Tensor, double, pinned

BLOCK, MEMBERS = 512, ["/dev/nvmep0n1", "/dev/nvmep1n1"]
# Pages of two layers, of which one is padded; two blocks a chunk; two ranks.
LAYERS, PER_CHUNK, RANKS, BLOCKS = (1024, 600), 2, 2, 16
PAGE = RANKS * PER_CHUNK * (1024 + 1024)


class Base(abc.ABC):
    """Any class of the interface whose methods the test does not need."""


class LookupResult(enum.Enum):
    MISS = enum.auto()
    HIT = enum.auto()
    HIT_PENDING = enum.auto()
    RETRY = enum.auto()


class Medium(enum.Enum):
    CPU = "CPU"
    STORAGE = "STORAGE"


@dataclasses.dataclass
class OffloadingEvent:
    keys: list[bytes]
    medium: Medium
    removed: bool


@dataclasses.dataclass
class PrepareStoreOutput:
    keys_to_store: list[bytes]
    store_spec: Any
    evicted_keys: list[bytes]


@dataclasses.dataclass
class TransferResult:
    job_id: int
    success: bool
    transfer_size: Optional[int] = None
    transfer_time: Optional[float] = None


class OffloadingManager(abc.ABC):
    @abc.abstractmethod
    def lookup(self, key: bytes, req_context: Any) -> LookupResult: ...

    @abc.abstractmethod
    def prepare_load(self, keys: Any, req_context: Any) -> Any: ...

    @abc.abstractmethod
    def prepare_store(self, keys: Any, req_context: Any) -> Optional[PrepareStoreOutput]: ...

    @abc.abstractmethod
    def on_new_request(self, req_context: Any) -> Any: ...


class OffloadingWorker(abc.ABC):
    @abc.abstractmethod
    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool: ...

    @abc.abstractmethod
    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool: ...

    @abc.abstractmethod
    def get_finished(self) -> list[TransferResult]: ...

    @abc.abstractmethod
    def wait(self, job_ids: set[int]) -> None: ...


class OffloadingSpec(abc.ABC):
    def __init__(self, config: Any) -> None:
        self.config, self.extra_config = config, config.extra_config
        self.replicated_layout = False
        self.blocks_per_chunk = config.cache.blocks_per_chunk

    @abc.abstractmethod
    def get_manager(self) -> OffloadingManager: ...

    @abc.abstractmethod
    def get_worker(self, kv_caches: Any) -> OffloadingWorker: ...


class WorkerMetadata:
    """vLLM's OffloadingWorkerMetadata: how many workers have completed a job."""

    def __init__(self, completed: dict[int, int]) -> None:
        self.completed_jobs = completed

    def aggregate(self, other: "WorkerMetadata") -> "WorkerMetadata":
        merged = dict(self.completed_jobs)
        for job, count in other.completed_jobs.items():
            merged[job] = merged.get(job, 0) + count
        return WorkerMetadata(merged)


class OffloadingConnector:
    """The connector: as a worker it reports completed jobs, as the scheduler it completes them."""

    def __init__(self, vllm_config: Any, role: str, kv_cache_config: Any = None) -> None:
        spec = vllm_config.make()
        self.connector_worker = self.connector_scheduler = None
        if role == "worker":
            self.connector_worker = types.SimpleNamespace(spec=spec, worker=None)
        else:
            self.connector_scheduler = types.SimpleNamespace(manager=spec.get_manager())
        self.completed: dict[int, int] = {}

    def get_finished(self) -> None:
        for result in self.connector_worker.worker.get_finished():
            assert result.success    # as vLLM has it
            self.completed[result.job_id] = 1

    def build_connector_worker_meta(self) -> Optional[WorkerMetadata]:
        completed, self.completed = self.completed, {}
        return WorkerMetadata(completed) if completed else None

    def update_connector_output(self, output: Any) -> None:
        output.seen = output.kv_connector_worker_meta


class View:
    """A tensor of (blocks, page) bytes in the storage of a GPU."""

    def __init__(self, storage: Tensor, offset: int, page: int) -> None:
        self.storage, self.offset, self.page = storage, offset, page
        self.storage.nbytes = self.storage.numel    # type: ignore[attr-defined]

    def untyped_storage(self) -> Tensor:
        return self.storage

    def data_ptr(self) -> int:
        return self.storage.address + self.offset

    def stride(self, axis: int) -> int:
        return self.page

    def element_size(self) -> int:
        return 1

    def get_device(self) -> int:
        return 0

    def row(self, number: int) -> Any:
        return (ctypes.c_char * self.page).from_address(self.data_ptr() + number * self.page)


class Stream:
    """A stream; what it waits for is recorded."""

    numbers = iter(range(1000, 1 << 20))
    running: Any = None

    def __init__(self, device: int) -> None:
        self.cuda_stream = next(Stream.numbers)

    def wait_stream(self, other: int) -> None:
        self.waits_for = other

    def synchronize(self) -> None:
        Stream.running.run(self.cuda_stream)


def gpu_spec(blocks: list[int], first: int = 0) -> Any:
    return types.SimpleNamespace(block_ids=blocks, group_sizes=(len(blocks),), block_indices=(first,))


double("torch", empty=pinned, uint8="bytes",
       cuda=types.SimpleNamespace(Stream=Stream, current_stream=lambda device: 7, is_available=lambda: True))
for name in ("vllm", "vllm.distributed", "vllm.distributed.kv_transfer", "vllm.v1", "vllm.v1.kv_offload",
             "vllm.distributed.kv_transfer.kv_connector", "vllm.distributed.kv_transfer.kv_connector.v1"):
    double(name)
double("vllm.logger", init_logger=logging.getLogger)
double("vllm.distributed.kv_transfer.kv_connector.v1.base", KVConnectorWorkerMetadata=Base)
double("vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector", OffloadingConnector=OffloadingConnector)
double("vllm.v1.kv_offload.base", LoadStoreSpec=Base, LookupResult=LookupResult, Medium=Medium,
       OffloadingEvent=OffloadingEvent, OffloadingManager=OffloadingManager, OffloadingSpec=OffloadingSpec,
       OffloadingWorker=OffloadingWorker, PrepareStoreOutput=PrepareStoreOutput,
       RequestOffloadingContext=Base, TransferResult=TransferResult)
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import nvmepeer_vllm as offload    # noqa: E402


def config(rank: int = 0, replicated: bool = False, model: str = "model", **extra: str) -> Any:
    space = types.SimpleNamespace
    return space(groups=(space(tokens_per_block=16, layer_names=("a", "b")),), worker_kv_bytes_per_block=1624,
                 enable_kv_cache_events=True, extra_config={"nvmepeer_members": ",".join(MEMBERS), **extra},
                 model=space(name=model, dtype="bfloat16"), replicated_layout=replicated,
                 cache=space(tokens_per_hash=16, blocks_per_chunk=PER_CHUNK),
                 parallel=space(rank=rank, world_size=RANKS, tp_size=RANKS, pp_size=1, pcp_size=1, dcp_size=1,
                                data_parallel_index=0))


def key(number: int) -> bytes:
    return bytes([number]) * 32 + bytes(4)


class OffloadTest(unittest.TestCase):
    slots = 8    # of both members

    def setUp(self) -> None:
        self.streams = Stream.running = engines.Streams(BLOCK)
        store.create(MEMBERS, PAGE, slots=self.slots // 2)
        self.manager = self.connector("scheduler").connector_scheduler.manager
        self.ranks, self.caches = [], []
        for rank in range(RANKS):
            self.start_worker(rank)
        self.streams.disk_of = self.disk_of
        self.job = 0

    def tearDown(self) -> None:
        for rank in self.ranks:
            rank.connector_worker.worker.shutdown()
        self.manager.shutdown()
        self.assertFalse(cuda._open)
        self.assertEqual(unit.Fake.in_dll(library._library, "fake").open_files, 0)

    def connector(self, role: str, rank: int = 0, **options: Any) -> Any:
        make = lambda: offload.NvmePeerOffloadingSpec(config(rank, **options))
        vllm_config = types.SimpleNamespace(model_config=types.SimpleNamespace(enable_sleep_mode=False), make=make)
        return offload.NvmePeerConnector(vllm_config, role)

    def start_worker(self, rank: int, **options: Any) -> None:
        connector = self.connector("worker", rank, **options)
        storage = Tensor(1 << 17)
        first = View(storage, 512, LAYERS[0])
        views = [first, View(storage, 512 + LAYERS[0] * BLOCKS, LAYERS[1])]
        tensors = [types.SimpleNamespace(tensor=view, page_size_bytes=view.page) for view in views]
        refs = [types.SimpleNamespace(tensor_idx=i, page_size_bytes=view.page) for i, view in enumerate(views)]
        caches = types.SimpleNamespace(tensors=tensors, group_data_refs=[refs])
        connector.connector_worker.worker = connector.connector_worker.spec.get_worker(caches)
        self.ranks.append(connector)
        self.caches.append(views)

    def disk_of(self, queues: int) -> int:
        for rank in self.ranks:
            access = rank.connector_worker.worker._access
            for i, lists in enumerate(access.lists if access else []):
                if lists.queues.device == queues:
                    return i
        raise AssertionError("queue pairs of no rank")

    def bytes_of(self, rank: int, seed: int, layer: int) -> bytes:
        return bytes([rank * 100 + seed * 2 + layer]) * LAYERS[layer]

    def fill(self, rank: int, number: int, seed: int) -> None:
        for layer, view in enumerate(self.caches[rank]):
            view.row(number)[:] = self.bytes_of(rank, seed, layer)

    def has(self, rank: int, number: int, seed: int) -> bool:
        return all(view.row(number).raw == self.bytes_of(rank, seed, layer)
                   for layer, view in enumerate(self.caches[rank]))

    def submit(self, name: str, slots: Any, blocks: Any) -> None:
        self.job += 1
        # The engine sends it to the processes of the ranks.
        slots = pickle.loads(pickle.dumps(slots))
        for rank in self.ranks:
            worker = rank.connector_worker.worker
            pair = (blocks, slots) if name == "store" else (slots, blocks)
            self.assertTrue(getattr(worker, f"submit_{name}")(self.job, *pair))

    def finish(self) -> tuple[set[int], set[int]]:
        """What the engine does at the end of a step: completed jobs, and blocks to be recomputed."""
        meta, invalid = None, set()
        for rank in self.ranks:
            rank.get_finished()
            invalid |= rank.get_block_ids_with_load_errors()
            mine = rank.build_connector_worker_meta()
            meta = mine if meta is None else meta.aggregate(mine) if mine else meta
        if meta is None:
            return set(), invalid
        output = types.SimpleNamespace(kv_connector_worker_meta=pickle.loads(pickle.dumps(meta)))
        scheduler = offload.NvmePeerConnector.__new__(offload.NvmePeerConnector)
        scheduler.connector_scheduler = types.SimpleNamespace(manager=self.manager)
        scheduler.update_connector_output(output)
        counts = output.seen.completed_jobs
        return {job for job, count in counts.items() if count == len(self.ranks)}, invalid

    def save(self, keys: list[bytes], blocks: list[int]) -> PrepareStoreOutput:
        prepared = self.manager.prepare_store(keys, None)
        self.assertEqual(prepared.keys_to_store, keys)
        self.submit("store", prepared.store_spec, gpu_spec(blocks))
        self.streams.run()
        self.assertEqual(self.finish(), ({self.job}, set()))
        self.manager.complete_store(keys, None)
        self.manager._wait()
        return prepared

    def load(self, keys: list[bytes], blocks: list[int], first: int = 0) -> set[int]:
        spec = self.manager.prepare_load(keys, None)
        self.submit("load", spec, gpu_spec(blocks, first))
        self.streams.run()
        jobs, invalid = self.finish()
        self.assertEqual(jobs, {self.job})
        self.manager.complete_load(keys, None)
        return invalid

    def lookup(self, *numbers: int) -> str:
        return " ".join(self.manager.lookup(key(number), None).name for number in numbers)

    def fill_chunks(self, count: int) -> list[bytes]:
        for rank in range(RANKS):
            for number in range(count * PER_CHUNK):
                self.fill(rank, number, number)
        return [key(number) for number in range(count)]

    def test_chunks_come_back_to_other_blocks_of_each_rank(self) -> None:
        keys = self.fill_chunks(3)
        self.save(keys, list(range(6)))
        self.assertEqual(self.lookup(0, 1, 2, 3), "HIT HIT HIT MISS")
        self.assertEqual(self.load(keys, [15, 14, 13, 12, 11, 10]), set())
        for rank in range(RANKS):
            self.assertTrue(all(self.has(rank, 15 - i, i) for i in range(6)))

    def test_the_first_chunk_of_a_load_may_be_partial(self) -> None:
        keys = self.fill_chunks(3)
        self.save(keys, list(range(6)))
        self.load(keys[1:], [9, 12, 8], 3)
        for rank in range(RANKS):
            self.assertTrue(all(self.has(rank, place, i) for place, i in ((9, 3), (12, 4), (8, 5))))
            self.assertFalse(self.has(rank, 10, 3))

    def test_a_restart_finds_them(self) -> None:
        keys = self.fill_chunks(2)
        self.save(keys, list(range(4)))
        self.manager.shutdown()
        self.manager = self.connector("scheduler").connector_scheduler.manager
        self.assertEqual(self.lookup(0, 1, 2), "HIT HIT MISS")
        self.load(keys, [12, 13, 14, 15])
        self.assertTrue(all(self.has(rank, 12 + i, i) for rank in range(RANKS) for i in range(4)))
        self.manager.shutdown()
        # Another model has no use for them, and its values are evicted first.
        self.manager = self.connector("scheduler", model="other").connector_scheduler.manager
        self.assertEqual(self.lookup(0, 1), "MISS MISS")
        self.save(self.fill_chunks(6), list(range(12)))
        self.manager.shutdown()
        self.manager = self.connector("scheduler").connector_scheduler.manager
        self.assertEqual(self.save([key(9)], [2, 3]).evicted_keys, [])
        self.assertEqual(self.lookup(0, 1, 9), "HIT HIT HIT")

    def test_nothing_is_a_hit_before_it_is_durable(self) -> None:
        keys = self.fill_chunks(1)
        prepared = self.manager.prepare_store(keys, None)
        self.assertEqual(self.lookup(0), "HIT_PENDING")
        self.submit("store", prepared.store_spec, gpu_spec([0, 1]))
        worker = self.ranks[0].connector_worker.worker
        # It begins after the kernels of the engine's stream, on one of its own.
        self.assertEqual([stream.waits_for for stream in worker._streams[offload.STORE:]], [7])
        self.assertEqual({stream for stream, _ in self.streams.works},
                         {rank.connector_worker.worker._streams[offload.STORE].cuda_stream for rank in self.ranks})
        self.assertEqual(self.finish(), (set(), set()))
        for rank in self.ranks:
            rank.connector_worker.worker.wait({self.job})
        self.assertEqual(self.finish(), ({self.job}, set()))
        flushes = self.streams.disks.model_commands(3)
        self.assertEqual(self.lookup(0), "HIT_PENDING")
        self.manager.complete_store(keys, None)
        self.manager._wait()
        self.assertGreater(self.streams.disks.model_commands(3), flushes)
        self.assertEqual(self.lookup(0), "HIT")
        self.assertFalse(self.manager.has_pending_work())

    def test_the_least_recently_used_is_evicted(self) -> None:
        keys = self.fill_chunks(8)
        self.save(keys, list(range(16)))
        self.manager.touch([key(0), key(1)], None)
        self.manager.prepare_load([key(2)], None)
        prepared = self.save([key(20), key(21)], [0, 1, 2, 3])
        self.assertEqual(prepared.evicted_keys, [key(3), key(4)])
        self.assertEqual(self.lookup(0, 1, 2, 3, 4, 5, 20), "HIT HIT HIT MISS MISS HIT HIT")
        self.manager.complete_load([key(2)], None)
        events = list(self.manager.take_events())
        self.assertEqual([(one.keys, one.removed) for one in events],
                         [(keys, False), ([key(3), key(4)], True), ([key(20), key(21)], False)])
        self.assertEqual(list(self.manager.take_events()), [])
        # What is read or written is not evicted: none, rather than some, is stored.
        self.manager.prepare_load([key(number) for number in (0, 1, 2, 5, 6, 7, 20)], None)
        self.assertIsNone(self.manager.prepare_store([key(30), key(31)], None))

    def test_a_failed_load_is_that_of_its_blocks(self) -> None:
        keys = self.fill_chunks(3)
        prepared = self.save(keys, list(range(6)))
        _, member, lba = prepared.store_spec.slots[1]
        # A piece of one layer of the second chunk, in the part of rank 1.
        bad = lba + PAGE // RANKS // BLOCK + 2
        self.streams.fails = lambda disk, block: (disk, block) == (member, bad)
        queues = [rank.connector_worker.worker._access for rank in self.ranks]
        with self.assertLogs(offload.logger, "ERROR") as logs:
            self.assertEqual(self.load(keys, [10, 11, 12, 13, 14, 15]), {12})
        self.assertIn("1 of 6 blocks of job 2 are not loaded", logs.output[0])
        self.streams.fails = lambda disk, block: False
        self.assertTrue(self.has(1, 10, 0) and self.has(1, 15, 5) and self.has(0, 12, 2))
        # The chunk is a miss from now on; the rank has other queue pairs, as those may be lost.
        self.assertEqual(self.lookup(0, 1, 2), "HIT MISS HIT")
        self.save([key(1)], [2, 3])
        self.assertEqual(self.load(keys, [10, 11, 12, 13, 14, 15]), set())
        self.assertTrue(all(self.has(rank, 10 + i, i) for rank in range(RANKS) for i in range(6)))
        now = [rank.connector_worker.worker._access for rank in self.ranks]
        self.assertEqual([a is b for a, b in zip(now, queues)], [True, False])

    def test_a_failed_store_is_not_committed(self) -> None:
        keys = self.fill_chunks(2)
        prepared = self.manager.prepare_store(keys, None)
        _, *bad = prepared.store_spec.slots[0]
        self.streams.fails = lambda disk, block: [disk, block] == bad
        self.submit("store", prepared.store_spec, gpu_spec([0, 1, 2, 3]))
        self.streams.run()
        with self.assertLogs(offload.logger, "ERROR"):
            self.assertEqual(self.finish(), ({1}, set()))
        self.assertEqual(self.lookup(0, 1), "MISS HIT_PENDING")
        self.manager.complete_store(keys, None)
        self.manager._wait()
        self.assertEqual(self.lookup(0, 1), "MISS HIT")
        self.assertEqual(self.manager.store.info().free_slots, self.slots - 1)

    def test_without_queue_pairs_all_blocks_fail(self) -> None:
        keys = self.fill_chunks(1)
        self.save(keys, [0, 1])
        for rank in self.ranks:
            rank.connector_worker.worker.release()
        failing = self.fail_open
        offload.Access, before = failing, offload.Access
        try:
            with self.assertLogs(offload.logger, "ERROR"):
                self.assertEqual(self.load(keys, [4, 5]), {4, 5})
        finally:
            offload.Access = before
        self.assertEqual(self.lookup(0), "MISS")

    @staticmethod
    def fail_open(*arguments: Any) -> Any:
        raise nvmepeer.Error("open", 19, 0, "the disk is gone", "", "")

    def test_vllm_stops_without_the_connector(self) -> None:
        worker = self.ranks[0].connector_worker.worker
        worker._spec.reports_failures = False
        keys = self.fill_chunks(1)
        self.streams.fails = lambda disk, block: True
        self.submit("store", self.manager.prepare_store(keys, None).store_spec, gpu_spec([0, 1]))
        self.streams.run()
        with self.assertLogs(offload.logger, "ERROR"):
            self.assertEqual([one.success for one in worker.get_finished()], [False])
        self.manager.complete_store(keys, None, success=False)
        self.assertEqual(self.lookup(0), "MISS")
        self.assertEqual(self.manager.store.info().free_slots, self.slots)

    def test_memory_is_released_and_imported_again(self) -> None:
        keys = self.fill_chunks(1)
        self.save(keys, [0, 1])
        for rank in self.ranks:
            rank.connector_worker.worker.release()
        self.assertFalse(cuda._open)
        self.assertEqual(self.load(keys, [4, 5]), set())
        self.assertTrue(self.has(1, 5, 1))

    def test_a_lost_member_is_a_miss(self) -> None:
        keys = self.fill_chunks(4)
        prepared = self.save(keys, list(range(8)))
        lost = [i for i, (_, member, _) in enumerate(prepared.store_spec.slots) if member == 1]
        self.streams.disks.model_end(0, 2)
        try:
            with self.assertLogs(offload.logger, "ERROR"):
                self.save_lost([key(number) for number in (20, 21)])
            self.manager.on_schedule_end(None)
            found = self.lookup(*range(4)).split()
            self.assertEqual([i for i, one in enumerate(found) if one == "MISS"], lost)
            again = [keys[i] for i in lost]
            prepared = self.manager.prepare_store(again, None)
            self.assertEqual(prepared.keys_to_store, again)
            self.manager.complete_store(again, None, success=False)
        finally:
            self.streams.disks.model_start()

    def save_lost(self, keys: list[bytes]) -> None:
        self.manager.prepare_store(keys, None)
        self.manager.complete_store(keys, None)
        self.manager._wait()

    def test_bytes_that_all_ranks_have_are_stored_once(self) -> None:
        spec = offload.NvmePeerOffloadingSpec(config(1, replicated=True))
        self.assertTrue(spec.replicated_layout)
        self.assertEqual((spec.part, spec.part_count), (0, 1))
        spec = offload.NvmePeerOffloadingSpec(config(1))
        self.assertEqual((spec.part, spec.part_count), (1, 2))

    def test_reset(self) -> None:
        self.save(self.fill_chunks(2), list(range(4)))
        self.manager.reset_cache()
        self.assertEqual(self.lookup(0, 1), "MISS MISS")
        self.assertEqual(self.manager.store.info().free_slots, self.slots)

    def test_configuration(self) -> None:
        with self.assertRaisesRegex(ValueError, "without sleep mode"):
            offload.NvmePeerConnector(types.SimpleNamespace(model_config=types.SimpleNamespace(
                enable_sleep_mode=True)), "worker")
        with self.assertRaisesRegex(ValueError, "not a block device of nvme-peer"):
            offload.NvmePeerOffloadingSpec(config(nvmepeer_members="/dev/nvme0n1"))
        worker = self.ranks[0].connector_worker.worker
        worker._open()
        with self.assertRaisesRegex(ValueError, f"--size {PAGE}"):
            worker._base(PAGE - BLOCK)


if __name__ == "__main__":
    sys.exit(unit.main(__name__))
