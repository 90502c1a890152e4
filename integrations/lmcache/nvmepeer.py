# SPDX-License-Identifier: MIT OR GPL-2.0
"""LMCache's "GDS L1" tier on a store of nvme-peer: GPUs read and write NVMe disks themselves.

pip installs it into lmcache/v1/gpu_connector/gds_backends: the name of the file is the name in
LMCache's configuration.  Documentation/integrations.rst has an example.

The location is a list of the members of a store, "/dev/nvmep0n1,/dev/nvmep1n1", which
"nvme-peer store create" has made.  NVMEPEER_QUEUES in the environment is the number of queue pairs
of a GPU and disk.

Needs the packages nvmepeer and torch, libnvmepeer_store and libnvmepeer_cuda.
"""
import collections
import ctypes
import os
import threading
from typing import Any, Optional

import torch
from lmcache.logging import init_logger
from lmcache.v1.gpu_connector.gds_backends.base import GDSBackend, GDSHandle, Submission
from nvmepeer import cuda, store
from nvmepeer.engines import Access, nodes_of, retry

logger = init_logger(__name__)

# LMCache registers and transfers 16 MiB at a time.
MOST_BYTES, OPERATIONS = 16 << 20, 1024
WAIT_S = 30.0


def call_host() -> int:
    """Address of cuLaunchHostFunc()."""
    libcuda = ctypes.CDLL(os.environ.get("NVMEPEER_LIBCUDA", "libcuda.so.1"))
    return int(ctypes.cast(libcuda.cuLaunchHostFunc, ctypes.c_void_p).value or 0)


class Engine:
    """How one GPU accesses the members: its buffers, and the calls on its streams."""

    def __init__(self, slab: "Slab", device: int, buffers: list[Any]) -> None:
        self._access = Access(slab.members, device, buffers, slab.queue_count)
        try:
            # PyTorch pins it by CUDA's addresses, which are those of the GPU, too.
            self._pinned = torch.empty(slab.store.streams_bytes(OPERATIONS, MOST_BYTES),
                                       dtype=torch.uint8, pin_memory=True)
            self.streams = store.Streams(slab.store, slab.slots, [cuda.span_of(one) for one in buffers],
                                         call_host(), OPERATIONS, MOST_BYTES, self._access.lists,
                                         cuda.span_of(self._pinned))
        except Exception:
            self._access.close(WAIT_S)
            raise

    def close(self) -> None:
        """End all access to the buffers, after the calls in flight."""
        retry(self.streams.close, WAIT_S)
        self._access.close(WAIT_S)


class Slab(GDSHandle):
    """The slots of a store as one range of bytes."""

    def __init__(self, backend: "Backend", location: str, size: int) -> None:
        super().__init__(location)
        self.members = location.split(",")
        self.queue_count = int(os.environ.get("NVMEPEER_QUEUES", "4"))
        self.store = store.Store(self.members)
        self._backend = backend
        self._lock = threading.Lock()
        self._engines: dict[int, Engine] = {}
        self._pending: collections.deque[tuple[str, Submission, int]] = collections.deque()
        try:
            # The same on each rank, if the store has no other values.
            self.slots = sorted(self.store.alloc(-(-size // self.store.page_bytes)))
        except Exception:
            self.store.close()
            raise

    def read_async(self, buf_base: int, size: int, file_offset: int, buf_offset: int,
                   raw_stream: int) -> Submission:
        return self._submit("read", buf_base, Submission(size, file_offset, buf_offset), raw_stream)

    def write_async(self, buf_base: int, size: int, file_offset: int, buf_offset: int,
                    raw_stream: int) -> Submission:
        return self._submit("write", buf_base, Submission(size, file_offset, buf_offset), raw_stream)

    def _submit(self, name: str, base: int, one: Submission, stream: int) -> Submission:
        with self._lock:
            device = self._backend.device_of(base)
            self._report(device)
            if device not in self._engines:
                self._engines[device] = Engine(self, device, self._backend.buffers(device))
            call = getattr(self._engines[device].streams, name)
            retry(lambda: call(base, one.size, one.file_offset, one.buf_offset, one.result, stream),
                  WAIT_S)
            self._pending.append((name, one, device))
        return one

    def _report(self, device: int) -> None:
        """Log the failures of calls that have ended.  Their queue pairs may be lost: get others."""
        while self._pending and self._pending[0][1].bytes_done:
            name, one, where = self._pending.popleft()
            if one.bytes_done < 0:
                logger.error("nvme-peer: %s of %d bytes at %d failed: %s", name, one.size.value,
                             one.file_offset.value, os.strerror(-one.bytes_done))
                self._forget(where)

    def _forget(self, device: int) -> None:
        if device in self._engines:
            # One that cannot be closed stays, as a GPU and controllers may access its memory.
            self._engines[device].close()
            del self._engines[device]

    def forget(self, device: int) -> None:
        """Close the queue pairs of a GPU; its next call opens others, for its present buffers."""
        with self._lock:
            self._forget(device)

    def close(self) -> None:
        for device in list(self._engines):
            self.forget(device)
        # Slots without a commit are free when the store is opened again.
        self.store.close()


class Backend(GDSBackend):
    """The back end: buffers by GPU, and its slabs."""

    name = "nvmepeer"

    def __init__(self) -> None:
        self._slabs: list[Slab] = []
        self._buffers: dict[int, Any] = {}

    def validate_environment(self) -> None:
        if torch.version.cuda is None:
            raise ValueError("nvmepeer requires a CUDA build of PyTorch")

    def open_slab(self, location: str, size: int, direct_io: bool) -> Slab:
        if direct_io:
            logger.warning("use_direct_io has no effect: nvme-peer bypasses the page cache")
        for member in location.split(","):
            nodes_of(member)
        slab = Slab(self, location, size)
        self._slabs.append(slab)
        return slab

    def register_buffer(self, buf: Any) -> None:
        if not buf.is_cuda:
            raise ValueError("register_buffer: the tensor is not in GPU memory")
        self._buffers[int(buf.data_ptr())] = buf
        self._changed(buf.get_device())

    def deregister_buffer(self, buf: Any) -> None:
        base = int(buf.data_ptr())
        if self._buffers.pop(base, None) is None:
            return
        try:
            # The controllers' access ends here: the caller may free the memory.
            self._changed(buf.get_device())
        except Exception:
            self._buffers[base] = buf
            raise

    def _changed(self, device: int) -> None:
        for slab in self._slabs:
            slab.forget(device)

    def device_of(self, base: int) -> int:
        found: Optional[Any] = self._buffers.get(base)
        if found is None:
            raise ValueError(f"{base:#x} is not the base of a registered buffer")
        return int(found.get_device())

    def buffers(self, device: int) -> list[Any]:
        return [one for one in self._buffers.values() if one.get_device() == device]

    def register_stream(self, raw_stream: int) -> None:
        """Nothing: each call names its stream."""

    def deregister_stream(self, raw_stream: int) -> None:
        """Nothing."""
