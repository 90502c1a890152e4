#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An ext4 file system on a partition: copied files are read back from the disk unchanged, also if
# the controller is reset meanwhile. A swap file on this disk works while peers have queue pairs,
# the controller is reset and its shares change.
# kernels: 7
# long-kernels: 6.1 6.12 7 debug kcsan
# iommu: on
# long-iommu: on off
# timeout: 150
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
disk=/dev/${node}n1
generic=ngp${node#nvmep}n1
mount=$(mktemp -d)
source=$(mktemp -d)
memory=$(mktemp -d)
groups=/sys/fs/cgroup
group=$groups/np-swap
trap 'touch "$source/stop"; umount "$memory" 2>/dev/null; swapoff "$mount/swap" 2>/dev/null
	umount "$mount" 2>/dev/null; blockdev --rereadpt "$disk" 2>/dev/null' EXIT
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

# Drop the page cache, so that the disk is read.
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

# A queue pair with mapped doorbells whose peer is the CPU, again after each loss. It needs
# /dev/udmabuf, which some kernels do not have.
peer_until_stopped() {
	local checks=0
	while [[ ! -e $source/stop ]]; do
		! /build/user/nvme-peer qp check "$node" "$generic" >/dev/null 2>&1 || checks=$((checks + 1))
	done
	[[ ! -e /dev/udmabuf ]] || ((checks))
}

# "yes" ends by SIGPIPE.
pattern() {
	yes "0123456789abcde" | head -c 32M || true
}

# Twice as much data as the group may have in memory: most of it goes to the swap file. The limit
# is memory.high, which waits for reclaim: beyond memory.max, the group's processes are killed when
# a reset takes longer than the kernel tries to reclaim.
fill_and_compare() {
	echo "$BASHPID" >"$group/cgroup.procs"
	pattern >"$memory/data" && pattern | cmp - "$memory/data"
}

# Neither a reset nor a change of shares may wait for memory that only this disk can free.
swap_under_resets() {
	local filling peer status=0 swapped
	dd if=/dev/zero of="$mount/swap" bs=1M count=64 status=none && chmod 600 "$mount/swap" &&
		mkswap -q "$mount/swap" && swapon "$mount/swap" &&
		mount -t tmpfs -o size=48M none "$memory" || return
	mountpoint -q "$groups" || mount -t cgroup2 none "$groups" || return
	echo +memory >"$groups/cgroup.subtree_control" && mkdir "$group" &&
		echo 16M >"$group/memory.high" || return
	peer_until_stopped &
	peer=$!
	fill_and_compare &
	filling=$!
	while kill -0 "$filling" 2>/dev/null; do
		timeout 20 nvme reset "/dev/$node" || status=1
		sleep 0.3
	done
	wait "$filling" || status=1
	swapped=$(awk -v file="$mount/swap" '$1 == file { print $4 }' /proc/swaps)
	touch "$source/stop"
	wait "$peer" || status=2
	echo "swapped ${swapped:-0} KiB, status $status"
	((${swapped:-0} > 8192)) || status=1
	umount "$memory" && swapoff "$mount/swap" && rm "$mount/swap" && rmdir "$group" || status=1
	return "$status"
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
ktap_check "swap to this disk while it is reset" swap_under_resets
ktap_check "discard and check" discard_and_check
ktap_end
