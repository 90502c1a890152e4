# SPDX-License-Identifier: MIT OR GPL-2.0
"""Read the first block of a namespace twice: by the kernel, and by a queue pair of this
process's own, and write it to standard output.

usage: read_block.py [CONTROLLER NAMESPACE]      default: nvmep0 ngp0n1
"""
import sys

import nvmepeer


def main() -> int:
    nodes = sys.argv[1:3] if len(sys.argv) > 2 else ["nvmep0", "ngp0n1"]
    try:
        with nvmepeer.Controller(nodes[0]) as controller, nvmepeer.Namespace(nodes[1]) as namespace:
            block = namespace.read(0, 1)
            with nvmepeer.CpuPeer(controller, namespace) as peer:
                peer.read(0, 0, 1)
                same = bytes(peer.memory[:len(block)]) == block
    except nvmepeer.Error as refusal:
        sys.exit(str(refusal))
    sys.stdout.buffer.write(block)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
