#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Rust crate on a simulated kernel, its stores on files, its structures and numbers against C's pinned ABI, and the
# examples of its documentation: programs that compile, and programs that must not.
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/ktap.sh
built=$PWD/build/user

if ! command -v cargo >/dev/null; then
	ktap_skip "the Rust crate" "no Rust: selftests/setup/setup.sh --lint"
	ktap_end
fi

# results: the results of Rust's own harness, test by test; fails unless one ran.
results() {
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

# On files in place of disks.
store() {
	LD_LIBRARY_PATH=$built/lib "$built/rust/store"
}

# Only unstable rustdoc checks that a program fails with the error that the page names.
pages() {
	RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 RUSTDOCFLAGS="-L native=$built/lib" cargo --offline test --doc \
		--manifest-path rust/Cargo.toml --target-dir "$built/.objects/rust-pages"
}

{ unit && store && pages; } 2>&1 | results
