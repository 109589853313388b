# SPDX-License-Identifier: Apache-2.0
"""webhdfs:// on a NameNode and a DataNode."""
import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.rig import peer
from tests.rig.hadoop import HOME, USER, Hadoop

AS_READER = {"HADOOP_USER_NAME": USER, "HEADRACE_WEBHDFS_DELEGATION": ""}
NAMES = ["a b", "a+b", "a%2Bb", "a&b=c", "a?b", "a#b", "ü", "日本", "~.-_", "x" * 200]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """More runs than a page of a listing has, and a file of more than one block and one part."""
    tree = write_tree(tmp_path_factory.mktemp("logs"), runs=12)
    write_events(tree / "large" / "events.out.tfevents.1.host", [f"tag{number}" for number in range(50)], 3000)
    return tree


@pytest.fixture(scope="module")
def hadoop(tree):
    try:
        with Hadoop() as server:
            server.put("exp", tree)
            yield server
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def test_every_record_arrives(hadoop, tree):
    output = headrace("dump", f"{hadoop.url}{HOME}/exp", env={**AS_READER, "HEADRACE_FETCH_PART": "1M"}).stdout
    assert rows(output) == expected_rows(tree)


def test_listed_in_pages_and_as_whom(hadoop):
    output = headrace("ls", f"{hadoop.url}{HOME}/exp", env=AS_READER).stdout.decode()
    assert "13 runs, 13 files" in output and f"as user {USER}" in output
    assert "16 LIST" in output  # three pages of the first directory, one of each run


def test_names_are_encoded_and_decoded_once(hadoop, tmp_path):
    for name in NAMES:
        write_events(tmp_path / name / "events.out.tfevents.1.host", [name], 3)
    hadoop.put("names", tmp_path)
    assert rows(headrace("dump", f"{hadoop.url}{HOME}/names", env=AS_READER).stdout) == expected_rows(tmp_path)


def test_what_may_not_be_read_is_told(hadoop):
    result = headrace("ls", f"{hadoop.url}{HOME}/exp", env={**AS_READER, "HADOOP_USER_NAME": "stranger"}, code=3)
    assert b"AccessControlException" in result.stderr and b"HADOOP_USER_NAME" in result.stderr


def test_what_is_not_there_is_told(hadoop):
    result = headrace("ls", f"{hadoop.url}{HOME}/nothing", env=AS_READER, code=3)
    assert b"FileNotFoundException" in result.stderr


def test_wrong_delegation_token_is_told_and_not_shown(hadoop):
    result = headrace("ls", f"{hadoop.url}{HOME}/exp", env={**AS_READER, "HEADRACE_WEBHDFS_DELEGATION": "not-a-token"}, code=3)
    assert b"not-a-token" not in result.stderr and (b"HEADRACE_WEBHDFS_DELEGATION" in result.stderr or b"40" in result.stderr)
