# SPDX-License-Identifier: GPL-2.0-only
# Debian's kernels, unpacked but not installed, and files of their source. Sourced by setup.sh.

# No reader of a pipe in this file exits early: SIGPIPE would end the writer, and pipefail
# would report a failure.
has_package() {
	local said
	said=$(private_apt "$1" apt-cache show "$2" 2>/dev/null) || return
	[[ $'\n'$said == *$'\nFilename:'* ]]
}

# image_packages VIEW VERSION: the packages with vmlinuz and modules. Debian ships one package
# or two; some exist only unsigned.
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

# The newest version with headers, modules and image. The archive may lack one of them, as it
# removes them at different times.
newest_version() {
	local view=$1 series=$2 version versions
	versions=$(private_apt "$view" apt-cache pkgnames "linux-headers-$series." |
		sed -n "s/^linux-headers-\(${series//./\\.}\.[0-9][0-9.+a-z-]*-amd64\)\$/\1/p" |
		grep -Ev -- '-(rt|cloud)-' | sort -rV)
	for version in $versions; do
		image_packages "$view" "$version" >/dev/null || continue
		echo "$version"
		return
	done
	np_die "the archive has no complete kernel $series"
}

view_of() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	*) echo backports ;;
	esac
}

# The header packages without the compiler, which is in the tree.
header_packages() {
	private_apt "$1" apt-cache depends "linux-headers-$2" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p'
	echo "linux-headers-$2"
}

# unpack DIRECTORY: unpack the packages on stdin, without installing them.
unpack() {
	local package
	while read -r package; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$1"
	done
}

# Guests need few modules, uncompressed, as decompression under emulation takes seconds.
keep_modules() {
	local modules=$1 version=$2 kept=$1.kept directory
	mkdir "$kept"
	for directory in arch block crypto kernel lib mm virt fs net/{9p,core,dns_resolver,sunrpc,vmw_vsock} \
		drivers/{acpi,base,block,char,dma,dma-buf,iommu,md,nvme,pci,uio,vfio,virtio} drivers/gpu/drm/{vgem,virtio} \
		drivers/net/{virtio_net,net_failover}.ko{,.xz}; do
		[[ -e $modules/kernel/$directory ]] || continue
		mkdir -p "$kept/kernel/$(dirname "$directory")"
		mv "$modules/kernel/$directory" "$kept/kernel/$directory"
	done
	mv "$modules"/modules.{order,builtin,builtin.modinfo} "$kept/"
	find "$kept" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 xz -d
	rm -rf "$modules"
	mv "$kept" "$modules"
}

make_kernel() {
	local kernel=$1 view version packages work=$np_scratch/kernel-$1 headers=$np_scratch/headers-$1
	view=$(view_of "$kernel")
	version=$(newest_version "$view" "$kernel")
	rm -rf "$work" "$headers"
	mkdir -p "$work/unpacked" "$headers" "$work/lib/modules"
	packages=$(image_packages "$view" "$version")
	# shellcheck disable=SC2086 # packages are words
	fetch "$view" $packages | unpack "$work/unpacked"
	packages=$(header_packages "$view" "$version")
	# shellcheck disable=SC2086
	fetch "$view" $packages | unpack "$headers"
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

# Unpacking the xz stream takes long, so do it once and keep only the files in use.
make_sources() {
	local version package work=$np_scratch/sources
	version=$(newest_version backports 7)
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
			'linux-source-*/tools/docs/kernel-doc' 'linux-source-*/scripts/coccinelle' 'linux-source-*/scripts/coccicheck' \
			'linux-source-*/tools/lib/python' 'linux-source-*/LICENSES'
	np_publish "$work" "$np_cache/linux-source" "$source_key"
	ln -sfn linux-source/tools/testing/selftests "$np_cache/kselftest"
	ln -sfn linux-source "$np_cache/checkpatch"
}
