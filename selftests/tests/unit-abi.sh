#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The user ABI equals selftests/abi/nvme_peer.abi, for 64-bit and 32-bit programs; a header with a
# changed field or number is detected. The same for the structures that the user library shares with
# programs (selftests/abi/nvmepeer.abi).
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

# is_seen SCRIPT: the header changed by sed's SCRIPT is reported as different.
is_seen() {
	sed -E "$1" "$header" >"$work/changed.h"
	! cmp -s "$header" "$work/changed.h" && selftests/abi/dump "$work/changed.h" >"$work/changed.abi" &&
		! cmp "$work/abi" "$work/changed.abi"
}

# Structures, macros and enum constants, found by the form of their lines and not by a compiler.
names_in_header() {
	sed -nE 's/^((struct|union) [a-z_]+) \{$/\1/p; s/^(#define|\t)[ \t]*(NVME_PEER_[A-Z0-9_]+)([ \t,].*)?$/\2/p' "$header" | sort
}

names_pinned() {
	sed -nE 's/^((struct|union) .*)/\1/p; s/^\t[0-9a-fx]+ (NVME_PEER_.*)/\1/p' "$pinned" | sort
}

ktap_check "64-bit programs" is_pinned
ktap_check "32-bit programs" is_pinned -m32
ktap_is "every structure and every number is pinned" "$(names_pinned)" "$(names_in_header)"
selftests/abi/dump >"$work/abi"
ktap_check "an added field is detected" is_seen '0,/^\t__u32 flags;/s//&\n\t__u32 more;/'
ktap_check "a changed field size is detected" is_seen '0,/^\t__u32 generation;/s//\t__u16 generation;/'
ktap_check "a changed field type is detected" is_seen '0,/^\t__u32 handle;/s//\t__s32 handle;/'
ktap_check "a renamed field is detected" is_seen '0,/^\t__u32 handle;/s//\t__u32 grip;/'
ktap_check "a changed enum constant is detected" is_seen 's/(QP_LIVE) = 1/\1 = 5/'
ktap_check "a changed ioctl number is detected" is_seen 's/(CMD_QP_EXPORT) = 0x/\1 = 0x1/'
ktap_check "a changed ioctl direction is detected" is_seen 's/_IO\((NVME_PEER_TYPE, NVME_PEER_CMD_INFO)\)/_IOR(\1, int)/'
library_is_pinned() {
	selftests/abi/dump --library | diff -u selftests/abi/nvmepeer.abi -
}

# library_is_seen HEADER SCRIPT: as is_seen, in a header of the library.
library_is_seen() {
	sed -E "$2" "$1" >"$work/changed.h"
	! cmp -s "$1" "$work/changed.h" && selftests/abi/dump --library "$work/changed.h" >"$work/changed.abi" &&
		! diff -q <(selftests/abi/dump --library "$1") "$work/changed.abi"
}

ktap_check "a changed flag is detected" is_seen 's/(NVME_PEER_BUF_REQUIRE_DEVICE\t)\(1U << 0\)/\1(1U << 7)/'
ktap_check "structures of the library" library_is_pinned
ktap_check "an added field in the library is detected" library_is_seen include/nvmepeer.h \
	's/^(\tuint32_t metadata_size;)/\1\n\tuint32_t more;/'
ktap_check "a longer string in the library is detected" library_is_seen include/nvmepeer.h \
	's/char what\[160\]/char what[200]/'
ktap_end
