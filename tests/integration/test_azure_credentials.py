# SPDX-License-Identifier: Apache-2.0
"""Where az:// has its tokens from, and how its pages are read. Keys and SAS: tests/peers/test_azure.py."""
import os
import stat
import sys

import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, write_tree
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


def test_refused_secret_says_why_and_is_not_shown(run):
    result = run("ls", code=3, AZURE_TENANT_ID=TENANT, AZURE_CLIENT_ID=CLIENT, AZURE_CLIENT_SECRET="not the secret")
    assert b"AADSTS7000215" in result.stderr and b"not the secret" not in result.stderr


def test_nothing_is_set_up(azure, run, tmp_path):
    cli(tmp_path, "import sys; sys.exit(\"Please run 'az login' to setup account.\")")
    result = run("ls", code=3, AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url + "/nothing")
    for words in (b"AZURE_STORAGE_KEY is not set", b"AZURE_TENANT_ID is not set", b"no metadata service", b"az login"):
        assert words in result.stderr
