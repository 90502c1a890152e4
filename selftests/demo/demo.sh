#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The demonstration, inside the guest: give one controller to nvme-peer, divide
# its disk into three parts, and let fio, ext4 and the stand-in GPU work on them
# at once.
#
# usage: demo.sh [SECONDS]       how long all three run together at least, default 20
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/bind.sh"
seconds=${1:-20}
program=${DEMO_PROGRAM:-/build/user/demo}

# wait_for FILE: devices appear a moment after their cause.
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
np_bind np0
controller=$(np_node np0)
disk=${controller}n1
namespace=ngp${controller#nvmep}n1
wait_for "/dev/$disk"
wait_for "/dev/$namespace"
wait_for /dev/softgpu0

echo "controller /dev/$controller at $(np_address np0), stand-in GPU at $(np_address softgpu), Linux $(uname -r)"
sfdisk --quiet --wipe always "/dev/$disk" <<'PARTS'
label: gpt
size=256MiB, name=fio
size=512MiB, name=ext4
size=256MiB, name=gpu
PARTS
wait_for "/dev/${disk}p3"
mkfs.ext4 -q -F "/dev/${disk}p2"

# Many small files and some larger ones.  They lie in memory, so that the disk
# is read for the other side of the comparison only.
tree=$(mktemp -d)
cp -a /usr/share/zoneinfo/America /usr/bin/bash /usr/bin/fio "$tree"

DEMO=$here/demo.sh "$program" "$controller" "$namespace" "${disk}p1" "${disk}p2" "${disk}p3" \
	"$tree" "$tree.stop" "$seconds"
