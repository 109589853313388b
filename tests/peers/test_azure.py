# SPDX-License-Identifier: Apache-2.0
"""az:// on Azurite, which checks signatures as Azure does."""
import time

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows, wanted_requests
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.rig import peer
from tests.rig.azurite import Azurite

NAMES = ["a b", "a+b", "a%2Bb", "a&b=c", "a?b", "a#b", "ü", "日本", "a;b,c", "~.-_", "x" * 200, "a:b@c"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def azure(tree):
    try:
        with Azurite() as server:
            server.put("exp", tree)
            server.put("exp2", tree)
            yield server
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def test_every_record_arrives(azure, tree):
    assert rows(headrace("dump", "az://logs/exp", env=azure.environment()).stdout) == expected_rows(tree)


def test_one_listing_and_one_read_a_file(azure):
    output = headrace("ls", "az://logs/exp", env=azure.environment()).stdout.decode()
    assert "6 runs, 6 files" in output
    assert wanted_requests("az://logs/exp", env=azure.environment()) == (1, 6)
    assert f"as the key of account {azure.account}" in output


def test_sas_of_the_environment_and_of_the_url(azure, tree):
    sas = azure.sas()
    environment = azure.environment(AZURE_STORAGE_KEY="", AZURE_STORAGE_SAS_TOKEN="?" + sas)
    assert rows(headrace("dump", "az://logs/exp", env=environment).stdout) == expected_rows(tree)
    output = headrace("ls", f"az://logs/exp?{sas}", env=azure.environment(AZURE_STORAGE_KEY="")).stdout.decode()
    assert "6 runs" in output and "as a SAS" in output and "sig=" not in output


def test_connection_string(azure):
    text = f"DefaultEndpointsProtocol=http;AccountName={azure.account};AccountKey={azure.key};BlobEndpoint={azure.url};"
    output = headrace("ls", "az://logs/exp", env={"AZURE_STORAGE_CONNECTION_STRING": text}).stdout.decode()
    assert "6 runs, 6 files" in output


def test_names_are_encoded_and_decoded_once(azure, tmp_path):
    for name in NAMES:
        write_events(tmp_path / name / "events.out.tfevents.1.host", [name], 3)
    azure.put("names", tmp_path)
    assert rows(headrace("dump", "az://logs/names", env=azure.environment()).stdout) == expected_rows(tmp_path)


def test_wrong_key_and_expired_sas_are_told_and_not_shown(azure):
    wrong = "d3Jvbmcga2V5IHdyb25nIGtleQ=="
    result = headrace("ls", "az://logs/exp", env=azure.environment(AZURE_STORAGE_KEY=wrong), code=3)
    assert b"AuthorizationFailure" in result.stderr or b"AuthenticationFailed" in result.stderr
    assert wrong.encode() not in result.stderr
    sas = azure.sas(-60)
    result = headrace("ls", "az://logs/exp", env=azure.environment(AZURE_STORAGE_KEY="", AZURE_STORAGE_SAS_TOKEN=sas), code=3)
    assert b"403" in result.stderr and b"sig=" not in result.stderr


def test_archived_blobs_are_told_and_read_when_their_tier_changes(azure, tmp_path, start, monkeypatch):  # noqa: F811
    logs = tmp_path / "logs"
    for run in ("hot", "cold"):
        write_events(logs / run / "events.out.tfevents.1.host", [run], 10)
    azure.put("archive", logs)
    azure.set_tier("archive/cold/events.out.tfevents.1.host", "Archive")
    url = "az://logs/archive"
    listed = headrace("ls", url, env=azure.environment(), code=1)
    assert listed.stdout.count(b" archived ") == 1
    assert b"cold" in listed.stderr and b"restore it first (az storage blob set-tier" in listed.stderr
    for name, value in azure.environment().items():
        monkeypatch.setenv(name, value)
    daemon = start("--set", "poll=0.1", url)
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        assert {run["run"]: run["state"] for run in client.call("runs")["runs"]} == {"hot": "loaded", "cold": "archived"}
        azure.set_tier("archive/cold/events.out.tfevents.1.host", "Hot")
        until = time.monotonic() + 60
        while "archived" in {run["state"] for run in client.call("runs")["runs"]}:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert client.call("wait_loaded")["failed"] == []
    assert rows(headrace("dump", "--socket", daemon.socket_path, url).stdout) == expected_rows(logs)


def test_a_container_that_is_not_there(azure):
    result = headrace("ls", "az://nowhere/exp", env=azure.environment(), code=3)
    assert b"ContainerNotFound" in result.stderr and b"container's name" in result.stderr
