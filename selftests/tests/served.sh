#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One program of the device library reaches each kind of storage through a served queue pair, with
# verified data: a namespace's block device, dm, a RAID 1 of md that loses a leg under load, a loop
# device, files of several file systems, and NVMe over Fabrics. remote/run has NVMe over TCP and NFS.
# kernels: 7
# iommu: off
# timeout: 180
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
disk=/dev/${node}n1
sectors=65536
nqn=nqn.2026-11.nvme-peer:served
config=/sys/kernel/config/nvmet
work=$(mktemp -d)
mkdir "$work/ext4" "$work/tmpfs" "$work/xfs" "$work/btrfs"
np_until 200 test -b "$disk"

leave() {
	nvme disconnect -n "$nqn"
	rm -f "$config/ports/1/subsystems/$nqn"
	rmdir "$config/ports/1" "$config/subsystems/$nqn/namespaces/1" "$config/subsystems/$nqn"
	umount "$work/xfs" "$work/btrfs"
	umount "$work/ext4" "$work/tmpfs"
	losetup -D
	dmsetup remove np-raid
	dmsetup remove np-leg0 np-leg1 np-meta0 np-meta1
	dmsetup remove np-linear
} >/dev/null 2>&1
trap leave EXIT

# serves PATH [SECONDS]: writes and reads, all verified.
serves() {
	timeout 40 /build/user/nvme-peer serve check "$1" --write --force --seconds "${2:-1}" --size 8192
}

# has MODULE NAME: or skips the test.
has() {
	modprobe -q "$1" && return
	ktap_skip "$2" "no module $1"
	return 1
}

# dm NAME: its node; a guest without udev has no other.
dm() {
	echo "/dev/$(dmsetup info -c --noheadings -o blkdevname "$1")"
}

# make_dm NAME TARGET...
make_dm() {
	dmsetup create "$1" --table "0 $sectors ${*:2}" && np_until 100 test -b "$(dm "$1")"
}

# make_leg NUMBER: data and metadata.
make_leg() {
	make_dm "np-leg$1" linear "$disk" $((($1 + 1) * sectors)) &&
		make_dm "np-meta$1" linear "$disk" $((($1 + 3) * sectors)) &&
		dd if=/dev/zero of="$(dm "np-meta$1")" bs=1M count=1 status=none
}

make_raid() {
	make_leg 0 && make_leg 1 && make_dm np-raid raid raid1 2 0 nosync 2 \
		"$(dm np-meta0)" "$(dm np-leg0)" "$(dm np-meta1)" "$(dm np-leg1)"
}

pull_leg() {
	dmsetup suspend --noflush np-leg0 && dmsetup load np-leg0 --table "0 $sectors error" && dmsetup resume np-leg0
}

# Health of the legs: A is alive, D is dead.
leg_is_dead() {
	dmsetup status np-raid | grep -q ' DA '
}

# In one round, unless the leg is pulled after its end.
serve_until_a_leg_is_dead() {
	for _ in {1..3}; do
		serves "$(dm np-raid)" 4 || return
		np_until 50 leg_is_dead && return
	done
	return 1
}

serves_while_a_leg_fails() {
	local serving
	serve_until_a_leg_is_dead &
	serving=$!
	sleep 2
	pull_leg || return
	wait "$serving"
}

make_ext4() {
	mkfs.ext4 -q -F "$(dm np-linear)" && mount "$(dm np-linear)" "$work/ext4" &&
		head -c 4M /dev/urandom >"$work/ext4/file"
}

make_tmpfs() {
	mount -t tmpfs -o size=8M none "$work/tmpfs" && head -c 4M /dev/urandom >"$work/tmpfs/file"
}

make_loop() {
	loop=$(losetup -f --show "$work/tmpfs/file") && np_until 100 test -b "$loop"
}

# make_in_memory FILESYSTEM: on a loop device, as some file systems are larger than this disk.
make_in_memory() {
	truncate -s 400M "/tmp/np-$1" && "mkfs.$1" -q "/tmp/np-$1" && mount -o loop "/tmp/np-$1" "$work/$1" &&
		rm "/tmp/np-$1" && head -c 4M /dev/urandom >"$work/$1/file"
}

# The disk of the fabrics controller.
fabrics_disk() {
	local subsystem
	subsystem=$(grep -lxs "$nqn" /sys/class/nvme-subsystem/*/subsysnqn) || return
	compgen -G "${subsystem%/*}/nvme*n1"
}

make_fabrics() {
	local subsystem=$config/subsystems/$nqn
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return
	mkdir "$subsystem" "$subsystem/namespaces/1" "$config/ports/1" &&
		echo 1 >"$subsystem/attr_allow_any_host" &&
		echo -n "$disk" >"$subsystem/namespaces/1/device_path" &&
		echo 1 >"$subsystem/namespaces/1/enable" &&
		echo loop >"$config/ports/1/addr_trtype" &&
		ln -s "$subsystem" "$config/ports/1/subsystems/$nqn" &&
		nvme connect -t loop -n "$nqn" -q nqn.2026-11.nvme-peer:host &&
		np_until 200 fabrics_disk
}

serves_fabrics() {
	serves "/dev/$(basename "$(fabrics_disk)")"
}

ktap_check "a namespace's block device" serves "$disk"
if has dm-mod "dm"; then
	ktap_check "make dm-linear" make_dm np-linear linear "$disk" 0
	ktap_check "dm-linear" serves "$(dm np-linear)"
	ktap_check "make ext4 on it" make_ext4
	ktap_check "a file on ext4" serves "$work/ext4/file"
fi
if has dm-raid "RAID 1 of md"; then
	ktap_check "make a RAID 1 of md" make_raid
	ktap_check "RAID 1 of md that loses a leg" serves_while_a_leg_fails
fi
ktap_check "make tmpfs" make_tmpfs
ktap_check "a file on tmpfs" serves "$work/tmpfs/file"
if has loop "a loop device"; then
	make_loop
	ktap_check "a loop device" serves "${loop:-}"
fi
if has nvme-loop "NVMe over Fabrics"; then
	umount "$work/ext4" && dmsetup remove np-linear
	ktap_check "export the namespace by nvmet, and connect" make_fabrics
	ktap_check "NVMe over Fabrics" serves_fabrics
fi
for name in xfs btrfs; do
	has "$name" "a file on $name" || continue
	ktap_check "make $name" make_in_memory "$name"
	ktap_check "a file on $name" serves "$work/$name/file"
done
ktap_end
