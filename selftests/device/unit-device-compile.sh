#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unit-device-compile: the device library's header under every compiler that is
# here: C11 by gcc and clang, HIP by clang, CUDA by nvcc.
set -euo pipefail

source_tree=@SOURCE@
cd "$source_tree/selftests/device"
count=0
failures=0

# check NAME TOOL COMMAND...: one test, skipped where the tool is not installed.
check() {
	local name=$1 tool=$2
	shift 2
	count=$((count + 1))
	if ! command -v "$tool" >/dev/null; then
		echo "ok $count $name # SKIP no $tool"
	elif output=$("$@" 2>&1); then
		echo "ok $count $name"
	else
		while IFS= read -r line; do echo "# $line"; done <<<"$output"
		echo "not ok $count $name"
		failures=$((failures + 1))
	fi
}

common=(-I../../include -Wall -Wextra -Werror)
# How many waves fit a compute unit is the compiler's to say, not to refuse.
hip=(-x hip --cuda-device-only -nogpulib -nogpuinc -O2 -Wno-error=pass-failed -S -o /dev/null)

echo "KTAP version 1"
check "C11, gcc" gcc gcc -std=c11 -D_GNU_SOURCE "${common[@]}" -pedantic -O2 -c compile.c -o /dev/null
check "C11, clang" clang clang -std=c11 -D_GNU_SOURCE "${common[@]}" -O2 -c compile.c -o /dev/null
check "C++17, g++" g++ g++ -x c++ -std=c++17 "${common[@]}" -O2 -c compile.c -o /dev/null
check "HIP gfx90a, wave of 64, clang" clang clang "${common[@]}" "${hip[@]}" --offload-arch=gfx90a compile.c
check "HIP gfx1030, wave of 32, clang" clang clang "${common[@]}" "${hip[@]}" --offload-arch=gfx1030 compile.c
check "CUDA sm_90, nvcc" nvcc nvcc -arch=sm_90 -I../../include -x cu -Werror all-warnings -cubin -o /dev/null compile.c
check "CUDA sm_75, nvcc" nvcc nvcc -arch=sm_75 -I../../include -x cu -Werror all-warnings -cubin -o /dev/null compile.c
for example in minimal kv_gather; do
	check "examples/$example.cu, nvcc" nvcc nvcc -arch=sm_90 -I../../include -I../../include/uapi \
		-I../../lib/cuda -cubin -o /dev/null "../../examples/$example.cu"
done
echo "1..$count"
exit $((failures != 0))
