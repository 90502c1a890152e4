#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Cost of finding the blocks of files with many extents, in a guest whose clock counts instructions:
# selftests/run --icount -- /selftests/bench/window_open.sh
#
# Prints the tables of window_cost for ext4 and XFS on np1. np0 keeps no data in this guest.
set -euo pipefail
. /selftests/lib/bind.sh

disk=$(np_bind_disk np1)
mkdir -p /tmp/np-files

# measure TYPE MKFS...: make the files, and measure with nothing of them in memory.
measure() {
	"${@:2}" "$disk"
	echo "$1"
	mount -t "$1" "$disk" /tmp/np-files
	(cd /tmp/np-files && /build/user/window_cost --make)
	umount /tmp/np-files
	mount -t "$1" "$disk" /tmp/np-files
	(cd /tmp/np-files && /build/user/window_cost) || failed=yes
	umount /tmp/np-files
}

failed=no
modprobe -q xfs
# Nothing is in the way of large extents: copies of the superblock, borders of allocation groups.
measure ext4 mkfs.ext4 -qF -b 4096 -J size=16 -O ^resize_inode,sparse_super2 -E num_backup_sb=0,nodiscard,lazy_itable_init=0
measure xfs mkfs.xfs -qfK --unsupported -d agcount=1 -i exchange=1
np_unbind np1
[[ $failed == no ]]
