# SPDX-License-Identifier: Apache-2.0
"""What hands out tokens of Microsoft Entra ID, and a blob service that wants one, on a port of the loopback, in a thread of this process.

    with AzureIdentity({"exp/run/events...": bytes, ...}) as azure:
        azure.url               authority (/TENANT/oauth2/v2.0/token), metadata (/metadata/...), App Service (/msi), blobs (/account)
        azure.seen              requests, as "METHOD PATH"

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow,
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token,
https://learn.microsoft.com/rest/api/storageservices/list-blobs
"""
import email.utils
import http.server
import json
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

TENANT, CLIENT, SECRET, ASSERTION, SERVICE_SECRET, TOKEN = "tenant", "client", "client secret", "assertion", "service secret", "a-bearer-token"


class AzureIdentity:
    def __init__(self, blobs):
        self.blobs, self.seen = blobs, []
        self.token = TOKEN

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def listing(self, prefix):
        rows = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{email.utils.formatdate(1700000000, usegmt=True)}</Last-Modified>"
            f"<Etag>0x1</Etag><Content-Length>{len(body)}</Content-Length></Properties></Blob>"
            for name, body in sorted(self.blobs.items()) if name.startswith(prefix))
        return f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>{rows}</Blobs><NextMarker/></EnumerationResults>'


def handler_of(azure):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, body=b"", headers=()):
            data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            url = urllib.parse.urlsplit(self.path)
            azure.seen.append(f"{self.command} {url.path}")
            query, fields = (dict(urllib.parse.parse_qsl(text)) for text in (url.query, body))
            if url.path == f"/{TENANT}/oauth2/v2.0/token":
                return self.authority(fields)
            if url.path == "/metadata/identity/oauth2/token":
                right = self.headers.get("Metadata") == "true" and query.get("resource") == "https://storage.azure.com/"
                return self.hand_out() if right else self.answer(400, {"error": "invalid_request"})
            if url.path == "/msi":
                return self.hand_out() if self.headers.get("X-IDENTITY-HEADER") == SERVICE_SECRET else self.answer(401)
            if url.path.startswith("/account/logs"):
                return self.blob(urllib.parse.unquote(url.path[len("/account/logs"):].lstrip("/")), query)
            return self.answer(404)

        do_GET = do_POST = handle_any

        def hand_out(self):
            self.answer(200, {"access_token": azure.token, "expires_in": "3600", "expires_on": str(int(time.time()) + 3600),
                              "token_type": "Bearer"})

        def authority(self, fields):
            right = (fields.get("grant_type") == "client_credentials" and fields.get("client_id") == CLIENT
                     and fields.get("scope") == "https://storage.azure.com/.default"
                     and (fields.get("client_secret") == SECRET
                          or (fields.get("client_assertion") == ASSERTION
                              and fields.get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")))
            return self.hand_out() if right else self.answer(401, {"error": "invalid_client",
                                                                   "error_description": "AADSTS7000215: no such client secret\r\nTrace: x"})

        def blob(self, name, query):
            if self.headers.get("Authorization") != f"Bearer {azure.token}" or not self.headers.get("x-ms-version"):
                return self.answer(401, "<Error><Code>InvalidAuthenticationInfo</Code></Error>", [("x-ms-error-code",
                                                                                                  "InvalidAuthenticationInfo")])
            if query.get("comp") == "list":
                return self.answer(200, azure.listing(query.get("prefix", "")))
            body = azure.blobs.get(name)
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if body is None or not wanted:
                return self.answer(404)
            begin, end = int(wanted[1]), min(int(wanted[2]) + 1, len(body))
            if begin >= len(body):
                return self.answer(416)
            return self.answer(206, body[begin:end], [("ETag", '"0x1"'), ("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")])

    return Handler
