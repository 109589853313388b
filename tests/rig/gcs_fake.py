# SPDX-License-Identifier: Apache-2.0
"""fake-gcs-server, another implementation of Cloud Storage's JSON API. It is built with Go, once, which takes minutes.

    with FakeGcs() as server:
        server.put("prefix", DIRECTORY)
        server.environment()        what a program needs to get there
It checks no credentials.
"""
import pathlib
import urllib.parse
import urllib.request

from tests.rig import peer
from tests.rig.nginx import LOOPBACK, free_ports

MODULE = "github.com/fsouza/fake-gcs-server@v1.56.1"


class FakeGcs(peer.Peer):
    bucket = "logs"

    def start(self):
        program = peer.go_program("fake-gcs-server", MODULE)
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        process = self.spawn("fake-gcs", program, "-scheme", "http", "-host", LOOPBACK, "-port", port, "-backend", "memory",
                             "-external-url", self.url, "-public-host", f"{LOOPBACK}:{port}", "-log-level", "error")
        self.wait_for_answer(f"{self.url}/storage/v1/b", process)
        self.post("/storage/v1/b?project=rig", b'{"name":"%s"}' % self.bucket.encode(), "application/json")

    def post(self, target, body, kind="application/octet-stream"):
        request = urllib.request.Request(self.url + target, data=body, method="POST", headers={"Content-Type": kind})
        return urllib.request.urlopen(request, timeout=30).read()

    def put_object(self, key, data):
        self.post(f"/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={urllib.parse.quote(key, safe='')}", data)

    def put(self, prefix, directory):
        directory = pathlib.Path(directory)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put_object(f"{prefix}/{path.relative_to(directory)}", path.read_bytes())

    def environment(self):
        return {"STORAGE_EMULATOR_HOST": self.url, "GOOGLE_APPLICATION_CREDENTIALS": "", "GOOGLE_CLOUD_QUOTA_PROJECT": ""}
