#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Rust crate on a real controller, built beforehand: its example reads what was written, into a
# udmabuf, which older kernels lack.
#
# kernels: 7
# iommu: on
# timeout: 60
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/example.sh
. /selftests/lib/ktap.sh

programs=/build/user/rust
if [[ ! -x $programs/read_block ]]; then
	ktap_skip "the Rust crate" "built without Rust: selftests/setup/setup.sh --lint"
	ktap_end
fi
export LD_LIBRARY_PATH=/build/user/lib
np_bind np0 || exit 1
node=$(np_node np0)
np_until 200 test -e "/dev/ngp${node#nvmep}n1"

ktap_check "the example reads what was written" example_reads_back "$node" "$programs/read_block"
ktap_check "a loss is reported and the queue pair re-armed" env NVMEPEER_NODE="$node" "$programs/device"
ktap_end
