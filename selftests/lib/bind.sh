# SPDX-License-Identifier: GPL-2.0-only
# Bind controllers to nvme-peer and unbind them. Sourced by tests in a guest.

# np_address NAME: the PCI address of a controller (np0, np1, badctrl) or of the software GPU
# (softgpu). An address stays as it is.
np_address() {
	if [[ -f /run/np/$1 ]]; then
		cat "/run/np/$1"
	else
		echo "$1"
	fi
}

# np_bind NAME [DRIVER]: bind by driver_override, as nvme-peer has no PCI ID table to match.
np_bind() {
	local address driver=${2:-nvme-peer} device
	address=$(np_address "$1")
	device=/sys/bus/pci/devices/$address
	[[ -d $device ]] || { echo "np_bind: no PCI function $1" >&2; return 1; }
	echo "$driver" >"$device/driver_override" || return
	# Writing to drivers_probe does not report a failed probe, so check the driver link.
	echo "$address" >/sys/bus/pci/drivers_probe || true
	[[ $(basename "$(readlink -f "$device/driver")") == "$driver" ]]
}

np_unbind() {
	local address device
	address=$(np_address "$1")
	device=/sys/bus/pci/devices/$address
	if [[ -e $device/driver ]]; then
		echo "$address" >"$device/driver/unbind" || return
	fi
	echo >"$device/driver_override"
}

# np_node NAME: the character device node of the controller, e.g. nvmep0.
np_node() {
	local node
	for node in /sys/bus/pci/devices/"$(np_address "$1")"/*/nvmep*; do
		[[ -e $node ]] && basename "$node" && return
	done
	return 1
}

# np_is_outside NAME: succeeds if it is below an external-facing port and thus untrusted.
np_is_outside() {
	local removable
	removable=/sys/bus/pci/devices/$(np_address "$1")/removable
	cat "$removable"
	[[ $(<"$removable") == removable ]]
}

# np_bad_set WORD VALUE: set a word of badctrl.h; both are hexadecimal.
np_bad_set() {
	setpci -s "$(np_address badctrl)" "c0.l=$1" "c4.l=$2"
}

# np_until TRIES COMMAND...: retry every 50 ms until it succeeds; 1 if it never does.
np_until() {
	local tries
	for ((tries = $1; tries > 0; tries--)); do
		"${@:2}" && return
		sleep 0.05
	done
	return 1
}

# np_monitor COMMAND: send a line to QEMU's monitor, e.g. "device_del np1".
np_monitor() {
	echo "@np monitor $*" >/dev/ttyS1
}

# np_bind_disk NAME: bind it to nvme-peer, and print the block device of its namespace 1.
np_bind_disk() {
	local disk
	np_bind "$1" nvme-peer >&2 && np_until 200 np_node "$1" >/dev/null || return
	disk=/dev/$(np_node "$1")n1
	np_until 200 test -b "$disk" && echo "$disk"
}
