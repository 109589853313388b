# SPDX-License-Identifier: Apache-2.0
"""http:// on Apache: listed by WebDAV, with basic authentication."""
import os
import pathlib

import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.rig import peer
from tests.rig.apache import PASSWORD, Apache


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = write_tree(tmp_path_factory.mktemp("logs"))
    for directory in (tree, *tree.parents):  # Apache is another user
        if directory != pathlib.Path("/tmp"):
            os.chmod(directory, 0o755)
    return tree


@pytest.fixture(scope="module")
def apache(tree):
    try:
        with Apache(tree) as server:
            yield server
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


def test_every_record_arrives(apache, tree):
    assert rows(headrace("dump", apache.url).stdout) == expected_rows(tree)


def test_it_is_found_out_once_how_the_server_lists(apache):
    before = len(apache.requests())
    headrace("ls", apache.url)
    asked = apache.requests()[before:]
    assert asked[0] == "GET /"
    listings = [line for line in asked if line.startswith("PROPFIND")]
    assert len(listings) == len(set(listings))  # each directory once
    assert sum(line.startswith("GET") for line in asked) == 1 + 6


def test_names_are_decoded_once(apache, tree):
    names = ["a b", "a+b", "a%2Bb", "a&b", "a#b", "a?b", "ü", "~"]
    for name in names:
        write_events(tree / "names" / name / "events.out.tfevents.1.host", [name], 3)
    got = rows(headrace("dump", apache.url + "/names").stdout)
    assert got == expected_rows(tree / "names")


def test_wrong_password_is_told_and_not_shown(apache):
    result = headrace("ls", apache.url.replace(":pass", ":wrong"), code=3)
    assert b"401" in result.stderr and b"wrong" not in result.stderr and PASSWORD.encode() not in result.stderr
