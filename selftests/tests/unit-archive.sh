#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which kernel is taken from an archive: the newest that is complete, whatever the
# speed of who writes to a pipe. The archive is made up here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/../setup/common.sh"
. "$here/../setup/kernel.sh"
. "$here/../lib/ktap.sh"

# What apt-cache says of a package goes on for longer than a pipe holds.
long=$(printf 'Description: %070d\n' {1..3000})
packages=()

# Stands in for apt: "private_apt VIEW apt-cache pkgnames PREFIX" and "... show PACKAGE".
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
ktap_end
