#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Shares of the CPU and of queue pairs of peers in a controller whose medium is the bottleneck,
# relative to equal shares. All read continuously with the same number of commands in flight.
#
# usage: selftests/run --no-shadow --medium-rate 4000 --cell 7/off/root -- /selftests/bench/share.sh [PAIRS [TURNS]]
#
# Commands are served in order, and all queues have 32 in flight: a smaller share means that the
# queue ran empty. Prints the medians of the turns; exit status 1 if the CPU or a queue pair gets
# less than 95 % of its share.
set -euo pipefail
. /selftests/lib/bind.sh

np_bind np0
node=$(np_node np0)
namespace=ngp${node#nvmep}n1
np_until 200 test -c "/dev/$namespace"

PATH=/build/user:$PATH python3 - "$node" "$namespace" "${1:-8}" "${2:-5}" <<'PYTHON'
import json, statistics, subprocess, sys

node, namespace, pairs, turns = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
BAR = 0.95
# Duration of the CPU's reads, long enough to neglect reads of the peers before it.
SECONDS = 8


def cpu():
    said = subprocess.run(["nvme-peer", "bench", node, namespace, "-o", "json", "--entries", "32", "--seconds",
                           str(SECONDS)], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["reads_per_second"]


def beside():
    """Reads a second of the CPU and of all pairs, with the minimum and maximum of the pairs."""
    with subprocess.Popen(["peer_load", str(pairs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        if load.stdout.readline() != "held\n":
            sys.exit("share: the peers do not read")
        rate = cpu()
        said, _ = load.communicate()
    if load.returncode:
        sys.exit("share: not all of what the peers read went well")
    return (rate, *map(float, said.split()[1:]))


alone = cpu()
print(f"the CPU alone                 {alone:8.0f} reads a second")
shares = []
for _ in range(turns):
    rate, together, least, most = beside()
    fair = (rate + together) / (pairs + 1)
    shares.append((rate / fair, least / fair))
    print(f"beside {pairs} pairs, 32 each       {rate:8.0f}, of the pairs {least:.0f} to {most:.0f}: "
          f"{rate + together:.0f} in all")
missed = False
for name, column in ("the CPU", 0), ("the pair that has least", 1):
    values = [share[column] for share in shares]
    median = statistics.median(values)
    missed = missed or median < BAR
    print(f"{name:26} {median:6.3f} of its share, {min(values):.3f} to {max(values):.3f} in {turns} turns, "
          f"bar {BAR} {'MISSED' if median < BAR else 'met'}")
sys.exit(missed)
PYTHON
