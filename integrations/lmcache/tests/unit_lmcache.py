# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of the back end for LMCache, on modelled disks, a fake kernel and a fake libcuda.

The interface of LMCache (its commit 3257b4c) is declared here as far as the back end uses it.
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

import engines
import unit
from engines import Tensor, double, pinned

# A page is more than an item of a list.
PAGE, BLOCK, REGION, SLOTS = 196608, 512, 1 << 18, 4


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
        self.streams = engines.Streams(BLOCK)
        store.create(["/dev/nvmep0n1"], PAGE)
        self.backend = backend.Backend()
        self.backend.validate_environment()
        self.slab = self.backend.open_slab("/dev/nvmep0n1", SLOTS * PAGE, False)
        self.buffers = [Tensor(REGION), Tensor(REGION)]
        for buffer in self.buffers:
            self.backend.register_buffer(buffer)

    def tearDown(self) -> None:
        self.streams.run()
        self.slab.close()
        self.backend.close_driver()

    def test_chunks_are_found_again(self) -> None:
        first, second = self.buffers
        pattern = bytes(range(251)) * (REGION // 251 + 1)
        kernel = lambda: ctypes.memmove(first.address, pattern, REGION)
        # The kernel that fills the buffer is in the stream, and not executed yet.
        self.streams.works.append((7, kernel))
        stored = self.slab.write_async(first.address, REGION - BLOCK, 3 * BLOCK, BLOCK, 7)
        self.assertEqual(stored.bytes_done, 0)
        self.streams.run()
        self.assertEqual(stored.bytes_done, REGION - BLOCK)
        found = self.slab.read_async(second.address, PAGE, 4 * BLOCK, 1024, 9)
        self.assertEqual({stream for stream, _ in self.streams.works}, {9})
        self.streams.run()
        self.assertEqual(found.bytes_done, PAGE)
        self.assertEqual(second.bytes[1024:1024 + PAGE], pattern[2 * BLOCK:2 * BLOCK + PAGE])
        self.assertEqual(second.bytes[:1024] + second.bytes[1024 + PAGE:], bytes(REGION - PAGE))

    def test_parameters_are_read_late(self) -> None:
        one = self.slab.read_async(self.buffers[0].address, 1, 1, 1, 7)
        one.size.value, one.file_offset.value, one.buf_offset.value = BLOCK, PAGE, PAGE
        self.streams.run()
        self.assertEqual(one.bytes_done, BLOCK)

    def test_pages_of_tensors_by_slot(self) -> None:
        first, second = self.buffers
        first.bytes[:] = bytes(range(251)) * (REGION // 251) + bytes(REGION % 251)
        self.slab.read_async(first.address, 0, 0, 0, 7)
        streams = self.slab._engines[0].streams
        rows = [cuda.tensor(0, 1024, 1000), cuda.tensor(65536, 512, 512)]
        cuda.lay_out(rows, BLOCK)
        pages = store.Pages(rows, 3)
        streams.write_pages(pages, 7)
        pages.set([2, 0, 1], [5, 6, 7], PAGE)
        self.assertFalse(pages.done())
        self.streams.run()
        self.assertTrue(pages.done())
        self.assertEqual(pages.results(), [0, 0, 0])
        value, = self.slab.store.commit([1], [b"page"], PAGE, peer=True)
        back = store.Pages([[row[0], row[1], row[2] | 1, row[3]] for row in rows], 3)
        for pinned in (False, True):
            if pinned:
                self.slab.store.pin([value])
            back.set([2, value], [1, 2], PAGE)
            streams.read_pages(back, 9)
            self.assertFalse(back.done())
            self.streams.run()
            self.assertEqual(back.results(), [0, 0 if pinned else -errno.EINVAL])
        for number, place in ((5, 1), (7, 2)):
            self.assertEqual(second.bytes[1024 * place:1024 * place + 1000], first.bytes[1024 * number:1024 * number + 1000])
            self.assertEqual(second.bytes[65536 + 512 * place:][:512], first.bytes[65536 + 512 * number:][:512])
        self.slab.store.unpin([value])
        self.assertRaises(ValueError, back.set, [1], [1, 2])

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
        self.streams.fails = lambda disk, lba: True
        bad = self.slab.read_async(base, PAGE, 0, 0, 7)
        beyond = self.slab.read_async(base, PAGE, SLOTS * PAGE, 0, 7)
        self.streams.run()
        self.streams.fails = lambda disk, lba: False
        self.assertEqual((bad.bytes_done, beyond.bytes_done), (-errno.EIO, -errno.ERANGE))
        engine = self.slab._engines[0]
        with self.assertLogs(backend.logger, "ERROR") as logs:
            good = self.slab.read_async(base, PAGE, 0, 0, 7)
        self.assertIn("read of 196608 bytes at 0 failed", logs.output[0])
        # It has other queue pairs, since the old ones may be lost.
        self.assertIsNot(self.slab._engines[0], engine)
        self.streams.run()
        self.assertEqual(good.bytes_done, PAGE)

    def test_buffers_are_released_and_registered_again(self) -> None:
        first, second = self.buffers
        fake = unit.Fake.in_dll(library._library, "fake")
        self.slab.read_async(first.address, PAGE, 0, 0, 7)
        self.streams.run()
        self.buffers.append(Tensor(REGION))
        self.backend.register_buffer(self.buffers[2])
        later = self.slab.read_async(self.buffers[2].address, PAGE, 0, 0, 7)
        self.streams.run()
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
        self.streams.run()
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
        self.streams.run()
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
