#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Python package in front of a kernel made of one structure, and its structures and
# numbers against the pinned ones of C.
set -euo pipefail
cd "$(dirname "$0")/../.."
export NVMEPEER_LIBRARY=$PWD/build/user/lib/fake-libnvmepeer.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
exec python3 -W error python/tests/unit.py selftests/abi/nvme_peer.abi selftests/abi/nvmepeer.abi
