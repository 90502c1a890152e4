#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench-gpu.sh: build, check and measure the device library on the CUDA GPU of
# this machine.  No NVMe controller is needed: null controllers on other SMs or
# on host threads complete the commands, so that the figures are the cost of the
# library only.
#
# usage: bench-gpu.sh [--out FILE] [--quick] [--no-build]
#
# Writes one JSON object to FILE (build/cuda/bench-gpu.json) and a table to
# standard output.  Exit status: 0 if every bar is met, 1 if one is missed, 2
# if something failed.  Figures are medians of 5 runs (3 with --quick).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
programs=${BENCH_DIR:-$here/../../build/cuda}
out=
repeat=5
build=1
while [ $# -gt 0 ]; do
	case $1 in
	--out) out=$2; shift ;;
	--quick) repeat=3 ;;
	--no-build) build=0 ;;
	*) echo "usage: $0 [--out FILE] [--quick] [--no-build]" >&2; exit 2 ;;
	esac
	shift
done
mkdir -p "$programs"
programs=$(cd "$programs" && pwd)
out=${out:-$programs/bench-gpu.json}
results=$programs/results.jsonl
: >"$results"
failed=0
processors=$(nproc)
host_threads=$((processors > 4 ? processors - 2 : 2))

say() { echo "bench-gpu: $*" >&2; }

if [ "$build" = 1 ]; then
	command -v nvcc >/dev/null || { say "no nvcc in PATH: install the CUDA toolkit"; exit 2; }
	say "building in $programs"
	make -s -j "$processors" -C "$here" OUT="$programs" all
fi

# run SECONDS PROGRAM ARGUMENT...: append the output of a program to the results.
run() {
	local limit=$1 program=$2 status=0
	shift 2
	timeout -k 5 "$limit" "$programs/$program" repeat="$repeat" "$@" >>"$results" || status=$?
	if [ "$status" != 0 ]; then
		say "$program $* ended with status $status"
		failed=1
	fi
}

say "hardware: loads, stores, fences, round trips"
timeout -k 5 60 "$programs/micro" >>"$results" || failed=1

say "data integrity"
data_status=0
timeout -k 5 120 "$programs/data" >"$programs/data.ktap" || data_status=$?
grep -E '^(not )?ok|^#' "$programs/data.ktap" >&2 || true
[ "$data_status" = 0 ] || failed=1

say "lists of pages over the link"
run 60 lists

say "one thread"
# Host threads are preempted more often than SMs: stable medians need more runs.
for mode in doorbell raw shared exclusive; do
	run 30 bench-1 name="one_$mode" mode=$mode sms=1 threads=1 queues=1
	run 30 bench-1 name="host_one_$mode" mode=$mode sms=1 threads=1 queues=1 \
		place=host ctrl=host ctrlthreads=1 repeat=15
done

say "one thread against the exchange by hand, ten times"
for number in 0 1 2 3 4 5 6 7 8 9; do
	for mode in raw exclusive; do
		run 30 bench-1 name="qd1_${mode}_$number" mode=$mode sms=1 threads=1 queues=1 \
			place=host ctrl=host ctrlthreads=1 repeat=15
	done
done

say "client on few SMs"
run 30 bench-1024 name=sm1 sms=1 queues=32 ctrlsms=32
run 30 bench-1024 name=sm2 sms=2 queues=64 ctrlsms=64
run 30 bench-1024 name=sm4_q32 sms=4 queues=32 ctrlsms=32
run 30 bench-2048 name=sm1_full sms=1 threads=2048 queues=64 ctrlsms=64
run 30 bench-2048 name=sm2_full sms=2 threads=2048 queues=128
run 30 bench-2048 name=sm4_q32_full sms=4 threads=2048 queues=32 ctrlsms=32
run 30 bench-1024 name=sm1_exclusive mode=exclusive sms=1 queues=32 ctrlsms=32
run 30 bench-1024 name=sm2_exclusive mode=exclusive sms=2 queues=64 ctrlsms=64
run 30 bench-1024 name=sm2_checked mode=checked sms=2 queues=64 ctrlsms=64

say "tail latency"
run 30 bench-1024 name=tail_1 mode=latency sms=1 queues=32 ctrlsms=32
run 30 bench-1024 name=tail_4 mode=latency sms=4 queues=32 ctrlsms=32
run 30 bench-1024 name=tail_64 mode=latency sms=64 queues=128 depth=4096

say "computation on all SMs with concurrent I/O"
run 120 beside ctrlthreads="$host_threads"

say "rings and doorbells in host memory"
run 30 bench-1024 name=host_sm16 sms=16 queues=128 place=host ctrl=host ctrlthreads="$host_threads"
run 30 bench-1024 name=host_sm8 sms=8 queues=128 place=host ctrl=host ctrlthreads="$host_threads"
run 30 bench-1024 name=host_sm16_q32 sms=16 queues=32 place=host ctrl=host ctrlthreads="$host_threads"
run 30 bench-1024 name=host_sm16_gpu sms=16 queues=128 place=host
run 30 bench-1024 name=host_sm4_exclusive mode=exclusive sms=4 queues=128 place=host ctrl=host \
	ctrlthreads="$host_threads"

say "scaling"
for queues in 1 2 4 8 16 32 64 128; do
	run 60 bench-1024 name="queues_$queues" sms=16 queues=$queues
done
for sms in 1 2 4 8 16 32 64; do
	run 30 bench-1024 name="threads_$((sms))K" sms=$sms queues=128 depth=4096
done
run 30 bench-2048 name=threads_128K sms=64 threads=2048 queues=128 depth=4096
run 30 bench-2048 name=threads_256K sms=128 threads=2048 queues=128 depth=4096 ctrlsms=4
run 60 bench-1024 name=threads_120K_q8 sms=120 queues=8 ctrlsms=8
# 800 threads on 512 CIDs for each queue pair.
run 60 bench-1024 name=threads_50K_few_cids mode=checked sms=50 queues=64 depth=128

say "10^10 commands, every result checked"
saved=$repeat
repeat=1
run 120 bench-1024 name=ten_billion mode=checked sms=64 queues=128 total=10000000000
repeat=$saved

# Warp instructions of the client's SM, polls included, for a group of 32 commands.
# With host controllers the other SMs are idle.
instructions() {
	local mode=$1 log
	command -v ncu >/dev/null || return 0
	log=$(timeout -k 5 60 ncu --clock-control none --metrics sm__inst_executed.max \
		-k regex:run --launch-skip 1 --launch-count 1 "$programs/bench-1024" name=ncu \
		mode="$mode" sms=1 queues=32 place=host ctrl=host ctrlthreads="$host_threads" \
		repeat=1 ms=5 2>/dev/null) || return 0
	awk -v mode="$mode" '
		match($0, /"commands":[0-9]+/) { commands = substr($0, RSTART + 11, RLENGTH - 11) }
		/sm__inst_executed.max/ { gsub(/,/, "", $NF); count = $NF }
		END {
			if (commands && count)
				printf "{\"instructions\":\"%s\",\"per_group\":%.0f,\"per_command\":%.2f}\n",
				       mode, count / commands * 32, count / commands
		}' <<<"$log" >>"$results"
}

say "instructions"
instructions shared
instructions exclusive

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
{
	echo "{\"gpu\":\"${gpu:-unknown}\",\"data_checks\":$([ "$data_status" = 0 ] && echo true || echo false),"
	echo "\"results\":["
	sed '$!s/$/,/' "$results"
	echo "]}"
} >"$out"

# The table: figure, spread, limit.  Values by name, from the lines of JSON.
awk -v failed="$failed" '
function field(line, key,    at) {
	if (!match(line, "\"" key "\":[^,}]*")) return ""
	at = substr(line, RSTART, RLENGTH); sub(/^[^:]*:/, "", at); gsub(/"/, "", at)
	# A number, not a string, which would be compared by its characters.
	return at ~ /^[-+0-9.e]+$/ ? at + 0 : at
}
/"name"/ {
	n = field($0, "name"); rate[n] = field($0, "mcmds"); low[n] = field($0, "min")
	high[n] = field($0, "max"); us[n] = field($0, "us_per_command")
	batch[n] = field($0, "commands_per_batch"); regs[n] = field($0, "registers")
	half[n] = field($0, "p50_us"); rare[n] = field($0, "p999_us")
	longest[n] = field($0, "longest_us")
}
/"beside"/ {
	n = field($0, "beside"); ratio[n] = field($0, "ratio"); rate[n] = field($0, "mcmds")
	low[n] = field($0, "min"); high[n] = field($0, "max"); bytes[n] = field($0, "gbytes")
}
/"list":/ {
	n = "list " field($0, "list"); ratio[n] = field($0, "ratio"); bytes[n] = field($0, "gbytes")
	low[n] = field($0, "min"); high[n] = field($0, "max"); us[n] = field($0, "us"); rate[n] = field($0, "mcmds")
}
/"instructions"/ { warp[field($0, "instructions")] = field($0, "per_group") }
/"micro"/ { ns[field($0, "micro")] = field($0, "ns") }
function row(what, value, unit, spread, bar, good) {
	printf "%-46s %10s %-6s %-20s %-12s %s\n", what, value, unit, spread, bar, good
	if (good == "MISSED") missed = 1
}
function rated(what, n, bar) {
	if (!(n in rate)) { row(what, "-", "M/s", "", bar ? ">= " bar : "", bar ? "MISSED" : ""); return }
	row(what, sprintf("%.1f", rate[n]), "M/s", high[n] ? sprintf("%.1f to %.1f", low[n], high[n]) : "",
	    bar ? ">= " bar : "", bar ? (rate[n] >= bar ? "met" : "MISSED") : "")
}
function timed(what, value, bar, limit) {
	row(what, sprintf("%.3f", value), what ~ /ratio/ ? "" : "us", "", bar, bar == "" ? "" : (value <= limit ? "met" : "MISSED"))
}
function tail(what, n,    times) {
	times = half[n] ? rare[n] / half[n] : 0
	row(what, sprintf("%.2f", half[n]), "us", sprintf("maximum %.1f", longest[n]), "", "")
	row("  99.9th percentile over it", sprintf("%.2f", times), "", sprintf("%.2f us", rare[n]),
	    "<= 3", times && times <= 3 ? "met" : "MISSED")
}
function beside(what, n, limit, least,    good) {
	good = ratio[n] && ratio[n] <= limit && rate[n] >= least
	row(what, sprintf("%.4f", ratio[n]), "",
	    sprintf("%.4f to %.4f", low[n], high[n]), limit ? "<= " limit : "",
	    limit ? (good ? "met" : "MISSED") : "")
	if (bytes[n] + 0)
		row("  moved into HBM", bytes[n], "GB/s", "", "", "")
	else
		row("  commands meanwhile", sprintf("%.1f", rate[n]), "M/s", "", least ? ">= " least : "",
		    least ? (rate[n] >= least ? "met" : "MISSED") : "")
}
function moved(what, n, bar,    name) {
	name = "list " n
	row(what, bytes[name] ? sprintf("%.1f", bytes[name]) : "-", "GB/s",
	    low[name] ? sprintf("%.1f to %.1f", low[name], high[name]) : "", "", "")
	if (bar)
		row("  ratio", sprintf("%.3f", ratio[name]), "", "", ">= " bar, ratio[name] >= bar ? "met" : "MISSED")
}
END {
	printf "%-46s %10s %-6s %-20s %-12s\n", "case", "median", "", "spread", "bar"
	rated("client on 1 SM, 32 queues", "sm1", 130)
	rated("client on 2 SMs, 64 queues", "sm2", 260)
	rated("client on 4 SMs, 32 queues", "sm4_q32", 340)
	rated("client on 64 SMs, 128 queues", "threads_64K", 2700)
	tail("call on 1 SM, 32 queues, median", "tail_1")
	tail("call on 4 SMs, 32 queues, median", "tail_4")
	tail("call on 64 SMs, 128 queues, median", "tail_64")
	beside("FMA with exclusive reads on all SMs, time ratio", "fma_exclusive", 1.005, 300)
	beside("  beside shared calls", "fma_shared", 1.01, 0)
	beside("  beside reads into HBM", "fma_data", 0, 0)
	beside("  beside the same copies without reads", "fma_copies", 0, 0)
	beside("FMA without stalls with exclusive reads, time ratio", "fma8_exclusive", 1.005, 0)
	beside("  beside shared calls", "fma8_shared", 1.01, 0)
	beside("  beside reads into HBM", "fma8_data", 0, 0)
	beside("  beside the same copies without reads", "fma8_copies", 0, 0)
	beside("HBM streaming with exclusive reads, time ratio", "stream_exclusive", 1.02, 300)
	beside("  beside shared calls", "stream_shared", 1.01, 0)
	beside("  beside reads into HBM", "stream_data", 0, 0)
	beside("  beside the same copies without reads", "stream_copies", 0, 0)
	rated("  2048 threads an SM, 1 SM", "sm1_full", 0)
	rated("  2048 threads an SM, 2 SMs", "sm2_full", 0)
	rated("  2048 threads an SM, 4 SMs, 32 queues", "sm4_q32_full", 0)
	rated("  exclusive, 1 SM", "sm1_exclusive", 0)
	rated("  exclusive, 2 SMs", "sm2_exclusive", 0)
	rated("rings and doorbell in host memory, 16 SMs", "host_sm16", 100)
	rated("  8 SMs", "host_sm8", 0)
	rated("  controllers on the GPU", "host_sm16_gpu", 0)
	rated("  exclusive, 4 SMs", "host_sm4_exclusive", 0)
	timed("null controller only (doorbell to entry)", us["one_doorbell"], "", 0)
	timed("  entry, fence, doorbell by hand", us["one_raw"], "", 0)
	timed("one thread above the null controller", us["one_shared"] - us["one_doorbell"], "<= 2", 2)
	timed("  exclusive", us["one_exclusive"] - us["one_doorbell"], "", 0)
	timed("host-thread controller, exchange by hand", us["host_one_raw"], "", 0)
	timed("  library, exclusive", us["host_one_exclusive"], "", 0)
	timed("  library, shared", us["host_one_shared"], "", 0)
	timed("  exclusive over exchange by hand, ratio", us["host_one_exclusive"] / us["host_one_raw"], "<= 1.15", 1.15)
	for (q = 0; q < 10; q++)
		within += us["qd1_raw_" q] && us["qd1_exclusive_" q] / us["qd1_raw_" q] <= 1.15
	row("  same, runs of 10 within 1.15", within, "", "", ">= 9",
	    within >= 9 ? "met" : "MISSED")
	timed("  bare word there and back", ns["ping"] / 1000, "", 0)
	timed("  exclusive over bare word, ratio", us["host_one_exclusive"] / (ns["ping"] / 1000), "", 0)
	for (q = 1; q <= 128; q *= 2) rated("16 SMs, " q " queues", "queues_" q, 0)
	for (t = 1; t <= 256; t *= 2) rated(t " K threads, 128 queues", "threads_" t "K", 0)
	rated("120 K threads, 8 queues of 1024", "threads_120K_q8", 0)
	rated("50 K threads, 64 queues of 128", "threads_50K_few_cids", 0)
	rated("10^10 commands, results checked", "ten_billion", 0)
	moved("list of 4,096 pages of 16 KiB, SGLs", "sgl", 0.95)
	moved("  PRPs", "prp", 0.95)
	moved("  rings and doorbells in host memory", "host rings", 0)
	moved("  by a thread of the host, the same", "host thread", 0)
	moved("  kernel that gathers the pages", "sgl gather", 0)
	moved("  moves of the controllers without a list", "separate moves only", 0)
	moved("  one contiguous copy", "one copy", 0)
	moved("  cudaMemcpyBatchAsync", "batch of copies", 0)
	moved("  cudaMemcpyAsync for each page", "copy for each page", 0)
	rated("  commands to controllers that move nothing", "list separate null controller", 0)
	moved("set of 4 controllers at a fifth of the link", "set of 4 at a fifth each", 3.8)
	for (q = 7; q <= 28; q *= 2) moved("controller of " q " GB/s", "rate " q, 0)
	for (q = 1; q < 100; q = q == 1 ? 10 : q * 7)
		timed("one page of 16 KiB, latency of " q " us", us["list latency " q], "", 0)
	timed("launch of a list", us["list launch"], "<= 10", 10)
	printf "registers of the client kernel: %s unlimited, %s (1024 threads an SM), %s (2048)\n",
	       regs["one_shared"], regs["sm1"], regs["sm1_full"]
	if ("shared" in warp)
		printf "warp instructions for 32 commands, polls included: %s, exclusive %s\n",
		       warp["shared"], warp["exclusive"]
	exit failed ? 2 : missed ? 1 : 0
}' "$results"
