#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which tests a cell has: of a short run, of a long one, and those that are asked for by name; and that
# smoke.list names what exists.
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd -P)
. "$here/setup/common.sh"
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
ktap_is "a named test runs where a long run has it" "$(plan 6.12/off/root --only ext4 --only reset)" "ext4 reset reset-relay"
ktap_is "a short run has relay mode on one stock kernel" \
	"$(for cell in 7/on/root 6.1/off/root; do plan "$cell" | grep -ow reset-relay | sed "s,^,$cell ,"; done)" \
	"7/on/root reset-relay"
ktap_end
