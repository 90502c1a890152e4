#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Unit test: what a library exports is what its headers declare, no more and no
# less, and every symbol has a version and a manual page.
#
# usage: symbols.sh LIBRARY HEADER...
set -euo pipefail

library=$1
shift
headers=("$@")
top=$(cd "$(dirname "$0")/../.." && pwd)
number=0

# Functions that the host headers declare without giving a body: what stands
# before a semicolon and is neither a statement nor inside braces.
declared() {
	local header
	for header in "${headers[@]}"; do
		"${CC:-cc}" -fpreprocessed -dD -E -P -x c "$top/include/$header.h"
	done | grep -v '^#' | tr '\n' ' ' | tr ';}' '\n' | grep -v '[{=]' |
		sed -n 's/^.*[ *]\(nvmepeer_[a-z0-9_]*\)(.*$/\1/p' | sort -u
}

exported() {
	nm -D --defined-only --with-symbol-versions "$library" |
		sed -n 's/^.* T \(nvmepeer_[a-z0-9_]*\)@@LIBNVMEPEER_.*$/\1/p' | sort -u
}

documented() {
	local name
	while read -r name; do
		if grep -qsw "$name" "$top"/Documentation/man/*.3; then
			echo "$name"
		fi
	done
}

same() {
	local purpose=$1 difference
	number=$((number + 1))
	if difference=$(diff <(echo "$2") <(echo "$3")); then
		echo "ok $number $purpose"
	else
		printf '# %s\n' "${difference//$'\n'/$'\n'# }"
		echo "not ok $number $purpose"
		failed=1
	fi
}

failed=0
echo 'TAP version 13'
echo '1..3'
same 'every declared function is exported' "$(declared)" "$(exported)"
same 'nothing else is exported' "$(exported)" \
	"$(nm -D --defined-only "$library" | sed -n 's/^.* [A-Z] \([a-z0-9_]*\)@.*$/\1/p' | sort -u)"
same 'every function has a manual page' "$(declared)" "$(declared | documented)"
exit $failed
