# SPDX-License-Identifier: GPL-2.0-only
# One cell of the matrix: start the emulated devices and a guest, follow its output, clean up.
# Sourced by selftests/run.
#
# A cell is named KERNEL/IOMMU/TOPOLOGY, and a guest like its cell, or KERNEL/IOMMU/TOPOLOGY/1of2 if it runs a
# part of the tests (schedule.sh).

cell_memory=2G
# The engine of the software GPU's programs on blocks, set by the caller of run_cell: its own
# threads (""), CUDA ("cuda") or a fake libcuda ("fake"). With the latter two it shares memory
# with badctrl.
gpu_engine=''
# The folder that these processes share, created by the caller (see --share), or "": a temporary one. MiB of
# the software GPU's memory, of which the second half is the window, and of badctrl's disk.
shared_folder='' gpu_megabytes=2048 disk_megabytes=1100
# The folder of another system to boot (see --machine), or "".
guest_machine=''
# A folder to copy into the guest (see --add), or "".
guest_added=''
# A socket for a shell in the guest (see --shell), or "".
guest_shell=''
# FOLDER,NUMBER of a network of two guests (see --link), or "".
guest_link=''
# yes: the guest waits for gdb (see --gdb); its folder remains (see --keep).
guest_debugger=no guest_kept=no guest_leaks=no
# one: processors of a guest take turns in one thread (see --one-thread); all: each has one.
guest_threads=all
guest_slots=3
# Time limit of the boot, and the time after a test's own timeout (which kills the test)
# when the guest counts as hung.
boot_seconds=240 hang_seconds=30
# Time limit of the two kmemleak scans at the end of a guest.
leaks_seconds=900
# Time limit while a developer works in the guest.
session_seconds=86400
# The file for the times of tests (schedule.sh); "": they are not recorded.
np_times=''

# cell_of GUEST
cell_of() {
	echo "${1%/[1-9]of[1-9]}"
}

## The machine

# accelerator KERNEL TOPOLOGY. An accessible /dev/kvm does not imply that KVM works: the processor has to
# support it. The processors of an emulated guest may take turns in one thread: that needs less time than
# threads that wait for each other, but nothing happens at the same time, and a locked instruction is no
# barrier towards devices. Kernels that report races, and many processors, have a thread for each.
accelerator() {
	if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]] &&
		"$np_source/selftests/setup/in-tree" qemu-system-x86_64 -machine none -accel kvm \
			-display none -nodefaults -monitor stdio <<<quit >/dev/null 2>&1; then
		echo kvm
	elif [[ $guest_threads == one && $2 != numa ]] && ! np_is_built "$1"; then
		echo tcg,thread=single
	else
		echo tcg,thread=multi
	fi
}

# processor_options KERNEL TOPOLOGY. With a clock that counts instructions, 2 ns each, measurements do not
# depend on the load of the host. The processors run one after the other, and the clock counts those of all.
# While the guest is idle, the clock follows that of the host (sleep=on): otherwise it would jump from timer to
# timer until a device completes.
processor_options() {
	local processors=${np_cpus:-2}

	if [[ ${np_icount:-no} == yes ]]; then
		echo "-smp ${np_cpus:-1} -accel tcg,thread=single -icount shift=1,sleep=on"
		return
	fi
	case $2 in
	numa) processors=8,sockets=2,cores=2,threads=2 ;;
	single) processors=1 ;;
	esac
	echo "-smp $processors -accel $(accelerator "$1" "$2")"
}

# memory_options TOPOLOGY: RAM is a shared memfd, as the software GPU maps it; with a shared folder a file
# there, for a process that uses queue pairs of the guest. In topology numa each of two nodes has half of it
# and half of the processors.
memory_options() {
	local more=''
	# Address space above 4 GiB makes the kernel allocate bounce buffers.
	[[ $1 != external ]] || more=,slots=1,maxmem=8G
	echo "-m $cell_memory$more"
	if [[ $1 == numa ]]; then
		echo "-object memory-backend-memfd,id=mem0,size=1G,share=on -numa node,nodeid=0,cpus=0-3,memdev=mem0"
		echo "-object memory-backend-memfd,id=mem1,size=1G,share=on -numa node,nodeid=1,cpus=4-7,memdev=mem1"
	elif [[ $share_folder ]]; then
		echo "-object memory-backend-file,id=mem,size=$cell_memory,mem-path=$share_folder/guest,share=on -machine memory-backend=mem"
	else
		echo "-object memory-backend-memfd,id=mem,size=$cell_memory,share=on -machine memory-backend=mem"
	fi
}

# machine_options KERNEL IOMMU TOPOLOGY. Linux has the host bridge of EPYC on its peer-to-peer list, and not
# that of "max", the processor of topology unknown-bridge.
machine_options() {
	local processor=EPYC
	[[ $3 != unknown-bridge ]] || processor=max
	memory_options "$3"
	echo "-cpu $processor $(processor_options "$1" "$3") -nodefaults -display none -no-reboot"
	# Native PCI Express hot-plug instead of ACPI's, so that links report that they are up.
	[[ $3 != switch ]] || echo "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"
	if [[ $2 == off || $2 == bounce ]]; then
		echo "-machine q35"
	else
		echo "-machine q35,kernel-irqchip=split"
		# Without caching-mode QEMU does not forward new mappings to the software GPU.
		echo "-device intel-iommu,intremap=on,caching-mode=on,device-iotlb=on"
	fi
}

# The addresses are fixed, as tests and the kernel's command line name the ports. After a link
# reset the kernel waits until a fast link reports that it is up, which QEMU's links never do:
# recovery from an error that resets the link works below rp1 only.
root_ports() {
	echo "-device pcie-root-port,id=rp1,bus=pcie.0,addr=0x3,chassis=1,slot=1,x-speed=2_5,x-width=1"
	echo "-device pcie-root-port,id=rp2,bus=pcie.0,addr=0x4,chassis=2,slot=2"
	echo "-device pcie-root-port,id=rp3,bus=pcie.0,addr=0x5,chassis=3,slot=3"
	echo "-device pcie-root-port,id=rp4,bus=pcie.0,addr=0x6,chassis=4,slot=4"
	# Empty until a test plugs a device. A controller with virtual functions belongs to a
	# subsystem, which cannot be hot-plugged.
	echo "-device pcie-root-port,id=rp5,bus=pcie.0,addr=0x7,chassis=5,slot=5"
	echo "-device nvme-subsys,id=subsystem"
	# Empty, and an external-facing port: the kernel does not trust devices below it.
	echo "-device pcie-root-port,id=rp6,bus=pcie.0,addr=0x8,chassis=6,slot=6"
}

vfio_user_device() {
	printf -- '-device {"driver":"vfio-user-pci","id":"%s","bus":"%s","socket":{"type":"unix","path":"%s"}}\n' \
		"$1" "$2" "$socket_folder/$1"
}

# QEMU's root ports have ACS, its switches have not. So in "switch" the path stays below one
# upstream port, and in "switch-acs" it is redirected to the root. In topology unknown-bridge the second
# controller is behind two switches and shares the first with the software GPU: a path of many
# ports, for tests of ACS redirection. In "external" the port of the first controller is
# external-facing, so the kernel does not trust the controller.
topology_options() {
	local topology=$1 run=$2 nvme_bus=rp1 gpu_bus=rp2 other_bus=rp3 external=(8.0)
	# Zeroes that are written to a large disk take no space on the host.
	local medium=file=$run/np0.img,format=raw,cache=unsafe,discard=unmap${np_medium_gb:+,detect-zeroes=unmap} queues=''
	root_ports
	[[ $topology != external ]] || external+=(3.0)
	"$np_source/selftests/lib/external_port.py" "$run/external.aml" "${external[@]}"
	echo "-acpitable file=$run/external.aml"
	if [[ $topology == unknown-bridge ]]; then
		gpu_bus=ds1 other_bus=ds3
		echo "-device x3130-upstream,id=us,bus=rp2"
		echo "-device xio3130-downstream,id=ds1,bus=us,chassis=10,slot=10"
		echo "-device xio3130-downstream,id=ds2,bus=us,chassis=11,slot=11"
		echo "-device x3130-upstream,id=us2,bus=ds2"
		echo "-device xio3130-downstream,id=ds3,bus=us2,chassis=12,slot=12"
	fi
	if [[ $topology == switch ]]; then
		nvme_bus=ds1 gpu_bus=ds2
		echo "-device x3130-upstream,id=us,bus=rp1"
		echo "-device xio3130-downstream,id=ds1,bus=us,chassis=10,slot=10"
		echo "-device xio3130-downstream,id=ds2,bus=us,chassis=11,slot=11"
	fi
	# As many queue pairs as processors: half of them are for peers.
	[[ $topology != numa ]] || queues=,max_ioqpairs=8
	[[ ${np_data:-yes} == yes ]] || medium=driver=null-co,size=${np_medium_gb:-2}G
	echo "-drive if=none,id=d0,$medium${np_medium_rate:+,throttling.iops-total=$np_medium_rate}"
	echo "-drive if=none,id=d1,file=$run/np1.img,format=raw,cache=unsafe,discard=unmap"
	# QEMU copies data in GPU memory through bounce buffers. A command waits if none is free,
	# and QEMU hangs if its queue is deleted meanwhile.
	echo "-device nvme,id=np0,drive=d0,serial=np0,bus=$nvme_bus,x-max-bounce-buffer-size=268435456$queues${np_shadow:+,dbcs=$np_shadow}"
	# The second controller has QEMU's largest MDTS, and a namespace with metadata, which
	# nvme-peer does not support as a disk.
	echo "-drive if=none,id=d2,file=$run/np1-metadata.img,format=raw,cache=unsafe,discard=unmap"
	echo "-device nvme,id=np1,serial=np1,bus=$other_bus,mdts=9"
	echo "-device nvme-ns,bus=np1,nsid=1,drive=d1,eui64=0x1122334455667788 -device nvme-ns,bus=np1,nsid=2,drive=d2,ms=8"
	vfio_user_device softgpu "$gpu_bus"
	vfio_user_device badctrl rp4
}

# Virtio devices of the test bed bypass the IOMMU.
test_bed_options() {
	local run=$1 kernel=$2
	if [[ -f $guest_machine/disk.img ]]; then
		echo "-drive if=none,id=root,file=$(readlink -f "$guest_machine/disk.img"),format=raw,cache=unsafe"
	else
		echo "-drive if=none,id=root,file=$(readlink -f "${guest_machine:-$np_cache/guest}/root.erofs"),format=raw,readonly=on"
	fi
	echo "-device virtio-blk-pci,drive=root,addr=0x10"
	if [[ -f $np_cache/tools/tools.erofs ]]; then
		echo "-drive if=none,id=tools,file=$(readlink -f "$np_cache/tools/tools.erofs"),format=raw,readonly=on"
		echo "-device virtio-blk-pci,drive=tools,serial=tools,addr=0x13"
	fi
	echo "-fsdev local,id=host,path=$run,security_model=none -device virtio-9p-pci,fsdev=host,mount_tag=host,addr=0x11"
	echo "-fsdev local,id=modules,path=$np_cache/kernels/$kernel/lib/modules,security_model=none,readonly=on"
	echo "-device virtio-9p-pci,fsdev=modules,mount_tag=modules,addr=0x12"
	echo "-device isa-debug-exit,iobase=0x501,iosize=1"
	echo "-chardev stdio,id=tests,signal=off -serial file:$run/console.log -serial chardev:tests"
	[[ ! $guest_shell ]] || echo "-chardev socket,id=shell,path=$guest_shell,server=on,wait=off -device isa-serial,chardev=shell,index=2,irq=5"
	[[ ! $guest_link ]] || link_options "${guest_link%,*}" "${guest_link#*,}"
	[[ $guest_debugger == no ]] || echo "-gdb unix:$socket_folder/gdb,server=on,wait=off"
	echo "-chardev pipe,id=monitor,path=$run/monitor -mon chardev=monitor"
}

# kmemleak doubles the cost of allocations and adds a minute at the end. make check enables it in
# one short cell that creates, exports, maps and revokes everything once, check-long in a full one,
# --leaks in each of the debug kernel.
scans_for_leaks() {
	[[ ($guest_leaks == yes && $1 == debug/*) || $(cell_of "$1") == debug/off/switch || $(cell_of "$1") == debug/off/root ]]
}

# end_seconds CELL: time limit between the last test and the end of the guest.
end_seconds() {
	if scans_for_leaks "$1"; then
		echo "$leaks_seconds"
	else
		echo "$boot_seconds"
	fi
}

# The watchdogs have long timeouts, as emulation on a loaded host is slow. There the kernel's
# check of its timer interrupt occasionally fails with a panic (no_timer_check).
kernel_command_line() {
	local kernel=$1 iommu=$2 topology=$3
	local words="console=ttyS0 loglevel=5 panic=-1 oops=panic nokaslr mitigations=off audit=0 sysrq_always_enabled"
	words+=" watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=180 no_timer_check"
	words+=" np_topology=$topology"
	case $topology in
	switch) words+=" np_places=np0=00:03.0,softgpu=00:03.0,np1=00:05.0,badctrl=00:06.0" ;;
	unknown-bridge) words+=" np_places=np0=00:03.0,softgpu=00:04.0,np1=00:04.0,badctrl=00:06.0" ;;
	*) words+=" np_places=np0=00:03.0,softgpu=00:04.0,np1=00:05.0,badctrl=00:06.0" ;;
	esac
	case $iommu in
	on) words+=" intel_iommu=on" ;;
	pt) words+=" intel_iommu=on iommu=pt" ;;
	bounce) words+=" swiotlb=force" ;;
	off)
		# Pages are not zeroed, like in kernels of other distributions.
		words+=" init_on_alloc=0"
		[[ $topology != switch-acs ]] || words+=" pci=config_acs=xxx11xx@00:03.0;xxx11xx@00:04.0;xxx11xx@00:05.0"
		;;
	esac
	[[ ! -f $guest_machine/disk.img ]] || words+=" root=/dev/vda rw"
	[[ $guest_debugger == no ]] || words+=" np_gdb"
	! scans_for_leaks "$kernel/$iommu/$topology" || words+=" kmemleak=on"
	echo "$words"
}

# link_options FOLDER NUMBER: a network device. Frames go from one socket in the folder to the other;
# they are lost while the other guest has not started.
link_options() {
	echo "-netdev dgram,id=link,local.type=unix,local.path=$1/$2,remote.type=unix,remote.path=$1/$((3 - $2))"
	echo "-device virtio-net-pci,netdev=link,mac=52:54:00:00:00:0$2,addr=0x14"
}

## The run's own folder

# A copy, so that a build does not change files of a running guest.
make_run_folder() {
	local run=$1 kernel=$2 version
	version=$(<"$np_cache/kernels/$kernel/version")
	mkdir -p "$run"/{build,out,"modules/updates"}
	mkfifo "$run"/monitor.{in,out}
	cp -a "$np_source/selftests" "$run/"
	# Also the kernel: a test boots it by kexec.
	cp "$np_cache/kernels/$kernel"/{vmlinuz,initramfs} "$run/"
	mkdir -p "$run/build/$kernel"
	[[ ! -d $np_source/build/user ]] ||
		tar -c -C "$np_source/build" --exclude=.objects user | tar -x -C "$run/build"
	if compgen -G "$np_source/build/$kernel/*.ko" >/dev/null; then
		cp "$np_source/build/$kernel"/*.ko "$run/build/$kernel/"
		cp "$np_source/build/$kernel"/*.ko "$run/modules/updates/"
	fi
	[[ ! $guest_machine ]] || take_machine "$run"
	[[ ! $guest_added ]] || cp -aL "$guest_added" "$run/added"
	truncate -s "${np_medium_gb:-2}G" "$run/np0.img"
	[[ -e $run/np1.img ]] || truncate -s 512M "$run/np1.img"
	truncate -s 64M "$run/np1-metadata.img"
	index_modules "$run" "$kernel" "$version"
}

# Files that were installed in another system, with that system's build of the module. Or a machine with
# a disk of its own, from which its kernel boots, and which keeps the medium of np1.
take_machine() {
	if [[ -f $guest_machine/disk.img ]]; then
		cp "$guest_machine"/{vmlinuz,initramfs} "$1/"
		ln -s "$(readlink -f "$guest_machine/np1.img")" "$1/np1.img"
		return
	fi
	cp "$guest_machine/added.tar" "$1/"
	rm -f "$1/modules/updates/nvme_peer.ko"
	cp "$guest_machine"/nvme_peer.ko* "$1/modules/updates/"
}

# depmod over the kernel's modules and those of the tests.
index_modules() {
	local run=$1 kernel=$2 version=$3 root=$1/depmod from=$np_cache/kernels/$2/lib/modules/$3
	mkdir -p "$root/lib/modules"
	mv "$run/modules" "$root/lib/modules/$version"
	cp "$from"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
	ln -s "$from/kernel" "$root/lib/modules/$version/kernel"
	"$np_source/selftests/setup/in-tree" depmod -b "$root" "$version"
	rm "$root/lib/modules/$version/kernel"
	mv "$root/lib/modules/$version" "$run/modules"
	rm -r "$root"
}

## Processes

# Limit the guests of all callers on this machine. More guests than cores, as guests often wait.
take_guest_slot() {
	local slot waited=no
	# An unpacked bundle has no scratch directory.
	mkdir -p "$np_scratch"
	while true; do
		for ((slot = 0; slot < guest_slots; slot++)); do
			exec {guest_slot}>"$np_scratch/guest-slot.$slot"
			flock -n "$guest_slot" && return
			exec {guest_slot}>&-
		done
		[[ $waited == yes ]] || np_say "$1: waiting for one of $guest_slots guest slots"
		waited=yes
		sleep 1
	done
}

# own_processors guest|devices: the command that pins another one to its processors. With enough
# of them, guest and devices have separate ones, as with hardware, so that polling threads of
# the devices do not slow the guest down. Threads of a core stay together.
own_processors() {
	local all guest=$((${np_cpus:-2} + 2))
	[[ $gpu_engine ]] || return 0
	mapfile -t all < <(lscpu --parse=CPU,CORE | grep -v '^#' | sort -t, -k2,2n -k1,1n | cut -d, -f1)
	((${#all[@]} >= guest + 8)) || return 0
	case $1 in
	guest) all=("${all[@]: -guest}") ;;
	devices) all=("${all[@]:0:${#all[@]}-guest}") ;;
	esac
	(IFS=,; echo taskset --cpu-list "${all[*]}")
}

# start_device RUN PROGRAM [ARG...]: start an emulated device in its own process. It listens
# in the run's socket folder and ends with the guest.
start_device() {
	local run=$1 name=$2 tries pid
	local socket=$socket_folder/$name
	[[ -x $run/build/user/$name ]] || np_die "no build/user/$name: run make user"
	"${device_wrapper[@]}" "$run/build/user/$name" --socket "$socket" "${@:3}" \
		>"$run/$name.log" 2>&1 {guest_slot}>&- &
	pid=$!
	device_pids+=("$pid")
	for ((tries = 0; tries < 100; tries++)); do
		[[ ! -S $socket ]] || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	np_die "$name did not start: see $name.log in the cell's log folder"
}

stop_processes() {
	local pid
	for pid in ${guest_pid:-} "${device_pids[@]}"; do
		kill "$pid" 2>/dev/null || continue
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$socket_folder" "$share_folder"
}

# start_devices RUN: the GPU first, as the controller maps its memory.
start_devices() {
	local run=$1 memory=(--hbm-mb 64) shared=() in_tree=$np_source/selftests/setup/in-tree
	local pollers pin device_wrapper=("$in_tree")
	read -ra pin <<<"$(own_processors devices)"
	if [[ $gpu_engine ]]; then
		share_folder=${shared_folder:-$(mktemp -d /dev/shm/nvme-peer.XXXXXX)}
		memory=(--hbm-mb "$gpu_megabytes" --share "$share_folder")
		# Half of the processors poll, at most 8, the rings of struct mover_shared.
		pollers=$(($(nproc) < 4 ? 1 : $(nproc) > 16 ? 8 : $(nproc) / 2))
		shared=(--share "$share_folder" --disk-mb "$disk_megabytes" --pollers "$pollers")
		echo "$gpu_engine" >"$run/engine"
	fi
	case $gpu_engine in
	cuda)
		# NVIDIA's libcuda is installed on the host, not in the tree.
		device_wrapper=("${pin[@]}" env)
		memory+=(--engine cuda)
		;;
	fake)
		device_wrapper=("$in_tree" env "NVMEPEER_LIBCUDA=$run/build/user/lib/softgpu-libcuda.so")
		memory+=(--engine cuda --kernel "$run/build/user/lib/softgpu-kernel.so")
		;;
	esac
	start_device "$run" softgpu "${memory[@]}"
	device_wrapper=("${pin[@]}" "$in_tree")
	start_device "$run" badctrl "${shared[@]}"
}

# start_guest CELL RUN SECONDS [WORD...]: start QEMU with a time limit. follow_guest reads its
# second serial port.
start_guest() {
	local kernel iommu topology run=$2 seconds=$3 options pin
	IFS=/ read -r kernel iommu topology < <(cell_of "$1")
	mapfile -t options < <({
		machine_options "$kernel" "$iommu" "$topology"
		topology_options "$topology" "$run"
		test_bed_options "$run" "$kernel"
	} | tr ' ' '\n')
	read -ra pin <<<"$(own_processors guest)"
	coproc guest {
		exec timeout -k 5 "$seconds" "${pin[@]}" "$np_source/selftests/setup/in-tree" qemu-system-x86_64 "${options[@]}" \
			-kernel "$run/vmlinuz" -initrd "$run/initramfs" \
			-append "$(kernel_command_line "$kernel" "$iommu" "$topology") ${*:4}" 2>"$run/qemu.log" </dev/null
	}
	guest_pid=$guest_PID
	exec {guest_output}<&"${guest[0]}"
}

# prepare_debugger CELL RUN: write commands for gdb, with the addresses that the guest has reported. The
# kernel's symbols come from Debian's -dbg package, lx- commands from a kernel built with CONFIG_GDB_SCRIPTS.
prepare_debugger() {
	local kernel=${1%%/*} run=$2 version folder
	version=$(<"$np_cache/kernels/$kernel/version")
	{
		for folder in "/usr/lib/debug/lib/modules/$version" "$np_cache/kernels/$kernel/build"; do
			[[ ! -f $folder/vmlinux ]] || echo "file $folder/vmlinux"
			[[ ! -f $folder/scripts/gdb/linux/constants.py ]] || echo "source $folder/vmlinux-gdb.py"
		done
		echo "set architecture i386:x86-64"
		echo "add-symbol-file $run/build/$kernel/nvme_peer.ko $(paste -sd ' ' "$run/sections")"
		echo "target remote $socket_folder/gdb"
		echo "shell touch $run/continue"
	} >"$run/attach.gdb"
	np_say "$1: the guest waits for gdb -x $run/attach.gdb"
}

## A cell from beginning to end

# follow_guest CELL RUN: lines for the runner begin with "@np", all others are output of a
# command. Records the running test, to name it after a crash. Returns 1 if the guest hangs, 3 if
# it should be booted again.
follow_guest() {
	local line word name status milliseconds limit=$boot_seconds
	running=boot
	while true; do
		status=0
		IFS= read -r -t "$limit" line <&"$guest_output" || status=$?
		((status <= 128)) || { judge_hung_guest "$1" "$2"; return; }
		((status == 0)) || return 0
		line=${line%$'\r'}
		if [[ $line != '@np '* ]]; then
			printf '%s\n' "$line"
			continue
		fi
		read -r word name status milliseconds <<<"${line#@np }"
		case $word in
		# Also reported by a kernel that a test has booted.
		booted) ! may_boot_again || [[ -z $(complaints_in "$2/console.log") ]] || return 3 ;;
		up) np_say "$(printf '%-16s up    kernel %s, %s s after power on' "$1" "$(<"$np_cache/kernels/${1%%/*}/version")" "$name")" ;;
		begin)
			running=$name
			limit=$(($(awk -v name="$name" '$1 == name { print $2 }' "$2/plan") + hang_seconds))
			;;
		end)
			running='its end' limit=$(end_seconds "$1")
			if [[ $name == command ]]; then
				echo "$status" >"$2/out/command-status"
			else
				report_test "$1" "$name" "$2/out/$name.ktap" "$status" "$milliseconds" "$2/out/results"
				[[ ! $np_times ]] || ((status)) || echo "$(cell_of "$1") $name $milliseconds" >>"$np_times"
			fi
			;;
		debug) prepare_debugger "$1" "$2"; limit=$session_seconds ;;
		monitor) echo "$name $status $milliseconds" >"$2/monitor.in" ;;
		note) np_say "$1: note: $name $status $milliseconds" ;;
		esac
	done
}

# Only on the first attempt, and before the module was loaded.
may_boot_again() {
	[[ $running == boot && $boot == first ]]
}

# Have the kernel of a hung guest list blocked tasks by SysRq, and record the instruction
# pointers in case it does not respond. Returns the status of follow_guest.
judge_hung_guest() {
	local places
	printf '%s\n' 'info registers -a' 'sendkey alt-sysrq-w' >"$2/monitor.in"
	timeout 3 cat "$2/monitor.out" >"$2/registers.log"
	places=$(grep -oE '[RE]IP=[0-9a-f]+' "$2/registers.log" | paste -sd ' ')
	places="the guest hangs in '$running' at ${places:-unknown addresses}"
	! may_boot_again || { np_say "$1: note: $places"; return 3; }
	np_say "$1 NOT OK: $places; blocked tasks are in its console.log"
	return 1
}

# guest_session CELL RUN SECONDS WORD...: 0 if the guest powered off by itself.
guest_session() {
	local cell=$1 run=$2 seconds=$3 status=0
	# Not local: stop_processes uses them when this subshell exits.
	socket_folder='' share_folder='' device_pids=()
	trap stop_processes EXIT
	# Ignore further signals, for example those to the whole process group, until the guest
	# has been stopped.
	trap 'trap "" INT TERM HUP; exit 130' INT TERM HUP
	take_guest_slot "$cell"
	make_run_folder "$run" "${cell%%/*}"
	# In /tmp, as the path of a socket is limited in length.
	socket_folder=$(mktemp -d /tmp/nvme-peer.XXXXXX)
	start_devices "$run"
	start_guest "$cell" "$run" "$seconds" "${@:4}"
	follow_guest "$cell" "$run" || return
	wait "$guest_pid" || status=$?
	guest_pid=''
	# isa-debug-exit returns 2 * value + 1; 0 means reset or panic.
	((status == 1)) || explain_end "$cell" "$status" "$run"
}

explain_end() {
	local why
	case $2 in
	0) why="the kernel panicked or reset the machine" ;;
	124 | 137) why="the time limit ended it" ;;
	255) why="the guest could not be set up" ;;
	*) why="QEMU ended with status $2" ;;
	esac
	np_say "$1 NOT OK: $why${running:+, during '$running'}"
	tail -n 5 "$3/qemu.log" "$3/console.log" | sed 's/^/          /'
	return 1
}

# run_cell CELL PLAN SECONDS WORD...: boot, run the plan, check the kernel log. The output is
# renamed into the cell's log folder as a whole: of two concurrent runs of a cell one result
# remains.
run_cell() {
	local cell=$1 plan=$2 run log status boot
	log=$(log_folder "$cell")
	# An emulated machine occasionally hangs or reports an error before the module is loaded;
	# KASAN is silent after its first report. Such a guest is booted again, once.
	for boot in first last; do
		run=$(new_run_folder "$cell")
		printf '%s\n' "$plan" >"$run/plan"
		[[ ! ${guest_command:-} ]] || printf '%s\n' "$guest_command" >"$run/command"
		# In the background, so that this shell can forward a signal. The subshell needs
		# errexit, which 'run_cell ... ||' in a caller would disable. Here it is off: the
		# clean-up below must always run.
		set +e
		(set -e; guest_session "$cell" "$run" "${@:3}") &
		trap 'kill $! 2>/dev/null' TERM
		wait $!
		status=$?
		((status == 3)) || break
		np_say "$cell: the kernel hung or reported an error before the module was loaded; booting again"
		complaints_in "$run/console.log"
		rm -rf "$run"
	done
	if ((status)); then
		echo "0 1 0 $cell guest: did not power off" >>"$run/out/results"
	elif [[ ! ${guest_command:-} ]]; then
		report_missing_tests "$cell" "$run/plan" "$run/out/results" || status=1
	fi
	[[ ! -f $run/console.log ]] || report_kernel_log "$cell" "$run/console.log" "$run/out/results" || status=1
	mv "$run"/*.log "$run/plan" "$run/out/" 2>/dev/null
	cat "$run/out/results" >>"$np_results" 2>/dev/null
	[[ ! -f $run/out/command-status ]] || ((status)) || status=$(<"$run/out/command-status")
	remove_logs "$cell"
	mkdir -p "$(dirname "$log")"
	mv -T "$run/out" "$log"
	if [[ $guest_kept == yes ]]; then
		np_say "$cell: kept $run"
	else
		rm -rf "$run"
	fi
	return "$status"
}

new_run_folder() {
	mkdir -p "$np_source/build/run"
	local run
	run=$(mktemp -d "$np_source/build/run/${1//\//-}.XXXX")
	mkdir "$run/out"
	echo "$run"
}

# remove_logs GUEST: those of earlier runs of it, and of its cell divided in another way.
remove_logs() {
	local log whole
	whole=$(log_folder "$(cell_of "$1")")
	for log in "$whole" "$whole"-[1-9]of[1-9]; do
		[[ $1 == */*/*/* && $log == *of"${1##*of}" && $log != "$(log_folder "$1")" ]] || rm -rf "$log"
	done
}

log_folder() {
	echo "$np_source/build/log/$(log_name "$1")"
}

run_test_cell() {
	local cell=$1 plan=$2 seconds began=$SECONDS
	if [[ -z $plan ]]; then
		np_say "$cell: no test runs in this cell"
		return
	fi
	[[ $guest_debugger == no ]] || plan=$(awk -v limit="$session_seconds" '{ $2 = limit; print }' <<<"$plan")
	# The timeouts of all tests, and time to boot and to end.
	seconds=$(awk -v more="$((boot_seconds + $(end_seconds "$cell")))" '{ seconds += $2 + 6 } END { print seconds + more }' <<<"$plan")
	set +e
	run_cell "$cell" "$plan" "$seconds"
	set -e
	np_say "$(printf '%-16s %s tests in %d s' "$cell" "$(wc -l <<<"$plan")" $((SECONDS - began)))"
}

# run_shell_cell CELL: a shell on the terminal. The guest ends with it.
run_shell_cell() {
	local folder terminal cell_pid status=0
	folder=$(mktemp -d /tmp/nvme-peer.XXXXXX)
	guest_shell=$folder/shell
	terminal=$(stty size 2>/dev/null) && terminal+=" $TERM" || terminal='24 80 dumb'
	run_cell "$1" "shell $session_seconds /selftests/guest/shell $terminal" "$session_seconds" &
	cell_pid=$!
	"$np_source/selftests/lib/console.py" "$guest_shell" "$cell_pid" || kill "$cell_pid" 2>/dev/null
	wait "$cell_pid" || status=$?
	rm -rf "$folder"
	return "$status"
}

# run_command_cell CELL COMMAND...: run COMMAND with its output and exit status.
run_command_cell() {
	local cell=$1 seconds=540 guest_command
	shift
	[[ $guest_debugger == no ]] || seconds=$session_seconds
	# The host's load changes the duration of a measurement, not its result.
	[[ ${np_icount:-no} == no ]] || seconds=3600 boot_seconds=900
	# The plan consists of words, a command may contain any character.
	guest_command=$(printf '%q ' "$@")
	run_cell "$cell" "command $seconds /bin/bash /host/command" $((seconds + 60)) np_stream
}
