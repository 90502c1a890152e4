#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A controller below an external-facing port of a kernel without bounce buffers: partial pages
# cannot be mapped for it. Binding it fails, in the time of one command.
#
# kernels: 7 debug
# iommu: on
# timeout: 60
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

slot=/sys/bus/pci/devices/0000:00:08.0
patience=/sys/module/nvme_peer/parameters/admin_timeout

leave() {
	echo "$before" >"$patience"
	np_monitor device_del outside
	np_until 400 test ! -e "$physical"
	echo 1 >/sys/bus/pci/drivers_autoprobe
}

plug() {
	echo 0 >/sys/bus/pci/drivers_autoprobe
	np_monitor device_add nvme,id=outside,serial=outside,bus=rp6
	np_until 400 compgen -G "$slot/0000:*/class" >/dev/null
}

# It takes as long as one command's timeout, and no longer.
refuses() {
	local began=$SECONDS
	! np_bind "$address" && ((SECONDS - began >= 2 && SECONDS - began < 20))
}

says_why() {
	dmesg | grep "nvme-peer $address: .*no room to map data for 2000 ms, command .* given up"
}

before=$(<"$patience")
echo 2 >"$patience"
ktap_check "a controller is plugged in outside" plug
physical=$(dirname "$slot"/0000:*/class)
address=$(basename "$physical")
trap leave EXIT
ktap_check "Linux does not trust it" np_is_outside "$address"
ktap_check "to bind it fails when a command's time is over" refuses
ktap_check "and the log says why" says_why
ktap_end
