# SPDX-License-Identifier: Apache-2.0
"""moto as an S3 server on a free port of the loopback, which checks signatures and policies.

    with Moto() as moto:
        moto.s3                     a boto3 client with all rights
        moto.put("bucket", "prefix", DIRECTORY)
        moto.user(POLICY)           (access key, secret) of a user who may do that only
        moto.environment()          what a program needs to get there

It is slow (Python, one request at a time): for answers, not for figures. It ends the server that it started, and nothing else.
"""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

from tests.rig.nginx import LOOPBACK, free_ports

REGION = "us-east-1"
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def environment_of(endpoint, key, secret, token=None, region=REGION):
    """The variables of a user of that endpoint, and nothing of what the machine has for AWS."""
    clean = {name: "" for name in os.environ if name.startswith(("AWS_", "S3_"))}
    return {**clean, "AWS_ENDPOINT_URL_S3": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": region, "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true", **({"AWS_SESSION_TOKEN": token} if token else {})}


def put_directory(client, bucket, prefix, directory):
    """Each file below the directory, as an object below the prefix."""
    directory = pathlib.Path(directory)
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(directory)}", Body=path.read_bytes())


class Moto:
    def __init__(self, bucket="logs", region=REGION):
        self.bucket, self.region = bucket, region
        self.process = None
        self.users = 0

    def __enter__(self):
        import boto3
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "MOTO_S3_CUSTOM_ENDPOINTS": self.url, "INITIAL_NO_AUTH_ACTION_COUNT": "1000000"})
        try:
            self._wait_until_ready()
            self.client = lambda service, key="x", secret="x": boto3.client(
                service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret)
            self.iam = self.client("iam")
            self.key, self.secret = self.user([EVERYTHING])
            self.s3 = self.client("s3", self.key, self.secret)
            place = {} if self.region == REGION else {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
            self.s3.create_bucket(Bucket=self.bucket, **place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def _wait_until_ready(self, patience_s=60):
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError("moto ended at once")
            try:
                urllib.request.urlopen(self.url + "/moto-api/", timeout=5).read()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("moto does not answer")

    def check_rights(self, is_on=True):
        """From now on who asks is checked, or is not."""
        count = b"0" if is_on else b"1000000"
        urllib.request.urlopen(urllib.request.Request(self.url + "/moto-api/reset-auth", data=count, method="POST",
                                                      headers={"Content-Type": "text/plain"})).read()

    def user(self, statements):
        """A new user who may do what the statements say."""
        self.check_rights(False)
        self.users += 1
        name = f"user-{self.users}"
        self.iam.create_user(UserName=name)
        self.iam.put_user_policy(UserName=name, PolicyName="rights",
                                 PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": statements}))
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        self.check_rights()
        return key["AccessKeyId"], key["SecretAccessKey"]

    def put(self, prefix, directory):
        put_directory(self.s3, self.bucket, prefix, directory)

    def environment(self, key=None, secret=None, **options):
        return environment_of(self.url, key or self.key, secret or self.secret, **options)
