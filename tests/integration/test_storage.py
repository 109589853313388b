# SPDX-License-Identifier: Apache-2.0
"""What storage does while the daemon runs, and what its clients then see. Files are local, or on a server that fails on command."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import urllib.request

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client, Extent, RpcError
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401

TOP = pathlib.Path(__file__).resolve().parents[2]
NAME = "events.out.tfevents.1.host"

pytestmark = pytest.mark.sanitize


class FaultServer:
    def __init__(self, directory):
        self.process = subprocess.Popen([sys.executable, TOP / "tests/fault/fault_server.py", "--until-stdin-closes", directory],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = "http://127.0.0.1:%d/" % int(self.process.stdout.readline())

    def control(self, *orders):
        urllib.request.urlopen(self.url + "_control", json.dumps(orders).encode()).read()

    def requests(self):
        return json.load(urllib.request.urlopen(self.url + "_stats"))["requests"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def serve():
    servers = []

    def serve_directory(directory):
        servers.append(FaultServer(directory))
        return servers[-1]

    yield serve_directory
    for server in servers:
        server.close()


class Follower:
    """Applies a stream to a model of what a client shows: points come, and are withdrawn at `replaced` and `gone`."""

    def __init__(self, client, **params):
        self.client = client
        self.files = {}
        self.names = {}
        self.announced = set()  # replaced, and nothing of the new version has come yet
        self.flags = []
        self.stream = client.subscribe(follow=True, **params).entries()

    def step(self):
        entry, image = next(self.stream)
        self.flags.append(entry.flags)
        if entry.flags & (hrclient.REPLACED | hrclient.GONE):
            # An announced version can be replaced in its turn, or go, before anything of it has come.
            assert entry.file_id in self.announced or self.names[entry.file_id] in self.files
            self.files.pop(self.names[entry.file_id], None)
            (self.announced.add if entry.flags & hrclient.REPLACED else self.announced.discard)(entry.file_id)
            return
        rows, _ = hrclient.scalar_rows([(entry, image)])
        for name, some in rows.items():
            self.names[entry.file_id] = name
            self.announced.discard(entry.file_id)
            self.files.setdefault(name, []).extend(some)

    def until(self, expected, most=2000):
        for _ in range(most):
            if self.files == expected:
                return
            self.step()
        raise AssertionError("not what is in storage: %s" % {name: len(rows) for name, rows in self.files.items()})


@pytest.mark.parametrize("transport", ["map", "inline"])
def test_files_grow_appear_vanish_and_are_replaced(start, tmp_path, transport):
    tree = write_tree(tmp_path / "logs", runs=3, steps=20)
    daemon = start("--set", "poll=0.05", tree)
    with Client(daemon.socket_path) as client:
        follower = Follower(client, transport=transport)
        follower.until(expected_rows(tree))
        write_events(tree / "run1" / "events.out.tfevents.1714557601.host", ["loss", "acc/top1"], 30, first=20)
        follower.until(expected_rows(tree))
        write_events(tree / "new" / "deep" / NAME, ["fresh"], 5)
        follower.until(expected_rows(tree))
        # Replaced in place by something longer: nothing of the old one may stay, nor come as if it had been appended.
        path = next((tree / "run2").iterdir())
        write_events(tmp_path / "other", ["other"], 400)
        path.write_bytes((tmp_path / "other").read_bytes())
        follower.until(expected_rows(tree))
        assert any(flags & hrclient.REPLACED for flags in follower.flags)
        # Cut short.
        os.truncate(path, 1000)
        follower.until(expected_rows(tree))
        shutil.rmtree(tree / "run0")
        follower.until(expected_rows(tree))
        assert any(flags & hrclient.GONE for flags in follower.flags)
        write_tree(tree, runs=1, steps=7)
        follower.until(expected_rows(tree))


def test_growth_is_followed_with_a_full_ring(start, tmp_path):
    """A file that was read to its end has no unread bytes; when it has some again, no part of the ring is free."""
    tree = write_tree(tmp_path / "logs", runs=4, steps=12000)
    daemon = start("--set", "poll=0.05", tree)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        ring = client.call("status")["ring"]
        assert ring["segments_used"] == ring["segments"]
        for first in (12000, 12010):
            for path in tree.rglob("*tfevents*"):
                write_events(path, ["loss", "acc/top1"], 10, first=first)
            follower.until(expected_rows(tree))


def test_a_record_that_is_written_in_pieces(start, tmp_path):
    tree = tmp_path / "logs"
    write_events(tmp_path / "whole", ["loss"], 8)
    whole = (tmp_path / "whole").read_bytes()
    daemon = start("--set", "poll=0.05", tree)
    path = tree / "run" / NAME
    path.parent.mkdir(parents=True)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        for size in range(0, len(whole) + 1, 7):
            path.write_bytes(b"") if size == 0 else path.open("ab").write(whole[path.stat().st_size:size])
            client.send_call("reload")
        path.open("ab").write(whole[path.stat().st_size:])
        follower.until(expected_rows(tree))
        assert not any(flags & hrclient.REPLACED for flags in follower.flags)


def tensor_of(size):
    """An Event of one string of that many bytes."""
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2

    tensor = tensor_pb2.TensorProto(dtype=7, tensor_shape=tensor_shape_pb2.TensorShapeProto(), string_val=[bytes(size)])
    return event_pb2.Event(step=7, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="big", tensor=tensor)]))


def written(path, *events):
    from tensorboard.summary.writer.record_writer import RecordWriter

    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
    return path.read_bytes()


@pytest.mark.parametrize("others", [0, 5])
def test_a_long_record_that_grows_is_read_once(start, tmp_path, serve, others):
    """What is there of it is not read again each time that it has grown, and it comes when it is whole, with what is behind it."""
    tree = tmp_path / "logs"
    tree.mkdir()
    if others:
        write_events(tmp_path / "whole", ["loss"], others)
    begin = len(written(tmp_path / "whole"))
    end = len(written(tmp_path / "whole", tensor_of(3 << 20)))
    write_events(tmp_path / "whole", ["loss"], 3, first=10)
    whole = (tmp_path / "whole").read_bytes()
    server = serve(tree)
    path = tree / NAME
    daemon = start("--set", "poll=never", server.url)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        for size in [begin + 20, *range(begin + 100_000, end, 100_000), len(whole)]:
            path.write_bytes(whole[:size])
            client.call("reload")
            client.call("wait_loaded")
        follower.until(expected_rows(tree))
        assert client.call("wait_loaded")["damaged"] == 0
        assert client.call("status")["counters"]["read_bytes"] < 2 * len(whole)


def test_one_listing_and_one_read_for_each_file(start, tmp_path, serve):
    tree = tmp_path / "logs" / "flat"
    for number in range(60):
        write_events(tree / ("events.out.tfevents.%d.host" % number), ["loss"], 100)
    server = serve(tree)
    daemon = start("--ring", "64M", server.url)
    with Client(daemon.socket_path) as client:
        loaded = client.call("wait_loaded")
        assert loaded["files"] == 60 and not loaded["failed"]
        rows, _ = hrclient.scalar_rows(client.subscribe(transport="inline").entries())
        assert {name: len(some) for name, some in rows.items()} == {name: 100 for name in os.listdir(tree)}
        assert {request["kind"]: 0 for request in server.requests()} == {"list": 0, "read": 0}
        assert all(request["requests"] == 1 for request in server.requests() if request["kind"] == "read")
        assert len(server.requests()) == 61


FAULTS = [
    {"fault": "status", "status": 500, "times": 3},
    {"fault": "status", "status": 503, "retry_after": "0", "times": 5},
    {"fault": "reset", "after": 700, "times": 4},
    {"fault": "short", "after": 1500, "times": 4},
    {"fault": "close", "times": 3},
    {"fault": "no_range"},
    {"fault": "wrong_range", "times": 2},
    {"fault": "no_etag"},
    {"fault": "no_etag", "weak": True},
    {"fault": "etag"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(str(value) for value in fault.values()))
def test_a_server_that_fails_loses_nothing(start, tmp_path, serve, fault):
    tree = write_tree(tmp_path / "logs", runs=4, steps=300)
    server = serve(tree)
    server.control({"kind": "read", **fault})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client:
        rows, last = hrclient.scalar_rows(client.subscribe(order="sorted").entries())
        assert last.flags & hrclient.END
        assert rows == expected_rows(tree)


@pytest.mark.parametrize("place", [70, 95])
def test_what_the_network_flipped_is_read_again(start, tmp_path, serve, place):
    """In a length and in a payload: the first answer lies, and nothing of it is seen but one read more."""
    tree = write_tree(tmp_path / "logs", runs=3, steps=20)
    server = serve(tree)
    server.control({"kind": "read", "path": "*run1*", "times": 1, "fault": "flip", "at": place})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client:
        assert hrclient.scalar_rows(client.subscribe(order="sorted").entries())[0] == expected_rows(tree)
        assert client.call("status")["counters"]["damaged"] == 0
    reads = {request["path"]: request["requests"] for request in server.requests() if request["kind"] == "read"}
    assert sorted(reads.values()) == [1, 1, 2]


@pytest.mark.parametrize("status, code", [(403, "403"), (404, "404"), (401, "401")])
def test_a_file_that_is_refused_holds_nothing_up(start, tmp_path, serve, status, code):
    tree = write_tree(tmp_path / "logs", runs=4, steps=50)
    server = serve(tree)
    server.control({"kind": "read", "path": "/run1/*", "fault": "status", "status": status})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client:
        loaded = client.call("wait_loaded")
        assert [failure["code"] for failure in loaded["failed"]] == [code]
        rows, _ = hrclient.scalar_rows(client.subscribe(transport="inline", order="sorted").entries())
        assert rows == {name: some for name, some in expected_rows(tree).items() if not name.startswith("run1/")}
        state = client.call("runs", run="run1")["runs"][0]["state"]
        assert state == "unreadable: " + code
        server.control({"clear": True})
        client.call("reload")
        client.call("wait_loaded")
    with Client(daemon.socket_path) as client:
        entries = list(client.subscribe(transport="inline", order="sorted").entries())
        assert hrclient.scalar_rows(entries)[0] == expected_rows(tree)
        assert any(entry.flags & hrclient.LATE for entry, _ in entries)


def test_a_failed_listing_removes_nothing(start, tmp_path, serve):
    tree = write_tree(tmp_path / "logs", runs=3, steps=20)
    server = serve(tree)
    daemon = start("--set", "poll=0.05", server.url)
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        for fault in ({"fault": "status", "status": 403}, {"fault": "garbage"}, {"fault": "garbage", "body": "[]]"}):
            server.control({"kind": "list", **fault})
            with pytest.raises(RpcError):
                client.call("reload")
            assert len(client.call("runs")["runs"]) == 3
            server.control({"clear": True})
            client.call("reload")
        assert client.call("sources")["sources"][0]["state"] == "ok"


def test_a_source_that_was_never_listed_ends_the_stream(start, tmp_path, serve):
    server = serve(write_tree(tmp_path / "logs", runs=1))
    server.control({"kind": "list", "fault": "status", "status": 403})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client, pytest.raises(RpcError) as error:
        client.call("wait_loaded")
    assert error.value.code == -32002
    with Client(daemon.socket_path) as client:
        client.subscribe(transport="inline")
        while not any(note.get("method") == "stream_failed" for note in client.notifications):
            kind, _, _, body = client.frame()
            client._note(json.loads(body))


def test_records_longer_than_a_part(start, tmp_path, serve):
    """They arrive whole, and what is read twice until parts are long enough is little."""
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    tree = tmp_path / "logs"
    tree.mkdir()
    with open(tree / NAME, "wb") as file:
        writer = RecordWriter(file)
        for step in range(8):
            writer.write(event_pb2.Event(step=step, wall_time=1.0, summary=summary_pb2.Summary(value=[
                summary_pb2.Summary.Value(tag="large", tensor=tensor_pb2.TensorProto(
                    dtype=7, string_val=[os.urandom(1000) * 3000], tensor_shape={"dim": [{"size": 1}]})),
                summary_pb2.Summary.Value(tag="small", simple_value=step)])).SerializeToString())
    server = serve(tree)
    daemon = start("--set", "fetch.part=1M", "--set", "fetch.inflight=32M", server.url)
    with Client(daemon.socket_path) as client:
        rows, _ = hrclient.scalar_rows(client.subscribe(order="sorted").entries())
        assert [row[2:] for row in rows[NAME]] == [(step, 1.0, "small", step) for step in range(8)]
    reads = [request for request in server.requests() if request["kind"] == "read"]
    size = (tree / NAME).stat().st_size
    assert sum(request["bytes"] for request in reads) < 2 * size


def test_a_record_of_many_blocks_is_fetched_once(start, tmp_path, serve):
    """Its values fill more than a small ring: once for who is there first, once for who comes when they have left.

    The first part is no longer than the room by the ratio that files have; here it ends inside of the record, and is read twice.
    """
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    tree = tmp_path / "logs"
    tree.mkdir()
    values = [summary_pb2.Summary.Value(tag="tag%d" % (index % 50), simple_value=index) for index in range(100000)]
    with open(tree / NAME, "wb") as file:
        writer = RecordWriter(file)
        writer.write(event_pb2.Event(step=1, wall_time=1.0, summary=summary_pb2.Summary(value=values[:1])).SerializeToString())
        writer.write(event_pb2.Event(step=2, wall_time=1.0, summary=summary_pb2.Summary(value=values)).SerializeToString())
    size = (tree / NAME).stat().st_size
    server = serve(tree)
    daemon = start("-m", "4M", server.url)
    for reader in (1, 2):
        with Client(daemon.socket_path) as client:
            rows, _ = hrclient.scalar_rows(client.subscribe().entries())
            assert [row[4:] for row in rows[NAME]] == [("tag0", 0)] + [("tag%d" % (n % 50), n) for n in range(100000)]
        reads = [request for request in server.requests() if request["kind"] == "read"]
        assert sum(request["bytes"] for request in reads) <= (reader + 1) * size + 3 * 65536


def test_checksum_length_only(start, tmp_path):
    """A flipped bit of a value is seen by default; who switches that off gets the value as it lies there."""
    tree = write_tree(tmp_path / "logs", runs=1, steps=3)
    path = next(path for path in tree.rglob("*tfevents*"))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"\x15") + 1  # simple_value: a key, then the float's first byte
    data[place] ^= 1
    path.write_bytes(data)
    counts = {}
    for checksum in ("always", "length-only"):
        daemon = start("--set", "checksum=" + checksum, tree, name=checksum)
        with Client(daemon.socket_path) as client:
            rows, _ = hrclient.scalar_rows(client.subscribe().entries())
            counts[checksum] = (sum(map(len, rows.values())), client.call("status")["counters"]["damaged"])
    assert counts == {"always": (4, 1), "length-only": (6, 0)}  # an Event has the values of both tags


def test_growth_on_a_server_without_ranges(start, tmp_path, serve):
    tree = write_tree(tmp_path / "logs", runs=2, steps=100)
    path = next((tree / "run1").iterdir())
    server = serve(tree)
    server.control({"kind": "read", "fault": "no_range"})
    daemon = start("--set", "poll=0.05", server.url)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        for first in (100, 5000):
            write_events(path, ["loss", "acc/top1"], 4900, first=first)
            follower.until(expected_rows(tree))
        assert not any(flags & hrclient.REPLACED for flags in follower.flags)


def test_sizes_that_no_listing_tells_and_no_ranges(start, tmp_path, serve):
    """The file is larger than the first request for it, which the server answers with all of it."""
    tree = write_tree(tmp_path / "logs", runs=1, steps=30000)
    (tree / "manifest.json").write_text(json.dumps([{"name": str(path.relative_to(tree))} for path in tree.rglob("*tfevents*")]))
    server = serve(tree)
    server.control({"path": "*tfevents*", "fault": "no_range"})
    daemon = start("--set", "poll=never", "--set", "fetch.part=1M", server.url + "manifest.json")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["failed_count"] == 0
        follower = Follower(client)
        follower.until(expected_rows(tree))


def test_zeros_at_the_end_are_not_written_yet(start, tmp_path, serve):
    tree = tmp_path / "logs"
    write_events(tree / NAME, ["loss"], 200)
    server = serve(tree)
    server.control({"kind": "read", "fault": "zeros", "bytes": 3000, "times": 1})
    daemon = start("--set", "poll=0.05", server.url)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.step()
        assert 0 < len(follower.files[NAME]) < 200
        os.utime(tree / NAME)  # the writer fills it in: another version, the same size
        os.utime(tree / NAME, (2_000_000_000, 2_000_000_000))
        follower.until(expected_rows(tree))
        assert not any(flags & hrclient.REPLACED for flags in follower.flags)


def read_all(socket_path, results, key, pause, **params):
    """A client on a thread; pause() is called after each entry."""
    with Client(socket_path) as client:
        stream = client.subscribe(**params)
        entries = []
        for entry, image in stream.entries():
            entries.append((entry, image))
            pause(len(entries))
        results[key] = hrclient.scalar_rows(entries)[0]


def test_readers_at_different_places_of_a_small_ring(start, tmp_path):
    """Data of many times the ring; fast, slow, late and stopped readers, both orders and transports; nobody loses anything."""
    root = tmp_path / "logs"
    for run in range(6):
        write_events(root / ("run%d" % run) / NAME, ["tag%d" % n for n in range(25)], 1500)
    expected = expected_rows(root)
    assert sum(len(rows) for rows in expected.values()) * 64 > 3 * (4 << 20)
    daemon = start(root)
    results = {}
    slow = threading.Event()
    kinds = [("map", "run"), ("map", "sorted"), ("inline", "run"), ("inline", "sorted")]
    threads = [threading.Thread(target=read_all, args=(daemon.socket_path, results, kind, lambda count: None),
                                kwargs={"transport": kind[0], "order": kind[1]}) for kind in kinds]
    threads.append(threading.Thread(target=read_all, args=(daemon.socket_path, results, "slow",
                                                           lambda count: slow.wait(0.005)), kwargs={"order": "sorted"}))
    with Client(daemon.socket_path) as stopped:
        stream = stopped.subscribe()
        stream.wait()
        stream.take()  # and never again
        for thread in threads:
            thread.start()
        for thread in threads[:4]:
            thread.join(150)
        late = threading.Thread(target=read_all, args=(daemon.socket_path, results, "late", lambda count: None))
        late.start()
        late.join(150)
        threads[4].join(150)
        for key in [*kinds, "slow", "late"]:
            assert results.get(key) == expected, key
        status = stopped.call("status")
        assert status["counters"]["refetched_blocks"] > 0
        assert status["ring"]["pinned"] <= 6  # the stopped one holds at most its quota
    with Client(daemon.socket_path) as client:
        while client.call("status")["sessions"]:
            pass
        assert client.call("status")["ring"]["pinned"] == 0


def test_the_extents_of_a_refetched_block_are_the_same(start, tmp_path):
    root = tmp_path / "logs"
    for run in range(3):
        write_events(root / ("run%d" % run) / NAME, ["tag%d" % n for n in range(40)], 1000)
    daemon = start(root)
    readings = []
    for _ in range(3):
        with Client(daemon.socket_path) as client:
            images = {}
            for _, image in client.subscribe(order="sorted").entries():
                if image:
                    extent = Extent(image)
                    images[extent.file, extent.begin_offset, extent.begin_index, extent.end_offset, extent.end_index] = image
            readings.append(images)
            assert client.call("status")["counters"]["refetched_blocks"] > 0 or len(readings) == 1
    common = set(readings[0]) & set(readings[1]) & set(readings[2])
    assert len(common) > len(readings[0]) / 2
    assert all(readings[0][block] == readings[1][block] == readings[2][block] for block in common)


def test_each_source_has_its_own_stream(start, tmp_path):
    """A source that fails, and what other sources have, is nothing to a stream of one source."""
    one, two = write_tree(tmp_path / "one", runs=2, steps=5), write_tree(tmp_path / "two", runs=3, steps=6)
    daemon = start(one, two, tmp_path / "none")
    for tree in (one, two):
        with Client(daemon.socket_path) as client:
            assert hrclient.scalar_rows(client.subscribe(source=str(tree)).entries())[0] == expected_rows(tree)


def test_replacements_are_told_with_their_version(start, tmp_path):
    tree = write_tree(tmp_path / "logs", runs=1, steps=5)
    daemon = start("--set", "poll=0.05", tree)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        shutil.copy(next((write_tree(tmp_path / "other", runs=1, steps=3) / "run0").iterdir()), next((tree / "run0").iterdir()))
        follower.until(expected_rows(tree))
        version = client.call("files")["files"][0]["version"]
        told = [note["params"] for note in client.notifications if note["method"] == "file_replaced"]
        assert [params["version"] for params in told] == [version] != ["0" * 16]


def test_positions_of_another_version_start_anew(start, tmp_path):
    tree = write_tree(tmp_path / "logs", runs=1, steps=50)
    daemon = start(tree)
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        file = client.call("files")["files"][0]
    wrong = [{"file_version": "%016x" % 1, "offset": 40, "index": 0}, {"file_version": file["version"], "offset": 41, "index": 0},
             {"file_version": file["version"], "offset": 1 << 40, "index": 0}]
    for position in wrong:
        with Client(daemon.socket_path) as client:
            stream = client.subscribe(transport="inline", **{"from": {"positions": [{"file": file["id"], **position}]}})
            entries = list(stream.entries())
            assert entries[0][0].flags & hrclient.REPLACED, position
            assert hrclient.scalar_rows(entries)[0] == expected_rows(tree)


def test_now_is_what_comes_after(start, tmp_path):
    tree = write_tree(tmp_path / "logs", runs=2, steps=50)
    daemon = start("--set", "poll=0.05", tree)
    path = next((tree / "run1").iterdir())
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        follower = Follower(client, **{"from": "now"})
        write_events(path, ["loss", "acc/top1"], 10, first=50)
        name = str(path.relative_to(tree))
        follower.until({name: expected_rows(tree)[name][100:]})


def test_odd_things_in_a_directory(start, tmp_path):
    """Names of any bytes, loops, pipes, and what may not be read: the rest is loaded, and what is not is named."""
    root = tmp_path / "logs"
    names = [b"plain", b"with space", b'quo"te', b"new\nline", b"not-utf8-\xff\xfe", "ünï".encode(), b"per%20cent", b"back\\slash"]
    for name in names:
        path = os.fsencode(root) + b"/" + name + b"/" + NAME.encode()
        write_events(pathlib.Path(os.fsdecode(path)), ["loss"], 3)
    os.symlink(root, root / "plain" / "loop")
    os.mkfifo(root / "plain" / "fifo.tfevents")
    (root / "plain" / "dangling.tfevents").symlink_to("nowhere")
    (root / "empty" / "e").mkdir(parents=True)
    (root / "empty" / NAME).write_bytes(b"")
    daemon = start(root)
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["failed"] == []
        runs = {bytes.fromhex(run["run_hex"]) if "run_hex" in run else run["run"].encode(): run["state"] for run in client.call("runs")["runs"]}
        assert runs == {**{name: "loaded" for name in names}, b"empty": "empty"}


def test_odd_names_on_a_web_server(start, tmp_path, serve):
    root = tmp_path / "logs"
    names = [b"with space", b'quo"te', b"new\nline", b"not-utf8-\xff\xfe", "ünï\U0010ff41".encode(), b"per%20cent", b"q?a#b&c;d", b"plus+"]
    for name in names:
        write_events(pathlib.Path(os.fsdecode(os.fsencode(root) + b"/" + name + b"/" + NAME.encode())), ["loss"], 3)
    daemon = start(serve(root).url)
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["failed"] == []
        runs = {bytes.fromhex(run["run_hex"]) if "run_hex" in run else run["run"].encode() for run in client.call("runs")["runs"]}
        assert runs == set(names)
