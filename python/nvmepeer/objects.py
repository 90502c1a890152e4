# SPDX-License-Identifier: MIT OR GPL-2.0
"""Controllers, namespaces, memory and queue pairs.

Each wraps one object of the C library.  After close(), or the end of a with block, any use
raises ValueError; the C object is closed when no other object depends on it.
"""
import ctypes
import os
from ctypes import byref, c_uint32, c_uint64, c_void_p, sizeof
from types import TracebackType
from typing import Any, NamedTuple, Optional, Self, Union

from . import abi
from .files import PinnedFile
from .library import TransferError, _library, call, try_call

ReadableBuffer = Union[bytes, bytearray, memoryview]
# Any object with writable memory, such as an array of numpy.
WritableBuffer = Any


class _Resource:
    """An object of the C library.  It is closed when the last reference is dropped: by the
    Python object, by objects that depend on it, and by views of its memory."""

    def __init__(self, close: str, handle: int, keeps: Any) -> None:
        self.handle, self.keeps = handle, keeps
        self._close = getattr(_library, f"nvmepeer_{close}")

    def __del__(self) -> None:
        self._close(self.handle)


class _Object:
    """An object that one C function opens and another one, @_close, closes."""

    _close: str

    def __init__(self, open_name: str, *arguments: Any, keeps: Any = None) -> None:
        self._resource: Optional[_Resource] = None
        handle = c_void_p()
        try_call(open_name, *arguments, byref(handle))
        assert handle.value
        self._resource = _Resource(self._close, handle.value, keeps)

    def _held(self) -> _Resource:
        if self._resource is None:
            raise ValueError(f"{type(self).__name__} is closed")
        return self._resource

    def _open(self) -> int:
        return self._held().handle

    def close(self) -> None:
        """Drop the reference; a closed object stays closed."""
        self._resource = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class _Memory(_Object):
    """An object with memory in this process, which stays mapped while a view of it exists."""

    def _view(self, address: int, length: int) -> memoryview:
        room = type("_Room", (ctypes.c_ubyte * length,), {}).from_address(address)
        room.keeps = self._held()
        return memoryview(room).cast("B")


class HostMemory(_Memory):
    """Host memory that is also a dma-buf, allocated by the module if a controller is given."""

    _close = "hostmem_free"

    def __init__(self, length: int, controller: "Controller | None" = None) -> None:
        if controller is None:
            super().__init__("hostmem_alloc", length)
        else:
            super().__init__("buf_alloc", controller._open(), length)

    @property
    def memory(self) -> memoryview:
        """A view of the whole memory."""
        return self._view(call("hostmem_address", self._open()),
                          call("hostmem_length", self._open()))

    def fileno(self) -> int:
        """The dma-buf, owned by this object."""
        return int(call("hostmem_fd", self._open()))


class Controller(_Object):
    """A controller node: "/dev/nvmep0", or "nvmep0" for short."""

    _close = "close"

    def __init__(self, node: str) -> None:
        super().__init__("open", node.encode())
        self.node = node

    def fileno(self) -> int:
        """The descriptor, owned by this object."""
        return int(call("fd", self._open()))

    def info(self) -> abi.Info:
        """Current limits, properties and state."""
        info = abi.Info()
        try_call("info", self._open(), byref(info), sizeof(info))
        return info

    def route(self, other: Union[str, int]) -> abi.Route:
        """Route to a PCI function ("0000:01:00.0") or to the memory of a dma-buf (a
        descriptor).  Verdict.NONE does not raise Error."""
        route, address = abi.Route(), abi.PciAddress()
        if isinstance(other, int):
            try_call("route_dmabuf", self._open(), other, byref(route), sizeof(route))
            return route
        if call("pci_parse", other.encode(), byref(address)):
            raise ValueError(f"{other} is no PCI address such as 0000:01:00.0")
        try_call("route_pci", self._open(), address, byref(route), sizeof(route))
        return route

    def import_dmabuf(self, dmabuf_fd: int, *, require_device: bool = False,
                      access: abi.Access = abi.Access.BOTH, offset: int = 0,
                      length: int = 0) -> "Buffer":
        """Import a dma-buf, or a range of it, for rings and data."""
        flags = abi.BUF_REQUIRE_DEVICE if require_device else 0
        made = abi.BufferImport(flags=flags, dmabuf_fd=dmabuf_fd, access=access, offset=offset,
                                length=length)
        try_call("buf_import_part", self._open(), byref(made), sizeof(made))
        return Buffer(self._held(), made)

    def pin_file(self, fd: int, first: int = 0, blocks: int = 0) -> PinnedFile:
        """Pin a file, for peers in direct or relay mode that read it, and find its extents.

        fd: open for reading and writing; may be closed afterwards
        blocks: 0: all from first on
        """
        extents = abi.Extents(fd=fd, first=first, blocks=blocks)
        try_call("file_extents", self._open(), byref(extents), sizeof(extents))
        return PinnedFile(extents)

    def create_queue_pair(self, entries: int, *, sq: Optional["Buffer"] = None,
                          sq_offset: int = 0, cq: Optional["Buffer"] = None, cq_offset: int = 0,
                          cq_entries: int = 0, mode: abi.Mode = abi.Mode.DIRECT, depth: int = 0,
                          weight: int = 0, timeout_ms: int = 0, max_windows: int = 0,
                          max_buffers: int = 0) -> "QueuePair":
        """Create a queue pair with rings in buffers or in host memory.

        depth, weight, timeout_ms, max_windows, max_buffers: for Mode.MEDIATED; 0: the default
        """
        request = abi.QueuePairCreate(mode=mode, sq_entries=entries, cq_entries=cq_entries,
                                      sq_handle=sq.info.handle if sq else 0,
                                      cq_handle=cq.info.handle if cq else 0,
                                      sq_offset=sq_offset, cq_offset=cq_offset, depth=depth,
                                      weight=weight, timeout_ms=timeout_ms,
                                      max_windows=max_windows, max_buffers=max_buffers)
        return QueuePair("qp_create", self._open(), byref(request), sizeof(request))


class Buffer:
    """Memory that a controller reads and writes, from Controller.import_dmabuf()."""

    def __init__(self, controller: _Resource, info: abi.BufferImport) -> None:
        self._controller: Optional[_Resource] = controller
        self.info = info

    def _open(self) -> int:
        if self._controller is None:
            raise ValueError("Buffer is released")
        return self._controller.handle

    def addresses(self, offset: int = 0, count: Optional[int] = None) -> list[int]:
        """DMA addresses of its controller pages; needs CAP_SYS_RAWIO."""
        if count is None:
            info = abi.Info()
            try_call("info", self._open(), byref(info), sizeof(info))
            count = (self.info.length - offset + info.page_size - 1) // info.page_size
        table = (c_uint64 * count)()
        filled = try_call("buf_table", self._open(), self.info.handle, offset, table, count)
        return list(table[:filled])

    def release(self) -> None:
        """Release the buffer; raises Error while a queue pair may use it."""
        try_call("buf_release", self._open(), self.info.handle)
        self._controller = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._controller is not None:
            self.release()


def handle_address(slot: int, offset: int) -> int:
    """NVME_PEER_HANDLE_ADDRESS: byte offset of the buffer in a slot, as commands carry it."""
    return slot << 48 | offset


class Exported(NamedTuple):
    """An exported part of a queue pair: dma-buf, to be closed by the caller, offset, length."""

    fd: int
    offset: int
    length: int


class QueuePair(_Object):
    """A queue pair, from Controller.create_queue_pair() or QueuePair.from_fd().

    Its file works with select, selectors and event loops: POLLPRI while an event is pending,
    POLLHUP once the queue pair is gone.
    """

    _close = "qp_destroy"

    @classmethod
    def from_fd(cls, fd: int) -> Self:
        """Adopt a queue pair file of another process."""
        return cls("qp_from_fd", fd)

    def fileno(self) -> int:
        """The queue pair file, owned by this object."""
        return int(call("qp_fd", self._open()))

    def info(self) -> abi.QueuePairInfo:
        """Current geometry, state and counters."""
        info = abi.QueuePairInfo()
        try_call("qp_info", self._open(), byref(info), sizeof(info))
        return info

    def export(self, what: abi.Export, *, allow_static: bool = False) -> Exported:
        """Export a ring, the doorbells or a page as a dma-buf."""
        made = abi.ExportMade()
        flags = abi.EXPORT_ALLOW_STATIC if allow_static else 0
        try_call("qp_export", self._open(), what, flags, byref(made), sizeof(made))
        return Exported(made.fd, made.offset, made.length)

    def rearm(self, losses: int) -> int:
        """Re-arm a QUIESCED queue pair. Returns the new generation."""
        generation = c_uint32()
        try_call("qp_rearm", self._open(), losses, byref(generation))
        return generation.value

    def kick(self) -> None:
        """Wake the kernel's thread that polls doorbells in host memory; not in Mode.DIRECT."""
        try_call("qp_kick", self._open())

    def add_window(self, fd: int, first: int = 0, blocks: int = 0) -> abi.WindowAdd:
        """Let a mediated queue pair access blocks of an open block device or file.

        fd: may be closed afterwards
        blocks: 0: all from first on

        Commands carry the id of the result as namespace ID; rights are those of fd.
        """
        window = abi.WindowAdd(fd=fd, first=first, blocks=blocks)
        try_call("window_add", self._open(), byref(window), sizeof(window))
        return window

    def open_file(self, path: str, first: int = 0, blocks: int = 0) -> abi.WindowAdd:
        """Open a file, check it, and add a window on blocks of it; 0: all from first on.

        check_file() has all that prevents a window.
        """
        window = abi.WindowAdd(first=first, blocks=blocks)
        try_call("file_open", self._open(), os.fsencode(path), byref(window), sizeof(window))
        return window

    def remove_window(self, id: int) -> None:
        """Remove a window, after its commands have completed."""
        try_call("window_remove", self._open(), id)

    def window(self, id: int) -> abi.WindowInfo:
        """What a window is now."""
        info = abi.WindowInfo()
        try_call("window_info", self._open(), id, byref(info), sizeof(info))
        return info

    def add_buffer(self, dmabuf_fd: int, *, access: abi.Access = abi.Access.BOTH, offset: int = 0,
                   length: int = 0) -> abi.BufferAdd:
        """Let a mediated queue pair transfer data of a dma-buf, or of a range of it.

        Commands address byte b of it by handle_address(slot, b), with the slot of the result.
        """
        buffer = abi.BufferAdd(dmabuf_fd=dmabuf_fd, access=access, offset=offset, length=length)
        try_call("buf_add", self._open(), byref(buffer), sizeof(buffer))
        return buffer

    def remove_buffer(self, slot: int) -> None:
        """Remove a buffer, after its commands have completed."""
        try_call("buf_remove", self._open(), slot)

    def limits(self) -> abi.QueuePairLimits:
        """Limits of a mediated queue pair, and what it uses of them."""
        limits = abi.QueuePairLimits()
        try_call("qp_limits", self._open(), byref(limits), sizeof(limits))
        return limits

    def stats(self) -> abi.QueuePairStats:
        """What the kernel has counted of a mediated queue pair; not of one moment."""
        stats = abi.QueuePairStats()
        try_call("qp_stats", self._open(), byref(stats), sizeof(stats))
        return stats

    def seal(self) -> None:
        """Let no process add windows or buffers: the file may be given away then."""
        try_call("qp_seal", self._open())

    def read_events(self) -> list[abi.Event]:
        """Read pending events; an empty list means that the queue pair is gone.

        Waits for an event; raises BlockingIOError if the file is non-blocking.
        """
        data, events = os.read(self.fileno(), 4096), []
        while data:
            event = abi.Event.from_buffer_copy(data)
            events.append(event)
            data = data[event.size:]
        return events


class Namespace(_Object):
    """A namespace node, for I/O by the CPU: "/dev/ngp0n1", or "ngp0n1" for short."""

    _close = "ns_close"

    def __init__(self, node: str) -> None:
        super().__init__("ns_open", node.encode())
        self.info: abi.NamespaceInfo = abi.NamespaceInfo.from_buffer_copy(
            call("ns_info", self._open()).contents)

    def fileno(self) -> int:
        """The descriptor, owned by this object."""
        return int(call("ns_fd", self._open()))

    def read(self, lba: int, blocks: int) -> bytes:
        """Read blocks with one command."""
        data = ctypes.create_string_buffer(blocks * self.info.block_size)
        try_call("ns_read", self._open(), lba, blocks, data)
        return data.raw

    def write(self, lba: int, data: ReadableBuffer) -> None:
        """Write whole blocks with one command."""
        blocks, rest = divmod(len(data), self.info.block_size)
        if rest:
            raise ValueError(f"{len(data)} bytes are no whole blocks of {self.info.block_size}")
        copy = ctypes.create_string_buffer(bytes(data), len(data))
        try_call("ns_write", self._open(), lba, blocks, copy)

    def flush(self) -> None:
        """Make completed writes durable."""
        try_call("ns_flush", self._open())


class CpuPeer(_Memory):
    """A queue pair with this process as its peer: transfers without system calls.

    Any thread may transfer blocks between the disk and memory.  After a loss the library
    re-arms the queue pair and repeats reads.
    """

    _close = "cpu_peer_close"

    def __init__(self, controller: Controller, namespace: Namespace, entries: int = 64,
                 data_bytes: int = 1 << 20) -> None:
        super().__init__("cpu_peer_open", controller._open(), byref(namespace.info), entries,
                         data_bytes, keeps=controller._held())

    @property
    def memory(self) -> memoryview:
        """A view of the data memory."""
        return self._view(call("cpu_peer_address", self._open()),
                          call("cpu_peer_data", self._open()).contents.length)

    def read(self, offset: int, lba: int, blocks: int, timeout_ms: int = 30000) -> None:
        """Read blocks into memory[offset:]; @timeout_ms limits the recovery after a loss."""
        self._transfer("cpu_peer_read", offset, lba, blocks, timeout_ms)

    def write(self, offset: int, lba: int, blocks: int, timeout_ms: int = 30000) -> None:
        """Write blocks from memory[offset:]; a lost write is not repeated."""
        self._transfer("cpu_peer_write", offset, lba, blocks, timeout_ms)

    def _transfer(self, name: str, offset: int, lba: int, blocks: int, timeout_ms: int) -> None:
        result = call(name, self._open(), offset, lba, blocks, timeout_ms)
        if result:
            raise TransferError(f"nvmepeer_{name}", result, f"{blocks} blocks at {lba}")
