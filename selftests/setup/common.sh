# SPDX-License-Identifier: GPL-2.0-only
# Variables and helpers of all set-up and runner scripts. Sourced, never run.
#
# Everything that is fetched or generated is in one cache outside the source tree, which
# several clones share.

np_source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
np_cache=${NVME_PEER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nvme-peer}
# Unfinished results, until np_publish.
np_scratch=$np_cache/scratch
np_tree=$np_cache/trixie
np_all_kernels=(6.1 6.12 7)
# Built from the newest kernel's source, with debugging options.
np_built_kernels=(debug kcsan)
# Start time of the outermost script; scripts that it calls inherit it.
export NP_STARTED=${NP_STARTED:-$EPOCHSECONDS}

# Print a message with the elapsed time.
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

# np_key WORD...: a hash of these words, the key of a cached result.
np_key() {
	printf '%s\n' "$@" | sha256sum | cut -c1-16
}

# np_fresh DIR KEY: succeeds if DIR is the finished result of KEY.
np_fresh() {
	[[ -f $1/.key && $(<"$1/.key") == "$2" ]]
}

# np_publish WORK DIR KEY: rename WORK to the finished DIR. A reader sees the old result or
# the new one, never a part.
np_publish() {
	printf '%s\n' "$3" >"$1/.key"
	if [[ -e $2 ]]; then
		mv -T "$2" "$2.old.$$"
	fi
	mv -T "$1" "$2"
	rm -rf --one-file-system "$2.old.$$"
}

# np_wait_for_slot N: wait until fewer than N background jobs of this shell run.
np_wait_for_slot() {
	while (($(jobs -rp | wc -l) >= $1)); do
		wait -n || true
	done
}
