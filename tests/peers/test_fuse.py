# SPDX-License-Identifier: Apache-2.0
"""Directories on a FUSE mount where every operation takes long."""
import json
import time

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import Follower
from tests.rig import peer, workload
from tests.rig.slow_mount import SlowMount


@pytest.fixture
def mounted():
    mounts = []

    def mount(directory, milliseconds):
        try:
            mounts.append(SlowMount(directory, milliseconds).__enter__())
        except peer.Unavailable as reason:
            pytest.skip(str(reason))
        return mounts[-1].path

    yield mount
    for one in mounts:
        one.__exit__(None, None, None)


def test_all_is_read(mounted, tmp_path):
    tree = write_tree(tmp_path / "logs", runs=30, steps=20)
    assert rows(headrace("dump", mounted(tree, 5)).stdout) == expected_rows(tree)


def test_a_mount_is_named_and_polled(mounted, start, tmp_path):
    """What others write makes no events there."""
    tree = write_tree(tmp_path / "logs", runs=2, steps=20)
    daemon = start("--set", "log.level=warning", mounted(tree, 1))
    with Client(daemon.socket_path) as client, Client(daemon.socket_path) as other:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        source = other.call("status")["sources"][0]
        assert source["mount"]["type"] == "fuse.slow_mount" and "events" not in source["polling"]
        write_events(tree / "new" / "events.out.tfevents.1", ["loss"], 3)
        follower.until(expected_rows(tree))
    assert daemon.stderr().count("FUSE mount") == 1  # however often it is listed
    assert "on fuse.slow_mount: the kernel runs" in headrace("status", "--socket", daemon.socket_path).stdout.decode()


def test_many_files_with_a_tenth_of_a_second_for_each_operation(mounted, tmp_path):
    """546 files of 42 KB. TensorBoard's data server takes 289 s, serially; the bar is a twentieth of that."""
    workload.write(tmp_path / "logs")
    path = mounted(tmp_path / "logs", 100)
    begin = time.monotonic()
    answer = json.loads(headrace("ls", "--json", path).stdout)
    seconds = time.monotonic() - begin
    assert answer["files"] == 546 and answer["damaged"] == 0
    print(f"{seconds:.1f} s")
    assert seconds < 289 / 20
