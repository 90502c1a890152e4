# SPDX-License-Identifier: MIT OR GPL-2.0
"""vLLM's KV offloading to a store of nvme-peer: GPUs read and write NVMe disks themselves.

pip installs it.  Documentation/integrations.rst has the options.

The scheduler's process has the store open.  A value is the chunk of one key for all ranks, each of
which has its part: a worker gets member and blocks of a slot, and opens only nodes of disks.

Needs the packages nvmepeer and torch, libnvmepeer_store and libnvmepeer_cuda.
"""
import collections
import concurrent.futures
import ctypes
import dataclasses
import hashlib
import time
from typing import Any, Collection, Iterable, Iterator, Optional

import nvmepeer
import torch
from nvmepeer import cuda, store
from nvmepeer.engines import Access, nodes_of
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorWorkerMetadata
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.logger import init_logger
from vllm.v1.kv_offload.base import (LoadStoreSpec, LookupResult, Medium, OffloadingEvent, OffloadingManager,
                                     OffloadingSpec, OffloadingWorker, PrepareStoreOutput,
                                     RequestOffloadingContext, TransferResult)

logger = init_logger(__name__)

LOAD, STORE = 0, 1    # also the scratch memory of their lists, which run at the same time
SCOPE_BYTES = 27


class SlotSpec(LoadStoreSpec):
    """Slots of chunks, one after the other: (slot, member, first block of the slot)."""

    def __init__(self, slots: list[tuple[int, int, int]], page_bytes: int) -> None:
        self.slots, self.page_bytes = slots, page_bytes


# ---- Scheduler's process ----


@dataclasses.dataclass
class Entry:
    """A chunk. value: None until it is durable; failed: it is a miss, and freed when it has no reader."""

    key: Optional[bytes]
    slot: int
    value: Optional[store.Value] = None
    readers: int = 0
    failed: bool = False


class Manager(OffloadingManager):
    """The index: least recently used first."""

    def __init__(self, members: list[str], scope: bytes, events: bool) -> None:
        self.store = store.Store(members)
        self._scope = hashlib.sha256(scope).digest()[:SCOPE_BYTES]
        self._entries: collections.OrderedDict[bytes, Entry] = collections.OrderedDict()
        self._events: Optional[list[OffloadingEvent]] = [] if events else None
        self._commits: collections.deque[tuple[list[bytes], Any]] = collections.deque()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "nvmepeer-commit")
        info = self.store.info()
        self._live, places = int(info.live), [self.store.place(i) for i in range(info.members)
                                              if info.live >> i & 1]
        self._places = {int(place.member): place for place in places}
        self._members = int(info.members)
        for value in self.store.scan():
            ours = value.tag[:SCOPE_BYTES] == self._scope
            key = value.tag[SCOPE_BYTES + 1:SCOPE_BYTES + 1 + value.tag[SCOPE_BYTES]] if ours else None
            self._entries[value.tag] = Entry(key, value.slot, value)
            # What another model or configuration has stored is evicted first.
            self._entries.move_to_end(value.tag, last=ours)

    def _tag(self, key: bytes) -> bytes:
        if len(key) > store.TAG_BYTES - SCOPE_BYTES - 1:
            key = hashlib.sha256(key).digest()
        return (self._scope + bytes([len(key)]) + bytes(key)).ljust(store.TAG_BYTES, b"\0")

    def _spec(self, entries: Iterable[Entry]) -> SlotSpec:
        slots = []
        for entry in entries:
            place = self._places[entry.slot % self._members]
            slots.append((entry.slot, int(place.member),
                          int(place.lba + entry.slot // self._members * place.blocks)))
        return SlotSpec(slots, self.store.page_bytes)

    def _emit(self, keys: list[bytes], removed: bool) -> None:
        if self._events is not None and keys:
            self._events.append(OffloadingEvent(keys=keys, medium=Medium.STORAGE, removed=removed))

    def _free(self, tags: list[bytes]) -> list[bytes]:
        """Free slots of entries; returns the keys."""
        gone = [self._entries.pop(tag) for tag in tags]
        try:
            if gone:
                self.store.free([one.slot if one.value is None else one.value for one in gone])
        except nvmepeer.Error as error:
            # Those slots are not used before the store is opened again.
            logger.error("nvme-peer: slots are not freed: %s", error)
        keys = [one.key for one in gone if one.key is not None]
        self._emit(keys, True)
        return keys

    def _commit(self, slots: list[int], tags: list[bytes]) -> list[Optional[store.Value]]:
        try:
            return list(self.store.commit(slots, tags, self.store.page_bytes, peer=True))
        except store.ListError as error:
            logger.error("nvme-peer: values are not stored: %s", error)
            return error.values

    def _collect(self) -> None:
        """Publish what has become durable."""
        while self._commits and self._commits[0][1].done():
            tags, future = self._commits.popleft()
            stored = []
            for tag, value in zip(tags, future.result()):
                self._entries[tag].value = value
                stored.append(tag)
            failed = [tag for tag in stored if self._entries[tag].value is None]
            self._emit([self._entries[tag].key or b"" for tag in stored if tag not in failed], False)
            self._free(failed)

    def _usable(self, entry: Entry) -> bool:
        return not entry.failed and bool(self._live >> entry.slot % self._members & 1)

    @staticmethod
    def _idle(entry: Entry) -> bool:
        return entry.value is not None and not entry.readers

    def lookup(self, key: bytes, req_context: Any) -> LookupResult:
        self._collect()
        entry = self._entries.get(self._tag(key))
        if entry is None or not self._usable(entry):
            return LookupResult.MISS
        return LookupResult.HIT_PENDING if entry.value is None else LookupResult.HIT

    def touch(self, keys: Collection[bytes], req_context: Any) -> None:
        # The end of a prefix is evicted before its start.
        for tag in reversed([self._tag(key) for key in keys]):
            if tag in self._entries:
                self._entries.move_to_end(tag)

    def prepare_load(self, keys: Collection[bytes], req_context: Any) -> SlotSpec:
        entries = [self._entries[self._tag(key)] for key in keys]
        for entry in entries:
            entry.readers += 1
        return self._spec(entries)

    def complete_load(self, keys: Collection[bytes], req_context: Any) -> None:
        for tag in map(self._tag, keys):
            self._entries[tag].readers -= 1
            if self._idle(self._entries[tag]) and not self._usable(self._entries[tag]):
                self._free([tag])

    def prepare_store(self, keys: Collection[bytes], req_context: Any) -> Optional[PrepareStoreOutput]:
        self._collect()
        wanted = {self._tag(key): key for key in keys}
        new = [tag for tag in wanted if tag not in self._entries]
        missing = len(new) - int(self.store.info().free_slots)
        idle = (tag for tag, entry in self._entries.items()
                if self._idle(entry) and tag not in wanted)
        victims = [tag for tag, _ in zip(idle, range(missing))]
        if len(victims) < missing:
            return None
        evicted = self._free(victims)
        try:
            slots = self.store.alloc(len(new)) if new else []
        except nvmepeer.Error as error:
            logger.error("nvme-peer: nothing is stored: %s", error)
            return None
        entries = {tag: Entry(wanted[tag], slot) for tag, slot in zip(new, slots)}
        self._entries.update(entries)
        return PrepareStoreOutput(keys_to_store=[wanted[tag] for tag in new],
                                  store_spec=self._spec(entries.values()), evicted_keys=evicted)

    def complete_store(self, keys: Collection[bytes], req_context: Any, success: bool = True) -> None:
        tags = [tag for tag in map(self._tag, keys) if tag in self._entries]
        pending = [tag for tag in tags if self._entries[tag].value is None]
        bad = [tag for tag in pending if not success or self._entries[tag].failed]
        self._free(bad)
        good = [tag for tag in pending if tag not in bad]
        if good:
            slots = [self._entries[tag].slot for tag in good]
            self._commits.append((good, self._thread.submit(self._commit, slots, good)))

    def fail(self, slots: Collection[int]) -> None:
        """Workers could not transfer chunks: they are misses, and freed when their jobs complete."""
        for entry in self._entries.values():
            entry.failed |= entry.slot in slots

    def on_new_request(self, req_context: Any) -> RequestOffloadingContext:
        return RequestOffloadingContext()

    def on_schedule_end(self, context: Any) -> None:
        self._collect()
        live = int(self.store.info().live)
        if live != self._live:
            self._live = live
            self._free([tag for tag, entry in self._entries.items() if self._idle(entry) and not self._usable(entry)])

    def has_pending_work(self) -> bool:
        return bool(self._commits)

    def take_events(self) -> Iterator[OffloadingEvent]:
        yield from self._events or ()
        if self._events is not None:
            self._events.clear()

    def _wait(self) -> None:
        concurrent.futures.wait([future for _, future in self._commits])
        self._collect()

    def reset_cache(self) -> None:
        self._wait()
        self._free(list(self._entries))

    def shutdown(self) -> None:
        self._wait()
        self._thread.shutdown()
        self.store.close()


# ---- Workers ----


@dataclasses.dataclass
class Part:
    """A list: the chunks' pages of one group on one member, and what it leaves in pinned memory."""

    group: int
    member: int
    pages: list[tuple[int, int, int]]    # slot, first block of the piece, block of the GPU
    rows: cuda.Span = cuda.Span(0, 0)
    statuses: cuda.Span = cuda.Span(0, 0)
    done: cuda.Span = cuda.Span(0, 0)
    launched: bool = False

    def ended(self) -> bool:
        return not self.launched or ctypes.c_uint32.from_address(self.done.address).value != 0

    def failed(self) -> list[tuple[int, int, int]]:
        """Pages of which a tensor was not transferred."""
        count = self.statuses.bytes // 4 // len(self.pages)
        statuses = (ctypes.c_int32 * (count * len(self.pages))).from_address(self.statuses.address)
        return [page for i, page in enumerate(self.pages) if any(statuses[i * count:(i + 1) * count])]


@dataclasses.dataclass
class Job:
    """A transfer; memory: its lists, until they have ended."""

    number: int
    kind: int
    parts: list[Part]
    memory: Any
    bytes: int
    start: float

    def ended(self) -> bool:
        return all(part.ended() for part in self.parts)


def address(tensor: Any) -> int:
    return int(tensor.data_ptr())


class Worker(OffloadingWorker):
    """Transfers of one rank between its GPU's KV cache and its part of values."""

    def __init__(self, spec: "NvmePeerOffloadingSpec", caches: Any) -> None:
        self._spec, self._jobs = spec, list[Job]()
        self._access: Optional[Access] = None
        self._failed_blocks, self._failed_slots = set[int](), set[int]()
        first = caches.tensors[0].tensor
        self._device = int(first.get_device())
        self._streams = [torch.cuda.Stream(self._device), torch.cuda.Stream(self._device)]
        self._keeps = caches
        storages = {address(one.tensor.untyped_storage()): one.tensor.untyped_storage()
                    for one in caches.tensors}
        self._spans = [cuda.Span(start, int(one.nbytes())) for start, one in storages.items()]
        self._groups = [[self._tensor(caches.tensors[ref.tensor_idx].tensor, ref.page_size_bytes,
                                      list(storages)) for ref in refs] for refs in caches.group_data_refs]
        self._tables: dict[tuple[int, int], Any] = {}

    @staticmethod
    def _tensor(tensor: Any, page_bytes: int, storages: list[int]) -> list[int]:
        start = address(tensor.untyped_storage())
        return cuda.tensor(address(tensor) - start, int(tensor.stride(0)) * int(tensor.element_size()),
                           page_bytes, storages.index(start))

    def _open(self) -> Access:
        """Queue pairs and lists; and where the pieces of a block are, by group and member."""
        if self._access is not None:
            return self._access
        access = Access(self._spec.members, self._device, self._spans, self._spec.queues)
        self._unit = max(access.block_sizes)
        self._strides = []
        for group, tensors in enumerate(self._groups):
            self._strides.append(cuda.lay_out(tensors, self._unit) * self._unit)
            for member, size in enumerate(access.block_sizes):
                rows = [[*row[:3], row[3] * (self._unit // size)] for row in tensors]
                self._tables[group, member] = self._pinned(32 * len(rows))
                self._fill(address(self._tables[group, member]), rows)
        self._access = access
        return access

    @staticmethod
    def _pinned(count: int) -> Any:
        return torch.empty(count, dtype=torch.uint8, pin_memory=True)

    @staticmethod
    def _fill(start: int, rows: list[list[int]]) -> None:
        words = [word for row in rows for word in row]
        (ctypes.c_uint64 * len(words)).from_address(start)[:] = words

    def _parts(self, slots: SlotSpec, blocks: Any, access: Optional[Access]) -> list[Part]:
        """The lists of a job."""
        found: dict[tuple[int, int], Part] = {}
        numbers, chunks, factor = iter(blocks.block_ids), iter(slots.slots), self._spec.blocks_per_chunk
        for group, (size, first) in enumerate(zip(blocks.group_sizes, blocks.block_indices)):
            for i in range(first % factor, first % factor + size):
                if i == first % factor or not i % factor:
                    slot, member, lba = next(chunks)
                if access is not None:
                    lba_bytes = access.block_sizes[member]
                    start = lba + (self._base(slots.page_bytes) + i % factor * self._strides[group]) // lba_bytes
                else:
                    start = 0
                part = found.setdefault((group, member), Part(group, member, []))
                part.pages.append((slot, start, int(next(numbers))))
        return list(found.values())

    def _base(self, page_bytes: int) -> int:
        """Offset of this rank's part of a value."""
        room = page_bytes // self._spec.part_count // self._unit * self._unit
        needed = max(self._strides) * self._spec.blocks_per_chunk
        if needed > room:
            raise ValueError(f"a chunk has {needed} bytes for each of {self._spec.part_count} ranks: create the "
                             f"store with --size {needed * self._spec.part_count} instead of {page_bytes}")
        return room * self._spec.part

    def _place(self, parts: list[Part]) -> Any:
        """Memory of the lists, with statuses that are failures until they are set."""
        sizes = [(16 * len(part.pages), 4 * len(part.pages) * len(self._groups[part.group])) for part in parts]
        memory = self._pinned(sum(rows + -(-statuses // 8) * 8 + 8 for rows, statuses in sizes) or 8)
        start = address(memory)
        for part, (rows, statuses) in zip(parts, sizes):
            part.rows, part.statuses = cuda.Span(start, rows), cuda.Span(start + rows, statuses)
            start += rows + -(-statuses // 8) * 8
            part.done = cuda.Span(start, 8)
            start += 8
            self._fill(part.rows.address, [cuda.page(lba, number) for _, lba, number in part.pages])
            ctypes.memset(part.statuses.address, 0xff, statuses)
            ctypes.memset(part.done.address, 0, 8)
        return memory

    def _submit(self, number: int, kind: int, slots: SlotSpec, blocks: Any) -> bool:
        """Start a job.  What cannot be started is a failure of its pages, not of the call."""
        access: Optional[Access] = None
        try:
            access = self._open()
        except nvmepeer.Error as error:
            logger.error("nvme-peer: no queue pairs: %s", error)
        parts = self._parts(slots, blocks, access)
        memory = self._place(parts)
        bytes = sum(len(part.pages) * (row[2] >> 32) for part in parts for row in self._groups[part.group])
        stream = self._streams[kind]
        # The kernels that make or still read the blocks come first.
        stream.wait_stream(torch.cuda.current_stream(self._device))
        try:
            for part in parts if access is not None else []:
                lists = access.lists[part.member]    # type: ignore[union-attr]
                table = cuda.Span(address(self._tables[part.group, part.member]), 32 * len(self._groups[part.group]))
                (lists.write if kind == STORE else lists.read)(
                    tensors=table, pages=part.rows, statuses=part.statuses, done=part.done, scratch=kind,
                    stream=int(stream.cuda_stream))
                part.launched = True
        except nvmepeer.Error as error:
            logger.error("nvme-peer: a list is refused: %s", error)
        self._jobs.append(Job(number, kind, parts, memory, bytes, time.monotonic()))
        return True

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._submit(job_id, STORE, dst_spec, src_spec)

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._submit(job_id, LOAD, src_spec, dst_spec)

    def get_finished(self) -> list[TransferResult]:
        ended = [job for job in self._jobs if job.ended()]
        if any(part.failed() for job in ended for part in job.parts):
            # Its commands may still be executed, and its queue pairs may be lost: get others.
            self.release()
            ended = list(self._jobs)
        self._jobs = [job for job in self._jobs if job not in ended]
        return [self._result(job) for job in ended]

    def _result(self, job: Job) -> TransferResult:
        failed = [page for part in job.parts for page in part.failed()]
        if failed:
            logger.error("nvme-peer: %d of %d blocks of job %d are not %s", len(failed),
                         sum(len(part.pages) for part in job.parts), job.number,
                         "stored" if job.kind == STORE else "loaded")
        self._failed_slots.update(slot for slot, _, _ in failed)
        if job.kind == LOAD:
            self._failed_blocks.update(number for _, _, number in failed)
        # Without the connector below, vLLM has no way to recompute blocks, and must stop.
        return TransferResult(job_id=job.number, success=not failed or self._spec.reports_failures,
                              transfer_size=job.bytes, transfer_time=time.monotonic() - job.start)

    def wait(self, job_ids: set[int]) -> None:
        for kind in {job.kind for job in self._jobs if job.number in job_ids}:
            self._streams[kind].synchronize()

    def take_failures(self, name: str) -> set[int]:
        """The failed "blocks" of loads, or "slots" of all jobs, since the last call."""
        found: set[int] = getattr(self, f"_failed_{name}")
        setattr(self, f"_failed_{name}", set())
        return found

    def release(self) -> None:
        """End all access of controllers to the KV cache; the next transfer opens queue pairs again."""
        for stream in self._streams:
            stream.synchronize()
        if self._access is not None:
            self._access.close()
            self._access = None

    def shutdown(self) -> None:
        self.release()


# ---- What vLLM loads ----


class NvmePeerOffloadingSpec(OffloadingSpec):
    """The spec: spec_name and spec_module_path of kv_connector_extra_config."""

    reports_failures = False

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        parallel = config.parallel
        replicas = str(self.extra_config["nvmepeer_members"]).split(";")
        self.members = replicas[parallel.data_parallel_index if len(replicas) > 1 else 0].split(",")
        for member in self.members:
            nodes_of(member)
        self.queues = int(self.extra_config.get("nvmepeer_queues", 4))
        # Bytes that all ranks have are stored once: vLLM lets rank 0 store only.
        self.replicated_layout = bool(config.replicated_layout)
        self.part_count = 1 if self.replicated_layout else int(parallel.world_size)
        self.part = 0 if self.replicated_layout else int(parallel.rank)
        # All that changes the bytes of a value besides its key.
        self._scope = repr((config.model.name, config.model.dtype, config.worker_kv_bytes_per_block,
                            [(one.tokens_per_block, one.layer_names) for one in config.groups],
                            config.cache.tokens_per_hash, config.cache.blocks_per_chunk, self.part_count,
                            parallel.tp_size, parallel.pp_size, parallel.pcp_size, parallel.dcp_size,
                            str(self.extra_config.get("nvmepeer_salt", "")))).encode()
        self._manager: Optional[Manager] = None
        self._worker: Optional[Worker] = None

    def get_manager(self) -> Manager:
        if self._manager is None:
            self._manager = Manager(self.members, self._scope, self.config.enable_kv_cache_events)
        return self._manager

    def get_worker(self, kv_caches: Any) -> Worker:
        if self._worker is None:
            self._worker = Worker(self, kv_caches)
        return self._worker


@dataclasses.dataclass
class WorkerMetadata(KVConnectorWorkerMetadata):
    """What vLLM's worker reports, and the slots that this one could not transfer."""

    inner: Any
    failed_slots: set[int]

    def aggregate(self, other: Any) -> "WorkerMetadata":
        return WorkerMetadata(self.inner.aggregate(other.inner), self.failed_slots | other.failed_slots)


class NvmePeerConnector(OffloadingConnector):
    """vLLM's connector, which ends the engine if a transfer fails, with the failures of blocks."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any = None) -> None:
        if getattr(vllm_config.model_config, "enable_sleep_mode", False):
            raise ValueError("NvmePeerConnector: start vLLM without sleep mode: controllers would keep the "
                             "memory of the KV cache")
        super().__init__(vllm_config, role, kv_cache_config)
        if self.connector_worker is not None:
            self.connector_worker.spec.reports_failures = True

    def _take_failures(self, name: str) -> set[int]:
        worker = self.connector_worker.worker
        return worker.take_failures(name) if worker is not None else set()

    def get_block_ids_with_load_errors(self) -> set[int]:
        return self._take_failures("blocks")

    def build_connector_worker_meta(self) -> Optional[WorkerMetadata]:
        inner = super().build_connector_worker_meta()
        return WorkerMetadata(inner, self._take_failures("slots")) if inner is not None else None

    def update_connector_output(self, connector_output: Any) -> None:
        meta = connector_output.kv_connector_worker_meta
        if isinstance(meta, WorkerMetadata):
            self.connector_scheduler.manager.fail(meta.failed_slots)
            connector_output.kv_connector_worker_meta = meta.inner
        super().update_connector_output(connector_output)
