# SPDX-License-Identifier: Apache-2.0
"""What gs:// needs of Google, on a free port of the loopback: objects.list and media reads, token endpoints, a metadata server.

    with Google({"exp/a.tfevents": b"..."}) as google:
        google.environment()            of a program that has no credentials, and sees nothing of this machine's
        google.service_account(PATH)    writes a key file that the token endpoint knows
        google.need_token = True        who has no token that was handed out gets a 401
        google.rotate_after = N         after so many reads all tokens that were handed out are bad
        google.asked                    requests for tokens and metadata, as paths

The JWT of a service account is checked with another implementation (Python's cryptography). Reference: "Objects: list" and "Objects: get"
of Cloud Storage's JSON API, RFC 7523, RFC 8693, "About VM metadata".
"""
import base64
import http.server
import json
import threading
import time
import urllib.parse

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

EMAIL = "reader@project.iam.gserviceaccount.com"
OTHER = "other@project.iam.gserviceaccount.com"
SECRETS = {"client_secret": "client-secret-7f3a", "refresh_token": "refresh-secret-91bc"}
SUBJECT = "subject-secret-55d0"
BUCKET = "logs"


def unbase64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.google = self.server.google

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, reason, message="No."):
        self.answer(status, {"error": {"code": status, "message": message, "errors": [{"domain": "global", "reason": reason,
                                                                                      "message": message}]}})

    # ---- Storage

    def is_allowed(self):
        google = self.google
        if google.need_token and self.headers.get("Authorization", "")[len("Bearer "):] not in google.good_tokens:
            self.refuse(401, "authError" if "Authorization" in self.headers else "required")
        elif google.refusal:
            self.refuse(*google.refusal)
        elif google.payer and self.query.get("userProject") != google.payer:
            self.refuse(400, "required", "Bucket is a requester pays bucket but no user project provided.")
        else:
            return True
        return False

    def list_objects(self):
        query, google = self.query, self.google
        google.listings.append(query)
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        items, prefixes = {}, set()
        for name, data in google.objects.items():
            if not name.startswith(prefix) or name.encode() < query.get("startOffset", "").encode():
                continue
            if "endOffset" in query and name.encode() >= query["endOffset"].encode():
                continue
            if delimiter and delimiter in name[len(prefix):]:
                prefixes.add(prefix + name[len(prefix):].split(delimiter)[0] + delimiter)
            else:
                items[name] = {"name": name, "size": str(len(data)), "updated": "2026-11-30T12:00:00.123Z",
                               "generation": google.generation(name), "etag": "CAE=", "storageClass": "COLDLINE"}
        names = sorted([*items, *prefixes], key=str.encode)
        begin = int(query.get("pageToken", "0"))
        page = names[begin:begin + google.page]
        body = {}
        if any(name in items for name in page):
            body["items"] = [items[name] for name in page if name in items]
        if any(name in prefixes for name in page):
            body["prefixes"] = [name for name in page if name in prefixes]
        if begin + google.page < len(names):
            body["nextPageToken"] = str(begin + google.page)
        self.answer(200, body)

    def read_object(self, name):
        google = self.google
        google.reads.append(name)
        if len(google.reads) == google.rotate_after:
            google.good_tokens.clear()
        if name not in google.objects:
            return self.answer(404, b"No such object")
        generation = google.generation(name)
        if not google.ignores_match and self.query.get("ifGenerationMatch", generation) != generation:
            return self.refuse(412, "conditionNotMet")
        if google.replace_before_read:
            google.replaced += 1
            google.replace_before_read = False
            generation = google.generation(name)
        data = google.objects[name]
        begin, end = 0, len(data)
        wanted = self.headers.get("Range", "")
        if wanted:
            first, last = wanted[len("bytes="):].split("-")
            begin, end = int(first), min(int(last) + 1, len(data))
            if begin >= len(data):
                return self.answer(416, b"", Content_Range=f"bytes */{len(data)}")
        more = {"Content_Range": f"bytes {begin}-{end - 1}/{len(data)}"} if wanted else {}
        return self.answer(206 if wanted else 200, data[begin:end], x_goog_generation=generation, ETag='"CAE="', **more)

    # ---- Tokens

    def hand_out(self, name="access_token", **more):
        self.answer(200, {name: self.google.new_token(), **(more or {"expires_in": 3599, "token_type": "Bearer"})})

    def oauth(self):
        form, google = dict(urllib.parse.parse_qsl(self.body.decode())), self.google
        google.grants.append(form)
        kind = form["grant_type"].rsplit(":", 1)[-1]
        if google.token_refusal:
            return self.answer(*google.token_refusal)
        if kind == "jwt-bearer":
            head, claims, signature = form["assertion"].split(".")
            google.public_key.verify(unbase64(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
            head, claims = json.loads(unbase64(head)), json.loads(unbase64(claims))
            good = head == {"alg": "RS256", "typ": "JWT", "kid": "key-1"} and claims["iss"] == EMAIL and \
                claims["aud"] == f"{google.url}/token" and claims["exp"] == claims["iat"] + 3600 and \
                abs(claims["iat"] - time.time()) < 300 and claims["scope"].startswith("https://www.googleapis.com/auth/")
        elif kind == "refresh_token":
            good = form["client_id"] == "client-1" and all(form[name] == value for name, value in SECRETS.items())
        else:
            good = form["subject_token"] == SUBJECT and form["audience"] == "//iam/pool" and "scope" in form and \
                form["subject_token_type"] == "urn:ietf:params:oauth:token-type:jwt" and \
                form["requested_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
        return self.hand_out() if good else self.answer(400, {"error": "invalid_grant", "error_description": self.body.decode()})

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.google.asked.append(self.path)
        if self.path == "/token":
            self.oauth()
        elif self.path == f"/v1/projects/-/serviceAccounts/{OTHER}:generateAccessToken":
            if self.headers.get("Authorization", "")[len("Bearer "):] not in self.google.good_tokens:
                self.answer(403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}})
            else:
                json.loads(self.body)["scope"][0]
                self.hand_out("accessToken", expireTime=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)))
        else:
            self.answer(404)

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        if not parts.path.startswith("/storage/"):
            self.google.asked.append(parts.path)
        objects, metadata = f"/storage/v1/b/{BUCKET}/o", "/computeMetadata/v1/instance/service-accounts/default/"
        if parts.path == "/subject" and self.headers.get("X-Key") == "k":
            self.answer(200, {"value": SUBJECT})
        elif parts.path.startswith(metadata) and self.headers.get("Metadata-Flavor") == "Google" and self.google.has_metadata:
            self.hand_out() if parts.path == metadata + "token" else self.answer(200, EMAIL.encode())
        elif not parts.path.startswith("/storage/"):
            self.answer(404)
        elif not self.is_allowed():
            pass
        elif parts.path == objects:
            self.list_objects()
        elif parts.path.startswith(objects + "/") and "/" not in parts.path[len(objects) + 1:] and self.query.get("alt") == "media":
            self.read_object(urllib.parse.unquote(parts.path[len(objects) + 1:]))
        else:
            self.refuse(404, "notFound", "The specified bucket does not exist.")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class Google:
    def __init__(self, objects):
        self.objects = dict(objects)
        self.listings, self.reads, self.grants = [], [], []
        self.good_tokens, self.count, self.replaced, self.page = set(), 0, 0, 1000
        self.need_token = self.ignores_match = self.replace_before_read = self.has_metadata = False
        self.refusal = self.payer = self.token_refusal = self.rotate_after = None
        self.asked = []
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public_key = self.key.public_key()

    def __enter__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.google = self
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def generation(self, name):
        return str(1700000000000000 + len(self.objects[name]) + self.replaced)

    def new_token(self):
        self.count += 1
        self.good_tokens.add(f"ya29.token-{self.count}")
        return f"ya29.token-{self.count}"

    def environment(self, **more):
        return {"STORAGE_EMULATOR_HOST": self.url, "GOOGLE_APPLICATION_CREDENTIALS": "", "CLOUDSDK_CONFIG": "/nonexistent",
                "NO_GCE_CHECK": "", "GCE_METADATA_HOST": self.host, "GOOGLE_CLOUD_QUOTA_PROJECT": "", **more}

    def write(self, path, account):
        path.write_text(json.dumps(account))
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}

    def account(self):
        pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return {"type": "service_account", "client_email": EMAIL, "private_key": pem.decode(), "private_key_id": "key-1",
                "token_uri": f"{self.url}/token"}

    def user(self):
        return {"type": "authorized_user", "client_id": "client-1", "token_uri": f"{self.url}/token", **SECRETS}

    def federated(self, source):
        return {"type": "external_account", "audience": "//iam/pool", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": f"{self.url}/token", "credential_source": source}

    def impersonation_url(self):
        return f"{self.url}/v1/projects/-/serviceAccounts/{OTHER}:generateAccessToken"
