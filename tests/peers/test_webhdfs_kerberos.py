# SPDX-License-Identifier: Apache-2.0
"""webhdfs:// behind SPNEGO (RFC 4559): a KDC, Apache's mod_auth_gssapi, and HDFS behind it."""
import os

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower
from tests.integration.test_web_login import failure, wait_for
from tests.rig import peer
from tests.rig.hadoop import HOME, Hadoop
from tests.rig.kerberos import Front, Kerberos


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs"), runs=12, steps=20)


@pytest.fixture(scope="module")
def hadoop(tree):
    try:
        with Hadoop() as server:
            server.put("exp", tree)
            yield server
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def realm():
    try:
        with Kerberos() as realm:
            yield realm
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=[True, False], ids=["sessions", "no sessions"])
def front(request, realm, hadoop):
    """With sessions a cookie says who asks after the first answer, as Hadoop's own filter has it; without, each request negotiates."""
    realm.log_in()
    try:
        with Front(realm, hadoop, request.param) as front:
            yield front
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def ours(realm):
    return {**realm.environment, "HADOOP_USER_NAME": "stranger", "HEADRACE_WEBHDFS_DELEGATION": ""}


def test_every_record_arrives_with_the_ticket(front, realm, tree):
    assert rows(headrace("dump", f"{front.url}{HOME}/exp", env=ours(realm)).stdout) == expected_rows(tree)
    taken = [line for line in front.requests() if line[0] < 400]
    assert not any("user.name=" in asked for _, asked, _, _ in taken)  # the ticket says who asks
    assert sum("op=OPEN" in asked for _, asked, _, _ in taken) == 12
    with_ticket = sum(ticket for _, _, _, ticket in taken)
    assert with_ticket == (1 if front.sessions else len(taken))


def test_who_asks_is_told(front, realm):
    assert b"as a Kerberos ticket" in headrace("ls", f"{front.url}{HOME}/exp", env=ours(realm)).stdout


def test_without_a_ticket_kinit_is_named_and_heals(start, front, realm, tree, monkeypatch):
    realm.log_out()
    for name, value in ours(realm).items():
        monkeypatch.setenv(name, value)
    daemon = start("--set", "poll=0.1", f"{front.url}{HOME}/exp")
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("401 ") and "SPNEGO cannot find mechanisms" in said and "kinit" in said, said
        realm.log_in()
        Follower(client).until(expected_rows(tree))


def test_a_login_that_the_server_forgets_is_made_again(start, hadoop, realm, tree, monkeypatch):
    """The server starts anew with another key: the cookie is worth nothing. Files come and are read without a restart."""
    realm.log_in()
    for name, value in ours(realm).items():
        monkeypatch.setenv(name, value)
    try:
        with Front(realm, hadoop, True) as front:
            daemon = start("--set", "poll=0.1", f"{front.url}{HOME}/more")
            write_events(tree / "more" / "a" / "events.out.tfevents.1.host", ["loss"], 3)
            hadoop.put("more", tree / "more")
            with Client(daemon.socket_path) as client:
                follower = Follower(client)
                follower.until(expected_rows(tree / "more"))
                port = front.url.rpartition(":")[2]
                front.end_processes()
                os.truncate(front.run / "access.log", 0)
                front.start_again(port)
                write_events(tree / "more" / "b" / "events.out.tfevents.1.host", ["loss"], 3)
                hadoop.put("more", tree / "more")
                follower.until(expected_rows(tree / "more"))
            assert sum(ticket for _, _, _, ticket in front.requests()) == 1
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def test_a_service_that_the_kdc_does_not_know(front, realm):
    result = headrace("ls", f"{front.url.replace('localhost', '127.0.0.1')}{HOME}/exp", env=ours(realm), code=3)
    assert b"Server HTTP/127.0.0.1@HEADRACE.TEST not found in Kerberos database" in result.stderr, result.stderr
    assert b"kinit" in result.stderr
