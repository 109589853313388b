# SPDX-License-Identifier: Apache-2.0
"""The command line as people meet it: what it prints, how it ends, and which daemon it uses."""
import csv
import http.server
import json
import os
import pathlib
import pty
import re
import select
import socket
import subprocess
import threading
import time

import pytest

from tests.integration.test_protocol import expected_rows, write_events, write_tree
from tests.integration.test_storage import serve  # noqa: F401

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
PATIENCE_S = 60

pytestmark = pytest.mark.sanitize


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    """No daemon of the machine, no settings of its user."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in list(os.environ):
        if name.startswith(("HEADRACE_S", "HEADRACE_D", "AWS_", "S3_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def headrace(*arguments, **options):
    return subprocess.run([BUILD / "headrace", *map(str, arguments)], capture_output=True, timeout=PATIENCE_S, **options)


def lines_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


class Running:
    """A headraced that listens where clients look."""

    def __init__(self, directory, *sources, environment=None):
        self.path = directory / "headrace.sock"
        self.process = subprocess.Popen([BUILD / "headraced", "--socket", self.path, *map(str, sources)],
                                        env=environment, stderr=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(self.path)) == 0:
                    return self
            time.sleep(0.01)
        raise TimeoutError

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def test_help_and_usage():
    for arguments in (["--help"], ["ls", "--help"], ["dump", "--help"], ["verify", "--help"], ["status", "--help"],
                      ["--version"]):
        done = headrace(*arguments)
        assert done.returncode == 0 and done.stdout and not done.stderr, arguments
    for arguments in ([], ["nonsense"], ["ls"], ["dump"], ["dump", "a", "b"], ["dump", "--format=xml", "a"], ["dump", "--payload=x", "a"],
                      ["ls", "--nonsense", "a"], ["status", "x"], ["dump", "--transport=tcp", "a"], ["ls", ""],
                      ["verify"], ["verify", "--follow", "a"], ["dump", "--purge=x", "a"], ["status", "--private"]):
        done = headrace(*arguments)
        assert done.returncode == 2 and done.stderr and not done.stdout, arguments


@pytest.mark.parametrize("transport", ["map", "inline"])
def test_dump_is_what_tensorboard_reads(tmp_path, transport):
    root = write_tree(tmp_path / "logs")
    done = headrace("dump", "--transport", transport, root)
    assert done.returncode == 0, done.stderr.decode()
    ours = {}
    for line in lines_of(done):
        assert line["kind"] == "scalar" and line["plugin"] == "scalars" and line["run"] == os.path.dirname(line["file"])
        ours.setdefault(line["file"], []).append(tuple(line[name] for name in ("offset", "index", "step", "wall_time", "tag", "value")))
    assert ours == expected_rows(root)
    assert list(ours) == sorted(ours)


def test_filters(tmp_path):
    root = write_tree(tmp_path / "logs", runs=3, steps=5)
    lines = lines_of(headrace("dump", root, "--run", "run[01]", "--run", "nothing", "--tag", "acc*"))
    assert {line["run"] for line in lines} == {"run0", "run1"} and {line["tag"] for line in lines} == {"acc/top1"}
    assert len(lines) == 10
    assert len(lines_of(headrace("dump", root, "--plugin", "scalars"))) == 30
    assert lines_of(headrace("dump", root, "--plugin", "images")) == []


def test_csv(tmp_path):
    write_events(tmp_path / "logs/a,b/events.out.tfevents.1.x", ['say "loss"'], 3)
    done = headrace("dump", tmp_path / "logs", "--format", "csv")
    rows = list(csv.reader(done.stdout.decode().splitlines()))
    assert rows[0] == ["run", "tag", "step", "wall_time", "value"]
    assert rows[1:] == [["a,b", 'say "loss"', str(step), f"{1714557600.0 + step}", str(step * 0.5)] for step in range(3)]


def test_names_that_are_no_utf8(tmp_path):
    run = os.fsencode(tmp_path) + b"/logs/r\xff \n\"x"
    os.makedirs(run)
    write_events(tmp_path / "plain/events.out.tfevents.1.x", ["loss"], 2)
    os.rename(tmp_path / "plain/events.out.tfevents.1.x", run + b"/events.out.tfevents.1.\xc3")
    lines = lines_of(headrace("dump", tmp_path / "logs"))
    assert len(lines) == 2
    for line in lines:
        assert line["run"] == 'r\ufffd \n"x' and bytes.fromhex(line["run_hex"]) == b'r\xff \n"x'
        assert bytes.fromhex(line["file_hex"]) == b'r\xff \n"x/events.out.tfevents.1.\xc3'
        assert "tag_hex" not in line
    done = headrace("ls", tmp_path / "logs")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3


def test_source_that_is_no_utf8(tmp_path):
    root = os.fsencode(tmp_path) + b"/logs\xff"
    write_events(tmp_path / "plain/events.out.tfevents.1.x", ["loss"], 2)
    os.mkdir(root)
    os.rename(tmp_path / "plain", root + b"/a")
    for path, run in ((root, "a"), (root + b"/a", ".")):
        done = subprocess.run([os.fsencode(BUILD / "headrace"), b"dump", path], capture_output=True, timeout=PATIENCE_S)
        assert [line["run"] for line in lines_of(done)] == [run, run]
    done = subprocess.run([os.fsencode(BUILD / "headrace"), b"ls", b"--json", root], capture_output=True, timeout=PATIENCE_S)
    listing = json.loads(done.stdout)
    assert listing["source"].endswith("logs\ufffd") and listing["requests"]["read"] == 1


def test_ls(tmp_path):
    root = write_tree(tmp_path / "logs", runs=2, steps=1001)
    done = headrace("ls", root)
    rows = done.stdout.decode().splitlines()
    assert done.returncode == 0 and len(rows) == 4
    assert rows[0].split() == ["RUN", "FILES", "SIZE", "LAST", "STEP", "CHANGED"]
    assert rows[1].startswith("run0 ") and " 1 000 " in rows[1] and rows[1].endswith(" ago")
    assert rows[3].startswith("2 runs, 2 files, ") and rows[3].endswith(" 2 reads")
    listing = json.loads(headrace("ls", "--json", root).stdout)
    assert [run["run"] for run in listing["runs"]] == ["run0", "run1"]
    assert listing["files"] == 2 and listing["records"] >= 2 * 2002 and listing["damaged"] == 0
    assert {run["last_step"] for run in listing["runs"]} == {1000} and {run["state"] for run in listing["runs"]} == {"loaded"}


def test_states_are_shown_where_they_are_not_loaded(tmp_path):
    root = write_tree(tmp_path / "logs", runs=1, steps=2)
    (root / "waits").mkdir()
    (root / "waits/events.out.tfevents.1.x").touch()
    done = headrace("ls", root)
    rows = done.stdout.decode().splitlines()
    assert done.returncode == 0 and "STATE" in rows[0] and "empty" in rows[2]


def test_damage_is_named(tmp_path):
    root = write_tree(tmp_path / "logs", runs=2, steps=10)
    path = sorted(root.rglob("*tfevents*"))[1]
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)
    for arguments in (["dump", root], ["ls", root]):
        done = headrace(*arguments)
        assert done.returncode == 1
        assert str(path.relative_to(root)) in done.stderr.decode() and "data CRC" in done.stderr.decode()
        assert len(done.stderr.splitlines()) == 1
    done = headrace("dump", root)
    assert len(lines_of(done)) == 2 * 2 * 10 - 2
    assert headrace("dump", root, "--run", "run0").returncode == 0


def test_empty_source(tmp_path):
    (tmp_path / "logs").mkdir()
    done = headrace("dump", tmp_path / "logs")
    assert done.returncode == 0 and done.stdout == b"" and done.stderr == b""
    done = headrace("ls", tmp_path / "logs")
    assert done.returncode == 0 and done.stdout.startswith(b"0 runs, 0 files")


@pytest.mark.parametrize("command", ["ls", "dump"])
def test_source_that_cannot_be_listed(tmp_path, command):
    done = headrace(command, tmp_path / "nowhere")
    assert done.returncode == 3 and done.stdout == b""
    message = done.stderr.decode().splitlines()
    assert message[0].startswith(f"headrace: {tmp_path}/nowhere: ENOENT") and message[1].startswith("  ")
    assert headrace(command, "gopher://host/x").returncode == 3


def test_closed_pipe_ends_quietly(tmp_path):
    root = write_tree(tmp_path / "logs", runs=4, steps=3000)
    with subprocess.Popen([BUILD / "headrace", "dump", root], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE_S) == 0


def test_full_disk_is_an_error(tmp_path):
    root = write_tree(tmp_path / "logs", runs=1, steps=10)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BUILD / "headrace", "dump", root], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 1 and b"No space left" in done.stderr


def on_terminal(arguments, **environment):
    """What a command writes to a terminal that is its standard error."""
    master, slave = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen([BUILD / "headrace", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=slave,
                          env={**inherited, "TERM": "xterm", **environment}) as process:
        os.close(slave)
        output = b""
        while select.select([master], [], [], PATIENCE_S)[0]:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
        os.close(master)
        process.wait(PATIENCE_S)
    return output


def test_progress_bar_and_colours(tmp_path, serve):
    write_tree(tmp_path / "logs", runs=20, steps=50)
    server = serve(tmp_path)
    server.control({"kind": "read", "fault": "delay", "ms": 200, "p90_ms": 600})  # so that the listing is whole before the last file
    output = on_terminal(["dump", server.url + "logs"])
    assert b"logs  [" in output and re.search(rb" \d+/20 files ", output) and output.endswith(b"\r\x1b[K")
    assert b"\x1b[1;31m" in on_terminal(["ls", tmp_path / "nowhere"])
    assert b"\x1b[1;31m" not in on_terminal(["ls", tmp_path / "nowhere"], NO_COLOR="1")
    assert b"\x1b" not in headrace("ls", tmp_path / "nowhere").stderr


def test_running_daemon_is_used_for_what_it_has(tmp_path):
    root = write_tree(tmp_path / "logs/deep", runs=3, steps=50).parent
    other = write_tree(tmp_path / "other", runs=1, steps=3)
    directory = tmp_path / "run/headrace"
    directory.mkdir()
    private = headrace("dump", "--private", root / "deep")
    with Running(directory, root, other):
        for url in (root / "deep", f"file://{root}/deep/", root / "deep/../deep"):
            done = headrace("dump", "-v", url)
            assert b"using the daemon at" in done.stderr
            assert done.stdout == private.stdout
        assert [line["run"] for line in lines_of(headrace("dump", root / "deep/run1"))] == ["."] * 100
        assert {line["run"] for line in lines_of(headrace("dump", root / "deep", "--run", "run2"))} == {"run2"}
        assert {line["run"] for line in lines_of(headrace("dump", root))} == {"deep/run0", "deep/run1", "deep/run2"}
        assert b"using the private daemon" in headrace("dump", "-v", tmp_path).stderr
        assert b"using the private daemon" in headrace("ls", "-v", root, env={**os.environ, "AWS_PROFILE": "x"}).stderr
        listing = json.loads(headrace("ls", "--json", root / "deep").stdout)
        assert [run["run"] for run in listing["runs"]] == ["run0", "run1", "run2"] and listing["prefix"] == "deep"
        done = headrace("status")
        assert done.returncode == 0 and str(root).encode() in done.stdout
        assert json.loads(headrace("status", "--json").stdout)["sources"][0]["url"] == str(root)
        assert headrace("ls", "--socket", directory / "headrace.sock", tmp_path).returncode == 3


class NothingThere(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


def test_ways_out_are_those_of_the_code():
    """Not of the same digits in an address; and a file of a web server is no directory."""
    with http.server.HTTPServer(("127.0.0.1", 0), NothingThere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/404/403"
        try:
            assert b"is the address right?" in headrace("ls", url).stderr
            assert b"name the directory that holds it" in headrace("ls", url + "/events.out.tfevents.1.x").stderr
        finally:
            server.shutdown()
            thread.join()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = headrace("ls", f"http://127.0.0.1:{port}/404/403")
    assert done.returncode == 3 and b"is the server up" in done.stderr and b"404" in done.stderr


def test_status_of_several_sources(tmp_path):
    """Each has its own requests; the exit code is the same in either form."""
    roots = [write_tree(tmp_path / name, runs=2, steps=5) for name in ("one", "two")]
    path = sorted(roots[1].rglob("*tfevents*"))[0]
    path.write_bytes(path.read_bytes() + b"x" * 50)
    directory = tmp_path / "run/headrace"
    directory.mkdir()
    with Running(directory, "-m", "8M", *roots):
        for root in roots:
            headrace("ls", root)
        done = headrace("status", "-v")
        assert done.returncode == headrace("status", "--json").returncode == 1
        lines = done.stdout.decode().splitlines()
        assert re.match(r"ring 8 MiB \(.*; in flight .* of 256 MiB; 0 sessions$", lines[1])
        assert [re.match(r"(.*)  ok  2/2 runs  damaged [01].*  last look \d+ s ago  today \d+ requests$", line).group(1) for line in lines[2:4]] \
            == [str(root) for root in roots]
        assert len(lines) == 4
    assert b"--private" not in headrace("status", "--help").stdout
    assert b"status asks the daemon that runs" in headrace("status", "--private").stderr


def test_status_of_a_source_that_fails(tmp_path):
    directory = tmp_path / "run/headrace"
    directory.mkdir()
    with Running(directory, tmp_path / "none"):
        headrace("ls", tmp_path / "none")
        for arguments in ([], ["--json"]):
            done = headrace("status", *arguments)
            assert done.returncode == 3 and done.stdout and b"No such file" in done.stderr, arguments


def test_status_without_a_daemon():
    done = headrace("status")
    assert done.returncode == 3 and done.stderr.startswith(b"headrace: no daemon answers")


def test_large_payloads_are_fetched(tmp_path):
    """Tensors above the inline limit, by both transports, hash as their bytes do; in full they are the bytes."""
    import hashlib
    import struct

    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    content = struct.pack("<200000d", *(step / 7 for step in range(200000)))
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_DOUBLE, tensor_content=content)
    tensor.tensor_shape.dim.add().size = 200000
    metadata = summary_pb2.SummaryMetadata(data_class=summary_pb2.DATA_CLASS_TENSOR)
    metadata.plugin_data.plugin_name = "mine"
    value = summary_pb2.Summary.Value(tag="big", tensor=tensor, metadata=metadata)
    (tmp_path / "logs").mkdir()
    with open(tmp_path / "logs/events.out.tfevents.1.x", "wb") as file:
        writer = RecordWriter(file)
        for step in range(3):
            writer.write(event_pb2.Event(wall_time=1.0, step=step, summary=summary_pb2.Summary(value=[value])).SerializeToString())
    for transport in ("map", "inline"):
        lines = lines_of(headrace("dump", tmp_path / "logs", "--transport", transport))
        assert [line["step"] for line in lines] == [0, 1, 2]
        for line in lines:
            assert line["shape"] == [200000] and line["dtype"] == "DT_DOUBLE"
            assert line["sha256"] == hashlib.sha256(content).hexdigest()
    line = lines_of(headrace("dump", tmp_path / "logs", "--payload", "full"))[0]
    assert struct.pack("<200000d", *line["data"]) == content
    line = lines_of(headrace("dump", tmp_path / "logs", "--payload", "none"))[0]
    assert line["dtype"] == "DT_DOUBLE" and "data" not in line and "sha256" not in line


def test_example_sums_a_tag(tmp_path):
    root = write_tree(tmp_path / "logs", runs=3, steps=100)
    done = subprocess.run([BUILD / "examples/docs/examples/sum", root, "loss"], capture_output=True, timeout=PATIENCE_S,
                          env={**os.environ, "HEADRACE_DAEMON": str(BUILD / "headraced")})
    assert done.returncode == 0 and done.stdout.decode() == f"300 records, sum {3 * sum(range(100)) * 0.5:g}\n"
