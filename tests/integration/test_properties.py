# SPDX-License-Identifier: Apache-2.0
"""What tests/unit/daemon/pipeline/test_properties.c proves of the decoder, for a sample through storage, daemon and stream: a file for
each place of one file, all in one tree."""
import struct

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client
from tests.integration.test_protocol import expected_rows, start, write_events  # noqa: F401
from tests.integration.test_storage import Follower

NAME = "events.out.tfevents.1.host"

pytestmark = pytest.mark.sanitize


@pytest.fixture
def whole(tmp_path):
    write_events(tmp_path / "whole", ["loss", "acc"], 4)
    return (tmp_path / "whole").read_bytes()


def record_of(data, place):
    """Where the TFRecord begins that holds this byte."""
    at = 0
    while True:
        end = at + struct.unpack_from("<Q", data, at)[0] + 16
        if place < end:
            return at
        at = end


def with_rows(files):
    return {name: rows for name, rows in files.items() if rows}


class Watcher(Follower):
    """Compares the files that have rows: of one without any there may be an extent or none."""

    def until(self, expected, most=20000):
        expected = with_rows(expected)
        for _ in range(most):
            if with_rows(self.files) == expected:
                return
            self.step()
        raise AssertionError("not what is in storage")


def test_ended_anywhere_and_completed(start, tmp_path, whole):  # noqa: F811
    """Each file ends at another byte, grows by some bytes, and is completed: nothing is lost, doubled or withdrawn."""
    tree = tmp_path / "logs"
    paths = [tree / ("%04d" % size) / NAME for size in range(len(whole) + 1)]
    for size, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        path.write_bytes(whole[:size])
    daemon = start("--set", "poll=0.05", tree)
    with Client(daemon.socket_path) as client:
        watcher = Watcher(client)
        watcher.until(expected_rows(tree))
        for more in (1, 37, len(whole)):
            for path in paths:
                size = path.stat().st_size
                path.open("ab").write(whole[size:size + more])
            client.send_call("reload")
            watcher.until(expected_rows(tree))
        complete = expected_rows(tree)
        assert all(rows == complete["%04d/%s" % (len(whole), NAME)] for rows in complete.values())
        assert not any(flags & (hrclient.REPLACED | hrclient.GONE) for flags in watcher.flags)
        assert client.call("wait_loaded")["damaged"] == 0


def test_a_flipped_bit_costs_its_record(start, tmp_path, whole):  # noqa: F811
    """Each file has another bit flipped; one in seven of them all."""
    tree, good = tmp_path / "logs", tmp_path / "good"
    (good / "run").mkdir(parents=True)
    (good / "run" / NAME).write_bytes(whole)
    rows = expected_rows(good)["run/" + NAME]
    expected = {}
    for bit in range(0, 8 * len(whole), 7):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path = tree / ("%05d" % bit) / NAME
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        hit = record_of(whole, bit // 8)
        expected[str(path.relative_to(tree))] = [row for row in rows if row[0] != hit]
    daemon = start(tree)
    with Client(daemon.socket_path) as client:
        Watcher(client).until(expected)
        assert client.call("wait_loaded")["damaged"] == len(expected)
