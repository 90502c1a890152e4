#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An operator's week on one machine, under load: a disk of the in-tree driver is bound for good, is
# mounted by its link while files are written and a peer reads, is trimmed, reset, removed and
# inserted, survives a boot and another version of the module, and goes back. No byte of the files
# changes, and nothing is left behind. (packages/machine has the packages, boots, and a new kernel.)
# long: yes
# kernels: 6.12 7
# iommu: on
# timeout: 300
# last: yes
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/lib/udev.sh

PATH=/build/user:$PATH
address=$(np_address np1)
device=/sys/bus/pci/devices/$address
link=/dev/disk/by-path/pci-$address-nvme-1
mount=/run/np/week
sums=/run/np/week.sums
load=''
np0_bound=''

driver() {
	basename "$(readlink "$device/driver")"
}

# bound_to DRIVER: until udev has made the links to its disk.
bound_to() {
	np_until 400 has_disk "$1" && udevadm settle
	ktap_same "$(driver)" "$1"
}

has_disk() {
	local disk
	disk=$(basename "$(readlink -f "$link")")
	[[ -b $link && $(driver) == "$1" ]] || return
	case $1 in
	nvme) [[ $disk != nvmep* ]] ;;
	*) [[ $disk == nvmep* ]] ;;
	esac
}

# What may be left behind: rules, links, nodes, aliases, modules.
traces() {
	find /etc/udev /usr/lib/udev/rules.d -type f | sort
	(cd /dev && compgen -G 'n[vg]*p*') | grep -E '^(nvme|ng)p|20000' | sort
	find /dev/disk -lname '*nvmep*' | sort
	lsmod | awk '$1 ~ /^nvme/ { print $1 }' | sort
}

leave() {
	touch /run/np/week.end
	[[ ! $load ]] || wait "$load"
	swapoff "$mount/swap" 2>/dev/null
	umount "$mount" 2>/dev/null
	udev_stop
	[[ $(driver) == nvme-peer ]] || { np_unbind np1 && np_bind np1; }
	np_bad_set 34 0
	modprobe -r nvme
	udev_spare ''
	[[ ! $np0_bound ]] || np_bind np0
}

# --- steps ----------------------------------------------------------------------

give_to_kernel() {
	[[ ! -e $device/driver ]] || np_unbind np1 || return
	modprobe nvme && np_bind np1 nvme && bound_to nvme
}

make_files() {
	local i
	mkfs.ext4 -q -F -L week "$link" && mount "$link" "$mount" || return
	mkdir "$mount/files"
	for ((i = 0; i < 40; i++)); do
		head -c $((i * 40961)) /dev/urandom >"$mount/files/$i" || return
	done
	(cd "$mount/files" && sha256sum -- *) >"$sums"
	umount "$mount"
}

files_are_whole() {
	mountpoint -q "$mount" || mount LABEL=week "$mount" || return
	echo 3 >/proc/sys/vm/drop_caches
	(cd "$mount/files" && sha256sum --quiet -c "$sums")
}

# A file that is written and read back past the page cache, again and again.
start_load() {
	rm -f /run/np/week.{end,status}
	head -c 4M /dev/urandom >/run/np/week.random
	(
		trap 'echo $? >/run/np/week.status' EXIT
		while [[ ! -e /run/np/week.end ]]; do
			dd if=/run/np/week.random of="$mount/load" bs=64k oflag=direct status=none || exit 1
			dd if="$mount/load" bs=64k iflag=direct status=none | cmp - /run/np/week.random || exit 2
		done
	) >/run/np/week.load 2>&1 &
	load=$!
}

peer_reads() {
	nvme-peer qp check "$(np_node np1)" "ngp$(np_node np1 | tr -dc 0-9)n1"
}

# fio while queue pairs come and go and read.
fio_beside_peers() {
	local status=0 peers
	(
		until [[ -e /run/np/week.fio_end ]]; do
			peer_reads >/run/np/week.peer || exit
		done
	) &
	peers=$!
	timeout -k 5 60 fio --name=week --directory="$mount" --size=8m --rw=randwrite --bs=16k --iodepth=8 \
		--ioengine=io_uring --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_async=0 || status=1
	touch /run/np/week.fio_end
	wait "$peers" || status=2
	return "$status"
}

# ktap_check runs in a subshell, which cannot wait for the load: that writes its status.
end_load() {
	touch /run/np/week.end
	np_until 400 test -s /run/np/week.status
	cat /run/np/week.load
	ktap_same "$(</run/np/week.status)" 0
}

trims() {
	dd if=/dev/zero of="$mount/trimmed" bs=1M count=16 conv=fsync status=none && rm "$mount/trimmed" && sync &&
		fstrim -v "$mount" | grep -E '[1-9][0-9]* bytes'
}

swaps() {
	dd if=/dev/zero of="$mount/swap" bs=1M count=16 conv=fsync status=none && chmod 600 "$mount/swap" &&
		mkswap -q "$mount/swap" && swapon "$mount/swap" && grep -q "$mount/swap" /proc/swaps &&
		swapoff "$mount/swap" && rm "$mount/swap"
}

# The second namespace is spare; a format waits for no peer, so none reads meanwhile.
formats() {
	nvme format "/dev/ngp$(np_node np1 | tr -dc 0-9)n2" --ses=0 --force
}

# A spare controller activates an image without a reset: it pauses, and reports the event. A read that
# waits for it does not fail, and the new revision is read.
activates_firmware() {
	local node revision status=0 reader
	np_bad_set 0 1 && np_bad_set 4 7 && np_bind badctrl && node=$(np_node badctrl) && np_until 200 test -b "/dev/${node}n1" || return
	revision=/sys/class/nvme-peer/$node/firmware_rev
	cat "$revision"
	dd if=/dev/urandom of=/run/np/week.image bs=4k count=16 status=none
	nvme fw-download "/dev/$node" --fw=/run/np/week.image && nvme fw-commit "/dev/$node" --slot=1 --action=3 || return
	np_bad_set 34 1 && np_bad_set 14 30102 && np_bad_set 11040 20322e39 || return
	dd if="/dev/${node}n1" of=/dev/null bs=64k count=16 iflag=direct status=none &
	reader=$!
	sleep 2
	kill -0 "$reader" && np_bad_set 34 0 && wait "$reader" || status=1
	np_until 200 grep -q '^9.2' "$revision" || status=2
	cat "$revision"
	np_unbind badctrl
	udev_spare none
	return "$status"
}

resets() {
	local i
	for ((i = 0; i < 3; i++)); do
		nvme-peer reset "$(np_node np1)" || return
	done
}

same_tree() {
	lsblk -ndo MODEL,SERIAL,TRAN,SIZE,LOG-SEC,PHY-SEC,DISC-MAX "$link" >/run/np/week.lsblk.ours
	cat /run/np/week.lsblk.ours
	diff /run/np/week.lsblk.theirs /run/np/week.lsblk.ours
}

pull_and_insert() {
	umount "$mount" || return
	echo 1 >"$device/remove"
	np_until 200 test ! -e "$device" || return
	echo 1 >/sys/bus/pci/rescan
	bound_to nvme-peer
}

# As udev of the root file system starts, the in-tree driver has the controller.
boots() {
	umount "$mount" || return
	give_to_kernel || return
	udevadm trigger --settle --action=add "$device"
	bound_to nvme-peer
}

# Another version of the module, as after an upgrade of the kernel.
upgrades() {
	local before after
	umount "$mount" || return
	before=$(</sys/module/nvme_peer/sections/.text)
	np_until 100 rmmod nvme_peer || return
	insmod "/usr/lib/modules/$(uname -r)/updates/nvme_peer.ko" || return
	after=$(</sys/module/nvme_peer/sections/.text)
	echo "text at $before, then $after"
	bound_to nvme-peer
}

goes_back() {
	umount "$mount" || return
	nvme-peer unbind "$address" --persist && bound_to nvme && ktap_same "$(<"$device/driver_override")" '(null)'
}

checks_clean() {
	umount "$mount" && e2fsck -f -n "$link"
}

# --- the week -------------------------------------------------------------------

trap leave EXIT
mkdir -p "$mount"
# Its links would come and go with the module.
np0_bound=$(np_node np0)
[[ ! $np0_bound ]] || np_unbind np0
udev_spare none
ktap_check "udev runs" udev_start || exit 1
ktap_check "the in-tree driver has the disk" give_to_kernel
traces >/run/np/week.before
ktap_check "files are written with the in-tree driver" make_files
lsblk -ndo MODEL,SERIAL,TRAN,SIZE,LOG-SEC,PHY-SEC,DISC-MAX "$link" >/run/np/week.lsblk.theirs

ktap_check "Monday: bind for good" nvme-peer bind "$address" --persist
ktap_check "the link leads to the new disk" bound_to nvme-peer
ktap_check "lsblk reports the same disk" same_tree
ktap_check "the files are whole" files_are_whole
start_load
ktap_check "Tuesday: fio and a peer at once" fio_beside_peers
ktap_check "trim" trims
ktap_check "swap" swaps
ktap_check "Wednesday: resets under load" resets
ktap_check "a peer reads after the resets" peer_reads
ktap_check "Thursday: format of a spare namespace under load" formats
ktap_check "firmware of a spare controller under load" activates_firmware
ktap_check "the load found no wrong byte" end_load
ktap_check "the files are whole after the load" files_are_whole
ktap_check "Friday: pulled and inserted" pull_and_insert
ktap_check "the files are whole after the return" files_are_whole
ktap_check "Saturday: boot" boots
ktap_check "the files are whole after the boot" files_are_whole
ktap_check "another version of the module" upgrades
ktap_check "the files are whole after the upgrade" files_are_whole
ktap_check "Sunday: back to the in-tree driver" goes_back
ktap_check "the files are whole with the in-tree driver" files_are_whole
ktap_check "the file system is clean" checks_clean
traces >/run/np/week.after
ktap_check "nothing is left behind" diff /run/np/week.before /run/np/week.after
ktap_end
