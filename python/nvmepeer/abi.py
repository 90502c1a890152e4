# SPDX-License-Identifier: MIT OR GPL-2.0
"""Structures and numbers of <linux/nvme_peer.h> and <nvmepeer.h>.

A class declares each field once, with its Python type and its C type.
"""
import ctypes
import enum
import typing
from typing import Annotated, TypeVar

S32 = Annotated[int, ctypes.c_int32]
U16 = Annotated[int, ctypes.c_uint16]
U32 = Annotated[int, ctypes.c_uint32]
U64 = Annotated[int, ctypes.c_uint64]

T = TypeVar("T", bound=type[ctypes.Structure])


def _laid_out(structure: T) -> T:
    """Make a ctypes structure from the annotations of a class."""
    fields = []
    for name, hint in typing.get_type_hints(structure, include_extras=True).items():
        if not name.startswith("_"):
            fields.append((name, hint.__metadata__[0] if hasattr(hint, "__metadata__") else hint))
    structure._fields_ = fields
    return structure


class ControllerState(enum.IntEnum):
    """enum nvme_peer_ctrl_state"""

    NEW = 0
    LIVE = 1
    RESETTING = 2
    DELETING = 3
    DEAD = 4


class Domain(enum.IntEnum):
    """enum nvme_peer_domain: whether an IOMMU translates for the controller"""

    PHYSICAL = 0
    STRICT = 1
    LAZY = 2


class Mode(enum.IntEnum):
    """enum nvme_peer_mode: where a queue pair has its doorbells"""

    DIRECT = 0
    RELAY = 1
    MEDIATED = 2


class Verdict(enum.IntEnum):
    """enum nvme_peer_route_verdict"""

    NONE = 0
    BUS_ADDR = 1
    HOST_BRIDGE = 2
    SYSTEM = 3
    HOST_BRIDGE_WRITES = 4


class RouteReason(enum.IntEnum):
    """enum nvme_peer_route_reason"""

    NONE = 0
    COMMON_SWITCH = 1
    HOST_BRIDGE_KNOWN = 2
    HOST_BRIDGE_ALLOWED = 3
    HOST_BRIDGE_UNKNOWN = 4
    DIFFERENT_DOMAINS = 5
    SAME_FUNCTION = 6
    HOST_MEMORY = 7
    UNKNOWN_MEMORY = 8
    EXPORTER_REFUSED = 9
    ACS_BLOCKED = 10


class Access(enum.IntEnum):
    """enum nvme_peer_access: accesses of the controller to memory"""

    BOTH = 0
    READ = 1
    WRITE = 2


class Rights(enum.IntFlag):
    """enum nvme_peer_rights: what commands may do with a window or a buffer"""

    READ = 1
    WRITE = 2


class Export(enum.IntEnum):
    """enum nvme_peer_export: exportable parts of a queue pair"""

    SQ = 0
    CQ = 1
    DOORBELL = 2
    STATUS = 3
    CONTROL = 4


class QueuePairState(enum.IntEnum):
    """enum nvme_peer_qp_state"""

    LIVE = 1
    QUIESCED = 2
    FAILED = 3
    GONE = 4


class EventType(enum.IntEnum):
    """enum nvme_peer_event_type"""

    STATE = 1
    READY = 2
    BUFFER_ENDED = 5


class FileObstacle(enum.IntFlag):
    """enum nvmepeer_file_obstacle: why a file cannot have a window"""

    NOT_REGULAR = 1 << 0
    NO_DISK = 1 << 1
    OTHER_DISK = 1 << 2
    FILE_SYSTEM = 1 << 3
    READ_ONLY = 1 << 4
    NOT_OWNER = 1 << 5
    IMMUTABLE = 1 << 6
    APPEND_ONLY = 1 << 7
    ENCRYPTED = 1 << 8
    COMPRESSED = 1 << 9
    VERITY = 1 << 10
    DAX = 1 << 11
    JOURNALLED = 1 << 12
    INLINE = 1 << 13
    SHARED = 1 << 14
    UNPLACED = 1 << 15
    EMPTY = 1 << 16
    HOLES = 1 << 17
    UNWRITTEN = 1 << 18


class View(enum.IntFlag):
    """enum nvmepeer_view, as far as it is used: the peer of a geometry"""

    CPU = 1 << 0
    DESCRIPTORS = 1 << 4


class DeviceError(enum.IntEnum):
    """enum nvmepeer_error: results of a transfer by a queue pair"""

    TIMEOUT = -2
    LOST = -3
    FULL = -4
    RANGE = -5
    TOO_LARGE = -6
    ALIGN = -7
    NO_LIST = -8
    ADDRESS = -11
    LAYOUT = -17


BUF_REQUIRE_DEVICE = 1
EXPORT_ALLOW_STATIC = 1
ROUTE_BLOCKERS = 6


@_laid_out
class PciAddress(ctypes.Structure):
    """struct nvme_peer_pci_address"""

    domain: U32
    function: U16
    valid: U16

    def __str__(self) -> str:
        if not self.valid:
            return "none"
        device = self.function & 0xff
        return f"{self.domain:04x}:{self.function >> 8:02x}:{device >> 3:02x}.{device & 7}"


@_laid_out
class Info(ctypes.Structure):
    """struct nvme_peer_info: limits, properties and state of a controller"""

    size: U32
    flags: U32
    features: U64
    cap: U64
    version: U32
    state: U32
    generation: U32
    domain: U32
    max_entries: U32
    doorbell_stride: U32
    page_size: U32
    max_transfer: U32
    sgls: U32
    namespaces: U32
    qids_total: U32
    qids_cpu: U32
    qids_peer_max: U32
    qids_peer_free: U32
    pci_address: PciAddress
    contiguous_rings: U32
    qids_quarantined: U32
    cmb_size: U64
    domain_flags: U32
    reserved: U32


@_laid_out
class RouteBlocker(ctypes.Structure):
    """struct nvme_peer_route_blocker: a port that blocks a route"""

    address: PciAddress
    acs: U32


@_laid_out
class Path(ctypes.Structure):
    """struct nvme_peer_path: one direction of a route"""

    verdict: U32
    reason: U32
    blocker_count: U32
    blockers: Annotated[ctypes.Array[RouteBlocker], RouteBlocker * ROUTE_BLOCKERS]
    reserved: Annotated[ctypes.Array[ctypes.c_uint32], ctypes.c_uint32 * 7]


@_laid_out
class Route(ctypes.Structure):
    """struct nvme_peer_route"""

    size: U32
    flags: U32
    dmabuf_fd: S32
    pci_address: PciAddress
    data: Path
    doorbell: Path


@_laid_out
class BufferImport(ctypes.Structure):
    """struct nvme_peer_buf_import"""

    size: U32
    flags: U32
    dmabuf_fd: S32
    access: U32
    offset: U64
    length: U64
    handle: U32
    segments: U32
    verdict: U32
    reason: U32
    pci_address: PciAddress
    reserved: Annotated[ctypes.Array[ctypes.c_uint32], ctypes.c_uint32 * 2]


@_laid_out
class QueuePairCreate(ctypes.Structure):
    """struct nvme_peer_qp_create"""

    size: U32
    flags: U32
    mode: U32
    reserved1: U32
    sq_entries: U32
    cq_entries: U32
    sq_handle: U32
    cq_handle: U32
    sq_offset: U64
    cq_offset: U64
    qp_fd: S32
    qid: U32
    generation: U32
    reserved: U32
    depth: U32
    weight: U32
    timeout_ms: U32
    max_windows: U32
    max_buffers: U32
    reserved2: U32


@_laid_out
class QueuePairInfo(ctypes.Structure):
    """struct nvme_peer_qp_info"""

    size: U32
    flags: U32
    qid: U32
    state: U32
    generation: U32
    mode: U32
    sq_entries: U32
    cq_entries: U32
    doorbell_stride: U32
    doorbell_offset: U32
    doorbell_length: U32
    exports: U32
    importers: U32
    mmaps: U32
    reason: U32
    losses: U32
    sq_pci_address: PciAddress
    cq_pci_address: PciAddress
    cpu_doorbell_writes: U64


@_laid_out
class WindowAdd(ctypes.Structure):
    """struct nvme_peer_window_add: a window of a mediated queue pair, as it was added"""

    size: U32
    flags: U32
    fd: S32
    id: U32
    first: U64
    blocks: U64
    block_size: U32
    rights: U32


@_laid_out
class WindowInfo(ctypes.Structure):
    """struct nvme_peer_window_info: a window, as it is now"""

    size: U32
    flags: U32
    id: U32
    rights: U32
    first: U64
    blocks: U64
    block_size: U32
    in_flight: U32


@_laid_out
class BufferAdd(ctypes.Structure):
    """struct nvme_peer_buf_add: a buffer of a mediated queue pair"""

    size: U32
    flags: U32
    dmabuf_fd: S32
    access: U32
    offset: U64
    length: U64
    slot: U32
    verdict: U32
    reason: U32
    pci_address: PciAddress
    reserved: U32


@_laid_out
class QueuePairLimits(ctypes.Structure):
    """struct nvme_peer_qp_limits: limits of a mediated queue pair, and what it uses of them"""

    size: U32
    flags: U32
    depth: U32
    weight: U32
    timeout_ms: U32
    max_windows: U32
    max_buffers: U32
    max_transfer: U32
    max_write_zeroes: U32
    windows: U32
    buffers: U32
    sealed: U32


@_laid_out
class QueuePairStats(ctypes.Structure):
    """struct nvme_peer_qp_stats: what the kernel has counted of a mediated queue pair"""

    size: U32
    flags: U32
    in_flight: U32
    reserved: U32
    reads: U64
    writes: U64
    zeroes: U64
    flushes: U64
    read_bytes: U64
    written_bytes: U64
    refused: U64
    failed: U64
    busy_ns: U64


@_laid_out
class Extents(ctypes.Structure):
    """struct nvme_peer_extents: a part of a file that is pinned"""

    size: U32
    flags: U32
    fd: S32
    pin_fd: S32
    first: U64
    blocks: U64
    nsid: U32
    block_size: U32
    count: U32
    reserved: U32


@_laid_out
class Event(ctypes.Structure):
    """struct nvme_peer_event: an event of a queue pair"""

    size: U32
    type: U32
    time: U64
    generation: U32
    state: U32
    reason: U32
    lost: U32
    object: U64
    detail: U64


@_laid_out
class ExportMade(ctypes.Structure):
    """struct nvmepeer_export"""

    fd: S32
    offset: U64
    length: U64


@_laid_out
class NamespaceInfo(ctypes.Structure):
    """struct nvmepeer_ns_info: format of a namespace"""

    size: U32
    nsid: U32
    block_size: U32
    metadata_size: U32
    blocks: U64


@_laid_out
class FileInfo(ctypes.Structure):
    """struct nvmepeer_file_info: a file, and what prevents a window on it"""

    size: U32
    obstacles: U32
    bytes: U64
    extents: U64
    holes: U64
    unwritten: U64
    file_system: Annotated[bytes, ctypes.c_char * 16]
    disk: Annotated[bytes, ctypes.c_char * 32]
    controller: Annotated[bytes, ctypes.c_char * 16]


@_laid_out
class ServeOptions(ctypes.Structure):
    """struct nvmepeer_serve_options"""

    size: U32
    flags: U32
    entries: U32
    depth: U32
    max_transfer: U32
    reserved: U32


@_laid_out
class Explanation(ctypes.Structure):
    """struct nvmepeer_explanation"""

    call: Annotated[bytes, ctypes.c_char_p]
    error: S32
    status: S32
    what: Annotated[bytes, ctypes.c_char * 160]
    limit: Annotated[bytes, ctypes.c_char * 320]
    help: Annotated[bytes, ctypes.c_char * 320]


@_laid_out
class DeviceBuffer(ctypes.Structure):
    """struct nvmepeer_buffer: memory for the device library"""

    length: U64
    dma: U64
    pages: U64


@_laid_out
class Geometry(ctypes.Structure):
    """struct nvmepeer_geometry, as the process that created the queue pair sends it"""

    version: U32
    flags: U32
    sq: U64
    cq: U64
    sq_doorbell: U64
    cq_doorbell: U64
    status: U64
    control: U64
    state: U64
    list_area: U64
    list_memory: DeviceBuffer
    readback: U64
    timeout_ns: U64
    sq_entries: U32
    cq_entries: U32
    cids: U32
    list_bytes: U32
    generation: U32
    qid: U32
    nsid: U32
    lba_shift: U32
    page_shift: U32
    max_transfer: U32
    metadata_bytes: U32
    reserve: U32
