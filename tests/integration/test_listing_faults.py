# SPDX-License-Identifier: Apache-2.0
"""Listings of an object store that go wrong, on a server of a few lines: pages of two objects, and what is ordered for the next ones.

Reference: ListObjectsV2, https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""
import base64
import email.utils
import http.server
import os
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower

PAGE = 2


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, size=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)
        if size is not None:
            self.close_connection = True

    def page(self, token):
        keys = sorted(str(path.relative_to(self.server.root)) for path in self.server.root.rglob("*") if path.is_file())
        keys = [key for key in keys if key > token]
        rows = ""
        for key in keys[:PAGE]:
            info = (self.server.root / key).stat()
            date = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(info.st_mtime))
            rows += (f"<Contents><Key>{escape(urllib.parse.quote(key))}</Key><LastModified>{date}</LastModified>"
                     f"<ETag>&quot;{info.st_mtime_ns:x}&quot;</ETag><Size>{info.st_size}</Size></Contents>")
        more = len(keys) > PAGE
        if more:
            rows += f"<NextContinuationToken>{base64.b64encode(keys[PAGE - 1].encode()).decode()}</NextContinuationToken>"
        return ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><EncodingType>url</EncodingType>'
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{rows}</ListBucketResult>").encode()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        query = urllib.parse.parse_qs(query)
        if "list-type" not in query:
            return self.read(urllib.parse.unquote(path).removeprefix("/logs/"))
        self.server.listings += 1
        token = base64.b64decode(query["continuation-token"][0]).decode() if "continuation-token" in query else ""
        fault = self.server.faults.pop(0) if self.server.faults else None
        body = self.page(token)
        if fault == "503":
            self.answer(503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>")
        elif fault == "403":
            self.answer(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        elif fault == "cut":
            self.answer(200, body[:len(body) // 2], len(body))
        elif fault == "half":
            self.answer(200, body[:len(body) // 2])
        elif fault == "again":  # the first page, whichever was asked for
            self.answer(200, self.page(""))
        else:
            self.answer(200, body)

    def read(self, key):
        try:
            data = (self.server.root / key).read_bytes()
        except OSError:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        piece = data[int(first):int(last) + 1]
        if not piece:
            return self.answer(416, b"", Content_Range=f"bytes */{len(data)}")
        date = email.utils.formatdate((self.server.root / key).stat().st_mtime, usegmt=True)
        return self.answer(206, piece, ETag='"%x"' % (self.server.root / key).stat().st_mtime_ns, Last_Modified=date,
                           Content_Range=f"bytes {first}-{int(first) + len(piece) - 1}/{len(data)}")


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.root, server.faults, server.listings = tmp_path / "logs", [], 0
    server.root.mkdir()
    for name in [name for name in os.environ if name.startswith(("AWS_", "S3_"))]:
        monkeypatch.delenv(name)
    for name, value in (("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:%d" % server.server_address[1]), ("AWS_ACCESS_KEY_ID", "x"),
                        ("AWS_SECRET_ACCESS_KEY", "y"), ("AWS_REGION", "us-east-1"), ("AWS_CONFIG_FILE", os.devnull),
                        ("AWS_SHARED_CREDENTIALS_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def state(client):
    source = client.call("status")["sources"][0]
    return source["state"], source["files"]


def wait_for(what):
    for _ in range(1500):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it has not come to that")


@pytest.mark.parametrize("faults", [["503"], [None, "503"], [None, None, "503", "503"], ["cut"], [None, "cut"], [None, "half"], ["half"],
                                    [None, "again"], [None, "again", "again", "503", "again"]], ids=str)
def test_one_thing_goes_wrong(start, bucket, faults):
    """The first listing has everything nevertheless, once; later ones that are hit change nothing."""
    write_tree(bucket.root, runs=7, steps=20)
    bucket.faults = list(faults)
    daemon = start("--set", "poll=0.1", "s3://logs/")
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(bucket.root))
        wait_for(lambda: state(client) == ("ok", 7))
        for _ in range(3):
            bucket.faults = list(faults)
            before = bucket.listings
            wait_for(lambda: not bucket.faults and bucket.listings > before + 8)
        write_events(next((bucket.root / "run3").iterdir()), ["loss", "acc/top1"], 5, first=20)
        follower.until(expected_rows(bucket.root))
        wait_for(lambda: state(client) == ("ok", 7))
        bad = hrclient.LOST | hrclient.REPLACED | hrclient.GONE
        assert not any(flags & bad for flags in follower.flags)


def test_a_listing_that_is_refused_is_told_and_heals(start, bucket):
    write_tree(bucket.root, runs=3, steps=20)
    daemon = start("--set", "poll=0.1", "s3://logs/")
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(bucket.root))
        bucket.faults = ["403"] * 5
        wait_for(lambda: state(client)[0] == "failing")
        source = client.call("status")["sources"][0]
        assert "AccessDenied" in source["error"]["code"] and source["files"] == 3
        write_tree(bucket.root, runs=4, steps=20)
        follower.until(expected_rows(bucket.root))
        wait_for(lambda: state(client) == ("ok", 4))


def test_a_bucket_of_no_objects(start, bucket):
    daemon = start("--set", "poll=0.1", "s3://logs/")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 0
        assert state(client) == ("ok", 0)
        write_tree(bucket.root, runs=1, steps=5)
        Follower(client).until(expected_rows(bucket.root))
