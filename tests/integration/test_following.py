# SPDX-License-Identifier: Apache-2.0
"""What following costs: requests to an object store, as its own access log has them."""
import os
import time
import urllib.parse

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_protocol import start, write_events  # noqa: F401
from tests.rig.bucket import Bucket
from tests.rig.nginx import Nginx

DAY_S = 86400


@pytest.fixture
def fill(tmp_path, monkeypatch):
    """Makes a bucket of (key, age in seconds) and a server for it; objects that are event files can be read."""
    servers = []

    def fill_bucket(keys):
        root, now = tmp_path / "objects", int(time.time())
        write_events(tmp_path / "one", ["loss"], 3)
        size = (tmp_path / "one").stat().st_size
        for key, _ in keys:
            if "tfevents" in key:
                (root / key).parent.mkdir(parents=True, exist_ok=True)
                (root / key).symlink_to(tmp_path / "one")
        server = Nginx(root, bucket=Bucket("logs", [(key, size, now - age) for key, age in keys]))
        servers.append(server.__enter__())
        for name in [name for name in os.environ if name.startswith(("AWS_", "S3_"))]:
            monkeypatch.delenv(name)
        for name, value in (("AWS_ENDPOINT_URL_S3", server.url), ("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y"),
                            ("AWS_REGION", "us-east-1"), ("AWS_CONFIG_FILE", os.devnull), ("AWS_SHARED_CREDENTIALS_FILE", os.devnull)):
            monkeypatch.setenv(name, value)
        return server

    yield fill_bucket
    for server in servers:
        server.__exit__()


def listings(server, since):
    """The query of each listing."""
    return [urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query, keep_blank_values=True)
            for request in server.requests(since) if "list-type=2" in request.path]


def reads(server, since):
    return [request for request in server.requests(since) if "list-type=2" not in request.path]


def cpu_s(daemon):
    with open(f"/proc/{daemon.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_poll_of_ten_thousand_files_is_ten_requests(start, fill):
    server = fill([(f"run{run:03}/events.out.tfevents.{number:04}", DAY_S) for run in range(100) for number in range(100)])
    daemon = start("--set", "poll=never", "s3://logs/")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 10000
        for _ in range(3):
            mark, before = server.mark(), cpu_s(daemon)
            client.call("reload")
            spent = cpu_s(daemon) - before
            assert len(listings(server, mark)) == 10 and not reads(server, mark)
        print("a poll of 10 000 files: %.0f ms of CPU" % (1000 * spent))
    # Another daemon: the names at which the listing is split were kept, and so were all others.
    mark = server.mark()
    daemon = start("--set", "poll=never", "s3://logs/", name="again")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 10000
        assert len(listings(server, mark)) == 10 and len(reads(server, mark)) <= 10000


def test_checkpoints_are_looked_at_now_and_then(start, fill):
    """100 runs of 2 event files and 100 other objects, of which 3 are live; a look of its own for each new stream."""
    keys = [(f"run{run:03}/events.out.tfevents.{number}", 60 if run < 3 else DAY_S) for run in range(100) for number in range(2)]
    keys += [(f"run{run:03}/checkpoints/{number:03}.bin", DAY_S) for run in range(100) for number in range(100)]
    server = fill(keys)
    daemon = start("--set", "poll=0.5", "s3://logs/")
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 200
        mark = server.mark()
        for _ in range(200):
            if len(listings(server, mark)) >= 8:
                break
            time.sleep(0.05)
        queries = listings(server, mark)
        looked = [query.get("prefix", [""])[0] for query in queries]
        assert set(looked) <= {"", "run000/", "run001/", "run002/"} and all(query["delimiter"] == ["/"] for query in queries)
        assert looked.count("") >= 2
        mark = server.mark()
        client.call("reload")
        everything = [query for query in listings(server, mark) if "delimiter" not in query]
        assert 11 <= len(everything) <= 11 + 32  # 10 200 objects, in parts


def test_nobody_looks(start, fill):
    server = fill([("run/events.out.tfevents.1", 60)])
    daemon = start("--set", "poll=on-demand", "s3://logs/")
    mark = server.mark()
    with Client(daemon.socket_path) as client:
        client.call("status")
        assert client.call("status")["sources"][0]["polling"]["state"] == "resting"
        assert not server.requests(mark)
        client.call("runs")  # answered from memory, while storage is looked at
        for _ in range(200):
            if client.call("status")["sources"][0]["files"]:
                break
            time.sleep(0.02)
        assert client.call("runs")["runs"][0]["run"] == "run"
        assert len(listings(server, mark)) == 1


def test_a_limit_for_the_day(start, fill):
    server = fill([("run/events.out.tfevents.1", 60)])
    daemon = start("--set", "poll=0.05", "--set", "max_requests_per_day=10", "s3://logs/")
    with Client(daemon.socket_path) as client:
        for _ in range(400):
            source = client.call("status")["sources"][0]
            if source["polling"]["state"] == "stopped":
                break
            time.sleep(0.02)
        assert source["polling"]["state"] == "stopped" and source["polling"]["next_s"] <= DAY_S
        assert source["requests"]["today"]["list"] + source["requests"]["today"]["read"] == 10
        time.sleep(0.3)
        assert len(server.requests()) == 10
        client.call("reload")  # but whoever asks for it gets it
        assert len(listings(server, 0)) == source["requests"]["list"] + 1
