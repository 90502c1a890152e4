#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# examples/read_file: a file's blocks read directly into an imported buffer equal what read()
# returns, however the file is laid out; unsupported files are refused by name. read_file.cu does
# the same by lists, here with its kernel on the CPU and a replacement of libcuda.
# kernels: 7
# iommu: on
# timeout: 120
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np1 || exit 1
node=$(np_node np1)
disk=/dev/${node}n1
mount=$(mktemp -d)
trap 'umount "$mount/inner" 2>/dev/null; umount "$mount" 2>/dev/null; wipefs -aq "$disk"; blockdev --rereadpt "$disk" 2>/dev/null' EXIT
np_until 200 test -b "$disk" && np_until 200 test -c "/dev/ngp${node#nvmep}n1"

# fresh DEVICE MKFS-OPTION...
fresh() {
	umount "$mount" 2>/dev/null
	mkfs.ext4 -q -F "${@:2}" "$1" && mount "$1" "$mount"
}

# reads PATTERN FILE
reads() {
	local said
	said=$(/build/user/examples/read_file "$2" 2>&1) || { echo "$said"; return 1; }
	echo "$said"
	[[ $said =~ ^$1$ ]]
}

# reads_cuda PATTERN FILE: as reads, for the text after the memory's location.
reads_cuda() {
	local said
	said=$(/build/user/examples/read_file_cuda "$2" 2>&1) || { echo "$said"; return 1; }
	echo "$said"
	[[ $said =~ ^'the file goes to host-memory'$'\n'$1$ ]]
}

# A file with a hole, one with many extents, and unwritten blocks.
cuda_files() {
	reads_cuda '9437307 bytes by [0-9]+ commands, .*' "$mount/long" &&
		reads_cuda '153600 bytes by 5 commands, .*' "$mount/pieces" &&
		reads_cuda '7340032 bytes by 1 commands, .*' "$mount/holes" &&
		reads_cuda '0 bytes by 0 commands, .*' "$mount/empty"
}

cuda_sees_another_block() {
	local said
	said=$(/build/user/examples/read_file_cuda "$mount/cached" 2>&1) && return 1
	echo "$said"
	[[ $said == *'the data on the disk differs from what read() returns'* ]]
}

# A safetensors file: two tensors, of which the second ends inside a block, and an empty one.
tensors() {
	python3 - "$1" <<-'PYTHON'
	import json, os, struct, sys
	header = json.dumps({"__metadata__": {"format": "pt"},
	    "layer.weight": {"dtype": "F16", "shape": [1000, 700], "data_offsets": [0, 1400000]},
	    "layer.bias": {"dtype": "F16", "shape": [701], "data_offsets": [1400000, 1401402]},
	    "empty": {"dtype": "F16", "shape": [0], "data_offsets": [1401402, 1401402]}}).encode()
	with open(sys.argv[1], "wb") as file:
	    file.write(struct.pack("<Q", len(header)) + header + os.urandom(1401402))
	PYTHON
}

# reads_tensors MODE FILE
reads_tensors() {
	local said status=0
	said=$(timeout 60 /build/user/examples/read_tensors "$1" "$2" 2>&1) || status=$?
	echo "$status: $said"
	[[ $said =~ ^'3 tensors by '[0-9]+' commands, the same as read()'$ ]]
}

no_tensors() {
	local said
	said=$(/build/user/examples/read_tensors served "$mount/long" 2>&1) && return 1
	[[ $said == *'no safetensors file'* ]]
}

# refuses WORDS FILE
refuses() {
	local said status=0
	said=$(/build/user/examples/read_file "$2" 2>&1) || status=$?
	echo "$status: $said"
	((status == 1)) && [[ $said == *"$1"* ]]
}

# Longer than the example's buffer, with its end inside a block.
long_file() {
	head -c 9437307 /dev/urandom >"$mount/long" && reads '9437307 bytes by [0-9]+ commands, .*' "$mount/long"
}

# Every other block is deallocated, so one FIEMAP call does not return all extents, and the block
# after each extent does not belong to the file.
file_in_pieces() {
	local i
	head -c 300K /dev/urandom >"$mount/pieces" && sync "$mount/pieces" || return
	for ((i = 0; i < 150; i++)); do
		fallocate --collapse-range -o $((i * 1024)) -l 1024 "$mount/pieces" || return
	done
	reads '153600 bytes by 150 commands, the same as read\(\)' "$mount/pieces"
}

# Two blocks with data. Before, between and after them are holes and unwritten blocks, which still
# hold stale data of other files.
file_with_holes() {
	fallocate -l 2M "$mount/holes" && truncate -s 7M "$mount/holes" &&
		dd if=/dev/urandom of="$mount/holes" bs=4096 seek=3 count=1 conv=notrunc status=none &&
		dd if=/dev/urandom of="$mount/holes" bs=4096 seek=1200 count=1 conv=notrunc status=none &&
		reads '7340032 bytes by 2 commands, .*' "$mount/holes"
}

# With delayed allocation, freshly written data has no block until FIEMAP_FLAG_SYNC.
unwritten_data() {
	head -c 5000 /dev/urandom >"$mount/new"
	reads '5000 bytes by 1 commands, .*' "$mount/new"
}

# Changed on the disk directly: read() returns the page cache's copy.
another_block() {
	local block
	head -c 4096 /dev/zero >"$mount/cached"
	sync "$mount/cached"
	reads '.*same.*' "$mount/cached" || return
	block=$(filefrag -b512 -v "$mount/cached" | awk '$1 == "0:" { sub(/\.\..*/, "", $4); print $4 }')
	head -c 512 /dev/zero | tr '\0' 'x' >/tmp/examples-block
	nvme write "/dev/ngp${node#nvmep}n1" --start-block "$((block + 1))" --block-count 0 \
		--data-size 512 --data /tmp/examples-block >/dev/null || return
	refuses 'byte 512 is 0x78 on the disk, and read() says 0' "$mount/cached"
}

in_partition() {
	umount "$mount"
	wipefs -aq "$disk" && echo 'start=4096, size=100M' | sfdisk -q "$disk" || return
	np_until 100 test -b "${disk}p1"
	fresh "${disk}p1" && head -c 3000000 /dev/urandom >"$mount/file" &&
		reads '3000000 bytes by [0-9]+ commands, .*' "$mount/file"
}

inline_data() {
	fresh "$disk" -I 256 -O inline_data && echo data >"$mount/inline" && refuses 'is in the inode' "$mount/inline"
}

# A directory with a key of its own: struct fscrypt_add_key_arg and fscrypt_policy_v2.
encrypt() {
	python3 - "$1" <<-'PYTHON'
	import fcntl, os, struct, sys
	folder = os.open(sys.argv[1], os.O_RDONLY)
	key = bytearray(struct.pack("=II32xII32x", 2, 0, 64, 0) + bytes(range(64)))
	fcntl.ioctl(folder, 0xc0506617, key)
	fcntl.ioctl(folder, 0x800c6613, struct.pack("=8B", 2, 1, 4, 0, 0, 0, 0, 0) + bytes(key[8:24]))
	PYTHON
}

encrypted() {
	fresh "$disk" -O encrypt && mkdir "$mount/secret" && encrypt "$mount/secret" &&
		head -c 8192 /dev/urandom >"$mount/secret/file" && refuses 'is encrypted' "$mount/secret/file"
}

file_in_journal() {
	fresh "$disk" && touch "$mount/file" && chattr +j "$mount/file" && echo data >"$mount/file" &&
		refuses 'data in the journal' "$mount/file"
}

all_in_journal() {
	umount "$mount"
	mount -o data=journal "$disk" "$mount" && refuses 'without data=journal' "$mount/file"
}

on_loop_device() {
	fresh "$disk" && modprobe loop && mkdir "$mount/inner" && truncate -s 16M "$mount/image" && mkfs.ext4 -q "$mount/image" &&
		mount -o loop "$mount/image" "$mount/inner" && echo data >"$mount/inner/file" &&
		refuses 'not directly on a namespace' "$mount/inner/file" &&
		umount "$mount/inner"
}

in_memory() {
	echo data >/tmp/examples-file
	refuses 'not directly on a namespace' /tmp/examples-file
}

ktap_check "mkfs and mount, blocks of 1 KiB" fresh "$disk" -b 1024
ktap_check "a long file" long_file
ktap_check "a file with many extents" file_in_pieces
ktap_check "a file with holes" file_with_holes
ktap_check "delayed allocation" unwritten_data
ktap_check "an empty file" eval 'touch "$mount/empty" && reads "0 bytes by 0 commands, .*" "$mount/empty"'
ktap_check "a safetensors file" tensors "$mount/tensors"
ktap_check "file check of it" /build/user/nvme-peer file check "$mount/tensors"
ktap_check "tensors by a direct queue pair" reads_tensors direct "$mount/tensors"
ktap_check "tensors by a served queue pair" reads_tensors served "$mount/tensors"
ktap_check "tensors by a mediated queue pair" reads_tensors mediated "$mount/tensors"
ktap_check "a file without tensors" no_tensors
ktap_check "a changed block is reported" another_block
if [[ -e /dev/udmabuf ]]; then
	export NVMEPEER_LIBCUDA=/build/user/lib/fake-libcuda.so FAKE_CUDA_UDMABUF=1
	ktap_check "in CUDA: long, many extents, holes, empty" cuda_files
	ktap_check "in CUDA: a changed block is reported" cuda_sees_another_block
	unset NVMEPEER_LIBCUDA FAKE_CUDA_UDMABUF
else
	ktap_skip "in CUDA" "the kernel has no udmabuf"
	ktap_skip "in CUDA: a changed block is reported" "the kernel has no udmabuf"
fi
ktap_check "on a partition" in_partition
ktap_check "inline data is refused" inline_data
ktap_check "an encrypted file is refused" encrypted
ktap_check "a data-journalled file is refused" file_in_journal
ktap_check "a data-journalling file system is refused" all_in_journal
ktap_check "another disk is refused" on_loop_device
ktap_check "tmpfs is refused" in_memory
ktap_check "a directory is refused" refuses 'not a file' "$mount"
ktap_end
