#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Rust crate on a real controller, compiled before: its example reads what was written, into
# host memory that is a dma-buf, which older kernels do not make.
#
# kernels: 7
# iommu: on
# timeout: 60
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

programs=/build/user/rust
if [[ ! -x $programs/read_block ]]; then
	ktap_skip "the Rust crate" "built without Rust: selftests/setup/setup.sh --lint"
	ktap_end
fi
export LD_LIBRARY_PATH=/build/user/lib
np_bind np0 || exit 1
node=$(np_node np0)
namespace=ngp${node#nvmep}n1
np_until 200 test -e "/dev/$namespace"
work=$(mktemp -d)
head -c 4096 /dev/urandom >"$work/data"

# The example prints the first block, of whatever size that is.
reads_back() {
	dd if="$work/data" of="/dev/${node}n1" bs=4096 oflag=direct conv=fsync status=none &&
		"$programs/read_block" "$node" "$namespace" >"$work/block" &&
		[[ -s $work/block ]] && cmp -n "$(stat -c %s "$work/block")" "$work/data" "$work/block"
}

ktap_check "the example reads what was written" reads_back
ktap_check "a loss is told, and the queue pair comes back" env NVMEPEER_NODE="$node" "$programs/device"
ktap_end
