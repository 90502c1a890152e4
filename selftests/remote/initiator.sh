#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Serves queue pairs on storage of the other guest, with verified data.
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/remote/network.sh

folder=/tmp/np-remote

leave() {
	umount "$folder"
	nvme disconnect -n "$np_nqn"
	timeout 10 bash -c "exec 3<>/dev/tcp/$np_target/$np_end_port"
} >/dev/null 2>&1
trap leave EXIT

# serves PATH: writes and reads, all verified.
serves() {
	timeout 60 /build/user/nvme-peer serve check "$1" --write --force --seconds 2 --size 8192
}

remote_disk() {
	local subsystem
	subsystem=$(grep -lxs "$np_nqn" /sys/class/nvme-subsystem/*/subsysnqn) || return
	compgen -G "${subsystem%/*}/nvme*n1"
}

connect() {
	nvme connect -t tcp -a "$np_target" -s 4420 -n "$np_nqn" -q nqn.2026-11.nvme-peer:host
}

# The other guest may still be starting.
connects() {
	modprobe nvme-tcp && np_until 2400 connect && np_until 200 remote_disk
}

serves_disk() {
	serves "/dev/$(basename "$(remote_disk)")"
}

mount_folder() {
	modprobe nfsv4 && mkdir -p "$folder" && mount -i -t nfs4 \
		-o "addr=$np_target,clientaddr=$np_initiator,vers=4.2,sec=sys,soft,timeo=100" "$np_target:/" "$folder"
}

mounts() {
	np_until 100 mount_folder && ls -l "$folder/file"
}

ktap_check "the network" np_network "$np_initiator"
ktap_check "connect by NVMe over TCP" connects
ktap_check "NVMe over TCP" serves_disk
ktap_check "mount by NFS" mounts
ktap_check "a file on NFS" serves "$folder/file"
ktap_end
