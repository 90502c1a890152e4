# SPDX-License-Identifier: GPL-2.0-only
# Mutation rules, for selftests/mutants/run and selftests/device/mutate. Sourced after
# setup/common.sh, never run.
#
# mutate.py, beside this file, applies them and describes their form.

# rules_python PROGRAM ARG...: with the Debian tree's Python if the host has none.
rules_python() {
	local python=(python3)
	command -v python3 >/dev/null || python=("$np_source/selftests/setup/in-tree" python3)
	"${python[@]}" "$np_source/selftests/lib/$1" "${@:2}"
}

# rules_mutate COMMAND ARG...: mutate.py
rules_mutate() {
	rules_python mutate.py "$@"
}

# rules_generate SOURCES RULES COUNT SEED [REACH]: generate.py
rules_generate() {
	rules_python generate.py "$@"
}

# rules_split LIST SOURCES WORK: for each rule WORK/NUMBER/name, and
#   tests       which must fail, one a line; several: one of them is enough
#   equivalent  or why none can
#   file        what changes below SOURCES
#   mutant      that file, changed
#   misfit      or why the rule does not fit
rules_split() {
	rules_mutate split "$@"
}

# rules_sample WORK COUNT FILE...: COUNT of the rules, chosen by the contents of FILE..., and all that do
# not fit.
rules_sample() {
	local work=$1 count=$2 seed
	shift 2
	seed=$(cat "$@" | sha256sum | cut -c1-7)
	{
		rules_wanted "$work" | awk -v seed=$((16#$seed)) 'BEGIN { srand(seed) } { print rand(), $0 }' |
			sort -n | awk -v count="$count" 'NR <= count { print $2 }'
		find "$work" -name misfit -printf '%h\n' | sed 's/.*\///'
	} | sort -nu
}

# rules_wanted WORK [NAME...]: the numbers of these rules, in order; without a name all.
rules_wanted() {
	local work=$1
	shift
	awk -v wanted=" $* " -F: 'FNR == 1 && (wanted ~ /^ *$/ || index(wanted, " " $1 " ")) {
		count = split(FILENAME, part, "/")
		print part[count - 1]
	}' "$work"/*/name | sort -n
}

# rules_guest_tests: names of all tests that run in guests
rules_guest_tests() {
	"$np_source/selftests/run" --list | awk 'NR > 1 && !/without a guest/ { print $1 }'
}
