# SPDX-License-Identifier: MIT OR GPL-2.0
"""What the parts in integrations/ share: a GPU's queue pairs and lists on the members of a store."""
import errno
import os
import re
import time
from typing import Any, Callable, Sequence

from . import cuda
from .library import Error
from .objects import Controller, Namespace


def nodes_of(member: str) -> tuple[str, str]:
    """Controller and namespace of a member: a block device of nvme-peer or a partition of it."""
    found = re.fullmatch(r"/dev/nvmep(\d+)n(\d+)(p\d+)?", os.path.realpath(member))
    if not found:
        raise ValueError(f"{member}: not a block device of nvme-peer, such as /dev/nvmep0n1")
    return f"nvmep{found[1]}", f"ngp{found[1]}n{found[2]}"


def retry(call: Callable[[], None], seconds: float) -> None:
    """Call again while calls in flight are in the way."""
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except Error as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.0005)


class Access:
    """Queue pairs and lists of one GPU on all members, for the memory of tensors.

    lists: for each member
    block_sizes: logical block of each member's namespace
    """

    def __init__(self, members: Sequence[str], device: int, tensors: Sequence[Any], queues: int,
                 entries: int = 1024) -> None:
        self._open: list[Any] = []    # in the order of closing
        self.block_sizes: list[int] = []
        try:
            self._gpu = cuda.Gpu(device)
            self._open = [self._gpu]
            self.lists = [self._open_lists(member, tensors, queues, entries) for member in members]
        except Exception:
            self.close()
            raise

    def _open_lists(self, member: str, tensors: Sequence[Any], count: int, entries: int) -> cuda.Lists:
        controller, namespace = (Controller(nodes_of(member)[0]), Namespace(nodes_of(member)[1]))
        self._open[-1:-1] = [controller, namespace]
        queues = cuda.Queues(controller, namespace, self._gpu, entries, count)
        self._open.insert(0, queues)
        self.block_sizes.append(queues.block_size)
        lists = cuda.Lists(queues, tensors)
        self._open.insert(1, lists)
        return lists

    def close(self, seconds: float = 30.0) -> None:
        """End all access to the memory, after the lists in flight; what cannot be closed stays."""
        while self._open:
            retry(self._open[0].close, seconds)
            del self._open[0]
