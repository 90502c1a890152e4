# SPDX-License-Identifier: GPL-2.0-only
# Programs that are on the image of tools. Sourced by tests in a guest.

# np_tools: mount the image and add its programs to PATH; returns 1 if the machine has none.
np_tools() {
	local image place=/run/np/tools
	for image in /sys/block/vd*; do
		[[ $(<"$image/serial") == tools ]] || continue
		mkdir -p "$place"
		mountpoint -q "$place" || mount -t erofs -o ro "/dev/${image##*/}" "$place" || return
		export PATH=$PATH:$place/usr/bin:$place/usr/sbin LD_LIBRARY_PATH=$place/usr/lib/x86_64-linux-gnu
		return
	done
	return 1
}
