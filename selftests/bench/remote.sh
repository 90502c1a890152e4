#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Completions on another CPU than the one that submitted, with a thread of fio on each CPU, in a guest, with
# the in-tree driver and then with nvme-peer: interrupts of queues on CPUs that they do not serve, and
# function-call interrupts between CPUs, for 1,000 I/Os. Fails if nvme-peer has more.
#
# usage: selftests/run --no-data --no-shadow --cpus 8 --cell 7/off/root -- /selftests/bench/remote.sh
set -euo pipefail
. /selftests/lib/bind.sh

# For process substitution.
[[ -e /dev/fd ]] || ln -s /proc/self/fd /dev/fd

# counts DISK: "FOREIGN CALLS": interrupts of its queues on foreign CPUs, and calls between CPUs.
counts() {
	local controller=${1%n1} context
	for context in /sys/block/"$1"/mq/*; do
		echo "queue ${controller}q$((${context##*/} + 1)) $(tr -d ' ' <"$context/cpu_list")"
	done | awk -v cpus="$(nproc)" '
		$1 == "queue" {
			queue[$2]
			split($3, list, ",")
			for (i in list)
				serves[$2, list[i]]
			next
		}
		$1 == "CAL:" { for (i = 2; i <= cpus + 1; i++) calls += $i }
		$NF in queue {
			for (i = 0; i < cpus; i++)
				if (!(($NF, i) in serves))
					foreign += $(i + 2)
		}
		END { print foreign + 0, calls + 0 }' - /proc/interrupts
}

# Nodes of np0 with this driver: $generic and $block.
nodes() {
	local found
	found=$(echo /sys/bus/pci/devices/"$(np_address np0)"/nvme*/nvme*/nvme*n1)
	block=${found##*/}
	generic=${block/#nvme/ng}
	[[ -b /dev/$block && -c /dev/$generic ]]
}

modprobe nvme
echo none >"/sys/bus/pci/devices/$(np_address np0)/driver_override"
for driver in nvme nvme-peer; do
	np_bind np0 "$driver"
	np_until 200 nodes
	echo none >"/sys/block/$block/queue/scheduler"
	for name in eight-read-1 eight-read-32 eight-write-32; do
		read -r foreign calls < <(counts "$block")
		reads=$(awk '{ print $1 + $5 }' "/sys/block/$block/stat")
		/selftests/bench/fio.sh "/dev/$generic" "/dev/$block" "$name" >/dev/null
		reads=$(($(awk '{ print $1 + $5 }' "/sys/block/$block/stat") - reads))
		read -r more_foreign more_calls < <(counts "$block")
		echo "$name $driver $reads $((more_foreign - foreign)) $((more_calls - calls))"
	done
	np_unbind np0
done | awk '
	BEGIN { printf "%-16s %-10s %9s %18s %15s\n", "case", "driver", "I/Os", "foreign interrupts", "calls" }
	{
		foreign = 1000 * $4 / $3
		calls = 1000 * $5 / $3
		printf "%-16s %-10s %9d %13.2f/1000 %10.2f/1000\n", $1, $2, $3, foreign, calls
		if ($2 == "nvme") {
			theirs[$1] = foreign
			their_calls[$1] = calls
		} else if (foreign > theirs[$1] + 1 || calls > their_calls[$1] + 10)
			worse = 1
	}
	END { exit worse }'
