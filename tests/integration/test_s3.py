# SPDX-License-Identifier: Apache-2.0
"""s3:// on moto. Servers that take longer to have: tests/peers/test_s3.py."""
import pytest

from tests.integration.hrclient import Client
from tests.integration.s3_tests import NAME, S3RightsTests
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events, write_tree  # noqa: F401

pytest.importorskip("moto", reason="moto is installed with Python 3.11 and later only")


class TestMoto(S3RightsTests):
    # Its policies know no conditions; and no route of it has a key with a newline.
    has_conditions = False

    @pytest.fixture(scope="class")
    def server(self):
        from tests.rig.s3_moto import Moto
        with Moto() as moto:
            yield moto

    @staticmethod
    def states(client):
        return {run["run"]: run["state"] for run in client.call("runs")["runs"]}

    def test_archived_objects_are_told_and_read_when_they_are_brought_back(self, server, tmp_path, start, monkeypatch):  # noqa: F811
        classes = {"standard": "STANDARD", "instant": "GLACIER_IR", "cold": "GLACIER", "coldest": "DEEP_ARCHIVE"}
        for run, storage in classes.items():
            written = tmp_path / "logs" / run / NAME
            write_events(written, [run], 10)
            server.s3.put_object(Bucket=server.bucket, Key=f"archive/{run}/{NAME}", Body=written.read_bytes(), StorageClass=storage)
        url = f"s3://{server.bucket}/archive"

        listed = headrace("ls", url, env=server.environment(), code=1)
        assert listed.stdout.count(b" archived ") == 2 and b"4 runs, 4 files" in listed.stdout
        assert listed.stderr.count(b"restore it first (aws s3api restore-object") == 2 and b"unreadable" not in listed.stdout
        verified = headrace("verify", url, env=server.environment(), code=1)
        assert b"2 unreadable" in verified.stdout and b"cold/" in verified.stdout

        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        daemon = start(url)
        with Client(daemon.socket_path) as client:
            loaded = client.call("wait_loaded")
            assert sorted(failure["code"] for failure in loaded["failed"]) == ["archived", "archived"]
            assert self.states(client) == {"standard": "loaded", "instant": "loaded", "cold": "archived", "coldest": "archived"}
            (source,) = client.call("sources")["sources"]
            assert (source["archived"], source["failed"], source["settled"]) == (2, 0, 4)
            status = headrace("status", "--socket", daemon.socket_path, code=1).stdout
            assert b"archived 2" in status and b"unreadable" not in status

            # Back in another class: the listing says so. Back for some days: it does not, but the next try does.
            server.s3.put_object(Bucket=server.bucket, Key=f"archive/cold/{NAME}", Body=(tmp_path / "logs/cold" / NAME).read_bytes())
            server.s3.restore_object(Bucket=server.bucket, Key=f"archive/coldest/{NAME}", RestoreRequest={"Days": 1})
            client.call("reload")
            assert client.call("wait_loaded")["failed"] == []
            assert set(self.states(client).values()) == {"loaded"}
        dumped = headrace("dump", "--socket", daemon.socket_path, url).stdout
        assert rows(dumped) == expected_rows(tmp_path / "logs")


class TestAmazon:
    """moto behind the names of AWS's own hosts: what goes over the wire there. Signatures cover the host, and moto checks them."""

    @pytest.fixture(scope="class")
    def moto(self, tmp_path_factory):
        from tests.rig.s3_moto import Moto
        with Moto() as server:
            server.put("exp", write_tree(tmp_path_factory.mktemp("logs")))
            server.s3.create_bucket(Bucket="with.dots")
            server.s3.put_object(Bucket="with.dots", Key=f"exp/{NAME}", Body=server.s3.get_object(
                Bucket=server.bucket, Key="exp/run0/events.out.tfevents.1714557600.host")["Body"].read())
            yield server

    @pytest.fixture
    def amazon(self, moto, tmp_path):
        from tests.rig.amazon import Amazon
        with Amazon(moto.url, tmp_path) as server:
            yield server

    @staticmethod
    def ls(moto, amazon, url, **options):
        return headrace("ls", url, env={**moto.environment(), "AWS_ENDPOINT_URL_S3": "", **amazon.environment()}, **options)

    def test_the_bucket_is_a_part_of_the_host(self, moto, amazon):
        assert b"6 runs, 6 files" in self.ls(moto, amazon, "s3://logs/exp").stdout
        host = "logs.s3.us-east-1.amazonaws.com"
        assert set(amazon.hosts) == {(host + ":443", host, host)} and len(amazon.hosts) >= 7

    def test_a_name_that_no_certificate_covers_is_a_part_of_the_path(self, moto, amazon):
        assert b"1 run, 1 file" in self.ls(moto, amazon, "s3://with.dots/exp").stdout
        host = "s3.us-east-1.amazonaws.com"
        assert set(amazon.hosts) == {(host + ":443", host, host)}

    def test_the_certificate_is_checked(self, moto, amazon, tmp_path):
        """That of another region is no good."""
        environment = {**moto.environment(region="eu-west-1"), "AWS_ENDPOINT_URL_S3": "", **amazon.environment()}
        said = headrace("ls", "s3://logs/exp", code=3, env=environment).stderr.decode()
        assert "certificate" in said and not amazon.hosts
