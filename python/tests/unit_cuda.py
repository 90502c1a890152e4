# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of nvmepeer.cuda, in front of a fake kernel and a fake libcuda.

usage: unit_cuda.py ABI...      pinned structures, as selftests/abi/dump writes them

NVMEPEER_LIBRARY and NVMEPEER_CUDA_LIBRARY are the C libraries with lib/tests/fake.c behind
them, NVMEPEER_LIBCUDA is lib/cuda/tests/fake_libcuda.c.
"""
import ctypes
import errno
import gc
import inspect
import mmap
import os
import re
import struct
import sys
import types
import unittest
import weakref
from typing import Any

import nvmepeer
from nvmepeer import cuda, library, store

import unit

# Offsets in the parameters of the kernel, lib/cuda/list_kernel.h.
COUNT_AT, ITEMS, TENSORS, PAGES, STATUSES = 16, 40, 48, 56, 64
MEMORIES, TENSOR_COUNT, COUNT, OPCODE, CONTROL, FIRST = 80, 84, 88, 92, 96, 120
LAUNCHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


class Tensor:
    """A tensor of PyTorch, as far as it is used."""

    def __init__(self, count: int, each: int = 8, contiguous: bool = True) -> None:
        self.memory = ctypes.create_string_buffer(count * each + 65536)
        self.address = -(-ctypes.addressof(self.memory) // 65536) * 65536
        self.count, self.each, self.contiguous = count, each, contiguous
        self.is_cuda, self.pinned, self.device = True, False, 0
        if not count:
            self.address = 0

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return self.each

    def is_contiguous(self) -> bool:
        return self.contiguous

    def is_pinned(self) -> bool:
        return self.pinned

    def get_device(self) -> int:
        return self.device


class Array:
    """An array with the interface of CUDA arrays."""

    def __init__(self, strides: Any = None) -> None:
        self.__cuda_array_interface__ = {"data": (0x5000, False), "typestr": "<f4", "shape": (3, 5),
                                         "strides": strides}


class Exchanged:
    """A tensor of DLPack: 6 x 4 numbers of 16 bits, 8 bytes into its memory."""

    def __init__(self, strides: Any, kind: int = 2, device: int = 0) -> None:
        self.place, self.stream = (kind, device), None
        self.shape = (ctypes.c_int64 * 2)(6, 4)
        self.strides = (ctypes.c_int64 * 2)(*strides) if strides else None
        self.tensor = cuda._DlTensor(0x7000, 2, 0, 2, 2, 16, 1, self.shape, self.strides, 8)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, stream: Any = None) -> Any:
        self.stream = stream
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def queue_fields(queues: cuda.Queues, *names: str) -> tuple[int, ...]:
    """Fields of the first device queue, by the pinned structure."""
    host = library.load("nvmepeer_cuda", {"queues_host": [ctypes.c_void_p]}, {"queues_host": ctypes.c_void_p})
    queue = host.nvmepeer_cuda_queues_host(queues._resource.open())
    fields = {line.split()[-1]: line.split()[:2] for line in unit.pinned()["struct nvmepeer_queue"][:-1]}
    return tuple(int.from_bytes(ctypes.string_at(queue + int(offset), int(size)), "little")
                 for offset, size in (fields[name] for name in names))


class Spans(unittest.TestCase):
    def test_structures_match_c(self) -> None:
        for name, structure in (("nvmepeer_cuda_list", cuda._List), ("nvmepeer_cuda_file", cuda.File),
                                ("nvmepeer_cuda_queues_options", cuda._Options),
                                ("nvmepeer_cuda_pages_options", cuda._PagesOptions),
                                ("nvmepeer_cuda_step", cuda._Step), ("nvmepeer_set", cuda._Set),
                                ("nvmepeer_geometry", cuda.Geometry)):
            unit.compare(self, name, structure)

    def test_items_match_c(self) -> None:
        for name, row in (("item", cuda.item(3, 4, 5, 6)), ("tensor", cuda.tensor(3, 4, 5, 6, 7)),
                          ("page", cuda.page(3, 4))):
            data = b"".join(number.to_bytes(8, "little") for number in row)
            values = {"lba": 3, "offset": {"item": 4, "tensor": 3}.get(name), "stride": 4, "bytes": 5,
                      "memory": 6, "block": 7, "page": 4, "status": 0xffffffff, "reserved": 0}
            for line in unit.pinned()[f"struct nvmepeer_list_{name}"][:-1]:
                offset, size, *rest = line.split()
                found = int.from_bytes(data[int(offset):int(offset) + int(size)], "little")
                self.assertEqual(found, values[rest[-1]], (name, rest[-1]))
            self.assertEqual(unit.pinned()[f"struct nvmepeer_list_{name}"][-1], f"{len(data)} bytes")

    def test_tensors_of_three_kinds(self) -> None:
        one = Tensor(10)
        self.assertEqual(cuda.span_of(one), (one.address, 80))
        self.assertEqual(cuda.span_of(Array()), (0x5000, 60))
        self.assertEqual(cuda.span_of(Exchanged(None)), (0x7008, 48))
        self.assertEqual(cuda.span_of(Exchanged((4, 1))), (0x7008, 48))
        for bad in (Tensor(10, contiguous=False), Array((40, 8)), Exchanged((8, 1))):
            self.assertRaises(ValueError, cuda.span_of, bad)

    def test_memory_that_the_gpu_cannot_access(self) -> None:
        pageable, pinned, other = Tensor(10), Tensor(10), Tensor(10)
        pageable.is_cuda = pinned.is_cuda = False
        pinned.pinned, other.device = True, 1
        self.assertEqual(cuda.span_of(pinned, 0).bytes, 80)
        self.assertEqual(cuda.span_of(cuda.Span(4, 5), 0), (4, 5))
        for bad in (pageable, other, Exchanged(None, 1), Exchanged(None, 2, 1)):
            self.assertRaises(ValueError, cuda.span_of, bad, 0)

    def test_stream_of_dlpack(self) -> None:
        for kind, stream, passed in ((2, 0, 1), (2, 9, 9), (2, None, None), (3, 9, None)):
            one = Exchanged(None, kind)
            cuda.span_of(one, 0, stream)
            self.assertEqual(one.stream, passed)

    def test_layout_and_status(self) -> None:
        tensors = [cuda.tensor(0, 41984, 41984), cuda.tensor(0, 8448, 8448), cuda.tensor(0, 4, 4)]
        self.assertEqual(cuda.lay_out(tensors, 4096), 15)
        self.assertEqual([one[3] for one in tensors], [0, 11, 14])
        cuda.check(0)
        with self.assertRaises(nvmepeer.TransferError) as raised:
            cuda.check(-3)
        self.assertEqual(raised.exception.device, nvmepeer.DeviceError.LOST)
        row = [1, 2, 3, 0xfffffffd]
        self.assertEqual(cuda.status_of(row), -3)
        with self.assertRaises(nvmepeer.TransferError) as raised:
            cuda.check(row[3])
        self.assertEqual(raised.exception.device, nvmepeer.DeviceError.LOST)
        with self.assertRaises(nvmepeer.TransferError) as raised:
            cuda.check(cuda.status_of(cuda.item(0, 0, 4)))
        self.assertIsNone(raised.exception.device)
        self.assertIn("-1", str(raised.exception))

    def test_public_names_are_typed(self) -> None:
        for _, one in inspect.getmembers(cuda, inspect.isclass):
            for _, method in inspect.getmembers(one, inspect.isfunction):
                if method.__module__ == "nvmepeer.cuda" and one is not cuda.Span:
                    said = inspect.signature(method)
                    self.assertIsNot(said.return_annotation, inspect.Signature.empty, method)
                    for parameter in list(said.parameters.values())[1:]:
                        self.assertIsNot(parameter.annotation, inspect.Parameter.empty, method)


class Streams(unittest.TestCase):
    def setUp(self) -> None:
        library._library.fake_reset()
        fake = unit.Fake.in_dll(library._library, "fake")
        fake.identify[1], fake.identify[130] = 0x10, 9
        fake.qp_info.cq_entries = 64
        fake.qp_info.sq_pci_address.valid = fake.qp_info.cq_pci_address.valid = 1
        self.fake = fake
        self.launches: list[tuple[int, bytes]] = []
        self.hook = LAUNCHED(self.launched)
        libcuda = ctypes.CDLL(os.environ["NVMEPEER_LIBCUDA"])
        ctypes.c_void_p.in_dll(libcuda, "fake_launched").value = ctypes.cast(self.hook, ctypes.c_void_p).value
        self.controller, self.gpu = nvmepeer.Controller("nvmep0"), cuda.Gpu(0)
        with nvmepeer.Namespace("ngp0n1") as namespace:
            self.queues = cuda.Queues(self.controller, namespace, self.gpu, 64, 2)
        self.cache = Tensor(1 << 20, 1)
        self.lists = cuda.Lists(self.queues, [self.cache])

    def launched(self, stream: int, threads: int, arguments: Any) -> None:
        self.launches.append((stream or 0, ctypes.string_at(arguments[0], 128)))

    def tearDown(self) -> None:
        self.queues.close()
        self.lists.close()
        self.gpu.close()

    def word(self, offset: int, length: int = 4) -> int:
        return int.from_bytes(self.launches[-1][1][offset:offset + length], "little")

    def grid(self) -> int:
        return int(ctypes.c_uint.in_dll(ctypes.CDLL(os.environ["NVMEPEER_LIBCUDA"]), "fake_blocks").value)

    def test_options(self) -> None:
        def opened(**options: int) -> tuple[int, ...]:
            with nvmepeer.Namespace("ngp0n1") as namespace:
                queues = cuda.Queues(self.controller, namespace, self.gpu, 64, 1, **options)
            found = queue_fields(queues, "reserve", "cid_words_mask", "list_bytes", "timeout_ns")
            queues.close()
            return found

        # 63 slots, of which a quarter is reserved by default.
        self.assertEqual(opened()[:2], (15, 7))
        self.assertEqual(opened(reserve=40, cids=128, list_bytes=64, timeout_ns=1 << 40), (40, 3, 64, 1 << 40))
        self.assertEqual(opened(layout=cuda.library_layout())[0], 15)
        with self.assertRaises(nvmepeer.Error) as caught:
            opened(layout=1)
        self.assertEqual(caught.exception.errno, errno.EPROTO)
        for name, number in (("reserve", -1), ("reserve", 1 << 32), ("timeout_ns", 1 << 64)):
            self.assertRaises(ValueError, opened, **{name: number})

    def test_items(self) -> None:
        items, done = Tensor(4 * 7), Tensor(2, 4)
        self.lists.read(items, done=done, stream=5)
        self.assertEqual(self.launches[-1][0], 5)
        self.assertEqual((self.word(ITEMS, 8), self.word(TENSORS, 8)), (items.address, 0))
        self.assertEqual((self.word(COUNT), self.word(OPCODE), self.word(MEMORIES)), (7, 2, 1))

    def test_control(self) -> None:
        with open("include/nvmepeer_device/nvme.h", encoding="utf-8") as header:
            said = dict(re.findall(r"^#define NVMEPEER_CONTROL_(\w+)\s+\(1u << (\d+)\)", header.read(), re.M))
        for one in cuda.Control:
            self.assertEqual(one, 1 << int(said[one.name or ""]), one)
        control = cuda.placement(0x8003) | cuda.Control.BACKGROUND | cuda.Control.LIMITED_RETRY
        # PyTorch's integers have 64 bits and a sign.
        self.assertEqual(control, 0x80030000_80200001 - (1 << 64))
        self.assertEqual(cuda.placement(0x7003), 0x70030000_00200000)
        for transfer in (self.lists.read, self.lists.write):
            transfer(Tensor(4), control=control)
            self.assertEqual(self.word(CONTROL, 8), 0x80030000_80200001)
            transfer(Tensor(4), control=control + (1 << 64))
            self.assertEqual(self.word(CONTROL, 8), 0x80030000_80200001)
            transfer(Tensor(4))
            self.assertEqual(self.word(CONTROL, 8), 0)

    def test_pages(self) -> None:
        tensors, pages, statuses = Tensor(4 * 3), Tensor(2 * 5), Tensor(15, 4)
        self.lists.write(tensors=tensors, pages=pages, statuses=statuses)
        self.assertEqual((self.word(TENSORS, 8), self.word(PAGES, 8), self.word(STATUSES, 8)),
                         (tensors.address, pages.address, statuses.address))
        self.assertEqual((self.word(COUNT), self.word(TENSOR_COUNT), self.word(OPCODE)), (5, 3, 1))
        self.assertRaises(ValueError, self.lists.read, tensors=tensors, pages=pages, statuses=Tensor(14, 4))
        self.assertRaises(ValueError, self.lists.read, Tensor(4), done=Tensor(1, 4))
        self.assertRaises(ValueError, self.lists.read, tensors=tensors)
        self.assertRaises(ValueError, self.lists.read, Tensor(4), tensors=tensors, pages=pages)
        self.assertRaises(ValueError, self.lists.read, Tensor(5))
        self.assertRaises(ValueError, self.lists.read, Tensor(4), statuses=Tensor(1, 4))
        self.assertRaises(ValueError, self.lists.read, Tensor(4), count=Tensor(0, 4))

    def test_empty(self) -> None:
        self.lists.read(Tensor(0), count=Tensor(1, 4))
        self.assertEqual((self.word(COUNT), self.word(ITEMS, 8)), (0, 0))
        self.assertNotEqual(self.word(COUNT_AT, 8), 0)

    def test_current_stream(self) -> None:
        self.assertNotIn("torch", sys.modules)
        self.assertEqual(cuda.current_stream(), 0)
        sys.modules["torch"] = torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
            is_available=lambda: True,
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=77 + device))
        try:
            self.lists.read(Tensor(4))
            self.assertEqual(cuda.current_stream(3), 80)
            torch.cuda.is_available = lambda: False
            self.assertEqual(cuda.current_stream(3), 0)
        finally:
            del sys.modules["torch"]
        self.assertEqual(self.launches[-1][0], 77)

    def test_operators(self) -> None:
        sys.modules["torch"] = torch = types.ModuleType("torch")
        fakes: dict[str, Any] = {}

        def custom_op(name: str, mutates_args: Any) -> Any:
            def named(function: Any) -> Any:
                def called(*arguments: Any, **named: int) -> None:
                    # PyTorch refuses what is no signed integer of 64 bits.
                    for one in named.values():
                        one.to_bytes(8, "little", signed=True)
                    function(*arguments, **named)

                called.register_fake = lambda fake: fakes.setdefault(name, fake)  # type: ignore[attr-defined]
                called.mutates = mutates_args  # type: ignore[attr-defined]
                return called
            return named

        def refuse(good: bool) -> None:
            if not good:
                raise RuntimeError

        torch.Tensor, torch._check = Tensor, refuse  # type: ignore[attr-defined]
        torch.library = types.SimpleNamespace(custom_op=custom_op)  # type: ignore[attr-defined]
        torch.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
            is_available=lambda: True,
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=78))
        kept: list[str] = []
        torch.fx = types.SimpleNamespace(  # type: ignore[attr-defined]
            node=types.SimpleNamespace(has_side_effect=kept.append))
        torch.ops = types.SimpleNamespace(nvmepeer=types.SimpleNamespace(  # type: ignore[attr-defined]
            read_pages=types.SimpleNamespace(default="read"),
            write_pages=types.SimpleNamespace(default="write")))
        try:
            from nvmepeer import pytorch
            number = pytorch.register(self.lists)
            tensors, pages, statuses = Tensor(4 * 3), Tensor(2 * 5), Tensor(15, 4)
            self.assertEqual(kept, ["read", "write"])
            self.assertNotEqual(pytorch.register(self.lists), number)
            pytorch.read_pages([self.cache], number, tensors, pages, statuses)
            self.assertEqual((self.launches[-1][0], self.word(OPCODE)), (78, 2))
            pytorch.write_pages([self.cache], number, tensors, pages, statuses, 2, 1)
            self.assertEqual((self.word(OPCODE), self.word(FIRST), self.word(CONTROL, 8)), (1, 1024, 1))
            pytorch.read_pages([self.cache], number, tensors, pages, statuses,
                               control=cuda.placement(0x8003) | cuda.Control.BACKGROUND)
            self.assertEqual((self.word(OPCODE), self.word(CONTROL, 8)), (2, 0x80030000_00200001))
            # A copy, a view, none, and one more.
            view = Tensor(1, 1)
            view.address, view.count = self.cache.address, self.cache.count - 1
            for caches in ([Tensor(1 << 20, 1)], [view], [], [self.cache] * 2):
                for operator in (pytorch.read_pages, pytorch.write_pages):
                    self.assertRaises(ValueError, operator, caches, number, tensors, pages, statuses)
            self.assertEqual(pytorch.read_pages.mutates, ("caches", "statuses"))
            self.assertEqual(sorted(fakes), ["nvmepeer::read_pages", "nvmepeer::write_pages"])
            for fake in fakes.values():
                fake([self.cache], number, tensors, pages, statuses)
                self.assertRaises(RuntimeError, fake, [self.cache], number, tensors, pages, Tensor(14, 4))
            self.assertRaises(ValueError, pytorch.read_pages, [], 1, tensors, pages, statuses)
            # Its memory would be reused before the stream has come to the list.
            pinned = Tensor(2 * 5)
            pinned.is_cuda, pinned.pinned = False, True
            for operator in (pytorch.read_pages, pytorch.write_pages):
                self.assertRaises(ValueError, operator, [self.cache], number, tensors, pinned, statuses)
        finally:
            del sys.modules["torch"]

    def test_recovery(self) -> None:
        self.assertEqual(self.queues.results(), [None, None])
        self.fake.qp_info.state = nvmepeer.QueuePairState.QUIESCED
        self.fake.qp_info.losses = 3
        self.queues.rearm(100)
        self.assertEqual(self.fake.losses, 3)
        self.assertTrue(self.queues.device)
        self.assertRaises(nvmepeer.Error, self.queues.quiesce, 2)

    def test_closed(self) -> None:
        memory = self.lists.memories[0]
        self.assertTrue(memory.device)
        self.lists.close()
        self.assertRaises(ValueError, self.lists.read, Tensor(4))
        self.assertRaises(ValueError, memory._resource.open)
        self.assertEqual(cuda._open, {self.queues})

    def test_page_tables(self) -> None:
        places = [[7, 3, 9, 1, 2], [0, 4, 5, 6, 8]]
        tables = cuda.PageTables(self.queues, self.cache, places, slots=4, blocks=16, most=3, lba=100)
        # struct nvmepeer_pages: entries, lba, count, slot_count, first, blocks.
        for number, row in enumerate(places):
            table = ctypes.string_at(tables.device + 64 * number, 64)
            entries, lba, count, slots, first, blocks = struct.unpack("<Q16xQ4I", table[:48])
            self.assertEqual((lba, count, slots, first, blocks), (100, 5, 4, 4 * number, 16))
            self.assertEqual(ctypes.string_at(entries, 20), struct.pack("<5I", *row))
        wanted, blocks_of, statuses, worst = Tensor(6, 4), Tensor(6, 4), Tensor(6, 4), Tensor(2, 4)
        tables.read(wanted, blocks_of, statuses=statuses, worst=worst, stream=6)
        self.assertEqual((self.launches[-1][0], self.grid()), (6, 2))
        self.assertEqual([self.word(at, 8) for at in (40, 48, 56, 64)],
                         [wanted.address, blocks_of.address, statuses.address, worst.address])
        self.assertEqual((self.word(32), self.word(36)), (3, 3))
        tables.read(Tensor(2, 4), Tensor(2, 4))
        self.assertEqual([self.word(36), self.word(56, 8), self.word(64, 8)], [1, 0, 0])
        wide, array, exchanged = Tensor(3, 8), Array(), Exchanged(None)
        array.__cuda_array_interface__.update(shape=(6,), typestr="<i8", data=(wide.address, False))
        for one in (wide, array, exchanged):
            for arguments, named in (((one, blocks_of), {}), ((wanted, one), {}), ((wanted, blocks_of), {"statuses": one})):
                self.assertRaisesRegex(ValueError, "instead of 4", tables.read, *arguments, **named)
        self.assertRaisesRegex(nvmepeer.Error, "overlap", tables.read, wanted, wanted)
        tables.reclaim(8)
        self.assertEqual((self.launches[-1][0], self.word(36)), (8, 0))
        for arguments, named in (((Tensor(3, 4), Tensor(3, 4)), {}), ((wanted, Tensor(5, 4)), {}),
                                 ((wanted, blocks_of), {"statuses": Tensor(5, 4)}),
                                 ((wanted, blocks_of), {"worst": Tensor(1, 4)})):
            self.assertRaises(ValueError, tables.read, *arguments, **named)
        with self.assertRaisesRegex(nvmepeer.Error, "4 pages of each table"):
            tables.read(Tensor(8, 4), Tensor(8, 4))
        for row in ([1 << 32, 0], [0, -1], [0]):
            with self.assertRaises(ValueError):
                cuda.PageTables(self.queues, self.cache, [[1, 2], row], slots=1, blocks=16, most=1)
        with self.assertRaisesRegex(nvmepeer.Error, "slots of 8192 bytes in"):
            cuda.PageTables(self.queues, self.cache, places, slots=65, blocks=16, most=1)
        before = set(cuda._open)
        with self.assertRaises(TypeError):
            cuda.PageTables(self.queues, self.cache, places, slots=1.5, blocks=16, most=1)  # type: ignore[arg-type]
        self.assertEqual(cuda._open, before)
        # The controller may still write to the cache, for other tables.
        with self.assertRaisesRegex(ValueError, "close the queues"):
            tables.close()
        self.assertIn(tables, cuda._open)
        tables.reclaim()
        self.queues.close()
        count = len(self.launches)
        with self.assertRaisesRegex(ValueError, "closed"):
            tables.reclaim()
        self.assertEqual(len(self.launches), count)
        tables.close()
        tables.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            tables.reclaim()

    def test_page_tables_of_a_store(self) -> None:
        class Store:
            pinned: list[Any] = []
            nsid, block_bytes = 1, 512

            def __init__(self) -> None:
                self._tables: set[Any] = set()

            def pin(self, values: Any) -> Any:
                self.pinned = [store.Value(one, 1, 8192, b"") for one in values]
                return self.pinned

            def unpin(self, values: Any) -> None:
                self.pinned = [one for one in self.pinned if one not in values]

            def place(self, slot: int) -> Any:
                return store.Place(member=slot % 2, lba=1000 + slot // 2 * 16, blocks=16, nsid=self.nsid,
                                   block_bytes=self.block_bytes)

        mine = Store()
        with self.assertRaisesRegex(ValueError, "one member"):
            cuda.PageTables.of_store(self.queues, self.cache, mine, [[4, 5]], slots=2, most=1)
        self.assertEqual(mine.pinned, [])
        right = (self.queues.nsid, self.queues.block_size)
        for mine.nsid, mine.block_bytes in ((right[0] + 1, right[1]), (right[0], 2 * right[1])):
            with self.assertRaisesRegex(ValueError, f"namespace {mine.nsid} of blocks of {mine.block_bytes}"):
                cuda.PageTables.of_store(self.queues, self.cache, mine, [[9, 5]], slots=2, most=1)
            self.assertEqual(mine.pinned, [])
        mine.nsid, mine.block_bytes = right
        tables = cuda.PageTables.of_store(self.queues, self.cache, mine, [[9, 5], [7, 13]], slots=2, most=1)
        entries, lba = struct.unpack("<Q16xQ", ctypes.string_at(tables.device, 32))
        self.assertEqual((lba, ctypes.string_at(entries, 16)), (1032, struct.pack("<4I", 2, 0, 1, 4)))
        self.assertEqual(len(mine.pinned), 4)
        # A store with tables cannot be closed.
        self.assertRaisesRegex(ValueError, "page tables", store.Store.close, mine)
        self.queues.close()
        tables.close()
        self.assertEqual((mine.pinned, mine._tables), ([], set()))

    def test_set(self) -> None:
        memory = cuda.DeviceMemory(self.controller, self.gpu, Tensor(1 << 20, 1))
        whole = cuda.ControllerSet(self.gpu, [self.queues], [memory], stripe_shift=4, hashed=True)
        found = cuda._Set.from_buffer_copy(whole.value)
        self.assertEqual((found.controllers, found.queues_each, found.stripe_shift, found.flags), (1, 2, 4, 1))
        self.assertNotEqual(found.queues, 0)
        self.assertRaisesRegex(ValueError, "sets", self.queues.close)
        self.assertRaises(ValueError, cuda.ControllerSet, self.gpu, [self.queues], [])
        self.assertRaises(nvmepeer.Error, cuda.ControllerSet, self.gpu, [self.queues], [memory], stripe_shift=64)
        self.assertRaises(ValueError, cuda.ControllerSet, self.gpu, [self.queues], [memory], stripe_shift=1 << 32)
        whole.close()
        whole.close()
        self.queues.close()
        memory.close()

    def test_dropped_lists_hold_their_tensors(self) -> None:
        tensor = Tensor(4096)
        dropped = weakref.ref(tensor)
        lists = weakref.ref(cuda.Lists(self.queues, [tensor]))
        del tensor
        gc.collect()
        self.assertIsNotNone(dropped())
        found = lists()
        assert found
        self.queues.close()
        found.close()
        del found
        gc.collect()
        self.assertIsNone(dropped())

    def test_dropped_queues_stay_open(self) -> None:
        with nvmepeer.Namespace("ngp0n1") as namespace:
            queues = weakref.ref(cuda.Queues(self.controller, namespace, self.gpu, 64, 1))
        gc.collect()
        found = queues()
        assert found
        found.close()
        del found
        gc.collect()
        self.assertIsNone(queues())

    def test_memory_holds_the_export(self) -> None:
        class Array(Exchanged):
            """Its memory can be donated unless an export of it is held."""

            exports = 0

            def __dlpack__(self, stream: Any = None) -> Any:
                self.exports += 1
                return super().__dlpack__(stream)

        array = Array(None)
        array.tensor.data, array.tensor.byte_offset = Tensor(4096).data_ptr(), 0
        memory = cuda.DeviceMemory(self.controller, self.gpu, array)
        kept = memory._resource._keeps
        self.assertEqual(array.exports, 1)
        self.assertEqual([type(one).__name__ for one in kept].count("PyCapsule"), 1)
        self.queues.close()
        memory.close()

    def test_failed_open_holds_nothing(self) -> None:
        os.environ["FAKE_CUDA_FAIL"] = "cuModuleLoad=301"
        try:
            with self.assertRaises(nvmepeer.Error) as raised:
                cuda.Lists(self.queues, [Tensor(4096)])
            self.assertIn("NVMEPEER_LIST_KERNEL", str(raised.exception))
        finally:
            del os.environ["FAKE_CUDA_FAIL"]
        self.assertEqual(cuda._leaked, [])


class Descriptors(unittest.TestCase):
    """A queue pair of another process: its parts are pages of a file."""

    def setUp(self) -> None:
        library._library.fake_reset()
        self.gpu, self.memory = cuda.Gpu(0), os.memfd_create("parts")
        os.ftruncate(self.memory, 5 * 4096)
        roles = (cuda.Role.SQ, cuda.Role.CQ, cuda.Role.DOORBELL_MEMORY, cuda.Role.STATUS, cuda.Role.CONTROL)
        self.files = [cuda.File(self.memory, role, 4096 * page, 4096) for page, role in enumerate(roles)]
        self.geometry = cuda.Geometry(version=1, cq_doorbell=4, sq_entries=32, cq_entries=32, qid=7, nsid=1,
                                      lba_shift=12, page_shift=12, max_transfer=131072)

    def tearDown(self) -> None:
        os.close(self.memory)
        self.gpu.close()

    def test_another_layout(self) -> None:
        with self.assertRaises(nvmepeer.Error) as caught:
            cuda.Queues.from_files(self.gpu, 1, self.files, self.geometry)
        self.assertEqual(caught.exception.errno, errno.EPROTO)
        self.assertEqual(int(caught.exception.limit.split()[-4], 16), cuda.library_layout())

    def test_a_queue_pair_without_a_node(self) -> None:
        queues = cuda.Queues.from_files(self.gpu, cuda.library_layout(), self.files, self.geometry)
        self.assertEqual((queues.count, queues.block_size), (1, 4096))
        self.assertTrue(queues.device)
        with self.assertRaisesRegex(ValueError, "came as descriptors"):
            cuda.Lists(queues, [Tensor(4096)])
        with self.assertRaisesRegex(ValueError, "close the queues"):
            self.gpu.close()
        queues.close()

    def test_lists_without_a_node(self) -> None:
        queues = cuda.Queues.from_files(self.gpu, cuda.library_layout(), self.files, self.geometry)
        tensor, spare = Tensor(1024), Tensor(queues.scratch_bytes, 1)
        for tensors, page, why in ((tensor, 6144, "pages of 6144"), (tensor, 4096, "3 addresses")):
            with self.assertRaisesRegex(nvmepeer.Error, why):
                cuda.DeviceMemory.from_addresses(self.gpu, tensors, page, [4096, 8192, 12288])
        memories = [cuda.DeviceMemory.from_addresses(self.gpu, tensor, 4096, [1 << 20])]
        scratch = cuda.DeviceMemory.from_addresses(self.gpu, spare, 4096, [2 << 20])
        with self.assertRaisesRegex(nvmepeer.Error, "scratch memory"):
            cuda.Lists.from_memories(queues, memories, memories[0])
        lists = cuda.Lists.from_memories(queues, memories, scratch)
        queues.close()
        lists.close()
        scratch.close()

    def test_errors_name_the_part(self) -> None:
        layout = cuda.library_layout()
        for files, what in ((self.files[1:], "submission ring"), (self.files * 2, "passed twice")):
            with self.assertRaisesRegex(nvmepeer.Error, what):
                cuda.Queues.from_files(self.gpu, layout, files, self.geometry)

    def test_a_queue_pair_that_this_process_serves(self) -> None:
        files, memory, layout = len(os.listdir("/proc/self/fd")), mmap.mmap(-1, 65536), cuda.library_layout()
        with nvmepeer.ServedQueuePair(32) as served:
            namespace = served.add_namespace(self.memory, 4096)
            buffer = served.add_buffer(memory)
            scratch_memory = served.add_buffer(mmap.mmap(-1, 65536))
            opened = len(os.listdir("/proc/self/fd"))
            queues = cuda.Queues.from_served(self.gpu, layout, served, namespace)
            self.assertEqual(len(os.listdir("/proc/self/fd")), opened)
            self.assertEqual((queues.count, queues.nsid, queues.block_size), (1, 1, 4096))
            self.assertEqual(queue_fields(queues, "nsid", "sq_mask", "lba_shift"), (1, 31, 12))
            with self.assertRaises(nvmepeer.Error):
                cuda.Queues.from_served(self.gpu, layout + 1, served, namespace)
            self.assertEqual(len(os.listdir("/proc/self/fd")), opened)
            tensor, spare = Tensor(1024), Tensor(queues.scratch_bytes, 1)
            memories = [cuda.DeviceMemory.from_addresses(self.gpu, tensor, 4096, [buffer.dma])]
            scratch = cuda.DeviceMemory.from_addresses(self.gpu, spare, 4096, [scratch_memory.dma])
            lists = cuda.Lists.from_memories(queues, memories, scratch)
            queues.close()
            lists.close()
            scratch.close()
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)


if __name__ == "__main__":
    sys.exit(unit.main(__name__))
