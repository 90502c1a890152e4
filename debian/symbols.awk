# SPDX-License-Identifier: GPL-2.0-only
# Converts a list of lib/tests/symbols.sh for dpkg-gensymbols: each symbol and version node
# with the version of the package that introduced it.
# usage: awk -v package=NAME -f symbols.awk LIST
/^#/ { next }
/^lib/ { print $1, package, "#MINVER#"; next }
{
	version = $2
	sub(/.*_/, "", version)
	if (!seen[$2]++)
		print " " $2 "@" $2, version
	print " " $1 "@" $2, version
}
