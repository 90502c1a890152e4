#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unit-device-compile: the device library's header under every compiler that is
# here: C11 by gcc and clang, HIP by clang, CUDA by nvcc.
# timeout: 900
set -euo pipefail

source_tree=@SOURCE@
cd "$source_tree/selftests/device"
names=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check NAME TOOL COMMAND...: one test, skipped where the tool is not installed.
# They run at the same time and are told in order.
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
check "CUDA sm_90, nvcc" nvcc nvcc -arch=sm_90 -Xptxas -O1 -I../../include -x cu -Werror all-warnings -cubin -o /dev/null compile.c
check "CUDA sm_75, nvcc" nvcc nvcc -arch=sm_75 -Xptxas -O1 -I../../include -x cu -Werror all-warnings -cubin -o /dev/null compile.c
wait
failures=0
for ((number = 1; number <= ${#names[@]}; number++)); do
	tell "$number" || failures=$((failures + 1))
done
echo "1..${#names[@]}"
exit $((failures != 0))
