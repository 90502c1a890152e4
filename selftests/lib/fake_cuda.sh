# SPDX-License-Identifier: GPL-2.0-only
# For unit tests of what uses CUDA, sourced in the root of the tree: the C libraries with a simulated
# kernel, and a libcuda without a GPU. Sets lib, the folder of the libraries.

np_params=$(mktemp)
trap 'rm -f "$np_params"' EXIT
echo 'RegistryDwords: "PeerMappingOverride=1"' >"$np_params"
lib=$PWD/build/user/lib
export NVMEPEER_LIBRARY=$lib/fake-libnvmepeer_cuda.so NVMEPEER_CUDA_LIBRARY=$lib/fake-libnvmepeer_cuda.so
export NVMEPEER_LIBCUDA=$lib/fake-libcuda.so NVMEPEER_NVIDIA_PARAMS=$np_params
export PYTHONPATH=$PWD/python:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
