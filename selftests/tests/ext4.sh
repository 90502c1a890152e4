#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A file system on a partition: what was copied in is read back from the disk,
# also when the controller is reset meanwhile.
# iommu: on off
# timeout: 90
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
disk=/dev/${node}n1
mount=$(mktemp -d)
source=$(mktemp -d)
trap 'umount "$mount" 2>/dev/null; blockdev --rereadpt "$disk" 2>/dev/null' EXIT
np_until 200 test -b "$disk"

make_tree() {
	local i
	for ((i = 0; i < 40; i++)); do
		mkdir -p "$source/$((i % 5))"
		head -c $((i * i * 64 + 1)) /dev/urandom >"$source/$((i % 5))/$i"
	done
	head -c 8000000 /dev/urandom >"$source/large"
}

make_partition() {
	wipefs -aq "$disk" && echo 'start=2048, size=200M' | sfdisk -q "$disk" || return
	np_until 100 test -b "${disk}p1"
}

copy_in() {
	cp -a "$source/." "$mount/copy" && sync -f "$mount"
}

# From the disk, not from the cache.
compare() {
	umount "$mount" && mount "${disk}p1" "$mount" && diff -r "$source" "$mount/copy"
}

copy_under_resets() {
	local copying status
	cp -a "$source/." "$mount/again" &
	copying=$!
	for ((i = 0; i < 3; i++)); do
		nvme reset "/dev/$node" || return
	done
	wait "$copying"
	status=$?
	((status == 0)) && sync -f "$mount" && umount "$mount" && mount "${disk}p1" "$mount" &&
		diff -r "$source" "$mount/again"
}

discard_and_check() {
	rm -r "$mount/copy" && fstrim "$mount" && umount "$mount" && e2fsck -fn "${disk}p1"
}

make_tree
ktap_check "partition" make_partition
ktap_check "mkfs" mkfs.ext4 -q -F "${disk}p1"
ktap_check "mount" mount "${disk}p1" "$mount"
ktap_check "copy a tree in" copy_in
ktap_check "compare what the disk holds" compare
ktap_check "copy while the controller is reset" copy_under_resets
ktap_check "discard and check" discard_and_check
ktap_end
