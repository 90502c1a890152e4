#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The picture of index.rst as SVG, on standard output: who talks to whom, and over what."""

WIDTH, HEIGHT = 760, 430
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"
 font-family="sans-serif" font-size="13">
<style>rect {{ fill: #f4f4f4; stroke: #333 }} .inner {{ fill: #fff }}
line {{ stroke: #333; stroke-width: 1.5; marker-end: url(#tip) }} .peer {{ stroke: #b30000; stroke-width: 2.5 }}
.once {{ stroke-dasharray: 5 4 }} .name {{ font-weight: bold }} .small {{ font-size: 12px }}</style>
<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"
 markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" style="fill: #fff; stroke: none"/>"""

# Box: x, y, width, height, name, what stands below it, class.
BOXES = (
    (20, 20, 310, 60, "programs of the CPU", ("file systems, fio, nvme-cli, io_uring",), ""),
    (440, 20, 300, 240, "GPU, or another peer", (), ""),
    (460, 55, 260, 60, "its kernels", ("nvmepeer_read(), nvmepeer_write()",), "inner"),
    (460, 155, 190, 90, "its memory", ("rings of entries", "data"), "inner"),
    (20, 130, 310, 130, "nvme_peer.ko", (
        "keeps the admin queue; makes queue pairs,",
        "maps memory for the controller, watches it,",
        "resets it; takes away what it gave"), ""),
    (20, 350, 720, 60, "NVMe controller", (
        "the same namespaces by queues of the CPU and by queue pairs of peers",), ""),
)

# Arrow: from, to, label, where the label begins, class.
ARROWS = (
    ((120, 80), (120, 130), "block device, ioctl, io_uring", (128, 110), ""),
    ((120, 260), (120, 350), "admin queue, queues of the CPU", (128, 310), ""),
    ((330, 180), (440, 180), "dma-bufs, once", (338, 172), "once"),
    ((500, 115), (500, 155), "entries", (508, 140), "peer"),
    ((690, 115), (690, 350), "doorbells", (622, 290), "peer"),
    ((500, 350), (500, 245), "entries, data", (508, 310), "peer"),
)


def box(x, y, width, height, name, below, kind):
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'
    yield f'<text class="name" x="{x + 12}" y="{y + 22}">{name}</text>'
    for row, text in enumerate(below):
        yield f'<text x="{x + 12}" y="{y + 44 + 20 * row}">{text}</text>'


def arrow(start, end, label, at, kind):
    yield (f'<line class="{kind}" x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}"/>'
           f'<text class="small" x="{at[0]}" y="{at[1]}">{label}</text>')


def main():
    print(HEAD)
    for shape in BOXES:
        print("\n".join(box(*shape)))
    for shape in ARROWS:
        print("\n".join(arrow(*shape)))
    print("</svg>")


main()
