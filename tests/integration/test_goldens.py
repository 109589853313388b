# SPDX-License-Identifier: Apache-2.0
"""`headrace dump` against the goldens: every line that TensorBoard's rules would show must come out, bit for bit."""
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest

from tests.rig.nginx import Nginx

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEADRACE_BUILD", TOP / "build"))
FIXTURES = TOP / "tests/data/fixtures"
GOLDENS = TOP / "tests/data/goldens"
TREES = sorted(path.parent.name for path in GOLDENS.glob("*/records.wire.jsonl"))

# Legacy values of the goldens' conversions are carried unconverted so far: what they were written as decides.
CONVERTED = ("image", "histo", "audio", "old_histogram")


def dump(url, *arguments, check=(0, 1)):
    done = subprocess.run([BUILD / "headrace", "dump", str(url), *arguments], capture_output=True, timeout=120)
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
    """Goldens show strings over 4096 bytes as their size and hash."""
    return True if isinstance(golden, dict) else golden == ours


def number(value):
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


def same_number(a, b):
    a, b = number(a), number(b)
    return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))


def quiet(bits):
    """What Python makes of a float32's bits: a signaling NaN becomes a quiet one. We tell the bits that are in the file."""
    value = int(bits, 16)
    return "%08x" % (value | 0x00400000) if len(bits) == 8 and value & 0x7f800000 == 0x7f800000 and value & 0x7fffff else bits


def problems_of(golden, ours):
    wrong = []
    if not same_number(golden["wall_time"], ours["wall_time"]):
        wrong.append("wall_time")
    if golden["step"] != ours["step"]:
        wrong.append("step")
    if not same_text(golden["tag"], ours["tag"]):
        wrong.append("tag")
    if golden["kind"] != ours["kind"]:
        wrong.append("kind")
    if golden.get("plugin", "") != ours.get("plugin", ""):
        wrong.append("plugin")
    for member in ("dtype", "shape", "sha256", "blobs", "malformed"):
        if golden.get(member) != ours.get(member):
            wrong.append(member)
    if "value" in golden and not same_number(golden["value"], ours.get("value", math.nan)):
        wrong.append("value")
    if "bits" in ours and golden.get("bits") != quiet(ours["bits"]):
        wrong.append("bits")
    if golden.get("value") in ("NaN",) and "bits" not in ours:
        wrong.append("no bits")
    return wrong


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
    written = {place(line): line["kind"] for line in load("records.raw.jsonl", tree)}
    wire = [line for line in load("records.wire.jsonl", tree) if line["kind"] not in ("damaged", "undecodable")]
    if store == "http":
        wire = [line for line in wire if not is_hidden(line)]
    wrong = []
    for golden in wire:
        if "dropped" in golden or written[place(golden)] in CONVERTED:
            continue
        line = ours.get(place(golden))
        bad = ["missing"] if line is None else problems_of(golden, line)
        if bad:
            wrong.append((bad, golden, line))
    assert not wrong, "%d of %d; first: %s" % (len(wrong), len(wire), wrong[0])
    assert set(ours) <= {place(line) for line in wire}, "a line that no value stands behind"


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
