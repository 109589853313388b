# SPDX-License-Identifier: Apache-2.0
"""az:// on Azurite, which checks signatures as Azure does."""
import pytest

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


def test_a_container_that_is_not_there(azure):
    result = headrace("ls", "az://nowhere/exp", env=azure.environment(), code=3)
    assert b"ContainerNotFound" in result.stderr and b"container's name" in result.stderr
