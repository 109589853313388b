# SPDX-License-Identifier: Apache-2.0
"""Apache as a forward proxy that wants a user and a password.

    with Forward() as forward:
        forward.host                    127.0.0.1:PORT
        forward.requests()              [(status, request line), ...] so far
"""
import os
import subprocess

from tests.rig import peer
from tests.rig.apache import PASSWORD, USER
from tests.rig.nginx import LOOPBACK, free_ports

CONFIGURATION = """
ServerRoot {run}
ServerName {address}
Listen {host}
PidFile {run}/httpd.pid
ErrorLog {run}/error.log
DefaultRuntimeDir {run}
Mutex file:{run} default
{modules}
{user}
StartServers 1
MaxRequestWorkers 100
ThreadsPerChild 50
ServerLimit 2
KeepAlive On
MaxKeepAliveRequests 0
LogFormat "%>s\\t%r" asked
CustomLog {run}/access.log asked
ProxyRequests On
AllowCONNECT 1-65535
<Proxy *>
  AuthType Basic
  AuthName proxy
  AuthUserFile {run}/passwords
  Require valid-user
</Proxy>
"""

MODULES = ("mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "proxy", "proxy_http", "proxy_connect")


class Forward(peer.Peer):
    def start(self):
        peer.need_packages(apache2="apache2", htpasswd="apache2-utils")
        (port,) = free_ports(1)
        self.host = f"{LOOPBACK}:{port}"
        subprocess.run([peer.program("htpasswd"), "-bc", self.run / "passwords", USER, PASSWORD], check=True, capture_output=True)
        user = ""
        if os.geteuid() == 0:  # it does not serve as root
            user = "User www-data\nGroup www-data"
            for path in (self.run, self.run / "passwords"):
                subprocess.run(["chown", "www-data", path], check=True)
            self.run.chmod(0o755)
        modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES)
        (self.run / "apache.conf").write_text(CONFIGURATION.format(run=self.run, address=LOOPBACK, host=self.host, modules=modules, user=user))
        process = self.spawn("apache", peer.program("apache2"), "-f", self.run / "apache.conf", "-DFOREGROUND")
        self.wait_for_answer(f"http://{self.host}/", process)

    def requests(self):
        lines = (line.split("\t") for line in (self.run / "access.log").read_text().splitlines())
        return [(int(status), asked) for status, asked in lines]
