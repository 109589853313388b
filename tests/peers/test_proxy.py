# SPDX-License-Identifier: Apache-2.0
"""http:// and https:// through Apache as a forward proxy, which wants a login."""
import urllib.parse

import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, write_tree
from tests.rig import peer
from tests.rig.apache import PASSWORD, USER
from tests.rig.forward import Forward
from tests.rig.nginx import Nginx


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def nginx(tree):
    with Nginx(tree, tls=True) as nginx:
        yield nginx


@pytest.fixture(scope="module")
def forward():
    try:
        with Forward() as forward:
            yield forward
    except peer.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["http_proxy", "https_proxy"])
def server(request, nginx):
    """(URL, the variable of its proxy, what else the environment needs)."""
    return (nginx.url if request.param == "http_proxy" else nginx.tls_url), request.param, {"CURL_CA_BUNDLE": str(nginx.certificate)}


def test_every_record_arrives(forward, server, tree):
    url, variable, environment = server
    before = len(forward.requests())
    proxy = f"http://{USER}:{urllib.parse.quote(PASSWORD)}@{forward.host}"
    assert rows(headrace("dump", url, env={**environment, variable: proxy}).stdout) == expected_rows(tree)
    asked = forward.requests()[before:]
    if variable == "http_proxy":
        assert len(asked) == 1 + 6 + 6 and all(status < 300 and line.startswith(f"GET {url}/") for status, line in asked)
    else:
        assert asked and all((status, line) == (200, f"CONNECT {url.removeprefix('https://')} HTTP/1.1") for status, line in asked)


@pytest.mark.parametrize("login", ["", f"{USER}:wrong@"], ids=["none", "wrong"])
def test_a_login_that_the_proxy_does_not_take(forward, server, login):
    url, variable, environment = server
    result = headrace("ls", url, code=3, env={**environment, variable: f"http://{login}{forward.host}"})
    assert f"The proxy http://{forward.host} ({variable}) answered 407" in result.stderr.decode() and b"wrong" not in result.stderr
