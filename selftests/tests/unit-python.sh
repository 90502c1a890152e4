#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Python package on a simulated kernel, and its structures and numbers against C's pinned ABI.
set -euo pipefail
cd "$(dirname "$0")/../.."
export NVMEPEER_LIBRARY=$PWD/build/user/lib/fake-libnvmepeer.so PYTHONPATH=$PWD/python:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
exec python3 -W error python/tests/unit.py selftests/abi/nvme_peer.abi selftests/abi/nvmepeer.abi
