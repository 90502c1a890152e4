#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Tests on a spare controller, as on a machine that is no guest: what may be harmed is refused,
# what is missing is named, the disk keeps its data without TEST_WIPE=1, and qualify reports.
# timeout: 400
# kernels: 7
# long-kernels: 6.1 7
# iommu: on
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

work=/tmp/spare
export TEST_BDF
TEST_BDF=$(np_address np1)
unset TEST_BDF2 TEST_WIPE
PATH=/build/user:$PATH

# As "make install" of selftests/, with a few programs.
install_few() {
	mkdir -p "$work"/{lib,peer,cpu} &&
		cp /selftests/qualify "$work/" &&
		cp /selftests/lib/{run-target,ktap.sh,results.sh} "$work/lib/" &&
		cp /selftests/peer/settings /build/user/tests/{cpu_peer,rearm,gpu_peer,bad_rings} "$work/peer/" &&
		cp /selftests/cpu/settings /build/user/tests/{uring_cmd,reset,passthru,pci_reset} "$work/cpu/"
}

refuses() {
	local said status=0
	said=$("$work/lib/run-target" "$work/peer" "$work/peer/cpu_peer" 2>&1) || status=$?
	echo "returned $status: $said"
	((status == 2)) && grep -q "$1" <<<"$said"
}

refuses_mounted() {
	local status=0
	mkdir -p "$work/mount" && mkfs.ext4 -q "$disk" && mount "$disk" "$work/mount" || return
	refuses "is in use by $work/mount" || status=1
	umount "$work/mount"
	return "$status"
}

sum_of_disk() {
	dd if="$disk" bs=1M count=256 iflag=direct status=none | md5sum
}

fill() {
	dd if=/dev/urandom of="$disk" bs=1M count=64 oflag=direct status=none
}

# run TARGET PROGRAM: its output is in $work/out.
run() {
	"$work/lib/run-target" "$work/$1" "$work/$1/$2" >"$work/out" 2>&1
	tail -n 40 "$work/out"
	grep -q "$3" "$work/out"
}

passes() {
	run "$1" "$2" "^ok 1 selftests: $1: $2 *\$"
}

skips() {
	run "$1" "$2" "^ok 1 selftests: $1: $2 # SKIP needs $3"
}

one_skipped() {
	passes "$1" "$2" && grep -q "^# ok .* $3 # SKIP needs $4" "$work/out"
}

writes_nothing() {
	local before
	before=$(sum_of_disk)
	passes cpu reset && one_skipped peer cpu_peer cpu_peer.usual.cpu_reads_peer_data TEST_WIPE=1 &&
		one_skipped peer rearm rearm.rearm_restores_queue_pair TEST_WIPE=1 && skips cpu uring_cmd TEST_WIPE=1 &&
		ktap_same "$(sum_of_disk)" "$before"
}

writes_if_allowed() {
	local before
	before=$(sum_of_disk)
	TEST_WIPE=1 passes peer cpu_peer && ! grep -q TEST_WIPE "$work/out" && [[ $(sum_of_disk) != "$before" ]]
}

# The port of np1 cannot reset its bus; np1 has two namespaces.
skips_what_it_lacks() {
	export TEST_WIPE=1
	one_skipped cpu pci_reset pci.bus_reset_under_load "a port that can reset its bus" &&
		ktap_same "$(<"/sys/bus/pci/devices/$TEST_BDF/reset_method")" "flr bus" &&
		one_skipped cpu passthru passthru.controller_node_io_to_only_namespace "a controller with one namespace" &&
		grep -q "^# ok .* passthru.controller_node_io_with_several_namespaces\$" "$work/out"
}

skips_gpu() {
	TEST_WIPE=1 skips peer gpu_peer softgpu
}

reports() {
	local line
	"$work/qualify" "$TEST_BDF" >"$work/report" || { cat "$work/report"; return 1; }
	for line in '^model: QEMU' '^quirks: ' 'contiguous_rings' 'queue' '^reset_method: .*flr' \
		'^controller reset: [0-9]' '^function reset, flr: [0-9]' '^unbind and bind: [0-9]' '^reads: 64' \
		'^ok 4 selftests: peer: rearm' 'needs badctrl' 'nvme-peer .*queue pairs for peers \([0-9]+ times\)$'; do
		grep -qE "$line" "$work/report" || { echo "no line '$line'"; cat "$work/report"; return 1; }
	done
	! grep 'not ok' "$work/report"
}

ktap_check "programs are installed" install_few
np_unbind np1
ktap_check "an unbound controller is refused" refuses "not bound to nvme-peer"
ktap_check "it is bound" np_bind np1
disk=/dev/$(np_node np1)n1
ktap_check "its disk exists" np_until 200 test -b "$disk"
ktap_check "a mounted disk is refused" refuses_mounted
ktap_check "its disk has data" fill
ktap_check "nothing is written" writes_nothing
ktap_check "TEST_WIPE=1 allows to write" writes_if_allowed
ktap_check "what this controller lacks is named" skips_what_it_lacks
unset TEST_WIPE
rm -f "$work"/cpu/{passthru,pci_reset}
ktap_check "a missing controller is named" skips peer bad_rings badctrl
ktap_check "a missing GPU is named" skips_gpu
ktap_check "qualify reports" reports
cp "$work/report" /host/out/qualify.txt
rm -rf "$work"
ktap_end
