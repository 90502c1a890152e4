#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The runner's verdict on tests that pass, fail, print wrong results or die, and on kernel log
# lines.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/results.sh
. lib/ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
np_results=$work/results

# counts STATUS LINE...: "passed failed skipped" of a test that printed LINEs.
counts() {
	printf '%s\n' "${@:2}" >"$work/ktap"
	count_ktap "$work/ktap" "$1"
}

# complains LINE...: do these lines in the kernel log fail a cell?
complains() {
	printf '%s\n' "$@" >"$work/console.log"
	if report_kernel_log cell "$work/console.log" "$work/results" >"$work/said"; then
		echo no
	else
		echo yes
	fi
}

ktap_is "passes are counted" "$(counts 0 1..2 'ok 1 a' 'ok 2 b')" "2 0 0"
ktap_is "a failure is counted once, whatever the status" "$(counts 1 1..2 'ok 1 a' 'not ok 2 b')" "1 1 0"
ktap_is "skips are neither" "$(counts 0 1..2 'ok 1 a # SKIP no device' 'ok 2 b')" "1 0 1"
ktap_is "only the outermost level counts" "$(counts 0 1..1 '    not ok 1 inner' 'ok 1 a')" "1 0 0"
ktap_is "dying after passes is a failure" "$(counts 139 1..2 'ok 1 a' 'ok 2 b')" "2 1 0"
ktap_is "fewer results than planned is a failure" "$(counts 0 1..3 'ok 1 a' 'ok 2 b')" "2 1 0"
ktap_is "a timeout without a word is a failure" "$(counts 124 '')" "0 1 0"
ktap_is "a silent success is a pass" "$(counts 0 'hello')" "1 0 0"
ktap_is "status 4 is a skip" "$(counts 4 '# no such device')" "0 0 1"
ktap_is "status 4 does not hide a failure" "$(counts 4 1..1 'not ok 1 a')" "0 1 0"

ktap_is "an ordinary log is fine" "$(complains 'np-test: begin x' 'DMAR: IOMMU enabled' 'nvmep0: ready')" no
ktap_is "a warning fails the cell" "$(complains 'WARNING: CPU: 0 PID: 1 at kernel/x.c:1')" yes
ktap_is "a DMA fault fails the cell" "$(complains 'DMAR: [DMA Read NO_PASID] Request device [01:00.0] fault addr 0x0')" yes
ktap_is "a leak fails the cell" "$(complains 'unreferenced object 0xffff888 (size 64):')" yes
ktap_is "a hung task fails the cell" "$(complains 'INFO: task fio:12 blocked for more than 120 seconds.')" yes
ktap_is "the kernel's own data race is not ours" "$(complains 'BUG: KCSAN: data-race in tick_sched_timer / tick_nohz_idle_exit')" no
ktap_is "a data race of the module fails the cell" "$(complains 'BUG: KCSAN: data-race in xa_load / nvmep_qp_create')" yes
ktap_is "what was planted is expected, what follows is not" "$(complains 'np-test: planted begin x' 'BUG: a' \
	'np-test: planted end x')$(complains 'np-test: planted begin x' 'np-test: planted end x' 'BUG: b')" noyes
ktap_is "a planted DMA fault hides what it is and nothing else" \
	"$(complains 'np-test: planted begin dma-fault' 'DMAR: DRHD: handling fault status reg 2' \
		'DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x40dead0000')$(complains \
		'np-test: planted begin dma-fault' 'DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x0')$(complains \
		'np-test: planted begin dma-fault' 'BUG: a')" noyesyes
complains 'np-test: begin lifetime' 'BUG: KASAN: slab-use-after-free in f' >/dev/null
ktap_is "a complaint names its test" "$(grep -c '\[lifetime\] BUG: KASAN' "$work/said")" 1

printf '%s\n' '2 0 1 7/on/root a' '1 1 0 7/on/root b: not ok 2 x' >"$work/results"
ktap_is "the closing line sums up" "$(summarize "$work/results" | tail -n 1)" "3 passed, 1 failed, 1 skipped"
ktap_is "what failed is named before it" "$(summarize "$work/results" | head -n -1)" "failed: 7/on/root b: not ok 2 x"
printf '%s\n' 'ok 1 a' '#  RUN           b.an_error ...' \
	'# b.c:7:b:Expected 1 (1) == x (2)' 'not ok 2 b' >"$work/ktap"
: >"$work/results"
report_test 7/on/root b "$work/ktap" 1 10 "$work/results" >/dev/null
ktap_is "a failure is recorded with what it said" "$(<"$work/results")" \
	"1 1 0 7/on/root b: exit status 1 | # b.c:7:b:Expected 1 (1) == x (2) | not ok 2 b"
printf '%s\n' 'a 60 a' 'b 60 b' 'c 60 c' >"$work/plan"
echo '1 0 0 7/on/root a' >>"$work/results"
report_missing_tests 7/on/root "$work/plan" "$work/results" >/dev/null || true
ktap_is "a guest that ends before its last test fails" "$(tail -n 1 "$work/results")" \
	"0 1 0 7/on/root guest: ended without running c"
rm "$work/results"
report_missing_tests 7/on/root "$work/plan" "$work/results" >/dev/null || true
ktap_is "also one that ran none" "$(<"$work/results")" "0 1 0 7/on/root guest: ended without running a b c"
: >"$work/results"
ktap_is "nothing having run is a failure" "$(summarize "$work/results" >/dev/null || echo failed)" failed

# campaign TIMES: the last lines of a fault_campaign run, without those that are not summed up.
campaign() {
	printf '%s\n' '# fault 3 of seed 7: all ones at bad' \
		"# all ones                $1 at bad     3 at np0,   200 ms each,    400 ms at most" \
		'# 5 faults of seed 7' '# 10 commands, 4 queue pairs lost and re-armed' \
		'# 30 blocks verified, 4 of them old or new, 1 lost, 2 corrupt' 'ok 1 5 faults' \
		'# 4 detected by the health poll: a quarter after 5 us, half after 6 us, all after 7 us; 1 later than 9 us' \
		'# Totals: pass:1'
}
campaign 2 >"$work/first"
campaign 2 >"$work/second"
ktap_is "campaigns are added up" "$(fault/sum "$work/first" "$work/second" | tr -s ' ' | paste -sd '|')" \
	"all ones 4 at bad 6 at np0, 200 ms each, 400 ms at most|10 faults in 2 runs, seeds 7 7|20 commands, 8 queue pairs lost and re-armed|60 blocks verified, 8 of them old or new, 2 lost, 4 corrupt|8 detected by the health poll, 2 of them too late"
head -n -1 "$work/first" >"$work/cut"
ktap_is "a campaign without its end is a failure" "$(fault/sum "$work/first" "$work/cut" >/dev/null || echo failed)" failed
campaign 1 >"$work/other"
ktap_is "a campaign that counts differently is a failure" "$(fault/sum "$work/other" >/dev/null || echo failed)" failed
echo 'not ok 2 x' >>"$work/second"
ktap_is "a campaign that failed is a failure" "$(fault/sum "$work/first" "$work/second" >/dev/null || echo failed)" failed
ktap_end
