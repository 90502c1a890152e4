# SPDX-License-Identifier: GPL-2.0-only
# The network of two guests. Sourced by target.sh and initiator.sh.

np_target=10.77.0.1
np_initiator=10.77.0.2
np_nqn=nqn.2026-11.nvme-peer:remote
# A connection to this port of the target ends it.
np_end_port=7

# np_network ADDRESS
np_network() {
	local device
	modprobe virtio_net || return
	for device in /sys/class/net/*; do
		[[ -e $device/device ]] || continue
		busybox ip address add "$1/24" dev "${device##*/}" && busybox ip link set "${device##*/}" up
		return
	done
	return 1
}
