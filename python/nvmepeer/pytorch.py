# SPDX-License-Identifier: MIT OR GPL-2.0
"""Operators of PyTorch that read and write pages, for torch.compile and CUDA graphs.

    number = register(lists)
    torch.ops.nvmepeer.read_pages([cache], number, tensors, pages, statuses)

The caches are arguments so that the compiler orders the operator with their other uses.
"""
import weakref

import torch
from torch import Tensor

from .cuda import Lists

_lists: "weakref.WeakValueDictionary[int, Lists]" = weakref.WeakValueDictionary()


def register(lists: Lists) -> int:
    """A number by which the operators name @lists, as long as the program holds it."""
    _lists[id(lists)] = lists
    return id(lists)


def _find(number: int) -> Lists:
    if number not in _lists:
        raise ValueError(f"{number} is no number from register(), or its lists are gone")
    return _lists[number]


@torch.library.custom_op("nvmepeer::read_pages", mutates_args=("caches", "statuses"))
def read_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
               statuses: Tensor) -> None:
    """Read @pages of all @tensors into @caches, on the current stream."""
    _find(lists).read(tensors=tensors, pages=pages, statuses=statuses)


@torch.library.custom_op("nvmepeer::write_pages", mutates_args=("statuses",))
def write_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                statuses: Tensor) -> None:
    """Write @pages of all @tensors from @caches, on the current stream."""
    _find(lists).write(tensors=tensors, pages=pages, statuses=statuses)


@read_pages.register_fake
def _read_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                statuses: Tensor) -> None:
    torch._check(statuses.numel() >= tensors.shape[0] * pages.shape[0])


@write_pages.register_fake
def _write_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                 statuses: Tensor) -> None:
    torch._check(statuses.numel() >= tensors.shape[0] * pages.shape[0])
