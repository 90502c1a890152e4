#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# README.md: short, and each line of shell in it is run by something (readme.lines).
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
top=$here/../..
. "$here/../lib/ktap.sh"

# What README tells to type: blocks that are indented, without their comments.
told() {
	awk '/^```/ { fenced = !fenced } !fenced && /^    /' "$top/README.md" |
		sed -E 's/^ +//; s/ +#.*//'
}

# What is run, with whatever else readme.lines says of it left out.
run() {
	grep -v '^#' "$here/readme.lines" | awk -F '\t' '{ print $NF }'
}

same_lines() {
	diff <(told) <(run)
}

is_short() {
	(($(wc -l <"$top/README.md") < 150))
}

# The suites that are named are there; "check" is all of them.
suites_are_there() {
	local name
	while read -r name; do
		grep -q "^	*suite $name " "$top/selftests/check" || { echo "no suite $name"; return 1; }
	done < <(awk -F '\t' '$1 == "suite" && $2 != "check" { print $2 }' "$here/readme.lines")
}

ktap_check "README.md has fewer than 150 lines" is_short
ktap_check "each line of shell in it is run, and no other" same_lines
ktap_check "the suites that run them are there" suites_are_there
ktap_end
