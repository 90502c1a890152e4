# SPDX-License-Identifier: GPL-2.0-only
# Stages of set-up, with a message at their begin, end and failure. Sourced by setup.sh.

# Print the command that ended set-up by errexit, as it may have printed nothing.
set -o errtrace
name_failure() {
	np_say "set-up: '$BASH_COMMAND' failed, ${BASH_SOURCE[1]##*/} line ${BASH_LINENO[0]}" >&2
}
trap name_failure ERR

# stage NAME COMMAND...: run a stage and print its name and time. Its output goes to a log,
# which is printed only on failure.
stage() {
	local name=$1 log=$np_scratch/$1.log began=$SECONDS
	shift
	np_say "set-up: $name ..."
	# Not 'if ! (...)', which would disable errexit inside the stage.
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
