#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# nvmepeer.store of the Python package, on files, and its structures against C's pinned ABI.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LD_LIBRARY_PATH=$PWD/build/user/lib PYTHONPATH=$PWD/python:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
exec python3 -W error python/tests/unit_store.py selftests/abi/nvmepeer.abi
