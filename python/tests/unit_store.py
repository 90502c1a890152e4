# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of nvmepeer.store on files.

usage: unit_store.py ABI        pinned structures, as selftests/abi/dump writes them
"""
import ctypes
import errno
import os
import subprocess
import sys
import tempfile
import unittest

import nvmepeer
from nvmepeer import cuda, store

import members
import unit

PAGE = 6000


class StoreTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.members = members.make(self.folder.name)
        store.create(self.members, PAGE, slots=8)
        self.store = store.Store(self.members)

    def tearDown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def put(self, key: int) -> store.Value:
        slots = self.store.alloc(1)
        self.store.write(slots, [bytearray([key]) * (PAGE - 4 * key)])
        return self.store.commit(slots, [bytes([key, 7])])[0]

    def test_values_are_found_by_another_process(self) -> None:
        for key in range(1, 4):
            self.put(key)
        self.store.close()
        code = ("import sys; from nvmepeer.store import Store\n"
                "store = Store(sys.argv[1:])\n"
                "for value in store.scan():\n"
                "    page = bytearray(store.page_bytes)\n"
                "    length, = store.read([value], [page])\n"
                "    print(value.tag[0], length, page[0], page[length - 1])\n")
        said = subprocess.run([sys.executable, "-c", code, *self.members], check=True, text=True,
                              capture_output=True).stdout
        self.assertEqual(sorted(said.splitlines()), [f"{k} {PAGE - 4 * k} {k} {k}" for k in range(1, 4)])
        self.store = store.Store(self.members, read_only=True)
        self.assertEqual(self.store.check().verified, 3)

    def test_freed_values_are_misses(self) -> None:
        value = self.put(1)
        page = bytearray(PAGE)
        self.store.free([value])
        with self.assertRaises(nvmepeer.Error) as caught:
            self.store.read([value], [page])
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        self.assertEqual(self.store.info().free_slots, 16)

    def test_pinned_values_stay(self) -> None:
        value = self.put(1)
        pinned = self.store.pin([value.slot])
        self.assertEqual(pinned, [value])
        with self.assertRaises(nvmepeer.Error) as caught:
            self.store.free([value], timeout_ms=1)
        self.assertEqual(caught.exception.errno, errno.ETIMEDOUT)
        self.store.unpin(pinned)
        self.store.free([value])
        other = self.put(2)
        with self.assertRaises(nvmepeer.Error):
            self.store.pin([other, value._replace(generation=9)])
        self.store.free([other], timeout_ms=0)

    def test_peer_values_and_places(self) -> None:
        slots = self.store.alloc(2)
        values = self.store.commit(slots, [b"a", b"b"], length=4096, peer=True)
        self.assertEqual([value.length for value in values], [4096, 4096])
        # Peers have no access to files.
        for call in (lambda: self.store.place(slots[0]),
                     lambda: self.store.fill_list(0, values[:1], [0])):
            with self.assertRaises(nvmepeer.Error) as caught:
                call()
            self.assertEqual(caught.exception.errno, errno.EOPNOTSUPP)
        with self.assertRaisesRegex(ValueError, "1 slots and 2 offsets"):
            self.store.fill_list(0, values[:1], [0, 1])
        self.assertEqual(self.store.check().unverified, 2)

    def test_items_that_succeed_in_a_list_that_fails(self) -> None:
        slots, page = self.store.alloc(2), bytearray(PAGE)
        self.store.write(slots[:1], [page])
        with self.assertRaises(store.ListError) as caught:
            self.store.commit(slots, [b"a", b"b"])
        self.assertEqual(caught.exception.results, [0, -errno.EINVAL])
        value, failed = caught.exception.values
        self.assertIsNone(failed)
        self.assertEqual(self.store.read([value], [page]), [PAGE])
        self.store.free([value, slots[1]])

    def test_a_length_keeps_the_checksum(self) -> None:
        slots = self.store.alloc(1)
        self.store.write(slots, [bytearray(400)])
        with self.assertRaises(nvmepeer.Error):
            self.store.commit(slots, [b"a"], length=404)
        self.store.commit(slots, [b"a"], length=400)
        self.assertEqual(self.store.check().verified, 1)

    def test_only_a_commit_that_fails_has_values(self) -> None:
        value, page = self.put(1), bytearray(PAGE)
        for call in (lambda: self.store.pin([value, 9]), lambda: self.store.read([value, 9], [page, page])):
            with self.assertRaises(store.ListError) as caught:
                call()
            self.assertEqual(caught.exception.results, [0, -errno.ENOENT])
            self.assertEqual(caught.exception.values, [None, None])

    def test_slots_are_numbers_of_32_bits(self) -> None:
        value = self.put(1)
        for slot in (-1, value.slot + (1 << 32)):
            for call in (lambda: self.store.read([slot], [bytearray(PAGE)]),
                         lambda: self.store.free([value._replace(slot=slot)]),
                         lambda: self.store.place(slot)):
                with self.assertRaisesRegex(ValueError, f"slot {slot}"):
                    call()
        self.assertEqual(self.store.check().values, 1)

    def test_streams_end_before_the_store_and_the_lists(self) -> None:
        folder = os.path.join(self.folder.name, "blocks")
        os.mkdir(folder)
        paths = members.make(folder)
        store.create(paths, 4096, slots=8)
        opened, memory = store.Store(paths), bytearray(4096)
        span = cuda.Span(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 4096)
        call_host = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(lambda *call: 0)
        streams = store.Streams(opened, opened.alloc(1), [span],
                                ctypes.cast(call_host, ctypes.c_void_p).value or 0)
        opened.close()
        with self.assertRaisesRegex(ValueError, "the streams are closed"):
            streams.read(span.address, ctypes.c_size_t(4096), *[ctypes.c_int64()] * 3, stream=0)

    def test_errors(self) -> None:
        with self.assertRaisesRegex(nvmepeer.Error, "holds a store"):
            self.store.close()
            store.create(self.members, PAGE)
        with self.assertRaisesRegex(nvmepeer.Error, "member 1 of 2 is not among"):
            store.Store(self.members[:1])
        with self.assertRaisesRegex(ValueError, "closed"):
            self.store.info()
        with store.Store(self.members[:1], degraded=True) as opened:
            self.assertEqual(opened.info().live, 1)
            self.assertEqual(opened.info().free_slots, 8)
            slots = opened.alloc(1)
            with self.assertRaisesRegex(ValueError, "1 slots and 2 buffers"):
                opened.write(slots, [bytearray(4), bytearray(4)])
            with self.assertRaisesRegex(ValueError, "1 slots and 2 tags"):
                opened.commit(slots, [b"x", b"y"])
            with self.assertRaisesRegex(ValueError, "65 bytes"):
                opened.commit(slots, [b"x" * 65])
            with self.assertRaisesRegex(ValueError, "for a page"):
                opened.read(slots, [bytearray(4)])
        store.create(self.members, PAGE, force=True)


class AbiTest(unittest.TestCase):
    def test_structures_are_those_of_c(self) -> None:
        for name, structure in (("options", store._Options), ("info", store.Info), ("item", store._Item),
                                ("place", store.Place), ("report", store.Report),
                                ("memory", store._Memory), ("streams_options", store._StreamsOptions),
                                ("pages", store._Pages)):
            unit.compare(self, f"nvmepeer_store_{name}", structure)


if __name__ == "__main__":
    sys.exit(unit.main(__name__))
