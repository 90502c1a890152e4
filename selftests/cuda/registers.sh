#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Registers and code size of each call of the device library, by nvcc alone.
#
# usage: registers.sh [ARCHITECTURE]     default: sm_90
#
# One line a call: its name; registers, and bytes spilled by the kernel and by its
# callees, first without a limit and then with 1,024 threads an SM; bytes of code of
# the kernel and its callees.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# facts THREADS: "NAME REGISTERS SPILLED" of each kernel.
facts() {
	nvcc -std=c++17 -O3 -arch="${architecture}" -I"$here/../../include" -DREGISTERS_THREADS="$1" \
		-Xptxas -v -cubin -o "$work/$1.cubin" "$here/registers.cu" 2>&1 |
		awk '/Compiling entry function/ { print_kernel(); split($0, part, "\047"); name = part[2]; own = others = 0 }
		/Function properties for/ { callee = !/for k_/ }
		/spill stores/ { if (callee) others += $5 + $9; else own += $5 + $9 }
		/Used [0-9]+ registers/ { match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) }
		END { print_kernel() }
		function print_kernel() { if (name) print name, used, own, others }' |
		sort
}

architecture=${1:-sm_90}
join <(facts 128) <(facts 1024) >"$work/both"
# The section of a kernel contains the functions that it calls.
join "$work/both" <(readelf -SW "$work/128.cubin" 2>/dev/null | sed -n 's/^.*\] \.text\.\(k_[a-z_]*\) *PROGBITS *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p' |
	while read -r name size; do echo "$name $((16#$size))"; done | sort) |
	awk 'BEGIN { printf "%-16s %9s %8s %8s %9s %8s %8s %7s\n", "call", "registers", "spilled", "callees", "at 1024", "spilled", "callees", "bytes" }
	{ sub(/^k_/, "", $1); printf "%-16s %9d %8d %8d %9d %8d %8d %7d\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
