#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Rust crate on a real controller, built beforehand: its example reads what was written, into a
# udmabuf, which older kernels lack; files on the disk, also through a served queue pair.
#
# kernels: 7
# iommu: on
# timeout: 90
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
mount=$(mktemp -d)
trap 'umount "$mount" 2>/dev/null' EXIT

ktap_check "the example reads what was written" example_reads_back "$node" "$programs/read_block"
ktap_check "a loss is reported and the queue pair re-armed" env NVMEPEER_NODE="$node" "$programs/device" reset
ktap_check "make files on ext4" example_files "$node" "$mount"
ktap_check "files are checked, in a window, pinned and served" env NVMEPEER_NODE="$node" NVMEPEER_FILES="$mount" "$programs/device" --test-threads 1 file
ktap_end
