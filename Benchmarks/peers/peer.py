# SPDX-License-Identifier: Apache-2.0

"""The Python peers: one long-lived process that the harness asks for work.

Requests and answers are JSON objects, one a line, on standard input and output. Files are
read once and kept, so that a measured run touches memory only; times are taken here, around
the work alone. Everything runs on one thread.

`peer.py --peak JOB PATH` does one job in a fresh process and prints its memory instead.
"""

import io
import json
import os
import sys
import time

os.environ["VIPS_CONCURRENCY"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"


def pillow_decode(data, options):
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    picture.load()
    return {"width": picture.width, "height": picture.height, "bytes": 0}


def vips_decode(data, options):
    picture = pyvips().Image.new_from_buffer(data, "", access="sequential")
    pixels = picture.write_to_memory()
    assert len(pixels) == picture.width * picture.height * picture.bands
    return {"width": picture.width, "height": picture.height, "bytes": len(pixels)}


def pillow_thumbnail(data, options):
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    side = options["side"]
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return finish_pillow(upright(picture), options)


def upright(picture):
    """Turns by the EXIF tag alone: Pillow's own function also believes XMP, and no other side does."""
    from PIL import Image

    exif = Image.Exif()
    exif.load(picture.info.get("exif", b""))
    turn = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }.get(exif.get(0x0112))
    return picture if turn is None else picture.transpose(turn)


def finish_pillow(picture, options):
    out = io.BytesIO()
    kind = options["format"]
    if kind == "png":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, {"jpeg": "JPEG", "webp": "WEBP"}[kind], quality=options["quality"])
    return {"width": picture.width, "height": picture.height, "bytes": out.tell(), "data": out.getvalue()}


def vips_thumbnail(data, options):
    return finish_vips(pyvips().Image.thumbnail_buffer(data, options["side"], size="down"), options)


def finish_vips(picture, options):
    kind = options["format"]
    # No metadata in the output, as on the other sides: a camera's can weigh more than the picture.
    if kind == "png":
        out = picture.pngsave_buffer(compression=1, keep="none")
    elif kind == "jpeg":
        out = picture.jpegsave_buffer(Q=options["quality"], keep="none")
    else:
        out = picture.webpsave_buffer(Q=options["quality"], keep="none")
    return {"width": picture.width, "height": picture.height, "bytes": len(out), "data": out}


def pillow_frames(data, options):
    """Every frame as it looks when it is shown, in RGBA."""
    from PIL import Image, ImageSequence

    count = 0
    with Image.open(io.BytesIO(data)) as animation:
        for frame in ImageSequence.Iterator(animation):
            size = frame.convert("RGBA").size
            count += 1
    assert count == options["frames"], f"{count} frames"
    return {"width": size[0], "height": size[1], "bytes": 0}


DECODED = {}


def decoded(library, data, decode):
    """The picture in `data`, decoded once and kept: encoding is measured without it."""
    key = (library, id(data))
    if key not in DECODED:
        DECODED[key] = decode(data)
    return DECODED[key]


def pillow_encode(data, options):
    from PIL import Image

    picture = decoded("pillow", data, lambda data: Image.open(io.BytesIO(data)).convert("RGB"))
    out = io.BytesIO()
    if options["format"] == "png":
        picture.save(out, "PNG", compress_level=options["level"])
    elif options["format"] == "jpeg":
        picture.save(out, "JPEG", quality=options["quality"], subsampling="4:2:0")
    else:
        picture.save(out, "WEBP", quality=options["quality"], method=4)
    return {"width": picture.width, "height": picture.height, "bytes": out.tell()}


def vips_encode(data, options):
    picture = decoded("vips", data, lambda data: pyvips().Image.new_from_buffer(data, "").copy_memory())
    if options["format"] == "png":
        out = picture.pngsave_buffer(compression=options["level"], keep="none")
    elif options["format"] == "jpeg":
        out = picture.jpegsave_buffer(Q=options["quality"], subsample_mode="on", keep="none")
    else:
        out = picture.webpsave_buffer(Q=options["quality"], effort=4, keep="none")
    return {"width": picture.width, "height": picture.height, "bytes": len(out)}


def pillow_picture(data, options):
    """The picture, with alpha that grows from nothing at the top to all at the bottom where that is asked for."""
    from PIL import Image

    def decode(data):
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        if options["hasAlpha"]:
            picture.putalpha(Image.linear_gradient("L").resize(picture.size))
        return picture

    return decoded(("pillow", options["hasAlpha"]), data, decode)


def vips_picture(data, options):
    """The same."""

    def decode(data):
        picture = pyvips().Image.new_from_buffer(data, "")
        if options["hasAlpha"]:
            rows = pyvips().Image.xyz(picture.width, picture.height)[1]
            picture = picture.bandjoin((rows * (256 / picture.height)).cast("uchar"))
        return picture.copy_memory()

    return decoded(("vips", options["hasAlpha"]), data, decode)


def pillow_geometry(data, options):
    from PIL import Image

    picture = pillow_picture(data, options)
    result = {
        "crop": lambda: picture.crop((501, 301, 501 + 3001, 301 + 2001)),
        "flip-horizontal": lambda: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        "flip-vertical": lambda: picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        "rotate-90": lambda: picture.transpose(Image.Transpose.ROTATE_270),
        "rotate-17-nearest": lambda: picture.rotate(-17, Image.Resampling.NEAREST, expand=True),
        "rotate-17-bilinear": lambda: picture.rotate(-17, Image.Resampling.BILINEAR, expand=True),
        "rotate-17-bicubic": lambda: picture.rotate(-17, Image.Resampling.BICUBIC, expand=True),
    }[options["operation"]]()
    return {"width": result.width, "height": result.height, "bytes": 0}


def vips_geometry(data, options):
    picture = vips_picture(data, options)

    def rotate(kind):
        return picture.rotate(17, interpolate=pyvips().Interpolate.new(kind))

    result = {
        "crop": lambda: picture.crop(501, 301, 3001, 2001),
        "flip-horizontal": picture.fliphor,
        "flip-vertical": picture.flipver,
        "rotate-90": picture.rot90,
        "rotate-17-nearest": lambda: rotate("nearest"),
        "rotate-17-bilinear": lambda: rotate("bilinear"),
        "rotate-17-bicubic": lambda: rotate("bicubic"),
    }[options["operation"]]()
    # Until now it is only a plan.
    result = result.copy_memory()
    return {"width": result.width, "height": result.height, "bytes": 0}


def pillow_resize(data, options):
    """Shrinks by a box first, as Pillow's own `thumbnail` does: twice as fast as without."""
    from PIL import Image

    picture = decoded("pillow-rgba", data, lambda data: Image.open(io.BytesIO(data)).convert("RGBA"))
    size = (options["side"], options["side"] * picture.height // picture.width)
    small = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    return {"width": small.width, "height": small.height, "bytes": 0}


def vips_resize(data, options):
    """As `vipsthumbnail` does: alpha is multiplied in and taken out again."""
    picture = decoded("vips", data, lambda data: pyvips().Image.new_from_buffer(data, "").copy_memory())
    small = picture.thumbnail_image(options["side"], size="down", linear=options["linear"]).copy_memory()
    return {"width": small.width, "height": small.height, "bytes": 0}


def pillow_pixels(data, options):
    from PIL import Image, ImageEnhance, ImageFilter

    picture = pillow_picture(data, options)
    if options["operation"] == "composite":
        drawn = decoded("pillow-drawn", data, lambda data: drawn_on(picture.convert("RGB")))
        if options["hasAlpha"]:
            result = Image.alpha_composite(picture, drawn)
        else:
            result = picture.copy()
            result.paste(drawn, (0, 0), drawn)
    else:
        result = {
            "blur-3": lambda: picture.filter(ImageFilter.GaussianBlur(3)),
            "blur-15": lambda: picture.filter(ImageFilter.GaussianBlur(15)),
            "sharpen": lambda: picture.filter(ImageFilter.UnsharpMask(2, 100, 0)),
            "brightness": lambda: ImageEnhance.Brightness(picture).enhance(1.2),
            "saturation": lambda: ImageEnhance.Color(picture).enhance(1.2),
        }[options["operation"]]()
    return {"width": result.width, "height": result.height, "bytes": 0}


def drawn_on(picture):
    """What is drawn on a picture: itself upside down, from clear on the left to opaque on the right."""
    from PIL import Image

    drawn = picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    drawn.putalpha(Image.linear_gradient("L").transpose(Image.Transpose.ROTATE_90).resize(picture.size))
    return drawn


def vips_pixels(data, options):
    picture = vips_picture(data, options)
    if options["operation"] == "composite":

        def draw(data):
            drawn = pyvips().Image.new_from_buffer(data, "").flipver()
            columns = pyvips().Image.xyz(drawn.width, drawn.height)[0]
            return drawn.bandjoin((columns * (256 / drawn.width)).cast("uchar")).copy_memory()

        result = picture.composite2(decoded("vips-drawn", data, draw), "over").cast("uchar")
    else:
        alpha = [1] if options["hasAlpha"] else []
        result = {
            "blur-3": lambda: picture.gaussblur(3),
            "blur-15": lambda: picture.gaussblur(15),
            "blur-3-premultiplied": lambda: picture.premultiply().gaussblur(3).unpremultiply().cast("uchar"),
            "blur-15-premultiplied": lambda: picture.premultiply().gaussblur(15).unpremultiply().cast("uchar"),
            "sharpen": lambda: picture.sharpen(sigma=2),
            "brightness": lambda: picture.linear([1.2] * 3 + alpha, 0, uchar=True),
            "saturation": lambda: vips_saturation(picture, 1.2),
        }[options["operation"]]()
    # Until now it is only a plan.
    result = result.copy_memory()
    return {"width": result.width, "height": result.height, "bytes": 0}


def vips_saturation(picture, amount):
    """The matrix of CSS: libvips has no saturation on stored samples."""
    luma = [0.213, 0.715, 0.072]
    rows = [
        [weight * (1 - amount) + (amount if row == column else 0) for column, weight in enumerate(luma)]
        for row in range(3)
    ]
    if picture.bands == 4:
        rows = [row + [0] for row in rows] + [[0, 0, 0, 1]]
    return picture.recomb(rows).cast("uchar")


JOBS = {
    "pillow-pixels": pillow_pixels,
    "vips-pixels": vips_pixels,
    "pillow-geometry": pillow_geometry,
    "vips-geometry": vips_geometry,
    "pillow-resize": pillow_resize,
    "vips-resize": vips_resize,
    "pillow-frames": pillow_frames,
    "pillow-encode": pillow_encode,
    "vips-encode": vips_encode,
    "pillow-decode": pillow_decode,
    "vips-decode": vips_decode,
    "pillow-thumbnail": pillow_thumbnail,
    "vips-thumbnail": vips_thumbnail,
}

_pyvips = None


def pyvips():
    global _pyvips
    if _pyvips is None:
        import pyvips as module

        # An operation that is asked for twice must be done twice.
        module.cache_set_max(0)
        _pyvips = module
    return _pyvips


# How close a small picture is to the best that can be made of its original.


def luma(picture):
    import numpy

    red, green, blue = (numpy.asarray(channel, dtype=numpy.float64) for channel in picture)
    return numpy.clip(0.299 * red + 0.587 * green + 0.114 * blue, 0, 255)


def reference_luma(path, size):
    """Full decode, upright, then Lanczos3 in floating point, never rounded to 8 bits."""
    from PIL import Image

    picture = upright(Image.open(path)).convert("RGB")
    channels = [channel.convert("F").resize(size, Image.Resampling.LANCZOS) for channel in picture.split()]
    return luma(channels)


def gaussian_filter(plane):
    """The 11-tap window of the SSIM paper (sigma 1.5), only where it fits."""
    import numpy

    taps = numpy.exp(-((numpy.arange(11) - 5.0) ** 2) / (2 * 1.5**2))
    taps /= taps.sum()
    windows = numpy.lib.stride_tricks.sliding_window_view
    return windows(windows(plane, 11, axis=0) @ taps, 11, axis=1) @ taps


def structural_similarity(first, second):
    """Wang et al., 2004: mean SSIM with K1 = 0.01, K2 = 0.03, L = 255."""
    mean1, mean2 = gaussian_filter(first), gaussian_filter(second)
    variance1 = gaussian_filter(first * first) - mean1 * mean1
    variance2 = gaussian_filter(second * second) - mean2 * mean2
    covariance = gaussian_filter(first * second) - mean1 * mean2
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    values = ((2 * mean1 * mean2 + c1) * (2 * covariance + c2)) / (
        (mean1 * mean1 + mean2 * mean2 + c1) * (variance1 + variance2 + c2)
    )
    return float(values.mean())


def score(original, candidate):
    """SSIMULACRA2 of the colours, against a full decode and Lanczos3."""
    import tempfile

    from PIL import Image
    from ssimulacra2 import compute_ssimulacra2

    best = upright(Image.open(original)).convert("RGB").resize(candidate.size, Image.Resampling.LANCZOS)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("best.png", "candidate.png")]
        best.save(paths[0])
        candidate.save(paths[1])
        return float(compute_ssimulacra2(*paths))


def compare(request):
    import numpy
    from PIL import Image

    candidate = Image.open(request["candidate"]).convert("RGB")
    ours = luma(candidate.split())
    best = reference_luma(request["original"], candidate.size)
    error = float(numpy.mean((ours - best) ** 2))
    return {
        "ssim": structural_similarity(ours, best),
        "score": score(request["original"], candidate),
        "psnr": 10 * float(numpy.log10(255.0**2 / error)) if error else 999.0,
        "width": candidate.width,
        "height": candidate.height,
    }


# Pictures that the harness makes.


def make_large(request):
    """One baseline JPEG, or PNG, of the asked size, tiled from a picture."""
    from PIL import Image

    tile = Image.open(request["original"]).convert("RGB")
    big = Image.new("RGB", (request["width"], request["height"]))
    for y in range(0, big.height, tile.height):
        for x in range(0, big.width, tile.width):
            big.paste(tile, (x, y))
    save(big, request["path"], quality=85, progressive=request.get("progressive", False))
    return {"bytes": os.path.getsize(request["path"])}


def make_source(request):
    """A photograph as servers receive it: upright, without metadata, and with the requested longer side."""
    from PIL import Image

    picture = upright(Image.open(request["original"])).convert("RGB")
    picture.thumbnail((request["width"], request["width"]), Image.Resampling.LANCZOS)
    picture.info = {}
    save(picture, request["path"], quality=90)
    return {"bytes": os.path.getsize(request["path"])}


def make_translucent(request):
    """A PNG with alpha that falls from the middle to the corners."""
    import numpy
    from PIL import Image

    width, height = request["width"], request["height"]
    picture = upright(Image.open(request["original"])).convert("RGB")
    picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    distance = numpy.hypot(x / width - 0.5, y / height - 0.5)
    alpha = numpy.clip(360 - 600 * distance, 0, 255).astype(numpy.uint8)
    picture.putalpha(Image.fromarray(alpha))
    save(picture, request["path"], compress_level=1)
    return {"bytes": os.path.getsize(request["path"])}


def make_animation(request):
    """A GIF that moves over a photograph, so that every frame is new all over."""
    from PIL import Image

    width, height = request["width"], request["height"]
    picture = upright(Image.open(request["original"])).convert("RGB")
    picture = picture.resize((2 * width, 2 * height), Image.Resampling.LANCZOS)
    frames = []
    for index in range(request["count"]):
        x, y = (index * side // request["count"] for side in (width, height))
        frames.append(picture.crop((x, y, x + width, y + height)).quantize(256, dither=Image.Dither.FLOYDSTEINBERG))
    save(frames[0], request["path"], save_all=True, append_images=frames[1:], duration=80, loop=0)
    return {"bytes": os.path.getsize(request["path"])}


def make_near(request):
    """A JPEG of about the asked number of bytes: 800 pixels wide, quality chosen by bisection."""
    from PIL import Image

    picture = upright(Image.open(request["original"])).convert("RGB")
    picture.thumbnail((800, 800), Image.Resampling.LANCZOS)
    low, high = 10, 95
    while low < high:
        middle = (low + high + 1) // 2
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=middle)
        low, high = (middle, high) if out.tell() <= request["bytes"] else (low, middle - 1)
    save(picture, request["path"], quality=low)
    return {"bytes": os.path.getsize(request["path"])}


def make_plain(request):
    """The same JPEG without what cameras and programs add (APP1 to APP15); its pixels' data is untouched."""
    with open(request["original"], "rb") as file:
        data = file.read()
    kept, place = [data[:2]], 2
    while data[place + 1] != 0xDA:
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if not 0xE1 <= data[place + 1] <= 0xEF:
            kept.append(data[place:end])
        place = end
    with open(request["path"] + ".part", "wb") as file:
        file.write(b"".join(kept) + data[place:])
    os.replace(request["path"] + ".part", request["path"])
    return {"bytes": os.path.getsize(request["path"])}


def make_photograph(request):
    """Stands in for a photograph where no corpus is there: shapes, gradients and grain."""
    import numpy
    from PIL import Image

    width, height = request["width"], request["height"]
    random = numpy.random.default_rng(20240501)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    planes = []
    for channel in range(3):
        plane = 110 + 60 * numpy.sin(x / (211 + 37 * channel)) * numpy.cos(y / (173 + 29 * channel))
        for _ in range(40):
            cx, cy, radius = random.random(3) * (width, height, width / 8)
            plane[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] += random.normal(0, 25)
        planes.append(plane + random.normal(0, 4, plane.shape))
    picture = Image.fromarray(numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8))
    save(picture, request["path"], quality=90)
    return {"bytes": os.path.getsize(request["path"])}


def save(picture, path, **options):
    """Writes under another name first: an interrupted run leaves no half a file behind."""
    kind = {".jpg": "JPEG", ".png": "PNG", ".webp": "WEBP", ".gif": "GIF"}[os.path.splitext(path)[1]]
    if kind != "JPEG":
        options.pop("progressive", None)
    picture.save(path + ".part", kind, **options)
    os.replace(path + ".part", path)


# The line protocol.

FILES = {}
CACHES = {}


def load(request):
    with open(request["path"], "rb") as file:
        FILES[request["path"]] = file.read()
    return {"bytes": len(FILES[request["path"]])}


def run(request):
    job, data = JOBS[request["job"]], FILES[request["path"]]
    options = request.get("options", {})
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(request["count"]):
        result = job(data, options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    result.pop("data", None)
    return {"wall": wall, "cpu": cpu, **result}


def write(request):
    result = JOBS[request["job"]](FILES[request["path"]], request.get("options", {}))
    with open(request["output"], "wb") as file:
        file.write(result.pop("data"))
    return result


def disk_cache(request):
    """Stores and reads whole bodies in the package diskcache, as it comes: SQLite as index, large bodies in files."""
    import diskcache

    cache = CACHES.setdefault(request["path"], diskcache.Cache(request["path"]))
    body = bytes(range(256)) * (request["bytes"] // 256)
    keys = [f"https://images.example.org/photo-{number}.jpg" for number in range(200)]
    if request["job"] == "hit":
        for key in keys:
            cache[key] = body
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(request["count"]):
        if request["job"] == "hit":
            size = len(cache[keys[number % 200]])
        else:
            cache[keys[number % 200]] = body
            size = len(body)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "width": size, "height": 0}


def read_and_decode(request):
    """From the file every time, as a server without a cache would."""
    from PIL import Image

    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(request["count"]):
        with open(request["path"], "rb") as file:
            picture = Image.open(io.BytesIO(file.read()))
            picture.load()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "width": picture.width, "height": picture.height, "bytes": 0}


def versions(request):
    import numpy
    import PIL
    from PIL import features

    vips = pyvips()
    return {
        "python": sys.version.split()[0],
        "pillow": PIL.__version__,
        "pillow libjpeg-turbo": features.version("libjpeg_turbo") or "none",
        "pillow libwebp": features.version("webp") or "none",
        "pillow zlib-ng": features.version("zlib_ng") or "none",
        "pyvips": vips.__version__,
        "libvips": ".".join(str(vips.version(part)) for part in range(3)),
        "numpy": numpy.__version__,
    }


COMMANDS = {
    "load": load,
    "run": run,
    "write": write,
    "read-and-decode": read_and_decode,
    "disk-cache": disk_cache,
    "compare": compare,
    "make-large": make_large,
    "make-source": make_source,
    "make-translucent": make_translucent,
    "make-animation": make_animation,
    "make-near": make_near,
    "make-plain": make_plain,
    "make-photograph": make_photograph,
    "versions": versions,
}


def serve():
    # Libraries print; only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = COMMANDS[request["do"]](request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# Peak memory of one job in a fresh process.


def status(name):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(name)


def peak(job, path):
    """The file is given by name: that is how each library uses the least memory."""
    options = {"side": 400, "format": "jpeg", "quality": 80}
    if job == "pillow-thumbnail":
        from PIL import Image

        Image.MAX_IMAGE_PIXELS = None
        Image.preinit()

        def work():
            picture = Image.open(path)
            picture.thumbnail((400, 400), Image.Resampling.LANCZOS)
            return finish_pillow(upright(picture), options)

    else:
        vips = pyvips()

        def work():
            return finish_vips(vips.Image.thumbnail(path, 400, size="down"), options)

    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    idle = status("VmRSS")
    result = work()
    print(json.dumps({"idle": idle, "peak": status("VmHWM"), "width": result["width"], "height": result["height"]}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak(sys.argv[2], sys.argv[3])
    else:
        serve()
