# SPDX-License-Identifier: Apache-2.0
"""headraced as any client sees it: docs/PROTOCOL.md, spoken by tests/integration/hrclient.py and not by libheadrace."""
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import resource
import selectors
import signal
import socket
import struct
import subprocess
import time

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client, Closed, RpcError
from tests.rig import reference

TOP = pathlib.Path(__file__).resolve().parents[2]
HEADRACED = TOP / os.environ.get("HEADRACE_BUILD", "build") / "headraced"
PATIENCE_S = 60

pytestmark = pytest.mark.sanitize


def write_events(path, tags, steps, first=0):
    """An event file of simple values, written by TensorBoard's own record writer."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        if first == 0:
            writer.write(event_pb2.Event(wall_time=1714557600.0, file_version="brain.Event:2").SerializeToString())
        for step in range(first, first + steps):
            values = [summary_pb2.Summary.Value(tag=tag, simple_value=step * 0.5 + number) for number, tag in enumerate(tags)]
            event = event_pb2.Event(wall_time=1714557600.0 + step, step=step, summary=summary_pb2.Summary(value=values))
            writer.write(event.SerializeToString())


def write_tree(root, runs=6, steps=200):
    for run in range(runs):
        write_events(root / f"run{run}" / f"events.out.tfevents.171455760{run}.host", ["loss", "acc/top1"], steps)
    return root


def expected_rows(root):
    """What TensorBoard's reader finds, as hrclient.scalar_rows() says it."""
    rows = {}
    for path in sorted(root.rglob("*tfevents*")):
        name = str(path.relative_to(root))
        rows[name] = [row[1:] for row in reference.scalars(path, name)]
    return rows


class Daemon:
    def __init__(self, socket_path, *arguments, limit_fds=None, inside=()):
        """inside: words of a command that runs the one behind them."""
        self.socket_path = socket_path
        self.errors = open(str(socket_path) + ".stderr", "w+b")
        environment = {**os.environ, "HOME": str(socket_path.parent), "XDG_CONFIG_HOME": str(socket_path.parent)}
        self.process = subprocess.Popen([*inside, HEADRACED, "--socket", socket_path, *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.errors, env=environment,
                                        preexec_fn=limit_fds and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit_fds)))

    def wait_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self.process.poll() is None, self.stderr()
            with contextlib.suppress(OSError):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    probe.connect(str(self.socket_path))
                return self
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE_S)
        self.errors.close()
        return code


@pytest.fixture
def start(tmp_path):
    """Starts daemons on a socket of their own; at the end each must still run and end well."""
    daemons = []

    def start_daemon(*arguments, name="s", **options):
        directory = tmp_path / "socket"
        directory.mkdir(exist_ok=True)
        daemons.append(Daemon(directory / name, "--ring", "4M", "--huge", "off", *map(str, arguments), **options).wait_ready())
        return daemons[-1]

    yield start_daemon
    for daemon in daemons:
        assert daemon.process.poll() is None, daemon.stderr()
        errors = daemon.stderr()
        assert daemon.stop() == 0, errors
        assert not daemon.socket_path.exists()


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "logs")


@pytest.fixture
def daemon(start, tree):
    return start(tree)


# ---- Messages --------------------------------------------------------------------------------------------------------------------


def test_hello(daemon, tree):
    with Client(daemon.socket_path) as client:
        assert client.hello["protocol"] == 1 and client.hello["pid"] == daemon.process.pid
        assert client.hello["uid"] == os.geteuid() and client.hello["private"] is False
        assert set(client.hello["features"]) >= {"map", "inline"}
        assert len(client.hello["instance"]) == 16 and client.hello["limits"]["sessions"] > 0
        assert client.hello["sources"] and client.hello["sources"][0].endswith(str(tree))


def test_series_says_where_texts_are_that_are_too_long(start, tmp_path):
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    description = "x" * 400_000
    metadata = summary_pb2.SummaryMetadata(plugin_data={"plugin_name": "mine"}, summary_description=description)
    event = event_pb2.Event(wall_time=1.0, step=7, summary=summary_pb2.Summary(value=[
        summary_pb2.Summary.Value(tag="first", simple_value=1), summary_pb2.Summary.Value(tag="long", simple_value=2, metadata=metadata)]))
    path = tmp_path / "logs" / "events.out.tfevents.1.h"
    path.parent.mkdir()
    with open(path, "wb") as file:
        RecordWriter(file).write(event.SerializeToString())
    daemon = start(tmp_path / "logs")
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        first, long = client.call("series")["series"]
        assert "left_out" not in first
        assert (long["tag"], long["description"], long["left_out"]["offset"], long["left_out"]["index"]) == ("long", "", 0, 1)
        client.subscribe(transport="inline")
        request = client.send_call("payload", **long["left_out"])
        client.answer(request)
        image = next(image for entry, image in iter(client.extent, None) if entry.segment == 0xFFFFFFFF)
        row = int.from_bytes(image[92:96], "little")
        at, size = struct.unpack_from("<II", image, row + 32)
        assert image[at:at + size] == description.encode()


def test_lists(daemon, tree):
    with Client(daemon.socket_path) as client:
        loaded = client.call("wait_loaded")
        assert loaded["files"] == 6 and loaded["failed"] == [] and loaded["damaged"] == 0
        source = client.call("sources")["sources"][0]
        assert (source["state"], source["runs"], source["files"], source["settled"]) == ("ok", 6, 6, 6)
        assert source["size_bytes"] == source["loaded_bytes"] == sum(p.stat().st_size for p in tree.rglob("*tfevents*"))
        runs, pages = client.pages("runs", limit=4)
        assert [run["run"] for run in runs] == [f"run{n}" for n in range(6)] and pages == 2
        assert {run["state"] for run in runs} == {"loaded"} and {run["last_step"] for run in runs} == {199}
        files, _ = client.pages("files", run="run[12]", limit=1)
        assert [file["path"] for file in files] == sorted(str(p.relative_to(tree)) for p in tree.glob("run[12]/*"))
        series, pages = client.pages("series", tag="acc*", limit=5)
        assert [(row["run"], row["tag"]) for row in series] == [(f"run{n}", "acc/top1") for n in range(6)] and pages == 2
        again = client.call("series", ids=[series[3]["id"], "0" * 16])["series"]
        assert again == [series[3]]
        status = client.call("status")
        assert status["ring"]["size_bytes"] <= 4 << 20 and status["sources"][0]["files"] == 6


@pytest.mark.parametrize("method, params, code", [
    ("no_such", {}, -32601),
    ("runs", {"source": 5}, -32602),
    ("runs", {"limit": "x"}, -32602),
    ("files", {"after": "nonsense"}, -32602),
    ("series", {"ids": "x"}, -32602),
    ("subscribe", {"transport": "pigeon"}, -32602),
    ("subscribe", {"runs": [[]]}, -32602),
    ("payload", {"file": 1}, -32602),
    ("payload", {"file": "0" * 16, "file_version": "0" * 16, "offset": 0, "index": 0}, -32010),
    ("wait_loaded", {"source": "none"}, -32602),
])
def test_wrong_calls(daemon, method, params, code):
    with Client(daemon.socket_path) as client:
        with pytest.raises(RpcError) as error:
            client.call(method, **params)
        assert error.value.code == code
        client.call("sources")


@pytest.mark.parametrize("body", [
    b"", b"{", b"\xff\xfe", b"[1]", b"[" * 3000, b"1" * 5000, b"x" * 123,
    b'{"jsonrpc":"2.0","id":1e999,"method":"sources"}',
    json.dumps({"jsonrpc": "2.0", "method": 5, "id": 1}).ljust(123).encode(),
])
def test_bodies_that_are_no_requests(daemon, body):
    with Client(daemon.socket_path) as client:
        client.send_frame(hrclient.JSON, body)
        message = json.loads(client.frame()[3])
        assert message["error"]["code"] in (-32700, -32600)
        client.call("sources")


def test_a_frame_of_123_bytes(daemon):
    body = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "sources"}).ljust(123).encode()
    assert len(body) == 123
    with Client(daemon.socket_path) as client:
        client.send_frame(hrclient.JSON, body)
        assert json.loads(client.frame()[3])["id"] == "x"
        for byte in hrclient.HEADER.pack(hrclient.JSON, 0, 0, len(body)) + body:  # and in the smallest pieces
            client.send_raw(bytes([byte]))
        assert json.loads(client.frame()[3])["id"] == "x"


@pytest.mark.parametrize("header", [
    (1, 0, 0, 1 << 20 | 1),
    (1, 0, 0, 0xFFFFFFFF),
    (1, 200, 0, 2),
    (2, 0, 0, 64),
    (7, 0, 0, 0),
    (0, 0, 0, 0),
])
def test_malformed_frames_end_their_connection(daemon, header):
    with Client(daemon.socket_path) as other, Client(daemon.socket_path) as client:
        client.send_raw(hrclient.HEADER.pack(*header) + bytes(min(header[3], 64)))
        assert json.loads(client.frame()[3])["error"]["code"] == -32600
        with pytest.raises(Closed):
            client.frame()
        other.call("sources")


def test_half_frames_hold_nothing_up(daemon):
    with contextlib.ExitStack() as stack:
        for size in (1, 4, 7, 8, 20):
            client = stack.enter_context(Client(daemon.socket_path))
            client.send_raw((hrclient.HEADER.pack(hrclient.JSON, 0, 0, 1000) + b"{" * 1000)[:size])
        stack.enter_context(Client(daemon.socket_path)).call("sources")


def test_descriptors_that_are_sent_are_dropped(daemon):
    fds = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    with Client(daemon.socket_path) as client:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sources"}).encode()
        for _ in range(20):
            message = hrclient.HEADER.pack(hrclient.JSON, 1, 0, len(body)) + body
            socket.send_fds(client.socket, [message], [0])
            client.frame()
        assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= fds + 2


def test_lines(daemon):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
        plain.connect(str(daemon.socket_path))
        plain.settimeout(PATIENCE_S)
        plain.sendall(b'{"jsonrpc":"2.0","id":1,"method":"wait_loaded"}\n{"jsonrpc":"2.0","id":2,"method":"runs"}\n'
                      b'{"jsonrpc":"2.0","id":3,"method":"subscribe"}\n{"jsonrpc":"2.0","id":4,"method":"sources"}')
        plain.shutdown(socket.SHUT_WR)
        answers = {}
        for line in plain.makefile():
            message = json.loads(line)
            if "id" in message:
                answers[message["id"]] = message
        assert answers[1]["result"]["files"] == 6
        assert "runs" in answers[2]["result"]
        assert answers[3]["error"]["code"] == -32001
        assert answers[4]["result"]["sources"]


def test_who_never_reads_is_made_to_wait(daemon):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "status"}).encode()
    frame = hrclient.HEADER.pack(hrclient.JSON, 0, 0, len(request)) + request
    with Client(daemon.socket_path) as client, Client(daemon.socket_path) as other:
        client.socket.setblocking(False)
        sent = refused = 0
        while refused < 50:
            try:
                sent += client.socket.send(frame * 100)
                refused = 0
            except BlockingIOError:
                refused += 1
                other.call("sources")  # a turn of the daemon's loop at least, and others are served
            assert sent < 64 << 20
        pages = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
        resident_kib = int(next(line for line in pages.splitlines() if line.startswith("VmRSS")).split()[1])
        assert resident_kib < 600 << 10  # a sanitizer's build, too


# ---- Streams ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["map", "inline"])
@pytest.mark.parametrize("order", ["run", "sorted"])
def test_every_record_comes_once_in_file_order(daemon, tree, transport, order):
    with Client(daemon.socket_path) as client:
        rows, last = hrclient.scalar_rows(client.subscribe(transport=transport, order=order).entries())
        assert rows == expected_rows(tree)
        assert last.flags & hrclient.END
        if order == "sorted":
            assert list(rows) == sorted(rows)


def test_both_transports_give_the_same_bytes(daemon):
    images = []
    for transport in ("map", "inline"):
        with Client(daemon.socket_path) as client:
            images.append(sorted(image for _, image in client.subscribe(transport=transport, order="sorted").entries() if image))
    assert images[0] == images[1]


@pytest.mark.parametrize("transport", ["map", "inline"])
def test_a_small_ring_delivers_more_than_it_holds(start, tmp_path, transport):
    root = tmp_path / "logs"
    for run in range(4):
        write_events(root / f"run{run}" / "events.out.tfevents.1.host", [f"tag{n}" for n in range(40)], 1000)
    expected = expected_rows(root)
    assert sum(len(rows) for rows in expected.values()) * 64 > 2 * (4 << 20)
    daemon = start(root)
    with Client(daemon.socket_path) as client:
        rows, _ = hrclient.scalar_rows(client.subscribe(transport=transport).entries())
        assert rows == expected
    with Client(daemon.socket_path) as client:
        assert client.call("status")["counters"]["recycled_segments"] > 0


def test_filters_choose_extents(daemon, tree):
    with Client(daemon.socket_path) as client:
        rows, _ = hrclient.scalar_rows(client.subscribe(transport="inline", runs=["run[01]"], tags=["loss"]).entries())
        assert set(rows) == {str(p.relative_to(tree)) for p in tree.glob("run[01]/*")}
    with Client(daemon.socket_path) as client:
        rows, _ = hrclient.scalar_rows(client.subscribe(transport="inline", tags=["none"]).entries())
        assert not any(rows.values())


def test_growth_follows(daemon, tree):
    path = next(tree.glob("run3/*"))
    with Client(daemon.socket_path) as client:
        stream = client.subscribe(runs="run3", follow=True)
        seen = []
        write_events(path, ["loss", "acc/top1"], 50, first=200)
        client.send_call("reload")
        for entry, image in stream.entries():
            seen.append((entry, image))
            rows, _ = hrclient.scalar_rows(seen)
            if len(rows.get(str(path.relative_to(tree)), [])) == 500:
                break
        assert rows == {str(path.relative_to(tree)): expected_rows(tree)[str(path.relative_to(tree))]}


def test_positions_are_gone_on_from(daemon, tree):
    path = next(tree.glob("run2/*"))
    expected = expected_rows(tree)[str(path.relative_to(tree))]
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        file = client.call("files", run="run2")["files"][0]
        position = {"file": file["id"], "file_version": file["version"], "offset": expected[300][0], "index": 1}
        stream = client.subscribe(transport="inline", runs=["run2"], **{"from": {"positions": [position]}})
        rows, _ = hrclient.scalar_rows(stream.entries())
        assert rows[str(path.relative_to(tree))] == [row for row in expected if row[:2] >= (position["offset"], 1)]


def test_sessions_are_limited(daemon):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(daemon.socket_path)) for _ in range(stack.enter_context(
            Client(daemon.socket_path)).hello["limits"]["sessions"] + 1)]
        for client in clients[:-1]:
            client.subscribe(transport="inline", runs=["none"])
        with pytest.raises(RpcError) as error:
            clients[-1].subscribe(transport="inline")
        assert error.value.code == -32003
        with pytest.raises(RpcError):
            clients[0].subscribe(transport="inline")
        clients[0].close()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(RpcError):
                clients[-1].subscribe(transport="inline", runs=["none"])
                break
            assert time.monotonic() < deadline


def test_a_client_that_is_killed_or_stopped_hurts_nobody(start, tmp_path):
    root = tmp_path / "logs"
    for run in range(4):
        write_events(root / f"run{run}" / "events.out.tfevents.1.host", [f"tag{n}" for n in range(40)], 1000)
    expected = expected_rows(root)
    daemon = start(root)
    holders = []
    for transport in ("map", "inline"):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            client = Client(daemon.socket_path)
            entries = client.subscribe(transport=transport).entries(acknowledge=False)
            next(entries)
            os.write(write_end, b"x")
            signal.pause()
            os._exit(1)
        os.close(write_end)
        assert os.read(read_end, 1) == b"x"
        os.close(read_end)
        holders.append(pid)
        os.kill(pid, signal.SIGSTOP)
    with Client(daemon.socket_path) as client:
        rows, _ = hrclient.scalar_rows(client.subscribe().entries())
        assert rows == expected
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with Client(daemon.socket_path) as client:
        deadline = time.monotonic() + PATIENCE_S
        while client.call("status")["sessions"] or client.call("status")["ring"]["pinned"]:
            assert time.monotonic() < deadline
        rows, _ = hrclient.scalar_rows(client.subscribe(transport="inline").entries())
        assert rows == expected


@pytest.mark.parametrize("acked", [1 << 40, 0xFFFFFFFFFFFFFFFF, "backwards"])
def test_wrong_acknowledgements_end_the_session(daemon, acked):
    with Client(daemon.socket_path) as other, Client(daemon.socket_path) as client:
        stream = client.subscribe(follow=True)
        next(stream.entries())
        client.send_frame(hrclient.WAKE)
        client.call("sources")  # by now the daemon has read the first acknowledgement
        if acked == "backwards":
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.fallocate(stream.ack_fd, 3, ctypes.c_long(0), ctypes.c_long(65536)) == 0
        else:
            struct.pack_into("<Q", stream.ack, 0, acked)
        with contextlib.suppress(BrokenPipeError):
            client.send_frame(hrclient.WAKE)
        with pytest.raises((RpcError, Closed, BrokenPipeError, ConnectionResetError)) as error:
            while True:
                client.call("sources")
        if isinstance(error.value, RpcError):
            assert error.value.code == -32600
        other.call("sources")


# ---- Memory ----------------------------------------------------------------------------------------------------------------------


def refused(call, *arguments):
    try:
        call(*arguments)
    except (OSError, PermissionError, ValueError):
        return True
    return False


def test_nobody_writes_but_the_owner(daemon):
    """The seal matrix: data and queue cannot be written or resized by any way; the ack page only keeps its size."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    punch = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
    with Client(daemon.socket_path) as client:
        stream = client.subscribe(follow=True)
        for fd in (stream.data_fd, stream.queue_fd):
            assert refused(lambda: mmap.mmap(fd, 65536, prot=mmap.PROT_READ | mmap.PROT_WRITE))
            assert refused(os.pwrite, fd, b"x", 0)
            assert libc.fallocate(fd, punch, 0, 65536) != 0
            address = libc.mmap(None, 65536, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
            assert address != ctypes.c_void_p(-1).value
            assert libc.mprotect(address, 65536, mmap.PROT_READ | mmap.PROT_WRITE) != 0
            with contextlib.suppress(PermissionError):
                again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
                assert refused(os.pwrite, again, b"x", 0)
                assert refused(lambda: mmap.mmap(again, 65536, prot=mmap.PROT_READ | mmap.PROT_WRITE))
                os.close(again)
        for fd in stream.fds:
            size = os.fstat(fd).st_size
            assert refused(os.ftruncate, fd, 0) and refused(os.ftruncate, fd, size + 65536)
            assert refused(lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC))
            assert os.fstat(fd).st_size == size
        client.call("sources")


# ---- Where it listens ------------------------------------------------------------------------------------------------------------


def run_refused(*arguments, **options):
    result = subprocess.run([HEADRACED, *map(str, arguments)], capture_output=True, timeout=PATIENCE_S, text=True,
                            stdin=subprocess.DEVNULL, **options)
    assert result.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT)
    return result.stderr


def test_a_second_daemon_is_refused(daemon, tree):
    message = run_refused("--socket", daemon.socket_path, tree)
    assert "already running" in message and str(daemon.socket_path) in message and str(daemon.process.pid) in message
    Client(daemon.socket_path).close()


def test_a_dead_daemons_socket_is_taken_over(start, tree):
    first = start(tree, name="same")
    first.process.kill()
    first.process.wait()
    assert first.socket_path.exists()
    second = Daemon(first.socket_path, "--ring", "4M", "--huge", "off", str(tree)).wait_ready()
    Client(second.socket_path).close()
    first.process, second.process = second.process, first.process  # the fixture ends the one that lives
    second.errors.close()


def test_an_unwritable_directory_is_named(tmp_path, tree):
    directory = tmp_path / "locked"
    directory.mkdir()
    directory.chmod(0o555)
    where = directory / "s"
    if os.geteuid() == 0:  # modes do not hold root back: a directory that takes no files does
        where = pathlib.Path("/proc/headrace.sock")
    message = run_refused("--socket", where, tree)
    assert str(where) in message and "annot" in message


def test_without_descriptors_clients_are_turned_away(start, tree):
    daemon = start(tree, limit_fds=(100, 100))
    with contextlib.ExitStack() as stack:
        clients = selectors.DefaultSelector()
        stack.callback(clients.close)
        for _ in range(150):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            stack.callback(client.close)
            client.connect(str(daemon.socket_path))
            clients.register(client, selectors.EVENT_READ)
        # Each client is one descriptor: at least 50 are turned away, and which of them is not said.
        turned_away = 0
        while turned_away < 50:
            ready = clients.select(PATIENCE_S)
            assert ready, f"{turned_away} of 150 were turned away"
            for key, _ in ready:
                assert key.fileobj.recv(1) == b""
                clients.unregister(key.fileobj)
            turned_away += len(ready)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(Closed, OSError):
            Client(daemon.socket_path).close()
            break
        assert time.monotonic() < deadline


def test_the_socket_has_its_mode(daemon):
    assert daemon.socket_path.stat().st_mode & 0o777 == 0o660


def test_a_private_daemon_ends_with_its_client(tree):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    process = subprocess.Popen([HEADRACED, "--private", f"--socket-fd={theirs.fileno()}", "--ring", "4M", tree],
                               pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    with Client(ours) as client:
        assert client.hello["private"] is True
        rows, _ = hrclient.scalar_rows(client.subscribe().entries())
        assert rows == expected_rows(tree)
    assert process.wait(PATIENCE_S) == 0


def test_a_source_that_cannot_be_listed_says_why(start, tmp_path):
    daemon = start(tmp_path / "none")
    with Client(daemon.socket_path) as client:
        with pytest.raises(RpcError) as error:
            client.call("wait_loaded")
        assert error.value.code == -32002 and "none" in str(error.value)
        stream = client.subscribe(transport="inline")
        failed = {}
        while failed.get("method") != "stream_failed":
            failed = json.loads(client.frame()[3])
        assert failed["params"]["code"] == -32002 and failed["params"]["data"]["code"]
        assert stream.taken == 0
        client.call("status")


# ---- Names and payloads ----------------------------------------------------------------------------------------------------------


def test_names_are_bytes(start, tmp_path):
    root = tmp_path / "logs"
    for name in (b"sp ace", b"quo\"te'", b"new\nline", b"\xff\xfe raw", "Größe".encode()):
        path = pathlib.Path(os.fsdecode(os.fsencode(root) + b"/" + name + b"/events.out.tfevents.1.h"))
        write_events(path, ["t"], 3)
    daemon = start(root)
    with Client(daemon.socket_path) as client:
        assert client.call("wait_loaded")["files"] == 5
        names = {}
        for run in client.pages("runs", limit=1)[0]:
            names[bytes.fromhex(run["run_hex"]) if "run_hex" in run else run["run"].encode()] = run
        assert set(names) == {b"sp ace", b"quo\"te'", b"new\nline", b"\xff\xfe raw", "Größe".encode()}
        assert names[b"\xff\xfe raw"]["run"] == "\ufffd\ufffd raw"
        assert [run["run_hex"] for run in client.call("runs", run_hex=b"\xff*".hex())["runs"]] == [b"\xff\xfe raw".hex()]
        seen = [hrclient.Extent(image).run for _, image in client.subscribe(transport="inline", order="sorted").entries() if image]
        assert sorted(set(seen)) == sorted(names)


@pytest.mark.parametrize("transport", ["map", "inline"])
def test_external_payloads_are_sent_when_asked_for(start, tmp_path, transport):
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
    from tensorboard.summary.writer.record_writer import RecordWriter

    content = bytes(range(256)) * 12345  # 3 MB, more than a frame holds
    shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=len(content))])
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_UINT8, tensor_content=content, tensor_shape=shape)
    event = event_pb2.Event(wall_time=1.0, step=7, summary=summary_pb2.Summary(value=[
        summary_pb2.Summary.Value(tag="first", simple_value=1), summary_pb2.Summary.Value(tag="big", tensor=tensor)]))
    path = tmp_path / "logs" / "a" / "events.out.tfevents.1.h"
    path.parent.mkdir(parents=True)
    with open(path, "wb") as file:
        RecordWriter(file).write(event.SerializeToString())
    daemon = start(tmp_path / "logs")
    with Client(daemon.socket_path) as client:
        stream = client.subscribe(transport=transport)
        extents = [hrclient.Extent(image) for _, image in stream.entries() if image]
        extent, record = next((x, r) for x in extents for r in x.records if r["flags"] & hrclient.EXTERNAL)
        assert (record["value_index"], record["source_offset"]) == (1, 0)
        request = client.send_call("payload", file=f"{extent.file_id:016x}", file_version=f"{extent.file_version:016x}",
                                   offset=0, index=1)
        result, fds = client.answer(request)
        assert result["transport"] == transport
        if transport == "map":
            assert refused(os.ftruncate, fds[0], 0) and refused(os.pwrite, fds[0], b"x", 0)
            image = os.pread(fds[0], result["size_bytes"], 0)
            os.close(fds[0])
        else:
            entry, image = client.extent()
            assert entry.segment == 0xFFFFFFFF
        answer = hrclient.Extent(image)
        assert len(answer.records) == 1 and answer.tags[answer.records[0]["series"]] == b"big"
        begin, size = int(answer.records[0]["payload_offset"]), int(answer.records[0]["payload_size"])
        payload = answer.image[begin:begin + size]
        assert payload[:8] == struct.pack("<BBHI", types_pb2.DT_UINT8, 1, 0, len(content))
        assert struct.unpack_from("<q", payload, 8) == (len(content),) and payload[64:] == content
        with pytest.raises(RpcError) as error:
            client.call("payload", file=f"{extent.file_id:016x}", file_version=f"{extent.file_version ^ 1:016x}", offset=0, index=1)
        assert error.value.code == -32010
        with pytest.raises(RpcError) as error:
            client.call("payload", file=f"{extent.file_id:016x}", file_version=f"{extent.file_version:016x}", offset=5, index=1)
        assert error.value.code == -32011
        client.call("sources")
