# SPDX-License-Identifier: GPL-2.0-only
# From a list of lib/tests/symbols.sh to what dpkg-gensymbols takes: each symbol, and
# each version node, with the version of the package that it came with.
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
