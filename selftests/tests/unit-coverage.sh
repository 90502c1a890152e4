#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The judgement of coverage: what it makes of lines that ran, of those that did not,
# and of error paths with and without an excuse.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One function with an error path; counts of its four lines are the arguments.
gcov_of() {
	cat <<EOF
        -:    0:Source:room.c
        -:    1:static int open_door(int key)
$(printf '%9s' "$1"):    2:{
$(printf '%9s' "$2"):    3:	if (!key)
$(printf '%9s' "$3"):    4:		goto err_key;
$(printf '%9s' "$4"):    5:	return 0;
        -:    6:}
EOF
}

# verdict STATUS WORDS: the report on $work/*.gcov fails or not, and has WORDS in it.
verdict() {
	local status=0 said
	said=$(coverage/judge 70 "$work/excused" "$work"/*.gcov 2>&1) || status=1
	echo "$said"
	((status == $1)) && [[ $said == *"$2"* ]]
}

# judges NAME STATUS WORDS
judges() {
	ktap_check "$1" verdict "$2" "$3"
}

echo "# nothing is excused" >"$work/excused"
gcov_of 1 1 1 1 >"$work/1.gcov"
judges "all lines ran" 0 "100.0 %      4 of     4 lines  room.c"
gcov_of 1 1 '#####' 1 >"$work/1.gcov"
judges "an error path that was not taken is named" 1 "room.c:4 open_door(): goto err_key;"
gcov_of '#####' '#####' 1 '#####' >"$work/2.gcov"
judges "what another run took counts" 0 "0 error paths that no test took"
gcov_of '#####' '#####' '#####' '#####' >"$work/2.gcov"
echo "open_door:goto_err_key the key is always there" >>"$work/excused"
judges "an excused path is none" 0 "0 error paths that no test took"
echo "open_door every path of it" >"$work/excused"
judges "nor is one of an excused function" 0 "0 error paths that no test took"
echo "open_door:return_0 another path" >"$work/excused"
judges "the excuse of another path is none" 1 "room.c:4 open_door()"
echo "open_door:goto_err_key the other line is not excused" >"$work/excused"
gcov_of 1 '#####' '#####' '#####' >"$work/1.gcov"
judges "too few lines fail" 1 "33.3 %      1 of     3 lines  room.c   below the bar"
echo "open_door all that did not run" >"$work/excused"
gcov_of 1 1 '#####' '#####' >"$work/1.gcov"
judges "lines that are excused do not count" 0 "100.0 %      2 of     2 lines  room.c"
echo "open_window what is not there" >"$work/excused"
gcov_of 1 1 1 1 >"$work/1.gcov"
judges "an excuse for nothing is told" 1 "excused, but not in the sources: open_window"

ktap_end
