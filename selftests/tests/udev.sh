#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# udev and nvme-peer: aliases under which nvme-cli opens its nodes, the same links to disks and the
# same attributes as with the in-tree driver, and a choice of driver that survives a rescan of the
# bus.
# kernels: 7
# iommu: off
# timeout: 180
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/lib/udev.sh

PATH=/build/user:$PATH
address=$(np_address np1)
device=/sys/bus/pci/devices/$address

start_udev() {
	udev_spare nobody
	udev_start
}

leave() {
	udev_stop
	[[ $(driver) == nvme-peer ]] || { np_unbind np1 && np_bind np1; }
	modprobe -r nvme
	udev_spare ''
}

driver() {
	basename "$(readlink "$device/driver")"
}

# settled COMMAND...: wait until the command succeeds and udev has processed all its events.
settled() {
	np_until 400 "$@" >/dev/null && udevadm settle
}

# A disk's uevent is sent some time after its node exists.
linked() {
	local disk
	disk=$("$1") && [[ /dev/disk/by-path/pci-$address-nvme-1 -ef /dev/$disk ]]
}

has_driver() {
	[[ $(driver) == "$1" ]]
}

# The node of namespace 1, with the in-tree driver and with nvme-peer.
their_disk() {
	local nsid
	nsid=$(grep -lxs 1 "$device"/nvme/nvme*/nvme*n*/nsid) && basename "$(dirname "$nsid")"
}
our_disk() {
	[[ -b /dev/$(np_node np1)n1 ]] && echo "$(np_node np1)n1"
}

# udev's properties and links of a disk, except those that differ for each device, and the aliases.
known_of() {
	udevadm info --query=property --name="$1" | grep -E '^ID_(PATH|PATH_TAG|SERIAL|SERIAL_SHORT|MODEL|WWN|REVISION|NSID)=' | sort
	udevadm info --query=symlink --name="$1" | tr ' ' '\n' | grep -E '^disk/by-(id|path)/' | sort
}

# The attributes of a controller that both drivers have, some since 7.3, with their values.
attributes_of() {
	(cd "$1" && grep -s '' model serial firmware_rev subsysnqn state cntlid cntrltype dctype transport \
		address numa_node queue_count sqsize kato quirks admin_timeout io_timeout \
		passthru_err_log_enabled diag/reset_count diag/command_error_count)
}

# The attributes of a disk.
disk_attributes_of() {
	(cd "/sys/block/$1" && grep -s '' nsid wwid csi metadata_bytes nuse passthru_err_log_enabled \
		diag/command_retries_count diag/command_error_count)
}

# The uevent of a controller, except for its number.
uevent_of() {
	grep -vE '^(MAJOR|MINOR|DEVNAME)=' "$1/uevent" | sort
}

give_to_kernel() {
	[[ ! -e $device/driver ]] || np_unbind np1 || return
	modprobe nvme && np_bind np1 nvme && settled linked their_disk
}

alike() {
	diff "/run/np/$1.theirs" "/run/np/$1.ours"
}

says() {
	local pattern=$1 said
	shift
	said=$("$@" 2>&1)
	local status=$?
	echo "$said"
	((status == 0)) && grep -qE "$pattern" <<<"$said"
}

# leads ALIAS NODE
leads() {
	np_until 200 test "/dev/$1" -ef "/dev/$2" && return
	ls -l "/dev/$1" "/dev/$2"
	return 1
}

trap leave EXIT
ktap_check "udev runs" start_udev || exit 1

ktap_check "bound to the in-tree driver" give_to_kernel || exit 1
known_of "/dev/$(their_disk)" >/run/np/disk.theirs
uevent_of "$device"/nvme/nvme* >/run/np/controller.theirs
attributes_of "$device"/nvme/nvme* >/run/np/attributes.theirs
disk_attributes_of "$(their_disk)" >/run/np/disk_attributes.theirs
ktap_is "by-path link of namespace 1" "$(grep -c "^disk/by-path/pci-$address-nvme-1\$" /run/np/disk.theirs)" 1

ktap_check "bind" nvme-peer bind "$address"
settled linked our_disk
node=$(np_node np1)
disk=${node}n1
known_of "/dev/$disk" >/run/np/disk.ours
uevent_of "$device/nvme-peer/$node" >/run/np/controller.ours
ktap_check "the disk has the same links" alike disk
attributes_of "$device/nvme-peer/$node" >/run/np/attributes.ours
disk_attributes_of "$disk" >/run/np/disk_attributes.ours
ktap_check "the controller has the same uevent" alike controller
ktap_check "the controller has the same attributes" alike attributes
ktap_check "the disk has the same attributes" alike disk_attributes

number=$((2000000 + ${node#nvmep}))
ktap_check "alias of the controller" leads "nvme$number" "$node"
ktap_check "alias of its second namespace" leads "nvme${number}n2" "${node}n2"
ktap_check "alias of the generic node" leads "ng${number}n1" "ngp${disk#nvmep}"

ktap_check "id-ctrl" says '^sn +: np1' nvme id-ctrl "/dev/nvme$number"
ktap_check "id-ns" says '^nsze +: 0x' nvme id-ns "/dev/nvme${number}n1"
ktap_check "get-ns-id" says 'namespace-id:2' nvme get-ns-id "/dev/ng${number}n2"
head -c 4096 /dev/urandom >/tmp/udev.data
ktap_check "write" nvme write "/dev/ng${number}n1" --start-block=4096 --block-count=7 --data-size=4096 --data=/tmp/udev.data
dd if="/dev/nvme${number}n1" of=/tmp/udev.back iflag=direct bs=4096 skip=512 count=1 status=none
ktap_check "the disk reads the written data" cmp /tmp/udev.data /tmp/udev.back
make_partition() {
	echo 'start=4096' | sfdisk --quiet --no-reread "/dev/nvme${number}n1" && settled test -e "/dev/nvme${number}n1p1"
}
ktap_check "a partition" make_partition
ktap_check "the partition has an alias" leads "nvme${number}n1p1" "${disk}p1"
ktap_check "the partition begins with the written data" cmp -n 4096 /tmp/udev.data "/dev/nvme${number}n1p1"
ktap_check "the partition has a by-path link" leads "disk/by-path/pci-$address-nvme-1-part1" "${disk}p1"

ktap_check "unbind" nvme-peer unbind "$address"
settled linked their_disk
ktap_is "no alias is left" "$(cd /dev && compgen -G 'n[vg]*20000*')" ''
ktap_check "the by-path link leads to the in-tree driver's disk" leads "disk/by-path/pci-$address-nvme-1" "$(their_disk)"

# Remove the function and rescan; udev and the in-tree driver see it at once.
scan_again() {
	echo 1 >"$device/remove"
	settled test ! -e "$device" || return
	echo 1 >/sys/bus/pci/rescan
	settled has_driver "$1"
	ktap_same "$(driver)" "$1"
}
ktap_check "bind --persist" nvme-peer bind --persist "$address"
settled linked our_disk
ktap_check "after a rescan nvme-peer binds it" scan_again nvme-peer
settled linked our_disk
ktap_check "the alias exists after the rescan" leads "nvme$((2000000 + $(np_node np1 | tr -dc 0-9)))n1" "$(our_disk)"
boot() {
	give_to_kernel || return
	udevadm trigger --settle --action=add "$device"
	ktap_same "$(driver)" nvme-peer
}
ktap_check "at boot taken from the in-tree driver" boot
ktap_check "unbind --persist" nvme-peer unbind --persist "$address"
settled linked their_disk
ktap_check "after a rescan the in-tree driver binds it" scan_again nvme
settled linked their_disk
ktap_end
