# SPDX-License-Identifier: Apache-2.0
"""Local directories: changes that are heard of, and what else may lie in them."""
import os
import shutil
import time

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import BUILD, NAME, headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower

pytestmark = pytest.mark.sanitize


def listings(client):
    return client.call("status")["sources"][0]["requests"]["list"]


def test_changes_are_heard_of(start, tmp_path):
    """Without any poll: the source is taken as one that has not changed for long."""
    tree = write_tree(tmp_path / "logs", runs=3, steps=20)
    for path in tree.rglob(NAME[:6] + "*"):
        os.utime(path, (1577836800, 1577836800))
    daemon = start(tree)
    with Client(daemon.socket_path) as client, Client(daemon.socket_path) as other:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        # Events are asked for when the first listing has ended, which may be after the last record of it came.
        while "events" not in (polling := other.call("status")["sources"][0]["polling"]):
            pass
        assert polling["events"] == "inotify"
        delays = []
        for number in range(8):
            if number % 4 == 0:
                write_events(tree / f"new{number}" / "deep" / NAME, ["loss"], 3)
            elif number % 4 == 1:
                write_events(next((tree / "run1").iterdir()), ["loss", "acc/top1"], 3, first=20 + 3 * number)
            elif number % 4 == 2:
                shutil.rmtree(tree / f"new{number - 2}")
            else:
                (tree / f"run{number // 4}").rename(tree / f"moved{number}")
            begin = time.monotonic()
            follower.until(expected_rows(tree))
            delays.append(time.monotonic() - begin)
        assert sorted(delays)[4] < 1, delays  # a poll is a second away at least, a deletion three
        before = listings(other)
        for number in range(200):
            (tree / "run2" / f"checkpoint-{number}").write_bytes(b"x")
        assert listings(other) <= before + 2  # they are none of our business


def test_nobody_who_follows_nothing_heard(start, tmp_path):
    tree = write_tree(tmp_path / "logs", runs=1, steps=20)
    daemon = start("--set", "poll=never", tree)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        source = client.call("status")["sources"][0]
        assert "events" not in source["polling"]


def test_what_else_lies_there(tmp_path):
    """A fifo, a socket's like, links that lead round or nowhere, a file without permission, one that is a directory by its name."""
    tree = write_tree(tmp_path / "logs", runs=2, steps=10)
    expected = expected_rows(tree)
    os.mkfifo(tree / "run0" / "events.out.tfevents.2.fifo")
    (tree / "run0" / "events.out.tfevents.3.null").symlink_to("/dev/zero")
    (tree / "run0" / "round").symlink_to("..")
    (tree / "self").symlink_to(tree)
    (tree / "events.out.tfevents.4.nowhere").symlink_to("nowhere")
    (tree / "events.out.tfevents.5.loop").symlink_to("events.out.tfevents.5.loop")
    (tree / "events.out.tfevents.6.directory").mkdir()
    (tmp_path / "elsewhere").mkdir()
    write_events(tmp_path / "elsewhere" / NAME, ["loss"], 5)
    (tree / "link").symlink_to(tmp_path / "elsewhere")
    expected[f"link/{NAME}"] = expected_rows(tmp_path / "elsewhere")[NAME]
    assert rows(headrace("dump", tree).stdout) == expected


def test_directories_without_permission(tmp_path):
    """What can be read is; what cannot be is named, and the exit code says that there is something."""
    tree = write_tree(tmp_path / "logs", runs=3, steps=10)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o055 != 0o055:
            path.chmod(path.stat().st_mode & 0o7777 | 0o055)
    (tree / "run1").chmod(0)
    next((tree / "run2").iterdir()).chmod(0)

    def become_nobody():  # for root no permission is missing
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    done = headrace("dump", tree, code=1, env={"HOME": str(tmp_path)}, preexec_fn=become_nobody)
    assert {name.split("/")[0] for name in rows(done.stdout)} == {"run0"}
    errors = done.stderr.decode()
    assert "headrace: run1: cannot be read: EACCES" in errors
    assert "headrace: run2/" in errors and errors.count("EACCES") == 2


def test_few_open_files(tmp_path):
    import resource
    tree = write_tree(tmp_path / "logs", runs=400, steps=3)
    done = headrace("dump", tree, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    assert rows(done.stdout) == expected_rows(tree)


def test_a_hundred_thousand_files(start, tmp_path):
    """Empty ones, in 500 directories: each has its state, a filter leaves most of them out, and the daemon stays small."""
    logs, one = tmp_path / "logs", tmp_path / "one"
    write_events(logs / "run000" / NAME, ["loss"], 3)
    one.mkdir()
    for directory in (logs / "run000", one):
        for number in range(200):
            (directory / f"events.out.tfevents.{number}").touch()
    for run in range(1, 500):  # the same directory under other names: writing so many takes longer than all the rest
        (logs / f"run{run:03}").symlink_to(one)
    daemon = start(tmp_path / "logs")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 100001
        assert client.call("sources")["sources"][0]["settled"] == 100001
        resident = int(next(line for line in open(f"/proc/{daemon.process.pid}/status") if line.startswith("VmRSS")).split()[1])
        if BUILD.name == "build":
            assert resident < 48 << 10, resident  # KiB: 300 bytes a file beside the ring of 4 MiB and what is held once
        assert client.call("add_source", url=str(tmp_path / "logs/run001"), name="part")["url"].endswith("run001")
        client.call("remove_source", source=str(tmp_path / "logs"))
        assert client.call("wait_loaded")["files"] == 200
        client.call("add_source", url=str(tmp_path / "logs"), include="run000/*.host", name="again")
        assert client.call("wait_loaded", source="again")["files"] == 1
        assert {source["name"]: source["excluded"] for source in client.call("sources")["sources"]} == {"part": 0, "again": 100000}
