#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Test the module with a real GPU: in a guest with the module, the software GPU executes its
# programs on this machine's GPU, and the controller is a process that shares the doorbells.
# Without a GPU a fake libcuda is used, and the test is shorter.
#
# usage: selftests/cuda/card.sh [OPTION...]
#        selftests/cuda/card.sh --bundle FILE.tar.xz
#   --engine cuda|fake   default: cuda where there is a GPU
#   --rounds N           of each cause of a loss under running threads; default 20, fake: 2
#   --commands N         consecutive verified commands, at most; default 100000000, fake: 20000
#   --reads N            verified reads in each mode, at most; default 10000000, fake: 2000
#   --soak SECONDS       time limit of these commands, and of these reads in each mode; default 200,
#                        fake: 20
#   --seconds N          of the demonstration; default 20, fake: 0
#   --parts "NAME..."    only these: glue bare manifest gpu_card gpu_card_rate gpu_card_pairs
#                        gpu_card_gather gpu_card_modes gpu_card_soak demo gpu_card_window; glue checks
#                        this machine's driver, bare runs without guest and module, for
#                        comparison. manifest has a process of this machine that uses queue pairs of
#                        the guest (guest_pages.py), always with a fake libcuda, and not in a
#                        bundle. gpu_card_modes has direct, relay, mediated and served queue
#                        pairs; with 12 processors or more in a guest of its own, with a
#                        quarter of them. gpu_card_window has its data in memory of the GPU, to
#                        which a kernel on 8 SMs moves it. It is the last one, as this kernel
#                        runs until the end of the guest, and others have longer latencies
#
# For a machine with a GPU and without network access, create the bundle elsewhere with
# CUDA's compiler, unpack it there and run this file in it. Results: build/card/card.json.
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"
. "$(dirname "$0")/../lib/cell.sh"

engine='' seconds='' rounds='' commands='' reads='' soak='' bundle=''
parts='glue bare manifest gpu_card gpu_card_rate gpu_card_pairs gpu_card_gather gpu_card_modes gpu_card_soak demo gpu_card_window'
while (($#)); do
	case $1 in
	--engine) engine=${2:?}; shift ;;
	--seconds) seconds=${2:?}; shift ;;
	--rounds) rounds=${2:?}; shift ;;
	--commands) commands=${2:?}; shift ;;
	--reads) reads=${2:?}; shift ;;
	--soak) soak=${2:?}; shift ;;
	--parts) parts=${2:?}; shift ;;
	--bundle) bundle=${2:?}; shift ;;
	*) sed -n '7,26s/^# \{0,1\}//p' "$0" >&2; exit 1 ;;
	esac
	shift
done

# An unpacked bundle is its own cache.
if [[ -f $np_source/cache/.bundle ]]; then
	export NVME_PEER_CACHE=$np_source/cache
fi

build() {
	"$np_source/selftests/setup/setup.sh" 7
	"$np_source/selftests/setup/build-modules" 7 >/dev/null
	make -s -C "$np_source" user
}

# Only for a GPU; needs CUDA's compiler.
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
# With the fake libcuda the demonstration is slow and covers no more than the tests.
if [[ $engine == cuda ]]; then
	: "${seconds:=20}" "${rounds:=20}" "${commands:=100000000}" "${reads:=10000000}" "${soak:=200}"
	bare=(3 0.3 1 64 1024)
else
	: "${seconds:=0}" "${rounds:=2}" "${commands:=20000}" "${reads:=2000}" "${soak:=20}"
	bare=(1 0.1 1 8)
fi
((seconds)) || parts=${parts/demo/}
[[ ! -f $np_source/cache/.bundle ]] || parts=${parts/ manifest / }
read -ra parts <<<"$parts"
if [[ ! -f $np_source/cache/.bundle ]]; then
	build
	[[ $engine != cuda ]] || build_kernel
fi

results=$np_source/build/card
log=$results/card.log
mkdir -p "$results"
status=0
# The same devices and kernels without QEMU, in a subshell that stops them.
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

# The requests of lib/cuda to libcuda, the machine's or the fake one.
run_glue() {
	local status=0 wrapper=(env)
	if [[ $engine == fake ]]; then
		echo 'RegistryDwords: ""' >"$results/nvidia-params"
		wrapper=("$np_source/selftests/setup/in-tree" env NVMEPEER_NVIDIA_PARAMS="$results/nvidia-params"
			NVMEPEER_LIBCUDA="$np_source/build/user/lib/fake-libcuda.so")
	fi
	timeout 60 "${wrapper[@]}" "$np_source/build/user/glue" || status=$?
	echo "card: glue $status"
}

# Queue pairs that guest_pairs makes in a guest, used by a process beside it. Both have to succeed.
run_manifest() (
	share_folder=$(mktemp -d /dev/shm/nvme-peer.XXXXXX) status=0 guest_pid=''
	trap '[[ ! $guest_pid ]] || kill "$guest_pid" 2>/dev/null || true; rm -rf "$share_folder"' EXIT
	"$np_source/selftests/run" --no-build --gpu fake --share "$share_folder" --gpu-mb 128 --disk-mb 64 --cell 7/off/root -- \
		/build/user/guest_pairs 4 64 2 16 &
	guest_pid=$!
	cd "$np_source"
	timeout 300 "$np_source/selftests/setup/in-tree" bash -c '. selftests/lib/fake_cuda.sh
		export NVMEPEER_LIBRARY=$lib/libnvmepeer.so NVMEPEER_CUDA_LIBRARY=$lib/libnvmepeer_cuda.so
		PYTHONPATH+=:$PWD/selftests/cuda exec python3 -W error selftests/cuda/guest_pages.py "$0" "$lib/manifest-host.so"' \
		"$share_folder" || status=$?
	wait "$guest_pid" || status=$?
	guest_pid=''
	echo "card: manifest $status"
)

selected() {
	[[ " ${parts[*]} " == *" $1 "* ]]
}

# run_guest PROCESSORS PART...
run_guest() {
	"$np_source/selftests/run" --no-build --gpu "$engine" --cpus "$1" --cell 7/off/root -- \
		/selftests/cuda/card-guest.sh "$seconds" "$rounds" "$commands" "$soak" "$reads" "${@:2}"
}

# More threads of the guest serve at a time.
run_modes() {
	run_guest $(($(nproc) / 4)) gpu_card_modes
}

: >"$log"
# Before and after: the speed of a shared machine varies.
! selected glue || run_glue >>"$log" 2>&1 </dev/null || status=$?
! selected bare || run_bare >>"$log" 2>&1 </dev/null || status=$?
! selected manifest || run_manifest >>"$log" 2>&1 </dev/null || status=$?
others='glue|bare|manifest'
if (($(nproc) >= 12)); then
	others+='|gpu_card_modes'
	! selected gpu_card_modes || run_modes >>"$log" 2>&1 </dev/null || status=$?
fi
read -ra in_guest <<<"$(printf '%s\n' "${parts[@]}" | grep -vxE "$others" | paste -sd ' ')"
((!${#in_guest[@]})) || run_guest 2 "${in_guest[@]}" >>"$log" 2>&1 </dev/null || status=$?
! selected bare || [[ $engine == fake ]] || run_bare >>"$log" 2>&1 </dev/null || status=$?

# lines WORD: the JSON output of the programs, as the members of an array.
lines() {
	sed -n "s/^# $1: \({.*}\)\r*\$/    \1/p" "$log" | paste -sd, | sed 's/},/},\n/g'
}

verdict() {
	sed -n "s/^card: $1 \([0-9]*\)\r*\$/\1/p" "$log"
}

# medians: a line with the median for each key of "key number" lines.
medians() {
	sort -k1,1 -k2,2g | awk '
		function print_median() { if (count) print key, numbers[int((count + 1) / 2)] }
		$1 != key { print_median(); key = $1; count = 0 }
		{ numbers[++count] = $2 }
		END { print_median() }'
}

# values WHAT KEYS NUMBER: "key number" lines from the JSON output of the programs.
values() {
	tr -d '\r' <"$log" | awk -v what="# $1: " -v keys="$2" -v number="$3" '
		function value(name, text) {
			text = $0
			if (!sub(".*\"" name "\": \"?", "", text))
				return ""
			sub("[\",}].*", "", text)
			return text
		}
		index($0, what) == 1 {
			count = split(keys, names, ",")
			key = ""
			for (i = 1; i <= count; i++)
				key = key (i > 1 ? "/" : "") value(names[i])
			print key, value(number)
		}'
}

# Ratios of medians: the rate of the module's queue pairs to that without guest and module,
# with rings in GPU memory; the latency of a thread's command to the controller's turn-round
# time as a GPU thread without the library measures it; and the rate of fio with a busy GPU,
# also relative to fio on a controller that the GPU does not use.
ratios() {
	local of
	{
		values bare pairs,threads per_second | medians | sed 's/^/bare /'
		values 'bare latency' by median_ns | medians | sed 's/^/bare /'
		values rate rings,pairs,threads per_second | medians | sed -n 's,^gpu/,rate ,p'
		values latency rings,by median_ns | medians | sed 's/^/latency /'
		for of in alone beside other_alone other_beside; do
			values beside rings $of | medians | sed "s/^/$of /"
		done
	} | awk '
		function print_ratio(of, at, ratio) {
			printf "    {\"of\": \"%s\", \"at\": \"%s\", \"ratio\": %.3f}\n", of, at, ratio
		}
		$1 == "bare" { before[$2] = $3 }
		$1 == "rate" && before[$2] { print_ratio("rate, pairs/threads", $2, $3 / before[$2]) }
		$1 == "latency" && before["hand"] { print_ratio("latency over turn-round", $2, $3 / before["hand"]) }
		$1 == "alone" || $1 == "other_alone" { before[$1 $2] = $3 }
		$1 == "beside" { kept[$2] = $3 / before["alone" $2]; print_ratio("fio beside over alone", $2, kept[$2]) }
		$1 == "other_beside" { print_ratio("fio, over another controller", $2, kept[$2] / ($3 / before["other_alone" $2])) }' | sed '$!s/$/,/'
}

# print_modes: of each mode verified reads, those that were wrong, rate, and the latency of one at a time; with
# the CPU time and wake-ups of the guest's threads for a read, and their share of the latency.
print_modes() {
	local mode number row
	selected gpu_card_modes || return 0
	printf '%-9s %10s %5s %8s %7s %8s %10s %6s %7s %8s\n' mode verified wrong reads/s 'cpu ns' wakeups \
		'latency ns' share 'cpu ns' wakeups
	while read -r mode; do
		mapfile -t row < <({
			for number in verified wrong per_second cpu_ns wakeups; do values modes mode "$number"; done
			for number in median_ns share cpu_ns wakeups; do values 'modes latency' mode "$number"; done
		} | sed -n "s/^$mode //p")
		printf '%-9s' "$mode"
		printf ' %10s %5s %8s %7s %8s %10s %6s %7s %8s\n' "${row[@]}"
	done < <(values modes mode verified | cut -d ' ' -f 1)
}

name=none
[[ $engine != cuda ]] || name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
for part in "${parts[@]}"; do
	[[ $(verdict "$part" | sort -u) == 0 ]] || status=1
done
cat >"$results/card.json" <<JSON
{
  "engine": "$engine", "gpu": "$name", "status": $status,
  "tests": {"passed": $(grep -c '^ok ' "$log" || true), "failed": $(grep -c '^not ok ' "$log" || true)},
  "demo": {"seconds": $seconds, "status": $(verdict demo | grep . || echo null)},
  "glue": [
$(lines glue)
  ],
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
  "window": [
$(lines window)
  ],
  "modes": [
$(lines modes)
  ],
  "modes_latency": [
$(lines 'modes latency')
  ],
  "soak": [
$(lines soak)
  ]
}
JSON

sed -n 's/^# glue: {"what": "\([^"]*\)", "answer": "\([^"]*\)", "limit": "\(.*\)", "help.*/\1|\2|\3/p' "$log" |
	while IFS='|' read -r what answer limit; do
		printf '%-46s %-12s %s\n' "$what" "$answer" "$limit"
	done
printf '%-8s %6s %8s %14s\n' rings pairs threads 'commands/s'
values rate rings,pairs,threads per_second | medians | tr / ' ' | sort -k1,1 -k2,2n -k3,3n |
	while read -r rings pairs threads rate; do
		printf '%-8s %6s %8s %14s\n' "$rings" "$pairs" "$threads" "$rate"
	done
printf '%-22s %6s %7s %9s %9s %9s\n' 'taken away by' rings rounds 'call ms' 'end ms' 'again ms'
sed -n 's/.*"what": "\([^"]*\)", "rings": "\([a-z]*\)", "rounds": \([0-9]*\), "cause_ms": \([0-9]*\), "end_ms": \([0-9]*\), "again_ms": \([0-9]*\).*/\1|\2|\3|\4|\5|\6/p' "$log" |
	while IFS='|' read -r what rings count cause end again; do
		printf '%-22s %6s %7s %9s %9s %9s\n' "$what" "$rings" "$count" "$cause" "$end" "$again"
	done
print_modes
ratios | sed -n 's/.*"of": "\([^"]*\)", "at": "\([^"]*\)", "ratio": \([0-9.e+-]*\).*/\1|\2|\3/p' |
	while IFS='|' read -r of at ratio; do
		printf '%-36s %10s %8s\n' "$of" "$at" "$ratio"
	done
grep -E '^# turn|^# beside|^# gather|^# window|^# modes|^# soak|^(not )?ok |^  (yes|NO)|GPU to CPU|^demo:|^card:|NOT OK|BUG|WARNING' "$log" | tr -d '\r' || true
if ((status)); then
	tail -n 40 "$log"
	np_die "card: failed; the log is $log"
fi
np_say "card: PASS with ${engine}, results in $results/card.json"
