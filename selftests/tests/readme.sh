#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# README.md's lines of shell, as they stand there, one after the other: on this guest's
# controller and stand-in GPU, and with the number that the controller gets here.
# kernels: 7
# iommu: on
# timeout: 120
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/lib/udev.sh

export PATH=/build/user:$PATH

leave() {
	udev_stop
	[[ $(np_node np1) ]] || np_bind np1
}

# here LINE: with what has another name in this guest.
here() {
	local node number
	node=$(np_node np1) || node=nvmep0
	number=${node#nvmep}
	sed -e "s/0000:41:00\.0/$(np_address np1)/; s/0000:42:00\.0/$(np_address softgpu)/" \
		-e "s/nvme2000000/nvme$((2000000 + number))/; s/ngp0n1/ngp${number}n1/; s/nvmep0/$node/" <<<"$1"
}

# does STATUS PATTERN LINE
does() {
	local said status=0
	said=$(bash -c "$(here "$3")" 2>&1) || status=$?
	echo "$(here "$3") returned $status:"
	echo "$said"
	[[ $status =~ ^$1$ ]] && grep -qE "$(here "$2")" <<<"$said"
}

# A reader takes longer to the next line than nodes and their aliases take to come.
wait_for_nodes() {
	local node
	node=$(np_node np1) || return 0
	np_until 200 test -e "/dev/nvme$((2000000 + ${node#nvmep}))n1" &&
		np_until 200 test -e "/dev/ngp${node#nvmep}n1" && udevadm settle
}

trap leave EXIT
ktap_check "udev runs" udev_start || exit 1
np_unbind np1
while IFS=$'\t' read -r -u 3 status pattern line; do
	wait_for_nodes
	ktap_check "$line" does "$status" "$pattern" "$line"
done 3<<<"$(sed -n 's/^guest\t//p' /selftests/tests/readme.lines)"
wait_for_nodes
ktap_check "examples/minimal.c" does 0 '^status 0,' "/build/user/examples/minimal nvmep0 ngp0n1"
ktap_check "examples/uring.c" does 0 '^64 of 64 ' "/build/user/examples/uring ngp0n1"
ktap_end
