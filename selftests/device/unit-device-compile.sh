#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unit-device-compile: the headers of the device library under every compiler: C11 and
# C++17 by gcc and clang, HIP by clang, CUDA by nvcc. Debian has no package of nvcc, and
# its tests are skipped without it. Two of them inspect the code that nvcc generates for
# the load of a completion entry, and what it spills in a loop of calls.
#
# usage: unit-device-compile [--all]: not only one architecture of each compiler
#
# timeout: 900
# long-arguments: --all
set -euo pipefail

source_tree=@SOURCE@
cd "$source_tree/selftests/device"
names=() more=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check NAME TOOL COMMAND...: one test, skipped if TOOL is missing. The tests run
# in parallel and are reported in order.
check() {
	local name=$1 tool=$2 status=0
	shift 2
	names+=("$name")
	if ! command -v "$tool" >/dev/null; then
		echo "no $tool" >"$work/${#names[@]}.skip"
		return
	fi
	{
		"$@" >"$work/${#names[@]}" 2>&1 || status=$?
		echo "$status" >"$work/${#names[@]}.status"
	} &
}

# check_more NAME TOOL COMMAND...: one with --all
check_more() {
	[[ $more != --all ]] || check "$@"
}

# result NUMBER: the result of a test, in its place among the others.
result() {
	if [[ -f $work/$1.skip ]]; then
		ktap_skip "${names[$1 - 1]}" "$(<"$work/$1.skip")"
	else
		ktap_result "$(<"$work/$1.status")" "${names[$1 - 1]}"
		[[ $(<"$work/$1.status") == 0 ]] || sed 's/^/# /' "$work/$1"
	fi
}

# count_loads CUBIN: the number of 128-bit loads of completion entries, and of all loads.
# An instruction has 16 bytes. 0x181 in its low 9 bits is a global load; bits 75..73 are
# the width (6: 128 bits), the bits above the scope of a strong access (1f5, 1f6: system).
# Each load of an entry has a prefetch that is never executed: CCTL (0x18f) with 8001 in
# bits 91..72.
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

# compile_cuda ARGUMENTS...: with -c ccache keeps what is compiled, which takes a minute and a half, unless
# an argument has the name of a temporary folder.
# shellcheck disable=SC2317 # called by name
compile_cuda() {
	nvcc -cubin -c "$@"
}

# cuda ARCHITECTURE SOURCE INCLUDE: compile it; every entry must be read by one load.
# shellcheck disable=SC2317 # called by name
cuda() {
	local cubin=$work/$1-$BASHPID.cubin whole all
	compile_cuda -arch="$1" -Xptxas -O1 -I"$3" -x cu -Werror all-warnings -o "$cubin" "$2"
	read -r whole all < <(count_loads "$cubin")
	echo "$all reads of completion entries, $whole of them in 128 bits"
	((all > 0 && whole == all))
}

# If the code does not use all words of an entry, the assembler loads only some.
# shellcheck disable=SC2317 # called by name
torn_loads() {
	cp -r ../../include/nvmepeer_device* "$work/"
	sed -i 's/xor\.b64 mix, %0, %1;/mov.b64 mix, %1;/' "$work/nvmepeer_device/platform_cuda.h"
	cat >"$work/phase.cu" <<-'SOURCE'
	#include <nvmepeer_device.h>
	__global__ void phase(uint64_t address, uint32_t *out)
	{
		uint32_t entry[4];

		nvp_cq_load(address, entry);
		*out = nvp_cqe_phase(entry);
	}
	SOURCE
	cd "$work"
	cuda sm_90 phase.cu "$source_tree/include" && ! cuda sm_90 phase.cu .
}

# spilled INCLUDE: bytes that a loop of calls with 64 registers spills. In the folder of loop.cu.
# shellcheck disable=SC2317 # called by name
spilled() {
	compile_cuda -arch=sm_90 -Xptxas -v -I"$1" -o "loop-$BASHPID.cubin" loop.cu 2>&1 |
		awk '/properties for reads/ { own = 1 } own && /spill/ { print $5 + $9; exit }'
}

# An uninitialised entry would be carried from one round to the next.
# shellcheck disable=SC2317 # called by name
uninitialised() {
	local now without
	mkdir "$work/open"
	cp -r ../../include/nvmepeer_device* "$work/open/"
	sed -i 's/ = nvp_empty_entry();/;/' "$work/open/nvmepeer_device/send.h"
	cat >"$work/loop.cu" <<-'SOURCE'
	#include <nvmepeer_device.h>
	extern "C" __global__ void __launch_bounds__(1024)
	reads(const nvmepeer_queue *queue, const nvmepeer_buffer *buffer, uint32_t rounds, int *bad)
	{
		for (uint32_t i = 0; i < rounds; i++)
			bad[threadIdx.x] += nvmepeer_read(queue, buffer, threadIdx.x * 4096ull, i, 8) != 0;
	}
	SOURCE
	cd "$work"
	now=$(spilled "$source_tree/include") without=$(spilled open)
	echo "$now bytes, $without where entries are not initialised"
	((now < without))
}

# The stack of the kernel of lists: a launch of one with more than the 1,024 bytes that CUDA has
# by default waits until no other kernel runs.
# shellcheck disable=SC2317 # called by name
stack() {
	local bytes
	bytes=$(compile_cuda -std=c++17 -arch="$1" -Xptxas -v -I../../include -o "$work/stack-$1.cubin" \
		../../lib/cuda/list.cu 2>&1 | sed -n 's/^ptxas.* \([0-9]*\) bytes cumulative stack size.*/\1/p' | sort -n | tail -n 1)
	echo "${bytes:-unknown} bytes"
	((bytes <= 1024))
}

# Bitcode of the calls: a module without module flags, for which a code generator must
# generate all calls.
# shellcheck disable=SC2317 # called by name
bitcode() {
	local name file=$1 architecture=$2 fence=$3
	local built=$work/$file/lib/$file.bc nvptx=(clang -target nvptx64-nvidia-cuda)
	make -s -C ../../lib/cuda OUT="$work/$file" "$built" || return 1
	"${nvptx[@]}" -x ir -S -emit-llvm -o "$work/$file.ll" "$built" || return 1
	"${nvptx[@]}" -Xclang -target-feature -Xclang +ptx75 -Xclang -target-cpu -Xclang "$architecture" \
		-x ir -S -o "$work/$file.ptx" "$built" || return 1
	for name in nvmepeer_{device,numba}_{read,write,submit,poll,wait,quiesce,check,abandoned,queue}; do
		grep -q "^\.visible \.func .* $name(" "$work/$file.ptx" || { echo "no $name"; return 1; }
	done
	grep -q "fence\.$fence\.sys" "$work/$file.ptx" || { echo "no fence.$fence.sys"; return 1; }
	! grep -n 'llvm\.module\.flags' "$work/$file.ll"
}

# The same calls on the CPU: commands in two steps, which the test completes itself, and a queue of
# another layout, which is refused before it is used.
# shellcheck disable=SC2317 # called by name
calls() {
	cat >"$work/calls.cc" <<-'EOF'
		#include <cstdio>
		#include <initializer_list>
		#include "lib/cuda/device.cu"
		alignas(4096) static uint32_t sq[2][16], cq[2][4], doorbells[2], memory[8192];
		static int two_steps()
		{
			nvmepeer_geometry geometry = {};
			nvmepeer_buffer buffer = { 4096, 0x10000, 0 };
			nvmepeer_queue queue;
			uint64_t at = (uint64_t)(uintptr_t)&queue, data = (uint64_t)(uintptr_t)&buffer;
			int64_t token, other;
			int bad = 0, status = 0;

			geometry.version = NVMEPEER_GEOMETRY_VERSION;
			geometry.sq = (uint64_t)(uintptr_t)sq;
			geometry.cq = (uint64_t)(uintptr_t)cq;
			geometry.sq_doorbell = (uint64_t)(uintptr_t)&doorbells[0];
			geometry.cq_doorbell = (uint64_t)(uintptr_t)&doorbells[1];
			geometry.state = (uint64_t)(uintptr_t)memory;
			geometry.sq_entries = geometry.cq_entries = 2;
			geometry.lba_shift = 9;
			geometry.page_shift = 12;
			geometry.max_transfer = 4096;
			geometry.timeout_ns = 1000000;
			if (nvmepeer_queue_init(&queue, &geometry))
				return 1;
			for (uint32_t i = 0; i < 3; i++) {
				token = nvmepeer_device_submit(at, NVMEPEER_OP_READ, data, 512, 0x500000009, 2,
							       (uint64_t)NVMEPEER_CONTROL_LIMITED_RETRY | (uint64_t)7 << 32);
				const uint32_t *entry = sq[i % 2];
				bad += token < 0 || (entry[0] & 0xffff) != NVMEPEER_OP_READ || entry[6] != 0x10200;
				bad += entry[10] != 9 || entry[11] != 5 || entry[12] != 0x80000001 || entry[13] != 7;
				bad += nvmepeer_device_poll(at, token) != NVMEPEER_AGAIN;
				bad += nvmepeer_device_submit(at, NVMEPEER_OP_READ, data, 0, 0, 1, 0) != NVMEPEER_E_FULL;
				cq[i % 2][3] = entry[0] >> 16 | (1 - i / 2) << 16 | (i == 1 ? 0x281u << 17 : 0);
				bad += i == 2 ? nvmepeer_numba_poll(&status, at, token) || status :
				       nvmepeer_device_wait(at, token, 1000000) != (i == 1 ? 0x281 : 0);
				bad += nvmepeer_device_wait(at, token, 1000000) != NVMEPEER_E_TOKEN;
			}
			bad += nvmepeer_device_submit(at, NVMEPEER_OP_READ, data, 4096, 0, 1, 0) != NVMEPEER_E_RANGE;
			bad += nvmepeer_device_wait(at, NVMEPEER_E_RANGE, 1) != NVMEPEER_E_RANGE;
			bad += nvmepeer_device_poll(at, NVMEPEER_E_FULL) != NVMEPEER_E_FULL;
			bad += nvmepeer_numba_submit(&other, at, NVMEPEER_OP_FLUSH, 0, 0, 0, 0, 0) || other < 0;
			bad += nvmepeer_device_abandoned(at) != 0;
			bad += nvmepeer_numba_wait(&status, at, other, 1000) || status != NVMEPEER_E_TIMEOUT;
			bad += nvmepeer_numba_abandoned(&status, at) || status != 1;
			return bad;
		}
		int main()
		{
			alignas(128) static nvmepeer_state state[8];
			nvmepeer_queue queues[2] = {};
			uint64_t first = (uint64_t)(uintptr_t)queues, second = first + sizeof(queues[0]), other;
			int bad = two_steps(), status = 0;

			for (nvmepeer_queue &queue : queues) {
				queue.layout = NVMEPEER_LAYOUT;
				queue.state = state;
				queue.timeout_ns = 1000000;
			}
			state->layout = NVMEPEER_LAYOUT;
			bad += nvmepeer_device_queue(first, 1) != second;
			bad += nvmepeer_device_check(second) != NVMEPEER_OK;
			bad += nvmepeer_device_quiesce(second) != NVMEPEER_E_ADDRESS;
			queues[0].layout += 8u << 12;
			queues[0].sq_doorbell = 1;
			other = nvmepeer_device_queue(first, 1);
			bad += other != 0;
			for (uint64_t queue : { first, other }) {
				bad += nvmepeer_device_read(queue, 8, 0, 0, 1) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_write(queue, 8, 0, 0, 1) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_quiesce(queue) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_submit(queue, 2, 8, 0, 0, 1, 0) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_poll(queue, 1) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_wait(queue, 1, 1) != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_numba_check(&status, queue) || status != NVMEPEER_E_LAYOUT;
				bad += nvmepeer_device_abandoned(queue) != NVMEPEER_E_LAYOUT;
			}
			std::printf("%d wrong\n", bad);
			return bad != 0;
		}
	EOF
	g++ -std=c++17 -O1 -D__device__= -D__noinline__= -D__forceinline__=inline -I../../include -I../.. \
		-include cstdint -o "$work/calls" "$work/calls.cc" && "$work/calls"
}

# alone COMPILER...: each header by itself. platform_cuda.h and platform_hip.h need the
# compilers of their platforms.
# shellcheck disable=SC2317 # called by name
alone() {
	local header status=0
	for header in ../../include/nvmepeer_device/*.h; do
		case $header in
		*/platform_cuda.h) continue ;;
		*/platform_hip.h) [[ " $* " == *" hip "* ]] || continue ;;
		esac
		echo "#include <nvmepeer_device/${header##*/}>" |
			"$@" "${common[@]}" -fsyntax-only - || { echo "$header"; status=1; }
	done
	return "$status"
}

# Names without the mark of private names are the interface.
# shellcheck disable=SC2317 # called by name
interface() {
	./api | diff -u api.list -
}

# hip ARCHITECTURE: the compiler only warns if fewer waves fit a compute unit than it tried for. ccache
# keeps no output to /dev/null.
# shellcheck disable=SC2317 # called by name
hip() {
	clang "${common[@]}" -x hip --cuda-device-only -nogpulib -nogpuinc -O2 -Wno-error=pass-failed -S \
		--offload-arch="$1" -o "$work/$1.s" compile.c
}

# A thread of a block of three dimensions is numbered by all three: the kernel needs its
# place in x, y and z (amdhsa_system_vgpr_workitem_id 2).
# shellcheck disable=SC2317 # called by name
hip_block() {
	cat >"$work/block.hip" <<-'EOF'
		#include "hip_shim.h"
		#include <nvmepeer_device.h>
		__global__ void number(uint32_t *out)
		{
			out[nvp_block_thread()] = nvp_block_threads();
		}
	EOF
	clang "${common[@]}" -I. -x hip --cuda-device-only -nogpulib -nogpuinc -O2 -S -o "$work/block.s" \
		--offload-arch=gfx90a "$work/block.hip" && grep 'amdhsa_system_vgpr_workitem_id 2' "$work/block.s"
}

common=(-I../../include -Wall -Wextra -Wpedantic -Werror)

. ../lib/ktap.sh
check "C11, gcc" gcc gcc -std=c11 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C11 and GNU, gcc" gcc gcc -std=gnu11 -D_GNU_SOURCE "${common[@]}" -O2 -c compile.c -o /dev/null
check "C11, clang" clang clang -std=c11 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C++17, g++" g++ g++ -x c++ -std=c++17 "${common[@]}" -O2 -c compile.c -o /dev/null
check "C++17, clang" clang clang++ -x c++ -std=c++17 "${common[@]}" -O2 -c compile.c -o /dev/null
check "each header alone, C11, gcc" gcc alone gcc -std=c11 -x c
check "each header alone, C++17, g++" g++ alone g++ -std=c++17 -x c++
check "each header alone, HIP, clang" clang alone clang -x hip --cuda-device-only --offload-arch=gfx90a \
	-nogpulib -nogpuinc -include hip_shim.h
check "interface as in api.list" diff interface
check "HIP gfx90a, wave of 64, clang" clang hip gfx90a
check_more "HIP gfx1030, wave of 32, clang" clang hip gfx1030
check "HIP: threads of a block of three dimensions, clang" clang hip_block
check "bitcode of the calls, clang" clang bitcode nvmepeer_device sm_80 acq_rel
check_more "bitcode of the calls for sm_90, clang" clang bitcode nvmepeer_device_sm90 sm_90 acquire
check "calls with C names, in two steps and on queues of another layout, g++" g++ calls
check "CUDA sm_90, nvcc; completion entries read in 128 bits" nvcc cuda sm_90 compile.c ../../include
check_more "CUDA sm_75, nvcc; completion entries read in 128 bits" nvcc cuda sm_75 compile.c ../../include
check "CUDA: a torn load of a completion entry is detected" nvcc torn_loads
check_more "CUDA: the stack of the kernel of lists, sm_80" nvcc stack sm_80
check "CUDA: the stack of the kernel of lists, sm_90" nvcc stack sm_90
check_more "CUDA: the stack of the kernel of lists, sm_100" nvcc stack sm_100
check "CUDA, 64 registers: no entry is carried from call to call" nvcc uninitialised
wait
for ((number = 1; number <= ${#names[@]}; number++)); do
	result "$number"
done
ktap_end
