# SPDX-License-Identifier: Apache-2.0

"""Draws how fast PNGs are written against how large they get, for every level of Tintype and of its peers.

    .ci/beside Benchmarks -c release --product TintypeBenchmarks
    Benchmarks/.venv/bin/python Benchmarks/peers/png_curve.py .build/release/TintypeBenchmarks CORPUS [SECONDS]

Writes `png-curve.svg` beside the README and prints the table that stands there. Each round measures every setting once, in
an order that is shuffled anew; the figure is the median of the processor times. Settings that a whole second is too short
for are measured less often. oxipng is optional (`pip install pyoxipng`).
"""

import io
import os
import random
import statistics
import subprocess
import sys
import time

os.environ["VIPS_CONCURRENCY"] = "1"
os.environ["RAYON_NUM_THREADS"] = "1"

import pyvips
from PIL import Image

IMAGES = [
    ("photograph, 0.4 MP", "photos/3.png", "RGB"),
    ("photograph, 1.4 MP", "photos/webpvp8.webp", "RGB"),
    ("drawing, 3 MP", "photos/60430844748882ff66b9a5598ef06dd6.png", "RGB"),
    ("diagram, 8 MP", "photos/Exoplanet_Phase_Curve__Diagram_.png", "RGB"),
    ("cut-out with alpha, 0.5 MP", "webp/3_webp_a.webp", "RGBA"),
]
FILTERS = ["none", "sub", "up", "avg", "paeth", "all"]
PEER_LEVELS = [1, 2, 4, 6, 9]
COLORS = {"Tintype": "#c0392b", "pyvips": "#2471a3", "Pillow": "#1e8449", "oxipng": "#8e6f00"}


def pillow(picture, level):
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=level)
    return out.tell()


def settings(path, mode, program):
    """The sides of an image: name, setting, and what returns processor seconds and bytes."""
    picture = Image.open(path)
    picture.load()
    picture = picture.convert(mode)
    pixels = picture.tobytes()
    bands = pyvips.Image.new_from_memory(pixels, picture.width, picture.height, len(mode), "uchar")
    bands = bands.copy(interpretation="srgb").copy_memory()
    ours = subprocess.Popen(
        [program, "--job", "png-levels", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def tintype(level):
        ours.stdin.write(f"{level}\n")
        ours.stdin.flush()
        seconds, count, _ = ours.stdout.readline().split()
        return float(seconds), int(count)

    def timed(work):
        start = time.process_time()
        count = work()
        return time.process_time() - start, count

    sides = [("Tintype", str(level), lambda level=level: tintype(level)) for level in range(1, 10)]
    for level in PEER_LEVELS:
        sides.append(("Pillow", str(level), lambda level=level: timed(lambda: pillow(picture, level))))
        for name in FILTERS:
            save = lambda level=level, name=name: len(bands.pngsave_buffer(compression=level, filter=name, keep="none"))
            sides.append(("pyvips", f"{level} {name}", lambda save=save: timed(save)))
    try:
        import oxipng

        kind = oxipng.ColorType.rgba() if mode == "RGBA" else oxipng.ColorType.rgb()
        raw = oxipng.RawImage(pixels, picture.width, picture.height, color_type=kind)
        for level in range(0, 4):
            save = lambda level=level: len(raw.create_optimized_png(level=level))
            sides.append(("oxipng", str(level), lambda save=save: timed(save)))
    except ImportError:
        pass
    return picture.width * picture.height / 1e6, sides


def measure(path, mode, program, budget):
    """Megapixels a second and bytes of each setting."""
    megapixels, sides = settings(path, mode, program)
    times = {side[:2]: [] for side in sides}
    sizes = {}
    end = time.monotonic() + budget
    for number in range(15):
        random.shuffle(sides)
        for side in sides:
            key = side[:2]
            # What is slow is known well after few rounds.
            if number > 0 and (time.monotonic() > end or sum(times[key]) > budget / 40 and len(times[key]) > 2):
                continue
            seconds, sizes[key] = side[2]()
            times[key].append(seconds)
    return {key: (megapixels / statistics.median(times[key]), sizes[key]) for key in sizes}


def front(points):
    """The points that no other of the same side surpasses in speed and size, the fastest first."""
    result = []
    for key, (speed, size) in sorted(points.items(), key=lambda item: (-item[1][0], item[1][1])):
        if not result or size < result[-1][2]:
            result.append((key[1], speed, size))
    return result


def chart(results):
    width, height, left, top, step = 560, 250, 70, 50, 310
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 120}" height="{step * len(results) + 20}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    import math

    for index, (title, points) in enumerate(results):
        y0 = top + index * step
        fronts = {name: front({k: v for k, v in points.items() if k[0] == name}) for name in COLORS}
        shown = [point for line in fronts.values() for point in line]
        speeds, sizes = [p[1] for p in shown], [p[2] for p in shown]
        low, high = math.log(min(speeds) * 0.9), math.log(max(speeds) * 1.1)
        least, most = min(sizes) * 0.97, max(sizes) * 1.03
        x = lambda speed: left + (math.log(speed) - low) / (high - low) * width
        y = lambda size: y0 + height - (size - least) / (most - least) * height
        out.append(f'<text x="{left}" y="{y0 - 12}" font-size="14" font-weight="bold">{title}</text>')
        out.append(f'<rect x="{left}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#888"/>')
        for speed in [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]:
            if not low <= math.log(speed) <= high:
                continue
            out.append(f'<path d="M{x(speed):.1f} {y0}v{height}" stroke="#ddd"/>')
            out.append(f'<text x="{x(speed):.1f}" y="{y0 + height + 14}" text-anchor="middle">{speed:g}</text>')
        for part in range(5):
            size = least + (most - least) * part / 4
            out.append(f'<text x="{left - 6}" y="{y(size) + 4:.1f}" text-anchor="end">{size / 1000:.0f} kB</text>')
        for row, (name, line) in enumerate(fronts.items()):
            if not line:
                continue
            path = " ".join(f"{x(p[1]):.1f},{y(p[2]):.1f}" for p in line)
            out.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="1.6"/>')
            for label, speed, size in line:
                out.append(f'<circle cx="{x(speed):.1f}" cy="{y(size):.1f}" r="2.6" fill="{COLORS[name]}"/>')
                if name == "Tintype":
                    out.append(f'<text x="{x(speed) + 4:.1f}" y="{y(size) - 5:.1f}" fill="{COLORS[name]}">{label}</text>')
            out.append(f'<text x="{left + width + 8}" y="{y0 + 14 + 15 * row}" fill="{COLORS[name]}">{name}</text>')
        out.append(f'<text x="{left + width}" y="{y0 + height + 28}" text-anchor="end">megapixels a second of processor time</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def table(results):
    lines = ["| image | Tintype: MP/s, kB | the smallest of a peer that is as fast | the fastest peer that is as small |", "|---|---|---|---|"]
    for title, points in results:
        peers = {key: value for key, value in points.items() if key[0] != "Tintype"}
        for level in range(1, 10):
            speed, size = points[("Tintype", str(level))]
            faster = [(v[1], k, v[0]) for k, v in peers.items() if v[0] >= speed]
            smaller = [(v[0], k, v[1]) for k, v in peers.items() if v[1] <= size]
            cells = []
            for found in (min(faster, default=None), max(smaller, default=None)):
                if not found:
                    cells.append("none")
                    continue
                key = found[1]
                other = peers[key]
                cells.append(f"{key[0]} {key[1]}: {other[0]:.1f}, {other[1] / 1000:.0f}")
            lines.append(f"| {title}, level {level} | {speed:.1f}, {size / 1000:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shortfalls(results):
    """The peers' settings that are faster and smaller than each of ours."""
    for title, points in results:
        ours = [value for key, value in points.items() if key[0] == "Tintype"]
        for key, (speed, size) in sorted(points.items()):
            if key[0] != "Tintype" and not any(o[0] >= speed and o[1] <= size for o in ours):
                print(f"above ours: {title}, {key[0]} {key[1]}: {speed:.1f} MP/s, {size / 1000:.1f} kB", file=sys.stderr)


def main():
    program, corpus = sys.argv[1:3]
    budget = float(sys.argv[3]) if len(sys.argv) > 3 else 40
    results = [(title, measure(os.path.join(corpus, path), mode, program, budget)) for title, path, mode in IMAGES]
    with open(os.path.join(os.path.dirname(__file__), "..", "png-curve.svg"), "w") as out:
        out.write(chart(results))
    print(table(results))
    shortfalls(results)


main()
