# SPDX-License-Identifier: MIT OR GPL-2.0
"""A peer of served queue pairs, for tests: the CPU, which writes and reads the files of the parts."""
import os
import struct
import time
from typing import Any

import nvmepeer
from nvmepeer import Export

FLUSH, WRITE, READ = 0, 1, 2
STATUS_STATE = 8


class Peer:
    """One command at a time, on one namespace."""

    def __init__(self, served: nvmepeer.ServedQueuePair, namespace: nvmepeer.NamespaceInfo) -> None:
        self.parts = {what: served.export(what) for what in Export}
        self.geometry = served.geometry(namespace, cpu=True)
        self.kick, self.commands = served.kick, 0

    def write(self, what: Export, offset: int, format: str, *values: int) -> None:
        part = self.parts[what]
        os.pwrite(part.fd, struct.pack(format, *values), part.offset + offset)

    def read(self, what: Export, offset: int, format: str) -> tuple[Any, ...]:
        part = self.parts[what]
        return struct.unpack(format, os.pread(part.fd, struct.calcsize(format), part.offset + offset))

    def state(self) -> nvmepeer.QueuePairState:
        """In the status page."""
        return nvmepeer.QueuePairState(self.read(Export.STATUS, STATUS_STATE, "<I")[0])

    def submit(self, opcode: int, lba: int = 0, blocks: int = 1, address: int = 0) -> None:
        """With an SGL of one data block."""
        slot, length = self.commands % self.geometry.sq_entries, blocks << self.geometry.lba_shift
        self.commands += 1
        self.write(Export.SQ, 64 * slot, "<BBHI16xQI4xQI12x", opcode, 0x40, slot, self.geometry.nsid, address,
                   length, lba, blocks - 1)
        self.ring(self.commands % self.geometry.sq_entries)
        self.kick()

    def ring(self, tail: int) -> None:
        self.write(Export.DOORBELL, self.geometry.sq_doorbell, "<I", tail)

    def command(self, opcode: int, lba: int = 0, blocks: int = 1, address: int = 0) -> int:
        """Returns the status."""
        entries, index = self.geometry.cq_entries, self.commands
        phase = index // entries & 1 ^ 1
        self.submit(opcode, lba, blocks, address)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            last = int(self.read(Export.CQ, 16 * (index % entries) + 12, "<I")[0])
            if last >> 16 & 1 == phase:
                assert last & 0xffff == index % self.geometry.sq_entries
                self.write(Export.DOORBELL, self.geometry.cq_doorbell, "<I", (index + 1) % entries)
                return last >> 17
        raise TimeoutError(f"opcode {opcode}: no completion")

    def quiesce(self) -> None:
        self.write(Export.CONTROL, 0, "<I", 1)

    def rearmed(self) -> None:
        """The rings begin again."""
        self.commands = 0

    def close(self) -> None:
        for part in self.parts.values():
            os.close(part.fd)
