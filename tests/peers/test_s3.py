# SPDX-License-Identifier: Apache-2.0
"""s3:// on servers that check signatures as S3 does."""
import pytest

from tests.integration.hrclient import Client
from tests.integration.s3_tests import HARD_NAMES, S3RightsTests, S3Tests
from tests.integration.test_command import headrace, rows, wanted_requests
from tests.integration.test_protocol import expected_rows, start  # noqa: F401
from tests.rig import peer

pytest.importorskip("boto3", reason="boto3 is installed with Python 3.11 and later only")


def started(kind):
    try:
        with kind() as server:
            yield server
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


class TestCeph(S3RightsTests):
    hard_names = [*HARD_NAMES, "a\nb", "a//b", "../a", "x" * 900]
    wrong_secret = "AccessDenied"

    @pytest.fixture(scope="class")
    def server(self):
        from tests.rig.s3_ceph import Ceph
        yield from started(Ceph)

    def test_temporary_keys(self, filled, tree):
        key, secret, token = filled.session()
        output = headrace("dump", self.url(filled), env=filled.environment(key, secret, token=token)).stdout
        assert rows(output) == expected_rows(tree)
        said = headrace("ls", self.url(filled), code=3, env=filled.environment(key, secret, token="x" + token)).stderr.decode()
        assert token not in said and secret not in said

    def test_nobody_reads_what_is_public(self, server, tree, start, monkeypatch):  # noqa: F811
        """Though there are keys: they would be refused."""
        server.s3.create_bucket(Bucket="public", ACL="public-read")
        for path in tree.rglob("*tfevents*"):
            server.s3.put_object(Bucket="public", Key=f"exp/{path.relative_to(tree)}", Body=path.read_bytes(), ACL="public-read")
        for name, value in server.environment(secret="wrong").items():
            monkeypatch.setenv(name, value)
        assert b"403" in headrace("ls", "s3://public/exp", code=3).stderr
        daemon = start("--set", 'sources=[{"url": "s3://public/exp", "anonymous": true}]')
        with Client(daemon.socket_path) as client:
            client.call("wait_loaded")
            (source,) = client.call("sources")["sources"]
        assert (source["state"], source["identity"], source["files"], source["failed"]) == ("ok", "anonymous", 6, 0)

    def test_a_listing_of_several_pages(self, filled, tree):
        data = next(iter(sorted(tree.rglob("*tfevents*")))).read_bytes()
        for number in range(1010):
            filled.s3.put_object(Bucket=filled.bucket, Key=f"many/{number:04}/other", Body=b"")
        for run in ("0000", "0999", "1009"):
            filled.s3.put_object(Bucket=filled.bucket, Key=f"many/{run}/a.tfevents", Body=data)
        output = headrace("ls", self.url(filled, "many"), env=filled.environment()).stdout.decode()
        assert "3 runs, 3 files" in output
        assert wanted_requests(self.url(filled, "many"), env=filled.environment()) == (2, 3)


class TestVersityGateway(S3Tests):
    @pytest.fixture(scope="class")
    def server(self):
        from tests.rig.s3_versitygw import VersityGateway
        yield from started(VersityGateway)
