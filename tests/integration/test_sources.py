# SPDX-License-Identifier: Apache-2.0
"""What of a source is loaded, and which sources there are: filters, lists of named sources."""
import json
import os

import pytest

from tests.integration.test_command import NAME, headrace, rows
from tests.integration.test_protocol import expected_rows, write_events
from tests.integration.test_storage import serve  # noqa: F401

pytestmark = pytest.mark.sanitize


@pytest.fixture
def logs(tmp_path):
    """Four runs; `b` was last written in 2020."""
    root = tmp_path / "logs"
    for number, run in enumerate(("a", "a/deep", "b", "old/c")):
        write_events(root / run / NAME, [f"loss{number}"], 5)
    os.utime(root / "b" / NAME, (1577836800, 1577836800))
    return root


def listing(*arguments):
    answer = json.loads(headrace("ls", "--json", *arguments).stdout)
    return {row["run"]: row["state"] for row in answer["runs"]}, answer


@pytest.mark.parametrize("filters, expected", [
    (("--include", "a"), {"a", "a/deep"}),
    (("--include", "a/*/*"), {"a/deep"}),
    (("--include", "a", "--include", "b"), {"a", "a/deep", "b"}),
    (("--exclude", "old"), {"a", "a/deep", "b"}),
    (("--exclude", "**/deep", "--exclude", "**/c"), {"a", "b"}),
    (("--since", "52w"), {"a", "a/deep", "old/c"}),
    (("--since", "2019-12-31T23:00:00-02:00"), {"a", "a/deep", "old/c"}),
    (("--since", "2020-01-01"), {"a", "a/deep", "b", "old/c"}),
    (("--include", "a", "--exclude", "a/deep", "--since", "1w"), {"a"}),
])
def test_what_filters_let_through(logs, filters, expected):
    states, answer = listing(logs, *filters)
    assert states == {run: "loaded" for run in expected}
    assert answer["excluded"] == 4 - len(expected) and answer["files"] == len(expected)
    paths = {f"{run}/{NAME}" for run in expected}
    dumped = rows(headrace("dump", logs, *filters).stdout)
    assert dumped == {path: found for path, found in expected_rows(logs).items() if path in paths}
    assert f"{len(expected)} file" in headrace("verify", logs, *filters).stdout.decode()


def test_all_names_what_is_left_out_and_why(logs):
    states, answer = listing(logs, "--exclude", "old", "--since", "52w", "--all")
    assert states == {"a": "loaded", "a/deep": "loaded", "b": "excluded: since 52w", "old/c": "excluded: exclude old"}
    assert (answer["files"], answer["excluded"]) == (2, 2)
    text = headrace("ls", logs, "--include", "a").stdout.decode()
    assert "2 files left out by filters" in text and "old/c" not in text


def test_what_is_left_out_is_not_read(logs, serve):
    server = serve(logs)
    headrace("ls", server.url, "--include", "a/deep")
    assert [request["path"] for request in server.requests() if NAME in request["path"]] == [f"/a/deep/{NAME}"]


@pytest.mark.parametrize("option, value", [("--include", "["), ("--exclude", ""), ("--since", "soon")])
def test_a_wrong_filter_is_refused(logs, option, value):
    assert option in headrace("ls", logs, option, value, code=2).stderr.decode()


def test_filters_are_not_for_a_daemon_that_runs(logs):
    assert "filters" in headrace("ls", logs, "--since", "7d", "--socket", "/nowhere", code=2).stderr.decode()


def test_a_list_of_sources(logs):
    spec = f"one:{logs / 'a'},two:{logs / 'old'}"
    states, answer = listing(spec)
    assert states == {"one": "loaded", "one/deep": "loaded", "two/c": "loaded"}
    assert answer["source"] is None
    expected = {f"one/{path}": found for path, found in expected_rows(logs / "a").items()}
    expected.update({f"two/{path}": found for path, found in expected_rows(logs / "old").items()})
    assert rows(headrace("dump", spec).stdout) == expected
    only = rows(headrace("dump", spec, "--run", "two/*").stdout)
    assert only == {path: found for path, found in expected.items() if path.startswith("two/")}
    assert "3 files" in headrace("verify", spec).stdout.decode()


def test_a_list_with_filters_and_a_source_without_a_name(logs):
    states, _ = listing(f"one:{logs / 'a'},{logs / 'b'}", "--exclude", "deep")
    assert states == {"one": "loaded", ".": "loaded"}


def test_damage_in_a_list_is_named_by_its_source(logs):
    damaged = logs / "a" / NAME
    data = bytearray(damaged.read_bytes())
    data[-20] ^= 0xFF
    damaged.write_bytes(data)
    done = headrace("verify", f"one:{logs / 'a'},two:{logs / 'old'}", code=1)
    assert done.stdout.decode().startswith(f"one/{NAME}: ")


@pytest.mark.parametrize("spec", ["one:", "one:a,", "one:a,one:b"])
def test_a_wrong_list_is_refused(spec):
    assert "name:url" in headrace("ls", spec, code=2).stderr.decode()


def test_a_source_of_a_list_that_is_not_there(logs):
    assert "nowhere" in headrace("ls", f"one:{logs / 'a'},two:{logs / 'nowhere'}", code=3).stderr.decode()
