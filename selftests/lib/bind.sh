# SPDX-License-Identifier: GPL-2.0-only
# Give a controller to nvme-peer and take it away again. Sourced by tests in a guest.

# np_address NAME: the PCI address of a controller named by serial number (np0,
# np1), of the stand-in GPU (softgpu), or of what already is an address.
np_address() {
	if [[ -f /run/np/$1 ]]; then
		cat "/run/np/$1"
	else
		echo "$1"
	fi
}

# np_bind NAME [DRIVER]: bind by driver_override, the only way nvme-peer binds.
np_bind() {
	local address driver=${2:-nvme-peer} device
	address=$(np_address "$1")
	device=/sys/bus/pci/devices/$address
	[[ -d $device ]] || { echo "np_bind: no PCI function $1" >&2; return 1; }
	echo "$driver" >"$device/driver_override" || return
	# Probing is quiet about failures; whether the driver took it shows in the link.
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

# np_node NAME: the controller's node below /dev, e.g. nvmep0.
np_node() {
	local node
	for node in /sys/bus/pci/devices/"$(np_address "$1")"/*/nvmep*; do
		[[ -e $node ]] && basename "$node" && return
	done
	return 1
}

# np_is_outside NAME: is it behind a port that leads out of the machine, and so not trusted?
np_is_outside() {
	local removable
	removable=/sys/bus/pci/devices/$(np_address "$1")/removable
	cat "$removable"
	[[ $(<"$removable") == removable ]]
}

# np_bad_set WORD VALUE: a word of badctrl.h, both in hexadecimal.
np_bad_set() {
	setpci -s "$(np_address badctrl)" "c0.l=$1" "c4.l=$2"
}

# np_until TRIES COMMAND...: every 50 ms until it succeeds; 1 if it never did.
np_until() {
	local tries
	for ((tries = $1; tries > 0; tries--)); do
		"${@:2}" && return
		sleep 0.05
	done
	return 1
}

# np_monitor COMMAND: a line for QEMU's monitor, e.g. "device_del np1".
np_monitor() {
	echo "@np monitor $*" >/dev/ttyS1
}
