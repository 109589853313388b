# SPDX-License-Identifier: Apache-2.0
"""Storage that never rests, a ring much smaller than it, and clients of all kinds: in the end everybody has what is there, no more.

HEADRACE_SOAK_SECONDS (4) and HEADRACE_SOAK_SEED (1) choose how long and which chance; a failure names its seed. `make soak`
takes another seed each time.
"""
import os
import random
import socket
import struct
import threading
import time

import pytest

from tests.integration import hrclient
from tests.integration.hrclient import Client
from tests.integration.test_protocol import expected_rows, start, write_events  # noqa: F401
from tests.integration.test_storage import Follower, serve  # noqa: F401

SECONDS = float(os.environ.get("HEADRACE_SOAK_SECONDS", "4"))
SEED = int(os.environ.get("HEADRACE_SOAK_SEED", "1"))
TAGS = ["tag%d" % n for n in range(20)]
FILES = 16

pytestmark = pytest.mark.sanitize


class Storage:
    """Files that are appended to, in pieces, renamed over, written anew, removed."""

    def __init__(self, root, scratch, chance):
        self.root, self.scratch, self.chance = root, scratch, chance
        self.steps = {}
        for number in range(FILES):
            self.write(number)

    def path(self, number):
        return self.root / ("run%d" % (number % 5)) / ("events.out.tfevents.%d.host" % number)

    def write(self, number):
        """A new version: renamed into place, or over what was there."""
        self.scratch.unlink(missing_ok=True)
        self.steps[number] = self.chance.randrange(20, 800)
        # Another first record than any version before: that is what tells versions apart.
        write_events(self.scratch, [*TAGS, "v%d" % self.chance.randrange(1 << 40)], self.steps[number])
        self.path(number).parent.mkdir(parents=True, exist_ok=True)
        data = bytearray(self.scratch.read_bytes())
        self.scratch.write_bytes(data)
        os.utime(self.scratch, ns=(self.chance.randrange(1 << 60), self.chance.randrange(1 << 60)))
        self.scratch.rename(self.path(number))

    def append(self, number):
        more = self.chance.randrange(1, 200)
        self.scratch.unlink(missing_ok=True)
        write_events(self.scratch, TAGS, more, first=self.steps[number])
        self.steps[number] += more
        data = self.scratch.read_bytes()
        cut = self.chance.randrange(len(data))
        for piece in (data[:cut], data[cut:]):
            with open(self.path(number), "ab") as file:
                file.write(piece)
            time.sleep(0.005)

    def change(self):
        number = self.chance.randrange(FILES)
        if number not in self.steps:
            self.write(number)
            return
        what = self.chance.random()
        if what < 0.7:
            self.append(number)
        elif what < 0.9:
            self.write(number)
        else:
            del self.steps[number]
            self.path(number).unlink()


def follow(socket_path, done, results, key, slow_s, params):
    """Follows until the model is what storage holds in the end, or for ever."""
    with Client(socket_path) as client:
        follower = Follower(client, **params)
        results[key] = follower
        while not (done.is_set() and follower.files == done.expected):
            follower.step()
            if slow_s:
                time.sleep(slow_s)
    results[key] = True


def come_and_go(socket_path, stop, chance, failures):
    """Clients that read it all, leave in the middle, or die with what they hold."""
    while not stop.is_set():
        with Client(socket_path) as client:
            stream = client.subscribe(transport=chance.choice(["map", "inline"]), order=chance.choice(["run", "sorted"]))
            acknowledges = chance.random() < 0.9
            leave = chance.choice([1, 5, 1 << 30]) if acknowledges else 1  # or it would wait for ever
            for count, (entry, image) in enumerate(stream.entries(acknowledges)):
                if count == leave or stop.is_set():
                    break
                if image and hrclient.Extent(image).file_version == 0:
                    failures.append("an extent without a version")
            if chance.random() < 0.3:  # as if it was killed
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_nobody_loses_anything(start, tmp_path):
    chance = random.Random(SEED)
    root = tmp_path / "logs"
    storage = Storage(root, tmp_path / "scratch", chance)
    daemon = start("--set", "poll=0.05", root)
    done, stop, results, failures = threading.Event(), threading.Event(), {}, []
    kinds = [(transport, order, slow_s) for transport in ("map", "inline") for order, slow_s in (("run", 0), ("sorted", 0.002))]
    followers = [threading.Thread(target=follow, daemon=True, args=(
        daemon.socket_path, done, results, kind, kind[2], {"transport": kind[0], "order": kind[1]})) for kind in kinds]
    others = [threading.Thread(target=come_and_go, daemon=True, args=(daemon.socket_path, stop, random.Random(SEED + n), failures))
              for n in (1, 2)]
    with Client(daemon.socket_path) as stopped:
        stream = stopped.subscribe(follow=True)
        stream.wait()
        stream.take()  # and never again
        for thread in followers + others:
            thread.start()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            storage.change()
            time.sleep(0.02)
        stop.set()
        # The last change is made when it is known what there will be, so that no follower sleeps in front of a right model.
        write_events(tmp_path / "new" / "last" / "events.out.tfevents.1.host", ["last"], 1)
        done.expected = {**expected_rows(root), **expected_rows(tmp_path / "new")}
        done.set()
        (tmp_path / "new" / "last").rename(root / "last")
        until = time.monotonic() + 30
        for thread in others + followers:
            thread.join(max(until - time.monotonic(), 0.1))
    wrong = {key: describe(result, done.expected) for key, result in results.items() if result is not True}
    assert not wrong and not failures, (SEED, wrong, failures)
    with Client(daemon.socket_path) as client:
        assert hrclient.scalar_rows(client.subscribe(order="sorted").entries())[0] == done.expected, SEED
    with Client(daemon.socket_path) as client:
        deadline = time.monotonic() + 60
        while (status := client.call("status"))["sessions"]:
            assert time.monotonic() < deadline
        assert status["ring"]["pinned"] == 0


def describe(follower, expected):
    return {name: (len(follower.files.get(name, [])), len(expected.get(name, [])))
            for name in sorted({*follower.files, *expected}) if follower.files.get(name) != expected.get(name)}
