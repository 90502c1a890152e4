# SPDX-License-Identifier: MIT OR GPL-2.0
"""Queue pairs that this process serves, on block devices and files of any kind.

    with nvmepeer.ServedQueuePair() as served, open("/mnt/nfs/weights", "rb") as file:
        namespace = served.add_namespace(file.fileno())
        buffer = served.add_buffer(mmap.mmap(-1, 1 << 20))
        served.start()
        queues = cuda.Queues.from_served(gpu, layout, served, namespace)
        ...
        served.stop()
"""
import ctypes
import threading
import weakref
from ctypes import byref, c_uint32, sizeof
from typing import Optional

from . import abi
from .library import Error, call, try_call
from .objects import Exported, WritableBuffer, _Object, _Resource


class _Server:
    """A thread that serves, and the Error with which it has ended."""

    def __init__(self, resource: _Resource) -> None:
        self.error: Optional[Error] = None
        self._resource = resource
        # A daemon: the interpreter waits for other threads before it stops this one by end().
        self.thread = threading.Thread(target=self._run, name="nvmepeer-serve", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            try_call("serve_run", self._resource.handle)
        except Error as error:
            self.error = error

    def end(self) -> None:
        call("serve_stop", self._resource.handle)
        self.thread.join()


class ServedQueuePair(_Object):
    """A queue pair whose commands a thread of this process executes by io_uring, with the rights of
    the process.  It needs no controller and no capability.

    entries: of each ring, a power of two
    depth: most commands that the kernel has at a time; 0: 64
    max_transfer: most bytes of a command; 0: 1 MiB
    A peer maps the parts that export() returns; cuda.Queues.from_served() does so for a GPU.
    close() stops the thread and reports GONE to peers.
    """

    _close = "serve_destroy"

    def __init__(self, entries: int = 64, *, depth: int = 0, max_transfer: int = 0) -> None:
        options = abi.ServeOptions(size=sizeof(abi.ServeOptions), entries=entries, depth=depth,
                                   max_transfer=max_transfer)
        super().__init__("serve_create", byref(options), keeps=[])
        self._server: Optional[_Server] = None
        self._end: Optional[weakref.finalize[..., ServedQueuePair]] = None

    def add_namespace(self, fd: int, block_size: int = 0) -> abi.NamespaceInfo:
        """Add an open block device or regular file, with the blocks that it has now.

        fd: may be closed afterwards; its access mode decides whether peers may write
        block_size: a power of two from 512 to 65536; 0: that of the device, or 512

        Commands carry nsid of the result.  Raises Error while the queue pair is served.
        """
        namespace = abi.NamespaceInfo()
        try_call("serve_add_fd", self._open(), fd, block_size, byref(namespace), sizeof(namespace))
        return namespace

    def add_buffer(self, memory: WritableBuffer) -> abi.DeviceBuffer:
        """Let commands transfer data of memory, such as an mmap.mmap or a pinned tensor's numpy().

        memory: aligned to 4096 bytes; held until the queue pair is closed

        Commands address byte b of it by dma + b of the result, which cuda.DeviceMemory.from_addresses()
        takes.  Raises Error while the queue pair is served.
        """
        buffer, room = abi.DeviceBuffer(), (ctypes.c_ubyte * memoryview(memory).nbytes).from_buffer(memory)
        try_call("serve_add_buffer", self._open(), ctypes.addressof(room), sizeof(room), byref(buffer))
        self._held().keeps.append(room)
        return buffer

    def geometry(self, namespace: abi.NamespaceInfo, *, cpu: bool = False,
                 timeout_ns: int = 0) -> abi.Geometry:
        """The geometry of the device library for a peer that maps the parts.

        namespace: from add_namespace()
        cpu: the peer is a CPU, not a GPU
        """
        geometry, view = abi.Geometry(timeout_ns=timeout_ns), abi.View.DESCRIPTORS
        if cpu:
            view |= abi.View.CPU
        try_call("serve_geometry", self._open(), byref(namespace), view, byref(geometry), sizeof(geometry))
        return geometry

    def export(self, what: abi.Export) -> Exported:
        """A descriptor of a part for mmap: a memfd, which has all parts.  The doorbells are memory."""
        made = abi.ExportMade()
        try_call("serve_export", self._open(), what, byref(made), sizeof(made))
        return Exported(made.fd, made.offset, made.length)

    def start(self) -> None:
        """Execute commands in a thread, until stop()."""
        resource = self._held()
        if self._server and self._server.thread.is_alive():
            raise ValueError("ServedQueuePair is served already")
        self._forget()
        self._server = _Server(resource)
        # Also at the exit of the interpreter.
        self._end = weakref.finalize(self, self._server.end)

    def stop(self) -> None:
        """Stop the thread, when the commands that it has begun have completed.  Raises as wait()."""
        self._held()
        self._join()
        self.wait()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until the thread has ended; returns False after timeout seconds.

        Raises the Error with which it has ended, once.  After a loss, EPROTO: a peer wrote an invalid
        doorbell, or ECANCELED: a peer requested it, rearm() and start() serve again.
        """
        self._held()
        server = self._server
        if server is None:
            return True
        server.thread.join(timeout)
        if server.thread.is_alive():
            return False
        self._forget()
        if server.error:
            raise server.error
        return True

    def rearm(self) -> int:
        """Make it live after a loss.  No peer is in a call on it.  Returns the losses, for
        nvmepeer_queue_rearm()."""
        losses = c_uint32()
        try_call("serve_rearm", self._open(), byref(losses))
        return losses.value

    def kick(self) -> None:
        """Wake the thread: for a CPU that has stored to a doorbell and found poller_asleep set in the
        status page."""
        call("serve_kick", self._open())

    def _join(self) -> None:
        if self._end:
            self._end()

    def _forget(self) -> None:
        """A thread that has ended."""
        if self._end:
            self._end.detach()
        self._server = None

    def close(self) -> None:
        """Stop the thread, and drop the reference; a closed object stays closed."""
        self._join()
        self._forget()
        super().close()
