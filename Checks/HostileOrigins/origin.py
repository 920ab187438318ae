# SPDX-License-Identifier: Apache-2.0

"""An origin that does what no origin should, for the attack on a loader.

    origin.py FOLDER

Listens on several addresses of the loopback range, writes its behaviours and their addresses to FOLDER/origin.json,
and serves until it is killed. Each behaviour has a path of its own, /NAME/NUMBER. The honest answer to NUMBER is an
image of 16x16 pixels whose colour is NUMBER. A loader must never return the poisoned image, a magenta one of 7x7.
/honest/NUMBER always gets the honest answer, on the same connections as the rest.
"""

import gzip
import json
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib

import hpack

# Keep compiled files out of the folder of the sources.
sys.dont_write_bytecode = True
import http2_table

ADDRESSES = ["127.0.0.%d" % last for last in range(2, 14)]
CRLF = b"\r\n"
# The pause between the bytes of a drip: too short for a time limit on silence.
DRIP_SECONDS = 0.5
SEND_TIMEOUT = 600
FLOOD_BLOCK = 64 << 10


# Images


def png(width, height, color):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + color * width
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(row * height))
        + chunk(b"IEND", b"")
    )


def honest(number):
    return png(16, 16, struct.pack(">I", number & 0xFFFFFF)[1:])


POISON = png(7, 7, b"\xff\x00\xff")


# HTTP/1.1


class Gone(Exception):
    """The client has left."""


class Connection:
    """One connection of HTTP/1.1, to which a behaviour writes any bytes."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (OSError, ssl.SSLError) as error:
            raise Gone() from error

    def send_while_idle(self, data):
        """Sends data unless a request has arrived, because no client could tell the bytes from its answer."""
        if not select.select([self.sock], [], [], 0)[0]:
            self.send(data)

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            try:
                data = self.sock.recv(65536)
            except (OSError, ssl.SSLError) as error:
                raise Gone() from error
            if not data:
                raise Gone()
            self.buffer += data
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head

    def stall(self):
        """Waits until the client leaves."""
        while True:
            try:
                data = self.sock.recv(65536)
            except (OSError, ssl.SSLError) as error:
                raise Gone() from error
            if not data:
                raise Gone()

    def drip(self, data, seconds=DRIP_SECONDS):
        for byte in data:
            self.send(bytes([byte]))
            time.sleep(seconds)

    def flood(self, block):
        block *= max(1, FLOOD_BLOCK // len(block))
        while True:
            self.send(block)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone()

    def close(self):
        raise Gone()


def head(status=200, fields=(), length=None):
    lines = [b"HTTP/1.1 %d Some" % status]
    lines += [name.encode("latin-1") + b": " + value.encode("latin-1") for name, value in fields]
    if length is not None:
        lines.append(b"Content-Length: %d" % length)
    return CRLF.join(lines) + CRLF + CRLF


def answer(body, status=200, fields=()):
    return head(status, list(fields) + [("Cache-Control", "max-age=60")], len(body)) + body


def chunk(data, extension=b""):
    return b"%x" % len(data) + extension + CRLF + data + CRLF


CHUNKED = [("Transfer-Encoding", "chunked")]
POISONED_ANSWER = answer(POISON)

# name -> (function, expectation). "whole": the honest image; "error": a refusal; "either".
PLAIN = {}
HTTP2 = {}


def plain(expectation):
    def register(function):
        PLAIN[function.__name__.replace("_", "-")] = (function, expectation)
        return function

    return register


def http2(expectation):
    def register(function):
        HTTP2[function.__name__.replace("_", "-")] = (function, expectation)
        return function

    return register


# Bytes behind a response


@plain("whole")
def surplus_response_at_once(c, n):
    c.send(answer(honest(n)) + POISONED_ANSWER)


@plain("whole")
def surplus_response_while_idle(c, n):
    c.send(answer(honest(n)))
    time.sleep(0.2)
    c.send_while_idle(POISONED_ANSWER)


@plain("whole")
def surplus_response_in_two_parts(c, n):
    c.send(answer(honest(n)) + POISONED_ANSWER[:9])
    time.sleep(0.1)
    c.send_while_idle(POISONED_ANSWER[9:])


@plain("whole")
def surplus_responses_many(c, n):
    c.send(answer(honest(n)) + POISONED_ANSWER * 1_000)


@plain("whole")
def surplus_garbage(c, n):
    c.send(answer(honest(n)) + b"\x00\x01garbage" * 50)


@plain("whole")
def surplus_line_end(c, n):
    c.send(answer(honest(n)) + CRLF)


@plain("whole")
def surplus_informational(c, n):
    c.send(answer(honest(n)))
    time.sleep(0.05)
    c.send_while_idle(head(103, [("Link", "</x>")]))


@plain("whole")
def surplus_time_out_message(c, n):
    c.send(answer(honest(n)))
    time.sleep(0.05)
    c.send_while_idle(head(408, [("Connection", "close")], 0))
    c.close()


@plain("error")
def surplus_after_no_content(c, n):
    c.send(head(204) + POISONED_ANSWER)


@plain("error")
def surplus_after_not_modified(c, n):
    c.send(head(304, [("ETag", '"x"')]) + POISONED_ANSWER)


@plain("error")
def surplus_after_empty_body(c, n):
    c.send(answer(b"") + POISONED_ANSWER)


@plain("error")
def surplus_after_error(c, n):
    c.send(answer(b"missing", 404) + POISONED_ANSWER)


@plain("whole")
def surplus_after_last_chunk(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)) + chunk(b"") + POISONED_ANSWER)


@plain("whole")
def surplus_after_redirect(c, n):
    location = "/honest/%d" % n
    c.send(answer(b"", 302, [("Location", location)]) + POISONED_ANSWER)


@plain("whole")
def surplus_megabytes(c, n):
    c.send(answer(honest(n)))
    c.send(b"x" * (2 << 20))


# Drips


@plain("error")
def drip_status_line(c, n):
    c.drip(b"HTTP/1.1 200 " + b"O" * 10_000)


@plain("error")
def drip_field(c, n):
    c.send(b"HTTP/1.1 200 OK\r\n")
    c.drip(b"X: " + b"y" * 10_000)


@plain("error")
def drip_fields(c, n):
    c.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        c.send(b"X-Field: value\r\n")
        time.sleep(DRIP_SECONDS)


@plain("error")
def drip_informational(c, n):
    while True:
        c.send(head(103, [("Link", "</x>")]))
        time.sleep(DRIP_SECONDS)


@plain("error")
def drip_body(c, n):
    c.send(head(200, [], 1 << 20))
    c.drip(honest(n) + bytes(1 << 20))


@plain("error")
def drip_body_without_length(c, n):
    c.send(head(200, [("Connection", "close")]))
    c.drip(honest(n) + bytes(1 << 20))


@plain("error")
def drip_chunks(c, n):
    c.send(head(200, CHUNKED))
    for byte in honest(n) + bytes(1 << 20):
        c.send(chunk(bytes([byte])))
        time.sleep(DRIP_SECONDS)


@plain("error")
def drip_chunk_size(c, n):
    c.send(head(200, CHUNKED))
    c.drip(b"0" * 10_000)


@plain("error")
def drip_chunk_extension(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)) + b"5;")
    c.drip(b"extension" * 1_000)


@plain("either")
def drip_trailers(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)) + b"0\r\n")
    while True:
        c.send(b"X-Trailer: value\r\n")
        time.sleep(DRIP_SECONDS)


@plain("error")
def drip_error_body(c, n):
    c.send(head(404, [], 1 << 20))
    c.drip(bytes(1 << 20))


@plain("either")
def drip_redirect_body(c, n):
    c.send(head(302, [("Location", "/honest/%d" % n)], 1 << 20))
    c.drip(bytes(1 << 20))


@plain("either")
def drip_connection_never_closed(c, n):
    c.send(answer(honest(n), fields=[("Connection", "close")]))
    c.stall()


# Silence


@plain("error")
def silence(c, n):
    c.stall()


@plain("error")
def silence_in_head(c, n):
    c.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    c.stall()


@plain("error")
def silence_after_head(c, n):
    c.send(head(200, [], 1_000))
    c.stall()


@plain("error")
def silence_before_last_byte(c, n):
    body = honest(n)
    c.send(head(200, [], len(body)) + body[:-1])
    c.stall()


# Floods


@plain("error")
def flood_status_line(c, n):
    c.send(b"HTTP/1.1 200 ")
    c.flood(b"O")


@plain("error")
def flood_field(c, n):
    c.send(b"HTTP/1.1 200 OK\r\nX: ")
    c.flood(b"y")


@plain("error")
def flood_fields(c, n):
    c.send(b"HTTP/1.1 200 OK\r\n")
    c.flood(b"X-Field: value\r\n")


@plain("error")
def flood_empty_fields(c, n):
    c.send(b"HTTP/1.1 200 OK\r\n")
    c.flood(b"A:\r\n")


@plain("error")
def flood_informational(c, n):
    c.flood(head(103))


@plain("error")
def flood_continue(c, n):
    c.flood(b"HTTP/1.1 100 Continue\r\n\r\n")


@plain("error")
def flood_chunk_extension(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)) + b"5;")
    c.flood(b"x")


@plain("error")
def flood_chunk_extensions_with_bytes(c, n):
    c.send(head(200, CHUNKED))
    c.flood(chunk(b"a", b";" + b"x" * 4_000))


@plain("error")
def flood_chunk_size(c, n):
    c.send(head(200, CHUNKED))
    c.flood(b"0")


@plain("error")
def flood_small_chunks(c, n):
    c.send(head(200, CHUNKED))
    c.flood(chunk(b"a"))


@plain("either")
def flood_trailers(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)) + b"0\r\n")
    c.flood(b"X-Trailer: value\r\n")


@plain("error")
def flood_body(c, n):
    c.send(head(200, [("Connection", "close")]))
    c.flood(bytes(1_000))


@plain("whole")
def flood_behind_length(c, n):
    c.send(answer(honest(n)))
    c.flood(b"z" * 1_000)


@plain("error")
def flood_error_body(c, n):
    c.send(head(500, [("Connection", "close")]))
    c.flood(bytes(1_000))


@plain("error")
def bomb_gzip(c, n):
    bomb = BOMB
    c.send(head(200, [("Content-Encoding", "gzip")], len(bomb)) + bomb)


@plain("error")
def bomb_gzip_twice(c, n):
    bomb = gzip.compress(BOMB)
    c.send(head(200, [("Content-Encoding", "gzip, gzip")], len(bomb)) + bomb)


# The fields of a head of a given size, and the size at which a loader must refuse the head.
HEAVY = {
    "fields": (lambda size: [("X-%d" % i, "v" * 200) for i in range(size // 240)], 120_000),
    "cache-control": (lambda size: [("Cache-Control", '"' * size)], 98_000),
    "vary": (lambda size: [("Vary", "a," * (size // 2))], 80_000),
    "age": (lambda size: [("Age", '"' * (size // 2)), ("Expires", "," * (size // 2))], 196_000),
    "cookies": (lambda size: [("Set-Cookie", "c%d=%s" % (i, "v" * 100)) for i in range(size // 150)], 150_000),
}


def add_heavy(name, fields, expectation):
    PLAIN[name] = (lambda c, n: c.send(answer(honest(n), fields=fields)), expectation)


for name, (fields, size) in HEAVY.items():
    add_heavy("heavy-" + name, fields(60_000), "whole")
    add_heavy("oversized-" + name, fields(size), "error")


# Redirects


@plain("error")
def redirect_to_itself(c, n):
    c.send(answer(b"", 302, [("Location", "/redirect-to-itself/%d" % n)]))


@plain("error")
def redirect_without_end(c, n):
    c.send(answer(b"", 302, [("Location", "/redirect-without-end/%d" % (n + 1))]))


@plain("error")
def redirect_to_file(c, n):
    c.send(answer(b"", 302, [("Location", "file:///etc/passwd")]))


@plain("error")
def redirect_to_data(c, n):
    c.send(answer(b"", 302, [("Location", "data:image/gif;base64,R0lGODlhAQABAAAAACw=")]))


@plain("error")
def redirect_to_nothing(c, n):
    c.send(answer(b"", 302, [("Location", "http://\x01\x7f:99999999/")]))


@plain("error")
def redirect_far(c, n):
    c.send(answer(b"", 302, [("Location", "/" + "a" * 100_000)]))


# Lies


@plain("error")
def lie_too_long(c, n):
    body = honest(n)
    c.send(head(200, [], len(body) + 1) + body)
    c.close()


@plain("error")
def lie_too_short(c, n):
    body = honest(n)
    c.send(head(200, [], len(body) - 40) + body)
    c.close()


@plain("error")
def lie_two_lengths(c, n):
    body = honest(n)
    c.send(head(200, [("Content-Length", "5")], len(body)) + body)
    c.close()


@plain("either")
def lie_length_and_chunks(c, n):
    c.send(head(200, CHUNKED, 5) + chunk(honest(n)) + chunk(b""))


@plain("error")
def lie_negative_length(c, n):
    c.send(head(200, [("Content-Length", "-5")]) + honest(n))
    c.close()


@plain("error")
def lie_huge_length(c, n):
    c.send(head(200, [("Content-Length", "9223372036854775807")]) + honest(n))
    c.stall()


@plain("error")
def lie_large_length(c, n):
    c.send(head(200, [], 60 << 20) + honest(n))
    c.close()


@plain("either")
def lie_partial(c, n):
    body = honest(n)
    field = "bytes 5-%d/%d" % (len(body) - 1, len(body))
    c.send(answer(body[5:], 206, [("Content-Range", field)]))


@plain("either")
def lie_gzip(c, n):
    c.send(answer(honest(n), fields=[("Content-Encoding", "gzip")]))


@plain("error")
def lie_gzip_cut(c, n):
    body = gzip.compress(honest(n))
    c.send(answer(body[:-20], fields=[("Content-Encoding", "gzip")]))


@plain("whole")
def lie_media_type(c, n):
    c.send(answer(honest(n), fields=[("Content-Type", "text/html; charset=utf-8")]))


@plain("error")
def lie_image_damaged(c, n):
    c.send(answer(honest(n)[:60] + b"\xff" * 60))


@plain("error")
def lie_range_unsatisfiable(c, n):
    c.send(answer(b"", 416, [("Content-Range", "bytes */5")]))


@plain("error")
def lie_retry_later(c, n):
    c.send(answer(b"", 503, [("Retry-After", "9" * 30)]))


# Odd framing


@plain("error")
def odd_garbage(c, n):
    c.send(b"\x01\x02SSH-2.0-not-a-web-server\r\n\r\n")
    c.close()


@plain("error")
def odd_body_alone(c, n):
    c.send(honest(n))
    c.close()


@plain("either")
def odd_version(c, n):
    c.send(answer(honest(n)).replace(b"HTTP/1.1", b"HTTP/1.9", 1))
    c.close()


@plain("error")
def odd_status(c, n):
    c.send(answer(honest(n)).replace(b" 200 ", b" 99999 ", 1))
    c.close()


@plain("either")
def odd_line_ends(c, n):
    body = honest(n)
    c.send(head(200, [], len(body)).replace(CRLF, b"\n") + body)


@plain("either")
def odd_folded_field(c, n):
    c.send(answer(honest(n), fields=[("X-Folded", "a\r\n b\r\n\tc")]))


@plain("either")
def odd_field_without_colon(c, n):
    body = honest(n)
    c.send(b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@plain("either")
def odd_zero_bytes(c, n):
    c.send(answer(honest(n), fields=[("X-Zero", "a\0b")]))


@plain("either")
def odd_space_before_colon(c, n):
    body = honest(n)
    c.send(b"HTTP/1.1 200 OK\r\nContent-Length : %d\r\n\r\n" % len(body) + body)
    c.close()


@plain("error")
def odd_chunk_overflow(c, n):
    c.send(head(200, CHUNKED) + b"ffffffffffffffffff\r\n" + honest(n))
    c.close()


@plain("error")
def odd_chunk_negative(c, n):
    c.send(head(200, CHUNKED) + b"-5\r\n" + honest(n))
    c.close()


@plain("error")
def odd_chunk_without_end(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n))[:-2] + b"xx" + chunk(b""))
    c.close()


@plain("error")
def odd_last_chunk_missing(c, n):
    c.send(head(200, CHUNKED) + chunk(honest(n)))
    c.close()


@plain("error")
def odd_switching_protocols(c, n):
    c.send(head(101, [("Upgrade", "websocket"), ("Connection", "Upgrade")]) + POISONED_ANSWER)
    c.stall()


@plain("whole")
def odd_informational_first(c, n):
    c.send(head(103, [("Link", "</x>")]) * 5 + answer(honest(n)))


# Ends


@plain("error")
def end_at_once(c, n):
    c.close()


@plain("error")
def end_with_reset(c, n):
    c.reset()


@plain("error")
def end_with_reset_in_body(c, n):
    c.send(head(200, [], 100_000) + honest(n))
    c.reset()


@plain("whole")
def end_while_idle(c, n):
    c.send(answer(honest(n)))
    c.close()


# HTTP/2

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK, PADDED = 1, 4, 1, 8


class HTTP2Connection:
    """One connection of HTTP/2; requests are answered one after the other."""

    def __init__(self, sock, settings=()):
        self.sock = sock
        self.decoder = hpack.Decoder()
        self.encoder = hpack.Encoder()
        self.buffer = b""
        self.ended = set()
        self.requests = []
        self.opening = b"".join(struct.pack(">HI", key, value) for key, value in settings)

    def frame(self, kind, flags, stream, body=b""):
        return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body

    def write(self, data):
        try:
            self.sock.sendall(data)
        except (OSError, ssl.SSLError) as error:
            raise Gone() from error

    def send(self, kind, flags, stream, body=b""):
        self.write(self.frame(kind, flags, stream, body))

    def body(self, data, stream, flags=0):
        for start in range(0, len(data), 16_384):
            is_last = start + 16_384 >= len(data)
            self.send(DATA, flags if is_last else 0, stream, data[start : start + 16_384])

    def leave(self):
        raise Gone()

    def headers(self, fields, stream, flags=END_HEADERS):
        self.send(HEADERS, flags, stream, self.encoder.encode(fields))

    def answer(self, body, stream, fields=()):
        fields = [(":status", "200"), ("content-length", str(len(body))), ("cache-control", "max-age=60"), *fields]
        self.headers(fields, stream)
        self.send(DATA, END_STREAM, stream, body)

    def read(self, seconds=None):
        """Receives what the client has sent, and waits at most `seconds` for it."""
        if not self.sock.pending():
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            if not poll.poll(None if seconds is None else 1_000 * seconds):
                return
        try:
            data = self.sock.recv(65536)
        except (OSError, ssl.SSLError) as error:
            raise Gone() from error
        if not data:
            raise Gone()
        self.buffer += data
        while len(self.buffer) >= 9:
            length = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + length:
                return
            kind, flags = self.buffer[3], self.buffer[4]
            stream = int.from_bytes(self.buffer[5:9], "big") & 0x7FFFFFFF
            body = self.buffer[9 : 9 + length]
            self.buffer = self.buffer[9 + length :]
            if kind == HEADERS:
                if flags & PADDED:
                    body = body[1 : len(body) - body[0]]
                if flags & 0x20:
                    body = body[5:]
                self.requests.append((dict(self.decoder.decode(body)), stream))
            elif kind == RST_STREAM:
                self.ended.add(stream)
            elif kind == GOAWAY:
                raise Gone()
            elif kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(PING, ACK, 0, body)

    def pause(self, stream, seconds=0):
        """Waits, and stops the behaviour if the client no longer wants `stream`."""
        self.read(seconds)
        if stream in self.ended:
            raise StopIteration()

    def repeat(self, stream, data, seconds=0):
        while True:
            self.write(data)
            self.pause(stream, seconds)

    def stall(self, stream):
        while True:
            self.pause(stream, 60)

    def serve(self, behaviours):
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        while len(self.buffer) < len(preface):
            data = self.sock.recv(65536)
            if not data:
                raise Gone()
            self.buffer += data
        self.buffer = self.buffer[len(preface) :]
        self.send(SETTINGS, 0, 0, self.opening)
        self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        while True:
            while not self.requests:
                self.read()
            fields, stream = self.requests.pop(0)
            path = fields[b":path"] if b":path" in fields else fields[":path"]
            name, number = parse(path if isinstance(path, str) else path.decode("latin-1"))
            try:
                if name == "honest":
                    self.answer(honest(number), stream)
                else:
                    behaviours[name][0](self, number, stream)
            except StopIteration:
                pass


@http2("either")
def h2_ping_flood(c, n, stream):
    c.repeat(stream, c.frame(PING, 0, 0, bytes(8)) * 1_000)


@http2("either")
def h2_settings_flood(c, n, stream):
    c.repeat(stream, c.frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 4096)) * 1_000)


@http2("error")
def h2_empty_data_flood(c, n, stream):
    c.headers([(":status", "200")], stream)
    c.repeat(stream, c.frame(DATA, 0, stream) * 1_000)


@http2("error")
def h2_padding_flood(c, n, stream):
    c.headers([(":status", "200")], stream)
    c.repeat(stream, c.frame(DATA, PADDED, stream, b"\xff" + bytes(255)) * 20)


@http2("error")
def h2_continuation_flood(c, n, stream):
    c.send(HEADERS, 0, stream, c.encoder.encode([(":status", "200")]))
    field = b"\x00\x03x-y" + b"\x7f\x81\x06" + b"v" * 1_000
    c.repeat(stream, c.frame(CONTINUATION, 0, stream, field))


@http2("error")
def h2_header_bomb(c, n, stream):
    # One field of 4 kB in the table, then references to it of one byte each.
    block = c.encoder.encode([(":status", "200")]) + b"\x40\x01b\x7f\xa1\x1e" + b"v" * 4_000 + b"\xbe" * 16_000
    c.send(HEADERS, 0, stream, block[:16_000])
    c.send(CONTINUATION, END_HEADERS, stream, block[16_000:])
    c.stall(stream)


@http2("either")
def h2_informational_flood(c, n, stream):
    block = c.encoder.encode([(":status", "103")])
    c.repeat(stream, c.frame(HEADERS, END_HEADERS, stream, block) * 100)


@http2("either")
def h2_trailers_twice(c, n, stream):
    c.headers([(":status", "200")], stream)
    c.send(DATA, 0, stream, honest(n))
    c.headers([("x", "y")], stream)
    c.headers([("x", "y")], stream, END_HEADERS | END_STREAM)


@http2("error")
def h2_drip(c, n, stream):
    c.headers([(":status", "200"), ("content-length", "1000000")], stream)
    c.repeat(stream, c.frame(DATA, 0, stream, b"x"), DRIP_SECONDS)


@http2("error")
def h2_ping_drip(c, n, stream):
    c.repeat(stream, c.frame(PING, 0, 0, bytes(8)), DRIP_SECONDS)


@http2("error")
def h2_silence(c, n, stream):
    c.stall(stream)


@http2("error")
def h2_silence_after_head(c, n, stream):
    c.headers([(":status", "200"), ("content-length", "1000")], stream)
    c.stall(stream)


@http2("either")
def h2_more_than_declared(c, n, stream):
    body = honest(n)
    c.headers([(":status", "200"), ("content-length", str(len(body)))], stream)
    c.send(DATA, 0, stream, body)
    c.send(DATA, END_STREAM, stream, POISON)


@http2("error")
def h2_less_than_declared(c, n, stream):
    body = honest(n)
    c.headers([(":status", "200"), ("content-length", str(len(body)))], stream)
    c.send(DATA, END_STREAM, stream, body[:-20])


@http2("either")
def h2_data_after_end(c, n, stream):
    c.answer(honest(n), stream)
    c.send(DATA, END_STREAM, stream, POISON)


@http2("either")
def h2_data_on_idle_stream(c, n, stream):
    c.answer(honest(n), stream)
    c.headers([(":status", "200")], stream + 2)
    c.send(DATA, END_STREAM, stream + 2, POISON)


@http2("either")
def h2_answer_before_request(c, n, stream):
    # The client will use this stream for its next request.
    c.headers([(":status", "200"), ("content-length", str(len(POISON)))], stream + 2)
    c.send(DATA, END_STREAM, stream + 2, POISON)
    c.answer(honest(n), stream)


@http2("either")
def h2_push(c, n, stream):
    request = [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", "/honest/1")]
    c.send(PUSH_PROMISE, END_HEADERS, stream, struct.pack(">I", 2) + c.encoder.encode(request))
    c.answer(honest(n), stream)
    c.answer(POISON, 2)


@http2("either")
def h2_unknown_frames(c, n, stream):
    c.write(c.frame(0xEE, 0, 0, bytes(1_000)) * 1_000)
    c.answer(honest(n), stream)


@http2("either")
def h2_unknown_frames_flood(c, n, stream):
    c.repeat(stream, c.frame(0xEE, 0, 0, bytes(10)) * 1_000)


@http2("either")
def h2_priority_flood(c, n, stream):
    c.repeat(stream, c.frame(PRIORITY, 0, stream + 2, struct.pack(">IB", 0, 1)) * 1_000)


@http2("either")
def h2_window_flood(c, n, stream):
    c.repeat(stream, c.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1)) * 1_000)


@http2("error")
def h2_window_overflow(c, n, stream):
    c.write(c.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7FFFFFFF)) * 2)
    c.stall(stream)


@http2("error")
def h2_frame_too_large(c, n, stream):
    c.headers([(":status", "200")], stream)
    c.send(DATA, 0, stream, bytes(1 << 20))
    c.stall(stream)


@http2("error")
def h2_reset(c, n, stream):
    c.send(RST_STREAM, 0, stream, struct.pack(">I", 2))


@http2("error")
def h2_reset_in_body(c, n, stream):
    c.headers([(":status", "200"), ("content-length", "1000")], stream)
    c.send(DATA, 0, stream, bytes(100))
    c.send(RST_STREAM, 0, stream, struct.pack(">I", 8))


@http2("either")
def h2_go_away(c, n, stream):
    c.send(GOAWAY, 0, 0, struct.pack(">II", 0, 0))
    raise Gone()


@http2("either")
def h2_go_away_and_on(c, n, stream):
    c.send(GOAWAY, 0, 0, struct.pack(">II", stream, 0))
    c.answer(honest(n), stream)


@http2("error")
def h2_bad_compression(c, n, stream):
    c.send(HEADERS, END_HEADERS, stream, b"\xff\xff\xff\xff\xff\xff")
    c.stall(stream)


@http2("error")
def h2_no_more_streams(c, n, stream):
    c.send(SETTINGS, 0, 0, struct.pack(">HI", 3, 0))
    c.send(RST_STREAM, 0, stream, struct.pack(">I", 7))


@http2("error")
def h2_upper_case_field(c, n, stream):
    c.send(HEADERS, END_HEADERS, stream, c.encoder.encode([(":status", "200"), ("X-Upper", "y")]))
    c.send(DATA, END_STREAM, stream, honest(n))


@http2("error")
def h2_flood_body(c, n, stream):
    c.headers([(":status", "200")], stream)
    # Ignore the flow-control window.
    c.repeat(stream, c.frame(DATA, 0, stream, bytes(16_000)) * 10)


@http2("error")
def h2_plain_answer(c, n, stream):
    c.write(POISONED_ANSWER)
    c.stall(stream)


# Many variants of the same faults, each loaded less often.
TABLE = http2_table.behaviours(honest, POISON)


# Serving


def parse(path):
    parts = path.split("?")[0].split("/")
    return parts[1], int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0


def serve_plain(sock):
    connection = Connection(sock)
    while True:
        request = connection.read_head()
        fields = request.split(b" ", 2)
        name, number = parse(fields[1].decode("latin-1"))
        if name == "honest":
            connection.send(answer(honest(number)))
        elif name in PLAIN:
            PLAIN[name][0](connection, number)
        elif name in TABLE:
            # A server may ask for HTTP/1.1.
            connection.send(answer(honest(number)))
        else:
            connection.send(answer(b"no such behaviour", 404))


def serve_tls(sock, context):
    with context.wrap_socket(sock, server_side=True) as secure:
        if secure.selected_alpn_protocol() == "h2":
            HTTP2Connection(secure).serve(HTTP2 | TABLE)
        else:
            serve_plain(secure)


def serve_silent_tls(sock):
    """A port whose TLS handshake never gets an answer."""
    Connection(sock).stall()


def serve_dripping_tls(sock):
    """A port whose answer to the TLS handshake comes byte by byte."""
    connection = Connection(sock)
    sock.recv(65536)
    connection.drip(b"\x16\x03\x03\x40\x00" + bytes(20_000))


def run(handler, sock):
    try:
        sock.settimeout(SEND_TIMEOUT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handler(sock)
    except (Gone, OSError, ssl.SSLError, ValueError, IndexError, KeyError, hpack.HPACKError):
        pass
    finally:
        sock.close()


def accept(listener, handler):
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=run, args=(handler, sock), daemon=True).start()


def listen(address, handler):
    listener = socket.create_server((address, 0), backlog=511)
    threading.Thread(target=accept, args=(listener, handler), daemon=True).start()
    return listener.getsockname()[1]


def context(folder, protocols):
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    result.load_cert_chain(os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem"))
    result.set_alpn_protocols(protocols)
    return result


def make_certificate(folder):
    names = ",".join("IP:" + address for address in ADDRESSES)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=hostile", "-addext", "subjectAltName=" + names]
        + ["-keyout", os.path.join(folder, "key.pem"), "-out", os.path.join(folder, "certificate.pem")],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main():
    global BOMB
    folder = sys.argv[1]
    # A real attacker is another machine, so this process must not take processor time from the loader. With the lowest
    # niceness alone, threads that wake up would still wait for milliseconds.
    os.nice(19)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    make_certificate(folder)
    BOMB = gzip.compress(bytes(256 << 20), 6)
    secure, secure_plain = context(folder, ["h2"]), context(folder, ["http/1.1"])
    behaviours = []

    def add(name, scheme, handler, expectation, honest_neighbour=True, is_in_table=False):
        # Each behaviour has its own port, so that its leftovers on a connection meet its own neighbours.
        address = ADDRESSES[len(behaviours) % len(ADDRESSES)]
        behaviours.append(
            {
                "name": name,
                "origin": "%s://%s:%d" % (scheme, address, listen(address, handler)),
                "path": name.removeprefix("tls-") if name.startswith("tls-surplus") else name,
                "expectation": expectation,
                "hasHonestNeighbour": honest_neighbour,
                "isInTable": is_in_table,
            }
        )

    for name, (_, expectation) in PLAIN.items():
        add(name, "http", serve_plain, expectation)
        if name.startswith("surplus"):
            add("tls-" + name, "https", lambda sock: serve_tls(sock, secure_plain), expectation)
    for name, (_, expectation) in HTTP2.items():
        add(name, "https", lambda sock: serve_tls(sock, secure), expectation)
    for name, (_, expectation) in TABLE.items():
        add(name, "https", lambda sock: serve_tls(sock, secure), expectation, is_in_table=True)
    add("tls-silence-in-handshake", "https", serve_silent_tls, "error", False)
    add("tls-drip-in-handshake", "https", serve_dripping_tls, "error", False)
    description = {"certificate": os.path.join(folder, "certificate.pem"), "behaviours": behaviours}
    partial = os.path.join(folder, "origin.partial")
    with open(partial, "w") as file:
        json.dump(description, file)
    os.rename(partial, os.path.join(folder, "origin.json"))
    signal.pause()


BOMB = b""
main()
