# SPDX-License-Identifier: GPL-2.0-only
# The stages of set-up: each is seen to begin and to end, and none fails without a word.
# Sourced by setup.sh.

# Whoever ends set-up by errexit is named, and so is a command that says nothing itself.
set -o errtrace
name_failure() {
	np_say "set-up: '$BASH_COMMAND' failed, ${BASH_SOURCE[1]##*/} line ${BASH_LINENO[0]}" >&2
}
trap name_failure ERR

# Show a stage by its name, then how long it took; its own output goes to a log
# that is shown only when the stage fails.
stage() {
	local name=$1 log=$np_scratch/$1.log began=$SECONDS
	shift
	np_say "set-up: $name ..."
	# Not 'if ! (...)': that would switch off errexit inside the stage.
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
