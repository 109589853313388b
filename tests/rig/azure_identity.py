# SPDX-License-Identifier: Apache-2.0
"""What hands out tokens of Microsoft Entra ID, and a blob service that wants one, on a port of the loopback, in a thread of this process.

    with AzureIdentity({"exp/run/events...": bytes, ...}) as azure:
        azure.url               authority (/TENANT/oauth2/v2.0/token), metadata (/metadata/...), App Service (/msi), blobs (/account)
        azure.seen              requests, as "METHOD PATH"
        azure.key = BASE64      blobs are for who signs with it (Shared Key), too
        azure.is_public = True  blobs are for everybody
        azure.has_identity = False      the metadata service is there, but the machine has no identity
        azure.refusals = [(STATUS, BODY), ...]  of the next requests for tokens
        azure.rotate()          tokens that were handed out are expired; the next one is another one

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow,
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token,
https://learn.microsoft.com/rest/api/storageservices/list-blobs,
https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""
import base64
import email.utils
import hashlib
import hmac
import http.server
import json
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

TENANT, CLIENT, SECRET, ASSERTION, SERVICE_SECRET, TOKEN = "tenant", "client", "client secret", "assertion", "service secret", "a-bearer-token"


def shared_key(account, key, method, target, headers):
    """The Authorization header of a request without a body, as "Authorize with Shared Key" has it, for version 2015-02-21 and later."""
    standard = ["Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date", "If-Modified-Since",
                "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"]
    lines = [method, *(headers.get(name) or "" for name in standard)]
    lines += sorted(f"{name.lower()}:{' '.join(value.split())}" for name, value in headers.items() if name.lower().startswith("x-ms-"))
    url = urllib.parse.urlsplit(target)
    lines.append(f"/{account}{url.path}")
    values = {}
    for name, value in urllib.parse.parse_qsl(url.query, keep_blank_values=True):
        values.setdefault(name.lower(), []).append(value)
    lines += [f"{name}:{','.join(sorted(values[name]))}" for name in sorted(values)]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    return f"SharedKey {account}:{base64.b64encode(digest).decode()}"


class AzureIdentity:
    def __init__(self, blobs):
        self.blobs, self.seen = blobs, []
        self.token, self.tokens = TOKEN, 1
        self.key, self.is_public, self.has_identity, self.refusals = None, False, True, []
        self.lock = threading.Lock()
        self.reads = []  # blobs that were read
        self.clients = []  # client_id of each request to the metadata service, None: it had none
        self.rotate_after = None  # so many reads of blobs, once

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def read(self, name):
        self.reads.append(name)
        if len(self.reads) == self.rotate_after:
            self.rotate()

    def rotate(self):
        self.tokens += 1
        self.token = f"{TOKEN}-{self.tokens}"

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
            if azure.refusals and not url.path.startswith("/account/"):
                return self.answer(*azure.refusals.pop(0))
            if url.path == f"/{TENANT}/oauth2/v2.0/token":
                return self.authority(fields)
            if url.path == "/metadata/identity/oauth2/token":
                azure.clients.append(query.get("client_id"))
                right = self.headers.get("Metadata") == "true" and query.get("resource") == "https://storage.azure.com/"
                if not azure.has_identity:
                    return self.answer(400, {"error": "invalid_request", "error_description": "Identity not found"})
                return self.hand_out() if right else self.answer(400, {"error": "invalid_request"})
            if url.path == "/msi":
                return self.hand_out() if self.headers.get("X-IDENTITY-HEADER") == SERVICE_SECRET else self.answer(401)
            if url.path.startswith("/account/logs"):
                with azure.lock:
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
            given = self.headers.get("Authorization")
            good = [f"Bearer {azure.token}"]
            if azure.key and given and given.startswith("SharedKey "):
                good.append(shared_key("account", azure.key, self.command, self.path, self.headers))
            if azure.is_public:
                good.append(None)
            if given not in good or not self.headers.get("x-ms-version"):
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
            azure.read(name)
            return self.answer(206, body[begin:end], [("ETag", '"0x1"'), ("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")])

    return Handler
