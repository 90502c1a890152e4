# SPDX-License-Identifier: GPL-2.0-only
# In a guest: look for leaks, if kmemleak is enabled. Sourced.

# find_leaks FILE: write leaks since the last call to FILE; fail if kmemleak has disabled itself.
find_leaks() {
	local to=/sys/kernel/debug/kmemleak
	: >"$1"
	[[ " $(</proc/cmdline) " == *' kmemleak=on '* ]] || return 0
	echo scan >"$to" && sleep 5 && echo scan >"$to" && cat "$to" >"$1" && echo clear >"$to"
}
