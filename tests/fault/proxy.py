# SPDX-License-Identifier: Apache-2.0
"""A forward proxy for tests: absolute URIs and CONNECT (RFC 9110, sections 7.6 and 9.3.6), which fails on command.

    with Proxy() as proxy:
        proxy.url               http://127.0.0.1:PORT
        proxy.login             (user, password) that it wants, or None
        proxy.status            what it answers instead of serving, or None
        proxy.asked             ["GET http://...", "CONNECT host:port", ...]
        proxy.logins            the logins that came with them, or None
"""
import base64
import http.client
import http.server
import select
import socket
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refusal(self):
        """The status of the refusal, or None."""
        given = self.headers.get("Proxy-Authorization")
        self.server.proxy.logins.append(base64.b64decode(given.removeprefix("Basic ")).decode() if given else None)
        self.server.proxy.asked.append(f"{self.command} {self.path}")
        wanted = self.server.proxy.login
        if wanted and self.server.proxy.logins[-1] != ":".join(wanted):
            return 407
        return self.server.proxy.status

    def refuse(self, status):
        self.send_response(status)
        if status == 407:
            self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"proxy\n")

    def do_GET(self):
        status = self.refusal()
        if status:
            return self.refuse(status)
        host, _, rest = self.path.removeprefix("http://").partition("/")
        upstream = http.client.HTTPConnection(host)
        try:
            headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
            upstream.request("GET", "/" + rest, headers=headers)
            answer = upstream.getresponse()
            body = answer.read()
        except OSError:
            return self.refuse(502)
        finally:
            upstream.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self):
        status = self.refusal()
        if status:
            return self.refuse(status)
        host, _, port = self.path.rpartition(":")
        try:
            upstream = socket.create_connection((host, int(port)), timeout=10)
        except OSError:
            return self.refuse(502)
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        ends = {self.connection: upstream, upstream: self.connection}
        with upstream:
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    try:
                        data = end.recv(1 << 16)
                        ends[end].sendall(data)
                    except OSError:
                        return
                    if not data:
                        return


class Proxy:
    def __enter__(self):
        self.login = self.status = None
        self.asked, self.logins = [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.proxy = self
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
