# SPDX-License-Identifier: GPL-2.0-only
# Run udev for a test, as guests run none. Sourced.

# With the rules of nvme-peer.
udev_start() {
	mkdir -p /etc/udev/rules.d
	cp /build/user/60-nvme-peer.rules /usr/lib/udev/rules.d/ || return
	udev_run
}

udev_run() {
	/usr/lib/systemd/systemd-udevd --daemon || return
	udevadm control --ping
}

udev_stop() {
	rm -f /etc/udev/rules.d/60-nvme-peer-*
	udevadm control --exit
	rm -rf /run/udev
}

# udev_spare DRIVER: set controllers without a driver aside, by an override that fits none: udev
# loads the in-tree driver, which would bind them. '' ends it.
udev_spare() {
	local other
	for other in np0 badctrl; do
		other=/sys/bus/pci/devices/$(np_address "$other")
		[[ ! -d $other || -e $other/driver ]] || echo "$1" >"$other/driver_override"
	done
}
