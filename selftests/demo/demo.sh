#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The demonstration, inside the guest: bind one controller to nvme-peer, divide its disk into three
# partitions, and let fio, ext4 and the software GPU use them at once.
#
# usage: demo.sh [SECONDS] how long all three run together at least, default 20
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/bind.sh"
seconds=${1:-20}
program=${DEMO_PROGRAM:-/build/user/demo}

# wait_for FILE: devices appear asynchronously.
wait_for() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		[[ -e $1 ]] && return
		sleep 0.1
	done
	echo "demo: $1 does not appear" >&2
	return 1
}

modprobe nvme_peer
modprobe softgpu_drv
# With a GPU that shares memory, use badctrl, which shares memory too: without faults, and with more
# queues than it grants by default.
disk=np0
if [[ -f /host/engine ]]; then
	disk=badctrl
	np_bad_set 4 7
	np_bad_set c 20
	export DEMO_SHARED=yes
fi
np_bind "$disk"
controller=$(np_node "$disk")
block=${controller}n1
namespace=ngp${controller#nvmep}n1
wait_for "/dev/$block"
wait_for "/dev/$namespace"
wait_for /dev/softgpu0

echo "controller /dev/$controller at $(np_address "$disk"), software GPU at $(np_address softgpu), Linux $(uname -r)"
sfdisk --quiet --wipe always "/dev/$block" <<'PARTS'
label: gpt
size=256MiB, name=fio
size=512MiB, name=ext4
size=256MiB, name=gpu
PARTS
wait_for "/dev/${block}p3"
mkfs.ext4 -q -F "/dev/${block}p2"

# Many small files and some larger ones. They are in memory, so that the disk is read for the other
# side of the comparison only.
tree=$(mktemp -d)
cp -a /usr/share/zoneinfo/America /usr/bin/bash /usr/bin/fio "$tree"

DEMO=$here/demo.sh "$program" "$controller" "$namespace" "${block}p1" "${block}p2" "${block}p3" \
	"$tree" "$tree.stop" "$seconds"
