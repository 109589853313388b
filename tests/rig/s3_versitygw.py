# SPDX-License-Identifier: Apache-2.0
"""Versity's S3 gateway over a directory: strict signatures. It is built with Go, once, which takes minutes.

    with VersityGateway() as gateway:
        gateway.s3                  a boto3 client with all rights
        gateway.environment()       what a program needs to get there
"""
from tests.rig import peer
from tests.rig.nginx import LOOPBACK, free_ports
from tests.rig.s3_moto import REGION, environment_of, put_directory

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


class VersityGateway(peer.Peer):
    key, secret, bucket = "GATEWAYKEY0000000001", "gateway/secret+key", "logs"

    def start(self):
        import boto3
        program = peer.go_program("versitygw", MODULE)
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        (self.run / "data").mkdir()
        process = self.spawn("versitygw", program, "--port", f"{LOOPBACK}:{port}", "--region", REGION, "--quiet", "posix",
                             self.run / "data", env={"ROOT_ACCESS_KEY": self.key, "ROOT_SECRET_KEY": self.secret})
        self.wait_for_answer(self.url, process)
        self.s3 = boto3.client("s3", endpoint_url=self.url, region_name=REGION, aws_access_key_id=self.key,
                               aws_secret_access_key=self.secret)
        self.s3.create_bucket(Bucket=self.bucket)

    def put(self, prefix, directory):
        put_directory(self.s3, self.bucket, prefix, directory)

    def environment(self, key=None, secret=None, **options):
        return environment_of(self.url, key or self.key, secret or self.secret, **options)
