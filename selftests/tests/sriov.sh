#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SR-IOV: nvme-peer has the physical function, creates virtual functions and assigns queues; it
# binds the virtual functions too, each a controller of its own on one shared disk.
#
# kernels: 7
# iommu: on
# timeout: 120
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/example.sh
. /selftests/lib/ktap.sh

export PATH=/build/user:$PATH LD_LIBRARY_PATH=/build/user/lib PYTHONPATH=/build/user/python PYTHONDONTWRITEBYTECODE=1
slot=/sys/bus/pci/devices/0000:00:07.0

leave() {
	echo 0 2>/dev/null >"$physical/sriov_numvfs"
	np_monitor device_del physical
	np_until 400 test ! -e "$physical"
	echo 1 >/sys/bus/pci/drivers_autoprobe
}

# Its disk is an unlinked file.
plug() {
	echo 0 >/sys/bus/pci/drivers_autoprobe
	np_monitor drive_add 0 if=none,id=shared,file=null-co://,format=raw,snapshot=on,cache=unsafe
	np_monitor device_add nvme,id=physical,serial=physical,subsys=subsystem,bus=rp5,sriov_max_vfs=2,sriov_vq_flexible=12,sriov_vi_flexible=4,max_ioqpairs=16,msix_qsize=16
	np_monitor device_add nvme-ns,bus=physical,drive=shared,nsid=1
	np_until 400 compgen -G "$slot/0000:*/sriov_numvfs" >/dev/null
}

# No more than the controller has.
too_many() {
	! echo 3 >"$physical/sriov_numvfs" && [[ $(<"$physical/sriov_numvfs") == 0 ]]
}

make_functions() {
	echo 0 >"$physical/sriov_drivers_autoprobe" && echo 2 >"$physical/sriov_numvfs" &&
		[[ -e $physical/virtfn0 && -e $physical/virtfn1 ]]
}

# Six queues, including the admin queue, and two interrupts each; then the functions are set online.
give_queues() {
	local id own
	own=/dev/$(np_node "$address") || return
	for id in 1 2; do
		nvme virt-mgmt "$own" --cntlid="$id" --rt=0 --act=8 --nr=6 &&
			nvme virt-mgmt "$own" --cntlid="$id" --rt=1 --act=8 --nr=2 &&
			nvme virt-mgmt "$own" --cntlid="$id" --act=9 || return
	done
}

virtual() {
	basename "$(readlink -f "$physical/virtfn$1")"
}

# take N: bind virtual function N as an administrator does.
take() {
	nvme-peer bind "$(virtual "$1")" && np_until 400 compgen -G "$physical/virtfn$1/nvme-peer/nvmep*/ngp*n1" >/dev/null
}

groups_differ() {
	readlink -f "$physical"/{,virtfn0/,virtfn1/}iommu_group
	(($(readlink -f "$physical"/{,virtfn0/,virtfn1/}iommu_group | sort -u | wc -l) == 3))
}

# The CPU writes by one function, and a queue pair of the other one reads.
crosses() {
	example_writes "${node[0]}" && example_reads "${node[1]}" python3 /build/user/python/read_block.py
}

# A reset of one function does not affect the other: its queue pair stays LIVE. Both run until the
# owner of the physical function removes the virtual ones.
reset_and_taken_away() {
	python3 - "${node[@]}" "$example_work/data" "$physical/sriov_numvfs" <<-'PYTHON'
	import sys
	import nvmepeer

	def write(path, text):
	    with open(path, "w") as file:
	        file.write(text)

	one, other, data, functions = sys.argv[1:]
	with nvmepeer.Controller(one) as controller, nvmepeer.Namespace(f"ngp{one[5:]}n1") as namespace, \
	        nvmepeer.CpuPeer(controller, namespace) as peer, nvmepeer.Controller(other) as neighbour, \
	        neighbour.create_queue_pair(16) as kept:
	    with controller.create_queue_pair(16) as lost:
	        write(f"/sys/class/nvme-peer/{one}/reset_controller", "1")
	        assert lost.read_events()[0].state == nvmepeer.QueuePairState.QUIESCED
	        info = kept.info()
	        assert info.state == nvmepeer.QueuePairState.LIVE and not info.losses, info.state
	    peer.read(0, 0, 1)
	    with open(data, "rb") as file:
	        assert bytes(peer.memory[:512]) == file.read(512)
	    write(functions, "0")
	    states = [event.state for event in kept.read_events()]
	    assert states[-1] == nvmepeer.QueuePairState.GONE, states
	PYTHON
}

ktap_check "plug an SR-IOV function" plug
physical=$(dirname "$slot"/0000:*/sriov_numvfs)
address=$(basename "$physical")
trap leave EXIT
ktap_check "nvme-peer binds the physical function" np_bind "$address"
ktap_check "more virtual functions than it has are refused" too_many
ktap_check "nvme-peer creates two" make_functions
ktap_check "queues are assigned to them" give_queues
ktap_check "nvme-peer binds one" take 0
ktap_check "nvme-peer binds the other one" take 1
node=("$(np_node "$(virtual 0)")" "$(np_node "$(virtual 1)")")
ktap_check "each has an IOMMU group of its own" groups_differ
ktap_check "a queue pair of one reads the other's data" crosses
ktap_check "reset affects one function, removal ends its queue pairs" reset_and_taken_away
ktap_check "no nodes are left" np_until 200 test ! -e "/dev/${node[0]}" -a ! -e "/dev/${node[1]}"
ktap_end
