#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# model.py through queue pairs that the module has made in a guest: guest_pairs holds them there, the
# software GPU describes them (SOFTGPU_MANIFEST) and does nothing else, the controller is badctrl, and the
# data is in this machine's GPU, whose kernels use the queue pairs and move the data. Needs what disk.sh
# needs and, on a machine without a network, an unpacked bundle of card.sh with the source tree over it.
#
# usage: selftests/cuda/model-guest.sh
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"
if [[ -f $np_source/cache/.bundle ]]; then
	export NVME_PEER_CACHE=$np_source/cache
fi
share=$(mktemp -d /dev/shm/nvme-peer.XXXXXX)
guest='' status=0
trap '[[ ! $guest ]] || kill "$guest" 2>/dev/null || true; rm -rf "$share"' EXIT
# The cache has 4,104 MiB, and an allocation of the software GPU 1 GiB at most.
"$np_source/selftests/run" --no-build --gpu fake --share "$share" --gpu-mb 16384 --disk-mb 4096 --cell 7/off/root -- \
	/build/user/guest_pairs 16 256 8 513 &
guest=$!
"$np_source/selftests/cuda/disk.sh" model.py --guest "$share" || status=$?
wait "$guest" || status=$?
guest=''
exit "$status"
