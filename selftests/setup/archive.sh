# SPDX-License-Identifier: GPL-2.0-only
# Find and fetch Debian packages without touching the machine's own apt.
# Sourced by setup.sh.

# The archive this machine already uses: whatever mirror or proxy its owner chose.
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

# On a new machine apt has no lists yet, and knows of no archive without them.
find_mirrors() {
	read_mirrors
	[[ ! $mirror ]] || return 0
	stage apt-update apt-get update -qq
	read_mirrors
	[[ $mirror ]] && return
	# Without a network it has ended well, too.
	cat "$np_scratch/apt-update.log" >&2
	np_die "apt knows no Debian archive: apt-get indextargets is empty after apt-get update; see /etc/apt"
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

# apt with its own lists, so that the machine's own apt is never touched.
# One view per Debian release: newest kernel of bookworm is not that of trixie.
private_apt() {
	local view=$np_cache/apt/$1 tool=$2
	shift 2
	"$tool" -qq -o Dir::Etc::SourceList="$view/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$view/lists" -o Dir::Cache="$view/cache" \
		-o Dir::State::Status=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o APT::Sandbox::User=root -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

# apt-get update ends well if it got nothing; a security archive may be missing, the suite not.
make_apt_view() {
	local name=$1 view=$np_cache/apt/$1 kernels
	shift
	mkdir -p "$view"/{lists/partial,cache/archives/partial}
	sources_of "$@" >"$view/sources.list"
	private_apt "$name" apt-get update
	kernels=$(private_apt "$name" apt-cache pkgnames linux-headers-)
	[[ $kernels ]] || np_die "no kernels in $1 of $mirror: see above what apt-get update said"
}

apt_views() {
	make_apt_view bookworm bookworm bookworm-security
	make_apt_view trixie trixie trixie-security
	make_apt_view backports trixie-backports
	touch "$np_cache/apt/.updated"
}

# The lists as of today, but no sooner than something has to be fetched: a set-up
# that is complete needs no network.
use_lists() {
	local age=999999
	[[ ! -f $np_cache/apt/.updated ]] || age=$((EPOCHSECONDS - $(stat -c %Y "$np_cache/apt/.updated")))
	find_mirrors
	if ((age > 43200)) || [[ $refresh == yes && ! ${lists_refreshed:-} ]]; then
		stage package-lists apt_views
		lists_refreshed=yes
	fi
}

# fetch VIEW PACKAGE...: the packages' files, named on stdout; downloaded once.
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
