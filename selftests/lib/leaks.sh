# SPDX-License-Identifier: GPL-2.0-only
# In a guest: look for leaks, if kmemleak is enabled. Sourced.

leaks_enabled() {
	[[ " $(</proc/cmdline) " == *' kmemleak=on '* ]]
}

# Ignore what has leaked until now.
leaks_clear() {
	! leaks_enabled || echo clear >/sys/kernel/debug/kmemleak
}

# check_leaks FILE: write leaks to FILE, and the first lines to the kernel log, which the runner checks.
check_leaks() {
	local line
	leaks_enabled || return 0
	echo scan >/sys/kernel/debug/kmemleak
	sleep 5
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >"$1"
	# /dev/kmsg limits the length of a write, so one line at a time.
	head -n 100 "$1" | while IFS= read -r line; do
		echo "$line" >/dev/kmsg
	done
}
