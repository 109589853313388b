# SPDX-License-Identifier: Apache-2.0
"""Which points stand when a job restarts: `headrace dump --purge` against what TensorBoard's loaders show, and `--follow`."""
import csv
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

import pytest

from tests.integration.test_cli import headrace, lines_of, own_places  # noqa: F401
from tests.integration.test_storage import serve  # noqa: F401
from tests.integration.test_goldens import load, number, place, same_number

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
FIXTURES = TOP / "tests/data/fixtures"
GOLDENS = TOP / "tests/data/goldens"
PATIENCE_S = 60
NAME = "events.out.tfevents.%d.host.1.0"
WALL = 1714557600.0

pytestmark = pytest.mark.sanitize


def golden(tree, name):
    return json.loads((GOLDENS / tree / name).read_text(encoding="utf-8"))


def is_withdrawn(line, withdrawal):
    return all(line[ours] == withdrawal[theirs] for ours, theirs in (("run", "run"), ("file", "file"), ("tag", "tag"))
               if theirs in withdrawal) and line["step"] >= withdrawal.get("from_step", line["step"])


def applied(lines):
    """The points that stand when the lines are taken one after the other, as docs/man says it."""
    points = []
    for line in lines:
        if line["kind"] == "withdrawal":
            points = [point for point in points if not is_withdrawn(point, line)]
        else:
            points.append(line)
    return points


def series_of(lines):
    """{run: {tag: [(step, wall_time, value or None)]}}"""
    series = {}
    for line in lines:
        series.setdefault(line["run"], {}).setdefault(as_golden(line["tag"]), []).append((line["step"], line["wall_time"], line.get("value")))
    return series


def as_golden(tag):
    """Goldens show a name of more than 4096 bytes by its hash."""
    data = tag.encode()
    return tag if len(data) <= 4096 else f"sha256:{hashlib.sha256(data).hexdigest()}:{len(data)}"


def columns(points):
    return [point[0] for point in points], [number(point[1]) for point in points]


def same_columns(theirs, ours):
    steps, walls = columns(ours)
    return steps == theirs["step"] and len(walls) == len(theirs["wall_time"]) and all(map(same_number, theirs["wall_time"], walls))


# ---- Against what TensorBoard shows ------------------------------------------------------------------------------------------------

# Files whose times overlap: where the data server withdraws points of a job that ran meanwhile, they stay here.
WRITERS = {
    ("steps", "two_writers_interleaved", "t"): [0, 2, 4, 6, 1, 3, 5, 7],
    ("steps", "restart_overlaps", "t"): [0, 1, 2, 3, 4, 2, 3, 4, 5],
    ("steps", "restart_with_start_log", "t"): [0, 1, 2, 3, 4, 2, 3],
    ("steps", "restart_of_another_tag", "t"): [0, 1, 2, 3, 4, 2],
    ("odd_files", "order_of_names", "t"): [1, 1, 2],
}


@pytest.mark.parametrize("transport", ["map", "inline"])
@pytest.mark.parametrize("tree", sorted(path.parent.name for path in GOLDENS.glob("*/series.json")))
def test_order_is_the_data_servers_rule(tree, transport):
    dropped = {place(line) for line in load("records.wire.jsonl", tree) if "dropped" in line}
    lines = lines_of(headrace("dump", FIXTURES / tree, "--payload", "none", "--transport", transport))
    ours = series_of(line for line in lines if place(line) not in dropped)
    wrong = []
    for run, tags in golden(tree, "series.json").items():
        for tag, theirs in tags.items():
            points = ours.get(run, {}).get(tag, [])
            if (tree, run, tag) in WRITERS:
                good = columns(points)[0] == WRITERS[tree, run, tag]
            else:
                good = same_columns(theirs, points)
                if good and "value" in theirs:
                    good = all(point[2] is None or same_number(value, point[2]) for value, point in zip(theirs["value"], points))
            if not good:
                wrong.append((run, tag, theirs["step"], columns(points)))
    assert not wrong, "%d series; first: %s" % (len(wrong), wrong[0])


def python_series(tree):
    """What the Python loader answers for all runs and tags, of all plugins."""
    probes = golden(tree, "python.json")["probes"]
    for probe in probes:
        request, answer = probe["request"], probe["answer"]
        if request["rpc"] in ("ReadScalars", "ReadTensors", "ReadBlobSequences") and not {"runs", "tags", "raw"} & request.keys():
            for run, tags in answer.get("ok", {}).items():
                for tag, theirs in tags.items():
                    yield request["rpc"], run, tag, theirs


@pytest.mark.parametrize("tree", ["steps", "torch", "tensorboardx", "lightning"])
def test_start_is_the_python_loaders_rule(tree):
    ours = series_of(lines_of(headrace("dump", FIXTURES / tree, "--payload", "none", "--purge", "start")))
    compared = 0
    for rpc, run, tag, theirs in python_series(tree):
        points = ours[run][tag]
        if rpc == "ReadBlobSequences":  # shown sorted, one of each step: the first
            points = list({point[0]: point for point in reversed(points)}.values())
        # Its provider sorts nothing, but the order of arrival is the file's.
        assert same_columns(theirs, sorted(points) if rpc == "ReadBlobSequences" else points), (run, tag)
        compared += 1
    assert compared >= 8


def test_none_is_everything():
    for tree in ("steps", "torch"):
        lines = lines_of(headrace("dump", FIXTURES / tree, "--payload", "none", "--purge", "none"))
        wire = [json.loads(line) for line in (GOLDENS / tree / "records.wire.jsonl").read_text().splitlines()]
        places = {(line["file"], line["offset"], line["index"]) for line in wire if line["kind"] in ("scalar", "tensor", "blobs", "none")
                  and "dropped" not in line}
        assert places <= {(line["file"], line["offset"], line["index"]) for line in lines} and len(places) > 90


# ---- Made logs ---------------------------------------------------------------------------------------------------------------------

def event(step, wall, tags=("t",), value=0.0):
    from tensorboard.compat.proto import event_pb2, summary_pb2

    values = [summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag in tags]
    return event_pb2.Event(wall_time=WALL + wall, step=step, summary=summary_pb2.Summary(value=values))


def version(wall):
    from tensorboard.compat.proto import event_pb2

    return event_pb2.Event(wall_time=WALL + wall, file_version="brain.Event:2")


def start(step, wall):
    from tensorboard.compat.proto import event_pb2

    return event_pb2.Event(wall_time=WALL + wall, step=step,
                           session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))


def write(path, *events):
    from tensorboard.summary.writer.record_writer import RecordWriter

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for one in events:
            writer.write(one.SerializeToString())


def steps_of(done, tag="t"):
    return [line["step"] for line in lines_of(done) if line["tag"] == tag]


def test_a_second_start_withdraws_all_tags(tmp_path):
    write(tmp_path / "a" / (NAME % 1), version(0), start(0, 0), *(event(step, step, ("t", "u")) for step in range(5)))
    write(tmp_path / "a" / (NAME % 2), version(10), start(2, 10), event(2, 11), event(3, 12))
    done = headrace("dump", tmp_path, "--purge", "start")
    assert steps_of(done) == [0, 1, 2, 3] and steps_of(done, "u") == [0, 1]
    assert b"6 points are left out" in done.stderr
    # The data server has no eye for it: only what is written again goes.
    done = headrace("dump", tmp_path)
    assert steps_of(done) == [0, 1, 2, 3] and steps_of(done, "u") == [0, 1, 2, 3, 4]
    assert b"3 points are left out" in done.stderr
    done = headrace("dump", tmp_path, "--purge", "none")
    assert steps_of(done) == [0, 1, 2, 3, 4, 2, 3] and done.stderr == b""


def test_a_start_may_be_the_last_thing_in_a_run(tmp_path):
    """Behind the last record that a filter lets through."""
    write(tmp_path / "a" / (NAME % 1), version(0), start(0, 0), *(event(step, step, ("t", "u")) for step in range(5)))
    write(tmp_path / "a" / (NAME % 2), version(10), start(3, 10))
    write(tmp_path / "b" / (NAME % 1), event(7, 7))
    for arguments in ([], ["--tag", "t"], ["--follow", "--tag", "t"]):
        if "--follow" in arguments:
            with Follower(tmp_path, "--purge", "start", *arguments[1:]) as follower:
                follower.until(lambda points: sorted(point["step"] for point in points) == [0, 1, 2, 7])
                assert [line for line in follower.lines if line["kind"] == "withdrawal"] == \
                    [{"run": "a", "kind": "withdrawal", "reason": "restart", "from_step": 3}]
        else:
            assert steps_of(headrace("dump", tmp_path, "--purge", "start", *arguments)) == [0, 1, 2, 7]


def test_filters_do_not_change_what_stands(tmp_path):
    """The marks, and the records of other tags, count also where they are not shown."""
    write(tmp_path / "a" / (NAME % 1), version(0), start(0, 0), *(event(step, step) for step in range(5)), event(9, 20, ("other",)))
    write(tmp_path / "a" / (NAME % 2), version(10), start(2, 10), event(2, 11))
    for arguments in ([], ["--tag", "t"], ["--plugin", "scal*", "--tag", "t"]):
        assert steps_of(headrace("dump", tmp_path, *arguments)) == [0, 1, 2, 3, 4, 2], arguments  # they ran at one time
        assert steps_of(headrace("dump", tmp_path, "--purge", "start", *arguments)) == [0, 1, 2], arguments
    assert steps_of(headrace("dump", tmp_path, "--tag", "other"), "other") == [9]


def test_csv_leaves_out_as_well(tmp_path):
    write(tmp_path / "a" / (NAME % 1), version(0), *(event(step, step) for step in (0, 1, 2, 1, 2, 3)))
    write(tmp_path / "b" / (NAME % 1), version(0), event(0, 0))
    done = headrace("dump", tmp_path, "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.stdout.decode())))
    assert [(row[0], row[2], row[3]) for row in rows[1:]] == \
        [("a", "0", f"{WALL}"), ("a", "1", f"{WALL + 1}"), ("a", "2", f"{WALL + 2}"), ("a", "3", f"{WALL + 3}"), ("b", "0", f"{WALL}")]
    assert b"2 points are left out" in done.stderr and done.returncode == 0
    write(tmp_path / "c" / (NAME % 1), version(0), *(event(step, step) for step in (0, 1, 1)))
    assert b"1 point is left out" in headrace("dump", tmp_path / "c", "--format", "csv").stderr


def test_files_of_a_run_come_in_the_order_of_their_names(tmp_path):
    names = ["events.out.tfevents.10.host", "events.out.tfevents.9.host", "a.tfevents", "z.tfevents.Z", "B.tfevents"]
    for place, name in enumerate(names):
        write(tmp_path / "run" / name, event(place, 0))
    for _ in range(3):
        lines = lines_of(headrace("dump", tmp_path, "--purge", "none"))
        assert [line["file"] for line in lines] == sorted("run/" + name for name in names)
    with Follower(tmp_path, "--purge", "none") as follower:  # runs as they come, but their files by name
        follower.until(lambda points: len(points) == len(names))
        assert [line["file"] for line in follower.lines] == sorted("run/" + name for name in names)


def test_a_run_that_does_not_fit_into_memory(tmp_path):
    """The lines beyond 64 MiB wait in a file; without a place for it there is an error, and no half truth."""
    tag = "x" * 60000
    write(tmp_path / "a" / (NAME % 1), version(0), *(event(step, step, (tag,)) for step in range(1200)))
    write(tmp_path / "a" / (NAME % 2), version(2000), *(event(step, 2000 + step, (tag,)) for step in range(700, 720)))
    done = headrace("dump", tmp_path)
    assert [line["step"] for line in lines_of(done)] == list(range(720)) and b"500 points" in done.stderr
    assert steps_of(headrace("dump", tmp_path, "--purge", "none"), tag) == [*range(1200), *range(700, 720)]
    environment = dict(os.environ, TMPDIR="/nonexistent/at/all", XDG_RUNTIME_DIR=os.environ["XDG_RUNTIME_DIR"])
    done = subprocess.run([BUILD / "headrace", "dump", tmp_path], capture_output=True, timeout=PATIENCE_S, env=environment)
    assert done.returncode == 1 and b"TMPDIR" in done.stderr and b"No such file" in done.stderr and done.stdout == b""


def test_a_file_that_is_replaced_while_its_run_is_held(tmp_path, serve):  # noqa: F811
    """Nothing of the old version is written, as its lines still waited for the end of the run."""
    root = tmp_path / "logs"
    write(root / "a" / (NAME % 1), version(0), *(event(step, step) for step in range(5)))
    write(root / "a" / (NAME % 2), version(100), event(20, 120))
    server = serve(root)
    server.control({"kind": "read", "path": "*" + NAME % 2, "fault": "status", "status": 503})

    def wait_for_reads(name, count):
        deadline = time.monotonic() + PATIENCE_S
        while sum(row["requests"] for row in server.requests() if row["path"].endswith(name)) < count:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    with subprocess.Popen([BUILD / "headrace", "dump", "--private", server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, HEADRACE_POLL="0.05")) as process:
        wait_for_reads(NAME % 1, 1)
        wait_for_reads(NAME % 2, 2)  # the first file is delivered, and the stream waits for the second one
        write(tmp_path / "new", version(50), *(event(step, 50 + step) for step in range(10, 13)))
        os.replace(tmp_path / "new", root / "a" / (NAME % 1))
        wait_for_reads(NAME % 1, 2)
        server.control({"clear": True})
        output, complaints = process.communicate(timeout=PATIENCE_S)
    steps = [json.loads(line)["step"] for line in output.splitlines()]
    assert sorted(steps) == [10, 11, 12, 20], complaints.decode()
    assert process.returncode == 0, complaints.decode()


def test_words(tmp_path):
    assert headrace("dump", tmp_path, "--purge", "some").returncode == 2
    done = headrace("dump", tmp_path, "--follow", "--format", "csv")
    assert done.returncode == 2 and b"--purge=none" in done.stderr


# ---- Following ---------------------------------------------------------------------------------------------------------------------

class Follower:
    """`headrace dump --follow`, and what a reader of its lines shows."""

    def __init__(self, root, *arguments):
        self.process = subprocess.Popen([BUILD / "headrace", "dump", "--private", "--follow", root, *arguments], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=dict(os.environ, HEADRACE_POLL="0.05"))
        self.lines = []
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(json.loads(line))
                self.news.notify()

    def until(self, is_good):
        deadline = time.monotonic() + PATIENCE_S
        with self.news:
            while not is_good(applied(self.lines)):
                assert self.news.wait(deadline - time.monotonic()), self.lines[-5:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.thread.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()


def shows(*steps):
    return lambda points: [point["step"] for point in points] == list(steps)


def withdrawals(follower):
    return [{key: line[key] for key in line if key != "kind"} for line in follower.lines if line["kind"] == "withdrawal"]


def test_follow_tells_restarts_before_their_records(tmp_path):
    root = tmp_path / "logs"
    write(root / "a" / (NAME % 1), version(0), *(event(step, step) for step in range(5)))
    with Follower(root) as follower:
        follower.until(shows(0, 1, 2, 3, 4))
        write(root / "a" / (NAME % 1), event(3, 10), event(4, 11))  # the same file goes back
        follower.until(shows(0, 1, 2, 3, 4))
        follower.until(lambda points: len(follower.lines) == 8 and shows(0, 1, 2, 3, 4)(points))
        first = {"file": "a/" + NAME % 1, "run": "a", "reason": "restart", "tag": "t", "from_step": 3}
        assert withdrawals(follower) == [first]
        assert follower.lines[5]["kind"] == "withdrawal" and follower.lines[6]["wall_time"] == WALL + 10
        write(root / "a" / (NAME % 2), version(20), event(2, 21))  # the job restarts into the run
        follower.until(shows(0, 1, 2))
        assert withdrawals(follower)[1:] == [dict(first, from_step=2)]
        write(root / "a" / (NAME % 3), version(10), event(0, 22))  # another one had been running beside it
        follower.until(shows(0, 1, 2, 0))


def test_follow_an_older_file_that_grows(tmp_path):
    root = tmp_path / "logs"
    write(root / "a" / (NAME % 1), version(0), event(0, 1))
    write(root / "a" / (NAME % 2), version(10), event(5, 11))
    with Follower(root) as follower:
        follower.until(shows(0, 5))
        write(root / "a" / (NAME % 1), event(1, 20))
        follower.until(shows(0, 5, 1))
        assert withdrawals(follower) == []
    # Nor does it at first load, when its name comes first.
    assert steps_of(headrace("dump", root)) == [0, 1, 5]


def test_follow_tells_what_was_replaced_and_what_is_gone(tmp_path):
    root = tmp_path / "logs"
    first, second = root / "a" / (NAME % 1), root / "b" / (NAME % 2)
    write(first, version(0), *(event(step, step) for step in range(5)))
    write(second, version(0), event(7, 7))
    with Follower(root) as follower:
        follower.until(lambda points: sorted(point["step"] for point in points) == [0, 1, 2, 3, 4, 7])
        write(tmp_path / "new", version(100), *(event(step, 100 + step) for step in range(10, 13)))
        os.replace(tmp_path / "new", first)
        follower.until(lambda points: sorted(point["step"] for point in points) == [7, 10, 11, 12])
        assert {"file": "a/" + NAME % 1, "run": "a", "reason": "replaced"} in withdrawals(follower)
        os.truncate(first, first.stat().st_size - 50)  # cut short, in the last record but one
        follower.until(lambda points: sorted(point["step"] for point in points) == [7, 10])
        shutil.rmtree(root / "b")
        follower.until(lambda points: [point["step"] for point in points] == [10])
        assert {"file": "b/" + NAME % 2, "run": "b", "reason": "gone"} in withdrawals(follower)
        write(first, event(0, 200))  # a torn record is in between
    # Whoever comes now sees the same.
    assert steps_of(headrace("dump", root)) in ([10, 0], [10], [0])


def test_follow_is_what_dump_says(tmp_path):
    """The lines of --follow, taken one after the other, leave what a dump writes, whatever the rule."""
    for purge in ("none", "start", "order"):
        dumped = lines_of(headrace("dump", FIXTURES / "steps", "--purge", purge))

        def key(line):
            return line["run"], line["file"], line["offset"], line["index"]

        with Follower(FIXTURES / "steps", "--purge", purge) as follower:
            follower.until(lambda points: sorted(map(key, points)) == [key(line) for line in dumped])
            assert (purge == "none") == (not withdrawals(follower))


def test_two_jobs_in_one_file(tmp_path):
    """Records of two writers in one file, a job that died in the middle of one, and one that begins over it: all that is intact comes."""
    path = tmp_path / "a" / (NAME % 1)
    write(path, version(0), version(1))
    for step in range(50):
        write(path, event(step, 2 + step, ("first",)), event(step, 2 + step, ("second",)))
    done = headrace("dump", tmp_path)
    assert steps_of(done, "first") == steps_of(done, "second") == list(range(50)) and done.returncode == 0
    # The same tag from both: steps that come twice, the latest stays; nothing else goes.
    for step in range(50):
        write(path, event(step, 100 + step, ("both",), 1.0), event(step, 100 + step, ("both",), 2.0))
    done = headrace("dump", tmp_path)
    assert steps_of(done, "both") == list(range(50))
    assert {line["value"] for line in lines_of(done) if line["tag"] == "both"} == {2.0}
    assert len(steps_of(headrace("dump", tmp_path, "--purge", "none"), "both")) == 100


def test_a_job_restarts_into_the_same_name(tmp_path):
    """It died in the middle of a record, and its successor appends to the file: only the torn record is lost."""
    path = tmp_path / "a" / (NAME % 1)
    write(path, version(0), *(event(step, step) for step in range(10)))
    os.truncate(path, path.stat().st_size - 7)
    write(path, version(20), *(event(step, 20 + step) for step in range(9, 15)))
    done = headrace("dump", tmp_path)
    assert steps_of(done) == list(range(15)) and done.returncode == 1


def test_a_job_that_writes_over_anothers_file(tmp_path):
    """
    The name was taken: the second job truncates the file and begins anew, while the first one goes on where it was. Between them is a
    hole; where the second one writes over the first one's records, one of them is torn.
    """
    path = tmp_path / "a" / (NAME % 1)
    write(path, version(0), *(event(step, step, ("first",)) for step in range(20)))
    with open(path, "r+b") as first:
        begin = first.seek(0, os.SEEK_END)
        os.truncate(path, 0)
        write(path, version(100), *(event(step, 100 + step, ("second",)) for step in range(5)))
        write(tmp_path / "more", *(event(step, step, ("first",)) for step in range(20, 40)))
        first.write((tmp_path / "more").read_bytes())
        size = (first.tell() - begin) // 20
    done = headrace("dump", tmp_path)
    assert steps_of(done, "second") == list(range(5)) and steps_of(done, "first") == list(range(20, 40))
    # The second one fills the hole, and more: it ends in the middle of a record of the first one.
    write(tmp_path / "filler", *(event(step, 105 + step, ("second",)) for step in range(5, 30)))
    hole = path.read_bytes().index(bytes(200))
    end = hole + (tmp_path / "filler").stat().st_size
    assert begin < end < begin + 20 * size and (end - begin) % size
    with open(path, "r+b") as second:
        second.seek(hole)
        second.write((tmp_path / "filler").read_bytes())
    done = headrace("dump", tmp_path)
    assert steps_of(done, "second") == list(range(30)) and done.returncode == 1
    assert steps_of(done, "first") == [20 + place for place in range(20) if begin + place * size >= end]
