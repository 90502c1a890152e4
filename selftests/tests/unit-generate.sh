#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Generated mutation rules: what each operator makes of a small file, which tests a rule has, that all rules
# fit the module and the device library, and that a seed determines them.
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/rules.sh
. lib/ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"

cat >"$work/src/small.c" <<'END'
static int clamp(int value, int limit)
{
	return value;
}

bool small(struct thing *thing, int a, int b)
{
	u32 mask = FIRST | SECOND;

	if (a < b && thing)
		return false;
	thing->mask = mask & 0xff0;
	clamp(a, b);
	kfree(thing);
	thing = kmalloc(a, GFP_NOWAIT | __GFP_NOWARN);
	if (a <= b && thing)
		pr_info("done\n");
	smp_wmb();
	return a >= b;
}
END
echo 'by-hand: a rule
	small [named]: drop clamp' >"$work/rules"
printf '%s\n' 'small small.c 0 slow, quick, named' 'small small.c 5 late' 'small small.c 12 -' >"$work/reach"
printf '%s\n' 'slow 580000' 'quick 100' 'named 20000' 'late 1' >"$work/times"

# generate COUNT SEED [PLAN [REACH]]: rules of the small file
generate() {
	rules_generate "$work/src" "$work/rules" "$1" "$2" "${3:--}" "${@:4}" 2>/dev/null
}

# changes SEED: operator and change of all rules, sorted
changes() {
	generate 100 "$1" | awk -F'[]]: ' '/^g/ { split($0, word, " "); next } { print word[2] ": " $2 }' | sort
}

expected='boundary: token < #1 => <=
boundary: token >= #1 => >
bit: token 0xff0 #1 => 0xfe0
drop: drop #2
drop: drop #3
drop: drop #4
drop: drop #5
drop: drop #6
flag: text FIRST | #1 => 
flag: text | SECOND #1 => 
negate: if #1 => !(a < b && thing)
negate: return #2 => !(a >= b)
operand: operand #1
operand: operand #2
return: statement #3 => { return false; }
return: statement #4 => { return false; }
return: statement #5 => { return false; }
return: statement #6 => { return false; }
return: statement #8 => { return false; }
swap: call #2 => clamp(b, a)'

tests_of() {
	generate 100 1 "$work/times" "$work/reach" | awk -v change="$1" 'index($0, change) { gsub(/.*\[|\].*/, ""); print; exit }'
}

# without_equivalent: what is not made if a rule says that it is equivalent
without_equivalent() {
	printf '%s\n' 'same: a rule' '	small: text a < b => a <= b' '	~ the caller never has both' >>"$work/rules"
	comm -23 <(sort <<<"$expected") <(changes 1)
	sed -i 3,5d "$work/rules"
}

# of_other_cell: the tests of a place if a rule of another function has one in another cell
of_other_cell() {
	printf '%s\n' 'other: a rule' '	clamp [numa 7/on/numa]: drop value' >>"$work/rules"
	tests_of ': call #2'
	sed -i 3,4d "$work/rules"
}

# of_clamp [REACH]: the tests of clamp(), for which no rule by hand names one
of_clamp() {
	generate 100 1 - "$@" | grep -P '^\tclamp' | sed 's/.*\[//; s/\].*//' | sort -u
}

all_fit() {
	rm -rf "$work/split"
	mkdir "$work/split"
	rules_generate "$1" "$2" 600 1 - >"$work/all" 2>/dev/null
	rules_split "$work/all" "$1" "$work/split"
	! compgen -G "$work/split/*/misfit" && (($(find "$work/split" -name mutant | wc -l) == 600))
}

# swaps_no_rings: of the rules of the module, which all_fit has made last.
swaps_no_rings() {
	grep -q ' swap of ' "$work/all" && ! grep -A1 ' swap of ' "$work/all" | grep '=> nvmep_rings_overlap'
}

# other_function_keeps: rules of small() are the same after a change of clamp().
other_function_keeps() {
	generate 100 1 | grep -P '^\tsmall' | sort >"$work/before"
	sed -i 's/return value;/return value < limit ? value : limit;/' "$work/src/small.c"
	generate 100 1 | grep -P '^\tsmall' | sort >"$work/after"
	cmp -s "$work/before" "$work/after"
}

most="late, quick, named, late debug/on/root, quick debug/on/root, named debug/on/root, late 7/off/root,"
most+=" quick 7/off/root, named 7/off/root"

ktap_is "each operator changes each of its places" "$(changes 1)" "$(sort <<<"$expected")"
ktap_is "another seed has another order of the same places" "$(changes 2)" "$(changes 1)"
ktap_check "another seed is another sample" test "$(generate 5 1)" != "$(generate 5 2 | sed 's/seed 2/seed 1/')"
ktap_is "a place has its tests, fastest first, for 10 minutes, and those of 30 on the debug kernel" \
	"$(tests_of 'if #1')" "quick, named, quick debug/on/root, named debug/on/root"
ktap_is "a later line has its own" "$(tests_of ': call #2')" \
	"late, named, late debug/on/root, named debug/on/root"
ktap_is "a line that no test reaches has those of its function, without an IOMMU too" \
	"$(tests_of 'return #2')" \
	"$most"
ktap_is "a place has what rules of its file name in other cells" "$(of_other_cell)" \
	"late, named, late debug/on/root, named debug/on/root, numa 7/on/numa"
ktap_is "an equivalent change is left out" "$(without_equivalent)" "boundary: token < #1 => <="
ktap_check "a change of a function leaves the rules of others" other_function_keeps
echo 'by-hand: a rule
	small [named, compiled unit]: drop clamp' >"$work/rules"
echo 'clamp compiled unit' >"$work/units"
ktap_is "a function that no test reaches has those of its file" "$(of_clamp)" "named"
ktap_is "a unit test is for functions that it compiles" "$(of_clamp "$work/units")" "compiled unit"
ktap_check "rules of the module fit" all_fit "$np_source/kmod" mutants/rules
ktap_check "arguments that may be exchanged stay" swaps_no_rings
ktap_check "rules of the device library fit" all_fit "$np_source/include/nvmepeer_device" device/mutants
ktap_end
