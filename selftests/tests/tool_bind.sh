#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvme-peer bind and unbind: take a controller from the in-tree driver unless its disk is in use,
# give it back, and take it again after a rescan of the bus.
# kernels: 7
# iommu: off
# timeout: 120
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

PATH=/build/user:$PATH
address=$(np_address np1)
device=/sys/bus/pci/devices/$address
mount=$(mktemp -d)

driver() {
	basename "$(readlink "$device/driver")"
}

# wait_for FILE: a node of the controller or of its disk.
wait_for() {
	np_until 400 compgen -G "$1" >/dev/null && return
	echo "no $1"
	return 1
}

# Bind this function only: drivers_probe would bind all functions without a driver.
give_to_kernel() {
	[[ ! -e $device/driver ]] || np_unbind np1 || return
	echo 0 >/sys/bus/pci/drivers_autoprobe
	modprobe nvme || return
	echo "$address" >/sys/bus/pci/drivers/nvme/bind || return
	wait_for_disk
}

# The first namespace's disk, in sysfs and in /dev.
disk_is_there() {
	local nsid
	nsid=$(grep -lxs 1 "$device"/nvme/nvme*/nvme*n*/nsid) && [[ -b /dev/$(basename "$(dirname "$nsid")") ]]
}

wait_for_disk() {
	np_until 400 disk_is_there && return
	echo "no disk"
	return 1
}

leave() {
	umount "$mount" 2>/dev/null
	np_bind np1
	modprobe -r nvme
	echo 1 >/sys/bus/pci/drivers_autoprobe
}

# refuses PATTERN VERB: the command fails with the pattern, and the driver is unchanged.
refuses() {
	local pattern=$1 verb=$2 before output status=0
	before=$(driver)
	output=$(nvme-peer "$verb" "$address" 2>&1) || status=$?
	echo "$output"
	((status == 1)) && grep -q "$pattern" <<<"$output" && [[ $(driver) == "$before" ]]
}

bound_to() {
	echo "its driver is $(driver), its override $(<"$device/driver_override")"
	[[ $(driver) == "$1" && $(<"$device/driver_override") == "$2" ]]
}

trap leave EXIT
ktap_check "bound to the in-tree driver" give_to_kernel || exit 1
node=/dev/$(basename "$device"/nvme/nvme*)
# The kernel numbers disks in the order in which they are found.
disk=/dev/$(basename "$(dirname "$(grep -lxs 1 "$device"/nvme/nvme*/nvme*n*/nsid)")")

# The disk is mounted in another mount namespace.
hidden_mount() {
	local holder status
	unshare --mount --propagation private sh -c 'mount "$1" "$2" && echo mounted && read -r end' sh "$disk" "$mount" \
		<"$mount.hold" >"$mount.said" &
	holder=$!
	exec {hold}>"$mount.hold"
	read -r _ <"$mount.said"
	refuses 'opened exclusively' bind
	status=$?
	exec {hold}>&-
	wait "$holder"
	# The kernel releases it a moment after the last process.
	np_until 100 nvme-peer bind "$address" --dry-run >/dev/null 2>&1
	return "$status"
}

mkfs.ext4 -q -F "$disk" 16M
mount "$disk" "$mount"
ktap_check "a mounted disk is refused" refuses "${disk#/dev/} is mounted on $mount" bind
ktap_check "the mounted file system still works" dd if=/dev/zero of="$mount/file" bs=4k count=4 conv=fsync status=none
umount "$mount"
mkfifo "$mount.hold" "$mount.said"
ktap_check "a mount in another namespace is refused" hidden_mount
mkswap -q "$disk" 2>/dev/null
if swapon "$disk"; then
	ktap_check "swap is refused" refuses "${disk#/dev/} is swap" bind
	swapoff "$disk"
else
	ktap_skip "swap" "the kernel has none"
fi
if modprobe -q dm-mod && dmsetup create np-held --table "0 2048 linear $disk 0"; then
	ktap_check "a disk held by device-mapper is refused" refuses "held by dm-[0-9]* (device-mapper np-held)" bind
	dmsetup remove np-held
else
	ktap_skip "device-mapper" "the kernel has none"
fi

sum=$(head -c 1M "$disk" | sha256sum)
ktap_check "a dry run" nvme-peer bind "$address" --dry-run
ktap_check "the dry run changes nothing" bound_to nvme '(null)'
ktap_check "bind by the node" nvme-peer bind "$node"
ktap_check "bound to nvme-peer" bound_to nvme-peer nvme-peer
wait_for "/dev/$(np_node np1)n1"
ours=/dev/$(np_node np1)n1
ktap_is "the disk has the same data" "$(head -c 1M "$ours" | sha256sum)" "$sum"
mkfs.ext4 -q -F "$ours" 16M
mount "$ours" "$mount"
ktap_check "unbind refuses a mounted disk" refuses "is mounted on $mount" unbind
umount "$mount"
ktap_check "unbind" nvme-peer unbind "$address"
ktap_check "bound to the in-tree driver again" bound_to nvme '(null)'
ktap_check "the disk is back" wait_for_disk

# udev does not run in this test (it does in udev.sh): the rule's command is executed here.
keep() {
	mkdir -p /etc/udev/rules.d && nvme-peer bind --persist "$address"
}
scan_again() {
	echo 1 >"$device/remove"
	echo 1 >/sys/bus/pci/rescan
	wait_for "$device/class" && [[ ! -e $device/driver ]] && echo "$address" >/sys/bus/pci/drivers/nvme/bind
}
run_rule() {
	local command
	command=$(sed -n 's/.*RUN+="\([^"]*\)".*/\1/p' "/etc/udev/rules.d/60-nvme-peer-$address.rules")
	# shellcheck disable=SC2086 # a command line
	env -i $command
}
doctor_says() {
	local said
	said=$(nvme-peer doctor)
	echo "$said"
	grep -q "$1" <<<"$said"
}
ktap_check "bind --persist" keep
ktap_check "after a rescan the in-tree driver binds it" scan_again
ktap_check "run the udev rule" run_rule
ktap_check "bound to nvme-peer by the rule" bound_to nvme-peer nvme-peer
ktap_check "doctor reports the binding" doctor_says "ok *disk *$address: bound to nvme-peer, as "
ktap_check "unbind --persist" nvme-peer unbind --persist "$address"
ktap_check "the rule is removed" test ! -e "/etc/udev/rules.d/60-nvme-peer-$address.rules"
ktap_end
