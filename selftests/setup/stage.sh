# SPDX-License-Identifier: GPL-2.0-only
# Stages of set-up, with a message at their begin, end and failure. Sourced by setup.sh.

# Print the command that ended set-up by errexit, as it may have printed nothing.
set -o errtrace
name_failure() {
	np_say "set-up: '$BASH_COMMAND' failed, ${BASH_SOURCE[1]##*/} line ${BASH_LINENO[0]}" >&2
}
trap name_failure ERR

# What a stage fetches, and about how much; stages that are not listed fetch nothing.
fetched_by() {
	case $1 in
	host-tools) echo "mmdebstrap and xz for this machine, 5 MB" ;;
	package-lists) echo "lists of Debian's packages, 40 MB" ;;
	trixie-tree) echo "a Debian with compilers, QEMU and fio, 190 MB" ;;
	sources) echo "the kernel's source, 165 MB; keeps 2 MB of it" ;;
	compiler-c++) echo "g++, 15 MB" ;;
	kernel-*) echo "a kernel with modules and headers, 80 to 130 MB" ;;
	guest-packages) echo "udev, xfsprogs and btrfs-progs, 20 MB" ;;
	tool-packages) echo "perf, bpftrace, smartctl and libblkio, 71 MB" ;;
	checkers) echo "clang, Coccinelle and other checkers, 255 MB" ;;
	documents) echo "Sphinx, 20 MB" ;;
	rust) echo "Rust, 120 MB" ;;
	esac
}

# stage NAME COMMAND...: run a stage and print its name and time. Its output goes to a log,
# which is printed only on failure.
stage() {
	local name=$1 fetched log=$np_scratch/$1.log began=$SECONDS
	shift
	fetched=$(fetched_by "$name")
	np_say "set-up: $name${fetched:+: fetches $fetched} ..."
	# Not 'if ! (...)', which would disable errexit inside the stage.
	set +e
	trap - ERR
	(set -e; trap name_failure ERR; "$@") >"$log" 2>&1 </dev/null
	local status=$?
	trap name_failure ERR
	set -e
	if ((status)); then
		tail -n 40 "$log" >&2
		np_die "set-up: $name failed, log in $log"
	fi
	np_say "set-up: $name done in $((SECONDS - began)) s"
}
