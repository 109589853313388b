# SPDX-License-Identifier: Apache-2.0
"""What the starters of real servers share: getting their programs, and starting and ending processes.

A server that cannot be had on this machine raises Unavailable with the reason, which is why its tests are skipped. What is built once is
kept below $HEADRACE_BUILD/peers.
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
KEPT = TOP / os.environ.get("HEADRACE_BUILD", "build") / "peers"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/go/bin"


class Unavailable(Exception):
    """This server cannot be started here; the text says why."""


def program(name):
    return shutil.which(name, path=PATH)


@contextlib.contextmanager
def one_at_a_time():
    """Two test runs must not install or build the same thing at once."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def need_packages(**programs):
    """program=package...: installs the packages of Debian whose programs are missing."""
    def missing():
        return [package for name, package in programs.items() if not program(name.replace("_", "-"))]
    if not missing():
        return
    if os.geteuid() != 0 or not program("apt-get"):
        raise Unavailable(f"not installed: {' '.join(missing())} (apt-get install needs root)")
    with one_at_a_time():
        command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-y", "--no-install-recommends", "install", *missing()]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for update in (False, True):
            if update:
                subprocess.run(["apt-get", "update"], capture_output=True, timeout=600)
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200)
            if done.returncode == 0 or not missing():
                return
    raise Unavailable(f"apt-get cannot install {' '.join(missing())}: {done.stderr.strip()[-300:]}")


def go_program(name, module):
    """Builds a program of Go, once; the path of it."""
    path = KEPT / "bin" / name
    with one_at_a_time():
        if not path.exists():
            if not program("go"):
                raise Unavailable(f"{name} is built with Go, which is not installed")
            done = subprocess.run([program("go"), "install", "-buildvcs=false", module], capture_output=True, text=True, timeout=1200,
                                  env={**os.environ, "GOBIN": str(path.parent)})
            if done.returncode != 0:
                raise Unavailable(f"{name} does not build: {done.stderr.strip()[-300:]}")
    return path


class Peer:
    """A server of one or more processes with a directory of its own, which goes with it."""

    def __enter__(self):
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="headrace-peer-"))
        self.processes = []
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end_processes()
        shutil.rmtree(self.run, ignore_errors=True)

    def end_processes(self, by=signal.SIGTERM):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(by)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.processes.clear()

    def spawn(self, name, *command, env=None):
        with open(self.run / f"{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PATH": PATH, **(env or {})}, start_new_session=True))
        return self.processes[-1]

    def wait_for_answer(self, url, process, patience_s=60):
        """Whatever it answers."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if process.poll() is not None:
                raise Unavailable(f"{process.args[0]} ended at once: {self.last_words()}")
            try:
                urllib.request.urlopen(url, timeout=2).read()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise Unavailable(f"{process.args[0]} does not answer: {self.last_words()}")

    def last_words(self):
        return " / ".join(log.read_text(errors="replace").strip()[-200:] for log in self.run.glob("*.log"))
