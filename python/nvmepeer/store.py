# SPDX-License-Identifier: MIT OR GPL-2.0
"""Pages on disks that survive a restart and power cuts, for a caller that has an index.

    create(["/dev/nvmep0n1", "/dev/nvmep1n1"], page_bytes=2 << 20)
    store = Store(["/dev/nvmep0n1", "/dev/nvmep1n1"])
    slot, = store.alloc(1)
    store.write([slot], [page])
    value, = store.commit([slot], [tag])
    store.read([value], [page])
    for value in store.scan(): ...      # after a restart

Needs libnvmepeer_store; NVMEPEER_STORE_LIBRARY in the environment names another library to load.
Data is any writable object with the buffer protocol.
"""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Sequence, Union

if TYPE_CHECKING:
    from .cuda import Lists, PageTables, Span

from .library import Error, explain, load

TAG_BYTES = 64
FORCE, DEGRADED, READ_ONLY = 1, 2, 4
_PEER, _PINNED = 1, 2

_handle, _receives = c_void_p, POINTER(c_void_p)


class _Options(ctypes.Structure):
    """struct nvmepeer_store_options"""

    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("page_bytes", c_uint32), ("slots", c_uint32)]


class Info(ctypes.Structure):
    """struct nvmepeer_store_info"""

    _fields_ = [("size", c_uint32), ("members", c_uint32), ("page_bytes", c_uint32),
                ("block_bytes", c_uint32), ("slots", c_uint64), ("slot_bytes", c_uint64),
                ("free_slots", c_uint64), ("live", c_uint64), ("emptied", c_uint64),
                ("uuid", c_uint8 * 16)]


class _Item(ctypes.Structure):
    """struct nvmepeer_store_item"""

    _fields_ = [("slot", c_uint32), ("length", c_uint32), ("generation", c_uint64),
                ("data", c_void_p), ("result", c_int), ("flags", c_uint32),
                ("tag", c_uint8 * TAG_BYTES)]


class Place(ctypes.Structure):
    """struct nvmepeer_store_place"""

    _fields_ = [("size", c_uint32), ("member", c_uint32), ("lba", c_uint64), ("blocks", c_uint32),
                ("block_bytes", c_uint32), ("nsid", c_uint32), ("reserved", c_uint32)]


class Report(ctypes.Structure):
    """struct nvmepeer_store_report"""

    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("values", c_uint64),
                ("verified", c_uint64), ("unverified", c_uint64), ("damaged_values", c_uint64),
                ("damaged_entries", c_uint64)]


class _Memory(ctypes.Structure):
    """struct nvmepeer_store_memory"""

    _fields_ = [("start", c_void_p), ("bytes", c_uint64)]


class _StreamsOptions(ctypes.Structure):
    """struct nvmepeer_store_streams_options"""

    _fields_ = [("size", c_uint32), ("operations", c_uint32), ("most_bytes", c_uint64),
                ("slots", POINTER(c_uint32)), ("slot_count", c_uint64), ("memories", POINTER(_Memory)),
                ("lists", POINTER(c_void_p)), ("call_host", c_void_p), ("read_list", c_void_p),
                ("write_list", c_void_p), ("pinned", c_void_p), ("memory_count", c_uint32),
                ("reserved", c_uint32), ("pinned_bytes", c_uint64)]


class _Pages(ctypes.Structure):
    """struct nvmepeer_store_pages"""

    _fields_ = [("size", c_uint32), ("tensor_count", c_uint32), ("tensors", c_void_p),
                ("count", POINTER(c_uint32)), ("items", POINTER(_Item)), ("numbers", POINTER(c_uint32)),
                ("done", POINTER(c_int64))]


class Value(NamedTuple):
    """A slot with a value; in read() and pin() a slot number stands for any value of the slot."""

    slot: int
    generation: int
    length: int
    tag: bytes


class ListError(Error):
    """A failed call on a list, of which other items may have succeeded.

    results: for each item 0 or a negative errno
    values: for each item of commit() its value, or None if it failed; None after other calls, whose
        items keep the values that they had
    """

    def __init__(self, why: Error, items: Any, committed: bool) -> None:
        super().__init__(why.call, why.errno, why.status, why.what, why.limit, why.help)
        self.results = [int(item.result) for item in items]
        self.values = [None if item.result or not committed else _value(item) for item in items]


_takes: dict[str, list[Any]] = {
    "create": [POINTER(c_char_p), c_uint32, POINTER(_Options)],
    "open": [POINTER(c_char_p), c_uint32, c_uint32, _receives],
    "close": [_handle],
    "info": [_handle, POINTER(Info), c_size_t],
    "alloc": [_handle, POINTER(c_uint32), c_uint32],
    "free": [_handle, POINTER(_Item), c_uint32, c_int],
    "write": [_handle, POINTER(_Item), c_uint32],
    "commit": [_handle, POINTER(_Item), c_uint32],
    "read": [_handle, POINTER(_Item), c_uint32],
    "pin": [_handle, POINTER(_Item), c_uint32],
    "unpin": [_handle, POINTER(_Item), c_uint32],
    "place": [_handle, c_uint32, POINTER(Place), c_size_t],
    "fill_list": [_handle, c_uint32, POINTER(_Item), c_void_p, c_uint32],
    "scan": [_handle, POINTER(c_uint64), POINTER(_Item), c_uint32],
    "check": [_handle, POINTER(Report), c_size_t],
    "streams_bytes": [_handle, c_uint32, c_uint64],
    "streams_open": [_handle, POINTER(_StreamsOptions), _receives],
    "streams_close": [_handle],
    "read_async": [_handle, c_void_p, POINTER(c_size_t), POINTER(c_int64), POINTER(c_int64),
                   POINTER(c_int64), c_void_p],
    "read_pages_async": [_handle, POINTER(_Pages), c_void_p],
    "write_pages_async": [_handle, POINTER(_Pages), c_void_p],
    "write_async": [_handle, c_void_p, POINTER(c_size_t), POINTER(c_int64), POINTER(c_int64),
                    POINTER(c_int64), c_void_p],
}
_returns: dict[str, Any] = {"close": None, "unpin": None, "streams_bytes": c_uint64}
_loaded: Optional[ctypes.CDLL] = None


def _library() -> ctypes.CDLL:
    """The C library, loaded at the first use."""
    global _loaded
    if _loaded is None:
        _loaded = load("nvmepeer_store", _takes, _returns)
    return _loaded


def _call(name: str, *arguments: Any) -> Any:
    return getattr(_library(), f"nvmepeer_store_{name}")(*arguments)


def _try(name: str, *arguments: Any) -> int:
    result = int(_call(name, *arguments))
    if result < 0:
        raise explain()
    return result


def _try_items(name: str, handle: c_void_p, items: Any, *arguments: Any) -> None:
    if int(_call(name, handle, items, len(items), *arguments)) < 0:
        raise ListError(explain(), items, name == "commit")


def _paths(members: Sequence[Union[str, "os.PathLike[str]"]]) -> Any:
    return (c_char_p * len(members))(*[os.fsencode(member) for member in members])


def create(members: Sequence[Union[str, "os.PathLike[str]"]], page_bytes: int, slots: int = 0,
           force: bool = False) -> None:
    """Make a store; slots: of each member, 0 for as many as fit."""
    options = _Options(ctypes.sizeof(_Options), FORCE if force else 0, page_bytes, slots)
    _try("create", _paths(members), len(members), byref(options))


Slot = Union[int, Value]


def _slot(number: int) -> int:
    if not 0 <= number < 1 << 32:
        raise ValueError(f"slot {number}: a slot is a number of 32 bits")
    return number


def _items(slots: Sequence[Slot]) -> Any:
    items = (_Item * len(slots))()
    for item, slot in zip(items, slots):
        if isinstance(slot, Value):
            item.slot, item.generation, item.length = _slot(slot.slot), slot.generation, slot.length
        else:
            item.slot = _slot(slot)
    return items


def _value(item: _Item) -> Value:
    return Value(item.slot, item.generation, item.length, bytes(item.tag))


class Store:
    """An open store.  A context manager; its calls may be made by several threads."""

    def __init__(self, members: Sequence[Union[str, "os.PathLike[str]"]], degraded: bool = False,
                 read_only: bool = False) -> None:
        flags = (DEGRADED if degraded else 0) | (READ_ONLY if read_only else 0)
        self._handle = c_void_p()
        _try("open", _paths(members), len(members), flags, byref(self._handle))
        self._streams: "set[Streams]" = set()
        self._tables: "set[PageTables]" = set()
        self.page_bytes = int(self.info().page_bytes)

    def close(self) -> None:
        """Close it and its streams; EBUSY, and it stays open: a stream has not passed all calls.
        ValueError: page tables have its values."""
        if self._tables:
            raise ValueError("close the page tables of the store first")
        for one in list(self._streams):
            one.close()
        handle, self._handle = self._handle, c_void_p()
        _call("close", handle)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *failure: Any) -> None:
        self.close()

    def info(self) -> Info:
        info = Info()
        _try("info", self._open(), byref(info), ctypes.sizeof(info))
        return info

    def alloc(self, count: int) -> list[int]:
        """Slots without a value."""
        slots = (c_uint32 * count)()
        _try("alloc", self._open(), slots, count)
        return list(slots)

    def write(self, slots: Sequence[int], data: Sequence[Any]) -> None:
        """Write values; they can be read after commit()."""
        self._transfer("write", _items(slots), data)

    def commit(self, slots: Sequence[int], tags: Sequence[bytes], length: int = 0,
               peer: bool = False) -> list[Value]:
        """Make values durable and readable: those of write(), whose length is the same or 0; with peer
        those that a peer has written, of this length, without a checksum."""
        if len(slots) != len(tags):
            raise ValueError(f"{len(slots)} slots and {len(tags)} tags")
        items = _items(slots)
        for item, tag in zip(items, tags):
            if len(tag) > TAG_BYTES:
                raise ValueError(f"a tag of {len(tag)} bytes: at most {TAG_BYTES}")
            item.tag[:len(tag)] = list(tag)
            item.length, item.flags = length, _PEER if peer else 0
        _try_items("commit", self._open(), items)
        return [_value(item) for item in items]

    def read(self, values: Sequence[Slot], data: Sequence[Any]) -> list[int]:
        """Read values into memory of a page each; returns their lengths.  Any failure raises; the
        others are read, see ListError."""
        items = _items(values)
        self._transfer("read", items, data)
        return [item.length for item in items]

    def free(self, values: Sequence[Slot], timeout_ms: int = 10000) -> None:
        """Free values, after their readers, and slots without a value, by their numbers.  After
        ETIMEDOUT free only those again that have it in ListError.results."""
        items = _items(values)
        _try_items("free", self._open(), items, timeout_ms)

    def pin(self, values: Sequence[Slot]) -> list[Value]:
        """Keep values from being freed until unpin(): all or none."""
        items = _items(values)
        try:
            _try_items("pin", self._open(), items)
        except Error:
            _call("unpin", self._open(), items, len(items))
            raise
        return [_value(item) for item in items]

    def unpin(self, values: Sequence[Value]) -> None:
        items = _items(values)
        for item in items:
            item.flags = _PINNED
        _call("unpin", self._open(), items, len(items))

    def place(self, slot: int) -> Place:
        """Namespace and blocks of a slot."""
        place = Place()
        _try("place", self._open(), _slot(slot), byref(place), ctypes.sizeof(place))
        return place

    def fill_list(self, member: int, slots: Sequence[Slot], offsets: Sequence[int], memory: int = 0,
                  length: int = 0) -> list[list[int]]:
        """Items of a list as cuda.item() makes them: of pinned values, to be read to offsets of
        a memory, or of allocated slots, to which length bytes are written."""
        if len(slots) != len(offsets):
            raise ValueError(f"{len(slots)} slots and {len(offsets)} offsets")
        items, rows = _items(slots), (c_uint64 * (4 * len(slots)))()
        for item in items:
            item.length = length or item.length
        _try("fill_list", self._open(), member, items, rows, len(items))
        return [[rows[4 * i], offset, memory | items[i].length << 32, 0xffffffff]
                for i, offset in enumerate(offsets)]

    def fill_pages(self, member: int, slots: Sequence[Slot], numbers: Sequence[int],
                   length: int = 0) -> list[list[int]]:
        """Pages of a list as cuda.page() makes them, otherwise as fill_list(): values to be read
        to the pages with these numbers of its tensors, or slots to be written from there."""
        if len(slots) != len(numbers):
            raise ValueError(f"{len(slots)} slots and {len(numbers)} numbers")
        return [row[:2] for row in self.fill_list(member, slots, numbers, length=length)]

    def scan(self) -> Iterator[Value]:
        """All values."""
        items, position = (_Item * 256)(), c_uint64()
        while count := _try("scan", self._open(), byref(position), items, len(items)):
            yield from [_value(items[i]) for i in range(count)]

    def check(self) -> Report:
        """Read and verify all values."""
        report = Report()
        _try("check", self._open(), byref(report), ctypes.sizeof(report))
        return report

    def streams_bytes(self, operations: int, most_bytes: int) -> int:
        """Pinned memory that Streams with lists need."""
        return int(_call("streams_bytes", self._open(), operations, most_bytes))

    def _open(self) -> c_void_p:
        if not self._handle:
            raise ValueError("the store is closed")
        return self._handle

    def _transfer(self, name: str, items: Any, data: Sequence[Any]) -> None:
        if len(items) != len(data):
            raise ValueError(f"{len(items)} slots and {len(data)} buffers")
        # The views keep the memory where it is.
        views = [(c_uint8 * memoryview(one).nbytes).from_buffer(one) for one in data]
        for item, view in zip(items, views):
            if name == "read" and len(view) < self.page_bytes:
                raise ValueError(f"{len(view)} bytes of memory for a page of {self.page_bytes}")
            item.data = ctypes.addressof(view)
            if name == "write":
                item.length = len(view)
        _try_items(name, self._open(), items)


class Pages:
    """Pages of tensors for Streams.read_pages() and write_pages(), each in one slot.

    tensors: rows of cuda.tensor(), placed by cuda.lay_out() with the logical block of the store
    most: most pages

    The object stays until done() is true, and is then used again.
    """

    _PENDING = -1 << 63     # no result of a call

    def __init__(self, tensors: Sequence[Sequence[int]], most: int) -> None:
        self._tensors = (c_uint64 * (4 * len(tensors)))(*(word for row in tensors for word in row))
        self._items, self._numbers = (_Item * most)(), (c_uint32 * most)()
        self._count, self._done = c_uint32(0), c_int64(0)
        self._pages = _Pages(ctypes.sizeof(_Pages), len(tensors), ctypes.addressof(self._tensors),
                             ctypes.pointer(self._count), self._items, self._numbers,
                             ctypes.pointer(self._done))

    def set(self, slots: Sequence[Slot], numbers: Sequence[int], length: int = 0) -> None:
        """Pinned values, or allocated slots, and the numbers of their pages: before the stream comes
        to the call."""
        if len(slots) != len(numbers) or len(slots) > len(self._items):
            raise ValueError(f"{len(slots)} slots and {len(numbers)} numbers, of at most {len(self._items)}")
        for item, made in zip(self._items, _items(slots)):
            item.slot, item.generation, item.length, item.result = made.slot, made.generation, made.length or length, 0
        self._numbers[:len(numbers)] = numbers
        self._count.value = len(slots)

    def done(self) -> bool:
        """Whether the call has ended; polls memory of the host."""
        return self._done.value != self._PENDING

    def results(self) -> list[int]:
        """For each page 0 or a negative errno, after the end; raises Error if the call failed."""
        if self._done.value < 0:
            raise Error("a call on pages", -self._done.value, 0, "the call failed", "", "pass fewer pages")
        return [self._items[i].result for i in range(self._count.value)]


class Streams:
    """Reads and writes of allocated slots in the order of a stream, with cuFile's parameters.

    slots: offset o is in slots[o // page_bytes]
    memories: of the data, by address; those of the lists, in their order
    call_host: address of cuLaunchHostFunc()
    operations, most_bytes: most calls in flight, most bytes of each
    lists: for each member lists of its controller; None: the host does the I/O
    pinned: with lists: Store.streams_bytes() bytes of memory that CUDA has pinned

    The parameters of a call are objects of ctypes, which are read when the stream comes to the
    call and stay until done is set: to the length or a negative errno.
    """

    def __init__(self, store: Store, slots: Sequence[int], memories: "Sequence[Span]", call_host: int,
                 operations: int = 1024, most_bytes: int = 16 << 20,
                 lists: "Optional[Sequence[Lists]]" = None, pinned: "Optional[Span]" = None) -> None:
        options = _StreamsOptions(size=ctypes.sizeof(_StreamsOptions), operations=operations,
                                  most_bytes=most_bytes, slots=(c_uint32 * len(slots))(*slots),
                                  slot_count=len(slots), call_host=call_host,
                                  memories=(_Memory * len(memories))(*memories),
                                  memory_count=len(memories))
        if lists is not None:
            from .cuda import address_of
            members = int(store.info().members)
            if len(lists) != members:
                raise ValueError(f"lists of {len(lists)} controllers for {members} members")
            options.lists = (c_void_p * members)(*(one.handle for one in lists))
            options.read_list, options.write_list = address_of("read_list"), address_of("write_list")
        if pinned is not None:
            options.pinned, options.pinned_bytes = pinned
        self._handle, self._store, self._pinned = c_void_p(), store, pinned
        _try("streams_open", store._open(), byref(options), byref(self._handle))
        store._streams.add(self)
        # A call in flight uses the lists and their queue pairs.
        self._held = [held.hold() for one in lists or () for held in (one._resource, one.queues._resource)]

    def _open(self) -> c_void_p:
        if not self._handle:
            raise ValueError("the streams are closed")
        return self._handle

    def read(self, base: int, size: c_size_t, offset: c_int64, base_offset: c_int64, done: c_int64,
             stream: int) -> None:
        """Read slots into memory; EBUSY: too many calls are in flight."""
        _try("read_async", self._open(), base, byref(size), byref(offset), byref(base_offset),
             byref(done), stream)

    def write(self, base: int, size: c_size_t, offset: c_int64, base_offset: c_int64, done: c_int64,
              stream: int) -> None:
        """Write memory to slots; as read()."""
        _try("write_async", self._open(), base, byref(size), byref(offset), byref(base_offset),
             byref(done), stream)

    def _transfer_pages(self, name: str, pages: Pages, stream: int) -> None:
        before, pages._done.value = pages._done.value, pages._PENDING
        try:
            _try(name, self._open(), byref(pages._pages), stream)
        except Exception:
            pages._done.value = before
            raise

    def read_pages(self, pages: Pages, stream: int) -> None:
        """Read slots into pages of tensors; EBUSY: too many calls are in flight."""
        self._transfer_pages("read_pages_async", pages, stream)

    def write_pages(self, pages: Pages, stream: int) -> None:
        """Write pages of tensors to allocated slots, which commit(peer=True) makes values."""
        self._transfer_pages("write_pages_async", pages, stream)

    def close(self) -> None:
        """Close before the lists and their queues; EBUSY: a stream has not passed all calls."""
        if self._handle:
            _try("streams_close", self._handle)
            self._handle, self._pinned = c_void_p(), None
            self._store._streams.discard(self)
            for one in self._held:
                one.release()
