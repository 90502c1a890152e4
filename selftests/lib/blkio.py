#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Open a disk with libblkio: print its properties, write and read a block, and discard it.

usage: blkio.py nvme-io_uring|io_uring NODE
"""

import ctypes
import hashlib
import sys

PROPERTIES = (
    "buf-alignment capacity discard-alignment discard-alignment-offset driver max-discard-len max-mem-regions "
    "max-queues max-segment-len max-segments max-transfer max-write-zeroes-len needs-mem-regions "
    "optimal-buf-alignment optimal-io-alignment optimal-io-size request-alignment supports-fua-natively "
    "read-only").split()
LENGTH = 65536


class Completion(ctypes.Structure):
    _fields_ = [("user_data", ctypes.c_void_p), ("error_msg", ctypes.c_char_p), ("ret", ctypes.c_int),
                ("reserved", ctypes.c_uint8 * 12)]


library = ctypes.CDLL("libblkio.so.1")
library.blkio_get_error_msg.restype = ctypes.c_char_p
library.blkio_get_queue.restype = ctypes.c_void_p


def check(result):
    if result < 0:
        sys.exit(f"libblkio: {library.blkio_get_error_msg().decode()}")


def complete(queue, name):
    done = Completion()
    count = library.blkioq_do_io(ctypes.c_void_p(queue), ctypes.byref(done), 1, 1, None)
    print(name, count, done.ret, done.error_msg or "")


def io(queue):
    data, back = (ctypes.create_string_buffer(LENGTH + 4096) for _ in range(2))
    place, back_place = (ctypes.addressof(buffer) + 4095 & ~4095 for buffer in (data, back))
    ctypes.memset(place, 0x5a, LENGTH)
    handle, start, length = ctypes.c_void_p(queue), ctypes.c_uint64(0), ctypes.c_size_t(LENGTH)
    library.blkioq_write(handle, start, ctypes.c_void_p(place), length, None, 0)
    complete(queue, "write")
    library.blkioq_flush(handle, None, 0)
    complete(queue, "flush")
    library.blkioq_read(handle, start, ctypes.c_void_p(back_place), length, None, 0)
    complete(queue, "read")
    print("data", hashlib.sha256(ctypes.string_at(back_place, LENGTH)).hexdigest())
    library.blkioq_write_zeroes(handle, start, ctypes.c_uint64(LENGTH), None, 0)
    complete(queue, "write-zeroes")
    library.blkioq_discard(handle, start, ctypes.c_uint64(LENGTH), None, 0)
    complete(queue, "discard")


def main(driver, node):
    blkio = ctypes.c_void_p()
    check(library.blkio_create(driver.encode(), ctypes.byref(blkio)))
    check(library.blkio_set_str(blkio, b"path", node.encode()))
    if driver == "io_uring":
        check(library.blkio_set_bool(blkio, b"direct", True))
    check(library.blkio_connect(blkio))
    for name in PROPERTIES:
        value = ctypes.c_char_p()
        result = library.blkio_get_str(blkio, name.encode(), ctypes.byref(value))
        print(name, value.value.decode() if result == 0 else f"error {result}")
    check(library.blkio_start(blkio))
    io(library.blkio_get_queue(blkio, 0))
    library.blkio_destroy(ctypes.byref(blkio))


main(*sys.argv[1:])
