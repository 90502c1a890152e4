#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# NIXL's plug-in in a host that does what NIXL does, on modelled disks, a simulated kernel and a
# libcuda without a GPU; blocks of host memory on a file.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$PWD/build/user
if [[ ! -x $build/nixl/nixl-host ]]; then
	. selftests/lib/ktap.sh
	ktap_skip "the plug-in" "no C++ compiler: selftests/setup/setup.sh --lint"
	ktap_end
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
truncate -s 1M "$work/disk"
echo 'RegistryDwords: "PeerMappingOverride=1"' >"$work/params"
export NVMEPEER_LIBCUDA=$build/lib/fake-libcuda.so NVMEPEER_NVIDIA_PARAMS=$work/params
export LD_LIBRARY_PATH=$build/lib
# They replace the libraries that the plug-in is linked with.
LD_PRELOAD="$build/lib/model-libnvmepeer_store.so $build/lib/fake-libnvmepeer_cuda.so" \
	"$build/nixl/nixl-host" "$build/nixl/libplugin_NVMEPEER.so" "$work/disk" 2>"$work/said" || {
	cat "$work/said"
	exit 1
}
