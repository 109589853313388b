# SPDX-License-Identifier: Apache-2.0
"""What must hold on every S3 server. A class of tests for each server inherits them and has a fixture `server` (tests/rig/s3_*.py)."""
import os
import pathlib
import subprocess
import time

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows, wanted_requests
from tests.integration.test_protocol import expected_rows, write_events, write_tree

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
NAME = "events.out.tfevents.1.host"

# Keys that were ever decoded twice, split, or taken for something else, below a run each.
HARD_NAMES = ["a b", "a+b", "a%2Bb", "a%b", "a&b=c", "a?b", "a#b", "ü", "日本", "a'b\"c", "a<b>c", "a;b", "a:b@c", "~.-_", "x" * 200, "a\\b",
              "a=b,c", "[a]{b}|^`", "a..b", "$HOME", "!*()"]


def least_rights(bucket, prefix):
    """What docs/FETCH.md says is needed, and nothing else."""
    return [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{bucket}",
             "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*"]}}},
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*"}]


class S3Tests:
    hard_names = HARD_NAMES
    wrong_secret = "SignatureDoesNotMatch"  # what it says of one

    @pytest.fixture(scope="class")
    def tree(self, tmp_path_factory):
        return write_tree(tmp_path_factory.mktemp("logs"))

    @pytest.fixture(scope="class")
    def filled(self, server, tree):
        server.put("exp", tree)
        # A neighbour whose name begins as the prefix does is not below it.
        server.put("exp2", tree)
        return server

    @staticmethod
    def url(server, prefix="exp"):
        return f"s3://{server.bucket}/{prefix}"

    def test_every_record_arrives(self, filled, tree):
        output = headrace("dump", self.url(filled), env=filled.environment()).stdout
        assert rows(output) == expected_rows(tree)

    def test_one_listing_and_one_read_a_file(self, filled):
        output = headrace("ls", self.url(filled), env=filled.environment()).stdout.decode()
        assert "6 runs, 6 files" in output
        assert f"as access key ...{filled.key[-4:]} (environment)" in output
        assert wanted_requests(self.url(filled), env=filled.environment()) == (1, 6)

    def test_the_goldens_fixtures_are_dumped_as_local_files_are(self, server):
        fixtures = TOP / "tests/data/fixtures"
        server.put("fixtures", fixtures)
        local = headrace("dump", fixtures, code=1)
        assert headrace("dump", self.url(server, "fixtures"), code=1, env=server.environment()).stdout == local.stdout

    def test_hard_keys(self, server, tmp_path):
        write_events(tmp_path / NAME, ["loss"], 3)
        for name in self.hard_names:
            server.s3.put_object(Bucket=server.bucket, Key=f"hard/{name}/{NAME}", Body=(tmp_path / NAME).read_bytes())
        found = rows(headrace("dump", self.url(server, "hard"), env=server.environment()).stdout)
        assert sorted(found) == sorted(f"{name}/{NAME}" for name in self.hard_names)
        assert all(len(some) == 3 for some in found.values())

    def test_markers_are_no_files_and_empty_files_are_not_read(self, server, tmp_path):
        write_events(tmp_path / NAME, ["loss"], 3)
        for key, body in ((f"marks/tfevents.d/", b""), ("marks/events.tfevents_$folder$", b""), (f"marks/empty/{NAME}", b""),
                          (f"marks/full/{NAME}", (tmp_path / NAME).read_bytes())):
            server.s3.put_object(Bucket=server.bucket, Key=key, Body=body)
        output = headrace("ls", self.url(server, "marks"), env=server.environment()).stdout.decode()
        assert "2 runs, 2 files" in output
        assert wanted_requests(self.url(server, "marks"), env=server.environment()) == (1, 1)
        assert "empty" in [line.split()[1] for line in output.splitlines() if line.startswith("empty")]

    def test_a_wrong_secret(self, filled):
        secret = "not/the+secret/at-all"
        done = headrace("ls", self.url(filled), code=3, env=filled.environment(secret=secret))
        said = done.stderr.decode()
        assert "403" in said and self.wrong_secret in said and "prefix=exp/" in said
        assert secret not in said and filled.secret not in said

    def test_a_bucket_that_is_not_there(self, filled):
        said = headrace("ls", "s3://headrace-nowhere/exp", code=3, env=filled.environment()).stderr.decode()
        assert "404" in said and "NoSuchBucket" in said

    def test_a_prefix_without_files(self, filled):
        assert b"0 runs, 0 files" in headrace("ls", self.url(filled, "none"), env=filled.environment()).stdout

    def test_check(self, filled):
        done = subprocess.run([BUILD / "headraced", "--check", "--set", f"sources={self.url(filled)}"], capture_output=True, timeout=60,
                              env={**os.environ, **filled.environment()})
        assert f"{self.url(filled)}: reachable, 6 runs, 6 files" in done.stdout.decode()

    def test_growth_is_followed(self, server, tmp_path, start, monkeypatch):
        write_events(tmp_path / NAME, ["loss"], 10)
        data = (tmp_path / NAME).read_bytes()
        server.s3.put_object(Bucket=server.bucket, Key=f"grows/{NAME}", Body=data[:len(data) // 2])
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        daemon = start("--set", "poll=0.1", self.url(server, "grows"))
        with Client(daemon.socket_path) as client:
            server.s3.put_object(Bucket=server.bucket, Key=f"grows/{NAME}", Body=data)
            until = time.monotonic() + 60
            while client.call("files")["files"][0]["loaded_bytes"] < len(data):
                assert time.monotonic() < until
                time.sleep(0.05)

    def test_a_source_that_fails_heals(self, server, tree, start, monkeypatch):
        bucket = f"{server.bucket}-late"
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        daemon = start("--set", "poll=0.1", f"s3://{bucket}/exp")
        with Client(daemon.socket_path) as client:
            until = time.monotonic() + 60
            while client.call("sources")["sources"][0]["state"] != "failing":
                assert time.monotonic() < until
                time.sleep(0.05)
            server.s3.create_bucket(Bucket=bucket)
            server.s3.put_object(Bucket=bucket, Key=f"exp/{NAME}", Body=next(iter(sorted(tree.rglob("*tfevents*")))).read_bytes())
            client.call("reload")
            while client.call("sources")["sources"][0]["state"] != "ok":
                assert time.monotonic() < until
                time.sleep(0.05)
            client.call("wait_loaded")
            assert client.call("files")["files"][0]["loaded_bytes"] > 0


class S3RightsTests(S3Tests):
    """Where users have policies: the fixture has user(STATEMENTS)."""
    has_conditions = True  # its policies know s3:prefix

    def test_the_least_rights_are_enough(self, filled, tree):
        statements = least_rights(filled.bucket, "exp")
        if not self.has_conditions:
            statements[0].pop("Condition")
        key, secret = filled.user(statements)
        environment = filled.environment(key, secret)
        assert rows(headrace("dump", self.url(filled), env=environment).stdout) == expected_rows(tree)
        if self.has_conditions:
            said = headrace("ls", self.url(filled, "exp2"), code=3, env=environment).stderr.decode()
            assert f"needs s3:ListBucket on arn:aws:s3:::{filled.bucket} (s3:prefix exp2/*)" in said

    def test_without_the_right_to_list(self, filled):
        key, secret = filled.user(least_rights(filled.bucket, "exp")[1:])
        said = headrace("ls", self.url(filled), code=3, env=filled.environment(key, secret)).stderr.decode()
        assert said.startswith(f"headrace: {self.url(filled)}: 403 AccessDenied on ListObjectsV2 prefix=exp/ (")
        assert said.count("AccessDenied") == 1
        assert f"needs s3:ListBucket on arn:aws:s3:::{filled.bucket} (s3:prefix exp/*)" in said
        assert f"s3:GetObject on arn:aws:s3:::{filled.bucket}/exp/*" in said
        assert key[-4:] in said and secret not in said

    def test_without_the_right_to_read(self, filled):
        statements = least_rights(filled.bucket, "exp")[:1]
        statements[0].pop("Condition")
        key, secret = filled.user(statements)
        done = headrace("ls", self.url(filled), code=1, env=filled.environment(key, secret))
        assert b"6 runs, 6 files" in done.stdout and done.stderr.count(b"AccessDenied") >= 6
