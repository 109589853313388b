# SPDX-License-Identifier: Apache-2.0
"""Azurite, Microsoft's own stand-in for Azure Blob Storage: it checks shared keys and SAS. Installed by npm, once.

    with Azurite() as azure:
        azure.put("prefix", DIRECTORY)
        azure.environment()         what a program needs to get there, with the account's key
        azure.sas()                 a SAS that may read and list
"""
import base64
import datetime
import email.utils
import hashlib
import hmac
import pathlib
import subprocess
import urllib.parse
import urllib.request

from tests.rig import peer
from tests.rig.nginx import LOOPBACK, free_ports

PACKAGE = "azurite@3.37.0"
VERSION = "2021-12-02"


def azurite_main():
    place = peer.KEPT / "azurite"
    main = place / "node_modules/azurite/dist/src/blob/main.js"
    with peer.one_at_a_time():
        if not main.exists():
            if not peer.program("npm"):
                raise peer.Unavailable("Azurite is installed by npm, which is not installed")
            place.mkdir(parents=True, exist_ok=True)
            done = subprocess.run([peer.program("npm"), "install", "--no-audit", "--no-fund", "--no-save", PACKAGE], cwd=place,
                                  capture_output=True, text=True, timeout=900)
            if done.returncode != 0:
                raise peer.Unavailable(f"npm cannot install {PACKAGE}: {done.stderr.strip()[-300:]}")
    return main


class Azurite(peer.Peer):
    account, container = "headraceaccount", "logs"
    key = base64.b64encode(b"an account key of sixty-four bytes, which is what Azure hands out" [:64]).decode()

    def start(self):
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}/{self.account}"
        process = self.spawn("azurite", peer.program("node") or "node", azurite_main(), "--blobHost", LOOPBACK, "--blobPort", port, "-l",
                             self.run / "data", "--silent", "--skipApiVersionCheck", "--disableTelemetry",
                             env={"AZURITE_ACCOUNTS": f"{self.account}:{self.key}"})
        self.wait_for_answer(f"http://{LOOPBACK}:{port}/", process)
        self._put(f"/{self.container}", b"", "restype=container", {})

    def _sign(self, text):
        return base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()

    def _put(self, path, body, query, headers):
        """Shared Key by this script's own reckoning: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key"""
        own = {**headers, "x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": VERSION}
        target = urllib.parse.urlsplit(self.url).path + path
        lines = ["PUT", "", "", str(len(body)) if body else "", "", "application/octet-stream", "", "", "", "", "", ""]
        lines += [f"{name}:{own[name]}" for name in sorted(own)]
        resource = f"/{self.account}{target}" + "".join(f"\n{part.replace('=', ':')}" for part in query.split("&") if part)
        own["Authorization"] = f"SharedKey {self.account}:{self._sign(chr(10).join(lines) + chr(10) + resource)}"
        own["Content-Type"] = "application/octet-stream"
        url = f"{self.url}{path}" + (f"?{query}" if query else "")
        urllib.request.urlopen(urllib.request.Request(url, data=body, method="PUT", headers=own), timeout=30).read()

    def put(self, prefix, directory):
        directory = pathlib.Path(directory)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                name = urllib.parse.quote(f"{prefix}/{path.relative_to(directory)}", safe="/")
                self._put(f"/{self.container}/{name}", path.read_bytes(), "", {"x-ms-blob-type": "BlockBlob"})

    def set_tier(self, name, tier):
        """Hot, Cool or Archive: https://learn.microsoft.com/rest/api/storageservices/set-blob-tier"""
        self._put(f"/{self.container}/{urllib.parse.quote(name, safe='/')}", b"", "comp=tier", {"x-ms-access-tier": tier})

    def sas(self, seconds=3600):
        expires = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = ["rl", "", expires, f"/blob/{self.account}/{self.container}", "", "", "http,https", VERSION, "c", "", "", "", "", "", "", ""]
        return urllib.parse.urlencode({"sp": "rl", "se": expires, "spr": "http,https", "sv": VERSION, "sr": "c",
                                       "sig": self._sign("\n".join(fields))})

    def environment(self, **more):
        return {"AZURE_STORAGE_ACCOUNT": self.account, "AZURE_STORAGE_KEY": self.key, "AZURE_STORAGE_ENDPOINT": self.url, **more}
