#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Time to pin a large file, and one of 1 GiB beside it, on ext4 and XFS:
# selftests/run --medium-gb 100 --no-shadow -- /selftests/bench/window_large.sh [GIB [TYPE...]]
#
# Prints the time to mount each file system, and those of "window_cost --time" for files of 1 and GIB (80) GiB.
# Zeroes written to np0 take no space on the host. One TYPE with 80 GiB took up to seven minutes of the nine that a
# command has.
set -euo pipefail
. /selftests/lib/bind.sh

gib=${1:-80} types=("${@:2}")
((${#types[@]})) || types=(ext4 xfs)
disk=$(np_bind_disk np0)
mkdir -p /tmp/np-files
cd /tmp

# make_file NAME GIB: blocks first, so that they are contiguous, then data.
make_file() {
	fallocate -l "$2G" "/tmp/np-files/$1"
	dd if=/dev/zero of="/tmp/np-files/$1" bs=64M count=$(($2 * 16)) oflag=direct conv=notrunc,fsync status=none
}

# measure TYPE MKFS...
measure() {
	local began
	"${@:2}" "$disk"
	mount -t "$1" "$disk" /tmp/np-files
	make_file small 1
	make_file large "$gib"
	umount /tmp/np-files
	began=${EPOCHREALTIME/./}
	mount -t "$1" "$disk" /tmp/np-files
	echo "$1: mounted in $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
	/build/user/window_cost --time /tmp/np-files/small /tmp/np-files/large
	umount /tmp/np-files
}

modprobe -q xfs
for type in "${types[@]}"; do
	case $type in
	ext4) measure ext4 mkfs.ext4 -qF -E nodiscard ;;
	xfs) measure xfs mkfs.xfs -qfK ;;
	esac
done
np_unbind np0
