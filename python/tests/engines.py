# SPDX-License-Identifier: MIT OR GPL-2.0
"""Doubles for the tests of integrations/: PyTorch, and streams of a GPU that executes lists.

A test says when what was added to the streams is executed.  A list transfers blocks of a modelled
disk, as a GPU does.
"""
import ctypes
import os
import sys
import types
from typing import Any, Callable, Optional

from nvmepeer import abi, library, store

import unit

START = 8192    # where the modelled disks begin on their namespaces
# Offsets in the parameters of the kernel, lib/cuda/list_kernel.h.
COUNT_AT, DONE, MEMORIES, ITEMS, TENSORS, PAGES, STATUSES = 16, 24, 32, 40, 48, 56, 64
TENSOR_COUNT, COUNT, OPCODE = 84, 88, 92
CALLED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LAUNCHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


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


class Streams:
    """What was added to streams, in the order of the calls.

    fails: whether an item of a list, by its disk and first block, is not transferred
    disk_of: the disk of the queue pairs of a list, by their address
    """

    def __init__(self, block: int) -> None:
        fake = unit.Fake.in_dll(library._library, "fake")
        library._library.fake_reset()
        fake.identify[1], fake.identify[130] = 0x10, 9
        fake.qp_info.cq_entries = 1024
        fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1
        self.disks = store._library()
        self.disks.model_reset(ctypes.c_uint64(1))
        self.works: list[tuple[int, Callable[[], Any]]] = []
        self.block = block
        self.fails: Callable[[int, int], bool] = lambda disk, lba: False
        self.disk_of: Callable[[int], int] = lambda queues: 0
        self.hooks = (CALLED(self.called), LAUNCHED(self.launched))
        libcuda = ctypes.CDLL(os.environ["NVMEPEER_LIBCUDA"])
        for hook, name in zip(self.hooks, ("fake_called", "fake_launched")):
            ctypes.c_void_p.in_dll(libcuda, name).value = ctypes.cast(hook, ctypes.c_void_p).value

    def called(self, stream: int, function: int, argument: int) -> int:
        self.works.append((stream, lambda: FUNCTION(function)(argument)))
        return 0

    def launched(self, stream: int, threads: int, arguments: Any) -> None:
        parameters = ctypes.string_at(arguments[0], 128)
        self.works.append((stream, lambda: self.run_list(parameters)))

    def run(self, stream: Optional[int] = None) -> None:
        """Execute all works, or those of a stream."""
        chosen = [one for one in self.works if stream is None or one[0] == stream]
        self.works = [one for one in self.works if one not in chosen]
        for _, work in chosen:
            work()

    def run_list(self, parameters: bytes) -> None:
        def word(offset: int, count: int = 8) -> int:
            return int.from_bytes(parameters[offset:offset + count], "little")

        disk, count, tensors = self.disk_of(word(0)), word(COUNT, 4), max(1, word(TENSOR_COUNT, 4))
        if word(COUNT_AT):
            count = min(count, ctypes.c_uint32.from_address(word(COUNT_AT)).value)
        worst = 0
        for i in range(count * tensors):
            status = self.run_item(disk, word(OPCODE, 4), word(MEMORIES), self.item_at(word, i, tensors))
            worst = min(worst, status)
            at = word(STATUSES) + 4 * i if word(PAGES) else word(ITEMS) + 32 * i + 24
            if word(PAGES) == 0 or word(STATUSES):
                at_status = ctypes.c_int32.from_address(at)
                assert at_status.value == -1, "an item that is not executed would count as done"
                at_status.value = status
        if word(DONE):
            done = (ctypes.c_int32 * 2).from_address(word(DONE))
            done[:] = [done[0] + 1, worst]

    @staticmethod
    def item_at(word: Callable[[int], int], i: int, tensors: int) -> tuple[int, int, int, int]:
        """First block, memory, offset and length."""
        if not word(PAGES):
            lba, offset, where = (ctypes.c_uint64 * 3).from_address(word(ITEMS) + 32 * i)
            return lba, where & 0xffffffff, offset, where >> 32
        lba, number = (ctypes.c_uint64 * 2).from_address(word(PAGES) + 16 * (i // tensors))
        offset, stride, where, block = (ctypes.c_uint64 * 4).from_address(word(TENSORS) + 32 * (i % tensors))
        return lba + block, where & 0xffffffff, offset + number * stride, where >> 32

    def run_item(self, disk: int, opcode: int, memories: int, item: tuple[int, int, int, int]) -> int:
        lba, memory, offset, length = item
        if self.fails(disk, lba):
            return -3
        size = ctypes.sizeof(abi.DeviceBuffer)
        data = ctypes.c_uint64.from_address(memories + (size + 8) * memory + size).value + offset
        transfer = self.disks.model_peer_read if opcode & 0xff == 2 else self.disks.model_peer_write
        transfer(disk, ctypes.c_uint64(lba * self.block - START), ctypes.c_void_p(data),
                 ctypes.c_uint64(length))
        return 0
