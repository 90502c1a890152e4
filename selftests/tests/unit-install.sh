#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `make install` is complete: installs everything but the module into a directory, then builds and
# links each example with pkg-config only.
#
# usage: unit-install.sh [--all]: kernels that the library loads, and code for an optimising linker, for each
#                                 architecture, not only for one
#
# timeout: 900
# long-arguments: --all
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
top=$here/../..
. "$here/../lib/ktap.sh"

# A fixed path: ccache keeps what is compiled with headers of it.
work=$(realpath "$top")/build/install
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
root=$work/root
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export LD_LIBRARY_PATH=$root/usr/lib

architectures=(80 90) few=()
if [[ ${1:-} != --all ]]; then
	architectures=(90)
	# ccache keeps what is compiled with -c.
	few=(list_architectures='-arch=sm_90 -c')
fi

install_all() {
	make -s -C "$top" OUT="$work/build" install-user DESTDIR="$root" PREFIX=/usr "${few[@]}"
}

# flags PACKAGES: pkg-config's flags, none of which may refer to the source tree.
flags() {
	local said
	# shellcheck disable=SC2086 # packages are words
	said=$(pkg-config --cflags --libs $1) || return
	[[ $said != *selftests* && $said == *"$root"* ]] || return
	echo "$said"
}

# compile_c OPTION... EXAMPLE: with the command of its comment.
compile_c() {
	local said line standard=c11
	said=$(flags libnvmepeer) || return
	# liburing needs GNU C.
	! grep -q '<nvmepeer_uring' "${!#}" || standard=gnu11
	line=$(sed -n 's/^ \*\tcc [a-z_]*\.c //p' "${!#}")
	[[ $said && $line ]] || return
	eval "set -- \"\$@\" $line"
	gcc -std=$standard -O2 -Wall -Wextra -Wpedantic -Werror -o "$work/example" "$@"
}

# A program that starts has found its libraries; there is no controller here.
build_c() {
	local said
	compile_c "$1" || return
	said=$("$work/example" 2>&1) || true
	[[ $said == *'bind a controller'* || $said == *'bind the controller'* ]] || { echo "$said"; return 1; }
}

# Level Zero and HIP: if this machine lacks the headers, toolkits/ replaces them and nothing is
# linked.
compile_level_zero() {
	compile_c -idirafter "$here/toolkits" -c "$1"
}

compile_hip() {
	local said side
	said=$(flags libnvmepeer) || return
	for side in host device; do
		# shellcheck disable=SC2086 # flags are words
		clang -x hip "--cuda-$side-only" -nogpulib -nogpuinc --offload-arch=gfx1030 -D__HIP_PLATFORM_AMD__ \
			-std=c++17 -Wall -Wextra -Werror -Wno-unused-command-line-argument -O2 -S \
			-idirafter "$here/toolkits" -o "$work/hip-$side.s" "$1" $said || return
	done
	grep -q hipLaunchKernel "$work/hip-host.s" && grep -q read_blocks "$work/hip-device.s"
}

# The glue compiles and links without CUDA.
build_glue() {
	local said
	said=$(flags libnvmepeer_cuda) || return
	cat >"$work/glue.c" <<-'C'
	#include <nvmepeer_cuda.h>
	int main(void)
	{
		struct nvmepeer_cuda *cuda;

		return nvmepeer_cuda_open(0, &cuda) == -2 ? 0 : 1;
	}
	C
	# shellcheck disable=SC2086
	gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$work/example" "$work/glue.c" $said || return
	NVMEPEER_LIBCUDA=/nonexistent "$work/example"
}

build_store() {
	local said
	said=$(flags libnvmepeer_store) || return
	cat >"$work/store.c" <<-'C'
	#include <nvmepeer_store.h>
	int main(void)
	{
		struct nvmepeer_store *store;
		const char *nowhere = "/nonexistent";

		return nvmepeer_store_open(&nowhere, 1, 0, &store) == -2 ? 0 : 1;
	}
	C
	# shellcheck disable=SC2086
	gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$work/example" "$work/store.c" $said && "$work/example"
}

# header NAME: compiles alone, as C and as strict C++.
header() {
	local said
	said=$(flags libnvmepeer_cuda) || return
	printf '#include <%s>\n' "$1" >"$work/header.c"
	# shellcheck disable=SC2086
	gcc -std=gnu11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$work/header.c" $said || return
	# shellcheck disable=SC2086
	g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$work/header.c" $said
}

# A C++ program links to the C names.
build_cxx() {
	local said
	said=$(flags libnvmepeer) || return
	cat >"$work/program.cc" <<-'C'
	#include <nvmepeer_peer.h>
	int main()
	{
		struct nvmepeer_explanation why;
		nvmepeer_cpu_peer *peer = nullptr;
		nvmepeer *ctrl = nullptr;

		if (nvmepeer_version_number() != NVMEPEER_VERSION_NUMBER)
			return 1;
		nvmepeer_cpu_peer_close(peer);
		return nvmepeer_open("nvmep0", &ctrl) == nvmepeer_explain(&why, sizeof(why)) ? 0 : 1;
	}
	C
	# shellcheck disable=SC2086
	g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -o "$work/program" "$work/program.cc" $said || return
	"$work/program"
}

build_cuda() {
	local said packages=libnvmepeer_cuda
	! grep -q '<nvmepeer_uring' "$1" || packages+=' liburing'
	said=$(flags "$packages") || return
	# shellcheck disable=SC2086
	nvcc -std=c++17 -arch=sm_90 -Werror all-warnings -c -o "$work/example.o" "$1" $said &&
		nvcc -arch=sm_90 -o "$work/example" "$work/example.o" $said
}

# A program that declares the C names of all calls links, and a link-time optimiser finds the
# intermediate code, for both architectures.
link_device() {
	local fatbin=$root/usr/lib/nvmepeer/nvmepeer_device.fatbin
	cat >"$work/caller.cu" <<-'CUDA'
	#include <nvmepeer_device_link.h>
	extern "C" {
	__device__ int nvmepeer_numba_read(int *, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t);
	__device__ int nvmepeer_numba_write(int *, uint64_t, uint64_t, uint64_t, uint64_t, uint32_t);
	__device__ int nvmepeer_numba_submit(int64_t *, uint64_t, uint32_t, uint64_t, uint64_t, uint64_t,
					     uint32_t, uint64_t);
	__device__ int nvmepeer_numba_poll(int *, uint64_t, int64_t);
	__device__ int nvmepeer_numba_wait(int *, uint64_t, int64_t, uint64_t);
	__device__ int nvmepeer_numba_quiesce(int *, uint64_t);
	__device__ int nvmepeer_numba_queue(uint64_t *, uint64_t, uint32_t);
	}
	__global__ void caller(uint64_t queues, uint64_t buffer, int *status)
	{
		uint64_t queue = nvmepeer_device_queue(queues, 1);
		int64_t token = nvmepeer_device_submit(queue, 2, buffer, 0, 0, 8, 0);

		status[0] = nvmepeer_device_read(queue, buffer, 0, 0, 8);
		status[1] = nvmepeer_device_write(queue, buffer, 0, 0, 8);
		status[2] = nvmepeer_device_quiesce(queue);
		status[6] = nvmepeer_device_poll(queue, token);
		status[7] = nvmepeer_device_wait(queue, token, 1000);
		status[8] = nvmepeer_device_check(queue);
		nvmepeer_numba_queue(&queue, queues, 2);
		nvmepeer_numba_submit(&token, queue, 2, buffer, 0, 0, 8, 0);
		nvmepeer_numba_poll(&status[9], queue, token);
		nvmepeer_numba_wait(&status[10], queue, token, 1000);
		nvmepeer_numba_read(&status[3], queue, buffer, 0, 0, 8);
		nvmepeer_numba_write(&status[4], queue, buffer, 0, 0, 8);
		nvmepeer_numba_quiesce(&status[5], queue);
	}
	CUDA
	echo 'int main() { caller<<<1, 1>>>(0, 0, nullptr); }' >>"$work/caller.cu"
	nvcc -arch=sm_90 -rdc=true -I"$root/usr/include" -o "$work/program" "$work/caller.cu" \
		"${fatbin%.fatbin}.o" || return
	nvcc -arch=sm_90 -rdc=true -I"$root/usr/include" -cubin -o "$work/caller.cubin" "$work/caller.cu" || return
	nvlink -arch=sm_90 -o "$work/linked.cubin" "$work/caller.cubin" "$fatbin" || return
	# Each part has a header: its kind (8: for link-time optimisation), the header's length, the
	# part's, and the architecture.
	python3 - "$fatbin" <<-'PYTHON'
	import struct, sys

	data, at, found = open(sys.argv[1], "rb").read(), 16, set()
	while at < len(data):
	    kind, _, header, length = struct.unpack_from("<HHIQ", data, at)
	    found.add((kind, struct.unpack_from("<I", data, at + 28)[0]))
	    at += header + length
	sys.exit(not {(8, 80), (8, 90)} <= found)
	PYTHON
}

# jit_link LIBRARY ARCHITECTURE LINKED INPUT...: link as programs do at run time.
jit_link() {
	python3 - "$@" <<-'PYTHON'
	import ctypes, sys

	library, architecture, linked, *inputs = sys.argv[1:]
	jit, link, size = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_size_t()
	options = (ctypes.c_char_p * 2)(b"-lto", f"-arch=sm_{architecture}".encode())
	bad = jit.nvJitLinkCreate(ctypes.byref(link), 2, options)
	for name in inputs:
	    data = open(name, "rb").read()
	    fatbin = 4
	    bad = bad or jit.nvJitLinkAddData(link, fatbin, data, ctypes.c_size_t(len(data)),
					      name.encode())
	bad = bad or jit.nvJitLinkComplete(link)
	if bad:
	    sys.exit(f"nvJitLink: {bad}")
	jit.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size))
	cubin = ctypes.create_string_buffer(size.value)
	jit.nvJitLinkGetLinkedCubin(link, cubin)
	open(linked, "wb").write(cubin.raw)
	PYTHON
}

# With intermediate code the call is inlined into the caller's program; with machine code the called
# function remains.
link_optimised() {
	local fatbin=$root/usr/lib/nvmepeer/nvmepeer_device.fatbin architecture
	for architecture in "${architectures[@]}"; do
		nvcc -gencode "arch=compute_$architecture,code=lto_$architecture" -rdc=true -fatbin \
			-I"$root/usr/include" -o "$work/caller.fatbin" "$work/caller.cu" || return
		jit_link "$1" "$architecture" "$work/linked.cubin" "$work/caller.fatbin" "$fatbin" || return
		readelf -sW "$work/linked.cubin" >"$work/symbols" 2>/dev/null
		grep -q 'FUNC .*caller' "$work/symbols" || return
		! grep 'FUNC .* nvmepeer_device_read$' "$work/symbols" || return
	done
}

# The Python example finds the installed libraries and gets their error: there is no controller
# here.
run_python() {
	local said
	said=$(PYTHONPATH=$top/python PYTHONDONTWRITEBYTECODE=1 python3 "$1" 2>&1) || true
	[[ $said == *'bind a controller'* ]] || { echo "$said"; return 1; }
}

# The Rust example, built with the command of its comment; pkg-config finds the installed library.
run_rust() {
	local said line
	line=$(sed -n 's|^//!  *\(cargo run .*read_block\).*|\1|p' "$1")
	[[ $line ]] || return
	said=$(cd "$top" && CARGO_TARGET_DIR=$work/rust CARGO_NET_OFFLINE=true bash -c "$line" 2>&1) || true
	[[ $said == *'bind a controller'* ]] || { echo "$said"; return 1; }
}

# Each manual page opens, including those that refer to another one.
pages() {
	local page target
	for page in "$root"/usr/share/man/man[137]/*; do
		target=$(sed -n '1s/^\.so //p' "$page")
		[[ -s $root/usr/share/man/${target:-${page#"$root"/usr/share/man/}} ]] || { echo "$page"; return 1; }
	done
	[[ -s $root/usr/share/man/man3/nvmepeer_cuda_queues_open.3 ]]
}

ktap_check "install into a folder" install_all
for example in "$top"/examples/*.c; do
	case $example in
	*/level_zero.c) ktap_check "examples/${example##*/}, gcc" compile_level_zero "$example" ;;
	*) ktap_check "examples/${example##*/}, gcc and pkg-config" build_c "$example" ;;
	esac
done
if command -v clang >/dev/null; then
	ktap_check "examples/minimal.hip, clang" compile_hip "$top/examples/minimal.hip"
else
	ktap_skip "examples/minimal.hip, clang" "no clang: selftests/setup/setup.sh --lint"
fi
ktap_check "the CUDA glue, gcc and pkg-config" build_glue
ktap_check "the store, gcc and pkg-config" build_store
for file in "$root"/usr/include/nvmepeer*.h; do
	ktap_check "${file##*/} by itself, gcc and g++" header "${file##*/}"
done
ktap_check "a program in C++" build_cxx
for example in "$top"/examples/*.py; do
	if grep -q '^import torch' "$example" && ! python3 -c 'import torch' 2>/dev/null; then
		ktap_skip "examples/${example##*/}" "no PyTorch"
	else
		ktap_check "examples/${example##*/}" run_python "$example"
	fi
done
name=examples/read_block.rs
if command -v cargo >/dev/null; then
	ktap_check "$name" run_rust "$top/$name"
else
	ktap_skip "$name" "no Rust: selftests/setup/setup.sh --lint"
fi
ktap_check "manual pages" pages
ktap_check "the command" test -x "$root/usr/sbin/nvme-peer"
ktap_check "its completion" test -s "$root/usr/share/bash-completion/completions/nvme-peer"
ktap_check "its completion for zsh" test -s "$root/usr/share/zsh/site-functions/_nvme-peer"
ktap_check "its dashboard" test -s "$root/usr/share/nvme-peer/nvme-peer.dashboard.json"
ktap_check "names that udev adds" test -s "$root/usr/lib/udev/rules.d/60-nvme-peer.rules"
for example in "$top"/examples/*.cu; do
	name="examples/${example##*/}, nvcc and pkg-config"
	if command -v nvcc >/dev/null; then
		ktap_check "$name" build_cuda "$example"
	else
		ktap_skip "$name" "no nvcc"
	fi
done
if command -v nvcc >/dev/null; then
	ktap_check "device code to link, with all its calls" link_device
	# The first one may be ccache.
	library=$(readlink -f "$(type -aP nvcc | tail -n 1)")
	library=${library%/bin/nvcc}/lib64/libnvJitLink.so
	if [[ -e $library ]]; then
		ktap_check "the same by a linker that optimises" link_optimised "$library"
	else
		ktap_skip "the same by a linker that optimises" "no $library"
	fi
fi
ktap_end
