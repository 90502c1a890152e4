#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# How many reads a second the CPU has carried out into the stand-in GPU's memory, against as
# many into memory of its own with fixed buffers: by turns, in one guest, on one controller.
#
# usage: selftests/run --cell 7/off/root -- /selftests/bench/iops.sh [TURNS [SECONDS]]
#
# Prints for each case the medians, their ratio, and how far the turns of either lie apart.
set -euo pipefail
. /selftests/lib/bind.sh

np_bind np0
node=$(np_node np0)
namespace=ngp${node#nvmep}n1
np_until 200 test -c "/dev/$namespace"

PATH=/build/user:$PATH python3 - "$node" "$namespace" "${1:-7}" "${2:-2}" <<'PYTHON'
import fcntl, json, os, statistics, struct, subprocess, sys

node, namespace, turns, seconds = *sys.argv[1:3], int(sys.argv[3]), sys.argv[4]
# struct softgpu_alloc: 8 MiB.
memory = bytearray(struct.pack("=QIiQ", 8 << 20, 0, -1, 0))
with open("/dev/softgpu0", "r+b", buffering=0) as gpu:
    fcntl.ioctl(gpu, 0xC0186701, memory)
fd = struct.unpack("=QIiQ", memory)[2]
gpu = ["--into", "--fd", str(fd)]

# Two ways for each case.
cases = [
    ("4 KiB, one", ["--entries", "1"], [], gpu),
    ("4 KiB, 32 at the same time", ["--entries", "32"], [], gpu),
    ("128 KiB, 8 at the same time", ["--entries", "8", "--size", "131072"], [], gpu),
    ("4 KiB, 32 by one list", [], ["--entries", "32"], [*gpu, "--entries", "1", "--ranges", "32"]),
]


def rate(options):
    said = subprocess.run(["nvme-peer", "bench", node, namespace, "-o", "json", "--seconds", seconds, *options],
                          pass_fds=[fd], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["reads_per_second"]


def spread(rates):
    return (max(rates) - min(rates)) / statistics.median(rates)


print(f"{'reads a second':30} {'fixed':>9} {'GPU':>9} {'ratio':>6} {'spread':>12}")
for name, both, *ways in cases:
    rates = [[], []]
    for turn in range(turns):
        for way in (0, 1):
            rates[way].append(rate([*both, *ways[way]]))
    fixed, into = (statistics.median(each) for each in rates)
    print(f"{name:30} {fixed:9.0f} {into:9.0f} {into / fixed:6.3f} {spread(rates[0]):6.2f}{spread(rates[1]):6.2f}", flush=True)
PYTHON
