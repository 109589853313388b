# SPDX-License-Identifier: Apache-2.0
"""The way to AWS's own hosts, which leads to a server of this machine: an HTTP proxy that is a TLS server for every host it is asked for.

    with Amazon(moto.url, DIRECTORY) as amazon:
        amazon.environment()    of a program that is to go there
        amazon.hosts            (host of CONNECT, server name of TLS, Host header) of each connection
"""
import datetime
import http.client
import socket
import ssl
import threading
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(directory, names):
    """Paths of a certificate that signs itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                   .not_valid_after(now + datetime.timedelta(days=1))
                   .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
                   .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256()))
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return paths


def read_head(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.recv(1)
        if not byte:
            return None
        head += byte
    return head


def header(head, name):
    for line in head.decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return None


class Amazon:
    def __init__(self, url, directory):
        target = urllib.parse.urlsplit(url)
        self.target = target.hostname, target.port
        self.hosts = []
        self.certificate, key = write_certificate(directory, ["*.s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com"])
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.context.sni_callback = self.note_name
        self.names = threading.local()

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.proxy = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def environment(self):
        return {"https_proxy": self.proxy, "HTTPS_PROXY": self.proxy, "no_proxy": "", "NO_PROXY": "", "CURL_CA_BUNDLE": str(self.certificate)}

    def note_name(self, _stream, name, _context):
        self.names.last = name

    def accept(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def serve(self, stream):
        with stream:
            method, target, _ = (read_head(stream) or b"- - -").decode().split("\r\n")[0].split(" ")
            if method != "CONNECT":
                return
            stream.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with self.context.wrap_socket(stream, server_side=True) as tls:
                while head := read_head(tls):
                    self.hosts.append((target, self.names.last, header(head, "host")))
                    self.answer(tls, head)

    def answer(self, tls, head):
        """What the server says to the same request, whose headers are all kept."""
        method, path, _ = head.decode("latin-1").split("\r\n")[0].split(" ")
        connection = http.client.HTTPConnection(*self.target)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for line in head.decode("latin-1").split("\r\n")[1:-2]:
            name, _, value = line.partition(":")
            connection.putheader(name, value.strip())
        connection.endheaders()
        reply = connection.getresponse()
        body = reply.read()
        lines = [f"HTTP/1.1 {reply.status} {reply.reason}"]
        lines += [f"{name}: {value}" for name, value in reply.getheaders()
                  if name.lower() not in ("connection", "content-length", "transfer-encoding")]
        tls.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body)
        connection.close()
