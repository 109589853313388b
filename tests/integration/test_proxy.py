# SPDX-License-Identifier: Apache-2.0
"""Proxies of the environment: what goes through them, and whose failure it is when they refuse."""
import json
import socket

import pytest

from tests.fault.proxy import Proxy
from tests.integration.hrclient import Client
from tests.integration.test_protocol import expected_rows, start, write_tree  # noqa: F401
from tests.integration.test_storage import Follower, serve  # noqa: F401
from tests.integration.test_web_login import failure, wait_for
from tests.rig.nginx import Nginx

pytestmark = pytest.mark.sanitize

VARIABLES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "logs", runs=3, steps=20)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def proxy():
    with Proxy() as proxy:
        yield proxy


@pytest.fixture(params=["http_proxy", "https_proxy"])
def server(request, tree, monkeypatch):
    """(URL of a server, the variable that its proxy is in)."""
    with Nginx(tree, tls=True) as nginx:
        monkeypatch.setenv("CURL_CA_BUNDLE", str(nginx.certificate))
        yield (nginx.url if request.param == "http_proxy" else nginx.tls_url), request.param


def test_all_goes_through_the_proxy(start, tree, server, proxy, monkeypatch):
    url, variable = server
    monkeypatch.setenv(variable, proxy.url)
    with Client(start(url).socket_path) as client:
        Follower(client).until(expected_rows(tree))
    if variable == "http_proxy":
        assert sum(asked == f"GET {url}/" for asked in proxy.asked) == 1 and len(proxy.asked) >= 1 + 3 + 3
    else:
        assert set(proxy.asked) == {f"CONNECT {url.removeprefix('https://')}"}


def test_a_name_that_only_the_proxy_knows(start, tree, serve, proxy, monkeypatch):
    """Nothing is resolved here: the name goes to the proxy as it is."""
    monkeypatch.setenv("http_proxy", proxy.url)
    with Client(start("http://only-the-proxy.invalid/").socket_path) as client:
        assert failure(client).startswith("502 ")
    assert proxy.asked[0] == "GET http://only-the-proxy.invalid/"


@pytest.mark.parametrize("exempt", ["127.0.0.1,localhost", "10.0.0.0/8, 127.0.0.0/9 .localhost", "*"])
def test_hosts_without_a_proxy(start, tree, server, proxy, monkeypatch, exempt):
    url, variable = server
    monkeypatch.setenv(variable, proxy.url)
    monkeypatch.setenv("no_proxy", exempt)
    with Client(start(url).socket_path) as client:
        Follower(client).until(expected_rows(tree))
    assert not proxy.asked


@pytest.mark.parametrize("exempt", ["10.0.0.0/8,ocalhost,27.0.0.1", "127.0.0.2/31,127.128.0.0/9,::1/128", "localhost.example.org"])
def test_lists_that_do_not_have_the_host(start, server, proxy, monkeypatch, exempt):
    url, variable = server
    monkeypatch.setenv(variable, proxy.url)
    monkeypatch.setenv("no_proxy", exempt)
    with Client(start(url).socket_path) as client:
        wait_for(lambda: client.call("status")["sources"][0]["state"] == "ok")
    assert proxy.asked


def test_a_login_for_the_proxy(start, tree, server, proxy, monkeypatch):
    url, variable = server
    proxy.login = ("me", "pass word")
    monkeypatch.setenv(variable, f"http://me:pass%20word@127.0.0.1:{proxy.port}")
    daemon = start("--set", "log.level=debug", url)
    with Client(daemon.socket_path) as client:
        Follower(client).until(expected_rows(tree))
        assert "pass" not in json.dumps(client.call("status"))
    assert set(proxy.logins) == {"me:pass word"} and "pass" not in daemon.stderr()


@pytest.mark.parametrize("status, words", [(407, "USER:PASSWORD"), (403, "no_proxy")])
def test_a_proxy_that_refuses_is_named_and_heals(start, tree, server, proxy, monkeypatch, status, words):
    url, variable = server
    monkeypatch.setenv(variable, f"http://me:secret@127.0.0.1:{proxy.port}")
    proxy.status = status
    daemon = start("--set", "poll=0.1", url)
    with Client(daemon.socket_path) as client:
        said = failure(client)
        if (status, variable) == (403, "http_proxy"):
            assert said.startswith("403 "), said  # it could be the server's as well
        else:
            assert said.startswith("proxy ") and f"{proxy.url} ({variable}) answered {status}" in said and words in said, said
        assert "secret" not in said
        proxy.status = None
        Follower(client).until(expected_rows(tree))
    assert "secret" not in daemon.stderr()


def test_a_proxy_that_is_not_there_is_named_and_heals(start, tree, server, monkeypatch):
    url, variable = server
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        place = "127.0.0.1:%d" % held.getsockname()[1]
        monkeypatch.setenv(variable, f"http://me:secret@{place}")
        daemon = start("--set", "poll=0.1", url)
        with Client(daemon.socket_path) as client:
            said = failure(client)
            assert said.startswith("proxy ") and f"http://{place} ({variable})" in said and "refused" in said, said
            assert "no_proxy" in said and "secret" not in said
    assert "secret" not in daemon.stderr()


@pytest.mark.parametrize("value, words", [("http://me:secret@no-such-proxy.invalid:1", "http://no-such-proxy.invalid:1 ({})"),
                                          ("http://me:secret@127.0.0.1:port", "{} names no proxy"),
                                          ("gopher://me:secret@127.0.0.1:1", "{} names no proxy")])
def test_a_variable_that_is_wrong_is_named(start, server, monkeypatch, value, words):
    url, variable = server
    monkeypatch.setenv(variable, value)
    daemon = start("--set", "poll=0.1", url)
    with Client(daemon.socket_path) as client:
        said = failure(client)
        assert said.startswith("proxy ") and words.format(variable) in said and "secret" not in said, said
    assert "secret" not in daemon.stderr()
