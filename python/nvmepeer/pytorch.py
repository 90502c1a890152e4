# SPDX-License-Identifier: MIT OR GPL-2.0
"""Operators of PyTorch that read and write pages, for torch.compile and CUDA graphs.

    number = register(lists)
    torch.ops.nvmepeer.read_pages([cache], number, tensors, pages, statuses)

@caches are all tensors of the lists, in their order.  They are arguments so that the compiler
orders the operator with their other uses.  A copy of one is refused when the operator runs,
since the controller accesses the memory of the tensor that the lists were opened for.

Under torch.compile @statuses must be an input of the graph, and all operators of a graph must share
it: each has the tensor or a part of it.  The compiler orders operators only by the tensors that they
set, and removes an operator whose results are not used: a write and a later read of the same blocks
have no other order.

@tensors, @pages and @statuses are in memory of the GPU: the program may drop them after the call, since
PyTorch's allocator reuses such memory in the order of the stream.  Pinned memory it would reuse at once.

Operators on streams that run at the same time have different @scratch.
"""
import itertools
import weakref
from typing import Any

import torch
from torch import Tensor

from .cuda import Lists, span_of

_lists: "weakref.WeakValueDictionary[int, Lists]" = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def register(lists: Lists) -> int:
    """A number by which the operators name @lists, until they are closed."""
    number = next(_numbers)
    _lists[number] = lists
    return number


def _find(number: int, caches: list[Tensor], arguments: tuple[Tensor, ...]) -> Lists:
    """The lists, whose memories must be those of @caches.  The stream uses @arguments later."""
    if number not in _lists:
        raise ValueError(f"{number} is no number from register(), or its lists are gone")
    lists = _lists[number]
    if [span_of(one) for one in caches] != [one.span for one in lists.memories]:
        raise ValueError("caches are not the tensors of the lists: another number, order or "
                         "length, or copies that the compiler has made")
    if not all(one.is_cuda for one in arguments):
        raise ValueError("tensors, pages and statuses must be in memory of the GPU")
    return lists


@torch.library.custom_op("nvmepeer::read_pages", mutates_args=("caches", "statuses"))
def read_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
               statuses: Tensor, scratch: int = 0, control: int = 0) -> None:
    """Read @pages of all @tensors into @caches, on the current stream of the lists' GPU."""
    found = _find(lists, caches, (tensors, pages, statuses))
    found.read(tensors=tensors, pages=pages, statuses=statuses, scratch=scratch, control=control)


@torch.library.custom_op("nvmepeer::write_pages", mutates_args=("statuses",))
def write_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                statuses: Tensor, scratch: int = 0, control: int = 0) -> None:
    """Write @pages of all @tensors from @caches, on the current stream of the lists' GPU."""
    found = _find(lists, caches, (tensors, pages, statuses))
    found.write(tensors=tensors, pages=pages, statuses=statuses, scratch=scratch, control=control)


def _bytes(tensor: Tensor) -> Any:
    return tensor.numel() * tensor.element_size()


@read_pages.register_fake
def _read_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                statuses: Tensor, scratch: int = 0, control: int = 0) -> None:
    torch._check(_bytes(statuses) >= 4 * (_bytes(tensors) // 32) * (_bytes(pages) // 16))


@write_pages.register_fake
def _write_pages(caches: list[Tensor], lists: int, tensors: Tensor, pages: Tensor,
                 statuses: Tensor, scratch: int = 0, control: int = 0) -> None:
    torch._check(_bytes(statuses) >= 4 * (_bytes(tensors) // 32) * (_bytes(pages) // 16))


def _keep_operators() -> None:
    """Before functionalization, passes over the graph do not remove the operators."""
    keep = getattr(getattr(getattr(torch, "fx", None), "node", None), "has_side_effect", None)
    if keep:
        keep(torch.ops.nvmepeer.read_pages.default)
        keep(torch.ops.nvmepeer.write_pages.default)


_keep_operators()
