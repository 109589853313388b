# SPDX-License-Identifier: Apache-2.0
"""A Kerberos realm (MIT's KDC), and Apache as a server that wants its tickets (SPNEGO) and hands requests on to a NameNode.

    with Kerberos() as realm:
        realm.environment               for whoever uses it: KRB5_CONFIG and KRB5CCNAME
        realm.log_in(), realm.log_out() kinit and kdestroy, as the user
        with Front(realm, hadoop, sessions=True) as front:
            front.url                   webhdfs://localhost:PORT
            front.requests()            [(status, request line, user or "-", whether a ticket came with it), ...] so far
"""
import os
import subprocess

from tests.rig import peer
from tests.rig.hadoop import USER
from tests.rig.nginx import LOOPBACK, free_ports

REALM, PASSWORD = "HEADRACE.TEST", "a pass word"

CLIENT = """
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
[realms]
{realm} = {{
  kdc = {address}:{port}
}}
[domain_realm]
localhost = {realm}
"""

KDC = """
[kdcdefaults]
kdc_listen = {address}:{port}
kdc_tcp_listen = {address}:{port}
[realms]
{realm} = {{
  database_name = {run}/principal
  key_stash_file = {run}/stash
}}
[logging]
kdc = FILE:{run}/kdc.log
"""

APACHE = """
ServerRoot {run}
ServerName localhost
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
DocumentRoot {run}/empty
LogFormat "%>s\\t%r\\t%u\\t%{{Authorization}}i" asked
CustomLog {run}/access.log asked
RewriteEngine On
AllowEncodedSlashes NoDecode
<Location />
  AuthType GSSAPI
  AuthName logs
  GssapiCredStore keytab:{keytab}
  GssapiLocalName On
  GssapiUseSessions {sessions}
  Session On
  SessionCookieName tickets path=/;httponly
  Require valid-user
</Location>
RewriteRule ^/webhdfs/(.*)$ {rest}/webhdfs/$1?user.name={name} [P,QSA]
"""

MODULES = ("mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "session", "session_cookie", "rewrite", "proxy",
           "proxy_http", "mime")


class Kerberos(peer.Peer):
    def start(self):
        peer.need_packages(krb5kdc="krb5-kdc", kinit="krb5-user")
        peer.need_packages(**{"kadmin.local": "krb5-admin-server"})
        (port,) = free_ports(1)
        self.run.chmod(0o755)
        values = {"realm": REALM, "address": LOOPBACK, "port": port, "run": self.run}
        (self.run / "krb5.conf").write_text(CLIENT.format(**values))
        (self.run / "kdc.conf").write_text(KDC.format(**values))
        self.environment = {"KRB5_CONFIG": str(self.run / "krb5.conf"), "KRB5CCNAME": f"FILE:{self.run}/tickets"}
        self.tool("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.tool("kadmin.local", "addprinc", "-pw", PASSWORD, USER)
        self.tool("kadmin.local", "addprinc", "-randkey", "HTTP/localhost")
        self.keytab = self.run / "keytab"
        self.tool("kadmin.local", "ktadd", "-k", self.keytab, "HTTP/localhost")
        self.keytab.chmod(0o644)
        self.kdc = self.spawn("kdc", peer.program("krb5kdc"), "-n", "-r", REALM, env=self.everything())
        self.log_in()
        self.log_out()

    def everything(self):
        return {**self.environment, "KRB5_KDC_PROFILE": str(self.run / "kdc.conf")}

    def tool(self, name, *words, stdin="", tries=1):
        for left in reversed(range(tries)):
            done = subprocess.run([peer.program(name), *map(str, words)], env={**os.environ, "PATH": peer.PATH, **self.everything()},
                                  input=stdin, capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                return
            if left == 0:
                raise peer.Unavailable(f"{name} failed: {done.stderr.strip()[-300:]}")

    def log_in(self):
        self.tool("kinit", USER, stdin=PASSWORD + "\n", tries=20)  # the KDC may be starting

    def log_out(self):
        self.tool("kdestroy")


class Front(peer.Peer):
    def __init__(self, realm, hadoop, sessions):
        self.realm, self.hadoop, self.sessions = realm, hadoop, sessions

    def start(self):
        peer.need_packages(apache2="apache2")
        if not os.path.exists("/usr/lib/apache2/modules/mod_auth_gssapi.so"):
            peer.need_packages(**{"libapache2-mod-auth-gssapi": "libapache2-mod-auth-gssapi"})
        (port,) = free_ports(1)
        self.url = f"webhdfs://localhost:{port}"
        (self.run / "empty").mkdir()
        user = ""
        if os.geteuid() == 0:  # it does not serve as root
            user = "User www-data\nGroup www-data"
            for path in (self.run, self.run / "empty"):
                subprocess.run(["chown", "www-data", path], check=True)
            self.run.chmod(0o755)
        modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES)
        (self.run / "apache.conf").write_text(APACHE.format(
            run=self.run, address=LOOPBACK, port=port, modules=modules, user=user, keytab=self.realm.keytab, name=USER,
            sessions="On" if self.sessions else "Off", rest=self.hadoop.rest.removesuffix("/webhdfs/v1")))
        self.start_again(port)

    def start_again(self, port):
        process = self.spawn("apache", peer.program("apache2"), "-f", self.run / "apache.conf", "-DFOREGROUND", env=self.realm.everything())
        self.wait_for_answer(f"http://{LOOPBACK}:{port}/", process)

    def requests(self):
        lines = (line.split("\t") for line in (self.run / "access.log").read_text().splitlines())
        return [(int(status), asked, user, ticket.startswith("Negotiate ")) for status, asked, user, ticket in lines]
