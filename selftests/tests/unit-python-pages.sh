#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Pages of nvmepeer.store that a peer writes and reads, on files that count as namespaces.
set -euo pipefail
cd "$(dirname "$0")/../.."
lib=$PWD/build/user/lib
export NVMEPEER_LIBRARY=$lib/fake-libnvmepeer.so NVMEPEER_STORE_LIBRARY=$lib/namespace-libnvmepeer_store.so
export PYTHONPATH=$PWD/python:$PWD/selftests/lib PYTHONDONTWRITEBYTECODE=1
# The store records its failures in that library.
LD_PRELOAD=$NVMEPEER_LIBRARY exec python3 -W error python/tests/unit_store_pages.py
