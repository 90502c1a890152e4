#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Cost of relay and mediated mode, in a guest whose clock counts instructions:
# selftests/run --icount -- /selftests/bench/relay.sh
#
# Prints the output of relay_cost, and that of watch_cost for idle queue pairs in relay mode:
# queue pairs, instructions a second, spread. A core of this guest executes 500 million a second.
set -euo pipefail
. /selftests/lib/bind.sh

np_bind np0 nvme-peer
np_until 200 np_node np0 >/dev/null
node=/dev/$(np_node np0)
/build/user/relay_cost
/build/user/watch_cost "$node" --relay 1 32
np_unbind np0
