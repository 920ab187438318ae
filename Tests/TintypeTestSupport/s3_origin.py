# SPDX-License-Identifier: Apache-2.0
"""A real S3 store (moto) for the tests, which checks each signature with Amazon's own code (botocore).

Usage: s3_origin.py FILE. The server writes its port into FILE when it is ready. It refuses requests whose signature is
wrong, as S3 does, except for the bucket "public". It logs each request as a line of JSON on its output.
"""

import hashlib
import io
import json
import os
import sys
import threading
from urllib.parse import quote, unquote_to_bytes

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

SECRETS = {"AKTEST": ("s3cr/et+key", None), "AKSESSION": ("other-secret", "session/token+==")}


def field(text, name):
    return text.partition(name + "=")[2].partition(",")[0]


def signature_fault(environ):
    """Returns None if the request is signed as S3 demands, and otherwise the code of the error."""
    header = environ.get("HTTP_AUTHORIZATION", "")
    if not header.startswith("AWS4-HMAC-SHA256 "):
        return "AccessDenied"
    key, _, region, service, _ = field(header, "Credential").split("/")
    if key not in SECRETS:
        return "InvalidAccessKeyId"
    secret, token = SECRETS[key]
    signed = field(header, "SignedHeaders").split(";")
    present = {
        name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")
    }
    # WSGI has no prefix for this field.
    present["content-type"] = environ.get("CONTENT_TYPE", "")
    amazons = [name for name in present if name.startswith("x-amz-")]
    if "host" not in signed or any(name not in signed for name in amazons) or "x-amz-content-sha256" not in signed:
        return "HeadersNotSigned"
    if present.get("x-amz-security-token") != token:
        return "InvalidToken"
    path, _, query = environ["RAW_URI"].partition("?")
    request = AWSRequest(method=environ["REQUEST_METHOD"], url=path)
    request.context["timestamp"] = present["x-amz-date"]
    canonical = "\n".join([
        request.method,
        canonical_text(path, "/"),
        "&".join(sorted("=".join(canonical_text(part, "") for part in item.split("=")) for item in query.split("&"))),
        # The names are sorted, not the lines: a colon is behind a hyphen.
        "".join(f"{name}:{' '.join(present[name].split())}\n" for name in sorted(signed)),
        ";".join(sorted(signed)),
        present["x-amz-content-sha256"],
    ])
    signer = S3SigV4Auth(Credentials(key, secret), service, region)
    expected = signer.signature(signer.string_to_sign(request, canonical), request)
    if expected != field(header, "Signature"):
        return "SignatureDoesNotMatch"
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return None if hashlib.sha256(body).hexdigest() == present["x-amz-content-sha256"] else "XAmzContentSHA256Mismatch"


def canonical_text(text, safe):
    """Spells a text of a URL as S3 does before it signs."""
    return quote(unquote_to_bytes(text), safe=safe)


class Store:
    def __init__(self):
        self.checks_signatures = False
        self.moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ, start_response):
        target = environ["RAW_URI"]
        fault = None
        if self.checks_signatures and not target.startswith("/public/"):
            fault = signature_fault(environ)
        names = ("HTTP_HOST", "HTTP_AUTHORIZATION", "HTTP_X_AMZ_SECURITY_TOKEN", "HTTP_ACCEPT", "HTTP_COOKIE")
        line = {"method": environ["REQUEST_METHOD"], "target": target, "fault": fault} | {name: environ.get(name) for name in names}
        print(json.dumps(line), flush=True)
        if fault:
            body = f"<Error><Code>{fault}</Code></Error>".encode()
            start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        return self.moto(environ, start_response)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *arguments):
        pass


def fill(port):
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="setup",
        aws_secret_access_key="setup",
        config=Config(s3={"addressing_style": "path"}),
    )
    for bucket in ("photos", "public", "cache"):
        client.create_bucket(Bucket=bucket)
    keys = [
        "plain.jpg", "a b/c d.jpg", "é/ü😀.jpg", "a+b.jpg", "100%.jpg", "a%20b.jpg", "q?x=1&y#z.jpg", "~!$&'()*,;=:@.jpg",
        "/leading.jpg", "a//b.jpg", "tail/", "%2e%2e.jpg",
    ]
    for key in keys:
        client.put_object(Bucket="photos", Key=key, Body=f"body of {key}".encode(), CacheControl="max-age=60")
    client.put_object(Bucket="public", Key="open.jpg", Body=b"open", ACL="public-read")
    client.put_object(Bucket="photos", Key="large.jpg", Body=b"x" * 100_000)
    client.create_bucket(Bucket="versions")
    client.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    first = client.put_object(Bucket="versions", Key="v.jpg", Body=b"first")["VersionId"]
    client.put_object(Bucket="versions", Key="v.jpg", Body=b"second")
    return first


def main():
    store = Store()
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    version = fill(server.server_port)
    store.checks_signatures = True
    with open(sys.argv[1] + ".new", "w", encoding="utf-8") as file:
        json.dump({"port": server.server_port, "version": version}, file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    threading.Event().wait()


if __name__ == "__main__":
    main()
