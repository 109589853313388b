# SPDX-License-Identifier: Apache-2.0
"""A daemon that starts again begins with what the one before knew; what storage then says counts."""
import os
import pathlib
import time

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import NAME, Follower, serve  # noqa: F401


def kept():
    return sorted((pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "headrace").glob("*"))


def reads(server):
    return {request["path"].lstrip("/"): request["requests"] for request in server.requests() if request["kind"] == "read"}


def wait_for(what):
    for _ in range(1000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come to that")


def test_reads_go_out_beside_the_listing(start, tmp_path, serve):
    tree = write_tree(tmp_path / "logs")
    server = serve(tree)
    paths = {str(path.relative_to(tree)) for path in tree.rglob("*tfevents*")}
    assert rows(headrace("dump", server.url).stdout) == expected_rows(tree)
    assert len(kept()) == 1 and kept()[0].suffix == ".known"
    server.control({"reset": True}, {"kind": "list", "fault": "delay", "ms": 2000})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client:
        wait_for(lambda: set(reads(server)) == paths)
        assert client.call("sources")["sources"][0]["listed_age_s"] is None  # no listing is there yet
        server.control({"clear": True})
        assert client.call("wait_loaded")["files"] == len(paths)
    assert rows(headrace("dump", server.url).stdout) == expected_rows(tree)
    assert set(reads(server).values()) == {2}  # once by the daemon, once by the dump's own


def test_a_follower_does_not_wait_for_the_listing(start, tmp_path, serve):
    """What could be read is there. A file that was remembered and is gone is never shown."""
    tree = write_tree(tmp_path / "logs")
    server = serve(tree)
    headrace("ls", server.url)
    gone = sorted(tree.rglob("*tfevents*"))[2]
    gone.unlink()
    server.control({"reset": True}, {"kind": "list", "fault": "silent"})
    daemon = start(server.url)
    with Client(daemon.socket_path) as client:
        follower = Follower(client)
        follower.until(expected_rows(tree))
        source = client.call("sources")["sources"][0]
        assert source["listed_age_s"] is None
        assert str(gone.relative_to(tree)) in reads(server)


def test_what_storage_says_counts(tmp_path, serve):
    """While no daemon ran one file went, one came, one grew, one was written anew."""
    tree = write_tree(tmp_path / "logs")
    server = serve(tree)
    headrace("dump", server.url)
    gone, grown, other = sorted(tree.rglob("*tfevents*"))[:3]
    gone.unlink()
    write_events(grown, ["loss"], 50, first=200)
    other.unlink()
    write_events(other, ["loss"], 3)
    write_events(tree / "new" / NAME, ["loss"], 4)
    done = headrace("dump", server.url)
    assert rows(done.stdout) == expected_rows(tree)
    assert not done.stderr and gone.parent.name not in headrace("ls", server.url).stdout.decode()


def test_damaged_and_foreign_files_are_left_alone(tmp_path, serve):
    tree = write_tree(tmp_path / "logs")
    server = serve(tree)
    headrace("dump", server.url)
    (path,) = kept()
    image = path.read_bytes()
    for content in (b"", b"{}", image[:-1], image[:70] + b"X" + image[71:], os.urandom(5000)):
        path.write_bytes(content)
        done = headrace("dump", server.url)
        assert rows(done.stdout) == expected_rows(tree)
    path.unlink()
    path.mkdir()
    assert rows(headrace("dump", server.url).stdout) == expected_rows(tree)


def test_nothing_is_kept_where_it_is_not_wanted(tmp_path, serve):
    tree = write_tree(tmp_path / "logs")
    server = serve(tree)
    headrace("dump", server.url, env={"HEADRACE_REMEMBER": "false"})
    headrace("dump", tree)  # a local directory is its own memory
    assert not kept()
    place = tmp_path / "place"
    headrace("dump", server.url, env={"HEADRACE_REMEMBER": str(place)})
    assert not kept() and len(list(place.iterdir())) == 1
    assert place.stat().st_mode & 0o777 == 0o700
