#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The offloading for vLLM on modelled disks, a simulated kernel and a libcuda without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/fake_cuda.sh
export NVMEPEER_STORE_LIBRARY=$lib/model-libnvmepeer_store.so PYTHONPATH=$PWD/python/tests:$PYTHONPATH
# The store records its failures in that library.
LD_PRELOAD=$NVMEPEER_LIBRARY python3 -W error integrations/vllm/tests/unit_vllm.py
