# SPDX-License-Identifier: Apache-2.0

"""What no HTTP/2 origin should do, as a table: each event at each moment of an answer, with and without a length.

A body is an image and then bytes that every decoder skips, so that a cut body decodes as well as a whole one. A body
that is never completed begins with the poisoned image. A load that returns it has accepted a cut or joined body.
"""

import struct
import time

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK, PADDED = 1, 4, 1, 8
TAIL = bytes(20_000)
HALF = 10_000
# The time for which an origin keeps a connection open after it has stopped in the middle.
LINGER_SECONDS = 1.0
# The time within which a neighbour's request arrives over the same connection.
NEIGHBOUR_SECONDS = 0.15

RESET_CODES = {
    "no-error": 0,
    "protocol-error": 1,
    "internal-error": 2,
    "flow-control-error": 3,
    "settings-timeout": 4,
    "stream-closed": 5,
    "frame-size-error": 6,
    "refused-stream": 7,
    "cancel": 8,
    "compression-error": 9,
    "connect-error": 10,
    "enhance-your-calm": 11,
    "inadequate-security": 12,
    "http-1-1-required": 13,
    "unknown-code": 0xDEAD,
}


def word(*values):
    return struct.pack(">" + "I" * len(values), *values)


def setting(key, value):
    return struct.pack(">HI", key, value)


def literal(name, value):
    """A field of HPACK without an index and without Huffman's code."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


OK = b"\x88"


def frames_that_are_illegal():
    """Name -> function of a connection and a stream that makes the frame."""
    kinds = {
        "data-on-stream-0": lambda c, s: c.frame(DATA, 0, 0, b"x"),
        "headers-on-stream-0": lambda c, s: c.frame(HEADERS, END_HEADERS, 0, OK),
        "priority-on-stream-0": lambda c, s: c.frame(PRIORITY, 0, 0, word(0) + b"\0"),
        "reset-on-stream-0": lambda c, s: c.frame(RST_STREAM, 0, 0, word(0)),
        "push-on-stream-0": lambda c, s: c.frame(PUSH_PROMISE, END_HEADERS, 0, word(2)),
        "continuation-on-stream-0": lambda c, s: c.frame(CONTINUATION, END_HEADERS, 0, OK),
        "settings-on-a-stream": lambda c, s: c.frame(SETTINGS, 0, s),
        "ping-on-a-stream": lambda c, s: c.frame(PING, 0, s, bytes(8)),
        "goaway-on-a-stream": lambda c, s: c.frame(GOAWAY, 0, s, word(s, 0)),
        "settings-of-5-bytes": lambda c, s: c.frame(SETTINGS, 0, 0, bytes(5)),
        "settings-ack-with-content": lambda c, s: c.frame(SETTINGS, ACK, 0, bytes(6)),
        "ping-of-7-bytes": lambda c, s: c.frame(PING, 0, 0, bytes(7)),
        "ping-of-9-bytes": lambda c, s: c.frame(PING, 0, 0, bytes(9)),
        "reset-of-3-bytes": lambda c, s: c.frame(RST_STREAM, 0, s, bytes(3)),
        "reset-of-5-bytes": lambda c, s: c.frame(RST_STREAM, 0, s, bytes(5)),
        "priority-of-4-bytes": lambda c, s: c.frame(PRIORITY, 0, s, bytes(4)),
        "window-of-3-bytes": lambda c, s: c.frame(WINDOW_UPDATE, 0, 0, bytes(3)),
        "goaway-of-7-bytes": lambda c, s: c.frame(GOAWAY, 0, 0, bytes(7)),
        "window-of-nothing": lambda c, s: c.frame(WINDOW_UPDATE, 0, 0, word(0)),
        "window-of-nothing-on-stream": lambda c, s: c.frame(WINDOW_UPDATE, 0, s, word(0)),
        "window-overflow": lambda c, s: c.frame(WINDOW_UPDATE, 0, 0, word(0x7FFFFFFF)) * 2,
        "window-overflow-on-stream": lambda c, s: c.frame(WINDOW_UPDATE, 0, s, word(0x7FFFFFFF)) * 2,
        "window-on-idle-stream": lambda c, s: c.frame(WINDOW_UPDATE, 0, s + 100, word(1)),
        "reset-on-idle-stream": lambda c, s: c.frame(RST_STREAM, 0, s + 100, word(0)),
        "data-on-idle-stream": lambda c, s: c.frame(DATA, END_STREAM, s + 100, b"x"),
        "headers-on-idle-stream": lambda c, s: c.frame(HEADERS, END_HEADERS, s + 100, OK),
        "data-on-even-stream": lambda c, s: c.frame(DATA, END_STREAM, 2, b"x"),
        "data-too-large": lambda c, s: c.frame(DATA, END_STREAM, s, bytes(16_385)),
        "headers-too-large": lambda c, s: c.frame(HEADERS, END_HEADERS | END_STREAM, s, OK * 16_385),
        "unknown-frame-too-large": lambda c, s: c.frame(0xEE, 0, 0, bytes(16_385)),
        "data-of-padding-only": lambda c, s: c.frame(DATA, PADDED | END_STREAM, s, b"\xff" + bytes(9)),
        "data-padded-and-empty": lambda c, s: c.frame(DATA, PADDED | END_STREAM, s),
        "headers-of-padding-only": lambda c, s: c.frame(HEADERS, PADDED | END_HEADERS, s, b"\xff" + bytes(9)),
        "continuation-of-nothing": lambda c, s: c.frame(CONTINUATION, END_HEADERS, s, OK),
        "continuation-of-another": lambda c, s: c.frame(HEADERS, END_STREAM, s, literal(b"x", b"y"))
        + c.frame(CONTINUATION, END_HEADERS, s + 2, literal(b"x", b"y")),
        "data-between-headers": lambda c, s: c.frame(HEADERS, END_STREAM, s, literal(b"x", b"y"))
        + c.frame(DATA, END_STREAM, s, b"x"),
        "push-of-2": lambda c, s: c.frame(PUSH_PROMISE, END_HEADERS, s, word(2) + b"\x82\x87\x84"),
        "push-of-0": lambda c, s: c.frame(PUSH_PROMISE, END_HEADERS, s, word(0) + b"\x82\x87\x84"),
        "push-of-odd": lambda c, s: c.frame(PUSH_PROMISE, END_HEADERS, s, word(s + 2) + b"\x82\x87\x84"),
        "push-without-end": lambda c, s: c.frame(PUSH_PROMISE, 0, s, word(2)) + c.frame(DATA, END_STREAM, s, b"x"),
        "setting-of-huge-window": lambda c, s: c.frame(SETTINGS, 0, 0, setting(4, 0x80000000)),
        "setting-of-small-frames": lambda c, s: c.frame(SETTINGS, 0, 0, setting(5, 100)),
        "setting-of-huge-frames": lambda c, s: c.frame(SETTINGS, 0, 0, setting(5, 1 << 24)),
        "setting-of-push": lambda c, s: c.frame(SETTINGS, 0, 0, setting(2, 2)),
        "http-1-text": lambda c, s: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" * 9,
        "zeros": lambda c, s: bytes(16_400 * 3),
        "ones": lambda c, s: b"\xff" * 1_000,
    }
    blocks = {
        "index-0": b"\x80",
        "index-unknown": b"\xfe",
        "number-overflow": b"\xff" * 12,
        "string-beyond": b"\0\x7fx",
        "bad-huffman": b"\0\x81\xff\x81\xff",
        "huge-table": b"\x3f\xff\xff\xff\x7f",
        "table-size-too-late": literal(b"x", b"y") + b"\x20",
        "empty-name": literal(b"", b"y"),
    }
    for name, block in blocks.items():
        kinds["hpack-" + name] = lambda c, s, block=block: c.frame(HEADERS, END_HEADERS | END_STREAM, s, block)
    trailers = {
        "upper-case": literal(b"X-Y", b"y"),
        "status": OK,
        "path": literal(b":path", b"/"),
        "connection": literal(b"connection", b"close"),
        "line-break": literal(b"x", b"y\r\nz: w"),
        "bomb": b"\x40\x01b\x7f\xa1\x1e" + b"v" * 4_000 + b"\xbe" * 12_000,
    }
    for name, block in trailers.items():
        kinds["trailers-" + name] = lambda c, s, block=block: c.frame(HEADERS, END_HEADERS | END_STREAM, s, block)
    kinds["trailers-without-end"] = lambda c, s: c.frame(HEADERS, END_HEADERS, s, literal(b"x", b"y"))
    kinds["trailers-never-whole"] = lambda c, s: c.frame(HEADERS, END_STREAM, s, literal(b"x", b"y"))
    kinds["second-head"] = lambda c, s: c.frame(HEADERS, END_HEADERS, s, OK)
    kinds["late-103"] = lambda c, s: c.frame(HEADERS, END_HEADERS, s, literal(b":status", b"103"))
    return kinds


FLOODS = {
    "ping": lambda c, s: c.frame(PING, 0, 0, bytes(8)),
    "ping-ack": lambda c, s: c.frame(PING, ACK, 0, bytes(8)),
    "settings": lambda c, s: c.frame(SETTINGS, 0, 0, setting(1, 4096)),
    "settings-ack": lambda c, s: c.frame(SETTINGS, ACK, 0),
    "window-update": lambda c, s: c.frame(WINDOW_UPDATE, 0, s, word(1)),
    "priority": lambda c, s: c.frame(PRIORITY, 0, s, word(0) + b"\1"),
    "reset": lambda c, s: c.frame(RST_STREAM, 0, 1, word(0)) if s > 1 else c.frame(RST_STREAM, 0, s, word(0)),
    "goaway": lambda c, s: c.frame(GOAWAY, 0, 0, word(s, 0)),
    "unknown": lambda c, s: c.frame(0xEE, 0, s, bytes(16)),
    "103": lambda c, s: c.frame(HEADERS, END_HEADERS, s, literal(b":status", b"103")),
    "continuation": lambda c, s: c.frame(CONTINUATION, 0, s, literal(b"x", b"y")),
}

TOLERATED = {
    "nothing": lambda c, s: b"",
    "ping": FLOODS["ping"],
    "settings": FLOODS["settings"],
    "window-update": FLOODS["window-update"],
    "priority": FLOODS["priority"],
    "unknown": FLOODS["unknown"],
    "empty-data": lambda c, s: c.frame(DATA, 0, s) * 3,
    "padding": lambda c, s: c.frame(DATA, PADDED, s, b"\7" + bytes(7)),
    "goaway": lambda c, s: c.frame(GOAWAY, 0, 0, word(s, 0)),
    "goaway-for-later": lambda c, s: c.frame(GOAWAY, 0, 0, word(0x7FFFFFFF, 0)),
}

STATUSES = ["000", "099", "100", "101", "199", "204", "206", "304", "421", "600", "999", "1000", "20", "2xx", "", "-20"]

LENGTHS = {
    "one-less": lambda count: [count - 1],
    "one-more": lambda count: [count + 1],
    "nothing": lambda count: [0],
    "huge": lambda count: [1 << 62],
    "beyond-numbers": lambda count: [1 << 70],
    "negative": lambda count: [-count],
    "text": lambda count: ["all"],
    "hexadecimal": lambda count: [hex(count)],
    "list": lambda count: ["%d, %d" % (count, count)],
    "two": lambda count: [count, count + 1],
}


def behaviours(honest, poison):
    """Name -> (function, expectation), as in origin.py."""
    table = {}

    def body(number):
        return honest(number) + TAIL

    def begin(c, stream, length=None, status="200"):
        fields = [(":status", status), ("cache-control", "max-age=60")]
        c.headers(fields + ([("content-length", str(length))] if length is not None else []), stream)

    def stop_here(c):
        """Sends nothing more, and leaves after a while; the client may leave before."""
        end = time.monotonic() + LINGER_SECONDS
        while time.monotonic() < end:
            c.read(max(0, end - time.monotonic()))
        c.leave()

    def half(c, stream, length=None):
        """Sends a half of the poisoned body, and halves to the neighbours on the connection as well."""
        begin(c, stream, length)
        c.send(DATA, 0, stream, (poison + TAIL)[:HALF])
        c.read(NEIGHBOUR_SECONDS)
        while c.requests:
            _, neighbour = c.requests.pop(0)
            begin(c, neighbour)
            c.send(DATA, 0, neighbour, (poison + TAIL)[:HALF])

    def before_head(make):
        def serve(c, n, stream):
            c.write(make(c, stream))
            stop_here(c)

        return serve

    def after_head(make, is_sized):
        def serve(c, n, stream):
            begin(c, stream, len(body(n)) if is_sized else None)
            c.write(make(c, stream))
            stop_here(c)

        return serve

    def in_body(make, is_sized):
        def serve(c, n, stream):
            half(c, stream, len(poison + TAIL) if is_sized else None)
            c.write(make(c, stream))
            stop_here(c)

        return serve

    def after_body(make, is_sized):
        def serve(c, n, stream):
            begin(c, stream, len(body(n)) if is_sized else None)
            c.body(body(n), stream)
            c.write(make(c, stream))
            stop_here(c)

        return serve

    def after_end(make):
        def serve(c, n, stream):
            begin(c, stream)
            c.body(body(n), stream, END_STREAM)
            c.write(make(c, stream))

        return serve

    def between_halves(make, is_sized):
        def serve(c, n, stream):
            data = body(n)
            begin(c, stream, len(data) if is_sized else None)
            c.body(data[:HALF], stream)
            c.write(make(c, stream))
            c.body(data[HALF:], stream, END_STREAM)

        return serve

    def flood(make, is_in_body):
        def serve(c, n, stream):
            if is_in_body:
                half(c, stream)
            c.repeat(stream, make(c, stream) * 500)

        return serve

    def add(name, function, expectation):
        assert name not in table, name
        table["h2-" + name] = (function, expectation)

    both = [("sized", True), ("unsized", False)]
    for name, code in RESET_CODES.items():
        make = lambda c, s, code=code: c.frame(RST_STREAM, 0, s, word(code))
        # Over HTTP/1.1 the origin is honest.
        add("reset-%s-before-head" % name, before_head(make), "either" if code == 13 else "error")
        for kind, is_sized in both:
            add("reset-%s-after-head-%s" % (name, kind), after_head(make, is_sized), "error")
            add("reset-%s-in-body-%s" % (name, kind), in_body(make, is_sized), "error")
        # With a declared length the body is whole. Without one, only the end of the stream would say so.
        add("reset-%s-after-body-sized" % name, after_body(make, True), "either")
        add("reset-%s-after-body-unsized" % name, after_body(make, False), "error")
        add("reset-%s-after-end" % name, after_end(make), "either")
    for name, code in [("no-error", 0), ("internal-error", 2), ("http-1-1-required", 13)]:
        for last, of in [("none", lambda s: 0), ("this", lambda s: s), ("all", lambda s: 0x7FFFFFFF)]:
            make = lambda c, s, code=code, of=of: c.frame(GOAWAY, 0, 0, word(of(s), code))
            label = "goaway-%s-%s" % (name, last)
            add(label + "-before-head", before_head(make), "either")
            for kind, is_sized in both:
                add("%s-in-body-%s" % (label, kind), in_body(make, is_sized), "error")
                add("%s-and-on-%s" % (label, kind), between_halves(make, is_sized), "either")
            add(label + "-after-body", after_body(make, False), "error")
    for name, make in frames_that_are_illegal().items():
        # Before the head, a frame that ends a stream or begins a head is only an unusual answer.
        if not any(part in name for part in ["trailers", "second-head", "hpack", "103"]):
            add("illegal-%s-before-head" % name, before_head(make), "error")
        for kind, is_sized in both:
            add("illegal-%s-in-body-%s" % (name, kind), in_body(make, is_sized), "error")
    for name, make in FLOODS.items():
        add("flood-%s-before-head" % name, flood(make, False), "error")
        add("flood-%s-in-body" % name, flood(make, True), "error")
    for name, make in TOLERATED.items():
        for kind, is_sized in both:
            add("tolerated-%s-%s" % (name, kind), between_halves(make, is_sized), "whole")
    for status in STATUSES:

        def odd_status(c, n, stream, status=status):
            c.write(c.frame(HEADERS, END_HEADERS, stream, literal(b":status", status.encode())))
            c.body(poison + TAIL, stream, END_STREAM)

        add("status-" + (status or "empty"), odd_status, "error")
    for name, make in LENGTHS.items():

        def lying(c, n, stream, make=make):
            data = poison + TAIL
            fields = [(":status", "200")] + [("content-length", str(length)) for length in make(len(data))]
            c.headers(fields, stream)
            c.body(data, stream, END_STREAM)

        add("length-" + name, lying, "error")
    for name, block in [("one", literal(b"x", b"y")), ("many", literal(b"x", b"y") * 30), ("none", b"")]:
        for kind, is_sized in both:

            def with_trailers(c, n, stream, block=block, is_sized=is_sized):
                begin(c, stream, len(body(n)) if is_sized else None)
                c.body(body(n), stream)
                c.write(c.frame(HEADERS, END_HEADERS | END_STREAM, stream, block))

            add("trailers-%s-%s" % (name, kind), with_trailers, "either" if name == "none" else "whole")
    for count in [1, 5]:

        def informational(c, n, stream, count=count):
            c.write(c.frame(HEADERS, END_HEADERS, stream, literal(b":status", b"103")) * count)
            between_halves(TOLERATED["nothing"], False)(c, n, stream)

        add("informational-%d" % count, informational, "whole")

    def informational_end(c, n, stream):
        c.write(c.frame(HEADERS, END_HEADERS | END_STREAM, stream, literal(b":status", b"103")))
        stop_here(c)

    add("informational-and-end", informational_end, "error")

    def cut_off(is_sized):
        def serve(c, n, stream):
            half(c, stream, len(poison + TAIL) if is_sized else None)
            c.leave()

        return serve

    def cut_in_frame(c, n, stream):
        begin(c, stream)
        data = poison + TAIL
        c.write(c.frame(DATA, END_STREAM, stream, data[:15_000])[:HALF])
        c.leave()

    add("cut-off-sized", cut_off(True), "error")
    add("cut-off-unsized", cut_off(False), "error")
    add("cut-off-in-frame", cut_in_frame, "error")
    return table
