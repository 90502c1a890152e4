#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# CPU cost of an I/O, alternately with two drivers on the same controller, in a guest whose clock
# counts instructions (selftests/bench/run).
#
# usage: cpu.sh [--rates] TURNS DRIVER[+PAIRS[busy]][@MEMORY],DRIVER[+PAIRS[busy]][@MEMORY] CASE...
#
# In a guest with several processors each has a thread, and the cost is that of all processors.
# With --rates fio measures I/Os a second, in any guest (fio.sh). With PAIRS, so many queue pairs
# of peers exist meanwhile, idle, or with "8busy" reading as fast as they can. With MEMORY, gpu or
# host, the data is in an imported buffer of that memory.
#
# Prints "FIRST|SECOND CASE NANOSECONDS INTERRUPTS" for each turn, the output of cpu_cost, or
# "FIRST|SECOND CASE RATE IOPS".
set -euo pipefail
. /selftests/lib/bind.sh

measure=(/build/user/cpu_cost)
if [[ $1 == --rates ]]; then
	measure=(/selftests/bench/fio.sh)
	shift
elif (($(nproc) > 1)); then
	measure+=(--threads "$(nproc)")
fi
turns=$1
IFS=, read -r -a drivers <<<"$2"
shift 2

# nodes DRIVER: set the generic, block and controller nodes, if they exist.
nodes() {
	local prefix=nvme letters=ng folder=nvme controller number
	[[ $1 == nvme ]] || prefix=nvmep letters=ngp folder=nvme-peer
	for controller in /sys/bus/pci/devices/"$(np_address np0)/$folder/$prefix"*; do
		number=${controller##*/"$prefix"}
		generic=/dev/${letters}${number}n1 block=/dev/${prefix}${number}n1 node=/dev/${prefix}${number}
		[[ -c $generic && -b $block ]] && return
	done
	return 1
}

# with_pairs PAIRS COMMAND...: run COMMAND while the queue pairs exist.
with_pairs() {
	local input=/run/hold said=/run/held hold holder=(/build/user/watch_cost "$node" --hold "$1")
	[[ $1 != *busy ]] || holder=(/build/user/peer_load "${1%busy}")
	mkfifo "$input"
	"${holder[@]}" <"$input" >"$said" &
	exec {hold}>"$input"
	np_until 200 test -s "$said"
	"${@:2}"
	exec {hold}>&-
	wait $!
	[[ $1 != *busy ]] || tail -n 1 "$said" | awk '{ print "peers of " $1 " pairs: " $2 " reads a second" }' >&2
	rm "$input" "$said"
}

# cost DRIVER[+PAIRS][@MEMORY] CASE...: one turn.
cost() {
	local driver=${1%%[+@]*} having=() into=() least=()
	[[ ! $1 =~ \+([0-9]+(busy)?) ]] || having=(with_pairs "${BASH_REMATCH[1]}")
	np_bind np0 "$driver"
	np_until 200 nodes "$driver"
	# The block layer selects the scheduler by the number of queues.
	echo none >"/sys/block/${block##*/}/queue/scheduler"
	# A batch takes longer beside peers, so both drivers get the longer wait.
	[[ ${drivers[*]} != *busy* || ${measure[0]} != *cpu_cost ]] || least=(--least 8000)
	[[ $1 != *@* ]] || into=(--into "${1#*@}" "$node")
	"${having[@]}" "${measure[@]}" "${least[@]}" "${into[@]}" "$generic" "$block" "${@:2}"
	np_unbind np0
}

# Unbound before its turn.
echo none >"/sys/bus/pci/devices/$(np_address np0)/driver_override"
modprobe nvme poll_queues=1
echo 1 >/sys/module/nvme_peer/parameters/poll_queues
for ((turn = 0; turn < turns; turn++)); do
	for place in 0 1; do
		cost "${drivers[place]}" "$@" | sed "s/^/$place /"
	done
done
