# SPDX-License-Identifier: Apache-2.0
"""s3:// on moto. Servers that take longer to have: tests/peers/test_s3.py."""
import pytest

from tests.integration.hrclient import Client
from tests.integration.s3_tests import NAME, S3RightsTests
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_events  # noqa: F401

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
