#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The demonstration, inside the guest: one controller is bound to nvme-peer, its disk is divided
# into three partitions, and fio, ext4 and the software GPU use them at once, with live progress.
# Then two rates, the proof that the CPU took no part in the GPU's I/O, a table and a verdict.
#
# usage: demo.sh [SECONDS] how long all three run together at least, default 20
#
# Each initiator is a job in the background. Its file of counts has one line, "I/OS BYTES VERIFIED":
# bytes that were compared and right. "ended" beside it has its exit status.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/bind.sh"
seconds=${1:-20}
begin_seconds=60 linger_seconds=120	# limits for the first I/O of all, and for the end of all
parts=3					# of the time; all do I/O in each
round=$((2 << 20)) command=$((32 << 10))	# bytes of the GPU's rounds, and of a command of dd
depth=32 turns=5
work=$(mktemp -d)
stop=$work/stop
initiators=(fio ext4 gpu)
declare -A title=(
	[fio]='fio, io_uring passthrough'
	[ext4]='ext4, block device'
	[gpu]='software GPU, own queue pair'
	[cpu]="dd, the GPU's counterpart"
)
declare -A ios bytes verified before busy errors

## Preparation

bind_controller() {
	modprobe nvme_peer
	modprobe softgpu_drv
	# With a GPU that shares memory, use badctrl, which shares memory too: without faults, and with
	# more queues than it grants by default.
	disk=np0 shared=no
	if [[ -f /host/engine ]]; then
		disk=badctrl shared=yes
		np_bad_set 4 7
		np_bad_set c 20
	fi
	np_bind "$disk"
	controller=$(np_node "$disk")
	block=${controller}n1
	namespace=ngp${controller#nvmep}n1
	np_until 200 test -e "/dev/$block"
	np_until 200 test -e "/dev/$namespace"
	np_until 200 test -e /dev/softgpu0
}

# start_of NUMBER, size_of NUMBER: of a partition, in bytes.
start_of() {
	echo $(($(<"/sys/class/block/${block}p$1/start") * 512))
}

size_of() {
	echo $(($(<"/sys/class/block/${block}p$1/size") * 512))
}

divide_disk() {
	sfdisk --quiet --wipe always "/dev/$block" <<-'PARTS'
	label: gpt
	size=256MiB, name=fio
	size=512MiB, name=ext4
	size=256MiB, name=gpu
	PARTS
	np_until 200 test -e "/dev/${block}p3"
	mkfs.ext4 -q -F "/dev/${block}p2"
	# Many small files and some larger ones. They are in memory, so that the disk is read for the
	# other side of the comparison only.
	mkdir "$work/tree"
	cp -a /usr/share/zoneinfo/America /usr/bin/bash /usr/bin/fio "$work/tree"
}

## The GPU

gpu_begin() {
	mkfifo "$work/to" "$work/from"
	"${DEMO_PROGRAM:-/build/user/demo-gpu}" "$disk" <"$work/to" >"$work/from" &
	gpu_process=$!
	exec {to}>"$work/to" {from}<"$work/from"
	expect
}

gpu_end() {
	exec {to}>&- {from}<&-
	wait "$gpu_process"
}

# expect: wait for the GPU's answer, and set answer.
expect() {
	read -r -t 90 -u "$from" answer || answer='failed: no answer of the GPU'
	[[ $answer != failed* ]] || { echo "  $answer" >&2; return 1; }
}

gpu() {
	echo "$*" >&"$to"
	expect
}

## Initiators

# count NAME I/OS BYTES VERIFIED
count() {
	echo "${@:2}" >"$work/$1.new"
	mv "$work/$1.new" "$work/$1"
}

begin() {
	{
		status=0
		"run_$1" || status=$?
		echo "$status" >"$work/$1.ended"
	} &
}

# fio runs for a fixed time, so it starts last. The others take a while to start: a file system is
# mounted and synced. fio reports its first I/O after a second.
run_fio() {
	until [[ -e $stop || ( -e $work/ext4.began && -e $work/gpu ) ]]; do
		sleep 0.1
	done
	[[ ! -e $stop ]] || return 0
	fio --name=demo --thread --ioengine=io_uring_cmd --cmd_type=nvme --filename="/dev/$namespace" \
		--offset="$(start_of 1)" --size="$(size_of 1)" --rw=randwrite --bs=4096 --iodepth=4 \
		--time_based --runtime=$((seconds + 4)) --verify=crc32c --verify_backlog=128 --verify_fatal=1 \
		--verify_state_save=0 --terse-version=3 --output-format=terse --status-interval=1 --eta=never \
		>"$work/fio.log" 2>&1
}

# Copy a tree, drop the caches and compare. The block layer counts the I/Os.
run_ext4() {
	local size mountpoint=$work/ext4.mounted number=0 status=0
	size=$(du -sb --apparent-size "$work/tree" | cut -f1)
	mkdir "$mountpoint"
	mount -t ext4 "/dev/${block}p2" "$mountpoint" || return
	: >"$work/ext4.began"
	until [[ -e $stop ]]; do
		number=$((number + 1))
		if ! { cp -a "$work/tree" "$mountpoint/tree" && sync -f "$mountpoint" &&
			echo 3 >/proc/sys/vm/drop_caches && diff -r "$work/tree" "$mountpoint/tree" &&
			rm -r "$mountpoint/tree"; }; then
			status=1
			break
		fi
		echo "$((number * size))" >"$work/ext4.verified"
	done
	umount "$mountpoint" && return $status
}

# move IN OUT [OPTION...]: by dd, in commands of the block device.
move() {
	dd if="$1" of="$2" bs=$command count=$((round / command)) "${@:3}" conv=notrunc status=none
}

# The GPU writes a pattern, dd reads it, the GPU writes another one over it, dd writes back what it
# has read, and the GPU verifies it: so each has read what the other has written. Every round has its
# own seed and place, so that stale data is detected.
run_gpu() {
	local number at all=0 some=0 kept=$work/kept moved=0 total=0 checked=0 partition=/dev/${block}p3 place step
	for ((number = 0; ; number++)); do
		[[ ! -e $stop ]] || return 0
		place=$((number * round % $(size_of 3)))
		at=$(($(start_of 3) + place))
		for step in "write $at $round $((2 * number))" read "write $at $round $((2 * number + 1))" write-back \
			"verify $at $round $((2 * number))"; do
			case $step in
			read) move "$partition" "$kept" iflag=direct skip=$((place / command)) || return ;;
			write-back) move "$kept" "$partition" oflag=direct seek=$((place / command)) || return ;;
			*)
				gpu "$step" || return
				read -r some moved <<<"$answer"
				all=$((all + some)) total=$((total + moved))
				;;
			esac
			count gpu "$all" "$total" "$checked"
		done
		checked=$((checked + round))
		count gpu "$all" "$total" "$checked"
		count cpu $(((number + 1) * 2 * round / command)) $(((number + 1) * 2 * round)) "$checked"
	done
}

## All at once

# stat_of NUMBER: I/Os and bytes of a partition (Documentation/block/stat.rst of the kernel).
stat_of() {
	local reads read_sectors writes write_sectors _
	read -r reads _ read_sectors _ writes _ write_sectors _ <"/sys/class/block/${block}p$1/stat"
	echo $((reads + writes)) $(((read_sectors + write_sectors) * 512))
}

# fio prints totals in its terse output, version 3: error, KiB read and written are the fields 4, 5
# and 46, counted from 0. It reads to verify.
sample_fio() {
	local field
	IFS=';' read -r -a field <<<"$(tail -n 1 "$work/fio.log" 2>/dev/null)"
	((${#field[@]} > 46)) && [[ ${field[0]} == 3 ]] || return 0
	((!field[4])) || errors[fio]=1
	ios[fio]=$(((field[5] + field[46]) / 4)) bytes[fio]=$(((field[5] + field[46]) * 1024))
	verified[fio]=$((field[5] * 1024))
}

sample_ext4() {
	local now=()
	read -r -a now <<<"$(stat_of 2)"
	ios[ext4]=$((now[0] - ext4_before[0])) bytes[ext4]=$((now[1] - ext4_before[1]))
	[[ ! -s $work/ext4.verified ]] || verified[ext4]=$(<"$work/ext4.verified")
}

sample() {
	local name
	sample_fio
	sample_ext4
	for name in gpu cpu; do
		[[ ! -s $work/$name ]] || read -r "ios[$name]" "bytes[$name]" "verified[$name]" <"$work/$name"
	done
}

# megabytes BYTES: with one digit.
megabytes() {
	printf '%d.%d' $(($1 / 1000000)) $(($1 / 100000 % 10))
}

print_progress() {
	local name
	((together)) && printf '[%3d s]' "$together" || printf '[ start]'
	for name in "${initiators[@]}"; do
		printf ' | %s %6d I/Os %6s MB, %6s verified' "$name" "${ios[$name]}" "$(megabytes "${bytes[$name]}")" \
			"$(megabytes "${verified[$name]}")"
	done
	echo
}

# note_time SECONDS: all three have run together for so long.
note_time() {
	local name part=$((together * parts / seconds))
	for name in "${initiators[@]}"; do
		((ios[$name] == before[$name])) || busy[$name/$part]=1
		before[$name]=${ios[$name]}
	done
	together=$1
}

all_began() {
	((ios[fio] && ios[ext4] && ios[gpu]))
}


# how_many_ended: of the three.
how_many_ended() {
	local name number=0
	for name in "${initiators[@]}"; do
		[[ ! -e $work/$name.ended ]] || number=$((number + 1))
	done
	echo "$number"
}

watch() {
	local start=$SECONDS began=''
	while (($(how_many_ended) == 0 && together < seconds)); do
		[[ $began ]] || ((SECONDS <= start + begin_seconds)) || break
		sleep 1
		sample
		if [[ $began ]]; then
			note_time $((SECONDS - began))
		elif all_began; then
			began=$SECONDS
		fi
		print_progress
	done
	: >"$stop"
	for ((start = SECONDS; SECONDS < start + linger_seconds; )); do
		(($(how_many_ended) < ${#initiators[@]})) || break
		sleep 1
	done
	sample
}

run_all() {
	local name
	together=0
	read -r -a ext4_before <<<"$(stat_of 2)"
	for name in "${initiators[@]}" cpu; do
		ios[$name]=0 bytes[$name]=0 verified[$name]=0 before[$name]=0 errors[$name]=0
	done
	for name in "${initiators[@]}"; do
		begin "$name"
	done
	watch
	for name in "${initiators[@]}"; do
		[[ -e $work/$name.ended ]] || { echo "  $name hangs"; return 1; }
		(($(<"$work/$name.ended") == 0)) || errors[$name]=1
	done
	[[ ! -s $work/fio.log ]] || grep -v '^3;' "$work/fio.log" || true
}

## Rates, alone on the controller

# The controller's own count of read commands.
smart_reads() {
	nvme smart-log "/dev/$namespace" --output-format=json | sed -n 's/.*"host_read_commands" *: *"\?\([0-9]*\).*/\1/p'
}

cpu_rate() {
	fio --name=rate --thread --ioengine=io_uring_cmd --cmd_type=nvme --filename="/dev/$namespace" \
		--offset="$(start_of 3)" --size="$(size_of 3)" --rw=randread --bs=4096 --iodepth=$depth \
		--time_based --runtime=1 --terse-version=3 --output-format=terse --eta=never | cut -d';' -f8
}

# measure: GPU and CPU in turns, so that other load on the machine affects both.
measure() {
	local turn begin reads nanoseconds
	gpu_rates=() cpu_rates=() gpu_reads=0 counted=0
	for ((turn = 0; turn < turns; turn++)); do
		begin=$(smart_reads)
		gpu rate "$(start_of 3)" "$(size_of 3)" $depth 1 || return
		counted=$((counted + $(smart_reads) - begin))
		read -r reads nanoseconds <<<"$answer"
		gpu_reads=$((gpu_reads + reads))
		gpu_rates+=($((reads * 1000000000 / nanoseconds)))
		cpu_rates+=("$(cpu_rate)")
	done
}

# show_rate TITLE RATE...: sets median.
show_rate() {
	local sorted
	mapfile -t sorted <<<"$(printf '%s\n' "${@:2}" | sort -n)"
	median=${sorted[turns / 2]}
	printf '  %-16s %8d I/O/s (%d to %d)\n' "$1" "$median" "${sorted[0]}" "${sorted[-1]}"
}

show_rates() {
	local gpu_median
	printf '\nRandom 4 KiB reads, %d in flight, alone on the controller, median of %d turns:\n' $depth $turns
	show_rate 'software GPU' "${gpu_rates[@]}"
	gpu_median=$median
	show_rate 'CPU, io_uring' "${cpu_rates[@]}"
	((gpu_median && median)) || { echo '  NO   a rate is 0'; failed=yes; return; }
	printf '  %-16s %5d.%02d\n' 'GPU to CPU' $((gpu_median / median)) $((gpu_median * 100 / median % 100))
}

## Proof and verdict

# claim TEXT HOLDS: 1 if it does.
claim() {
	if [[ $2 == 1 ]]; then
		echo "  yes  $1"
	else
		echo "  NO   $1"
		failed=yes
	fi
}

show_proof() {
	local in_gpu doorbells on_bus lost cpu_doorbells doorbell_maps memory_maps expected pair
	gpu proof || { failed=yes; return; }
	for pair in $answer; do
		declare "$pair"
	done
	# Stores to a page that the controller shares are no messages.
	expected=$doorbells
	[[ $shared == no ]] || expected=0
	printf "\nThe CPU took no part in the GPU's I/O:\n"
	claim 'both rings and all data lie in GPU memory' "$in_gpu"
	claim "doorbell writes by the GPU: $doorbells, on the bus: $on_bus, lost: $lost" \
		$((doorbells && !lost && on_bus == expected))
	claim "doorbell writes by the CPU on that queue: $cpu_doorbells" $((!cpu_doorbells))
	claim "mappings of its doorbell page for the CPU: $doorbell_maps" $((!doorbell_maps))
	claim "times that GPU memory was mapped for the CPU: $memory_maps, so it copied nothing" $((!memory_maps))
	claim "read commands while only the GPU ran: $gpu_reads by the GPU, $counted counted by the controller" \
		$((gpu_reads == counted))
}

show_table() {
	local name
	printf '\n%-30s %10s %10s %8s %12s\n' initiator I/Os MB errors 'verified MB'
	for name in "${initiators[@]}" cpu; do
		printf '%-30s %10d %10s %8d %12s\n' "${title[$name]}" "${ios[$name]}" "$(megabytes "${bytes[$name]}")" \
			"${errors[$name]}" "$(megabytes "${verified[$name]}")"
	done
}

# Each did I/O in every part of the time, verified it, and had no error.
judge() {
	local name part
	((together >= seconds)) || { echo "  all three ran together for $together of $seconds seconds only"; failed=yes; return; }
	for name in "${initiators[@]}" cpu; do
		if ((!ios[$name] || !verified[$name] || errors[$name])); then
			echo "  ${title[$name]}: errors, or nothing done"
			failed=yes
		fi
	done
	for name in "${initiators[@]}"; do
		for ((part = 0; part < parts; part++)); do
			[[ ${busy[$name/$part]:-} ]] || { echo "  ${title[$name]}: no I/O in part $((part + 1)) of the time"; failed=yes; }
		done
	done
}

failed=no
bind_controller
echo "controller /dev/$controller at $(np_address "$disk"), software GPU at $(np_address softgpu), Linux $(uname -r)"
divide_disk
if gpu_begin && run_all && measure; then
	show_rates
	show_proof
	gpu_end || failed=yes
	show_table
	judge
else
	failed=yes
fi
if [[ $failed == no ]]; then
	printf '\ndemo: PASS\n'
else
	printf '\ndemo: FAIL\n'
	exit 1
fi
