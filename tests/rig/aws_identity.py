# SPDX-License-Identifier: Apache-2.0
"""The servers that hand out AWS credentials, on a free port of the loopback, in a thread of this process.

    with AwsIdentity(key, secret, token) as aws:
        aws.url                 metadata of an instance, /container, /sts and /sso below it
        aws.seen                requests, as "METHOD PATH"
        aws.ttl_s               life of what is handed out from now on
        aws.fail = N            the next N requests are answered with 500
        aws.refusals = [(STATUS, BODY), ...]    so are these, in their way
        aws.tokens = [TOKEN, ...]       session tokens of what is handed out, one after the other; the last one from then on

It hands out the key that it was given. IMDSv2: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html; STS:
https://docs.aws.amazon.com/STS/latest/APIReference/; portal of IAM Identity Center:
https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/.
"""
import datetime
import http.server
import json
import threading
import urllib.parse

INSTANCE_TOKEN, CONTAINER_TOKEN, WEB_TOKEN, SSO_TOKEN = "instance-token", "container-token", "web-token", "sso-token"
ROLE = "ml-read"


def is_signed(headers, method, url, body, key, secret, token):
    """By the reckoning of botocore."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    given = headers.get("Authorization", "")
    if f"Credential={key}/" not in given:
        return False
    region, service = given.split("Credential=")[1].split(",")[0].split("/")[2:4]
    request = AWSRequest(method, url, data=body, headers={"Host": headers["Host"], "X-Amz-Date": headers["x-amz-date"], **(
        {"X-Amz-Security-Token": token} if token else {})})
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(key, secret, token), service, region)
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return given.endswith(f"Signature={signature}")


class AwsIdentity:
    def __init__(self, key, secret, token=None, signer=None):
        """signer: key, secret and token with which roles must be asked for."""
        self.key, self.secret, self.token, self.signer = key, secret, token, signer
        self.ttl_s, self.fail, self.seen = 3600, 0, []
        self.refusals, self.tokens = [], [token]

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def expiration(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ttl_s)

    def next_token(self):
        self.token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]

    def as_json(self):
        self.next_token()
        return {"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": self.key, "SecretAccessKey": self.secret,
                "Expiration": self.expiration().strftime("%Y-%m-%dT%H:%M:%SZ"), **({"Token": self.token} if self.token else {})}

    def as_xml(self, action, role):
        name = role.rpartition("/")[2]
        self.next_token()
        return (f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials><AccessKeyId>{self.key}'
                f"</AccessKeyId><SecretAccessKey>{self.secret}</SecretAccessKey><SessionToken>{self.token or 'session'}</SessionToken>"
                f"<Expiration>{self.expiration().strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiration></Credentials><AssumedRoleUser><Arn>"
                f"arn:aws:sts::123456789012:assumed-role/{name}/session</Arn></AssumedRoleUser></{action}Result></{action}Response>")


def handler_of(aws):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, status, body=""):
            data = body if isinstance(body, str) else json.dumps(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data.encode())))
            self.end_headers()
            self.wfile.write(data.encode())

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            path = urllib.parse.urlsplit(self.path)
            aws.seen.append(f"{self.command} {path.path}")
            if aws.fail > 0:
                aws.fail -= 1
                return self.answer(500, "failed on command")
            if aws.refusals:
                return self.answer(*aws.refusals.pop(0))
            for prefix, answer in (("/latest/", self.instance), ("/container", self.container), ("/sts", self.sts),
                                   ("/sso/federation/credentials", self.sso)):
                if path.path.startswith(prefix):
                    return answer(path.path, dict(urllib.parse.parse_qsl(path.query)), body)
            return self.answer(404)

        do_GET = do_PUT = do_POST = handle_any

        def instance(self, path, _query, _body):
            if path == "/latest/api/token":
                right = self.command == "PUT" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
                return self.answer(200, INSTANCE_TOKEN) if right else self.answer(400)
            if self.headers.get("X-aws-ec2-metadata-token") != INSTANCE_TOKEN:
                return self.answer(401)
            if path == "/latest/meta-data/iam/security-credentials/":
                return self.answer(200, ROLE)
            if path == f"/latest/meta-data/iam/security-credentials/{ROLE}":
                return self.answer(200, aws.as_json())
            return self.answer(404)

        def container(self, _path, _query, _body):
            return self.answer(200, aws.as_json()) if self.headers.get("Authorization") == CONTAINER_TOKEN else self.answer(403)

        def sts(self, _path, _query, body):
            fields = dict(urllib.parse.parse_qsl(body))
            action, role = fields.get("Action", ""), fields.get("RoleArn", "")
            if action == "AssumeRoleWithWebIdentity":
                right = fields.get("WebIdentityToken") == WEB_TOKEN
            else:
                right = action == "AssumeRole" and aws.signer and is_signed(
                    self.headers, "POST", f"{aws.url}{self.path}", body, *aws.signer)
            if right and fields.get("Version") == "2011-06-15" and fields.get("RoleSessionName"):
                return self.answer(200, aws.as_xml(action, role))
            return self.answer(403, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not for you"
                                    "</Message></Error></ErrorResponse>")

        def sso(self, _path, query, _body):
            if self.headers.get("x-amz-sso_bearer_token") != SSO_TOKEN or query != {"role_name": "Research", "account_id": "123456789012"}:
                return self.answer(401, {"message": "Session token not found or invalid"})
            aws.next_token()
            milliseconds = int(aws.expiration().timestamp() * 1000)
            return self.answer(200, {"roleCredentials": {"accessKeyId": aws.key, "secretAccessKey": aws.secret,
                                                         "sessionToken": aws.token or "", "expiration": milliseconds}})

    return Handler
