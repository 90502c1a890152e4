# SPDX-License-Identifier: MIT OR GPL-2.0
"""A CUDA GPU as the peer: lists of blocks, read into tensors on a stream.

    gpu = Gpu(0)
    queues = Queues(controller, namespace, gpu)
    lists = Lists(queues, [cache])
    lists.read(items, done=done)        # on PyTorch's current stream of the GPU

Needs libnvmepeer_cuda; NVMEPEER_CUDA_LIBRARY in the environment names another library to load.
Needs no package: a tensor is any object with data_ptr(), __cuda_array_interface__ or __dlpack__.
Module nvmepeer.pytorch has operators for torch.compile.  PageTables are for kernels that choose the
pages of a cache; ControllerSet is several controllers as one.

A list has items, or tensors and pages, in memory of the GPU or in host memory that CUDA has
registered; of that, an object other than a tensor of PyTorch is passed as Span(address, bytes).
They have 32, 32 and 16 bytes: item(), tensor() and page() make them as integers of 64 bits.
"""
import ctypes
import enum
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional, Sequence

from . import abi
from .abi import Geometry
from .library import Error, TransferError, explain, load
from .objects import Controller, Namespace
from .serve import ServedQueuePair

SCRATCHES = 4

_handle, _receives = c_void_p, POINTER(c_void_p)


class _List(ctypes.Structure):
    """struct nvmepeer_cuda_list"""

    _fields_ = [("size", c_uint32), ("count", c_uint32), ("items", c_uint64), ("tensors", c_uint64),
                ("pages", c_uint64), ("statuses", c_uint64), ("count_at", c_uint64),
                ("done", c_uint64), ("tensor_count", c_uint32), ("control", c_uint32),
                ("scratch", c_uint32), ("control_high", c_uint32)]


class _PagesOptions(ctypes.Structure):
    """struct nvmepeer_cuda_pages_options"""

    _fields_ = [("size", c_uint32), ("tables", c_uint32), ("pages", c_uint32), ("slots", c_uint32),
                ("blocks", c_uint32), ("most", c_uint32), ("lba", c_uint64)]


class _Step(ctypes.Structure):
    """struct nvmepeer_cuda_step"""

    _fields_ = [("size", c_uint32), ("count", c_uint32), ("wanted", c_uint64), ("blocks", c_uint64),
                ("statuses", c_uint64), ("worst", c_uint64)]


class _Set(ctypes.Structure):
    """struct nvmepeer_set"""

    _fields_ = [("queues", c_uint64), ("buffers", c_uint64), ("controllers", c_uint32),
                ("queues_each", c_uint32), ("stripe_shift", c_uint32), ("flags", c_uint32),
                ("layout", c_uint32), ("reserved", c_uint32), ("members", c_uint64)]


class Role(enum.IntEnum):
    """enum nvmepeer_cuda_role: what a descriptor of a queue pair is"""

    SQ = 1
    CQ = 2
    DOORBELL = 3
    STATUS = 4
    CONTROL = 5
    LISTS = 6
    READBACK = 7
    QUEUE_PAIR = 8
    DOORBELL_MEMORY = 9


class _Options(ctypes.Structure):
    """struct nvmepeer_cuda_queues_options"""

    _fields_ = [("size", c_uint32), ("layout", c_uint32), ("count", c_uint32), ("entries", c_uint32),
                ("cq_entries", c_uint32), ("cids", c_uint32), ("list_bytes", c_uint32),
                ("reserve", c_uint32), ("timeout_ns", c_uint64)]


# Queues.list_bytes without memory for PRP lists: NVMEPEER_CUDA_NO_LISTS.
NO_LISTS = 0xffffffff

# Descriptor of a part that is in GPU memory of this process.
GPU_MEMORY = -1


class File(ctypes.Structure):
    """struct nvmepeer_cuda_file: a part of a queue pair; its role is one of Role"""

    _fields_ = [("fd", c_int), ("role", c_uint32), ("offset", c_uint64), ("bytes", c_uint64)]


_takes: dict[str, list[Any]] = {
    "open": [c_int, _receives],
    "close": [_handle],
    "layout": [],
    "queues_open_with": [_handle, POINTER(abi.NamespaceInfo), _handle, POINTER(_Options), _receives],
    "queues_from_fds": [_handle, c_uint32, POINTER(File), c_uint32, POINTER(Geometry), c_size_t,
                        _receives],
    "queues_close": [_handle],
    "queues_rearm": [_handle, c_int],
    "queues_result": [_handle, c_uint32],
    "queues_quiesce": [_handle, c_uint32],
    "queues_device": [_handle],
    "buffer_open": [_handle, _handle, c_void_p, c_size_t, _receives],
    "buffer_from_addresses": [_handle, c_void_p, c_size_t, c_uint32, POINTER(c_uint64), c_uint32, _receives],
    "buffer_close": [_handle],
    "buffer_device": [_handle],
    "lists_open_with": [_handle, _receives, c_uint32, _handle, _receives],
    "lists_scratch_bytes": [_handle],
    "lists_close": [_handle],
    "pages_open": [_handle, _handle, POINTER(_PagesOptions), POINTER(c_uint32), _receives],
    "pages_close": [_handle],
    "pages_device": [_handle],
    "read_pages": [_handle, POINTER(_Step), c_void_p],
    "reclaim_pages": [_handle, c_void_p],
    "set_open": [_handle, _receives, _receives, c_uint32, c_uint32, c_uint32, _receives],
    "set_close": [_handle],
    "set_host": [_handle],
    "read_list": [_handle, POINTER(_List), c_void_p],
    "write_list": [_handle, POINTER(_List), c_void_p],
}
_returns: dict[str, Any] = {"close": None, "pages_close": None, "pages_device": c_void_p,
                            "set_close": None, "set_host": POINTER(_Set), "layout": c_uint32, "queues_device": c_void_p,
                            "buffer_device": c_void_p, "lists_scratch_bytes": c_uint64}
_loaded: Optional[ctypes.CDLL] = None


def _library() -> ctypes.CDLL:
    """The C library, loaded at the first use."""
    global _loaded
    if _loaded is None:
        _loaded = load("nvmepeer_cuda", _takes, _returns)
    return _loaded


def address_of(name: str) -> int:
    """Address of a function of the C library, for another library that calls it."""
    return int(ctypes.cast(_library()[f"nvmepeer_cuda_{name}"], c_void_p).value or 0)


def _call(name: str, *arguments: Any) -> Any:
    return getattr(_library(), f"nvmepeer_cuda_{name}")(*arguments)


def _try(name: str, *arguments: Any) -> None:
    """Call nvmepeer_cuda_@name and raise Error if it fails."""
    if _call(name, *arguments) < 0:
        raise explain()


def library_layout() -> int:
    """NVMEPEER_LAYOUT of the C library."""
    return int(_call("layout"))


class _DlTensor(ctypes.Structure):
    """DLTensor of DLPack, which begins the object in a capsule"""

    _fields_ = [("data", c_uint64), ("device_type", c_int), ("device_id", c_int),
                ("ndim", c_int), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Span(NamedTuple):
    """Memory of a tensor."""

    address: int
    bytes: int


# Devices of DLPack: memory of CUDA, pinned, and managed.
_DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED = 2, 3, 13


def _check_element(bytes: int, element: Optional[int]) -> None:
    if element is not None and bytes != element:
        raise ValueError(f"the tensor has elements of {bytes} bytes instead of {element}")


def _from_dlpack(tensor: Any, device: Optional[int], stream: Optional[int],
                 element: Optional[int] = None) -> tuple[Span, Any]:
    """Its memory, and the export, which makes a framework keep that although its array is deleted or
    donated, as JAX does."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    kind, number = tensor.__dlpack_device__()
    if kind not in (_DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED):
        raise ValueError("the tensor is not in memory of CUDA; pass a Span if CUDA has registered it")
    if kind == _DL_CUDA and device is not None and number != device:
        raise ValueError(f"the tensor is on GPU {number} instead of {device}")
    # DLPack has 1 for the legacy stream; memory of the host has none.
    on = {} if stream is None or kind == _DL_CUDA_HOST else {"stream": stream or 1}
    capsule = tensor.__dlpack__(**on)
    found = _DlTensor.from_address(pointer(capsule, b"dltensor"))
    length, dense = found.bits * found.lanes // 8, 1
    _check_element(length, element)
    for axis in reversed(range(found.ndim)):
        if found.strides and found.shape[axis] != 1 and found.strides[axis] != dense:
            raise ValueError("the tensor is not contiguous")
        dense *= found.shape[axis]
    return Span(found.data + found.byte_offset, dense * length), capsule


def _held_span(tensor: Any, device: int) -> tuple[Span, Any]:
    """Memory of a tensor, and what keeps it beside the tensor, or None."""
    if isinstance(tensor, Span) or hasattr(tensor, "data_ptr") or not hasattr(tensor, "__dlpack__"):
        return span_of(tensor, device), None
    if hasattr(tensor, "__cuda_array_interface__"):
        return span_of(tensor, device), tensor.__dlpack__()
    return _from_dlpack(tensor, device, None)


def _check_place(tensor: Any, device: Optional[int]) -> None:
    """Refuse a tensor of PyTorch that the GPU cannot access."""
    if not tensor.is_cuda:
        if not tensor.is_pinned():
            raise ValueError("the tensor is in memory of the host that is not pinned")
    elif device is not None and tensor.get_device() != device:
        raise ValueError(f"the tensor is on GPU {tensor.get_device()} instead of {device}")


def span_of(tensor: Any, device: Optional[int] = None, stream: Optional[int] = None,
            element: Optional[int] = None) -> Span:
    """Address and length of a contiguous tensor: of PyTorch, or with the interface of CUDA
    arrays or DLPack; or of a Span.

    device: the GPU that accesses it
    stream: which waits for the tensor, by DLPack.  Of a CUDA array the caller orders the stream
    that its interface names.
    element: bytes of an element, of which others are refused; None: any.  A Span has none
    """
    if isinstance(tensor, Span):
        return tensor
    if hasattr(tensor, "data_ptr"):
        if not tensor.is_contiguous():
            raise ValueError("the tensor is not contiguous")
        _check_place(tensor, device)
        _check_element(int(tensor.element_size()), element)
        return Span(int(tensor.data_ptr()), int(tensor.numel()) * int(tensor.element_size()))
    if hasattr(tensor, "__cuda_array_interface__"):
        array = tensor.__cuda_array_interface__
        # CuPy says which GPU it is on; the interface does not, and others number their devices.
        cupy = type(tensor).__module__.partition(".")[0] == "cupy"
        number = tensor.device.id if cupy else None
        if device is not None and number not in (None, device):
            raise ValueError(f"the array is on GPU {number} instead of {device}")
        length = int(array["typestr"][2:])
        _check_element(length, element)
        for one in array["shape"]:
            length *= one
        if array.get("strides") is not None:
            raise ValueError("the array is not contiguous")
        return Span(int(array["data"][0]), length)
    return _from_dlpack(tensor, device, stream, element)[0]


def item(lba: int, offset: int, bytes: int, memory: int = 0) -> list[int]:
    """struct nvmepeer_list_item as four integers of 64 bits; status_of() has the status, which is
    -1 until a list sets it."""
    return [lba, offset, memory | bytes << 32, 0xffffffff]


def status_of(row: Sequence[Any]) -> int:
    """The status of an item: the low half of its fourth integer."""
    return _signed(int(row[3]))


class Control(enum.IntEnum):
    """NVMEPEER_CONTROL_*: how the commands of a list are executed; combined by OR, which gives
    plain integers."""

    BACKGROUND = 1 << 0
    FORCE_UNIT_ACCESS = 1 << 30
    LIMITED_RETRY = 1 << 31


def placement(identifier: int) -> int:
    """NVMEPEER_CONTROL_PLACEMENT(): a placement identifier of flexible data placement, to be
    combined with Control by OR.  A signed integer of 64 bits, as PyTorch takes it."""
    return ((identifier & 0xffff ^ 0x8000) - 0x8000) << 48 | 2 << 20


def _signed(status: int) -> int:
    """The low 32 bits as a signed number."""
    return (status & 0xffffffff ^ 1 << 31) - (1 << 31)


def tensor(offset: int, stride: int, bytes: int, memory: int = 0, block: int = 0) -> list[int]:
    """struct nvmepeer_list_tensor as four integers of 64 bits."""
    return [offset, stride, memory | bytes << 32, block]


def page(lba: int, number: int) -> list[int]:
    """struct nvmepeer_list_page as two integers of 64 bits."""
    return [lba, number]


def lay_out(tensors: Sequence[list[int]], block_size: int) -> int:
    """Place the pieces of a page one after the other on the disk; returns the blocks of a page."""
    block = 0
    for one in tensors:
        one[3] = block
        block += -(-(one[2] >> 32) // block_size)
    return block


def current_stream(device: Optional[int] = None) -> int:
    """PyTorch's current stream of a GPU if the program uses PyTorch with CUDA, else the legacy
    stream."""
    torch = sys.modules.get("torch")
    if not torch or not torch.cuda.is_available():
        return 0
    return int(torch.cuda.current_stream(device).cuda_stream)


def check(status: int, what: str = "list") -> None:
    """Raise TransferError if a status that a list has left is not 0; of a status in a wider
    integer the low 32 bits count."""
    if _signed(int(status)):
        raise TransferError("list on a stream", _signed(int(status)), what)


# Open queues, lists and memories.  The controller and kernels may use them and their tensors,
# which must not be freed when the program drops its references.
_open: "set[Any]" = set()


class _Resource:
    """An object of the C library, and what must outlive it.

    needs: another one, which cannot be closed before this one
    """

    def __init__(self, close: str, handle: int, keeps: Any, needs: "Optional[_Resource]" = None) -> None:
        self.handle: Optional[int] = handle
        self._close, self._keeps, self._needs, self._users = close, keeps, needs, 0
        if needs:
            needs.hold()

    def open(self) -> int:
        if self.handle is None:
            raise ValueError("the object is closed")
        return self.handle

    def hold(self) -> "_Resource":
        """Refuse close() until release()."""
        self.open()
        self._users += 1
        return self

    def release(self) -> None:
        self._users -= 1

    def close(self) -> None:
        """Close it; raises Error, and it stays open, while the controller may use it."""
        if self.handle is None:
            return
        if self._users:
            raise ValueError("close the queues, memories, lists, tables, sets and streams first")
        if (_call(self._close, self.handle) or 0) < 0:
            raise explain()
        self.handle = self._keeps = None
        if self._needs:
            self._needs.release()


class Gpu:
    """A GPU, by CUDA's device number."""

    def __init__(self, device: int = 0) -> None:
        handle = c_void_p()
        _try("open", device, byref(handle))
        assert handle.value
        self.device = device
        self._resource = _Resource("close", handle.value, None)

    def close(self) -> None:
        """Close it, after all else: raises ValueError before."""
        self._resource.close()


class Queues:
    """Queue pairs of a controller for the kernels of a GPU."""

    def __init__(self, controller: Controller, namespace: Namespace, gpu: Gpu,
                 entries: int = 1024, count: int = 16, *, reserve: int = 0, cq_entries: int = 0,
                 cids: int = 0, list_bytes: int = 0, timeout_ns: int = 0,
                 layout: Optional[int] = None) -> None:
        """count queue pairs of entries each.

        reserve: slots that lists and commands with Control.BACKGROUND leave free for reads that a
            thread waits for; 0: a quarter
        cq_entries, cids, list_bytes, timeout_ns: as in struct nvmepeer_cuda_queues_options; 0 is the
            default.  list_bytes may be NO_LISTS
        layout: NVMEPEER_LAYOUT of the header that the kernels are compiled with.  Without it they
            must call nvmepeer_check(); those of the library do
        """
        numbers = {"count": count, "entries": entries, "cq_entries": cq_entries, "cids": cids,
                   "list_bytes": list_bytes, "reserve": reserve, "timeout_ns": timeout_ns,
                   "layout": library_layout() if layout is None else layout}
        _check_words(numbers)
        options, handle = _Options(size=ctypes.sizeof(_Options), **numbers), c_void_p()
        _try("queues_open_with", controller._open(), byref(namespace.info), gpu._resource.open(),
             byref(options), byref(handle))
        self._set(handle, gpu, count, int(namespace.info.nsid), int(namespace.info.block_size), controller)

    def _set(self, handle: c_void_p, gpu: Gpu, count: int, nsid: int, block_size: int,
             controller: Optional[Controller]) -> None:
        assert handle.value
        self._controller, self.gpu, self.count = controller, gpu, count
        self.nsid, self.block_size = nsid, block_size
        held = controller._held() if controller else None
        self._resource = _Resource("queues_close", handle.value, (held, gpu), gpu._resource)
        _open.add(self)

    @classmethod
    def from_files(cls, gpu: Gpu, layout: int, files: Sequence[File], geometry: Geometry) -> "Queues":
        """One queue pair that another process has created, by its descriptors, which stay the caller's.

        layout: NVMEPEER_LAYOUT of the header that the kernels are compiled with
        The caller keeps the memory of rings that are in GPU memory, and that of a table in
        geometry.list_memory.pages.  The process needs no node of the controller.  Its tensors are
        DeviceMemory.from_addresses(), of which Lists.from_memories() makes lists.
        """
        handle, queues = c_void_p(), cls.__new__(cls)
        _try("queues_from_fds", gpu._resource.open(), layout, (File * len(files))(*files), len(files),
             byref(geometry), ctypes.sizeof(geometry), byref(handle))
        queues._set(handle, gpu, 1, int(geometry.nsid), 1 << geometry.lba_shift, None)
        return queues

    @classmethod
    def from_served(cls, gpu: Gpu, layout: int, served: ServedQueuePair,
                    namespace: abi.NamespaceInfo) -> "Queues":
        """The queue pair that this process serves.

        layout: as in from_files()
        namespace: from served.add_namespace()
        Data is in host memory that CUDA has registered: a pinned tensor, by served.add_buffer() and
        DeviceMemory.from_addresses().
        """
        parts = {abi.Export.SQ: Role.SQ, abi.Export.CQ: Role.CQ, abi.Export.DOORBELL: Role.DOORBELL_MEMORY,
                 abi.Export.STATUS: Role.STATUS, abi.Export.CONTROL: Role.CONTROL}
        files, geometry = [], served.geometry(namespace)
        try:
            for what, role in parts.items():
                part = served.export(what)
                files.append(File(part.fd, role, part.offset, part.length))
            return cls.from_files(gpu, layout, files, geometry)
        finally:
            for file in files:
                os.close(file.fd)

    @property
    def controller(self) -> Controller:
        """The controller that they were created on."""
        if self._controller is None:
            raise ValueError("the queue pair came as descriptors: this process has no node of its controller")
        return self._controller

    @property
    def device(self) -> int:
        """GPU address of the array of device queues."""
        return int(_call("queues_device", self._resource.open()))

    @property
    def scratch_bytes(self) -> int:
        """Scratch memory that Lists.from_memories() needs."""
        return int(_call("lists_scratch_bytes", self._resource.open()))

    def rearm(self, timeout_ms: int = 30000) -> None:
        """Re-arm queue pairs after a loss.  No kernel may use them."""
        _try("queues_rearm", self._resource.open(), timeout_ms)

    def results(self) -> list[Optional[int]]:
        """For each queue pair None, or the errno of the last re-arm."""
        found = [int(_call("queues_result", self._resource.open(), i)) for i in range(self.count)]
        return [-one if one else None for one in found]

    def quiesce(self, index: int) -> None:
        """Give a queue pair up, whose commands do not complete."""
        _try("queues_quiesce", self._resource.open(), index)

    def close(self) -> None:
        """Destroy the queue pairs, before the lists and memories that they use.  No kernel and no
        list on a stream may use them any more.  One of from_files() is not destroyed while
        another process has its file."""
        self._resource.close()
        _open.discard(self)
        _close_all(_leaked)


class DeviceMemory:
    """Memory of a tensor as the data of a controller; holds the tensor.

    It is the physical memory at the time of the call.  An address that is unmapped and mapped
    again, as vLLM's sleep mode does, has other memory then, and so has a storage that was resized:
    close queues, lists and memories before, and open them after.
    """

    def __init__(self, controller: Controller, gpu: Gpu, tensor: Any) -> None:
        (self.span, capsule), handle = _held_span(tensor, gpu.device), c_void_p()
        _try("buffer_open", controller._open(), gpu._resource.open(), self.span.address,
             self.span.bytes, byref(handle))
        self._set(handle, gpu, tensor, capsule, controller._held())

    def _set(self, handle: c_void_p, gpu: Gpu, tensor: Any, capsule: Any, held: Any) -> None:
        assert handle.value
        # A tensor of PyTorch can be given other storage.
        storage = getattr(tensor, "untyped_storage", lambda: None)()
        self._resource = _Resource("buffer_close", handle.value,
                                   (held, gpu, tensor, storage, capsule), gpu._resource)
        _open.add(self)

    @classmethod
    def from_addresses(cls, gpu: Gpu, tensor: Any, page_size: int,
                       addresses: Sequence[int]) -> "DeviceMemory":
        """Memory that another process has imported into its controller, and sent the DMA addresses of.

        addresses: of each page of page_size bytes, the controller's; or one if they are contiguous
        The tensor is not freed before the other process has released the import.
        """
        memory, handle = cls.__new__(cls), c_void_p()
        memory.span, capsule = _held_span(tensor, gpu.device)
        _try("buffer_from_addresses", gpu._resource.open(), memory.span.address, memory.span.bytes,
             page_size, (c_uint64 * len(addresses))(*addresses), len(addresses), byref(handle))
        memory._set(handle, gpu, tensor, capsule, None)
        return memory

    @property
    def device(self) -> int:
        """GPU address of its struct nvmepeer_buffer."""
        return int(_call("buffer_device", self._resource.open()))

    def close(self) -> None:
        """End the controller's access, after the queue pairs have been closed."""
        self._resource.close()
        _open.discard(self)


class Lists:
    """Lists of blocks on streams, for the memory of tensors.

    Items name the tensors by their number.  The object and the tensors stay until close(), also
    if the program holds no reference to them.
    """

    def __init__(self, queues: Queues, tensors: Sequence[Any]) -> None:
        self.queues = queues
        self.memories: list[DeviceMemory] = []
        try:
            for one in tensors:
                self.memories.append(DeviceMemory(queues.controller, queues.gpu, one))
            self._open_lists(None)
        except Exception:
            self._close_memories()
            raise

    @classmethod
    def from_memories(cls, queues: Queues, memories: "Sequence[DeviceMemory]",
                      scratch: DeviceMemory) -> "Lists":
        """Lists of Queues.from_files(), of memories that another process has imported.

        scratch: at least queues.scratch_bytes of such memory
        The memories are closed with the lists, scratch is not.
        """
        lists = cls.__new__(cls)
        lists.queues, lists.memories = queues, list(memories)
        lists._open_lists(scratch)
        return lists

    def _open_lists(self, scratch: Optional[DeviceMemory]) -> None:
        queues, handle = self.queues, c_void_p()
        handles = (c_void_p * len(self.memories))(*(one._resource.open() for one in self.memories))
        _try("lists_open_with", queues._resource.open(), handles, len(self.memories),
             scratch._resource.open() if scratch else None, byref(handle))
        assert handle.value
        self._scratch = scratch._resource.hold() if scratch else None
        self._resource = _Resource("lists_close", handle.value, queues, queues.gpu._resource)
        _open.add(self)

    @property
    def handle(self) -> int:
        """Address of the C library's object."""
        return self._resource.open()

    def _close_memories(self) -> None:
        """Close what the controller does not use; the rest once queue pairs are closed."""
        _leaked.extend(self.memories)
        _close_all(_leaked)

    def _transfer(self, name: str, items: Any, tensors: Any, pages: Any, statuses: Any,
                  count: Any, done: Any, scratch: int, stream: Optional[int],
                  control: int) -> None:
        if (items is None) == (pages is None) or (tensors is None) != (pages is None):
            raise ValueError("pass items, or tensors and pages")
        if items is not None and statuses is not None:
            raise ValueError("items have their statuses: see status_of()")
        self.queues._resource.open()
        device = self.queues.gpu.device
        stream = current_stream(device) if stream is None else stream
        given = (("items", items), ("tensors", tensors), ("pages", pages), ("statuses", statuses),
                 ("count_at", count), ("done", done))
        spans = {key: span_of(one, device, stream) for key, one in given if one is not None}
        most = _rows(spans, "pages" if items is None else "items")
        tensor_count = 0 if tensors is None else _rows(spans, "tensors")
        _require(spans, "statuses", 4 * most * tensor_count)
        _require(spans, "count_at", 4)
        _require(spans, "done", 8)
        request = _List(size=ctypes.sizeof(_List), count=most, tensor_count=tensor_count,
                        scratch=scratch, control=control & 0xffffffff,
                        control_high=control >> 32 & 0xffffffff, **{key: one.address for key, one in spans.items()})
        _try(name, self._resource.open(), byref(request), stream)

    def read(self, items: Any = None, *, tensors: Any = None, pages: Any = None,
             statuses: Any = None, count: Any = None, done: Any = None, scratch: int = 0,
             stream: Optional[int] = None, control: int = 0) -> None:
        """Read a list on a stream, by default on the current one.

        items: rows of 32 bytes, see item(); or tensors and pages: see tensor() and page()
        statuses: a word of 32 bits for each piece of the pages
        count: a word of 32 bits, the number of items or pages if there are fewer
        done: two words of 32 bits: a count that is incremented at the end, and the status
        scratch: lists that may run at the same time have different numbers, below SCRATCHES
        control: see Control and placement()

        All of them are tensors that must stay until the list has ended.  The stream waits for
        what DLPack exports.  The stream that the interface of CUDA arrays names is ignored: the
        caller orders it, as for other streams of PyTorch.  After a timeout the
        queue pair refuses items with padding, until Queues.quiesce() and rearm().
        """
        self._transfer("read_list", items, tensors, pages, statuses, count, done, scratch, stream,
                       control)

    def write(self, items: Any = None, *, tensors: Any = None, pages: Any = None,
              statuses: Any = None, count: Any = None, done: Any = None, scratch: int = 0,
              stream: Optional[int] = None, control: int = 0) -> None:
        """Write a list on a stream; as read()."""
        self._transfer("write_list", items, tensors, pages, statuses, count, done, scratch, stream,
                       control)

    def close(self) -> None:
        """Release the lists and the tensors, after the queue pairs have been closed."""
        self._resource.close()
        if self._scratch:
            self._scratch.release()
            self._scratch = None
        for one in self.memories:
            one.close()
        _open.discard(self)


# What PageTables.read() leaves for a page that has no block of the cache; -1 in a tensor of signed
# integers, as int32 of PyTorch.
NO_BLOCK = 0xffffffff


class PageTables:
    """Page tables of a cache in GPU memory, as for sparse attention: a kernel resolves the pages that
    are wanted, replaces others by those that it misses, and reads these without the host.

        tables = PageTables(queues, cache, places, slots=512, blocks=16, most=128)
        tables.read(wanted, blocks)     # on the current stream; may be captured into a graph

    A page without a block is -1 in blocks of signed integers, which as an index is the last block: look at
    statuses or worst before a kernel uses blocks.

    The device header's nvmepeer_device/pages.h is what a kernel of the caller uses; device is the
    address of its tables.
    """

    def __init__(self, queues: Queues, cache: Any, places: Sequence[Sequence[int]], *, slots: int,
                 blocks: int, most: int, lba: int = 0) -> None:
        """Tables of which no page is in the cache.

        cache: a tensor, or DeviceMemory, which stays the caller's.  Table t has the blocks
            t * slots and up
        places: for each table and page, as many of each, its place on the disk, which begins at block
            lba + place * blocks
        slots: pages of a table that are in the cache at a time
        blocks: logical blocks of a page, which one command transfers
        most: wanted pages of a table in a step
        """
        pages = len(places[0]) if places else 0
        if any(len(one) != pages for one in places):
            raise ValueError("the tables have different numbers of pages")
        _check_words({"slots": slots, "blocks": blocks, "most": most, "lba": lba})
        for row in places:
            _check_words({f"place of page {number}": place for number, place in enumerate(row)})
        self.queues, self.count, self.most = queues, len(places), most
        self._own: Optional[DeviceMemory] = None
        options = _PagesOptions(size=ctypes.sizeof(_PagesOptions), tables=len(places), pages=pages,
                                slots=slots, blocks=blocks, most=most, lba=lba)
        if isinstance(cache, DeviceMemory):
            memory = cache
        else:
            memory = self._own = DeviceMemory(queues.controller, queues.gpu, cache)
        handle = c_void_p()
        try:
            _try("pages_open", queues._resource.open(), memory._resource.open(), byref(options),
                 (c_uint32 * (len(places) * pages))(*(place for row in places for place in row)),
                 byref(handle))
        except Exception:
            self._close_own()
            raise
        assert handle.value
        self._held: Optional[_Resource] = memory._resource.hold()
        self._resource = _Resource("pages_close", handle.value, (queues, memory), queues.gpu._resource)
        self._pins: Any = None
        _open.add(self)

    @classmethod
    def of_store(cls, queues: Queues, cache: Any, store: Any, values: "Sequence[Sequence[Any]]", *,
                 slots: int, most: int) -> "PageTables":
        """Tables of values of a store, on the member whose namespace the queue pairs are for.

        values: for each table the values of its pages, or their slots.  They are pinned until close(),
            before which the store cannot be closed

        Refuses another namespace or block size than those of the queue pairs.  That these are on the
        controller of the member is for the caller to know.
        """
        pinned = store.pin([one for row in values for one in row])
        try:
            places = [store.place(one.slot) for one in pinned]
            if len({place.member for place in places}) != 1:
                raise ValueError("the values are not on one member")
            for place in places[:1]:
                if (place.nsid, place.block_bytes) != (queues.nsid, queues.block_size):
                    raise ValueError(f"the values are in namespace {place.nsid} of blocks of {place.block_bytes} bytes, "
                                     f"the queue pairs in {queues.nsid} of {queues.block_size}")
            blocks, lba = int(places[0].blocks), min(int(place.lba) for place in places)
            numbers = iter([(int(place.lba) - lba) // blocks for place in places])
            tables = cls(queues, cache, [[next(numbers) for _ in row] for row in values], slots=slots,
                         blocks=blocks, most=most, lba=lba)
        except BaseException:
            store.unpin(pinned)
            raise
        tables._pins = (store, pinned)
        store._tables.add(tables)
        return tables

    @property
    def device(self) -> int:
        """GPU address of the array of struct nvmepeer_pages.  reclaim() looks only at the queue pairs of
        these tables: where a kernel reads pages by others, call nvmepeer_block_pages_reclaim() in a kernel
        instead."""
        return int(_call("pages_device", self._resource.open()))

    def read(self, wanted: Any, blocks: Any, *, statuses: Any = None, worst: Any = None,
             stream: Optional[int] = None) -> None:
        """Resolve wanted pages and read the missing ones on a stream, by default the current one.

        wanted: numbers of pages as words of 32 bits, as many for each table
        blocks: receives for each the block of the cache that has it, or NO_BLOCK (-1 if signed)
        statuses: receives for each its status, see check()
        worst: receives the worst status of each table

        All of them are tensors of words of 32 bits, which do not overlap and stay, wanted unchanged,
        until the step has ended.  Other elements are refused, as those of 64 bits that torch.topk()
        returns.  A kernel has a block for each table.  Steps of the same tables must follow each other.
        """
        self.queues._resource.open()
        device = self.queues.gpu.device
        stream = current_stream(device) if stream is None else stream
        given = (("wanted", wanted), ("blocks", blocks), ("statuses", statuses), ("worst", worst))
        spans = {key: span_of(one, device, stream, 4) for key, one in given if one is not None}
        count, rest = divmod(spans["wanted"].bytes, 4 * self.count)
        if rest:
            raise ValueError(f"wanted has {spans['wanted'].bytes} bytes, which are not as many pages for each of {self.count} tables")
        for name in ("blocks", "statuses"):
            _require(spans, name, 4 * count * self.count)
        _require(spans, "worst", 4 * self.count)
        step = _Step(size=ctypes.sizeof(_Step), count=count, **{key: one.address for key, one in spans.items()})
        _try("read_pages", self._resource.open(), byref(step), stream)

    def reclaim(self, stream: Optional[int] = None) -> None:
        """Use slots again whose reads did not complete: after a loss and Queues.rearm(), after a timeout
        and Queues.quiesce() and rearm().  While one of the queue pairs is lost, or has a command in flight
        that timed out, they stay out of use until a later call.  A reclaim is a step: it and the other
        steps of the same tables must follow each other."""
        self.queues._resource.open()
        stream = current_stream(self.queues.gpu.device) if stream is None else stream
        _try("reclaim_pages", self._resource.open(), stream)

    def _close_own(self) -> None:
        if self._own:
            _leaked.append(self._own)
            _close_all(_leaked)

    def close(self) -> None:
        """Release the tables, when no step is on a stream or in a graph and the queue pairs have been
        closed, and unpin the values of a store.

        ValueError if the queue pairs are open: after a timeout or a loss the controller may still write to
        the cache, which new tables would not know."""
        if self._resource.handle is not None and self.queues._resource.handle is not None:
            raise ValueError("close the queues first")
        self._resource.close()
        if self._held:
            self._held.release()
            self._held = None
        if self._own:
            self._own.close()
        if self._pins:
            self._pins[0].unpin(self._pins[1])
            self._pins[0]._tables.discard(self)
            self._pins = None
        _open.discard(self)


class ControllerSet:
    """Queue pairs and memory of several controllers as one, for kernels of the caller: blocks are
    striped over the controllers, and nvmepeer_set_submit() and others do not wait.

    value is the struct nvmepeer_set, which a kernel takes by value.
    """

    HASH = 1 << 0

    def __init__(self, gpu: Gpu, queues: Sequence[Queues], memories: "Sequence[DeviceMemory]", *,
                 stripe_shift: int = 0, hashed: bool = False) -> None:
        """queues, memories: of each controller, as many queue pairs, and the same tensor

        stripe_shift: log2 of the logical blocks of a stripe
        hashed: rotate each row of stripes by a hash
        """
        if len(queues) != len(memories):
            raise ValueError(f"{len(queues)} controllers and {len(memories)} memories")
        _check_words({"stripe_shift": stripe_shift})
        handle = c_void_p()
        _try("set_open", gpu._resource.open(), (c_void_p * len(queues))(*(one._resource.open() for one in queues)),
             (c_void_p * len(memories))(*(one._resource.open() for one in memories)), len(queues),
             stripe_shift, self.HASH if hashed else 0, byref(handle))
        assert handle.value
        self._uses = [one._resource.hold() for one in queues] + [one._resource.hold() for one in memories]
        self._resource = _Resource("set_close", handle.value, (queues, memories), gpu._resource)
        _open.add(self)

    @property
    def value(self) -> bytes:
        """The struct nvmepeer_set; its members are NULL: all blocks of each namespace belong to it."""
        return bytes(_call("set_host", self._resource.open()).contents)

    def close(self) -> None:
        """Release it before the queue pairs.  No kernel may use it any more."""
        if self._resource.handle is None:
            return
        self._resource.close()
        for one in self._uses:
            one.release()
        _open.discard(self)


_ROW_BYTES = {"items": 32, "tensors": 32, "pages": 16}


def _check_words(numbers: dict[str, int]) -> None:
    """Refuse numbers that are not unsigned integers of their size."""
    for name, number in numbers.items():
        if not 0 <= number < 1 << (64 if name in ("timeout_ns", "lba") else 32):
            raise ValueError(f"{name} is {number}, which is no unsigned integer of its size")


def _rows(spans: dict[str, Span], name: str) -> int:
    """The rows of an array."""
    rows, rest = divmod(spans[name].bytes, _ROW_BYTES[name])
    if rest:
        raise ValueError(f"{name} has {rest} bytes behind its last row of {_ROW_BYTES[name]}")
    return rows


def _require(spans: dict[str, Span], name: str, bytes: int) -> None:
    """Refuse an array that is too short."""
    if name in spans and spans[name].bytes < bytes:
        raise ValueError(f"{name} has {spans[name].bytes} bytes instead of {bytes}")


def _close_all(memories: list[DeviceMemory]) -> None:
    """Close memories and leave those that a controller may still access."""
    for one in list(memories):
        try:
            one.close()
            memories.remove(one)
        except Error:
            pass


# Memories of lists whose opening failed, to be closed once queue pairs are closed.
_leaked: list[DeviceMemory] = []
