#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvmepeer.cuda of the Python package on a simulated kernel and a libcuda without a GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
. selftests/lib/fake_cuda.sh
python3 -W error python/tests/unit_cuda.py selftests/abi/nvmepeer.abi
