#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The Python package on a real controller: its example reads what was written, into a udmabuf, which
# older kernels lack; files on the disk, also through a served queue pair.
#
# kernels: 7
# iommu: on
# timeout: 90
set -uo pipefail
. /selftests/lib/bind.sh
. /selftests/lib/example.sh
. /selftests/lib/ktap.sh

export PYTHONPATH=/build/user/python LD_LIBRARY_PATH=/build/user/lib PYTHONDONTWRITEBYTECODE=1
np_bind np0 || exit 1
node=$(np_node np0)
np_until 200 test -e "/dev/ngp${node#nvmep}n1"
mount=$(mktemp -d)
trap 'umount "$mount" 2>/dev/null' EXIT

# A loss is an event of the queue pair's file, and the queue pair is re-armed.
comes_back() {
	python3 - "$node" <<-'PYTHON'
	import errno, select, sys, time
	import nvmepeer

	with nvmepeer.Controller(sys.argv[1]) as controller, controller.create_queue_pair(16) as qp:
	    poll = select.poll()
	    poll.register(qp.fileno(), select.POLLPRI)
	    assert not poll.poll(0)
	    losses = qp.info().losses
	    with open(f"/sys/class/nvme-peer/{sys.argv[1]}/reset_controller", "w") as reset:
	        reset.write("1")
	    assert poll.poll(20000)
	    event = qp.read_events()[0]
	    assert event.type == nvmepeer.EventType.STATE, event.type
	    assert event.state == nvmepeer.QueuePairState.QUIESCED, event.state
	    for _ in range(1000):
	        try:
	            generation = qp.rearm(losses + 1)
	            break
	        except nvmepeer.Error as error:
	            assert error.errno == errno.EAGAIN, error
	            time.sleep(0.02)
	    info = qp.info()
	    assert (info.state, info.generation) == (nvmepeer.QueuePairState.LIVE, generation)
	PYTHON
}

ktap_check "the example reads what was written" example_reads_back "$node" python3 /build/user/python/read_block.py
ktap_check "a loss is reported and the queue pair re-armed" comes_back
ktap_check "make files on ext4" example_files "$node" "$mount"
ktap_check "files are checked, in a window, pinned and served" python3 /build/user/python/device.py "$node" "$mount"
ktap_end
