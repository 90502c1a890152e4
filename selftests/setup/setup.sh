#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Build everything the tests need, from a bare Debian 12 machine, as root:
#
#   CACHE/trixie      a Debian tree: compilers, QEMU, fio, nvme-cli, ...
#   CACHE/kernels/K   vmlinuz and modules of kernel K; its headers go into the tree
#   CACHE/kselftest, CACHE/checkpatch   files of Debian's linux-source
#   CACHE/guest       the guests' root file system image
#
# usage: setup.sh [--refresh] [--lint] [KERNEL...]      (default: all kernels)
#
# Each result carries the key of what it was made from and is renamed into place
# when it is whole; a second run does nothing, a killed one goes on where it was.
# Package versions are found here and never pinned, as the archive drops old ones:
# --refresh looks again.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# Compilers (one per generation of kernel headers), what their tools load at run
# time, QEMU, and what the guests run.
tree_packages=(
	gcc gcc-12 gcc-14 libc6-dev binutils make pkgconf perl python3-minimal libpython3-stdlib
	libelf1t64 libssl3t64 zlib1g liburing-dev linux-libc-dev sparse
	qemu-system-x86 busybox-static erofs-utils cpio xz-utils patch
	kmod pahole fdisk e2fsprogs fio nvme-cli strace procps pciutils util-linux mount
)
lint_packages=(coccinelle cppcheck clang clang-tidy clang-tools shellcheck valgrind codespell)

# Left out of every package: nobody reads manuals in a guest.
tree_excludes=('/usr/share/man/*' '/usr/share/doc/*' '/usr/share/locale/*' '/usr/share/info/*')

# Only for build tools, so not in the guests' image.
guest_excludes=(
	usr/src usr/include usr/lib/gcc usr/libexec/gcc usr/lib/llvm-* usr/lib/linux-kbuild-*
	usr/share/qemu usr/share/seabios usr/lib/x86_64-linux-gnu/qemu usr/share/python3
	usr/lib/x86_64-linux-gnu/perl usr/share/perl usr/lib/ocaml usr/lib/coccinelle
	var/cache var/lib/apt var/lib/dpkg usr/lib/modules
)

refresh=no
lint=no
kernels=()
while (($#)); do
	case $1 in
	--refresh) refresh=yes ;;
	--lint) lint=yes ;;
	-h | --help) sed -n '3,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
	6.1 | 6.12 | 7) kernels+=("$1") ;;
	*) np_die "setup.sh: unknown argument '$1' (kernels: ${np_all_kernels[*]})" ;;
	esac
	shift
done
((${#kernels[@]})) || kernels=("${np_all_kernels[@]}")
((EUID == 0)) || np_die "set-up needs root: it makes a Debian tree and mounts"

mkdir -p "$np_cache"/{debs,kernels,work}
exec {setup_lock}>"$np_cache/work/lock"
if ! flock -n "$setup_lock"; then
	np_say "waiting for another set-up of $np_cache"
	flock "$setup_lock"
fi

# Show a stage by its name, then how long it took; its own output goes to a log
# that is shown only when the stage fails.
stage() {
	local name=$1 log=$np_cache/work/$1.log began=$SECONDS
	shift
	np_say "set-up: $name ..."
	# Not 'if ! (...)': that would switch off errexit inside the stage.
	set +e
	(set -e; "$@") >"$log" 2>&1 </dev/null
	local status=$?
	set -e
	if ((status)); then
		tail -n 40 "$log" >&2
		np_die "set-up: $name failed, log in $log"
	fi
	np_say "set-up: $name done in $((SECONDS - began)) s"
}

# The archive this machine already uses: whatever mirror or proxy its owner chose.
find_mirrors() {
	local site release
	mirror='' security=''
	while read -r site release; do
		case $release in
		*-security) security=${security:-$site} ;;
		*-updates | *-backports*) ;;
		*) mirror=${mirror:-$site} ;;
		esac
	done < <(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian')
	[[ $mirror ]] || np_die "apt knows no Debian archive (apt-get indextargets is empty: run apt-get update)"
}

sources_of() {
	local suite
	for suite in "$@"; do
		case $suite in
		*-security) [[ $security ]] && echo "deb $security $suite main" ;;
		*) echo "deb $mirror $suite main" ;;
		esac
	done
}

# apt with its own lists, so that the machine's own apt is never touched.
# One view per Debian release: newest kernel of bookworm is not that of trixie.
private_apt() {
	local view=$np_cache/apt/$1 tool=$2
	shift 2
	"$tool" -qq -o Dir::Etc::SourceList="$view/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$view/lists" -o Dir::Cache="$view/cache" \
		-o Dir::State::Status=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o APT::Sandbox::User=root -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

make_apt_view() {
	local name=$1 view=$np_cache/apt/$1
	shift
	mkdir -p "$view"/{lists/partial,cache/archives/partial}
	sources_of "$@" >"$view/sources.list"
	private_apt "$name" apt-get update
}

apt_views() {
	make_apt_view bookworm bookworm bookworm-security
	make_apt_view trixie trixie trixie-security
	make_apt_view backports trixie-backports
	date +%s >"$np_cache/apt/.updated"
}

# fetch VIEW PACKAGE...: the packages' files, named on stdout; downloaded once.
fetch() {
	local view=$1 package file
	shift
	for package in "$@"; do
		file=$(private_apt "$view" apt-get download --print-uris "$package" | awk '{print $2}')
		if [[ ! -s $np_cache/debs/$file ]]; then
			(cd "$np_cache/work" && private_apt "$view" apt-get download "$package" && mv "$file" "$np_cache/debs/") >&2
		fi
		echo "$np_cache/debs/$file"
	done
}

## The tree

tree_setup_hook() {
	cat <<-'HOOK'
	mkdir -p "$1/etc/apt/preferences.d" "$1/var/cache/apt/archives"
	printf 'Package: src:qemu src:seabios src:ipxe\nPin: release n=trixie-backports\nPin-Priority: 990\n' >"$1/etc/apt/preferences.d/qemu"
	cp -al "$NP_DEBS"/*.deb "$1/var/cache/apt/archives/" 2>/dev/null || true
	HOOK
}

make_tree() {
	local work=$np_cache/work/trixie sources=$np_cache/work/trixie.list options=() exclude
	sources_of trixie trixie-security trixie-backports >"$sources"
	rm -rf --one-file-system "$work"
	for exclude in "${tree_excludes[@]}"; do
		options+=(--dpkgopt="path-exclude=$exclude")
	done
	NP_DEBS=$np_cache/debs mmdebstrap --mode=root --variant=apt --architectures=amd64 \
		--dpkgopt=force-unsafe-io "${options[@]}" \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' --aptopt='APT::Sandbox::User "root"' \
		--include="$(IFS=,; echo "${tree_packages[*]}")" \
		--setup-hook="$(tree_setup_hook)" --skip=essential/unlink \
		--customize-hook='cp -aln "$1"/var/cache/apt/archives/*.deb "$NP_DEBS"/ || true' \
		trixie "$work" "$sources"
	rm -rf "$work"/var/cache/apt/*
	chroot "$work" qemu-system-x86_64 -device help | grep -q vfio-user-pci
	np_publish "$work" "$np_tree" "$tree_key"
}

host_tools() {
	apt-get update -qq || true
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mmdebstrap
}

find_mirrors
tree_key=$(np_key tree-1 "${tree_packages[@]}" "${tree_excludes[@]}")
if [[ $refresh == yes || ! -f $np_cache/apt/.updated ]]; then
	stage package-lists apt_views
fi
if [[ $refresh == yes ]] || ! np_fresh "$np_tree" "$tree_key"; then
	command -v mmdebstrap >/dev/null || stage host-tools host_tools
	stage trixie-tree make_tree
fi

## Kernels: unpacked, never installed

in_tree=$np_source/selftests/setup/in-tree

has_package() {
	private_apt "$1" apt-cache show "$2" 2>/dev/null | grep -q '^Filename:'
}

# image_packages VIEW VERSION: the packages that hold vmlinuz and modules. Debian
# ships them as one package, or split in two; either may exist only unsigned.
image_packages() {
	local view=$1 version=$2 package
	if has_package "$view" "linux-modules-$version"; then
		for package in "linux-binary-$version" "linux-binary-unsigned-$version"; do
			has_package "$view" "$package" && echo "linux-modules-$version linux-base-$version $package" && return
		done
	fi
	for package in "linux-image-$version" "linux-image-$version-unsigned"; do
		has_package "$view" "$package" && echo "$package" && return
	done
	return 1
}

# Newest version of which the archive has headers, modules and image; it keeps
# some of these longer than others.
newest_version() {
	local view=$1 series=$2 version
	private_apt "$view" apt-cache pkgnames "linux-headers-$series." |
		sed -n "s/^linux-headers-\(${series//./\\.}\.[0-9][0-9.+a-z-]*-amd64\)\$/\1/p" |
		grep -Ev -- '-(rt|cloud)-' | sort -rV |
		while read -r version; do
			image_packages "$view" "$version" >/dev/null && echo "$version" && break
		done
}

view_of() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	*) echo backports ;;
	esac
}

# The headers' own parts, without the compiler: those are in the tree already.
header_packages() {
	private_apt "$1" apt-cache depends "linux-headers-$2" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p'
	echo "linux-headers-$2"
}

unpack() {
	local into=$1 package
	shift
	for package in "$@"; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$into"
	done
}

# Guests need few modules. They are stored uncompressed, as a guest under
# emulation would spend its first seconds in the decompressor.
keep_modules() {
	local modules=$1 version=$2 kept=$1.kept directory
	mkdir "$kept"
	for directory in arch block crypto kernel lib mm virt fs net/9p net/vmw_vsock drivers/{acpi,base,block,char,dma,dma-buf,iommu,md,nvme,pci,uio,vfio,virtio} drivers/gpu/drm/{vgem,virtio}; do
		[[ -d $modules/kernel/$directory ]] || continue
		mkdir -p "$kept/kernel/$(dirname "$directory")"
		mv "$modules/kernel/$directory" "$kept/kernel/$directory"
	done
	mv "$modules"/modules.{order,builtin,builtin.modinfo} "$kept/"
	find "$kept" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 xz -d
	rm -rf "$modules"
	mv "$kept" "$modules"
}

make_kernel() {
	local kernel=$1 view version work=$np_cache/work/kernel-$1 headers=$np_cache/work/headers-$1
	view=$(view_of "$kernel")
	version=$(newest_version "$view" "$kernel")
	[[ $version ]] || np_die "the archive has no complete kernel $kernel"
	rm -rf "$work" "$headers"
	mkdir -p "$work/unpacked" "$headers" "$work/lib/modules"
	unpack "$work/unpacked" $(fetch "$view" $(image_packages "$view" "$version"))
	unpack "$headers" $(fetch "$view" $(header_packages "$view" "$version"))
	find "$work/unpacked" -type f -name 'vmlinuz*' -exec cp {} "$work/vmlinuz" \;
	cp "$headers/usr/src/linux-headers-$version/.config" "$work/config"
	mv "$work"/unpacked/{usr/,}lib/modules/"$version" "$work/lib/modules/" 2>/dev/null || true
	keep_modules "$work/lib/modules/$version" "$version"
	"$in_tree" depmod -b "$work" "$version"
	cp -a "$headers"/usr/. "$np_tree/usr/"
	echo "$version" >"$work/version"
	rm -rf "$work/unpacked" "$headers"
	np_publish "$work" "$np_cache/kernels/$kernel" "$kernel_key"
}

# The headers live in the tree, so a new tree wants them again.
kernel_key=$(np_key kernel-1 "$(stat -c %W.%i "$np_tree")")
for kernel in "${kernels[@]}"; do
	if [[ $refresh == yes ]] || ! np_fresh "$np_cache/kernels/$kernel" "$kernel_key"; then
		stage "kernel-$kernel" make_kernel "$kernel"
		np_say "set-up: kernel $kernel is $(<"$np_cache/kernels/$kernel/version")"
	fi
done

## Files of the kernel's own source: test harness and checkers

# Out of one long xz stream, so only once and only what is used.
make_sources() {
	local version package work=$np_cache/work/sources
	version=$(<"$np_cache/kernels/7/version")
	package=linux-source-$(cut -d. -f1,2 <<<"$version")
	rm -rf "$work"
	mkdir -p "$work"
	dpkg-deb --fsys-tarfile "$(fetch backports "$package")" |
		tar -xO --wildcards '*/usr/src/linux-source-*.tar.xz' |
		xz -dc -T2 |
		tar -x -C "$work" --strip-components=1 --wildcards \
			'linux-source-*/tools/testing/selftests/kselftest*' \
			'linux-source-*/scripts/checkpatch.pl' 'linux-source-*/scripts/spelling.txt' \
			'linux-source-*/scripts/const_structs.checkpatch' 'linux-source-*/scripts/kernel-doc*' \
			'linux-source-*/scripts/coccinelle' 'linux-source-*/scripts/coccicheck' \
			'linux-source-*/tools/lib/python' 'linux-source-*/LICENSES'
	np_publish "$work" "$np_cache/linux-source" "$source_key"
	ln -sfn linux-source/tools/testing/selftests "$np_cache/kselftest"
	ln -sfn linux-source "$np_cache/checkpatch"
}
source_key=$(np_key source-1)
if [[ $refresh == yes ]] || ! np_fresh "$np_cache/linux-source" "$source_key"; then
	stage sources make_sources
fi

## Guests: one root file system image for all, one small initramfs per kernel

guest_modules=(virtio_pci virtio_blk 9pnet_virtio 9p erofs overlay)

# Uncompressed, for the same reason as the modules. Read-only: the guest lays a
# tmpfs over it, so no test can leave something behind for the next one.
make_guest_image() {
	local work=$np_cache/work/guest excludes=() path
	rm -rf "$work"
	mkdir -p "$work"
	for path in "${guest_excludes[@]}" "${tree_guests[@]}"; do
		for path in "$np_tree"/$path; do
			excludes+=(--exclude-path="${path#"$np_tree"/}")
		done
	done
	"$in_tree" mkfs.erofs -T0 --quiet "${excludes[@]}" "$work/root.erofs" "$np_tree"
	np_publish "$work" "$np_cache/guest" "$image_key"
}

make_initramfs() {
	local kernel=$1 directory=$np_cache/kernels/$1 work=$np_cache/work/initramfs-$1 version module
	version=$(<"$directory/version")
	rm -rf "$work"
	mkdir -p "$work"/{bin,modules,dev,proc,sys,lower,overlay,root}
	cp "$np_tree/usr/bin/busybox" "$work/bin/"
	cp "$np_source/selftests/guest/init" "$work/init"
	# Dependencies first, in the order that modprobe would load them.
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
	echo "$initramfs_key" >"$directory/.initramfs-key"
}

# Mount points that in-tree made in the tree: nothing below them is part of it.
tree_guests=("${np_source#/}" "${np_cache#/}")
image_key=$(np_key image-1 "$tree_key" "$(stat -c %W.%i "$np_tree")" "${guest_excludes[@]}")
if ! np_fresh "$np_cache/guest" "$image_key"; then
	stage guest-image make_guest_image
fi
for kernel in "${kernels[@]}"; do
	initramfs_key=$(np_key initramfs-1 "$(<"$np_cache/kernels/$kernel/version")" "$(<"$np_source/selftests/guest/init")" "${guest_modules[@]}")
	if [[ ! -f $np_cache/kernels/$kernel/initramfs || $(cat "$np_cache/kernels/$kernel/.initramfs-key" 2>/dev/null) != "$initramfs_key" ]]; then
		stage "initramfs-$kernel" make_initramfs "$kernel"
	fi
done
