#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which archive and which kernel from it set-up takes: the newest one that is complete, however
# slowly a command writes to its pipe. A failing set-up prints an error. The archive is simulated.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/../setup/common.sh"
. "$here/../setup/archive.sh"
. "$here/../setup/kernel.sh"
. "$here/../lib/ktap.sh"

# apt-cache's output for a package is longer than a pipe's buffer.
long=$(printf 'Description: %070d\n' {1..3000})
packages=()

# Replaces apt: "private_apt VIEW apt-cache pkgnames PREFIX" and "... show PACKAGE"; "... apt-get
# update" prints nothing and succeeds, as apt does without a network.
private_apt() {
	local package
	for package in "${packages[@]}"; do
		case $3 in
		pkgnames) [[ $package != "$4"* ]] || echo "$package" ;;
		show) [[ $package != "$4" ]] || printf 'Package: %s\nFilename: pool/%s.deb\n%s\n' "$4" "$4" "$long" ;;
		esac
	done
}

newest() {
	newest_version view 7 2>&1 || true
}

packages=(linux-headers-7.2.9-amd64 linux-image-7.2.9-amd64 linux-headers-7.10.1-amd64 linux-image-7.10.1-amd64)
ktap_is "the newest, by number" "$(newest)" 7.10.1-amd64
packages+=(linux-headers-7.11.1-amd64 linux-headers-7.11.1-rt-amd64 linux-image-7.11.1-rt-amd64)
ktap_is "not one without an image, nor one for real time" "$(newest)" 7.10.1-amd64
packages+=(linux-modules-7.11.1-amd64 linux-binary-7.11.1-amd64)
ktap_is "one in two packages" "$(newest)" 7.11.1-amd64
ktap_is "those packages" "$(image_packages view 7.11.1-amd64)" \
	"linux-modules-7.11.1-amd64 linux-base-7.11.1-amd64 linux-binary-7.11.1-amd64"
packages=(linux-headers-7.2.9-amd64)
ktap_is "none" "$(newest)" "nvme-peer: the archive has no complete kernel 7"

## Lists that were not downloaded

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
view() {
	local np_cache=$work mirror=http://deb.example/debian security=''
	make_apt_view trixie trixie trixie-security 2>&1 || true
}
ktap_is "lists that came" "$(view)" ''
packages=()
ktap_is "lists that did not" "$(view)" \
	"nvme-peer: no kernels in trixie of http://deb.example/debian: see the output of apt-get update above"

## The machine's own apt

lists=() updates=''
# Replaces the machine's: "apt-get indextargets ..." and "apt-get update -qq".
apt-get() {
	case $1 in
	indextargets) ((${#lists[@]} == 0)) || printf '%s\n' "${lists[@]}" ;;
	update) echo "W: what apt says" && lists=("${after_update[@]}") && updates+=. ;;
	esac
}
stage() {
	local np_log=$np_scratch/$1.log
	shift
	"$@" >"$np_log"
}
np_scratch=$work

found() {
	find_mirrors
	echo "$mirror, $security, updated $updates"
}

suites() {
	find_mirrors
	sources_of trixie trixie-backports trixie-security
	echo "status $?"
}

after_update=()
lists=("http://deb.example/debian trixie" "http://deb.example/debian trixie-updates" "http://deb.example/security trixie-security")
ktap_is "the machine's archives" "$(found)" "http://deb.example/debian, http://deb.example/security, updated "
lists=("http://deb.example/debian trixie")
ktap_is "one without a security archive" "$(set -e; suites)" \
	"deb http://deb.example/debian trixie main
deb http://deb.example/debian trixie-backports main
status 0"
after_update=("${lists[@]}") lists=()
ktap_is "a machine whose apt has no lists yet" "$(found)" "http://deb.example/debian, , updated ."
after_update=()
ktap_is "one that has none afterwards says so" "$(find_mirrors 2>&1)" \
	"W: what apt says
nvme-peer: apt has no Debian archive: apt-get indextargets is empty after apt-get update; see /etc/apt"

## Stages

# Set-up up to one stage: its function is the argument.
set_up() {
	bash -c 'set -euo pipefail; . "$0/common.sh"; . "$0/stage.sh"; np_scratch=$1
		quiet() { local one=1; test "$one" = 2; echo never; }
		good() { ! false; echo done; }
		$2' "$here/../setup" "$work" "$1" 2>&1 && return
	echo "status $?"
}

set_up 'stage quiet quiet' >"$work/said"
ktap_check "a command without a word is named" grep -q "'test \"\$one\" = 2' failed" "$work/said"
ktap_check "and its stage" grep -q 'set-up: quiet failed, log in' "$work/said"
ktap_check "and set-up fails" grep -qx 'status 1' "$work/said"
set_up quiet >"$work/said"
ktap_check "so it is outside of a stage" grep -q "'test \"\$one\" = 2' failed" "$work/said"
set_up 'stage good good' >"$work/said"
ktap_check "a good one ends well" grep -q 'good done in' "$work/said"
ktap_check "and nothing is complained of" eval "! grep -q fail '$work/said'"
ktap_end
