# SPDX-License-Identifier: GPL-2.0-only
# Run an example of the library in a guest, and compare the block that it reads. Sourced.

# "data" has the written data, and "block" what the example read.
example_work=$(mktemp -d)
head -c 4096 /dev/urandom >"$example_work/data"

# example_writes NODE
example_writes() {
	dd if="$example_work/data" of="/dev/${1}n1" bs=4096 oflag=direct conv=fsync status=none
}

# example_reads NODE COMMAND...: the example prints the first block, of any block size.
example_reads() {
	"${@:2}" "$1" "ngp${1#nvmep}n1" >"$example_work/block" && [[ -s $example_work/block ]] &&
		cmp -n "$(stat -c %s "$example_work/block")" "$example_work/data" "$example_work/block"
}

# example_files NODE FOLDER: for the tests of bindings on files, as python/tests/device.py has them.
example_files() {
	mkfs.ext4 -q -F -b 4096 "/dev/${1}n1" && mount "/dev/${1}n1" "$2" && head -c 1M /dev/urandom >"$2/file" &&
		truncate -s 1M "$2/holes" && sync -f "$2"
}

# example_reads_back NODE COMMAND...
example_reads_back() {
	example_writes "$1" && example_reads "$@"
}
