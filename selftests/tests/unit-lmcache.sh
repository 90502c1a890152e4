#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The back end for LMCache on modelled disks, a simulated kernel and a libcuda without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
params=$(mktemp)
trap 'rm -f "$params"' EXIT
echo 'RegistryDwords: "PeerMappingOverride=1"' >"$params"
lib=$PWD/build/user/lib
export NVMEPEER_LIBRARY=$lib/fake-libnvmepeer_cuda.so NVMEPEER_CUDA_LIBRARY=$lib/fake-libnvmepeer_cuda.so
export NVMEPEER_STORE_LIBRARY=$lib/model-libnvmepeer_store.so
export NVMEPEER_LIBCUDA=$lib/fake-libcuda.so NVMEPEER_NVIDIA_PARAMS=$params
export PYTHONPATH=$PWD/python:$PWD/python/tests:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
# The store records its failures in that library.
LD_PRELOAD=$NVMEPEER_LIBRARY python3 -W error integrations/lmcache/tests/unit_lmcache.py
