#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Unmodified fio with verification, by NVMe passthrough and on the block device.
# timeout: 60
# kernels: 6.1 6.12 7
# long-kernels: 6.1 6.12 7 debug kcsan
# iommu: on off pt bounce
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np0 || exit 1
node=$(np_node np0)
generic=/dev/ngp${node#nvmep}n1
block=/dev/${node}n1
nodes_are_there() {
	[[ -e $generic && -e $block ]]
}
np_until 200 nodes_are_there

# Passthrough is not split, so a command must not exceed the device's limit.
read -r most <"/sys/block/${node}n1/queue/max_hw_sectors_kb"
((most <= 256)) || most=256

# Written in one order and verified in another, at sizes with one PRP entry, two, and a list.
run_fio() {
	local output
	output=$(timeout -k 5 50 fio --name=verify --output-format=terse --rw=randwrite --bsrange=4k-"${most}k" \
		--size=12m --io_size=12m --offset=128m --iodepth=16 --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --verify_async=0 --randrepeat=1 "$@" 2>&1)
	local status=$?
	echo "$output"
	# Terse field 6 is KiB read: a run that verified nothing must fail.
	((status == 0)) && [[ $(grep -o '^[35];.*' <<<"$output" | cut -d';' -f6) -gt 0 ]]
}

passthrough=(--ioengine=io_uring_cmd --cmd_type=nvme --filename="$generic")
ktap_check "passthrough" run_fio "${passthrough[@]}"
ktap_check "passthrough, fixed buffers" run_fio "${passthrough[@]}" --fixedbufs
ktap_check "passthrough, polled" run_fio "${passthrough[@]}" --hipri
ktap_check "block device, io_uring" run_fio --ioengine=io_uring --direct=1 --filename="$block"
ktap_check "block device, two jobs" run_fio --ioengine=libaio --direct=1 --filename="$block" \
	--numjobs=2 --offset_increment=64m --group_reporting
ktap_end
