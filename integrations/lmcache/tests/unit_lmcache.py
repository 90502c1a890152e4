# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of the back end for LMCache, on modelled disks, a fake kernel and a fake libcuda.

The interfaces of LMCache (its commit 3257b4c) and PyTorch are declared here as far as the back end
uses them.  The stream of the test executes what was added to it when the test says so, and a list
as a GPU does, on the disk of its number.
"""
import abc
import ctypes
import errno
import logging
import os
import sys
import types
import unittest
from typing import Any

import nvmepeer
from nvmepeer import cuda, library, store

import unit

# A page is more than an item of a list.
PAGE, BLOCK, START, REGION, SLOTS = 196608, 512, 8192, 1 << 18, 4
# Offsets in the parameters of the kernel, lib/cuda/list_kernel.h.
COUNT_AT, MEMORY, ITEMS, OPCODE = 16, 32, 40, 92
CALLED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LAUNCHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


class Submission:
    def __init__(self, size: int, file_offset: int, buf_offset: int) -> None:
        self.size, self.result = ctypes.c_size_t(size), ctypes.c_int64(0)
        self.file_offset, self.buf_offset = ctypes.c_int64(file_offset), ctypes.c_int64(buf_offset)

    @property
    def bytes_done(self) -> int:
        return self.result.value


class GDSBackend(abc.ABC):
    name = ""

    @classmethod
    def is_default(cls) -> bool:
        return False

    def validate_environment(self) -> None:
        pass

    def close_driver(self) -> None:
        pass

    @abc.abstractmethod
    def open_slab(self, location: str, size: int, direct_io: bool) -> "GDSHandle":
        ...

    @abc.abstractmethod
    def register_buffer(self, buf: Any) -> None:
        ...

    @abc.abstractmethod
    def deregister_buffer(self, buf: Any) -> None:
        ...

    @abc.abstractmethod
    def register_stream(self, raw_stream: int) -> None:
        ...

    @abc.abstractmethod
    def deregister_stream(self, raw_stream: int) -> None:
        ...


class GDSHandle(abc.ABC):
    def __init__(self, path: str) -> None:
        self.path = path

    @abc.abstractmethod
    def read_async(self, buf_base: int, size: int, file_offset: int, buf_offset: int,
                   raw_stream: int) -> Submission:
        ...

    @abc.abstractmethod
    def write_async(self, buf_base: int, size: int, file_offset: int, buf_offset: int,
                    raw_stream: int) -> Submission:
        ...

    @abc.abstractmethod
    def close(self) -> None:
        ...


class Tensor:
    """A tensor of bytes in memory of a GPU, or in pinned memory."""

    def __init__(self, count: int, is_cuda: bool = True) -> None:
        self.memory, self.count = ctypes.create_string_buffer(count + 65536), count
        self.address = -(-ctypes.addressof(self.memory) // 65536) * 65536
        self.is_cuda = is_cuda
        self.bytes = (ctypes.c_char * count).from_address(self.address)

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return 1

    def is_contiguous(self) -> bool:
        return True

    def is_pinned(self) -> bool:
        return not self.is_cuda

    def get_device(self) -> int:
        return 0 if self.is_cuda else -1


def double(name: str, **names: Any) -> None:
    """A module in place of a package that is not installed."""
    module = types.ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module


def pinned(count: int, dtype: str, pin_memory: bool) -> Tensor:
    assert dtype == "bytes" and pin_memory
    return Tensor(count, False)


double("torch", empty=pinned, uint8="bytes", version=types.SimpleNamespace(cuda="12.8"),
       cuda=types.SimpleNamespace(is_available=lambda: True))
for name in ("lmcache", "lmcache.v1", "lmcache.v1.gpu_connector"):
    double(name)
double("lmcache.logging", init_logger=logging.getLogger)
double("lmcache.v1.gpu_connector.gds_backends", __path__=[os.path.dirname(os.path.dirname(os.path.abspath(__file__)))])
double("lmcache.v1.gpu_connector.gds_backends.base", GDSBackend=GDSBackend, GDSHandle=GDSHandle,
       Submission=Submission)

from lmcache.v1.gpu_connector.gds_backends import nvmepeer as backend   # noqa: E402


class BackendTest(unittest.TestCase):
    def setUp(self) -> None:
        fake = unit.Fake.in_dll(library._library, "fake")
        library._library.fake_reset()
        fake.identify[1], fake.identify[130] = 0x10, 9
        fake.qp_info.cq_entries = 1024
        fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1
        self.disks = store._library()
        self.disks.model_reset(ctypes.c_uint64(1))
        store.create(["/dev/nvmep0n1"], PAGE)
        self.works: list[Any] = []
        self.failing = False
        self.hooks = (CALLED(self.called), LAUNCHED(self.launched))
        libcuda = ctypes.CDLL(os.environ["NVMEPEER_LIBCUDA"])
        for hook, name in zip(self.hooks, ("fake_called", "fake_launched")):
            ctypes.c_void_p.in_dll(libcuda, name).value = ctypes.cast(hook, ctypes.c_void_p).value
        self.backend = backend.Backend()
        self.backend.validate_environment()
        self.slab = self.backend.open_slab("/dev/nvmep0n1", SLOTS * PAGE, False)
        self.buffers = [Tensor(REGION), Tensor(REGION)]
        for buffer in self.buffers:
            self.backend.register_buffer(buffer)

    def tearDown(self) -> None:
        self.run_stream()
        self.slab.close()
        self.backend.close_driver()

    def called(self, stream: int, function: int, argument: int) -> int:
        self.works.append((stream, lambda: FUNCTION(function)(argument)))
        return 0

    def launched(self, stream: int, threads: int, arguments: Any) -> None:
        parameters = ctypes.string_at(arguments[0], 128)
        self.works.append((stream, lambda: self.run_list(parameters)))

    def run_list(self, parameters: bytes) -> None:
        def word(offset: int) -> int:
            return int.from_bytes(parameters[offset:offset + 8], "little")

        count = ctypes.c_uint32.from_address(word(COUNT_AT)).value
        for i in range(count):
            lba, offset, where = (ctypes.c_uint64 * 3).from_address(word(ITEMS) + 32 * i)
            status = ctypes.c_int32.from_address(word(ITEMS) + 32 * i + 24)
            self.assertEqual(status.value, -1)
            if self.failing:
                status.value = -3
                continue
            data = self.buffers[where & 0xffffffff].address + offset
            transfer = (self.disks.model_peer_read if word(OPCODE) & 0xff == 2 else
                        self.disks.model_peer_write)
            transfer(0, ctypes.c_uint64(lba * BLOCK - START), ctypes.c_void_p(data),
                     ctypes.c_uint64(where >> 32))
            status.value = 0

    def run_stream(self) -> None:
        while self.works:
            self.works.pop(0)[1]()

    def test_chunks_are_found_again(self) -> None:
        first, second = self.buffers
        pattern = bytes(range(251)) * (REGION // 251 + 1)
        kernel = lambda: ctypes.memmove(first.address, pattern, REGION)
        # The kernel that fills the buffer is in the stream, and not executed yet.
        self.works.append((7, kernel))
        stored = self.slab.write_async(first.address, REGION - BLOCK, 3 * BLOCK, BLOCK, 7)
        self.assertEqual(stored.bytes_done, 0)
        self.run_stream()
        self.assertEqual(stored.bytes_done, REGION - BLOCK)
        found = self.slab.read_async(second.address, PAGE, 4 * BLOCK, 1024, 9)
        self.assertEqual({stream for stream, _ in self.works}, {9})
        self.run_stream()
        self.assertEqual(found.bytes_done, PAGE)
        self.assertEqual(second.bytes[1024:1024 + PAGE], pattern[2 * BLOCK:2 * BLOCK + PAGE])
        self.assertEqual(second.bytes[:1024] + second.bytes[1024 + PAGE:], bytes(REGION - PAGE))

    def test_parameters_are_read_late(self) -> None:
        one = self.slab.read_async(self.buffers[0].address, 1, 1, 1, 7)
        one.size.value, one.file_offset.value, one.buf_offset.value = BLOCK, PAGE, PAGE
        self.run_stream()
        self.assertEqual(one.bytes_done, BLOCK)

    def test_slots_are_numbers_of_the_store(self) -> None:
        self.assertEqual(self.slab.slots, list(range(SLOTS)))
        self.assertRaises(nvmepeer.Error, self.backend.open_slab, "/dev/nvmep0n1", PAGE, False)
        self.slab.close()
        with self.assertRaises(nvmepeer.Error) as raised:
            self.backend.open_slab("/dev/nvmep0n1", 1 << 30, False)
        self.assertEqual(raised.exception.errno, errno.ENOSPC)
        # The store of the failed open is closed; what the first slab had is free again.
        self.slab = self.backend.open_slab("/dev/nvmep0n1", SLOTS * PAGE, False)

    def test_a_failure_is_that_of_one_call(self) -> None:
        base = self.buffers[0].address
        self.failing = True
        bad = self.slab.read_async(base, PAGE, 0, 0, 7)
        beyond = self.slab.read_async(base, PAGE, SLOTS * PAGE, 0, 7)
        self.run_stream()
        self.failing = False
        self.assertEqual((bad.bytes_done, beyond.bytes_done), (-errno.EIO, -errno.ERANGE))
        engine = self.slab._engines[0]
        with self.assertLogs(backend.logger, "ERROR") as logs:
            good = self.slab.read_async(base, PAGE, 0, 0, 7)
        self.assertIn("read of 196608 bytes at 0 failed", logs.output[0])
        # It has other queue pairs, since the old ones may be lost.
        self.assertIsNot(self.slab._engines[0], engine)
        self.run_stream()
        self.assertEqual(good.bytes_done, PAGE)

    def test_buffers_are_released_and_registered_again(self) -> None:
        first, second = self.buffers
        fake = unit.Fake.in_dll(library._library, "fake")
        self.slab.read_async(first.address, PAGE, 0, 0, 7)
        self.run_stream()
        self.buffers.append(Tensor(REGION))
        self.backend.register_buffer(self.buffers[2])
        later = self.slab.read_async(self.buffers[2].address, PAGE, 0, 0, 7)
        self.run_stream()
        self.assertEqual(later.bytes_done, PAGE)
        self.assertTrue(cuda._open)
        self.backend.deregister_buffer(first)
        self.assertFalse(cuda._open)
        self.assertEqual(fake.open_files, 0)
        for buffer in self.buffers[1:]:
            self.backend.deregister_buffer(buffer)
        self.assertRaises(ValueError, self.slab.read_async, first.address, PAGE, 0, 0, 7)
        self.buffers.reverse()
        for buffer in self.buffers:
            self.backend.register_buffer(buffer)
        one = self.slab.read_async(first.address, PAGE, 0, 0, 7)
        self.run_stream()
        self.assertEqual(one.bytes_done, PAGE)

    def test_calls_in_flight_keep_buffers(self) -> None:
        self.slab.read_async(self.buffers[0].address, PAGE, 0, 0, 7)
        backend.WAIT_S, before = 0.01, backend.WAIT_S
        try:
            with self.assertRaises(nvmepeer.Error) as raised:
                self.backend.deregister_buffer(self.buffers[0])
        finally:
            backend.WAIT_S = before
        self.assertEqual(raised.exception.errno, errno.EBUSY)
        self.assertTrue(cuda._open)
        self.run_stream()
        self.backend.deregister_buffer(self.buffers[0])
        self.assertFalse(cuda._open)

    def test_members(self) -> None:
        found = backend.nodes_of("/dev/nvmep3n2p1")
        self.assertEqual(found, ("nvmep3", "ngp3n2"))
        for bad in ("/dev/nvme0n1", "/dev/ngp0n1", "/tmp/file"):
            self.assertRaises(ValueError, backend.nodes_of, bad)
            self.assertRaises(ValueError, self.backend.open_slab, bad, PAGE, False)

    def test_back_end_of_lmcache(self) -> None:
        self.assertEqual(self.backend.name, "nvmepeer")
        self.assertFalse(self.backend.is_default())
        self.assertRaises(ValueError, self.backend.register_buffer, Tensor(4096, False))
        sys.modules["torch"].version.cuda = None    # type: ignore[attr-defined]
        try:
            self.assertRaises(ValueError, self.backend.validate_environment)
        finally:
            sys.modules["torch"].version.cuda = "12.8"  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(unit.main(__name__))
