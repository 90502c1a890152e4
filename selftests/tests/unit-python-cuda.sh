#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvmepeer.cuda of the Python package on a simulated kernel and a libcuda without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
params=$(mktemp)
trap 'rm -f "$params"' EXIT
echo 'RegistryDwords: "PeerMappingOverride=1"' >"$params"
lib=$PWD/build/user/lib
export NVMEPEER_LIBRARY=$lib/fake-libnvmepeer_cuda.so NVMEPEER_CUDA_LIBRARY=$lib/fake-libnvmepeer_cuda.so
export NVMEPEER_LIBCUDA=$lib/fake-libcuda.so NVMEPEER_NVIDIA_PARAMS=$params
export PYTHONPATH=$PWD/python:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
python3 -W error python/tests/unit_cuda.py selftests/abi/nvmepeer.abi
