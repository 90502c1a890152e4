# SPDX-License-Identifier: MIT OR GPL-2.0
"""Files on the disk of a controller: checked, in a window, pinned, and served.

usage: device.py NODE FOLDER      an ext4 file system on its namespace 1, with "file", of 1 MiB that
                                  are written, and "holes", of as many that are not
"""
import errno
import mmap
import os
import sys
import time

import nvmepeer
from nvmepeer import FileObstacle

import peer

BYTES = 1 << 20


def check(node: str, folder: str) -> None:
    with open(f"{folder}/holes", "r+b") as file:
        found = nvmepeer.check_file(file.fileno())
        assert (list(found.obstacles), found.holes) == ([FileObstacle.HOLES], BYTES), found
        assert "file prepare" in str(found.obstacles[FileObstacle.HOLES]), found
    with open(f"{folder}/file", "rb") as file:
        assert list(nvmepeer.check_file(file.fileno()).obstacles) == [FileObstacle.READ_ONLY]
    with open(f"{folder}/file", "r+b") as file:
        found = nvmepeer.check_file(file.fileno())
        assert not found.obstacles and found.extents, found
        assert found[:4] == ("ext4", f"{node}n1", node, BYTES), found


def window(node: str, folder: str) -> None:
    with nvmepeer.Controller(node) as controller, \
            controller.create_queue_pair(16, mode=nvmepeer.Mode.MEDIATED) as queue_pair:
        added = queue_pair.open_file(f"{folder}/file", 1, 2)
        assert (added.first, added.blocks) == (1, 2), (added.first, added.blocks)
        try:
            queue_pair.open_file(f"{folder}/holes")
            assert False, "a window on a hole"
        except nvmepeer.Error as error:
            assert "no blocks" in error.limit, error


def pin(node: str, folder: str) -> None:
    with open(f"{folder}/file", "r+b") as file, nvmepeer.Controller(node) as controller, \
            nvmepeer.Namespace(f"ngp{node.removeprefix('nvmep')}n1") as namespace:
        data = file.read()
        with controller.pin_file(file.fileno()) as pinned:
            size = pinned.info.block_size
            assert pinned.info.blocks * size == BYTES
            at = 0
            for extent in pinned.extents():
                assert extent.first * size == at
                read = b"".join(namespace.read(extent.lba + block, 1) for block in range(0, extent.blocks))
                assert read == data[at:at + len(read)]
                at += len(read)
            assert at == BYTES
            # Only while it is pinned.
            try:
                os.pwrite(file.fileno(), data[:512], 0)
                assert False, "a pinned file was written"
            except OSError:
                pass
        write_again(file.fileno(), data[:512])


def write_again(fd: int, data: bytes) -> None:
    """Shortly after, too, as long as a process has the inode locked."""
    end = time.monotonic() + 10
    while True:
        try:
            os.pwrite(fd, data, 0)
            return
        except OSError as error:
            if error.errno != errno.ETXTBSY or time.monotonic() > end:
                raise
        time.sleep(0.02)


def serve(folder: str) -> None:
    file = os.open(f"{folder}/file", os.O_RDWR | os.O_DIRECT)
    memory = mmap.mmap(-1, BYTES)
    with nvmepeer.ServedQueuePair(16) as served:
        namespace = served.add_namespace(file)
        buffer = served.add_buffer(memory)
        os.close(file)
        served.start()
        tenant, size = peer.Peer(served, namespace), namespace.block_size
        with open(f"{folder}/file", "rb") as same:
            expected = bytearray(same.read())
        assert tenant.command(peer.READ, 0, BYTES // size, buffer.dma) == 0
        assert memory[:] == bytes(expected)
        # Blocks 1 to 4, from block 9 on.
        expected[9 * size:13 * size] = expected[size:5 * size]
        assert tenant.command(peer.WRITE, 9, 4, buffer.dma + size) == 0
        assert tenant.command(peer.FLUSH) == 0
        served.stop()
    with open(f"{folder}/file", "rb") as same:
        assert same.read() == expected


def main() -> int:
    check(sys.argv[1], sys.argv[2])
    window(sys.argv[1], sys.argv[2])
    pin(sys.argv[1], sys.argv[2])
    serve(sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
