#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Unit test: what a library exports is what its headers declare and what the pinned
# list says, no more and no less; every symbol has the version it came with, and a
# manual page with its prototype.
#
# usage: symbols.sh LIBRARY HEADER...
#        symbols.sh --pin LIBRARY       rewrite the list; review its diff
#
# A program finds a symbol by name and version: a line may be added to the list, and
# none may change or go while the number behind ".so." stays.
set -euo pipefail

pin=no
if [[ $1 == --pin ]]; then
	pin=yes
	shift
fi
library=$1
shift
headers=("$@")
top=$(cd "$(dirname "$0")/../.." && pwd)

# Prototypes that the host headers declare without giving a body, one a line and without
# blanks: what stands before a semicolon, has a type before its name, and is not inside braces.
prototypes() {
	local header
	for header in "${headers[@]}"; do
		"${CC:-cc}" -fpreprocessed -dD -E -P -x c "$top/include/$header.h"
	done | grep -v '^#' | tr '\n' ' ' | sed 's/extern "C" {/;/g' | tr ';}' '\n' | grep -v '[{=]' | grep '[a-zA-Z0-9_*] *nvmepeer_[a-z0-9_]*(' |
		tr -d ' \t' | sort -u
}

declared() {
	prototypes | sed 's/^.*\(nvmepeer_[a-z0-9_]*\)(.*$/\1/' | sort -u
}

exported() {
	nm -D --defined-only --with-symbol-versions "$library" |
		sed -n 's/^.* T \(nvmepeer_[a-z0-9_]*\)@@LIBNVMEPEER_.*$/\1/p' | sort -u
}

# "SYMBOL VERSION", below the name that a program asks the loader for.
versions() {
	readelf -d "$library" | sed -n 's/^.*(SONAME).*\[\(.*\)\]$/\1/p'
	nm -D --defined-only --with-symbol-versions "$library" |
		sed -n 's/^.* [A-Z] \(.*\)@@\(LIBNVMEPEER.*\)$/\t\1 \2/p' | grep -v '^.LIBNVMEPEER' | sort -u
}

# Manual pages' prototypes, in the same form.
documented() {
	cat "$top"/Documentation/man/*.3 | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/^\.BI* //p' |
		tr -d '" \t\n' | tr ';' '\n' | sed 's/^.*#include<[a-z_]*\.h>//' | sort -u
}

if [[ $pin == yes ]]; then
	versions
	exit
fi

pinned=$top/selftests/abi/$(basename "$library" .so).symbols
. "$top/selftests/lib/ktap.sh"
ktap_check 'every declared function is exported' diff <(declared) <(exported)
ktap_check 'nothing else is exported' diff <(exported) \
	<(nm -D --defined-only "$library" | sed -n 's/^.* [A-Z] \([a-z0-9_]*\)@.*$/\1/p' | sort -u)
ktap_check 'every symbol is pinned, with its version' diff <(grep -v '^#' "$pinned") <(versions)
ktap_check 'every function has a manual page with its prototype' diff <(prototypes) \
	<(comm -12 <(prototypes) <(documented))
ktap_end
