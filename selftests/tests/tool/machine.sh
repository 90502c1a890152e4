# SPDX-License-Identifier: GPL-2.0-only
# Fake machines: sysfs and procfs in a directory for NVME_PEER_SYSROOT.
# Sourced.
#
#   machine_begin DIRECTORY            an empty machine; the functions below work on it
#   machine_function ADDRESS ROOT|ABOVE CLASS ID   a PCI function; ROOT is pci0000:00
#   machine_config ADDRESS TYPE [ACS]  its configuration space: PCIe port type, ACS control
#   machine_driver ADDRESS NAME        bound to it
#   machine_group ADDRESS GROUP TYPE   its IOMMU group
#   machine_disk ADDRESS NODE DISK     node and disk of a controller of the kernel's nvme driver

machine_begin() {
	machine=$1
	mkdir -p "$machine"/sys/bus/pci/{devices,drivers} "$machine"/sys/class/block "$machine"/proc/{self,sys/kernel} \
		"$machine"/dev "$machine"/etc/udev/rules.d "$machine"/boot
	: >"$machine/sys/bus/pci/drivers_probe"
	echo 6.12.43-made-up >"$machine/proc/sys/kernel/osrelease"
	printf 'CONFIG_%s=y\n' DMA_SHARED_BUFFER PCI_P2PDMA UDMABUF >"$machine/boot/config-6.12.43-made-up"
	printf 'CapEff:\t000001ffffffffff\n' >"$machine/proc/self/status"
	: >"$machine/proc/self/mountinfo"
}

# machine_place ADDRESS: its directory below the root.
machine_place() {
	local link
	link=$(readlink "$machine/sys/bus/pci/devices/$1")
	echo "/sys/${link#../../../}"
}

machine_function() {
	local address=$1 above=/sys/devices/$2 class=$3 id=$4 place
	[[ $2 == pci* ]] || above=$(machine_place "$2")
	place=$above/$address
	mkdir -p "$machine$place"
	ln -s "../../..${place#/sys}" "$machine/sys/bus/pci/devices/$address"
	echo "$class" >"$machine$place/class"
	echo "0x${id%:*}" >"$machine$place/vendor"
	echo "0x${id#*:}" >"$machine$place/device"
	echo '(null)' >"$machine$place/driver_override"
}

# bytes FILE OFFSET HEX...: write bytes; the caller splits little-endian words.
machine_bytes() {
	local file=$1 offset=$2
	shift 2
	printf '%b' "$(printf '\\x%s' "$@")" | dd of="$file" bs=1 seek=$((offset)) conv=notrunc status=none
}

# The PCIe capability is at 0x40; ACS, if present, at 0x140 after another one at 0x100.
machine_config() {
	local address=$1 type=$2 acs=${3:-} config
	config=$machine$(machine_place "$address")/config
	truncate -s 4096 "$config"
	machine_bytes "$config" 0x34 40
	machine_bytes "$config" 0x40 10 00 "$(printf %02x $((type << 4 | 2)))"
	[[ $acs ]] || return 0
	machine_bytes "$config" 0x100 01 00 01 14
	machine_bytes "$config" 0x140 0d 00 01 00 ff 00 "$(printf %02x "$acs")"
}

machine_driver() {
	mkdir -p "$machine/sys/bus/pci/drivers/$2"
	: >"$machine/sys/bus/pci/drivers/$2/unbind"
	ln -sfn "$(machine_up "$1")bus/pci/drivers/$2" "$machine$(machine_place "$1")/driver"
}

# From the directory of a function to sys/.
machine_up() {
	machine_place "$1" | sed 's|^/sys/||; s|[^/]*|..|g; s|$|/|'
}

machine_group() {
	mkdir -p "$machine/sys/kernel/iommu_groups/$2"
	echo "$3" >"$machine/sys/kernel/iommu_groups/$2/type"
	ln -s "$(machine_up "$1")kernel/iommu_groups/$2" "$machine$(machine_place "$1")/iommu_group"
}

machine_link() {
	echo "$2" >"$machine$(machine_place "$1")/current_link_speed"
	echo "$3" >"$machine$(machine_place "$1")/current_link_width"
}

# machine_bar ADDRESS BYTES: its largest region, the second of six.
machine_bar() {
	{
		echo '0x0000000092000000 0x0000000092ffffff 0x0000000000040200'
		printf '0x%016x 0x%016x 0x000000000014220c\n' $((1 << 40)) $(((1 << 40) + $2 - 1))
		printf '0x0000000000000000 0x0000000000000000 0x0000000000000000\n%.0s' {3..13}
	} >"$machine$(machine_place "$1")/resource"
}

# machine_block PLACE NAME NUMBER: a disk or partition.
machine_block() {
	mkdir -p "$machine$1/$2/holders"
	echo "$3" >"$machine$1/$2/dev"
	ln -s "../..${1#/sys}/$2" "$machine/sys/class/block/$2"
	: >"$machine/dev/$2"
}

machine_disk() {
	local place
	place=$(machine_place "$1")/nvme/$2
	mkdir -p "$machine$place"
	machine_block "$place" "$3" "259:$(wc -l < <(ls "$machine/sys/class/block"))"
}
