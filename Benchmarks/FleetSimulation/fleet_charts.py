# SPDX-License-Identifier: Apache-2.0

"""Draws the charts of Docs/fleet.md from the tables of FleetSimulation, and prints the tables of the page.

    python3 Benchmarks/FleetSimulation/fleet_charts.py RESULTS [FOLDER]

`run` beside this script makes the tables. Writes `fleet.svg`, `fleet-loss.svg` and `fleet.csv` into FOLDER, by default Docs.
"""

import csv
import math
import os
import shutil
import sys

# What a line of a chart shows: sharing and balancing, its title, its colour, and its dashes.
LINES = {
    ("no-shared-tier", "round-robin"): ("no shared tier", "#c0392b", ""),
    ("no-shared-tier", "result-hash"): ("no shared tier, hash of the URL", "#8e6f00", ""),
    ("no-shared-tier", "source-hash"): ("no shared tier, hash of the source", "#1e8449", ""),
    ("shared-tier", "round-robin"): ("shared tier without locks", "#7d3c98", "9 5"),
    ("single-flight", "round-robin"): ("shared tier with single-flight", "#2471a3", "3 4"),
    ("single-flight", "source-hash"): ("single-flight, hash of the source", "#111111", "1 3"),
}


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def series(rows, key, value):
    """The points of a line: number of nodes and value."""
    return [(int(r["nodes"]), value(r)) for r in rows if (r["sharing"], r["balancing"]) == key]


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def short(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def panel(left, top, title, lines, ticks, scale=math.log10, bounds=None):
    """A chart of values by the number of nodes, on logarithmic axes."""
    width, height = 380, 230
    most = max(n for _, points in lines for n, _ in points)
    low, high = (scale(b) for b in bounds)
    x = lambda nodes: left + math.log10(nodes) / math.log10(most) * width
    y = lambda value: top + height - (scale(max(value, bounds[0])) - low) / (high - low) * height
    out = [
        f'<text x="{left}" y="{top - 12}" font-weight="bold">{escaped(title)}</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>',
    ]
    for tick in ticks:
        out.append(f'<path d="M{left} {y(tick):.1f}h{width}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for nodes in [1, 3, 10, 30, 100, 300, 1000]:
        if nodes <= most:
            out.append(f'<path d="M{x(nodes):.1f} {top}v{height}" stroke="#eee"/>')
            out.append(f'<text x="{x(nodes):.1f}" y="{top + height + 16}" text-anchor="middle">{nodes:,}</text>')
    for key, points in lines:
        _, color, dashes = LINES[key]
        path = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.4" stroke-dasharray="{dashes}"/>')
    return out


def legend(left, top, keys):
    out = []
    for row, key in enumerate(keys):
        title, color, dashes = LINES[key]
        x, y = left + row % 3 * 290, top + row // 3 * 20
        out.append(f'<path d="M{x} {y}h34" stroke="{color}" stroke-width="2.4" stroke-dasharray="{dashes}"/>')
        out.append(f'<text x="{x + 42}" y="{y + 4}">{title}</text>')
    return out


def document(width, height, title, body):
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
            ' font-family="sans-serif" font-size="12" role="img">',
            f"<title>{escaped(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def sizes_chart(rows, slow, rate=20):
    commands = lambda r: float(r["shared_per_1000"]) / 1000 * rate * int(r["nodes"])
    lines = lambda rows, keys, value: [(key, series(rows, key, value)) for key in keys]
    keys = list(LINES)
    body = panel(
        70, 50, "Requests to the origin for each 1,000 requests of clients",
        lines(rows, keys[:5], lambda r: float(r["origin_per_1000"])), [1, 3, 10, 30, 100, 300, 1000], bounds=(1, 1000),
    )
    body += panel(
        530, 50, "Most requests at once for one source: empty caches, slow origin",
        lines(slow, keys[:2] + keys[3:5], lambda r: float(r["first_most_at_once"])), [1, 3, 10, 30, 100, 300, 1000],
        bounds=(0.9, 1100),
    )
    body += panel(
        70, 350, "Commands to the shared tier a second",
        lines(rows, keys[4:], commands), [10, 100, 1000, 10000, 100000], bounds=(10, 100000),
    )
    body += panel(
        530, 350, "Requests of the busiest server, as a multiple of the mean",
        lines(rows, [keys[1], keys[2], keys[4]], lambda r: float(r["busiest_node"])), [1, 2, 5, 10, 20, 50], bounds=(0.9, 60),
    )
    body += ['<text x="450" y="620" text-anchor="end">servers</text>', '<text x="910" y="620" text-anchor="end">servers</text>']
    body += legend(70, 640, keys)
    return document(940, 680, "What the origin and the shared tier of a fleet receive, by its number of servers", body)


def loss_chart(rows, begin=660, end=860):
    """Requests to the origin in each second around the loss of nodes."""
    left, top, width, height, most = 70, 50, 800, 260, 0
    keys = [("no-shared-tier", "round-robin"), ("no-shared-tier", "source-hash"), ("single-flight", "round-robin")]
    lines = {}
    for key in keys:
        # The mean of the last five seconds, so that the lines are calm enough to tell them apart.
        counts = {int(r["second"]): int(r["origin_requests"]) for r in rows if (r["sharing"], r["balancing"]) == key}
        lines[key] = [(s, sum(counts.get(s + d, 0) for d in range(-4, 1)) / 5) for s in range(begin, end)]
        most = max(most, max(v for _, v in lines[key]))
    most = math.ceil(most / 20) * 20
    x = lambda second: left + (second - begin) / (end - begin) * width
    y = lambda value: top + height - value / most * height
    body = [
        f'<text x="{left}" y="{top - 20}" font-weight="bold">Requests to the origin a second, when five of ten servers are lost'
        " for a minute</text>",
        f'<rect x="{x(700):.1f}" y="{top}" width="{x(760) - x(700):.1f}" height="{height}" fill="#f2f2f2"/>',
        f'<text x="{x(730):.1f}" y="{top + 16}" text-anchor="middle">five servers left</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>',
    ]
    for tick in range(0, most + 1, 20):
        body.append(f'<path d="M{left} {y(tick):.1f}h{width}" stroke="#ddd"/>')
        body.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    for second in range(begin, end + 1, 20):
        body.append(f'<text x="{x(second):.1f}" y="{top + height + 16}" text-anchor="middle">{second - 700}</text>')
    body.append(f'<text x="{left + width}" y="{top + height + 34}" text-anchor="end">seconds after the loss</text>')
    for key in keys:
        _, color, _ = LINES[key]
        path = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in lines[key])
        body.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
    for row, key in enumerate(keys):
        title, color, _ = LINES[key]
        body.append(f'<path d="M{left + row * 280} 372h34" stroke="{color}" stroke-width="2"/>')
        body.append(f'<text x="{left + 42 + row * 280}" y="376">{title}</text>')
    return document(940, 395, "Requests to the origin when servers are lost", body)


def table(title, header, lines):
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def by_nodes(rows, value):
    """A line for each kind of fleet, with a cell for each number of nodes."""
    return [
        [f"{sharing}, {balancing}"] + [value(r) for r in rows if (r["sharing"], r["balancing"]) == (sharing, balancing)]
        for sharing, balancing in dict.fromkeys((r["sharing"], r["balancing"]) for r in rows)
    ]


def print_tables(folder, rows, slow):
    nodes = [f"{n:,}" for n in dict.fromkeys(int(r["nodes"]) for r in rows)]
    for title, value in [
        ("Origin requests per 1,000", lambda r: f"{float(r['origin_per_1000']):.1f}"),
        ("Duplicates per 1,000", lambda r: f"{float(r['duplicates_per_1000']):.2f}"),
        ("Commands to the shared tier per 1,000", lambda r: f"{float(r['shared_per_1000']):,.0f}"),
        ("Local hits, per cent", lambda r: f"{100 * float(r['local_hit_ratio']):.1f}"),
        ("Requests without a new result, per cent", lambda r: f"{100 * float(r['hit_ratio']):.1f}"),
        ("Busiest node", lambda r: r["busiest_node"]),
        ("First ten seconds: origin requests", lambda r: f"{int(r['first_origin_requests']):,}"),
        ("First ten seconds: duplicates", lambda r: f"{int(r['first_duplicates']):,}"),
        ("First ten seconds: most at once", lambda r: r["first_most_at_once"]),
        ("MiB read from the shared tier", lambda r: r["shared_mebibytes_read"]),
    ]:
        table(title, ["fleet", *nodes], by_nodes(rows, value))
    table("Slow origin, first ten seconds: origin requests, duplicates, most at once", ["fleet", *nodes], by_nodes(
        slow, lambda r: f"{int(r['first_origin_requests']):,}; {int(r['first_duplicates']):,}; {r['first_most_at_once']}"
    ))
    names = sorted(n[:-4] for n in os.listdir(folder) if n.startswith(("shared-", "local-", "exponent-", "loss.", "trace.")))
    lines = []
    for name in names:
        for r in read(os.path.join(folder, f"{name}.csv")):
            lines.append([
                name, r["nodes"], r["sharing"], r["balancing"], r["origin_per_1000"], r["duplicates_per_1000"],
                r["shared_per_1000"], r["look_ups_per_1000"], r["local_hit_ratio"], r["hit_ratio"],
                r["shared_mebibytes_stored"], r["shared_evictions"], r["lost"],
            ])
    table("Variations", [
        "table", "nodes", "sharing", "balancing", "origin", "duplicates", "shared tier", "look-ups", "local hits", "hits",
        "MiB stored", "evictions", "lost",
    ], lines)


def main():
    results = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(__file__), "..", "..", "Docs")
    rows = read(os.path.join(results, "sizes.csv"))
    slow = read(os.path.join(results, "slow-origin.csv"))
    with open(os.path.join(folder, "fleet.svg"), "w") as out:
        out.write(sizes_chart(rows, slow))
    with open(os.path.join(folder, "fleet-loss.svg"), "w") as out:
        out.write(loss_chart(read(os.path.join(results, "loss-timeline.csv"))))
    shutil.copyfile(os.path.join(results, "sizes.csv"), os.path.join(folder, "fleet.csv"))
    print_tables(results, rows, slow)


main()
