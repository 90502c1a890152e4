#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvme-peer topo below a host bridge that the kernel does not list: its verdicts equal the module's,
# and the command that it prints enables the route.
# iommu: off
# topology: unknown-bridge
# timeout: 60
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

PATH=/build/user:$PATH
np_bind np0 || exit 1
np_bind np1 || exit 1
gpu=$(np_address softgpu)
parameter=/sys/module/nvme_peer/parameters/allow_host_bridge
before=$(<"$parameter")
trap 'echo "$before" >"$parameter"' EXIT
echo 0 >"$parameter"

# verdict NAME: the matrix entry of the software GPU and a controller.
verdict() {
	nvme-peer topo -o json | python3 -c '
import json, sys
print(*[way["verdict"] for way in json.load(sys.stdin)["ways"]
        if way["peer"] == sys.argv[1] and way["controller"] == sys.argv[2] and way["module_asked"]])' \
		"$gpu" "$(np_address "$1")"
}

route() {
	nvme-peer -o json route "$(np_node "$1")" "$gpu" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["verdict"])'
}

# The line of its advice that is a command.
printed_help() {
	nvme-peer topo | sed -n "/^$gpu and $(np_node np0):/,/^\$/s/^    \(echo 1 > .*\)/\1/p"
}

ktap_is "behind the host bridge" "$(verdict np0)" none
ktap_is "below one switch" "$(verdict np1)" bus-address
ktap_is "the module's verdict on np0" "$(verdict np0)" "$(route np0)"
ktap_is "the module's verdict on np1" "$(verdict np1)" "$(route np1)"
ktap_is "the printed command" "$(printed_help)" "echo 1 > $parameter"
sh -c "$(printed_help)"
ktap_is "the command enables the route" "$(verdict np0)" host-bridge
ktap_end
