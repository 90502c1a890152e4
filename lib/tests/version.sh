#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The file VERSION is the version of the module, the libraries, the command and the packages.
# Files that cannot read it have a copy: all copies must agree.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
. "$top/selftests/lib/ktap.sh"

version=$(<"$top/VERSION")

# copy FILE EXPRESSION [SUFFIX]: FILE has VERSION with SUFFIX where sed finds EXPRESSION.
copy() {
	local found
	found=$(sed -n "s/$2/\\1/p" "$top/$1" | head -n 1)
	[[ $found == "$version${3-}" ]] || { echo "$1 has version $found, VERSION is $version"; return 1; }
}

# number: NVMEPEER_VERSION_NUMBER of VERSION.
number() {
	local major minor patch
	IFS=. read -r major minor patch <<<"$version"
	printf '0x%06x' $((major << 16 | minor << 8 | ${patch:-0}))
}

# Kbuild passes VERSION to the module.
module() {
	grep -q '^MODULE_VERSION(NVMEP_VERSION);' "$top/kmod/main.c" &&
		grep -q '^nvmep_version := $(shell cat $(src)/../VERSION)$' "$top/kmod/Kbuild" &&
		grep -q -- '-DNVMEP_VERSION=.*$(nvmep_version)' "$top/kmod/Kbuild"
}

# Manual pages get the version when they are built.
pages() {
	! grep -L '^\.so\|"nvme-peer @VERSION@"' "$top"/Documentation/man/*.[137] | grep .
}

# With three numbers, as Cargo requires.
crate=
[[ $version == *.*.* ]] || crate=.0

ktap_check "libnvmepeer" copy include/nvmepeer.h '#define NVMEPEER_VERSION "\(.*\)"'
ktap_is "number of libnvmepeer" "$(sed -n 's/#define NVMEPEER_VERSION_NUMBER //p' "$top/include/nvmepeer.h")" "$(number)"
ktap_check "Debian packages" copy debian/changelog '^nvme-peer (\([^-)]*\).*'
ktap_check "Python package" copy python/pyproject.toml '^version = "\(.*\)"'
ktap_check "Rust crate" copy rust/Cargo.toml '^version = "\(.*\)"' $crate
ktap_check "kernel module" module
ktap_check "manual pages" pages
ktap_end
