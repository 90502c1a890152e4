#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# I/Os a second by fio, in a guest, with the driver of the nodes (cpu.sh --rates).
#
# usage: fio.sh GENERIC-NODE BLOCK-NODE CASE...
#
# Prints "CASE RATE UNIT" for each.
set -euo pipefail

generic=$1 block=$2
shift 2
seconds=${NP_FIO_SECONDS:-2}
pass=(--ioengine=io_uring_cmd --cmd_type=nvme --filename="$generic")
uring=(--ioengine=io_uring --direct=1 --filename="$block")
aio=(--ioengine=libaio --direct=1 --filename="$block")
one=(--rw=randread --bs=4k --iodepth=1)
many=(--rw=randread --bs=4k --iodepth=32)
write=(--rw=randwrite --bs=4k --iodepth=32)
stream=(--rw=read --bs=128k --iodepth=8)
# A thread on each of eight processors.
eight=(--numjobs=8 --thread --cpus_allowed=0-7 --cpus_allowed_policy=split --group_reporting)

# batch N: options for batches of N I/Os from registered buffers.
batch() {
	echo "--iodepth_batch_submit=$1 --iodepth_batch_complete_min=$1 --fixedbufs --registerfiles"
}

# options_of CASE: options of fio.
options_of() {
	case $1 in
	pass-1) echo "${pass[@]}" "${one[@]}" ;;
	pass-32) echo "${pass[@]}" "${many[@]}" ;;
	pass-fixed-16) echo "${pass[@]}" "${many[@]}" "$(batch 16)" ;;
	poll-pass-32) echo "${pass[@]}" "${many[@]}" "$(batch 32)" --hipri ;;
	uring-read-1) echo "${uring[@]}" "${one[@]}" ;;
	uring-read-32) echo "${uring[@]}" "${many[@]}" ;;
	uring-write-32) echo "${uring[@]}" "${write[@]}" ;;
	uring-read-128k) echo "${uring[@]}" "${stream[@]}" ;;
	eight-read-1) echo "${uring[@]}" "${one[@]}" "${eight[@]}" ;;
	eight-read-32) echo "${uring[@]}" "${many[@]}" "${eight[@]}" ;;
	eight-write-32) echo "${uring[@]}" "${write[@]}" "${eight[@]}" ;;
	aio-read-32) echo "${aio[@]}" "${many[@]}" ;;
	aio-write-32) echo "${aio[@]}" "${write[@]}" ;;
	aio-read-128k) echo "${aio[@]}" "${stream[@]}" ;;
	*) echo "fio.sh: no case $1" >&2; exit 2 ;;
	esac
}

for name; do
	read -r -a options <<<"$(options_of "$name")"
	# Terse fields 8 and 49: reads and writes a second.
	rate=$(fio --name="$name" --output-format=terse --terse-version=3 --size=256m --time_based --ramp_time=300ms \
		--runtime="$seconds" --norandommap --randrepeat=1 "${options[@]}" | awk -F';' '/^3;/ { print $8 + $49 }')
	echo "$name $rate IOPS"
done
