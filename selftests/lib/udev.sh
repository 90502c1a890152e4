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
