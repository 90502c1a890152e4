#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which tests a cell has: of a short run, of a long one, and those that are asked for by name; that
# smoke.list names what exists; and how tests are divided among guests.
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd -P)
. "$here/setup/common.sh"
. "$here/lib/cell.sh"
. "$here/lib/schedule.sh"
. "$here/lib/ktap.sh"

# plan CELL [OPTION...]: the names of its tests in one line.
plan() {
	"$here/run" --cell "$1" "${@:2}" --show-plan | cut -d' ' -f1 | paste -sd ' '
}

listed() {
	sed -n "s:^$1 ::p" "$here/smoke.list"
}

exist() {
	local name missing=0
	for name; do
		[[ -x $here/tests/$name.sh || -x $np_source/build/user/tests/$name ]] || { echo "no test $name"; missing=1; }
	done
	return $missing
}

gates_exist() {
	local name
	for name in $(listed lint); do
		[[ -x $here/lint/gates/$name ]] || { echo "no gate $name"; return 1; }
	done
}

# Tests of smoke.list, and those whose "kernels" names 6.12.
are_of_short_run() {
	local name
	for name; do
		grep -qx "7/on/root $name" "$here/smoke.list" ||
			grep -qsE '^[ #*]+kernels: .*\<6\.12\>' "$here/tests/$name".{c,sh} || { echo "$name"; return 1; }
	done
	(($#))
}

mapfile -t programs < <(listed '[67].*/on/root')
ktap_check "smoke.list names programs that exist" exist "${programs[@]}"
mapfile -t units < <(listed unit)
ktap_check "smoke.list names unit tests that exist" exist "${units[@]}"
ktap_check "smoke.list names gates that exist" gates_exist
read -r -a short < <(plan 6.12/on/root)
ktap_check "a short run has few tests on 6.12" are_of_short_run "${short[@]}"
ktap_is "a long run has others" "$(plan 6.12/on/root --long | grep -ow module)" "module"
ktap_is "a short run has the newest kernel's tests on its debug kernel only, if in the same modes" \
	"$(plan 7/on/root --cell debug/on/root | tr ' ' '\n' | grep -xE 'bad_files|unmappable|reset|recover|recover-relay|served' | paste -sd ' ')" \
	"recover recover-relay reset"
ktap_is "a run without the debug kernel has all" \
	"$(plan 7/on/root | tr ' ' '\n' | grep -xE 'bad_files|unmappable|reset' | paste -sd ' ')" "bad_files reset unmappable"
ktap_is "a named test runs where a long run has it" "$(plan 6.12/off/root --only ext4 --only reset)" "ext4 reset reset-relay reset-mediated"
ktap_is "a short run has relay mode on one stock kernel" \
	"$(for cell in 7/on/root 6.1/off/root; do plan "$cell" | grep -ow reset-relay | sed "s,^,$cell ,"; done)" \
	"7/on/root reset-relay"
# modes_of CELL [OPTION...]: its runs in mediated mode, of two programs.
modes_of() {
	plan "$@" | tr ' ' '\n' | grep -xE '(reset|pci_reset)-mediated' | paste -sd ' '
}
ktap_is "a short run has a program in mediated mode on one stock kernel, if it is not for long runs" \
	"$(for cell in 7/on/root 6.1/on/root debug/on/root 7/off/root; do echo "$cell $(modes_of "$cell")"; done | paste -sd '|')" \
	"7/on/root reset-mediated|6.1/on/root |debug/on/root |7/off/root "
ktap_is "a long run has mediated mode in each cell" "$(modes_of 6.1/off/root --long)" "pci_reset-mediated reset-mediated"
ktap_is "the mode is that of the command" \
	"$("$here/run" --cell 7/on/root --only reset --show-plan | sed -n 's,^\(reset[a-z-]*\) [0-9]* ,\1: ,p' | tr -s ' ' | sed 's/ $//' | paste -sd '|')" \
	"reset: /build/user/tests/reset|reset-relay: env NP_MODE=relay /build/user/tests/reset|reset-mediated: env NP_MODE=mediated /build/user/tests/reset"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
np_times=$work/times
# The first line of "a" is of an older run, and nothing is known of "new".
printf '%s\n' 'debug/on/root a 1' 'debug/on/root a 300000' 'debug/on/root b 200000' 'debug/on/root c 100000' \
	'debug/on/root c-mediated 95000' 'debug/on/root y 30000' 'debug/on/root z 20000' '7/on/root a 60000' >"$np_times"
printf '%s\n' 'debug/on/root z 80 z' 'debug/on/root new 900 new --all' 'debug/on/root c 400 c' 'debug/on/root c-mediated 400 env c' \
	'debug/on/root b 800 b' 'debug/on/root a 900 a' 'debug/on/root y 80 y' '7/on/root a 60 a' '7/on/root new 500 new' >"$work/plans"

# divided JOBS [LAST...]: "GUEST TEST..." of each guest.
divided() {
	schedule "$@" <"$work/plans" | sed '/^#/d' | awk '
		!($1 in tests) { guests[++count] = $1 }
		{ tests[$1] = tests[$1] " " $2 }
		END { for (i = 1; i <= count; i++) print guests[i] tests[guests[i]] }' | paste -sd '|'
}

ktap_is "a cell that takes long is split into parts of equal times, with the tests in their order" "$(divided 2)" \
	"debug/on/root/1of2 new a y|debug/on/root/2of2 z c c-mediated b|7/on/root a new"
ktap_is "tests that run after all others stay together" "$(divided 2 y z)" \
	"debug/on/root/1of2 z new a y|debug/on/root/2of2 c c-mediated b|7/on/root a new"
ktap_is "one guest at a time is not split, and comes in the given order" "$(divided 1)" \
	"debug/on/root z new c c-mediated b a y|7/on/root a new"
ktap_is "the command of a test is kept" "$(schedule 2 <"$work/plans" | grep -- --all)" "debug/on/root/1of2 new 900 new --all"
ktap_is "expected times are printed" "$(schedule 2 <"$work/plans" | sed -n 's/^# //p' | tr -s ' ' | paste -sd '|')" \
	"3 guests for 2 cells, 2 at a time: 1050 s of all, 465 s of the longest, 585 s in all|debug/on/root/1of2 465 s|debug/on/root/2of2 460 s|7/on/root 125 s"
sed -i '/^debug/d' "$work/plans"
ktap_is "a cell of two minutes is not split" "$(divided 2)" "7/on/root a new"
keep_last_times
ktap_is "one time of each test is kept" "$(grep -c ' a ' "$np_times") $(grep '^debug/on/root a' "$np_times")" "2 debug/on/root a 300000"
ktap_is "a guest belongs to a cell" "$(cell_of debug/on/root/2of3) $(cell_of 7/off/switch-acs)" "debug/on/root 7/off/switch-acs"
ktap_end
