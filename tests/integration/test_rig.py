# SPDX-License-Identifier: Apache-2.0
"""The rig itself: what other tests measure with must be right, and must leave nothing behind."""
import json
import math
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import pytest

from tests.rig import growth, reference, workload
from tests.rig.bucket import Bucket, keys_of
from tests.rig.nginx import Nginx

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "root" / "a b").mkdir(parents=True)
    (tmp_path / "root" / "a b" / "file.txt").write_bytes(b"0123456789")
    return tmp_path / "root"


def get(url, ranges=None, context=None):
    request = urllib.request.Request(url, headers={"Range": f"bytes={ranges}"} if ranges else {})
    with urllib.request.urlopen(request, context=context) as answer:
        return answer.status, answer.read()


def test_lists_as_json_and_serves_ranges(directory):
    with Nginx(directory) as nginx:
        listing = json.loads(get(nginx.url + "/")[1])
        assert [(entry["name"], entry["type"]) for entry in listing] == [("a b", "directory")]
        assert get(nginx.url + "/a%20b/file.txt", "3-5") == (206, b"345")


def test_log_counts_requests_behind_a_mark(directory):
    with Nginx(directory) as nginx:
        get(nginx.url + "/")
        mark = nginx.mark()
        get(nginx.url + "/a%20b/file.txt", "3-5")
        with pytest.raises(urllib.error.HTTPError):
            get(nginx.url + "/none")
        first, second = nginx.requests(mark)
        assert (first.method, first.path, first.range, first.status, first.body_bytes) == (
            "GET", "/a%20b/file.txt", "bytes=3-5", 206, 3)
        assert (second.path, second.range, second.status) == ("/none", "-", 404)
        assert len(nginx.requests()) == 3


def list_bucket(nginx, **arguments):
    """The texts of one page by their tags."""
    page = xml.etree.ElementTree.fromstring(get(nginx.url + "/logs?" + urllib.parse.urlencode({"list-type": 2, **arguments}))[1])
    found = {}
    for element in page.iter():
        found.setdefault(element.tag.rpartition("}")[2], []).append(element.text)
    return found


def test_bucket_lists_in_pages_as_s3_does(directory):
    for number in range(7):
        (directory / f"n{number}").write_bytes(b"x" * number)
    with Nginx(directory, bucket=Bucket("logs", keys_of(directory))) as nginx:
        page = list_bucket(nginx)
        assert page["Key"] == ["a%20b/file.txt"] + [f"n{number}" for number in range(7)]
        assert page["Size"] == ["10"] + [str(number) for number in range(7)]
        assert page["IsTruncated"] == ["false"] and "NextContinuationToken" not in page
        first = list_bucket(nginx, **{"max-keys": 3})
        assert first["Key"] == ["a%20b/file.txt", "n0", "n1"] and first["IsTruncated"] == ["true"]
        second = list_bucket(nginx, **{"max-keys": 3, "continuation-token": first["NextContinuationToken"][0]})
        assert second["Key"] == ["n2", "n3", "n4"]
        assert list_bucket(nginx, **{"start-after": "n4"})["Key"] == ["n5", "n6"]
        assert list_bucket(nginx, prefix="n")["KeyCount"] == ["7"]
        levels = list_bucket(nginx, delimiter="/")
        assert levels["Prefix"][1:] == ["a%20b/"] and len(levels["Key"]) == 7
        assert get(nginx.url + "/logs/a%20b/file.txt", "3-5") == (206, b"345")


def test_https_is_proved_by_its_certificate(directory):
    with Nginx(directory, tls=True) as nginx:
        context = ssl.create_default_context(cafile=str(nginx.certificate))
        assert get(nginx.tls_url + "/a%20b/file.txt", context=context) == (200, b"0123456789")
        with pytest.raises(urllib.error.URLError):
            get(nginx.tls_url + "/")


def test_leaves_nothing_behind(directory):
    with Nginx(directory) as nginx:
        pid, run = nginx.process.pid, nginx.run
    assert not run.exists()
    assert not os.path.exists(f"/proc/{pid}")


def test_delays_are_lognormal(directory):
    """By what nginx says that it waited. 400 samples: the logarithms' quantiles have errors of 0.034 (p50) and 0.046 (p90)."""
    p50_ms, p90_ms = 1, 2
    delays = []
    with Nginx(directory, p50_ms, p90_ms) as nginx:
        for _ in range(400):
            with urllib.request.urlopen(nginx.slow_url + "/a%20b/file.txt") as answer:
                delays.append(float(answer.headers["X-Delay-Ms"]))
        waited = [request.seconds * 1000 for request in nginx.requests()]
    assert all(really >= said - 2 for really, said in zip(waited, delays))  # the log counts whole milliseconds
    delays.sort()
    assert abs(math.log(delays[200] / p50_ms)) < 0.2
    assert abs(math.log(delays[360] / p90_ms)) < 0.25


def test_workload_is_read_by_tensorboard(tmp_path):
    paths = workload.write(tmp_path / "logs", files=3, file_bytes=5000)
    assert len(paths) == 3
    assert all(4800 <= path.stat().st_size <= 5000 + 100 for path in paths)
    rows = list(reference.scalars_of_all(paths))
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert len({row[0] for row in rows}) == 3
    assert {row[5] for row in rows} == set(workload.TAGS)
    for name in {row[0] for row in rows}:
        offsets = [row[1] for row in rows if row[0] == name]
        assert offsets == sorted(set(offsets)) and offsets[-1] < 5000


def test_copies_have_the_same_bytes(tmp_path):
    paths = workload.write(tmp_path / "logs", files=2, file_bytes=2000)
    workload.write_copies(tmp_path / "many", paths, 5)
    copies = sorted((tmp_path / "many").iterdir())
    assert len(copies) == 5
    assert [copy.read_bytes() for copy in copies[:2]] == [path.read_bytes() for path in paths]


@pytest.mark.parametrize("what, shape", [(what, shape) for what, shape, _ in growth.SHAPES if shape is not growth.headers])
def test_growing_files_have_their_values(tmp_path, what, shape):
    size = growth.write(tmp_path / "run", shape, 20)
    path = next((tmp_path / "run").iterdir())
    assert path.stat().st_size == size
    assert [value for *_, value in reference.scalars(path, "file")] == [float(number) for number in range(20)]


def test_demo_compares_every_record():
    """Of files in one directory, which are one run to TensorBoard: the demo must not leave out what restarts withdraw."""
    done = subprocess.run([sys.executable, TOP / "scripts/demo", "--files", "6"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr + done.stdout
    assert f"{6 * 836} equal to TensorBoard's, 0 missing, 0 different" in done.stdout
