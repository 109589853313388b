# SPDX-License-Identifier: Apache-2.0
"""gs:// on a server that others wrote. Credentials: tests/integration/test_gcs.py."""
import pathlib
import time

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows, wanted_requests
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.rig import peer
from tests.rig.gcs_fake import FakeGcs

TOP = pathlib.Path(__file__).resolve().parents[2]
NAME = "events.out.tfevents.1.host"
HARD_NAMES = ["a b", "a+b", "a%2Bb", "a%b", "a&b=c", "a?b", "a#b", "ü", "日本", "a'b\"c", "a<b>c", "a;b", "a:b@c", "a\\b", "x" * 900]


@pytest.fixture(scope="module")
def server():
    try:
        with FakeGcs() as one:
            yield one
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def test_every_record_arrives(server, tmp_path):
    tree = write_tree(tmp_path)
    server.put("exp", tree)
    server.put("exp2", tree)
    assert rows(headrace("dump", "gs://logs/exp", env=server.environment()).stdout) == expected_rows(tree)
    said = headrace("ls", "gs://logs/exp", env=server.environment()).stdout.decode()
    assert "6 runs, 6 files" in said
    assert wanted_requests("gs://logs/exp", env=server.environment()) == (1, 6)


def test_fixtures_are_dumped_as_local_files_are(server):
    fixtures = TOP / "tests/data/fixtures"
    server.put("fixtures", fixtures)
    local = headrace("dump", fixtures, code=1)
    assert headrace("dump", "gs://logs/fixtures", code=1, env=server.environment()).stdout == local.stdout


def test_hard_keys(server, tmp_path):
    write_events(tmp_path / NAME, ["loss"], 3)
    for name in HARD_NAMES:
        server.put_object(f"hard/{name}/{NAME}", (tmp_path / NAME).read_bytes())
    found = rows(headrace("dump", "gs://logs/hard", env=server.environment()).stdout)
    assert sorted(found) == sorted(f"{name}/{NAME}" for name in HARD_NAMES)
    assert all(len(some) == 3 for some in found.values())


def test_a_bucket_that_is_not_there(server):
    assert b"404" in headrace("ls", "gs://nowhere/exp", code=3, env=server.environment()).stderr


def test_growth_is_followed(server, tmp_path, start, monkeypatch):  # noqa: F811
    write_events(tmp_path / NAME, ["loss"], 10)
    data = (tmp_path / NAME).read_bytes()
    server.put_object(f"grows/{NAME}", data[:len(data) // 2])
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    daemon = start("--set", "poll=0.1", "gs://logs/grows")
    with Client(daemon.socket_path) as client:
        server.put_object(f"grows/{NAME}", data)
        until = time.monotonic() + 60
        while client.call("files")["files"][0]["loaded_bytes"] < len(data):
            assert time.monotonic() < until
            time.sleep(0.05)
