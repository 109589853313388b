# SPDX-License-Identifier: Apache-2.0
"""Where az:// has its tokens from, how it signs, and what it does when it is refused. A server of others: tests/peers/test_azure.py."""
import base64
import os
import stat
import sys

import pytest

from tests.integration.hrclient import Client
from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, start, write_tree  # noqa: F401
from tests.rig.azure_identity import ASSERTION, CLIENT, SECRET, SERVICE_SECRET, TENANT, TOKEN, AzureIdentity


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs"), runs=3)


@pytest.fixture
def azure(tree):
    with AzureIdentity({f"exp/{path.relative_to(tree)}": path.read_bytes() for path in tree.rglob("*tfevents*")}) as server:
        yield server


@pytest.fixture
def run(azure, tmp_path):
    """headrace with nothing of Azure but what is given; the PATH has no `az` but one that is made here."""
    (tmp_path / "bin").mkdir()

    def headrace_with(command, code=0, **variables):
        clean = {name: "" for name in os.environ if name.startswith(("AZURE_", "IDENTITY_"))}
        environment = {**clean, "AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_ENDPOINT": azure.url + "/account",
                       "AZURE_AUTHORITY_HOST": azure.url, "PATH": f"{tmp_path / 'bin'}", **variables}
        return headrace(command, "az://logs/exp", code=code, env=environment)
    return headrace_with


def check(run, tree, identity, **variables):
    assert rows(run("dump", **variables).stdout) == expected_rows(tree)
    assert f"as {identity}" in run("ls", **variables).stdout.decode()


def test_client_secret(run, tree):
    check(run, tree, f"application {CLIENT}", AZURE_TENANT_ID=TENANT, AZURE_CLIENT_ID=CLIENT, AZURE_CLIENT_SECRET=SECRET)


def test_workload_identity(run, tree, tmp_path):
    (tmp_path / "token").write_text(ASSERTION + "\n")
    check(run, tree, f"workload identity {CLIENT}", AZURE_TENANT_ID=TENANT, AZURE_CLIENT_ID=CLIENT,
          AZURE_FEDERATED_TOKEN_FILE=str(tmp_path / "token"))


def test_managed_identity_of_a_machine(azure, run, tree):
    check(run, tree, "managed identity", AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url)


def test_managed_identity_of_a_service(azure, run, tree):
    check(run, tree, "managed identity", IDENTITY_ENDPOINT=azure.url + "/msi", IDENTITY_HEADER=SERVICE_SECRET)


def cli(tmp_path, text):
    program = tmp_path / "bin/az"
    program.write_text(f"#!{sys.executable}\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_login_of_the_cli(azure, run, tree, tmp_path):
    cli(tmp_path, "import json, sys\nassert sys.argv[1:4] == ['account', 'get-access-token', '--resource']\n"
                  f"print(json.dumps({{'accessToken': {TOKEN!r}, 'expires_on': 4102444800}}))")
    check(run, tree, "the login of the Azure CLI", AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url + "/nothing")


def test_a_machine_without_an_identity_has_perhaps_a_login(azure, run, tree, tmp_path):
    azure.has_identity = False
    cli(tmp_path, f"import json\nprint(json.dumps({{'accessToken': {TOKEN!r}, 'expires_on': 4102444800}}))")
    check(run, tree, "the login of the Azure CLI", AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url)
    cli(tmp_path, "import sys; sys.exit('Please run az login')")
    assert b"this machine has no identity" in run("ls", code=3, AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url).stderr


def test_identity_of_a_client_is_asked_for_encoded(azure, run):
    run("ls", AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url, AZURE_CLIENT_ID="a&resource=b c")
    assert azure.clients == ["a&resource=b c"]


def test_account_key(azure, run, tree):
    """Signed as the server reckons it anew, from the documented rules and with Python's hmac."""
    azure.key = base64.b64encode(b"a key of any length").decode()
    azure.blobs.update({f"exp/{name}/a.tfevents": next(iter(azure.blobs.values())) for name in ("a b", "a+b&c=d", "ü%20", "A;b,c")})
    wanted = run("dump", AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url).stdout
    azure.token = "no other way"
    found = run("dump", AZURE_STORAGE_KEY=azure.key).stdout
    assert found == wanted and len(rows(found)) == 3 + 4
    other = base64.b64encode(b"another key").decode()
    assert b"InvalidAuthenticationInfo" in run("ls", code=3, AZURE_STORAGE_KEY=other).stderr


def test_nobody_reads_what_is_public(azure, tree, start, monkeypatch):
    """Though there is a key: it would be refused."""
    azure.is_public = True
    for name, value in {"AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_ENDPOINT": azure.url + "/account",
                        "AZURE_STORAGE_KEY": "d3Jvbmc="}.items():
        monkeypatch.setenv(name, value)
    daemon = start("--set", 'sources=[{"url": "az://logs/exp", "anonymous": true}]')
    with Client(daemon.socket_path) as client:
        client.call("wait_loaded")
        (source,) = client.call("sources")["sources"]
    assert source["state"] == "ok" and source["identity"] == "anonymous"
    assert len(azure.reads) == 3


@pytest.mark.parametrize("refusal, times", [((429, {"error": "slow down"}), 5), ((503, {"error": "x"}), 5),
                                           ((400, {"error": "temporarily_unavailable"}), 1)])
def test_what_passes_is_waited_for(azure, run, refusal, times):
    """Also when it takes longer than the tries of one exchange."""
    azure.refusals = [refusal] * times
    output = run("ls", AZURE_TENANT_ID=TENANT, AZURE_CLIENT_ID=CLIENT, AZURE_CLIENT_SECRET=SECRET).stdout.decode()
    assert "3 runs, 3 files" in output and not azure.refusals


def test_refused_secret_says_why_and_is_not_shown(run):
    result = run("ls", code=3, AZURE_TENANT_ID=TENANT, AZURE_CLIENT_ID=CLIENT, AZURE_CLIENT_SECRET="not the secret")
    assert b"AADSTS7000215" in result.stderr and b"not the secret" not in result.stderr


def test_nothing_is_set_up(azure, run, tmp_path):
    cli(tmp_path, "import sys; sys.exit(\"Please run 'az login' to setup account.\")")
    result = run("ls", code=3, AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url + "/nothing")
    for words in (b"AZURE_STORAGE_KEY is not set", b"AZURE_TENANT_ID is not set", b"no metadata service", b"az login"):
        assert words in result.stderr
