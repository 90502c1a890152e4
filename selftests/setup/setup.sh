#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Build everything the tests need, from a bare Debian 12 machine, as root:
#
#   CACHE/trixie        a Debian tree: compilers, QEMU, fio, nvme-cli, ...
#   CACHE/kernels/K     vmlinuz, modules and initramfs of kernel K; its headers go into the tree
#   CACHE/linux-source  test harness and checkers of the newest kernel's source
#   CACHE/guest         the guests' root file system image
#   CACHE/tools         an image of programs that few tests need
#   CACHE/rust          Rust's compiler, with --lint
#
# usage: setup.sh [--refresh] [--lint] [--tree-only] [--no-sources] [KERNEL...]
#   KERNEL       6.1, 6.12, 7 (default: these three), debug, kcsan (built from source)
#   --tree-only  no kernel: enough to build user programs
#   --no-sources without harness, checkers and tools: enough for the demonstration
#   --lint       also the checkers that `make lint` runs, and Rust
#   --refresh    look for newer packages
#
# Each result carries the key of what it was made from and is renamed into place
# when it is whole; a second run does nothing, a killed one goes on where it was.
# Package versions are found here and never pinned, as the archive drops old ones.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$np_source/selftests/setup/stage.sh"
. "$np_source/selftests/setup/archive.sh"
. "$np_source/selftests/setup/tree.sh"
. "$np_source/selftests/setup/kernel.sh"
. "$np_source/selftests/setup/guest.sh"
. "$np_source/selftests/setup/rust.sh"

in_tree=$np_source/selftests/setup/in-tree
refresh=no lint=no tree_only=no sources=yes kernels=()
while (($#)); do
	case $1 in
	--refresh) refresh=yes ;;
	--lint) lint=yes ;;
	--tree-only) tree_only=yes ;;
	--no-sources) sources=no ;;
	-h | --help) sed -n '3,21s/^# \{0,1\}//p' "$0"; exit 0 ;;
	6.1 | 6.12 | 7 | debug | kcsan) kernels+=("$1") ;;
	*) np_die "setup.sh: unknown argument '$1' (--help lists them)" ;;
	esac
	shift
done
((${#kernels[@]})) || kernels=("${np_all_kernels[@]}")
((EUID == 0)) || np_die "set-up needs root: it makes a Debian tree and mounts"

# Is DIR the finished result of KEY, and good enough for this call?
have() {
	[[ $refresh == no ]] && np_fresh "$1" "$2"
}

need_tree() {
	tree_key=$(np_key tree-1 "${tree_packages[@]}" "${tree_excludes[@]}")
	if ! have "$np_tree" "$tree_key"; then
		use_lists
		have_host_tools >/dev/null || stage host-tools install_host_tools
		stage trixie-tree make_tree
	fi
	# What was made from this very tree, not from one like it.
	tree_identity=$(stat -c %W.%i "$np_tree")
}

need_sources() {
	source_key=$(np_key source-2)
	if ! have "$np_cache/linux-source" "$source_key"; then
		use_lists
		stage sources make_sources
	fi
}

need_kernel() {
	local kernel=$1
	if np_is_built "$kernel"; then
		need_kernel 7
		"$np_source/selftests/setup/debug-kernel/build" "$kernel"
		return
	fi
	kernel_key=$(np_key kernel-1 "$tree_identity")
	if ! have "$np_cache/kernels/$kernel" "$kernel_key"; then
		use_lists
		stage "kernel-$kernel" make_kernel "$kernel"
		np_say "set-up: kernel $kernel is $(<"$np_cache/kernels/$kernel/version")"
	fi
}

need_guest() {
	local kernel=$1 file=$np_cache/kernels/$1/initramfs
	guest_key=$(np_key guest-1 "$tree_identity" "${guest_packages[@]}" "${guest_package_options[@]}")
	need_packages guest-packages .guest-key "$guest_key" "${guest_package_options[@]}" "${guest_packages[@]}"
	image_key=$(np_key image-1 "$tree_key" "$guest_key" "${guest_excludes[@]}")
	if ! np_fresh "$np_cache/guest" "$image_key"; then
		stage guest-image make_guest_image
	fi
	initramfs_key=$(np_key initramfs-1 "$(<"$np_cache/kernels/$kernel/.key")" \
		"$(<"$np_source/selftests/guest/init")" "${guest_modules[@]}")
	if [[ ! -f $file || ! -f $file.key || $(<"$file.key") != "$initramfs_key" ]]; then
		stage "initramfs-$kernel" make_initramfs "$kernel"
	fi
}

need_tools() {
	tools_key=$(np_key tools-1 "$tree_identity" "${tool_packages[@]}" "${tool_files[@]}")
	need_packages tool-packages .tools-key "$tools_key" "${tool_packages[@]}"
	np_fresh "$np_cache/tools" "$tools_key" || stage tools-image make_tools_image
}

need_lint() {
	# Checkers are only for `make lint` and `make check`: a demonstration does not wait for them.
	need_packages checkers .lint-key "$(np_key lint-1 "$tree_identity" "${lint_packages[@]}")" "${lint_packages[@]}"
	need_packages documents .documents-key "$(np_key documents-1 "$tree_identity" "${document_packages[@]}")" "${document_packages[@]}"
}

# What setup/bundle packed is whole, but for the image, and nothing more can be fetched.
finish_bundle() {
	image_key=bundle
	np_fresh "$np_cache/guest" "$image_key" || stage guest-image make_guest_image
}

if [[ -f $np_cache/.bundle ]]; then
	finish_bundle
	exit
fi

mkdir -p "$np_cache"/{debs,kernels} "$np_scratch"
exec {setup_lock}>"$np_scratch/lock"
if ! flock -n "$setup_lock"; then
	np_say "waiting for another set-up of $np_cache"
	flock "$setup_lock"
fi

need_tree
[[ $sources == no ]] || need_sources
if [[ $tree_only == no ]]; then
	for kernel in "${kernels[@]}"; do
		need_kernel "$kernel"
		need_guest "$kernel"
	done
	# Behind the guests' image, which is made without them.
	[[ $sources == no ]] || need_tools
fi
[[ $lint == no ]] || { need_lint; need_rust; }
# Only a set-up that took time is worth a line.
((SECONDS < 3)) || np_say "set-up: complete after $SECONDS s, in $np_cache"
