#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A controller below an external-facing port, which the kernel does not trust: it may access its
# data but not the rest of the pages, so partial pages are bounced in both directions.
#
# topology: external
# kernels: 7
# iommu: on
# timeout: 60
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

address=$(np_address np0)
tracing=/sys/kernel/tracing
work=$(mktemp -d)
mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"

# Fail soon if a command cannot be mapped.
patience=/sys/module/nvme_peer/parameters/admin_timeout
before=$(<"$patience")
echo 10 >"$patience"

leave() {
	echo "$before" >"$patience"
	echo 0 >"$tracing/events/swiotlb/swiotlb_bounced/enable"
	rm -r "$work"
}

# bounced COMMAND...: fails unless the transfer was bounced.
bounced() {
	local lines
	echo >"$tracing/trace"
	echo 1 >"$tracing/events/swiotlb/swiotlb_bounced/enable"
	"$@" || return
	echo 0 >"$tracing/events/swiotlb/swiotlb_bounced/enable"
	lines=$(grep -c "dev_name: $address" "$tracing/trace")
	echo "$lines times"
	((lines >= 128))
}

writes_blocks() {
	dd if="$work/written" of="$disk" bs=512 oflag=direct status=none
}

# reads BYTES COUNT: COUNT reads of BYTES.
reads() {
	dd if="$disk" of="$work/read" bs="$1" count="$2" iflag=direct status=none && cmp "$work/written" "$work/read"
}

trap leave EXIT
ktap_check "the controller is untrusted" np_is_outside np0
ktap_check "nvme-peer binds it" np_bind np0
disk=/dev/$(np_node np0)n1
np_until 200 test -b "$disk"
head -c 64K /dev/urandom >"$work/written"
ktap_check "writes of single blocks are bounced" bounced writes_blocks
ktap_check "reads of single blocks are bounced" bounced reads 512 128
ktap_check "reads of pages return the written blocks" reads 64K 1
ktap_end
