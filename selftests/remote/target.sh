#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Exports a namespace of nvme-peer by NVMe over TCP, and a folder by NFS, until the other guest has done.
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/remote/network.sh

np_bind np1 || exit 1
disk=/dev/$(np_node np1)n1
config=/sys/kernel/config/nvmet
folder=/tmp/np-remote

export_disk() {
	local subsystem=$config/subsystems/$np_nqn port=$config/ports/1
	np_until 200 test -b "$disk" && modprobe nvmet-tcp || return
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return
	mkdir "$subsystem" "$subsystem/namespaces/1" "$port" &&
		echo 1 >"$subsystem/attr_allow_any_host" &&
		echo -n "$disk" >"$subsystem/namespaces/1/device_path" &&
		echo 1 >"$subsystem/namespaces/1/enable" &&
		echo tcp >"$port/addr_trtype" && echo ipv4 >"$port/addr_adrfam" &&
		echo "$np_target" >"$port/addr_traddr" && echo 4420 >"$port/addr_trsvcid" &&
		ln -s "$subsystem" "$port/subsystems/$np_nqn"
}

# The kernel's server without its programs: what they would answer is written beforehand. The client may use
# any port, and the folder is the root of the exports (fsid 0): flags INSECURE_PORT, NOSUBTREECHECK, FSID. In the
# first seconds of the grace period, at least 10, no client opens a file.
export_folder() {
	local rpc=/proc/net/rpc nfsd=/proc/fs/nfsd for_ever=2147483647 grace=10
	modprobe nfsd && { mountpoint -q "$nfsd" || mount -t nfsd nfsd "$nfsd"; } || return
	mkdir "$folder" && mount -t tmpfs -o size=32M none "$folder" &&
		head -c 8M /dev/urandom >"$folder/file" && chmod 666 "$folder/file" &&
		echo '-2 -3 +4 +4.1 +4.2' >"$nfsd/versions" &&
		echo "$grace" >"$nfsd/nfsv4leasetime" && echo "$grace" >"$nfsd/nfsv4gracetime" &&
		echo "nfsd $np_initiator $for_ever guest" >"$rpc/auth.unix.ip/channel" &&
		echo "guest $folder $for_ever $((0x2402)) 65534 65534 0" >"$rpc/nfsd.export/channel" &&
		printf 'guest 1 %s %s %s\n' '\x00000000' "$for_ever" "$folder" >"$rpc/nfsd.fh/channel" &&
		echo 'tcp 2049' >"$nfsd/portlist" && echo 4 >"$nfsd/threads"
}

waits() {
	timeout 280 busybox nc -l -p "$np_end_port" >/dev/null
}

ktap_check "the network" np_network "$np_target"
ktap_check "export a namespace by NVMe over TCP" export_disk
ktap_check "export a folder by NFS" export_folder
ktap_check "the other guest ends" waits
ktap_end
