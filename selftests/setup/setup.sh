#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Set up the test environment on a bare Debian 12 machine, as root:
#
#   CACHE/trixie        a Debian tree: compilers, QEMU, fio, nvme-cli, ...
#   CACHE/kernels/K     vmlinuz, modules and initramfs of kernel K; its headers go into the tree
#   CACHE/linux-source  test harness and checkers of the newest kernel's source
#   CACHE/guest         the guests' root file system image
#   CACHE/tools         an image of programs for a few tests
#   CACHE/rust          Rust's compiler, with --lint
#   CACHE/ccache        what compilers have made (at most 2 GB), with --lint
#
# usage: setup.sh [--refresh] [--lint] [--tree-only] [--no-sources] [KERNEL...]
#   KERNEL       6.1, 6.12, 7 (default: these three), debug, kcsan (built from source)
#   --tree-only  no kernel: enough to build user programs
#   --no-sources without harness, checkers and tools: enough for the demonstration
#   --lint       also the checkers that `make lint` runs, ccache, and Rust
#   --refresh    look for newer packages
#
# Each result has a key of its inputs and is renamed into place when it is complete. A second
# run does nothing, and after an interrupted one the next continues. Package versions are not
# pinned, as the archive removes old ones.
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

# have DIR KEY: succeeds if DIR is the finished result of KEY and no refresh is requested.
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
	# Identifies this instance of the tree, for keys of results that were made from it.
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
		# It takes minutes and has a lock of its own: other set-ups go on meanwhile.
		flock -u "$setup_lock"
		"$np_source/selftests/setup/debug-kernel/build" "$kernel"
		flock "$setup_lock"
		return
	fi
	kernel_key=$(np_key kernel-2 "$tree_identity")
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
	need_packages tool-packages .tools-key "$tools_key" "${tool_package_options[@]}" "${tool_packages[@]}"
	np_fresh "$np_cache/tools" "$tools_key" || stage tools-image make_tools_image
}

need_lint() {
	# Checkers are for make lint and make check only, so the demonstration does not install them.
	need_packages checkers .lint-key "$(np_key lint-1 "$tree_identity" "${lint_packages[@]}")" "${lint_packages[@]}"
	need_packages documents .documents-key "$(np_key documents-1 "$tree_identity" "${document_packages[@]}")" "${document_packages[@]}"
}

# An unpacked bundle lacks only the image, and cannot fetch anything.
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
if [[ $sources == yes ]]; then
	need_sources
	need_packages compiler-c++ .language-key "$(np_key language-1 "$tree_identity" "${language_packages[@]}")" "${language_packages[@]}"
fi
if [[ $tree_only == no ]]; then
	for kernel in "${kernels[@]}"; do
		need_kernel "$kernel"
		need_guest "$kernel"
	done
	# After the guests' image, which does not contain them.
	[[ $sources == no ]] || need_tools
fi
[[ $lint == no ]] || { need_lint; need_rust; }
# Silent if everything was up to date.
((SECONDS < 3)) || np_say "set-up: complete after $SECONDS s, in $np_cache"
