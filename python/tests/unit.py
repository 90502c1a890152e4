# SPDX-License-Identifier: MIT OR GPL-2.0
"""Unit tests of the Python package, in front of a kernel made of one structure.

usage: unit.py ABI...      pinned structures, as selftests/abi/dump writes them

NVMEPEER_LIBRARY is the C library with lib/tests/fake.c behind it.
"""
import ctypes
import enum
import errno
import gc
import inspect
import mmap
import os
import re
import struct
import subprocess
import sys
import threading
import time
import tomllib
import unittest
from typing import Any

import ktap
import nvmepeer
from nvmepeer import abi, library

import peer

# C's name of each class.
STRUCTURES = {
    "nvme_peer_pci_address": abi.PciAddress, "nvme_peer_info": abi.Info,
    "nvme_peer_route_blocker": abi.RouteBlocker, "nvme_peer_path": abi.Path,
    "nvme_peer_route": abi.Route, "nvme_peer_buf_import": abi.BufferImport,
    "nvme_peer_qp_create": abi.QueuePairCreate, "nvme_peer_qp_info": abi.QueuePairInfo,
    "nvme_peer_window_add": abi.WindowAdd, "nvme_peer_window_info": abi.WindowInfo,
    "nvme_peer_buf_add": abi.BufferAdd, "nvme_peer_qp_limits": abi.QueuePairLimits,
    "nvme_peer_qp_stats": abi.QueuePairStats,
    "nvme_peer_event": abi.Event, "nvmepeer_export": abi.ExportMade,
    "nvmepeer_ns_info": abi.NamespaceInfo, "nvmepeer_explanation": abi.Explanation,
    "nvmepeer_buffer": abi.DeviceBuffer, "nvme_peer_extents": abi.Extents,
    "nvmepeer_file_info": abi.FileInfo, "nvmepeer_serve_options": abi.ServeOptions,
    "nvmepeer_geometry": abi.Geometry,
}
ENUMS = {
    "nvme_peer_ctrl_state": abi.ControllerState, "nvme_peer_domain": abi.Domain,
    "nvme_peer_route_verdict": abi.Verdict, "nvme_peer_route_reason": abi.RouteReason,
    "nvme_peer_access": abi.Access, "nvme_peer_export": abi.Export,
    "nvme_peer_mode": abi.Mode, "nvme_peer_rights": abi.Rights,
    "nvme_peer_qp_state": abi.QueuePairState, "nvme_peer_event_type": abi.EventType,
}


def pinned() -> dict[str, list[str]]:
    """The lines below each headline of the files."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for path in sys.argv[1:]:
        with open(path, encoding="ascii") as file:
            for line in file:
                if line.startswith("\t"):
                    lines.append(line.strip())
                elif not line.startswith("# "):
                    lines = sections.setdefault(line.strip(), [])
    return sections


def compare(test: unittest.TestCase, name: str, structure: Any) -> None:
    """The fields of a structure are those of the files."""
    expected = []
    for line in pinned()[f"struct {name}"][:-1]:
        offset, size, *rest = line.split()
        function = re.search(r"\(\*(\w+)\)", line)
        field = function[1] if function else re.sub(r"\[.*", "", rest[-1])
        expected.append((field, int(offset), int(size)))
    fields = [(field[0], getattr(structure, field[0]).offset, getattr(structure, field[0]).size)
              for field in structure._fields_]
    test.assertEqual(fields, expected, name)
    test.assertEqual(f"{ctypes.sizeof(structure)} bytes", pinned()[f"struct {name}"][-1])


class Fake(ctypes.Structure):
    """struct fake of lib/tests/fake.h, as far as it is used here"""

    _fields_ = [("open_error", ctypes.c_int), ("fail_command", ctypes.c_ulong),
                ("fail_error", ctypes.c_int), ("fail_status", ctypes.c_int),
                ("info", abi.Info), ("route", abi.Route), ("identify", ctypes.c_ubyte * 4096),
                ("table_break", ctypes.c_uint), ("qp_info", abi.QueuePairInfo),
                ("losses", ctypes.c_uint), ("calls", ctypes.c_uint), ("open_files", ctypes.c_int),
                ("buffers", ctypes.c_int), ("path", ctypes.c_char * 128), ("request", ctypes.c_uint64 * 32)]


class Pinned(unittest.TestCase):
    def test_structures_match_c(self) -> None:
        for name, structure in STRUCTURES.items():
            compare(self, name, structure)

    def test_enums_match_c(self) -> None:
        for name, kind in ENUMS.items():
            lines = [line.split() for line in pinned()[f"enum {name}"]]
            self.assertEqual([int(number, 0) for number, _ in lines], [int(one) for one in kind], name)
            for (_, constant), one in zip(lines, kind):
                self.assertTrue(constant.endswith(f"_{one.name}"), f"{constant} is not {one.name}")

    def test_flags(self) -> None:
        numbers = {name: int(number, 0) for number, name in map(str.split, pinned()["#define"])}
        self.assertEqual(abi.BUF_REQUIRE_DEVICE, numbers["NVME_PEER_BUF_REQUIRE_DEVICE"])
        self.assertEqual(abi.EXPORT_ALLOW_STATIC, numbers["NVME_PEER_EXPORT_ALLOW_STATIC"])
        self.assertEqual(abi.ROUTE_BLOCKERS, numbers["NVME_PEER_ROUTE_BLOCKERS"])

    def test_version_matches_library(self) -> None:
        with open(f"{os.path.dirname(__file__)}/../pyproject.toml", "rb") as file:
            self.assertEqual(tomllib.load(file)["project"]["version"], nvmepeer.version())

    def test_public_names_are_typed(self) -> None:
        for name in nvmepeer.__all__:
            one = getattr(nvmepeer, name)
            if inspect.isclass(one) and not issubclass(one, (enum.Enum, ctypes.Structure, tuple)):
                for method in (function for _, function in inspect.getmembers(one, inspect.isfunction)
                               if function.__module__.startswith("nvmepeer")):
                    said = inspect.signature(method)
                    self.assertIsNot(said.return_annotation, inspect.Signature.empty, method)
                    for parameter in list(said.parameters.values())[1:]:
                        self.assertIsNot(parameter.annotation, inspect.Parameter.empty, method)


class Objects(unittest.TestCase):
    def setUp(self) -> None:
        library._library.fake_reset()
        self.fake = Fake.in_dll(library._library, "fake")
        # A namespace of 0x1000 blocks of 512 bytes.
        self.fake.identify[1], self.fake.identify[130] = 0x10, 9
        self.controller = nvmepeer.Controller("nvmep0")
        self.addCleanup(self.controller.close)

    def open_files(self) -> int:
        return int(self.fake.open_files)

    def refuse(self, command: str, number: int, status: int = 0) -> None:
        numbers = {name: int(value, 0) for value, name in map(str.split, pinned()["#define"])}
        self.fake.fail_command = numbers.get(command) or int(command, 0)
        self.fake.fail_error, self.fake.fail_status = number, status

    def test_controller_info(self) -> None:
        info = self.controller.info()
        self.assertEqual((info.state, info.max_entries), (nvmepeer.ControllerState.LIVE, 1024))
        self.assertGreaterEqual(self.controller.fileno(), 1000)

    def test_error_has_explanation(self) -> None:
        self.refuse("NVME_PEER_BUF_IMPORT", errno.ENXIO)
        with self.assertRaises(nvmepeer.Error) as raised:
            self.controller.import_dmabuf(42, require_device=True)
        error = raised.exception
        self.assertEqual((error.errno, error.status, error.call), (errno.ENXIO, 0, "nvmepeer_buf_import"))
        self.assertIn("host RAM", error.limit)
        self.assertIn(error.help, str(error))
        self.assertIn("/dev/nvmep0", error.what)

    def test_open_missing_node(self) -> None:
        self.fake.open_error = errno.ENOENT
        with self.assertRaisesRegex(nvmepeer.Error, "nvme-peer bind"):
            nvmepeer.Controller("nvmep9")

    def test_error_has_nvme_status(self) -> None:
        with nvmepeer.Namespace("ngp0n1") as namespace:
            self.refuse("0xc0484e43", 0, 0x4080)    # NVME_IOCTL_IO_CMD
            with self.assertRaises(nvmepeer.Error) as raised:
                namespace.read(0, 1)
        self.assertEqual((raised.exception.errno, raised.exception.status), (0, 0x4080))
        self.assertIn("LBA out of range", raised.exception.limit)

    def test_namespace_io_needs_whole_blocks(self) -> None:
        with nvmepeer.Namespace("ngp0n1") as namespace:
            self.assertEqual((namespace.info.nsid, namespace.info.block_size, namespace.info.blocks),
                             (3, 512, 0x1000))
            self.assertEqual(len(namespace.read(7, 8)), 4096)
            namespace.write(0, memoryview(bytes(1024)))
            namespace.flush()
            with self.assertRaisesRegex(ValueError, "100 bytes are no whole blocks"):
                namespace.write(0, bytes(100))

    def test_use_after_close_is_refused(self) -> None:
        namespace = nvmepeer.Namespace("ngp0n1")
        namespace.close()
        namespace.close()
        with self.assertRaisesRegex(ValueError, "Namespace is closed"):
            namespace.read(0, 1)

    def test_view_keeps_memory(self) -> None:
        before = self.open_files()
        memory = nvmepeer.HostMemory(5000)
        self.assertEqual(len(memory.memory), 8192)
        part = memory.memory[:4]
        part[0] = 0x5a
        memory.close()
        with self.assertRaises(ValueError):
            memory.memory
        self.assertEqual((part[0], self.open_files()), (0x5a, before + 1))
        del part
        self.assertEqual(self.open_files(), before)

    def test_buffer_keeps_controller(self) -> None:
        controller = nvmepeer.Controller("nvmep1")
        buffer = controller.import_dmabuf(42)
        before = self.open_files()
        controller.close()
        self.assertEqual(self.open_files(), before)
        buffer.release()
        self.assertEqual(self.open_files(), before - 1)

    def test_cpu_peer_keeps_controller(self) -> None:
        controller = nvmepeer.Controller("nvmep1")
        with nvmepeer.Namespace("ngp0n1") as namespace:
            peer = nvmepeer.CpuPeer(controller, namespace, 64, 65536)
        before = self.open_files()
        controller.close()
        self.assertEqual(self.open_files(), before)
        peer.close()    # its queue pair, its memory and the controller
        self.assertEqual(self.open_files(), before - 3)

    def test_routes(self) -> None:
        self.fake.route.data.verdict = nvmepeer.Verdict.HOST_BRIDGE
        self.assertEqual(self.controller.route("0000:41:00.0").data.verdict, nvmepeer.Verdict.HOST_BRIDGE)
        self.assertEqual(self.controller.route(42).data.verdict, nvmepeer.Verdict.HOST_BRIDGE)
        with self.assertRaisesRegex(ValueError, "no PCI address"):
            self.controller.route("somewhere")
        self.assertEqual(str(nvmepeer.PciAddress(0x10000, 0xe111, 1)), "10000:e1:02.1")
        self.assertEqual(str(nvmepeer.PciAddress()), "none")

    def test_buffers_and_queue_pairs(self) -> None:
        with self.controller.import_dmabuf(42) as buffer:
            self.assertEqual((buffer.info.handle, buffer.info.length), (7, 65536))
            self.assertEqual(buffer.addresses()[:2], [0x10000000, 0x10001000])
            self.assertEqual(len(buffer.addresses()), 16)
            self.assertEqual(len(buffer.addresses(8192, 3)), 3)
            with self.controller.create_queue_pair(64, sq=buffer, cq=buffer, cq_offset=4096) as queue_pair:
                self.assertEqual((queue_pair.info().qid, queue_pair.info().generation), (5, 9))
                self.assertEqual(queue_pair.rearm(3), 10)
                self.assertEqual(queue_pair.export(nvmepeer.Export.DOORBELL)[1:], (0x28, 8))
        with self.assertRaisesRegex(ValueError, "released"):
            buffer.addresses()
        with self.controller.create_queue_pair(64, mode=nvmepeer.Mode.RELAY) as queue_pair:
            self.assertEqual(queue_pair.info().mode, nvmepeer.Mode.RELAY)
            queue_pair.kick()
        with self.controller.create_queue_pair(64) as queue_pair, \
                self.assertRaisesRegex(nvmepeer.Error, "RELAY"):
            queue_pair.kick()

    def requested(self, structure: Any) -> Any:
        """The argument of the last ioctl."""
        return structure.from_buffer_copy(self.fake.request)

    def test_mediated_queue_pairs(self) -> None:
        with self.controller.create_queue_pair(64, mode=nvmepeer.Mode.MEDIATED, depth=4, weight=2,
                                               timeout_ms=9000, max_windows=3, max_buffers=5) as queue_pair:
            made = self.requested(abi.QueuePairCreate)
            self.assertEqual((made.mode, made.depth, made.weight, made.timeout_ms, made.max_windows,
                              made.max_buffers), (2, 4, 2, 9000, 3, 5))
            queue_pair.add_window(43, 8, 16)
            window = self.requested(abi.WindowAdd)
            self.assertEqual((window.fd, window.first, window.blocks), (43, 8, 16))
            queue_pair.window(0x10002)
            self.assertEqual(self.requested(abi.WindowInfo).id, 0x10002)
            queue_pair.remove_window(7)
            self.assertEqual(self.fake.request[1] & 0xffffffff, 7)
            queue_pair.add_buffer(42, access=nvmepeer.Access.READ, offset=4096, length=8192)
            buffer = self.requested(abi.BufferAdd)
            self.assertEqual((buffer.dmabuf_fd, buffer.access, buffer.offset, buffer.length),
                             (42, nvmepeer.Access.READ, 4096, 8192))
            queue_pair.remove_buffer(6)
            self.assertEqual(self.fake.request[1] & 0xffffffff, 6)
            self.assertEqual(queue_pair.limits().sealed, 0)
            self.assertEqual(self.requested(abi.QueuePairLimits).size, ctypes.sizeof(abi.QueuePairLimits))
            self.assertEqual(queue_pair.stats().refused, 0)
            self.assertEqual(self.requested(abi.QueuePairStats).size, ctypes.sizeof(abi.QueuePairStats))
            before = self.fake.calls
            queue_pair.seal()
            self.assertEqual(self.fake.calls, before + 1)
            with self.assertRaisesRegex(nvmepeer.Error, "/nowhere"):
                queue_pair.open_file("/nowhere", 1, 2)
        self.assertEqual(nvmepeer.handle_address(3, 0x1000), 0x3000000001000)
        with self.controller.create_queue_pair(64) as queue_pair, \
                self.assertRaisesRegex(nvmepeer.Error, "MEDIATED"):
            queue_pair.seal()

    def test_cpu_peer(self) -> None:
        with nvmepeer.Namespace("ngp0n1") as namespace, \
                nvmepeer.CpuPeer(self.controller, namespace, 64, 65536) as peer:
            self.assertEqual(len(peer.memory), 65536)
            with self.assertRaises(nvmepeer.TransferError) as raised:
                peer.read(65536, 0, 1)
            self.assertEqual(raised.exception.device, nvmepeer.DeviceError.RANGE)
            self.assertIn("1 blocks at 0", str(raised.exception))


    def test_pinned_files(self) -> None:
        extents, pin = os.memfd_create("extents"), nvmepeer.PinnedFile
        os.pwrite(extents, struct.pack("=6Q", 0, 4096, 8, 8, 64, 2), 0)
        with pin(abi.Extents(pin_fd=extents, nsid=3, block_size=512, count=2)) as file:
            self.assertEqual(file.extents(), [(0, 4096, 8), (8, 64, 2)])
            self.assertEqual((file.info.nsid, file.extents()[1].lba, file.fileno()), (3, 64, extents))
        self.assertRaises(ValueError, file.extents)
        self.assertRaises(OSError, os.fstat, extents)
        self.refuse("NVME_PEER_EXTENTS", errno.ENODATA)
        with self.assertRaisesRegex(nvmepeer.Error, "hole"):
            self.controller.pin_file(43, 8, 16)
        request = self.requested(abi.Extents)
        self.assertEqual((request.fd, request.first, request.blocks), (43, 8, 16))


class Files(unittest.TestCase):
    def setUp(self) -> None:
        library._library.fake_reset()

    def test_obstacles_match_c(self) -> None:
        for bit in range(32):
            one = nvmepeer.FileObstacle(1 << bit)
            name = one.name.lower().replace("_", "-") if one.name else "unknown"
            self.assertEqual(library.call("file_obstacle_name", one).decode(), name)

    def test_obstacles_have_explanations(self) -> None:
        file = os.memfd_create("file")
        os.pwrite(file, bytes(8192), 0)
        found = nvmepeer.check_file(file)
        os.close(file)
        self.assertEqual((found.file_system, found.disk, found.controller, found.bytes), ("tmpfs", "", "", 8192))
        self.assertEqual(list(found.obstacles), [nvmepeer.FileObstacle.NO_DISK, nvmepeer.FileObstacle.FILE_SYSTEM])
        error = found.obstacles[nvmepeer.FileObstacle.FILE_SYSTEM]
        self.assertEqual((error.errno, error.call), (errno.EOPNOTSUPP, "nvmepeer_file_check"))
        self.assertIn("tmpfs", error.limit)
        self.assertIn("nvmepeer_serve_create(3)", str(error))

    def test_closed_file(self) -> None:
        with self.assertRaises(nvmepeer.Error) as raised:
            nvmepeer.check_file(-1)
        self.assertEqual((raised.exception.errno, raised.exception.call), (errno.EBADF, "nvmepeer_file_check"))


class Served(unittest.TestCase):
    """Queue pairs on a file in memory, with the kernel's io_uring."""

    BLOCKS = 64

    def setUp(self) -> None:
        self.file = os.memfd_create("file")
        self.addCleanup(os.close, self.file)
        self.data = b"".join(bytes([block]) * 512 for block in range(self.BLOCKS))
        os.pwrite(self.file, self.data, 0)
        self.served = nvmepeer.ServedQueuePair(4)
        self.addCleanup(self.served.close)
        self.memory = mmap.mmap(-1, 65536)
        self.namespace = self.served.add_namespace(self.file)
        self.buffer = self.served.add_buffer(self.memory)
        self.peer = peer.Peer(self.served, self.namespace)
        self.addCleanup(self.peer.close)

    def transfer(self, opcode: int, offset: int, lba: int, blocks: int) -> int:
        return self.peer.command(opcode, lba, blocks, self.buffer.dma + offset)

    def test_transfers_data(self) -> None:
        self.assertEqual((self.namespace.nsid, self.namespace.block_size, self.namespace.blocks),
                         (1, 512, self.BLOCKS))
        self.served.start()
        # More commands than the rings have entries.
        for lba in range(0, 48, 8):
            self.assertEqual(self.transfer(peer.READ, 512 * lba, lba, 8), 0)
        self.assertEqual(self.memory[:24576], self.data[:24576])
        self.assertEqual(self.transfer(peer.WRITE, 512, 40, 2), 0)
        self.assertEqual(self.peer.command(peer.FLUSH), 0)
        self.assertEqual(os.pread(self.file, 1024, 40 * 512), self.data[512:1536])
        self.assertIn("LBA out of range", library.status_text(self.transfer(peer.READ, 0, self.BLOCKS, 1)))
        self.served.stop()
        self.assertEqual(self.peer.state(), nvmepeer.QueuePairState.LIVE)

    def test_rights_are_those_of_the_descriptor(self) -> None:
        reads = os.open(f"/proc/self/fd/{self.file}", os.O_RDONLY)
        namespace = self.served.add_namespace(reads, 4096)
        os.close(reads)
        self.assertEqual((namespace.nsid, namespace.block_size, namespace.blocks), (2, 4096, self.BLOCKS // 8))
        self.peer = peer.Peer(self.served, namespace)
        self.addCleanup(self.peer.close)
        self.served.start()
        self.assertEqual(self.transfer(peer.READ, 0, 1, 1), 0)
        self.assertNotEqual(self.transfer(peer.WRITE, 0, 1, 1), 0)
        self.assertEqual(os.pread(self.file, 4096, 4096), self.data[4096:8192])

    def test_stops_and_starts_again(self) -> None:
        self.assertTrue(self.served.wait())
        self.served.stop()
        for _ in range(3):
            self.served.start()
            with self.assertRaisesRegex(ValueError, "served already"):
                self.served.start()
            self.assertFalse(self.served.wait(0.01))
            self.assertEqual(self.transfer(peer.READ, 0, 0, 1), 0)
            with self.assertRaisesRegex(nvmepeer.Error, "serve_stop") as raised:
                self.served.add_namespace(self.file)
            self.assertEqual(raised.exception.errno, errno.EBUSY)
            self.served.stop()
            self.assertTrue(self.served.wait())

    def test_loss_and_rearm(self) -> None:
        for number, (lose, number_of_error) in enumerate((
                (lambda: self.peer.ring(0xffffffff), errno.EPROTO), (self.peer.quiesce, errno.ECANCELED))):
            self.served.start()
            lose()
            with self.assertRaises(nvmepeer.Error) as raised:
                self.served.wait(30)
            error = raised.exception
            self.assertEqual((error.errno, error.call), (number_of_error, "nvmepeer_serve_run"))
            self.assertTrue(error.limit and error.help)
            self.assertEqual(self.peer.state(), nvmepeer.QueuePairState.QUIESCED)
            self.served.start()
            with self.assertRaises(nvmepeer.Error) as raised:
                self.served.wait(30)
            self.assertEqual(raised.exception.errno, errno.ESHUTDOWN)
            self.assertEqual(self.served.rearm(), number + 1)
            self.peer.rearmed()
            self.served.start()
            self.assertEqual(self.transfer(peer.READ, 0, 9, 1), 0)
            self.assertEqual(self.memory[:512], self.data[9 * 512:10 * 512])
            self.served.stop()
        with self.assertRaises(nvmepeer.Error) as raised:
            self.served.rearm()
        self.assertEqual(raised.exception.errno, errno.EALREADY)

    def test_stop_raises_the_loss(self) -> None:
        self.served.start()
        self.peer.quiesce()
        while self.peer.state() == nvmepeer.QueuePairState.LIVE:
            time.sleep(0.001)
        with self.assertRaises(nvmepeer.Error) as raised:
            self.served.stop()
        self.assertEqual(raised.exception.errno, errno.ECANCELED)
        # That stop does not end the next run.
        self.served.rearm()
        self.peer.rearmed()
        self.served.start()
        self.assertEqual(self.transfer(peer.READ, 0, 0, 1), 0)

    def test_refusals(self) -> None:
        for entries, options in ((3, {}), (4, {"depth": 4097}), (4, {"max_transfer": 100})):
            with self.assertRaises(nvmepeer.Error) as raised:
                nvmepeer.ServedQueuePair(entries, **options)
            self.assertEqual((raised.exception.errno, raised.exception.call), (errno.EINVAL, "nvmepeer_serve_create"))
        null = os.open("/dev/null", os.O_RDONLY)
        self.addCleanup(os.close, null)
        for fd, block_size, number in ((null, 0, errno.ENOTBLK), (self.file, 100, errno.EINVAL), (-1, 0, errno.EBADF)):
            with self.assertRaises(nvmepeer.Error) as raised:
                self.served.add_namespace(fd, block_size)
            self.assertEqual((raised.exception.errno, raised.exception.call), (number, "nvmepeer_serve_add_fd"))
        with self.assertRaisesRegex(nvmepeer.Error, "4096"):
            self.served.add_buffer(memoryview(self.memory)[1:])
        self.assertRaises(TypeError, self.served.add_buffer, bytes(4096))

    def test_memory_is_held_until_close(self) -> None:
        self.assertRaises(BufferError, self.memory.close)
        self.served.close()
        gc.collect()
        self.memory.close()

    def test_close_ends_the_thread(self) -> None:
        self.served.start()
        self.served.close()
        self.served.close()
        self.assertEqual(threading.active_count(), 1)
        self.assertEqual(self.peer.state(), nvmepeer.QueuePairState.GONE)
        for use in (self.served.start, self.served.stop, self.served.wait, self.served.rearm, self.served.kick,
                    lambda: self.served.add_namespace(self.file)):
            with self.assertRaisesRegex(ValueError, "ServedQueuePair is closed"):
                use()

    def test_dropped_while_served(self) -> None:
        served = nvmepeer.ServedQueuePair(4)
        served.start()
        del served
        gc.collect()
        self.assertEqual(threading.active_count(), 1)

    def test_exit_while_served(self) -> None:
        program = "import nvmepeer; served = nvmepeer.ServedQueuePair(4); served.start()"
        done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


def main(name: str) -> int:
    """Run the tests of a module, with KTAP as output."""
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[name])
    tests = list(test for group in suite for test in group)
    results = ktap.Results()
    for test in tests:
        before = len(result.failures) + len(result.errors)
        test.run(result)
        good = len(result.failures) + len(result.errors) == before
        results.report(test.id().removeprefix("__main__."), good)
    for _, text in result.failures + result.errors:
        print("# " + text.rstrip().replace("\n", "\n# "))
    return int(results.end())


if __name__ == "__main__":
    sys.exit(main(__name__))
