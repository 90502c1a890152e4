#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A real GPU drives the real module: a guest with the module, whose stand-in GPU has its
# programs run on this machine's GPU, and whose controller is a process that shares its
# doorbells. Without a GPU the same by a stand-in for libcuda, and shorter.
#
# usage: selftests/cuda/card.sh [OPTION...]
#        selftests/cuda/card.sh --bundle FILE.tar.xz
#   --engine cuda|fake   default: cuda where there is a GPU
#   --rounds N           each way of taking a queue pair away from running threads; default 20, fake: 2
#   --commands N         verified in a row, at most; default 100000000, fake: 20000
#   --soak SECONDS       these end then in any case; default 100, fake: 20
#   --seconds N          of the demonstration; default 20, fake: 0
#   --parts "NAME..."    only these: bare gpu_card gpu_card_rate gpu_card_pairs gpu_card_gather
#                        gpu_card_soak demo; bare is without guest and module, for comparison
#
# A machine with a GPU that can fetch nothing is given the bundle, made elsewhere with
# CUDA's compiler: unpack it and run this file in there. Results: build/card/card.json.
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"
. "$(dirname "$0")/../lib/cell.sh"

engine='' seconds='' rounds='' commands='' soak='' bundle='' parts='bare gpu_card gpu_card_rate gpu_card_pairs gpu_card_gather gpu_card_soak demo'
while (($#)); do
	case $1 in
	--engine) engine=${2:?}; shift ;;
	--seconds) seconds=${2:?}; shift ;;
	--rounds) rounds=${2:?}; shift ;;
	--commands) commands=${2:?}; shift ;;
	--soak) soak=${2:?}; shift ;;
	--parts) parts=${2:?}; shift ;;
	--bundle) bundle=${2:?}; shift ;;
	*) sed -n '7,15s/^# \{0,1\}//p' "$0" >&2; exit 1 ;;
	esac
	shift
done

# What a bundle unpacked to is its own cache.
if [[ -f $np_source/cache/.bundle ]]; then
	export NVME_PEER_CACHE=$np_source/cache
fi

build() {
	"$np_source/selftests/setup/setup.sh" 7
	"$np_source/selftests/setup/build-modules" 7 >/dev/null
	make -s -C "$np_source" user
}

# Only for a GPU, and only CUDA's compiler can.
build_kernel() {
	"$np_source/selftests/setup/in-tree" make -s -C "$np_source/selftests/softgpu" \
		OUT="$np_source/build/user" cubin
}

if [[ $bundle ]]; then
	build
	build_kernel
	exec "$np_source/selftests/setup/bundle" "$bundle"
fi

if [[ ! $engine ]]; then
	engine=fake
	[[ ! -e /dev/nvidiactl ]] || engine=cuda
fi
# With a stand-in the demonstration, which takes its time, shows no more than the tests.
if [[ $engine == cuda ]]; then
	: "${seconds:=20}" "${rounds:=20}" "${commands:=100000000}" "${soak:=100}"
	bare=(1 1 64 1024)
else
	: "${seconds:=0}" "${rounds:=2}" "${commands:=20000}" "${soak:=20}"
	bare=(0.1 1 8)
fi
((seconds)) || parts=${parts/demo/}
read -ra parts <<<"$parts"
if [[ ! -f $np_source/cache/.bundle ]]; then
	build
	[[ $engine != cuda ]] || build_kernel
fi

results=$np_source/build/card
log=$results/card.log
mkdir -p "$results"
status=0
# The same devices and the same kernels, without QEMU. In a shell of its own, which ends them.
run_bare() (
	gpu_engine=$engine socket_folder='' share_folder='' device_pids=()
	trap stop_processes EXIT
	take_guest_slot bare
	mkdir -p "$results/bare"
	ln -sfn "$np_source/build" "$results/bare/build"
	socket_folder=$(mktemp -d /tmp/nvme-peer.XXXXXX)
	start_devices "$results/bare"
	status=0
	timeout 120 "$np_source/selftests/setup/in-tree" "$np_source/build/user/bare" "$socket_folder/softgpu" \
		"$socket_folder/badctrl" "$share_folder" "${bare[@]}" || status=$?
	echo "card: bare $status"
)

run_guest() {
	"$np_source/selftests/run" --no-build --gpu "$engine" --cell 7/off/root -- \
		/selftests/cuda/card-guest.sh "$seconds" "$rounds" "$commands" "$soak" "$@"
}

: >"$log"
[[ ${parts[0]-} != bare ]] || run_bare >>"$log" 2>&1 </dev/null || status=$?
read -ra in_guest <<<"${parts[*]/#bare/}"
((!${#in_guest[@]})) || run_guest "${in_guest[@]}" >>"$log" 2>&1 </dev/null || status=$?

# lines WORD: what the programs said as JSON, as the members of an array.
lines() {
	sed -n "s/^# $1: \({.*}\)\r*\$/    \1/p" "$log" | paste -sd, | sed 's/},/},\n/g'
}

verdict() {
	sed -n "s/^card: $1 \([0-9]*\)\r*\$/\1/p" "$log"
}

# What the module's queue pairs reach of what those without guest and module do, where
# rings lie in the GPU's memory, and a thread's command over the controller's turn-round.
ratios() {
	tr -d '\r' <"$log" | awk '
		function value(key, text) {
			text = $0
			if (!sub(".*\"" key "\": ", "", text))
				return ""
			sub("[,}].*", "", text)
			return text
		}
		/^# bare: / { bare[value("pairs") "/" value("threads")] = value("per_second") }
		/^# turn: / { turn = value("median_ns") }
		/^# bare latency: / { alone = value("median_ns") }
		/^# rate: / && /"gpu"/ {
			key = value("pairs") "/" value("threads")
			if (bare[key])
				print "    {\"of\": \"rate, pairs/threads\", \"at\": \"" key "\", \"ratio\": " value("per_second") / bare[key] "}"
		}
		/^# latency: / {
			if (turn)
				print "    {\"of\": \"latency over turn-round\", \"at\": " value("rings") ", \"ratio\": " value("median_ns") / turn "}"
			if (alone)
				print "    {\"of\": \"latency over latency without module\", \"at\": " value("rings") ", \"ratio\": " value("median_ns") / alone "}"
		}' | sed '$!s/$/,/'
}

name=none
[[ $engine != cuda ]] || name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
for part in "${parts[@]}"; do
	[[ $(verdict "$part") == 0 ]] || status=1
done
cat >"$results/card.json" <<JSON
{
  "engine": "$engine", "gpu": "$name", "status": $status,
  "tests": {"passed": $(grep -c '^ok ' "$log" || true), "failed": $(grep -c '^not ok ' "$log" || true)},
  "demo": {"seconds": $seconds, "status": $(verdict demo | grep . || echo null)},
  "latency": [
$(lines latency)
  ],
  "rates": [
$(lines rate)
  ],
  "cpu_beside": [
$(lines beside)
  ],
  "bare": [
$(lines bare)
  ],
  "bare_latency": [
$(lines 'bare latency')
  ],
  "turn_round": [
$(lines turn)
  ],
  "ratios": [
$(ratios)
  ],
  "taken_away": [
$(lines times)
  ],
  "gather": [
$(lines gather)
  ],
  "soak": [
$(lines soak)
  ]
}
JSON

printf '%-8s %6s %8s %14s\n' rings pairs threads 'commands/s'
sed -n 's/^# rate: .*"rings": "\([a-z]*\)", "pairs": \([0-9]*\), "threads": \([0-9]*\),.*"per_second": \([0-9]*\).*/\1 \2 \3 \4/p' "$log" |
	while read -r rings pairs threads rate; do
		printf '%-8s %6s %8s %14s\n' "$rings" "$pairs" "$threads" "$rate"
	done
printf '%-22s %6s %7s %9s %9s %9s\n' 'taken away by' rings rounds 'call ms' 'end ms' 'again ms'
sed -n 's/.*"what": "\([^"]*\)", "rings": "\([a-z]*\)", "rounds": \([0-9]*\), "cause_ms": \([0-9]*\), "end_ms": \([0-9]*\), "again_ms": \([0-9]*\).*/\1|\2|\3|\4|\5|\6/p' "$log" |
	while IFS='|' read -r what rings count cause end again; do
		printf '%-22s %6s %7s %9s %9s %9s\n' "$what" "$rings" "$count" "$cause" "$end" "$again"
	done
ratios | sed -n 's/.*"of": "\([^"]*\)", "at": "\([^"]*\)", "ratio": \([0-9.e+-]*\).*/\1|\2|\3/p' |
	while IFS='|' read -r of at ratio; do
		printf '%-36s %10s %8s\n' "$of" "$at" "$ratio"
	done
grep -E '^# (bare )?latency|^# bare|^# turn|^# beside|^# gather|^# soak|^(not )?ok |^  (yes|NO)|GPU to CPU|^demo:|^card:|NOT OK|BUG|WARNING' "$log" | tr -d '\r' || true
if ((status)); then
	tail -n 40 "$log"
	np_die "card: failed; all of it is in $log"
fi
np_say "card: PASS with ${engine}, results in $results/card.json"
