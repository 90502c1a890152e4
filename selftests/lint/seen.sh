# SPDX-License-Identifier: GPL-2.0-only
# Check a source file again only if it, a header or the checker has changed. Sourced by clang-check and
# clang-tidy-check, which run in the Debian tree.

# content_of "CHECKER [OPTIONS]" FLAG...: the hash of the file CHECKER, of its options, of macros in FLAGS, and of
# the source file in FLAGS with all headers. Not of their paths, which differ between clones.
content_of() {
	local sources checker options
	read -r checker options <<<"$1"
	sources=$(clang -M "${@:2}" 2>/dev/null) || return
	{
		echo "$options"
		printf '%s\n' "${@:2}" | grep '^-[DU]'
		cat "$checker"
		sed 's/^[^:]*://; s/\\$//' <<<"$sources" | xargs cat
	} | sha256sum | cut -d ' ' -f 1
}

# unless_seen MARKS "CHECKER [OPTIONS]" FLAG... FILE -- COMMAND...: print what COMMAND finds in FILE. Without
# findings it leaves a file in the directory MARKS, and is not repeated for the same content. MARKS "-": always check.
unless_seen() {
	local marks=$1 checker=$2 flags=() mark='' output findings status=0
	shift 2
	while [[ $1 != -- ]]; do
		flags+=("$1")
		shift
	done
	shift
	if [[ $marks != - ]]; then
		mark=$(content_of "$checker" "${flags[@]}") || mark=''
		[[ ! $mark || ! -e $marks/$mark ]] || return 0
	fi
	output=$("$@" 2>&1) || status=$?
	findings=$(sed -n '/^[^ ]*:[0-9]*:[0-9]*: \(warning\|error\)/p' <<<"$output")
	if [[ $findings ]]; then
		printf '%s\n' "$findings"
	elif ((status)); then
		echo "${flags[-1]}:1:1: error: $1 ended with status $status"
	elif [[ $mark ]]; then
		mkdir -p "$marks"
		: >"$marks/$mark"
	fi
}
