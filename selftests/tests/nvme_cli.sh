#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Unmodified nvme-cli on the controller, generic and block nodes.
# kernels: 6.1 7
# long-kernels: 6.1 6.12 7 debug kcsan
# iommu: on off
# timeout: 60
# Functions are called by name through ktap_check.
# shellcheck disable=SC2317
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/ktap.sh

np_bind np0 || exit 1
node=$(np_node np0)
controller=/dev/$node
generic=/dev/ngp${node#nvmep}n1
block=/dev/${node}n1
nodes_are_there() {
	[[ -e $generic && -e $block ]]
}
np_until 200 nodes_are_there
where=(--start-block=524288 --block-count=7 --data-size=4096)
cd "$(mktemp -d)" || exit 1
head -c 4096 /dev/urandom >data

# says PATTERN COMMAND...: a line of the output matches.
says() {
	local pattern=$1 output
	shift
	output=$("$@" 2>&1)
	local status=$?
	echo "$output"
	((status == 0)) && grep -qE "$pattern" <<<"$output"
}

fails_with() {
	local pattern=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "$output"
		return 1
	fi
	echo "$output"
	grep -qiE "$pattern" <<<"$output"
}

reads_back() {
	nvme read "$1" "${where[@]}" --data=back && cmp data back
}

ktap_check "id-ctrl" says '^sn +: np0' nvme id-ctrl "$controller"
ktap_check "id-ns by the generic node" says '^nsze +: 0x' nvme id-ns "$generic"
ktap_check "id-ns by the block node" says '^nsze +: 0x' nvme id-ns "$block"
ktap_check "list-ns" says '0x1' nvme list-ns "$controller"
ktap_check "smart-log" says 'critical_warning' nvme smart-log "$controller"
ktap_check "error-log" nvme error-log "$controller" --log-entries=1
ktap_check "get-feature" says 'get-feature:0x0*7' nvme get-feature "$controller" --feature-id=7
ktap_check "write by the generic node" nvme write "$generic" "${where[@]}" --data=data
ktap_check "read by the generic node" reads_back "$generic"
ktap_check "read by the block node" reads_back "$block"
ktap_check "compare" nvme compare "$generic" "${where[@]}" --data=data
head -c 4096 /dev/zero >other
ktap_check "compare finds a difference" fails_with 'compare' nvme compare "$generic" "${where[@]}" --data=other
ktap_check "flush" nvme flush "$generic" --namespace-id=1
ktap_check "write-zeroes" nvme write-zeroes "$generic" --start-block=524288 --block-count=7
cp other data
ktap_check "zeroes are read back" reads_back "$generic"
ktap_check "dsm" nvme dsm "$generic" --namespace-id=1 --ad --slbs=524288 --blocks=8
ktap_check "admin-passthru" says 'np0' nvme admin-passthru "$controller" --opcode=6 --cdw10=1 \
	--data-len=4096 --read --show-command
ktap_check "reset" nvme reset "$controller"
ktap_check "read after reset" reads_back "$generic"
ktap_end
