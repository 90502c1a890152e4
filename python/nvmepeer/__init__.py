# SPDX-License-Identifier: MIT OR GPL-2.0
"""libnvmepeer: the host side of nvme-peer.

    with nvmepeer.Controller("nvmep0") as controller, nvmepeer.Namespace("ngp0n1") as namespace:
        print(controller.info().qids_peer_free, namespace.read(0, 1)[:16])

A failed call raises Error with the request, the limit and the fix.  An Error may be passed
to another thread or an event loop.  Objects are context managers; each holds references to
the objects that it depends on.  Manual page nvmepeer(7) explains the terms.
"""
from .abi import (
    Access, BufferAdd, BufferImport, ControllerState, DeviceError, Domain, Event, EventType, Export, Info,
    Mode, NamespaceInfo, Path, PciAddress, QueuePairInfo, QueuePairLimits, QueuePairState, QueuePairStats,
    Rights, Route, RouteReason, Verdict, WindowAdd, WindowInfo,
)
from .library import Error, TransferError, version
from .objects import (
    Buffer, Controller, CpuPeer, Exported, HostMemory, Namespace, QueuePair, handle_address,
)

__all__ = [
    "Access", "Buffer", "BufferAdd", "BufferImport", "Controller", "ControllerState", "CpuPeer",
    "DeviceError", "Domain", "Error", "Event", "EventType", "Export", "Exported", "HostMemory", "Info", "Mode", "Namespace",
    "NamespaceInfo", "Path", "PciAddress", "QueuePair", "QueuePairInfo",
    "QueuePairLimits", "QueuePairState", "QueuePairStats", "Rights", "Route", "RouteReason",
    "TransferError", "Verdict", "WindowAdd", "WindowInfo", "handle_address", "version",
]
