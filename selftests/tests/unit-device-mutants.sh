#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 900
# The tests of the device library notice when a line of it is wrong: every mutant
# of device/mutants. And this gate itself: it tells a mutant that survives, a rule
# that no longer fits, one that does not compile and a test that fails anyway.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/ktap.sh

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# says WORDS RULE: the gate fails on this rule, and says so.
says() {
	local status=0 said
	printf '%s\n' "$2" >"$work/rules"
	said=$(device/mutate --rules "$work/rules" 2>&1) || status=$?
	echo "$said"
	((status)) && [[ $said == *"$1"* ]]
}

noop='= no-op: nothing is broken
@ submit.h nvmepeer_ring_head
- if (head == rung)
+ if (rung == head)
? edges room'
many='= often: the text is there more than once
@ submit.h nvmepeer_write_entry
- nvmepeer_sq_store(
+ (void)(
? edges room'
gone='= gone: the text is not there
@ submit.h nvmepeer_write_entry
- nvmepeer_sq_load(
+
? edges room'
broken='= broken: no C any more
@ submit.h nvmepeer_ring_head
- if (head == rung)
+ if (
? edges room'
unknown='= unknown: no such test
@ submit.h nvmepeer_ring_head
- if (head == rung)
+ if (0)
? edges no-such-case'

device/mutate >"$work/said" 2>&1 || failed=1
sed 's/^/# /' "$work/said"
ktap_check "a mutant that nobody notices is told" says '0 mutants killed, 1 survived' "$noop"
ktap_check "a rule that fits several times is told" says 'fits 4 times' "$many"
ktap_check "a rule that does not fit is told" says 'fits 0 times' "$gone"
ktap_check "a mutant that does not compile is told" says 'does not compile' "$broken"
ktap_check "a test that fails without a mutant is told" says 'unmutated: unit-device-edges no-such-case fails' "$unknown"
ktap_is "every mutant is noticed" "$failed" 0
ktap_end
