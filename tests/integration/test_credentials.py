# SPDX-License-Identifier: Apache-2.0
"""What all clouds have in common: credentials that go bad while files are read, and requests that are counted."""
import json
import os

import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, write_tree
from tests.integration.test_storage import serve  # noqa: F401
from tests.rig.aws_identity import CONTAINER_TOKEN, SSO_TOKEN, WEB_TOKEN, AwsIdentity
from tests.rig.azure_identity import ASSERTION, CLIENT, SECRET, SERVICE_SECRET, TENANT, AzureIdentity

FILES, ROTATION = 60, 20

pytestmark = pytest.mark.sanitize


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs") / "logs/exp", runs=FILES, steps=20)


def objects(tree):
    return {f"exp/{path.relative_to(tree)}": path.read_bytes() for path in tree.rglob("*tfevents*")}


def clean(prefixes, **variables):
    return {**{name: "" for name in os.environ if name.startswith(prefixes)}, **variables}


def aws_environment(endpoint, **variables):
    return clean(("AWS_", "S3_"), **{"AWS_ENDPOINT_URL_S3": endpoint, "AWS_CONFIG_FILE": os.devnull,
                                     "AWS_SHARED_CREDENTIALS_FILE": os.devnull, **variables})


def azure_environment(azure, **variables):
    return clean(("AZURE_", "IDENTITY_"), AZURE_STORAGE_ACCOUNT="account", AZURE_STORAGE_ENDPOINT=azure.url + "/account",
                 AZURE_AUTHORITY_HOST=azure.url, PATH="", **variables)


# ---- They go bad in the middle of a load: all of it comes, once (a server that is slow may be asked for a file twice)

def test_aws_session_expires_while_files_are_read(serve, tree):  # noqa: F811
    server = serve(tree.parents[1])
    with AwsIdentity("AKIDEXAMPLE", "secret", "one") as aws:
        aws.tokens = ["one", "two"]
        server.control({"kind": "read", "skip": ROTATION, "fault": "status", "status": 400, "code": "ExpiredToken",
                        "unless": {"x-amz-security-token": "two"}})
        output = headrace("dump", "s3://logs/exp", env=aws_environment(server.url, AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.url)).stdout
        assert aws.seen == ["PUT /latest/api/token", "GET /latest/meta-data/iam/security-credentials/",
                            "GET /latest/meta-data/iam/security-credentials/ml-read"] * 2
    assert rows(output) == expected_rows(tree)
    reads = [row for row in server.requests() if row["kind"] == "read"]
    assert len(reads) == FILES and all("206" in row["statuses"] for row in reads)
    assert sum(row["statuses"].get("400", 0) for row in reads) > 0


def test_google_token_goes_bad_while_files_are_read(tree, tmp_path):
    pytest.importorskip("cryptography")
    from tests.rig.google import Google
    with Google(objects(tree)) as google:
        google.need_token, google.rotate_after = True, ROTATION
        environment = google.environment(**google.write(tmp_path / "key.json", google.account()))
        output = headrace("dump", "gs://logs/exp", env=environment).stdout
        assert rows(output) == expected_rows(tree)
        assert len(set(google.reads)) == FILES and len(google.grants) == 2


def test_azure_token_goes_bad_while_files_are_read(tree):
    with AzureIdentity(objects(tree)) as azure:
        azure.rotate_after = ROTATION
        output = headrace("dump", "az://logs/exp", env=azure_environment(azure, AZURE_POD_IDENTITY_AUTHORITY_HOST=azure.url)).stdout
        assert rows(output) == expected_rows(tree)
        assert len(set(azure.reads)) == FILES and len(azure.clients) == 2


# ---- Each request for them counts, of whatever kind, and those that were in vain

def count(url, environment):
    return json.loads(headrace("ls", url, "--json", env=environment).stdout)["requests"]["credentials"]


def profile(path, text):
    path.write_text(f"[default]\n{text}\n")
    return {"AWS_CONFIG_FILE": str(path)}


AWS = {
    "instance": (4, lambda aws, path: {"AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url}),
    "container": (2, lambda aws, path: {"AWS_CONTAINER_CREDENTIALS_FULL_URI": aws.url + "/container",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN": CONTAINER_TOKEN}),
    "web identity": (2, lambda aws, path: {"AWS_WEB_IDENTITY_TOKEN_FILE": str(path / "token"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/R",
                                           "AWS_ENDPOINT_URL_STS": aws.url + "/sts"}),
    "role of an instance": (5, lambda aws, path: {
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.url, "AWS_ENDPOINT_URL_STS": aws.url + "/sts",
        **profile(path / "config", "role_arn = arn:aws:iam::1:role/R\ncredential_source = Ec2InstanceMetadata")}),
    "identity center": (2, lambda aws, path: {
        "AWS_ENDPOINT_URL_SSO": aws.url + "/sso", "HOME": str(path),
        **profile(path / "config", "sso_start_url = acme\nsso_region = x\nsso_account_id = 123456789012\nsso_role_name = Research")}),
    "keys": (0, lambda aws, path: {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}),
}


@pytest.mark.parametrize("kind", AWS)
def test_requests_to_aws_are_counted(serve, tree, tmp_path, kind):  # noqa: F811
    wanted, variables = AWS[kind]
    (tmp_path / "token").write_text(WEB_TOKEN)
    cache = tmp_path / ".aws/sso/cache"
    cache.mkdir(parents=True)
    # printf acme | sha1sum
    (cache / "293abb6b76d7791c0732cc517d38c4b5c734b87f.json").write_text(
        json.dumps({"accessToken": SSO_TOKEN, "expiresAt": "2100-01-01T00:00:00Z"}))
    with AwsIdentity("AKIDEXAMPLE", "secret", "one", signer=("AKIDEXAMPLE", "secret", "one")) as aws:
        aws.fail = 1
        assert count("s3://logs/exp", aws_environment(serve(tree.parents[1]).url, **variables(aws, tmp_path))) == wanted
        assert len(aws.seen) == wanted


GOOGLE = {"service": 1, "user": 1, "url": 2, "impersonated": 2, "nobody": 0}


@pytest.mark.parametrize("kind", GOOGLE)
def test_requests_to_google_are_counted(tree, tmp_path, kind):
    pytest.importorskip("cryptography")
    from tests.rig.google import Google
    with Google(objects(tree)) as google:
        as_json = {"type": "json", "subject_token_field_name": "value"}
        accounts = {
            "service": google.account(), "user": google.user(),
            "url": google.federated({"url": f"{google.url}/subject", "headers": {"X-Key": "k"}, "format": as_json}),
            "impersonated": {"type": "impersonated_service_account", "source_credentials": google.user(),
                             "service_account_impersonation_url": google.impersonation_url()},
        }
        google.need_token = kind != "nobody"
        more = google.write(tmp_path / "key.json", accounts[kind]) if kind in accounts else {}
        assert count("gs://logs/exp", google.environment(**more)) == GOOGLE[kind]
        assert len(google.asked) == GOOGLE[kind]


AZURE = {
    "client secret": lambda azure, path: {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET},
    "workload": lambda azure, path: {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_FEDERATED_TOKEN_FILE": str(path / "token")},
    "machine": lambda azure, path: {"AZURE_POD_IDENTITY_AUTHORITY_HOST": azure.url},
    "service": lambda azure, path: {"IDENTITY_ENDPOINT": azure.url + "/msi", "IDENTITY_HEADER": SERVICE_SECRET},
}


@pytest.mark.parametrize("kind", AZURE)
def test_requests_to_azure_are_counted(tree, tmp_path, kind):
    (tmp_path / "token").write_text(ASSERTION)
    with AzureIdentity(objects(tree)) as azure:
        azure.refusals = [(503, "")]
        assert count("az://logs/exp", azure_environment(azure, **AZURE[kind](azure, tmp_path))) == 2
        assert sum(not one.split()[1].startswith("/account/") for one in azure.seen) == 2
