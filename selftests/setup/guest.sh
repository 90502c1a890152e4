# SPDX-License-Identifier: GPL-2.0-only
# Boot images of guests: one root file system image, a small initramfs for each kernel, and an
# image of tools. Sourced by setup.sh and bundle.

# Excluded from the guests' image: build tools, the emulator, checkers, and the tools of the
# other image. They may already be in the tree when the image is made.
guest_excludes=(
	usr/src usr/include usr/lib/gcc usr/libexec/gcc usr/lib/llvm-* usr/lib/linux-kbuild-*
	usr/share/qemu usr/share/seabios usr/lib/x86_64-linux-gnu/qemu usr/share/python3
	usr/lib/x86_64-linux-gnu/perl usr/share/perl usr/lib/ocaml usr/lib/coccinelle
	usr/lib/x86_64-linux-gnu/libLLVM* usr/lib/x86_64-linux-gnu/libclang* usr/lib/x86_64-linux-gnu/libz3*
	usr/libexec/valgrind usr/lib/x86_64-linux-gnu/valgrind usr/lib/debug
	usr/bin/perf* usr/lib/perf-core usr/bin/bpftrace* usr/sbin/*.bt usr/share/bpftrace usr/bin/ccache usr/lib/ccache
	usr/bin/qemu-system-* usr/bin/*lto-dump* usr/bin/shellcheck usr/bin/spatch* usr/bin/spgen*
	var/cache var/lib/apt var/lib/dpkg usr/lib/modules
)

guest_modules=(virtio_pci virtio_blk 9pnet_virtio 9p erofs overlay)

# Uncompressed, as decompression is slow under emulation. Read-only: the guest mounts a tmpfs
# over it, so that no test changes it for the next guest. Source tree and cache are excluded,
# as they are mount points in the tree.
make_guest_image() {
	local work=$np_scratch/guest excludes=() pattern path
	rm -rf "$work"
	mkdir -p "$work"
	for pattern in "${guest_excludes[@]}" "${np_source#/}" "${np_cache#/}"; do
		# shellcheck disable=SC2231 # a pattern to be expanded
		for path in "$np_tree"/$pattern; do
			excludes+=(--exclude-path="${path#"$np_tree"/}")
		done
	done
	"$in_tree" mkfs.erofs -T0 --quiet "${excludes[@]}" "$work/root.erofs" "$np_tree"
	np_publish "$work" "$np_cache/guest" "$image_key"
}

# libraries FILE...: libraries of these files of the tree, and the loader.
libraries() {
	"$in_tree" sh -c 'cd / && for file; do ldd "$file" 2>/dev/null; done' sh "$@" |
		grep -oE '/[^ ]+\.so[^ ]*' | sed 's,^/,,; s,^lib,usr/lib,' | sort -u
}

# The tools and their libraries at their own paths, for PATH and LD_LIBRARY_PATH.
make_tools_image() {
	local work=$np_scratch/tools
	rm -rf "$work"
	mkdir -p "$work/files"
	{ printf '%s\n' "${tool_files[@]}"; libraries "${tool_files[@]}"; } |
		tar -c -h -C "$np_tree" -T - | tar -x -C "$work/files"
	"$in_tree" mkfs.erofs -T0 --quiet "$work/tools.erofs" "$work/files"
	rm -rf "$work/files"
	np_publish "$work" "$np_cache/tools" "$tools_key"
}

make_initramfs() {
	local kernel=$1 directory=$np_cache/kernels/$1 work=$np_scratch/initramfs-$1 version module
	version=$(<"$directory/version")
	rm -rf "$work"
	mkdir -p "$work"/{bin,modules,dev,proc,sys,lower,overlay,root}
	cp "$np_tree/usr/bin/busybox" "$work/bin/"
	cp "$np_source/selftests/guest/init" "$work/init"
	# In the order of modprobe, dependencies first.
	for module in "${guest_modules[@]}"; do
		"$in_tree" modprobe -d "$directory" -S "$version" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >"$work/paths"
	while read -r module; do
		cp "$module" "$work/modules/"
		basename "$module"
	done <"$work/paths" >"$work/modules/order"
	rm "$work/paths"
	(cd "$work" && "$in_tree" sh -c 'find . | cpio --quiet -o -H newc') >"$directory/initramfs.new"
	mv "$directory/initramfs.new" "$directory/initramfs"
	rm -rf "$work"
	echo "$initramfs_key" >"$directory/initramfs.key"
}
