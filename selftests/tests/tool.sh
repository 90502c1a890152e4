#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The nvme-peer command, and libnvmepeer behind it, on a real controller: what
# it tells, and what it says when it is refused.
# kernels: 7
# long-kernels: 6.1 6.12 7 debug kcsan
# iommu: on
# long-iommu: on off
# timeout: 240
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

PATH=/build/user:$PATH
np_bind np0 || exit 1
np_bind np1 || exit 1
node=$(np_node np0)
namespace=ngp${node#nvmep}n1
np_until 200 test -e "/dev/$namespace"
# What is written to is not np0, where tests have left things.
other=$(np_node np1)

# prints STATUS PATTERN COMMAND...: it exits with STATUS and prints the pattern.
prints() {
	local expected=$1 pattern=$2 status=0 output
	shift 2
	output=$("$@" 2>&1) || status=$?
	echo "$output"
	((status == expected)) && grep -qE -- "$pattern" <<<"$output"
}

# json KEY.. -- COMMAND...: prints the member of the command's JSON answer.
json() {
	local keys=()
	while [[ $1 != -- ]]; do
		keys+=("$1")
		shift
	done
	shift
	"$@" | python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1:]:
    value = value[int(key) if key.isdigit() else key]
print(value)' "${keys[@]}"
}

is() {
	local expected=$1
	shift
	ktap_same "$("$@")" "$expected"
}

# Every counter of ours is nvme-cli's.
counts_alike() {
	nvme-peer smart "$node" -o json >/tmp/tool-ours && nvme smart-log "/dev/$node" -o json >/tmp/tool-theirs || return
	python3 -c '
import json, sys
ours, theirs = (json.load(open(path)) for path in sys.argv[1:])
print(ours, theirs)
assert len(ours) == 15 and ours["host_read_commands"] > 0
assert not [name for name in ours if int(ours[name]) != int(theirs[name])]' /tmp/tool-ours /tmp/tool-theirs
}

# Reads of the first block, past the page cache.
read_times() {
	dd if="/dev/${node}n1" of=/dev/null bs=4096 count="$1" iflag=direct status=none
}

# The value of KEY of the first disk, or its sum over the queues of the CPU.
counted() {
	nvme-peer stat "$node" -o json | python3 -c '
import json, sys
stat, key = json.load(sys.stdin), sys.argv[1]
print(sum(queue[key] for queue in stat["queues"] if queue["owner"] == "io") if key == "completions"
      else stat["disks"][0][key])' "$1"
}

# Seven reads are seven more of each.
stat_counts() {
	local reads completions
	reads=$(counted reads)
	completions=$(counted completions)
	read_times 7
	ktap_same "$(counted reads)" $((reads + 7)) && (($(counted completions) >= completions + 7))
}

# By the second: more than none, and no more than there were in all.
stat_rates() {
	local before all reader rate
	before=$(counted reads)
	(while read_times 1; do sleep 0.01; done) &
	reader=$!
	rate=$(nvme-peer stat "$node" 2 | awk -v disk="${node}n1" '$1 == disk { print $2 }')
	kill "$reader"
	wait "$reader"
	all=$(($(counted reads) - before))
	echo "$rate reads a second for 2 s, $all in all"
	awk -v rate="$rate" -v all="$all" 'BEGIN { exit !(rate > 0 && 2 * rate <= all) }'
}

# bench ARGUMENT...: the controller has carried out as many reads as it says, or writes, of as
# many blocks; and as many commands were under way at each time as were asked for, or the latencies
# are not theirs (by Little's law; the last ones end later, when fewer are).
bench() {
	bench_of "$node" "$namespace" "$@"
}

bench_of() {
	local before after
	before=$(nvme-peer smart "$1" -o json) && nvme-peer bench -o json "$@" >/tmp/tool-bench &&
		after=$(nvme-peer smart "$1" -o json) || return
	python3 - "$before" "$after" <<-'PYTHON'
	import json, sys
	bench = json.load(open("/tmp/tool-bench"))
	before, after = (json.loads(text) for text in sys.argv[1:])
	print(before, after, bench)
	what, done = ("write", "written") if "writes" in bench else ("read", "read")
	count, took, latency = bench[what + "s"], bench["nanoseconds"], bench["latency"]
	commands = count / bench.get("ranges", 1)
	assert commands > bench["entries"]
	assert after[f"host_{what}_commands"] - before[f"host_{what}_commands"] == count
	units = after[f"data_units_{done}"] - before[f"data_units_{done}"]
	assert abs(units * 512000 - count * bench["size"]) <= 512000
	assert abs(bench[what + "s_per_second"] - count * 1e9 / took) <= 1
	assert abs(bench["bytes_per_second"] - count * bench["size"] * 1e9 / took) <= 1
	assert 0.7 < latency["mean"] * commands / took / bench["entries"] < 1.05
	parts = [latency[part] for part in ("p50", "p90", "p99", "p999", "max")]
	assert 0 < parts[0] and parts == sorted(parts)
	PYTHON
}

bench_says() {
	json "$1" -- cat /tmp/tool-bench
}

# bench_polled ARGUMENT...: on a queue without interrupts, of np1 bound anew.
bench_polled() {
	local result
	echo 1 >/sys/module/nvme_peer/parameters/poll_queues
	np_unbind np1 && np_bind np1
	echo 0 >/sys/module/nvme_peer/parameters/poll_queues
	other=$(np_node np1)
	np_until 200 test -e "/dev/ngp${other#nvmep}n1" || return
	bench_of "$other" "ngp${other#nvmep}n1" --polled "$@"
	result=$?
	np_unbind np1 && np_bind np1
	return "$result"
}

swap_on() {
	mkswap -q "$1" >/dev/null && swapon "$1"
}

# bench_fd ARGUMENT...: into a dma-buf of 64 KiB that somebody else has made.
bench_fd() {
	python3 - "$node" "$namespace" "$@" <<-'PYTHON'
	import fcntl, os, struct, sys
	memory = os.memfd_create("small", os.MFD_ALLOW_SEALING)
	os.ftruncate(memory, 65536)
	fcntl.fcntl(memory, 1033, 2)	# F_ADD_SEALS, F_SEAL_SHRINK
	device = os.open("/dev/udmabuf", os.O_RDWR)
	fd = fcntl.ioctl(device, 0x40187542, bytearray(struct.pack("=IIQQ", memory, 0, 0, 65536)))
	os.set_inheritable(fd, True)
	os.execvp("nvme-peer", ["nvme-peer", "bench", *sys.argv[1:], "--into", "--fd", str(fd)])
	PYTHON
}

ktap_check "list names both controllers" \
	is 2 eval "nvme-peer list | grep -cE '^nvmep[0-9].* np[01] .* live .* 0 of [0-9]+ +n1 '"
ktap_check "info gives the PCI address" \
	is "$(np_address np0)" json pci_address -- nvme-peer -o json info "$node"
ktap_check "info says live" is live json state -- nvme-peer -o json info "/dev/$node"
ktap_check "list is JSON too" \
	is live json controllers 0 state -- nvme-peer -o json list
ktap_check "half of the queues at most are for peers" python3 -c '
import json, subprocess, sys
info = json.loads(subprocess.check_output(["nvme-peer", "-o", "json", "info", sys.argv[1]]))
assert 0 < info["qids_peer_free"] <= info["qids_peer_max"] <= info["qids_total"] / 2, info' "$node"
ktap_check "info of a foreign node tells which node it wants" \
	prints 1 '/dev/nvmepX' nvme-peer info /dev/null
ktap_check "info of nothing tells how to bind" \
	prints 1 'nvme-peer bind' nvme-peer info nvmep77

ktap_check "smart counts as nvme-cli says" counts_alike
ktap_check "stat counts" stat_counts
ktap_check "stat gives rates" stat_rates
ktap_check "smart of no node" prints 1 'nvme-peer bind' nvme-peer smart nvmep77
ktap_check "reset of no node" prints 1 'No such device' nvme-peer reset nvmep77

ktap_check "route to the controller itself is none" \
	prints 1 'same-function' nvme-peer route "$node" "$(np_address np0)"
ktap_check "topo gives the module's verdict" \
	prints 0 "^$(np_address np1) .* $(json data verdict -- nvme-peer -o json route "$node" "$(np_address np1)")( |$)" \
	nvme-peer topo "$(np_address np1)"
ktap_check "route to the other controller has a reason" \
	prints 0 explanation: nvme-peer route "$node" "$(np_address np1)"
ktap_check "route to no function" \
	prints 1 'no PCI function has this address' nvme-peer route "$node" 0000:fe:1f.7
ktap_check "route to what is no address" \
	prints 2 'PCI address' nvme-peer route "$node" here
ktap_check "route of what is no dma-buf" \
	prints 1 'not a dma-buf' nvme-peer route "$node" --fd 0
ktap_check "route of a closed descriptor" \
	prints 1 'not open' nvme-peer route "$node" --fd 77

if [[ -e /dev/udmabuf || -e /dev/dma_heap/system ]]; then
	ktap_check "host memory is imported" \
		is host-memory json verdict -- nvme-peer -o json import-check "$node" --host 1048576
	ktap_check "host memory is not device memory" \
		prints 1 'exporter delivers host RAM' \
		nvme-peer import-check "$node" --host 65536 --require-device
	ktap_check "the CPU as a peer reads through its own queue pair" \
		prints 0 'reads: 64' nvme-peer qp check "$node" "$namespace"
	ktap_check "bench --into" bench --into --seconds 1
	ktap_check "goes into imported memory" is imported bench_says memory
	ktap_check "of the host" is host-memory bench_says verdict
	ktap_check "bench --into, large and few" bench --into --seconds 1 --size 131072 --entries 4
	ktap_check "bench --into, by lists" bench --into --ranges 32 --entries 4 --seconds 1
	ktap_check "bench --into: write, by lists" \
		bench_of "$other" "ngp${other#nvmep}n1" --write --force --into --ranges 4 --seconds 1
	export NVMEPEER_LIBCUDA=/build/user/lib/fake-libcuda.so FAKE_CUDA_UDMABUF=1
	ktap_check "bench --cuda, on a stand-in for libcuda" bench --into --cuda 0 --seconds 1
	ktap_check "bench: no such GPU" prints 1 'no CUDA device 3' \
		nvme-peer bench "$node" "$namespace" --into --cuda 3
	unset NVMEPEER_LIBCUDA FAKE_CUDA_UDMABUF
	ktap_check "bench: no libcuda" prints 1 "install NVIDIA's driver" \
		nvme-peer bench "$node" "$namespace" --into --cuda 0
	ktap_check "a shallow queue pair works" \
		prints 0 'sq_entries: 2$' nvme-peer qp check "$node" "$namespace" --entries 2
	ktap_check "the kernel writes none of its doorbells" \
		is 0 json cpu_doorbell_writes -- nvme-peer -o json qp check "$node" "$namespace"
else
	for name in "host memory" "host memory, refused" "CPU as a peer" "bench --into" imported "of the host" large lists writes \
		"--cuda" "no such GPU" "no libcuda" "shallow" "doorbells"; do
		ktap_skip "$name" "the kernel has no udmabuf and no dma heap"
	done
fi
ktap_check "bench" bench --seconds 1
ktap_check "goes into its own memory" is own bench_says memory
ktap_check "bench, one by one" bench --seconds 1 --entries 1
ktap_check "bench: parts of blocks" prints 2 'multiple of 512' nvme-peer bench "$node" "$namespace" --size 1000
ktap_check "bench: more than a command takes" prints 2 'at most [0-9]+' nvme-peer bench "$node" "$namespace" --size 1073741824
ktap_check "bench: no entries" prints 2 '1 to 4096' nvme-peer bench "$node" "$namespace" --entries 0
ktap_check "bench: a buffer without --into" prints 2 'with --into' nvme-peer bench "$node" "$namespace" --fd 0
ktap_check "bench: lists without --into" prints 2 'with --into' nvme-peer bench "$node" "$namespace" --ranges 2
ktap_check "bench: longer lists than there are" prints 2 '1 to 32' nvme-peer bench "$node" "$namespace" --into --ranges 33
ktap_check "bench --polled" bench_polled --seconds 1
other=$(np_node np1)
np_until 200 test -b "/dev/${other}n1"
ktap_check "bench --write" bench_of "$other" "ngp${other#nvmep}n1" --write --force --seconds 1
ktap_check "bench: writes are asked for twice" prints 2 'takes --force' nvme-peer bench "$other" "ngp${other#nvmep}n1" --write
swap_on "/dev/${other}n1"
ktap_check "bench: no write to a disk that is used" prints 1 'somebody uses it; nothing was written' \
	nvme-peer bench "$other" "ngp${other#nvmep}n1" --write --force
swapoff "/dev/${other}n1"
wipefs -aq "/dev/${other}n1"
ktap_check "bench: what is no dma-buf" prints 1 'not a dma-buf' nvme-peer bench "$node" "$namespace" --into --fd 0
if [[ -e /dev/udmabuf ]]; then
	ktap_check "bench --fd" prints 0 'memory: imported' bench_fd --entries 16 --seconds 1
	ktap_check "bench: a dma-buf that is too short" prints 1 'has 65536 bytes.* want 69632' bench_fd --entries 17
else
	ktap_skip "bench --fd" "the kernel has no udmabuf"
	ktap_skip "bench: a dma-buf that is too short" "the kernel has no udmabuf"
fi
ktap_check "bench: no namespace" prints 1 'no such node' nvme-peer bench "$node" ngp77n1
ktap_check "one entry is refused with the limit" \
	prints 1 '2 to [0-9]+ in each ring' nvme-peer qp check "$node" "$namespace" --entries 1
ktap_check "too many entries are refused with the limit" \
	prints 1 'CAP.MQES' nvme-peer qp check "$node" "$namespace" --entries 1000000
ktap_check "a refusal is JSON too" \
	is 22 json refused errno -- nvme-peer -o json qp check "$node" "$namespace" --entries 1

# A process that holds a queue pair: struct nvme_peer_qp_create with 32 entries.
hold_queue_pair() {
	exec python3 -c '
import fcntl, struct, sys, time
node = open("/dev/" + sys.argv[1], "r+b", buffering=0)
request = bytearray(struct.pack("=8I2Q3I52x", 112, 0, 0, 0, 32, 32, 0, 0, 0, 0, 0, 0, 0))
fcntl.ioctl(node, 0xbb << 8 | 5, request)
print("held", flush=True)
time.sleep(60)' "$node"
}

ktap_check "nobody holds a queue pair" prints 0 'none' nvme-peer qp list
mkfifo /tmp/tool-held
hold_queue_pair >/tmp/tool-held &
holder=$!
read -r held </tmp/tool-held
ktap_check "a queue pair is held" test "$held" = held
ktap_check "qp list finds its process" \
	is "$holder" json queue_pairs 0 pid -- nvme-peer -o json qp list
ktap_check "and its controller" \
	is "$node" json queue_pairs 0 controller -- nvme-peer -o json qp list
fd=$(json queue_pairs 0 fd -- nvme-peer -o json qp list)
ktap_check "qp status shows it" prints 0 'sq_entries: 32' nvme-peer qp status "$holder" "$fd"
ktap_check "a file that is none" prints 1 'not a queue pair' nvme-peer qp status "$holder" 1

# What a reset does to it, as it happens.
nvme-peer -o json events --count 2 >/tmp/tool-events &
listener=$!
is_listening() {
	[[ $(find "/proc/$listener/fd" -lname 'socket:*' -print -quit) ]]
}
np_until 100 is_listening
ktap_check "reset" is live json state -- nvme-peer reset "$node" -o json
wait "$listener"
ktap_check "events tells that the queue pair stopped" is stopped json events 0 event -- cat /tmp/tool-events
ktap_check "and of which controller" is "$node" json events 0 node -- cat /tmp/tool-events
ktap_check "and then that it may come back" is ready json events 1 event -- cat /tmp/tool-events
ktap_check "and how many" is 1 json events 1 queue_pairs -- cat /tmp/tool-events
ktap_check "qp status says that it waits" prints 0 'state: quiesced' nvme-peer qp status "$holder" "$fd"
ktap_check "events wants a number" prints 2 'count' nvme-peer events --count x

kill "$holder"
wait "$holder" 2>/dev/null
ktap_check "it goes with its process" prints 0 'none' nvme-peer qp list

ktap_check "a user without rights is told so" \
	prints 1 'permissions of the node' setpriv --reuid=65534 --clear-groups nvme-peer info "$node"
ktap_end
