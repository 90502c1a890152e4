# SPDX-License-Identifier: MIT OR GPL-2.0
"""libnvmepeer: the host side of nvme-peer.

    with nvmepeer.Controller("nvmep0") as controller, nvmepeer.Namespace("ngp0n1") as namespace:
        print(controller.info().qids_peer_free, namespace.read(0, 1)[:16])

A failed call raises Error with the request, the limit and the fix.  An Error may be passed
to another thread or an event loop.  Objects are context managers; each holds references to
the objects that it depends on.  ServedQueuePair and check_file() need no controller.  Manual page
nvmepeer(7) explains the terms.
"""
from .abi import (
    Access, BufferAdd, BufferImport, ControllerState, DeviceBuffer, DeviceError, Domain, Event, EventType, Export,
    Extents, FileObstacle, Geometry, Info, Mode, NamespaceInfo, Path, PciAddress, QueuePairInfo, QueuePairLimits,
    QueuePairState, QueuePairStats, Rights, Route, RouteReason, Verdict, WindowAdd, WindowInfo,
)
from .files import Extent, FileCheck, PinnedFile, check_file
from .library import Error, TransferError, version
from .objects import (
    Buffer, Controller, CpuPeer, Exported, HostMemory, Namespace, QueuePair, handle_address,
)
from .serve import ServedQueuePair

__all__ = [
    "Access", "Buffer", "BufferAdd", "BufferImport", "Controller", "ControllerState", "CpuPeer",
    "DeviceBuffer", "DeviceError", "Domain", "Error", "Event", "EventType", "Export", "Exported", "Extent",
    "Extents", "FileCheck", "FileObstacle", "Geometry", "HostMemory", "Info", "Mode", "Namespace",
    "NamespaceInfo", "Path", "PciAddress", "PinnedFile", "QueuePair", "QueuePairInfo",
    "QueuePairLimits", "QueuePairState", "QueuePairStats", "Rights", "Route", "RouteReason",
    "ServedQueuePair", "TransferError", "Verdict", "WindowAdd", "WindowInfo", "check_file", "handle_address", "version",
]
