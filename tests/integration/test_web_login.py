# SPDX-License-Identifier: Apache-2.0
"""Who asks a web server: bearer tokens (RFC 6750) and certificates of clients, on nginx; and where they do not go."""
import contextlib
import json
import os
import pty
import select
import subprocess
import time

import pytest

from tests.integration.hrclient import Client, RpcError
from tests.integration.test_protocol import HEADRACED, expected_rows, start, write_tree  # noqa: F401
from tests.integration.test_storage import Follower, serve  # noqa: F401
from tests.rig.nginx import Nginx

pytestmark = pytest.mark.sanitize

TOKEN = "eyJhbGciOi.J-_~+/9=="


def wait_for(what):
    for _ in range(1500):
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it has not come to that")


def sources(url, **access):
    return "--set", "sources=" + json.dumps([{"url": url, **{key: str(path) for key, path in access.items()}}])


def failure(client):
    """The error of the only source, once it has one: "CODE MESSAGE"."""
    def error():
        return client.call("status")["sources"][0].get("error")
    found = wait_for(error)
    return f"{found['code']} {found['message']}"


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """An authority, a certificate of it for a client, and its key, also under a pass phrase."""
    place = tmp_path_factory.mktemp("pki")

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], cwd=place, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-days", 2, "-subj", "/CN=authority", "-keyout", "ca-key.pem", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=reader", "-keyout", "key.pem", "-out", "request.pem")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", 2,
            "-out", "certificate.pem")
    openssl("pkey", "-in", "key.pem", "-aes256", "-passout", "pass:phrase", "-out", "locked.pem")
    (place / "both.pem").write_bytes((place / "certificate.pem").read_bytes() + (place / "key.pem").read_bytes())
    return place


def test_a_token_is_read_again_when_its_file_changes(start, tmp_path):
    tree, file = write_tree(tmp_path / "logs", runs=3, steps=20), tmp_path / "token"
    with Nginx(tree, token=TOKEN) as nginx:
        daemon = start("--set", "poll=0.1", "--set", "log.level=debug", *sources(nginx.url, bearer_file=file))
        with Client(daemon.socket_path) as client:
            said = failure(client)
            assert said.startswith("ENOENT ") and str(file) in said and "bearer_file" in said
            assert not nginx.requests()  # without a token nothing is asked
            file.write_text("two words\n")
            wait_for(lambda: failure(client).startswith("bearer-file "))
            file.write_text("of-yesterday")
            wait_for(lambda: failure(client).startswith("401 "))
            said = failure(client)
            assert f"the token of {file} (bearer_file)" in said and "of-yesterday" not in said
            (tmp_path / "new").write_text(f"\n  {TOKEN}\r\n")
            (tmp_path / "new").rename(file)
            Follower(client).until(expected_rows(tree))
            assert "of-yesterday" not in json.dumps(client.call("status")) and TOKEN not in json.dumps(client.call("status"))
        assert TOKEN not in daemon.stderr() and "of-yesterday" not in daemon.stderr()


def test_without_a_token_it_is_told_what_to_set(start, tmp_path):
    with Nginx(write_tree(tmp_path / "logs", runs=1, steps=3), token=TOKEN) as nginx:
        daemon = start(nginx.url)
        with Client(daemon.socket_path) as client:
            said = failure(client)
            assert said.startswith("401 ") and "~/.netrc" in said and "bearer_file" in said


def test_a_token_stays_with_its_host(start, tmp_path, serve):
    """Another port is another host, as RFC 6454 has origins."""
    tree, file = write_tree(tmp_path / "logs", runs=3, steps=20), tmp_path / "token"
    file.write_text(TOKEN)
    front, behind = serve(tree), serve(tree)
    for run in range(3):
        name = next((tree / f"run{run}").iterdir()).name
        front.control({"fault": "redirect", "path": f"/run{run}/{name}", "location": f"{behind.url}run{run}/{name}"})
    daemon = start(*sources(front.url, bearer_file=file))
    with Client(daemon.socket_path) as client:
        Follower(client).until(expected_rows(tree))
    assert {request["headers"].get("authorization") for request in front.requests()} == {"Bearer " + TOKEN}
    assert len(behind.requests()) == 3
    assert {request["headers"].get("authorization") for request in behind.requests()} == {None}


@pytest.mark.parametrize("files", [("certificate.pem", "key.pem"), ("both.pem",)], ids=" ".join)
def test_a_certificate_of_the_client(start, tmp_path, pki, monkeypatch, files):
    tree = write_tree(tmp_path / "logs", runs=3, steps=20)
    with Nginx(tree, tls=True, client_ca=pki / "ca.pem") as nginx:
        monkeypatch.setenv("CURL_CA_BUNDLE", str(nginx.certificate))
        access = dict(zip(("client_certificate", "client_key"), (pki / file for file in files)))
        daemon = start(*sources(nginx.tls_url, **access))
        with Client(daemon.socket_path) as client:
            Follower(client).until(expected_rows(tree))


@pytest.mark.parametrize("access, code, words", [
    ({}, "400", "client_certificate of the source"),
    ({"client_certificate": "certificate.pem", "client_key": "locked.pem"}, "client-certificate", "pass phrase"),
    ({"client_certificate": "certificate.pem", "client_key": "ca-key.pem"}, "client-certificate", "key"),
    ({"client_certificate": "nothing.pem"}, "client-certificate", "nothing.pem"),
    ({"client_certificate": "server.pem", "client_key": "server-key.pem"}, "400", "server.pem"),
], ids=["none", "locked", "of another", "missing", "of a stranger"])
def test_certificates_that_do_not_do(start, tmp_path, pki, monkeypatch, access, code, words):
    with Nginx(write_tree(tmp_path / "logs", runs=1, steps=3), tls=True, client_ca=pki / "ca.pem") as nginx:
        monkeypatch.setenv("CURL_CA_BUNDLE", str(nginx.certificate))
        (pki / "server.pem").write_bytes(nginx.certificate.read_bytes())  # one that the authority knows nothing of
        (pki / "server-key.pem").write_bytes((nginx.run / "key.pem").read_bytes())
        daemon = start(*sources(nginx.tls_url, **{key: pki / file for key, file in access.items()}))
        with Client(daemon.socket_path) as client:
            said = failure(client)
            assert said.startswith(code + " ") and words in said, said


def test_no_terminal_is_asked_for_a_pass_phrase(tmp_path, pki):
    """OpenSSL would, and wait for ever."""
    with Nginx(write_tree(tmp_path / "logs", runs=1, steps=3), tls=True, client_ca=pki / "ca.pem") as nginx:
        access = {"client_certificate": pki / "certificate.pem", "client_key": pki / "locked.pem"}
        child, terminal = pty.fork()
        if child == 0:
            os.environ["CURL_CA_BUNDLE"] = str(nginx.certificate)
            os.execv(HEADRACED, [str(HEADRACED), "--check", *sources(nginx.tls_url, **access)])
        said = b""
        with contextlib.suppress(OSError):  # EIO when the child has gone
            while select.select([terminal], [], [], 60)[0]:
                piece = os.read(terminal, 4096)
                said += piece
                if not piece or b"pass phrase:" in said:
                    break
        os.close(terminal)
        _, status = os.waitpid(child, 0)
        assert b"PEM pass phrase" not in said and b"client_key" in said and os.waitstatus_to_exitcode(status) > 0, said


def test_hdfs_that_wants_a_ticket_names_kinit_and_heals(start, tmp_path, serve, monkeypatch):
    """RFC 4559: 401 and WWW-Authenticate: Negotiate. There is no ticket here."""
    (tmp_path / "krb5.conf").write_text("[libdefaults]\ndefault_realm = TEST\ndns_lookup_kdc = false\n")
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/no-tickets")
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    (tmp_path / "logs").mkdir()
    server = serve(tmp_path / "logs")
    server.control({"fault": "status", "status": 401, "headers": {"WWW-Authenticate": "Negotiate"}})
    daemon = start("--set", "poll=0.1", server.url.replace("http", "webhdfs"))
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("401 ") and "Kerberos" in said and "kinit" in said and "HEADRACE_WEBHDFS_DELEGATION" in said, said
        server.control({"clear": True}, {"fault": "garbage", "body": '{"DirectoryListing": {"partialListing": {"FileStatuses": '
                                         '{"FileStatus": []}}, "remainingEntries": 0}}'})
        wait_for(lambda: client.call("status")["sources"][0]["state"] == "ok")


def test_files_are_named_by_the_configuration_alone(start, tmp_path, serve):
    """Who may add sources is not thereby allowed to have the daemon's files sent to a server."""
    (tmp_path / "secret").write_text(TOKEN)
    server = serve(write_tree(tmp_path / "logs", runs=1, steps=3))
    daemon = start(tmp_path / "logs")
    with Client(daemon.socket_path) as client:
        for key in ("bearer_file", "client_certificate", "client_key"):
            with pytest.raises(RpcError, match="for the configuration alone"):
                client.call("add_source", **{"url": server.url, key: str(tmp_path / "secret")})
    assert not server.requests()
