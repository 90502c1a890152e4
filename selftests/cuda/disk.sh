#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Run a program of this folder with a real GPU, a fake kernel and controllers that are a GPU kernel,
# see disk.cuh: pytorch.py, lists.py, model.py, which need torch and CuPy, the last also transformers, or
# read_list.cu. Needs nvcc and liburing.
#
# usage: disk.sh PROGRAM [ARGUMENT...]
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd -P)
out=$top/build/cuda
library=$out/lib/fake-libnvmepeer_cuda.so
make -s -C "$top/lib" OUT="$out" "$out/lib/libnvmepeer.a"
make -s -C "$top/lib/cuda" OUT="$out" "$library" kernel
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -shared -fPIC -I"$top/include" -I"$top/include/uapi" \
	-o "$out/lib/libcuda-disk.so" "$top/selftests/cuda/disk.c" \
	-Wl,--no-as-needed -L"$out/lib" -l:fake-libnvmepeer_cuda.so -l:libcuda.so.1 -Wl,-rpath,"$out/lib"
make -s -C "$top/lib/store" OUT="$out" "$out/lib/namespace-libnvmepeer_store.so"
export NVMEPEER_STORE_LIBRARY=$out/lib/namespace-libnvmepeer_store.so
export NVMEPEER_LIBRARY=$library NVMEPEER_CUDA_LIBRARY=$library NVMEPEER_LIBCUDA=$out/lib/libcuda-disk.so
export NVMEPEER_LIST_KERNEL=$out/lib/nvmepeer/nvmepeer_list.fatbin
export PYTHONPATH=$top/python:$top/python/tests:$top/selftests/lib CUDA_MODULE_LOADING=EAGER
program=${1:?usage: disk.sh PROGRAM [ARGUMENT...]}
if [[ $program == *.cu ]]; then
	make -s -C "$top/selftests/cuda" OUT="$out" "$out/${program%.cu}-disk"
	exec "$out/${program%.cu}-disk" "${@:2}"
fi
# The store records its failures in that library.
LD_PRELOAD=$library exec python3 "$top/selftests/cuda/$program" "$top" "${@:2}"
