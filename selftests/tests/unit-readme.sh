#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# README.md is short, and each line of shell in it is run by a test (readme.lines).
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
top=$here/../..
. "$here/../lib/ktap.sh"

# The lines of shell in README.md: indented blocks, without comments.
in_readme() {
	awk '/^```/ { fenced = !fenced } !fenced && /^    /' "$top/README.md" |
		sed -E 's/^ +//; s/ +#.*//'
}

# The lines of shell in readme.lines, without their other columns.
in_list() {
	grep -v '^#' "$here/readme.lines" | awk -F '\t' '{ print $NF }'
}

same_lines() {
	diff <(in_readme) <(in_list)
}

is_short() {
	(($(wc -l <"$top/README.md") < 150))
}

# Each suite that is named exists; "check" runs all of them.
suites_exist() {
	local name
	while read -r name; do
		grep -q "^	*suite $name " "$top/selftests/check" || { echo "no suite $name"; return 1; }
	done < <(awk -F '\t' '$1 == "suite" && $2 != "check" { print $2 }' "$here/readme.lines")
}

ktap_check "README.md has fewer than 150 lines" is_short
ktap_check "readme.lines has the lines of shell of README.md" same_lines
ktap_check "the suites that it names exist" suites_exist
ktap_end
