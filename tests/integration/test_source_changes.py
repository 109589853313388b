# SPDX-License-Identifier: Apache-2.0
"""Sources that are added and removed while the daemon runs and clients read."""
import json
import os
import random
import subprocess

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client
from tests.integration.test_command import BUILD, NAME, headrace
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower, serve  # noqa: F401

pytestmark = pytest.mark.sanitize


def merged(*roots):
    return {name: rows for root in roots for name, rows in expected_rows(root).items()}


def outcome(client, wait):
    """Of a call that was sent: its result, or its error. Its answer may have come already, before another one's."""
    for note in client.notifications:
        if note.get("id") == wait:
            return note.get("result"), note.get("error")
    try:
        return client.answer(wait)[0], None
    except hrclient.RpcError as error:
        return None, {"code": error.code, "message": str(error)}


@pytest.fixture
def two(tmp_path):
    """Two directories, whose runs have different names."""
    for name in ("one", "two"):
        for number in range(3):
            write_events(tmp_path / name / f"{name}{number}" / NAME, ["loss", "acc"], 50 + number)
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.parametrize("transport", ["map", "inline"])
def test_a_follower_sees_sources_come_and_go(start, two, transport):
    one, other = two
    daemon = start("--set", "poll=0.05", one)
    with Client(daemon.socket_path) as client, Client(daemon.socket_path) as admin:
        follower = Follower(client, transport=transport)
        follower.until(expected_rows(one))
        for _ in range(3):
            row = admin.call("add_source", url=str(other), name="other")
            assert (row["name"], row["url"]) == ("other", str(other))
            follower.until(merged(one, other))
            assert admin.call("remove_source", source="other") == {}
            assert [source["url"] for source in admin.call("sources")["sources"]] == [str(one)]
            follower.until(expected_rows(one))
        write_events(one / "late" / NAME, ["loss"], 4)
        follower.until(expected_rows(one))
        assert admin.call("wait_loaded")["files"] == 4
        told = [(note["method"], note["params"].get("run") or note["params"]["source"]) for note in client.notifications
                if note["method"] in ("source_added", "source_removed", "run_gone")]
    if transport == "inline":  # a reader of shared memory looks at its socket only when it waits
        assert told[:5] == [("source_added", "other"), ("source_removed", "other"), ("run_gone", "two2"), ("run_gone", "two1"),
                            ("run_gone", "two0")]


def test_filters_of_an_added_source(start, two):
    one, other = two
    daemon = start()
    with Client(daemon.socket_path) as client:
        client.call("add_source", url=str(one), include=["one[12]"], exclude="one1")
        client.call("add_source", url=str(other), since="2099-01-01")
        assert client.call("wait_loaded")["files"] == 1
        assert [row["run"] for row in client.call("runs")["runs"]] == ["one2"]
        states = {row["run"]: row["state"] for row in client.call("runs", excluded=True)["runs"]}
        assert states == {"one0": "excluded: include", "one1": "excluded: exclude one1", "one2": "loaded",
                          **{f"two{i}": "excluded: since 2099-01-01" for i in range(3)}}
        assert [source["excluded"] for source in client.call("sources")["sources"]] == [2, 3]


def test_who_needs_the_source_is_told(start, two, serve):
    one, other = two
    server = serve(other)
    server.control({"fault": "silent", "kind": "read"})
    daemon = start(one)
    with Client(daemon.socket_path) as admin, Client(daemon.socket_path) as waiter, Client(daemon.socket_path) as reader, \
            Client(daemon.socket_path) as bystander:
        admin.call("add_source", url=server.url, name="web")
        waits = [waiter.send_call("wait_loaded", source="web"), waiter.send_call("reload", source="web")]
        all_waits = bystander.send_call("wait_loaded")
        reader.subscribe(source="web", transport="inline", follow=True)
        admin.call("reload", source="web")
        admin.call("remove_source", source="web")
        for wait in waits:
            result, error = outcome(waiter, wait)
            if result:  # the listing may have been there before
                assert wait == waits[1] and result["files"] == 3
            else:
                assert error["code"] == -32002 and "removed" in error["message"]
        assert bystander.answer(all_waits)[0]["files"] == 3
        message = {}
        while message.get("method") != "stream_failed":
            kind, _, _, body = reader.frame()
            message = json.loads(body) if kind == hrclient.JSON else {}
        assert message["params"]["source"] == "web" and message["params"]["data"] == {"code": "removed"}


def test_errors_of_adding_and_removing(start, two):
    one, other = two
    daemon = start("--set", f"allow_sources={one.parent}", one)
    with Client(daemon.socket_path) as client:
        for params, code in (({"url": str(one)}, -32602), ({"url": str(other), "name": str(one)}, -32602), ({}, -32602),
                             ({"url": "/somewhere/else"}, -32001), ({"url": "ftp://h/x"}, -32001),
                             ({"url": str(other), "include": "["}, -32602), ({"url": str(other), "colour": "red"}, -32602)):
            with pytest.raises(hrclient.RpcError) as error:
                client.call("add_source", **params)
            assert error.value.code == code, params
        with pytest.raises(hrclient.RpcError):
            client.call("remove_source", source="nobody")
        client.call("remove_source", source=str(one))
        assert client.call("sources")["sources"] == []
        assert client.call("wait_loaded")["files"] == 0


def test_link_local_addresses_are_never_sources(start):
    daemon = start()
    with Client(daemon.socket_path) as client:
        for url in ("http://169.254.169.254/latest/", "http://0xA9FEA9FE/", "http://[fe80::1]/"):
            with pytest.raises(hrclient.RpcError) as error:
                client.call("add_source", url=url)
            assert error.value.code == -32602 and "link-local" in str(error.value)


def test_removal_at_any_moment(start, tmp_path, serve):
    """
    While listings, reads, decodes, refetches and payloads are under way. When is chosen by chance: whatever it hits, what is left must
    be whole, and the daemon must end without a leak.
    """
    stays = write_tree(tmp_path / "stays", runs=2, steps=12000)
    goes = write_tree(tmp_path / "goes", runs=5, steps=8000)
    for run in goes.iterdir():
        run.rename(goes / ("g" + run.name))
    server = serve(goes)
    server.control({"fault": "delay", "ms": 5, "p90_ms": 30}, {"fault": "trickle", "path": "*grun4*", "piece": 40000, "ms": 3})
    daemon = start("--set", "poll=0.05", stays)
    chance = random.Random(7)
    with Client(daemon.socket_path) as client, Client(daemon.socket_path) as admin, Client(daemon.socket_path) as other:
        follower = Follower(client, transport="inline")
        follower.until(expected_rows(stays))
        readers = []
        for turn in range(14):
            url = server.url if turn % 2 else str(goes)
            admin.call("add_source", url=url, name="goes")
            waits = [other.send_call(method, source="goes") for method in ("wait_loaded", "reload")[:turn % 3]]
            reader = Client(daemon.socket_path)
            reader.subscribe(source="goes", transport="inline", order="sorted", follow=bool(turn % 4))
            readers.append(reader)
            for _ in range(chance.randrange(60)):
                follower.step()
            files = [row for row in admin.call("files", source="goes")["files"] if row["version"] != "0" * 16]
            for row in files[:2]:
                other.send_call("payload", file=row["id"], file_version=row["version"], offset=0, index=0)
                other.send_call("damage", file=row["id"], file_version=row["version"])
            admin.call("remove_source", source="goes")
            for wait in waits:
                result, error = outcome(other, wait)
                assert result or error["code"] == -32002
            if turn % 5 == 4:
                readers.pop(chance.randrange(len(readers))).close()
        follower.until(expected_rows(stays), most=100000)
        status = admin.call("status")
        assert [source["url"] for source in status["sources"]] == [str(stays)]
        # Added, and at the end of the daemon still being removed or loaded.
        admin.call("add_source", url=server.url, name="goes")
        other.send_call("remove_source", source="goes")
        for reader in readers:
            reader.close()


def test_source_add_and_remove_as_commands(start, two, tmp_path):
    one, other = two
    daemon = start(one)
    run = lambda *arguments, **options: headrace("source", *arguments, "--socket", daemon.socket_path, **options)  # noqa: E731
    run("add", "two", "--name", "b", "--exclude", "two0", cwd=tmp_path)
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded", source="b")["files"] == 2
    status = headrace("status", "--socket", daemon.socket_path).stdout.decode()
    assert "b  ok  2/2 runs  damaged 0  left out 1  last look" in status
    assert "there is a source" in run("add", other, code=2).stderr.decode()
    assert "no source is called" in run("remove", "c", code=2).stderr.decode()
    run("remove", "two", code=2, cwd=tmp_path)  # a name without a slash is a name
    run("remove", "./two", cwd=tmp_path)
    with Client(daemon.socket_path) as client:
        assert [source["name"] for source in client.call("sources")["sources"]] == [str(one)]
    for wrong in (("add",), ("take", "x"), ("add", "x", "y"), ("remove", "x", "--name", "y"), ("add", "x", "--private")):
        run(*wrong, code=2)
    headrace("source", "add", one, "--socket", tmp_path / "nowhere", code=3)


def test_a_dump_that_follows(start, two):
    """It sees its own source only, with the daemon's filters, and ends with an error when that is removed."""
    one, other = two
    daemon = start("--set", "poll=0.05")
    with Client(daemon.socket_path) as admin:
        admin.call("add_source", url=str(one), exclude="one1")
        environment = {**os.environ, "NO_COLOR": "1"}
        process = subprocess.Popen([BUILD / "headrace", "dump", "--follow", "--socket", daemon.socket_path, one], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [json.loads(process.stdout.readline()) for _ in range(2 * (50 + 52))]
        assert {line["run"] for line in lines} == {"one0", "one2"}
        admin.call("add_source", url=str(other))
        admin.call("wait_loaded")
        write_events(one / "one1" / NAME, ["loss"], 60, first=51)
        write_events(one / "later" / NAME, ["loss"], 1)
        assert json.loads(process.stdout.readline())["run"] == "later"
        admin.call("remove_source", source=str(other))
        admin.call("remove_source", source=str(one))
        rest, errors = process.communicate(timeout=60)
        assert {json.loads(line)["kind"] for line in rest.splitlines()} <= {"withdrawal"}
        assert process.returncode == 3 and b"removed" in errors
