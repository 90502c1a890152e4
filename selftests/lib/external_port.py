#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write an ACPI table that marks root ports of QEMU's q35 as external-facing.

usage: external_port.py FILE DEVICE.FUNCTION...

Linux does not trust devices below such a port: its DMA bounces data that shares a page with other data.
See ACPI 6.5, 6.2.5 (_DSD), 5.2.6 and 20.2 (encoding of a table). The property "ExternalFacingPort" of
the bridge is under the UUID of device properties.
"""
import struct
import sys
import uuid

PROPERTIES = uuid.UUID("efcc06cc-73ac-4bc3-bff0-76143807c389")
NAME, BYTE, STRING, SCOPE, BUFFER, PACKAGE = 0x08, 0x0a, 0x0d, 0x10, 0x11, 0x12
ROOT, MANY_NAMES = ord("\\"), 0x2f


def sized(opcode, content):
    """An object with its length, which includes the two length bytes (20.2.4); less than 4 KiB."""
    length = len(content) + 2
    return bytes([opcode, 0x40 | length & 0xf, length >> 4]) + content


def package(*elements):
    return sized(PACKAGE, bytes([len(elements)]) + b"".join(elements))


def external_facing(port):
    """The property in the scope of the port, which QEMU names S and its device and function."""
    device, function = (int(number, 16) for number in port.split("."))
    path = bytes([ROOT, MANY_NAMES, 3]) + b"_SB_" + b"PCI0" + b"S%02X_" % (device << 3 | function)
    properties = package(package(bytes([STRING]) + b"ExternalFacingPort\0", bytes([BYTE, 1])))
    identifier = sized(BUFFER, bytes([BYTE, 16]) + PROPERTIES.bytes_le)
    return sized(SCOPE, path + bytes([NAME]) + b"_DSD" + package(identifier, properties))


def table(ports):
    content = b"".join(map(external_facing, ports))
    head = struct.pack("<4sIBB6s8sI4sI", b"SSDT", 36 + len(content), 2, 0, b"NVMEPR", b"EXTERNAL", 1, b"NVMP", 1)
    checksum = -sum(head + content) & 0xff
    return head[:9] + bytes([checksum]) + head[10:] + content


with open(sys.argv[1], "wb") as file:
    file.write(table(sys.argv[2:]))
