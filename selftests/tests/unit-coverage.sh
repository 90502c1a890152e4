#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The coverage report: its verdict on lines that ran, on branches that were taken, and on those that
# were not, with and without an excuse.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sides WHAT: gcov's lines about the conditions of a line: "both", or which side was "not" taken, of
# each condition in order.
sides() {
	local what untaken=() number=0
	for what in "$@"; do
		case $what in
		both) ;;
		none) untaken+=("condition  $number not covered (true false)") ;;
		*) untaken+=("condition  $number not covered ($what)") ;;
		esac
		number=$((number + 1))
	done
	echo "condition outcomes covered 0/$((2 * number))"
	((${#untaken[@]} == 0)) || printf '%s\n' "${untaken[@]}"
}

# One function with an error path, a guard of two conditions before it, and an if. Its line counts
# are the first arguments, followed by the branches that were not taken.
gcov_of() {
	cat <<EOF
        -:    0:Source:room.c
        -:    1:static int open_door(int key, bool lock)
$(printf '%9s' "$1"):    2:{
$(printf '%9s' "$2"):    3:	if (!key ||
$(sides "$5" "$6")
        -:    4:	    lock)
$(printf '%9s' "$3"):    5:		goto err_key;
$(printf '%9s' "$4"):    6:	return wide ? push(key) : turn(key);
$(sides "$7")
        -:    7:}
EOF
}

# verdict STATUS WORDS: the report on $work/*.gcov exits with STATUS and contains WORDS.
verdict() {
	local status=0 said
	said=$(coverage/judge 70 "${least:-0}" "${chances:-0}" "$work/excused" "$work"/*.gcov 2>&1) || status=1
	echo "$said"
	((status == $1)) && [[ $said == *"$2"* ]]
}

# judges NAME STATUS WORDS
judges() {
	ktap_check "$1" verdict "$2" "$3"
}

all=(both both both)

echo "# nothing is excused" >"$work/excused"
gcov_of 1 1 1 1 "${all[@]}" >"$work/1.gcov"
judges "all lines ran" 0 "100.0 %      4 of     4 lines   100.0 %      6 of     6 sides  room.c"
gcov_of 1 1 '#####' 1 "${all[@]}" >"$work/1.gcov"
judges "an error path that was not taken is named" 1 "room.c:5 open_door(): goto err_key;"
gcov_of 1 1 1 1 "${all[@]}" >"$work/2.gcov"
judges "what another run took counts" 0 "0 error paths that no test took"
rm "$work/2.gcov"
gcov_of 1 '#####' '#####' '#####' "${all[@]}" >"$work/1.gcov"
echo "open_door:!key the other lines are not excused" >"$work/excused"
judges "too few lines fail" 1 "33.3 %      1 of     3 lines"
echo "# nothing is excused" >"$work/excused"

gcov_of 1 1 1 1 both true both >"$work/1.gcov"
judges "a side of a guard that was not taken is named" 1 "room.c:3 open_door(): lock: never true"
gcov_of 1 1 1 1 false both both >"$work/1.gcov"
judges "so is the other side, of another condition" 1 "room.c:3 open_door(): !key: never false"
gcov_of 1 1 1 1 none both both >"$work/1.gcov"
judges "and both sides" 1 "room.c:3 open_door(): !key: never taken"
gcov_of 1 1 1 1 both both true >"$work/1.gcov"
judges "a choice is no guard" 0 "room.c:6 open_door(): wide: never true"
least=90
judges "but too few sides fail" 1 "83.3 %      5 of     6 sides  room.c   below the bar"
least=''
sed 's/covered 0\/4/covered 5\/4/' "$work/1.gcov" >"$work/2.gcov"
mv "$work/2.gcov" "$work/1.gcov"
judges "more sides than there are come of no run" 1 "room.c:3: the conditions of several modules were added up"
gcov_of 1 1 1 1 "${all[@]}" >"$work/1.gcov"
sed -i 's/if (!key ||/if (!key)/; s/^\t    lock)//' "$work/1.gcov"
judges "conditions that the text has not do not count" 0 "2 of     2 sides  room.c"
gcov_of 1 1 '#####' 1 none none both | sed 's/!key ||/WARN_ON(!key) ||/' >"$work/1.gcov"
judges "nor do those that warn, and what is behind them" 0 "100.0 %      3 of     3 lines   100.0 %      2 of     2 sides  room.c"
gcov_of 1 1 1 1 true both both | sed 's/wide ? push(key) : turn(key)/!key ? push(key) : turn(key)/' >"$work/1.gcov"
echo "open_door:!key_#2 it is the first that was not" >"$work/excused"
judges "the second of the same text is another" 1 "room.c:3 open_door(): !key: never true"
echo "# nothing is excused" >"$work/excused"

gcov_of 1 1 '#####' 1 both true both >"$work/1.gcov"
echo "open_door:lock it has none" >"$work/excused"
judges "an excused side is none, nor is the error path behind it" 0 "100.0 %      3 of     3 lines   100.0 %      5 of     5 sides"
gcov_of 1 1 '#####' 1 true true both >"$work/1.gcov"
judges "the excuse of one condition is none for another" 1 "open_door(): !key: never true"
echo "open_door all of it" >"$work/excused"
judges "a function is excused with all that is in it" 0 "100.0 %      3 of     3 lines   100.0 %      4 of     4 sides"
gcov_of 1 1 1 1 "${all[@]}" >"$work/1.gcov"
judges "an excuse for a taken branch is reported" 1 "excused, but it was taken: open_door"
echo "open_door:lock it has none" >"$work/excused"
judges "of a condition, too" 1 "excused, but it was taken: open_door:lock"
chances=1
echo "open_door:lock it has none" >"$work/excused"
judges "one such excuse may be allowed" 0 "excused, but it was taken: open_door:lock"
chances=''
echo "open_door:lock chance: a race" >"$work/excused"
judges "but not if it is left to chance" 0 "0 guards of which tests took one side or none"
echo "open_window what is not there" >"$work/excused"
judges "an excuse without a target is reported" 1 "excused, but neither a function nor a condition: open_window"
gcov_of 1 1 '#####' 1 both true both >"$work/1.gcov"
echo "open_door:goto_err_key the condition is not named" >"$work/excused"
judges "an excuse that names no condition excuses nothing" 1 "excused, but neither a function nor a condition: open_door:goto_err_key"
judges "its error path is reported" 1 "room.c:5 open_door(): goto err_key;"

ktap_end
