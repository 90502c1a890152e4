# SPDX-License-Identifier: GPL-2.0-only
# Find and fetch Debian packages without changing the apt state of the host.
# Sourced by setup.sh.

# Use the archive that the host is configured for, including a mirror or proxy.
read_mirrors() {
	local site release
	mirror='' security=''
	while read -r site release; do
		case $release in
		*-security) security=${security:-$site} ;;
		*-updates | *-backports*) ;;
		*) mirror=${mirror:-$site} ;;
		esac
	done < <(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian')
}

# A new machine has no package lists, and then apt-get indextargets is empty.
find_mirrors() {
	read_mirrors
	[[ ! $mirror ]] || return 0
	stage apt-update apt-get update -qq
	read_mirrors
	[[ $mirror ]] && return
	# apt-get update succeeds without a network as well.
	cat "$np_scratch/apt-update.log" >&2
	np_die "apt has no Debian archive: apt-get indextargets is empty after apt-get update; see /etc/apt"
}

sources_of() {
	local suite
	for suite in "$@"; do
		case $suite in
		*-security) [[ ! $security ]] || echo "deb $security $suite main" ;;
		*) echo "deb $mirror $suite main" ;;
		esac
	done
}

# apt with separate lists, one view for each Debian release: their newest kernels differ.
private_apt() {
	local view=$np_cache/apt/$1 tool=$2
	shift 2
	"$tool" -qq -o Dir::Etc::SourceList="$view/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$view/lists" -o Dir::Cache="$view/cache" \
		-o Dir::State::Status=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o APT::Sandbox::User=root -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

# apt-get update succeeds without any list, so check the result. A security archive is optional.
make_apt_view() {
	local name=$1 view=$np_cache/apt/$1 kernels
	shift
	mkdir -p "$view"/{lists/partial,cache/archives/partial}
	sources_of "$@" >"$view/sources.list"
	private_apt "$name" apt-get update
	kernels=$(private_apt "$name" apt-cache pkgnames linux-headers-)
	[[ $kernels ]] || np_die "no kernels in $1 of $mirror: see the output of apt-get update above"
}

apt_views() {
	make_apt_view bookworm bookworm bookworm-security
	make_apt_view trixie trixie trixie-security
	make_apt_view backports trixie-backports
	touch "$np_cache/apt/.updated"
}

# Update old lists, only when a package has to be fetched: a complete set-up needs no network.
use_lists() {
	local age=999999
	[[ ! -f $np_cache/apt/.updated ]] || age=$((EPOCHSECONDS - $(stat -c %Y "$np_cache/apt/.updated")))
	find_mirrors
	if ((age > 43200)) || [[ $refresh == yes && ! ${lists_refreshed:-} ]]; then
		stage package-lists apt_views
		lists_refreshed=yes
	fi
}

# fetch VIEW PACKAGE...: download the packages once, and print their files.
fetch() {
	local view=$1 package file
	shift
	for package in "$@"; do
		file=$(private_apt "$view" apt-get download --print-uris "$package" | awk '{print $2}')
		if [[ ! -s $np_cache/debs/$file ]]; then
			(cd "$np_scratch" && private_apt "$view" apt-get download "$package" && mv "$file" "$np_cache/debs/") >&2
		fi
		echo "$np_cache/debs/$file"
	done
}
