#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A real GPU drives the real module: a guest with the module, whose stand-in GPU has its
# programs run on this machine's GPU, and whose controller is a process that shares its
# doorbells. Without a GPU the same by a stand-in for libcuda, and shorter.
#
# usage: selftests/cuda/card.sh [--engine cuda|fake] [--seconds N]    N: of the demonstration, 0: none
#        selftests/cuda/card.sh --bundle FILE.tar.xz
#
# A machine with a GPU that can fetch nothing is given the bundle, made elsewhere with
# CUDA's compiler: unpack it and run this file in there. Results: build/card/card.json.
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"

engine='' seconds='' bundle=''
while (($#)); do
	case $1 in
	--engine) engine=${2:?}; shift ;;
	--seconds) seconds=${2:?}; shift ;;
	--bundle) bundle=${2:?}; shift ;;
	*) np_die "usage: selftests/cuda/card.sh [--engine cuda|fake] [--seconds N] [--bundle FILE]" ;;
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
if [[ ! $seconds ]]; then
	seconds=0
	[[ $engine != cuda ]] || seconds=20
fi
parts=(gpu_card gpu_card_rate)
((!seconds)) || parts+=(demo)
if [[ ! -f $np_source/cache/.bundle ]]; then
	build
	[[ $engine != cuda ]] || build_kernel
fi

results=$np_source/build/card
log=$results/card.log
mkdir -p "$results"
status=0
"$np_source/selftests/run" --no-build --gpu "$engine" --cell 7/off/root -- \
	/selftests/cuda/card-guest.sh "$seconds" >"$log" 2>&1 </dev/null || status=$?

# lines WORD: what the programs said as JSON, as the members of an array.
lines() {
	sed -n "s/^# $1: \({.*}\)\r*\$/    \1/p" "$log" | paste -sd, | sed 's/},/},\n/g'
}

verdict() {
	sed -n "s/^card: $1 \([0-9]*\)\r*\$/\1/p" "$log"
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
  ]
}
JSON

printf '%-8s %6s %8s %14s\n' rings pairs threads 'commands/s'
sed -n 's/.*"rings": "\([a-z]*\)", "pairs": \([0-9]*\), "threads": \([0-9]*\),.*"per_second": \([0-9]*\).*/\1 \2 \3 \4/p' "$log" |
	while read -r rings pairs threads rate; do
		printf '%-8s %6s %8s %14s\n' "$rings" "$pairs" "$threads" "$rate"
	done
grep -E '^# latency|^(not )?ok |^  (yes|NO)|GPU to CPU|^demo:|^card:|NOT OK|BUG|WARNING' "$log" | tr -d '\r' || true
if ((status)); then
	tail -n 40 "$log"
	np_die "card: failed; all of it is in $log"
fi
np_say "card: PASS with ${engine}, results in $results/card.json"
