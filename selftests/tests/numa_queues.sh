#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Eight CPUs on two nodes, with fewer queues than CPUs: each queue serves CPUs of one node and
# interrupts one of those that it serves; a CPU that goes offline takes no interrupt along; cpu_queues
# changes under a mounted file system.
#
# topology: numa
# iommu: on
# kernels: 6.1 7 debug
# timeout: 180
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

pairs=8
cpus=8
# For process substitution.
[[ -e /dev/fd ]] || ln -s /proc/self/fd /dev/fd
np_bind np0 || exit 1
node=$(np_node np0)
share=/sys/class/nvme-peer/$node/cpu_queues
disk=/dev/${node}n1
contexts=/sys/block/${node}n1/mq
debug=/sys/kernel/debug/nvme-peer/$node
mount=$(mktemp -d)
leave() {
	local cpu
	for ((cpu = 1; cpu < cpus; cpu++)); do
		echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
	done
	umount "$mount" 2>/dev/null
}
trap leave EXIT
np_until 200 test -b "$disk"

# mask LIST: sets $bits to the bits of a list of CPUs, such as 0-2,5
mask() {
	local part cpu
	bits=0
	for part in ${1//,/ }; do
		for ((cpu = ${part%-*}; cpu <= ${part#*-}; cpu++)); do
			((bits |= 1 << cpu))
		done
	done
}

# served INDEX: sets $bits to the CPUs of a hardware context
served() {
	local list
	list=$(<"$contexts/$1/cpu_list")
	mask "${list// /}"
}

# queues: "INDEX IRQ" of each I/O queue with an interrupt
queues() {
	awk -v node="$node" '$NF ~ "^" node "q[1-9]" { sub(":", "", $1); print $NF, $1 }' /proc/interrupts | sort -V |
		awk '{ print NR - 1, $2 }'
}

lost_interrupts() {
	awk 'NR > 1 && $8 ~ /^[0-9]/ { sum += $8 } END { print sum + 0 }' "$debug/queues"
}

# queues_are COUNT: so many contexts and handlers
queues_are() {
	ls "$contexts"
	queues
	(($(find "$contexts" -mindepth 1 -maxdepth 1 | wc -l) == $1 && $(queues | wc -l) == $1))
}

vectors_are() {
	ls "/sys/bus/pci/devices/$(np_address np0)/msi_irqs"
	(($(find "/sys/bus/pci/devices/$(np_address np0)/msi_irqs" -type f | wc -l) == $1))
}

# No context has CPUs of both nodes, and all CPUs have one.
one_node_each() {
	local context bits all=0
	for context in "$contexts"/*; do
		served "${context##*/}"
		printf 'queue %s: %#x\n' "${context##*/}" "$bits"
		(((bits & 0x0f) == 0 || (bits & 0xf0) == 0)) || return
		((all |= bits))
	done
	((all == 0xff))
}

# Each queue interrupts a CPU that it serves, as long as one is online.
interrupts_are_near() {
	local index irq bits online effective
	mask "$(</sys/devices/system/cpu/online)"
	online=$bits
	while read -r index irq; do
		# A queue that is not live keeps its handler.
		[[ -e $contexts/$index ]] || continue
		mask "$(<"/proc/irq/$irq/effective_affinity_list")"
		effective=$bits
		served "$index"
		printf 'queue %s: serves %#x of %#x, interrupt %s on %#x\n' "$index" "$bits" "$online" "$irq" "$effective"
		((bits &= online)) || continue
		((bits & effective)) || return
	done < <(queues)
}

# Every CPU that is online reads without waiting for a timeout.
all_read() {
	local cpu began bits
	mask "$(</sys/devices/system/cpu/online)"
	for ((cpu = 0; cpu < cpus; cpu++)); do
		((bits & 1 << cpu)) || continue
		began=$SECONDS
		taskset -c "$cpu" dd if="$disk" of=/dev/null bs=4k count=4 iflag=direct status=none || return
		((SECONDS - began < 15)) || { echo "CPU $cpu: $((SECONDS - began)) s"; return 1; }
	done
}

# end_load: stop fio, the process $load; fail if an I/O of it failed
end_load() {
	local status=0
	# A background process ignores SIGINT. Status 128: ended by a signal.
	kill -TERM "$load"
	wait "$load" || status=$?
	grep -a 'err=\|error' /tmp/load
	((status == 0 || status == 128)) && ! grep -aq 'err= *[1-9]\|error' /tmp/load
}

# Each CPU in turn goes offline and returns, under load. CPU 0 cannot go offline.
cpus_offline() {
	local cpu load status=0
	fio --name=load --ioengine=psync --direct=1 --rw=randread --bs=4k --size=16m --numjobs=4 --thread \
		--time_based --runtime=120 --filename="$disk" --output=/tmp/load 2>&1 &
	load=$!
	for ((cpu = 1; cpu < cpus && status == 0; cpu++)); do
		echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
		{ all_read && interrupts_are_near; } || { status=1; echo "CPU $cpu was offline"; }
		echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
	done
	end_load || status=1
	echo "lost interrupts: $(lost_interrupts)"
	((status == 0 && $(lost_interrupts) == 0))
}

make_file_system() {
	mkfs.ext4 -q -F -E nodiscard "$disk" 200m && mount "$disk" "$mount"
}

# set_share COUNT: the driver may refuse while I/O in flight does not end.
set_share() {
	echo "$1" >"$share" && (($(<"$share") == $1))
}

# Four writers with fsync; every write and fsync succeeds, and so does passthrough.
shares_change() {
	local load count round passed=0
	fio --name=load --ioengine=psync --rw=randwrite --bs=16k --fsync=2 --size=4m --numjobs=4 --thread \
		--time_based --runtime=120 --directory="$mount" --output=/tmp/load 2>&1 &
	load=$!
	np_until 200 test -s "$mount/load.3.0"
	for round in 1 2; do
		for count in 1 4 2 8 3 4; do
			set_share "$count" || { echo "round $round: cpu_queues $count failed"; passed=1; break 2; }
			nvme flush "/dev/ngp${node#nvmep}n1" -n 1 || { echo "flush failed after $count"; passed=1; break 2; }
		done
	done
	end_load || passed=1
	((passed == 0)) && touch "$mount/alive" && sync -f "$mount" &&
		umount "$mount" && e2fsck -fn "$disk"
}

# With one CPU for each queue, a queue whose CPU is offline gets other CPUs.
shares_change_while_offline() {
	local status=0
	set_share 8 || return
	echo 0 >/sys/devices/system/cpu/cpu1/online
	set_share 4 && timeout 60 bash -c "$(declare -p cpus disk); $(declare -f mask all_read); all_read" || status=1
	echo 1 >/sys/devices/system/cpu/cpu1/online
	set_share 3 && all_read && set_share 4 && return "$status"
}

# trace 0|1: events of the block layer
trace() {
	echo "$1" | tee "$tracing"/events/block/block_rq_{issue,complete}/enable >/dev/null
}

# Reads of a thread on each CPU, as "CPU-of-submission CPU-of-completion".
completions() {
	local tracing=/sys/kernel/tracing
	mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
	echo >"$tracing/trace"
	trace 1
	fio --name=each --ioengine=io_uring --direct=1 --rw=randread --bs=4k --iodepth=4 --size=16m --offset_increment=16m \
		--number_ios=200 --numjobs="$cpus" --thread --cpus_allowed=0-7 --cpus_allowed_policy=split --filename="$disk" >/dev/null
	trace 0
	awk -v device="$(tr : , <"/sys/class/block/${disk#/dev/}/dev")" '
		!index($0, " " device " R ") { next }
		{ match($0, /\[[0-9]+\]/); cpu = substr($0, RSTART + 1, RLENGTH - 2) + 0 }
		match($0, /[0-9]+ \+ 8 /) { sector = substr($0, RSTART, RLENGTH) }
		/block_rq_issue:/ { issued[sector] = cpu }
		/block_rq_complete:/ && sector in issued { print issued[sector], cpu }' "$tracing/trace"
}

# Like the in-tree driver's, each read completes on the CPU that has submitted it.
completes_at_home() {
	set_share 8 && completions >/tmp/completions || return
	awk -v expected="$cpus" '$1 != $2 { away++ } { seen[$1] = 1 } END {
		for (cpu in seen) cpus++
		print NR, "reads of", cpus, "CPUs,", away + 0, "completed on another"
		exit NR < 800 || cpus < expected || away }' /tmp/completions
}

# The partition scan of a new disk is under way.
share_after_bind() {
	local began=$SECONDS node
	np_unbind np0 && np_bind np0 || return
	node=$(np_node np0)
	echo 1 >"/sys/class/nvme-peer/$node/cpu_queues" && np_until 400 test -b "/dev/${node}n1" &&
		dd if="/dev/${node}n1" of=/dev/null bs=4k count=1 iflag=direct status=none && np_unbind np0 &&
		((SECONDS - began < 40))
}

ktap_check "one vector for each CPU, and the admin queue's" vectors_are $((pairs + 1))
ktap_check "handlers of the queues of the first start only" queues_are 4
ktap_check "each queue serves CPUs of one node" one_node_each
ktap_check "each queue interrupts a CPU that it serves" interrupts_are_near
ktap_check "CPUs go offline under load" cpus_offline
ktap_check "all CPUs read" all_read
ktap_check "each queue interrupts a CPU that it serves after that" interrupts_are_near
ktap_check "file system" make_file_system
ktap_check "cpu_queues changes under fsync" shares_change
ktap_check "after that each queue serves CPUs of one node" one_node_each
ktap_check "after that each queue interrupts a CPU that it serves" interrupts_are_near
ktap_check "cpu_queues changes while a CPU is offline" shares_change_while_offline
ktap_check "with a queue for each CPU no read completes on another" completes_at_home
ktap_check "cpu_queues changes right after bind" share_after_bind
ktap_end
