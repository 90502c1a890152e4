# SPDX-License-Identifier: GPL-2.0-only
# What every gate shares. Sourced by the scripts in gates/, never run.
#
# A gate is called with the root of a tree and looks at the parts of it that it
# understands (kmod/, lib/, selftests/, ...). It prints findings, one a line with
# file and line number, and exits 1 if there are any. The same gate is called
# with planted/NAME, a tree of mistakes, to show that it still finds something.

. "$(dirname "${BASH_SOURCE[0]}")/../setup/common.sh"

gate_root=$(cd "${1:?usage: gates/NAME ROOT}" && pwd -P)
gate_work=$np_source/build/lint/$(basename "$0")
gate_cpus=$(nproc)
mkdir -p "$gate_work"
cd "$gate_root" || exit

gate_in_tree() {
	"$np_source/selftests/setup/in-tree" "$@"
}

# gate_files DIR... -- PATTERN...: files below those directories, planted ones left out.
gate_files() {
	local dirs=() names=() first=yes
	while [[ $1 != -- ]]; do
		[[ -d $1 ]] && dirs+=("$1")
		shift
	done
	shift
	((${#dirs[@]})) || return 0
	for pattern in "$@"; do
		[[ $first == yes ]] || names+=(-o)
		names+=(-name "$pattern")
		first=no
	done
	find "${dirs[@]}" -path '*/planted/*' -prune -o -type f \( "${names[@]}" \) -print | sort
}

# Directories with a module, as Kbuild sees one.
gate_modules() {
	gate_files kmod selftests/modules selftests/softgpu -- Kbuild | xargs -r dirname
}

# gate_copy_modules DIR: the sources of all modules, where Kbuild may write beside them.
gate_copy_modules() {
	local into=$1 file
	mkdir -p "$into"
	gate_files kmod include selftests/modules selftests/softgpu -- '*.[ch]' '*.mk' Kbuild |
		while read -r file; do
			cmp -s "$file" "$into/$file" || install -D -m 644 "$file" "$into/$file"
		done
	(cd "$into" && find . -name '*.[ch]' ! -name '*.mod.c') | while read -r file; do
		[[ -f $gate_root/$file ]] || rm "$into/$file"
	done
}

# gate_report: findings on stdin to stdout; fails if there are any.
gate_report() {
	local found=0 line
	while IFS= read -r line; do
		printf '%s\n' "$line"
		found=1
	done
	return "$found"
}
