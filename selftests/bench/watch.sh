#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# CPU cost of the health poll of a controller, in a guest whose clock counts instructions:
# selftests/run --icount -- /selftests/bench/watch.sh
#
# Prints the output of watch_cost: queue pairs, instructions a second, spread.
set -euo pipefail
. /selftests/lib/bind.sh

np_bind np0 nvme-peer
np_until 200 np_node np0 >/dev/null
node=/dev/$(np_node np0)
/build/user/watch_cost "$node" 0 1 32
np_unbind np0
