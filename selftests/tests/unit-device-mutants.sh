#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tests of the device library detect a wrong line: the mutants of device/mutants are killed, a sample
# of them in make check. And the gate itself reports a mutant that survives, a rule that no longer
# matches, one that does not compile, and a test that fails without a mutant.
#
# timeout: 900
# arguments: --sample 25
# long-arguments: --jobs 2
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/ktap.sh

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# says WORDS RULE: the gate fails on this rule, with WORDS.
says() {
	local status=0 said
	printf '%s\n' "$2" >"$work/rules"
	said=$(device/mutate --rules "$work/rules" 2>&1) || status=$?
	echo "$said"
	((status)) && [[ $said == *"$1"* ]]
}

noop='no-op: nothing is broken
	nvp_ring_head [edges room]: if rung => rung == head'
many='often: several places match
	nvp_write_entry [edges room]: call nvp_sq_store => (void)0'
gone='gone: no place matches
	nvp_write_entry [edges room]: drop nvmepeer_sq_load'
broken='broken: no C any more
	nvp_ring_head [edges room]: if rung => ('
unknown='unknown: no such test
	nvp_ring_head [edges no-such-case]: if rung => 0'

device/mutate "$@" >"$work/said" 2>&1 || failed=1
sed 's/^/# /' "$work/said"
ktap_check "a surviving mutant is reported" says '0 mutants killed, 1 survived' "$noop"
ktap_check "a rule with several matches is reported" says 'fits 4 times' "$many"
ktap_check "a rule without a match is reported" says 'fits 0 times' "$gone"
ktap_check "a mutant that does not compile is reported" says 'does not compile' "$broken"
ktap_check "a test that fails without a mutant is reported" says 'unmutated: unit-device-edges no-such-case fails' "$unknown"
ktap_is "every mutant is noticed" "$failed" 0
ktap_end
