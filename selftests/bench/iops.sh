#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Reads a second into imported buffers of host memory and of the software GPU, compared to reads
# into fixed buffers: alternately, in one guest, on one controller. QEMU's controller np0 writes to
# memory of the software GPU by messages between two processes, a cost that grows with the data and
# is not the driver's. With "--gpu fake" badctrl maps both kinds of memory and copies at equal cost.
#
# usage: selftests/run --cell 7/off/root [--gpu fake] -- /selftests/bench/iops.sh [TURNS [SECONDS]]
#
# Prints for each case the medians, the ratios to fixed buffers, and the spread of the turns.
set -euo pipefail
. /selftests/lib/bind.sh

controller=np0
if [[ -f /host/engine ]]; then
	controller=badctrl
	# BADCTRL_MODE, BADCTRL_WORKS
	np_bad_set 4 7
fi
np_bind "$controller"
node=$(np_node "$controller")
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
into = {"host": ["--into"], "GPU": ["--into", "--fd", str(fd)]}
cases = {
    "4 KiB, one": ["--entries", "1"],
    "4 KiB, 32 at the same time": ["--entries", "32"],
    "128 KiB, 8 at the same time": ["--entries", "8", "--size", "131072"],
}
# Name and options of each method; a range list needs buffers.
runs = [(name, {"fixed": options, **{way: [*options, *more] for way, more in into.items()}})
        for name, options in cases.items()]
runs.append(("4 KiB, 32 by one list", {
    "fixed": ["--entries", "32"],
    **{way: [*more, "--entries", "1", "--ranges", "32"] for way, more in into.items()}}))


def rate(options):
    said = subprocess.run(["nvme-peer", "bench", node, namespace, "-o", "json", "--seconds", seconds, *options],
                          pass_fds=[fd], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["reads_per_second"]


def spread(rates):
    return (max(rates) - min(rates)) / statistics.median(rates)


print(f"{'reads a second':28}" + "".join(f"{way:>8} {'spread':>6}" for way in ("fixed", *into)) + "    host/fixed  GPU/fixed")
for name, ways in runs:
    rates = {way: [] for way in ways}
    for turn in range(turns):
        for way, options in ways.items():
            rates[way].append(rate(options))
    medians = {way: statistics.median(each) for way, each in rates.items()}
    print(f"{name:28}" + "".join(f"{medians[way]:8.0f} {spread(rates[way]):6.2f}" for way in ways) +
          "".join(f"    {medians[way] / medians['fixed']:8.3f}" for way in into), flush=True)
PYTHON
