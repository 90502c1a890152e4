# SPDX-License-Identifier: GPL-2.0-only
# The Debian tree: build root, emulator, and user space of the guests. Sourced by setup.sh.

# Compilers (one for each generation of kernel headers) with run-time libraries of their tools,
# QEMU, and programs for guests.
tree_packages=(
	gcc gcc-12 gcc-14 libc6-dev binutils make pkgconf perl python3-minimal libpython3-stdlib
	libelf1t64 libssl3t64 zlib1g liburing-dev linux-libc-dev sparse
	qemu-system-x86 busybox-static erofs-utils cpio xz-utils patch
	kmod pahole fdisk e2fsprogs fio nvme-cli strace procps pciutils util-linux mount
)
# For examples in C++, added to an existing tree, so that results made from it stay valid.
language_packages=(g++)
lint_packages=(ccache coccinelle libpython3-dev cppcheck clang libclang-rt-dev clang-tidy clang-tools g++ shellcheck valgrind codespell zsh)

# For Documentation/.
document_packages=(python3-sphinx)

# For guests only, added to an existing tree in the same way. udev
# without its hardware database, which is seven times as large as the rest.
guest_packages=(udev btrfs-progs xfsprogs)
guest_package_options=(-o 'DPkg::Options::=--path-exclude=/usr/lib/udev/hwdb.d/*'
	-o 'DPkg::Options::=--path-exclude=/usr/lib/*/libicu*' -o 'DPkg::Options::=--path-exclude=/usr/sbin/xfs_scrub*')

# Tools of a few tests, in a separate image: with LLVM, which tracing needs, they would double the
# size, and neither the demonstration nor a bundle needs them. smartmontools without its service,
# whose start the installation would try.
tool_packages=(linux-perf bpftrace smartmontools libblkio1)
tool_package_options=(-o 'DPkg::Options::=--path-exclude=/etc/init.d/smartmontools')
tool_files=(usr/bin/perf usr/bin/bpftrace usr/sbin/smartctl usr/lib/x86_64-linux-gnu/libblkio.so.1)

# Excluded from every package.
tree_excludes=('/usr/share/man/*' '/usr/share/doc/*' '/usr/share/locale/*' '/usr/share/info/*')

# Packages of the host that set-up needs and a minimal installation lacks.
host_packages=(mmdebstrap xz-utils)

have_host_tools() {
	command -v mmdebstrap && command -v xz
}

install_host_tools() {
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${host_packages[@]}"
}

tree_setup_hook() {
	cat <<-'HOOK'
	mkdir -p "$1/etc/apt/preferences.d" "$1/var/cache/apt/archives"
	printf 'Package: src:qemu src:seabios src:ipxe\nPin: release n=trixie-backports\nPin-Priority: 990\n' >"$1/etc/apt/preferences.d/qemu"
	cp -al "$NP_DEBS"/*.deb "$1/var/cache/apt/archives/" 2>/dev/null || true
	HOOK
}

make_tree() {
	local work=$np_scratch/trixie sources=$np_scratch/trixie.list options=() exclude
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
	[[ $(chroot "$work" qemu-system-x86_64 -device help) == *vfio-user-pci* ]] ||
		np_die "QEMU in the Debian tree has no vfio-user-pci"
	np_publish "$work" "$np_tree" "$tree_key"
}

# add_packages KEY-FILE KEY ARG...: apt-get install in the tree.
add_packages() {
	"$in_tree" apt-get update -qq
	"$in_tree" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${@:3}"
	"$in_tree" apt-get clean
	echo "$2" >"$np_tree/$1"
}

# need_packages STAGE KEY-FILE KEY ARG...: add packages, unless the tree has those of this key.
need_packages() {
	if [[ ! -f $np_tree/$2 || $(<"$np_tree/$2") != "$3" ]]; then
		stage "$1" add_packages "${@:2}"
	fi
}
