#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The nvme-peer command and libnvmepeer on an emulated controller: output, and messages of
# refused calls.
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
# Writes go to np1, as other tests have data on np0.
other=$(np_node np1)

# prints STATUS PATTERN COMMAND...: passes if it exits with STATUS and prints the pattern.
prints() {
	local expected=$1 pattern=$2 status=0 output
	shift 2
	output=$("$@" 2>&1) || status=$?
	echo "$output"
	((status == expected)) && grep -qE -- "$pattern" <<<"$output"
}

# json KEY.. -- COMMAND...: prints a member of the JSON output.
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

# All counters equal those of nvme-cli.
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

# The counter KEY of the first disk, or its sum over the queues of the CPU.
counted() {
	nvme-peer stat "$node" -o json | python3 -c '
import json, sys
stat, key = json.load(sys.stdin), sys.argv[1]
print(sum(queue[key] for queue in stat["queues"] if queue["owner"] == "io") if key == "completions"
      else stat["disks"][0][key])' "$1"
}

# Seven reads add seven to each counter.
stat_counts() {
	local reads completions
	reads=$(counted reads)
	completions=$(counted completions)
	read_times 7
	ktap_same "$(counted reads)" $((reads + 7)) && (($(counted completions) >= completions + 7))
}

# The rate is above zero and not above the total. The machine may stand still for all of the 2 s.
stat_rates() {
	local before all reader rate
	before=$(counted reads)
	(while read_times 1; do sleep 0.01; done) &
	reader=$!
	for _ in {1..3}; do
		rate=$(nvme-peer stat "$node" 2 | awk -v disk="${node}n1" '$1 == disk { print $2 }')
		[[ $rate =~ ^[0.]*$ ]] || break
	done
	kill "$reader"
	wait "$reader"
	all=$(($(counted reads) - before))
	echo "$rate reads a second for 2 s, $all in all"
	awk -v rate="$rate" -v all="$all" 'BEGIN { exit !(rate > 0 && 2 * rate <= all) }'
}

# bench ARGUMENT...: passes if the controller counted as many reads or writes, of as many
# blocks, as bench reports, and if the mean latency fits the number of commands in flight
# (Little's law; fewer are in flight at the end). None is while the machine stands still between two: the
# best of three runs counts.
bench() {
	bench_of "$node" "$namespace" "$@"
}

too_few=3
bench_of() {
	local result
	for _ in {1..3}; do
		bench_once "$@"
		result=$?
		((result == too_few)) || break
	done
	return "$result"
}

bench_once() {
	local before after
	before=$(nvme-peer smart "$1" -o json) && nvme-peer bench -o json "$@" >/tmp/tool-bench &&
		after=$(nvme-peer smart "$1" -o json) || return
	python3 - "$before" "$after" "$too_few" <<-'PYTHON'
	import json, sys
	bench = json.load(open("/tmp/tool-bench"))
	before, after, too_few = (json.loads(text) for text in sys.argv[1:])
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
	in_flight = latency["mean"] * commands / took / bench["entries"]
	assert in_flight < 1.05
	parts = [latency[part] for part in ("p50", "p90", "p99", "p999", "max")]
	assert 0 < parts[0] and parts == sorted(parts)
	sys.exit(0 if in_flight > 0.7 else too_few)
	PYTHON
}

bench_says() {
	json "$1" -- cat /tmp/tool-bench
}

# bench_polled ARGUMENT...: on a queue without interrupts; rebinds np1.
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

# fio's JSON has each name of ours, in the same place, with a value of the same kind.
like_fio() {
	nvme-peer bench "$node" "$namespace" --seconds 1 -o fio >/tmp/tool-fio-ours &&
		fio --name=job --ioengine=io_uring_cmd --cmd_type=nvme --filename="/dev/$namespace" --rw=randread --bs=4k \
			--iodepth=32 --time_based --runtime=1 --output-format=json >/tmp/tool-fio-theirs || return
	python3 - <<-'PYTHON'
	import json
	ours, theirs = (json.load(open("/tmp/tool-fio-" + name)) for name in ("ours", "theirs"))
	def compare(a, b, path):
	    if isinstance(a, dict):
	        for name in a:
	            if path.endswith("job options"): assert isinstance(a[name], str)
	            else: compare(a[name], b[name], path + "/" + name)
	    elif isinstance(a, list): compare(a[0], b[0], path + "/0")
	    else: assert isinstance(a, str) == isinstance(b, str), path
	compare(ours, theirs, "")
	job = ours["jobs"][0]
	read, spread = job["read"], list(job["read"]["clat_ns"]["percentile"].values())
	print(read)
	assert job["write"]["total_ios"] == 0 and read["total_ios"] > 0 and read["runtime"] >= 1000
	assert abs(read["iops"] * read["runtime"] / 1000 / read["total_ios"] - 1) < 0.01
	assert read["bw_bytes"] // 1024 == read["bw"] and read["io_bytes"] == 4096 * read["total_ios"]
	assert spread == sorted(spread) and read["lat_ns"]["min"] <= read["lat_ns"]["mean"] <= read["lat_ns"]["max"]
	PYTHON
}

# A plot of depths 1, 2, 3: four lines.
plots() {
	nvme-peer bench "$node" "$namespace" --seconds 1 --sweep --entries 3 -o svg | python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.stdin).getroot()
count = lambda name: len(root.findall(".//{http://www.w3.org/2000/svg}" + name))
print(count("polyline"), count("circle"))
assert count("polyline") == 4 and count("circle") == 12'
}

swap_on() {
	mkswap -q "$1" >/dev/null && swapon "$1"
}

# bench_fd ARGUMENT...: into a dma-buf of 64 KiB that the parent has created.
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
ktap_check "at most half of the queues are for peers" python3 -c '
import json, subprocess, sys
info = json.loads(subprocess.check_output(["nvme-peer", "-o", "json", "info", sys.argv[1]]))
assert 0 < info["qids_peer_free"] <= info["qids_peer_max"] <= info["qids_total"] / 2, info' "$node"
ktap_check "info of a foreign node names a controller node" \
	prints 1 '/dev/nvmepX' nvme-peer info /dev/null
ktap_check "info of a missing node explains bind" \
	prints 1 'nvme-peer bind' nvme-peer info nvmep77

ktap_check "smart agrees with nvme-cli" counts_alike
ktap_check "stat counts" stat_counts
ktap_check "stat gives rates" stat_rates
ktap_check "smart of a missing node" prints 1 'nvme-peer bind' nvme-peer smart nvmep77
ktap_check "reset of a missing node" prints 1 'No such device' nvme-peer reset nvmep77

ktap_check "route to the controller itself is none" \
	prints 1 'same-function' nvme-peer route "$node" "$(np_address np0)"
ktap_check "topo shows the verdict of the module" \
	prints 0 "^$(np_address np1) .* $(json data verdict -- nvme-peer -o json route "$node" "$(np_address np1)")( |$)" \
	nvme-peer topo "$(np_address np1)"
ktap_check "route to the other controller has a reason" \
	prints 0 explanation: nvme-peer route "$node" "$(np_address np1)"
ktap_check "route to a missing function" \
	prints 1 'no PCI function' nvme-peer route "$node" 0000:fe:1f.7
ktap_check "route to an invalid address" \
	prints 2 'PCI address' nvme-peer route "$node" here
ktap_check "route of a file that is not a dma-buf" \
	prints 1 'not a dma-buf' nvme-peer route "$node" --fd 0
ktap_check "route of a closed descriptor" \
	prints 1 'not an open file' nvme-peer route "$node" --fd 77

ktap_check "host memory is imported" \
	is host-memory json verdict -- nvme-peer -o json import-check "$node" --host 1048576
ktap_check "host memory is not device memory" \
	prints 1 'host RAM' \
	nvme-peer import-check "$node" --host 65536 --require-device
ktap_check "qp check reads with the CPU as the peer" \
	prints 0 'reads: 64' nvme-peer qp check "$node" "$namespace"
ktap_check "bench --into" bench --into --seconds 1
ktap_check "bench --into uses imported memory" is imported bench_says memory
ktap_check "bench --into uses host memory" is host-memory bench_says verdict
ktap_check "bench --into, 4 commands of 128 KiB" bench --into --seconds 1 --size 131072 --entries 4
ktap_check "bench --into, lists" bench --into --ranges 32 --entries 4 --seconds 1
ktap_check "bench --into, writes by lists" \
	bench_of "$other" "ngp${other#nvmep}n1" --write --force --into --ranges 4 --seconds 1
if [[ -e /dev/udmabuf ]]; then
	export NVMEPEER_LIBCUDA=/build/user/lib/fake-libcuda.so FAKE_CUDA_UDMABUF=1
	ktap_check "bench --cuda, with the fake libcuda" bench --into --cuda 0 --seconds 1
	ktap_check "bench: missing GPU" prints 1 'no CUDA device 3' \
		nvme-peer bench "$node" "$namespace" --into --cuda 3
	unset NVMEPEER_LIBCUDA FAKE_CUDA_UDMABUF
else
	ktap_skip "bench --cuda" "the kernel has no udmabuf"
	ktap_skip "bench: missing GPU" "the kernel has no udmabuf"
fi
ktap_check "bench: missing libcuda" prints 1 "install NVIDIA's driver" \
	nvme-peer bench "$node" "$namespace" --into --cuda 0
ktap_check "a queue pair of 2 entries works" \
	prints 0 'sq_entries: 2$' nvme-peer qp check "$node" "$namespace" --entries 2
ktap_check "the kernel writes no doorbell of a peer" \
	is 0 json cpu_doorbell_writes -- nvme-peer -o json qp check "$node" "$namespace"
ktap_check "bench" bench --seconds 1
ktap_check "bench uses memory of the process" is own bench_says memory
ktap_check "bench prints the JSON of fio" like_fio
ktap_check "bench plots a sweep" plots
ktap_check "bench shows its progress on a terminal" \
	prints 0 'depth 32: 1 of 2 s, .* reads, p99 ' script -qec "nvme-peer bench $node $namespace --seconds 2" /dev/null
ktap_check "bench, one command in flight" bench --seconds 1 --entries 1
ktap_check "bench: size is not a multiple of the block size" prints 2 'multiple of 512' nvme-peer bench "$node" "$namespace" --size 1000
ktap_check "bench: size above max_transfer" prints 2 'at most [0-9]+' nvme-peer bench "$node" "$namespace" --size 1073741824
ktap_check "bench: 0 entries" prints 2 '1 to 4096' nvme-peer bench "$node" "$namespace" --entries 0
ktap_check "bench: a buffer without --into" prints 2 'with --into' nvme-peer bench "$node" "$namespace" --fd 0
ktap_check "bench: lists without --into" prints 2 'with --into' nvme-peer bench "$node" "$namespace" --ranges 2
ktap_check "bench: lists above the limit" prints 2 '1 to 32' nvme-peer bench "$node" "$namespace" --into --ranges 33
ktap_check "bench --polled" bench_polled --seconds 1
other=$(np_node np1)
np_until 200 test -b "/dev/${other}n1"
ktap_check "bench --write" bench_of "$other" "ngp${other#nvmep}n1" --write --force --seconds 1
ktap_check "bench: --write requires --force" prints 2 'requires --force' nvme-peer bench "$other" "ngp${other#nvmep}n1" --write
swap_on "/dev/${other}n1"
ktap_check "bench: no write to a disk in use" prints 1 'in use; nothing was written' \
	nvme-peer bench "$other" "ngp${other#nvmep}n1" --write --force
swapoff "/dev/${other}n1"
wipefs -aq "/dev/${other}n1"
ktap_check "bench: file that is not a dma-buf" prints 1 'not a dma-buf' nvme-peer bench "$node" "$namespace" --into --fd 0
if [[ -e /dev/udmabuf ]]; then
	ktap_check "bench --fd" prints 0 'memory: imported' bench_fd --entries 16 --seconds 1
	ktap_check "bench: dma-buf that is too short" prints 1 'has 65536 bytes.* need 69632' bench_fd --entries 17
else
	ktap_skip "bench --fd" "the kernel has no udmabuf"
	ktap_skip "bench: dma-buf that is too short" "the kernel has no udmabuf"
fi
ktap_check "bench: missing namespace" prints 1 'node does not exist' nvme-peer bench "$node" ngp77n1
ktap_check "one entry is refused with the limit" \
	prints 1 'a ring has 2 to [0-9]+' nvme-peer qp check "$node" "$namespace" --entries 1
ktap_check "too many entries are refused with the limit" \
	prints 1 'CAP.MQES' nvme-peer qp check "$node" "$namespace" --entries 1000000
ktap_check "a refusal is JSON too" \
	is 22 json refused errno -- nvme-peer -o json qp check "$node" "$namespace" --entries 1

# A process with a queue pair: struct nvme_peer_qp_create with 32 entries.
hold_queue_pair() {
	exec python3 -c '
import fcntl, struct, sys, time
node = open("/dev/" + sys.argv[1], "r+b", buffering=0)
request = bytearray(struct.pack("=8I2Q3I52x", 112, 0, 0, 0, 32, 32, 0, 0, 0, 0, 0, 0, 0))
fcntl.ioctl(node, 0xbb << 8 | 5, request)
print("held", flush=True)
time.sleep(60)' "$node"
}

ktap_check "qp list without queue pairs" prints 0 'none' nvme-peer qp list
mkfifo /tmp/tool-held
hold_queue_pair >/tmp/tool-held &
holder=$!
read -r held </tmp/tool-held
ktap_check "a queue pair is held" test "$held" = held
ktap_check "qp list finds its process" \
	is "$holder" json queue_pairs 0 pid -- nvme-peer -o json qp list
ktap_check "and its controller" \
	is "$node" json queue_pairs 0 controller -- nvme-peer -o json qp list
ktap_check "top shows its process as a tenant" \
	prints 0 "^$holder +python3 +1 +1 +0 +[1-9][0-9]* +0( +-){6}$" nvme-peer top "$node" --count 1
ktap_check "metrics count its queue pair" prints 0 "^nvme_peer_queue_pairs\{controller=\"$node\"\} 1$" nvme-peer metrics
fd=$(json queue_pairs 0 fd -- nvme-peer -o json qp list)
ktap_check "qp status shows it" prints 0 'sq_entries: 32' nvme-peer qp status "$holder" "$fd"
ktap_check "qp status of another file" prints 1 'not a queue pair' nvme-peer qp status "$holder" 1

# Events of a reset.
nvme-peer -o json events --count 2 >/tmp/tool-events &
listener=$!
is_listening() {
	[[ $(find "/proc/$listener/fd" -lname 'socket:*' -print -quit) ]]
}
np_until 100 is_listening
ktap_check "reset" is live json state -- nvme-peer reset "$node" -o json
wait "$listener"
ktap_check "events reports that the queue pair stopped" is stopped json events 0 event -- cat /tmp/tool-events
ktap_check "events reports the controller" is "$node" json events 0 node -- cat /tmp/tool-events
ktap_check "events reports that the queue pair is ready" is ready json events 1 event -- cat /tmp/tool-events
ktap_check "events reports the number of queue pairs" is 1 json events 1 queue_pairs -- cat /tmp/tool-events
ktap_check "qp status shows quiesced" prints 0 'state: quiesced' nvme-peer qp status "$holder" "$fd"
ktap_check "events requires a number" prints 2 'count' nvme-peer events --count x

# A live queue pair, then a released one whose doorbells are still mapped: unbind is refused.
stays_bound() {
	prints 1 "$1" nvme-peer unbind "$node" && [[ -e /dev/$node ]]
}

# Maps the doorbells and closes the queue pair: struct nvme_peer_qp_export, what 2.
hold_doorbells() {
	exec python3 -c '
import fcntl, mmap, os, struct, sys, time
node = open("/dev/" + sys.argv[1], "r+b", buffering=0)
request = bytearray(struct.pack("=8I2Q3I52x", 112, 0, 0, 0, 32, 32, 0, 0, 0, 0, 0, 0, 0))
fcntl.ioctl(node, 0xbb << 8 | 5, request)
qp = struct.unpack_from("=i", request, 48)[0]
request = bytearray(struct.pack("=3Ii2Q2I", 40, 0, 2, -1, 0, 0, 0, 0))
fcntl.ioctl(qp, 0xbb << 8 | 0x10, request)
fd, length = struct.unpack_from("=i8xQ", request, 12)
doorbells = mmap.mmap(fd, length)
for each in (fd, qp, node.fileno()):
    os.close(each)
print("held", flush=True)
time.sleep(60)' "$node"
}

ktap_check "unbind is refused while a peer has a queue pair" stays_bound 'peers have 1 queue pairs'
kill "$holder"
wait "$holder" 2>/dev/null
ktap_check "qp list after the process has ended" prints 0 'none' nvme-peer qp list

# A sealed mediated queue pair with a window, which has executed a Flush and refused a command: structures
# nvme_peer_window_add and nvme_peer_qp_seal, and entries in the exported ring.
hold_mediated() {
	exec python3 -c '
import fcntl, mmap, os, struct, sys, time
def call(fd, number, layout, *values):
    request = bytearray(struct.pack(layout, struct.calcsize(layout), *values))
    fcntl.ioctl(fd, 0xbb << 8 | number, request)
    return struct.unpack(layout, request)
def part(what):
    values = call(qp, 0x10, "=3Ii2Q2I", 0, what, -1, 0, 0, 0, 0)
    page = mmap.PAGESIZE
    return mmap.mmap(values[3], (values[4] + values[5] + page - 1) // page * page), values[4]
node = os.open("/dev/" + sys.argv[1], os.O_RDWR)
disk = os.open("/dev/" + sys.argv[1] + "n1", os.O_RDONLY)
qp = call(node, 5, "=8I2Q3I52x", 0, 2, 0, 16, 16, 0, 0, 0, 0, 0, 0, 0)[10]
window = call(qp, 0x13, "=2IiI2Q2I", 0, disk, 0, 0, 0, 0, 0)[3]
call(qp, 0x1b, "=2I", 0)
ring, start = part(0)
struct.pack_into("=2I56x", ring, start, 0, window)
struct.pack_into("=2I56x", ring, start + 64, 0x1007f, window)
doorbells, start = part(2)
struct.pack_into("=I", doorbells, start, 2)
print("held", flush=True)
time.sleep(60)' "$node"
}

mkfifo /tmp/tool-mediated
hold_mediated >/tmp/tool-mediated &
holder=$!
read -r held </tmp/tool-mediated
ktap_is "a mediated queue pair is held" "$held" held
# holds MEMBER VALUE: of the queue pair in the list.
holds() {
	is "$2" json queue_pairs 0 "$1" -- nvme-peer -o json qp list
}
ktap_check "qp list shows its mode" holds mode mediated
ktap_check "its windows" holds windows 1
ktap_check "that it is sealed" holds sealed True
# These are counted when they have been executed.
ktap_check "its Flush" np_until 40 holds flushes 1
ktap_check "its refused command" np_until 40 holds refused 1
ktap_check "stat shows it by tenant" is 1 json tenants 0 refused -- nvme-peer -o json stat "$node"
ktap_check "stat shows the tenant in a table" \
	prints 0 "^$holder +python3 +1 +1 +0 +mediated +1 +0 +0 B +0 +0 B +1 +0$" nvme-peer stat "$node"
ktap_check "top shows its rates" \
	prints 0 "^$holder +python3 +1 +1 +0 +mediated +1 +0.0 +0 B/s +0.0 +0 B/s +0.0 +0.0$" nvme-peer top "$node" --count 1
kill "$holder"
wait "$holder" 2>/dev/null

mkfifo /tmp/tool-mapped
hold_doorbells >/tmp/tool-mapped &
holder=$!
read -r held </tmp/tool-mapped
ktap_is "doorbells are mapped" "$held" held
ktap_is "no queue pair is left" "$(json controllers 0 peer_pairs -- nvme-peer -o json list)" 0
ktap_check "unbind is refused while a queue ID is quarantined" stays_bound 'of 1 quarantined queue IDs'
kill "$holder"
wait "$holder" 2>/dev/null
ktap_check "unbind after the process has ended" prints 0 "^ *echo '*$(np_address np0)'* > .*/unbind" nvme-peer unbind "$node" --dry-run

ktap_check "a user without permission gets an explanation" \
	prints 1 'permissions of the node' setpriv --reuid=65534 --clear-groups nvme-peer info "$node"
ktap_end
