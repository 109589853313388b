# SPDX-License-Identifier: Apache-2.0
"""A real HDFS with WebHDFS: Hadoop's mini cluster. Fetched by Maven, once; it needs a JDK.

    with Hadoop() as hadoop:
        hadoop.put("logs", DIRECTORY)       below /user/reader
        hadoop.url                          webhdfs://127.0.0.1:PORT
"""
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

from tests.rig import peer
from tests.rig.nginx import LOOPBACK

VERSION = "3.5.0"
USER, HOME = "reader", "/user/reader"
ARTIFACTS = ("hadoop-client-minicluster", "hadoop-client-runtime")
PROJECT = ("<project xmlns='http://maven.apache.org/POM/4.0.0'><modelVersion>4.0.0</modelVersion><groupId>tests</groupId>"
           "<artifactId>hdfs</artifactId><version>1</version><dependencies>" + "".join(
               f"<dependency><groupId>org.apache.hadoop</groupId><artifactId>{artifact}</artifactId><version>{VERSION}</version></dependency>"
               for artifact in ARTIFACTS) + "</dependencies></project>")


def classes():
    """The directory of the compiled cluster, and of all that it needs."""
    peer.need_packages(javac="openjdk-17-jdk-headless", mvn="maven")
    place = peer.KEPT / f"hadoop-{VERSION}"
    source = pathlib.Path(__file__).with_name("MiniHdfs.java")
    with peer.one_at_a_time():
        if not (place / "MiniHdfs.class").exists() or (place / "MiniHdfs.class").stat().st_mtime < source.stat().st_mtime:
            place.mkdir(parents=True, exist_ok=True)
            (place / "pom.xml").write_text(PROJECT)
            for command in ([peer.program("mvn"), "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=lib"],
                            [peer.program("javac"), "-cp", "lib/*", "-d", ".", str(source)]):
                done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=1200)
                if done.returncode != 0:
                    raise peer.Unavailable(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-300:]}")
    return place


def three_ports():
    """The first of three neighbours that nobody listens on."""
    while True:
        with socket.socket() as one:
            one.bind((LOOPBACK, 0))
            port = one.getsockname()[1]
        try:
            for offset in (0, 1, 2):
                with socket.socket() as probe:
                    probe.bind((LOOPBACK, port + offset))
            return port
        except (OSError, OverflowError):
            continue


class Hadoop(peer.Peer):
    def start(self):
        place, port, ready = classes(), three_ports(), self.run / "ready"
        self.url, self.rest = f"webhdfs://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{port}/webhdfs/v1"
        process = self.spawn("hdfs", peer.program("java"), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-opens",
                             "java.base/java.lang=ALL-UNNAMED", "-cp", f"{place}:{place}/lib/*", "MiniHdfs", port, self.run / "data", ready)
        until = time.monotonic() + 120
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise peer.Unavailable(f"HDFS does not start: {self.last_words()}")
            time.sleep(0.1)

    def end_processes(self, by=signal.SIGKILL):
        super().end_processes(by)  # nothing of it is kept, and its own end takes long
        shutil.rmtree(self.run / "data", ignore_errors=True)

    def put(self, name, directory):
        """CREATE as WebHDFS has it: the NameNode names the DataNode, which takes the bytes."""
        directory = pathlib.Path(directory)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                where = urllib.parse.quote(f"{HOME}/{name}/{path.relative_to(directory)}", safe="/")
                answer = urllib.request.urlopen(urllib.request.Request(
                    f"{self.rest}{where}?op=CREATE&overwrite=true&noredirect=true&user.name={USER}", method="PUT"), timeout=30)
                location = urllib.parse.quote(json.loads(answer.read())["Location"], safe="%:/?&=;,+")
                urllib.request.urlopen(urllib.request.Request(location, data=path.read_bytes(), method="PUT", headers={
                    "Content-Type": "application/octet-stream"}), timeout=30).read()
