# SPDX-License-Identifier: Apache-2.0
"""`headrace verify` names every damaged place, however many, and whoever loaded the file."""
import json
import os
import pathlib
import struct
import subprocess

import pytest
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from tests.integration.hrclient import Client
from tests.integration.test_cli import PATIENCE_S, Running, headrace, on_terminal, own_places  # noqa: F401 (a fixture)
from tests.integration.test_protocol import write_tree
from tests.integration.test_storage import serve  # noqa: F401 (a fixture)

TOP = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = TOP / "tests/data/fixtures"
GOLDENS = TOP / "tests/data/goldens"

pytestmark = [pytest.mark.sanitize, pytest.mark.usefixtures("own_places")]

# Cases in which the bytes tell more than that a length is wrong.
SPECIAL = {"zeros_between": "zeros", "zeros_between_page": "zeros", "gzip_named_plain": "not an event file (gzip)",
           "zlib_stream": "not an event file (zlib)"}


def record(payload):
    header = struct.pack("<Q", len(payload))
    return (header + struct.pack("<I", masked_crc32c(header)) + payload + struct.pack("<I", masked_crc32c(payload)))


def scalar(step, fill=0):
    """An Event with a simple_value of tag `t`, and a description of so many bytes."""
    metadata = b"\x1a" + varint(fill) + b"d" * fill if fill else b""
    value = b"\x0a\x01t\x15\x00\x00\x80\x3f" + (b"\x4a" + varint(len(metadata)) + metadata if fill else b"")
    summary = b"\x0a" + varint(len(value)) + value
    return b"\x09\x00\x00\x40\x0e\x8c\xd9\xd8\x41\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def write_damaged(path, count, fill):
    """A file with so many records, of which every second one has a wrong payload; the places of those."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data, places = bytearray(), []
    for step in range(count):
        one = bytearray(record(scalar(step, fill)))
        if step % 2:
            one[-5] ^= 1
            places.append((len(data), len(one), "data CRC"))
        data += one
    path.write_bytes(data)
    return places


def verify(url, *arguments):
    done = headrace("verify", "--json", url, *arguments)
    assert done.stderr == b"", done.stderr
    return done.returncode, json.loads(done.stdout)


def places_of(report, file):
    return [(row["offset"], row["bytes"], row["reason"]) for row in report["places"]
            if row["state"] == "damaged" and row["file"] == file]


def golden_reason(line):
    if line["kind"] == "undecodable":
        return "not an event"
    return {"data_crc": "data CRC", "length_crc": SPECIAL.get(line["run"], "length CRC")}.get(line.get("state"))


@pytest.mark.parametrize("tree", sorted(path.parent.name for path in GOLDENS.glob("*/records.raw.jsonl")))
def test_every_damaged_place_is_that_of_the_goldens(tree):
    with open(GOLDENS / tree / "records.raw.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    code, report = verify(FIXTURES / tree)
    damaged = {(line["file"], line["offset"], line["size"], golden_reason(line)) for line in lines if golden_reason(line)}
    unfinished = {(line["file"], line["offset"], line["size"]) for line in lines
                  if line["kind"] == "damaged" and not golden_reason(line)}
    assert {(row["file"], row["offset"], row["bytes"], row["reason"])
            for row in report["places"] if row["state"] == "damaged"} == damaged
    assert {(row["file"], row["offset"], row["bytes"]) for row in report["places"] if row["state"] == "unfinished"} == unfinished
    assert code == (1 if damaged else 0)
    assert report["damaged"] == len(damaged) == sum(report["reasons"].values())
    assert report["damaged_bytes"] == sum(size for _, _, size, _ in damaged)
    assert report["damaged_files"] == len({file for file, *_ in damaged})
    assert report["unfinished"] == len(unfinished) and report["unreadable"] == 0


# Some parts of a file, and blocks that hold more places than an answer has.
@pytest.mark.parametrize("count, fill", [(40, 0), (9000, 0), (5000, 2000)])
def test_thousands_of_places_are_named(tmp_path, count, fill):
    places = write_damaged(tmp_path / "logs/run/events.out.tfevents.1.x", count, fill)
    code, report = verify(tmp_path / "logs")
    assert code == 1 and places_of(report, "run/events.out.tfevents.1.x") == places
    assert report["damaged"] == len(places) and report["reasons"] == {"data CRC": len(places)}
    assert report["records"] == count - len(places)


def test_a_daemon_that_has_read_them_before_names_them_too(tmp_path):
    """Its ring is smaller than what it has read: blocks are gone from it, and joined."""
    root = tmp_path / "logs"
    places = {name: write_damaged(root / name / "events.out.tfevents.1.x", 4000, fill)
              for name, fill in (("a", 3000), ("b", 0), ("c", 700))}
    with Running(tmp_path, "--ring", "16M", root) as daemon:
        assert headrace("dump", "--socket", daemon.path, root).returncode == 1
        code, report = verify(root, "--socket", daemon.path)
        assert code == 1
        for name, expected in places.items():
            assert places_of(report, f"{name}/events.out.tfevents.1.x") == expected
        code, below = verify(root / "b", "--socket", daemon.path)
        assert code == 1 and places_of(below, "events.out.tfevents.1.x") == places["b"]
        assert below["files"] == 1 and {row["run"] for row in below["places"]} == {"."}


def test_a_daemon_that_does_not_look_cannot_tell(tmp_path):
    write_damaged(tmp_path / "logs" / "a" / "events.out.tfevents.1.x", 4, 0)
    with Running(tmp_path, "--set", "checksum=length-only", tmp_path / "logs") as daemon:
        result = headrace("verify", "--socket", daemon.path, tmp_path / "logs")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"checksum is length-only" in result.stderr and b"set checksum to always" in result.stderr


def test_pages_of_damage(tmp_path):
    """The method itself: any limit, any place to go on from."""
    places = write_damaged(tmp_path / "logs/events.out.tfevents.1.x", 300, 50)
    with Running(tmp_path, tmp_path / "logs") as daemon, Client(str(daemon.path)) as client:
        client.call("wait_loaded")
        file = client.call("files")["files"][0]
        named = {"file": file["id"], "file_version": file["version"]}
        assert file["damaged"] == len(places) and len(file["damage"]) == 16
        for limit in (1, 7, 149, 150, 1000):
            found, place = [], {}
            while place is not None:
                page = client.call("damage", limit=limit, **named, **place)
                assert len(page["damage"]) <= limit
                found += [(row["offset"], row["bytes"], row["reason"]) for row in page["damage"]]
                place = page.get("next")
            assert found == places
        rest = client.call("damage", offset=places[100][0], **named)["damage"]
        assert [row["offset"] for row in rest] == [offset for offset, _, _ in places[100:]]


def test_junk_at_the_end_is_one_place(tmp_path):
    """More than fits a part: told once, up to the end; zeros are told as not written yet."""
    (tmp_path / "logs/junk").mkdir(parents=True)
    (tmp_path / "logs/zeros").mkdir(parents=True)
    begin = record(scalar(0))
    (tmp_path / "logs/junk/events.out.tfevents.1.x").write_bytes(begin + b"xy" * 5_000_000)
    (tmp_path / "logs/zeros/events.out.tfevents.1.x").write_bytes(begin + bytes(10_000_000))
    code, report = verify(tmp_path / "logs")
    assert code == 1 and report["damaged"] == 1 and report["unfinished"] == 1
    assert report["places"] == [
        {"state": "damaged", "file": "junk/events.out.tfevents.1.x", "run": "junk", "offset": len(begin), "bytes": 10_000_000,
         "reason": "length CRC"},
        {"state": "unfinished", "file": "zeros/events.out.tfevents.1.x", "run": "zeros", "offset": len(begin),
         "bytes": 10_000_000}]


def test_compressed_file_is_named_once(tmp_path):
    import gzip
    (tmp_path / "logs").mkdir()
    inside = b"".join(record(scalar(step)) for step in range(2000)) + os.urandom(6_000_000)
    path = tmp_path / "logs/events.out.tfevents.1.x"
    path.write_bytes(gzip.compress(inside))
    done = headrace("verify", tmp_path / "logs")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1 and len(lines) == 2
    assert lines[0] == f"events.out.tfevents.1.x: not an event file (gzip), {path.stat().st_size} bytes skipped"
    assert "1 not an event file (gzip)" in lines[1]


def test_names_that_need_a_larger_ring(tmp_path):
    """The place says which size would do, and it does."""
    tag = b"t" * 40_000
    value = b"\x0a" + varint(len(tag)) + tag + b"\x15\x00\x00\x80\x3f"
    summary = b"\x0a" + varint(len(value)) + value
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/events.out.tfevents.1.x").write_bytes(
        record(scalar(0)) + record(b"\x10\x01\x2a" + varint(len(summary)) + summary) + record(scalar(2)))
    with Running(tmp_path, "--ring", "4M", tmp_path / "logs") as daemon:
        done = headrace("verify", "--socket", daemon.path, tmp_path / "logs")
        line = done.stdout.decode().splitlines()[0]
        assert done.returncode == 1 and "too large at offset " in line and line.endswith(": its names need a ring of 8M")
        _, report = verify(tmp_path / "logs", "--socket", daemon.path)
        assert report["records"] == 2 and [row["ring_bytes"] for row in report["places"]] == [8 << 20]
    with Running(tmp_path, "--ring", "8M", tmp_path / "logs") as daemon:
        code, report = verify(tmp_path / "logs", "--socket", daemon.path)
        assert code == 0 and report["records"] == 3


def test_one_byte(tmp_path):
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(record(scalar(1)) + b"\0")
    assert headrace("verify", tmp_path).stdout.decode().splitlines()[0].endswith(" on, 1 byte")
    path.write_bytes(record(scalar(1)) + b"x" + record(scalar(2)))
    assert headrace("verify", tmp_path).stdout.decode().splitlines()[0].endswith(", 1 byte skipped")


def test_what_people_see(tmp_path):
    root = write_tree(tmp_path / "logs", runs=2, steps=10)
    done = headrace("verify", root)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.decode().startswith("2 files, ") and done.stdout.decode().endswith(" records: intact\n")
    path = sorted(root.rglob("*tfevents*"))[1]
    data = bytearray(path.read_bytes())
    offset = len(data)
    data += record(scalar(5))
    data[-6] ^= 1
    path.write_bytes(data + record(scalar(6))[:20])
    done = headrace("verify", root)
    name = path.relative_to(root)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1 and done.stderr == b""
    assert lines[0] == f"{name}: data CRC at offset {offset}, {len(record(scalar(5)))} bytes skipped"
    assert lines[1] == f"{name}: not written yet from offset {len(data)} on, 20 bytes"
    assert lines[2].endswith(": 1 damaged place in 1 file (1 data CRC), 39 B skipped; 1 not written to its end")
    assert len(lines) == 3


def test_more_than_are_kept_are_pointed_to(tmp_path):
    write_damaged(tmp_path / "logs/events.out.tfevents.1.x", 100, 0)
    done = headrace("dump", tmp_path / "logs")
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 1 and len(lines) == 17
    assert lines[16].endswith(": 50 damaged places in all; headrace verify names them")


def test_status_counts_by_reason(tmp_path):
    write_damaged(tmp_path / "logs/a/events.out.tfevents.1.x", 100, 0)
    (tmp_path / "logs/b").mkdir()
    (tmp_path / "logs/b/events.out.tfevents.1.x").write_bytes(record(scalar(0)) + bytes(100) + record(scalar(1)))
    with Running(tmp_path, tmp_path / "logs") as daemon:
        assert headrace("ls", "--socket", daemon.path, tmp_path / "logs").returncode == 1
        done = headrace("status", "--socket", daemon.path)
        assert done.returncode == 1 and "damaged 51 (50 data CRC, 1 zeros)" in done.stdout.decode()
        source = json.loads(headrace("status", "--json", "--socket", daemon.path).stdout)["sources"][0]
        assert source["damaged"] == 51 and source["reasons"] == {"data CRC": 50, "zeros": 1}


def test_sources_that_cannot_be_read(tmp_path):
    done = headrace("verify", tmp_path / "nowhere")
    assert done.returncode == 3 and done.stdout == b"" and b"ENOENT" in done.stderr
    assert headrace("verify").returncode == 2
    assert headrace("verify", "--nonsense", tmp_path).returncode == 2
    (tmp_path / "logs").mkdir()
    done = headrace("verify", tmp_path / "logs")
    assert done.returncode == 0 and done.stdout == b"0 files, 0 B, 0 records: intact\n"


def test_file_that_cannot_be_read_is_named(tmp_path, serve):
    server = serve(write_tree(tmp_path / "logs", runs=2, steps=3))
    server.control({"kind": "read", "path": "/run1/*", "fault": "status", "status": 404})
    code, report = verify(server.url)
    rows = [row for row in report["places"] if row["state"] == "unreadable"]
    assert code == 1 and report["unreadable"] == 1 and report["damaged"] == 0
    assert [(row["run"], row["code"]) for row in rows] == [("run1", "404")]
    done = headrace("verify", server.url)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1 and "run1/" in lines[0] and "cannot be read: 404" in lines[0]
    assert lines[1].endswith(": no damage found; 1 unreadable")


def test_full_disk_is_an_error(tmp_path):
    root = write_tree(tmp_path / "logs", runs=2, steps=20)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TOP / os.environ.get("HEADRACE_BUILD", "build") / "headrace", "verify", root], stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 1 and b"No space left" in done.stderr


def test_progress_on_a_terminal(tmp_path, serve):
    """Files come one after the other, so that there is something to tell between them."""
    server = serve(write_tree(tmp_path / "logs", runs=3, steps=20))
    for run, ms in ((1, 1000), (2, 2000)):
        server.control({"kind": "read", "path": f"/run{run}/*", "fault": "delay", "ms": ms})
    output = on_terminal(["verify", server.url])
    assert b"  [" in output and b"/3 files" in output and output.endswith(b"\r\x1b[K")
