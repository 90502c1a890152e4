#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print overview.svg, the picture of README.md and index.rst: control path and data path.

After a change: Documentation/overview.py >Documentation/overview.svg
"""

WIDTH, HEIGHT = 860, 500
HEAD = f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- SPDX-License-Identifier: GPL-2.0-only -->
<!-- Printed by overview.py. -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"
 font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">
<title>One NVMe controller serves the CPU and, through peer queue pairs, a GPU</title>
<style>rect {{ fill: #f3f5f7; stroke: #44505c }} .inner {{ fill: #ffffff }} .module {{ fill: #e6effa }}
line {{ stroke: #44505c; stroke-width: 1.6 }} .peer {{ stroke: #b3261e; stroke-width: 2.6 }}
.once {{ stroke: #1f5fa8; stroke-dasharray: 6 4 }} .name {{ font-weight: bold; font-size: 14px }}
.cpu {{ stroke: #44505c }}</style>
<defs>"""
COLOURS = {"cpu": "#44505c", "peer": "#b3261e", "once": "#1f5fa8"}
MARKER = """<marker id="{kind}" markerWidth="11" markerHeight="11" refX="9" refY="5" orient="auto-start-reverse"
 markerUnits="userSpaceOnUse"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>"""

# Box: x, y, width, height, name, lines of text, class.
BOXES = (
    (20, 20, 310, 70, "CPU programs", ("ext4, fio, nvme-cli, io_uring",), ""),
    (20, 160, 310, 118, "nvme_peer.ko", (
        "owns the controller and its admin queue;",
        "creates, monitors and revokes queue pairs;",
        "maps peer memory through the IOMMU"), "module"),
    (520, 20, 320, 258, "GPU, or another peer", (), ""),
    (540, 52, 280, 62, "GPU threads", ("nvmepeer_read(), nvmepeer_write()",), "inner"),
    (540, 178, 190, 84, "GPU memory", ("rings: SQ and CQ", "data buffers"), "inner"),
    (20, 358, 820, 88, "NVMe controller", (), ""),
    (40, 392, 270, 40, "", ("admin queue and CPU queues",), "inner"),
    (330, 392, 170, 40, "", ("shared namespaces",), "inner"),
    (520, 392, 300, 40, "", ("peer queue pairs",), "inner"),
)

# Arrow: from, to, lines of the label, where the label begins, class, whether it has two heads.
ARROWS = (
    ((230, 90), (230, 160), ("block device, passthrough",), (48, 130), "cpu", True),
    ((230, 278), (230, 392), ("admin and I/O commands",), (48, 323), "cpu", True),
    ((330, 219), (520, 219), ("dma-bufs: rings,", "doorbells, buffers"), (362, 188), "once", True),
    ((600, 114), (600, 178), ("SQEs, CQEs",), (610, 150), "peer", True),
    ((600, 262), (600, 392), ("DMA: SQEs, CQEs, data",), (610, 323), "peer", True),
    ((790, 114), (790, 392), ("doorbells",), (716, 150), "peer", False),
)
KEYS = (
    (20, "cpu", "CPU path"),
    (150, "peer", "peer path: no CPU, no interrupt"),
    (430, "once", "set up once by ioctl; revoked by the module"),
)


def box(x, y, width, height, name, lines, kind):
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>'
    first = 25 if not name else 46
    if name:
        yield f'<text class="name" x="{x + 14}" y="{y + 24}">{name}</text>'
    for row, text in enumerate(lines):
        yield f'<text x="{x + 14}" y="{y + first + 21 * row}">{text}</text>'


def line(start, end, kind, both):
    heads = f'marker-end="url(#{kind})"' + (f' marker-start="url(#{kind})"' if both else "")
    return f'<line class="{kind}" x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" {heads}/>'


def arrow(start, end, lines, at, kind, both):
    yield line(start, end, kind, both)
    for row, text in enumerate(lines):
        yield f'<text x="{at[0]}" y="{at[1] + 19 * row}">{text}</text>'


def key(x, kind, text):
    yield line((x, 475), (x + 40, 475), kind, False)
    yield f'<text x="{x + 50}" y="480">{text}</text>'


def main():
    print(HEAD)
    for kind, colour in COLOURS.items():
        print(MARKER.format(kind=kind, colour=colour))
    print(f'</defs>\n<rect width="{WIDTH}" height="{HEIGHT}" style="fill: #fff; stroke: none"/>')
    for draw, shapes in ((box, BOXES), (arrow, ARROWS), (key, KEYS)):
        for shape in shapes:
            print("\n".join(draw(*shape)))
    print("</svg>")


main()
