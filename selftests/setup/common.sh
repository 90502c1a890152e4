# SPDX-License-Identifier: GPL-2.0-only
# Names and helpers that every set-up and runner script shares. Sourced, never run.
#
# Everything that is fetched or generated lives in one cache outside the source
# tree, so that a clone stays a clone and two clones share the same downloads.

np_source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
np_cache=${NVME_PEER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nvme-peer}
# What is being made, until it is published.
np_scratch=$np_cache/scratch
np_tree=$np_cache/trixie
np_all_kernels=(6.1 6.12 7)
# Built from the newest one's source, with what finds our mistakes.
np_built_kernels=(debug kcsan)
# When the first of our scripts began: those it calls go on with its clock.
export NP_STARTED=${NP_STARTED:-$EPOCHSECONDS}

# Say where we are: elapsed time first, so a silent minute can be placed.
np_say() {
	printf '[%4ds] %s\n' $((EPOCHSECONDS - NP_STARTED)) "$*"
}

np_die() {
	printf 'nvme-peer: %s\n' "$*" >&2
	exit 1
}

np_is_built() {
	[[ " ${np_built_kernels[*]} " == *" $1 "* ]]
}

# np_key WORD...: a short name for exactly these words, used to key cached results.
np_key() {
	printf '%s\n' "$@" | sha256sum | cut -c1-16
}

# np_fresh DIR KEY: does DIR hold the finished result of KEY?
np_fresh() {
	[[ -f $1/.key && $(<"$1/.key") == "$2" ]]
}

# np_publish WORK DIR KEY: make WORK the finished DIR in one rename. A reader
# sees the old result or the new one, never half of either.
np_publish() {
	printf '%s\n' "$3" >"$1/.key"
	if [[ -e $2 ]]; then
		mv -T "$2" "$2.old.$$"
	fi
	mv -T "$1" "$2"
	rm -rf --one-file-system "$2.old.$$"
}

# np_wait_for_room N: until fewer than N of our background jobs run.
np_wait_for_room() {
	while (($(jobs -rp | wc -l) >= $1)); do
		wait -n || true
	done
}
