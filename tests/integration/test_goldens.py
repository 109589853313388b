# SPDX-License-Identifier: Apache-2.0
"""`headrace dump` against the goldens: every value must come out, bit for bit, as what TensorBoard's rules make of it; where its
data server would drop the value, as what it was written as, with the improvements that docs/TENSORBOARD.md lists."""
import hashlib
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest
from tensorboard.compat.proto import types_pb2

from tests.rig.nginx import Nginx

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEADRACE_BUILD", TOP / "build"))
FIXTURES = TOP / "tests/data/fixtures"
GOLDENS = TOP / "tests/data/goldens"
TREES = sorted(path.parent.name for path in GOLDENS.glob("*/records.wire.jsonl"))

CLASSES = {None: "unknown", "SCALAR": "scalar", "TENSOR": "tensor", "BLOB_SEQUENCE": "blobs"}


def dump(url, *arguments, check=(0, 1)):
    done = subprocess.run([BUILD / "headrace", "dump", "--purge", "none", str(url), *arguments], capture_output=True, timeout=120)
    assert done.returncode in check, done.stderr.decode()
    return done


def lines_of(output):
    return [json.loads(line) for line in output.splitlines()]


def place(line):
    return line["file"], line["offset"], line["index"]


def load(name, tree):
    with open(GOLDENS / tree / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def same_text(golden, ours):
    """Goldens show strings over 4096 bytes as their size and hash; so do we, but for names."""
    if isinstance(golden, dict) and isinstance(ours, str):
        data = ours.encode()
        return golden == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return golden == ours


def number(value):
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


def same_number(a, b):
    a, b = number(a), number(b)
    return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))


def quiet(bits):
    """What Python makes of a float32's bits: a signaling NaN becomes a quiet one. We tell the bits that are in the file."""
    value = int(bits, 16)
    return "%08x" % (value | 0x00400000) if len(bits) == 8 and value & 0x7f800000 == 0x7f800000 and value & 0x7fffff else bits


def dtype_name(golden):
    """The goldens have numbers for types that they do not read; a number over 255 is no type of ours."""
    if golden is None or not golden[3:].lstrip("-").isdigit():
        return golden
    dtype = int(golden[3:])
    if dtype in types_pb2.DataType.values() and dtype:
        return types_pb2.DataType.Name(dtype)
    return f"DT_{dtype}" if 0 <= dtype < 256 else "DT_0"


def is_carried(line):
    """Types that the goldens call malformed, and that we carry untouched: tests/unit/daemon/decode/test_event.c."""
    return dtype_name(line.get("dtype")) != line.get("dtype") and dtype_name(line["dtype"])[3:4].isalpha()


def place_problems(golden, ours):
    wrong = []
    if not same_number(golden["wall_time"], ours["wall_time"]):
        wrong.append("wall_time")
    if golden["step"] != ours["step"]:
        wrong.append("step")
    if not same_text(golden["tag"], ours["tag"]):
        wrong.append("tag")
    return wrong


def data_problems(golden, ours):
    wrong = []
    if golden["kind"] != ours["kind"]:
        wrong.append("kind")
    if dtype_name(golden.get("dtype")) != ours.get("dtype"):
        wrong.append("dtype")
    for member in ("shape", "blobs", "unknown_rank") + (() if is_carried(golden) else ("sha256", "malformed")):
        if golden.get(member) != ours.get(member):
            wrong.append(member)
    if "value" in golden and not same_number(golden["value"], ours.get("value", math.nan)):
        wrong.append("value")
    if "bits" in ours and "bits" in golden and golden["bits"] != quiet(ours["bits"]):
        wrong.append("bits")
    if golden.get("value") in ("NaN",) and "bits" not in ours:
        wrong.append("no bits")
    return wrong


def series_problems(golden, first, ours):
    """Of legacy values the data server drops what people wrote of the series; it is kept here, from its first value."""
    wrong = []
    for member in ("plugin", "content"):
        if not same_text(golden.get(member, ""), ours.get(member, "")):
            wrong.append(member)
    if CLASSES[golden.get("data_class")] != ours["class"]:
        wrong.append("class")
    for member in ("display_name", "description"):
        if not same_text(first.get(member, ""), ours.get(member, "")):
            wrong.append(member)
        if member in golden and golden[member] != first.get(member):
            wrong.append("what this test takes for the first value")
    return wrong


def sha256_of(data):
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def histogram_rows(raw):
    limits, low, high = [number(x) for x in raw["bucket_limit"]], number(raw["min"]), number(raw["max"])
    if len(limits) != len(raw["bucket"]):
        return None
    rows = zip([low, *limits[:-1]], [*limits[:-1], high], (number(x) for x in raw["bucket"]))
    return b"".join(struct.pack("<ddd", *row) for row in rows)


def is_one_number(raw):
    """A tensor that a scalar series can show: I3 of docs/TENSORBOARD.md."""
    return "value" in raw or (raw.get("dtype") in ("DT_HALF", "DT_BFLOAT16") and raw.get("elements") == 1)


def written(raw, ours):
    """What a value that the data server drops must come out as."""
    blob = {"bytes": raw.get("bytes"), "sha256": raw.get("sha256")}
    if raw["kind"] == "simple_value":
        return dict(raw, kind="scalar")
    if raw["kind"] == "none":
        return {"kind": "tensor", "dtype": "DT_FLOAT", "shape": [0], "sha256": sha256_of(b"")["sha256"]}
    if raw["kind"] == "image":
        return {"kind": "blobs", "blobs": [sha256_of(b"%d" % raw["width"]), sha256_of(b"%d" % raw["height"]), blob]}
    if raw["kind"] == "histo":
        rows = histogram_rows(raw)
        assert rows is not None
        return {"kind": "tensor", "dtype": "DT_DOUBLE", "shape": [len(raw["bucket"]), 3], "sha256": sha256_of(rows)["sha256"]}
    if raw["kind"] == "tensor":
        if ours["class"] == "scalar" and is_one_number(raw):
            return {"kind": "scalar", **{member: raw[member] for member in ("value", "bits") if member in raw}}
        return raw
    assert raw["kind"] in ("audio", "old_histogram", "graph_def", "tagged_run_metadata"), raw
    return {"kind": "blobs", "blobs": [blob]}


@pytest.fixture(scope="module")
def nginx():
    with Nginx(FIXTURES) as running:
        yield running


def is_hidden(line):
    """nginx lists no name that begins with a dot."""
    return any(part.startswith(".") for part in line["file"].split("/"))


@pytest.mark.parametrize("store, transport", [("file", "map"), ("file", "inline"), ("http", "map"), ("http", "inline")])
@pytest.mark.parametrize("tree", TREES)
def test_every_record_is_told(tree, store, transport, nginx):
    url = FIXTURES / tree if store == "file" else f"{nginx.url}/{tree}/"
    ours = {place(line): line for line in lines_of(dump(url, "--payload", "sha256", "--transport", transport).stdout)}
    raws = {place(line): line for line in load("records.raw.jsonl", tree)}
    wire = [line for line in load("records.wire.jsonl", tree) if "tag" in line]
    if store == "http":
        wire = [line for line in wire if not is_hidden(line)]
    first, wrong = {}, []
    for golden in wire:
        raw = raws[place(golden)]
        line = ours.get(place(golden))
        start = first.setdefault((golden["run"], str(golden["tag"])), raw)
        if line is None:
            bad = ["missing"]
        elif "dropped" in golden:
            bad = place_problems(golden, line) + data_problems(written(raw, line), line)
        else:
            bad = place_problems(golden, line) + data_problems(golden, line) + series_problems(golden, start, line)
        if bad:
            wrong.append((bad, golden, line))
    assert not wrong, "%d of %d; first: %s" % (len(wrong), len(wire), wrong[0])
    assert set(ours) == {place(line) for line in wire}, "a line that no value stands behind"


@pytest.mark.parametrize("tree", TREES)
def test_series_are_as_the_data_server_has_them(tree):
    """Class and plugin of every series, wherever its first value says a class (where only a later one does: see below)."""
    ours = {(line["run"], line["tag"]): line for line in lines_of(dump(FIXTURES / tree, "--payload", "none").stdout)}
    golden = json.loads((GOLDENS / tree / "series.json").read_text(encoding="utf-8"))
    wrong = []
    for run, tags in golden.items():
        for tag, series in tags.items():
            if tag.startswith("sha256:"):
                continue  # a tag of 9000 bytes
            line = ours[run, tag]
            if (series.get("plugin", ""), CLASSES[series["data_class"]]) != (line["plugin"], line["class"]):
                wrong.append((run, tag, series["plugin"], series["data_class"], line["plugin"], line["class"]))
    assert not wrong


@pytest.mark.parametrize("tree", TREES)
def test_damage_is_told(tree):
    """Damage inside of a file ends with 1 and is named; damage that is only an unfinished end does not."""
    damaged = [line for line in load("records.raw.jsonl", tree)
               if line["kind"] == "undecodable" or line.get("state") in ("data_crc", "length_crc")]
    done = dump(FIXTURES / tree, "--payload", "none")
    if not damaged:
        assert done.returncode == 0, done.stderr.decode()
    elif any(line.get("state") == "data_crc" or line["kind"] == "undecodable" for line in damaged):
        assert done.returncode == 1


def test_order_is_by_run_file_and_place():
    lines = lines_of(dump(FIXTURES / "torch", "--payload", "none").stdout)
    keys = [(line["run"].encode(), line["file"].encode(), line["offset"], line["index"]) for line in lines]
    assert keys == sorted(keys) and len(keys) > 100
