#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tests of the store notice each Flush, each FUA and each wait that is taken away, and the other
# defects of lib/store/tests/mutants.
#
# usage: unit-store-mutants.sh [--sample N | --all | NAME...]
#
# timeout: 900
# arguments: --sample 8
# long-arguments: --all
set -euo pipefail
cd "$(dirname "$0")/.."
. setup/common.sh
. lib/rules.sh
. lib/ktap.sh

store=$np_source/lib/store
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# program OUT STORE TEST: build the program of a test from sources in STORE.
program() {
	local target=$1/tests/unit-store-$3
	[[ $3 != calls ]] || target=$1/tests/unit-store
	make -s -C "$store" STORE="$2" OUT="$1" CFLAGS='-O0 -w' KSELFTEST="$np_cache/kselftest" \
		-o "$1/lib/libnvmepeer.a" "$target" >"$1/log" 2>&1 || return
	echo "$target"
}

# What most mutants have in common is compiled once; of a mutant only its file is newer.
mkdir -p "$work/plain/lib" "$work/plain/.objects/lib"
cp -p "$np_source/build/user/lib/libnvmepeer.a" "$work/plain/lib/"
cp -p "$np_source/build/user/.objects/lib/errors.inc" "$work/plain/.objects/lib/"
for test in calls power index threads; do
	program "$work/plain" "$store" "$test" >/dev/null || { cat "$work/plain/log"; exit 1; }
done

# build RULE TEST: the program of a test with the mutant of a rule.
build() {
	local rule=$1
	if [[ ! -d $rule/store ]]; then
		mkdir "$rule/store"
		cp -p "$store"/*.[ch] "$rule/store/"
		cp -a "$work/plain" "$rule/out"
		rm -f "$rule"/out/tests/*
		cp "$rule/mutant" "$rule/store/$(<"$rule/file")"
	fi
	program "$rule/out" "$rule/store" "$2"
}

# passes_alone PROGRAM OUTPUT: in 60 seconds. The harness runs each test in a process group of its
# own, so timeout does not end a test that loops: end what is left of the session.
passes_alone() {
	local session status=0 process fields
	setsid timeout 60 "$1" >"$2" 2>&1 &
	session=$!
	wait "$session" || status=$?
	for process in /proc/[0-9]*; do
		read -r fields <"$process/stat" || continue
		read -r _ _ _ fields _ <<<"${fields##*) }"
		[[ $fields != "$session" ]] || kill -KILL "${process#/proc/}"
	done 2>/dev/null
	return "$status"
}

# killed RULE: one of its tests fails, but not because the mutant does not compile.
killed() {
	local rule=$1 test program
	if [[ -f $rule/misfit ]]; then
		cat "$rule/misfit"
		return 1
	fi
	while read -r test; do
		program=$(build "$rule" "$test") || { cat "$rule/out/log"; return 1; }
		passes_alone "$program" "$rule/said" || return 0
	done <"$rule/tests"
	echo "survived"
	return 1
}

# The tests pass without a mutant, so that a failure is one that the mutant has caused.
passes() {
	local test
	for test in unit-store{,-index,-power,-tsan}; do
		timeout 100 "$np_source/build/user/tests/$test" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
	done
}

ktap_check "the tests pass without a mutant" passes
rules_split "$store/tests/mutants" "$store" "$work"
case ${1:-} in
--sample) numbers=$(rules_sample "$work" "$2" "$store"/*.[ch] "$store"/tests/*) ;;
--all) numbers=$(rules_wanted "$work") ;;
*) numbers=$(rules_wanted "$work" "$@") ;;
esac
for number in $numbers; do
	ktap_check "$(<"$work/$number/name")" killed "$work/$number"
done
ktap_end
