#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unit-device-compile: the device library's header under every compiler: C11 and
# C++17 by gcc and clang, HIP by clang, CUDA by nvcc, which is no package of Debian's
# and may be missing. What nvcc makes of the load of a completion entry is looked at,
# and what it keeps in memory for a loop of calls.
# timeout: 900
set -euo pipefail

source_tree=@SOURCE@
cd "$source_tree/selftests/device"
names=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check NAME TOOL COMMAND...: one test; a TOOL that need not be there is nvcc, and then
# the test is skipped. They run at the same time and are told in order.
check() {
	local name=$1 tool=$2 status=0
	shift 2
	names+=("$name")
	if [[ $tool == nvcc ]] && ! command -v nvcc >/dev/null; then
		echo "no $tool" >"$work/${#names[@]}.skip"
		return
	fi
	{
		"$@" >"$work/${#names[@]}" 2>&1 || status=$?
		echo "$status" >"$work/${#names[@]}.status"
	} &
}

# Print what came of test NUMBER; 1 if it failed.
tell() {
	local name=${names[$1 - 1]}
	if [[ -f $work/$1.skip ]]; then
		echo "ok $1 $name # SKIP $(<"$work/$1.skip")"
	elif [[ $(<"$work/$1.status") == 0 ]]; then
		echo "ok $1 $name"
	else
		sed 's/^/# /' "$work/$1"
		echo "not ok $1 $name"
		return 1
	fi
}

# count_loads CUBIN: how often a completion entry is read in one load, and in all.
# An instruction has 16 bytes. 0x181 in its low 9 bits is a global load; bits 75..73
# say how wide it is (6: 128 bits), those above for whom it is strong (1f5, 1f6: the
# system). Each read of an entry has a prefetch that never comes: CCTL (0x18f) with
# 8001 in bits 91..72.
# shellcheck disable=SC2317 # called by name
count_loads() {
	local name offset size
	readelf -SW "$1" 2>/dev/null | sed -n 's/^.*\] \(\.text\.[^ ]*\) *PROGBITS *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2 \3/p' |
		while read -r name offset size; do
			od -An -v -tx8 -w16 -j $((16#$offset)) -N $((16#$size)) "$1"
		done |
		awk '$1 ~ /[13579bdf]81$/ && $2 ~ /1f[56][cd][0-9a-f][0-9a-f]$/ { whole++ }
		$1 ~ /[13579bdf]8f$/ && $2 ~ /08001[0-9a-f][0-9a-f]$/ { all++ }
		END { print whole + 0, all + 0 }'
}

# cuda ARCHITECTURE SOURCE INCLUDE: compile it, and see all entries read in one load.
# shellcheck disable=SC2317 # called by name
cuda() {
	local cubin=$work/$1-$BASHPID.cubin whole all
	nvcc -arch="$1" -Xptxas -O1 -I"$3" -x cu -Werror all-warnings -cubin -o "$cubin" "$2"
	read -r whole all < <(count_loads "$cubin")
	echo "$all reads of completion entries, $whole of them in 128 bits"
	((all > 0 && whole == all))
}

# Where not all words of an entry are used, the assembler loads only some.
# shellcheck disable=SC2317 # called by name
pieces_are_noticed() {
	cp -r ../../include/nvmepeer_device* "$work/"
	sed -i 's/xor\.b64 mix, %0, %1;/mov.b64 mix, %1;/' "$work/nvmepeer_device/platform_cuda.h"
	cat >"$work/phase.cu" <<-'SOURCE'
	#include <nvmepeer_device.h>
	__global__ void phase(uint64_t address, uint32_t *out)
	{
		uint32_t entry[4];

		nvmepeer_cq_load(address, entry);
		*out = nvmepeer_cqe_phase(entry);
	}
	SOURCE
	cuda sm_90 "$work/phase.cu" ../../include && ! cuda sm_90 "$work/phase.cu" "$work"
}

# spilled INCLUDE: bytes that a loop of calls with 64 registers keeps in memory.
# shellcheck disable=SC2317 # called by name
spilled() {
	nvcc -arch=sm_90 -Xptxas -v -I"$1" -cubin -o "$work/loop-$BASHPID.cubin" "$work/loop.cu" 2>&1 |
		awk '/properties for reads/ { own = 1 } own && /spill/ { print $5 + $9; exit }'
}

# What a lane may leave open is not kept from one round to the next.
# shellcheck disable=SC2317 # called by name
open_ends() {
	local now without
	mkdir "$work/open"
	cp -r ../../include/nvmepeer_device* "$work/open/"
	sed -i 's/ = nvmepeer_no_entry();/;/' "$work/open/nvmepeer_device/send.h"
	cat >"$work/loop.cu" <<-'SOURCE'
	#include <nvmepeer_device.h>
	extern "C" __global__ void __launch_bounds__(1024)
	reads(const nvmepeer_queue *queue, const nvmepeer_buffer *buffer, uint32_t rounds, int *bad)
	{
		for (uint32_t i = 0; i < rounds; i++)
			bad[threadIdx.x] += nvmepeer_read(queue, buffer, threadIdx.x * 4096ull, i, 8) != 0;
	}
	SOURCE
	now=$(spilled ../../include) without=$(spilled "$work/open")
	echo "$now bytes, $without where entries begin as nothing"
	((now < without))
}

# Bitcode of the calls: a module without flags of its own, from which a code generator
# makes all of them.
# shellcheck disable=SC2317 # called by name
bitcode() {
	local name built=$work/bitcode/lib/nvmepeer_device.bc nvptx=(clang -target nvptx64-nvidia-cuda)
	make -s -C ../../lib/cuda OUT="$work/bitcode" "$built" || return 1
	"${nvptx[@]}" -x ir -S -emit-llvm -o "$work/calls.ll" "$built" || return 1
	"${nvptx[@]}" -Xclang -target-feature -Xclang +ptx75 -Xclang -target-cpu -Xclang sm_80 \
		-x ir -S -o "$work/calls.ptx" "$built" || return 1
	for name in nvmepeer_{device,numba}_{read,write,give_up,queue}; do
		grep -q "^\.visible \.func .* $name(" "$work/calls.ptx" || { echo "no $name"; return 1; }
	done
	! grep -n 'llvm\.module\.flags' "$work/calls.ll"
}

common=(-I../../include -Wall -Wextra -Wpedantic -Werror)
# How many waves fit a compute unit is the compiler's to say, not to refuse.
hip=(-x hip --cuda-device-only -nogpulib -nogpuinc -O2 -Wno-error=pass-failed -S -o /dev/null)

echo "KTAP version 1"
check "C11, gcc" gcc gcc -std=c11 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C11 and GNU, gcc" gcc gcc -std=gnu11 -D_GNU_SOURCE "${common[@]}" -O2 -c compile.c -o /dev/null
check "C11, clang" clang clang -std=c11 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C++17, g++" g++ g++ -x c++ -std=c++17 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C++17, clang" clang clang++ -x c++ -std=c++17 "${common[@]}" -O2 -c compile.c -o /dev/null
check "HIP gfx90a, wave of 64, clang" clang clang "${common[@]}" "${hip[@]}" --offload-arch=gfx90a compile.c
check "HIP gfx1030, wave of 32, clang" clang clang "${common[@]}" "${hip[@]}" --offload-arch=gfx1030 compile.c
check "bitcode of the calls, clang" clang bitcode
check "CUDA sm_90, nvcc; completion entries read in 128 bits" nvcc cuda sm_90 compile.c ../../include
check "CUDA sm_75, nvcc; completion entries read in 128 bits" nvcc cuda sm_75 compile.c ../../include
check "a completion entry that is read in pieces is noticed" nvcc pieces_are_noticed
check "CUDA, 64 registers: no entry is kept from call to call" nvcc open_ends
wait
failures=0
for ((number = 1; number <= ${#names[@]}; number++)); do
	tell "$number" || failures=$((failures + 1))
done
echo "1..${#names[@]}"
exit $((failures != 0))
