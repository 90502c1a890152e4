#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Rust crate in front of a kernel made of one structure, its structures and numbers against
# the pinned ones of C, and what its pages show: programs that compile, and that must not.
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/ktap.sh
built=$PWD/build/user

if ! command -v cargo >/dev/null; then
	ktap_skip "the Rust crate" "no Rust: selftests/setup/setup.sh --lint"
	ktap_end
fi

# tell: what Rust's own harness says, test by test; fails unless one ran.
tell() {
	awk '
	/^test .* \.\.\. / {
		verdict = $NF == "ok" ? "ok" : "not ok"
		sub(/^test /, ""); sub(/ \.\.\. .*/, "")
		print verdict, ++count, $0
		next
	}
	{ print "# " $0 }
	END { print "1.." count + 0; exit !count }'
}

unit() {
	ABI="selftests/abi/nvme_peer.abi selftests/abi/nvmepeer.abi" LD_LIBRARY_PATH=$built/rust/fake \
		"$built/rust/unit"
}

# Only with what is not stable yet is a program refused for the error that the page names, and
# not for any.
pages() {
	RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 RUSTDOCFLAGS="-L native=$built/lib" cargo --offline test --doc \
		--manifest-path rust/Cargo.toml --target-dir "$built/.objects/rust-pages"
}

{ unit && pages; } 2>&1 | tell
