# SPDX-License-Identifier: GPL-2.0-only
# Helpers of all gates. Sourced by the scripts in gates/, never run.
#
# A gate is called with the root of a tree and checks the parts that concern it (kmod/,
# lib/, selftests/, ...). It prints findings, one a line with file and line number, and
# exits 1 if there are any. lint/run also calls it with planted/NAME, a tree of defects
# that it has to find.

. "$(dirname "${BASH_SOURCE[0]}")/../setup/common.sh"

gate_root=$(cd "${1:?usage: gates/NAME ROOT}" && pwd -P)
gate_work=$np_source/build/lint/$(basename "$0")
gate_marks=$np_cache/lint/$(basename "$0")
gate_cpus=$(nproc)
# Objects of the modules with the headers of 6.12.
gate_modules_work=$np_source/build/lint/modules/$(np_key "$gate_root")
mkdir -p "$gate_work"
cd "$gate_root" || exit

gate_in_tree() {
	"$np_source/selftests/setup/in-tree" "$@"
}

# gate_files DIR... -- PATTERN...: files below those directories, without planted ones.
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

# Directories with a Kbuild file of a module.
gate_modules() {
	gate_files kmod selftests/modules selftests/softgpu -- Kbuild | xargs -r dirname
}

# gate_copy_modules DIR: copy the sources of all modules to DIR, as Kbuild writes beside them.
gate_copy_modules() {
	local into=$1 file
	mkdir -p "$into"
	install -m 644 "$np_source/VERSION" "$into/"
	gate_files kmod include selftests/modules selftests/softgpu -- '*.[ch]' '*.mk' Kbuild |
		while read -r file; do
			cmp -s "$file" "$into/$file" || install -D -m 644 "$file" "$into/$file"
		done
	(cd "$into" && find . -name '*.[ch]' ! -name '*.mod.c') | while read -r file; do
		[[ -f $gate_root/$file ]] || rm "$into/$file"
	done
}

# A file that was clean is checked again only when it or KEY, the checker and its options, has
# changed. Planted files are always checked: $gate_seen, where clean files are noted, is "-" for them.
gate_seen=-
if [[ $gate_root == "$np_source" ]]; then
	gate_seen=$gate_marks
	[[ ! -d $gate_seen ]] || find "$gate_seen" -type f -mtime +60 -delete
fi

gate_mark() {
	{ printf '%s\n' "$@" && cat "$2"; } | sha256sum | cut -d ' ' -f 1
}

# gate_unseen KEY FILE...: the files to check.
gate_unseen() {
	local key=$1 file
	shift
	for file; do
		[[ -e $gate_seen/$(gate_mark "$key" "$file") ]] || echo "$file"
	done
}

# gate_note KEY FINDINGS FILE...: these files were checked, without an error of the checker.
gate_note() {
	local key=$1 findings=$2 file
	shift 2
	[[ $gate_seen != - ]] || return 0
	mkdir -p "$gate_seen"
	for file; do
		grep -qF "$file:" "$findings" || : >"$gate_seen/$(gate_mark "$key" "$file")"
	done
}

# gate_report: copy findings from stdin to stdout; fail if there are any.
gate_report() {
	local found=0 line
	while IFS= read -r line; do
		printf '%s\n' "$line"
		found=1
	done
	return "$found"
}
