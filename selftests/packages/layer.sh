# SPDX-License-Identifier: GPL-2.0-only
# Fresh Debian trees, and scripts in temporary layers over them. Sourced by run and first-hour,
# which restart here in a private mount namespace.
#
# The base of a release is made once and kept below CACHE/packages, with downloads of packages in
# CACHE/packages/RELEASE.debs.

base_key=$(np_key base-1)

make_base() {
	local release=$1 work=$np_scratch/packages-$1
	find_mirrors
	sources_of "$release" "$release-security" >"$work.list"
	rm -rf --one-file-system "$work"
	mmdebstrap --mode=root --variant=minbase --architectures=amd64 --dpkgopt=force-unsafe-io \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' --aptopt='APT::Sandbox::User "root"' \
		"$release" "$work" "$work.list"
	np_publish "$work" "$np_cache/packages/$release" "$base_key"
}

# Lock the trees and downloads of the release until the calling shell exits.
need_base() {
	mkdir -p "$np_cache/packages" "$np_scratch"
	exec {release_lock}>"$np_cache/packages/$1.lock"
	flock "$release_lock"
	np_fresh "$np_cache/packages/$1" "$base_key" || stage "base-$1" make_base "$1"
}

# in_root ROOT RELEASE SCRIPT [ARG...]: run a script of this directory in a tree, where /source is
# the source tree and /packages has the results (build/packages/$np_packages, or RELEASE). The
# archive is accessible.
in_root() {
	unshare --mount --propagation private "$0" --in-root "$@"
}

# in_layer LOWER RELEASE SCRIPT [ARG...]: the same in a fresh layer over a tree.
in_layer() {
	local layer status=0
	layer=$(mktemp -d "$np_scratch/layer.XXXXXX")
	unshare --mount --propagation private "$0" --in-layer "$layer" "$@" || status=$?
	rm -rf --one-file-system "$layer"
	return $status
}

# in_disk IMAGE RELEASE SCRIPT [ARG...]: the same in the file system of a disk.
in_disk() {
	local root status=0
	root=$(mktemp -d "$np_scratch/disk.XXXXXX")
	unshare --mount --propagation private "$0" --in-disk "$root" "$@" || status=$?
	rmdir "$root"
	return $status
}

enter_disk() {
	mount -o loop "$2" "$1"
	enter_root "$1" "${@:3}"
}

# kernel_debs KERNEL: packages of this kernel that set-up has fetched.
kernel_debs() {
	local version
	version=$(<"$np_cache/kernels/$1/version")
	find "$np_cache/debs" -name "linux-*-${version}_*" -o -name "linux-headers-${version%-amd64}-common_*" -o \
		-name "linux-kbuild-${version%-amd64}_*" -o -name "linux-kbuild-${1}_*"
}

enter_layer() {
	local layer=$1 lower=$2
	shift 2
	mount -t tmpfs none "$layer"
	mkdir -p "$layer"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=$lower,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
	enter_root "$layer/root" "$@"
}

enter_root() {
	local root=$1 release=$2 script=$3
	shift 3
	local packages=$np_source/build/packages/${np_packages:-$release}
	mkdir -p "$np_cache/packages/$release.debs/partial" "$packages" "$root"/{source,packages}
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount --bind "$np_source" "$root/source"
	mount --bind "$packages" "$root/packages"
	mount --bind "$np_cache/packages/$release.debs" "$root/var/cache/apt/archives"
	# CUDA's compiler is not in Debian, so mount that of the host, if there is one.
	if [[ -x /usr/local/cuda/bin/nvcc ]]; then
		mkdir -p "$root/usr/local/cuda"
		mount --bind "$(readlink -e /usr/local/cuda)" "$root/usr/local/cuda"
	fi
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	# Do not start services.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "/source/selftests/packages/$script" "$@"
}

case ${1:-} in
--in-root) shift; enter_root "$@" ;;
--in-layer) shift; enter_layer "$@" ;;
--in-disk) shift; enter_disk "$@" ;;
esac
