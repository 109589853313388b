# SPDX-License-Identifier: Apache-2.0
"""A FUSE mount of a directory that takes its time for every operation.

    with SlowMount(directory, 100) as mount:      milliseconds
        mount.path
"""
import os
import pathlib
import subprocess
import time

from tests.rig import peer


def build():
    """The program, built once."""
    source = pathlib.Path(__file__).with_name("slow_mount.c")
    path = peer.KEPT / "bin" / "slow_mount"
    peer.need_packages(fusermount3="fuse3", pkg_config="pkg-config", cc="gcc")
    if subprocess.run(["pkg-config", "--exists", "fuse3"], capture_output=True).returncode != 0:
        peer.need_packages(libfuse3_headers="libfuse3-dev")  # a library has no program by which it could be found
    with peer.one_at_a_time():
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True).stdout.split()
            done = subprocess.run(["cc", "-O2", "-Wall", "-o", path, source, *flags], capture_output=True, text=True)
            if done.returncode != 0:
                raise peer.Unavailable(f"slow_mount does not build: {done.stderr.strip()[-300:]}")
    return path


class SlowMount(peer.Peer):
    def __init__(self, directory, milliseconds):
        self.directory, self.milliseconds = pathlib.Path(directory).resolve(), milliseconds
        self.path = None

    def start(self):
        if not os.path.exists("/dev/fuse"):
            raise peer.Unavailable("there is no /dev/fuse")
        if os.geteuid() != 0:
            raise peer.Unavailable("mounting needs root")
        self.path = self.run / "mount"
        self.path.mkdir()
        process = self.spawn("slow_mount", build(), "-f", "-o", "ro,max_threads=600,max_idle_threads=600", self.path,
                             env={"SLOW_SOURCE": str(self.directory), "SLOW_MS": str(self.milliseconds)})
        deadline = time.monotonic() + 30
        while not os.path.ismount(self.path):
            if process.poll() is not None:
                raise peer.Unavailable("FUSE cannot be mounted here: " + self.last_words())
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def __exit__(self, *arguments):
        if self.path:
            subprocess.run(["fusermount3", "-uz", str(self.path)], capture_output=True)
        return super().__exit__(*arguments)
