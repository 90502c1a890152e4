#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A controller behind a port that leads out of the machine: it may see what is its data and not
# what shares a page with that, so parts of pages are copied elsewhere, each way.
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

# What cannot be mapped fails soon.
patience=/sys/module/nvme_peer/parameters/admin_timeout
before=$(<"$patience")
echo 2 >"$patience"

leave() {
	echo "$before" >"$patience"
	echo 0 >"$tracing/events/swiotlb/swiotlb_bounced/enable"
	rm -r "$work"
}

# bounced COMMAND...: what it transfers was copied.
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

# reads BYTES COUNT: so many at once, so often.
reads() {
	dd if="$disk" of="$work/read" bs="$1" count="$2" iflag=direct status=none && cmp "$work/written" "$work/read"
}

trap leave EXIT
ktap_check "Linux does not trust the controller" np_is_outside np0
ktap_check "nvme-peer binds it" np_bind np0
disk=/dev/$(np_node np0)n1
np_until 200 test -b "$disk"
head -c 64K /dev/urandom >"$work/written"
ktap_check "single blocks are written from elsewhere" bounced writes_blocks
ktap_check "and read" bounced reads 512 128
ktap_check "what was written are they, read as pages" reads 64K 1
ktap_end
