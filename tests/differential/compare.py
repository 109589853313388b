#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes the same random Events with ours (tests/differential/decode.c) and with TensorBoard's own protobuf classes.

    compare.py events|files [--count N | --seconds N] [--seed N]

Every field of what is read must be the same, or both must refuse (oracle.EXCEPTIONS has what is left out). The first difference is
printed with its bytes and ends the program with 1. A seed gives the same items each time.
"""
import argparse
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP))

from tests.differential import frames, generate, oracle  # noqa: E402

BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
BATCH = 2000


class Difference(Exception):
    def __init__(self, item, ours, theirs, what):
        super().__init__("%s\nitem %s\nours   %s\ntheirs %s" % (what, item.hex(), ours, theirs))


def decode(mode, items):
    """Our reading of all items, one JSON value each."""
    with tempfile.TemporaryFile() as file:
        for item in items:
            file.write(struct.pack("<I", len(item)) + item)
        file.seek(0)
        done = subprocess.run([BUILD / "tests/differential/decode", mode], stdin=file, stdout=subprocess.PIPE, timeout=300)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(items):
        raise Difference(items[min(len(lines), len(items) - 1)], "exit code %d" % done.returncode, "", "the decoder ended")
    return [json.loads(line) for line in lines]


# ---- Events ----

def same_number(ours, theirs):
    value = struct.unpack("<d", bytes.fromhex(ours))[0]
    return value == theirs or (math.isnan(value) and math.isnan(theirs))


def tensor_problem(ours, theirs):
    for member in ("dtype", "shape", "rank_unknown", "malformed", "elements"):
        if member in theirs and ours[member] != theirs[member]:
            return member
    if "number" in theirs and not same_number(ours["number"], theirs["number"]):
        return "number"
    if "sha256" in theirs and ours.get("sha256") != theirs["sha256"]:
        return "elements"
    return None


def value_problem(ours, theirs):
    for member in ("tag", "written", "metadata", "bits", "data"):
        if ours.get(member) != theirs.get(member):
            return member
    if "tensor" in theirs:
        return tensor_problem(ours["tensor"], theirs["tensor"])
    if "message" in theirs:  # one message after the other is their merger
        message = theirs["message"]
        if type(message).FromString(bytes.fromhex("".join(ours["parts"]))) != message:
            return "the message's fields"
        if theirs["modern"] and ours["modern"] != theirs["modern"]:
            return "the modern form"
        if not theirs["modern"] and ours["modern"]["flags"] != oracle.CARRIED:
            return "a modern form that there is not"
    return None


def event_problem(ours, theirs):
    if ours["accepted"] != (theirs is not None):
        return "accepted"
    if theirs is None:
        return None
    for member in ("step", "wall_time", "what", "status"):
        if ours[member] != theirs[member]:
            return member
    if len(ours["values"]) != len(theirs["values"]):
        return "the number of values"
    problems = (value_problem(a, b) for a, b in zip(ours["values"], theirs["values"]))
    return next((problem for problem in problems if problem), None)


def check_stock(payload, ours):
    """The classes that TensorBoard uses refuse what we accept only for text that is not UTF-8."""
    if oracle.stock_accepts(payload):
        if not ours["accepted"]:
            raise Difference(payload, ours, "accepted", "TensorBoard's classes take it")
    elif ours["accepted"]:
        message = oracle.LenientEvent.FromString(payload)
        if not oracle.strings_are_text(message, oracle.event_pb2.Event.DESCRIPTOR):
            return
        if payload.isascii():
            raise Difference(payload, ours, "refused", "TensorBoard's classes refuse it, and not for its text")


def compare_events(rng):
    """One batch; how many Events were accepted by both."""
    writer = generate.Writer(rng)
    payloads = [writer.payload() for _ in range(BATCH)]
    accepted = 0
    for payload, ours in zip(payloads, decode("events", payloads)):
        theirs = oracle.event_told(payload)
        problem = event_problem(ours, theirs)
        if problem:
            raise Difference(payload, ours, theirs, problem)
        check_stock(payload, ours)
        accepted += theirs is not None
    return accepted


# ---- Files ----

def records_of(data):
    """The records of a file, by TensorBoard's classes behind a scanner that is not ours, and where it would go on."""
    records = []
    scanner = frames.Scanner(data)
    for offset, payload in scanner:
        told = oracle.event_told(payload)
        if told is None:
            continue
        size = len(payload) + frames.OVERHEAD
        if told["what"] == "file_version" or (told["what"] == "session_log" and told["status"] in (1, 2, 3)):
            records.append([offset, size, 0, True, "", told["step"], told["wall_time"]])
        for index, value in enumerate(told["values"]):
            records.append([offset, size, index, False, value["tag"], told["step"], told["wall_time"]])
    return {"records": records, "rest": scanner.rest}


def compare_files(rng):
    writer = generate.Writer(rng)
    files = [frames.random_file(rng, writer) for _ in range(BATCH // 10)]
    count = 0
    for data, ours in zip(files, decode("files", files)):
        theirs = records_of(data)
        if ours != theirs:
            raise Difference(data, ours, theirs, "records")
        count += len(theirs["records"])
    return count


MODES = {"events": (compare_events, BATCH), "files": (compare_files, BATCH // 10)}


def run(mode, count=None, seconds=None, seed=1):
    """(items compared, Events accepted or records found). Raises Difference."""
    compare, batch = MODES[mode]
    rng = random.Random(seed)
    until = time.monotonic() + (seconds or 0)
    items = found = 0
    while items < (count or 0) or time.monotonic() < until:
        found += compare(rng)
        items += batch
    return items, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        items, found = run(arguments.mode, arguments.count, arguments.seconds, arguments.seed)
    except Difference as difference:
        print(difference)
        return 1
    print("%d %s, %d %s" % (items, arguments.mode, found, "accepted by both" if arguments.mode == "events" else "records in them"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
