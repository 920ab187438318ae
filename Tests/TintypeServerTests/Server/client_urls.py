# SPDX-License-Identifier: Apache-2.0
"""Prints the targets that the client `imgproxy` of PyPI makes for a source, as lines of JSON.

The arguments are the URL of a PNG of 200x100 pixels, and optionally a key and a salt.
Each line has the size and the format that the target asks for.
"""

import json
import sys

from imgproxy import ImgProxy

source = sys.argv[1]
keys = {"key": sys.argv[2], "salt": sys.argv[3]} if len(sys.argv) > 2 else {}


def show(size, *options, extension="png", **arguments):
    suffix = {} if extension == "png" else {"extension": extension}
    text = str(ImgProxy.factory(*options, proxy_host="", **keys, **suffix, **arguments)(source))
    kind = "jpeg" if extension == "jpg" else extension
    print(json.dumps({"target": text, "width": size[0], "height": size[1], "format": kind}))


# Types, without and with a format.
for kind, size in [
    ("fit", (80, 40)),
    ("fill", (80, 60)),
    ("auto", (80, 60)),
]:
    for extension in ["png", "jpg", "webp", "gif"]:
        show(size, resizing_type=kind, width=80, height=60, extension=extension)

# One side.
show((50, 25), width=50)
show((100, 50), height=50)
show((200, 100), width=500)
show((400, 200), width=400, enlarge=True)
show((400, 200), width=400, enlarge=True, extension="webp")

# Gravities.
for gravity in ["no", "so", "ea", "we", "noea", "nowe", "soea", "sowe", "ce", "sm", "fp:0.25:0.75", "no:0:5"]:
    show((40, 40), resizing_type="fill", width=40, height=40, gravity=gravity)

# Options of their own.
for size, option in [
    ((50, 25), "blur:0.5"),
    ((50, 25), "sharpen:0.7"),
    ((50, 25), "q:70"),
    ((50, 25), "quality:30"),
    ((50, 100), "rot:90"),
    ((50, 25), "rot:180"),
    ((50, 25), "bg:ff0000"),
    ((50, 25), "background:1:2:3"),
    ((70, 45), "padding:10"),
    ((50, 25), "cb:abc"),
    ((50, 25), "cachebuster:%C3%A9"),
    ((50, 25), "fn:cat"),
    ((50, 25), "exp:4102444800"),
    ((50, 25), "sm:1"),
    ((50, 25), "scp:1"),
    ((50, 25), "kcr:0"),
    ((50, 25), "fl:1"),
    ((50, 25), "pix:3"),
    ((50, 25), "mb:100000"),
    ((50, 50), "c:50:50"),
    ((50, 25), "dpr:1"),
    ((100, 50), "dpr:2"),
]:
    show(size, option, width=50)

# Several at once.
show((60, 60), "q:50", "blur:1", "pd:10", resizing_type="fill", width=40, height=40, extension="jpg")
show((40, 40), "rot:270", "fl:0:1", resizing_type="fill", width=40, height=40, gravity="no", extension="webp")
show((30, 15), "cb:1", "fn:x", "att:1", width=30, extension="jpg")
