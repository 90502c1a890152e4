#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# examples/broker gives a container one sealed queue pair with one file, and nothing else. The container
# has namespaces of its own, no capabilities, and no device but that of its memory. examples/worker.cu
# reads the file, its kernel on the CPU, with a replacement of libcuda; broker_client.c tries the rest.
# kernels: 7
# iommu: on
# long-iommu: on off
# timeout: 90
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
disk=/dev/${node}n1
np_until 200 test -b "$disk"
if [[ ! -e /dev/udmabuf ]]; then
	ktap_skip "a queue pair by descriptors" "the kernel has no udmabuf"
	ktap_end
	exit
fi
work=$(mktemp -d)
root=$work/root
broker=''

leave() {
	[[ ! $broker ]] || kill "$broker"
	umount "$root/dev/udmabuf" "$root/usr" "$work/files"
	wipefs -aq "$disk"
	rm -rf "$work"
}
trap leave EXIT

# Two files, of which the container gets the first.
make_files() {
	mkfs.ext4 -q -F -b 4096 "$disk" && mount "$disk" "$work/files" &&
		head -c 65536 /dev/urandom >"$work/files/given" && head -c 65536 /dev/urandom >"$work/files/other" &&
		cp "$work/files"/{given,other} "$work/" && sync "$work/files"/*
}

make_root() {
	mkdir -p "$root"/{usr,dev,proc,run} && ln -s usr/{bin,lib,lib64,sbin} "$root/" &&
		mount --bind /usr "$root/usr" && mount -o remount,bind,ro "$root/usr" &&
		: >"$root/dev/udmabuf" && mount --bind /dev/udmabuf "$root/dev/udmabuf" &&
		install -m 755 -t "$root/run" /build/user/{broker-client,examples/worker_cuda,lib/fake-libcuda.so} &&
		chmod 755 "$work" "$root" && chmod 666 /dev/udmabuf
}

# without_files COMMAND...: without the files that the session of the guest has open.
without_files() (
	for file in "/proc/$BASHPID/fd"/*; do
		((${file##*/} < 3)) || eval "exec ${file##*/}>&-"
	done
	exec "$@"
)

# contained COMMAND...: in a container of a user without rights, whose root is root only there.
contained() {
	NVMEPEER_LIBCUDA=/run/fake-libcuda.so FAKE_CUDA_UDMABUF=1 without_files timeout 30 \
		setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare --user --map-root-user --mount --pid --net --ipc --uts --fork --kill-child --mount-proc="$root/proc" \
		chroot "$root" setpriv --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
}

client() {
	contained /run/broker-client /run/broker "$1"
}

starts() {
	np_until 100 test -S "$root/run/broker" && chmod 666 "$root/run/broker"
}

# The first process of its namespace: it sees no other, and no device.
# shellcheck disable=SC2016 # expanded in the container
has_nothing() {
	contained sh -c 'cd /proc && grep CapEff self/status && ls -d /dev/* [0-9]* && ! mknod /dev/n b 259 0 &&
		test "$(grep -c "^CapEff:.*0000000000000000$" self/status)" = 1 &&
		test "$(echo /dev/*)" = /dev/udmabuf && test $$ = 1 && ! kill -0 2'
}

reads() {
	contained /run/worker_cuda /run/broker >"$work/read" && cmp "$work/given" "$work/read"
}

# file NAME: as the broker's machine sees it on the disk.
file() {
	dd if="$work/files/$1" bs=65536 iflag=direct status=none
}

reads_and_writes() {
	client read >"$work/read" && cmp "$work/given" "$work/read" && client write >"$work/given" &&
		! cmp -s "$work/given" "$work/read" && file given | cmp - "$work/given"
}

other_is_unchanged() {
	file other | cmp - "$work/other"
}

# The queue pairs of ended workers release the file.
can_write() {
	head -c 1 /dev/zero 2>/dev/null >>"$work/files/given"
}

leaves_nothing() {
	np_until 100 can_write || return
	[[ ! -s $work/said ]] || { cat "$work/said"; return 1; }
}

mkdir "$work/files"
ktap_check "make two files" make_files
ktap_check "make the root of a container" make_root
/build/user/examples/broker "$node" "$work/files/given" "$root/run/broker" >/dev/null 2>"$work/said" </dev/null &
broker=$!
ktap_check "the broker waits at its socket" starts
ktap_check "the container has no capabilities and no devices" has_nothing
ktap_check "a worker reads the file" reads
ktap_check "so does the next one" reads
ktap_check "it gets no other descriptors, and none of a disk or controller" client files
ktap_check "it reads and writes the file" reads_and_writes
ktap_check "it reaches no other blocks, windows or memory" client beyond
ktap_check "it cannot add a window or a buffer" client sealed
ktap_check "the other file is unchanged" other_is_unchanged
ktap_check "no queue pair is left" leaves_nothing
ktap_end
