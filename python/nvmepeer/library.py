# SPDX-License-Identifier: MIT OR GPL-2.0
"""The C library: its functions with their types, and its failures as exceptions.

NVMEPEER_LIBRARY in the environment names another library to load.
"""
import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Mapping, Sequence

from . import abi

_handle, _receives = c_void_p, POINTER(c_void_p)

# Argument types of each function; they return an int, except those in _returns.
_takes: dict[str, list[Any]] = {
    "open": [c_char_p, _receives],
    "close": [_handle],
    "fd": [_handle],
    "info": [_handle, POINTER(abi.Info), c_size_t],
    "route_dmabuf": [_handle, c_int, POINTER(abi.Route), c_size_t],
    "route_pci": [_handle, abi.PciAddress, POINTER(abi.Route), c_size_t],
    "route_describe": [POINTER(abi.Route), POINTER(abi.Path), c_char_p, c_size_t],
    "buf_import_part": [_handle, POINTER(abi.BufferImport), c_size_t],
    "buf_release": [_handle, c_uint32],
    "buf_table": [_handle, c_uint32, c_uint64, POINTER(c_uint64), c_uint32],
    "buf_alloc": [_handle, c_size_t, _receives],
    "hostmem_alloc": [c_size_t, _receives],
    "hostmem_free": [_handle],
    "hostmem_address": [_handle],
    "hostmem_length": [_handle],
    "hostmem_fd": [_handle],
    "qp_create": [_handle, POINTER(abi.QueuePairCreate), c_size_t, _receives],
    "qp_from_fd": [c_int, _receives],
    "qp_destroy": [_handle],
    "qp_fd": [_handle],
    "qp_info": [_handle, POINTER(abi.QueuePairInfo), c_size_t],
    "qp_rearm": [_handle, c_uint32, POINTER(c_uint32)],
    "qp_kick": [_handle],
    "window_add": [_handle, POINTER(abi.WindowAdd), c_size_t],
    "window_remove": [_handle, c_uint32],
    "window_info": [_handle, c_uint32, POINTER(abi.WindowInfo), c_size_t],
    "file_open": [_handle, c_char_p, POINTER(abi.WindowAdd), c_size_t],
    "file_check": [c_int, POINTER(abi.FileInfo), c_size_t],
    "file_obstacle_name": [c_int],
    "file_explain": [POINTER(abi.FileInfo), c_int, POINTER(abi.Explanation), c_size_t],
    "file_extents": [_handle, POINTER(abi.Extents), c_size_t],
    "buf_add": [_handle, POINTER(abi.BufferAdd), c_size_t],
    "buf_remove": [_handle, c_uint32],
    "qp_limits": [_handle, POINTER(abi.QueuePairLimits), c_size_t],
    "qp_stats": [_handle, POINTER(abi.QueuePairStats), c_size_t],
    "qp_seal": [_handle],
    "qp_export": [_handle, c_int, c_uint32, POINTER(abi.ExportMade), c_size_t],
    "ns_open": [c_char_p, _receives],
    "ns_close": [_handle],
    "ns_fd": [_handle],
    "ns_info": [_handle],
    "ns_read": [_handle, c_uint64, c_uint32, c_void_p],
    "ns_write": [_handle, c_uint64, c_uint32, c_void_p],
    "ns_flush": [_handle],
    "cpu_peer_open": [_handle, POINTER(abi.NamespaceInfo), c_uint32, c_size_t, _receives],
    "cpu_peer_close": [_handle],
    "cpu_peer_data": [_handle],
    "cpu_peer_address": [_handle],
    "cpu_peer_recover": [_handle, c_int],
    "cpu_peer_read": [_handle, c_uint64, c_uint64, c_uint32, c_int],
    "cpu_peer_write": [_handle, c_uint64, c_uint64, c_uint32, c_int],
    "serve_create": [POINTER(abi.ServeOptions), _receives],
    "serve_destroy": [_handle],
    "serve_add_fd": [_handle, c_int, c_uint32, POINTER(abi.NamespaceInfo), c_size_t],
    "serve_add_buffer": [_handle, c_void_p, c_uint64, POINTER(abi.DeviceBuffer)],
    "serve_geometry": [_handle, POINTER(abi.NamespaceInfo), c_uint32, POINTER(abi.Geometry), c_size_t],
    "serve_export": [_handle, c_int, POINTER(abi.ExportMade), c_size_t],
    "serve_run": [_handle],
    "serve_stop": [_handle],
    "serve_kick": [_handle],
    "serve_rearm": [_handle, POINTER(c_uint32)],
    "pci_parse": [c_char_p, POINTER(abi.PciAddress)],
    "status_text": [c_int],
    "explain": [POINTER(abi.Explanation), c_size_t],
    "version": [],
}
_returns: dict[str, Any] = {
    "close": None,
    "file_obstacle_name": c_char_p,
    "hostmem_free": None,
    "hostmem_address": c_void_p,
    "hostmem_length": c_size_t,
    "qp_destroy": None,
    "ns_close": None,
    "ns_info": POINTER(abi.NamespaceInfo),
    "cpu_peer_close": None,
    "cpu_peer_data": POINTER(abi.DeviceBuffer),
    "cpu_peer_address": c_void_p,
    "serve_destroy": None,
    "serve_stop": None,
    "serve_kick": None,
    "status_text": c_char_p,
    "version": c_char_p,
}


def load(name: str, takes: Mapping[str, Sequence[Any]], returns: Mapping[str, Any]) -> ctypes.CDLL:
    """lib@name, or the library that the environment names, with the types of its calls.

    takes: arguments of each call, without the prefix
    returns: results of those that do not return int
    """
    library = ctypes.CDLL(os.environ.get(f"{name.upper()}_LIBRARY", f"lib{name}.so.0"))
    for call, arguments in takes.items():
        function = library[f"{name}_{call}"]
        function.argtypes = list(arguments)
        function.restype = returns.get(call, c_int)
        setattr(library, f"{name}_{call}", function)
    return library


_library = load("nvmepeer", _takes, _returns)


class Error(Exception):
    """A failed call.

    errno: positive errno, or 0 if the call failed with status
    status: NVMe status, or 0 if the call failed with errno
    call: name of the C function
    what, limit, help: the request, the limit and the fix; the last two may be empty
    """

    def __init__(self, call: str, errno: int, status: int, what: str, limit: str, help: str) -> None:
        super().__init__(call, errno, status, what, limit, help)
        self.call, self.errno, self.status = call, errno, status
        self.what, self.limit, self.help = what, limit, help

    def __str__(self) -> str:
        return ". ".join(text for text in (self.what, self.limit, self.help) if text)


class TransferError(Error):
    """A failed transfer of a CpuPeer.

    device: the result of the device library, or None if the transfer failed with status.
    After DeviceError.LOST a write may or may not have been executed.
    """

    def __init__(self, call: str, result: int, what: str) -> None:
        self.device = next((one for one in abi.DeviceError if one == result), None)
        why = self.device.name if self.device else status_text(result) if result > 0 else f"result {result}"
        super().__init__(call, 0, max(result, 0), what, why, "")


def call(name: str, *arguments: Any) -> Any:
    """Call nvmepeer_@name."""
    return getattr(_library, f"nvmepeer_{name}")(*arguments)


def try_call(name: str, *arguments: Any) -> int:
    """Call nvmepeer_@name and raise Error if it fails; returns its result."""
    result = call(name, *arguments)
    if result < 0 or (result > 0 and name.startswith("ns_")):
        raise explain()
    return int(result)


def explain() -> Error:
    """The last failure of this thread."""
    return explanation("explain")


def explanation(name: str, *arguments: Any) -> Error:
    """What nvmepeer_@name explains."""
    why = abi.Explanation()
    call(name, *arguments, ctypes.byref(why), ctypes.sizeof(why))
    texts = [text.decode() for text in (why.what, why.limit, why.help)]
    return Error(why.call.decode(), why.error, why.status, *texts)


def status_text(status: int) -> str:
    """The text of an NVMe status."""
    return str(call("status_text", status).decode())


def version() -> str:
    """Version of the C library that is loaded."""
    return str(call("version").decode())
