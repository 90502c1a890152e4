#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What other programs find of a disk, with the in-tree driver and then with nvme-peer on one
# controller: smartctl, lsblk, libblkio, and the files that xNVMe reads (lib/xnvme_dev.c and
# lib/xnvme_be_linux_*.c at d835467a9d52). nvmet passes commands through to the in-tree driver only.
# kernels: 7
# iommu: on
# timeout: 120
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/lib/tools.sh
. /selftests/lib/udev.sh

address=$(np_address np1)
device=/sys/bus/pci/devices/$address
link=/dev/disk/by-path/pci-$address-nvme-1
work=/run/np/other
subsystem=/sys/kernel/config/nvmet/subsystems/np
mkdir -p "$work"/nvme{,-peer}

leave() {
	rmdir "$subsystem"/namespaces/1 "$subsystem"
	udev_stop
	np_unbind np1
	np_bind np1
	modprobe -r nvmet nvme
	udev_spare ''
} >/dev/null 2>&1

# Nodes of the controller and of its namespace 1, with the driver in $driver; the in-tree driver
# numbers namespaces in the order of their discovery.
node() {
	basename "$device"/nvme*/nvme*
}
disk() {
	basename "$(dirname "$(grep -lxs 1 "$device"/nvme*/nvme*/nvme*n*/nsid)")"
}
generic() {
	disk | sed 's/^nvme/ng/'
}

has_disk() {
	[[ -b $link && -c /dev/$(generic) ]]
}

give_to() {
	[[ ! -e $device/driver ]] || np_unbind np1 || return
	np_bind np1 "$1" && np_until 100 has_disk && udevadm settle
}

# --- programs -------------------------------------------------------------------

# Names and counters that advance: the one becomes NODE, the other N.
smart() {
	smartctl "$@" 2>&1 | sed -E -e "s/\b(nvme|ng)(p?)[0-9]+(n[12])?\b/NODE/g" -e 's/^(Local Time is:).*/\1/' \
		-e '/^(Data Units|Host|Controller Busy|Power On|Error Information Log Entries)/s/[0-9].*/N/' \
		-e '/"(data_units|host)_[a-z]*"|"(hours|minutes|power_on_minutes|controller_busy_time|num_err_log_entries)"/s/[0-9]+/N/' \
		-e '/"(time_t|asctime)"/d'
	echo "exit status ${PIPESTATUS[0]}"
}

smart_by_controller() {
	smart "$@" "/dev/$(node)"
}
smart_by_disk() {
	smart "$@" "/dev/$(disk)"
}
smart_by_generic_node() {
	smart -d nvme "$@" "/dev/$(generic)"
}
smart_by_id() {
	smart -d nvme "$@" "$(by_id)"
}

# smartctl does not recognise these names without -d nvme.
untyped() {
	smart -a "/dev/$(generic)"
	smart -a "$(by_id)"
}

# The in-tree driver's own name, or the alias in its form.
smart_by_alias() {
	local alias
	alias=$(node)
	[[ $driver == nvme ]] || alias=nvme$((2000000 + $(tr -dc 0-9 <<<"$alias")))
	smart "$@" "/dev/$alias"
}

by_id() {
	udevadm info --query=symlink --name="/dev/$(disk)" | tr ' ' '\n' | sed -n 's,^disk/by-id/nvme-nvme,/dev/&,p'
}

block_list() {
	lsblk -ndo MODEL,SERIAL,REV,TRAN,WWN,SIZE,PHY-SEC,LOG-SEC,MIN-IO,OPT-IO,ROTA,RO,RM,DISC-GRAN,DISC-MAX,ZONED,HOTPLUG,TYPE \
		"/dev/$(disk)"
}

blkio_passthrough() {
	/selftests/lib/blkio.py nvme-io_uring "/dev/$(generic)"
}
blkio_block() {
	/selftests/lib/blkio.py io_uring "/dev/$(disk)"
}

# Its backend for block devices reads these, and the registers by resource0 of the controller.
xnvme_block() {
	(cd "/sys/block/$(disk)" && grep '' size queue/{logical_block_size,physical_block_size,minimum_io_size,zoned} &&
		stat -L -c '%a %s' device/device/resource0)
}

facts=(smart_by_{controller,disk,generic_node,id,alias} untyped block_list blkio_{passthrough,block} xnvme_block)

collect() {
	local driver=$1 fact
	for fact in "${facts[@]}"; do
		case $fact in
		smart_*) "$fact" -a && "$fact" -j -a ;;
		*) "$fact" ;;
		esac >"$work/$driver/$fact" 2>&1
	done
	mkdir -p "/host/out/other_programs/$driver"
	cp "$work/$driver"/* "/host/out/other_programs/$driver/"
}

# alike FACT PATTERN: the same with both drivers, and what the pattern matches.
alike() {
	diff "$work"/nvme{,-peer}/"$1" && grep -E "$2" "$work/nvme-peer/$1"
}

# xNVMe finds neither limit below /sys/class/nvme, and assumes 32 segments of 512 bytes, less one.
xnvme_assumes_less() {
	local queue
	queue=/sys/block/$(disk)/queue
	cd "$queue" && grep '' max_segments physical_block_size &&
		((($(<max_segments) - 1) * $(<physical_block_size) >= 31 * 512))
}

# The limit that the documentation names instead.
largest_command() {
	local kilobytes
	kilobytes=$(<"/sys/block/$(disk)/queue/max_hw_sectors_kb")
	grep -qx "max_transfer: $((kilobytes / 1024)) MiB" <<<"$(/build/user/nvme-peer info "$(node)")" &&
		nvme read "/dev/$(generic)" --namespace-id=1 --data-size=$((kilobytes * 1024)) --block-count=$((kilobytes * 2 - 1)) \
			--data="$work/data" && [[ $(stat -c %s "$work/data") == $((kilobytes * 1024)) ]]
}

# target PATH [passthru]: nvmet enables it.
target() {
	local folder=$subsystem/${2:-namespaces/1} status=0
	mkdir -p "$subsystem" "$folder"
	echo -n "$1" >"$folder/device_path" && echo 1 >"$folder/enable" || status=1
	echo 0 >"$folder/enable"
	rmdir "$subsystem/namespaces/1" "$subsystem" 2>/dev/null
	return "$status"
}

refuses() {
	! "$@"
}

trap leave EXIT
udev_spare none
np_tools || { ktap_skip "other programs" "set-up was without tools"; ktap_end; }
ktap_check "udev runs" udev_start || exit 1
modprobe -a nvme nvmet
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
driver=nvme
ktap_check "the in-tree driver has the disk" give_to nvme
collect nvme
ktap_check "nvmet passes commands to the in-tree driver" target "/dev/$(node)" passthru
driver=nvme-peer
ktap_check "nvme-peer has the disk" give_to nvme-peer
collect nvme-peer
for fact in smart_by_{controller,disk,generic_node,id,alias}; do
	ktap_check "smartctl, ${fact#smart_}" alike "$fact" '"passed": true'
done
ktap_check "smartctl, names that it does not recognise" alike untyped 'exit status 1'
ktap_check lsblk alike block_list 'nvme '
ktap_check "libblkio, passthrough" alike blkio_passthrough '^discard 1 0'
ktap_check "libblkio, block device" alike blkio_block '^read 1 0'
ktap_check "xNVMe, files of the block device" alike xnvme_block '^600 16384'
ktap_check "xNVMe, assumed limits" xnvme_assumes_less
ktap_check "the largest command" largest_command
ktap_check "nvmet does not pass commands to nvme-peer" refuses target "/dev/$(node)" passthru
ktap_check "nvmet exports the block device" target "/dev/$(disk)"
ktap_end
