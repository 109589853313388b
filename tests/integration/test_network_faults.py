# SPDX-License-Identifier: Apache-2.0
"""The network between the daemon and web servers: names, addresses, redirects, certificates, idle connections."""
import contextlib
import errno
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower, serve  # noqa: F401
from tests.integration.test_web_login import failure, wait_for

pytestmark = pytest.mark.sanitize

HOST = "storage.test"  # RFC 6761: nobody's


def state(client):
    return client.call("status")["sources"][0]["state"]


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "logs", runs=3, steps=20)


# ---- Names and addresses ------------------------------------------------------------------------------------------------------------


class Names:
    """A mount namespace whose /etc/hosts is a file of ours, and where nobody else is asked for names."""

    def __init__(self, place):
        self.hosts = place / "hosts"
        (place / "nsswitch.conf").write_text("passwd: files\nhosts: files\n")
        (place / "host.conf").write_text("multi on\n")
        self.set()
        script = "; ".join(f'mount --bind "{place}/{name}" /etc/{name} || exit 9' for name in ("hosts", "nsswitch.conf", "host.conf"))
        user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
        self.inside = ("unshare", *user, "--mount", "sh", "-c", script + '; exec "$@"', "sh")

    def set(self, *addresses):
        self.hosts.write_text("".join(f"{address} {HOST}\n" for address in ("127.0.0.1 localhost", *addresses)).replace(
            f"localhost {HOST}", "localhost"))


@pytest.fixture
def names(tmp_path):
    names = Names(tmp_path)
    if not shutil.which("unshare") or subprocess.run([*names.inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    return names


def test_a_name_that_cannot_be_resolved_and_then_can(start, tree, serve, names):
    server = serve(tree)
    port = server.url.rstrip("/").rpartition(":")[2]
    daemon = start("--set", "poll=0.1", f"http://{HOST}:{port}/", inside=names.inside)
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("resolve ") and HOST in said, said
        names.set("127.0.0.1")
        follower = Follower(client)
        follower.until(expected_rows(tree))
        assert state(client) == "ok"
        names.set()  # what is known is better than nothing
        write_events(tree / "run3" / "events.out.tfevents.1.host", ["loss"], 5)
        follower.until(expected_rows(tree))
    assert not server.requests()[0]["headers"].get("authorization")


def test_a_host_that_has_moved(start, tree, serve, names):
    """Nobody answers at the address that was given first; it is not waited for until it is a minute old."""
    names.set("127.0.0.9")
    port = serve(tree).url.rstrip("/").rpartition(":")[2]
    daemon = start("--set", "poll=0.1", f"http://{HOST}:{port}/", inside=names.inside)
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("refused ") and HOST in said, said
        names.set("127.0.0.1")
        wait_for(lambda: state(client) == "ok")
        Follower(client).until(expected_rows(tree))


@contextlib.contextmanager
def full_listener(address, port):
    """Takes no connections: those that come now wait for an answer in vain."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(8):
            one = held.enter_context(socket.socket())
            one.setblocking(False)
            assert one.connect_ex((address, port)) in (0, errno.EINPROGRESS)
        yield


@pytest.mark.parametrize("order", [("127.0.0.9", "127.0.0.1"), ("127.0.0.1", "127.0.0.9")], ids=["first", "second"])
@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_one_dead_address_of_two(start, tree, serve, names, order, hangs):
    names.set(*order)
    server = serve(tree)
    port = server.url.rstrip("/").rpartition(":")[2]
    with full_listener("127.0.0.9", int(port)) if hangs else contextlib.nullcontext():
        daemon = start("--set", "poll=never", f"http://{HOST}:{port}/", inside=names.inside)
        with Client(daemon.socket_path) as client:
            follower = Follower(client)
            follower.until(expected_rows(tree))
            source = client.call("status")["sources"][0]
            assert source["state"] == "ok" and "error" not in source
            assert source["requests"]["list"] == 1 + 3  # they went on to the other address, and nobody had to ask again
            write_events(tree / "run3" / "events.out.tfevents.1.host", ["loss"], 5)
            client.call("reload")
            follower.until(expected_rows(tree))


# ---- Redirects ----------------------------------------------------------------------------------------------------------------------


def test_redirects_in_a_circle(start, tree, serve):
    server = serve(tree)
    server.control({"fault": "redirect", "location": "/run0/"})
    daemon = start("--set", "poll=0.1", server.url)
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("redirects ") and server.url in said, said
        server.control({"clear": True})
        Follower(client).until(expected_rows(tree))


def test_reads_that_are_redirected_in_a_circle(start, tree, serve):
    server = serve(tree)
    server.control({"fault": "redirect", "path": "/run1/*tfevents*", "location": "/run1/x.tfevents"})
    daemon = start("--set", "poll=0.1", server.url)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until({name: rows for name, rows in expected_rows(tree).items() if not name.startswith("run1/")})
        wait_for(lambda: client.call("status")["sources"][0]["failed"] == 1)
        server.control({"clear": True})
        write_events(next((tree / "run1").iterdir()), ["loss", "acc/top1"], 5, first=20)  # its row changes: it is read at once
        follower.until(expected_rows(tree))


def test_a_namenode_that_redirects_in_a_circle(start, tmp_path, serve, monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    (tmp_path / "logs").mkdir()
    server = serve(tmp_path / "logs")
    server.control({"fault": "redirect", "location": "/webhdfs/v1/?op=LISTSTATUS_BATCH"})
    daemon = start("--set", "poll=0.1", server.url.replace("http", "webhdfs"))
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("redirects ") and server.url in said, said
        server.control({"clear": True}, {"fault": "garbage", "body": json.dumps(
            {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": []}}, "remainingEntries": 0}})})
        wait_for(lambda: state(client) == "ok")


# ---- Certificates -------------------------------------------------------------------------------------------------------------------


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_):
        pass


@pytest.fixture
def https(tmp_path):
    """A server with a certificate of its own, which is for another name; .certificate, .port, .asked."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=elsewhere.test", "-addext", "subjectAltName=DNS:elsewhere.test", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request, client_address):
            with contextlib.suppress(OSError), context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)

    server = Server(("127.0.0.1", 0), Quiet)
    server.asked, server.port, server.certificate = [], server.server_address[1], certificate
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


ENDPOINTS = {
    "https": ("https://localhost:{port}/logs", {}),
    "s3": ("s3://logs/exp", {"AWS_ENDPOINT_URL_S3": "https://localhost:{port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
                             "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}),
    "gs": ("gs://logs/exp", {"STORAGE_EMULATOR_HOST": "https://localhost:{port}"}),
    "az": ("az://logs/exp", {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "a2V5", "AZURE_STORAGE_ENDPOINT": "https://localhost:{port}/a"}),
    "swebhdfs": ("swebhdfs://localhost:{port}/logs", {"HADOOP_USER_NAME": "alice"}),
}


@pytest.mark.parametrize("wrong", ["authority", "name"])
@pytest.mark.parametrize("scheme", ENDPOINTS)
def test_a_wrong_certificate_is_refused(start, https, monkeypatch, scheme, wrong):
    for name in [name for name in os.environ if name.startswith(("AWS_", "S3_", "AZURE_", "GOOGLE_", "CURL_CA", "SSL_CERT"))]:
        monkeypatch.delenv(name)
    url, environment = ENDPOINTS[scheme]
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(port=https.port))
    if wrong == "name":
        monkeypatch.setenv("CURL_CA_BUNDLE", str(https.certificate))
    daemon = start("--set", "poll=0.1", url.format(port=https.port))
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("certificate ") and f"https://localhost:{https.port}" in said and "CURL_CA_BUNDLE" in said, said
    assert not https.asked


# ---- Idle connections ---------------------------------------------------------------------------------------------------------------


class Hasty(http.server.SimpleHTTPRequestHandler):
    """It ends connections that nobody uses, without having said so."""
    protocol_version = "HTTP/1.1"
    timeout = 0.02

    def log_message(self, *_):
        pass

    def handle(self):
        self.server.connections += 1
        super().handle()

    def do_GET(self):
        path = self.server.root / self.path.strip("/")
        if path.is_dir():
            return self.answer(200, json.dumps([{"name": entry.name, "type": "directory"} if entry.is_dir() else
                                                {"name": entry.name, "type": "file", "size": entry.stat().st_size,
                                                 "mtime": self.date_time_string(entry.stat().st_mtime)}
                                                for entry in path.iterdir()]).encode())
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        data = path.read_bytes()
        piece = data[first:last + 1]
        self.answer(206, piece, **{"Content-Range": f"bytes {first}-{first + len(piece) - 1}/{len(data)}"})

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def test_connections_that_the_server_ends_between_polls(start, tree):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hasty)
    server.daemon_threads, server.root, server.connections = True, tree, 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        daemon = start("--set", "poll=0.1", "http://127.0.0.1:%d/" % server.server_address[1])
        with Client(daemon.socket_path) as client:
            follower = Follower(client)
            follower.until(expected_rows(tree))
            for step in range(5):
                before = server.connections
                wait_for(lambda: server.connections > before + 3)  # the polls go on, with new connections
                write_events(next((tree / "run1").iterdir()), ["loss", "acc/top1"], 5, first=20 + 5 * step)
                follower.until(expected_rows(tree))
            source = client.call("status")["sources"][0]
            assert source["state"] == "ok" and "error" not in source and not any(source["requests"]["repeated"].values())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
