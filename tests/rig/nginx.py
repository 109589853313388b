# SPDX-License-Identifier: Apache-2.0
"""nginx over a directory, on free ports of the loopback, with a delay for each request as object stores have it.

    with Nginx(directory) as nginx:
        nginx.slow_url      each request waits first (lognormal: p50_ms, p90_ms)
        nginx.url           without delay
        nginx.tls_url       https, without delay; nginx.certificate proves it
        nginx.requests()    what was asked so far, from the access log

Listings are nginx's JSON autoindex; with a bucket's name also ListObjectsV2 of S3 in front of the same files (bucket.py). Everything it writes lies in a temporary directory that goes when it stops; no root is
needed. It ends the nginx that it started, and nothing else.
"""
import collections
import contextlib
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

MODULES = "/usr/lib/nginx/modules"
LOOPBACK = "127.0.0.1"

Request = collections.namedtuple("Request", "method path range status body_bytes seconds port")

CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
worker_processes 1;
worker_rlimit_nofile {files};
daemon off;
{user}
pid {run}/nginx.pid;
error_log {run}/error.log warn;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
  log_format fields '$request_method\\t$request_uri\\t$http_range\\t$status\\t$body_bytes_sent\\t$request_time\\t$server_port';
  access_log {run}/access.log fields;
  client_body_temp_path {run}/temp; proxy_temp_path {run}/temp; fastcgi_temp_path {run}/temp;
  uwsgi_temp_path {run}/temp; scgi_temp_path {run}/temp;
  default_type application/octet-stream;
  sendfile on; tcp_nodelay on; keepalive_requests 1000000; keepalive_timeout 60s;
  root {root};
  autoindex on; autoindex_format json;
  init_worker_by_lua_block {{
    math.randomseed({seed})
    local mu, sigma = math.log({p50_ms} / 1000), math.log({p90_ms} / {p50_ms}) / 1.2815515655446004
    function delay()
      local u1, u2 = 1 - math.random(), math.random()
      local delay_s = math.exp(mu + sigma * math.sqrt(-2 * math.log(u1)) * math.cos(2 * math.pi * u2))
      if {tail} then
        local chance = math.random()
        if chance < 0.001 then delay_s = 20 elseif chance < 0.011 then delay_s = delay_s * (5 + 15 * math.random()) end
      end
      ngx.header['X-Delay-Ms'] = delay_s * 1000
      ngx.sleep(delay_s)
    end
  }}
  {bucket_http}
  server {{ listen {address}:{slow} backlog=4096; {limit_rate} access_by_lua_block {{ delay() }} location / {{ }} {bucket_server} }}
  server {{ listen {address}:{plain} backlog=4096; location / {{ {guard} }} {bucket_server}
    location = /.barrier {{ access_log off; return 204; }} }}
  {tls_server}
}}
"""

TLS_SERVER = """server {{ listen {address}:{tls} ssl backlog=4096; ssl_certificate {run}/certificate.pem;
    ssl_certificate_key {run}/key.pem; {verify} location / {{ {guard} }} }}"""


def free_ports(count):
    """Ports that nobody listens on now; they are all held until the last one is found."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]


class Nginx:
    def __init__(self, root, p50_ms=100, p90_ms=150, seed=1, tls=False, tail=False, connection_rate=None, bucket=None, token=None,
                 client_ca=None):
        """tail: one request of a hundred takes 5 to 20 times as long, one of a thousand is stuck for 20 s. connection_rate: bytes a
        second of each answer of slow_url, as nginx writes it ("90m"). bucket: a bucket.Bucket, in front of root. token: url and tls_url are for who bears it.
        client_ca: a file; tls_url is for who has a certificate of it."""
        self.root = pathlib.Path(root).resolve()
        self.p50_ms, self.p90_ms, self.seed, self.tls = p50_ms, p90_ms, seed, tls
        self.tail, self.connection_rate, self.bucket = tail, connection_rate, bucket
        self.token, self.client_ca = token, client_ca
        self.process = None

    def __enter__(self):
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="headrace-nginx-"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None
        shutil.rmtree(self.run, ignore_errors=True)

    def _start(self):
        slow, plain, tls = free_ports(3)
        self.slow_url = f"http://{LOOPBACK}:{slow}"
        self.url = f"http://{LOOPBACK}:{plain}"
        self.tls_url = f"https://localhost:{tls}"
        self.certificate = self.run / "certificate.pem"
        if self.tls:
            self._make_certificate()
        guard = f'if ($http_authorization != "Bearer {self.token}") {{ return 401; }}' if self.token else ""
        verify = f"ssl_verify_client on; ssl_client_certificate {self.client_ca};" if self.client_ca else ""
        tls_server = TLS_SERVER.format(address=LOOPBACK, tls=tls, run=self.run, guard=guard, verify=verify) if self.tls else ""
        files = min(65536, os.sysconf("SC_OPEN_MAX"))
        user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
        configuration = CONFIGURATION.format(
            modules=MODULES, run=self.run, root=self.root, seed=self.seed, p50_ms=self.p50_ms, p90_ms=self.p90_ms,
            tail="true" if self.tail else "false",
            limit_rate=f"limit_rate {self.connection_rate};" if self.connection_rate else "",
            bucket_http=self.bucket.http_part(self.run) if self.bucket else "",
            bucket_server=self.bucket.server_part(self.root) if self.bucket else "",
            address=LOOPBACK, slow=slow, plain=plain, guard=guard, tls_server=tls_server, files=files, connections=files // 4, user=user)
        (self.run / "nginx.conf").write_text(configuration)
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        if not program:
            raise RuntimeError("nginx is not installed (scripts/bootstrap installs it)")
        with open(self.run / "output.log", "wb") as output:
            self.process = subprocess.Popen(
                [program, "-c", self.run / "nginx.conf", "-e", self.run / "error.log"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._wait_until_ready(plain)

    def _make_certificate(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", self.run / "key.pem", "-out", self.certificate],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wait_until_ready(self, port, patience_s=20):
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                said = "".join(log.read_text() for log in self.run.glob("*.log"))
                raise RuntimeError(f"nginx ended at once: {said.strip()}")
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return
            time.sleep(0.01)
        raise RuntimeError("nginx does not answer")

    def _wait_for_log(self):
        """A request is logged right after its answer, and the one worker takes the next request only then."""
        with urllib.request.urlopen(self.url + "/.barrier"):
            pass

    def mark(self):
        """A place in the access log: requests(since=mark) are those that were answered after it."""
        self._wait_for_log()
        return (self.run / "access.log").stat().st_size

    def requests(self, since=0):
        self._wait_for_log()
        with open(self.run / "access.log", "rb") as log:
            log.seek(since)
            fields = [line.decode("utf-8", "surrogateescape").split("\t") for line in log.read().splitlines()]
        return [Request(method, path, ranges, int(status), int(size), float(seconds), int(port))
                for method, path, ranges, status, size, seconds, port in fields]


def main():
    """python -m tests.rig.nginx DIRECTORY: serves it until a key is pressed."""
    import sys
    with Nginx(sys.argv[1] if len(sys.argv) > 1 else ".", tls=True) as nginx:
        print(f"slow {nginx.slow_url}\nplain {nginx.url}\nhttps {nginx.tls_url}\naccess log {nginx.run}/access.log", flush=True)
        with contextlib.suppress(KeyboardInterrupt, EOFError):
            input("return ends it\n")


if __name__ == "__main__":
    main()
