#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvme-peer on fake machines (tool/machine.sh): the exact output of list, stat, topo and
# doctor (tool/*.expected), and what bind refuses and writes.
#
# usage: unit-tool.sh [--pin]     --pin rewrites tool/*.expected
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/../lib/ktap.sh"
. "$here/tool/machine.sh"

tool=$here/../../build/user/nvme-peer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pin=${1:-}

GPU=0000:03:00.0 DISK=0000:04:00.0

# ends GPU-ABOVE DISK-ABOVE: a GPU and a controller below two functions.
ends() {
	machine_function $GPU "$1" 0x030200 10de:2330
	machine_config $GPU 0
	machine_driver $GPU nvidia
	machine_link $GPU '32.0 GT/s PCIe' 16
	machine_bar $GPU $((128 << 30))
	machine_function $DISK "$2" 0x010802 144d:a824
	machine_config $DISK 0
	machine_driver $DISK nvme
	machine_link $DISK '16.0 GT/s PCIe' 4
	machine_disk $DISK nvme0 nvme0n1
	mkdir -p "$machine/proc/driver/nvidia" "$machine/sys/module/nvme_peer" "$machine/sys/bus/pci/drivers/nvme-peer"
	echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build' >"$machine/proc/driver/nvidia/version"
	echo 'RegistryDwords: "PeerMappingOverride=1"' >"$machine/proc/driver/nvidia/params"
}

# groups DOMAIN ADDRESS...: one IOMMU group each.
groups() {
	local domain=$1 address group=1
	shift
	for address in "$@"; do
		machine_group "$address" $((group++)) "$domain"
	done
}

# port ADDRESS ABOVE ID TYPE [ACS]: a PCI Express port, see machine.sh.
port() {
	machine_function "$1" "$2" 0x060400 "$3"
	machine_config "$1" "${@:4}"
}

# Both directly below root ports.
root_ports() {
	port 0000:00:01.0 pci0000:00 8086:1901 4 0x1d
	port 0000:00:02.0 pci0000:00 8086:1902 4 0x1d
	ends 0000:00:01.0 0000:00:02.0
	groups DMA-FQ 0000:00:01.0 0000:00:02.0 $GPU $DISK
}

# switch ACS: both below one switch whose downstream ports have these ACS bits.
switch() {
	port 0000:00:01.0 pci0000:00 8086:1901 4 0x1d
	port 0000:01:00.0 0000:00:01.0 10b5:9765 5
	port 0000:02:00.0 0000:01:00.0 10b5:9765 6 "$1"
	port 0000:02:01.0 0000:01:00.0 10b5:9765 6 "$1"
	ends 0000:02:00.0 0000:02:01.0
	groups DMA-FQ 0000:00:01.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 $GPU $DISK
}

# Two processors, the kernel locked down, a small BAR, passed through.
host_bridges() {
	port 0000:00:01.0 pci0000:00 8086:1901 4 0
	port 0000:80:01.0 pci0000:80 8086:1901 4 0
	ends 0000:00:01.0 0000:80:01.0
	groups identity 0000:00:01.0 0000:80:01.0 $GPU $DISK
	machine_bar $GPU $((256 << 20))
	mkdir -p "$machine/sys/kernel/security"
	echo 'none [integrity] confidentiality' >"$machine/sys/kernel/security/lockdown"
}

# No IOMMU, the module not loaded, a kernel without P2PDMA, the proprietary driver, a user.
no_iommu() {
	machine_function 0000:00:01.0 pci0000:00 0x060400 8086:1901
	machine_function 0000:00:02.0 pci0000:00 0x060400 8086:1902
	ends 0000:00:01.0 0000:00:02.0
	rm "$machine"/sys/bus/pci/devices/*/config
	rmdir "$machine/sys/module/nvme_peer"
	echo CONFIG_DMA_SHARED_BUFFER=y >"$machine/boot/config-6.12.43-made-up"
	echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed' >"$machine/proc/driver/nvidia/version"
	echo 'RegistryDwords: ""' >"$machine/proc/driver/nvidia/params"
	printf 'CapEff:\t0000000000000000\n' >"$machine/proc/self/status"
	echo 'Max locked memory         8388608              8388608              bytes' >"$machine/proc/self/limits"
	mounts 259:0 / /dev/nvme0n1
}

# mounts NUMBER PLACE SOURCE: a line of mountinfo.
mounts() {
	echo "29 1 $1 / $2 rw,relatime shared:1 - ext4 $3 rw" >>"$machine/proc/self/mountinfo"
}

run() {
	NVME_PEER_SYSROOT=$machine "$tool" "$@"
}

# same NAME COMMAND...: passes if output and exit status are as pinned.
same() {
	local expected=$here/tool/$1.expected
	shift
	{ "$@" 2>&1; echo "exit status $?"; } | sed "s|$(readlink -f "$tool")|/usr/sbin/nvme-peer|g; s|$work/||g" >"$work/got"
	[[ $pin != --pin ]] || cp "$work/got" "$expected"
	diff -u "$expected" "$work/got"
}

## topo and doctor

while read -r name how; do
	machine_begin "$work/$name"
	$how
	ktap_check "topo: $name" same "topo-$name" run topo
	ktap_check "doctor: $name" same "doctor-$name" run doctor
done <<-'END'
	root-ports root_ports
	switch switch 0
	switch-redirect switch 0x1d
	host-bridges host_bridges
	no-iommu no_iommu
END

# Apply the commands of topo: clear the bits that setpci(8) would clear.
type_cures() {
	local address value
	run topo | sed -n 's/^    setpci -s \([^ ]*\) ECAP_ACS+6.w=0:\(.*\)/\1 \2/p' >"$work/cures"
	[[ $(wc -l <"$work/cures") == 2 ]] || return
	while read -r address value; do
		machine_config "$address" 6 $((0x1d & ~0x$value))
	done <"$work/cures"
	[[ $(run topo) == *"$GPU  bus-address"* ]]
}

machine=$work/switch-redirect
ktap_check "the commands of topo open the route" type_cures

machine_begin "$work/blind"
switch 0
find -L "$machine/sys/bus/pci/devices/" -maxdepth 2 -name config -exec truncate -s 64 {} +
ktap_check "topo without access to ACS bits" same topo-blind run topo

machine_begin "$work/json"
switch 0x0c
ktap_check "topo as JSON, option after the command" same topo-json run topo -o json
ktap_check "doctor as JSON, option before the command" same doctor-json run -o json doctor
ktap_check "topo for dot" same topo-dot run topo -o dot
ktap_check "topo as SVG" same topo-svg run topo -o svg
ktap_check "topo of another function" same topo-given run topo 0000:02:01.0
ktap_check "topo of a controller as the peer" same topo-itself run topo /dev/nvme0
ktap_check "topo of a missing function" same topo-nothing run topo 0000:77:00.0

# Answers of the module by fake_ioctl.c: a port that only discards, and one that redirects as well.
with_node() {
	LD_PRELOAD=$here/../../build/user/lib/fake-ioctl.so run "$@"
}
machine_begin "$work/discarding"
root_ports
machine_driver $DISK nvme-peer
rm -r "$machine$(machine_place $DISK)/nvme"
mkdir -p "$machine$(machine_place $DISK)/nvme-peer/nvmep0"
: >"$machine/dev/nvmep0"
FAKE_ACS=0x02 FAKE_ACS_ABOVE=0x2a ktap_check "topo of ports that discard" same topo-discarding with_node topo

# signature HEADING: the result of doctor for the signature.
signature() {
	echo "== $1"
	run doctor | awk '/^[^ ]/ { its = $2 == "signature" } its'
}

# States of Secure Boot: no UEFI, no directory of variables, efivarfs not mounted, no
# variable for Secure Boot, off, on.
signatures() {
	local efi=$machine/sys/firmware/efi variable
	variable=$efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	signature "no UEFI"
	mkdir -p "$efi" && signature "no place to mount at"
	mkdir "$efi/efivars" && signature "not mounted"
	mkdir -p "$machine/sys/module/module/parameters"
	echo Y >"$machine/sys/module/module/parameters/sig_enforce"
	signature "not mounted, enforced"
	echo N >"$machine/sys/module/module/parameters/sig_enforce"
	: >"$efi/efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	signature "without the variable"
	: >"$variable" && signature "the variable cannot be read"
	printf '\6\0\0\0\0' >"$variable" && signature "off"
	printf '\6\0\0\0\1' >"$variable" && signature "on"
	mkdir "$machine/sys/module/nvme_peer" && signature "on, loaded"
	rm -r "$efi/efivars" && signature "not mounted, loaded"
}

machine_begin "$work/signatures"
root_ports
rmdir "$machine/sys/module/nvme_peer"
ktap_check "doctor of Secure Boot" same doctor-signatures signatures

## list, stat and top

machine_begin "$work/list"
machine_function $DISK pci0000:00 0x010802 144d:a824
place=$(machine_place $DISK)/nvme-peer/nvmep0
mkdir -p "$machine$place"/nvmep0n{1,2}/queue "$machine/sys/class/nvme-peer"
ln -s "../..${place#/sys}" "$machine/sys/class/nvme-peer/nvmep0"
for attribute in address=$DISK serial=S64HNE0R 'model=SAMSUNG MZWLJ1T9    ' firmware_rev=EPK9 state=live \
	nvmep0n1/nsid=1 nvmep0n1/size=3750748848 nvmep0n1/queue/logical_block_size=4096 \
	nvmep0n2/nsid=2 nvmep0n2/size=1 nvmep0n2/queue/logical_block_size=512; do
	echo "${attribute#*=}" >"$machine$place/${attribute%%=*}"
done
ktap_check "list" same list run list
ktap_check "list as JSON" same list-json run list -o json

# Counters of the kernel; later without access to debugfs.
debug=$machine/sys/kernel/debug/nvme-peer/nvmep0
mkdir -p "$debug"
cat >"$debug/queues" <<-'END'
qid owner entries vector cpu_sq_doorbells cpu_cq_doorbells completions lost_interrupts
0 admin 32 0 41 40 40 0
1 io 1024 1 123456789012 1000 123456789000 2
7 peer - - 0 0 - -
END
echo '  100  0  800  12  50  3  6400  9  0  20  21  0  0  0  0  1  2' >"$machine$place/nvmep0n1/stat"
echo '  1  0  8  0  0  0  0  0  0  0  0' >"$machine$place/nvmep0n2/stat"
ktap_check "stat" same stat run stat nvmep0
ktap_check "stat as JSON" same stat-json run stat /dev/nvmep0 -o json
ktap_check "stat over an idle second" same stat-still run stat nvmep0 1
ktap_check "top, one sample" same top run top nvmep0 --count 1
# With a node.
mkdir -p "$machine$place/diag"
echo 3 >"$machine$place/generation"
echo 2 >"$machine$place/diag/reset_count"
echo 1 >"$machine$place/diag/command_error_count"
: >"$machine/dev/nvmep0"
FAKE_PAIRS=3 FAKE_QUARANTINED=2 ktap_check "list with queue pairs" same list-pairs with_node list
ktap_check "smart" same smart with_node smart "$machine/dev/nvmep0"
ktap_check "smart with exact numbers" same smart-verbose with_node smart "$machine/dev/nvmep0" -v
ktap_check "smart as JSON" same smart-json with_node smart "$machine/dev/nvmep0" -o json
ktap_check "info" same info with_node info "$machine/dev/nvmep0"
ktap_check "top with the commands of peers" same top-node with_node top nvmep0 --count 1
FAKE_PAIRS=3 FAKE_QUARANTINED=2 ktap_check "metrics" same metrics with_node metrics
ktap_check "metrics without access to the node" same metrics-blind run metrics nvmep0
ktap_check "metrics of a missing controller" same metrics-nothing run metrics nvmep9
dashboard_problems() {
	python3 "$here/tool/dashboard.py" "$here/../../tools/nvme-peer.dashboard.json" "$1"
}
ktap_is "problems of the dashboard" "$(dashboard_problems "$here/tool/metrics.expected")" ""
# A counter without its suffix is not a series.
sed 's/^nvme_peer_stops_total/nvme_peer_stops/' "$here/tool/metrics.expected" >"$work/renamed"
ktap_is "problems of the dashboard after a metric is renamed" "$(dashboard_problems "$work/renamed" | head -n 1)" \
	"panel 3: no metric nvme_peer_stops_total"
rm "$debug/queues"
ktap_check "stat without debugfs" same stat-blind run stat nvmep0
ktap_check "stat of a missing controller" same stat-nothing run stat nvmep9
ktap_check "stat over 0 seconds" same stat-no-time run stat nvmep0 0

## bind and unbind

# State of the fake machine: names, links, contents.
state() {
	(cd "$machine" && find . -printf '%p %y %l\n' | sort && find . -type f -exec cksum {} + | sort)
}

# refuses NAME: passes if bind refuses with the pinned output and writes nothing.
refuses() {
	local before
	before=$(state)
	same "$1" run bind $DISK && [[ $(state) == "$before" ]]
}

# writes_nothing COMMAND...: passes if it succeeds and the machine is unchanged.
writes_nothing() {
	local before
	before=$(state)
	"$@" || return
	[[ $(state) == "$before" ]] || { echo "something was written"; return 1; }
}

fresh() {
	machine_begin "$work/$1"
	root_ports
	machine_block "$(machine_place $DISK)/nvme/nvme0/nvme0n1" nvme0n1p1 259:1
	: >"$machine/proc/swaps"
}

fresh free
mkdir -p "$machine/run/udev" && : >"$machine/run/udev/control"
ktap_check "bind, dry run" writes_nothing same bind-dry-run run bind $DISK --dry-run
ktap_check "bind by node, dry run with --persist" writes_nothing same bind-dry-run-persist run bind --persist --dry-run /dev/nvme0
ktap_check "bind refuses a GPU" same bind-gpu run bind $GPU
fresh mounted
mounts 259:1 /home /dev/nvme0n1p1
ktap_check "bind refuses a mounted partition" refuses bind-mounted
ktap_check "bind --force of a mounted partition" writes_nothing same bind-forced run bind $DISK --force --dry-run
fresh btrfs
mounts 0:35 /data /dev/nvme0n1p1
ktap_check "bind refuses a file system with an anonymous device" refuses bind-btrfs
fresh swap
printf 'Filename Type Size Used Priority\n/dev/nvme0n1p1 partition 8 0 -2\n' >"$machine/proc/swaps"
ktap_check "bind refuses swap" refuses bind-swap
fresh lvm
mkdir -p "$machine"/sys/devices/virtual/block/dm-0/dm
ln -s ../../devices/virtual/block/dm-0 "$machine/sys/class/block/dm-0"
echo vg-root >"$machine/sys/class/block/dm-0/dm/name"
echo LVM-abcdef >"$machine/sys/class/block/dm-0/dm/uuid"
ln -s ../../dm-0 "$machine/sys/class/block/nvme0n1p1/holders/dm-0"
ktap_check "bind refuses an LVM volume" refuses bind-lvm
echo mpath-abcdef >"$machine/sys/class/block/dm-0/dm/uuid"
ktap_check "bind refuses a multipath path" refuses bind-multipath
fresh raid
mkdir -p "$machine"/sys/devices/virtual/block/md127/md
ln -s ../../devices/virtual/block/md127 "$machine/sys/class/block/md127"
echo raid1 >"$machine/sys/class/block/md127/md/level"
ln -s ../../md127 "$machine/sys/class/block/nvme0n1/holders/md127"
ktap_check "bind refuses a RAID member" refuses bind-raid
fresh head
subsystem=/sys/devices/virtual/nvme-subsystem/nvme-subsys0
mkdir -p "$machine$subsystem/nvme0" "$machine/sys/class/nvme-subsystem"
ln -s ../../devices/virtual/nvme-subsystem/nvme-subsys0 "$machine/sys/class/nvme-subsystem/nvme-subsys0"
machine_block $subsystem nvme0n7 259:7
mounts 259:7 /srv /dev/nvme0n7
ktap_check "bind refuses a mounted disk of a subsystem" refuses bind-subsystem
fresh unloaded
rmdir "$machine/sys/bus/pci/drivers/nvme-peer"
ktap_check "bind refuses without the module" refuses bind-unloaded
fresh bound
machine_driver $DISK nvme-peer
ktap_check "unbind, dry run" writes_nothing same unbind-dry-run run unbind $DISK --dry-run
ktap_check "bind of a bound controller" same bind-again run bind $DISK
ktap_check "bind --persist of a bound controller" same bind-persist run bind $DISK --persist
ktap_check "the udev rule" same rule cat "$machine/etc/udev/rules.d/60-nvme-peer-$DISK.rules"
ktap_check "unbind --persist, dry run" writes_nothing same unbind-persist run unbind $DISK --persist --dry-run
machine_begin "$work/quarantine"
machine_function $DISK pci0000:00 0x010802 144d:a824
machine_driver $DISK nvme-peer
rm -r "$machine$(machine_place $DISK)/nvme"
mkdir -p "$machine$(machine_place $DISK)/nvme-peer/nvmep0"
: >"$machine/dev/nvmep0"
FAKE_QUARANTINED=2 ktap_check "unbind refuses quarantined queue IDs" writes_nothing same unbind-quarantined with_node unbind $DISK
FAKE_PAIRS=3 ktap_check "unbind refuses queue pairs" writes_nothing same unbind-pairs with_node unbind $DISK
FAKE_PAIRS=3 FAKE_QUARANTINED=2 ktap_check "unbind --force" writes_nothing same unbind-forced with_node unbind $DISK --force --dry-run
ktap_check "unbind without either" writes_nothing same unbind-free with_node unbind $DISK --dry-run
fresh foreign
ktap_check "unbind refuses another driver" same unbind-foreign run unbind $DISK

## Command line

PATH=$(dirname "$tool"):$PATH

# Completions of bash for a line, whose last word may be empty.
offers() {
	bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nvme_peer; echo "${COMPREPLY[*]}"' \
		"$here/../../tools/nvme-peer.bash" "$@"
}

# The same of zsh.
zsh_offers() {
	zsh -fc 'file=$1; shift; words=("$@"); CURRENT=$#
		_describe() { print -- ${${(P)2}%%:*} }
		_message() { :; }
		compadd() { shift; print -- "$@"; }
		source $file' zsh "$here/../../tools/_nvme-peer" "$@"
}

commands() {
	"$tool" --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | paste -sd' '
}

options() {
	"$tool" help ${1:+"$1"} | sed -n 's/^  \(-[a-z], \)*\(--[a-z-]*\).*/\2/p' | paste -sd' '
}

# Commands and options that the manual page does not mention.
undocumented() {
	local word page all
	page=$(sed 's/\\-/-/g; s/\\f[BIR]//g' "$here/../../Documentation/man/nvme-peer.1")
	all=$(commands; for word in $(commands); do options "$word"; done)
	for word in $all; do
		grep -qwe "$word" <<<"$page" || echo "$word"
	done
}

# completes FUNCTION SHELL: completions of that shell.
completes() {
	ktap_is "completion of commands, $2" "$("$1" nvme-peer '')" "$(commands)$3"
	ktap_is "completion of options, $2" "$("$1" nvme-peer --)" "--help --version"
	ktap_is "completion of options of bind, $2" "$("$1" nvme-peer -o json bind --)" "$(options bind)"
	ktap_is "completion of options of bench, $2" "$("$1" nvme-peer bench --)" "$(options bench)"
	ktap_is "completion of formats, $2" "$("$1" nvme-peer topo -o '')" "table json svg dot"
	ktap_is "no completion of a number, $2" "$("$1" nvme-peer bench --size '')" ""
}

completes offers bash " help"
if command -v zsh >/dev/null; then
	completes zsh_offers zsh ""
else
	ktap_skip "completion, zsh" "zsh comes with setup.sh --lint"
fi
ktap_is "options of bind" "$(options bind)" "--dry-run --force --persist --output-format --verbose --help"

# Commands and options of nvme-peer on the page that do not exist.
unknown() {
	local line command option
	grep -oE '(``|^    )nvme-peer [a-z-]+[^`#]*' "$1" | sed 's/^.*nvme-peer //' | while read -r line; do
		command=${line%% *}
		[[ " $(commands) " == *" $command "* ]] || { echo "$command" && continue; }
		while read -r option; do
			[[ " $(options "$command") " == *" $option "* ]] || echo "$command $option"
		done < <(grep -oE -- '--[a-z-]+' <<<"$line")
	done
}

# Commands, and those behind them such as "store list", that Documentation/screens.rst does not show.
unseen() {
	local word line parts
	for word in $(commands); do
		parts=$("$tool" help "$word" | sed "s/^usage: nvme-peer $word//;q" | grep -oE '\b[a-z]+\b')
		sed "s/^/$word /" <<<"$parts"
	done | while read -r line; do
		grep -qE "^    # nvme-peer $line( |$)" "$here/../../Documentation/screens.rst" || echo "$line"
	done
}

ktap_is "commands without a screen" "$(unseen)" ""
ktap_is "the page for users of nvme names only what exists" "$(unknown "$here/../../Documentation/from-nvme.rst")" ""
ktap_is "the manual page mentions all commands and options" "$(undocumented)" ""
ktap_check "an option of another command" same usage-option run list --force
ktap_check "an unknown format" same usage-format run list -o yaml
ktap_check "help" same help run help
ktap_check "help of a command" same help-bench run help bench
ktap_check "help by option" same help-bench run bench --help
ktap_check "help of an unknown command" same help-unknown run help frobnicate
ktap_is "version" "$(run --version)" "nvme-peer $(<"$here/../../VERSION")"
ktap_is "version as a command" "$(run version)" "$(run --version)"
ktap_check "a format of another command" same usage-fio run list -o fio
ktap_check "bench: a plot needs a sweep" same usage-plot run bench nvmep0 ngp0n1 -o svg
ktap_check "bind -v shows writes" same bind-verbose run bind -v $DISK
ktap_check "an unknown command" same usage-command run frobnicate

# A store on two files; its name is random.
store() {
	local status=0
	run store "$@" 2>&1 | sed 's/[0-9a-f]\{32\}$/UUID/; s/"[0-9a-f]\{32\}"/"UUID"/' || status=$?
	return "$status"
}

# A measurement that a signal ends.
bench_ends() {
	local status=0
	NVME_PEER_SYSROOT=$machine "$tool" store bench "${members[@]}" --entries 4 --seconds 60 &
	sleep 1
	kill -TERM $!
	wait $! || status=$?
	[[ $status == 143 ]] && store check "${members[@]}" | grep -x 'values: 0'
}

truncate -s 1M "$work/member0" "$work/member1"
members=("$work/member0" "$work/member1")
ktap_check "store create" same store-create store create "${members[@]}" --size 65536 --count 8
ktap_check "store create keeps a store" same store-kept store create "${members[@]}" --size 4096
ktap_check "store create needs a size" same store-size store create "${members[@]}"
ktap_check "store bench leaves no values" run store bench "${members[@]}" --entries 4 --seconds 1
ktap_check "store bench leaves no values after a signal" bench_ends
ktap_check "store list, one member" same store-list store list "${members[0]}"
ktap_check "store check" same store-check store check "${members[@]}" -o json
ktap_check "store check without a member" same store-missing store check "${members[0]}"
ktap_check "store bench without room" same store-full store bench "${members[@]}" --entries 17 --seconds 1
# Member 0 goes on alone.
LD_LIBRARY_PATH=$here/../../build/user/lib PYTHONPATH=$here/../../python PYTHONDONTWRITEBYTECODE=1 \
	python3 -c 'import sys; from nvmepeer.store import Store; Store(sys.argv[1:], degraded=True).close()' "${members[0]}"
ktap_check "store check of a member that has missed changes" same store-emptied store check "${members[@]}"
ktap_check "store check of no store" same store-none store check /dev/null
ktap_check "store of nothing" same store-nothing store list
ktap_check "store without a word" same store-word store frobnicate

# A served queue pair on a file; the number of commands varies, and blocks with the file system.
serve_check() {
	local status=0
	run serve check "$@" --seconds 1 2>&1 |
		sed '/^\(commands\|block_size\|blocks\): [1-9]/s/:.*/: some/; s/blocks have .*/blocks are others/' || status=$?
	return "$status"
}

head -c 300000 /dev/urandom >"$work/served"
ktap_check "serve check" same serve-check serve_check "$work/served"
ktap_check "serve check keeps the file" test "$(stat -c %s "$work/served")" = 300000
ktap_check "serve check with writes" same serve-write serve_check "$work/served" --write --force --size 8192
ktap_check "serve check with writes needs --force" same serve-force run serve check "$work/served" --write
ktap_check "serve check of a large command" same serve-size serve_check "$work/served" --size 524288
ktap_check "serve bench" run serve bench "$work/served" --seconds 1 --entries 4
ktap_check "serve of no file" same serve-none run serve check /dev/null
ktap_check "serve without a path" same serve-nothing run serve check
ktap_check "serve without a word" same serve-word run serve frobnicate

# Files for windows. The disk is that of this machine, which is not of nvme-peer.
file_lines() {
	run file "$@" 2>&1 | sed "s|: $work$|: work|; /^ *\(file_system\|disk\|controller\):/d; s/partition of one: .*;/partition of one;/; s/  *\(no-disk\|other-disk\|file-system\):.*/  disk/"
}

# is_written FILE: none of its extents is unwritten, and it has no holes.
is_written() {
	[[ $(run -o json file check "$1") != *'"unwritten"'* && $(run -o json file check "$1") != *'"holes"'* ]]
}

prepare_keeps_data() {
	head -c 5000 /dev/urandom >"$work/data" && cp "$work/data" "$work/file" && truncate -s 1M "$work/file" "$work/data" &&
		fallocate -o 600K -l 100K "$work/file" && ! is_written "$work/file" || return
	run file prepare "$work/file" 900K >"$work/got"
	is_written "$work/file" && cmp "$work/file" "$work/data" && grep -q '^zeroed: 1016 KiB' "$work/got"
}

prepare_again() {
	[[ $(run file prepare "$work/file" 1M) == *'zeroed: 0 B' ]]
}

prepare_extends() {
	truncate -s 3000001 "$work/data"
	run file prepare "$work/file" 3000001 >/dev/null
	is_written "$work/file" && cmp "$work/file" "$work/data"
}

prepare_of_open_file() {
	local result
	exec 8<"$work/file"
	result=$(run file prepare "$work/file" 8M 2>&1)
	exec 8<&-
	[[ $result == *'another process has the file open'* && $(stat -c %s "$work/file") == 3000001 ]]
}

# Neither a longer file nor a new one is left.
prepare_without_room() {
	! run file prepare "$work/file" 8000T >/dev/null 2>&1 && [[ $(stat -c %s "$work/file") == 3000001 ]] &&
		! run file prepare "$work/new" 8000T >/dev/null 2>&1 && [[ ! -e $work/new ]]
}

# The opener waits for the end of the lease, which the command gives up.
prepare_gives_way() {
	local preparing
	run file prepare "$work/large" 2G >/dev/null 2>&1 &
	preparing=$!
	until [[ -s $work/large ]]; do sleep 0.01; done
	timeout 20 head -c 1 "$work/large" >/dev/null || return
	wait "$preparing"
	[[ $? == 157 || $? == 1 ]] && rm "$work/large"
}

ktap_check "file check" same file-check file_lines check "$work" /dev/null
ktap_check "file check of nothing" same file-nothing run file check
ktap_check "file without a word" same file-word run file frobnicate
ktap_check "file prepare without a size" same file-size run file prepare "$work/file" 5X
if [[ $(stat -f -c %T "$work") == ext2/ext3 ]]; then
	ktap_check "file prepare keeps data and writes the rest" prepare_keeps_data
	ktap_check "file prepare of a prepared file" prepare_again
	ktap_check "file prepare extends a file" prepare_extends
	ktap_check "file prepare of a file that is open" prepare_of_open_file
	ktap_check "file prepare without room" prepare_without_room
	ktap_check "file prepare gives way to another process" prepare_gives_way
else
	ktap_skip "file prepare" "the temporary directory is not on ext4"
fi
ktap_end
