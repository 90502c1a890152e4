#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The user ABI is the one that selftests/abi/nvme_peer.abi pins, for programs of 64 and
# of 32 bits; and a header in which a field or a number moved does not pass for it.
# Likewise what the user library and its programs share (selftests/abi/nvmepeer.abi).
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/ktap.sh

header=include/uapi/linux/nvme_peer.h
pinned=selftests/abi/nvme_peer.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# is_pinned [-m32] [HEADER]
is_pinned() {
	selftests/abi/dump "$@" | diff -u "$pinned" -
}

# is_seen SCRIPT: sed's SCRIPT changes the header, and with it what is said of it.
is_seen() {
	sed -E "$1" "$header" >"$work/changed.h"
	! cmp -s "$header" "$work/changed.h" && selftests/abi/dump "$work/changed.h" >"$work/changed.abi" &&
		! cmp "$work/abi" "$work/changed.abi"
}

# Structures, macros and enum constants by the look of their lines, not by a compiler.
names_in_header() {
	sed -nE 's/^((struct|union) [a-z_]+) \{$/\1/p; s/^(#define|\t)[ \t]*(NVME_PEER_[A-Z0-9_]+)([ \t,].*)?$/\2/p' "$header" | sort
}

names_pinned() {
	sed -nE 's/^((struct|union) .*)/\1/p; s/^\t[0-9a-fx]+ (NVME_PEER_.*)/\1/p' "$pinned" | sort
}

ktap_check "programs of 64 bits" is_pinned
ktap_check "programs of 32 bits" is_pinned -m32
ktap_is "every structure and every number is pinned" "$(names_pinned)" "$(names_in_header)"
selftests/abi/dump >"$work/abi"
ktap_check "a field more is seen" is_seen '0,/^\t__u32 flags;/s//&\n\t__u32 more;/'
ktap_check "a field of another size is seen" is_seen '0,/^\t__u32 generation;/s//\t__u16 generation;/'
ktap_check "a field of another type is seen" is_seen '0,/^\t__u32 handle;/s//\t__s32 handle;/'
ktap_check "another name is seen" is_seen '0,/^\t__u32 handle;/s//\t__u32 grip;/'
ktap_check "another constant of an enum is seen" is_seen 's/(QP_LIVE) = 1/\1 = 5/'
ktap_check "another ioctl number is seen" is_seen 's/(CMD_QP_EXPORT) = 0x/\1 = 0x1/'
ktap_check "another direction of an ioctl is seen" is_seen 's/_IO\((NVME_PEER_TYPE, NVME_PEER_CMD_INFO)\)/_IOR(\1, int)/'
library_is_pinned() {
	selftests/abi/dump --library | diff -u selftests/abi/nvmepeer.abi -
}

# library_is_seen HEADER SCRIPT: as is_seen, in a header of the library.
library_is_seen() {
	sed -E "$2" "$1" >"$work/changed.h"
	! cmp -s "$1" "$work/changed.h" && selftests/abi/dump --library "$work/changed.h" >"$work/changed.abi" &&
		! diff -q <(selftests/abi/dump --library "$1") "$work/changed.abi"
}

ktap_check "another flag is seen" is_seen 's/(NVME_PEER_BUF_REQUIRE_DEVICE\t)\(1U << 0\)/\1(1U << 7)/'
ktap_check "structures of the library" library_is_pinned
ktap_check "a field more in one of them is seen" library_is_seen include/nvmepeer.h \
	's/^(\tuint32_t metadata_size;)/\1\n\tuint32_t more;/'
ktap_check "a longer text in one of them is seen" library_is_seen include/nvmepeer.h \
	's/char what\[160\]/char what[200]/'
ktap_end
