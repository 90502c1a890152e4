#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What an I/O costs the processor with our driver and with the kernel's own, by turns on
# the same controller, in a guest whose clock counts instructions (selftests/bench/run).
#
# usage: cpu.sh TURNS DRIVER,DRIVER CASE...
#
# Prints "FIRST|SECOND CASE NANOSECONDS INTERRUPTS" for each turn: what cpu_cost says.
set -euo pipefail
. /selftests/lib/bind.sh

turns=$1
IFS=, read -r -a drivers <<<"$2"
shift 2

# nodes DRIVER: sets generic and block, if they are there.
nodes() {
	local prefix=nvme letters=ng folder=nvme controller number
	[[ $1 == nvme ]] || prefix=nvmep letters=ngp folder=nvme-peer
	for controller in /sys/bus/pci/devices/"$(np_address np0)/$folder/$prefix"*; do
		number=${controller##*/"$prefix"}
		generic=/dev/${letters}${number}n1 block=/dev/${prefix}${number}n1
		[[ -c $generic && -b $block ]] && return
	done
	return 1
}

modprobe nvme poll_queues=1
echo 1 >/sys/module/nvme_peer/parameters/poll_queues
for ((turn = 0; turn < turns; turn++)); do
	for place in 0 1; do
		np_bind np0 "${drivers[place]}"
		np_until 200 nodes "${drivers[place]}"
		# The block layer chooses by the number of queues.
		echo none >"/sys/block/${block##*/}/queue/scheduler"
		/build/user/cpu_cost "$generic" "$block" "$@" | sed "s/^/$place /"
		np_unbind np0
	done
done
