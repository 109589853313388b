# SPDX-License-Identifier: Apache-2.0
"""Apache with mod_dav over a directory, with basic authentication; it refuses an infinite depth, as it does by default.

    with Apache(directory) as apache:
        apache.url              http://user:password@127.0.0.1:PORT
        apache.requests()       "METHOD PATH" of what was asked so far
"""
import os
import pathlib
import subprocess

from tests.rig import peer
from tests.rig.nginx import LOOPBACK, free_ports

USER, PASSWORD = "reader", "pass word"

CONFIGURATION = """
ServerRoot {run}
ServerName {address}
Listen {address}:{port}
PidFile {run}/httpd.pid
ErrorLog {run}/error.log
DefaultRuntimeDir {run}
Mutex file:{run} default
{modules}
TypesConfig /dev/null
{user}
StartServers 1
MaxRequestWorkers 100
ThreadsPerChild 50
ServerLimit 2
KeepAlive On
MaxKeepAliveRequests 0
DocumentRoot {root}
DavLockDB {run}/lock/db
LogFormat "%m %U" asked
CustomLog {run}/access.log asked
<Directory {root}>
  Dav On
  AuthType Basic
  AuthName logs
  AuthUserFile {run}/passwords
  Require valid-user
</Directory>
"""

MODULES = ("mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "dav", "dav_fs", "mime")


class Apache(peer.Peer):
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()

    def start(self):
        peer.need_packages(apache2="apache2", htpasswd="apache2-utils")
        (port,) = free_ports(1)
        self.url = f"http://{USER}:{PASSWORD.replace(' ', '%20')}@{LOOPBACK}:{port}"
        (self.run / "lock").mkdir()
        subprocess.run([peer.program("htpasswd"), "-bc", self.run / "passwords", USER, PASSWORD], check=True, capture_output=True)
        user = ""
        if os.geteuid() == 0:  # it does not serve as root
            user = "User www-data\nGroup www-data"
            for path in (self.run, self.run / "lock", self.run / "passwords"):
                subprocess.run(["chown", "www-data", path], check=True)
            self.run.chmod(0o755)
        modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES)
        (self.run / "apache.conf").write_text(CONFIGURATION.format(run=self.run, address=LOOPBACK, port=port, root=self.root,
                                                                   modules=modules, user=user))
        process = self.spawn("apache", peer.program("apache2"), "-f", self.run / "apache.conf", "-DFOREGROUND")
        self.wait_for_answer(f"http://{LOOPBACK}:{port}/", process)

    def requests(self):
        return (self.run / "access.log").read_text().splitlines()
