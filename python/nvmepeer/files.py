# SPDX-License-Identifier: MIT OR GPL-2.0
"""Files: what prevents a window on one, and where its blocks are."""
import os
from ctypes import byref, sizeof
from types import TracebackType
from typing import NamedTuple, Optional, Self

from . import abi
from .library import Error, explanation, try_call


class FileCheck(NamedTuple):
    """A file, and what prevents a window on it, from check_file().

    file_system: its type, "ext4"
    disk: block device of the file system, "nvmep0n1p1"; empty without one
    controller: of that device, "nvmep0"; empty if it is not of nvme-peer
    bytes: size of the file
    extents, holes, unwritten: number of extents, bytes without blocks, and bytes whose blocks were
        never written; on ext4 and XFS only
    obstacles: Errors with the limit and the fix, what is hardest to change first; empty if the
        caller finds none
    """

    file_system: str
    disk: str
    controller: str
    bytes: int
    extents: int
    holes: int
    unwritten: int
    obstacles: dict[abi.FileObstacle, Error]


def check_file(fd: int) -> FileCheck:
    """Find what prevents a window of a mediated queue pair on an open file.

    Obstacles do not raise Error.  Dirty data is written back.  The kernel checks again in
    QueuePair.add_window().
    """
    info, obstacles = abi.FileInfo(), {}
    try_call("file_check", fd, byref(info), sizeof(info))
    for obstacle in (1 << bit for bit in range(32) if info.obstacles & 1 << bit):
        obstacles[abi.FileObstacle(obstacle)] = explanation("file_explain", byref(info), obstacle)
    names = [name.decode() for name in (info.file_system, info.disk, info.controller)]
    return FileCheck(*names, info.bytes, info.extents, info.holes, info.unwritten, obstacles)


class Extent(NamedTuple):
    """Contiguous blocks of a file: the first one on the file and on the namespace, and their number."""

    first: int
    lba: int
    blocks: int


class PinnedFile:
    """A file whose blocks stay where they are, from Controller.pin_file().

    info: first and blocks of the part that is pinned, nsid, block_size, and count of the extents
    Peers must only read the blocks.  close(), or the end of a with block, unpins the file.
    """

    def __init__(self, info: abi.Extents) -> None:
        self.info = info
        self._file = os.fdopen(info.pin_fd, "rb", buffering=0)

    def fileno(self) -> int:
        """The file that has the extents, owned by this object; the blocks stay while a copy of it is open."""
        return self._file.fileno()

    def extents(self) -> list[Extent]:
        """The extents, in the order of the file.

        Raises OSError, ESTALE, if blocks of the file have changed.  What a peer has read is data of
        the file if this succeeds afterwards.
        """
        numbers = memoryview(os.pread(self.fileno(), self.info.count * 24, 0)).cast("Q").tolist()
        return [Extent(*numbers[at:at + 3]) for at in range(0, len(numbers), 3)]

    def close(self) -> None:
        """Unpin the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
