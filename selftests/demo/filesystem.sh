#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Copy a tree into a file system, drop the page cache and compare, repeatedly until the stop file
# exists. Started by the demonstration.
#
# usage: filesystem.sh PARTITION TREE STOP-FILE
# prints "round NUMBER BYTES" for each successful comparison; other output is an error
set -euo pipefail

partition=$1 tree=$2 stop=$3
mountpoint=$(mktemp -d)
bytes=$(du -sb --apparent-size "$tree" | cut -f1)
number=0

leave() {
	umount "$mountpoint" && rmdir "$mountpoint"
}

mount -t ext4 "$partition" "$mountpoint"
trap leave EXIT
until [[ -e $stop ]]; do
	number=$((number + 1))
	cp -a "$tree" "$mountpoint/tree"
	sync -f "$mountpoint"
	echo 3 >/proc/sys/vm/drop_caches
	diff -r "$tree" "$mountpoint/tree"
	rm -r "$mountpoint/tree"
	echo "round $number $bytes"
done
