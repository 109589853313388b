# SPDX-License-Identifier: Apache-2.0
"""`headrace` and `headraced` as people type them: on real servers, on bad input, with other threads and rings, on a pipe that closes."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401
from tests.integration.test_storage import serve  # noqa: F401
from tests.rig.nginx import Nginx

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
NAME = "events.out.tfevents.1.host"
NOBODY = 65534

pytestmark = pytest.mark.sanitize


def headrace(*arguments, code=0, env=None, build=BUILD, **options):
    # HEADRACE_* of whoever runs the tests must not choose another daemon.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    environment.update({"NO_COLOR": "1", **(env or {})})
    done = subprocess.run([build / "headrace", *map(str, arguments)], capture_output=True, timeout=120, env=environment, **options)
    assert done.returncode == code, (done.returncode, done.stderr.decode())
    return done


def wanted_requests(url, **options):
    """(list, read) of `ls`: requests for what had not been asked for before. A server that is slow may be asked for something twice."""
    counts = json.loads(headrace("ls", url, "--json", **options).stdout)["requests"]
    return tuple(counts[kind] - counts["repeated"][kind] for kind in ("list", "read"))


def rows(output):
    files = {}
    for line in output.splitlines():
        line = json.loads(line)
        files.setdefault(line["file"], []).append(
            (line["offset"], line["index"], line["step"], line["wall_time"], line["tag"], line["value"]))
    return files


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "logs")


def test_the_output_is_the_same_however_it_was_fetched(tree):
    outputs = {headrace("dump", tree, "--transport", transport,
                        env={"HEADRACE_DECODERS": decoders, "HEADRACE_RING_SIZE": ring, "HEADRACE_FETCH_PART": part,
                             "HEADRACE_FETCH_CONNECTIONS_MAX": connections}).stdout
               for transport in ("map", "inline") for decoders, ring, part, connections in
               (("1", "4M", "1M", "1"), ("4", "256M", "8M", "1024"))}
    assert len(outputs) == 1
    assert rows(outputs.pop()) == expected_rows(tree)


def test_https_and_its_certificate(tree):
    with Nginx(tree, tls=True) as nginx:
        done = headrace("dump", nginx.tls_url + "/", env={"CURL_CA_BUNDLE": str(nginx.certificate)})
        assert rows(done.stdout) == expected_rows(tree)
        refused = headrace("ls", nginx.tls_url + "/", code=3).stderr.decode()
        assert "certificate" in refused.lower()


def test_a_password_in_the_url_is_used_and_never_shown(tree, serve):
    server = serve(tree)
    server.control({"fault": "auth", "user": "ada", "password": "geheim"})
    url = server.url.replace("http://", "http://ada:geheim@")
    done = headrace("dump", url)
    assert rows(done.stdout) == expected_rows(tree)
    listing = headrace("ls", url, "--json")
    wrong = headrace("ls", url.replace("geheim", "falsch"), code=3)
    for output in (done.stdout, done.stderr, listing.stdout, listing.stderr, wrong.stdout, wrong.stderr):
        assert b"geheim" not in output and b"falsch" not in output
    assert b"401" in wrong.stderr


def test_a_manifest_is_one_request(tree, serve):
    paths = sorted(tree.rglob("*tfevents*"))
    entries = [{"name": str(path.relative_to(tree)), "type": "file", **({"size": path.stat().st_size} if number % 2 else {})}
               for number, path in enumerate(paths)]
    (tree / "runs.json").write_text(json.dumps(entries))
    server = serve(tree)
    assert rows(headrace("dump", server.url + "runs.json").stdout) == expected_rows(tree)
    assert len(server.requests()) == 1 + len(paths)
    assert all(request["requests"] == 1 for request in server.requests())


def test_what_requests_cost(tree, serve):
    """The price of S3, asked of a server of our own: 1 listing for each of 7 directories, and 6 reads. A local directory is free."""
    server = serve(tree)
    price = {"HEADRACE_PRICE_LIST": "0.005", "HEADRACE_PRICE_READ": "0.0004"}
    last = headrace("ls", server.url, env=price).stdout.decode().splitlines()[-1]
    assert last.endswith("; 7 LIST + 6 GET (about $0.00004)"), last
    cost = json.loads(headrace("ls", server.url, "--json", env=price).stdout)["requests"]["cost"]
    assert cost == {"total_usd": pytest.approx(7 * 0.000005 + 6 * 0.0000004), "today_usd": cost["total_usd"], "day_usd": None}
    assert "about" not in headrace("ls", server.url).stdout.decode()
    assert "about" not in headrace("ls", tree, env=price).stdout.decode()


def test_requests_that_were_repeated_are_told_apart(tree, serve):
    server = serve(tree)
    server.control({"path": "/run1/", "fault": "status", "status": 503, "times": 1},
                   {"path": "/run2/*", "kind": "read", "fault": "status", "status": 500, "times": 2})
    last = headrace("ls", server.url).stdout.decode().splitlines()[-1]
    assert last.endswith("; 8 LIST + 8 GET, 3 of them asked again"), last
    server.control({"path": "/run1/", "fault": "status", "status": 503, "times": 1},
                   {"path": "/", "fault": "status", "status": 503, "times": 1},
                   {"path": "/run2/*", "kind": "read", "fault": "short", "after": 100, "times": 1})
    counts = json.loads(headrace("ls", server.url, "--json").stdout)["requests"]
    assert counts == {"list": 9, "read": 7, "credentials": 0, "repeated": {"list": 2, "read": 1}}


def test_ls_tells_every_run(tree):
    (tree / "empty").mkdir()
    (tree / "empty" / NAME).touch()
    done = headrace("ls", tree, "--json")
    runs = {run["run"]: run for run in json.loads(done.stdout)["runs"]}
    assert set(runs) == {"run%d" % n for n in range(6)} | {"empty"}
    assert runs["run3"]["state"] == "loaded" and runs["run3"]["last_step"] == 199 and runs["run3"]["files"] == 1
    assert runs["run3"]["size_bytes"] == next((tree / "run3").iterdir()).stat().st_size
    assert runs["empty"]["state"] == "empty"
    last = headrace("ls", tree).stdout.decode().splitlines()[-1]
    assert last.startswith("7 runs, 7 files, ")


def test_an_empty_source_is_no_error(tmp_path):
    (tmp_path / "none").mkdir()
    assert headrace("dump", tmp_path / "none").stdout == b""
    assert headrace("ls", tmp_path / "none").stdout.decode().startswith("0 runs, 0 files")


@pytest.mark.parametrize("arguments", [("dump",), ("frobnicate",), ("dump", "x", "--format", "xml"), ("dump", "x", "--payload", "some"),
                                       ("ls", "x", "y", "z", "--nonsense"), ("ls", "http://"), ("ls", "x", "--private", "--socket", "s"),
                                       ("status", "--private")])
def test_usage_errors(arguments):
    assert headrace(*arguments, code=2).stderr


def test_a_wrong_word_names_all_that_are_right():
    for option, words in (("--format", b"jsonl, json, csv"), ("--payload", b"sha256, full, none"), ("--transport", b"map, inline")):
        assert words in headrace("dump", "x", option, "wrong", code=2).stderr


@pytest.mark.parametrize("url", ["/no/such/directory", "http://127.0.0.1:1/", "ftp://host/x"])
def test_a_source_that_cannot_be_listed(url):
    for command in ("ls", "dump"):
        done = headrace(command, url, code=3)
        assert done.stdout == b"" and done.stderr.startswith(b"headrace: ") and url.encode() in done.stderr
        assert b"headraced:" not in done.stderr


@pytest.fixture
def open_tree():
    """A tree that other users may read, with programs that they may run."""
    with tempfile.TemporaryDirectory(prefix="headrace-test-") as directory:
        os.chmod(directory, 0o755)
        for program in ("headrace", "headraced", "libheadrace.so.1"):
            shutil.copy(BUILD / program, directory)
        yield write_tree(pathlib.Path(directory) / "logs")


def test_a_directory_without_permission(open_tree):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    tree = open_tree
    (tree / "run2").chmod(0o700)
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": {"HOME": "/nonexistent"}, "build": tree.parent}
    done = headrace("dump", tree, code=1, **nobody)
    assert b"run2" in done.stderr and b"EACCES" in done.stderr
    expected = {name: some for name, some in expected_rows(tree).items() if not name.startswith("run2/")}
    assert rows(done.stdout) == expected
    tree.chmod(0o700)
    assert b"EACCES" in headrace("dump", tree, code=3, **nobody).stderr


def test_a_file_that_vanishes_between_listing_and_read(tree, serve):
    server = serve(tree)
    server.control({"kind": "read", "path": "/run4/*", "fault": "status", "status": 404})
    done = headrace("dump", server.url, code=1)
    assert b"run4" in done.stderr and b"404" in done.stderr
    assert set(rows(done.stdout)) == {name for name in expected_rows(tree) if not name.startswith("run4/")}


def test_a_pipe_that_closes_ends_it_quietly(tmp_path):
    write_events(tmp_path / "logs" / NAME, ["tag%d" % n for n in range(50)], 2000)
    process = subprocess.Popen([BUILD / "headrace", "dump", tmp_path / "logs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(1000)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) in (0, -signal.SIGPIPE, 128 + signal.SIGPIPE)


def children_of(pid):
    return {int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_a_killed_client_takes_its_private_daemon_with_it(tmp_path):
    write_events(tmp_path / "logs" / NAME, ["tag%d" % n for n in range(50)], 4000)
    process = subprocess.Popen([BUILD / "headrace", "dump", tmp_path / "logs"], stdout=subprocess.PIPE)
    process.stdout.read(1000)
    daemons = children_of(process.pid)
    assert len(daemons) == 1
    process.kill()
    process.wait()
    process.stdout.close()
    for pid in daemons:
        deadline = time.monotonic() + 30
        while pathlib.Path(f"/proc/{pid}/cmdline").exists() and pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < deadline, "the private daemon is still there"
            time.sleep(0.02)


def test_a_running_daemon_is_used_for_what_lies_below_its_sources(start, tree):
    daemon = start(tree)
    whole = headrace("dump", tree, "--socket", daemon.socket_path)
    assert rows(whole.stdout) == expected_rows(tree)
    part = headrace("dump", tree / "run1", "--socket", daemon.socket_path)
    assert list(rows(part.stdout).values()) == [some for name, some in expected_rows(tree).items() if name.startswith("run1/")]
    status = json.loads(headrace("status", "--json", "--socket", daemon.socket_path).stdout)
    assert status["sources"][0]["files"] == 6


def test_ls_looks_at_storage_again(start, tree):
    daemon = start(tree)
    headrace("ls", tree, "--socket", daemon.socket_path)
    write_events(tree / "fresh" / NAME, ["loss"], 5)
    runs = json.loads(headrace("ls", tree, "--json", "--socket", daemon.socket_path).stdout)["runs"]
    assert "fresh" in [run["run"] for run in runs]
    tree.rename(tree.parent / "away")
    assert b"ENOENT" in headrace("ls", tree, "--socket", daemon.socket_path, code=3).stderr


def test_what_is_not_below_a_running_daemons_source(start, tree):
    daemon = start(tree)
    for command in ("ls", "dump"):
        done = headrace(command, tree / "none", "--socket", daemon.socket_path, code=3)
        assert b"none" in done.stderr and str(tree).encode() in done.stderr
    # One file alone is not for a daemon that watches directories: one of its own reads it.
    path = next((tree / "run1").iterdir())
    done = headrace("dump", path, env={"HEADRACE_SOCKET": str(daemon.socket_path)})
    assert [len(some) for some in rows(done.stdout).values()] == [400]


def test_roots_socket_is_its_groups(tmp_path, tree):
    """In a mount namespace of its own, with a group that this machine may not have."""
    if os.geteuid() != 0:
        pytest.skip("only root gives a socket to a group")
    shutil.copy("/etc/group", tmp_path / "group")
    with open(tmp_path / "group", "a", encoding="utf-8") as file:
        file.write("\nheadrace:x:54321:\n")
    command = f"mount --bind {tmp_path}/group /etc/group && exec {BUILD}/headraced --socket {tmp_path}/s {tree}"
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", command], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (tmp_path / "s").exists():
        if process.poll() is not None:
            pytest.skip("no mount namespaces here: " + process.stderr.read().decode())
        assert time.monotonic() < deadline
        time.sleep(0.01)
    status = (tmp_path / "s").stat()
    process.terminate()
    assert process.wait(30) == 0
    process.stderr.close()
    assert (status.st_gid, status.st_mode & 0o777) == (54321, 0o660)


def test_check_says_whether_it_would_work(tree):
    def check(*arguments):
        return subprocess.run([BUILD / "headraced", "--check", *map(str, arguments)], capture_output=True, text=True, timeout=60)

    good = check(tree)
    assert good.returncode == 0 and "6 runs" in good.stdout
    bad = check(tree / "none")
    assert bad.returncode == 3 and "ENOENT" in bad.stdout
    nowhere = check("--socket", "/proc/nowhere/socket", tree)
    assert nowhere.returncode == 3 and "/proc/nowhere" in nowhere.stdout
    large = check("--ring", "900G", "--huge", "off", tree)
    assert large.returncode == 3 and "more than the machine has" in large.stdout
    assert "no sources" in check().stdout
    wrong = check("--set", "ring.sise=4M")
    assert wrong.returncode == 2 and "ring.size" in wrong.stderr


def test_no_home_and_no_runtime_directory(tree):
    environment = {"PATH": os.environ["PATH"], "NO_COLOR": "1"}
    done = subprocess.run([BUILD / "headrace", "dump", tree], capture_output=True, timeout=60, env=environment)
    assert done.returncode == 0 and rows(done.stdout) == expected_rows(tree)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("dump", "."), ("ls", ".")])
def test_a_full_disk_is_an_error(tree, arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BUILD / "headrace", *arguments], stdout=full, stderr=subprocess.PIPE, cwd=tree, timeout=60)
    assert done.returncode == 1 and b"standard output" in done.stderr


def closed(redirection, *command, **options):
    """Runs it as a shell does that was told to close descriptors."""
    return subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", *map(str, command)], capture_output=True, timeout=60, **options)


def test_a_closed_standard_output_is_an_error(tree):
    for arguments in (["ls", tree], ["dump", tree], ["--help"]):
        done = closed(">&-", BUILD / "headrace", *arguments)
        assert (done.returncode, done.stderr) == (1, b"headrace: standard output: Bad file descriptor\n"), arguments


@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "<&- 2>&-"])
def test_other_closed_descriptors_do_no_harm(tree, redirection):
    done = closed(redirection, BUILD / "headrace", "dump", tree)
    assert done.returncode == 0
    assert rows(done.stdout) == expected_rows(tree)


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_daemon_without_standard_descriptors(tree, tmp_path, redirection):
    path = tmp_path / "s"
    daemon = subprocess.Popen(["sh", "-c", f'exec "$@" {redirection}', "sh", BUILD / "headraced", "--socket", path, "--ring", "4M", tree])
    try:
        while subprocess.run([BUILD / "headrace", "status", "--socket", path], capture_output=True, timeout=60).returncode == 3:
            assert daemon.poll() is None
        assert rows(headrace("dump", tree, "--socket", path).stdout) == expected_rows(tree)
        daemon.terminate()
        assert daemon.wait(60) == 0
    finally:
        daemon.kill()
        daemon.wait()


def test_csv_has_every_scalar(tree):
    import csv

    done = headrace("dump", tree, "--format", "csv", "--tag", "loss", "--run", "run[0-2]")
    lines = list(csv.reader(done.stdout.decode().splitlines()))
    assert lines[0] == ["run", "tag", "step", "wall_time", "value"]
    expected = [[name.partition("/")[0], tag, str(step), wall_time, value] for name, some in expected_rows(tree).items()
                if name[:4] in ("run0", "run1", "run2") for _, _, step, wall_time, tag, value in some if tag == "loss"]
    assert [[run, tag, step, float(wall_time), float(value)] for run, tag, step, wall_time, value in lines[1:]] == expected
