# SPDX-License-Identifier: MIT OR GPL-2.0
"""Pages of nvmepeer.store that a peer writes and reads, on files that count as namespaces.

usage: unit_store_pages.py

The test is the peer: it transfers the blocks that the rows of a list name.
"""
import sys
import tempfile
import unittest

import nvmepeer
from nvmepeer import cuda, store

import members
import unit

BLOCK, PAGE, SLOTS = 512, 16384, 16


class PagesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.members = members.make(self.folder.name)
        store.create(self.members, PAGE, slots=SLOTS // 2)
        self.store = store.Store(self.members)
        self.cache = [bytearray([number]) * PAGE for number in range(SLOTS)]

    def tearDown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def transfer(self, member: int, rows: list[list[int]], write: bool) -> None:
        """A list, as a GPU executes it."""
        with open(self.members[member], "r+b") as file:
            for lba, number in rows:
                file.seek(lba * BLOCK)
                if write:
                    file.write(self.cache[number])
                else:
                    self.cache[number] = bytearray(file.read(PAGE))

    def evict(self, numbers: list[int]) -> None:
        slots = self.store.alloc(len(numbers))
        for member in range(2):
            some = {slot: number for slot, number in zip(slots, numbers) if slot % 2 == member}
            rows = self.store.fill_pages(member, list(some), list(some.values()), length=PAGE)
            self.transfer(member, rows, True)
        self.store.commit(slots, [bytes([number]) for number in numbers], length=PAGE, peer=True)

    def test_pages_come_back_after_a_restart_to_other_places(self) -> None:
        numbers = [3, 14, 1, 5, 9, 2]
        self.evict(numbers)
        self.store.close()
        self.cache = [bytearray(PAGE) for _ in range(SLOTS)]
        self.store = store.Store(self.members)
        values = self.store.pin(list(self.store.scan()))
        self.assertEqual({value.tag[0] for value in values}, set(numbers))
        for member in range(2):
            some = [value for value in values if value.slot % 2 == member]
            rows = self.store.fill_pages(member, some, [value.tag[0] ^ 1 for value in some])
            self.transfer(member, rows, False)
        self.store.unpin(values)
        for number in range(SLOTS):
            self.assertEqual(self.cache[number ^ 1], bytearray([number if number in numbers else 0]) * PAGE)

    def test_rows_are_those_of_pages(self) -> None:
        slots = self.store.alloc(2)
        for slot in slots:
            place = self.store.place(slot)
            self.assertEqual(self.store.fill_pages(place.member, [slot], [7], length=PAGE),
                             [cuda.page(place.lba, 7)])

    def test_only_what_is_allocated_or_pinned(self) -> None:
        self.evict([1])
        value, = self.store.scan()
        for slot in (value, self.store.alloc(1)[0] ^ 1):
            with self.assertRaises(nvmepeer.Error):
                self.store.fill_pages(value.slot % 2, [slot], [0], length=PAGE)
        with self.assertRaisesRegex(ValueError, "1 slots and 2 numbers"):
            self.store.fill_pages(value.slot % 2, self.store.pin([value]), [0, 1])


if __name__ == "__main__":
    sys.exit(unit.main(__name__))
