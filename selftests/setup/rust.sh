# SPDX-License-Identifier: GPL-2.0-only
# Rust, in a separate directory: it would double the size of the tree that guests are made
# of. Sourced by setup.sh.

rust_packages=(rustc cargo rustfmt rust-clippy bindgen)
rust_programs=(rustc cargo rustdoc rustfmt cargo-fmt cargo-clippy clippy-driver bindgen)

# Packages and dependencies that the tree lacks. libclang is in the tree for the checkers; its
# headers are not needed.
fetch_rust() {
	mkdir -p "$1/partial"
	"$in_tree" apt-get update -qq
	"$in_tree" apt-get install -qq -y --no-install-recommends --download-only -o Dir::Cache::archives="$1" \
		-o APT::Sandbox::User=root "${rust_packages[@]}"
	rm -f "$1"/libclang*-dev_*.deb
}

# A wrapper for PATH: use the libraries of this directory and a CARGO_HOME in it.
rust_program() {
	cat <<-PROGRAM
	#!/bin/sh
	export LD_LIBRARY_PATH="\${0%/*}/../usr/lib/x86_64-linux-gnu\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
	export CARGO_HOME="\${CARGO_HOME:-\${0%/*}/../home}"
	exec "\${0%/*}/../usr/bin/$1" "\$@"
	PROGRAM
}

make_rust() {
	local work=$np_scratch/rust deb program
	rm -rf "$work"
	mkdir -p "$work/bin"
	fetch_rust "$work/debs"
	for deb in "$work"/debs/*.deb; do
		"$in_tree" dpkg-deb -x "$deb" "$work"
	done
	rm -r "${work:?}"/{debs,usr/share}
	for program in "${rust_programs[@]}"; do
		rust_program "$program" >"$work/bin/$program"
		chmod +x "$work/bin/$program"
	done
	np_publish "$work" "$np_cache/rust" "$rust_key"
}

# After the checkers, whose packages are not fetched again.
need_rust() {
	rust_key=$(np_key rust-1 "$tree_identity" "${lint_packages[@]}" "${rust_packages[@]}")
	np_fresh "$np_cache/rust" "$rust_key" || stage rust make_rust
}
