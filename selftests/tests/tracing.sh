#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of tracing.lines, which the administrator's guide shows: each block runs while a disk
# is read. perf and bpftrace are on the image of tools.
# kernels: 6.1 7
# iommu: on
# timeout: 180
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh
. /selftests/lib/tools.sh

lines=/selftests/tests/tracing.lines
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing || exit 1
np_bind np0 || exit 1
disk=/dev/$(np_node np0)n1
np_until 200 test -b "$disk"

read_on() {
	while :; do
		dd if="$disk" of=/dev/null bs=4k count=64 iflag=direct status=none
	done
}

# Remove triggers in reverse order, because later ones refer to earlier ones.
forget() {
	echo 0 >events/nvme_peer/enable
	local event
	for event in synthetic/nvmep_took nvme_peer/nvmep_complete nvme_peer/nvmep_submit; do
		[[ ! -e events/$event/trigger ]] || sed -n 's/^hist:/!hist:/p' "events/$event/trigger" |
			while IFS= read -r line; do echo "${line%% \[*}" >"events/$event/trigger"; done
	done
	echo >synthetic_events
	echo >trace
}

leave() {
	kill "$reader"
	forget
}

# block WORDS: the lines below the comment that begins with WORDS.
block() {
	awk -v words="# $1" 'index($0, words) == 1 { found = 1; next } found && (/^#/ || !NF) { exit } found' "$lines"
}

# gives WORDS PATTERN...: run the block, and find each pattern in its output.
gives() {
	local said text pattern
	text=$(block "$1")
	[[ $text ]] || { echo "no block '$1'"; return 1; }
	forget
	said=$(bash -ec "$text" 2>&1) || { echo "$said"; return 1; }
	for pattern in "${@:2}"; do
		grep -qE "$pattern" <<<"$said" || { echo "no '$pattern' in:"; head -n 20 <<<"$said"; return 1; }
	done
}

# with TOOL PATTERN: each line of the last block that begins with the tool has output that matches.
with() {
	local line said
	while IFS= read -r line; do
		if ! said=$(bash -c "$line" 2>&1) || ! grep -qE "$2" <<<"$said"; then
			echo "$line: $said"
			return 1
		fi
	done <<<"$(block 'The same by perf' | grep "^$1 ")"
}

# Of three runs: the reader may stand still for the second of one.
runs() {
	np_until 3 "$@"
}

read_on &
reader=$!
trap leave EXIT

ktap_check "each command and its completion" runs gives 'Each command' \
	'nvmep_submit: nvmep[0-9]+ qid=[1-9][0-9]* cid=0x[0-9a-f]+ opcode=0x2 nsid=1' \
	'nvmep_complete: nvmep[0-9]+ qid=[1-9][0-9]* cid=0x[0-9a-f]+ status=0x0'
ktap_check "completions by queue and status" runs gives 'Completions of one second' \
	'qid: +[1-9][0-9]*, status: +0 +\} hitcount: +[1-9]'
ktap_check "how long commands took" runs gives 'How long commands' 'us: ~ 2\^[0-9]+ +\} hitcount: +[1-9]'
if np_tools; then
	ktap_check perf runs with perf '[1-9][0-9]* +nvme_peer:nvmep_complete'
	ktap_check bpftrace runs with bpftrace '@.*: *[1-9]|@us:'
else
	ktap_skip perf "set-up was without tools"
	ktap_skip bpftrace "set-up was without tools"
fi
ktap_end
