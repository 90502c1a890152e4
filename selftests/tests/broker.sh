#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# examples/broker and examples/worker.cu: a process without capabilities, which cannot open the
# controller, reads through a queue pair that it received as descriptors. Its kernel runs on the
# CPU, with a replacement of libcuda.
# kernels: 7
# iommu: on
# timeout: 60
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
work=$(mktemp -d)
socket=$work/broker
trap 'rm -rf "$work"' EXIT
np_until 200 test -b "/dev/${node}n1" && np_until 200 test -c "/dev/ngp${node#nvmep}n1"
if [[ ! -e /dev/udmabuf ]]; then
	ktap_skip "a queue pair by descriptors" "the kernel has no udmabuf"
	ktap_end
	exit
fi
head -c 65536 /dev/urandom >"$work/data"
dd if="$work/data" of="/dev/${node}n1" bs=65536 oflag=direct conv=fsync status=none
chmod 666 /dev/udmabuf
chmod 755 "$work"
# Only root may access /build.
install -m 755 -t "$work" /build/user/examples/worker_cuda /build/user/lib/fake-libcuda.so

# unprivileged COMMAND...
unprivileged() {
	NVMEPEER_LIBCUDA=$work/fake-libcuda.so FAKE_CUDA_UDMABUF=1 \
		setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		--no-new-privs "$@"
}

starts() {
	np_until 100 test -S "$socket" && chmod 666 "$socket"
}

has_no_rights() {
	unprivileged grep -q '^CapEff:.*0000000000000000$' /proc/self/status &&
		! unprivileged test -r "/dev/$node" && ! unprivileged test -r "/dev/ngp${node#nvmep}n1"
}

reads() {
	unprivileged "$work/worker_cuda" "$socket" >"$work/read" || return
	cmp "$work/data" "$work/read"
}

# limit NAME
limit() {
	/build/user/nvme-peer info "$node" -o json | grep -o "\"$1\": *[0-9]*" | grep -o '[0-9]*$'
}

all_free() {
	[[ $(limit qids_peer_max) -gt 0 && $(limit qids_peer_free) == "$(limit qids_peer_max)" ]]
}

# The queue pairs of ended workers are deleted, and their memory is released.
leaves_nothing() {
	np_until 100 all_free || { /build/user/nvme-peer info "$node"; return 1; }
	[[ ! -s $work/said ]] || { cat "$work/said"; return 1; }
}

/build/user/examples/broker "$node" "ngp${node#nvmep}n1" "$socket" >/dev/null 2>"$work/said" </dev/null &
broker=$!
trap 'kill "$broker"; rm -rf "$work"' EXIT
ktap_check "the broker waits at its socket" starts
ktap_check "the worker has no capabilities and cannot open the controller" has_no_rights
ktap_check "the worker reads what the CPU has written" reads
ktap_check "so does the next one" reads
ktap_check "no queue pair is left" leaves_nothing
ktap_end
