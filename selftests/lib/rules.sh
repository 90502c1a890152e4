# SPDX-License-Identifier: GPL-2.0-only
# Rules of one-line mutants, for selftests/mutants/run and selftests/device/mutate.
# Sourced, never run.
#
# A rule is a block of lines:
#   = NAME: what is broken
#   @ FILE FUNCTION     - for FUNCTION: the whole file
#   - TEXT              part of one line, which must be there exactly once
#   + TEXT              what stands there instead; may be empty
#   ? TEST [MORE...]    which must fail; several: one of them
# or, where no test can tell it from the original and so nothing is run,
#   ~ why it is equivalent
# The lists say to which folder FILE belongs, and what is run for TEST.

# rules_split LIST WORK: into WORK/NUMBER/{name,file,function,old,new,tests,equivalent}.
rules_split() {
	awk -v work="$2" '
	function put(what, text) { printf "%s\n", text >(work "/" count "/" what) }
	function close_all(  i, n, parts) {
		n = split("name file function old new tests equivalent", parts)
		for (i = 1; i <= n; i++) close(work "/" count "/" parts[i])
	}
	/^#/ || /^$/ { next }
	{ text = substr($0, 3) }
	/^= / { if (count) close_all(); count++; system("mkdir " work "/" count); put("name", text); next }
	!count { print FILENAME ":" FNR ": no rule begins before this" >"/dev/stderr"; exit 1 }
	/^@ / { put("file", $2); put("function", $3); next }
	/^- / { put("old", text); next }
	/^\+/ { put("new", text); next }
	/^\? / { put("tests", text); next }
	/^~ / { put("equivalent", text); next }
	{ print FILENAME ":" FNR ": not a line of a rule" >"/dev/stderr"; exit 1 }
	' "$1"
}

# rules_wanted WORK [NAME...]: the numbers of these rules, in order; without a name all.
rules_wanted() {
	local work=$1 rule name
	shift
	for rule in "$work"/*/name; do
		name=$(sed 's/:.*//' "$rule")
		if (($# == 0)) || [[ " $* " == *" $name "* ]]; then
			basename "$(dirname "$rule")"
		fi
	done | sort -n
}

# rules_apply RULE FROM TO: the file FROM with the rule applied.
rules_apply() {
	OLD=$(<"$1/old") NEW=$(<"$1/new") awk -v name="$(<"$1/function")" '
	BEGIN { old = ENVIRON["OLD"]; new = ENVIRON["NEW"]; inside = name == "-" }
	name != "-" && /^[A-Za-z]/ && index($0, name "(") { inside = 1 }
	inside && (at = index($0, old)) {
		found++
		if (index(substr($0, at + 1), old)) found++
		$0 = substr($0, 1, at - 1) new substr($0, at + length(old))
	}
	name != "-" && /^}/ { inside = 0 }
	{ print }
	END { if (found != 1) { printf "fits %d times, not once\n", found >"/dev/stderr"; exit 1 } }
	' "$2" >"$3"
}
