# SPDX-License-Identifier: MIT OR GPL-2.0
"""Fill a paged cache of PyTorch from a list of blocks, on the current stream.

usage: read_pages.py [CONTROLLER NAMESPACE]      default: nvmep0 ngp0n1
"""
import sys

import nvmepeer
import torch
from nvmepeer import cuda

LAYERS, PAGES, BYTES = 32, 64, 41984    # 64 tokens of 656 bytes

nodes = sys.argv[1:3] if len(sys.argv) > 2 else ["nvmep0", "ngp0n1"]
cache = torch.zeros(LAYERS, PAGES, BYTES, dtype=torch.uint8, device="cuda")
controller, namespace, gpu = nvmepeer.Controller(nodes[0]), nvmepeer.Namespace(nodes[1]), cuda.Gpu(0)
queues = cuda.Queues(controller, namespace, gpu)
lists = cuda.Lists(queues, [cache])
layers = [cuda.tensor(layer * PAGES * BYTES, BYTES, BYTES) for layer in range(LAYERS)]
blocks = cuda.lay_out(layers, queues.block_size)
wanted = [cuda.page(slot * blocks, number) for slot, number in enumerate([7, 3, 12])]
tensors, pages = torch.tensor(layers, device="cuda"), torch.tensor(wanted, device="cuda")
statuses = torch.full((len(wanted), LAYERS), -1, dtype=torch.int32, device="cuda")
lists.read(tensors=tensors, pages=pages, statuses=statuses)
for status in statuses.flatten().tolist():    # waits for the stream
    cuda.check(status)
print(cache[:, [7, 3, 12]].sum(dim=2))
queues.close()
lists.close()
